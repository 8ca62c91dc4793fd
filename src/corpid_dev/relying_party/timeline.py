"""Requests and responses in order, as the relying party saw them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from corpid_dev.relying_party import jwt

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its answer, secrets and all."""

    title: str
    method: str
    url: str
    request_headers: tuple[tuple[str, str], ...]
    form: tuple[tuple[str, str], ...]
    status: int
    response_headers: tuple[tuple[str, str], ...]
    body: str
    milliseconds: float

    def tokens(self) -> list[tuple[str, dict[str, Any], dict[str, Any] | None]]:
        """Every JWT in it: place, header, payload; unverified, for display.

        The payload is None if it is encrypted.
        """
        places = [
            (name, value.split()[-1]) for name, value in self.request_headers if name in ("dpop", "authorization")
        ]
        places += self.form
        places += [(f"answer: {name}", value) for name, value in _members(self.body)]
        return [(place, *seen) for place, value in places if (seen := _peeked(value)) is not None]


@dataclass(slots=True)
class Timeline:
    """A sender of requests that records every exchange."""

    exchanges: list[Exchange] = field(default_factory=list)

    async def send(self, title: str, http: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        """Send and record; returns the response with its body read.

        Redirects are never followed.
        """
        started = time.perf_counter()
        response = await http.send(request, follow_redirects=False)
        milliseconds = (time.perf_counter() - started) * 1000
        self.exchanges.append(
            Exchange(
                title=title,
                method=request.method,
                url=str(request.url),
                request_headers=_headers(request.headers),
                form=_form(request),
                status=response.status_code,
                response_headers=_headers(response.headers),
                body=response.text,
                milliseconds=milliseconds,
            )
        )
        return response


def _headers(headers: httpx.Headers) -> tuple[tuple[str, str], ...]:
    return tuple((name.lower(), value) for name, value in headers.multi_items())


def _form(request: httpx.Request) -> tuple[tuple[str, str], ...]:
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return ()
    return tuple(parse_qsl(request.content.decode("utf-8", "replace"), keep_blank_values=True))


def _members(body: str) -> list[tuple[str, str]]:
    if not body.startswith("{"):
        return [("body", body)]
    try:
        document = json.loads(body)
    except ValueError:
        return []
    return [(name, value) for name, value in document.items() if isinstance(value, str)]


def _peeked(value: str) -> tuple[dict[str, Any], dict[str, Any] | None] | None:
    if value.count(".") not in (2, 4):
        return None
    try:
        return jwt.peek(value)
    except ValueError:
        return None
