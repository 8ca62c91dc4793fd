"""The transient store on Redis or Valkey.

`engine` says how it is opened, described and closed.
"""
