"""The API of a running demo's developer mode, for commands (D66)."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import httpx

from corpid.sandbox.demo import FIRST_PORT, PROVIDER_HOST
from corpid.web.developer.mode import DEVELOPER_PATH, KEY, ORDERS_PATH, key_cookie

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT_URL: Final = f"http://{PROVIDER_HOST}:{FIRST_PORT}{DEVELOPER_PATH}"
SECONDS: Final = 10.0


class NotDone(Exception):
    """The demo did not do it; the message gives the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An issuer in developer mode, and the key of its start."""

    issuer: str
    key: str = ""

    @classmethod
    def of(cls, url: str) -> Self:
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
    """A TLS context with one more certification authority.

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
    """Developer mode at one address.

    The address may contain the key of its start. `authority` is trusted, too. Raises NotDone. Source: D66
    """

    def __init__(self, url: str, authority: Path | None = None) -> None:
        self._address: Final = Address.of(url)
        self._verify: Final = trusting(authority) or True

    def place(self, order: Mapping[str, object]) -> dict[str, Any]:
        """Place an order of the sandbox. Raises NotDone."""
        return self._asked("POST", "", json=order)

    def listed(self, client_id: str | None) -> list[dict[str, Any]]:
        """The orders in force. Raises NotDone."""
        found: list[dict[str, Any]] = self._asked("GET", "", client_id=client_id)["orders"]
        return found

    def withdraw(self, order_id: str = "", client_id: str | None = None) -> int:
        """End one order, or all of them. Raises NotDone."""
        path = f"/{order_id}" if order_id else ""
        return int(self._asked("DELETE", path, client_id=client_id)["withdrawn"])

    def _asked(self, method: str, path: str, *, json: object = None, client_id: str | None = None) -> dict[str, Any]:
        try:
            url = httpx.URL(f"{self._address.issuer}{ORDERS_PATH}{path}")
            if client_id is not None:
                url = url.copy_add_param("client_id", client_id)
            body: dict[str, Any] = {} if json is None else {"json": json}
            answer = httpx.request(
                method,
                url,
                headers=self._address.headers,
                timeout=SECONDS,
                verify=self._verify,
                trust_env=False,
                **body,
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotDone(
                f"no demo answers at {self._address.issuer}{DEVELOPER_PATH} ({error}): start `corpid demo`, or name its address"
            ) from None
        if answer.status_code == httpx.codes.NOT_FOUND:
            what = f"there is no order {path[1:]}" if path else "what answers there is no demo"
            raise NotDone(f"{what}: {url.copy_with(query=None)}")
        members = _members(answer)
        if answer.is_error or members is None:
            description = str((members or {}).get("error_description", f"status {answer.status_code}"))
            raise NotDone(description.partition(" (reference ")[0].removeprefix("orders: "))
        return members


def _members(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        found = answer.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
