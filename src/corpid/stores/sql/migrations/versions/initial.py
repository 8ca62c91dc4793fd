"""The first schema.

A migration never imports the tables, which change after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations
    from sqlalchemy.sql.schema import SchemaItem

revision = "0001"
phase = "expand"
locks = "nothing: there is nobody yet"

_DATED = ("role", "sub_entity", "ref")
_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_SQLITE = """
CREATE TRIGGER audit_refuses_{verb} BEFORE {verb} ON audit
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END
"""
_POSTGRESQL = (
    """
CREATE FUNCTION audit_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit table is append-only' USING ERRCODE = 'restrict_violation'; END $$
""",
    """
CREATE TRIGGER audit_refuses BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses()
""",
)
_APPEND_ONLY = {"sqlite": [_SQLITE.format(verb=verb) for verb in ("UPDATE", "DELETE")], "postgresql": _POSTGRESQL}


def upgrade(op: Operations) -> None:
    """Make every table of an empty database."""
    _clients(op)
    _people(op)
    _roles(op)
    _third_parties(op)
    _provider(op)
    _audit(op)
    _transient(op)


def _clients(op: Operations) -> None:
    _table(op, "clients", *_text("client_id", "name"), _flag("enabled"), *_text("record"), key=("client_id",))
    _table(
        op,
        "fetched_key_sets",
        *_text("client_id", "jwks_uri", "jwks"),
        *_integers("fetched_at"),
        _to("fetched_key_sets", "clients", "client_id"),
        key=("client_id",),
    )


def _people(op: Operations) -> None:
    _table(
        op,
        "entities",
        *_text("entity_id", "type", "registration_number", "country", "name", "status"),
        _flag("enabled"),
        *_text("search_text"),
        key=("entity_id",),
    )
    _table(
        op,
        "users",
        *_text("user_id", "user_name", "user_name_key", "name", "email", "language"),
        *_text("identity_number", "identity_country", "account_type"),
        _flag("enabled"),
        sa.UniqueConstraint("user_name_key", name="uq_users_user_name_key"),
        key=("user_id",),
    )
    _table(
        op,
        "credentials",
        *_text("user_id"),
        *_text("password_hash", null=True),
        *_text("password_set_by", "password_source"),
        *_text("totp_secret", null=True),
        *_text("totp_set_by"),
        *_integers("totp_last_step"),
        _to("credentials", "users", "user_id"),
        key=("user_id",),
    )
    _table(
        op,
        "memberships",
        *_text("user_id", "entity_id"),
        _flag("enabled"),
        _to("memberships", "users", "user_id"),
        _to("memberships", "entities", "entity_id"),
        key=("user_id", "entity_id"),
    )
    _index(op, "memberships", "entity_id")


def _roles(op: Operations) -> None:
    _table(
        op,
        "services",
        *_text("service_id", "name", "roles", "parameters"),
        _flag("third_parties"),
        *_text("sub_entity", "entity_types", "entity_statuses"),
        _flag("enabled"),
        key=("service_id",),
    )
    _table(
        op,
        "assignments",
        *_text("user_id", "entity_id", "service_id", *_DATED, "start_date", "end_date", "parameters"),
        _to("assignments", "services", "service_id"),
        _to_membership("assignments"),
        key=("user_id", "entity_id", "service_id", *_DATED),
    )
    _index(op, "assignments", "service_id")


def _third_parties(op: Operations) -> None:
    _table(
        op,
        "third_party_grants",
        *_text("client_entity_id", "entity_id", "service_id", *_DATED, "start_date", "end_date", "parameters"),
        _to("third_party_grants", "entities", "client_entity_id", "entity_id"),
        _to("third_party_grants", "entities", "entity_id"),
        _to("third_party_grants", "services", "service_id"),
        key=("client_entity_id", "entity_id", "service_id", *_DATED),
    )
    _index(op, "third_party_grants", "entity_id")
    _index(op, "third_party_grants", "service_id")
    _table(
        op,
        "third_party_assignments",
        *_text("user_id", "entity_id", "client_entity_id", "service_id", *_DATED),
        *_text("start_date", "end_date", "parameters"),
        _to("third_party_assignments", "entities", "client_entity_id", "entity_id"),
        _to("third_party_assignments", "services", "service_id"),
        _to_membership("third_party_assignments"),
        key=("user_id", "entity_id", "client_entity_id", "service_id", *_DATED),
    )
    _index(op, "third_party_assignments", "client_entity_id")
    _index(op, "third_party_assignments", "service_id")


def _provider(op: Operations) -> None:
    _table(
        op,
        "keys",
        *_text("kid", "use", "secret"),
        *_integers("created_at", "active_from"),
        *_integers("retired_at", "revoked_at", null=True),
        key=("kid",),
    )
    _table(
        op,
        "sessions",
        *_text("session_id", "user_id", "browser_id"),
        *_integers("auth_time"),
        *_text("amr"),
        *_integers("level", "expires_at"),
        *_text("entity_id"),
        _to("sessions", "users", "user_id"),
        key=("session_id",),
    )
    _index(op, "sessions", "expires_at")
    _index(op, "sessions", "user_id")
    _table(op, "deployment", *_text("name", "value"), key=("name",))


def _audit(op: Operations) -> None:
    op.create_table(
        "audit",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        *_integers("at"),
        *_text("actor", "action", "object", "client_id", "entity_id", "outcome", "request_id", "detail"),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    for statement in _APPEND_ONLY[op.get_context().dialect.name]:
        op.execute(statement)


def _transient(op: Operations) -> None:
    op.create_table(
        "transient",
        *_text("kind"),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        *_integers("count", "expires_at"),
        sa.PrimaryKeyConstraint("kind", "key", name="pk_transient"),
    )


def _table(op: Operations, name: str, *items: SchemaItem, key: tuple[str, ...]) -> None:
    op.create_table(name, *items, sa.PrimaryKeyConstraint(*key, name=f"pk_{name}"), sqlite_with_rowid=False)


def _text(*names: str, null: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, _TEXT, nullable=null) for name in names]


def _integers(*names: str, null: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=null) for name in names]


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _to(table: str, target: str, column: str, target_column: str = "") -> sa.ForeignKeyConstraint:
    reference = f"{target}.{target_column or column}"
    return sa.ForeignKeyConstraint([column], [reference], name=f"fk_{table}_{column}", ondelete="CASCADE")


def _to_membership(table: str) -> sa.ForeignKeyConstraint:
    columns = ["user_id", "entity_id"]
    references = [f"memberships.{column}" for column in columns]
    return sa.ForeignKeyConstraint(columns, references, name=f"fk_{table}_{'_'.join(columns)}", ondelete="CASCADE")


def _index(op: Operations, table: str, column: str) -> None:
    op.create_index(f"ix_{table}_{column}", table, [column])
