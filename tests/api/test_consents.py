"""A person's remembered consents, seen by a program (D29, D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.oauth.consent import Consent
from tests.api.calling import Api, bound, calling
from tests.protocol.directory import ALICE

if TYPE_CHECKING:
    from tests.protocol.provider import World


def test_consents_are_listed_in_pages_until_they_end(world: World, api: Api) -> None:
    """D29: with whom, for whom, what, since when and until when."""
    assert api.every("/consents?user=alice") == api.every("/consents?user=nobody") == []
    registry, now = world.provider.registry, int(world.clock.now)
    entity = api.get("/memberships?user=alice").json()["items"][0]["entity"]
    client = api.get("/clients").json()["items"][0]["client_id"]
    event = world.run(registry.audit.entries(limit=1))[0]
    for number in range(5):
        given = Consent(
            user_id=ALICE.user_id, entity_id=entity, client_id=client, issuer_id="first",
            scopes=("openid", f"s{number}"), given_at=now, expires_at=now + 100 + number,
        )  # fmt: skip
        assert world.run(registry.consents.give(given, event))
    listed = api.every("/consents?user=ALICE")
    assert [each["scopes"][1] for each in listed] == ["s0", "s1", "s2", "s3", "s4"]
    assert listed[0] == {
        "user": "alice", "user_id": ALICE.user_id, "client": client, "entity": entity, "issuer": "first",
        "scopes": ["openid", "s0"], "since": now, "until": now + 100,
    }  # fmt: skip


def test_it_takes_the_scope_directory_read_and_no_entity(world: World) -> None:
    """D59, D61: what a person shares is no entity's business."""
    assert bound(world).get("/consents?user=alice").status_code == 403
    assert calling(world, "writes", scopes=["directory.write"]).get("/consents?user=alice").status_code == 403
