"""A request that another browser has claimed, and one that arrives under maintenance (Spec 7.2, D15)."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from corpid.flows.oauth import authorize
from corpid.flows.oauth.authorize import ImmediateResponse
from corpid.rules.audit import AuditEvent
from corpid.rules.oauth.errors import InvalidRequest, TemporarilyUnavailable
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import parse
from corpid_dev.relying_party.people import Person
from tests.contexts import context
from tests.protocol import directory
from tests.protocol.expectations import PUSHED
from tests.protocol.provider import World, Worlds, query

pytestmark = pytest.mark.generations(*PUSHED)


def test_a_signed_in_browser_meets_a_page_where_another_browser_has_claimed_the_request(
    worlds: Worlds,
) -> None:
    """D15: the first browser to pass the first factor claims it; others then get an error page."""
    alice = Person(user_name="alice", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
    world = worlds.fresh(session_seconds=3600)
    world.sign_in()
    world.clock.now += 30
    world.rp = world.party(parameters={"ui_locales": "ms"})
    where = world.run(world.rp.begin())
    other = world.new_browser()
    world.run(other.open(where))
    world.run(people.answer_page(other, alice, now=world.clock))
    answer = world.get(where)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert answer.headers["content-language"] == "ms"
    page = parse(answer.text)
    assert "https://rp.example/" in [target for target, _ in page.links]
    assert world.client().name in page.text
    code = query(world.run(people.finish(other, alice, now=world.clock)))["code"]
    assert world.redeem(code).status_code == 200


def test_under_maintenance_the_relying_party_is_told_once_its_redirect_uri_is_proven(world: World) -> None:
    """Spec 7.2: temporarily_unavailable is an error of the callback; before that line the person sees a page."""
    sent = query(world.run(world.rp.begin()))
    world.run(world.provider.registry.deployment.set_maintenance(True, AuditEvent(actor="operator", action="m")))
    world.provider.registry_cache.drop()
    request = world.run(context(world.provider))

    def arrive(parameters: dict[str, str]) -> object:
        text = urlencode(parameters).encode()
        return world.run(authorize.arrive(request, text, cookie=None, may_complete=True))

    answered = arrive(sent)
    assert isinstance(answered, ImmediateResponse)
    assert query(answered.response.url)["error"] == TemporarilyUnavailable.code
    with pytest.raises(InvalidRequest):
        arrive({**sent, "client_id": "nobody"})
