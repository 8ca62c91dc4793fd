"""Limits that a standard sets, which no change may pass."""

from __future__ import annotations

from corpid.rules import limits


def test_a_person_may_ask_for_more_time_at_least_ten_times() -> None:
    """WCAG 2.2.1, Timing Adjustable: extend the limit at least ten times."""
    extensions = {name: value for name, value in vars(limits).items() if name.endswith("_EXTENSIONS")}
    assert len(extensions) == 3
    assert min(extensions.values()) >= 10
