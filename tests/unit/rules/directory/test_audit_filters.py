"""Actions and moments as people write them (D57)."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from corpid.rules.audit import AuditAction
from corpid.rules.directory.audit_reading import InvalidFilter, find_actions, parse_moment

NOW = 1_800_000_000.0
"""2027-01-15T08:00:00Z, a Friday"""
SINGAPORE = ZoneInfo("Asia/Singapore")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("30m", NOW - 1800),
        ("2h", NOW - 7200),
        ("3d", NOW - 3 * 86_400),
        ("1w", NOW - 7 * 86_400),
        ("0m", NOW),
        ("2027-01-15", NOW - 16 * 3600),
        ("2027-01-15T16:00", NOW),
        ("2027-01-15 16:00:00", NOW),
        ("2027-01-15T08:00:00Z", NOW),
        ("2027-01-15T03:00:00-05:00", NOW),
    ],
)
def test_a_moment_without_an_offset_is_one_of_the_deployment(text: str, at: float) -> None:
    """RFC 3339 §5.6; a day begins at midnight there."""
    assert parse_moment(text, now=NOW, zone=SINGAPORE) == at


@pytest.mark.parametrize("text", ["", "h", "2", "2 h", "-2h", "2H", "2y", "yesterday", "2027-13-01", "99999999d", "٣d"])
def test_what_is_no_moment_is_told_what_would_be_one(text: str) -> None:
    with pytest.raises(InvalidFilter, match=r"how long ago \(30m, 2h, 3d, 1w\), a day \(2027-01-14\)"):
        parse_moment(text, now=NOW, zone=SINGAPORE)


def test_an_action_is_itself_and_a_noun_every_one_of_it() -> None:
    assert find_actions("user.add") == ("user.add",)
    assert find_actions("membership.") == (
        "membership.add",
        "membership.invite",
        "membership.update",
        "membership.remove",
        "membership.accept",
        "membership.resend",
        "membership.decline",
        "membership.send_password_link",
        "membership.send_second_factor_link",
        "membership.unlock",
    )
    assert {word for action in AuditAction for word in find_actions(action.value)} == {
        each.value for each in AuditAction
    }


@pytest.mark.parametrize(
    ("text", "close"),
    [("user.ad", "user.add"), ("user", "user."), ("usr.", "user."), ("clients.add", "client.add")],
)
def test_what_is_no_action_is_told_a_close_one(text: str, close: str) -> None:
    with pytest.raises(InvalidFilter, match=f"did you mean '{close}'"):
        find_actions(text)


@pytest.mark.parametrize("text", ["", ".", "%", "x" * 5000])
def test_nothing_in_particular_is_no_action(text: str) -> None:
    with pytest.raises(InvalidFilter, match=r"docs/audit\.md lists them"):
        find_actions(text)
