"""The same form sent several times at once, where other requests really run in between (D15, D34)."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from tests import engines
from tests.sign_in.factors import CODES, answer_of, at_sign_in, passkey, recovery
from tests.sign_in.world import PASSWORD, form_of, post, run

if TYPE_CHECKING:
    from corpid.sandbox.browser import Browser
    from tests.sign_in.world import World

SEALING: Final = b64encode(bytes(32)).decode()
CHOICE: Final = "Choose who you act for"
PATIENCE_SECONDS: Final = 30


async def at_once(browser: Browser, action: str, fields: dict[str, str], times: int) -> list[int]:
    """Statuses of so many forms; none of them waits for ever."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        answers = await asyncio.gather(*(post(browser, action, fields) for _ in range(times)))
    return sorted(answer.status_code for answer in answers)


def test_a_passkey_sent_several_times_signs_in_once() -> None:
    """D46: and no two requests wait for each other's rows."""

    async def story(made: World) -> None:
        key, browser = await passkey(made, count=None), await at_sign_in(made)
        fields = {**form_of(browser, "passkey"), "passkey": answer_of(made, browser, key)}
        assert await at_once(browser, "passkey", fields, 6) == [303] * 6
        assert [entry.outcome for entry in await made.audit("sign_in.passkey")] == ["ok"]
        await browser.reload()
        assert browser.page.heading == CHOICE

    with engines.postgresql(migrated=True) as dsn:
        run(story, database_url=dsn, key_encryption_key=SEALING)


def test_a_recovery_code_sent_several_times_signs_in_once() -> None:
    """D45, D34: who loses while the cookie changes hands is answered, too."""

    async def story(made: World) -> None:
        await recovery(made)
        browser = await at_sign_in(made)
        await browser.fill_and_submit(user_name="alice", password=PASSWORD)
        await browser.fill_and_submit("decision", button="recovery")
        fields = {**form_of(browser, "code"), "code": CODES[0]}
        assert set(await at_once(browser, "code", fields, 4)) <= {303, 422}
        outcomes = [entry.outcome for entry in await made.audit("sign_in.second_factor")]
        assert outcomes.count("ok") == 1
        await browser.reload()
        assert browser.page.heading == CHOICE

    with engines.postgresql(migrated=True) as dsn:
        run(story, database_url=dsn, key_encryption_key=SEALING)
