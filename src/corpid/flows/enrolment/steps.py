"""Which steps an enrolment has, as data: what a link is for leads to a path, and what is done to its next step."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from corpid.ports import LinkPurpose


class Step(Enum):
    """One page of an enrolment."""

    PROVE_SECOND_FACTOR = "prove_second_factor"
    """show the second factor that one has: an app's code, a recovery code, or a passkey"""
    PROVE_PASSWORD = "prove_password"
    FIRST = "first"
    """choose a password, or make a passkey, which counts as both factors"""
    PASSWORD = "password"
    SECOND_FACTOR = "second_factor"
    """set up an app, or make a passkey"""
    RECOVERY_CODES = "recovery_codes"
    """keep ten codes"""


PATHS: Final[Mapping[LinkPurpose, tuple[Step, ...]]] = {
    "invitation": (Step.FIRST, Step.SECOND_FACTOR, Step.RECOVERY_CODES),
    "password": (Step.PROVE_SECOND_FACTOR, Step.PASSWORD),
    "second_factor": (Step.PROVE_PASSWORD, Step.SECOND_FACTOR, Step.RECOVERY_CODES),
}
_BESIDE_A_PASSWORD: Final = frozenset({Step.SECOND_FACTOR, Step.RECOVERY_CODES})


def path(purpose: LinkPurpose, *, passkey_first: bool) -> tuple[Step, ...]:
    """The steps of an enrolment. Who begins with a passkey needs nothing else: a recovery code stands beside a
    password only. Source: D45, D46
    """
    steps = PATHS[purpose]
    return tuple(step for step in steps if step not in _BESIDE_A_PASSWORD) if passkey_first else steps


def following(steps: tuple[Step, ...], done: AbstractSet[Step]) -> Step | None:
    """The first step that is not done; None at the end. Source: DESIGN, Security"""
    return next((step for step in steps if step not in done), None)
