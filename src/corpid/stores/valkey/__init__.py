"""The transient store on Redis or Valkey.

`transient` has the store, and the engine that opens, describes and closes it.
"""
