"""The tables. Moments are epoch seconds (`transient.expires_at`: milliseconds), structured fields JSON
text, secrets encrypted (D43). A record's fields are columns of the same name.

A migration repeats what changes here; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from corpid.rules.audit_actions import AuditAction

if TYPE_CHECKING:
    from sqlalchemy.sql.schema import SchemaItem

METADATA: Final = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_TEXT: Final = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
"""compared and sorted byte by byte, whatever the order that a database was made with"""


def _text(name: str, *references: SchemaItem, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, *references, nullable=null)


def _key(name: str, *references: SchemaItem) -> sa.Column[str]:
    return sa.Column(name, _TEXT, *references, primary_key=True, nullable=False)


def _integer(name: str, *, null: bool = False, index: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=null, index=index)


def _later(name: str, default: str) -> sa.Column[str]:
    """A column that the previous version does not know or write."""
    return sa.Column(name, _TEXT, nullable=False, server_default=default)


def _later_flag(name: str) -> sa.Column[bool]:
    """A flag that the previous version does not know or write."""
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


def _later_moment(name: str) -> sa.Column[int]:
    """A moment that the previous version does not know or write."""
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def _source() -> sa.Column[str]:
    """The actor that wrote a record; of a user, that made it (D65)."""
    return _later("source", "")


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _to(target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="CASCADE")


def _table(name: str, *items: SchemaItem) -> sa.Table:
    """A table whose rows are stored in the primary key's tree.

    The look-ups of a request are one descent.
    """
    return sa.Table(name, METADATA, *items, sqlite_with_rowid=False)


def _membership() -> sa.ForeignKeyConstraint:
    """Roles end with the membership they belong to."""
    return sa.ForeignKeyConstraint(
        ["user_id", "entity_id"], ["memberships.user_id", "memberships.entity_id"], ondelete="CASCADE"
    )


def _dated() -> tuple[SchemaItem, ...]:
    return (
        _key("role"), _key("sub_entity"), _key("ref"),
        _text("start_date"), _text("end_date"), _text("parameters"),
    )  # fmt: skip


def _some_rows(name: str, column: str, condition: str) -> sa.Index:
    """An index of some rows, by a column and in order."""
    return sa.Index(name, column, "number", postgresql_where=sa.text(condition), sqlite_where=sa.text(condition))


def _partial(name: str, *columns: str, rows: str, unique: bool = False) -> sa.Index:
    """An index of some rows."""
    return sa.Index(name, *columns, unique=unique, postgresql_where=sa.text(rows), sqlite_where=sa.text(rows))


IDENTIFIED: Final = "membership_id <> ''"
HAS_USER_NAME: Final = "user_name_key <> ''"
HAS_EXTERNAL_ID: Final = "external_id <> ''"
DUE: Final = "invited AND (invitation_sent_at = 0 OR invitation_sent_at < -2)"
"""memberships whose invitation is to be sent, or is being sent"""

OF_NO_SIGN_IN: Final = "substr(action, 1, 8) <> 'sign_in.'"
"""rows of the audit whose object is worth an index: that of a sign-in is its own identifier"""

COMPLETED_SIGN_IN: Final = f"action = '{AuditAction.SIGN_IN_COMPLETE}'"
NO_COMPLETED_SIGN_IN: Final = f"action <> '{AuditAction.SIGN_IN_COMPLETE}'"
"""most rows of the audit are of completed sign-ins; each index that leaves them out makes one cheaper"""

BEGINNING_OF_NAME: Final = "substr(search_text, 1, 100)"
"""of an entity, folded: a name may fold to more than PostgreSQL keeps in an index"""
NAME_CHARACTERS: Final = 100
BEGINNING_OF_PERSONS_NAME: Final = "lower(substr(name, 1, 100))"
"""of both engines: they fold the letters of ASCII, and no others"""

SHOWN_USER_NAME: Final = "coalesce(nullif(memberships.user_name_key, ''), memberships.person_name_key)"
SHOWN_EMAIL: Final = "lower(coalesce(nullif(memberships.email, ''), memberships.person_email))"
"""of a member: what the entity wrote, else the person's; of addresses the letters of ASCII are folded"""


def _of_members(expression: str) -> sa.TextClause:
    """An expression of memberships as their indexes have it."""
    return sa.text(expression.replace("memberships.", ""))


clients: Final = _table("clients", _key("client_id"), _text("name"), _flag("enabled"), _text("record"), _source())

fetched_key_sets: Final = _table(
    "fetched_key_sets",
    _key("client_id", _to("clients.client_id")),
    _text("jwks_uri"),
    _text("jwks"),
    _integer("fetched_at"),
)

api_clients: Final = _table("api_clients", _key("client_id"), _text("name"), _flag("enabled"), _text("record"))
"""Clients of the admin API. Triggers refuse an identifier that a row of `clients` has, and the reverse."""

api_client_key_sets: Final = _table(
    "api_client_key_sets",
    _key("client_id", _to("api_clients.client_id")),
    _text("jwks_uri"),
    _text("jwks"),
    _integer("fetched_at"),
)

generation_use: Final = _table(
    "generation_use",
    _key("client_id", _to("clients.client_id")),
    _key("generation"),
    _key("habit"),
    _integer("count"),
    _integer("last_at"),
)

entities: Final = _table(
    "entities",
    _key("entity_id"),
    _text("type"),
    _text("registration_number"),
    _text("country"),
    _text("name"),
    _text("status"),
    _flag("enabled"),
    _text("search_text"),
    _later("approvals", "none"),
    _source(),
    sa.Index("ix_entities_name", sa.text(BEGINNING_OF_NAME), "entity_id"),
)

users: Final = _table(
    "users",
    _key("user_id"),
    _text("user_name"),
    sa.Column("user_name_key", _TEXT, nullable=False, unique=True),
    _text("name"),
    _text("email"),
    _text("language"),
    _text("identity_number"),
    _text("identity_country"),
    _text("account_type"),
    _flag("enabled"),
    _source(),
    _later("member_sources", "{}"),
    _later_flag("placeholder"),
    sa.Index("ix_users_name", sa.text(BEGINNING_OF_PERSONS_NAME), "user_id"),
)

credentials: Final = _table(
    "credentials",
    _key("user_id", _to("users.user_id")),
    _text("password_hash", null=True),
    _text("password_set_by"),
    _text("password_source"),
    _text("totp_secret", null=True),
    _text("totp_set_by"),
    _integer("totp_last_step"),
)

memberships: Final = _table(
    "memberships",
    _key("user_id", _to("users.user_id")),
    _key("entity_id", _to("entities.entity_id")),
    _flag("enabled"),
    _source(),
    *(_later(name, "") for name in ("membership_id", "user_name", "user_name_key", "external_id", "name")),
    *(_later(name, "") for name in ("given_name", "family_name", "email")),
    *(_later_moment(name) for name in ("created_at", "changed_at", "invitation_sent_at")),
    _later_flag("invited"),
    *(_later(name, "") for name in ("person_name_key", "person_email")),
    sa.Index(None, "entity_id"),
    _partial("ix_memberships_membership_id", "membership_id", rows=IDENTIFIED, unique=True),
    _partial("ix_memberships_user_name", "entity_id", "user_name_key", rows=HAS_USER_NAME, unique=True),
    _partial("ix_memberships_external_id", "entity_id", "external_id", rows=HAS_EXTERNAL_ID, unique=True),
    sa.Index(None, "entity_id", "membership_id"),
    _partial("ix_memberships_due", "invitation_sent_at", "membership_id", rows=DUE),
    sa.Index("ix_memberships_person", "entity_id", "person_name_key"),
    sa.Index("ix_memberships_shown_name", "entity_id", _of_members(SHOWN_USER_NAME), "membership_id"),
    sa.Index("ix_memberships_shown_email", "entity_id", _of_members(SHOWN_EMAIL), "membership_id"),
    _partial("ix_memberships_invited", "entity_id", "membership_id", rows="invited"),
)
"""Triggers give every row its `membership_id`, and end a placeholder with its invitation. Others copy the person's user
name and address, so that an entity's members are found and ordered by an index of the entity."""

provisioning_tokens: Final = _table(
    "provisioning_tokens",
    _key("token_id"),
    _text("entity_id", _to("entities.entity_id")),
    _text("name"),
    sa.Column("token_hash", _TEXT, nullable=False, unique=True),
    _integer("created_at"),
    _integer("expires_at"),
    _text("created_by"),
    _integer("last_used_at"),
    sa.Index(None, "entity_id"),
)

administrators: Final = _table(
    "administrators",
    _key("user_id"),
    _key("entity_id"),
    _text("level"),
    _text("services"),
    _source(),
    _membership(),
    sa.Index(None, "entity_id"),
)

operators: Final = _table(
    "operators", _key("user_id", _to("users.user_id")), _text("level"), _source(), sa.Index(None, "level")
)

services: Final = _table(
    "services",
    _key("service_id"),
    _text("name"),
    _text("roles"),
    _text("parameters"),
    _flag("third_parties"),
    _text("sub_entity"),
    _text("entity_types"),
    _text("entity_statuses"),
    _flag("enabled"),
    _later_flag("approval_required"),
    _source(),
)

assignments: Final = _table(
    "assignments",
    _key("user_id"),
    _key("entity_id"),
    _key("service_id", _to("services.service_id")),
    *_dated(),
    _source(),
    _membership(),
    sa.Index(None, "entity_id", "user_id"),
    sa.Index(None, "service_id", "user_id"),
)

third_party_grants: Final = _table(
    "third_party_grants",
    _key("client_entity_id", _to("entities.entity_id")),
    _key("entity_id", _to("entities.entity_id")),
    _key("service_id", _to("services.service_id")),
    *_dated(),
    _later("state", "accepted"),
    _source(),
    sa.Index(None, "entity_id"),
    sa.Index(None, "service_id"),
)

third_party_assignments: Final = _table(
    "third_party_assignments",
    _key("user_id"),
    _key("entity_id"),
    _key("client_entity_id", _to("entities.entity_id")),
    _key("service_id", _to("services.service_id")),
    *_dated(),
    _source(),
    _membership(),
    sa.Index(None, "entity_id", "user_id"),
    sa.Index(None, "client_entity_id", "user_id"),
    sa.Index(None, "service_id", "user_id"),
)

change_requests: Final = _table(
    "change_requests",
    _key("request_id"),
    _text("entity_id", _to("entities.entity_id")),
    _text("requester"),
    _text("bound_to"),
    _text("changes"),
    _text("reason"),
    _integer("created_at"),
    _text("state"),
    _text("decided_by"),
    _text("decided_reason"),
    _integer("decided_at"),
    sa.Index(None, "entity_id", "state", "request_id"),
    sa.Index(None, "state", "request_id"),
)

keys: Final = _table(
    "keys",
    _key("kid"),
    _text("use"),
    _text("secret"),
    _integer("created_at"),
    _integer("active_from"),
    _integer("retired_at", null=True),
    _integer("revoked_at", null=True),
    _text("certificate_chain", null=True),
)

sessions: Final = _table(
    "sessions",
    _key("session_id"),
    _text("user_id", _to("users.user_id")),
    _text("browser_id"),
    _integer("auth_time"),
    _text("amr"),
    _integer("level"),
    _integer("expires_at", index=True),
    _text("entity_id"),
    _later("purpose", "sign_in"),
    _later("device", ""),
    sa.Column("seen_at", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index(None, "user_id"),
)

consents: Final = _table(
    "consents",
    _key("user_id"),
    _key("entity_id"),
    _key("client_id", _to("clients.client_id")),
    _key("issuer_id"),
    _key("scopes"),
    _integer("given_at"),
    _integer("expires_at", index=True),
    _membership(),
    sa.Index(None, "client_id"),
)

passkeys: Final = _table(
    "passkeys",
    _key("credential_id"),
    _text("user_id", _to("users.user_id")),
    _text("public_key"),
    _integer("sign_count"),
    _text("name"),
    _text("aaguid"),
    _flag("synced"),
    _text("transports"),
    _integer("created_at"),
    _integer("used_at"),
    sa.Index(None, "user_id"),
)

recovery_codes: Final = _table("recovery_codes", _key("user_id", _to("users.user_id")), _key("code_hash"))

code_guesses: Final = _table(
    "code_guesses",
    _key("user_id", _to("users.user_id")),
    _key("browser"),
    _text("factors"),
    _integer("guesses"),
    _integer("paused_until"),
    _integer("told_at"),
)

links: Final = _table(
    "links",
    _key("link_hash"),
    _text("purpose"),
    _text("user_id", _to("users.user_id")),
    _integer("created_at"),
    _integer("expires_at"),
    _text("factors"),
    sa.Index(None, "user_id"),
)

audit: Final = sa.Table(
    "audit",
    METADATA,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    _integer("at"),
    _text("actor"),
    _text("action"),
    _text("object"),
    _text("client_id"),
    _text("entity_id"),
    _text("outcome"),
    _text("request_id"),
    _text("detail"),
    _later("other_entity_id", ""),
    _later("members", ""),
    _later("digest", ""),
    _some_rows("ix_audit_actor_others", "actor", NO_COMPLETED_SIGN_IN),
    _some_rows("ix_audit_action_others", "action", NO_COMPLETED_SIGN_IN),
    _some_rows("ix_audit_entity_id", "entity_id", "entity_id <> ''"),
    _some_rows("ix_audit_other_entity_id", "other_entity_id", "other_entity_id <> ''"),
    _some_rows("ix_audit_client_id", "client_id", "client_id <> ''"),
    _some_rows("ix_audit_object", "object", OF_NO_SIGN_IN),
    _some_rows("ix_audit_sign_ins", "actor", COMPLETED_SIGN_IN),
    sqlite_autoincrement=True,
)
"""Append-only: triggers refuse UPDATE and DELETE; a number is never used twice.

`members` are those of a changed record, before and after, that are not personal; `digest` is that of the details."""

audit_details: Final = sa.Table(
    "audit_details",
    METADATA,
    sa.Column(
        "number",
        sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
        primary_key=True,
        autoincrement=False,
        nullable=False,
    ),
    _text("salt"),
    _text("detail"),
)
"""The erasable part of an audit entry: addresses, and personal members.

Triggers refuse UPDATE and DELETE. Without a foreign key, which would cost each sign-in several look-ups."""

audit_seals: Final = _table(
    "audit_seals",
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    _integer("at"),
    sa.Column("last", sa.BigInteger, nullable=False, unique=True),
    _text("digest"),
    _text("seal"),
)
"""Append-only, as `audit`. Of two processes that make the next seal, the number refuses one."""

audit_digests: Final = sa.Table(
    "audit_digests",
    METADATA,
    sa.Column("seal", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    _key("retention"),
    _integer("latest"),
    _text("digests"),
)
"""Of each entry that a seal covers its digest; `latest` is the moment of the latest of them.

Triggers refuse UPDATE and DELETE. They leave with the last of their entries that is removed by age."""

deployment: Final = _table("deployment", _key("name"), _text("value"))

api_answers: Final = _table(
    "api_answers", _key("client_id"), _key("key"), _text("answer"), _integer("expires_at", index=True)
)
"""First responses; `key` is a hash of the Idempotency-Key."""

transient: Final = sa.Table(
    "transient",
    METADATA,
    _key("kind"),
    sa.Column("key", sa.LargeBinary, primary_key=True, nullable=False),
    sa.Column("value", sa.LargeBinary, nullable=False),
    _integer("count"),
    _integer("expires_at"),
)
"""`count` is 0 except for counters, whose value is their number.

Keys are hashes, so a tree of whole rows would touch a page for each of them: here rows are appended, and
only the small tree of keys is touched in a random place. For the same reason nothing indexes `expires_at`."""
