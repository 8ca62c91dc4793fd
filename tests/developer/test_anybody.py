"""Anybody acting for anything: a person who is made for one sign-in, with the keys of a directory file (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.directory.records import Service
from corpid_dev.relying_party.verification import Callback
from tests.developer.scene import demo_world, order

if TYPE_CHECKING:
    from tests.sign_in.world import World

NEW = "209999001A"
CLIENT = "209999002B"
ANN: dict[str, Any] = {
    "person": {"name": "Ann Anybody", "identity_number": "S0000099Z", "identity_country": "SG"},
    "entity": NEW,
    "entities": {
        each: {
            "type": "UEN",
            "registration_number": each,
            "country": "SG",
            "name": f"Anything {each}",
            "status": "Registered",
        }
        for each in (NEW, CLIENT)
    },
    "roles": [{"service": "PERMITS", "role": "Maker", "end_date": "2099-12-31"}],
    "third_party": [{"client_entity": CLIENT, "service": "OTHERS", "role": "Preparer"}],
}


async def prepared(made: World) -> None:
    await made.write(Service(service_id="OTHERS", name="Others", roles=("Preparer",), third_parties=True))
    await made.client(services=("PERMITS", "OTHERS"))


async def ordered(made: World, anybody: object, **members: object) -> tuple[Any, Any]:
    rp = await made.relying_party(scope="openid authinfo tpauthinfo user.name")
    return rp, await order(made, {"authorize_url": await rp.begin(), "anybody": anybody, **members})


async def test_the_person_acts_with_what_the_order_says() -> None:
    """D66, Spec 2.6: entity, roles and third-party rights reach the relying party as any other's."""
    async with demo_world() as made:
        await prepared(made)
        rp, answer = await ordered(made, ANN)
        assert answer.status_code == 200, answer.text
        tokens = await rp.redeem(Callback(answer.json()["callback_url"]))
        assert tokens.id_token["sub_attributes"]["name"] == "Ann Anybody"
        assert tokens.id_token["entity"]["sub"] == NEW
        claims = await rp.userinfo()
        (service,) = claims["auth_info"]["Result_Set"]["ESrvc_Result"]
        (row,) = service["Auth_Result_Set"]["Row"]
        assert (service["CPESrvcID"], row["CPRole"], row["EndDate"]) == ("PERMITS", "Maker", "2099-12-31")
        (other,) = claims["tp_auth_info"]["Result_Set"]["ESrvc_Result"]
        (chain,) = other["Auth_Set"]["TP_Auth"]
        assert chain["CP_Clnt_ID"] == CLIENT


async def test_the_same_content_is_the_same_person() -> None:
    """D66: an order can be kept, and used again."""
    async with demo_world() as made:
        await prepared(made)
        subjects = []
        for content in (ANN, dict(reversed(ANN.items())), {**ANN, "roles": []}):
            rp, answer = await ordered(made, content)
            subjects.append((await rp.redeem(Callback(answer.json()["callback_url"]))).id_token["sub"])
        assert subjects[0] == subjects[1] != subjects[2]
        applied = await made.audit("directory.apply")
        assert len(applied) == 2
        assert {entry.actor for entry in applied} == {"file:developer mode"}


async def test_a_person_needs_no_more_than_an_entity() -> None:
    """D66: one that exists is named by its identifier."""
    async with demo_world() as made:
        rp, answer = await ordered(made, {"entity": "200000001A"})
        tokens = await rp.redeem(Callback(answer.json()["callback_url"]))
        assert tokens.id_token["entity"]["sub"] == "200000001A"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "entity"),
        ({"entity": "209999003C"}, "209999003C"),
        ({"entity": "200000001A", "roles": [{"service": "NOWHERE", "role": "Maker"}]}, "NOWHERE"),
        ({"entity": "200000001A", "roles": [{"service": "PERMITS", "colour": "red"}]}, "colour"),
        ({"entity": "200000001A", "person": {"password": "harbour lights at dawn"}}, "password"),
        ({"entity": "200000001A", "entities": {"200000001A": {"name": "Another"}}}, "exists"),
        ({"entity": "200000001A", "roles": [{"service": "PERMITS"}] * 101}, "100 rows"),
        ({"entity": "200000001A", "operators": []}, "operators"),
    ],
)
async def test_what_no_directory_file_may_say_is_refused(content: dict[str, Any], problem: str) -> None:
    """docs/directory.md, D66: the description names it; nothing is written, and nothing that exists is changed."""
    async with demo_world() as made:
        _, answer = await ordered(made, content)
        assert answer.status_code == 400, answer.text
        assert problem in answer.json()["error_description"]
        assert await made.audit("directory.apply") == []


async def test_an_order_names_one_person() -> None:
    """D66: a test person, or one to be made."""
    async with demo_world() as made:
        _, answer = await ordered(made, ANN, user="alice")
        assert answer.status_code == 400
        assert "not both" in answer.json()["error_description"]
