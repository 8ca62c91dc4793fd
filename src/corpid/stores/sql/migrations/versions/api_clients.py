"""Clients of the admin API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0010"
phase = "expand"
locks = "the table clients against writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
# An identifier belongs to one kind of client, whichever process writes it. On PostgreSQL two writers of the same
# identifier wait for each other, so that the second one sees the first one's row.
_OTHERS = {"clients": "api_clients", "api_clients": "clients"}
_SQLITE = """
CREATE TRIGGER {table}_refuses_taken_identifier BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {other} WHERE client_id = NEW.client_id)
BEGIN SELECT RAISE(ABORT, 'a client of another kind has this identifier'); END
"""
_FUNCTION = """
CREATE FUNCTION {table}_refuse_taken_identifier() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1131375625, hashtext(NEW.client_id));
  IF EXISTS (SELECT 1 FROM {other} WHERE client_id = NEW.client_id) THEN
    RAISE unique_violation USING MESSAGE = 'a client of another kind has this identifier';
  END IF;
  RETURN NEW;
END $$
"""
_TRIGGER = """
CREATE TRIGGER {table}_refuses_taken_identifier BEFORE INSERT ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_refuse_taken_identifier()
"""
_STATEMENTS = {"sqlite": (_SQLITE,), "postgresql": (_FUNCTION, _TRIGGER)}


def upgrade(op: Operations) -> None:
    """Add two tables and triggers.

    The previous version's servers do not use the tables; the triggers hold for them, too.
    """
    op.create_table(
        "api_clients",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("client_id", "name")),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("record", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("client_id", name="pk_api_clients"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "api_client_key_sets",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("client_id", "jwks_uri", "jwks")),
        sa.Column("fetched_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"], ["api_clients.client_id"], name="fk_api_client_key_sets_client_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("client_id", name="pk_api_client_key_sets"),
        sqlite_with_rowid=False,
    )
    for table, other in _OTHERS.items():
        for statement in _STATEMENTS[op.get_context().dialect.name]:
            op.execute(statement.format(table=table, other=other))
