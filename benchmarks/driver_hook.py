"""Sign in to CorpID for an external driver: walk the sign-in pages as a browser without JavaScript would."""

from __future__ import annotations

import importlib.util
import re
import time
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

import pyotp

_spec = importlib.util.spec_from_file_location("people", Path(__file__).with_name("people.py"))
people = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(people)

FORM = re.compile(r'<form[^>]*method="post"[^>]*action="([^"]*/(?:password|code))"[^>]*>(.*?)</form>', re.S)
HIDDEN = re.compile(r'<input[^>]*type="hidden"[^>]*name="([^"]*)"[^>]*value="([^"]*)"')


class Walk:
    """A browser of the driver's HTTP client: cookies, redirects, forms."""

    def __init__(self, driver, client, url: str) -> None:
        self.client, self.url, self.jar = client, url, driver.jar()
        self.make_url = type(driver.maker.token_url)
        self.page = ""

    async def get(self) -> None:
        """Follow redirects to the next page."""
        await self._send("GET", "", None)

    async def submit(self, **fields: str) -> None:
        """Fill the form of the page and send it."""
        action, inside = FORM.search(self.page).groups()
        hidden = {name: unescape(value) for name, value in HIDDEN.findall(inside)}
        self.url = urljoin(self.url, unescape(action))
        head = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n"
        await self._send("POST", head, urlencode({**hidden, **fields}).encode())

    async def _send(self, method: str, head: str, body: bytes | None) -> None:
        for _ in range(10):
            url = self.make_url(self.url)
            path = urlsplit(self.url).path
            cookie = self.jar.header(path)
            head += f"Cookie: {cookie}\r\n" if cookie else ""
            answer = await self.client.send(url, method, head, body)
            self.jar.store(answer, path)
            if answer.status not in (302, 303):
                self.page = answer.body.decode()
                return
            self.url, method, head, body = urljoin(self.url, answer.get(b"location")), "GET", "", None


async def login(driver, client, index: int) -> str:
    """Returns the Cookie header of a signed-in browser."""
    _, url = await driver.start_authorization(client)
    walk = Walk(driver, client, url)
    await walk.get()
    await walk.submit(user_name=people.user_name(index), password=people.PASSWORD)
    await walk.submit(code=pyotp.TOTP(people.totp_secret(index)).at(int(time.time())))
    if "/return" not in walk.url:
        raise SystemExit(f"the sign-in ended at {walk.url}: {walk.page[:2000]}")
    return walk.jar.header("/")
