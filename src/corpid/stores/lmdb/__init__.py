"""The transient store on LMDB: `transient` has the store and its file. Source: docs/decisions/0032."""
