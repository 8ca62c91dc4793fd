"""When a signed-in browser is answered without a page, and what prompt and max_age say to that (D10, D30, D40)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.protocol.expectations import EVERY
from tests.protocol.provider import World, Worlds, query

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.generations(*EVERY)


@pytest.fixture
def signed_in(worlds: Worlds) -> World:
    """Alice, who acts for one entity, is signed in, in the world's browser."""
    made = worlds.fresh(session_seconds=3600)
    made.sign_in()
    return made


def url(world: World, **form: Any) -> str:
    """The authorization URL of a new request."""
    world.rp.restart()
    world.rp.sign_in.state, world.rp.parameters = "st4te", form
    return world.run(world.rp.begin())


def told(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 302, answer.text
    return query(answer.headers["location"])


def page(answer: httpx.Response) -> bool:
    return answer.status_code == 303 and str(answer.headers["location"]).startswith("/sign-in/")


@pytest.mark.generations(*EVERY, differ=True)
def test_with_one_entity_and_nothing_to_ask_a_get_completes(signed_in: World) -> None:
    """D30: and its code redeems."""
    before = signed_in.kinds()
    answer = signed_in.get(url(signed_in))
    found = told(answer)
    assert (found["state"], found.get("iss")) == ("st4te", ISSUER if signed_in.expected.iss else None)
    pushing = ["assertion", "pushed_request"] if signed_in.interface.pushed else []
    proving = ["proof"] if signed_in.interface.proof_at_push else []
    assert signed_in.kinds() == sorted([*before, "claim", "code", "completed", *pushing, *proving])
    assert signed_in.audited()[-1] == "sign_in.complete"
    assert signed_in.redeem(told(answer)["code"]).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_purpose": "prefetch"}, {"sec_purpose": "prefetch;prerender"}, {"sec_purpose": ""},
        {"sec_fetch_dest": "iframe"}, {"sec_fetch_dest": "image"}, {"sec_fetch_dest": "empty"},
    ],
)  # fmt: skip
def test_a_prefetch_or_embedded_fetch_never_completes(signed_in: World, headers: dict[str, str]) -> None:
    """D30: Sec-Purpose absent, Sec-Fetch-Dest absent or document."""
    where = url(signed_in)
    assert page(signed_in.get(where, **headers))
    assert signed_in.kinds().count("completed") == 1
    assert "code" not in signed_in.get(where, **headers).headers["location"].partition("?")[2]


def test_a_prefetch_without_a_page_is_told_that_one_is_needed(signed_in: World) -> None:
    """D40: prompt=none; D30: and a prefetch never completes."""
    where = url(signed_in, prompt="none")
    assert told(signed_in.get(where, sec_purpose="prefetch"))["error"] == "interaction_required"
    assert "code" in told(signed_in.get(where))


def test_head_never_completes_and_the_get_after_it_does_not_either(signed_in: World) -> None:
    """D30: HEAD opened a page, whose POST completes."""
    where = url(signed_in)
    assert signed_in.run(signed_in.browser.http.head(where)).status_code == 303
    assert signed_in.kinds().count("completed") == 1


def test_another_browser_is_not_signed_in(signed_in: World) -> None:
    """D30, D34: the session is this browser's."""
    assert page(signed_in.get(url(signed_in), signed_in.new_browser()))


def test_several_entities_are_a_page(signed_in: World) -> None:
    """D30: exactly one usable entity."""
    bob = signed_in.new_browser()
    signed_in.sign_in(user="bob", browser=bob)
    assert page(signed_in.get(url(signed_in), bob))
    assert told(signed_in.get(url(signed_in, prompt="none"), bob))["error"] == "interaction_required"


def test_of_several_entities_only_one_is_usable_at_this_client(signed_in: World) -> None:
    """D30: usable means accepted by a service of the client."""
    bob = signed_in.new_browser()
    signed_in.registers(services=("GRANTS",))
    signed_in.writes(msgspec.structs.replace(directory.GRANTS, entity_types=("UEN",)))
    signed_in.sign_in(user="bob", browser=bob)
    assert "code" in told(signed_in.get(url(signed_in), bob))


def test_the_session_ends_when_it_says(signed_in: World) -> None:
    """D30: absolute lifetime."""
    signed_in.clock.now += 3599
    assert "code" in told(signed_in.get(url(signed_in)))
    signed_in.clock.now += 1
    assert page(signed_in.get(url(signed_in)))


@pytest.mark.parametrize(
    "form",
    [
        {"prompt": "login"},
        {"prompt": "select_account"},
        {"prompt": "consent"},
        {"prompt": "login select_account consent"},
        {"max_age": "0"},
    ],
)
def test_a_prompt_or_max_age_that_wants_a_page_gets_one(signed_in: World, form: dict[str, Any]) -> None:
    """D40: sign in anew, ask consent, show the choice."""
    assert page(signed_in.get(url(signed_in, **form)))
    assert signed_in.kinds().count("completed") == 1


@pytest.mark.parametrize(("age", "enough"), [(99, True), (101, False)])
def test_max_age_is_measured_from_the_sign_in(signed_in: World, age: int, enough: bool) -> None:
    """D40; OpenID Connect Core §3.1.2.1."""
    signed_in.clock.now += age
    answer = signed_in.get(url(signed_in, max_age="100"))
    assert ("code" in told(answer)) if enough else page(answer)


def test_prompt_none_completes_where_nothing_has_to_be_asked(signed_in: World) -> None:
    """D40."""
    assert "code" in told(signed_in.get(url(signed_in, prompt="none")))


@pytest.mark.generations(*EVERY, differ=True)
@pytest.mark.parametrize(
    ("change", "form", "error"),
    [
        ({"sector": "private"}, {"scope": "openid user.name"}, "consent_required"),
        ({}, {"max_age": "0"}, "login_required"),
    ],
)
def test_prompt_none_is_told_what_page_is_missing_and_spends_nothing(
    signed_in: World, change: dict[str, Any], form: dict[str, Any], error: str
) -> None:
    """D40: login_required, interaction_required or consent_required instead of a page."""
    signed_in.writes(signed_in.client(**change))
    if not set(form.get("scope", "openid").split()) <= {"openid", *signed_in.interface.scopes}:
        return  # consent is for scopes that this generation has not
    where = url(signed_in, prompt="none", **form)
    with signed_in.nothing_spent():
        answer = told(signed_in.get(where))
    assert (answer["error"], answer["state"]) == (error, "st4te")


def test_prompt_none_in_a_browser_that_is_not_signed_in_is_login_required(signed_in: World) -> None:
    """D40: no page, no cookie."""
    where = url(signed_in, prompt="none")
    with signed_in.nothing_spent():
        answer = signed_in.get(where, signed_in.new_browser())
    assert told(answer)["error"] == "login_required"
    assert "set-cookie" not in answer.headers


def test_a_request_that_was_refused_silently_can_still_be_answered_with_a_sign_in_elsewhere(signed_in: World) -> None:
    """D15: looking spends nothing."""
    where = url(signed_in, prompt="none")
    assert told(signed_in.get(where, signed_in.new_browser()))["error"] == "login_required"
    assert "code" in told(signed_in.get(where))


def test_signing_in_anew_shows_in_auth_time(signed_in: World) -> None:
    """D40: auth_time in the ID token in every generation."""
    first = signed_in.tokens().id_token["auth_time"]
    where = url(signed_in, prompt="login")
    callback = signed_in.through_the_pages(where)
    anew = signed_in.run(signed_in.rp.redeem(callback)).id_token["auth_time"]
    assert anew > first
    assert anew == int(signed_in.clock.now)


def test_without_single_sign_on_prompt_none_is_login_required(worlds: Worlds) -> None:
    """D30: off by default."""
    world = worlds.fresh(session_seconds=0)
    world.sign_in()
    assert told(world.get(url(world, prompt="none")))["error"] == "login_required"
    assert page(world.get(url(world)))
