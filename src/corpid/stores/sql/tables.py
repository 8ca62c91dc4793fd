"""The tables of the registry, and of the transient store.

Moments are epoch seconds (`transient.expires_at`: milliseconds), structured fields JSON text, secrets encrypted (D43).
A record's fields are columns of the same name.

A new database is made from them, and from `triggers`. A migration repeats what changes here; a test compares the two.
An index of a later migration stands last in its table.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from corpid.rules.audit import AuditAction
from corpid.rules.authentication.records import Credentials, EmailChange, FactorLink, Passkey, Session
from corpid.rules.authentication.throttling import CodeGuesses
from corpid.rules.data_loss import ClientClock
from corpid.rules.directory.access_review import AccessReview, ReviewDecision
from corpid.rules.directory.notices import HEAD_START_SECONDS, WAITED_FOR, QueuedNotice
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    ChangeRequest,
    DeletionRequest,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.values import NO_END
from corpid.rules.hourly_counts import HourlyCount
from corpid.rules.jobs import Job
from corpid.rules.oauth.consent import Consent
from corpid.rules.oauth.deprecated_usage import UseCount
from corpid.rules.oauth.records import FetchedKeySet
from corpid.rules.oauth.refusals import ClientRefusal
from corpid.rules.server_processes import ServerProcess
from corpid.rules.signing_keys import ProviderKey
from corpid.stores.sql.columns import (
    METADATA,
    TEXT,
    flag,
    foreign_key,
    integer,
    key,
    later,
    membership,
    partial,
    record_columns,
    source,
    table,
    text,
)

OF_NO_SIGN_IN: Final = "substr(action, 1, 8) <> 'sign_in.'"
"""rows of the audit whose object is worth an index: that of a sign-in is its own identifier"""

COMPLETED_SIGN_IN: Final = f"action = '{AuditAction.SIGN_IN_COMPLETE}'"
NO_COMPLETED_SIGN_IN: Final = f"action <> '{AuditAction.SIGN_IN_COMPLETE}'"
"""most rows of the audit are of completed sign-ins; each index that leaves them out makes one cheaper"""

NO_WORDS: Final = "{}"
IDENTIFIED: Final = "membership_id <> ''"
HAS_USER_NAME: Final = "user_name_key <> ''"
HAS_EXTERNAL_ID: Final = "external_id <> ''"
DUE: Final = "invited AND (invitation_sent_at = 0 OR invitation_sent_at < -2)"
"""memberships whose invitation is to be sent, or is being sent"""

HAS_END: Final = f"end_date <> '{NO_END}'"
"""rows of roles that end by themselves"""

NOTICE_ORDER: Final = f"(due_at - CASE WHEN kind IN {WAITED_FOR} THEN {HEAD_START_SECONDS} ELSE 0 END)"
"""of notices that wait: those that somebody waits for have a head start"""

BEGINNING_OF_NAME: Final = "substr(search_text, 1, 100)"
"""of an entity, folded: a name may fold to more than PostgreSQL keeps in an index"""
BEGINNING_OF_PERSONS_NAME: Final = "lower(substr(name, 1, 100))"
"""of both engines: they fold the letters of ASCII, and no others"""
BEGINNING_OF_ADDRESS: Final = "lower(substr(email, 1, 100))"

SHOWN_USER_NAME: Final = "coalesce(nullif(memberships.user_name_key, ''), memberships.person_name_key)"
SHOWN_EMAIL: Final = "lower(coalesce(nullif(memberships.email, ''), memberships.person_email))"
SHOWN_NAME: Final = (
    "lower(substr(coalesce(nullif(memberships.name, ''), nullif(memberships.person_full_name, ''), "
    "nullif(memberships.email, ''), memberships.person_name_key), 1, 100))"
)
"""of a member: what the entity wrote, else the person's; of names and addresses the letters of ASCII are folded

An invitation without a name has its address."""
_BY_END: Final = ("entity_id", "end_date", "user_id", "service_id", "role", "sub_entity", "ref")
"""the order in which an entity's roles end"""


def _of_members(expression: str) -> sa.TextClause:
    """An expression of memberships as their indexes have it."""
    return sa.text(expression.replace("memberships.", ""))


def _word_table(name: str, refers: str) -> sa.Table:
    _, _, identifier = refers.partition(".")
    return table(name, key("word"), key(identifier, foreign_key(refers)), sa.Index(None, identifier, "word"))


entities: Final = table(
    "entities",
    *record_columns(Entity),
    text("search_text"),
    later("words", NO_WORDS),
    source(),
    sa.Index("ix_entities_name", sa.text(BEGINNING_OF_NAME), "entity_id"),
    sa.Index("ix_entities_number", "registration_number", "entity_id"),
)

users: Final = table(
    "users",
    *record_columns(User),
    sa.Column("user_name_key", TEXT, nullable=False, unique=True),
    later("words", NO_WORDS),
    source(),
    later("member_sources", "{}"),
    sa.Index("ix_users_name", sa.text(BEGINNING_OF_PERSONS_NAME), "user_id"),
    sa.Index("ix_users_email", sa.text(BEGINNING_OF_ADDRESS), "user_id"),
)

memberships: Final = table(
    "memberships",
    *record_columns(Membership),
    *(later(name, "") for name in ("user_name_key", "person_name_key", "person_email", "person_full_name")),
    later("words", NO_WORDS),
    source(),
    sa.Index(None, "entity_id"),
    partial("ix_memberships_membership_id", "membership_id", rows=IDENTIFIED, unique=True),
    partial("ix_memberships_user_name", "entity_id", "user_name_key", rows=HAS_USER_NAME, unique=True),
    partial("ix_memberships_external_id", "entity_id", "external_id", rows=HAS_EXTERNAL_ID, unique=True),
    sa.Index(None, "entity_id", "membership_id"),
    partial("ix_memberships_due", "invitation_sent_at", "membership_id", rows=DUE),
    sa.Index("ix_memberships_person", "entity_id", "person_name_key"),
    sa.Index("ix_memberships_shown_name", "entity_id", _of_members(SHOWN_USER_NAME), "membership_id"),
    sa.Index("ix_memberships_shown_email", "entity_id", _of_members(SHOWN_EMAIL), "membership_id"),
    partial("ix_memberships_invited", "entity_id", "membership_id", rows="invited"),
    sa.Index("ix_memberships_shown_full_name", "entity_id", _of_members(SHOWN_NAME), "membership_id"),
)
"""Triggers give every row its `membership_id`, and end a placeholder with its invitation. Others copy the person's names
and address, so that an entity's members are found and ordered by an index of the entity."""

user_words: Final = _word_table("user_words", "users.user_id")
entity_words: Final = _word_table("entity_words", "entities.entity_id")
service_words: Final = _word_table("service_words", "services.service_id")
client_words: Final = _word_table("client_words", "clients.client_id")
member_words: Final = table(
    "member_words",
    key("entity_id"),
    key("word"),
    key("user_id"),
    membership(),
    sa.Index(None, "user_id", "entity_id", "word"),
)
"""Words of records, each of which has them by field, in JSON, in its column `words` (D83).

Triggers write them with the record. A member's are those that the entity wrote, the person's where it wrote none, and
one of their state, such as ` active`.
"""
outdated_words: Final = table("outdated_words", *map(key, ("record", "user_id", "entity_id")))
"""Records that servers of the previous version wrote, whose words are to be found again; triggers note them."""

provisioning_tokens: Final = table(
    "provisioning_tokens",
    *record_columns(RegisteredProvisioningToken),
    sa.UniqueConstraint("token_hash"),
    sa.Index(None, "entity_id"),
    sa.Index(None, "expires_at"),
)

administrators: Final = table(
    "administrators", *record_columns(Administrator), source(), membership(), sa.Index(None, "entity_id")
)

operators: Final = table("operators", *record_columns(Operator), source(), sa.Index(None, "level"))

services: Final = table("services", *record_columns(Service), later("words", NO_WORDS), source())

assignments: Final = table(
    "assignments",
    *record_columns(Assignment),
    source(),
    membership(),
    sa.Index(None, "entity_id", "user_id"),
    sa.Index(None, "service_id", "user_id"),
    partial("ix_assignments_end_date", "end_date", "entity_id", rows=HAS_END),
    partial("ix_assignments_entity_id_end_date", *_BY_END, rows=HAS_END),
    sa.Index("ix_assignments_holders", "entity_id", "service_id", "user_id"),
    sa.Index("ix_assignments_roles", "entity_id", "role", "service_id", "user_id", "sub_entity", "ref"),
)

third_party_grants: Final = table(
    "third_party_grants",
    *record_columns(ThirdPartyGrant),
    source(),
    sa.Index(None, "entity_id"),
    sa.Index(None, "service_id"),
)

third_party_assignments: Final = table(
    "third_party_assignments",
    *record_columns(ThirdPartyAssignment),
    source(),
    membership(),
    sa.Index(None, "entity_id", "user_id"),
    sa.Index(None, "client_entity_id", "user_id"),
    sa.Index(None, "service_id", "user_id"),
    partial("ix_third_party_assignments_end_date", "end_date", "entity_id", rows=HAS_END),
)

change_requests: Final = table(
    "change_requests",
    *record_columns(ChangeRequest),
    sa.Index(None, "entity_id", "state", "request_id"),
    sa.Index(None, "state", "request_id"),
)

deletion_requests: Final = table("deletion_requests", *record_columns(DeletionRequest))


notices: Final = table(
    "notices",
    *record_columns(QueuedNotice),
    text("taken_by"),
    *map(integer, ("taken_until", "sent_at")),
    sa.Index(None, "entity_id"),
    sa.Index("ix_notices_order", "sent_at", sa.text(NOTICE_ORDER)),
)
"""E-mails about the administration of entities. Those of one person, kind and entity are sent together."""

access_reviews: Final = table("access_reviews", *record_columns(AccessReview), sa.Index(None, "remind_at"))
"""The last access review of an entity, and the next one; `began_at` is 0 if none is open."""

access_review_decisions: Final = table(
    "access_review_decisions", *record_columns(ReviewDecision), sa.Index(None, "user_id")
)
"""Decisions of the review that is open, else of the last one."""

clients: Final = table(
    "clients", key("client_id"), text("name"), flag("enabled"), text("record"), later("words", NO_WORDS), source()
)

fetched_key_sets: Final = table(
    "fetched_key_sets", key("client_id", foreign_key("clients.client_id")), *record_columns(FetchedKeySet)
)

api_clients: Final = table("api_clients", key("client_id"), text("name"), flag("enabled"), text("record"))
"""Clients of the admin API. Triggers refuse an identifier that a row of `clients` has, and the reverse."""

api_client_key_sets: Final = table(
    "api_client_key_sets", key("client_id", foreign_key("api_clients.client_id")), *record_columns(FetchedKeySet)
)

generation_use: Final = table("generation_use", *record_columns(UseCount))

client_refusals: Final = table("client_refusals", *record_columns(ClientRefusal))

client_clocks: Final = table(
    "client_clocks", key("client_id", foreign_key("clients.client_id")), *record_columns(ClientClock)
)
"""The largest skew of each client's clock (docs/decisions/0026)."""

hourly_counts: Final = table("hourly_counts", *record_columns(HourlyCount))
"""No reference to clients: what was counted of one that is removed stays part of the totals."""

server_processes: Final = table("server_processes", *record_columns(ServerProcess))

jobs: Final = table(
    "jobs", *record_columns(Job), partial("ix_jobs_running", "kind", rows="event = 'start'", unique=True)
)
"""The index lets one of a kind run."""

credentials: Final = table("credentials", *record_columns(Credentials))


keys: Final = table("keys", *record_columns(ProviderKey))

sessions: Final = table("sessions", *record_columns(Session), sa.Index(None, "expires_at"), sa.Index(None, "user_id"))

browser_names: Final = table(
    "browser_names", key("user_id", foreign_key("users.user_id")), key("browser_key"), text("name"), integer("named_at")
)

consents: Final = table(
    "consents", *record_columns(Consent), membership(), sa.Index(None, "expires_at"), sa.Index(None, "client_id")
)

passkeys: Final = table("passkeys", *record_columns(Passkey), sa.Index(None, "user_id"))

recovery_codes: Final = table("recovery_codes", key("user_id", foreign_key("users.user_id")), key("code_hash"))

passkey_offers: Final = table("passkey_offers", key("user_id", foreign_key("users.user_id")), integer("declined_at"))
"""who did not want a passkey, and when they last said so"""

code_guesses: Final = table("code_guesses", *record_columns(CodeGuesses))

links: Final = table("links", *record_columns(FactorLink), sa.Index(None, "user_id"))

email_changes: Final = table(
    "email_changes", *record_columns(EmailChange), sa.Index(None, "link_hash"), sa.Index(None, "effective_at")
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
    partial("ix_audit_sign_ins", "actor", "number", rows=COMPLETED_SIGN_IN),
    partial("ix_audit_entity_id", "entity_id", "number", rows="entity_id <> ''"),
    partial("ix_audit_other_entity_id", "other_entity_id", "number", rows="other_entity_id <> ''"),
    partial("ix_audit_client_id", "client_id", "number", rows="client_id <> ''"),
    partial("ix_audit_object", "object", "number", rows=OF_NO_SIGN_IN),
    partial("ix_audit_actor_others", "actor", "number", rows=NO_COMPLETED_SIGN_IN),
    partial("ix_audit_action_others", "action", "number", rows=NO_COMPLETED_SIGN_IN),
    partial("ix_audit_sign_ins_for", "actor", "entity_id", "number", rows=COMPLETED_SIGN_IN),
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
