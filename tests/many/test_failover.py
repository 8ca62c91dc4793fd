"""A standby takes over that lacks what the primary wrote last: nothing that was spent is spendable (issue: promises, failover)."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import PostgresServer, RedisServer
from tests.faults.attempts import attempt
from tests.many.nodes import is_ready, running, signed_in, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

    from tests.faults.attempts import Attempt
    from tests.many.nodes import Person

pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]

NODES = 2
FLOWS = 5
LONG = 60
FORGOTTEN_SECONDS = 180
"""clocks may be apart, and what was issued meanwhile is refused for as long as it may be used"""


class Standby(PostgresServer):
    """A copy of a running server that follows it, and answers it for nothing."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__("hot_standby = on")
        self._primary = primary

    def _make(self) -> None:
        if self._user:
            shutil.chown(self.directory, self._user, self._user)
        program = self._programs / "pg_basebackup"
        copy = (program, "-D", self._data, "-d", self._primary.dsn(), "--write-recovery-conf", "--checkpoint=fast")
        assert self._run(copy, self._user).wait() == 0, self.log()
        self._configure()

    def is_level(self) -> bool:
        """Whether it has everything that the primary wrote until now."""
        written = self._primary.sql("SELECT pg_current_wal_lsn()")
        return self.sql(f"SELECT pg_last_wal_replay_lsn() >= '{written}'") == "t"

    def stop_following(self) -> None:
        self.sql("ALTER SYSTEM SET primary_conninfo = ''")
        self.sql("SELECT pg_reload_conf()")

    def promote(self) -> None:
        assert self.sql("SELECT pg_promote()") == "t"


@pytest.fixture
def servers() -> Iterator[tuple[PostgresServer, Standby]]:
    with PostgresServer(on_disk=True) as primary, Standby(primary) as standby:
        yield primary, standby


@pytest.fixture(params=["", "redis"])
def transient_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where there is Redis, it has forgotten nothing."""
    if not request.param:
        yield ""
        return
    with RedisServer() as redis:
        yield redis.url


async def test_what_a_standby_lacks_is_refused_when_it_takes_over(
    tmp_path: Path, servers: tuple[PostgresServer, Standby], transient_url: str
) -> None:
    """Codes, proofs, assertions and tokens; and who had signed out is not signed in again."""
    primary, standby = servers
    url = f"postgresql://corpid@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres?target_session_attrs=read-write"

    async def story(person: Person) -> None:
        attempts: list[Attempt] = []
        half = person.party(0)
        code = await person.code(half, 0)
        await within(LONG, lambda: _told(standby.is_level))
        await asyncio.to_thread(standby.stop_following)
        lived = int(standby.sql("SELECT count(*) FROM sessions"))
        assert (await half.token(code)).status_code == 200
        for number in range(FLOWS):
            await attempt(person.party(number % NODES), person.browsers[number % NODES], attempts)
        await asyncio.to_thread(primary.crash)
        await asyncio.to_thread(standby.promote)
        while not await _all_accept(person):
            await _nothing_again(person, attempts)
            refused = await half.token(code)
            assert refused.status_code in {400, 401, 503}, refused.text
        await _nothing_again(person, attempts)
        refused = await half.token(code)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
        assert (lived, standby.sql("SELECT count(*) FROM sessions")) == (1, "0")

    with running(tmp_path, url, transient_url, count=NODES) as nodes:
        async with signed_in(nodes) as person, asyncio.timeout(FORGOTTEN_SECONDS):
            await story(person)


async def _told(asked: Any) -> bool:
    return bool(await asyncio.to_thread(asked))


async def _all_accept(person: Person) -> bool:
    answers = [await person.party(number).push() for number in range(NODES)]
    assert {answer.status_code for answer in answers} <= {201, 400, 503}, [answer.text for answer in answers]
    ready = [await is_ready(person, number) for number in range(NODES)]
    return all(ready) and {answer.status_code for answer in answers} == {201}


async def _nothing_again(person: Person, attempts: list[Attempt]) -> None:
    """Everything of each flow once more, at every node: refused, or told to retry."""
    for number in range(NODES):
        for one in attempts:
            await _refused(one, person.https[number], person.browsers[number])


async def _refused(one: Attempt, http: httpx.AsyncClient, browsing: httpx.AsyncClient) -> None:
    rp = one.rp
    rp.http = http
    answers = [
        await rp.push({"client_assertion": rp.assertion()}, one.push[1]),
        await rp.push(one.push[0]),
        await rp.token(one.code, *one.exchange),
        await rp.token(one.code),
        await rp.resource(access_token=one.token),
    ]
    assert {answer.status_code for answer in answers} <= {400, 401, 503}, [answer.text for answer in answers]
    answer = await browsing.get(one.url, follow_redirects=False)
    assert "code=" not in answer.headers.get("location", "")
