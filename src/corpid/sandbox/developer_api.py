"""The API of a running demo's developer mode, for commands on this machine (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx

from corpid.sandbox.demo import FIRST_PORT, PROVIDER_HOST
from corpid.web.developer.mode import DEVELOPER_PATH, ORDERS_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_URL: Final = f"http://{PROVIDER_HOST}:{FIRST_PORT}{DEVELOPER_PATH}"
SECONDS: Final = 10.0


class NotDone(Exception):
    """The demo did not do it; the message gives the remedy."""


class DeveloperApi:
    """Developer mode at one address, which may contain the key of its start."""

    def __init__(self, url: str) -> None:
        self._url: Final = url

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
            url = httpx.URL(self._url)
            base = url.path.rstrip("/").removesuffix(DEVELOPER_PATH)
            url = url.copy_with(path=f"{base}{ORDERS_PATH}{path}")
            if client_id is not None:
                url = url.copy_add_param("client_id", client_id)
            body: dict[str, Any] = {} if json is None else {"json": json}
            answer = httpx.request(method, url, timeout=SECONDS, trust_env=False, **body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotDone(
                f"no demo answers at {self._url} ({error}): start `corpid demo`, or name its address"
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
