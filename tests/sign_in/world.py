"""A provider in the test's own process, with relying parties, persons and browsers around it, and a clock to move."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST
from msgspec.structs import replace

from corpid import settings
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import Entity, Membership, Service, User
from corpid_dev.relying_party.people import Person
from tests.machine import memory
from tests.world import session
from tests.world.clients import CALLBACK, rp_keys
from tests.world.clock import Clock
from tests.world.provider import RunningProvider, SharedStores, copied, started, template

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    import httpx

    from corpid.outbound.passwords import Argon2Passwords
    from corpid.rules.fields import KeyedRecord
    from corpid.rules.oauth.records import Client
    from corpid_dev.flows.people import Developer
    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.postbox import Postbox

BASE: Final = "http://localhost:8080"
PASSWORD: Final = "correct horse battery"
SECRET: Final = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
MESSAGE: Final = "Sign the yearly return, 2026 (part 1)!"
IDENTITY: Final = "entity.identity entity.basic_profile.name entity.basic_profile.uen_status user.identity user.name"
EVERY_SCOPE: Final = f"openid authinfo tpauthinfo {IDENTITY}"
FORM: Final = "application/x-www-form-urlencoded"

Memory: TypeAlias = "Callable[[], AbstractContextManager[str]]"
"""starts what keeps short-lived data, and gives its address"""
KEYS: Final = rp_keys("rp1")
CHEAP: Final = CHEAPEST
PASSWORD_HASH: Final = PasswordHasher.from_parameters(CHEAP).hash(PASSWORD)
"""made once: for each person a provider would start its thread, which most tests need for nothing else"""
ELSEWHERE: Final = frozenset({"database_url", "transient_url", "key_encryption_key", "data_dir"})
"""settings of a database of its own"""


def entity(entity_id: str, name: str, **more: Any) -> Entity:
    return Entity(
        entity_id=entity_id, type="UEN", registration_number=entity_id, country="SG", name=name,
        **{"status": "Registered", **more},
    )  # fmt: skip


@dataclass(kw_only=True)
class World(RunningProvider):
    """A provider with client `rp1` and Alice."""

    clock: Clock
    people: dict[str, Person] = field(default_factory=dict)

    @property
    def provider(self) -> Any:
        return self.application.provider

    @property
    def decided(self) -> dict[str, str]:
        """What a request asks so that the person is asked to agree: every fact, or to be asked (D29, D40)."""
        everything = set(EVERY_SCOPE.split()) <= {"openid", *self.interface.scopes}
        return {"scope": EVERY_SCOPE} if everything else {"prompt": "consent"}

    async def http(self, address: str = "127.0.0.1") -> httpx.AsyncClient:
        """Somebody who reaches the provider from an address, and keeps cookies."""
        return self.connect(address)

    async def browser(self, address: str = "127.0.0.1") -> Browser:
        """A new browser without cookies."""
        return self.new_browser(address)

    async def relying_party(
        self, client_id: str = "rp1", *, scope: str = "openid authinfo", **parameters: Any
    ) -> RelyingParty:
        """A relying party with nothing pushed yet, whose pages carry the message of D12."""
        sent = {"authentication_context_message": MESSAGE, **parameters}
        return self.party(client_id, self.connect("192.0.2.1"), keys=KEYS, scope=scope, parameters=sent)

    async def write(self, *records: KeyedRecord) -> None:
        await super().write(*records)
        self.provider.registry_cache.drop()

    async def client(self, client_id: str = "rp1", **more: Any) -> Client:
        """Register a client, or change it."""
        given = {
            "keys": KEYS,
            "name": f"Relying Party {client_id[-1]}",
            "scopes": tuple(EVERY_SCOPE.split()),
            "services": ("PERMITS",),
            **more,
        }
        client = self.client_record(client_id, **given)
        await self.write(client)
        return client

    async def person(self, user_name: str, *entities: Entity, name: str = "Alice Tan", **more: Any) -> Person:
        """A person with both factors who may act for these entities."""
        user_id = f"id-{user_name}"
        await self.write(
            User(user_id=user_id, user_name=user_name, name=name, **more),
            Credentials(user_id=user_id, password_hash=PASSWORD_HASH, totp_secret=SECRET),
            *entities,
            *(Membership(user_id=user_id, entity_id=one.entity_id) for one in entities),
        )
        self.people[user_name] = Person(user_name=user_name, password=PASSWORD, totp_secret=SECRET)
        return self.people[user_name]

    async def disable(self, user_name: str) -> None:
        """Disable a person, whose factors stay as they are."""
        user = await self.provider.registry.directory.user(f"id-{user_name}")
        assert user is not None
        await self.write(replace(user, enabled=False))

    async def code(self, browser: Browser, person: Person) -> None:
        """Type the code that the person's app shows now."""
        await browser.fill_and_submit(code=person.fresh_code(self.clock()))

    async def password(self, browser: Browser, person: Person) -> None:
        await browser.fill_and_submit(user_name=person.user_name, password=person.password)

    async def factors(self, browser: Browser, person: Person) -> None:
        await self.password(browser, person)
        await self.code(browser, person)

    async def audit(self, action: str) -> list[Any]:
        return [entry for entry in await self.provider.registry.audit.entries(limit=1000) if entry.action == action]


@asynccontextmanager
async def world(
    *,
    base: str = BASE,
    entities: int = 2,
    postbox: Postbox | None = None,
    shared: SharedStores | None = None,
    developer: Developer | None = None,
    passwords: Argon2Passwords | None = None,
    **options: Any,
) -> AsyncIterator[World]:
    """A provider with client `rp1` (government) and Alice, who acts for that many entities. `options` are settings.

    With a postbox it sends mail, with `developer` it is a demo's (D66); `passwords` hash for more than the least.
    """
    async with AsyncExitStack() as stack:
        if shared is None:
            clock, stores = Clock(), None
            own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corpid-world-", dir=memory())))
            directory = copied(template(), own)
        else:
            clock, stores, directory = shared.clock, shared.stores, shared.directory
        edge = {"trusted_proxies": ("10.0.0.1",)} if base.startswith("https:") else {"developer_mode": True}
        chosen = settings.load(**{"base_url": base, "data_dir": directory, **edge, **options})
        made = await stack.enter_async_context(
            started(World, chosen, clock=clock, passwords=passwords, mail=postbox, stores=stores, developer=developer)
        )
        await made.write(Service(service_id="PERMITS", name="Permits", roles=("Maker",)))
        await made.client()
        names = ("Acme Pte. Ltd.", "Banyan Trading", "Cassia Works")
        await made.person("alice", *(entity(f"20000000{n + 1}A", names[n]) for n in range(entities)))
        yield made


@asynccontextmanager
async def new_world(**options: Any) -> AsyncIterator[World]:
    """A world with a new provider, and a database as it is when nothing has happened.

    The database stays open from one test to the next unless `options` say where it lies.
    """
    shared = None if ELSEWHERE & options.keys() else await session.shared_stores()
    async with world(shared=shared, **options) as made:
        yield made


@asynccontextmanager
async def world_on(memory: Memory | None, **options: Any) -> AsyncIterator[World]:
    """A world whose short-lived data is in a memory of its own; where there is none, on the disk."""
    with nullcontext() if memory is None else memory() as url:
        async with new_world(**options, **({"transient_url": url} if url else {})) as made:
            yield made


def query_of(url: str | None) -> dict[str, str]:
    """The parameters of a callback, each of which must be there once."""
    assert url is not None, "the browser did not leave for the relying party"
    assert url.startswith(CALLBACK), url
    found = parse_qs(urlsplit(url).query, strict_parsing=True)
    assert all(len(values) == 1 for values in found.values()), url
    return {name: values[0] for name, values in found.items()}


def form_of(browser: Browser, *names: str) -> dict[str, str]:
    """The hidden fields of the form with these names, as a page script or an attacker could read them."""
    form = browser.page.form_with(*names)
    assert form is not None, browser.page.text
    return {control.name: control.value for control in form.controls if not control.choice}


async def post(
    browser: Browser, action: str, fields: dict[str, str], *, site: str | None = "same-origin", **headers: str
) -> httpx.Response:
    """Send a form of the sign-in as it is, following nothing; `browser` only lends its cookies and its address."""
    sent = {"Content-Type": FORM, **({"Sec-Fetch-Site": site} if site else {}), **headers}
    where = f"{browser.url.partition('?')[0]}/{action}"
    return await browser.http.post(where, content=urlencode(fields), headers=sent)


async def shown_again(browser: Browser, answer: httpx.Response) -> httpx.Response:
    """The page to which a form that was not accepted leads, with what was typed and its errors (D73)."""
    assert answer.status_code == 303, answer.text
    assert "entered=" in answer.headers["location"]
    page = await browser.http.get(urljoin(str(answer.url), answer.headers["location"]))
    assert page.status_code == 200
    return page


async def rejected(browser: Browser, answer: httpx.Response) -> httpx.Response:
    """The same of a form of the sign-in, of which one is kept for each step."""
    assert answer.headers["location"].endswith("?entered=1")
    return await shown_again(browser, answer)


def way_back(browser: Browser) -> str:
    """Where the page of a sign-in that is over leads to, on its way to the relying party."""
    return next(target for target, _ in browser.page.links if target.endswith("/leave"))


def cookies_of(browser: Browser) -> dict[str, str]:
    return {cookie.name: cookie.value or "" for cookie in browser.http.cookies.jar}


def wear(browser: Browser, cookies: dict[str, str]) -> None:
    """Give a browser exactly these cookies, as if the provider had set them."""
    browser.http.cookies.clear()
    for name, value in cookies.items():
        browser.http.cookies.set(name, value, domain="localhost.local")


async def walk_to(made: World, browser: Browser, rp: RelyingParty, steps: Sequence[str] = ()) -> None:
    """Push, open, and go through these steps of Alice's sign-in: password, code, entity."""
    await browser.open(await rp.begin())
    person = made.people["alice"]
    for step in steps:
        match step:
            case "password":
                await made.password(browser, person)
            case "code":
                await made.code(browser, person)
            case "entity":
                await browser.fill_and_submit(entity="200000001A")
