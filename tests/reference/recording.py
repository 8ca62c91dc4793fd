"""A sign-in in each generation against a running provider, recorded for docs/reference.

`python -m tests.reference.recording` (`make examples`) writes docs/reference/examples; a test records again and
compares what does not change from one time to the next. The clock stands, so times do not change either.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx

from corpid import settings
from corpid.flows.directory.apply import apply_document
from corpid.rules.directory.access import CommandLine
from corpid.settings.issuers import client_rules
from corpid_dev.demo import example_directory
from corpid_dev.demo.demo import next_free
from corpid_dev.demo.example_directory import ExampleDirectory
from corpid_dev.relying_party import jwt, people, verification
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.interfaces import INTERFACES, Interface
from corpid_dev.relying_party.relying_party import Exchange, RelyingParty, Timeline
from scripts.reference.claims import OTHER_CLIENT
from tests.house.source import ROOT
from tests.world import clients
from tests.world.clock import Clock
from tests.world.provider import RunningProvider, copied, served, started, template, temporary_directory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


EXAMPLES: Final = ROOT / "docs" / "reference" / "examples"
PORT: Final = 8400
CLIENT: Final = "example-rp"
ENTITY_CLIENT: Final = "example-rp-entity"
"""`sub` names the entity, and blocks are strings"""
CALLBACK: Final = "https://rp.example/callback"
PERSON: Final = "wei.ling"
ENTITY: Final = "209912345D"
SHOWN: Final = (
    "content-type",
    "cache-control",
    "pragma",
    "www-authenticate",
    "location",
    "authorization",
    "dpop",
    "accept",
)
TITLES: Final = {
    "Discovery": "discovery", "Pushed authorization request": "par", "Token": "token",
    "Keys of the provider": "keys", "Userinfo": "userinfo", "Entity-info": "entity-info",
    "Authorization-info": "authorization-info",
}  # fmt: skip


@dataclass(kw_only=True)
class Recorded:
    """What relying parties of one generation received."""

    interface: Interface
    exchanges: dict[str, dict[str, Any]] = field(default_factory=dict)
    """name → request and response"""
    answers: list[tuple[str, Any]] = field(default_factory=list)
    """name of the record in scripts/reference/answers.py, and an answer of that kind"""
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    """name → headers and claims"""

    def document(self) -> dict[str, Any]:
        return {"generation": self.interface.name, "exchanges": self.exchanges, "tokens": self.tokens}


class Recorder:
    """Relying parties at one running provider."""

    def __init__(self, running: RunningProvider, clock: Clock, http: httpx.AsyncClient) -> None:
        self._running, self._clock, self._http = running, clock, http
        self._people = {each.user_name: each for each in DIRECTORY.persons()}
        self.recorded = Recorded(interface=running.interface)
        self.logged: list[dict[str, Any]] = []
        """what the log says of each request"""

    @property
    def issuer(self) -> str:
        return self._running.base

    def now(self) -> float:
        return self._clock()

    async def register(self, client_id: str, redirect_uri: str, jwks: dict[str, Any]) -> None:
        """One more client, as a directory file has it."""
        await _apply(self._running, {client_id: (redirect_uri, jwks, {})})

    async def visit(self, url: str) -> verification.Callback:
        """A person's browser opens an authorization URL."""
        async with self._browser() as browser:
            return await people.sign_in(browser, url, self._people[PERSON], ENTITY, now=self._clock)

    def party(self, client_id: str = CLIENT, **more: Any) -> RelyingParty:
        everything = " ".join(("openid", *self._running.interface.scopes))
        return self._running.party(client_id, self._http, **{"redirect_uri": CALLBACK, "scope": everything, **more})

    async def record(self) -> Recorded:
        """A whole sign-in, one of each other form, and an error at each endpoint."""
        party = await self._signed_in(self.party())
        await self._read(party, "")
        self._keep_exchanges(party.timeline)
        await self._refused(party)
        other = await self._signed_in(self.party(ENTITY_CLIENT, stringified_blocks=True))
        await self._read(other, OTHER_CLIENT)
        for person, name in (("rina", " of rina"), ("greta", None)):
            await self._read(await self._signed_in(self.party(), person), name)
        await self._cancelled()
        await self._health()
        return self.recorded

    async def received(self, scope: str) -> dict[str, dict[str, Any]]:
        """Claims of ID token and resources for this scope; those of a resource that needs another one are missing."""
        party = await self._signed_in(self.party(scope=scope))
        assert party.sign_in.tokens is not None
        found = {"ID token": party.sign_in.tokens.id_token, party.interface.userinfo.name: await party.userinfo()}
        if party.interface.entity_info is not None:
            answer = await party.resource(endpoint=party.interface.entity_info.endpoint)
            if answer.status_code == 200:
                found[party.interface.entity_info.name] = jwt.peek(answer.text)[1] or {}
        return found

    async def arrived(self) -> RelyingParty:
        """A relying party that has a code."""
        party = self.party()
        party.callback(await self._callback(party, PERSON))
        return party

    async def _callback(self, party: RelyingParty, person: str) -> verification.Callback:
        self._clock.pass_(60)
        entity = ENTITY if person == PERSON else None
        async with self._browser() as browser:
            callback = await people.sign_in(browser, await party.begin(), self._people[person], entity, now=self._clock)
        self._keep_callback(callback, "callback", "CallbackParameters")
        return callback

    async def _signed_in(self, party: RelyingParty, person: str = PERSON) -> RelyingParty:
        await party.redeem(await self._callback(party, person))
        return party

    async def _read(self, party: RelyingParty, name: str | None) -> None:
        """Every resource; `name` distinguishes the tokens that are shown."""
        if party.interface.entity_info:
            await party.entity_info()
        await party.userinfo()
        self._keep(party, name)

    @asynccontextmanager
    async def _browser(self) -> AsyncIterator[Browser]:
        async with httpx.AsyncClient(timeout=30, trust_env=False) as http:
            yield Browser(http, frozenset({self._running.base}))

    def _keep_exchanges(self, timeline: Timeline) -> None:
        for exchange in timeline.exchanges:
            self.recorded.exchanges[TITLES[exchange.title]] = shown(exchange)

    def _keep(self, party: RelyingParty, name: str | None) -> None:
        tokens = party.sign_in.tokens
        assert tokens is not None
        claims: dict[str, tuple[dict[str, Any] | None, Any]] = {"ID token": (tokens.id_token_header, tokens.id_token),
                  "access token": (tokens.access_token_header, tokens.access_token_claims)}  # fmt: skip
        kinds = {"ID token": "IDTokenClaims", "access token": "AccessTokenClaims"}
        for exchange in party.timeline.exchanges:
            kind = {"Userinfo": "UserinfoClaims", "Entity-info": "EntityInfoClaims",
                    "Authorization-info": "AuthorizationInfoClaims"}.get(exchange.title)  # fmt: skip
            if kind:
                title = exchange.title.lower()
                header, payload = jwt.peek(exchange.body) if party.interface.userinfo.signed else (None, None)
                claims[title] = (header, payload if header else json.loads(exchange.body))
                kinds[title] = kind
        for title, (header, payload) in claims.items():
            self.recorded.answers.append((kinds[title], payload))
            if name is not None:
                self.recorded.tokens[title + name] = {**({"header": header} if header else {}), "claims": payload}
        if name == "" and party.interface.id_token_enc:
            outer, _ = jwt.peek(tokens.raw["id_token"])
            self.recorded.tokens["ID token"] = {"encryption header": outer, **self.recorded.tokens["ID token"]}
        for exchange in party.timeline.exchanges:
            kind = {"Discovery": "Discovery", "Pushed authorization request": "ParResponse", "Token": "TokenResponse",
                    "Keys of the provider": "KeySet"}.get(exchange.title)  # fmt: skip
            if kind:
                self.recorded.answers.append((kind, json.loads(exchange.body)))

    async def _refused(self, party: RelyingParty) -> None:
        """The errors that every RP meets: a wrong parameter, a used code, credentials that are missing or dead."""
        party.timeline.exchanges.clear()
        if party.interface.pushed:
            await party.push({"scope": "openid unknown"})
        await party.token(party.sign_in.code)
        await party.resource()
        await party.resource(headers={"Authorization": None})
        names = [
            *(["par error"] if party.interface.pushed else []),
            "token error",
            "resource error",
            "resource without credentials",
        ]
        for name, exchange in zip(names, party.timeline.exchanges, strict=True):
            self.recorded.exchanges[name] = shown(exchange)
            if exchange.body:
                kind = "ParErrorResponse" if name == "par error" else "ErrorResponse"
                self.recorded.answers.append((kind, json.loads(exchange.body)))

    async def _cancelled(self) -> None:
        self._clock.pass_(60)
        async with self._browser() as browser:
            await browser.open(await self.party().begin())
            self._keep_callback(await people.cancel(browser), "callback error", "CallbackErrorParameters")

    def _keep_callback(self, callback: verification.Callback, name: str, kind: str) -> None:
        mode = self._running.interface.response_modes[0]
        parameters = dict(callback.carried()[mode])
        self.recorded.exchanges.setdefault(name, {"parameters": parameters})
        self.recorded.answers.append((kind, parameters))

    async def _health(self) -> None:
        for path in ("/healthz", "/readyz"):
            timeline = Timeline()
            await timeline.send("", self._http, self._http.build_request("GET", self._running.base + path))
            self.recorded.exchanges[path] = shown(timeline.exchanges[0])
            self.recorded.answers.append(("Health", json.loads(timeline.exchanges[0].body)))


def shown(exchange: Exchange) -> dict[str, Any]:
    """Request and response, with the headers that an RP developer looks at."""
    request = {"method": exchange.method, "url": exchange.url, "headers": _few(exchange.request_headers)}
    if exchange.form:
        request["form"] = dict(exchange.form)
    headers = _few(exchange.response_headers)
    is_json = headers.get("content-type", "").startswith(("application/json", "application/jwk-set"))
    body: Any = json.loads(exchange.body) if is_json else exchange.body
    return {"request": request, "response": {"status": exchange.status, "headers": headers, "body": body}}


def _few(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {name: value for name, value in headers if name in SHOWN and value != "*/*"}


DIRECTORY: Final = ExampleDirectory.read(example_directory.content())


@asynccontextmanager
async def recorder(interface: Interface, *, port: int = 0, **chosen: Any) -> AsyncIterator[Recorder]:
    """A provider with the example directory on a port of localhost, and relying parties over sockets."""
    port, sockets = next_free("localhost", port)
    clock = Clock()
    loaded = settings.load(
        data_dir=copied(template(), temporary_directory()), base_url=f"http://localhost:{port}", host="localhost", port=port,
        developer_mode=True, generations=(interface.name,), **chosen,
    )  # fmt: skip
    async with started(RunningProvider, loaded, clock=clock) as running:
        as_entity = {"subject": "entity", "stringified_blocks": "true"}
        registered = {client_id: clients.rp_keys(client_id).public() for client_id in (CLIENT, ENTITY_CLIENT)}
        of_both = {
            CLIENT: (CALLBACK, registered[CLIENT], {}),
            ENTITY_CLIENT: (CALLBACK, registered[ENTITY_CLIENT], as_entity),
        }
        await _apply(running, of_both, people=True)
        application = running.application
        logged: list[dict[str, Any]] = []
        server = served(
            _logging(application.asgi, logged),
            sockets,
            bodiless=application.bodiless,
            streamed=application.streamed,
            forms=application.forms,
            drain_seconds=0.1,
        )
        async with server, httpx.AsyncClient(timeout=30, trust_env=False) as http:
            one = Recorder(running, clock, http)
            one.logged = logged
            yield one


def _logging(application: ASGIApp, logged: list[dict[str, Any]]) -> ASGIApp:
    """The application, noting what the log will say of each request before the answer begins."""

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                logged.append(dict(scope["state"]["log"]))
            await send(message)

        await application(scope, receive, answer)

    return noting


async def _apply(
    running: RunningProvider,
    registered: Mapping[str, tuple[str, dict[str, Any], dict[str, Any]]],
    *,
    people: bool = False,
) -> None:
    """Register clients: their redirect URI, keys and further members."""
    interface = running.interface
    known = {"scopes": ["openid", *interface.scopes], "services": DIRECTORY.services(), "name": "Example RP"}
    described = {
        client_id: clients.members(jwks, interface, **known, redirect_uris=[redirect_uri], **more)
        for client_id, (redirect_uri, jwks, more) in registered.items()
    }
    files = {example_directory.NAME: example_directory.content()} if people else {}
    for name, content in {**files, "clients.json": json.dumps({"clients": described}).encode()}.items():
        await apply_document(
            running.provider.registry, running.provider.passwords, content, file=name,
            actor=CommandLine(by="lee@node1"), new_user_id=lambda: str(uuid.uuid4()),
            rules=client_rules(running.chosen), plain_passwords=True,
        )  # fmt: skip


async def recorded(interface: Interface, *, port: int = 0, **chosen: Any) -> Recorded:
    async with recorder(interface, port=port, **chosen) as one:
        return await one.record()


RANDOM: Final = frozenset(
    {"jti", "nonce", "state", "code", "code_challenge", "code_verifier", "kid", "at_hash", "jkt", "x", "y", "request_uri",
     "x5c", "x5t", "x5t#S256", "sid", "epk", "apu", "apv", "access_token", "id_token", "client_assertion", "dpop",
     "error_description"}
)  # fmt: skip
"""members whose values are new each time"""
CHANGING: Final = (
    (re.compile(r"http://localhost:\d+"), "http://localhost:8400"),
    (re.compile(r'error_description="[^"]*"'), "error_description=…"),
    (re.compile(r"[\w-]{20,}\.[\w-]*\.[\w-]+(\.[\w-]+)*"), "…"),
    (re.compile(r"(?<=request_uri=)[^&\"]+"), "…"),
)


def stable(value: Any, name: str = "") -> Any:
    """A recorded value without what is new each time."""
    if name in RANDOM:
        return "…"
    if isinstance(value, dict):
        return {key: stable(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [stable(each) for each in value]
    if isinstance(value, str):
        for pattern, replacement in CHANGING:
            value = pattern.sub(replacement, value)
    return value


def path_of(interface: Interface) -> Any:
    return EXAMPLES / f"{interface.name}.json"


if __name__ == "__main__":
    EXAMPLES.mkdir(exist_ok=True)
    for one in INTERFACES.values():
        made = asyncio.run(recorded(one, port=PORT)).document()
        path_of(one).write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
