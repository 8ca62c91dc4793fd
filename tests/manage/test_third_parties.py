"""Third parties in the portal, from both sides, and by whom not (D53, D56, D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory.members import end_member
from corpid.flows.directory.write import Refused, RequestDetails, write_changes
from corpid.rules.directory.access import ALL_SCOPES, ApiClient, EntityAdministrator, ProvisioningToken
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import (
    Assignment,
    Change,
    ChangeRequest,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.rules.directory.values import Parameter, ParameterDefinition
from corpid.rules.oauth.api_client import RegisteredApiClient
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, portal, send
from tests.manage.test_giving_access import offered
from tests.manage.test_requests import acme, requested
from tests.manage.walking import follow, token
from tests.sign_in.world import World, entity, form_of

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

CASSIA = "200000003A"
GRANT = ThirdPartyGrant(
    client_entity_id=ACME,
    entity_id=BANYAN,
    service_id="PERMITS",
    role="Maker",
    start_date="2026-01-01",
    end_date="2099-12-31",
)
ROW = ThirdPartyAssignment(
    user_id="id-finn", entity_id=BANYAN, client_entity_id=ACME, service_id="PERMITS", role="Maker",
    start_date="2026-01-01", end_date="2099-12-31",
)  # fmt: skip


async def three(made: World, **of_acme: str) -> None:
    """Alice owns Acme, Dora owns Banyan where Finn works, Eve owns Cassia. Permits allows third parties."""
    acme, banyan, cassia = (
        entity(ACME, "Acme Pte. Ltd.", **of_acme),
        entity(BANYAN, "Banyan Trading"),
        entity(CASSIA, "Cassia Works"),
    )
    await made.write(
        acme,
        Service(
            service_id="PERMITS", name="Permits", roles=("Maker", "Checker"), third_parties=True, sub_entity="optional",
            parameters=(ParameterDefinition(name="Year", kind="year"),),
        ),
    )  # fmt: skip
    await made.person("dora", banyan, name="Dora Ong")
    await made.person("finn", banyan, name="Finn Goh")
    await made.person("eve", cassia, name="Eve Ng")
    await appoint(made)
    await appoint(made, BANYAN, who="dora")
    await appoint(made, CASSIA, who="eve")


async def membership(made: World, user_name: str, entity_id: str) -> str:
    """The identifier of a person's membership, as the store gave it."""
    key = (f"id-{user_name}", entity_id)
    found: str = (await made.provider.registry.directory.read(Membership, [key]))[key].membership_id
    return found


async def held(made: World, grant: ThirdPartyGrant = GRANT) -> ThirdPartyGrant | None:
    found: dict[tuple[str, ...], ThirdPartyGrant] = await made.provider.registry.directory.read(
        ThirdPartyGrant, [grant.key]
    )
    return found.get(grant.key)


async def row(made: World) -> ThirdPartyAssignment | None:
    keys = [ROW.key]
    found: dict[tuple[str, ...], ThirdPartyAssignment] = await made.provider.registry.directory.read(
        ThirdPartyAssignment, keys
    )
    return found.get(ROW.key)


def page(verb: str, record: ThirdPartyGrant | ThirdPartyAssignment = GRANT) -> str:
    return f"third-parties/{verb}/{object_id(record.key)}"


def status(browser: Browser) -> int:
    assert browser.response is not None
    return browser.response.status_code


async def test_an_offer_is_made_after_a_summary_and_gives_nothing_yet(made: World) -> None:
    """D56."""
    await three(made)
    browser = await in_portal(made, "third-parties/offer")
    await browser.fill_and_submit(organisation="banyan trading")
    await follow(browser, "Banyan Trading")
    await follow(browser, "Permits")
    await browser.fill_and_submit(role="Maker", start="2026-01-01", end="2099-12-31")
    expected = (
        "Banyan Trading (200000002A) may act as Maker at Permits for Acme Pte. Ltd. from 1 Jan 2026 until 31 Dec 2099."
    )
    assert expected in browser.page.text
    assert await held(made) is None
    await browser.fill_and_submit()
    assert "The offer has been made." in browser.page.text
    assert await held(made) == replace(GRANT, state="offered")
    assert [event.actor for event in await made.audit("grant.offer")] == ["user:id-alice"]
    await go(made, browser, f"third-parties/grant/{object_id(GRANT.key)}")
    history = browser.page.text.partition("Last changes")[2]
    assert "Acme Pte. Ltd. offers Banyan Trading" in history


async def test_an_organisation_is_found_by_its_whole_name_or_number_only(made: World) -> None:
    """D56, D61: nobody lists organisations."""
    await three(made)
    browser = await in_portal(made, "third-parties/offer?organisation=Banyan")
    assert "No organisation has exactly this number or name." in browser.page.text
    await browser.fill_and_submit(organisation="%")
    assert "Banyan Trading" not in browser.page.text
    await browser.fill_and_submit(organisation=BANYAN.lower())
    assert "Banyan Trading" in browser.page.text
    await browser.fill_and_submit(organisation=ACME)
    assert "This is your own organisation." in browser.page.text


async def test_the_terms_of_an_offer_are_checked_field_by_field_and_kept(made: World) -> None:
    """R-21."""
    await three(made)
    browser = await in_portal(made, f"third-parties/offer?to={BANYAN}&service=PERMITS")
    form = browser.page.form_with("start", "end")
    assert form is not None
    year = next(name for name in form.names() if name.startswith("parameter-"))
    await browser.fill_and_submit(start="2027-02-01", end="2027-01-01", **{year: "soon"})
    assert "entered=" in browser.url
    assert "Choose one role, or any role." in browser.page.text
    assert "Enter a last day that is not before the first day." in browser.page.text
    assert "Enter a year of four digits, such as 2026." in browser.page.text
    await browser.fill_and_submit(role="*", start="2027-02-30", **{year: "2027"})
    assert "Enter a date that exists." in browser.page.text
    await browser.fill_and_submit(start="2027-02-01", end="")
    assert "in any role at Permits for Acme Pte. Ltd. from 1 Feb 2027, with no end date." in browser.page.text
    assert "Year: 2027" in browser.page.text
    await browser.fill_and_submit(button="edit")
    assert browser.page.heading == "What may Banyan Trading (200000002A) do?"


async def test_an_offer_offers_the_parts_of_the_organisation_that_are_in_use(made: World) -> None:
    """D56, R-14.1: those of the client entity's own roles at the service; and says that the part is optional."""
    await three(made)
    await made.write(
        Assignment(user_id="id-alice", entity_id=ACME, service_id="PERMITS", role="Maker", sub_entity="Jurong")
    )
    browser = await in_portal(made, f"third-parties/offer?to={BANYAN}&service=PERMITS")
    assert "Part of the organisation (optional)" in browser.page.text
    assert offered(browser) == {"sub_entity-used": ["Jurong"]}


async def test_the_same_authorisation_is_not_offered_twice(made: World) -> None:
    """D56: offering it again would suspend what was accepted."""
    await three(made)
    await made.write(GRANT)
    browser = await in_portal(made, f"third-parties/offer?to={BANYAN}&service=PERMITS")
    await browser.fill_and_submit(role="Maker", start="2026-01-01")
    assert "already has this authorisation" in browser.page.text
    assert await held(made) == GRANT


async def test_an_offer_waits_for_approval_if_the_organisation_asks_for_it(made: World) -> None:
    """D55."""
    await three(made, approvals="roles")
    browser = await in_portal(made, f"third-parties/offer?to={BANYAN}&service=PERMITS")
    await browser.fill_and_submit(role="Maker", start="2026-01-01")
    assert "Say why, for the person who approves it." in browser.page.text
    await browser.fill_and_submit(role="Maker", start="2026-01-01", reason="Our accountants")
    assert "Send for approval" in browser.page.text
    assert "Make the offer" not in browser.page.text
    await browser.fill_and_submit()
    assert "Your request has been sent." in browser.page.text
    assert browser.page.heading == "Authorise Banyan Trading (200000002A)"
    assert "Offer: Banyan Trading (200000002A) may act as Maker at Permits for Acme Pte. Ltd." in browser.page.text
    assert await held(made) is None
    where = {"entity_id": ACME, "state": "pending"}
    assert len(await made.provider.registry.directory.page(ChangeRequest, where, after=("",), limit=5)) == 1


async def test_the_third_party_accepts_an_offer(made: World) -> None:
    """D56: effective from then."""
    await three(made)
    await made.write(replace(GRANT, state="offered"))
    browser = await in_portal(made, "third-parties", who="dora")
    assert "Offers that need your answer" in browser.page.text
    await follow(browser, "Acme Pte. Ltd.")
    await follow(browser, "Accept")
    assert browser.page.heading == "Accept this offer?"
    await browser.fill_and_submit()
    assert "You have accepted the offer." in browser.page.text
    assert await held(made) == GRANT


async def test_the_third_party_declines_an_offer(made: World) -> None:
    """D56."""
    await three(made)
    await made.write(replace(GRANT, state="offered"))
    browser = await in_portal(made, page("decline"), who="dora")
    await browser.fill_and_submit()
    assert "You have declined the offer." in browser.page.text
    assert await held(made) is None
    assert len(await made.audit("grant.decline")) == 1


async def test_an_offer_that_changed_meanwhile_is_not_accepted_unseen(made: World) -> None:
    """D56: the third party accepts the terms that it has read."""
    await three(made)
    await made.write(replace(GRANT, state="offered"))
    browser = await in_portal(made, page("accept"), who="dora")
    await made.write(replace(GRANT, state="offered", end_date="2030-01-01"))
    await browser.fill_and_submit()
    assert "Something changed while you were on this page." in browser.page.text
    assert "until 1 Jan 2030" in browser.page.text
    now = await held(made)
    assert now is not None
    assert now.state == "offered"


async def test_the_offering_side_cannot_accept_its_own_offer(made: World) -> None:
    """D56: nor by a form of another page."""
    await three(made)
    await made.write(replace(GRANT, state="offered"))
    browser = await in_portal(made, page("end"))
    kept = form_of(browser, "form_token")
    answer = await send(made, browser, page("accept"), **kept)
    assert answer.status_code == 404
    now = await held(made)
    assert now is not None
    assert now.state == "offered"


async def test_either_side_ends_an_authorisation_with_the_roles_under_it(made: World) -> None:
    """D56: at once, and the page says what it takes away."""
    for who in ("alice", "dora"):
        if who == "alice":
            await three(made)
        await made.write(GRANT, ROW)
        browser = await in_portal(made, page("end"), who=who)
        other = "Banyan Trading (200000002A)" if who == "alice" else "Banyan Trading"
        assert f"1 role of a person of {other} ends with it." in browser.page.text
        await browser.fill_and_submit()
        assert "The authorisation has ended." in browser.page.text
        assert await held(made) is None
        assert await row(made) is None


async def test_less_than_was_accepted_is_effective_at_once_and_more_is_an_offer_again(made: World) -> None:
    """D56."""
    await three(made)
    await made.write(GRANT)
    browser = await in_portal(made, page("change"))
    await browser.fill_and_submit(end="2027-12-31")
    assert "It takes effect at once" in browser.page.text
    await browser.fill_and_submit()
    assert await held(made) == replace(GRANT, end_date="2027-12-31")
    await go(made, browser, page("change"))
    await browser.fill_and_submit(end="")
    assert "This is more than Banyan Trading (200000002A) has accepted." in browser.page.text
    await browser.fill_and_submit()
    assert await held(made) == replace(GRANT, end_date="9999-12-31", state="offered")


async def test_the_third_party_gives_its_people_access_within_what_was_granted(made: World) -> None:
    """D56, R-21."""
    await three(made)
    await made.write(replace(GRANT, parameters=(Parameter(name="Year", value="2026"),)))
    browser = await in_portal(made, page("grant"), who="dora")
    await follow(browser, "Give a person access")
    await browser.fill_and_submit(find="fin")
    await follow(browser, "Finn Goh")
    form = browser.page.form_with("start", "end")
    assert form is not None
    year = next(name for name in form.names() if name.startswith("parameter-"))
    await browser.fill_and_submit(start="2020-01-01", end="2099-12-31", **{year: "2027"})
    assert "Choose days within the authorisation" in browser.page.text
    assert "Only these values are authorised: 2026." in browser.page.text
    await browser.fill_and_submit(start="2026-01-01", end="2099-12-31", **{year: "2026"})
    assert "finn (Finn Goh) may act as Maker at Permits for Acme Pte. Ltd." in browser.page.text
    assert await row(made) is None
    await browser.fill_and_submit()
    assert "1 person got access (Maker at Permits for Acme Pte. Ltd. (200000001A)" in browser.page.text
    assert await row(made) == replace(ROW, parameters=(Parameter(name="Year", value="2026"),))


async def test_the_third_partys_form_offers_the_values_that_its_own_people_use_for_the_client(made: World) -> None:
    """D56, D61, R-14.1: and nothing of the client entity's own roles, or of roles that have ended or are for others."""
    await three(made)
    other = replace(
        ROW, client_entity_id=CASSIA, sub_entity="Cassia's", parameters=(Parameter(name="Year", value="2021"),)
    )
    ended = replace(
        ROW, ref="ended", end_date="2020-12-31", sub_entity="Closed", parameters=(Parameter(name="Year", value="2020"),)
    )
    own = Assignment(user_id="id-alice", entity_id=ACME, service_id="PERMITS", role="Maker", sub_entity="Acme's")
    used = replace(ROW, sub_entity="Jurong", parameters=(Parameter(name="Year", value="2026"),))
    await made.write(GRANT, used, other, ended, own)
    browser = await in_portal(made, f"{page('assign')}?person={await membership(made, 'finn', BANYAN)}", who="dora")
    assert "Part of the organisation (optional)" in browser.page.text
    assert offered(browser) == {"sub_entity-used": ["Jurong"]}
    assert "Leave it empty if there is none. In use: 2026." in browser.page.text
    await go(made, browser, page("change-role", used))
    assert "In use: 2026." in browser.page.text


async def test_what_a_person_has_for_the_client_is_said_where_they_are_chosen_and_again_before_the_role(
    made: World,
) -> None:
    """D54, D56: at every service of this client entity; what has ended, or is for another one, is left out."""
    await three(made)
    await made.write(Service(service_id="TAX", name="Tax", third_parties=True))
    at_tax = replace(ROW, service_id="TAX", role="")
    ended = replace(ROW, role="Checker", end_date="2020-12-31")
    other = replace(ROW, client_entity_id=CASSIA, role="Checker")
    await made.write(GRANT, replace(ROW, sub_entity="Jurong"), at_tax, ended, other)
    browser = await in_portal(made, page("assign"), who="dora")
    assert "Already given" in browser.page.text
    assert "Permits: Maker" in browser.page.text
    assert "Tax" in browser.page.text
    assert "Checker" not in browser.page.text
    await follow(browser, "Finn Goh")
    assert "Already given" in browser.page.text
    assert (
        "finn (Finn Goh) may act as Maker at Permits for Acme Pte. Ltd. (200000001A) from 1 Jan 2026 until 31 Dec 2099."
        in browser.page.text
    )
    assert "Part of the organisation: Jurong" in browser.page.text
    assert "finn (Finn Goh) may act at Tax for Acme Pte. Ltd." in browser.page.text
    assert "as Checker" not in browser.page.text
    await go(made, browser, f"{page('assign')}?person={await membership(made, 'dora', BANYAN)}")
    assert "Already given" not in browser.page.text


@pytest.mark.parametrize("search", ["finn", "goh", "finn@firm.example", "FIN"])
async def test_the_third_partys_people_are_found_by_name_user_name_and_address(made: World, search: str) -> None:
    """D61: as their organisation knows them."""
    await three(made)
    finn = await made.provider.registry.directory.user("id-finn")
    assert finn is not None
    await made.write(replace(finn, email="finn@firm.example"), GRANT)
    browser = await in_portal(made, page("assign"), who="dora")
    await browser.fill_and_submit(find=search)
    assert "Finn Goh" in browser.page.text
    await browser.fill_and_submit(find="nobody")
    assert "Nobody found. Check the spelling" in browser.page.text


async def test_the_third_party_changes_access_and_takes_it_away(made: World) -> None:
    """D56."""
    await three(made)
    await made.write(GRANT, ROW)
    browser = await in_portal(made, page("grant"), who="dora")
    await follow(browser, "Change finn (Finn Goh)")
    await browser.fill_and_submit(end="2027-12-31")
    await browser.fill_and_submit()
    assert await row(made) == replace(ROW, end_date="2027-12-31")
    await follow(browser, "Remove finn (Finn Goh)")
    assert "finn (Finn Goh) may no longer act as Maker at Permits for Acme Pte. Ltd." in browser.page.text
    await browser.fill_and_submit()
    assert "1 person lost access (Maker at Permits for Acme Pte. Ltd. (200000001A)" in browser.page.text
    assert await row(made) is None


async def test_the_client_sees_who_of_their_people_may_act_and_nothing_more(made: World) -> None:
    """D61, D68: user name and name, service, role, dates, last sign-in for it."""
    await three(made)
    await made.write(GRANT, ROW, entity("200000004A", "Durian Tax"))
    browser = await in_portal(made, page("grant"))
    assert all(each in browser.page.text for each in ("finn (Finn Goh)", "Permits", "Maker", "until 31 Dec 2099"))
    assert "finn@" not in browser.page.text
    assert "Give a person access" not in browser.page.text
    assert "Remove" not in browser.page.text
    await go(made, browser, page("end"))
    for verb in ("take-away", "change-role"):
        answer = await send(made, browser, page(verb, ROW), **token(browser), confirmed="yes", end="2027-01-01")
        assert answer.status_code == 404
    assert await row(made) == ROW


async def test_the_last_sign_in_to_the_service_is_shown(made: World) -> None:
    """D61."""
    await three(made)
    await made.write(GRANT, ROW)
    finn = await made.browser()
    rp = await made.relying_party()
    await finn.open(await rp.begin())
    await made.factors(finn, made.people["finn"])
    browser = await in_portal(made, page("grant"))
    assert "none on record" not in browser.page.text


async def test_strangers_find_neither_an_authorisation_nor_a_role_under_it(made: World) -> None:
    """D54, D61: the administrator of another entity, with a right token of their own."""
    await three(made)
    await made.write(GRANT, ROW)
    browser = await in_portal(made, "third-parties/offer?to=200000001A&service=PERMITS", who="eve")
    kept = token(browser)
    of_grant = [page(verb) for verb in ("accept", "decline", "end", "change", "assign")]
    sent = {**kept, "confirmed": "yes", "step": "x", "person": "id-eve", "start": "2026-01-01"}
    for path in (*of_grant, page("change-role", ROW), page("take-away", ROW)):
        answer = await send(made, browser, path, **sent)
        assert answer.status_code == 404, path
    await go(made, browser, page("grant"))
    assert status(browser) == 404
    assert await held(made) == GRANT
    assert await row(made) == ROW


async def test_an_offer_that_is_not_accepted_and_one_that_has_ended_give_no_access(made: World) -> None:
    """D56, R-21."""
    await three(made)
    await made.write(replace(GRANT, state="offered"))
    browser = await in_portal(made, "third-parties/offer", who="dora")
    await go(made, browser, page("assign"))
    assert status(browser) == 404
    await made.write(replace(GRANT, start_date="2020-01-01", end_date="2020-12-31"))
    await go(made, browser, f"{page('assign')}?person={await membership(made, 'finn', BANYAN)}")
    await browser.fill_and_submit(start="2026-01-01", end="2027-01-01")
    assert "Choose days within the authorisation" in browser.page.text
    assert await row(made) is None


async def test_another_grants_third_party_gives_no_access_under_this_one(made: World) -> None:
    """D56: nor to people of others."""
    await three(made)
    own = replace(GRANT, entity_id=CASSIA)
    await made.write(GRANT, own)
    eve, finn = await membership(made, "eve", CASSIA), await membership(made, "finn", BANYAN)
    browser = await in_portal(made, f"{page('assign', own)}?person={eve}", who="eve")
    kept = token(browser)
    fields = {"start": "2026-01-01", "end": "2027-01-01", "confirmed": "yes"}
    other = await send(made, browser, page("assign"), **kept, **fields, person=eve)
    stranger = await send(made, browser, page("assign", own), **kept, **fields, person=finn)
    assert (other.status_code, stranger.status_code) == (404, 404)
    assert await made.provider.registry.directory.page(ThirdPartyAssignment, {}, after=("",) * 7, limit=5) == []


async def test_nobody_gives_themselves_access(made: World) -> None:
    """D54: with another administrator there."""
    await three(made)
    await made.write(GRANT)
    await appoint(made, BANYAN, who="finn")
    browser = await in_portal(made, f"{page('assign')}?person={await membership(made, 'dora', BANYAN)}", who="dora")
    await browser.fill_and_submit(start="2026-12-01", end="2027-01-01")
    await browser.fill_and_submit()
    assert "You cannot do this" in browser.page.text
    assert await made.provider.registry.directory.page(ThirdPartyAssignment, {}, after=("",) * 7, limit=5) == []


async def test_a_sub_administrator_sees_no_third_parties(made: World) -> None:
    """D53."""
    await three(made)
    await made.write(GRANT)
    await appoint(made, level="sub_administrator", services=("PERMITS",))
    browser = await in_portal(made, "third-parties")
    assert browser.page.heading == "You cannot open this page"
    await go(made, browser, page("grant"))
    assert status(browser) in {403, 404}


async def test_an_offer_that_is_sent_too_late_is_there_again_after_the_sign_in(made: World) -> None:
    """D54: a change needs a sign-in at most 15 minutes old; it goes on at the page that was asked for."""
    await three(made)
    browser = await in_portal(made, f"third-parties/offer?to={BANYAN}&service=PERMITS")
    made.clock.pass_(1000)
    await browser.fill_and_submit(role="Checker", start="2026-05-01", end="2027-01-01")
    assert browser.page.heading == "Confirm it is you, Alice Tan"
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == "Check the offer"
    form = browser.page.form_with("start", "end")
    assert form is not None
    assert dict(form.fields(None)).items() >= {"role": "Checker", "start": "2026-05-01", "end": "2027-01-01"}.items()


@pytest.mark.parametrize("bound_to", [BANYAN, ""])
async def test_an_acceptance_by_a_client_waits_for_the_approval_of_the_third_party(made: World, bound_to: str) -> None:
    """D55, D56: a client of no entity waits as one that is bound to the third party."""
    await three(made)
    waiting = replace(GRANT, state="offered")
    await made.write(entity(BANYAN, "Banyan Trading", approvals="roles"), waiting)
    client = ApiClient(client_id="hr", scopes=ALL_SCOPES, entity_id=bound_to)
    asking = RequestDetails("r", made.clock(), "x")
    request = await write_changes(made.provider.registry, client, [Change(waiting, GRANT)], asking=asking)
    assert await held(made) == waiting
    assert request is not None
    assert request.entity_id == BANYAN


@pytest.mark.parametrize("strict", [ACME, BANYAN])
async def test_what_needs_both_sides_and_an_approval_is_refused(made: World, strict: str) -> None:
    """D55, D56: the answer says how to go on."""
    await three(made)
    await made.write(entity(strict, "Strict", approvals="roles"))
    client = ApiClient(client_id="hr", scopes=ALL_SCOPES)
    asking = RequestDetails("r", made.clock(), "x")
    with pytest.raises(Refused, match="offer it, then accept it"):
        await write_changes(made.provider.registry, client, [Change(None, GRANT)], asking=asking)
    assert await held(made) is None


async def test_the_third_partys_approver_carries_out_an_acceptance_by_a_client(made: World) -> None:
    """D55, D56."""
    await three(made)
    waiting = replace(GRANT, state="offered")
    await made.write(entity(BANYAN, "Banyan Trading", approvals="roles"), waiting)
    await made.write(RegisteredApiClient(client_id="hr", name="HR", scopes=tuple(sorted(ALL_SCOPES)), jwks="{}"))
    client = ApiClient(client_id="hr", scopes=ALL_SCOPES)
    asking = RequestDetails("r", made.clock(), "x")
    request = await write_changes(made.provider.registry, client, [Change(waiting, GRANT)], asking=asking)
    assert request is not None
    browser = await in_portal(made, f"requests/{request.request_id}", who="dora")
    await browser.fill_and_submit("reason", button="approve", reason="Agreed by both")
    assert await held(made) == GRANT


async def leave(made: World, who: str, entity_id: str) -> None:
    token = ProvisioningToken(token_id="t", entity_id=entity_id)
    await end_member(made.provider.registry, await membership(made, who, entity_id), actor=token)


def acting(made: World, who: str, entity_id: str) -> EntityAdministrator:
    now = made.clock()
    return EntityAdministrator(
        user_id=f"id-{who}", entity_id=entity_id, level="owner", services=(), alone=False, auth_time=now, now=now
    )


async def test_an_offer_was_not_made_by_the_third_party_when_its_author_has_left(made: World) -> None:
    """D57, D68: who let Banyan in."""
    await three(made)
    await made.person("bob", entity(ACME, "Acme Pte. Ltd."), name="Bob Lim")
    await appoint(made, who="bob")
    registry, owner = made.provider.registry, acting(made, "bob", ACME)
    await write_changes(registry, owner, [Change(None, replace(GRANT, state="offered"))])
    browser = await in_portal(made, "history?kind=third-parties")
    assert "bob (Bob Lim) Acme Pte. Ltd. offers Banyan Trading" in browser.page.text
    await leave(made, "bob", ACME)
    for shown in ("history?kind=third-parties", page("grant")):
        await go(made, browser, shown)
        assert "Somebody of Banyan" not in browser.page.text
        assert "bob" in browser.page.text


@pytest.mark.parametrize("ended", [False, True])
async def test_a_third_partys_role_was_not_given_by_the_client_when_its_author_has_left(
    made: World, ended: bool
) -> None:
    """D57, D68: who gave Finn the role, and who ended the authorisation under it."""
    await three(made)
    await made.write(GRANT)
    await made.person("dan", entity(BANYAN, "Banyan Trading"), name="Dan Lee")
    await appoint(made, BANYAN, who="dan")
    registry, owner = made.provider.registry, acting(made, "dan", BANYAN)
    await write_changes(registry, owner, [Change(None, ROW)])
    if ended:
        await write_changes(registry, owner, [Change(GRANT, None)])
    await leave(made, "dan", BANYAN)
    browser = await in_portal(made, "history?kind=third-parties", who="dora")
    assert "finn (Finn Goh)" in browser.page.text
    assert "Somebody of Acme" not in browser.page.text
    client = await in_portal(made, "history?kind=third-parties")
    assert "Somebody of Banyan" in client.page.text
    assert "dan" not in client.page.text


async def test_the_system_of_a_third_party_is_not_called_the_readers_own(made: World) -> None:
    """D57, D61: Banyan's token ends Finn's membership, and with it what he may do for Acme, which has no token."""
    await three(made)
    await made.write(GRANT, ROW)
    await leave(made, "finn", BANYAN)
    browser = await in_portal(made, "history?kind=third-parties")
    assert "lost access as Maker at Permits" in browser.page.text
    assert "Your system" not in browser.page.text


@pytest.mark.parametrize("who", ["alice", "dora"])
async def test_both_sides_read_for_what_somebody_may_act(made: World, who: str) -> None:
    """D56: the part and the values, of each right."""
    await three(made)
    treasury = replace(ROW, sub_entity="Treasury")
    canteen = replace(ROW, sub_entity="Canteen", parameters=(Parameter(name="Year", value="2026"),))
    any_role = replace(GRANT, role="")
    await made.write(any_role, treasury, canteen)
    browser = await in_portal(made, page("grant", any_role), who=who)
    assert {each for each in ("Treasury", "Canteen", "Year: 2026") if each not in browser.page.text} == set()
    if who == "dora":
        await go(made, browser, page("change-role", treasury))
        assert "Treasury" in browser.page.text


async def test_who_approves_wider_terms_reads_that_nobody_may_act_until_they_are_accepted(made: World) -> None:
    """D55, D56: accepted terms that become an offer again."""
    await three(made)
    await made.person("bob", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Bob Lim")
    await appoint(made, who="bob")
    await made.write(GRANT)
    accepted = await made.provider.registry.directory.find(ThirdPartyGrant, *GRANT.key)
    assert accepted is not None
    request = await requested(made, Change(accepted, replace(accepted, start_date="2025-01-01", state="offered")))
    browser = await in_portal(made, f"requests/decide/{request.request_id}")
    assert "none of its people may act for you here" in browser.page.text
    assert "Accept the offer" not in browser.page.text
    await browser.open(portal(made, f"requests/{request.request_id}"), site="same-origin")
    assert browser.page.heading.startswith("Change the authorisation of Banyan Trading")


@pytest.mark.parametrize("held", [False, True])
async def test_access_for_another_organisation_ends_when_the_check_said(made: World, held: bool) -> None:
    """D54, D56: an authorisation that was changed meanwhile shows the form again."""
    await acme(made)
    service = Service(service_id="PERMITS", name="Permits", roles=("Maker", "Checker"), third_parties=True)
    grant = replace(GRANT, client_entity_id=BANYAN, entity_id=ACME, end_date="2027-12-31")
    await made.write(entity(ACME, "Acme Pte. Ltd."), entity(BANYAN, "Banyan Trading"), service, grant)
    registry = made.provider.registry
    cora = await registry.directory.find(Membership, "id-cora", ACME)
    assert cora is not None
    given = f"third-parties/assign/{object_id(grant.key)}?person={cora.membership_id}"
    row = replace(ROW, user_id="id-cora", entity_id=ACME, client_entity_id=BANYAN, end_date="2027-06-30")
    if held:
        await made.write(row)
        given = f"third-parties/change-role/{object_id(row.key)}"
    browser = await in_portal(made, given)
    await browser.fill_and_submit("end", end="")
    assert "until 31 Dec 2027" in browser.page.text
    await made.write(replace(grant, end_date="2035-12-31"))  # offered by Banyan, and accepted by Bob
    await browser.fill_and_submit("form_token", "names")
    assert await registry.directory.find(ThirdPartyAssignment, *row.key) == (row if held else None)


@pytest.mark.parametrize("state", ["accepted", "offered"])
async def test_the_page_that_ends_an_authorisation_says_which(made: World, state: str) -> None:
    """D56, D68: of two for one service."""
    await acme(made)
    one = replace(GRANT, state=state)
    await made.write(
        Service(service_id="PERMITS", name="Permits", roles=("Maker", "Checker"), third_parties=True),
        entity(BANYAN, "Banyan Trading"), one, replace(one, role="Checker"),
    )  # fmt: skip
    browser = await in_portal(made, f"third-parties/end/{object_id(one.key)}")
    assert "Maker at Permits" in browser.page.text


@pytest.mark.parametrize("part", ["East", "West"])
async def test_who_approves_an_acceptance_or_a_wider_offer_reads_for_which_part(made: World, part: str) -> None:
    """D55, D56: an organisation can have several at one service."""
    await acme(made)
    harbour = Service(
        service_id="HARBOUR", name="Harbour permits", roles=("Pilot",), sub_entity="optional", third_parties=True
    )
    offer = replace(GRANT, client_entity_id=BANYAN, entity_id=ACME, service_id="HARBOUR", role="Pilot", state="offered")
    given = replace(offer, client_entity_id=ACME, entity_id=BANYAN, state="accepted", end_date="2027-12-31")
    both = [replace(each, sub_entity=side) for each in (offer, given) for side in ("East", "West")]
    await made.write(entity(BANYAN, "Banyan Trading"), harbour, *both)
    offered, accepted = (next(each for each in some if each.sub_entity == part) for some in (both[:2], both[2:]))
    for change in (
        Change(offered, replace(offered, state="accepted")),
        Change(accepted, replace(accepted, state="offered", end_date="2028-12-31")),
    ):
        made.clock.now += 1
        found = await requested(made, change)
        browser = await in_portal(made, f"requests/{found.request_id}")
        assert f"Part of the organisation: {part}" in browser.page.text
