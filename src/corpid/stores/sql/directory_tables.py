"""The tables of people, entities and their roles, as `tables`."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from corpid.rules.directory.records import NO_END
from corpid.stores.sql.columns import (
    TEXT,
    dated,
    flag,
    foreign_key,
    integer,
    key,
    later,
    later_flag,
    later_moment,
    membership,
    partial,
    source,
    table,
    text,
)

IDENTIFIED: Final = "membership_id <> ''"
HAS_USER_NAME: Final = "user_name_key <> ''"
HAS_EXTERNAL_ID: Final = "external_id <> ''"
DUE: Final = "invited AND (invitation_sent_at = 0 OR invitation_sent_at < -2)"
"""memberships whose invitation is to be sent, or is being sent"""

HAS_END: Final = f"end_date <> '{NO_END}'"
"""rows of roles that end by themselves"""

BEGINNING_OF_NAME: Final = "substr(search_text, 1, 100)"
"""of an entity, folded: a name may fold to more than PostgreSQL keeps in an index"""
NAME_CHARACTERS: Final = 100
BEGINNING_OF_PERSONS_NAME: Final = "lower(substr(name, 1, 100))"
"""of both engines: they fold the letters of ASCII, and no others"""
BEGINNING_OF_ADDRESS: Final = "lower(substr(email, 1, 100))"

SHOWN_USER_NAME: Final = "coalesce(nullif(memberships.user_name_key, ''), memberships.person_name_key)"
SHOWN_EMAIL: Final = "lower(coalesce(nullif(memberships.email, ''), memberships.person_email))"
"""of a member: what the entity wrote, else the person's; of addresses the letters of ASCII are folded"""


def _of_members(expression: str) -> sa.TextClause:
    """An expression of memberships as their indexes have it."""
    return sa.text(expression.replace("memberships.", ""))


_BY_END: Final = ("entity_id", "end_date", "user_id", "service_id", "role", "sub_entity", "ref")
"""the order in which an entity's roles end"""

entities: Final = table(
    "entities",
    key("entity_id"),
    text("type"),
    text("registration_number"),
    text("country"),
    text("name"),
    text("status"),
    flag("enabled"),
    text("search_text"),
    later("approvals", "none"),
    source(),
    sa.Index("ix_entities_name", sa.text(BEGINNING_OF_NAME), "entity_id"),
    sa.Index("ix_entities_number", "registration_number", "entity_id"),
)

users: Final = table(
    "users",
    key("user_id"),
    text("user_name"),
    sa.Column("user_name_key", TEXT, nullable=False, unique=True),
    text("name"),
    text("email"),
    text("language"),
    text("identity_number"),
    text("identity_country"),
    text("account_type"),
    flag("enabled"),
    source(),
    later("member_sources", "{}"),
    later_flag("placeholder"),
    sa.Index("ix_users_name", sa.text(BEGINNING_OF_PERSONS_NAME), "user_id"),
    sa.Index("ix_users_email", sa.text(BEGINNING_OF_ADDRESS), "user_id"),
)

memberships: Final = table(
    "memberships",
    key("user_id", foreign_key("users.user_id")),
    key("entity_id", foreign_key("entities.entity_id")),
    flag("enabled"),
    source(),
    *(later(name, "") for name in ("membership_id", "user_name", "user_name_key", "external_id", "name")),
    *(later(name, "") for name in ("given_name", "family_name", "email")),
    *(later_moment(name) for name in ("created_at", "changed_at", "invitation_sent_at")),
    later_flag("invited"),
    *(later(name, "") for name in ("person_name_key", "person_email")),
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
)
"""Triggers give every row its `membership_id`, and end a placeholder with its invitation. Others copy the person's user
name and address, so that an entity's members are found and ordered by an index of the entity."""

provisioning_tokens: Final = table(
    "provisioning_tokens",
    key("token_id"),
    text("entity_id", foreign_key("entities.entity_id")),
    text("name"),
    sa.Column("token_hash", TEXT, nullable=False, unique=True),
    integer("created_at"),
    integer("expires_at"),
    text("created_by"),
    integer("last_used_at"),
    sa.Index(None, "entity_id"),
    sa.Index(None, "expires_at"),
)

administrators: Final = table(
    "administrators",
    key("user_id"),
    key("entity_id"),
    text("level"),
    text("services"),
    source(),
    membership(),
    sa.Index(None, "entity_id"),
)

operators: Final = table(
    "operators", key("user_id", foreign_key("users.user_id")), text("level"), source(), sa.Index(None, "level")
)

services: Final = table(
    "services",
    key("service_id"),
    text("name"),
    text("roles"),
    text("parameters"),
    flag("third_parties"),
    text("sub_entity"),
    text("entity_types"),
    text("entity_statuses"),
    flag("enabled"),
    later_flag("approval_required"),
    later("description", ""),
    later("role_descriptions", "[]"),
    source(),
)

assignments: Final = table(
    "assignments",
    key("user_id"),
    key("entity_id"),
    key("service_id", foreign_key("services.service_id")),
    *dated(),
    source(),
    membership(),
    sa.Index(None, "entity_id", "user_id"),
    sa.Index(None, "service_id", "user_id"),
    partial("ix_assignments_end_date", "end_date", "entity_id", rows=HAS_END),
    partial("ix_assignments_entity_id_end_date", *_BY_END, rows=HAS_END),
)

third_party_grants: Final = table(
    "third_party_grants",
    key("client_entity_id", foreign_key("entities.entity_id")),
    key("entity_id", foreign_key("entities.entity_id")),
    key("service_id", foreign_key("services.service_id")),
    *dated(),
    later("state", "accepted"),
    source(),
    sa.Index(None, "entity_id"),
    sa.Index(None, "service_id"),
)

third_party_assignments: Final = table(
    "third_party_assignments",
    key("user_id"),
    key("entity_id"),
    key("client_entity_id", foreign_key("entities.entity_id")),
    key("service_id", foreign_key("services.service_id")),
    *dated(),
    source(),
    membership(),
    sa.Index(None, "entity_id", "user_id"),
    sa.Index(None, "client_entity_id", "user_id"),
    sa.Index(None, "service_id", "user_id"),
    partial("ix_third_party_assignments_end_date", "end_date", "entity_id", rows=HAS_END),
)

change_requests: Final = table(
    "change_requests",
    key("request_id"),
    text("entity_id", foreign_key("entities.entity_id")),
    text("requester"),
    text("bound_to"),
    text("changes"),
    text("reason"),
    integer("created_at"),
    text("state"),
    text("decided_by"),
    text("decided_reason"),
    integer("decided_at"),
    later("people", "[]"),
    sa.Index(None, "entity_id", "state", "request_id"),
    sa.Index(None, "state", "request_id"),
)

deletion_requests: Final = table(
    "deletion_requests", key("user_id", foreign_key("users.user_id")), integer("requested_at")
)
