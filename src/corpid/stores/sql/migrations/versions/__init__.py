"""The migrations, in order of their revision.

A file is named after its subject; `revision` is one more than that of the last. It never imports the tables or the
records, which change after it. `words` is an example of new columns and new tables. What the version before does not
write yet is declared by `later` in `stores.sql.tables`.

A file says its `phase` (docs/decisions/0009) and, in `locks`, which table it keeps from whom, and for how long. It has
an `upgrade`, which is given Alembic's operations, or in the phase `fill` a Backfill named `fill`. `concurrently = True`
is for CREATE INDEX CONCURRENTLY, which `migrations.indexes` does so that an interrupted one can be done again.
"""
