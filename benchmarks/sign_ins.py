"""The cost of whole sign-ins, of one commit or two.

Each sign-in except single sign-on is in a new browser. It fetches every page, but not the static files, which a real one
keeps for a year. People with an e-mail address get an e-mail about a new browser, too; its cost is part of the sign-in.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import sys
import time
from base64 import urlsafe_b64decode
from collections import Counter, defaultdict
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import asyncpg
import pyotp
import redis
from aiosmtpd.smtp import SMTP, Envelope, Session

from benchmarks import counted, engines, statements, steps
from benchmarks.driver_hook import Walk, people
from benchmarks.http_client import Jar
from benchmarks.provider import Clocks
from benchmarks.sign_ins_report import OTHER, THIS
from benchmarks.stage import Cpus, Stage, opened
from benchmarks.steps import Wrong, require
from tests.authenticator import Authenticator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    from benchmarks.relying_party import Flow
    from tests.engines import PostgresServer

BLOCK = 5
"""sign-ins of a kind in a row"""
ROUNDS = 3
"""blocks of each kind and commit; blocks of both take turns"""
PASSKEYS = 4
"""people of each kind who have one, the first"""
SIGN_IN = "sign-in"
_IDLE_SECONDS = 0.2
"""in which the server finishes what follows a response"""
_WATCHED_SECONDS = 5.0
_OPTIONS = re.compile(r'data-options="([^"]*)"')
_CODE = re.compile(r"\b(\d{6})\b")
_MAIL_SECONDS = 10.0


class Mailbox:
    """An SMTP server on this machine that keeps the code that each person was sent."""

    def __init__(self) -> None:
        self.codes: dict[str, str] = {}

    async def handle_DATA(self, _: SMTP, __: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        content = envelope.content if isinstance(envelope.content, bytes) else (envelope.content or "").encode()
        text = message_from_bytes(content, policy=policy.default).get_body(("plain",))
        found = _CODE.search(text.get_content() if text else "")
        if found:
            self.codes[str(envelope.rcpt_tos[0])] = found[1]
        return "250 OK"

    async def code_for(self, name: str) -> str:
        """The code that this person is sent now. Raises steps.Wrong."""
        end = time.monotonic() + _MAIL_SECONDS
        while (code := self.codes.pop(people.address(name), None)) is None:
            require(SIGN_IN, time.monotonic() < end, "no code came by e-mail")
            await asyncio.sleep(0.002)
        return code


@asynccontextmanager
async def _mailbox() -> AsyncIterator[tuple[Mailbox, dict[str, str]]]:
    """A server for mail, and the settings that make a provider use it."""
    box, loop = Mailbox(), asyncio.get_running_loop()
    async with await loop.create_server(lambda: SMTP(box), "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        yield box, {"CORPID_MAIL_URL": f"smtp://127.0.0.1:{port}", "CORPID_MAIL_FROM": "sign-in@provider.example"}


@dataclass(slots=True)
class Cost:
    """What sign-ins of a kind cost on one side."""

    blocks: list[dict[str, float]] = field(default_factory=list)
    """milliseconds of the browser's part of each sign-in"""
    requests: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """milliseconds of the loop for each request of the browser, by what it asks"""
    counts: dict[str, int] = field(default_factory=dict)
    """of the browser's part of a sign-in, by what is counted"""


@dataclass(slots=True)
class Side:
    """A provider of one commit."""

    stage: Stage
    mailbox: Mailbox
    passkeys: dict[str, Authenticator] = field(default_factory=dict)
    sessions: dict[str, Jar] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)
    idle: Clocks = field(default_factory=lambda: Clocks(0.0, 0.0, 0.0))
    """what it costs for a second of the clock, if nobody asks for anything"""
    costs: dict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))

    def person(self, kind: str) -> str:
        """The next person of a kind who signs in with a password: a code works once, so each has a turn."""
        self.turns[kind] += 1
        return str(people.of_kind(kind, PASSKEYS + self.turns[kind] % (people.COUNT_OF_KIND - PASSKEYS)))

    def owner(self, kind: str) -> str:
        """The next person of a kind who signs in with a passkey."""
        self.turns[f"{kind}: passkey"] += 1
        return str(people.of_kind(kind, self.turns[f"{kind}: passkey"] % PASSKEYS))

    def walk(self, flow: Flow, jar: Jar | None = None, costs: dict[str, list[float]] | None = None) -> Walk:
        """A browser in front of a pushed request; what each of its requests costs is put into `costs`."""
        client, provider = self.stage.load.client, self.stage.provider

        async def send(url: str, method: str, head: str, body: bytes | None) -> Any:
            begun = provider.loop_seconds()
            answer = await client.fetch(url, method, head, body)
            require(SIGN_IN, answer.status in {200, 302, 303}, f"status {answer.status} at {urlsplit(url).path}")
            if costs is not None:
                costs[_asked(method, url, answer.body)].append(1000 * (provider.loop_seconds() - begun))
            return answer

        return Walk(send, jar or Jar(), steps.authorization_url(self.stage.maker, flow))


def _asked(method: str, url: str, page: bytes) -> str:
    """What a request of the browser asks: `POST password`, or `GET page: Sign in`."""
    path = urlsplit(url).path
    action = "page" if path.count("/") == 2 else path.rpartition("/")[2]
    heading = re.search(rb"<h1>(.*?)</h1>", page, re.DOTALL)
    return f"{method} {action}{': ' + heading[1].decode() if heading and action == 'page' else ''}"


async def _session(side: Side, walk: Walk, kind: str) -> None:
    """With a session from before, which `walk` brings."""
    del side, kind
    await walk.get()


async def _password(side: Side, walk: Walk, kind: str) -> None:
    """Password, and the second factor of this kind of people."""
    name = side.person(kind)
    await walk.get()
    await walk.submit(user_name=name, password=people.PASSWORD)
    if people.KINDS[kind][1]:
        await walk.submit("way", decision="email")
        await walk.submit(code=await side.mailbox.code_for(name))
    else:
        await walk.submit(code=pyotp.TOTP(people.totp_secret(name)).at(int(time.time())))


async def _passkey(side: Side, walk: Walk, kind: str) -> None:
    await walk.get()
    key = side.passkeys[side.owner(kind)]
    await walk.submit("passkey", passkey=key.use(_options(walk), side.stage.maker.endpoints.issuer))


def _options(walk: Walk) -> str:
    found = _OPTIONS.search(walk.page)
    if found is None:
        raise Wrong(f"{SIGN_IN}: {urlsplit(walk.url).path} offers no passkey")
    return unescape(found[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of sign-in."""

    name: str
    people: str
    """one of people.KINDS"""
    prove: Callable[[Side, Walk, str], Awaitable[None]]
    """from the authorization URL to the page after the last factor"""

    @property
    def key(self) -> str:
        return f"{self.people}: {self.name}"

    @property
    def entities(self) -> int:
        return int(people.KINDS[self.people][0])


KINDS = tuple(
    Kind(name=name, people=group + several, prove=prove)
    for name, group, prove in (
        ("single sign-on", "app", _session),
        ("passkey", "app", _passkey),
        ("password and app", "app", _password),
        ("password and code by e-mail", "mail", _password),
    )
    for several in ("", "-several")
)


async def measure(name: str, other: Path | None, cpus: Cpus, say: Callable[[str], None]) -> dict[str, Any]:
    """Whole sign-ins on the engines of engines.NAMES, by this commit, and by that of the checkout at `other`.

    Raises provider.NotStarted, steps.Wrong, load.Hopeless.
    """
    with ExitStack() as stack:
        server = stack.enter_context(engines.postgresql()) if name == engines.POSTGRES else None
        found: dict[str, dict[str, Cost]] = {}
        problems: Counter[str] = Counter()
        checkouts = {THIS: None, **({OTHER: other} if other else {})}
        async with AsyncExitStack() as opening:
            sides, settings = {}, {}
            for title, checkout in checkouts.items():
                say(f"starting {title} on {engines.NAMES[name]}")
                settings[title] = stack.enter_context(_settings(server))
                sides[title] = await opening.enter_async_context(_side(cpus, checkout, settings[title]))
            for number in range(-1, ROUNDS):
                say(f"round {number + 1} of {ROUNDS}")
                for kind in KINDS:
                    for title in sides if number % 2 else reversed(sides):
                        await _block(sides[title], kind, measured=number >= 0)
            if server is not None:
                for title, side in sides.items():
                    await _count(side, server, settings[title])
            for title, side in sides.items():
                found[title], problems = side.costs, problems + side.stage.load.problems
        if server is None:
            for title, checkout in checkouts.items():
                with _settings(None) as chosen, counted.file() as counts:
                    chosen |= {"BENCH_COUNTS": str(counts.path)}
                    async with _side(cpus, checkout, chosen) as side:
                        await _count_embedded(side, found[title], counts)
    return {
        "engines": name,
        "valid": not problems,
        "problems": dict(problems),
        "sign_ins": BLOCK * ROUNDS,
        "sides": {
            title: {f"{kind.name}{_of(kind)}": _figures(costs[kind.key]) for kind in KINDS}
            for title, costs in found.items()
        },
    }


def _of(kind: Kind) -> str:
    return ", one entity" if kind.entities == 1 else f", {kind.entities} entities"


def _figures(cost: Cost) -> dict[str, Any]:
    return {
        **{name: round(statistics.median(one[name] for one in cost.blocks), 3) for name in cost.blocks[0]},
        "counts": cost.counts,
        "requests": {
            name: {"each": len(spent) / (BLOCK * ROUNDS), "loop_ms": round(statistics.median(spent), 3)}
            for name, spent in cost.requests.items()
        },
    }


@contextmanager
def _settings(server: PostgresServer | None) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        if server is None:
            yield {}
            return
        database = stack.enter_context(server.database())
        yield stack.enter_context(engines.settings(server, database))


@asynccontextmanager
async def _side(cpus: Cpus, checkout: Path | None, settings: Mapping[str, str]) -> AsyncIterator[Side]:
    """A provider with its people, their passkeys and sessions."""
    python = sys.executable if checkout is None else str(checkout / ".venv" / "bin" / "python")
    async with _mailbox() as (box, mail):
        chosen = {**settings, **mail, "BENCH_SIGN_INS": "1"}
        # Passkeys belong to a name, not to an address.
        async with opened(cpus, connections=1, settings=chosen, python=python, host="localhost") as stage:
            side = Side(stage, box)
            for kind in ("app", "app-several"):
                for index in range(PASSKEYS):
                    await _enrol(side, people.of_kind(kind, index))
                side.sessions[kind] = await _signed_in(side, people.of_kind(kind, 0))
            await asyncio.sleep(_IDLE_SECONDS)
            before = stage.provider.clocks()
            await asyncio.sleep(_WATCHED_SECONDS)
            spent = stage.provider.clocks() - before
            side.idle = Clocks(spent.loop / spent.wall, spent.cpu / spent.wall, 0.0)
            yield side


async def _enrol(side: Side, name: str) -> None:
    """Give a person a passkey, on the pages of their account."""
    issuer, client = side.stage.maker.endpoints.issuer, side.stage.load.client
    walk = Walk(client.fetch, Jar(), f"{issuer}/account/new-passkey")
    await walk.get()
    await walk.submit(user_name=name, password=people.PASSWORD)
    await walk.submit(code=pyotp.TOTP(people.totp_secret(name)).at(int(time.time())))
    if walk.url.endswith("/return"):
        walk.url = walk.url.removesuffix("return") + "leave"
        await walk.get()
    walk.url = f"{issuer}/account/new-passkey"
    await walk.get()
    asked = json.loads(_options(walk))
    handle = asked["user"]["id"]
    key = Authenticator(user_handle=urlsafe_b64decode(handle + "=" * (-len(handle) % 4)), count=None)
    await walk.submit("new-passkey", passkey=key.make(json.dumps(asked), issuer))
    require(SIGN_IN, urlsplit(walk.url).path.endswith("/account/passkeys"), "no passkey was created")
    side.passkeys[name] = key


async def _signed_in(side: Side, name: str) -> Jar:
    """A browser with a session, from a sign-in with the person's passkey."""
    (flow,) = await side.stage.workshop.flows(1)
    await side.stage.push(flow)
    walk = side.walk(flow)
    await walk.get()
    await walk.submit("passkey", passkey=side.passkeys[name].use(_options(walk), side.stage.maker.endpoints.issuer))
    jar: Jar = walk.jar
    return jar


async def _block(side: Side, kind: Kind, count: int = BLOCK, *, measured: bool = True) -> None:
    """So many sign-ins one after the other; the browser's part of them is measured."""
    stage, cost = side.stage, side.costs[kind.key]
    flows = await stage.workshop.flows(count)
    for flow in flows:
        await stage.push(flow)
    await asyncio.sleep(_IDLE_SECONDS)
    spent = Clocks(0.0, 0.0, 0.0)
    for flow in flows:
        before = stage.provider.clocks()
        await _sign_in(side, kind, flow, cost.requests if measured else None)
        spent += stage.provider.clocks() - before
    before = stage.provider.clocks()
    await asyncio.sleep(_IDLE_SECONDS)
    after = stage.provider.clocks() - before
    for flow in flows:
        await stage.finish(flow)
    stage.check(flows, 2)
    if measured:
        # What follows the last response, such as an e-mail, is part of it; what is done by the clock is not.
        seconds = spent.wall + after.wall
        by_the_clock = Clocks(side.idle.loop * seconds, side.idle.cpu * seconds, after.wall)
        cost.blocks.append((spent + after - by_the_clock).milliseconds(count))


async def _sign_in(side: Side, kind: Kind, flow: Flow, costs: dict[str, list[float]] | None) -> None:
    """The browser's part, from authorize to the callback. Raises steps.Wrong."""
    jar = side.sessions[kind.people] if kind.prove is _session else None
    walk = side.walk(flow, jar, costs)
    await kind.prove(side, walk, kind.people)
    if kind.entities > 1:
        await walk.submit(entity=people.entity_of_many(1))
    if walk.url.endswith("/return"):
        await side.stage.leave(walk, flow)
    else:
        steps.called_back(flow, walk.answer)


async def _count(side: Side, server: PostgresServer, settings: Mapping[str, str]) -> None:
    """Count statements on PostgreSQL and commands on Redis."""
    counting = await asyncpg.connect(server.dsn())
    database = urlsplit(settings["CORPID_DATABASE_URL"]).path.strip("/")
    try:
        with closing(redis.Redis.from_url(settings["CORPID_TRANSIENT_URL"])) as transient:
            for kind in KINDS:
                flows = await side.stage.workshop.flows(BLOCK)
                for flow in flows:
                    await side.stage.push(flow)
                count = statements.Count(counting, database)
                await count.begin()
                before = _commands(transient)
                for flow in flows:
                    await _sign_in(side, kind, flow, None)
                await asyncio.sleep(_IDLE_SECONDS)
                after = _commands(transient)
                await count.note(BLOCK)
                await asyncio.sleep(1)
                await count.note(0)
                each = {name: (number - before[name]) // BLOCK for name, number in after.items()}
                side.costs[kind.key].counts = {"statements": count.document()["each"], "verbs": sum(each.values())}
    finally:
        await counting.close()


_TRAVELS_ALONG = frozenset({"pexpire", "info", "ping", "hello", "client", "select", "time", "role", "config"})
"""no verbs: a lifetime, or what connections ask"""


def _commands(connection: redis.Redis) -> Counter[str]:
    """How often each command was carried out."""
    found: Any = connection.info("commandstats")
    names = {name.removeprefix("cmdstat_"): one["calls"] for name, one in found.items()}
    return Counter({name: calls for name, calls in names.items() if name.partition("|")[0] not in _TRAVELS_ALONG})


async def _count_embedded(side: Side, costs: dict[str, Cost], counts: counted.Counts) -> None:
    """Count statements and verbs on the embedded stores."""
    for kind in KINDS:
        flows = await side.stage.workshop.flows(BLOCK)
        for flow in flows:
            await side.stage.push(flow)
        before = counts.read()
        for flow in flows:
            await _sign_in(side, kind, flow, None)
        after = counts.read()
        costs[kind.key].counts = {name: (after[name] - before[name]) // BLOCK for name in after}
