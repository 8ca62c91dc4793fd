"""Pages on an organisation's people, as their provider shows them (D53, D55, D60, D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    Membership,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.web.pages.role_fields import value_field
from tests.browser.seeded import Recorder, Visit
from tests.manage.access_scene import HARBOUR, checker, employed, staffed
from tests.manage.scene import ACME, BANYAN, in_portal, portal
from tests.manage.test_people import invited
from tests.manage.test_undo import FIRM
from tests.manage.test_who_is_meant import owner
from tests.postbox import Postbox
from tests.sign_in.world import World, world

if TYPE_CHECKING:
    from collections.abc import Mapping


LONG: Final = "Maximilian-Ferdinand Donaudampfschifffahrtsgesellschaftskapitän von und zu Hohenzollern"
_LINES: Final = "Priya Nair <priya@harbour.example>\nkim@harbour.example"
_MARCUS: Final = "person/m-marcus"
_GIVEN: Final = {"select-m-marcus": "yes", "select-m-nadia": "yes", "select-m-long": "yes", "": "Give access"}
_CHECKER: Final = {"access": "HARBOUR/Checker", "end": "none", "": "Continue"}
VISITS: Final[Mapping[str, Visit]] = {
    "portal-people": Visit("people"),
    "portal-people-nobody": Visit("people?q=zoe"),
    "portal-people-sorted": Visit("people?sort=-email"),
    "portal-search": Visit("search?search=mar"),
    "portal-search-nothing": Visit("search?search=zebra"),
    "portal-access-person": Visit("access/new"),
    "portal-access-nobody": Visit("access/new?find=zz"),
    "portal-invite": Visit("invite"),
    "portal-invite-wrong": Visit("invite", {"email": "priya at harbour"}),
    "portal-invite-several": Visit("invite/several"),
    "portal-invite-several-wrong": Visit("invite/several", {"people": "Priya\nkim@harbour.example"}),
    "portal-invite-preview": Visit("invite/several", {"people": _LINES}),
    "portal-people-selected": Visit(
        "people", {"select-m-marcus": "yes", "select-m-long": "yes", "": "Suspend"}, "select-m-marcus"
    ),
    "portal-people-give": Visit("people", _GIVEN, "select-m-marcus"),
    "portal-people-give-wrong": Visit("people", _GIVEN, "select-m-marcus", ({"": "Continue"},)),
    "portal-people-give-asked": Visit(
        "people", _GIVEN, "select-m-marcus", ({**_CHECKER, value_field(HARBOUR, "Permit Year"): "2027"},)
    ),
    "portal-people-selected-nobody": Visit("people", {"": "Suspend"}, "select-m-marcus"),
    "portal-person": Visit(_MARCUS),
    "portal-person-invited": Visit("person/m-priya"),
    "portal-person-owner": Visit("person/m-nadia"),
    "portal-person-details": Visit(f"{_MARCUS}/details"),
    "portal-person-end": Visit(f"{_MARCUS}/end"),
    "portal-person-help": Visit(f"{_MARCUS}/new-password"),
    "portal-person-suspended": Visit(f"{_MARCUS}/suspend", {"": "Suspend"}),
}
UNDER_APPROVAL: Final[Mapping[str, Visit]] = {
    "portal-invite-approval": Visit("invite"),
    "portal-person-requests": Visit("person/m-long"),
    "portal-person-end-approval": Visit(f"{_MARCUS}/end"),
    "portal-person-refused": Visit("person/{alice}"),
    "portal-person-end-refused": Visit("person/{alice}/end"),
    "portal-person-help-no-mail": Visit(f"{_MARCUS}/new-password"),
}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as an owner."""
    async with world(postbox=Postbox()) as made:
        await seed(made)
        await _open(made, visits, recorder)


async def walk_under_approval(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """The same where everything needs approval, and no e-mails are sent."""
    async with world() as made:
        await seed(made)
        await made.write(replace(FIRM, approvals="all"))
        asking = RequestDetails("For the season", made.clock(), "r1")
        await write_changes(
            made.provider.registry, owner(made, "alice"), [Change(None, checker("long"))], asking=asking
        )
        await _open(made, visits, recorder)


async def _open(made: World, visits: Mapping[str, Visit], recorder: Recorder) -> None:
    browser = await in_portal(made)
    key = ("id-alice", ACME)
    alice = (await made.provider.registry.directory.read(Membership, [key]))[key].membership_id
    for name, visit in visits.items():
        made.clock.pass_(1)
        await recorder.visit(name, visit, browser, portal(made, visit.page.format(alice=alice)))


async def seed(made: World) -> None:
    """People of Acme in every state."""
    await staffed(made)
    await employed(made, "long", LONG, enabled=False)
    await employed(made, "chan", "陈伟明")
    await invited(made)
    await made.write(
        Membership(
            user_id="id-marcus", entity_id=ACME, membership_id="m-marcus", user_name="m.lee", department="Permits",
            job_title="Senior clerk",
        ),
        Administrator(user_id="id-nadia", entity_id=ACME, level="administrator"),
        Administrator(user_id="id-marcus", entity_id=ACME, level="sub_administrator", services=("HARBOUR",)),
        Assignment(user_id="id-marcus", entity_id=ACME, service_id="NOTICES", end_date="2020-12-31"),
        ThirdPartyGrant(client_entity_id=BANYAN, entity_id=ACME, service_id="NOTICES"),
        ThirdPartyAssignment(user_id="id-marcus", entity_id=ACME, client_entity_id=BANYAN, service_id="NOTICES"),
    )  # fmt: skip
    given = Change(None, checker(sub_entity="Jurong", end_date="2027-12-31"))
    await write_changes(made.provider.registry, owner(made, "alice"), [given])
