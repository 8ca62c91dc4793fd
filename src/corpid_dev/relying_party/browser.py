"""A scripted browser without JavaScript: cookies, redirects, real forms.

It walks the pages of the origins it was given. What leads elsewhere (a redirect or a form for a relying party)
is not followed: it is kept in `left`. Cookies are taken for SameSite=Lax: a form of another site sends none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from typing import Final
from urllib.parse import parse_qsl, urldefrag, urlencode, urljoin, urlsplit

import httpx

from corpid_dev.relying_party.verification import Callback

VOID_OF_TEXT: Final = frozenset({"script", "style", "template"})
BUTTON_TYPES: Final = frozenset({"submit", "image"})
NAME_CHARACTERS: Final = 1000
"""of a link's or a button's text; what follows is not read"""
_PLAIN: Final = re.compile(
    r"""([^<]*)<(?:/([a-z][a-z0-9]*)|([a-z][a-z0-9]*)((?:\s+[a-zA-Z][a-zA-Z0-9:-]*(?:="[^"]*")?)*+)\s*(/?)|![dD][^<>]*)>"""
)
_ATTRIBUTE: Final = re.compile(r"""\s+([a-zA-Z][a-zA-Z0-9:-]*)(="([^"]*)")?""")
_OPENED: Final = VOID_OF_TEXT | {"title", "h1", "a", "button", "option"}


@dataclass(slots=True)
class Control:
    """A form control.

    `choice` is a radio, check box or option, which counts only while `chosen`.
    """

    name: str
    value: str
    kind: str
    choice: bool = False
    chosen: bool = True
    label: str = ""


@dataclass(slots=True)
class Form:
    action: str
    method: str
    id: str = ""
    searches: bool = False
    controls: list[Control] = field(default_factory=list)
    buttons: list[Control] = field(default_factory=list)

    def names(self) -> set[str]:
        """The names of all its controls and buttons."""
        return {control.name for control in (*self.controls, *self.buttons) if control.name}

    def buttons_called(self, wanted: str) -> list[Control]:
        """The buttons of this name, value or label."""
        return [button for button in self.buttons if wanted in (button.name, button.value, button.label)]

    def choices(self, name: str) -> list[Control]:
        """The radios, check boxes or options of this name."""
        return [control for control in self.controls if control.name == name and control.choice]

    def fill(self, name: str, value: str) -> None:
        """Type into a field, or choose among radios, options or boxes.

        An empty value unticks a box. Raises LookupError.
        """
        choices = self.choices(name)
        for control in choices:
            control.chosen = control.value == value
        if choices and not value and all(control.kind == "checkbox" for control in choices):
            return
        fitting = [control for control in self.controls if control.name == name and (not choices or control.chosen)]
        if not fitting:
            raise LookupError(f"the form has no field {name} that takes {value!r}; it has {sorted(self.names())}")
        fitting[0].value = value

    def fields(self, button: Control | None) -> Iterator[tuple[str, str]]:
        """The fields that a browser sends for this button."""
        for control in self.controls:
            if control.name and control.chosen:
                yield control.name, control.value
        if button is not None and button.name:
            yield button.name, button.value


@dataclass(slots=True)
class HtmlPage:
    """The parts of a page that a person reads or sends."""

    title: str = ""
    heading: str = ""
    text: str = ""
    refresh: tuple[float, str] | None = None
    """seconds and target of a meta refresh (D37)"""
    forms: list[Form] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    """target and text"""

    def form_with(self, *names: str, button: str | None = None) -> Form | None:
        """The first form that has all these controls, and preferably the button.

        Without any controls the first one that does more than search.
        """
        found = [form for form in self.forms if (set(names) <= form.names() if names else not form.searches)]
        return next((form for form in found if button is None or form.buttons_called(button)), next(iter(found), None))


def parse(html: str) -> HtmlPage:
    """Read a page."""
    reader = _Reader()
    reader.feed(html.replace("<wbr>", ""))  # a line may break there; it is no space
    reader.close()
    for owner, button in reader.elsewhere:
        for form in [form for form in reader.page.forms if form.id == owner][:1]:
            form.buttons.append(button)
    reader.page.text = " ".join(" ".join(reader.words).split())
    reader.page.title = " ".join(reader.page.title.split())
    reader.page.heading = " ".join(reader.page.heading.split())
    return reader.page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = HtmlPage()
        self.words: list[str] = []
        self.open: list[str] = []
        self.form: Form | None = None
        self.select: tuple[str, list[Control]] | None = None
        self.textarea: Control | None = None
        self.elsewhere: list[tuple[str, Control]] = []
        self.button: Control | None = None

    def feed(self, data: str) -> None:
        """Read a page, quickly while its parts are plain."""
        place = 0
        while (found := _PLAIN.match(data, place)) is not None:
            text, ended, begun, attributes, at_once = found.groups()
            if begun in self.CDATA_CONTENT_ELEMENTS and not data.startswith(f"</{begun}>", found.end()):
                break
            place = found.end()
            if text:
                self.handle_data(unescape(text))
            if begun:
                attrs = [
                    (name.lower(), unescape(value) if quoted else None)
                    for name, quoted, value in _ATTRIBUTE.findall(attributes)
                ]
                (self.handle_startendtag if at_once else self.handle_starttag)(begun, attrs)
            elif ended:
                self.handle_endtag(ended)
        super().feed(data[place:])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "template" in self.open:
            return
        if tag in _OPENED and tag not in self.open:  # none is within itself
            self.open.append(tag)
        match tag:
            case "form":
                self.form = Form(
                    given.get("action", ""),
                    given.get("method", "get").lower(),
                    given.get("id", ""),
                    searches=given.get("role", "") == "search",
                )
                self.page.forms.append(self.form)
            case "a" if "href" in given:
                self.page.links.append((given["href"], ""))
            case "meta" if given.get("http-equiv", "").lower() == "refresh":
                self.page.refresh = _refresh(given.get("content", ""))
            case "input" | "button" | "select" | "textarea" | "option" if self.form is not None:
                self._control(tag, given, self.form)
            case _:
                pass

    def _control(self, tag: str, given: dict[str, str], form: Form) -> None:
        if tag == "button":
            self.button = None
        if "disabled" in given:
            return
        name, value = given.get("name", ""), given.get("value", "")
        kind = given.get("type", {"button": "submit", "input": "text"}.get(tag, tag)).lower()
        if tag == "option" and self.select is not None:
            option = Control(self.select[0], value, "option", choice=True, chosen="selected" in given)
            self.select[1].append(option)
            form.controls.append(option)
        elif tag == "select":
            self.select = (name, [])
        elif kind in BUTTON_TYPES:
            self._press(Control(name, value, kind), given.get("form", ""), form)
        elif kind in ("radio", "checkbox"):
            form.controls.append(Control(name, given.get("value", "on"), kind, choice=True, chosen="checked" in given))
        elif kind not in ("button", "reset"):
            form.controls.append(Control(name, value, kind))
            self.textarea = form.controls[-1] if tag == "textarea" else None

    def _press(self, button: Control, owner: str, form: Form) -> None:
        self.button = button
        if owner in ("", form.id):
            form.buttons.append(button)
        else:
            self.elsewhere.append((owner, button))

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag)]
        match tag:
            case "form":
                self.form = None
            case "textarea":
                self.textarea = None
            case "select" if self.select is not None:
                options = self.select[1]
                if options and not any(option.chosen for option in options):
                    options[0].chosen = True
                self.select = None
            case _:
                pass

    def handle_data(self, data: str) -> None:
        if self.textarea is not None:
            self.textarea.value += data
            return
        if self.open and self.open[-1] in VOID_OF_TEXT:
            return
        self.words.append(data)
        if "title" in self.open:
            self.page.title += data
        if "h1" in self.open:
            self.page.heading += data
        if "a" in self.open and self.page.links:
            target, text = self.page.links[-1]
            if len(text) < NAME_CHARACTERS:
                self.page.links[-1] = (target, " ".join(f"{text} {data}".split()))
        if "button" in self.open and self.button is not None and len(self.button.label) < NAME_CHARACTERS:
            self.button.label = " ".join(f"{self.button.label} {data}".split())


def _refresh(content: str) -> tuple[float, str] | None:
    seconds, _, target = content.partition(";")
    name, _, address = target.strip().partition("=")
    if name.strip().lower() != "url" or not seconds.strip().replace(".", "", 1).isdecimal():
        return None
    return float(seconds), address.strip().strip("'\"")


HOPS: Final = 20
LONGEST_REFRESH_SECONDS: Final = 2.0
PAGE_BYTES: Final = 2 * 1024 * 1024
"""the rest of a page is not read"""
PAGE_SECONDS: Final = 120.0
"""after which a page that still comes has not come"""
_OF_THE_TRANSFER: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class DeadEndError(Exception):
    """The browser is at a page without the expected way on.

    The message quotes it.
    """


@dataclass(slots=True)
class Browser:
    """One browser with one tab.

    `http` keeps the cookies. `origins` are walked, by default the first URL's only.
    """

    http: httpx.AsyncClient
    origins: frozenset[str] = frozenset()
    url: str = ""
    page: HtmlPage = field(default_factory=HtmlPage)
    response: httpx.Response | None = None
    left: Callback | None = None
    """the target of the last redirect or form, if it left the origins"""

    async def open(self, url: str, *, site: str = "cross-site") -> HtmlPage:
        """Go to a URL as if by a link.

        On a page of `site` (the Sec-Fetch-Site value).
        """
        self.left = None
        if not self.origins:
            self.origins = frozenset({_origin(url)})
        await self._navigate("GET", url, site=site)
        return self.page

    async def post(self, url: str, fields: Iterable[tuple[str, str]], *, referrer: str) -> HtmlPage:
        """Send a form as another site's page does, at `referrer`."""
        self.left, self.url = None, referrer
        if not self.origins:
            self.origins = frozenset({_origin(url)})
        await self._navigate("POST", url, site="cross-site", content=urlencode(list(fields)))
        return self.page

    async def reload(self) -> HtmlPage:
        """Request the current page again."""
        return await self.open(self.url, site="none")

    async def submit(self, form: Form, button: str | None = None) -> HtmlPage:
        """Press a button of the form, by default the first.

        `button` is its name, value or label. Raises DeadEndError if there is no such button.
        """
        self.left = None
        pressed = self._button(form, button)
        target = self._target(self.url, form.action)
        content = urlencode(list(form.fields(pressed)))
        site = "same-origin" if _origin(target) == _origin(self.url) else _further_site(self.url, target)
        if form.method == "get":
            await self._navigate("GET", f"{target.partition('?')[0]}?{content}", site=site)
        else:
            await self._navigate("POST", target, site=site, content=content)
        return self.page

    async def fill_and_submit(self, *names: str, button: str | None = None, **values: str) -> HtmlPage:
        """Fill the form that has these fields, and press its button.

        Raises DeadEndError, LookupError.
        """
        form = self.page.form_with(*names, *values, button=button)
        if form is None:
            raise self.dead_end(f"it has no form with {', '.join((*names, *values))}")
        for name, value in values.items():
            form.fill(name, value)
        return await self.submit(form, button)

    def form_for_another_site(self) -> Form | None:
        """The page's form that posts to another origin, if any."""
        own = _origin(self.url)
        return next((form for form in self.page.forms if _origin(urljoin(self.url, form.action)) != own), None)

    def dead_end(self, problem: str) -> DeadEndError:
        """An exception that names the browser's page and its error."""
        status = self.response.status_code if self.response is not None else 0
        return DeadEndError(f"{self.url} ({status}) {self.page.heading or self.page.title!r}: {problem}: "
                             f"{self.page.text[:300]}")  # fmt: skip

    def _target(self, url: str, reference: str) -> str:
        """The address that a page at `url` names.

        Raises DeadEndError if it is none.
        """
        try:
            target = urljoin(url, reference)
            _ = urlsplit(target).port
        except ValueError as error:
            raise self.dead_end(f"it leads to no address ({reference[:100]!r}: {error})") from None
        return target

    def _button(self, form: Form, wanted: str | None) -> Control | None:
        if wanted is None:
            return next(iter(form.buttons), None)
        named = form.buttons_called(wanted)
        if not named:
            raise self.dead_end(f"the form has no button {wanted!r}, only {[(b.name, b.value) for b in form.buttons]}")
        return named[0]

    async def _navigate(self, method: str, url: str, *, site: str, content: str | None = None) -> None:
        referrer = self.url
        for _ in range(HOPS):
            if _origin(url) not in self.origins:
                self.left = Callback(url, None if content is None else parse_qsl(content, keep_blank_values=True))
                return
            response = await self._fetch(method, urldefrag(url).url, site=site, content=content, referrer=referrer)
            if response.status_code in REDIRECTS and "location" in response.headers:
                target = self._target(url, response.headers["location"])
            else:
                self.url, self.response, self.page = url, response, parse(_text(response))
                if self.page.refresh is None:
                    return
                seconds, address = self.page.refresh
                await asyncio.sleep(min(seconds, LONGEST_REFRESH_SECONDS))
                target, site, referrer = self._target(url, address), "same-origin", url
            site = site if _origin(target) == _origin(url) else _further_site(url, target)
            url = target
            if response.status_code not in (307, 308):
                method, content = "GET", None
        raise self.dead_end(f"more than {HOPS} redirects, the last to {url}")

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
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                return await self._received(request)
        except TimeoutError:
            raise httpx.ReadTimeout(f"the page was not whole after {PAGE_SECONDS:.0f} s", request=request) from None

    async def _received(self, request: httpx.Request) -> httpx.Response:
        """The answer with as much of its page as is read."""
        answer = await self.http.send(request, follow_redirects=False, stream=True)
        body = bytearray()
        try:
            async for part in answer.aiter_bytes():
                body += part
                if len(body) >= PAGE_BYTES:
                    break
        finally:
            await answer.aclose()
        headers = [(name, value) for name, value in answer.headers.multi_items() if name not in _OF_THE_TRANSFER]
        return httpx.Response(
            answer.status_code, headers=headers, content=bytes(body[:PAGE_BYTES]), request=request,
            extensions=answer.extensions,
        )  # fmt: skip


def _text(response: httpx.Response) -> str:
    """The text of a page, whatever encoding it claims."""
    try:
        return response.text
    except (LookupError, TypeError, ValueError):  # Python's codecs are not all encodings of text
        return response.content.decode("utf-8", "replace")


def _further_site(url: str, target: str) -> str:
    """The Sec-Fetch-Site of another origin: ports do not separate sites."""
    here, there = urlsplit(url), urlsplit(target)
    return "same-site" if (here.scheme, here.hostname) == (there.scheme, there.hostname) else "cross-site"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
