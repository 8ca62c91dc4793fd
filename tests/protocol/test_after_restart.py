"""The same database under other generations: what one of them began, none of the others ends (Spec "No downgrade")."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party import people
from corpid_dev.relying_party.interfaces import INTERFACES
from corpid_dev.relying_party.people import Person
from tests.protocol import directory
from tests.protocol.deployment import ISSUER, PAR, TOKEN, USERINFO
from tests.protocol.provider import World, Worlds, query
from tests.protocol.refusals import error_page, json_refusal, told_error
from tests.world.clients import FAR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid_dev.relying_party.relying_party import RelyingParty

LEGACY = INTERFACES["legacy"]


@pytest.fixture
def world(worlds: Worlds) -> World:
    """Both are served, and rp-1 may use either; Alice is signed in."""
    made = worlds.fresh(generations=("current", "legacy"))
    made.registers(generations=("current", "legacy"), legacy_until=FAR)
    made.sign_in()
    return made


@contextmanager
def restarted(world: World, *generations: str) -> Iterator[World]:
    """Another process on the same database, at the same time, with other generations; browsers keep their cookies."""
    with World(at=world.directory, clock=world.clock, generations=generations) as other:
        other.browser.http.cookies = world.browser.http.cookies
        yield other


def there(other: World, rp: RelyingParty) -> RelyingParty:
    """The relying party, with all that it keeps, asking the other process."""
    rp.http = other.http
    return rp


@pytest.mark.full
@pytest.mark.parametrize(
    ("spoken", "served"),
    [
        ("legacy", ("current",)),
        ("legacy", ("intermediate",)),
        ("legacy", ("fapi2",)),
        ("current", ("legacy",)),
        ("current", ("intermediate",)),
        ("current", ("intermediate", "legacy")),
        ("current", ("fapi2",)),
    ],
)
@pytest.mark.parametrize("proven", [True, False])
def test_a_code_of_a_generation_that_is_gone_yields_nothing(
    world: World, spoken: str, served: tuple[str, ...], proven: bool
) -> None:
    """Spec "Generations": the generation is part of the code's key; nothing but its own redeems it."""
    rp = world.party(interface=INTERFACES[spoken])
    code = world.code(rp)
    headers = {"DPoP": rp.proof("POST", TOKEN) if proven else None}
    with restarted(world, *served) as other:
        answer = other.redeem(code, there(other, rp), headers=headers)
        needs_proof = any(name != "legacy" for name in served) and not proven
        json_refusal(answer, 400, "invalid_request" if needs_proof else "invalid_grant")
    found = world.run(there(world, rp).believe(world.redeem(code, rp)))
    assert found.raw["token_type"] == rp.interface.scheme


def test_both_codes_are_good_after_a_restart_that_changes_nothing(world: World) -> None:
    """Without this the test above could not fail."""
    parties = [world.party(interface=INTERFACES[name]) for name in ("current", "legacy")]
    codes = [world.code(rp) for rp in parties]
    with restarted(world, "current", "legacy") as other:
        assert [other.redeem(code, there(other, rp)).status_code for code, rp in zip(codes, parties, strict=True)] == [
            200
        ] * 2


def test_a_replay_kills_the_token_also_where_its_generation_is_gone(world: World) -> None:
    """D18: the jti follows from client, code and verifier, whatever is served now."""
    rp = world.party(interface=LEGACY)
    code = world.code(rp)
    token = world.redeem(code, rp).json()["access_token"]
    assert world.userinfo(rp, token=token).status_code == 200
    with restarted(world, "current") as other:
        json_refusal(
            other.redeem(code, there(other, rp), headers={"DPoP": rp.proof("POST", TOKEN)}), 400, "invalid_grant"
        )
    assert world.userinfo(there(world, rp), token=token).status_code == 401


@pytest.mark.parametrize("served", ["current", "intermediate"])
def test_a_sign_in_that_legacy_began_ends_without_a_code(world: World, served: str) -> None:
    """D50: what is not served any more is access_denied at completion."""
    rp = world.party(interface=LEGACY)
    url = world.asked(rp, prompt="login", state="st4te")
    world.run(world.browser.open(url))
    page = world.browser.url
    with restarted(world, served) as other:
        other.clock.now += 30
        person = Person(user_name="alice", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
        other.run(other.browser.open(page))
        callback = other.run(people.finish(other.browser, person, now=other.clock))
        found = query(callback)
        assert (found["error"], found["state"]) == ("access_denied", "st4te")
        error_page(other.get(url, other.new_browser()))


@pytest.mark.parametrize("served", ["intermediate", "fapi2"])
def test_what_was_pushed_to_another_generation_ends_without_a_code(world: World, served: str) -> None:
    """D50; by single sign-on as well."""
    url = world.asked(state="st4te")
    with restarted(world, served) as other:
        iss = ISSUER if served == "fapi2" else None
        told_error(other.get(url), "access_denied", state="st4te", iss=iss)


def test_where_legacy_is_alone_nothing_is_pushed(world: World) -> None:
    """Spec "Generations": PAR is 404, and so are the resources of the others; a request_uri stands for nothing."""
    url = world.asked()
    with restarted(world, "legacy") as other:
        for method, path in (("POST", PAR), ("GET", USERINFO), ("POST", USERINFO), ("GET", f"{ISSUER}/entity-info")):
            answer = other.run(other.http.request(method, path))
            assert (answer.status_code, answer.json()["error"]) == (404, "invalid_request")
        error_page(other.get(url, other.new_browser()))


@pytest.mark.parametrize("served", ["current", "intermediate", "fapi2"])
def test_where_legacy_is_not_served_its_addresses_are_nothing(world: World, served: str) -> None:
    """Issue "Bad input": a front-channel request where LEGACY is not served, from a client that is still marked."""
    rp = world.party(interface=LEGACY)
    url = world.asked(rp, state="st4te")
    token: Any = world.redeem(world.code(rp), rp).json()["access_token"]
    with restarted(world, served) as other:
        for browser in (other.browser, other.new_browser()):
            error_page(other.get(url, browser), hides=("st4te",))
        assert other.userinfo(there(other, rp), token=token).status_code == 404
