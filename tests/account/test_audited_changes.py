"""What a person changes of their own stands in the audit, before and after, without a secret (D57)."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from tests.account.scene import at_account, go
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, CODES, passkey, recovery
from tests.sign_in.world import World, new_world

NEW_PASSWORD = "seven grey herons wading"


def raw(made: World) -> str:
    """Both tables as the file holds them."""
    with closing(sqlite3.connect(made.directory / "corpid.sqlite")) as opened:
        tables = ("audit", "audit_details")
        return "".join(str(opened.execute(f"SELECT * FROM {table}").fetchall()) for table in tables)


async def the(made: World, action: str) -> Any:
    [entry] = await made.audit(action)
    return entry


async def test_a_language_is_told_before_and_after(made: World) -> None:
    browser = await at_account(made, "language")
    await browser.fill_and_submit(language="ms")
    entry = await the(made, "user.language")
    assert (entry.actor, entry.object) == (f"user:{ALICE}", ALICE)
    assert (entry.before, entry.after) == ({"language": "en"}, {"language": "ms"})
    assert entry.detail["address"] == "127.0.0.1"
    assert entry.request_id


async def test_a_password_is_told_as_changed_and_its_hash_is_nowhere() -> None:
    async with new_world(postbox=Postbox()) as made:
        browser = await at_account(made, "password")
        await browser.fill_and_submit(password=NEW_PASSWORD)
        entry = await the(made, "factors.password")
        assert (entry.before, entry.after) == ({"password_hash": "set"}, {"password_hash": "changed"})
        credentials = await made.provider.registry.factors.credentials(ALICE)
        text = raw(made)
        for secret in (NEW_PASSWORD, credentials.password_hash, credentials.totp_secret):
            assert secret not in text


async def test_passkeys_and_codes_are_told_by_name_and_number() -> None:
    async with new_world(postbox=Postbox()) as made:
        user = await made.provider.registry.directory.user(ALICE)
        await made.write(replace(user, email="alice@example.com"))
        await passkey(made)
        await recovery(made)
        browser = await at_account(made)
        [key] = await made.provider.registry.factors.passkeys(ALICE)
        await go(made, browser, "passkeys")
        page = next(target for target, text in browser.page.links if text == key.name)
        await go(made, browser, page.removeprefix("/account/"))
        await browser.fill_and_submit(name="Blue key")
        renamed = await the(made, "factors.rename_passkey")
        assert (renamed.before, renamed.after) == ({"name": key.name}, {"name": "Blue key"})
        text = raw(made)
        for secret in (key.public_key, key.credential_id, *CODES):
            assert secret not in text
        assert re.search(r"Blue key", text)


async def test_addresses_stand_in_the_details_alone(made: World) -> None:
    """D57: also those of a sign-in."""
    await at_account(made)
    completed = (await made.audit("sign_in.complete"))[-1]
    assert completed.detail["address"] == "127.0.0.1"
    with closing(sqlite3.connect(made.directory / "corpid.sqlite")) as opened:
        rows = str(opened.execute("SELECT * FROM audit").fetchall())
        details = str(opened.execute("SELECT detail FROM audit_details").fetchall())
    assert "127.0.0.1" not in rows
    assert "127.0.0.1" in details
