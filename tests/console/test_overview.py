"""The console's overview: the processes that serve, and their engines (D43, D49, D53)."""

from __future__ import annotations

from msgspec.structs import replace

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
        for text in ("which answers you", "node-2", "https://other.example", "node-3", "Gone", "Short-lived state"):
            assert text in browser.page.text, text
        assert browser.page.text.count("differs base_url") == 1
