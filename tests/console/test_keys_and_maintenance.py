"""Signing keys and maintenance in the console (D42, D53, Spec 7)."""

from __future__ import annotations

import pytest

from corpid.flows.operations.signing_keys import stored_keys
from tests.console.scene import REASON, WITHOUT_PASSKEY, go, in_console, send, status
from tests.sign_in.world import form_of, new_world


async def test_the_next_key_is_published_already_and_signs_in_two_hours() -> None:
    """D42."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "rotate-key")
        await browser.fill_and_submit("decision", reason=REASON)
        assert "The key has been rotated. The next one signs in 2 hours." in browser.page.text
        assert "Published, does not sign yet" in browser.page.text
        assert "Published, signs when it is needed" in browser.page.text
        keys = [key for key in await made.provider.registry.keys.list_all() if key.use == "sig"]
        assert len(keys) == 3


async def test_a_key_is_revoked_only_by_who_types_its_identifier() -> None:
    """D42: a second confirmation."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator")
        key, _ = await stored_keys(made.provider.registry)
        await go(made, browser, f"revoke-key/{key.kid}")
        await browser.fill_and_submit(typed="another", reason=REASON)
        assert "entered=" in browser.url
        await browser.fill_and_submit(typed=key.kid)
        assert "The key has been revoked." in browser.page.text
        keys = await stored_keys(made.provider.registry)
        assert [each.revoked_at is not None for each in keys] == [True, False, False]


async def test_support_and_auditors_see_the_calendar_and_change_nothing() -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        for level in ("support", "auditor"):
            browser = await in_console(made, level, "keys")
            assert "Signs now" in browser.page.text
            assert "Revoke" not in browser.page.text
            key, _ = await stored_keys(made.provider.registry)
            for page in ("rotate-key", "rotate-key-now", f"revoke-key/{key.kid}", "switch-maintenance"):
                assert await go(made, browser, page) == 403
            await go(made, browser, "maintenance")
            assert "Turn maintenance on" not in browser.page.text
        assert len(await stored_keys(made.provider.registry)) == 2


async def test_maintenance_is_turned_on_and_off_here_and_leaves_the_console_open() -> None:
    """Spec 7."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "switch-maintenance")
        await browser.fill_and_submit("decision")
        assert "entered=" in browser.url
        await browser.fill_and_submit("decision", reason=REASON)
        assert "Maintenance is on." in browser.page.text
        other = await made.browser()
        await other.open(f"{made.base}/account", site="none")
        assert status(other) == 503
        again = await in_console(made, "operator", "switch-maintenance")
        await again.fill_and_submit("decision", reason=REASON)
        assert "Maintenance is off." in again.page.text
        await other.open(f"{made.base}/account", site="none")
        assert other.page.heading == "Sign in"
        for action in ("maintenance.on", "maintenance.off"):
            [entry] = await made.audit(action)
            assert entry.detail["reason_given"] == REASON


@pytest.mark.parametrize("page", ["rotate-key", "rotate-key-now"])
async def test_a_form_that_is_sent_twice_makes_one_key(page: str) -> None:
    """D42: a double click must not retire the key that it has just made."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", page)
        form = form_of(browser, "form_token", "reason") | {"reason": REASON}
        before = len(await made.provider.registry.keys.list_all())
        made.clock.pass_(60)
        for _ in range(2):
            assert (await send(made, browser, page, **form)).status_code == 303
        assert len(await made.provider.registry.keys.list_all()) == before + 1


async def test_a_form_without_its_decision_switches_nothing() -> None:
    """Spec 7, D50."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "switch-maintenance")
        await browser.fill_and_submit("decision", reason=REASON)
        for page in ("switch-maintenance", "switch-client/rp1"):
            await go(made, browser, page)
            form = form_of(browser, "form_token") | {"decision": "", "reason": REASON}
            assert (await send(made, browser, page, **form)).status_code == 303
        await go(made, browser, "maintenance")
        assert "Turn maintenance off" in browser.page.text
        client = await made.provider.registry.clients.get("rp1")
        assert client is not None
        assert client.enabled
