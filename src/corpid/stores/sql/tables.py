"""The tables, except those of the directory (`directory_tables`).

Moments are epoch seconds (`transient.expires_at`: milliseconds), structured fields JSON text, secrets encrypted (D43).
A record's fields are columns of the same name.

A migration repeats what changes here; a test compares the two.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from corpid.rules.audit_actions import AuditAction
from corpid.stores.sql.columns import (
    METADATA,
    flag,
    foreign_key,
    integer,
    key,
    later,
    membership,
    partial,
    source,
    table,
    text,
)

OF_NO_SIGN_IN: Final = "substr(action, 1, 8) <> 'sign_in.'"
"""rows of the audit whose object is worth an index: that of a sign-in is its own identifier"""

COMPLETED_SIGN_IN: Final = f"action = '{AuditAction.SIGN_IN_COMPLETE}'"
NO_COMPLETED_SIGN_IN: Final = f"action <> '{AuditAction.SIGN_IN_COMPLETE}'"
"""most rows of the audit are of completed sign-ins; each index that leaves them out makes one cheaper"""


clients: Final = table("clients", key("client_id"), text("name"), flag("enabled"), text("record"), source())

fetched_key_sets: Final = table(
    "fetched_key_sets",
    key("client_id", foreign_key("clients.client_id")),
    text("jwks_uri"),
    text("jwks"),
    integer("fetched_at"),
)

api_clients: Final = table("api_clients", key("client_id"), text("name"), flag("enabled"), text("record"))
"""Clients of the admin API. Triggers refuse an identifier that a row of `clients` has, and the reverse."""

api_client_key_sets: Final = table(
    "api_client_key_sets",
    key("client_id", foreign_key("api_clients.client_id")),
    text("jwks_uri"),
    text("jwks"),
    integer("fetched_at"),
)

generation_use: Final = table(
    "generation_use",
    key("client_id", foreign_key("clients.client_id")),
    key("generation"),
    key("habit"),
    integer("count"),
    integer("last_at"),
)

client_refusals: Final = table(
    "client_refusals",
    key("client_id", foreign_key("clients.client_id")),
    sa.Column("claimed", sa.Boolean, primary_key=True, nullable=False),
    sa.Column("at", sa.Double, primary_key=True, nullable=False),
    key("request_id"),
    *(text(name) for name in ("method", "path", "reason", "detail")),
)

client_clocks: Final = table(
    "client_clocks",
    key("client_id", foreign_key("clients.client_id")),
    sa.Column("since", sa.Double, nullable=False),
    integer("period"),
    integer("lead"),
    integer("lead_before"),
)
"""The largest skew of each client's clock (docs/decisions/0026)."""

hourly_counts: Final = table(
    "hourly_counts",
    sa.Column("hour", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    key("client_id"),
    key("reason"),
    integer("count"),
)
"""No reference to clients: what was counted of one that is removed stays part of the totals."""

server_processes: Final = table(
    "server_processes",
    key("process_id"),
    text("host"),
    integer("number"),
    text("address"),
    text("version"),
    integer("started_at"),
    integer("seen_at"),
    text("settings"),
)


credentials: Final = table(
    "credentials",
    key("user_id", foreign_key("users.user_id")),
    text("password_hash", null=True),
    text("password_set_by"),
    text("password_source"),
    text("totp_secret", null=True),
    text("totp_set_by"),
    integer("totp_last_step"),
)


keys: Final = table(
    "keys",
    key("kid"),
    text("use"),
    text("secret"),
    integer("created_at"),
    integer("active_from"),
    integer("retired_at", null=True),
    integer("revoked_at", null=True),
    text("certificate_chain", null=True),
)

sessions: Final = table(
    "sessions",
    key("session_id"),
    text("user_id", foreign_key("users.user_id")),
    text("browser_id"),
    integer("auth_time"),
    text("amr"),
    integer("level"),
    integer("expires_at", index=True),
    text("entity_id"),
    later("purpose", "sign_in"),
    later("device", ""),
    sa.Column("seen_at", sa.BigInteger, nullable=False, server_default="0"),
    later("browser_key", ""),
    sa.Index(None, "user_id"),
)

browser_names: Final = table(
    "browser_names", key("user_id", foreign_key("users.user_id")), key("browser_key"), text("name"), integer("named_at")
)

consents: Final = table(
    "consents",
    key("user_id"),
    key("entity_id"),
    key("client_id", foreign_key("clients.client_id")),
    key("issuer_id"),
    key("scopes"),
    integer("given_at"),
    integer("expires_at", index=True),
    membership(),
    sa.Index(None, "client_id"),
)

passkeys: Final = table(
    "passkeys",
    key("credential_id"),
    text("user_id", foreign_key("users.user_id")),
    text("public_key"),
    integer("sign_count"),
    text("name"),
    text("aaguid"),
    flag("synced"),
    text("transports"),
    integer("created_at"),
    integer("used_at"),
    sa.Index(None, "user_id"),
)

recovery_codes: Final = table("recovery_codes", key("user_id", foreign_key("users.user_id")), key("code_hash"))

passkey_offers: Final = table("passkey_offers", key("user_id", foreign_key("users.user_id")), integer("declined_at"))
"""who did not want a passkey, and when they last said so"""

code_guesses: Final = table(
    "code_guesses",
    key("user_id", foreign_key("users.user_id")),
    key("browser"),
    text("factors"),
    *map(integer, ("guesses", "paused_until", "told_at")),
)

links: Final = table(
    "links",
    key("link_hash"),
    text("purpose"),
    text("user_id", foreign_key("users.user_id")),
    integer("created_at"),
    integer("expires_at"),
    text("factors"),
    sa.Index(None, "user_id"),
)

email_changes: Final = table(
    "email_changes",
    key("user_id", foreign_key("users.user_id")),
    *map(text, ("link_hash", "old_email", "new_email")),
    integer("proved_at"),
    integer("effective_at", index=True),
    sa.Index(None, "link_hash"),
)

audit: Final = sa.Table(
    "audit",
    METADATA,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    integer("at"),
    text("actor"),
    text("action"),
    text("object"),
    text("client_id"),
    text("entity_id"),
    text("outcome"),
    text("request_id"),
    text("detail"),
    later("other_entity_id", ""),
    later("members", ""),
    later("digest", ""),
    partial("ix_audit_actor_others", "actor", "number", rows=NO_COMPLETED_SIGN_IN),
    partial("ix_audit_action_others", "action", "number", rows=NO_COMPLETED_SIGN_IN),
    partial("ix_audit_entity_id", "entity_id", "number", rows="entity_id <> ''"),
    partial("ix_audit_other_entity_id", "other_entity_id", "number", rows="other_entity_id <> ''"),
    partial("ix_audit_client_id", "client_id", "number", rows="client_id <> ''"),
    partial("ix_audit_object", "object", "number", rows=OF_NO_SIGN_IN),
    partial("ix_audit_sign_ins", "actor", "number", rows=COMPLETED_SIGN_IN),
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
    text("salt"),
    text("detail"),
)
"""The erasable part of an audit entry: addresses, and personal members.

Triggers refuse UPDATE and DELETE. Without a foreign key, which would cost each sign-in several look-ups."""

audit_seals: Final = table(
    "audit_seals",
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    integer("at"),
    sa.Column("last", sa.BigInteger, nullable=False, unique=True),
    text("digest"),
    text("seal"),
)
"""Append-only, as `audit`. Of two processes that make the next seal, the number refuses one."""

audit_digests: Final = sa.Table(
    "audit_digests",
    METADATA,
    sa.Column("seal", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
    key("retention"),
    integer("latest"),
    text("digests"),
)
"""Of each entry that a seal covers its digest; `latest` is the moment of the latest of them.

Triggers refuse UPDATE and DELETE. They leave with the last of their entries that is removed by age."""

deployment: Final = table("deployment", key("name"), text("value"))

api_answers: Final = table(
    "api_answers", key("client_id"), key("key"), text("answer"), integer("expires_at", index=True)
)
"""First responses; `key` is a hash of the Idempotency-Key."""

transient: Final = sa.Table(
    "transient",
    METADATA,
    key("kind"),
    sa.Column("key", sa.LargeBinary, primary_key=True, nullable=False),
    sa.Column("value", sa.LargeBinary, nullable=False),
    integer("count"),
    integer("expires_at"),
)
"""`count` is 0 except for counters, whose value is their number.

Keys are hashes, so a tree of whole rows would touch a page for each of them: here rows are appended, and
only the small tree of keys is touched in a random place. For the same reason nothing indexes `expires_at`."""
