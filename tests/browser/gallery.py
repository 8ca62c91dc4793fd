"""Every state of every page on a socket, with the headers that pages have, and the ways in which they are looked at."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from time import time
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import segno
from starlette.requests import Request
from starlette.responses import Response

from corpid.web.http.middleware import Middleware
from corpid.web.http.server import Server
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import ENGLISH, LANGUAGES, PSEUDO, Language
from corpid_dev.demo.demo import next_free
from tests.browser.states import STATES
from tests.house.source import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.sync_api import Browser, BrowserContext, Page
    from starlette.types import Receive, Scope, Send


AXE: Final = ROOT / "tests" / "browser" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
OF_COLOURS: Final = ["color-contrast", "link-in-text-block"]
"""rules that take axe longest, and whose answers are the same in every language and width"""
TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
Rules: TypeAlias = Literal["all", "all but colours", "colours"]
RULES: Final[dict[Rules, tuple[dict[str, Any], list[str]]]] = {
    "all": ({"type": "tag", "values": TAGS}, []),
    "all but colours": ({"type": "tag", "values": TAGS}, OF_COLOURS),
    "colours": ({"type": "rule", "values": OF_COLOURS}, []),
}
"""what axe looks at: its rules, and those of them that are left out"""
VIOLATIONS: Final = """([rules, left_out]) => axe.run(document, {
    runOnly: rules, resultTypes: ["violations"],
    rules: Object.fromEntries(left_out.map(rule => [rule, { enabled: false }])) })
    .then(found => found.violations.flatMap(each => each.nodes.map(node => `${each.id}: ${node.html} ${node.failureSummary}`)))"""
OUTSIDE: Final = """() => [...document.querySelectorAll("body *")].filter(each => {
    const box = each.getBoundingClientRect();
    return box.width > 1 && each.checkVisibility() && (box.left < -1 || box.right > innerWidth + 1);
}).map(each => each.outerHTML.slice(0, 120))"""
CUT: Final = """() => [...document.querySelectorAll("body *")].filter(each =>
    getComputedStyle(each).overflow !== "visible" && !each.matches("input, .visually-hidden, .visually-hidden *")
    && each.checkVisibility() && (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)
).map(each => each.outerHTML.slice(0, 120))"""

GOES_AWAY: Final = "form_post."
"""the script of the page whose form goes away by itself: left out, so that the page is seen while that has not happened"""
KEPT: Final = {"Cache-Control": "max-age=3600"}
"""a browser fetches and reads a file once, not with each page"""

SPOKEN: Final = {language.tag: language for language in (*LANGUAGES, PSEUDO)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """How a page is looked at; width and height in CSS pixels."""

    language: Language = ENGLISH
    scheme: str = "light"
    width: int = 1100
    height: int = 900
    forced_colors: Literal["active", "none"] = "none"

    @property
    def name(self) -> str:
        """For the name of a test or of a folder."""
        forced = "-forced" if self.forced_colors == "active" else ""
        return f"{self.language.tag}-{self.scheme}-{self.width}{forced}"

    @property
    def options(self) -> dict[str, Any]:
        """For a context of the browser."""
        return {
            "viewport": {"width": self.width, "height": self.height},
            "color_scheme": self.scheme,
            "forced_colors": self.forced_colors,
            "reduced_motion": "reduce",
            "timezone_id": "UTC",
        }


class _Gallery:
    """`/{language}/{state}` is the page; every other address leads nowhere, and the browser stays where it is."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(Request(scope))(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        first, _, rest = request.url.path[1:].partition("/")
        if first == "static" and not rest.startswith(GOES_AWAY):
            return Response(*_file(self._renderer, rest))
        if first in SPOKEN and rest in STATES:
            return Response(self._renderer.render(STATES[rest], SPOKEN[first]), media_type="text/html")
        if request.url.path.endswith("/qr.svg"):
            return Response(_picture(), media_type="image/svg+xml")
        return Response(status_code=204)


def _file(renderer: Renderer, name: str) -> tuple[bytes, int, dict[str, str], str]:
    content, media_type = renderer.static_file(name)
    return content, 200, KEPT, media_type


def _picture() -> bytes:
    drawn = BytesIO()
    segno.make("otpauth://totp/CorpID:wei.ling?secret=JBSWY3DPEHPK3PXP").save(
        drawn, kind="svg", border=4, light="#fff", omitsize=True
    )
    return drawn.getvalue()


@asynccontextmanager
async def _serving(renderer: Renderer) -> AsyncIterator[str]:
    async def always() -> float:
        return 0.0

    port, sockets = next_free("localhost", 0)
    address = f"http://localhost:{port}"
    server = Server(Middleware(_Gallery(renderer), base_url=address, ready=always, clock=time), drain_seconds=1)
    await server.start(sockets)
    try:
        yield address
    finally:
        await server.stop()


@contextmanager
def served(renderer: Renderer | None = None) -> Iterator[str]:
    """The address of a gallery that runs until the context is left."""
    ready, addresses, ends = threading.Event(), [], []

    async def main() -> None:
        async with _serving(renderer or Renderer(added="corpid_dev")) as address:
            stop = asyncio.Event()
            addresses.append(address)
            ends.append((asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(30), "the gallery did not start"
    try:
        yield addresses[0]
    finally:
        loop, stop = ends[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)


@dataclass(kw_only=True)
class Beholder:
    """A browser in front of the gallery, with a tab for each appearance."""

    browser: Browser
    address: str
    _tabs: dict[Appearance, Page] = field(default_factory=dict)

    def look(self, state: str, appearance: Appearance) -> Page:
        """The page of a state, as it is seen before anybody touches it."""
        page = self._tabs.get(appearance) or self._tab(appearance)
        page.goto(f"{self.address}/{appearance.language.tag}/{state}")
        limit = STATES[state].frame.limit
        if limit is not None and limit.near:
            page.locator("#time-warning > *").first.wait_for()
        return page

    def _tab(self, appearance: Appearance) -> Page:
        context: BrowserContext = self.browser.new_context(**appearance.options)
        context.set_default_timeout(15_000)
        self._tabs[appearance] = context.new_page()
        return self._tabs[appearance]


def shown_as(page: Page, appearance: Appearance) -> Page:
    """An opened page, as it looks when the window and the system's colours change."""
    page.set_viewport_size({"width": appearance.width, "height": appearance.height})
    page.emulate_media(
        color_scheme="dark" if appearance.scheme == "dark" else "light", forced_colors=appearance.forced_colors
    )
    return page


@cache
def _axe() -> str:
    """As a page's console reads it, which the page's own policy does not bind."""
    return AXE.read_text()


def complaints(page: Page, of: Rules = "all") -> list[Any]:
    """What axe-core finds on a page."""
    # Reading axe takes a third of a page's time: only a page that it looks at has it.
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    return list(page.evaluate(VIOLATIONS, RULES[of]))
