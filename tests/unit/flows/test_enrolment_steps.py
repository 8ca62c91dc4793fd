"""Which steps an enrolment has (D45, D46, DESIGN, Security)."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest

from corpid.flows.enrolment.steps import PATHS, Step, following, path
from corpid.ports import LinkPurpose

PURPOSES: tuple[LinkPurpose, ...] = get_args(LinkPurpose)


def test_every_purpose_has_a_path() -> None:
    assert set(PATHS) == set(PURPOSES)


@pytest.mark.parametrize("purpose", [purpose for purpose in PURPOSES if purpose != "invitation"])
def test_who_has_factors_shows_the_one_that_is_not_renewed_before_anything_else(purpose: LinkPurpose) -> None:
    """DESIGN, Security: a link alone renews nothing."""
    first, *others = PATHS[purpose]
    assert first in {Step.PROVE_PASSWORD, Step.PROVE_SECOND_FACTOR}
    renewed = Step.PASSWORD if first is Step.PROVE_SECOND_FACTOR else Step.SECOND_FACTOR
    assert renewed in others


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("passkey_first", [True, False])
def test_steps_follow_each_other_to_the_end(purpose: LinkPurpose, *, passkey_first: bool) -> None:
    steps = path(purpose, passkey_first=passkey_first)
    done: list[Step] = []
    while (step := following(steps, set(done))) is not None:
        done.append(step)
    assert tuple(done) == steps
    assert all(one is not other for one, other in pairwise(steps))


def test_who_begins_with_a_passkey_needs_nothing_else() -> None:
    """D46"""
    assert path("invitation", passkey_first=True) == (Step.FIRST,)


def test_recovery_codes_stand_beside_a_password() -> None:
    """D45"""
    assert path("invitation", passkey_first=False)[-1] is Step.RECOVERY_CODES
