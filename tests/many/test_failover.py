"""A standby takes over that lacks what the primary wrote last: nothing that was spent is spendable."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.authentication.totp import code_at
from tests.engines import PostgresServer, RedisServer
from tests.faults.attempts import Attempt, attempt
from tests.many.nodes import Person, is_ready, new_browser, running, signed_in, within
from tests.web.processes import RINA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx


pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]

NODES = 2
FLOWS = 5
LONG = 60
BETWEEN_ROUNDS = 0.5
"""seconds in which other tests have the processors, while everything is sent again and again"""
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
            await asyncio.sleep(BETWEEN_ROUNDS)
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


PEOPLE = 90
EVERY_SECONDS = 1.0
"""one sign-in begins; an office of this size, on the morning of a failover"""
BEFORE_SECONDS = 10
AWAY_SECONDS = 5
LONGEST_REFUSAL = 75
"""seconds after the promotion: until an app shows a code of the second step after it, with clocks 10 seconds apart"""
WAITING = re.compile(r"not accepted any more\. Wait (\d+) seconds?, then enter the next code from your app\.")


@dataclass
class Drill:
    """What an office met, in seconds since the promotion."""

    promoted: float = 0.0
    refused: list[float] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    slowed: list[float] = field(default_factory=list)
    signed_in: list[float] = field(default_factory=list)

    @property
    def now(self) -> float:
        return time.monotonic() - self.promoted if self.promoted else -1.0


async def test_an_office_behind_one_address_signs_in_after_a_failover(
    tmp_path: Path, servers: tuple[PostgresServer, Standby]
) -> None:
    """D45, D47, D67: right codes are refused for a bounded time, with the time to wait; nobody is slowed, and all get in."""
    primary, standby = servers
    url = f"postgresql://corpid@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres?target_session_attrs=read-write"
    passwords = Argon2Passwords(threads=1)
    factors = {"password_hash": await passwords.hash(RINA.password), "totp_secret": RINA.totp_secret}
    worker = {**factors, "memberships": ["A1"]}
    users = {f"person{each}": {**worker, "name": f"Person {each}"} for each in range(PEOPLE)}
    drill = Drill()

    async def failover() -> None:
        await asyncio.sleep(BEFORE_SECONDS)
        await asyncio.to_thread(primary.crash)
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(standby.promote)
        drill.promoted = time.monotonic()

    with RedisServer() as redis, running(tmp_path, url, redis.url, count=NODES) as nodes:
        nodes.applied(users=users)
        async with signed_in(nodes) as person, asyncio.timeout(FORGOTTEN_SECONDS), asyncio.TaskGroup() as office:
            office.create_task(failover())
            for number in range(PEOPLE):
                office.create_task(_at_work(person, drill, number))
                await asyncio.sleep(EVERY_SECONDS)
    assert drill.slowed == [], "nobody made an attempt too many"
    assert len(drill.signed_in) == PEOPLE
    assert drill.refused, "people came while codes of before were refused"
    assert (min(drill.refused) > 0, max(drill.refused) < LONGEST_REFUSAL) == (True, True), drill
    assert max(drill.waits) <= LONGEST_REFUSAL


async def _at_work(office: Person, drill: Drill, number: int) -> None:
    """One of the office, in a new browser: tries again while the site is away, and waits as the page says."""
    name = f"person{number}"
    while not await _came_in(office, drill, name, number % NODES):  # noqa: ASYNC110 - it is no event: a person tries again
        await asyncio.sleep(1)
    drill.signed_in.append(drill.now)


async def _came_in(office: Person, drill: Drill, name: str, node: int) -> bool:
    """Whether a sign-in came to its end; it did not if the site was away, or had forgotten it."""
    async with new_browser(office, node) as browser:
        rp = office.party(node)
        pushed = await rp.push()
        if pushed.status_code != 201:
            return False
        rp.sign_in.request_uri = pushed.json()["request_uri"]
        await browser.open(rp.authorization_url())
        if browser.page.form_with("user_name") is None:
            return False
        await browser.fill_and_submit(user_name=name, password=RINA.password)
        if browser.response is not None and browser.response.status_code == 429:
            drill.slowed.append(drill.now)
        while browser.page.form_with("code") is not None:
            await browser.fill_and_submit(code=code_at(RINA.totp_secret, time.time()))
            if browser.response is not None and browser.response.status_code == 429:
                drill.slowed.append(drill.now)
                return False
            said = WAITING.search(browser.page.text)
            if said is not None:
                drill.refused.append(drill.now)
                drill.waits.append(int(said[1]))
                await asyncio.sleep(int(said[1]))
        if browser.left is None and browser.page.form_with("decision") is not None:
            await browser.fill_and_submit("decision", button="agree")
        return browser.left is not None
