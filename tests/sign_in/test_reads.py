"""How often a sign-in asks the registry for the same: what one request has read goes with it (docs/costs.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.sign_in.world import new_world, walk_to

if TYPE_CHECKING:
    import httpx


HOUR = 3600
_ACCOUNT = re.compile(r"\bFROM (?:users|sessions JOIN users ON \S+ = \S+) (?:LEFT OUTER )?JOIN credentials")
_APART = re.compile(
    r"\bFROM (?:users|credentials|passkeys)\s+WHERE (?!passkeys.credential_id = \S+ AND passkeys.user_id = users)"
)


def _reads(asked: list[str]) -> list[tuple[str, int, int]]:
    """Of each request its method and step, how often it read a person with their factors, and any part of that by itself."""
    found: list[tuple[str, int, int]] = []
    for line in asked:
        if line.startswith("#"):
            found.append((line.removeprefix("#"), 0, 0))
        elif found:
            request, accounts, apart = found[-1]
            found[-1] = (request, accounts + bool(_ACCOUNT.search(line)), apart + bool(_APART.search(line)))
    return found


@pytest.mark.parametrize("session_seconds", [0, HOUR], ids=["every sign-in anew", "single sign-on"])
async def test_a_request_reads_a_person_with_their_factors_once_and_the_last_factor_looks_again_where_it_writes(
    session_seconds: int,
) -> None:
    """D50: that second look holds off whoever changes them, and a change that saw no session yet ends the sign-in."""
    asked: list[str] = []

    async def note(request: httpx.Request) -> None:
        step = request.url.path.rsplit("/", 1)[1]
        asked.append(f"#{request.method} {step if request.method == 'POST' else 'page'}")

    async with new_world(session_seconds=session_seconds) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(prompt="consent")
        browser.http.event_hooks["request"].append(note)
        connection = made.provider.registry.directory._database._connection
        connection.set_trace_callback(asked.append)
        await walk_to(made, browser, rp, ("password", "code", "entity"))
        await browser.fill_and_submit("decision", button="agree")
        connection.set_trace_callback(None)
        assert browser.left is not None
    assert [each for each in _reads(asked) if each[1] or each[2]] == [
        ("POST password", 1, 0),
        ("GET page", 1, 0),
        ("POST code", 2, 0),
        ("GET page", 1, 0),
        ("POST entity", 1, 0),
        ("GET page", 1, 0),
        ("POST consent", 1, 0),
    ]
