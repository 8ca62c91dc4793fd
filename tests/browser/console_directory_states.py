"""The console's pages of organisations, people, services and clients, as their provider shows them (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Membership,
    Service,
    ThirdPartyGrant,
)
from corpid.rules.directory.values import RoleDescription
from tests.browser.seeded import Visit
from tests.console.scene import REASON, console, in_console
from tests.sign_in.world import entity, world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.browser.seeded import Recorder
    from tests.sign_in.world import World

_LONG: Final = "Straits Agricultural and Maritime Provisioning Cooperative Society (International) Limited"
_ENTITY: Final = "entities/200312345A"
VISITS: Final[Mapping[str, Visit]] = {
    "console-entities": Visit("entities"),
    "console-entities-none": Visit("entities?search=zebra"),
    "console-entity": Visit(_ENTITY),
    "console-entity-edit": Visit(f"{_ENTITY}/edit"),
    "console-entity-people": Visit(f"{_ENTITY}/people"),
    "console-new-entity": Visit(
        "new-organisation",
        {"entity_id": "has space", "country": "Singapore", "owner_name": "Mei Lin", "owner_email": "mei@harbour"},
    ),
    "console-owner": Visit(f"{_ENTITY}/owner", {"reason": REASON}),
    "console-people": Visit("people?by=name&search=A"),
    "console-person": Visit("people/id-alice"),
    "console-person-link": Visit("people/id-alice/link", {}),
    "console-person-disable": Visit("people/id-alice/disable"),
    "console-service": Visit("services/PERMITS"),
    "console-services": Visit("services"),
    "console-service-edit": Visit("services/PERMITS/edit"),
    "console-service-edit-refused": Visit("services/PERMITS/edit", {"name": "", "reason": REASON}),
    "console-clients": Visit("clients"),
    "console-clients-none": Visit("clients?search=zzz"),
    "console-confirm": Visit("rotate-key-now", {"reason": ""}),
    "console-maintenance-switch": Visit("switch-maintenance", {"reason": ""}),
}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as an operator."""
    async with world(operators_need_passkey=False) as made:
        await _seed(made)
        browser = await in_console(made, "operator")
        for name, visit in visits.items():
            made.clock.pass_(1)
            await recorder.visit(name, visit, browser, console(made, visit.page))


async def _seed(made: World) -> None:
    long, banyan = entity("200312345A", _LONG), entity("200000002A", "Banyan Trading", enabled=False)
    await made.write(
        Service(
            service_id="PERMITS",
            name="Harbour permits",
            description="Permits to berth, load and unload.",
            roles=("Approver",),
            role_descriptions=(RoleDescription(name="Approver", description="Approves permits."),),
            third_parties=True,
        ),
    )
    await made.client("harbour-permits", name="Harbour permits")
    await made.client("shop", name="Vereinigte Donaudampfschifffahrtsgesellschaft", enabled=False)
    await made.person("weiling", long, name="Tan Wei Ling")
    await made.person("alice", long, banyan, name="Alice Tan", email="alice@acme.example")
    await made.write(
        Membership(user_id="id-weiling", entity_id=long.entity_id, enabled=False),
        Administrator(user_id="id-weiling", entity_id=long.entity_id, level="sub_administrator", services=("PERMITS",)),
        Assignment(
            user_id="id-alice",
            entity_id=long.entity_id,
            service_id="PERMITS",
            role="Approver",
            sub_entity="Jurong",
            end_date="2027-12-31",
        ),
        ThirdPartyGrant(
            client_entity_id=long.entity_id, entity_id=banyan.entity_id, service_id="PERMITS", state="accepted"
        ),
    )
    made.clock.pass_(60)
    session = await made.browser()
    await session.open(f"{made.base}/account", site="none")
    await made.factors(session, made.people["alice"])
