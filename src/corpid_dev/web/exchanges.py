"""Exchanges of relying parties, for programs: as JSON and as server-sent events (D66)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from corpid.rules.oauth.errors import InvalidRequest, TemporarilyUnavailable
from corpid.rules.oauth.refusals import Reason
from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import NO_STORE
from corpid_dev.flows import inspection
from corpid_dev.flows.exchanges import SUBSCRIBERS, Exchange, Exchanges, TooManySubscribers
from corpid_dev.web.endpoints import refuse_other_sites

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from corpid.web.context import WebContext
    from corpid_dev.flows.inspection import CheckResult, Clock, Difference, Inspection
    from corpid_dev.web.mode import Mode

JSON: Final = "application/json"
_DIGITS: Final = 15
_HEARTBEAT_SECONDS: Final = 1
"""a caller that has closed its connection is noticed when something is written: it may have closed its half only"""
_AGAIN_MILLISECONDS: Final = 1000


def members(exchange: Exchange) -> dict[str, Any]:
    """An exchange as JSON."""
    explanation = exchange.explanation
    return {
        "id": exchange.exchange_id,
        "reference": exchange.request_id,
        "at": exchange.at,
        "seconds": round(exchange.seconds, 6),
        "issuer_id": exchange.issuer_id,
        "issuer": exchange.issuer,
        "endpoint": exchange.endpoint,
        "client_id": exchange.client_id,
        "authenticated": exchange.authenticated,
        "sign_in": exchange.sign_in.sign_in_id if exchange.sign_in else None,
        "request_uri": exchange.request_uri or None,
        "method": exchange.method,
        "path": exchange.path,
        "query": exchange.query,
        "headers": exchange.headers,
        "parameters": exchange.parameters,
        "status": exchange.status,
        "response_headers": exchange.response_headers,
        "response_body": exchange.response_body.decode("utf-8", "replace"),
        "callback": exchange.callback,
        "error": exchange.error or None,
        "reason": exchange.reason or None,
        "detail": exchange.detail or None,
        "explanation": {"cause": explanation.cause, **dict(explanation.values)} if explanation else None,
        "signed": [{"typ": each.typ, "header": each.header, "claims": each.claims} for each in exchange.signed],
        "orders": exchange.orders,
        "clipped": exchange.clipped,
    }


async def listed(request: Request, web: WebContext, mode: Mode) -> Response:  # noqa: ARG001 - every endpoint gets its context
    """The exchanges, oldest first: of one client, and after one of them."""
    client_id = request.query_params.get("client_id")
    found = mode.developer.exchanges.list_exchanges(
        client_id=client_id, after=_after(request.query_params.get("after", ""))
    )
    return _json({"exchanges": [members(each) for each in found]})


async def one(request: Request, web: WebContext, mode: Mode) -> Response:
    """One exchange, by its id."""
    found = mode.developer.exchanges.get(number(request.path_params["rest"]))
    if found is None:
        return await not_found(request, web)
    return _json({**members(found), **_findings(inspection.inspect(found, mode.developer.exchanges))})


def _findings(found: Inspection) -> dict[str, Any]:
    """The inspector's findings as JSON."""
    return {
        "checks": [{"part": part.title, **_plain(each)} for part in found.parts for each in part.checks],
        "clocks": [{**_plain(each), "sentence": each.sentence} for each in found.clocks],
        "command": found.command,
        "command_notes": found.command_notes,
        "last_good": found.last_good,
        "differences": [_plain(each) for each in found.differences],
    }


def _plain(found: CheckResult | Clock | Difference) -> dict[str, Any]:
    return {name: value for name, value in asdict(found).items() if value != ""}


async def events(request: Request, web: WebContext, mode: Mode) -> Response:
    """New exchanges as server-sent events, each with its JSON.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    refuse_other_sites(request, web)  # they could take every place, though they cannot read
    exchanges = mode.developer.exchanges
    sent = request.headers.get("last-event-id") or request.query_params.get("after", "")
    if request.method == "HEAD":
        return Response(b"", 200, NO_STORE, "text/event-stream")
    try:
        return _Events(exchanges, after=_after(sent) if sent else exchanges.last_id)
    except TooManySubscribers:
        raise TemporarilyUnavailable(
            Reason.BUSY, f"{SUBSCRIBERS} callers follow the exchanges already: close one of them"
        ) from None


def number(text: str) -> int:
    """The number of an id, 0 if the text is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0


def _after(text: str) -> int:
    if text and not number(text) and text != "0":
        raise InvalidRequest(Reason.SIMULATION, "after must be the id of an exchange")
    return number(text)


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content), 200, NO_STORE, JSON)


class _Events(Response):
    """Events until the caller leaves or the server stops."""

    def __init__(self, exchanges: Exchanges, *, after: int) -> None:
        self._exchanges: Final = exchanges
        self._after = after
        self._subscription: Final = exchanges.subscribe()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        left = asyncio.create_task(_left(receive))
        try:
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await _write(send, f"retry: {_AGAIN_MILLISECONDS}\n\n")
            while not left.done() and not self._exchanges.closed:
                self._subscription.clear()
                for exchange in self._exchanges.list_exchanges(after=self._after):
                    self._after = exchange.exchange_id
                    await _write(send, _event(exchange))
                await self._wait(send, left)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._exchanges.unsubscribe(self._subscription)
            left.cancel()
            with suppress(asyncio.CancelledError):
                await left

    async def _wait(self, send: Send, left: asyncio.Task[None]) -> None:
        """Wait for the next exchange, with a comment now and then."""
        waiting = asyncio.create_task(self._subscription.wait())
        try:
            done, _ = await asyncio.wait(
                {waiting, left}, timeout=_HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.cancel()
        if not done:
            await _write(send, ":\n\n")


async def _left(receive: Receive) -> None:
    """Return when the caller has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _write(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


def _event(exchange: Exchange) -> str:
    return f"id: {exchange.exchange_id}\nevent: exchange\ndata: {msgspec.json.encode(members(exchange)).decode()}\n\n"
