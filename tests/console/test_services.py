"""Services in the console: shown with roles and clients, and changed by operators only (D53, D55)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import OperatorLevel, Service
from tests.console.scene import REASON, WITHOUT_PASSKEY, demoted, go, in_console, send
from tests.sign_in.world import World, form_of, new_world

PERMITS, EDIT = "services/PERMITS", "services/PERMITS/edit"


async def stored(made: World) -> Service:
    found: Service = (await made.provider.registry.directory.read(Service, [("PERMITS",)]))["PERMITS",]
    return found


async def test_services_are_listed_and_one_is_shown_with_roles_and_clients() -> None:
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "auditor")
        await go(made, browser, "services?search=PER")
        assert "Permits" in browser.page.text
        await go(made, browser, PERMITS)
        for shown in ("Permits", "Maker", "rp1"):
            assert shown in browser.page.text, shown
        assert "Change the service" not in browser.page.text
        assert await go(made, browser, "services/nothing") == 404


async def test_an_operator_changes_texts_and_approval_with_a_reason() -> None:
    """D55, D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", EDIT)
        await browser.fill_and_submit(name="", reason=REASON)
        assert "Enter a name" in browser.page.text
        texts = {"name": "Harbour permits", "description": "Permits to berth.", "role-0": "Prepares permits."}
        await browser.fill_and_submit(**texts, approval_required="yes", reason=REASON)
        assert "The service has been changed" in browser.page.text
        assert "Prepares permits." in browser.page.text
        changed = await stored(made)
        assert (changed.name, changed.approval_required, changed.roles) == ("Harbour permits", True, ("Maker",))
        (entry,) = await made.audit("service.update")
        assert entry.detail["reason_given"] == REASON


async def test_a_late_form_does_not_overwrite_what_changed_during_the_sign_in() -> None:
    """D54: it was made on the service as it was before."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", EDIT)
        made.clock.pass_(901)
        await browser.fill_and_submit(name="Other", reason=REASON)
        await made.write(replace(await stored(made), description="Changed by another."))
        made.clock.pass_(60)
        await made.factors(browser, made.people["the-operator"])
        await browser.fill_and_submit(name="Other", reason=REASON)
        assert "Your changes were not saved: this is the service as it is now." in browser.page.text
        assert form_of(browser, "name")["description"] == "Changed by another."
        assert (await stored(made)).description == "Changed by another."


async def test_a_service_that_was_changed_meanwhile_is_not_overwritten() -> None:
    """D59: the second of two sees what is there now."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", EDIT)
        await made.write(replace(await stored(made), description="Changed by another."))
        await browser.fill_and_submit(name="Other", reason=REASON)
        assert "Your changes were not saved: this is the service as it is now." in browser.page.text
        assert form_of(browser, "name")["description"] == "Changed by another."
        assert (await stored(made)).name == "Permits"


@pytest.mark.parametrize("level", ["support", "auditor"])
async def test_nobody_else_changes_a_service(level: OperatorLevel) -> None:
    """D53: hostile forms with a right token of their own."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await demoted(made, level, EDIT)
        before = await stored(made)
        assert (await send(made, browser, EDIT, name="Mine", reason=REASON)).status_code == 403
        assert await go(made, browser, EDIT) == 403
        assert await stored(made) == before
