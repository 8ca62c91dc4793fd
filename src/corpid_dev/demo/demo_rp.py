"""The demo relying party, a website that shows what it received.

Secrets are shown on purpose: this is a place to learn and to debug, on one's own machine, or with the key of this
start.

The demo RP's account of a sign-in: words and rows without markup.

The demo's mail, which nobody sends.
"""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx
from jinja2 import PackageLoader
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from corpid.rules.authentication.totp import STEP_SECONDS
from corpid.web.http.requests import header_values
from corpid.web.pages.rendering import StaticFiles, packaged_static_files, page_environment
from corpid_dev.relying_party.claims import result_sets
from corpid_dev.relying_party.interfaces import CURRENT, Interface
from corpid_dev.relying_party.relying_party import Exchange, RelyingParty
from corpid_dev.relying_party.verification import Callback, Check, CheckFailed, ProviderError, parties_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from joserfc.jwk import KeySet
    from starlette.requests import Request

    from corpid.rules.emails import Email, RenderedEmail
    from corpid_dev.relying_party.jwt import RelyingPartyKeys
    from corpid_dev.relying_party.people import Person
    from corpid_dev.web.mode import Mode

MEANINGS: Final = {
    "iss": "who issued it",
    "aud": "who it is for",
    "sub": "who signed in, or for whom",
    "sub_type": "whether sub is the person or the entity",
    "iat": "issued at",
    "exp": "valid until",
    "auth_time": "when the person proved who they are",
    "nonce": "ours, to tie it to this sign-in",
    "at_hash": "ties it to the access token",
    "sid": "names the session at the provider, to this client alone",
    "amr": "how the person proved it",
    "acr": "the assurance level reached",
    "userInfo.CPAccType": "kind of account",
    "userInfo.CPUID_FullName": "the person who acts",
    "userInfo.ISSPHOLDER": "whether the account is a standard one",
    "entityInfo.CPEntID": "whom the person acts for",
    "entityInfo.CPEnt_TYPE": "what kind of entity",
    "entityInfo.CPEnt_Status": "how it stands in the register",
    "entityInfo.CPNonUEN_Country": "not told of UEN entities",
    "entityInfo.CPNonUEN_RegNo": "not told of UEN entities",
    "entityInfo.CPNonUEN_Name": "not told of UEN entities",
    "entity": "whom the person acts for",
    "act": "the person who acts",
    "client_id": "the relying party it was issued to",
    "scope": "what it may be used for",
    "jti": "its own number",
    "cnf.jkt": "thumbprint of the DPoP key it is bound to",
    "typ": "what kind of JWT it is",
    "alg": "the algorithm",
    "enc": "the content encryption",
    "kid": "which key",
}
ROLE_BLOCKS: Final = ("auth_info", "AuthInfo", "tp_auth_info", "TPAuthInfo")
TIMES: Final = frozenset({"iat", "exp", "auth_time"})

GENERATIONS: Final = {
    "legacy": "The request goes through the browser, and the access token is a bearer token.",
    "intermediate": "The request is pushed, tokens are bound to a key, and there is an entity-info resource.",
    "current": "The request is pushed, and tokens are bound to a key.",
    "fapi2": "The FAPI 2.0 Security Profile, as stock libraries implement it.",
}
"""a description of each generation of the interface"""

ADVICE: Final = {
    "access_denied": "The person pressed Cancel, refused consent, or has no entity that may use this service.",
    "login_required": "The request had prompt=none, and nobody is signed in at the provider in this browser.",
    "interaction_required": "The request had prompt=none, and the provider had to show a page.",
    "consent_required": "The request had prompt=none, and the provider had to ask for consent.",
    "invalid_request_uri": "The pushed request was completed already or is older than 60 seconds.",
    "invalid_request": "A parameter is missing, repeated, malformed or has an unsupported value.",
    "invalid_client": "The client is unknown or its assertion was refused: key, audience, lifetime or jti.",
    "invalid_grant": "The code is unknown, already used, older than 60 seconds, or belongs to another client.",
    "invalid_scope": "A scope is unknown, or this client is not registered for it.",
    "invalid_dpop_proof": "The proof is stale, was already used, or is for another method or address.",
    "invalid_token": "The access token has expired, was revoked, or is bound to another key.",
    "temporarily_unavailable": "The provider is busy or under maintenance; try again in a moment.",
    "server_error": "Something went wrong at the provider; its log has the reference.",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A claim: its path, its value in words, its meaning."""

    name: str
    value: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Parties:
    """The person and the entity of a sign-in: names, else identifiers."""

    person: str
    entity: str


def parties(claims: Mapping[str, Any]) -> Parties:
    """The two parties of an ID token of any generation (D2, R-12.2)."""
    if "entityInfo" in claims:
        person, entity = claims["userInfo"], claims["entityInfo"]
        return Parties(person["CPUID_FullName"] or claims["sub"], entity["CPNonUEN_Name"] or entity["CPEntID"])
    person, entity = parties_of(claims)
    return Parties(
        person.get("sub_attributes", {}).get("name") or person["sub"],
        entity.get("sub_attributes", {}).get("entity_name") or entity["sub"],
    )


def facts(claims: Mapping[str, Any]) -> list[Fact]:
    """Claims as flat facts, nested ones by their path.

    Blocks with tables of their own are left out.
    """
    plain = {name: value for name, value in claims.items() if name not in ROLE_BLOCKS}
    return [Fact(path, _words(path, value), _meaning(path)) for path, value in _flat(plain, "")]


def by_subject(checks: Iterable[Check]) -> dict[str, list[Check]]:
    """Checks by the part of their name before the colon."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        subject = check.name.partition(":")[0]
        groups.setdefault(subject[0].upper() + subject[1:], []).append(check)
    return groups


def pretty(value: object) -> str:
    """JSON for reading.

    A text that is JSON is laid out, any other stays as it is.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    return json.dumps(value, indent=2, ensure_ascii=False)


def path_of(exchange: Exchange) -> str:
    """The path of an exchange's URL."""
    return "/" + exchange.url.split("/", 3)[-1]


def advice(error: str) -> str:
    """Advice on an error code; empty for an unknown one."""
    return ADVICE.get(error, "")


def _flat(claims: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in claims.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _words(path: str, value: Any) -> str:
    if path in TIMES and isinstance(value, int):
        return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC ({value})"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return (value or "(blank)") if isinstance(value, str) else json.dumps(value)


def _meaning(path: str) -> str:
    return MEANINGS.get(path) or MEANINGS.get(path.partition(".")[0], "") if "sub_attributes" not in path else ""


KEPT: Final = 200
CACHED_SECONDS: Final = 3600
"""for which the provider's metadata and keys are kept (Spec 8)"""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """A sign-in of one browser, until userinfo or an error."""

    browser_id: str
    relying_party: RelyingParty
    attempt_id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    answered: bool = False
    posted: Callback | None = None
    """an answer that came as a form of another site, so without the cookie: it waits for its own browser"""
    userinfo: dict[str, Any] | None = None
    entity_info: dict[str, Any] | None = None
    problem: Exception | None = None

    @property
    def complete(self) -> bool:
        """True if everything was received and verified."""
        return self.userinfo is not None

    async def begin(self) -> str | None:
        """Make the request, pushed if required.

        The URL for the browser, None if it failed (see `problem`).
        """
        try:
            return await self.relying_party.begin()
        except (CheckFailed, ProviderError, httpx.HTTPError) as problem:
            self.problem = problem
            return None

    async def finish(self, callback: Callback) -> None:
        """Redeem the callback's code and ask the resources, once.

        What fails is kept in `problem`.
        """
        if self.answered:
            return
        self.answered = True
        try:
            tokens = await self.relying_party.redeem(callback)
            if self.relying_party.interface.entity_info and "entity." in tokens.scope:
                self.entity_info = await self.relying_party.entity_info()
            self.userinfo = await self.relying_party.userinfo()
        except (CheckFailed, ProviderError, httpx.HTTPError) as problem:
            self.problem = problem


class Attempts:
    """Attempts by number or state, for the browser that began them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Attempt] = OrderedDict()

    def keep(self, attempt: Attempt) -> None:
        """Remember an attempt; the oldest is forgotten for it."""
        self._kept[attempt.attempt_id] = attempt
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def of_browser(self, browser_id: str, attempt_id: str) -> Attempt:
        """The attempt with this number.

        Raises KeyError if it is not this browser's.
        """
        attempt = self._kept[attempt_id]
        if attempt.browser_id != browser_id:
            raise KeyError(attempt_id)
        return attempt

    def with_state(self, state: str) -> Attempt:
        """The attempt that sent this state. Raises KeyError."""
        for attempt in reversed(self._kept.values()):
            if attempt.relying_party.sign_in.state == state:
                return attempt
        raise KeyError(state)

    def of_browser_with_state(self, browser_id: str, state: str) -> Attempt:
        """The attempt that sent this state.

        Raises KeyError if this browser began none such (Spec 4.2).
        """
        return self.of_browser(browser_id, self.with_state(state).attempt_id)

    def forget(self, browser_id: str) -> None:
        """Forget everything of a browser."""
        for attempt in [one for one in self._kept.values() if one.browser_id == browser_id]:
            del self._kept[attempt.attempt_id]


COOKIE: Final = "corpid-demo-rp"
CLIENT_ID: Final = "demo-rp"
AUTHORITY_PATH: Final = "/ca.crt"
CALLBACK_PATH: Final = "/callback"
FRAGMENT_PATH: Final = "/callback/fragment"
SCOPES: Final = {
    "authinfo": "what the person may do for the entity",
    "tpauthinfo": "what they may do for other entities, as a third party",
    "entity.identity": "the entity's type, registration number and country",
    "entity.basic_profile.name": "the entity's name",
    "entity.basic_profile.uen_status": "the entity's status",
    "user.identity": "the person's identity number and account type",
    "user.name": "the person's name",
}
WITHOUT_KEY: Final = "There is nothing here without the key: open the link that the demo has printed at its start.\n"
PROMPTS: Final = {
    "": "not sent: the provider decides",
    "login": "login: sign in again",
    "select_account": "select_account: choose the entity again",
    "consent": "consent: ask for consent",
    "none": "none: show no page at all",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The demo RP's registration and provider. URLs without a trailing slash."""

    issuer: str
    url: str
    keys: RelyingPartyKeys
    persons: Sequence[Person]
    interface: Interface = CURRENT
    subject: str = "user"
    """whom `sub` names: user or entity; of no effect if `sub` packs both (D1)"""
    id_token_enc: str | None = None
    """the content encryption of ID tokens; None: as the interface says"""
    userinfo_enc: str | None = None
    """the content encryption of resources that are nested in a JWE (D22)"""
    stringified_blocks: bool = False
    """the blocks of resources are texts that hold JSON (D22)"""

    @property
    def redirect_uri(self) -> str:
        """The registered redirect URI."""
        return self.url + CALLBACK_PATH


@dataclass(slots=True)
class ProviderCache:
    """The provider's metadata and keys, as the last sign-in left them.

    An unknown kid fetches the keys again, whatever is kept (Spec 4.7).
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    provider_keys: KeySet | None = None
    until: float = 0.0

    def known(self, now: float) -> tuple[dict[str, Any], KeySet | None]:
        """Metadata and keys that need not be fetched."""
        return (self.metadata, self.provider_keys) if now < self.until else ({}, None)

    def keep(self, relying_party: RelyingParty, now: float) -> None:
        """Take over what a sign-in fetched."""
        if now >= self.until:
            self.metadata, self.provider_keys, self.until = {}, None, now + CACHED_SECONDS
        self.metadata = relying_party.metadata or self.metadata
        self.provider_keys = relying_party.provider_keys or self.provider_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccess:
    """A demo's private knowledge of its provider."""

    mail: CaughtMail
    invite: Callable[[str], Awaitable[str]] | None
    """makes an invitation for a user name; its address. None if no passkey works at the provider's host (D34)"""
    authority: bytes | None = None
    """the certificate (PEM) of the authority that certified provider and website, if it is the demo's own"""


class DemoRP:
    """The website; `app` is its ASGI application. `clock` gives epoch seconds."""

    def __init__(
        self,
        registration: Registration,
        http: httpx.AsyncClient,
        clock: Callable[[], float],
        provider: ProviderAccess | None = None,
        mode: Mode | None = None,
    ) -> None:
        """`provider` is the demo's knowledge of it in addition to its interface.

        With `mode`, whatever the website shows is for those who see developer mode. Source: D66
        """
        self.registration = registration
        self.http = http
        self.clock = clock
        self.provider = provider
        self.mode = mode
        self.secure = registration.url.startswith("https:")
        self.cookie_name = f"__Host-{COOKIE}" if self.secure else COOKIE
        self.attempts = Attempts()
        self.cache = ProviderCache()
        own = {file.name: file.read_bytes() for file in files("corpid_dev").joinpath("demo", "static").iterdir()}
        self.static = StaticFiles({**packaged_static_files(), **own})
        self.pages = page_environment(PackageLoader("corpid_dev", "demo/templates"), self.static)
        self.pages.globals.update(pretty=pretty, path_of=path_of)
        self.app = Starlette(
            routes=[
                Route("/", self._protected(self.start)),
                Route("/codes", self._protected(self.codes)),
                Route("/login", self._protected(self.login), methods=["POST"]),
                Route("/passkey", self._protected(self.passkey), methods=["POST"]),
                Route(AUTHORITY_PATH, self._protected(self.authority)),
                Route("/mail", self._protected(self.mail)),
                Route("/mail/{number:int}", self._protected(self.mail_as_html)),
                Route(CALLBACK_PATH, self._protected(self.callback)),
                Route(CALLBACK_PATH, self._protected(self.posted, from_anywhere=True), methods=["POST"]),
                Route(FRAGMENT_PATH, self._protected(self.fragment), methods=["POST"]),
                Route("/sign-ins/{attempt_id}", self._protected(self.show)),
                Route("/logout", self._protected(self.logout), methods=["POST"]),
                Route("/static/{name}", self.static_file),
            ]
        )

    async def start(self, _: Request) -> Response:
        """The start page, with the persons and their apps' current codes."""
        now = self.clock()
        return self._page(
            "start.html",
            persons=[(person, person.code(now)) for person in self.registration.persons],
            seconds_left=STEP_SECONDS - int(now) % STEP_SECONDS,
            scopes={name: meaning for name, meaning in SCOPES.items() if name in self.registration.interface.scopes},
            generation=GENERATIONS[self.registration.interface.name],
            prompts=PROMPTS,
            beside=self.provider is not None,
            passkeys=self.provider is not None and self.provider.invite is not None,
            authority=AUTHORITY_PATH if self.provider and self.provider.authority else "",
        )

    async def codes(self, _: Request) -> Response:
        """The current codes by user name, and how long they last."""
        now = self.clock()
        codes = {person.user_name: person.code(now) for person in self.registration.persons}
        return JSONResponse({"seconds_left": STEP_SECONDS - int(now) % STEP_SECONDS, "codes": codes})

    async def passkey(self, request: Request) -> Response:
        """Invite a person to set up a passkey.

        As an operator would, and open their link.
        """
        user_name = dict(await _form(request)).get("user_name", "")
        if (
            self.provider is None
            or self.provider.invite is None
            or user_name not in {person.user_name for person in self.registration.persons}
        ):
            return Response("There is no such person here.", status_code=404)
        return RedirectResponse(await self.provider.invite(user_name), status_code=303)

    async def authority(self, _: Request) -> Response:
        """The certificate to install where the website shall be trusted."""
        if self.provider is None or self.provider.authority is None:
            return Response("This website has no certificate of its own.", status_code=404)
        return Response(self.provider.authority, media_type="application/x-x509-ca-cert")

    async def mail(self, _: Request) -> Response:
        """The e-mails that the provider has sent, as text."""
        return self._page("mail.html", emails=tuple(self.provider.mail.emails) if self.provider else ())

    async def mail_as_html(self, request: Request) -> Response:
        """An e-mail's HTML, as mail programs show it."""
        number = request.path_params["number"]
        for email in self.provider.mail.emails if self.provider else ():
            if email.number == number:
                policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
                return HTMLResponse(email.content.html, headers={"Content-Security-Policy": policy})
        return Response("There is no such e-mail.", status_code=404)

    async def login(self, request: Request) -> Response:
        """Begin a sign-in and send the browser to the provider."""
        form = parse_qs((await request.body()).decode("utf-8", "replace"))
        browser_id = request.cookies.get(self.cookie_name) or secrets.token_urlsafe(32)
        attempt = Attempt(browser_id=browser_id, relying_party=self._relying_party(form))
        self.attempts.keep(attempt)
        url = await attempt.begin()
        response = RedirectResponse(url or f"/sign-ins/{attempt.attempt_id}", status_code=303)
        response.set_cookie(self.cookie_name, browser_id, httponly=True, samesite="lax", secure=self.secure)
        return response

    async def callback(self, request: Request) -> Response:
        """Take the response to this browser's sign-in, and redirect.

        The page that shows it has an address without a code. A response behind the # never gets here: the page has a
        script for that.
        """
        if not request.url.query and "fragment" in self.registration.interface.response_modes:
            return self._page("fragment.html", target=FRAGMENT_PATH)
        return await self._answered(request, Callback(f"{self.registration.redirect_uri}?{request.url.query}"))

    async def fragment(self, request: Request) -> Response:
        """Take the answer that our own page found behind the #."""
        found = await _form(request)
        return await self._answered(
            request, Callback(f"{self.registration.redirect_uri}#{dict(found).get('fragment', '')}")
        )

    async def posted(self, request: Request) -> Response:
        """Store a response posted by the provider's page.

        The browser asks for it in the next request. A form of another site comes without our SameSite cookie, so only
        that request shows its owner.
        """
        answer = Callback(self.registration.redirect_uri, await _form(request))
        try:
            attempt = self.attempts.with_state(answer.state)
        except KeyError:
            return self._page("unknown.html", status=400)
        attempt.posted = attempt.posted or answer
        return RedirectResponse(f"/sign-ins/{attempt.attempt_id}", status_code=303)

    async def _answered(self, request: Request, answer: Callback) -> Response:
        try:
            attempt = self.attempts.of_browser_with_state(request.cookies.get(self.cookie_name, ""), answer.state)
        except KeyError:
            return self._page("unknown.html", status=400)
        await self._finish(attempt, answer)
        return RedirectResponse(f"/sign-ins/{attempt.attempt_id}", status_code=303)

    async def _finish(self, attempt: Attempt, answer: Callback) -> None:
        await attempt.finish(answer)
        self.cache.keep(attempt.relying_party, self.clock())

    async def show(self, request: Request) -> Response:
        """Show the result of a sign-in."""
        try:
            attempt = self.attempts.of_browser(
                request.cookies.get(self.cookie_name, ""), request.path_params["attempt_id"]
            )
        except KeyError:
            return self._page("unknown.html", status=404)
        if attempt.posted is not None:
            await self._finish(attempt, attempt.posted)
        tokens, claims = attempt.relying_party.sign_in.tokens, attempt.userinfo or {}
        return self._page(
            "result.html",
            attempt=attempt,
            problem=_explained(attempt.problem),
            tokens=tokens,
            parties=parties(tokens.id_token) if tokens else None,
            userinfo=claims,
            entity_info=attempt.entity_info,
            facts=facts,
            result_sets=result_sets,
            checks=attempt.relying_party.checks.checks,
            check_groups=by_subject(attempt.relying_party.checks.checks),
            exchanges=attempt.relying_party.timeline.exchanges,
        )

    async def logout(self, request: Request) -> Response:
        """Forget this browser's sign-ins here; the provider is not asked."""
        self.attempts.forget(request.cookies.get(self.cookie_name, ""))
        response = RedirectResponse("/", status_code=303)
        response.delete_cookie(self.cookie_name, secure=self.secure, httponly=True, samesite="lax")
        return response

    async def static_file(self, request: Request) -> Response:
        """A style sheet or picture by its hashed name."""
        try:
            content, media_type = self.static.file(request.path_params["name"])
        except KeyError:
            return Response(status_code=404)
        headers = {"Content-Type": media_type, "Cache-Control": "public, max-age=31536000, immutable"}
        return Response(content, headers=headers | {"X-Content-Type-Options": "nosniff"})

    def _relying_party(self, form: dict[str, list[str]]) -> RelyingParty:
        known = self.registration
        names = ("authentication_context_message", "prompt") if known.interface.message else ("prompt",)
        chosen = {name: value for name in names for value in form.get(name, [])}
        modes = [mode for mode in form.get("response_mode", []) if mode in known.interface.response_modes]
        metadata, provider_keys = self.cache.known(self.clock())
        return RelyingParty(
            client_id=CLIENT_ID,
            issuer=known.issuer,
            http=self.http,
            interface=known.interface,
            response_mode=next(iter(modes), None),
            redirect_uri=known.redirect_uri,
            scope=" ".join(["openid", *form.get("scope", [])]),
            parameters={name: value.strip() for name, value in chosen.items() if value.strip()},
            keys=known.keys,
            id_token_enc=known.id_token_enc,
            userinfo_enc=known.userinfo_enc,
            stringified_blocks=known.stringified_blocks,
            clock=self.clock,
            metadata=metadata,
            provider_keys=provider_keys,
        )

    def _page(self, template: str, *, status: int = 200, **values: object) -> HTMLResponse:
        text = self.pages.get_template(template).render(registration=self.registration, **values)
        return HTMLResponse(text, status_code=status)

    def _protected(
        self, endpoint: Callable[[Request], Awaitable[Response]], *, from_anywhere: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(self.registration.issuer))
        own = urlsplit(self.registration.url).netloc

        async def answer(request: Request) -> Response:
            if request.headers.get("host") != own:
                return Response("This is not the address of the demo.", status_code=421)
            request.scope.setdefault("state", {})["headers"] = header_values(request.scope["headers"])
            if self.mode is not None and not self.mode.opens(request):
                return Response(WITHOUT_KEY, status_code=404, headers={"Cache-Control": "no-store"})
            if self.mode is not None and (redirect := self.mode.without_key(request)) is not None:
                return redirect
            own_form = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
            if request.method == "POST" and not (own_form or from_anywhere):
                return Response("Please use the form on the start page.", status_code=403)
            response = await endpoint(request)
            response.headers.setdefault(
                "Content-Security-Policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                f"base-uri 'none'; frame-ancestors 'none'; form-action 'self' {origin}",
            )
            response.headers["Cache-Control"] = "no-store"
            response.headers["Referrer-Policy"] = "same-origin"
            response.headers["X-Content-Type-Options"] = "nosniff"
            return response

        return answer


async def _form(request: Request) -> list[tuple[str, str]]:
    return parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)


def _explained(problem: Exception | None) -> dict[str, str] | None:
    match problem:
        case None:
            return None
        case ProviderError():
            where = f"{problem.where}, status {problem.status}" if problem.status else problem.where
            shown = {"error": problem.error, "said": problem.description, "where": where}
            return {**shown, "advice": advice(problem.error), "kind": "The provider refused"}
        case CheckFailed():
            shown = {"error": problem.check, "said": problem.problem, "where": "our own checks"}
            return {**shown, "advice": "Nothing of this answer was used.", "kind": "The answer was not believed"}
        case _:
            shown = {"error": type(problem).__name__, "said": str(problem), "where": "the connection"}
            return {**shown, "advice": "Is the provider running?", "kind": "The provider cannot be reached"}


EMAILS: Final = 50
"""that are kept, the newest"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtEmail:
    """An e-mail as its reader gets it, in their language."""

    number: int
    """1 for the first one"""
    to: str
    content: RenderedEmail


@dataclass(slots=True)
class CaughtMail:
    """A Mail that stores e-mails until the demo stops, newest first."""

    render: Callable[[Email], RenderedEmail]
    emails: deque[CaughtEmail] = field(default_factory=lambda: deque(maxlen=EMAILS))
    works: bool = True

    def post(self, email: Email) -> None:
        number = self.emails[0].number + 1 if self.emails else 1
        self.emails.appendleft(CaughtEmail(number=number, to=email.to, content=self.render(email)))

    async def deliver(self, email: Email) -> None:
        """See Mail."""
        self.post(email)
