"""What the Chromium tests share: a provider on a socket with a clock to move, relying parties, and a browser."""

from __future__ import annotations

import asyncio
import shutil
import threading
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest

from corpid_dev.demo.demo import next_free
from tests.postbox import Postbox
from tests.sign_in.world import EVERY_SCOPE, MESSAGE, PASSWORD, World, entity, world
from tests.world.provider import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

    from playwright.sync_api import BrowserContext, ConsoleMessage, Page

    from corpid_dev.relying_party.relying_party import RelyingParty

CHROMIUM: Final = "/usr/bin/chromium"
HEADLESS_SHELL: Final = shutil.which("chromium-headless-shell") or CHROMIUM
"""the same browser without windows, settings and what else surrounds a page: half the processor time"""
FLAGS: Final = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    "--js-flags=--no-opt --no-maglev",  # no page lives long enough for what these make quicker
]  # fmt: skip
WITHOUT_SCRIPT: Final = {"java_script_enabled": False}
"""options of a context"""
with_and_without_script: Final = pytest.mark.parametrize(
    "visitor", [{}, pytest.param(WITHOUT_SCRIPT, marks=pytest.mark.full)], indirect=True, ids=["script", "no script"]
)
"""without script in `make test-full`"""
NOBODY_MINDS: Final = "Failed to load resource: the server responded with a status of 4"
"""how Chromium's console speaks of a page of ours with an error on it"""

T = TypeVar("T")


@dataclass(kw_only=True)
class Stage:
    """A running provider. The test's own thread belongs to the browser; everything else runs in `loop`."""

    loop: asyncio.AbstractEventLoop
    world: World
    callback: str
    """where the relying parties listen"""
    postbox: Postbox
    """what the provider sends by mail"""

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def begin(self, client_id: str = "rp1", **parameters: Any) -> tuple[str, RelyingParty]:
        """A pushed request: the URL to open, and who pushed it."""

        async def push() -> tuple[str, RelyingParty]:
            rp = await self.world.relying_party(client_id, scope=EVERY_SCOPE, **parameters)
            rp.redirect_uri = self.callback
            return await rp.begin(), rp

        return self.wait_for(push())

    def redeem(self, rp: RelyingParty, url: str) -> str:
        """Redeems the code of a callback; the entity that was chosen."""
        return str(self.wait_for(rp.redeem(url)).id_token["entity"]["sub"])

    def somebody(self, **more: Any) -> str:
        """A new person with password and app, who acts for one entity; their user name."""
        user_name = f"bob{len(self.world.people)}"
        own = entity("200000003A", "Bobs Bakery")
        self.wait_for(self.world.person(user_name, own, name="Bob Lim", **more))
        return user_name

    def code(self) -> str:
        """The code of a moment at which none has been used yet."""
        self.world.clock.pass_(60)
        return self.world.people["alice"].code(self.world.clock())

    def completed(self) -> int:
        return len(self.wait_for(self.world.audit("sign_in.complete")))


class _Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<!DOCTYPE html><title>Back</title><link rel=icon href=data:,><h1>Back at the relying party</h1>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def relying_party_site() -> Iterator[str]:
    """A listener on 127.0.0.1 that browsers come back to; its callback URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Callback)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/callback"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@asynccontextmanager
async def _served(callback: str, postbox: Postbox, options: dict[str, Any]) -> AsyncIterator[World]:
    port, sockets = next_free("localhost", 0)
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(world(base=f"http://localhost:{port}", postbox=postbox, **options))
        for client_id, name in (("rp1", "Harbour Board"), ("rp2", "Ministry of Trade")):
            await made.client(client_id, name=name, redirect_uris=(callback,), sector="private")
        await made.person(
            "alice",
            *(entity(f"2000000{n:02}A", f"Harbour Works {n} Pte. Ltd.") for n in range(10, 20)),
            entity("T00000000K", "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesellschaft mbH"),
        )
        application = made.application
        await stack.enter_async_context(
            served(application.asgi, sockets, drain_seconds=1, streamed=application.streamed, forms=application.forms)
        )
        yield made


@contextmanager
def staged(**options: Any) -> Iterator[Stage]:
    """Alice may act for thirteen entities; rp1 and rp2 are private and ask for everything. `options` are settings.

    Consent is not remembered unless they say so: each test comes to its page.
    """
    options = {"consent_days": 0, **options}
    with relying_party_site() as callback:
        ready, found = threading.Event(), []

        async def main() -> None:
            postbox = Postbox()
            async with _served(callback, postbox, options) as made:
                stop = asyncio.Event()
                loop = asyncio.get_running_loop()
                found.append((Stage(loop=loop, world=made, callback=callback, postbox=postbox), stop))
                ready.set()
                await stop.wait()

        thread = threading.Thread(target=lambda: asyncio.run(main()))
        thread.start()
        assert ready.wait(30), "the provider did not start"
        ((stage, stop),) = found
        try:
            yield stage
        finally:
            stage.loop.call_soon_threadsafe(stop.set)
            thread.join(30)


@dataclass(kw_only=True)
class Visitor:
    """A browser profile with one person in front of it. `complaints` is what its console said."""

    context: BrowserContext
    stage: Stage
    complaints: list[str] = field(default_factory=list)

    def tab(self) -> Page:
        page = self.context.new_page()
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(NOBODY_MINDS):
            self.complaints.append(message.text)

    def password(self, page: Page, password: str = PASSWORD, *, user_name: str = "alice") -> None:
        page.get_by_label("User name").fill(user_name)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Continue").click()

    def code(self, page: Page, code: str | None = None) -> None:
        page.get_by_label("Code", exact=True).fill(code or self.stage.code())
        page.get_by_role("button", name="Continue").click()

    def entity(self, page: Page, number: str = "200000001A") -> None:
        page.locator(f"input[value='{number}'] + label").click()
        page.get_by_role("button", name="Continue").click()

    def agree(self, page: Page) -> None:
        page.get_by_role("button", name="Agree and continue").click()

    def back(self, page: Page) -> dict[str, str]:
        """Waits for the way back, also where a second click aborts the first navigation; the callback's parameters."""
        shows(page, "Back at the relying party")
        assert page.url.startswith(self.stage.callback)
        return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def follow(page: Page, url: str) -> None:
    """Opens a link; without script its code has to be typed."""
    page.goto(url)
    if urlsplit(page.url).fragment:  # no script has taken it out of the address
        page.get_by_label("Code from your e-mail").fill(urlsplit(url).fragment)
        page.get_by_role("button", name="Continue").click()


def heading(page: Page) -> str:
    return page.locator("h1").inner_text()


def shows(page: Page, text: str) -> None:
    """Waits for the page with this heading."""
    page.get_by_role("heading", level=1, name=text).wait_for()


__all__ = [
    "CHROMIUM", "FLAGS", "HEADLESS_SHELL", "MESSAGE", "WITHOUT_SCRIPT", "Stage", "Visitor", "follow", "heading", "shows",
    "staged", "with_and_without_script",
]  # fmt: skip
