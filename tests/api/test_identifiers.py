"""The identifier of an invitation, which the admin API serves as `user`, means nobody else (D59, D60, D68)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.directory.acceptance import accept_with_new_account
from corpid.rules.directory.records import Membership
from tests.api.calling import HARBOUR, bound
from tests.scim.calling import provisioning

if TYPE_CHECKING:
    from tests.protocol.provider import World

GINA = "00000000-0000-4000-8000-00000000aaaa"


def test_the_identifier_of_an_invitation_never_means_somebody_else(world: World) -> None:
    """D60, D68: neither while it is open nor afterwards."""
    api, scim = bound(world), provisioning(world)
    assert api.post("/invitations", {"name": "Gina Teo", "email": "gina@harbour.example"}).status_code == 201
    [remembered] = [each["user"] for each in api.every("/memberships") if each["identity"] == "gina@harbour.example"]
    mallory = scim.added("mallory@harbour.example")["id"]
    directory = world.provider.registry.directory
    invited = world.run(directory.find(Membership, remembered, HARBOUR))
    assert invited is not None
    world.run(
        accept_with_new_account(
            world.provider.registry,
            invited,
            GINA,
            user_name="gina",
            name="Gina Teo",
            language="en",
            now=world.clock.now,
        )
    )
    scim.patch(f"/Users/{mallory}", {"op": "replace", "path": "userName", "value": remembered})
    role = {"user": remembered, "entity": HARBOUR, "service": "GRANTS", "role": "Applicant", "end_date": "2029-12-31"}
    answer = api.post("/assignments", role)
    assert answer.status_code == 422, answer.text
