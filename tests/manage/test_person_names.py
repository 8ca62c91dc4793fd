"""The name of a person on the pages of each entity: one rule, and nothing beyond it (D61, D68)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory.approvals import load_names
from corpid.flows.directory.person_names import read_names
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import Change, Membership, User
from corpid.web.directory.third_parties import page_of
from tests.manage.scene import ACME, BANYAN, go, in_portal
from tests.manage.test_third_parties import GRANT, ROW, three

if TYPE_CHECKING:
    from tests.sign_in.world import World

WRITTEN = Membership(
    user_id="id-finn", entity_id=BANYAN, membership_id="m-finn",
    name="Finn of the night shift", user_name="finn.goh", email="finn@banyan.example",
)  # fmt: skip
INVITED = Membership(
    user_id="f1e2", entity_id=BANYAN, membership_id="m-gina", invited=True,
    name="Gina Teo", user_name="gina.teo", email="gina@banyan.example",
)  # fmt: skip
OWN = User(user_id="id-finn", user_name="finn", name="Finn Goh", email="finn@home.example")


async def acting(made: World) -> None:
    """Finn and the invited Gina may act for Acme; Banyan wrote other names of both than their own."""
    await three(made)
    await made.write(OWN, WRITTEN, placeholder(INVITED), INVITED, GRANT, ROW, replace(ROW, user_id=INVITED.user_id))


async def test_the_client_entity_sees_a_third_partys_person_by_their_account_and_no_more(made: World) -> None:
    """D61, D68: neither address, nor anything that the third party wrote; who it is, no name of their choice hides."""
    await acting(made)
    browser = await in_portal(made, page_of("grant", GRANT))
    text = browser.page.text
    assert "finn (Finn Goh)" in text
    assert "Somebody of Banyan Trading" in text
    for hidden in ("night shift", "finn.goh", "finn@", "Gina", "gina", INVITED.user_id):
        assert hidden not in text


async def test_the_third_party_sees_its_people_by_their_account_and_as_it_wrote_them(made: World) -> None:
    """D61, D68: on every page of theirs."""
    await acting(made)
    browser = await in_portal(made, page_of("grant", GRANT), who="dora")
    assert "finn (Finn of the night shift)" in browser.page.text
    assert "gina@banyan.example (Gina Teo)" in browser.page.text
    await go(made, browser, page_of("assign", GRANT))
    assert "Finn of the night shift" in browser.page.text
    assert "finn " in browser.page.text
    assert "finn.goh" not in browser.page.text
    assert "Finn Goh" not in browser.page.text


@pytest.mark.parametrize("verb", ["take-away", "change-role"])
async def test_the_third_partys_forms_name_somebody_invited_by_the_address(made: World, verb: str) -> None:
    """D56, D68: before anything changes."""
    await acting(made)
    browser = await in_portal(made, page_of(verb, replace(ROW, user_id=INVITED.user_id)), who="dora")
    assert "(invited) gina@banyan.example (Gina Teo)" in browser.page.text


async def test_a_change_names_other_entities_people_by_their_account(made: World) -> None:
    """D55, D61, D68: in the requests of the client entity; of an invited person it knows nothing."""
    await acting(made)
    changes = [Change(each, None) for each in (ROW, replace(ROW, user_id=INVITED.user_id))]
    changes.append(Change(INVITED, None))
    registry = made.provider.registry
    assert (await load_names(registry, ACME, changes)).people == {"id-finn": "finn (Finn Goh)"}
    of_banyan = (await load_names(registry, BANYAN, changes)).people
    assert of_banyan == {
        "id-finn": "finn (Finn of the night shift)",
        INVITED.user_id: "(invited) gina@banyan.example (Gina Teo)",
    }


async def test_a_stranger_who_acted_has_no_name(made: World) -> None:
    """D61: also an entity's own former administrator, and an operator."""
    await acting(made)
    registry = made.provider.registry
    assert await read_names(registry, ACME, ["id-finn", "id-alice", "nobody"]) == {"id-alice": "alice (Alice Tan)"}


async def test_an_invited_person_is_known_by_the_address_on_every_page(made: World) -> None:
    """D60, D68: never by the identifier of the placeholder."""
    await acting(made)
    hana = replace(INVITED, entity_id=ACME, user_id="a7c9", membership_id="m-hana", name="", user_name="hana.lim")
    await made.write(placeholder(hana), hana)
    browser = await in_portal(made, "people")
    assert "gina@banyan.example" in browser.page.text
    assert "a7c9" not in browser.page.text
    names = await read_names(made.provider.registry, ACME, ["a7c9"])
    assert names == {"a7c9": "(invited) gina@banyan.example"}
