"""The yearly access review of an entity.

A review is open from its first decision until it is signed off. A decision to keep somebody's access is about what was
shown: if the access changes afterwards, the person has to be reviewed again. So what was not seen is not signed off.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from corpid.rules.audit import AuditAction
from corpid.rules.directory.records import Administrator, Assignment, Membership, ThirdPartyAssignment
from corpid.rules.fields import OF_ENTITY, PERSON, Field
from corpid.rules.limits import DAY

Decision: TypeAlias = Literal["keep", "end"]

YEAR_SECONDS: Final = 365 * DAY
"""from a review that was signed off to the next one"""
REMIND_SECONDS: Final = 30 * DAY
"""from the due date to the second notice"""
NO_REMINDER: Final = 2**53
"""the moment of no further notice"""


class AccessReview(msgspec.Struct, frozen=True, kw_only=True):
    """The reviews of an entity: the last one, and the next.

    Moments are epoch seconds.
    """

    entity_id: Annotated[str, OF_ENTITY]
    due_at: int
    remind_at: int
    """when the owners get the next notice"""
    began_at: int = 0
    """0: none is open"""
    began_by: str = ""
    """as the audit names the actor"""
    signed_off_at: int = 0
    """of the last one; 0: there was none"""
    signed_off_by: str = ""
    kept: int = 0
    """people whose access was kept in the last one"""
    ended: int = 0


class ReviewDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one person in a review."""

    entity_id: Annotated[str, Field(refers="access_reviews.entity_id", identifies=True)]
    user_id: Annotated[str, PERSON]
    decision: Decision
    seen: str
    """what was shown of the person (`digest`); empty if the access was ended"""
    decided_at: int
    decided_by: str


class ReviewedAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The access of one person for an entity."""

    membership: Membership
    administrator: Administrator | None
    roles: tuple[Assignment, ...]
    third_party_roles: tuple[ThirdPartyAssignment, ...]

    @property
    def is_any(self) -> bool:
        """True if there is a level or a role."""
        return bool(self.administrator or self.roles or self.third_party_roles)


def first(entity_id: str, *, now: float) -> AccessReview:
    """The reviews of an entity that has got its first administrators.

    Source: docs/decisions/0022
    """
    due_at = int(now) + YEAR_SECONDS
    return AccessReview(entity_id=entity_id, due_at=due_at, remind_at=due_at)


def begin_review(review: AccessReview, *, by: str, now: float) -> AccessReview:
    """The reviews of an entity with one that is open.

    Source: docs/decisions/0022
    """
    return msgspec.structs.replace(review, began_at=int(now), began_by=by)


def signed_off(review: AccessReview, *, by: str, kept: int, ended: int, now: float) -> AccessReview:
    """The reviews of an entity after one was signed off.

    Source: docs/decisions/0022
    """
    due_at = int(now) + YEAR_SECONDS
    return AccessReview(
        entity_id=review.entity_id,
        due_at=due_at,
        remind_at=due_at,
        signed_off_at=int(now),
        signed_off_by=by,
        kept=kept,
        ended=ended,
    )


def note_reminder(review: AccessReview, *, now: float) -> AccessReview:
    """The reviews of an entity whose owners get a notice now.

    Source: docs/decisions/0022
    """
    again = review.due_at + REMIND_SECONDS
    return msgspec.structs.replace(review, remind_at=again if now < again else NO_REMINDER)


def is_again(review: AccessReview, *, now: float) -> bool:
    """Return whether a notice about a review is the second one.

    Source: docs/decisions/0022
    """
    return now >= review.due_at + REMIND_SECONDS


def digest(access: ReviewedAccess) -> str:
    """A short name of a person's access.

    It is another one if anything changes. Dates and parameters count, and so do a suspension and the address of an
    invitation; names and other addresses do not. Source: D68, docs/decisions/0022
    """
    membership = access.membership
    held = access.administrator
    parts = (
        (
            membership.membership_id,
            membership.enabled,
            membership.invited,
            *([membership.email] if membership.invited else ()),
        ),
        (held.level, held.services) if held else (),
        sorted(map(msgspec.json.encode, access.roles)),
        sorted(map(msgspec.json.encode, access.third_party_roles)),
    )
    return sha256(msgspec.json.encode(parts)).hexdigest()[:32]


def is_reviewed(access: ReviewedAccess, decision: ReviewDecision | None) -> bool:
    """Return whether a person was kept with their present access.

    Source: docs/decisions/0022
    """
    return decision is not None and decision.decision == "keep" and decision.seen == digest(access)


ACCESS_ACTIONS: Final = tuple(
    action
    for action in AuditAction
    if action.partition(".")[0] in {"membership", "administrator", "assignment", "third_party_assignment"}
)
"""the actions of the audit that may change what people can do for an entity"""
