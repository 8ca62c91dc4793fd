"""The audit in the console: filters, pages, verification (D57, D58)."""

from __future__ import annotations

from corpid.flows.directory import clients
from corpid.rules.directory.actors import CommandLine
from tests.console.scene import WITHOUT_PASSKEY, go, in_console
from tests.sign_in.world import World, run


def test_entries_are_found_by_person_action_and_time() -> None:
    """D57."""

    async def within(made: World) -> None:
        browser = await in_console(made, "auditor", "audit")
        assert "sign_in.complete" in browser.page.text
        await go(made, browser, "audit?action=sign_in.password&user=the-auditor&since=1h")
        assert "sign_in.password" in browser.page.text
        assert "sign_in.complete" not in browser.page.text
        await go(made, browser, "audit?action=nonsense&since=yesterday")
        assert "is not an action" in browser.page.text
        assert "is not a time" in browser.page.text

    run(within, **WITHOUT_PASSKEY)


def test_the_list_goes_on_page_by_page() -> None:
    """D57."""

    async def within(made: World) -> None:
        for number in range(60):
            enabled = bool(number % 2)
            await clients.switch_client(
                made.provider.registry, "rp1", enabled=enabled, actor=CommandLine(by="ops@host")
            )
        browser = await in_console(made, "operator", "audit?action=client.")
        assert browser.page.text.count("command:ops@host") == 50
        following = next(url for url, text in browser.page.links if text == "Next page")
        await browser.open(f"{made.base}{following}" if following.startswith("/") else following, site="none")
        assert browser.page.text.count("command:ops@host") == 10

    run(within, **WITHOUT_PASSKEY)


def test_the_audit_is_compared_with_its_seals() -> None:
    """D58."""

    async def within(made: World) -> None:
        browser = await in_console(made, "operator", "verify-audit")
        assert browser.page.heading == "The audit and its seals"
        assert "Entries without a seal yet" in browser.page.text

    run(within, **WITHOUT_PASSKEY)
