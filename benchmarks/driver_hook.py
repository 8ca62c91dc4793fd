"""Sign in to CorpID for a driver: walk the sign-in pages as a browser without JavaScript would.

An independent driver loads this file and calls `login`; `python -m benchmarks` walks with `Walk` and `sign_in`.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Awaitable, Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import pyotp

_spec = importlib.util.spec_from_file_location("people", Path(__file__).with_name("people.py"))
assert _spec
assert _spec.loader
people = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(people)

FORM = r'<form[^>]*method="post"[^>]*action="([^"]*/(?:%s))"[^>]*>(.*?)</form>'
STEPS = "password|code|entity|consent"
HIDDEN = re.compile(r'<input[^>]*type="hidden"[^>]*name="([^"]*)"[^>]*value="([^"]*)"')
FORM_HEADERS = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n"

Send = Callable[[str, str, str, bytes | None], Awaitable[Any]]
"""URL, method, header lines, body → an answer with `status`, `body` and `get(name)`"""


def fill(page: str, url: str, fields: dict[str, str], steps: str = STEPS) -> tuple[str, bytes]:
    """The form of a page at `url` for one of these steps, filled in: where it goes, and its body."""
    found = re.search(FORM % steps, page, re.DOTALL)
    if found is None:
        raise SystemExit(f"{url} shows no form of the sign-in: {page[:2000]}")
    action, inside = found.groups()
    hidden = {name: unescape(value) for name, value in HIDDEN.findall(inside)}
    return urljoin(url, unescape(action)), urlencode({**hidden, **fields}).encode()


class Walk:
    """A browser: cookies, redirects, forms. `jar` has `header(path)` and `store(answer, path)`.

    It follows redirects until one leads to another site, which `answer` then holds.
    """

    def __init__(self, send: Send, jar: Any, url: str) -> None:
        self.send, self.jar, self.url = send, jar, url
        self.page = ""
        self.answer: Any = None

    async def get(self) -> None:
        """Follow redirects to the next page."""
        await self._follow("GET", "", None)

    async def submit(self, steps: str = STEPS, /, **fields: str) -> None:
        """Fill the form of the page for one of these steps, and send it."""
        self.url, body = fill(self.page, self.url, fields, steps)
        await self._follow("POST", FORM_HEADERS, body)

    async def _follow(self, method: str, head: str, body: bytes | None) -> None:
        for _ in range(10):
            path = urlsplit(self.url).path
            cookie = self.jar.header(path)
            answer = await self.send(self.url, method, head + (f"Cookie: {cookie}\r\n" if cookie else ""), body)
            self.jar.store(answer, path)
            self.answer = answer
            if answer.status not in {302, 303}:
                self.page = answer.body.decode()
                return
            to = urljoin(self.url, answer.get(b"location"))
            if urlsplit(to).netloc != urlsplit(self.url).netloc:
                return
            self.url, method, head, body = to, "GET", "", None
        raise SystemExit(f"ten redirects, the last to {self.url}")


async def sign_in(walk: Walk, name: str) -> None:
    """Both factors, and consent if it is requested, from the authorization URL to the page after them."""
    await walk.get()
    await walk.submit(user_name=name, password=people.PASSWORD)
    await walk.submit(code=pyotp.TOTP(people.totp_secret(name)).at(int(time.time())))
    if '/consent"' in walk.page:
        await walk.submit(decision="agree")


async def login(driver: Any, client: Any, index: int) -> str:
    """Returns the Cookie header of a signed-in browser."""
    _, url = await driver.start_authorization(client)
    make_url = type(driver.maker.token_url)

    async def send(url: str, method: str, head: str, body: bytes | None) -> Any:
        return await client.send(make_url(url), method, head, body)

    walk = Walk(send, driver.jar(), url)
    await sign_in(walk, people.user_name(index))
    return signed_in(walk)


def signed_in(walk: Walk) -> str:
    """The Cookie header of a walk that led to its end."""
    if "/return" not in walk.url:
        raise SystemExit(f"the sign-in ended at {walk.url}: {walk.page[:2000]}")
    cookie: str = walk.jar.header("/")
    return cookie
