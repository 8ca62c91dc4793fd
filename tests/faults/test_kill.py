"""A process that dies in the middle of everything: what was spent stays spent, and the keys stay (docs/reliability.md)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.faults.attempts import Attempt, attempt, nothing_twice
from tests.faults.serving import Deployment, deployment, outside

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.full

WORKERS = 8
FLOWS = 40
"""how many whole flows there are before the process is killed"""


async def load(made: Deployment, attempts: list[Attempt]) -> str:
    """Flows from every worker at once until the process is killed under them; the key set before."""
    async with outside(made) as person:
        keys = (await person.http.get("/.well-known/keys")).text

        async def work() -> None:
            try:
                while True:
                    await attempt(person.party(), person.browser.http, attempts)
            except httpx.TransportError:
                return

        workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
        while sum(bool(one.token) for one in attempts) < FLOWS:
            assert not any(worker.done() for worker in workers)
            await asyncio.sleep(0.001)
        made.kill(made.ports[0])
        await asyncio.gather(*workers)
    return keys


@pytest.fixture
def killed(tmp_path: Path) -> Any:
    """A deployment that was killed under load and started again, what had been asked, and its key set before."""
    attempts: list[Attempt] = []
    with deployment(tmp_path, processes=1) as made:
        keys = asyncio.run(load(made, attempts))
        made.start(made.ports[0])
        yield made, attempts, keys


async def test_after_kill_under_load_nothing_spent_can_be_spent_again(
    killed: tuple[Deployment, list[Attempt], str],
) -> None:
    """D49: kill -9 under load, then start again: the database opens, keys are the same, nothing twice."""
    made, attempts, keys = killed

    async with outside(made) as person:
        assert (await person.http.get("/readyz")).status_code == 200
        assert (await person.http.get("/.well-known/keys")).text == keys
        ends = [await nothing_twice(person.http, person.browser.http, one) for one in attempts]
        assert ends.count("refused") >= FLOWS
        fresh = person.party()
        assert (await fresh.token(await person.code(fresh))).status_code == 200
    with closing(sqlite3.connect(made.data_dir / "corpid.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        written = database.execute("SELECT count(*) FROM audit WHERE action = 'sign_in.complete'").fetchone()[0]
    assert written >= sum(bool(one.code) for one in attempts)


async def test_a_sign_in_that_was_under_way_goes_on_after_the_restart(tmp_path: Path) -> None:
    """D15: the interaction lives in the store, not in the process."""

    async def begun(made: Deployment) -> tuple[str, dict[str, str]]:
        async with outside(made) as person:
            url = f"{await person.party().begin()}"
            person.browser.http.cookies.clear()
            await person.browser.open(url)
            assert person.browser.page.form_with("user_name", "password")
            return person.browser.url, {cookie.name: str(cookie.value) for cookie in person.browser.http.cookies.jar}

    with deployment(tmp_path, processes=1) as made:
        where, cookies = await begun(made)
        made.kill(made.ports[0])
        made.start(made.ports[0])
        async with outside(made) as person:
            person.browser.http.cookies.clear()
            person.browser.http.cookies.update(cookies)
            page = await person.browser.open(where)
            assert page.form_with("user_name", "password")
