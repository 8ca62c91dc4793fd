"""The portal's home page, settings, administrators, tokens and history, as their provider shows them (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.directory import provisioning
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.records import Assignment, Change
from corpid.web.directory.provisioning_tokens import TokenCreated
from tests.browser.seeded import Recorder, Visit
from tests.manage.scene import ACME, appoint, in_portal, portal
from tests.manage.test_home import scene
from tests.manage.test_third_parties import membership
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, entity, world

if TYPE_CHECKING:
    from collections.abc import Mapping


LONG: Final = "Wolfeschlegelsteinhausenbergerdorff Subramaniam Venkataraghavan-Balasubramanian"
_LEVEL: Final = "administrators/{bob}"
_TOKEN: Final = "10000000-0000-4000-8000-000000000001"
VISITS: Final[Mapping[str, Visit]] = {
    "portal-home": Visit(""),
    "portal-settings": Visit("settings"),
    "portal-ending": Visit("ending"),
    "portal-administrators": Visit("administrators"),
    "portal-appoint": Visit("administrators/appoint"),
    "portal-level": Visit(_LEVEL),
    "portal-level-services": Visit(f"{_LEVEL}?level=sub_administrator"),
    "portal-level-services-wrong": Visit(f"{_LEVEL}?level=sub_administrator", {}, "scope"),
    "portal-level-confirm": Visit(_LEVEL, {"level": "owner"}),
    "portal-level-remove": Visit(f"{_LEVEL}/remove"),
    "portal-level-not": Visit("administrators/{alice}"),
    "portal-history": Visit("history"),
    "portal-history-none": Visit("history?kind=settings"),
    "portal-history-wrong": Visit("history?from=soon"),
    "portal-change": Visit("history/{change}"),
    "portal-tokens": Visit("tokens"),
    "portal-token-new": Visit("tokens/new"),
    "portal-token-new-wrong": Visit("tokens/new", {"name": ""}),
    "portal-token-created": Visit("tokens/new", {"name": "Staff directory", "days": "365"}),
    "portal-token-hidden": Visit(f"tokens/{_TOKEN}/created"),
    "portal-token-revoke": Visit(f"tokens/{_TOKEN}/revoke"),
}
OF_ONE_PERSON: Final[Mapping[str, Visit]] = {
    "portal-home-empty": Visit(""),
    "portal-ending-none": Visit("ending"),
    "portal-tokens-none": Visit("tokens"),
}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as an owner of an organisation where something happened."""
    async with world() as made:
        await appoint(made)
        await made.person("wolfe", entity(ACME, "Acme Pte. Ltd."), name=LONG)
        await appoint(made, level="sub_administrator", who="wolfe", services=("PERMITS",))
        await scene(made)
        registry, actor, now = made.provider.registry, owner(made, "alice"), made.clock()
        roles = [
            Assignment(user_id=f"id-{who}", entity_id=ACME, service_id="PERMITS", role="Maker", ref="1")
            for who in ("bob", "carol", "wolfe")
        ]
        given = [Change(None, each) for each in roles]
        await write_changes(registry, actor, given, asking=RequestDetails("", now, "r"), batch="b")
        await provisioning.add_token(
            registry, ACME, "Payroll", days=90, token="q5Yx1m0s", token_id=_TOKEN, actor=actor, now=now
        )  # fmt: skip
        changed = (await made.audit("assignment.add"))[0].number
        people = {who: await membership(made, who, ACME) for who in ("alice", "bob")}
        await _open(made, visits, recorder, **people, change=str(changed))
        created = recorder.views["portal-token-created"]
        assert isinstance(created, TokenCreated)
        recorder.views["portal-token-created"] = replace(created, token="q5Yx1m0s8yWc6T2nB4vK7pR9dF3hJ5lZ0aXeCuGiQoE")


async def walk_of_one_person(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """The same where nobody is but the owner."""
    async with world() as made:
        await appoint(made)
        await made.write(entity(ACME, "Acme Pte. Ltd.", status="Deregistered"))
        await _open(made, visits, recorder)


async def _open(made: World, visits: Mapping[str, Visit], recorder: Recorder, **named: str) -> None:
    browser = await in_portal(made)
    for name, visit in visits.items():
        made.clock.pass_(1)
        await recorder.visit(name, visit, browser, portal(made, visit.page.format(**named)))
