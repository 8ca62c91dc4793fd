"""Organisations in the console: search, creation with a first owner, disabling, another owner (D53, D54, D57)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.records import (
    Administrator,
    Entity,
    Membership,
    Operator,
    OperatorLevel,
    Service,
    ThirdPartyGrant,
)
from tests.console.scene import ACME, BANYAN, REASON, WITHOUT_PASSKEY, demoted, go, in_console, send
from tests.postbox import Postbox
from tests.sign_in.world import World, entity, form_of, new_world, shown_again

OWNER = Administrator(user_id="id-alice", entity_id=ACME, level="owner")
NEW = {"entity_id": "T08SS0001A", "name": "Harbour Society", "type": "UEN", "country": "SG", "status": "Registered"}
INVITED = {"owner_name": "Mei Lin", "owner_email": "mei@harbour.example"}


async def levels(made: World, entity_id: str) -> dict[str, str]:
    """User identifier → level of the administrators of an entity."""
    held = await made.provider.registry.directory.administrators(entity_id)
    return {each.record.user_id: each.record.level for each in held}


@pytest.mark.parametrize(("sort", "search"), [("name", "ACME"), ("number", "R-77"), ("", ACME)])
async def test_organisations_are_found_by_the_beginning_of_name_number_or_identifier(sort: str, search: str) -> None:
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(replace(entity(ACME, "Acme Pte. Ltd."), registration_number="R-77"))
        browser = await in_console(made, "support")
        await go(made, browser, f"entities?sort={sort}&search={search}")
        assert "Acme Pte. Ltd." in browser.page.text
        assert "Banyan" not in browser.page.text
        assert "Add an organisation" not in browser.page.text


async def test_an_organisation_is_shown_with_administrators_people_and_third_parties() -> None:
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(OWNER, ThirdPartyGrant(client_entity_id=ACME, entity_id=BANYAN, service_id="PERMITS"))
        browser = await in_console(made, "support", f"entities/{ACME}")
        await go(made, browser, f"entities/{ACME}")
        for shown in ("Acme Pte. Ltd.", "Alice Tan", "Owner", "1 person", "Nothing needs approval", "Banyan Trading"):
            assert shown in browser.page.text, shown
        assert "Any role" in browser.page.text
        await made.write(Service(service_id="PERMITS", name="Permits"))
        await go(made, browser, f"entities/{ACME}")
        assert "Any role" not in browser.page.text
        await go(made, browser, f"entities/{ACME}/people")
        assert "alice" in browser.page.text
        assert await go(made, browser, "entities/nothing") == 404


async def test_the_facts_of_an_organisation_stand_beside_its_history() -> None:
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", f"entities/{ACME}/disable")
        await browser.fill_and_submit("form_token", "reason", reason=REASON)
        assert browser.response is not None
        beside = browser.response.text.partition('<div class="beside">')[2].partition("<h2>Administrators</h2>")[0]
        assert beside.index('<dl class="facts">') < beside.index("<h2>History</h2>") < beside.index("was disabled")


async def test_the_history_of_an_organisation_folds_what_one_request_changed() -> None:
    """D57, D65: one line, with who asked for it and who approved it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.person("bob", name="Bob Lim")
        for number in range(12):
            event = AuditEvent(
                actor="user:id-alice", action=AuditAction.ASSIGNMENT_ADD, object=f"id-p{number}/{ACME}/PERMITS/Maker//",
                entity_id=ACME, detail={"approval": "r1", "approved_by": "user:id-bob"},
            )  # fmt: skip
            await made.provider.registry.audit.write(event, now=made.clock())
        browser = await in_console(made, "operator", f"entities/{ACME}")
        assert browser.page.text.count("alice , approved by bob") == 1
        assert "12 people" in browser.page.text


async def test_support_does_not_see_an_operator_among_the_people_of_an_organisation() -> None:
    """D53: nothing on operators."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(OWNER, Operator(user_id="id-alice", level="auditor"))
        browser = await in_console(made, "support")
        for page in (f"entities/{ACME}", f"entities/{ACME}/people"):
            await go(made, browser, page)
            assert "Alice Tan" not in browser.page.text


async def test_an_organisation_is_added_with_its_first_owner_who_is_invited() -> None:
    """R-12.4, D53, D60."""
    postbox = Postbox()

    async with new_world(postbox=postbox, **WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-organisation")
        await browser.fill_and_submit(**NEW, **INVITED, reason=REASON)
        assert "The organisation has been added" in browser.page.text
        assert "Mei Lin" in browser.page.text
        assert list((await levels(made, NEW["entity_id"])).values()) == ["owner"]
        for action in ("entity.add", "membership.invite", "administrator.add"):
            (entry,) = await made.audit(action)
            assert (entry.actor, entry.detail["reason_given"]) == ("operator:id-the-operator", REASON)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"entity_id": "has space"}, "Use 1 to 10 letters"),
        ({"entity_id": ACME}, "already"),
        ({"country": "Singapore"}, "two capital letters"),
        ({"name": ""}, "Enter the name"),
        ({"owner_email": "nobody"}, "Enter an e-mail address"),
        ({"reason": ""}, "Say why"),
    ],
)
async def test_what_is_wrong_with_a_new_organisation_is_said_and_nothing_is_written(
    changed: dict[str, str], sentence: str
) -> None:
    """R-12.4, R-14.2: what was typed is kept."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-organisation")
        await browser.fill_and_submit(**{**NEW, **INVITED, "reason": REASON, **changed})
        assert browser.page.heading == "Add an organisation"
        assert sentence in browser.page.text
        found = await made.provider.registry.directory.read(Entity, [(NEW["entity_id"],)])
        assert not found
        assert browser.response is not None
        assert "Mei Lin" in browser.response.text


async def test_an_organisation_is_disabled_and_enabled_with_a_reason() -> None:
    """D50, D57; the second of two is told."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", f"entities/{ACME}/disable")
        await browser.fill_and_submit(reason="")
        assert "Say why" in browser.page.text
        await browser.fill_and_submit(reason=REASON)
        assert "The organisation has been disabled" in browser.page.text
        await go(made, browser, f"entities/{ACME}/disable")
        await browser.fill_and_submit(reason=REASON)
        assert "Somebody has already done this" in browser.page.text
        await go(made, browser, f"entities/{ACME}/enable")
        await browser.fill_and_submit(reason=REASON)
        assert "The organisation has been enabled" in browser.page.text
        for action in ("entity.disable", "entity.enable"):
            (entry,) = await made.audit(action)
            assert entry.detail["reason_given"] == REASON


async def test_a_member_becomes_owner_in_place_of_one_who_is_gone() -> None:
    """D53, D54: both changes or none, and the reason is kept."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(OWNER)
        await made.person("bob", entity(ACME, "Acme Pte. Ltd."), name="Bob Lee")
        browser = await in_console(made, "operator", f"entities/{ACME}/owner")
        await browser.fill_and_submit(way="member", user_name="nobody", instead_of="id-alice")
        assert "Nobody with this user name belongs" in browser.page.text
        assert await levels(made, ACME) == {"id-alice": "owner"}
        await browser.fill_and_submit(way="member", user_name="Bob", instead_of="id-alice")
        await browser.fill_and_submit(reason=REASON)
        assert "The owner has been appointed" in browser.page.text
        assert await levels(made, ACME) == {"id-bob": "owner"}
        for action in ("administrator.add", "administrator.remove"):
            (entry,) = await made.audit(action)
            assert entry.detail["reason_given"] == REASON


async def test_a_new_owner_is_invited_and_the_invitation_is_sent_again_later() -> None:
    """D53, D60."""
    postbox = Postbox()

    async with new_world(postbox=postbox, **WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", f"entities/{ACME}")
        assert "No owner can act" in browser.page.text
        await go(made, browser, f"entities/{ACME}/owner")
        await browser.fill_and_submit(way="invited", **INVITED)
        await browser.fill_and_submit(reason=REASON)
        assert "Mei Lin" in browser.page.text
        again = next(url for url, _ in browser.page.links if "/invitation/" in url)
        made.clock.pass_(3600)
        support = await in_console(made, "support")
        await support.open(f"{made.base}{again}", site="same-origin")
        invited = await made.provider.registry.provisioning.member(again.rpartition("/")[2])
        assert invited is not None
        sent = len(postbox.emails)
        await made.write(replace(invited.membership, email="other@harbour.example"))
        await support.fill_and_submit(reason=REASON)
        assert "Names have changed since you looked." in support.page.text
        assert "other@harbour.example" in support.page.text
        assert len(postbox.emails) == sent
        await support.fill_and_submit(reason=REASON)
        assert "The invitation is on its way" in support.page.text
        (entry,) = await made.audit("membership.resend")
        assert entry.actor == "operator:id-the-support"


@pytest.mark.parametrize("level", ["support", "auditor"])
async def test_what_only_an_operator_does_is_neither_shown_nor_done(level: OperatorLevel) -> None:
    """D53: hostile forms with a right token of their own."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(OWNER)
        browser = await demoted(made, level, "new-organisation")
        forms = {
            "new-organisation": {**NEW, **INVITED},
            f"entities/{ACME}/disable": {},
            f"entities/{ACME}/enable": {},
            f"entities/{ACME}/owner": {"way": "invited", **INVITED, "instead_of": "id-alice"},
        }
        before = len(await made.provider.registry.audit.entries(limit=1000))
        for page, fields in forms.items():
            assert (await send(made, browser, page, reason=REASON, **fields)).status_code == 403, page
        assert len(await made.provider.registry.audit.entries(limit=1000)) == before
        for page in forms:
            assert await go(made, browser, page) == 403, page
        await go(made, browser, f"entities/{ACME}")
        assert {url.rpartition("/")[2] for url, _ in browser.page.links}.isdisjoint({"owner", "disable", "enable"})


async def test_an_auditor_sends_no_invitation_again() -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        operator = await in_console(made, "operator", f"entities/{ACME}/owner")
        await operator.fill_and_submit(way="invited", **INVITED)
        await operator.fill_and_submit(reason=REASON)
        page = next(url for url, _ in operator.page.links if "/invitation/" in url).partition("/console/")[2]
        made.clock.pass_(3600)
        browser = await in_console(made, "operator", page)
        await made.write(Operator(user_id="id-the-operator", level="auditor"))
        assert (await send(made, browser, page, reason=REASON)).status_code == 403
        assert not await made.audit("membership.resend")


EDIT = f"entities/{ACME}/edit"


async def stored(made: World) -> Entity:
    found: Entity = (await made.provider.registry.directory.read(Entity, [(ACME,)]))[ACME,]
    return found


async def test_an_organisations_facts_are_changed_with_a_reason_and_nothing_else() -> None:
    """R-12.4, D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", EDIT)
        before = await stored(made)
        await browser.fill_and_submit(reason=REASON)
        assert "You have not changed anything." in browser.page.text
        await browser.fill_and_submit(name="Acme Holdings", status="Withdrawn", approvals="roles", reason="")
        assert "Say why" in browser.page.text
        await browser.fill_and_submit(reason=REASON)
        assert "The organisation has been changed." in browser.page.text
        assert await stored(made) == replace(before, name="Acme Holdings", status="Withdrawn", approvals="roles")
        [entry] = await made.audit("entity.update")
        assert entry.detail["reason_given"] == REASON
        assert (entry.before["name"], entry.after["name"]) == (before.name, "Acme Holdings")


async def test_each_wrong_fact_is_named_at_its_field_and_nothing_is_changed() -> None:
    """R-12.4."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", EDIT)
        before = await stored(made)
        await browser.fill_and_submit(name="", country="Singapore", registration_number="9" * 51, reason=REASON)
        for error in ("Enter the name of the organisation", "two capital letters", "Use at most 50 characters"):
            assert error in browser.page.text
        answer = await send(
            made, browser, EDIT, step=form_of(browser, "step")["step"], type="X", status="Y", approvals="Z"
        )
        answer = await shown_again(browser, answer)
        for error in ("Choose how the organisation is registered", "one of the statuses", "what needs approval"):
            assert error in answer.text
        assert await stored(made) == before


async def test_a_form_from_before_somebody_elses_change_saves_nothing() -> None:
    """R-12.4."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", EDIT)
        changed = replace(await stored(made), name="Acme Meanwhile")
        await made.write(changed)
        await browser.fill_and_submit(status="Withdrawn", reason=REASON)
        assert "Your changes were not saved: this is the organisation as it is now." in browser.page.text
        assert form_of(browser, "name")["name"] == "Acme Meanwhile"
        assert await stored(made) == changed


@pytest.mark.parametrize("level", ["support", "auditor"])
async def test_only_operators_change_an_organisations_facts(level: OperatorLevel) -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        before = await stored(made)
        browser = await demoted(made, level, EDIT)
        facts = {"type": "UEN", "country": "SG", "registration_number": "1", "name": "Mine", "status": ""}
        step = form_of(browser, "step")["step"]
        answer = await send(made, browser, EDIT, **facts, step=step, approvals="none", reason=REASON)
        assert answer.status_code == 403
        assert await go(made, browser, EDIT) == 403
        assert await stored(made) == before


@pytest.mark.parametrize("page", ["entities/{}", "entities/{}/people", "people/id-alice"])
@pytest.mark.parametrize(
    ("of_membership", "of_account", "word"),
    [(True, True, "Active"), (False, True, "Suspended"), (True, False, "Account disabled")],
)
async def test_the_state_of_a_member_has_the_word_that_the_portal_has(
    page: str, of_membership: bool, of_account: bool, word: str
) -> None:
    """docs/wording.md: of an administrator, in the people of an organisation, and on the page of the person."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        registry = made.provider.registry
        person = await registry.directory.user("id-alice")
        member = await registry.directory.find(Membership, "id-alice", ACME)
        assert person is not None
        assert member is not None
        await made.write(
            replace(person, enabled=of_account),
            replace(member, enabled=of_membership),
            Administrator(user_id="id-alice", entity_id=ACME, level="owner"),
        )
        browser = await in_console(made, "auditor", page.format(ACME))
        assert f"Owner{' All' if page.endswith('}') else ''} {word}" in browser.page.text


async def test_the_page_of_a_person_says_which_organisation_is_disabled() -> None:
    """docs/wording.md: their membership of it is as it was."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(replace(entity(ACME, "Acme Pte. Ltd."), enabled=False))
        browser = await in_console(made, "auditor", "people/id-alice")
        assert "Active This organisation is disabled." in browser.page.text


async def test_an_authorisation_that_is_over_is_not_called_active() -> None:
    """docs/wording.md."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        given = ThirdPartyGrant(client_entity_id=ACME, entity_id=BANYAN, service_id="PERMITS", role="Maker")
        await made.write(
            entity(BANYAN, "Banyan"),
            replace(given, end_date="2026-12-31"),
            replace(given, role="Viewer", start_date="2027-12-31"),
            replace(given, role="Checker"),
        )
        browser = await in_console(made, "auditor", f"entities/{ACME}")
        assert "Maker 31 Dec 2026 Ended" in browser.page.text
        assert "Viewer No end Not started yet" in browser.page.text
        assert "Checker No end Active" in browser.page.text
