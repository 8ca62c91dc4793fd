"""The audit in the console: filters, pages, export (D57, D58)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest

from corpid.flows.directory.single_records import set_enabled
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.records import Change, Membership, OperatorLevel, User
from tests.administration.scene import HARBOUR, ask, given, peopled, role
from tests.console.scene import REASON, WITHOUT_PASSKEY, console, demoted, go, in_console, send
from tests.sign_in.world import World, new_world, shown_again

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser


async def test_entries_are_found_by_person_action_and_time() -> None:
    """D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "auditor", "audit")
        # Once it stands in the list of actions.
        assert browser.page.text.count("A sign-in was completed") > 1
        await go(made, browser, "audit?action=sign_in.password&user=the-auditor&since=1h")
        assert browser.page.text.count("A password was entered") > 1
        assert browser.page.text.count("A sign-in was completed") == 1
        await go(made, browser, "audit?action=nonsense&since=yesterday")
        assert "is not an action" in browser.page.text
        assert "is not a time" in browser.page.text


async def test_every_action_is_in_the_list_below_what_it_is_about() -> None:
    """D57: in words; the codes are for the API."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "auditor", "audit?action=client.")
        assert browser.response is not None
        html = browser.response.text
        offered = re.findall(r'<option value="([^"]+)"', html)
        assert sorted(offered) == sorted({"client.", *(each.value for each in AuditAction)})
        assert '<option value="client." selected>Clients</option>' in html
        assert '<optgroup label="Third parties">' in html
        assert ">A client was registered<" in html


async def test_a_request_names_what_is_asked_for_whom_and_links_to_it() -> None:
    """D55, D57, D68: also for somebody who is only to be invited."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await peopled(made, approvals="all")
        added = Membership(user_id="id-new", entity_id=HARBOUR, invited=True, name="Noor", email="noor@harbour.example")
        await ask(made, given(role("mira")))
        await ask(made, Change(None, added), unique="2")
        browser = await in_console(made, "auditor", "audit?action=approval.request")
        text = browser.page.text
        assert "A change was requested: Give access to mira : Maker at Permits" in text  # a link ends before the colon
        assert "A change was requested: Invite noor@harbour.example (Noor)" in text
        assert {"/console/people/id-mira", f"/console/entities/{HARBOUR}"} <= {
            target for target, _ in browser.page.links
        }


async def test_decisions_of_a_review_name_the_person_and_no_identifier() -> None:
    """D57, D68."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        [found] = await made.provider.registry.directory.page(Membership, {}, limit=1)
        user = await made.provider.registry.directory.find(User, found.user_id)
        assert user is not None
        for action, of in (("begin", found.entity_id), ("keep", "/".join(found.key)), ("sign_off", found.entity_id)):
            event = AuditEvent(actor="system", action=f"access_review.{action}", object=of, entity_id=found.entity_id)
            await made.provider.registry.audit.write(event)
        browser = await in_console(made, "auditor", "audit")
        kept = re.search(r"The access of (.+?) was kept in a review", browser.page.text)
        assert kept is not None
        assert user.user_name in kept[1]
        sentences = browser.page.text[: kept.end()].rpartition("An access review was signed off")[2]
        assert found.user_id not in sentences
        assert "An access review began:" not in browser.page.text


async def test_the_list_goes_on_page_by_page() -> None:
    """D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        for number in range(60):
            enabled = bool(number % 2)
            await set_enabled(
                made.provider.registry,
                "client",
                {"client_id": "rp1"},
                enabled=enabled,
                actor=CommandLine(by="ops@host"),
            )
        browser = await in_console(made, "operator", "audit?action=client.")
        assert browser.page.text.count("command:ops@host") == 50
        following = next(url for url, text in browser.page.links if text == "Next page")
        await browser.open(f"{made.base}{following}" if following.startswith("/") else following, site="none")
        assert browser.page.text.count("command:ops@host") == 10


@pytest.mark.parametrize("level", ["operator", "auditor"])
async def test_entries_are_exported_as_json_lines_with_the_result_of_their_seals_and_that_is_recorded(
    level: OperatorLevel,
) -> None:
    """D53, D57, D58."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, level, "export-audit?since=3d&action=sign_in.")
        answer = await exported(made, browser, since="3d", action="sign_in.", reason=REASON)
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["cache-control"] == "no-store"
        first, *entries, last = [json.loads(line) for line in answer.text.splitlines()]
        assert (first["verification"]["found"], first["filters"]) == (0, {"since": "3d", "action": "sign_in."})
        assert entries
        assert {each["entry"]["action"].partition(".")[0] for each in entries} == {"sign_in"}
        assert last == {"end": len(entries), "next": None}
        (recorded,) = await made.audit("audit.export")
        assert (recorded.actor, recorded.detail["reason_given"], recorded.detail["filters"]) == (
            f"operator:id-the-{level}",
            REASON,
            "action sign_in.; since 3d",
        )


async def exported(made: World, browser: Browser, **fields: str) -> httpx.Response:
    """The file to which the form of an export leads."""
    sent = await send(made, browser, "export-audit", **fields)
    assert sent.status_code == 303
    return await browser.http.get(urljoin(made.base, sent.headers["location"]))


async def test_an_export_that_is_asked_for_twice_is_one_file_of_its_session_for_ten_minutes() -> None:
    """D57, D73: identical bytes count once; what was not recorded is no file."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "auditor", "export-audit")
        other = await in_console(made, "auditor", "export-audit")
        first = await exported(made, browser, since="3d", reason=REASON)
        made.clock.pass_(30)
        assert (await exported(made, browser, since="3d", reason=REASON)).text == first.text
        assert len(await made.audit("audit.export")) == 1
        assert (await other.http.get(str(first.url))).headers["location"] == "/console/export-audit"
        refused = (await send(made, browser, "export-audit", since="3d")).headers["location"]
        name = refused.partition("entered=")[2]
        for page in (f"name={name}", f"entered={name}", ""):
            answer = await browser.http.get(console(made, f"export-audit/file?{page}"))
            assert answer.headers["location"] == "/console/export-audit"
        made.clock.pass_(570)
        assert (await browser.http.get(str(first.url))).headers["location"] == "/console/export-audit"


async def test_an_export_ends_with_the_moment_that_was_asked_for() -> None:
    """D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        write = made.provider.registry.audit.write
        for number in range(3):
            made.clock.pass_(100)
            await write(AuditEvent(actor="system", action="test.change", object=f"o{number}"), now=made.clock())
        until = datetime.fromtimestamp(made.clock() - 50, UTC).isoformat()
        browser = await in_console(made, "auditor", "export-audit")
        answer = await exported(made, browser, until=until, reason=REASON)
        objects = [json.loads(line)["entry"]["object"] for line in answer.text.splitlines()[1:-1]]
        assert [each for each in objects if each.startswith("o")] == ["o1", "o0"]


async def test_a_wrong_range_and_a_missing_reason_export_nothing() -> None:
    """D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "export-audit")
        for fields, error in (
            ({"since": "soon"}, "is not a time"),
            ({"since": "1h", "until": "2h"}, "The end is before the beginning."),
            ({}, "Say why."),
        ):
            answer = await send(made, browser, "export-audit", **({"reason": REASON} if fields else {}), **fields)
            answer = await shown_again(browser, answer)
            assert error in answer.text
        assert not await made.audit("audit.export")


async def test_support_reads_the_audit_and_exports_nothing() -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await demoted(made, "support", "export-audit")
        assert (await send(made, browser, "export-audit", reason=REASON)).status_code == 403
        assert await go(made, browser, "export-audit") == 403
        assert await go(made, browser, "audit") == 200
        assert "Export" not in browser.page.text
        assert not await made.audit("audit.export")
