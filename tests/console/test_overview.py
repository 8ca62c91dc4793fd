"""The console's overview: the processes that serve, and their engines (D43, D49, D53)."""

from __future__ import annotations

import re

from msgspec.structs import replace

from corpid.rules.limits import DAY
from tests.adapters.opened import EVENT
from tests.console.scene import WITHOUT_PASSKEY, go, in_console
from tests.sign_in.world import new_world


async def test_every_process_is_listed_and_one_that_differs_or_is_gone_is_marked() -> None:
    """D43, D49."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        own, now = made.provider.node.process, int(made.clock()) + 60
        processes = made.provider.registry.server_processes
        other = replace(own, process_id="other", host="node-2", started_at=own.started_at + 1, seen_at=now)
        await processes.note(replace(own, seen_at=now))
        await processes.note(replace(own, process_id="twin", started_at=own.started_at + 1, seen_at=now))
        await processes.note(replace(other, settings={**own.settings, "base_url": "https://other.example"}))
        await processes.note(replace(other, process_id="lost", host="node-3", seen_at=now - 3600))
        browser = await in_console(made, "auditor")
        assert await go(made, browser) == 200
        for text in ("answers you", "node-2", "https://other.example", "node-3", "Gone", "Short-lived state"):
            assert text in browser.page.text, text
        assert browser.page.text.count("base_url: https://other.example") == 1


async def test_it_has_four_numbers_and_a_chart_whose_range_is_in_the_address() -> None:
    """D28, D42."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        now = made.clock()
        for ago, sign_ins, refusals in ((0, 3, 1), (8 * DAY, 9, 1)):
            for _ in range(sign_ins):
                made.provider.counters.sign_in("rp1", now - ago)
            for _ in range(refusals):
                made.provider.counters.refusal("rp1", "assertion_audience", now - ago, authenticated=True)
        await made.provider.counters.flush(made.provider.registry)
        browser = await in_console(made, "auditor")
        text = browser.page.text
        for tile in (
            "Sign-ins in 7 days 3 9 the week before", "Refused in 7 days 25.0 % 10.0 % the week before",
            "Next key date None planned", "Clients failing 0 0 the week before",
        ):  # fmt: skip
            assert tile in text, tile
        assert "assertion_audience" in text
        links = [target for target, _ in browser.page.links]
        for period, unit in (("today", "hour"), ("7d", "hour"), ("30d", "day"), ("90d", "day")):
            assert f"/console?range={period}" in links
            await go(made, browser, f"?range={period}")
            assert f"Refused requests per {unit}" in browser.page.text, period


async def test_what_needs_attention_has_a_link_to_the_page_that_settles_it_and_no_command() -> None:
    """D49, D53: for those who may open it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.client(issuers=("elsewhere",))
        for _ in range(3):
            made.provider.counters.refusal("rp1", "assertion_audience", made.clock(), authenticated=True)
        await made.provider.counters.flush(made.provider.registry)
        await made.provider.registry.deployment.set_maintenance(True, EVENT)
        made.clock.pass_(500 * DAY)
        for _ in range(2):
            made.provider.counters.refusal("rp1", "assertion_audience", made.clock(), authenticated=True)
        await made.provider.counters.flush(made.provider.registry)
        browser = await in_console(made, "operator")
        assert {("/console/rotate-key", "Rotate key"), ("/console/clients", "Open clients"),
                ("/console/client/rp1", "Open client"), ("/console/switch-maintenance", "Turn maintenance off"),
                } <= set(browser.page.links)  # fmt: skip
        assert "corpid key rotate" not in browser.page.text
        assert browser.response is not None
        listed = browser.response.text.partition('<ul class="alerts">')[2].partition("</ul>")[0]
        alerts = re.findall(r"<li>.*?</li>", listed, re.DOTALL)
        assert len(alerts) > 3
        for alert in alerts:
            assert "<a " in alert, alert
        browser = await in_console(made, "auditor")
        assert "Rotate key" not in browser.page.text
        assert "corpid key rotate" in browser.page.text


async def test_what_is_mended_in_the_settings_leads_to_them() -> None:
    """D49, D53: developer mode, for one; the settings have no secrets."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "support")
        assert "developer_mode: It is on" in browser.page.text
        assert "turn off developer_mode wherever other people sign in" in browser.page.text
        assert ("/console/settings", "Open settings") in browser.page.links
        await go(made, browser, "settings")
        assert "corpid.toml" in browser.page.text
        assert f"base_url {made.base}" in browser.page.text
