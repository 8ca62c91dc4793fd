"""Three processes on PostgreSQL and Redis act as one (D42, D50)."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.engines import postgresql_server, redis
from tests.many.nodes import Nodes, running, signed_in, within_five_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    server = postgresql_server()
    with server.database() as name, redis() as transient_url:
        server.sql(f"ALTER DATABASE {name} SET log_statement = 'ddl'")
        with running(tmp_path_factory.mktemp("nodes"), server.dsn(name), transient_url) as made:
            yield made


def test_of_many_that_start_at_once_one_makes_the_schema_and_the_keys(nodes: Nodes) -> None:
    """One set of keys and one migration."""
    listed = json.loads(nodes.command("key", "list", "--json"))
    assert [key["state"] for key in listed] == ["in use", "standby"]
    assert postgresql_server().log().count("CREATE TABLE deployment (") == 1


async def test_each_step_of_a_sign_in_may_be_answered_by_another_process(nodes: Nodes) -> None:
    async with signed_in(nodes) as person:
        rp = person.party(0)
        code = await person.code(rp, 1)
        rp.http = person.https[2]
        tokens = await rp.believe(await rp.token(code))
        rp.http = person.https[1]
        assert (await rp.userinfo())["auth_info"]["Result_Set"]["ESrvc_Row_Count"] == 1
        rp.http = person.https[0]
        again = await rp.token(code)
        assert again.json()["error"] == "invalid_grant"
        rp.http = person.https[1]
        assert (await rp.resource(access_token=tokens.access_token)).status_code == 401


async def test_one_code_redeemed_at_every_process_at_once_yields_one_token(nodes: Nodes) -> None:
    """D18: one atomic take."""
    async with signed_in(nodes) as person:
        rp = person.party(0)
        code = await person.code(rp, 0)
        parties = [person.party(number % 3) for number in range(24)]
        for each in parties:
            each.sign_in = rp.sign_in
            await each.discover()
        answers = await asyncio.gather(*(each.token(code) for each in parties))
        assert sorted(answer.status_code for answer in answers) == [200] + [400] * 23


async def test_a_rotated_key_is_published_everywhere_within_five_seconds(nodes: Nodes) -> None:
    """D42, D50: without restart."""
    async with signed_in(nodes) as person:
        said = await asyncio.to_thread(nodes.command, "key", "rotate")
        kid = re.split(r"\s+", said)[1]
        for http in person.https:

            async def published(http: httpx.AsyncClient = http) -> bool:
                answer = await http.get(f"{nodes.issuer}/.well-known/keys")
                return kid in [key["kid"] for key in answer.json()["keys"]]

            await within_five_seconds(published)


async def test_a_disabled_client_is_refused_everywhere_within_five_seconds(nodes: Nodes) -> None:
    """D50."""
    async with signed_in(nodes) as person:
        await asyncio.to_thread(nodes.command, "client", "disable", "rp-1")
        for number in range(3):

            async def refused(number: int = number) -> bool:
                return (await person.party(number).push()).status_code == 401

            await within_five_seconds(refused)
        await asyncio.to_thread(nodes.command, "client", "enable", "rp-1")
        for number in range(3):

            async def served(number: int = number) -> bool:
                return (await person.party(number).push()).status_code == 201

            await within_five_seconds(served)


async def test_a_disabled_person_loses_every_token_everywhere_within_five_seconds(nodes: Nodes) -> None:
    """D50: at every resource."""
    async with signed_in(nodes) as person:
        parties = [person.party(number) for number in range(3)]
        for number, rp in enumerate(parties):
            await rp.believe(await rp.token(await person.code(rp, number)))
            assert (await rp.resource()).status_code == 200
        await asyncio.to_thread(nodes.command, "user", "disable", "rina")
        for rp in parties:

            async def dead(rp: RelyingParty = rp) -> bool:
                return (await rp.resource()).status_code == 401

            await within_five_seconds(dead)
        await asyncio.to_thread(nodes.command, "user", "enable", "rina")
