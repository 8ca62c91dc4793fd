"""PostgreSQL's own backup: pg_dump while people sign in, pg_restore, `corpid maintenance after-restore` (docs/reliability.md)."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from argon2.profiles import CHEAPEST

from corpid import app, engines, settings
from corpid.outbound.passwords import Argon2Passwords
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.people import Person
from corpid_dev.relying_party.relying_party import RelyingParty
from tests.engines import POSTGRESQL, postgresql, redis
from tests.protocol.deployment import WEEK, fill
from tests.protocol.directory import PASSWORD, TOTP_SECRET
from tests.web.processes import command
from tests.world.clients import rp_keys
from tests.world.clock import Clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.cli.conftest import Terminal

pytestmark = pytest.mark.full

ISSUER = "http://127.0.0.1:8000"
LATER = 120
"""seconds after a restore in which proofs and authenticators are believed again"""
ALICE = Person(user_name="alice", password=PASSWORD, totp_secret=TOTP_SECRET)
FIRST_NUMBER_AFTER = 1_000_000_000


def chosen(folder: Path, url: str, **more: str) -> dict[str, str]:
    return {
        "data_dir": str(folder / "data"),
        "base_url": ISSUER,
        "developer_mode": "true",
        "database_url": url,
        "key_encryption_key": base64.b64encode(bytes(range(32))).decode(),
        "session_seconds": str(WEEK),
        "migrate_on_start": "true",
        **more,
    }


class Visit:
    """A relying party and a browser at a deployment that runs in this process."""

    def __init__(self, http: httpx.AsyncClient, browsing: httpx.AsyncClient, clock: Clock) -> None:
        self.http, self.browsing, self.clock = http, browsing, clock

    def party(self) -> RelyingParty:
        return RelyingParty(client_id="rp-1", issuer=ISSUER, http=self.http, clock=self.clock, keys=rp_keys("rp-1"))

    async def sign_in(self) -> tuple[RelyingParty, str]:
        rp = self.party()
        browser = Browser(self.browsing, frozenset({ISSUER}))
        return rp, rp.callback(await people.sign_in(browser, await rp.begin(), ALICE, now=self.clock))

    async def sign_in_again(self) -> tuple[RelyingParty, httpx.Response]:
        """By the session that the browser has, if the provider knows it."""
        rp = self.party()
        return rp, await self.browsing.get(await rp.begin(), follow_redirects=False)


@asynccontextmanager
async def visiting(options: dict[str, Any], clock: Clock, cookies: httpx.Cookies | None = None) -> AsyncIterator[Visit]:
    passwords = Argon2Passwords(threads=1, profile=CHEAPEST)
    async with app.create(settings.load(**options), clock=clock, passwords=passwords) as application:
        transport = httpx.ASGITransport(app=application.asgi)
        async with (
            httpx.AsyncClient(transport=transport, base_url=ISSUER) as http,
            httpx.AsyncClient(transport=transport, base_url=ISSUER, cookies=cookies) as browsing,
        ):
            yield Visit(http, browsing, clock)


def program(name: str, *arguments: str) -> None:
    assert POSTGRESQL is not None
    done = subprocess.run([POSTGRESQL / name, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def number(url: str, question: str) -> int:
    assert POSTGRESQL is not None
    answer = subprocess.run([POSTGRESQL / "psql", "-XqAt", "-d", url, "-c", question], capture_output=True, check=True)
    return int(answer.stdout)


@contextmanager
def restored(tmp_path: Path, url: str) -> Iterator[str]:
    """The commands of docs/reliability.md; the address of the new database."""
    with postgresql() as other:
        program("pg_restore", "--exit-on-error", "--no-owner", f"--dbname={other}", str(tmp_path / "corpid.dump"))
        yield other


async def test_a_database_that_pg_restore_brought_back_signs_people_in_and_knows_nothing_that_was_spent(
    tmp_path: Path,
) -> None:
    clock = Clock(time.time())

    async def before(url: str) -> tuple[RelyingParty, str, httpx.Cookies]:
        options = chosen(tmp_path, url)
        await fill(tmp_path / "data", clock, **{key: value for key, value in options.items() if key != "data_dir"})
        async with visiting(options, clock) as visit:
            await visit.sign_in()
            rp, answer = await visit.sign_in_again()
            code = rp.callback(answer.headers["location"])
            await asyncio.to_thread(program, "pg_dump", "--format=custom", f"--file={tmp_path / 'corpid.dump'}", url)
            tokens = await rp.believe(await rp.token(code))
            assert (await rp.resource("GET", access_token=tokens.access_token)).status_code == 200
            return rp, code, visit.browsing.cookies

    async def after(url: str, rp: RelyingParty, code: str, cookies: httpx.Cookies) -> None:
        clock.now += LATER
        async with visiting(chosen(tmp_path, url), clock, cookies) as visit:
            rp.http = visit.http
            assert (await rp.token(code)).json()["error"] == "invalid_grant", "it was spent after the dump"
            assert (await rp.resource()).status_code == 401, "its token was issued before the restore"
            _, answer = await visit.sign_in_again()
            assert "code=" not in answer.headers.get("location", ""), "the session had ended"
            rp, code = await visit.sign_in()
            await rp.believe(await rp.token(code))

    with postgresql() as url:
        rp, code, cookies = await before(url)
        last = number(url, "SELECT max(number) FROM audit")
        with restored(tmp_path, url) as new:
            assert number(new, "SELECT count(*) FROM sessions") == 1
            told = command(tmp_path, "maintenance", "after-restore", **chosen(tmp_path, new))
            assert told.returncode == 0, told.stderr
            assert number(new, "SELECT count(*) FROM sessions") == number(new, "SELECT count(*) FROM transient") == 0
            assert number(new, "SELECT max(number) FROM audit") > FIRST_NUMBER_AFTER > last
            await after(new, rp, code, cookies)


async def test_after_restore_waits_until_every_server_is_stopped(tmp_path: Path) -> None:
    with postgresql() as url:
        options = chosen(tmp_path, url)

        async with visiting(options, Clock(time.time())):
            told = await asyncio.to_thread(command, tmp_path, "maintenance", "after-restore", **options)
            assert (told.returncode, "stop every one of them" in told.stderr) == (1, True), told.stderr
        assert number(url, "SELECT count(*) FROM deployment WHERE name = 'restored_at'") == 0


def test_after_restore_is_for_postgresql(terminal: Terminal) -> None:
    assert "`corpid restore FILE` does it by itself" in terminal.refused("maintenance", "after-restore")


async def put_and_looked(key: Any, options: dict[str, Any], *, put: bool) -> tuple[bytes | None, float]:
    async with engines.open_stores(settings.load(**options), time.time) as stores:
        async with stores.transient.batch(time.time()) as batch:
            if put:
                await batch.put("code", key, b"value", 60)
            found = await batch.get("code", key)
        assert found == await stores.transient.get("code", key, now=time.time())
        return found, stores.transient.loss.reject_issued_before


@pytest.mark.parametrize("engine", ["postgresql", "sqlite"])
def test_what_redis_holds_of_before_a_restore_is_never_used_again(terminal: Terminal, engine: str) -> None:
    """Redis went on while the database went back: its codes and pushed requests belong to what is no more."""
    key, restored_from = bytes(32), time.time()

    with postgresql() as url, redis() as transient_url:
        options = chosen(terminal.folder, url, transient_url=transient_url)
        if engine == "sqlite":
            options["database_url"] = f"sqlite:///{terminal.folder / 'own.db'}"
        steps = {"postgresql": [("maintenance", "after-restore")], "sqlite": [("backup", "copy"), ("restore", "copy")]}
        with terminal.given(options):
            terminal.done("migrate")
            assert asyncio.run(put_and_looked(key, options, put=True))[0] == b"value"
            for step in steps[engine]:
                terminal.done(*step)
        found, reject_issued_before = asyncio.run(put_and_looked(key, options, put=False))
        assert found is None
        assert reject_issued_before > restored_from
        assert asyncio.run(put_and_looked(key, options, put=True))[0] == b"value"
