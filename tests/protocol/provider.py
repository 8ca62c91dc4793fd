"""A provider in the test's own process, asked in plain calls: `world.push(state=None).status_code`.

A world is the real application on a copy of a database that is made once: its directory, a client `rp-1` and
its keys are there from the start. Only its clock is the test's, and its password hashing is cheap. The
relying party is the simulator, which can be dishonest in exactly one place.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

from corpid import settings
from corpid.stores import READINESS
from corpid_dev.relying_party import people
from corpid_dev.relying_party.interfaces import INTERFACES
from corpid_dev.relying_party.people import Person
from tests.machine import memory
from tests.protocol import directory
from tests.protocol.deployment import ISSUER, LIVE, WEEK, registered, template
from tests.protocol.expectations import EXPECTED
from tests.world.clock import NOON, Clock
from tests.world.provider import RunningProvider, Snapshot, copied, started
from tests.world.short_lived import ShortLived

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    import httpx

    from corpid import app
    from corpid.flows.request_context import Provider
    from corpid.rules.fields import KeyedRecord
    from corpid.rules.oauth.records import Client
    from corpid_dev.flows.people import Developer
    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.relying_party import RelyingParty

T = TypeVar("T")


class World:
    """A provider, its clock, and the relying party `rp-1` with everything it needs. Close it at the end.

    `options` are settings; with `developer` it is a demo's (D66), with `one_database` short-lived data is in SQLite, too. Single sign-on is on, so that a test that is not about pages gets its code quickly.
    """

    def __init__(
        self,
        *,
        at: Path | None = None,
        clock: Clock | None = None,
        developer: Developer | None = None,
        one_database: bool = False,
        **options: Any,
    ) -> None:
        self.directory = at or copied(template(), Path(tempfile.mkdtemp(prefix="corpid-world-", dir=memory())))
        self.clock = clock or Clock()
        self._keep = at is not None
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._audited = 0
        if one_database:
            # The address of the default written otherwise, so that short-lived data is there, too.
            options["database_url"] = f"sqlite:///{self.directory}/./corpid.sqlite"
            options["key_encryption_key_file"] = self.directory / "sealing.key"
        self._one_database = one_database
        chosen = {"base_url": ISSUER, "trusted_proxies": ("127.0.0.1",), "session_seconds": WEEK, **options}
        self.interface = INTERFACES[chosen.get("generations", ("current",))[0]]
        self.expected = EXPECTED[self.interface.name]
        self.issuer: str = chosen["base_url"]
        loaded = settings.load(data_dir=self.directory, **chosen)
        running = started(RunningProvider, loaded, clock=self.clock, developer=developer)
        self.running = self.run(self._stack.enter_async_context(running))
        self.application: app.Application = self.running.application
        self._short_lived = ShortLived(self.directory)
        self._snapshot = Snapshot(self.directory)
        self._look = sqlite3.connect(f"file:{self.directory / 'corpid.sqlite'}?mode=ro", uri=True)
        self._outside()

    def _outside(self) -> None:
        if self.interface.ends:
            self._admit()
        self.http = self.running.connect()
        self.rp = self.party()
        self.browser = self.new_browser()

    def _admit(self) -> None:
        self.run(self.running.write(self.client("rp-1"), self.client("rp-2")))
        self.provider.registry_cache.drop()
        self._audited += len(self.audited())

    def reset(self) -> None:
        """As it was when it was made: its tables, its clock, and nobody there who asked before."""
        self._snapshot.restore()
        self._short_lived.remove_all()
        self.provider.registry_cache.drop()
        self._audited = 0
        self._audited = len(self.audited())
        self.clock.now = NOON
        self._outside()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._look.close()
        self._snapshot.close()
        self._short_lived.close()
        self.run(self._stack.aclose())
        self._runner.close()
        if not self._keep:
            shutil.rmtree(self.directory)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    @property
    def provider(self) -> Provider:
        return self.application.provider

    # Relying parties, persons, browsers

    def party(self, client_id: str = "rp-1", **options: Any) -> RelyingParty:
        """A relying party with nothing pushed yet."""
        return self.running.party(client_id, self.http, **options)

    def client(self, client_id: str = "rp-1", **changes: Any) -> Client:
        """A client as it is registered here, in the generation that is spoken."""
        return registered(client_id, **{"interface": self.interface, **changes})

    def registers(self, client_id: str = "rp-1", **changes: Any) -> RelyingParty:
        """Register a client, or change it, in another process; its relying party. Five seconds pass (D50)."""
        self.writes(self.client(client_id, **changes))
        return self.party(client_id)

    def writes(self, *records: KeyedRecord) -> None:
        """Another process writes these records; five seconds later this one knows (D50)."""
        self.run(self.running.write(*records))
        self.clock.now += LIVE

    def deletes(self, *records: KeyedRecord) -> None:
        self.run(self.running.delete(*records))
        self.clock.now += LIVE

    def new_browser(self) -> Browser:
        """A browser without cookies."""
        return self.running.new_browser()

    def sign_in(self, rp: RelyingParty | None = None, user: str = "alice", browser: Browser | None = None) -> str:
        """Push and sign a person in through the pages; the callback URL. Thirty seconds pass, for the next code."""
        url = self.run((rp or self.rp).begin())
        return self.through_the_pages(url, user, browser)

    def through_the_pages(self, url: str, user: str = "alice", browser: Browser | None = None) -> str:
        """From an authorization URL through the pages to the callback URL. Thirty seconds pass, for the next code."""
        person = Person(user_name=user, password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
        self.clock.now += 30
        return self.run(people.sign_in(browser or self.browser, url, person, now=self.clock))

    # Requests, each answer as it came

    def push(
        self, rp: RelyingParty | None = None, /, *, headers: Any = None, body: Any = None, **form: Any
    ) -> httpx.Response:
        return self.run((rp or self.rp).push(form, headers, body=body))

    def get(self, url: str, browser: Browser | None = None, /, **headers: str) -> httpx.Response:
        """One GET, following nothing; by name a header is written sec_fetch_dest."""
        http = (browser or self.browser).http
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.run(http.get(url, headers=sent, follow_redirects=False))

    def code(self, rp: RelyingParty | None = None, **parameters: Any) -> str:
        """A new code for `rp`, by single sign-on once somebody has signed in."""
        rp = rp or self.rp
        if not self.browser.http.cookies:
            self.sign_in(rp)
        rp.restart()
        answer = self.get(self.asked(rp, **parameters))
        assert answer.status_code == 302, answer.text
        return self.run(_callback(rp, answer.headers["location"]))

    def asked(self, rp: RelyingParty | None = None, **parameters: Any) -> str:
        """The URL that a browser is sent to with these parameters over the honest ones: in a push, or in the query."""
        rp = rp or self.rp
        if not rp.interface.pushed:
            self.run(rp.discover())
            return rp.authorization_url(**parameters)
        answer = self.push(rp, **parameters)
        assert answer.status_code == 201, answer.text
        rp.sign_in.request_uri = answer.json()["request_uri"]
        return rp.authorization_url()

    def redeem(
        self, code: str, rp: RelyingParty | None = None, /, *, headers: Any = None, **form: Any
    ) -> httpx.Response:
        return self.run((rp or self.rp).token(code, form, headers))

    def tokens(self, rp: RelyingParty | None = None, **form: Any) -> Any:
        """Tokens that were just redeemed and verified."""
        rp = rp or self.rp
        code = self.code(rp, **form)
        return self.run(rp.believe(self.redeem(code, rp)))

    def userinfo(
        self, rp: RelyingParty | None = None, method: str = "GET", *, token: str | None = None, **headers: Any
    ) -> httpx.Response:
        return self.run((rp or self.rp).resource(method, headers, access_token=token))

    # What is stored

    def stored(self) -> set[tuple[Any, ...]]:
        """Every living entry of the transient store: a request that spends or writes nothing leaves it as it is."""
        if not self._one_database:
            return set(self._short_lived.entries(self.clock.now))
        live = "SELECT kind, key, value, count, expires_at FROM transient WHERE expires_at > ? AND kind <> ?"
        return set(self._look.execute(live, (int(self.clock.now * 1000), READINESS)))

    @contextmanager
    def nothing_spent(self, *events: str) -> Iterator[None]:
        """What happens inside leaves the transient store as it was, and the audit table but for these events."""
        before = self.stored(), self.audited()
        yield
        assert (self.stored(), self.audited()) == (before[0], [*before[1], *events])

    def kinds(self) -> list[str]:
        """The kinds of the stored rows, sorted."""
        return sorted(row[0] for row in self.stored())

    def audited(self) -> list[str]:
        """The actions of the audit table, oldest first, since the world was made or reset."""
        rows = self._look.execute("SELECT action FROM audit ORDER BY number LIMIT -1 OFFSET ?", (self._audited,))
        return [action for (action,) in rows]


class Worlds:
    """Worlds by their settings, each used again after a reset: making one costs more than most tests."""

    def __init__(self, generation: str = "current", made: dict[str, World] | None = None) -> None:
        self._generation = generation
        self._made: dict[str, World] = {} if made is None else made

    def speaking(self, generation: str) -> Worlds:
        """The same worlds, of which those to come speak this generation unless their settings say otherwise."""
        return Worlds(generation, self._made)

    def fresh(self, **options: Any) -> World:
        """A world in which nothing has happened."""
        options = {"generations": (self._generation,), **options}
        world = self._made.get(repr(options))
        if world is None:
            world = self._made[repr(options)] = World(**options)
        world.reset()
        return world

    def close(self) -> None:
        for world in self._made.values():
            world.__exit__()


async def _callback(rp: RelyingParty, url: str) -> str:
    return rp.callback(url)


def query(url: str) -> dict[str, str]:
    """The parameters of a callback URL, each of which must be there once."""
    pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs), url
    return dict(pairs)
