"""scim2-tester against a server on a socket: it finds no error (RFC 7643, RFC 7644, D60)."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import CheckResult, Status, check_server
from scim2_tester.filling import fill_with_random_values
from scim2_tester.utils import ResourceManager

from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import Change
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scim2_models import Resource

    from tests.interop.running import Provider

pytestmark = pytest.mark.full

TOKEN = "scim2-tester-0000000000000000000000000000-x"
ENTITY = "209900042K"


@pytest.fixture(scope="module")
def client(running: Provider) -> Iterator[SyncSCIMClient]:
    """A client with a token of an entity."""
    now = int(time.time())
    record = RegisteredProvisioningToken(
        token_id=str(uuid.uuid4()),
        entity_id=ENTITY,
        name="scim2-tester",
        token_hash=hashlib.sha256(TOKEN.encode()).hexdigest(),
        created_at=now,
        expires_at=now + 86400,
        created_by="command:lee@node1",
    )
    running.apply({"entities": {ENTITY: {"type": "UEN", "country": "SG", "name": "Example Harbour"}}})
    written = running.composed.provider.registry.directory.write([Change(None, record)], EVENT)
    asyncio.run_coroutine_threadsafe(written, running.loop).result(30)
    with httpx2.Client(
        base_url=f"{running.issuer}/scim/v2", headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False
    ) as http:
        yield SyncSCIMClient(http)


@pytest.fixture(autouse=True)
def _as_an_address_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its random values: the one address of a membership is always the primary one."""
    monkeypatch.setattr("scim2_tester.filling.random.choice", lambda values: next(iter(values)))


@pytest.fixture(autouse=True)
def _people_are_within_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its people of random names get an address, too: nobody is invited who cannot be reached."""
    made = SyncSCIMClient.create

    def create(self: SyncSCIMClient, resource: Any, *arguments: Any, **named: Any) -> Any:
        if type(resource).__name__.startswith("User") and not resource.emails:
            values = {"emails": [{"value": f"{resource.user_name}@x.example", "primary": True}]}
            resource = type(resource).model_validate(
                {**resource.model_dump(by_alias=True, exclude_none=True), **values}
            )
        return made(self, resource, *arguments, **named)

    monkeypatch.setattr(SyncSCIMClient, "create", create)


def errors(results: list[CheckResult]) -> list[str]:
    assert len([each for each in results if each.status is Status.SUCCESS]) > 20
    fine = {Status.SUCCESS, Status.COMPLIANT, Status.ACCEPTABLE, Status.SKIPPED}
    return [f"{each.title} {each.reason}" for each in results if each.status not in fine]


def test_users_and_discovery_have_no_error(client: SyncSCIMClient) -> None:
    """RFC 7644 §3, §4."""
    assert errors(check_server(client, resource_types=["User"])) == []


def test_groups_have_no_error(client: SyncSCIMClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 7644 §3.5: of a group that is there, since nobody makes or removes one."""
    made = ResourceManager.create_and_register

    def taken(self: ResourceManager, model: type[Resource[Any]], fill_all: bool = False) -> Resource[Any]:
        if model.__name__ != "Group":
            return made(self, model, fill_all)
        listed: Any = self.context.client.query(model)
        group = listed.resources[0]
        filled: Any = fill_with_random_values(self.context, model())
        group.members = filled.members if fill_all else []
        return self.context.client.replace(group)  # type: ignore[return-value]

    monkeypatch.setattr(ResourceManager, "create_and_register", taken)
    assert errors(check_server(client, resource_types=["Group"], exclude_tags={"crud:delete"})) == []
