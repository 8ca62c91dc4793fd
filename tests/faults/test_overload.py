"""Too much at once: what is beyond a bound is refused at once, and everybody who was let in is answered."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from corpid.rules.authentication.passwords import COMMAND_LINE
from corpid.web.http.connections import Limits
from tests.adapters.rp_server import answer, relying_party
from tests.faults.attempts import told_to_retry
from tests.faults.in_process import WAITING, Standing, standing
from tests.protocol.directory import PASSWORD
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    from pathlib import Path

    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.relying_party import RelyingParty

ROOM = 6
"""requests that may be answered at the same time"""


async def test_beyond_the_bound_of_requests_everybody_is_refused_at_once_and_those_within_are_answered(
    tmp_path: Path,
) -> None:
    """Every endpoint in its own form; health is answered; afterwards there is room again."""

    async def story(there: Standing) -> None:
        release = asyncio.Event()

        async def slowly(writer: asyncio.StreamWriter) -> None:
            await release.wait()
            await answer(json.dumps(rp_keys("slow").public()).encode())(writer)

        async with relying_party(slowly, tls=False) as keys:
            url = f"http://127.0.0.1:{keys.port}/jwks"
            await there.registers("slow", url)
            rp = there.party()
            begun = await rp.begin()
            parties = [there.party("slow") for _ in range(ROOM)]
            for party in parties:
                await party.discover()
            within = [asyncio.create_task(party.push()) for party in parties]
            await keys.arrived(1)
            while there.answering() < ROOM:  # noqa: ASYNC110 - several requests, which tell nobody
                await asyncio.sleep(0.01)
            await beyond(there, rp, begun)
            assert not any(task.done() for task in within)
            release.set()
            assert [(await task).status_code for task in within] == [201] * ROOM
            assert (await rp.push()).status_code == 201
            assert (await there.http.get(begun)).status_code == 303

    async def beyond(there: Standing, rp: RelyingParty, begun: str) -> None:
        refused = await rp.push()
        told_to_retry(refused)
        assert refused.json()["state"] == rp.sign_in.state
        told_to_retry(await rp.token("c" + "A" * 43))
        told_to_retry(await rp.resource(access_token="any"))
        told_to_retry(await there.http.get(begun))
        for path in ("/healthz", "/readyz"):
            assert (await there.http.get(there.issuer + path)).status_code == 200

    async with standing(tmp_path, Limits(concurrent_requests=ROOM)) as there:
        await story(there)


@pytest.mark.full
async def test_whoever_tries_again_at_once_gets_in_however_many_do(tmp_path: Path) -> None:
    """Refusals take no room themselves, or a crowd that does not go away would keep everybody out."""

    async def persistent(there: Standing, metadata: dict[str, Any]) -> None:
        rp = there.party()
        rp.metadata = metadata
        while (answered := await rp.push()).status_code != 201:
            told_to_retry(answered)

    async with standing(tmp_path, Limits(concurrent_requests=1)) as there:
        metadata = await there.party().discover()
        await asyncio.gather(*(persistent(there, metadata) for _ in range(10 * ROOM)))
        assert there.answering() == 0


async def test_beyond_the_queue_of_password_checks_people_are_told_to_retry_and_those_within_are_answered(
    tmp_path: Path,
) -> None:
    """D44; machines do not notice."""

    async def story(there: Standing) -> None:
        release = threading.Event()
        there.passwords._threads.submit(lambda: release.wait(60), COMMAND_LINE)
        people = [await there.arrived() for _ in range(WAITING + 2)]
        users = ["alice", "bob"] * len(people)
        posts = [asyncio.create_task(sign_in(*each)) for each in zip(people, users, strict=False)]
        while sum(post.done() for post in posts) < 2:
            await asyncio.wait([post for post in posts if not post.done()], return_when=asyncio.FIRST_COMPLETED)
        for post in posts:
            if post.done():
                told_to_retry(await post)
        assert (await there.party().push()).status_code == 201
        assert sum(post.done() for post in posts) == 2
        release.set()
        statuses = [(await post).status_code for post in posts]
        assert sorted(statuses) == [303] * (len(posts) - 2) + [503] * 2
        for browser, user, status in zip(people, users, statuses, strict=False):
            if status == 503:
                assert (await sign_in(browser, user)).status_code == 303
            assert (await browser.reload()).form_with("code")

    async def sign_in(browser: Browser, user: str) -> httpx.Response:
        form = browser.page.form_with("user_name", "password")
        assert form is not None
        fields = {control.name: control.value for control in form.controls}
        return await browser.http.post(
            str(httpx.URL(browser.url).join(form.action)),
            data={**fields, "user_name": user, "password": PASSWORD},
            headers={"Sec-Fetch-Site": "same-origin"},
        )

    async with standing(tmp_path) as there:
        await story(there)
