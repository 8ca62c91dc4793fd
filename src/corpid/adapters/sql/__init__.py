"""Both ports on a SQL database; `stores.open_sqlite` is the way in.

Rules of this package: a statement is written once in SQLAlchemy Core (`prepare` makes text of it for
the dialect, once); whatever is one-time is one statement; every write is inside `Database.transaction`;
sqlite3 is named in `engine`, `errors`, `checkpoints` and `schema` only.
"""
