"""The migrations, in order of their revision.

A file is named after its subject; `revision` is one more than that of the last. `certificates_and_use` is an example of
new columns and a new table. What the version before does not write yet is `_later` in `stores.sql.tables`.
"""
