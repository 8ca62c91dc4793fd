"""Short-lived data in an LMDB file, for the processes of one machine.

`data_file.py` opens the file and keeps it safe; `transient.py` has the verbs. Source: docs/decisions/0032
"""
