"""Pages on requests and third parties, as their provider shows them (D55, D56)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.directory.approvals import comment_on_request, decline_request
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import Change, Service, User
from tests.browser.seeded import Recorder, Visit
from tests.manage.scene import ACME, appoint, in_portal, portal
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_third_parties import CASSIA, GRANT, ROW, three
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, entity, world

if TYPE_CHECKING:
    from collections.abc import Mapping


LONG: Final = "Vereinigte Donaudampfschifffahrtsgesellschaft und Söhne (Asia Pacific) Private Limited"
_OFFER: Final = f"third-parties/offer?to={CASSIA}"
_DAMAI: Final = "200000004A"
_SEASON: Final = "The season ends in December"
REQUESTS: Final[Mapping[str, Visit]] = {
    "portal-requests": Visit("requests"),
    "portal-requests-ended": Visit("requests?state=ended"),
    "portal-requests-none": Visit("requests?state=expired"),
    "portal-request": Visit("requests/{bob}"),
    "portal-request-own": Visit("requests/{alice}"),
    "portal-request-declined": Visit("requests/{declined}"),
    "portal-request-renamed": Visit("requests/{siti}"),
    "portal-request-wrong": Visit("requests/{bob}", {"": "Decline"}, "reason"),
    "portal-withdraw": Visit("requests/withdraw/{alice}"),
    "portal-approvals": Visit("approvals-setting"),
}
OF_ONE_OWNER: Final[Mapping[str, Visit]] = {
    "portal-request-nobody": Visit("requests/{alice}"),
    "portal-approvals-alone": Visit("approvals-setting", {"approvals": "all"}),
}
THIRD_PARTIES: Final[Mapping[str, Visit]] = {
    "portal-third-parties": Visit("third-parties"),
    "portal-third-parties-not-found": Visit("third-parties?organisation=Kingfisher"),
    "portal-third-party": Visit("third-parties/grant/{given}"),
    "portal-third-party-offer": Visit("third-parties/grant/{offered}"),
    "portal-third-party-people": Visit("third-parties/grant/{received}"),
    "portal-find-organisation": Visit("third-parties/offer?organisation=Banyan%20Trading"),
    "portal-choose-service": Visit(_OFFER),
    "portal-terms": Visit(f"{_OFFER}&service=PERMITS"),
    "portal-terms-wrong": Visit(f"{_OFFER}&service=PERMITS", {"end": "2020-01-01"}),
    "portal-check-offer": Visit(f"{_OFFER}&service=PERMITS", {"role": "Maker", "end": "2099-12-31"}),
    "portal-choose-person": Visit("third-parties/assign/{received}"),
    "portal-accept": Visit("third-parties/accept/{offered}"),
    "portal-end": Visit("third-parties/end/{given}"),
}


async def walk_requests(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as one of two owners, where roles need approval."""
    async with world() as made:
        await acme(made)
        await made.person("siti", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Siti Contoh")
        named = {}
        for who, change in {
            "bob": replace(ROLE, sub_entity="Pier 4"),
            "alice": replace(ROLE, user_id="id-bob", ref="1"),
            "siti": replace(ROLE, user_id="id-siti"),
            "declined": replace(ROLE, ref="2"),
        }.items():
            made.clock.pass_(1)
            asking = "alice" if who == "alice" else "bob"
            named[who] = (await requested(made, Change(None, change), who=asking)).request_id
        registry = made.provider.registry
        for who, text in (
            ("alice", "Since when does she work at Pier 4?"),
            ("bob", "Since May, when the season began."),
        ):
            await comment_on_request(registry, named["bob"], actor=owner(made, who), text=text, now=made.clock())
        await decline_request(registry, named["declined"], actor=owner(made, "alice"), reason=_SEASON, now=made.clock())
        siti = (await registry.directory.read(User, [("id-siti",)]))["id-siti",]
        await made.write(replace(siti, name="Cora Chan"))
        await _open(made, visits, recorder, **named)


async def walk_of_one_owner(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """The same where nobody else can approve."""
    async with world() as made:
        await appoint(made)
        await made.write(Service(service_id="TAX", name="Tax", approval_required=True))
        await made.person("cora", entity(ACME, "Acme Pte. Ltd."), name="Cora Chan")
        wanted = Change(None, replace(ROLE, service_id="TAX", role=""))
        found = await requested(made, wanted, who="alice")
        await _open(made, visits, recorder, alice=found.request_id)


async def walk_third_parties(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as the owner of an organisation with authorisations of each kind."""
    async with world() as made:
        await three(made)
        offered = replace(GRANT, client_entity_id=_DAMAI, entity_id=ACME, state="offered")
        received = replace(GRANT, client_entity_id=CASSIA, entity_id=ACME, role="")
        acting = replace(ROW, user_id="id-alice", entity_id=ACME, client_entity_id=CASSIA)
        await made.write(entity(CASSIA, LONG), entity(_DAMAI, "Damai Sdn. Bhd."), GRANT, ROW, offered, received, acting)
        ids = {"given": GRANT, "offered": offered, "received": received}
        await _open(made, visits, recorder, **{name: object_id(grant.key) for name, grant in ids.items()})


async def _open(made: World, visits: Mapping[str, Visit], recorder: Recorder, **named: str) -> None:
    browser = await in_portal(made)
    for name, visit in visits.items():
        made.clock.pass_(1)
        await recorder.visit(name, visit, browser, portal(made, visit.page.format(**named)))
