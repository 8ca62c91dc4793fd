"""What was taken away while a person was signing in: no code is written (D16, D50)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid_dev.relying_party import people
from corpid_dev.relying_party.people import Person
from tests.protocol import directory
from tests.protocol.expectations import ANOTHER, EVERY
from tests.protocol.provider import World, Worlds, query

if TYPE_CHECKING:
    from collections.abc import Callable

    Change = Callable[[World], Any]

pytestmark = pytest.mark.generations(*EVERY)
ALICE = Person(user_name="alice", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)


def off(record: Any) -> Any:
    return msgspec.structs.replace(record, enabled=False)


def asked_for_consent(world: World) -> None:
    """Alice has shown both factors at a private client; one click is left."""
    world.writes(world.client(sector="private"))
    scope = "openid authinfo user.name" if "user.name" in world.interface.scopes else "openid authinfo"
    world.rp.parameters, world.rp.scope = {"state": "st4te", "prompt": "consent"}, scope
    world.run(world.browser.open(world.run(world.rp.begin())))
    person = Person(user_name="alice", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
    for _ in range(2):
        world.run(people.answer_page(world.browser, person, now=world.clock))
    assert people.step_of(world.browser) == "decision"


PERSON_SIDE: dict[str, Change] = {
    "user off": lambda w: w.writes(off(directory.ALICE)),
    "entity off": lambda w: w.writes(off(directory.HARBOUR)),
    "membership off": lambda w: w.writes(off(directory.MEMBERSHIP)),
    "membership gone": lambda w: w.deletes(directory.MEMBERSHIP),
    "scope gone": lambda w: w.registers(sector="private", scopes=("openid",)),
    "generation gone": lambda w: w.registers(sector="private", generations=(ANOTHER[w.interface.name],)),
}
CLIENT_SIDE: dict[str, Change] = {
    "client off": lambda w: w.registers(enabled=False),
    "client gone": lambda w: w.deletes(w.client()),
    "redirect URI gone": lambda w: w.registers(redirect_uris=("https://rp.example/new",)),
}


@pytest.mark.parametrize("change", PERSON_SIDE.values(), ids=PERSON_SIDE)
def test_what_person_or_client_may_no_longer_do_ends_as_access_denied(world: World, change: Change) -> None:
    """D50: looked at again at completion, the callback says access_denied."""
    asked_for_consent(world)
    change(world)
    told = query(world.run(people.finish(world.browser, ALICE, now=world.clock)))
    assert (told["error"], told["state"]) == ("access_denied", "st4te")
    assert "code" not in world.kinds()
    assert "sign_in.complete" not in world.audited()


CAUSES = {
    "user off": "this person may no longer act for this entity: the person is disabled",
    "scope gone": "this client may no longer ask for these scopes; received openid authinfo user.name, registered openid",
}


@pytest.mark.generations("current")
@pytest.mark.parametrize("case", CAUSES)
def test_in_developer_mode_its_callback_says_which_link_is_missing(worlds: Worlds, case: str) -> None:
    """D28, D50; outside of it two sentences cover all of them."""
    said = []
    for options in ({"base_url": "http://localhost:8080", "developer_mode": True, "trusted_proxies": ()}, {}):
        world = worlds.fresh(**options)
        asked_for_consent(world)
        PERSON_SIDE[case](world)
        told = query(world.run(people.finish(world.browser, ALICE, now=world.clock)))
        said.append((told["error_description"].partition(" (reference")[0], "error_uri" in told))
    sentence = CAUSES[case].partition(":" if ":" in CAUSES[case] else ";")[0]
    assert said == [(CAUSES[case], True), (sentence, False)]


@pytest.mark.parametrize("change", CLIENT_SIDE.values(), ids=CLIENT_SIDE)
def test_a_client_or_redirect_uri_that_is_gone_ends_on_an_error_page(world: World, change: Change) -> None:
    """D50: client or redirect URI gone, error page."""
    asked_for_consent(world)
    change(world)
    world.run(world.browser.fill_and_submit("decision", button="agree"))
    assert world.browser.left is None
    assert world.browser.response is not None
    assert world.browser.response.status_code == 400
    assert "code" not in world.kinds()


@pytest.mark.parametrize("change", PERSON_SIDE.values(), ids=PERSON_SIDE)
def test_single_sign_on_writes_no_code_either(world: World, change: Change) -> None:
    """D30, D50: the session alone is not enough."""
    world.sign_in()
    world.rp.restart()
    world.rp.scope = "openid authinfo"
    world.run(world.rp.begin())
    codes = world.kinds().count("code")
    change(world)
    answer = world.get(world.rp.authorization_url())
    assert answer.status_code in (302, 303, 400)
    assert "code=" not in answer.headers.get("location", "")
    assert world.kinds().count("code") <= codes


@pytest.mark.parametrize("change", CLIENT_SIDE.values(), ids=CLIENT_SIDE)
def test_single_sign_on_never_redirects_to_a_client_that_is_gone(world: World, change: Change) -> None:
    """D16, D50."""
    world.sign_in()
    world.rp.restart()
    world.run(world.rp.begin())
    change(world)
    answer = world.get(world.rp.authorization_url())
    assert answer.status_code == 400
    assert "location" not in answer.headers
