"""Every refusal of the protocol's endpoints: what its caller gets, outside developer mode and in it (D28, D48, D66)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from corpid.rules.oauth.refusals import Reason
from corpid_dev.web.paths import CATALOGUE_PATH
from tests.protocol.every_refusal import CASES, Case, text_of, told
from tests.protocol.expectations import EVERY
from tests.protocol.refusals import LOG
from tests.protocol.test_discovery import GOLDEN

if TYPE_CHECKING:
    import httpx

    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations(*(each for each in EVERY if each != "intermediate"))
# intermediate refuses as current does; its differences have tests of their own
DEVELOPER: Final[dict[str, Any]] = {
    "base_url": "http://localhost:8080", "developer_mode": True, "trusted_proxies": ()
}  # fmt: skip
NO_PATH: Final = ("no such path", "no such page", "guessed path")
"""their answers are those of test_discovery.py"""
WITHOUT_CLIENT: Final = frozenset(
    {
        *NO_PATH, "other method", "body in JSON", "many parameters", "not UTF-8", "bad encoding", "repeated",
        "authorize: empty", "authorize: no client_id", "no credentials", "Basic", "twice", "no token",
    }
)  # fmt: skip
"""requests that name no client"""
_DESCRIPTION: Final = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{1,300}")


class Refused(NamedTuple):
    """A case, its answer and log line, and what must be in neither."""

    name: str
    answer: httpx.Response
    line: dict[str, Any]
    issuer: str
    secrets: tuple[str, ...]


_WALKED: Final[dict[tuple[str, bool], list[Refused]]] = {}


def refusals(worlds: Worlds, generation: str, *, developer_mode: bool = False) -> list[Refused]:
    """Each case of this generation, in a world of its own; asked once."""
    key = generation, developer_mode
    if key not in _WALKED:
        options = DEVELOPER if developer_mode else {}
        cases = ((name, case) for name, case in CASES.items() if generation in case.generations)
        _WALKED[key] = [refused(worlds.fresh(**options), name, case) for name, case in cases]
    return _WALKED[key]


def refused(world: World, name: str, case: Case) -> Refused:
    start = LOG.tell()
    answer = case.provoke(world)
    lines = [json.loads(line) for line in LOG.getvalue()[start:].splitlines()]
    sent = world.rp.sign_in
    secrets = [sent.code, sent.code_verifier, sent.nonce, sent.tokens.access_token if sent.tokens else ""]
    line = [line for line in lines if "reason" in line][-1]
    return Refused(name, answer, line, world.issuer, tuple(filter(None, secrets)))


def golden(generation: str) -> dict[str, Any]:
    """The answers outside developer mode: those of `current`, with what is different in a generation.

    They were written before developer mode explained anything. The first test prints what a new case lacks here: put
    it under `current` if that generation has the case, and under another one what that answers differently.
    """
    known = json.loads((GOLDEN / "refusals.json").read_text())
    return {**known["current"], **known[generation]}


@pytest.mark.full
def test_outside_developer_mode_no_answer_says_more_than_it_did(worlds: Worlds, speaking: str) -> None:
    """D28: one sentence for several causes, and nothing else; D19."""
    found = {each.name: told(each.answer, each.issuer) for each in refusals(worlds, speaking)}
    expected = golden(speaking)
    lacking = {name: answer for name, answer in found.items() if name not in expected and name not in NO_PATH}
    assert not lacking, f"not in {GOLDEN / 'refusals.json'} yet: {json.dumps(lacking, indent=1)}"
    assert {name: answer for name, answer in found.items() if name not in NO_PATH} == {
        name: expected[name] for name in found if name not in NO_PATH
    }


def test_the_log_has_the_exact_reason_and_the_client_in_every_mode(worlds: Worlds, speaking: str) -> None:
    """docs/observability.md, "Log": `client_id` if it authenticated or pushed the request, else `claimed_client_id`."""
    reasons, strangers = {}, set()
    for each in refusals(worlds, speaking):
        reasons[each.name] = each.line["reason"]
        if each.line.keys().isdisjoint({"client_id", "claimed_client_id"}):
            strangers.add(each.name)
    assert reasons == {name: CASES[name].reason for name in reasons}
    assert strangers == WITHOUT_CLIENT & reasons.keys()


def test_in_developer_mode_every_answer_names_the_cause_and_the_catalogue(worlds: Worlds, speaking: str) -> None:
    """RFC 6749 §5.2: error_uri; RFC 6750 §3; Spec 7.4 rule 2: without credentials neither error nor body, so a Link."""
    for each in refusals(worlds, speaking, developer_mode=True):
        answer, link = each.answer, f"{each.issuer}{CATALOGUE_PATH}#{CASES[each.name].reason}"
        found = told(answer, each.issuer)
        if "page" in found:
            path = link.removeprefix(each.issuer)
            assert each.name == "no such page" or f'href="{path}"' in answer.text, each.name
        elif "callback" in found or "body" in found:
            members = found.get("callback") or answer.json()
            assert members["error_uri"].replace("ISSUER", each.issuer) == link, each.name
            assert _DESCRIPTION.fullmatch(members["error_description"]), each.name
            assert members["error_description"].endswith(")"), each.name
            for challenge in answer.headers.get_list("www-authenticate"):
                assert f'error_uri="{link}"' in challenge, each.name
        else:
            assert (answer.status_code, answer.content) == (401, b""), each.name
            assert answer.headers["link"].startswith(f'<{link}>; rel="help"; title="'), each.name
            assert "error" not in answer.headers["www-authenticate"], each.name


def test_in_developer_mode_no_two_causes_share_a_text(worlds: Worlds, speaking: str) -> None:
    """D19, D28: those whose descriptions are one and the same outside of it."""
    before = golden(speaking)
    by_text: dict[str, list[str]] = {}
    for each in refusals(worlds, speaking, developer_mode=True):
        if each.name in before and "body" in before[each.name]:
            shared = before[each.name]["body"]["error_description"]
            by_text.setdefault(shared, []).append(each.answer.json()["error_description"].partition(" (reference")[0])
    shared_by_many = [texts for texts in by_text.values() if len(texts) > 3]
    assert len(shared_by_many) >= 2
    for texts in shared_by_many:
        assert len(set(texts)) == len(texts), texts


def test_no_answer_and_no_log_line_holds_a_secret(worlds: Worlds, speaking: str) -> None:
    """D48: in developer mode, where both say most."""
    for each in refusals(worlds, speaking, developer_mode=True):
        written = json.dumps(told(each.answer, each.issuer)) + json.dumps(each.line)
        hidden = (*each.secrets, "secret=1", "kept=1", "y" * 43)
        assert not [secret for secret in hidden if secret in written], each.name


@pytest.mark.generations("current")
def test_in_developer_mode_the_page_compares_what_came_with_what_is_registered(worlds: Worlds) -> None:
    """D28: received, expected and registered values, without the query of a URL."""
    world = worlds.fresh(**DEVELOPER)
    page = text_of(CASES["authorize: not pushed"].provoke(world).text)
    assert "Cause the request was not pushed: request_uri is missing" in page
    assert "Received client_id" in page
    assert "Expected client_id, and the request_uri of POST http://localhost:8080/request" in page
    text = CASES["redirect_uri"].provoke(worlds.fresh(**DEVELOPER)).json()["error_description"]
    assert text.startswith(
        "redirect_uri is not registered; received https://rp.example/callback/, registered "
        "https://rp.example/callback https://rp.example/other"
    )
    world = worlds.fresh(**DEVELOPER)
    text = world.push(redirect_uri="https://rp.example/callback/", state="s").json()["error_description"]
    assert "it differs by a slash at the end of the path" in text


@pytest.mark.generations("current")
def test_the_catalogue_is_served_in_developer_mode_alone(worlds: Worlds) -> None:
    """D66; every reason has its anchor there."""
    page = worlds.fresh(**DEVELOPER).get(f"http://localhost:8080{CATALOGUE_PATH}", accept="text/html")
    assert page.status_code == 200
    anchors = re.findall(r'<h3 id="([a-z0-9_]+)"', page.text)
    assert sorted(anchors) == sorted(reason.code for reason in Reason)
    world = worlds.fresh()
    assert world.get(world.issuer + CATALOGUE_PATH, accept="text/html").status_code == 404
