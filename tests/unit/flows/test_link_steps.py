"""Which steps an enrolment has (D45, D46)."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest

from corpid.flows.account import links
from corpid.flows.account.links import EnrolmentStep, chosen_steps, next_step
from corpid.rules.authentication.records import LinkPurpose

PURPOSES: tuple[LinkPurpose, ...] = get_args(LinkPurpose)


def test_every_purpose_is_described() -> None:
    assert set(links.PURPOSES) == set(PURPOSES)


@pytest.mark.parametrize(
    "purpose", [purpose for purpose in PURPOSES if purpose != "email" and not links.PURPOSES[purpose].begins]
)
def test_who_has_factors_shows_the_one_that_is_not_renewed_before_anything_else(purpose: LinkPurpose) -> None:
    """A link alone renews nothing."""
    first, *others = links.PURPOSES[purpose].steps
    assert first in {EnrolmentStep.PROVE_PASSWORD, EnrolmentStep.PROVE_SECOND_FACTOR}
    renewed = EnrolmentStep.PASSWORD if first is EnrolmentStep.PROVE_SECOND_FACTOR else EnrolmentStep.SECOND_FACTOR
    assert renewed in others


def test_a_link_that_undoes_a_change_of_address_sets_no_factor() -> None:
    """D61: it works without a sign-in, so it may do nothing else."""
    assert links.PURPOSES["email"].steps == ()


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("passkey_first", [True, False])
@pytest.mark.parametrize("by_email", [True, False])
def test_steps_follow_each_other_to_the_end(purpose: LinkPurpose, *, passkey_first: bool, by_email: bool) -> None:
    steps = chosen_steps(links.PURPOSES[purpose].steps, passkey_first=passkey_first, by_email=by_email)
    done: list[EnrolmentStep] = []
    while (step := next_step(steps, set(done))) is not None:
        done.append(step)
    assert tuple(done) == steps
    assert all(one is not other for one, other in pairwise(steps))


def test_who_begins_with_a_passkey_needs_nothing_else() -> None:
    """D46"""
    assert chosen_steps(links.PURPOSES["invitation"].steps, passkey_first=True) == (EnrolmentStep.FIRST,)


def test_who_accepts_an_invitation_as_a_new_person_has_the_steps_of_one_after_a_name() -> None:
    """D60"""
    assert links.PURPOSES["membership"].steps == (EnrolmentStep.PROFILE, *links.PURPOSES["invitation"].steps)
    assert chosen_steps(links.PURPOSES["membership"].steps, passkey_first=True) == (
        EnrolmentStep.PROFILE,
        EnrolmentStep.FIRST,
    )


def test_recovery_codes_stand_beside_a_password() -> None:
    """D45"""
    assert links.PURPOSES["invitation"].steps[-1] is EnrolmentStep.RECOVERY_CODES


def test_codes_by_email_take_the_place_of_an_app_in_as_many_steps() -> None:
    """D45"""
    whole = links.PURPOSES["invitation"].steps
    assert chosen_steps(whole, by_email=True) == (
        EnrolmentStep.FIRST,
        EnrolmentStep.MAILED_CODE,
        EnrolmentStep.RECOVERY_CODES,
    )
    assert len(whole) == 3
