"""The same form sent several times at once, where other requests really run in between (D15, D34)."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import asyncpg
import pytest

from corpid.flows import namespaces
from corpid.flows.oauth.par import REQUEST_URI_PREFIX
from corpid.rules.audit import AuditEvent
from corpid.rules.oauth.refusals import Reason
from tests import engines
from tests.account.scene import sessions
from tests.sign_in.factors import CODES, answer_of, at_sign_in, passkey, recovery
from tests.sign_in.test_one_code_at_once import arrive, signed_in
from tests.sign_in.world import FORM, PASSWORD, cookies_of, entity, form_of, new_world, post, walk_to, wear

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

pytestmark = pytest.mark.full

SEALING: Final = b64encode(bytes(32)).decode()
CHOICE: Final = "Choose who you act for"
PATIENCE_SECONDS: Final = 30
SAME_ORIGIN: Final = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
EVENT: Final = AuditEvent(actor="operator", action="test.end")


async def at_once(browser: Browser, action: str, fields: dict[str, str], times: int) -> list[int]:
    """Statuses of so many forms; none of them waits for ever."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        answers = await asyncio.gather(*(post(browser, action, fields) for _ in range(times)))
    return sorted(answer.status_code for answer in answers)


async def test_a_passkey_sent_several_times_signs_in_once() -> None:
    """D46: and no two requests wait for each other's rows."""
    with engines.postgresql(migrated=True) as dsn:
        async with new_world(database_url=dsn, key_encryption_key=SEALING) as made:
            key, browser = await passkey(made, count=None), await at_sign_in(made)
            fields = {**form_of(browser, "passkey"), "passkey": answer_of(made, browser, key)}
            assert await at_once(browser, "passkey", fields, 6) == [303] * 6
            assert [entry.outcome for entry in await made.audit("sign_in.passkey")] == ["ok"]
            await browser.reload()
            assert browser.page.heading == CHOICE


async def test_a_recovery_code_sent_several_times_signs_in_once() -> None:
    """D45, D34: who loses while the cookie changes hands is answered, too."""
    with engines.postgresql(migrated=True) as dsn:
        async with new_world(database_url=dsn, key_encryption_key=SEALING) as made:
            await recovery(made)
            browser = await at_sign_in(made)
            await browser.fill_and_submit(user_name="alice", password=PASSWORD)
            await browser.fill_and_submit("decision", button="recovery")
            fields = {**form_of(browser, "code"), "code": CODES[0]}
            assert set(await at_once(browser, "code", fields, 4)) <= {303}
            outcomes = [entry.outcome for entry in await made.audit("sign_in.second_factor")]
            assert outcomes.count("ok") == 1
            await browser.reload()
            assert browser.page.heading == CHOICE


async def test_a_double_click_on_the_last_factor_goes_on_with_whichever_answer_the_browser_keeps() -> None:
    """D34: the second form arrives while the first is handled, and brings the same cookie value."""
    with engines.postgresql(migrated=True) as dsn:
        async with new_world(database_url=dsn, key_encryption_key=SEALING) as made:
            await recovery(made)
            key = await passkey(made, count=None)
            for way in ("app", "recovery", "passkey"):
                made.clock.pass_(60)
                browser, other = await at_sign_in(made), await made.browser()
                if way != "passkey":
                    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
                if way == "recovery":
                    await browser.fill_and_submit("decision", button="recovery")
                action = "passkey" if way == "passkey" else "code"
                code = CODES[0] if way == "recovery" else made.people["alice"].fresh_code(made.clock())
                shown = answer_of(made, browser, key) if way == "passkey" else code
                wear(other, cookies_of(browser))
                other.url = browser.url
                fields = {**form_of(browser, action), action: shown}
                answers = await asyncio.gather(post(browser, action, fields), post(other, action, fields))
                assert [answer.status_code for answer in answers] == [303, 303]
                for each in (browser, other):
                    await each.reload()
                    assert each.page.heading == CHOICE


async def test_a_last_factor_and_a_sign_out_at_once_leave_one_cookie_value_and_say_which_it_was() -> None:
    """D30, D34: who was too late to sign out is asked again, by the value that lives."""
    with engines.postgresql(migrated=True) as dsn:
        async with new_world(database_url=dsn, key_encryption_key=SEALING, session_seconds=3600) as made:
            for _ in range(4):
                browser, alice = await made.browser(), made.people["alice"]
                made.clock.pass_(60)
                await walk_to(made, browser, await made.relying_party(), ("password", "code"))
                made.clock.pass_(60)
                await browser.open(await (await made.relying_party(prompt="login")).begin())
                await made.password(browser, alice)
                tab, code = browser.url, {**form_of(browser, "code"), "code": alice.fresh_code(made.clock())}
                await browser.open(f"{made.base}/sign-out")
                leaving = browser.http.post(browser.url, content=urlencode(form_of(browser)), headers=SAME_ORIGIN)
                browser.url = tab
                answers = await asyncio.gather(leaving, post(browser, "code", code))
                assert [answer.status_code for answer in answers] == [303, 303]
                assert sum("set-cookie" in answer.headers for answer in answers) == 1
                await browser.open(f"{made.base}/sign-out")
                signed_out = "set-cookie" in answers[0].headers
                assert (browser.page.heading == "You are signed out") == signed_out
                assert bool(await sessions(made)) != signed_out
                await made.provider.registry.sessions.end_all("id-alice", EVENT)


async def test_a_claim_and_a_sign_in_without_a_page_at_once_do_not_wait_for_each_other() -> None:
    """D15: both claim the request before they complete it, so neither is refused as if the database were gone."""
    with engines.postgresql(migrated=True) as dsn:
        async with new_world(database_url=dsn, key_encryption_key=SEALING, session_seconds=3600) as made:
            await made.person("bob", entity("200000001A", "Acme Pte. Ltd."))
            browser = await signed_in(made, "bob")
            url = await (await made.relying_party()).begin()
            provider = made.provider
            reference = parse_qs(urlsplit(url).query)["request_uri"][0].removeprefix(REQUEST_URI_PREFIX)
            place = (provider.policy.base_url, "rp1", reference)
            claim, completion = namespaces.CLAIM.entry(*place), namespaces.COMPLETED.entry(*place)
            async with asyncio.timeout(PATIENCE_SECONDS), provider.transient.batch(provider.clock()) as batch:
                assert await claim.add(batch, "another browser")
                arriving = asyncio.create_task(arrive(made, url, browser))
                await waits_for_a_row(dsn)
                assert await completion.add(batch, "another 1")
            assert await arriving == Reason.SIGN_IN_IN_ANOTHER_BROWSER.code


async def waits_for_a_row(dsn: str) -> None:
    """Until a transaction waits for another one."""
    observer = await asyncpg.connect(dsn)
    try:
        while True:
            if await observer.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                return
            await asyncio.sleep(0.01)
    finally:
        await observer.close()


async def test_a_person_deleted_during_the_last_step_of_a_sign_in_is_deleted_and_not_signed_in() -> None:
    """D50: both lock the person first, so PostgreSQL ends neither with a deadlock."""
    with engines.postgresql(migrated=True) as dsn:
        async with new_world(database_url=dsn, key_encryption_key=SEALING, session_seconds=3600) as made:
            browser, alice = await at_sign_in(made), made.people["alice"]
            await made.password(browser, alice)
            tab = browser.url
            await browser.fill_and_submit(code="000000")
            browser.url = tab
            deleting = await asyncpg.connect(dsn)
            try:
                async with asyncio.timeout(PATIENCE_SECONDS), deleting.transaction():
                    await deleting.execute("SELECT FROM users WHERE user_id = 'id-alice' FOR UPDATE")
                    form = {**form_of(browser, "code"), "code": alice.fresh_code(made.clock())}
                    sent = asyncio.create_task(post(browser, "code", form))
                    await waits_for_a_row(dsn)
                    await deleting.execute("DELETE FROM users WHERE user_id = 'id-alice'")
                assert (await sent).status_code == 303
            finally:
                await deleting.close()
            assert not await sessions(made)
            await browser.reload()
            assert browser.page.heading == "Sign in"
