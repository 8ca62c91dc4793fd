"""A small scripted browser: cookies, redirects, real forms, the headers a real one sends; no JavaScript.

It walks the pages of the origins it was given. What leads elsewhere (a redirect or a form for a relying party)
is not followed: it is kept in `left`. Cookies are taken for SameSite=Lax: a form of another site sends none.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urldefrag, urlencode, urljoin, urlsplit

from corpid.sandbox.callback import Callback
from corpid.sandbox.html_page import Page, parse

if TYPE_CHECKING:
    import httpx

    from corpid.sandbox.html_page import Control, Form

HOPS: Final = 20
LONGEST_REFRESH_SECONDS: Final = 2.0
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class StrandedError(Exception):
    """The browser shows a page that leads no further the way it was told; the message quotes the page."""


@dataclass(slots=True)
class Browser:
    """One browser with one tab. `http` keeps the cookies; `origins` are walked, by default the first URL's only."""

    http: httpx.AsyncClient
    origins: frozenset[str] = frozenset()
    url: str = ""
    page: Page = field(default_factory=Page)
    response: httpx.Response | None = None
    left: Callback | None = None
    """where the last redirect or form led, if it left the origins"""

    async def open(self, url: str, *, site: str = "cross-site") -> Page:
        """Go to a URL as if a link on a page of `site` (the Sec-Fetch-Site value) had been followed."""
        self.left = None
        if not self.origins:
            self.origins = frozenset({_origin(url)})
        await self._navigate("GET", url, site=site)
        return self.page

    async def reload(self) -> Page:
        """Ask for the page that is shown again."""
        return await self.open(self.url, site="none")

    async def submit(self, form: Form, button: str | None = None) -> Page:
        """Press a button of the form: the one whose name, value or label this is, without it the first.

        Raises StrandedError if there is no such button.
        """
        self.left = None
        pressed = self._button(form, button)
        target = urljoin(self.url, form.action)
        content = urlencode(list(form.fields(pressed)))
        site = "same-origin" if _origin(target) == _origin(self.url) else "cross-site"
        if form.method == "get":
            await self._navigate("GET", f"{target.partition('?')[0]}?{content}", site=site)
        else:
            await self._navigate("POST", target, site=site, content=content)
        return self.page

    async def fill_and_submit(self, *names: str, button: str | None = None, **values: str) -> Page:
        """Fill the form that has these fields and press its button. Raises StrandedError, LookupError."""
        form = self.page.form_with(*names, *values)
        if form is None:
            raise self.stranded(f"it has no form with {', '.join((*names, *values))}")
        for name, value in values.items():
            form.fill(name, value)
        return await self.submit(form, button)

    def form_for_another_site(self) -> Form | None:
        """The page's form that posts to another origin than the page's own, if it has one."""
        own = _origin(self.url)
        return next((form for form in self.page.forms if _origin(urljoin(self.url, form.action)) != own), None)

    def stranded(self, problem: str) -> StrandedError:
        """The exception that tells which page the browser shows and what is wrong with it."""
        status = self.response.status_code if self.response is not None else 0
        return StrandedError(f"{self.url} ({status}) {self.page.heading or self.page.title!r}: {problem}: "
                             f"{self.page.text[:300]}")  # fmt: skip

    def _button(self, form: Form, wanted: str | None) -> Control | None:
        if wanted is None:
            return next(iter(form.buttons), None)
        named = [button for button in form.buttons if wanted in (button.name, button.value, button.label)]
        if not named:
            raise self.stranded(f"the form has no button {wanted!r}, only {[(b.name, b.value) for b in form.buttons]}")
        return named[0]

    async def _navigate(self, method: str, url: str, *, site: str, content: str | None = None) -> None:
        referrer = self.url
        for _ in range(HOPS):
            if _origin(url) not in self.origins:
                self.left = Callback(url, None if content is None else parse_qsl(content, keep_blank_values=True))
                return
            response = await self._fetch(method, urldefrag(url).url, site=site, content=content, referrer=referrer)
            if response.status_code in REDIRECTS:
                target = urljoin(url, response.headers["location"])
            else:
                self.url, self.response, self.page = url, response, parse(response.text)
                if self.page.refresh is None:
                    return
                seconds, address = self.page.refresh
                await asyncio.sleep(min(seconds, LONGEST_REFRESH_SECONDS))
                target, site, referrer = urljoin(url, address), "same-origin", url
            site = site if _origin(target) == _origin(url) else "cross-site"
            url = target
            if response.status_code not in (307, 308):
                method, content = "GET", None
        raise self.stranded(f"more than {HOPS} redirects, the last to {url}")

    async def _fetch(self, method: str, url: str, *, site: str, content: str | None, referrer: str) -> httpx.Response:
        headers = {
            "Accept": "text/html,application/xhtml+xml",
            "Sec-Fetch-Site": site,
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
            "Sec-Fetch-User": "?1",
        }
        if site == "same-origin":
            headers["Referer"] = urldefrag(referrer).url
        if content is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            headers["Origin"] = _origin(referrer)
        request = self.http.build_request(method, url, headers=headers, content=content)
        if method == "POST" and site == "cross-site":
            request.headers.pop("cookie", None)
        return await self.http.send(request, follow_redirects=False)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
