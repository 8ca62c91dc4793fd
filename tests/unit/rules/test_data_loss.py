"""Lost short-lived data, and what may be accepted after it (D67)."""

from __future__ import annotations

import msgspec

from corpid.rules.data_loss import NO_LOSS, DataLoss
from corpid.rules.limits import CLOCK_AHEAD_SECONDS

LOST = DataLoss(name="0001700000003000-a1b2-c3d4", reject_issued_before=1_700_000_013.0, complete_from=1_700_000_003.0)


def test_where_nothing_was_lost_everything_is_accepted() -> None:
    assert not NO_LOSS.may_have_been_spent(0.0)
    assert not NO_LOSS.refuses_token(0.0, "")
    assert NO_LOSS.completion_wait(0.0) == 0
    assert (NO_LOSS.tag, NO_LOSS.token_tag(0.0), NO_LOSS.ends_at) == ("", "", 0.0)


def test_a_token_from_just_after_the_loss_is_known_by_its_mark() -> None:
    """D67: clocks of processes differ, so its iat says nothing yet; that of another loss, or none, is refused."""
    before = LOST.reject_issued_before
    mark = LOST.token_tag(before - 10)
    assert mark
    assert not LOST.refuses_token(before - 10, mark)
    other = DataLoss(name="another", reject_issued_before=before)
    for wrong in ("", mark[:-1], mark + "A", other.tag):
        assert LOST.refuses_token(before - 10, wrong)
    assert other.refuses_token(before - 10, mark), "the next loss ends it"
    assert not LOST.refuses_token(before, "")


def test_every_token_that_its_iat_does_not_admit_has_the_mark() -> None:
    """iat is in whole seconds, so it lies up to a second before the moment of issue."""
    for tenths in range(-20, 30):
        now = LOST.reject_issued_before + tenths / 10
        assert not LOST.refuses_token(int(now), LOST.token_tag(now))
    assert LOST.token_tag(LOST.reject_issued_before + 2) == ""


def test_proofs_and_assertions_may_be_dated_ahead() -> None:
    """D49: what was spent just before the loss may bear an iat of 30 s later."""
    end = LOST.reject_issued_before + CLOCK_AHEAD_SECONDS
    assert LOST.may_have_been_spent(end - 0.1)
    assert not LOST.may_have_been_spent(end)
    assert (LOST.assertion_wait(end - 43), LOST.assertion_wait(end - 0.1)) == (43, 1)


def test_until_every_process_has_noticed_it_there_is_a_wait() -> None:
    assert LOST.completion_wait(LOST.complete_from - 2.5) == 3
    assert LOST.completion_wait(LOST.complete_from) == 0


def test_the_lead_of_a_clock_decides_from_when_an_assertion_is_new() -> None:
    """D67: one second is added; nobody waits longer than for an unknown clock, and -60 s are the least that counts."""
    lost_at = LOST.complete_from
    known = msgspec.structs.replace(LOST, spent_until=lost_at)
    found = {skew: known.assertions_from(skew) - lost_at for skew in (-600, -60, -1, 0, 31, 38, 45)}
    assert found == {-600: -59, -60: -59, -1: 0, 0: 1, 31: 32, 38: 39, 45: 40}
    assert known.assertions_from(None) == LOST.assertions_from(0) == LOST.ends_at
    assert (known.assertion_wait(lost_at - 3.5, 0), known.assertion_wait(lost_at + 1, 0)) == (5, 0)
