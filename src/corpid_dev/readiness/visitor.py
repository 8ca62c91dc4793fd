"""A browser that visits a relying party, and stops at the provider.

Recognition of a session on a page.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

import httpx

from corpid_dev.flows.readiness_runs import ReadinessError
from corpid_dev.readiness.observation import RelyingPartyPage
from corpid_dev.relying_party.browser import Browser, DeadEndError, Form
from corpid_dev.relying_party.verification import Callback

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
    from ssl import SSLContext


PATIENCE_SECONDS: Final = 40.0
"""for a page of the relying party, which waits for the provider meanwhile"""
MOST_ORIGINS: Final = 10
SENT_AGAIN: Final = "sent to the provider again"
"""in place of a page: some relying parties begin a new sign-in when they refuse one"""
_FOUND: Final = 302
_LOGIN: Final = re.compile(r"\b(?:log|sign)[ _-]?(?:in|on)\b|\blogin\b|\bauth(?:orize|enticate)?\b", re.IGNORECASE)
_TRUSTED: Final = ("localhost", "127.0.0.1", "[::1]")
"""hosts at which browsers return cookies marked Secure also by plain http"""


class Visitor:
    """One browser with its cookies, at one relying party."""

    def __init__(self, http: httpx.AsyncClient, *, issuer: str, marker: Marker | None) -> None:
        self._browser: Final = Browser(http)
        self._issuer: Final = issuer
        self._marker: Final = marker

    async def log_in(self, url: str, *, press: str = "") -> str | RelyingPartyPage:
        """Open the login URL and go on to the provider.

        Returns the authorization URL, or the page where it ends.

        A page that asks for a click is followed: by the form or link that `press` names, else by the only one that
        looks like it. Raises ReadinessError.
        """
        try:
            await self._browser.open(url, site="none")
            found = await self._at_provider()
            if found is None and (form := self._way_on(press)) is not None:
                await (self._browser.open(form) if isinstance(form, str) else self._browser.submit(form, None))
                found = await self._at_provider()
        except (httpx.HTTPError, httpx.InvalidURL, DeadEndError) as error:
            return self._no_answer(url, error)
        return self._page() if found is None else found

    async def come_back(self, callback: Callback) -> RelyingPartyPage:
        """Open a callback, as the provider's redirect or form does."""
        try:
            if callback.form is None:
                await self._browser.open(callback)
            else:
                await self._browser.post(callback, callback.form, referrer=self._issuer)
            again = await self._at_provider()
        except (httpx.HTTPError, httpx.InvalidURL, DeadEndError) as error:
            return self._no_answer(callback, error)
        return self._page() if again is None else RelyingPartyPage(url=again, status=_FOUND, heading=SENT_AGAIN)

    async def look_at(self, url: str) -> RelyingPartyPage:
        """Open another page, as a link of one's own does."""
        return await self.come_back(Callback(url))

    async def _at_provider(self) -> str | None:
        """The URL at the provider, if the browser was sent there.

        Other sites are visited, since a relying party may have several.
        """
        while (left := self._browser.left) is not None:
            if f"{left}/".startswith((f"{self._issuer}/", f"{self._issuer}?")):
                return left if left.form is None else f"{left}?{urlencode(left.form)}"
            if len(self._browser.origins) > MOST_ORIGINS:
                raise self._browser.dead_end("it leads from site to site")
            parts = urlsplit(left)
            self._browser.origins |= {f"{parts.scheme}://{parts.netloc}"}
            await (
                self._browser.open(left)
                if left.form is None
                else self._browser.post(left, left.form, referrer=self._browser.url)
            )
        return None

    def _way_on(self, press: str) -> Form | str | None:
        """The form or link of the page that begins the login."""
        page = self._browser.page
        if self._page().status >= 400:
            return None
        named = [(_joined(self._browser.url, target), target, text) for target, text in page.links]
        links = {url: (target, text) for url, target, text in named if url}
        if press:
            form = next((each for each in page.forms if press in _names(each)), None)
            link = next((url for url, names in links.items() if press in names), None)
            if form is None and link is None:
                raise ReadinessError(f"{self._browser.url} has no form or link {press!r} (--login-form)")
            return form or link
        forms = [each for each in page.forms if any(map(_LOGIN.search, _names(each)))]
        if len({each.action for each in forms}) == 1:
            return forms[0]
        likely = [url for url, names in links.items() if any(map(_LOGIN.search, names))]
        return likely[0] if len(likely) == 1 and not forms else None

    def _page(self) -> RelyingPartyPage:
        found, response = self._browser.page, self._browser.response
        page = RelyingPartyPage(
            url=self._browser.url,
            status=response.status_code if response is not None else 0,
            heading=found.heading or found.title,
            text=found.text,
        )
        return self._marked(page)

    def _marked(self, page: RelyingPartyPage) -> RelyingPartyPage:
        if self._marker is None or not self._marker.is_on(page):
            return page
        return RelyingPartyPage(url=page.url, status=page.status, heading=page.heading, text=page.text, session=True)

    @staticmethod
    def _no_answer(url: str, error: Exception) -> RelyingPartyPage:
        return RelyingPartyPage(url=url, status=0, problem=str(error) or type(error).__name__)


@asynccontextmanager
async def visitor(*, issuer: str, marker: Marker | None, tls: SSLContext | None = None) -> AsyncIterator[Visitor]:
    """A new browser, without cookies."""
    timeout = httpx.Timeout(PATIENCE_SECONDS)
    async with httpx.AsyncClient(timeout=timeout, verify=tls or _tls(), trust_env=False) as http:

        async def trust_this_machine(response: httpx.Response) -> None:
            # the jar sends Secure cookies by https only; browsers make an exception for this machine
            if response.request.url.host in _TRUSTED:
                for cookie in http.cookies.jar:
                    cookie.secure = False

        http.event_hooks["response"].append(trust_this_machine)
        yield Visitor(http, issuer=issuer, marker=marker)


@cache
def _tls() -> SSLContext:
    """Made once: it reads the authorities that it trusts."""
    return httpx.create_ssl_context(trust_env=False)


def _joined(url: str, reference: str) -> str:
    """The address of a link, empty if it is none."""
    try:
        joined = urljoin(url, reference)
        _ = urlsplit(joined).port
    except ValueError:
        return ""
    return joined


def _names(form: Form) -> tuple[str, ...]:
    """Names that a form may be known by."""
    buttons = (text for button in form.buttons for text in (button.name, button.value, button.label))
    return tuple(filter(None, (form.id, form.action, *buttons)))


_NAMING: Final = frozenset(
    {"name", "entity_name", "CPUID_FullName", "CPEntID", "sub", "entity_reg_number", "identity_number"}
)
"""members of tokens that a page of a signed-in person is likely to show"""
_ROLE: Final = "CPRole"
SHORTEST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Signs of a session on a page.

    All that is given must hold.
    """

    url: str = ""
    """the beginning of the page's URL, or of its path"""
    text: str = ""
    heading: str = ""
    learned: bool = False

    def is_on(self, page: RelyingPartyPage) -> bool:
        """Return whether a page shows that somebody is signed in."""
        if page.is_error:
            return False
        at = page.url if "://" in self.url else urlsplit(page.url).path
        return at.startswith(self.url) and self.text in page.text and self.heading in ("", page.heading)

    def __str__(self) -> str:
        signs = {"the URL begins with": self.url, "the page shows": self.text, "the heading is": self.heading}
        holds = " and ".join(f"{what} “{value}”" for what, value in signs.items() if value)
        return f"{holds} (learned from the ordinary sign-in)" if self.learned else holds


def learned(
    signed_in: RelyingPartyPage, cancelled: RelyingPartyPage, claims: Iterable[Mapping[str, object]]
) -> Marker | None:
    """A marker that only the page of a successful sign-in shows.

    The page of a cancelled one does not. The heading is tried first, then a text of the tokens, then the URL. None if
    the pages do not differ in these; then an option must say what to look for.
    """
    if signed_in.is_error:
        return None
    if signed_in.heading and cancelled.heading and signed_in.heading not in cancelled.text + cancelled.heading:
        return Marker(heading=signed_in.heading, learned=True)
    for text in texts(claims, _NAMING):
        if len(text) >= SHORTEST and text in signed_in.text and text not in cancelled.text:
            return Marker(text=text, learned=True)
    path, other = urlsplit(signed_in.url).path, urlsplit(cancelled.url).path
    if path != other and not other.startswith(path):
        return Marker(url=path, learned=True)
    return None


def texts(claims: Iterable[Mapping[str, object]], names: frozenset[str]) -> list[str]:
    """The texts of members with these names, at any depth, each once."""
    return list(dict.fromkeys(text for each in claims for text in _found(each, names)))


def roles(
    claims: Iterable[Mapping[str, object]], page: RelyingPartyPage, cancelled: RelyingPartyPage
) -> frozenset[str]:
    """Roles of the tokens that only the signed-in person's page shows."""
    named = texts(claims, frozenset({_ROLE}))
    return frozenset(each for each in named if each in page.text and each not in cancelled.text)


def _found(value: Any, names: frozenset[str]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _found(each, names)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in names and isinstance(each, str):
                yield each
            else:
                yield from _found(each, names)
