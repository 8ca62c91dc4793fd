"""The demo relying party, a website that shows what it received.

Secrets are shown on purpose: this is a place to learn and to debug, on one's own machine, or with the key of this
start.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
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
from corpid_dev.demo import presentation
from corpid_dev.relying_party.interfaces import CURRENT, Interface
from corpid_dev.relying_party.relying_party import RelyingParty
from corpid_dev.relying_party.verification import Callback, CheckFailed, ProviderError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from joserfc.jwk import KeySet
    from starlette.requests import Request

    from corpid_dev.demo.caught_mail import CaughtMail
    from corpid_dev.relying_party.jwt import RelyingPartyKeys
    from corpid_dev.relying_party.people import Person
    from corpid_dev.web.mode import Mode

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
        self.pages.globals.update(pretty=presentation.pretty, path_of=presentation.path_of)
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
            generation=presentation.GENERATIONS[self.registration.interface.name],
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
            parties=presentation.parties(tokens.id_token) if tokens else None,
            userinfo=claims,
            entity_info=attempt.entity_info,
            facts=presentation.facts,
            role_tables=presentation.role_tables(claims),
            third_party_tables=presentation.third_party_tables(claims),
            checks=attempt.relying_party.checks.checks,
            check_groups=presentation.by_subject(attempt.relying_party.checks.checks),
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
            return {**shown, "advice": presentation.advice(problem.error), "kind": "The provider refused"}
        case CheckFailed():
            shown = {"error": problem.check, "said": problem.problem, "where": "our own checks"}
            return {**shown, "advice": "Nothing of this answer was used.", "kind": "The answer was not believed"}
        case _:
            shown = {"error": type(problem).__name__, "said": str(problem), "where": "the connection"}
            return {**shown, "advice": "Is the provider running?", "kind": "The provider cannot be reached"}
