"""Addresses of the console's pages: every identifier has one (D51)."""

from __future__ import annotations

import pytest

from corpid.rules.directory.records import Entity, Service
from tests.console.scene import WITHOUT_PASSKEY, go, in_console
from tests.sign_in.world import new_world

WORDS = ("extend", "people", "new", "edit", "owner", "disable")


@pytest.mark.parametrize("word", WORDS)
async def test_an_identifier_that_is_a_word_of_the_pages_has_its_own_page(word: str) -> None:
    """D51."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(
            Entity(
                entity_id=word,
                name="Extended Ltd.",
                registration_number="199901234Z",
                type="UEN",
                country="SG",
                status="Registered",
            ),
            Service(service_id=word, name="Extended service"),
        )
        browser = await in_console(made, "operator", f"entities/{word}")
        assert browser.page.heading == "Extended Ltd."
        assert await go(made, browser, f"services/{word}") == 200
        assert "Extended service" in browser.page.heading
