"""Recognition of a session."""

from __future__ import annotations

from typing import Any

import pytest

from corpid_dev.readiness.observation import RelyingPartyPage
from corpid_dev.readiness.visitor import Marker, learned, roles

HOME = "https://rp.example/home"
CLAIMS: list[dict[str, Any]] = [
    {"sub": "6b1f", "sub_attributes": {"name": "Rina Example"}},
    {"auth_info": [{"CPRole": "Approver"}]},
]


def page(text: str, *, heading: str = "Example", url: str = HOME, status: int = 200) -> RelyingPartyPage:
    return RelyingPartyPage(url=url, status=status, heading=heading, text=f"{heading} {text}")


CANCELLED = page("You cancelled. Approver wanted.", url="https://rp.example/error")


@pytest.mark.parametrize(
    ("signed_in", "expected"),
    [
        (page("Hello", heading="Your permits"), Marker(heading="Your permits", learned=True)),
        (page("Hello, Rina Example"), Marker(text="Rina Example", learned=True)),
        (page("Hello"), Marker(url="/home", learned=True)),
        (page("Hello", url=CANCELLED.url), None),
        (page("Hello, Rina Example", status=500), None),
    ],
)
def test_a_marker_is_what_only_the_ordinary_sign_in_shows(signed_in: RelyingPartyPage, expected: Marker | None) -> None:
    assert learned(signed_in, CANCELLED, CLAIMS) == expected


@pytest.mark.parametrize(
    ("marker", "found"),
    [
        (Marker(text="Rina"), True),
        (Marker(text="Nobody"), False),
        (Marker(url="https://rp.example/h"), True),
        (Marker(url="/home"), True),
        (Marker(url="/hall"), False),
        (Marker(url="/home", text="Nobody"), False),
    ],
)
def test_all_that_was_told_must_hold(marker: Marker, *, found: bool) -> None:
    assert marker.is_on(page("Hello, Rina")) is found


def test_an_error_page_is_no_session_whatever_it_shows() -> None:
    assert not Marker(text="Rina").is_on(page("Rina could not sign in", status=403))


def test_roles_are_those_that_only_the_signed_in_page_shows() -> None:
    assert roles(CLAIMS, page("may act as Approver"), page("Cancelled")) == {"Approver"}
    assert not roles(CLAIMS, page("may act as Approver"), CANCELLED)
