"""What was refused lately to a relying party, for those who run the deployment (D28)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from corpid.flows.operations.buffers import list_refusals
from corpid.rules.directory.access import CommandLine
from tests.api.calling import calling
from tests.protocol.deployment import AUTHORIZE
from tests.protocol.test_refusal_reasons import line_of

if TYPE_CHECKING:
    from corpid.rules.oauth.refusals import ClientRefusal
    from tests.protocol.provider import World, Worlds


@pytest.fixture
def world(worlds: Worlds) -> World:
    """One of its own: what earlier tests were refused waits in the memory of a shared one."""
    return worlds.fresh(name="Refusals")


def refusals(world: World, client_id: str) -> list[ClientRefusal]:
    world.run(world.provider.refusals.flush(world.provider.registry))
    return world.run(list_refusals(world.provider.registry, client_id, actor=CommandLine(by="tests@here")))


def test_a_refused_request_of_an_authenticated_client_is_kept_with_its_exact_reason(world: World) -> None:
    answer = world.push(response_mode="fragment")
    assert answer.status_code == 400
    [found] = refusals(world, "rp-1")
    assert (found.claimed, found.method, found.path) == (False, "POST", "/request")
    assert found.reason == line_of(answer)["reason"]
    assert found.request_id in answer.json()["error_description"]


def test_a_request_that_only_claims_to_be_a_clients_is_told_apart(world: World) -> None:
    """Anybody can name a client; nothing is kept of one that does not exist."""
    answer = world.push(client_assertion="e30.e30.e30")
    assert answer.json()["error"] == "invalid_client"
    assert [each.claimed for each in refusals(world, "rp-1")] == [True]
    world.push(client_assertion="e30.e30.e30", client_id="nobody")
    assert refusals(world, "nobody") == []


def test_what_a_browser_repeats_pushes_no_refusal_of_the_client_itself_out(world: World) -> None:
    """Whoever starts a sign-in at the client has a request that the client has pushed."""
    pushed = world.push(prompt="none")
    url = f"{AUTHORIZE}?{urlencode({'client_id': 'rp-1', 'request_uri': pushed.json()['request_uri']})}"
    for _ in range(3):
        assert "error=" in world.get(url).headers["location"]
    found = refusals(world, "rp-1")
    assert found
    assert {each.claimed for each in found} == {True}


def test_what_is_answered_without_a_refusal_leaves_no_trace(world: World) -> None:
    world.push()
    assert refusals(world, "rp-1") == []


def test_the_api_lists_the_refusals_of_a_client_with_what_to_do(world: World) -> None:
    """D59."""
    world.push(response_mode="fragment")
    refusals(world, "rp-1")
    api = calling(world)
    [found] = api.get("/clients/rp-1/refusals").json()["items"]
    assert (found["client"], found["claimed"], found["path"]) == ("rp-1", False, "/request")
    assert found["remedy"]
    assert api.get("/clients/nobody/refusals").status_code == 404
    assert calling(world, "api-2", scopes=("directory.read",)).get("/clients/rp-1/refusals").status_code == 403
