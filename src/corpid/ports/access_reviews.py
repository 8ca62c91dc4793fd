"""Access reviews of entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.directory.access_review import AccessReview, ReviewDecision
    from corpid.rules.directory.notices import QueuedNotice
    from corpid.rules.directory.records import Membership, User


class AccessReviews(Protocol):
    """Access reviews, and decisions about people.

    What raises ChangedMeanwhile belongs into a transaction (`Directory.write`), which it undoes.
    """

    async def find(self, entity_id: str) -> AccessReview | None:
        """The reviews of an entity; None if it has none yet."""

    async def decisions(self, entity_id: str, user_ids: Sequence[str]) -> dict[str, ReviewDecision]:
        """Decisions about these people, by person."""

    async def all_decisions(self, entity_id: str) -> dict[str, ReviewDecision]:
        """Every decision, by person."""

    async def counts(self, entity_id: str) -> tuple[int, int]:
        """The number of an entity's members, and of those that were kept."""

    async def undecided(self, entity_id: str, *, after: str, limit: int) -> list[tuple[Membership, User]]:
        """Members that were not kept, by identifier of the membership."""

    async def decide(
        self, seen: AccessReview | None, review: AccessReview, decisions: Sequence[ReviewDecision]
    ) -> None:
        """Store decisions, each in place of an earlier one.

        If no review was open, `review` is one that is, and decisions of the one before go. Raises ChangedMeanwhile if
        the review is no longer the one that was seen.
        """

    async def forget(self, decisions: Sequence[ReviewDecision]) -> None:
        """Remove decisions, unless another one was made about the person since."""

    async def sign_off(self, seen: AccessReview, becomes: AccessReview, *, actions: Sequence[str], after: int) -> None:
        """Sign a review off.

        Raises ChangedMeanwhile if it is no longer as it was seen, or if the audit has an entry about the entity with
        one of these actions after a number.
        """

    async def unscheduled(self, *, after: str, limit: int) -> list[tuple[str, bool]]:
        """Entities with administrators, in order, and whether they have no reviews."""

    async def add(self, reviews: Sequence[AccessReview]) -> None:
        """Add the reviews of entities that have none."""

    async def due(self, *, now: float, limit: int) -> list[AccessReview]:
        """Reviews whose owners get a notice now."""

    async def remind(self, seen: AccessReview, becomes: AccessReview, notices: Sequence[QueuedNotice]) -> bool:
        """Queue the notices of a review, in one transaction.

        False if it is no longer as it was seen.
        """
