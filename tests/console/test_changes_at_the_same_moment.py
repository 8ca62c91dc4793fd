"""Operators who change the same record at the same moment, on PostgreSQL (D54, docs/architecture.md, "One-time use")."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import httpx
import pytest

from corpid_dev.demo.demo import next_free
from tests import engines
from tests.console.scene import ACME, REASON, console, go, in_console
from tests.sign_in.world import FORM, World, cookies_of, form_of, world
from tests.world.provider import served

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

pytestmark = pytest.mark.full


async def at_once(made: World, browser: Browser, page: str, names: list[str], **fields: str) -> list[int]:
    """1 for each that was saved, 0 for each that was not, of the same form with different names, sent over sockets."""
    await go(made, browser, page)
    form = {**form_of(browser, "form_token", "name"), **fields, "reason": REASON}
    headers = {
        "Content-Type": FORM,
        "Sec-Fetch-Site": "same-origin",
        "Cookie": "; ".join(f"{name}={value}" for name, value in cookies_of(browser).items()),
    }

    async def post(name: str) -> int:
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            sent = await http.post(console(made, page), content=urlencode({**form, "name": name}), headers=headers)
            assert sent.status_code == 303
            return int("entered=" not in sent.headers["Location"])

    return sorted(await asyncio.gather(*(post(name) for name in names)))


async def test_only_one_of_several_changes_of_a_record_is_written_and_the_others_are_told() -> None:
    """D54: an organisation, and a new client of one identifier."""
    names = [f"Name {number}" for number in range(6)]

    port, sockets = next_free("localhost", 0)
    with engines.postgresql(migrated=True) as url:
        async with (
            world(
                base=f"http://localhost:{port}",
                operators_need_passkey=False,
                database_url=url,
                key_encryption_key=b64encode(bytes(32)).decode(),
            ) as made,
            served(made.application.asgi, sockets),
        ):
            browser = await in_console(made, "operator")
            facts = {"type": "UEN", "status": "Registered", "approvals": "none", "country": "SG"}
            assert await at_once(made, browser, f"entities/{ACME}/edit", names, **facts) == [*[0] * 5, 1]
            assert len(await made.audit("entity.update")) == 1
            shop = {"redirect_uris": "https://shop.example/cb", "jwks_uri": "https://shop.example/jwks"}
            added = await at_once(made, browser, "new-client", names, client_id="shop", **shop)
            assert added == [*[0] * 5, 1]
