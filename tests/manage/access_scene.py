"""Acme with people and services, for the pages that give access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from msgspec.structs import replace

from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import (
    AdministratorLevel,
    Approvals,
    Assignment,
    ChangeRequest,
    Entity,
    Membership,
    Service,
    User,
)
from corpid.rules.directory.values import Parameter, ParameterDefinition, RoleDescription
from tests.manage.scene import ACME, appoint

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser
    from tests.sign_in.world import World

HARBOUR = Service(
    service_id="HARBOUR",
    name="Harbour permits",
    description="Permits for vessels to berth.",
    roles=("Checker", "Approver"),
    role_descriptions=(RoleDescription(name="Approver", description="Approves applications."),),
    parameters=(
        ParameterDefinition(name="Permit Year", kind="year", mandatory=True),
        ParameterDefinition(name="Berth"),
    ),
    sub_entity="optional",
)
NOTICES = Service(service_id="NOTICES", name="Notices")
FOREIGN = Service(service_id="FOREIGN", name="Foreign matters", roles=("Clerk",), entity_types=("NON-UEN",))


async def staffed(made: World, *, level: AdministratorLevel = "owner", services: tuple[str, ...] = ()) -> None:
    """Alice administers Acme, Marcus and Nadia are its people; there are three services, one of them not for Acme."""
    await made.write(HARBOUR, NOTICES, FOREIGN)
    await appoint(made, level=level, services=services)
    await employed(made, "marcus", "Marcus Lee")
    await employed(made, "nadia", "Nadia Rahman")


async def employed(made: World, user_name: str, name: str, entity_id: str = ACME, **more: Any) -> None:
    await made.write(
        User(user_id=f"id-{user_name}", user_name=user_name, name=name, email=f"{user_name}@acme.example"),
        Membership(user_id=f"id-{user_name}", entity_id=entity_id, membership_id=f"m-{user_name}", **more),
    )


def checker(user_name: str = "marcus", **more: Any) -> Assignment:
    """A role as Checker, with its mandatory parameter."""
    given = {"role": "Checker", "parameters": (Parameter(name="Permit Year", value="2026"),), **more}
    return Assignment(user_id=f"id-{user_name}", entity_id=ACME, service_id="HARBOUR", **given)


def identifier(row: Assignment) -> str:
    return object_id(row.key)


async def roles(made: World, user_name: str = "marcus") -> list[Assignment]:
    where = {"user_id": f"id-{user_name}", "entity_id": ACME}
    found: list[Assignment] = await made.provider.registry.directory.page(Assignment, where, after=("",) * 6, limit=100)
    return found


async def requests(made: World) -> list[Any]:
    found: list[Any] = await made.provider.registry.directory.page(
        ChangeRequest, {"entity_id": ACME, "state": "pending"}, after=("",), limit=100
    )
    return found


async def demand(made: World, approvals: Approvals) -> None:
    """Let Acme demand the approval of changes."""
    acme = (await made.provider.registry.directory.read(Entity, [(ACME,)]))[ACME,]
    await made.write(replace(acme, approvals=approvals))


async def follow(browser: Browser, text: str) -> None:
    """Follow the link whose text begins so."""
    target = next(target for target, label in browser.page.links if label.strip().startswith(text))
    await browser.open(urljoin(browser.url, target), site="same-origin")


async def confirm(browser: Browser, **typed: str) -> None:
    """Send the form of the page that changes something."""
    await browser.fill_and_submit("form_token", "step", **typed)
