"""Tables of notices and access reviews, as `tables`."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from corpid.stores.sql.columns import foreign_key, integer, key, table, text

notices: Final = table(
    "notices",
    key("user_id", foreign_key("users.user_id")),
    key("kind"),
    key("entity_id", foreign_key("entities.entity_id")),
    key("subject"),
    text("facts"),
    integer("created_at"),
    integer("due_at"),
    text("taken_by"),
    integer("taken_until"),
    integer("sent_at"),
    sa.Index(None, "sent_at", "due_at"),
    sa.Index(None, "entity_id"),
)
"""E-mails about the administration of entities. Those of one person, kind and entity are sent together."""

access_reviews: Final = table(
    "access_reviews",
    key("entity_id", foreign_key("entities.entity_id")),
    *map(integer, ("due_at", "remind_at", "began_at")),
    text("began_by"),
    integer("signed_off_at"),
    text("signed_off_by"),
    *map(integer, ("kept", "ended")),
    sa.Index(None, "remind_at"),
)
"""The last access review of an entity, and the next one; `began_at` is 0 if none is open."""

access_review_decisions: Final = table(
    "access_review_decisions",
    key("entity_id", foreign_key("access_reviews.entity_id")),
    key("user_id", foreign_key("users.user_id")),
    text("decision"),
    text("seen"),
    integer("decided_at"),
    text("decided_by"),
    sa.Index(None, "user_id"),
)
"""Decisions of the review that is open, else of the last one."""
