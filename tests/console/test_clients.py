"""Clients in the console: the list, one client with its keys and refusals, and its switch (Spec 1, D27, D28, D53)."""

from __future__ import annotations

import httpx

from tests.console.scene import OPTIONS, console, go, in_console, send
from tests.sign_in.world import World, form_of, run


def test_the_list_is_narrowed_by_the_beginning_of_an_identifier_and_goes_on_page_by_page() -> None:
    """Spec 1."""

    async def within(made: World) -> None:
        for number in range(60):
            await made.client(f"shop-{number:02}")
        browser = await in_console(made, "clients")
        assert "rp1" in browser.page.text
        await go(made, browser, "clients?search=shop-")
        assert "rp1" not in browser.page.text
        assert "shop-49" in browser.page.text
        assert "shop-50" not in browser.page.text
        await go(made, browser, "clients?search=shop-&after=shop-49")
        assert "shop-59" in browser.page.text

    run(within, **OPTIONS)


def test_a_client_shows_its_keys_and_why_it_was_refused_with_what_to_do() -> None:
    """D27, D28."""

    async def within(made: World) -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=made.application.asgi), base_url=made.base
        ) as http:
            await http.post("/request", data={"client_id": "rp1"})
        await made.provider.refusals.flush(made.provider.registry)
        browser = await in_console(made, "client/rp1")
        assert browser.page.heading == "Client Relying Party 1"
        assert "ES256" in browser.page.text
        assert "only said to be its" in browser.page.text
        assert "POST /request" in browser.page.text

    run(within, **OPTIONS)


def test_a_client_that_is_not_there_has_no_page() -> None:
    async def within(made: World) -> None:
        browser = await in_console(made)
        assert await go(made, browser, "client/nobody") == "Page not found"

    run(within, **OPTIONS)


def test_an_operator_disables_a_client_after_a_question_and_enables_it_again() -> None:
    """D50, D57."""

    async def within(made: World) -> None:
        browser = await in_console(made, "switch-client/rp1")
        await browser.fill_and_submit("decision")
        assert "The client has been disabled." in browser.page.text
        found = await made.provider.registry.clients.get("rp1")
        assert found is not None
        assert not found.enabled
        [entry] = await made.audit("client.disable")
        assert entry.actor == "operator:id-alice"
        assert entry.request_id
        assert entry.detail["address"]
        await go(made, browser, "switch-client/rp1")
        await browser.fill_and_submit("decision")
        assert "The client has been enabled." in browser.page.text

    run(within, **OPTIONS)


def test_support_and_auditors_read_clients_and_change_none() -> None:
    """D53."""

    async def within(made: World) -> None:
        for level in ("support", "auditor"):
            browser = await in_console(made, "client/rp1", level=level)
            assert browser.page.heading == "Client Relying Party 1"
            assert "Change this client" not in browser.page.text
            await go(made, browser, "switch-client/rp1")
            answer = await send(made, browser, "switch-client/rp1", **form_of(browser, "decision"))
            assert answer.status_code == 403
        found = await made.provider.registry.clients.get("rp1")
        assert found is not None
        assert found.enabled

    run(within, **OPTIONS)


def test_a_change_needs_a_recent_sign_in_and_the_page_leads_back() -> None:
    """D54."""

    async def within(made: World) -> None:
        browser = await in_console(made, "switch-client/rp1")
        sent = form_of(browser, "decision")
        made.clock.pass_(901)
        answer = await send(made, browser, "switch-client/rp1", **sent)
        assert answer.status_code == 303
        assert "/sign-in/" in answer.headers["Location"]
        await browser.open(console(made, "switch-client/rp1"), site="none")
        assert browser.page.heading == "Sign in"

    run(within, **OPTIONS)
