"""What each step of the sign-in, of an enrolment and of the account costs: transactions, statements and calls, never times.

Counted where they are made: transactions on the embedded database, where each unit and each write is one unless it joins
another; statements on PostgreSQL, with the verbs on Redis; Python calls into CorpID's own code, on the embedded database.
`python -m tests.sign_in.costs` prints the rows for docs/costs.md.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import time
from base64 import b64encode
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import corpid
from corpid.rules.directory.entity_choice import accepted_entities
from corpid.rules.limits import PASSKEY_OFFER_AGAIN_SECONDS
from corpid.stores.sql.columns import columns
from corpid.stores.sql.mappers import RecordType
from corpid.stores.sql.postgresql import PostgresDatabase
from corpid.stores.sql.sqlite import SqliteDatabase
from corpid.stores.sql.statements import _compile, by_shape, parameters, upsert
from corpid.stores.valkey import incarnations
from corpid.stores.valkey.link import EngineLink, packed
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import ENGLISH
from corpid.web.telemetry import access_log
from tests import engines
from tests.account.scene import account, at_account
from tests.authenticator import Authenticator
from tests.enrolment import newcomer
from tests.logs import log_left_alone
from tests.sign_in.factors import CODES, answer_of, choose, options_of, passkey, recovery
from tests.sign_in.world import EVERY_SCOPE, World, form_of, post, walk_to, world

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import FrameType

    from corpid_dev.relying_party.browser import Browser

PAGE: Final = Path(__file__).parents[2] / "docs" / "costs.md"
SEALING: Final = b64encode(bytes(32)).decode()
_HOME: Final = str(Path(corpid.__file__).parent)
_STARTED: Final = 0
"""the argument of RESUME where a function begins; others are of generators and coroutines that go on"""
_ARGUMENT: Final = 3
_LOOKS: Final = {packed(("GET", incarnations.name_marker(part))) for part in range(1024)}
_TRANSACTION: Final = ("BEGIN", "COMMIT", "ROLLBACK")
_ON_SQLITE: Final = SqliteDatabase._at_once.__code__
_ON_POSTGRESQL: Final = PostgresDatabase._run_translated.__code__
_ON_REDIS: Final = EngineLink.send.__code__
_ONCE: Final = {
    *(each.func.__code__ for each in vars(RecordType).values() if isinstance(each, cached_property)),
    *(each.__code__ for each in (RecordType._read, columns, upsert, parameters)),
}
_PREPARED: Final = (_compile.__qualname__, by_shape.__qualname__, Renderer._prepared.__qualname__)
"""with all that they call, and with what is above, what makes a statement or a page with gaps: once in the life of a
process"""
_IDENTIFIER: Final = re.compile(r"/[A-Za-z0-9_-]{43}\b")


@dataclass(slots=True, kw_only=True)
class Cost:
    """What one request cost."""

    transactions: int = 0
    statements: int = 0
    calls: int = 0


_COUNTED: Final[ContextVar[Cost | None]] = ContextVar("counted", default=None)
"""what the task that runs now is counted for"""


@dataclass(slots=True)
class Meter:
    """Counts a world's requests by `heading` and address; of those that are alike the first."""

    counted: dict[str, Cost] = field(default_factory=dict)
    heading: str = ""

    def watch(self, made: World) -> None:
        """Count every request that this world gets from here on."""
        served = made.application.asgi

        async def asgi(scope: Any, receive: Any, send: Any) -> None:
            path = _IDENTIFIER.sub("/…", scope["path"])
            cost = self.counted.setdefault(f"{self.heading}: {scope['method']} {path}", Cost())
            first = cost == Cost()
            with _counting(cost if first and self.heading else Cost()):
                await served(scope, receive, send)

        object.__setattr__(made.application, "asgi", asgi)


def _travels_along(command: bytes) -> bool:
    return b"\r\nPEXPIRE\r\n" in command or command in _LOOKS


@contextmanager
def _counting(cost: Cost) -> Iterator[None]:
    """Only what the request itself does: neither other threads nor what runs beside it count."""

    being_prepared: list[FrameType] = []

    def called(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if being_prepared:
            if event == "return" and frame is being_prepared[0]:
                being_prepared.clear()
            return
        if event != "call" or not code.co_filename.startswith(_HOME) or _COUNTED.get() is not cost:
            return
        if code.co_qualname.startswith(_PREPARED):
            being_prepared.append(frame)
            return
        if code.co_code[frame.f_lasti + 1] & _ARGUMENT != _STARTED or code in _ONCE:
            return
        cost.calls += 1
        if code is _ON_SQLITE:
            cost.transactions += frame.f_locals["text"].startswith("BEGIN")
        elif code is _ON_POSTGRESQL:
            cost.statements += not frame.f_locals["text"].startswith(_TRANSACTION)
        elif code is _ON_REDIS:
            # A count is one verb; its lifetime and a look at the incarnation's marker travel with it.
            cost.statements += sum(not _travels_along(command) for command in frame.f_locals["commands"])

    before, token = sys.getprofile(), _COUNTED.set(cost)
    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(before)
        _COUNTED.reset(token)


async def _to(made: World, browser: Browser, *steps: str, **asked: str) -> None:
    made.clock.pass_(60)
    await walk_to(made, browser, await made.relying_party(**asked), steps)


async def one_entity(made: World, meter: Meter) -> None:
    """Sign-ins that end with their last factor."""
    alice, key = made.people["alice"], await passkey(made, count=None)
    await recovery(made)
    # Prepared once a process: the statement for one service, and the forms that it accepts.
    found = await made.provider.registry_cache.services(("PERMITS",), made.clock())
    await made.provider.registry_cache.usable("nobody", accepted_entities(found), made.clock())
    meter.watch(made)
    browser = await made.browser()
    for place in ("new browser", "known browser"):
        await _to(made, browser)
        meter.heading = f"{place}, app"
        await made.password(browser, alice)
        await made.code(browser, alice)
        meter.heading = ""
    for place in ("new browser", "known browser"):
        browser = browser if place == "known browser" else await made.browser()
        await _to(made, browser)
        meter.heading = f"{place}, passkey"
        await post(browser, "passkey", {**form_of(browser, "passkey"), "passkey": answer_of(made, browser, key)})
        meter.heading = ""
    browser = await made.browser()
    await _to(made, browser, "password")
    meter.heading = "new browser, recovery code"
    await choose(browser, "recovery")
    await browser.fill_and_submit(code=CODES[0])
    meter.heading = ""


async def choices(made: World, meter: Meter) -> None:
    """Sign-ins with a choice and consent, and what goes wrong or is given up."""
    alice = made.people["alice"]
    await made.client(sector="private")
    meter.watch(made)
    browser = await made.browser()
    await _to(made, browser, scope=EVERY_SCOPE, prompt="consent")
    meter.heading = "two entities and consent"
    await made.password(browser, alice)
    await made.code(browser, alice)
    await browser.fill_and_submit(entity="200000001A")
    await post(browser, "extend", form_of(browser, "step"))
    await browser.reload()
    await browser.fill_and_submit("decision", button="agree")
    meter.heading = ""
    await _to(made, browser, "password", "code", scope=EVERY_SCOPE)
    meter.heading = "two entities and remembered consent"
    await browser.fill_and_submit(entity="200000001A")
    meter.heading = ""
    browser = await made.browser()
    await _to(made, browser)
    meter.heading = "what is wrong"
    await browser.fill_and_submit(user_name="alice", password="not hers")
    meter.heading = ""
    await made.password(browser, alice)
    meter.heading = "what is wrong"
    await browser.fill_and_submit(code="000000")
    await post(browser, "cancel", form_of(browser, "step"))
    meter.heading = ""


async def offers(made: World, meter: Meter) -> None:
    """Sign-ins in which a passkey is offered."""
    alice = made.people["alice"]
    meter.watch(made)
    browser = await made.browser()
    await _to(made, browser, "password")
    meter.heading = "offer of a passkey"
    await browser.fill_and_submit(code=alice.fresh_code(made.clock()), passkeys="yes")
    await browser.fill_and_submit("decision", button="not_now")
    meter.heading = ""
    made.clock.pass_(PASSKEY_OFFER_AGAIN_SECONDS)
    await _to(made, browser, "password")
    await browser.fill_and_submit(code=alice.fresh_code(made.clock()), passkeys="yes")
    meter.heading = "offer of a passkey, created"
    key = Authenticator(user_handle=b"id-alice", count=None)
    await browser.fill_and_submit(passkey=key.make(options_of(browser), made.base))
    meter.heading = ""


async def session(made: World, meter: Meter) -> None:
    """Single sign-on: its first sign-in, and the next."""
    alice = made.people["alice"]
    meter.watch(made)
    browser = await made.browser()
    await _to(made, browser, "password")
    meter.heading = "single sign-on"
    await made.code(browser, alice)
    meter.heading = ""
    await _to(made, browser, prompt="consent")
    meter.heading = "single sign-on"
    await browser.reload()
    await browser.fill_and_submit("decision", button="agree")
    meter.heading = ""


async def enrolment(made: World, meter: Meter) -> None:
    """A newcomer with password, app and recovery codes."""
    await newcomer.nina(made)
    await newcomer.opened(made, await newcomer.link(made))  # what is read once a process
    made.clock.pass_(60)
    url = await newcomer.link(made)
    assert made.provider.passwords.guessable()  # read once a process
    meter.watch(made)
    meter.heading = "enrolment"
    browser = await newcomer.opened(made, url)
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    await newcomer.kept(browser)
    meter.heading = ""


async def own_pages(made: World, meter: Meter) -> None:
    """The account's pages, and a change of password."""
    browser = await at_account(made)
    for page in ("", "browsers", "password"):
        await browser.open(account(made, page), site="none")  # what is formatted once a process
    meter.watch(made)
    http = await made.http()
    http.cookies = browser.http.cookies
    browser.http = http
    meter.heading = "account"
    for page in ("", "browsers", "password"):
        await browser.open(account(made, page), site="none")
    await browser.fill_and_submit(password="another good password")
    meter.heading = ""


STORIES: Final[dict[Callable[[World, Meter], Awaitable[None]], dict[str, Any]]] = {
    one_entity: {"entities": 1},
    choices: {"entities": 2},
    offers: {"entities": 1},
    session: {"entities": 1, "session_seconds": 3600},
    enrolment: {"entities": 1},
    own_pages: {"entities": 1},
}


async def _told(story: Callable[[World, Meter], Awaitable[None]], **options: Any) -> dict[str, Cost]:
    meter = Meter()
    with log_left_alone():
        # As a server writes it, whatever another test of the same process has configured.
        access_log.configure(clock=time.time, stream=io.BytesIO())
        async with world(**options) as made:
            await story(made, meter)
    return {name: cost for name, cost in meter.counted.items() if not name.startswith(":")}


def measured() -> dict[str, Cost]:
    """What each step costs, in the order in which the stories come to it."""
    Renderer().compile(ENGLISH)  # which else the first page of a fresh clone would do
    found: dict[str, Cost] = {}
    for story, options in STORIES.items():
        embedded = asyncio.run(_told(story, **options))
        with engines.postgresql(migrated=True) as dsn, engines.redis() as url:
            servers = {"database_url": dsn, "transient_url": url, "key_encryption_key": SEALING}
            apart = asyncio.run(_told(story, **options, **servers))
        for name, cost in embedded.items():
            found[name] = Cost(transactions=cost.transactions, statements=apart[name].statements, calls=cost.calls)
    return found


def row(name: str, cost: Cost) -> str:
    """A row of the table."""
    heading, _, request = name.partition(": ")
    return f"| {heading} | `{request}` | {cost.transactions} | {cost.statements} | {cost.calls} |"


if __name__ == "__main__":
    print("\n".join(row(name, cost) for name, cost in measured().items()))
    engines.stop()
