"""The developer API of a running demo (D66)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx

from corpid.sandbox.readiness.observation import Call
from corpid.sandbox.verification import Callback
from corpid.web.developer.mode import DEVELOPER_PATH, EXCHANGES_PATH, ORDERS_PATH, SIGN_INS_PATH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
TOO_MANY: Final = 429
LONGEST_WAIT_SECONDS: Final = 65.0


class ReadinessError(Exception):
    """The report cannot be made; the message gives the remedy."""


class SignInRefused(Exception):
    """The provider did not complete a sign-in; the message says why."""


class DeveloperApi:
    """The developer API of one issuer."""

    def __init__(self, http: httpx.AsyncClient, issuer: str) -> None:
        self._http: Final = http
        self.issuer: Final = issuer
        self._seen = 0
        """the newest exchange that was read"""

    async def metadata(self) -> dict[str, Any]:
        """The issuer's metadata. Raises ReadinessError."""
        return await self._asked("GET", DISCOVERY_PATH)

    async def new_calls(self, client_id: str) -> tuple[Call, ...]:
        """New calls of this client, and of nobody in particular.

        New since the last time. Without a client_id everything. Raises ReadinessError.
        """
        listed = (await self._asked("GET", f"{EXCHANGES_PATH}?after={self._seen}"))["exchanges"]
        self._seen = max((int(each["id"]) for each in listed), default=self._seen)
        found = (call(each) for each in listed)
        return tuple(each for each, owner in found if not client_id or owner in ("", client_id))

    async def sign_in(self, authorize_url: str, *, user: str, entity: str) -> Callback:
        """Sign a test person in. Raises SignInRefused, ReadinessError."""
        order = {"authorize_url": authorize_url, "user": user, "entity": entity}
        response = await self._request("POST", SIGN_INS_PATH, order)
        answer = _object(response)
        if response.is_success and isinstance(answer.get("callback_url"), str):
            form = answer.get("form")
            return Callback(answer["callback_url"], form.items() if isinstance(form, Mapping) else None)
        raise SignInRefused(f"the provider refused to sign {user} in: {_complaint(response)}")

    @asynccontextmanager
    async def placed(self, orders: Iterable[Mapping[str, Any]]) -> AsyncIterator[None]:
        """Have orders in place; they are withdrawn at the end, whatever happens.

        Raises ReadinessError.
        """
        ids: list[str] = []
        try:
            for each in orders:
                ids.append(str((await self._asked("POST", ORDERS_PATH, each))["id"]))  # noqa: PERF401 - each may fail
            yield
        finally:
            for order_id in ids:
                await self._request("DELETE", f"{ORDERS_PATH}/{order_id}")

    async def orders(self, client_id: str) -> list[str]:
        """Names of the orders in force for a client. Raises ReadinessError."""
        listed = (await self._asked("GET", ORDERS_PATH)).get("orders", [])
        return [str(each["order"]) for each in listed if each.get("client_id") in (None, client_id)]

    async def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        response = await self._request(method, path, body)
        if not response.is_success:
            raise ReadinessError(f"{method} {self.issuer}{path.partition('?')[0]} answered {_complaint(response)}")
        return _object(response)

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        content = None if body is None else dict(body)
        try:
            response = await self._http.request(method, f"{self.issuer}{path}", json=content)
            if response.status_code == TOO_MANY:
                wait = response.headers.get("retry-after", "")
                await asyncio.sleep(min(float(wait) if wait.isdigit() else 1.0, LONGEST_WAIT_SECONDS))
                response = await self._http.request(method, f"{self.issuer}{path}", json=content)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ReadinessError(
                f"{self.issuer}{DEVELOPER_PATH} does not answer ({type(error).__name__}): start `corpid demo`, "
                "or name a running one with --developer"
            ) from error
        return response


def call(exchange: Mapping[str, Any]) -> tuple[Call, str]:
    """A call and its client, from a listed exchange."""
    made = Call(
        exchange_id=str(exchange["id"]),
        endpoint=str(exchange["endpoint"]),
        method=str(exchange["method"]),
        path=str(exchange["path"]),
        status=int(exchange["status"]),
        headers=_texts(exchange.get("headers")),
        parameters=_texts(exchange.get("parameters")),
        error=str(exchange.get("error") or ""),
        orders=tuple(map(str, exchange.get("orders") or ())),
        signed=tuple(each.get("claims") or {} for each in exchange.get("signed") or ()),
    )
    return made, str(exchange.get("client_id") or "")


def _texts(pairs: object) -> dict[str, str]:
    """Names and values, from an object or a list of pairs."""
    found = pairs.items() if isinstance(pairs, Mapping) else pairs if isinstance(pairs, list) else ()
    return {str(name): str(value) for name, value in found}


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _complaint(response: httpx.Response) -> str:
    answer = _object(response)
    told = answer.get("error_description") or answer.get("error") or response.reason_phrase
    return f"{response.status_code}: {told}"
