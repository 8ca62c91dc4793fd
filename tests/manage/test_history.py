"""The history in the portal: sentences, filters, one change, CSV (D57, D61)."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

import corpid
from corpid.flows.directory import approvals
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.flows.operations.history import HistoryNames
from corpid.rules.audit import AuditEntry, AuditEvent
from corpid.rules.directory.records import (
    Administrator,
    AdministratorLevel,
    Assignment,
    Change,
    Service,
    ThirdPartyGrant,
)
from corpid.rules.fields import fields_of
from corpid.texts import Phrase
from corpid.web.pages import change_sentences
from corpid.web.pages.responses import CsvFile
from tests import contexts
from tests.manage.scene import ACME, BANYAN, appoint, follow, go, in_portal, portal
from tests.sign_in.world import World, entity

if TYPE_CHECKING:
    from corpid.stores.sql.registry import Registry
    from corpid_dev.relying_party.browser import Browser

ROLE = Assignment(user_id="id-bob", entity_id=ACME, service_id="PERMITS", role="Maker", end_date="2027-12-31")
KEY = "/".join(ROLE.key)


async def write(made: World, *changes: Change) -> None:
    registry: Registry = made.provider.registry
    await registry.directory.write(list(changes))


def event(
    action: str, *, by: str = "user:id-alice", entity_id: str = ACME, subject: str = KEY, **more: str
) -> AuditEvent:
    other = more.pop("other", "")
    return AuditEvent(actor=by, action=action, object=subject, entity_id=entity_id, other_entity_id=other, detail=more)


async def scene(made: World) -> None:
    """Alice gave Bob a role, which was changed later."""
    await appoint(made)
    await made.person("bob", entity(ACME, "Acme Pte. Ltd."), name="Bob Lim")
    await write(made, Change(None, ROLE, event("assignment.add", address="192.0.2.7", reason_given="because")))


async def shown(made: World, browser: Browser, query: str = "") -> str:
    await go(made, browser, f"history{query}")
    return browser.page.text


async def test_a_change_is_told_in_a_sentence_with_names(made: World) -> None:
    """D57: who, what, before and after; D61: no address."""
    await scene(made)
    browser = await in_portal(made, "history")
    assert "bob (Bob Lim) got access as Maker at Permits" in browser.page.text
    assert "Alice Tan" in browser.page.text
    await follow(made, browser, "bob (Bob Lim) got access as Maker at Permits")
    assert browser.page.heading == "bob (Bob Lim) got access as Maker at Permits"
    assert "31 Dec 2027" in browser.page.text
    assert "192.0.2.7" not in browser.page.text
    assert "because" not in browser.page.text


async def test_a_request_is_named_by_what_it_asks_for(made: World) -> None:
    """D57: person, role and service, also once it is decided; of a request that is kept no more, that it was made."""
    await scene(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="roles"))
    await appoint(made, who="bob")
    registry, now = made.provider.registry, made.clock()
    alice, bob = [
        await load_administrator(registry, who, ACME, auth_time=now, now=now) for who in ("id-alice", "id-bob")
    ]
    change = Change(ROLE, None)
    asked = await write_changes(registry, alice, [change], asking=RequestDetails("No longer needed", now, "one"))
    assert asked is not None
    await approvals.decline_request(registry, asked.request_id, actor=bob, reason="It is", now=now)
    await write(made, Change(None, asked, event("approval.request", subject="gone")))
    browser = await in_portal(made, "history")
    for verb in ("A change was requested", "A request was declined"):
        assert f"{verb}: Remove the access of bob (Bob Lim): Maker at Permits" in browser.page.text
    assert "A change was requested" in [text.strip() for _, text in browser.page.links]


async def test_changes_that_were_made_together_are_one_line_that_unfolds_to_each(made: World) -> None:
    """D57, D81: of any length, with how many there are; the next page begins after them."""
    await scene(made)
    for number in range(120):
        await made.person(f"t{number:03}", entity(ACME, "Acme Pte. Ltd."), name=f"Temp {number:03}")
    roles = [replace(ROLE, user_id=f"id-t{number:03}") for number in range(120)]
    keys = ("/".join(each.key) for each in roles)
    await write(
        made,
        *(
            Change(None, role, event("assignment.add", subject=key, role="Maker", batch="b"))
            for role, key in zip(roles, keys, strict=True)
        ),
    )
    await write(made, Change(ROLE, None, event("assignment.remove")))
    browser = await in_portal(made, "history")
    line = "120 people got access (Maker at Permits): t000 (Temp 000), t001 (Temp 001) and 118 more"
    assert browser.page.text.count(line) == 1
    assert "t119 (Temp 119) got access as Maker at Permits" in browser.page.text
    assert "And 20 more" in browser.page.text
    assert "bob (Bob Lim) got access as Maker at Permits" in browser.page.text
    await go(made, browser)
    assert browser.page.text.count(line) == 1


async def test_filters_narrow_the_list_by_person_service_kind_and_days(made: World) -> None:
    await scene(made)
    await made.write(Service(service_id="TAX", name="Tax filing"))
    browser = await in_portal(made, "history")
    sentence = "bob (Bob Lim) got access"
    assert sentence in await shown(made, browser, "?person=bob&service=PERMITS&kind=access")
    assert sentence not in await shown(made, browser, "?person=nobody")
    registry: Registry = made.provider.registry
    members = await contexts.belonging(registry, ACME, limit=10)
    for user_name in ("bob", "alice"):  # what was done to one, and by one
        membership = next(held for held, user in members if user.user_name == user_name)
        assert sentence in await shown(made, browser, f"?person={membership.membership_id}")
    assert sentence not in await shown(made, browser, "?person=%00")
    assert sentence not in await shown(made, browser, "?service=TAX")
    assert sentence not in await shown(made, browser, "?kind=administrators")
    assert sentence not in await shown(made, browser, "?from=2099-01-01")
    assert sentence not in await shown(made, browser, "?until=2001-01-01")
    assert sentence in await shown(made, browser, "?from=2001-01-01&until=2099-01-01")
    assert {each.kind for form in browser.page.forms for each in form.controls if each.name in ("from", "until")} == {
        "date"
    }
    assert "Enter a date as year, month and day" in await shown(made, browser, "?from=yesterday")
    assert "The last day is before the first one." in await shown(made, browser, "?from=2026-02-01&until=2026-01-01")


async def test_fifty_changes_stand_on_a_page_and_the_next_one_goes_on(made: World) -> None:
    await scene(made)
    registry: Registry = made.provider.registry
    for _ in range(60):
        await registry.audit.write(event("assignment.update"), now=made.clock())
    browser = await in_portal(made, "history")
    assert browser.page.text.count("The access of bob (Bob Lim)") == 50
    await follow(made, browser, "Next page")
    assert browser.page.text.count("The access of bob (Bob Lim)") == 10
    assert "bob (Bob Lim) got access" in browser.page.text


async def test_nothing_of_other_organisations_is_shown(made: World) -> None:
    """D61: neither their changes nor the names of their people."""
    await scene(made)
    await made.person("dan", entity(BANYAN, "Banyan Trading"), name="Dan Other")
    registry: Registry = made.provider.registry
    foreign = event("assignment.add", by="user:id-dan", entity_id=BANYAN, subject=f"id-dan/{BANYAN}/PERMITS/Maker//")
    await registry.audit.write(foreign, now=made.clock())
    grant = ThirdPartyGrant(client_entity_id=BANYAN, entity_id=ACME, service_id="PERMITS")
    offer = event("grant.offer", by="user:id-dan", entity_id=BANYAN, subject="/".join(grant.key), other=ACME)
    await registry.audit.write(offer, now=made.clock())
    browser = await in_portal(made, "history")
    assert "Dan Other" not in browser.page.text
    assert "Banyan Trading (200000002A) offers Acme Pte. Ltd. to act for it at Permits" in browser.page.text
    assert "Somebody of Banyan Trading" in browser.page.text
    entries = await registry.audit.entries(limit=1000)
    number = next(each.number for each in entries if each.object.startswith(f"id-dan/{BANYAN}"))
    await browser.open(portal(made, f"history/{number}"), site="none")
    assert browser.response is not None
    assert browser.response.status_code == 404


async def test_the_csv_has_the_filtered_list_and_no_formulas(made: World) -> None:
    """OWASP "CSV injection": a cell that begins as a formula begins with an apostrophe."""
    await scene(made)
    await made.person("=hyperlink()", entity(ACME, "Acme Pte. Ltd."), name="Eve")
    role = Assignment(user_id="id-=hyperlink()", entity_id=ACME, service_id="PERMITS", role="Maker")
    await write(
        made, Change(None, role, event("assignment.add", by="user:id-=hyperlink()", subject="/".join(role.key)))
    )
    browser = await in_portal(made, "history")
    answer = await browser.http.get(portal(made, "history/export?kind=access"))
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert rows[0][:4] == ["Number", "Time", "Who", "What changed"]
    assert len(rows) == 3
    assert rows[1][2] == "'=hyperlink() (Eve)"
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]
    assert "Until: 31 Dec 2027" in rows[2][5]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x"])  # noqa: RUF001
def test_cells_that_a_spreadsheet_would_run_are_quoted(text: str) -> None:
    """OWASP "CSV injection": full-width forms, too."""
    table = CsvFile()
    table.write([text, "plain", f"x{text}"])
    [row] = csv.reader(io.StringIO(bytes(table.response("x").body).decode("utf-8-sig"), newline=""))
    assert row == [f"'{text}", "plain", f"x{text}"]


def test_every_table_for_spreadsheets_is_written_by_one_piece() -> None:
    """Else another would have to know what a formula is."""
    package = Path(corpid.__file__).parent
    writing = [str(file.relative_to(package)) for file in package.rglob("*.py") if "csv.writer(" in file.read_text()]
    assert writing == ["rules/directory/tables.py"]


async def test_sub_administrators_see_no_history(made: World) -> None:
    """D53."""
    await appoint(made, level="sub_administrator", services=("PERMITS",))
    browser = await in_portal(made)
    for page in ("history", "history/export", "history/1"):
        assert await go(made, browser, page) == "You cannot open this page"


async def test_what_is_only_offered_is_called_an_offer(made: World) -> None:
    """D56: nobody may act before the third party accepts, also if the operator entered the offer."""
    await scene(made)
    await made.person("dan", entity(BANYAN, "Banyan Trading"))
    offer = ThirdPartyGrant(client_entity_id=ACME, entity_id=BANYAN, service_id="PERMITS", state="offered")
    added = event("grant.add", by="cli:admin", subject="/".join(offer.key), other=BANYAN)
    await write(made, Change(None, offer, added))
    browser = await in_portal(made, "history")
    assert "offers" in browser.page.text
    assert "may act for" not in browser.page.text


@pytest.mark.parametrize(
    ("level", "told"),
    [("owner", "an owner"), ("administrator", "an administrator"), ("sub_administrator", "a sub-administrator")],
)
async def test_an_appointment_is_told_with_its_level(made: World, level: AdministratorLevel, told: str) -> None:
    """D57: an owner is not called an administrator."""
    await scene(made)
    bob = Administrator(user_id="id-bob", entity_id=ACME, level=level)
    await write(made, Change(None, bob, event("administrator.add", subject=f"id-bob/{ACME}")))
    browser = await in_portal(made, "history")
    assert f"bob (Bob Lim) became {told}" in browser.page.text


CLOSED: Final = [
    (noun, member, value)
    for noun, record in change_sentences._RECORDS.items()
    for member, field in fields_of(record).items()
    for value in field.choices
    if field.label and value
]


@pytest.mark.parametrize(("noun", "member", "value"), CLOSED, ids=str)
def test_a_value_of_a_closed_list_is_told_in_the_words_of_its_field(noun: str, member: str, value: str) -> None:
    """D57: a level, a setting and a status have the names that forms give them, in each language."""
    nobody = HistoryNames(people={}, outside=frozenset(), user_names={}, services={}, entities={})
    entry = AuditEntry(number=1, at=0, actor="command:a", action=f"{noun}.update", after={member: value})
    [(_, before, (after,))] = change_sentences.list_differences(entry, nobody, ZoneInfo("UTC"))
    assert not before
    assert isinstance(after, Phrase)
    assert after == fields_of(change_sentences._RECORDS[noun])[member].choices[value]


def test_an_invited_person_of_an_earlier_version_is_marked_in_the_history() -> None:
    """D68: an account can have the address as its user name."""
    nobody = HistoryNames(people={}, outside=frozenset(), user_names={}, services={}, entities={})
    invited: dict[str, object] = {"email": "Gina@acme.example", "name": "Gina Teo", "invited": True}
    entry = AuditEntry(number=1, at=0, actor="command:a", action="membership.add", object=f"id/{ACME}", after=invited)
    assert change_sentences.name_person(entry, nobody) == "(invited) gina@acme.example (Gina Teo)"


def test_every_kind_of_change_has_a_sentence_of_its_own() -> None:
    """D57: an action that is added later is not left to its technical summary."""
    from corpid.flows.operations.history import KINDS
    from corpid.web.pages import change_sentences as texts

    told = {*texts._OF_PERSON, *texts._OF_ROLE, *texts._OF_GRANT, *texts._PLAIN}
    assert {action for actions in KINDS.values() for action in actions} <= told
    assert KINDS.keys() == texts.KINDS.keys()
