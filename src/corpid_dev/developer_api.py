"""The developer API of a running demo (D66)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import httpx

from corpid.rules.oauth.discovery import DISCOVERY_PATH
from corpid_dev.hosting import FIRST_PORT, PROVIDER_HOST
from corpid_dev.relying_party.verification import Callback
from corpid_dev.web.mode import KEY, key_cookie
from corpid_dev.web.paths import CLIENTS_PATH, DEVELOPER_PATH, EXCHANGES_PATH, ORDERS_PATH, SIGN_INS_PATH

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_URL: Final = f"http://{PROVIDER_HOST}:{FIRST_PORT}{DEVELOPER_PATH}"
SECONDS: Final = 70.0
"""longer than any latency that an order can add"""
LONGEST_WAIT_SECONDS: Final = 65.0


class NotDone(Exception):
    """The demo did not do it; the message gives the remedy."""


class SignInRefused(Exception):
    """The provider did not complete a sign-in; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An issuer in developer mode, and the key of its start."""

    issuer: str
    key: str = ""

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read an address, as `corpid demo` prints it. Raises NotDone."""
        try:
            found = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise NotDone(f"{url.partition('?')[0]} is no address: {error}") from None
        path = found.path.rstrip("/").removesuffix(DEVELOPER_PATH)
        plain = found.copy_with(path=path, query=None, fragment=None)
        return cls(issuer=str(plain).rstrip("/"), key=found.params.get(KEY, ""))

    @property
    def headers(self) -> dict[str, str]:
        """The header that shows the key.

        It is that of browsers: a key in the query is answered with a redirect without it. Source: D66
        """
        return {"Cookie": f"{key_cookie(self.issuer)}={self.key}"} if self.key else {}


def trusting(authority: Path | None) -> ssl.SSLContext | None:
    """A TLS context with one more certificate authority.

    None without one: the usual ones are trusted. Raises NotDone.
    """
    if authority is None:
        return None
    context = httpx.create_ssl_context(trust_env=False)
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise NotDone(f"--ca {authority} cannot be read: {error}") from None
    return context


class DeveloperApi:
    """The developer API of one issuer."""

    def __init__(self, http: httpx.AsyncClient, issuer: str) -> None:
        self._http: Final = http
        self.issuer: Final = issuer
        self._seen = 0
        """the newest exchange that was read"""

    async def metadata(self) -> dict[str, Any]:
        """The issuer's metadata. Raises NotDone."""
        return await self._asked("GET", DISCOVERY_PATH)

    async def clients(self) -> dict[str, Any]:
        """The clients, and what a new one begins with.

        Raises NotDone.
        """
        return await self._asked("GET", CLIENTS_PATH)

    async def register(self, client: Mapping[str, object]) -> dict[str, Any]:
        """Register a client, or replace the one of its identifier. Raises NotDone."""
        return await self._asked("POST", CLIENTS_PATH, client)

    async def place(self, order: Mapping[str, object]) -> dict[str, Any]:
        """Place an order of the sandbox. Raises NotDone."""
        return await self._asked("POST", ORDERS_PATH, order)

    async def list_orders(self, client_id: str | None = None) -> list[dict[str, Any]]:
        """The orders in force, for one client or for all. Raises NotDone."""
        named = {} if client_id is None else {"client_id": client_id}
        found: list[dict[str, Any]] = (await self._asked("GET", ORDERS_PATH, query=named)).get("orders", [])
        return found

    async def withdraw(self, order_id: str) -> int:
        """End one order. Raises NotDone."""
        return int((await self._asked("DELETE", f"{ORDERS_PATH}/{order_id}"))["withdrawn"])

    async def withdraw_all(self, client_id: str | None = None) -> int:
        """End every order, or those of one client. Raises NotDone."""
        named = {} if client_id is None else {"client_id": client_id}
        return int((await self._asked("DELETE", ORDERS_PATH, query=named))["withdrawn"])

    @asynccontextmanager
    async def placed(self, orders: Iterable[Mapping[str, Any]]) -> AsyncIterator[None]:
        """Have orders in force; they are withdrawn at the end, whatever happens.

        Raises NotDone.
        """
        ids: list[str] = []
        try:
            for each in orders:
                ids.append(str((await self.place(each))["id"]))  # noqa: PERF401 - each may fail
            yield
        finally:
            for order_id in ids:
                await self._request("DELETE", f"{ORDERS_PATH}/{order_id}")  # it may have ended before

    async def new_exchanges(self) -> list[dict[str, Any]]:
        """The exchanges since the last time. Raises NotDone."""
        found: list[dict[str, Any]] = (
            await self._asked("GET", EXCHANGES_PATH, query={"after": str(self._seen)})
        )["exchanges"]  # fmt: skip
        self._seen = max((int(each["id"]) for each in found), default=self._seen)
        return found

    async def sign_in(self, authorize_url: str, *, user: str, entity: str) -> Callback:
        """Sign a test person in. Raises SignInRefused, NotDone."""
        order = {"authorize_url": authorize_url, "user": user, "entity": entity}
        response = await self._request("POST", SIGN_INS_PATH, order)
        answer = _members(response) or {}
        if response.is_success and isinstance(answer.get("callback_url"), str):
            form = answer.get("form")
            return Callback(answer["callback_url"], form.items() if isinstance(form, Mapping) else None)
        problem = answer.get("error_description") or answer.get("error") or response.reason_phrase
        raise SignInRefused(f"the provider refused to sign {user} in: {response.status_code}: {problem}")

    async def _asked(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        response = await self._request(method, path, body, query)
        members = _members(response)
        if response.is_success and members is not None:
            return members
        if response.status_code == httpx.codes.NOT_FOUND:
            order_id = path.removeprefix(f"{ORDERS_PATH}/")
            problem = "this is not a demo" if order_id == path else f"there is no order {order_id}"
            raise NotDone(f"{self.issuer}: {problem}")
        description = str((members or {}).get("error_description", ""))
        if not description:
            raise NotDone(f"{method} {self.issuer}{path} answered {response.status_code} {response.reason_phrase}")
        raise NotDone(description.partition(" (reference ")[0].removeprefix("orders: "))

    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str] | None = None
    ) -> httpx.Response:
        content = None if body is None else dict(body)
        try:
            request = self._http.build_request(method, f"{self.issuer}{path}", params=query, json=content)
            response = await self._http.send(request)
            if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
                wait = response.headers.get("retry-after", "")
                await asyncio.sleep(min(float(wait) if wait.isdigit() else 1.0, LONGEST_WAIT_SECONDS))
                response = await self._http.send(request)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _no_demo(self.issuer, error) from None
        return response


@asynccontextmanager
async def developer_api(
    url: str, *, seconds: float = SECONDS, tls: ssl.SSLContext | None = None
) -> AsyncIterator[DeveloperApi]:
    """The API of a demo at this address.

    It is an issuer, or the address of its developer mode. It may contain the key of its start. `seconds` is the timeout
    of a request; with `tls` None the usual certificate authorities are trusted. Raises NotDone. Source: D66
    """
    address = Address.parse(url)
    async with httpx.AsyncClient(headers=address.headers, timeout=seconds, verify=tls or True, trust_env=False) as http:
        yield DeveloperApi(http, address.issuer)


def _no_demo(url: str, error: Exception) -> NotDone:
    return NotDone(
        f"no demo answers at {url} ({str(error) or type(error).__name__}): start `corpid demo` in another terminal, or "
        "give the address that it prints, and with https its authority with --ca"
    )


def _members(response: httpx.Response) -> dict[str, Any] | None:
    try:
        found = response.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
