"""Steps of an enrolment, as data, by a link's purpose (`links.PURPOSES`)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet


class Step(Enum):
    """One page of an enrolment."""

    PROVE_SECOND_FACTOR = "prove_second_factor"
    """show the second factor that one has: an app's code, a recovery code, or a passkey"""
    PROVE_PASSWORD = "prove_password"
    FIRST = "first"
    """choose a password, or make a passkey, which counts as both factors"""
    PASSWORD = "password"
    SECOND_FACTOR = "second_factor"
    """set up an app, make a passkey, or have codes sent by e-mail"""
    MAILED_CODE = "mailed_code"
    """type a code that was sent by e-mail, for people who chose these in place of an app"""
    RECOVERY_CODES = "recovery_codes"
    """keep ten codes"""


_BESIDE_A_PASSWORD: Final = frozenset({Step.SECOND_FACTOR, Step.RECOVERY_CODES})
_BY_EMAIL: Final[Mapping[Step, Step]] = {Step.SECOND_FACTOR: Step.MAILED_CODE}
"""what takes the place of which step"""


def chosen(steps: tuple[Step, ...], *, passkey_first: bool = False, by_email: bool = False) -> tuple[Step, ...]:
    """The remaining steps of a link, with the person's choice applied.

    A passkey chosen first needs nothing else: a recovery code only goes with a password. `by_email`: codes by e-mail as
    the second factor. Source: D45, D46
    """
    if passkey_first:
        return tuple(step for step in steps if step not in _BESIDE_A_PASSWORD)
    return tuple(_BY_EMAIL.get(step, step) for step in steps) if by_email else steps


def following(steps: tuple[Step, ...], done: AbstractSet[Step]) -> Step | None:
    """The first step that is not done.

    None at the end. Source: DESIGN, Security
    """
    return next((step for step in steps if step not in done), None)
