"""The inspector's pages: sign-ins and requests, one request, one sign-in (D66).

What developers read is in English everywhere.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

import msgspec

from corpid.texts import Phrase, phrase
from corpid.web.pages.components import Frame, Link, PageView, ViewPart
from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import page_response, see_other
from corpid_dev.flows import inspection
from corpid_dev.flows.inspection import Inspection, Line, failing, has_worked
from corpid_dev.web.exchanges import number
from corpid_dev.web.paths import CATALOGUE_PATH, EVENTS_PATH, EXCHANGES_PATH, READINESS_PATH, TRAFFIC_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.web.context import WebContext
    from corpid_dev.flows.exchanges import Exchange, Exchanges
    from corpid_dev.web.mode import Mode

SHOWN: Final = 50
"""rows of the list"""
NAMES: Final[Mapping[str, str]] = {
    "discovery": "Discovery", "metadata": "Metadata", "jwks": "Key set", "par": "PAR", "authorize": "Authorize",
    "callback": "Callback", "token": "Token", "userinfo": "Userinfo", "authorization-info": "Authorization info",
    "entity-info": "Entity info",
}  # fmt: skip
_LONG: Final = 120
_TOKENS: Final = frozenset({2, 4})
"""dots in a JWS or JWE"""


class ExchangeRow(ViewPart, frozen=True, kw_only=True):
    """A request in a list, or a step of a sign-in."""

    exchange: Exchange
    url: str
    name: str
    at: str
    """time of day"""
    later: str
    """how long after the first of its sign-in"""
    good: bool
    error: str
    failing: str
    """name of the check that refused it"""
    orders: str
    current: bool = False

    @property
    def result(self) -> str:
        """The outcome in a word, for those who see no colours."""
        return "worked" if self.good else "refused"


class SignInRow(ViewPart, frozen=True, kw_only=True):
    """A sign-in in the list: its steps so far."""

    url: str
    at: str
    client_id: str
    steps: tuple[ExchangeRow, ...]

    @property
    def refused(self) -> ExchangeRow | None:
        """The last step, if it was refused."""
        return None if self.steps[-1].good else self.steps[-1]


class InspectorPage(PageView, frozen=True, kw_only=True):
    """A page of the inspector; it is wide."""

    heading: ClassVar[Phrase] = phrase("Inspector")
    wide: ClassVar[bool] = True


class TrafficPage(InspectorPage, frozen=True, kw_only=True):
    """The list: sign-ins, or every request; the newest first."""

    template: ClassVar[str] = "developer/traffic.html"

    here: str
    sign_ins_url: str
    requests_url: str
    events: str
    readiness_url: str
    clients: tuple[tuple[str, int], ...]
    """client_id and the number of its requests"""
    client_id: str
    every: bool
    """whether every request is listed, instead of sign-ins"""
    sign_ins: tuple[SignInRow, ...] = ()
    rows: tuple[ExchangeRow, ...] = ()
    more: int = 0
    """how many older ones are not shown"""


class Value(ViewPart, frozen=True, kw_only=True):
    """A parameter or header, with what it is if it is long."""

    name: str
    text: str
    remark: str = ""


class ExchangePage(InspectorPage, frozen=True, kw_only=True):
    """One request, its checks, tokens and answer."""

    template: ClassVar[str] = "developer/exchange.html"

    row: ExchangeRow
    steps: tuple[ExchangeRow, ...]
    """of its sign-in"""
    sign_in_url: str
    found: Inspection
    milliseconds: str
    day: str
    cause: str
    catalogue: str
    """address of the reason in the catalogue, empty without one"""
    good_url: str
    """address of the last request of this kind that worked"""
    json_url: str
    parameters: tuple[Value, ...]
    headers: tuple[Value, ...]
    response_headers: tuple[Value, ...]
    body: tuple[Line, ...]
    callback: tuple[Value, ...]


class SignInPage(InspectorPage, frozen=True, kw_only=True):
    """A sign-in from the pushed request to the last call."""

    template: ClassVar[str] = "developer/sign_in.html"

    client_id: str
    request_uri: str
    day: str
    steps: tuple[tuple[ExchangeRow, Inspection], ...]


class Addresses:
    """Addresses and times of one issuer's pages."""

    def __init__(self, base_path: str) -> None:
        self.base: Final = base_path
        self.list: Final = base_path + TRAFFIC_PATH

    def row(self, exchange: Exchange, first: Exchange, *, current: bool = False) -> ExchangeRow:
        """A request as a row, or as a step of a sign-in."""
        after = exchange.at - first.at
        later = f"{after:.1f} s" if after >= 1 else f"{after * 1000:.0f} ms"
        return ExchangeRow(
            exchange=exchange,
            url=f"{self.list}/{exchange.exchange_id}",
            name=NAMES[exchange.endpoint],
            at=self.time(exchange.at),
            later=f"+{later}" if first is not exchange else "",
            good=has_worked(exchange),
            error=exchange.error or dict(exchange.callback).get("error", ""),
            failing=failing(exchange),
            orders=", ".join(exchange.orders),
            current=current,
        )

    def rows(self, exchanges: Sequence[Exchange], current: Exchange | None = None) -> tuple[ExchangeRow, ...]:
        """The requests of a sign-in as rows."""
        return tuple(self.row(each, exchanges[0], current=each is current) for each in exchanges)

    def sign_in(self, sign_in_id: str) -> str:
        """The address of a sign-in's page."""
        return f"{self.list}/sign-ins/{sign_in_id}"

    def time(self, at: float) -> str:
        """The time of day, as logs have it: UTC."""
        return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"

    def day(self, at: float) -> str:
        """The day and the time of day, UTC."""
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


async def listed(request: Request, web: WebContext, mode: Mode) -> Response:
    """The sign-ins, or every request, perhaps of one client.

    With a reference of an error, the page of its request.
    """
    addresses, exchanges = Addresses(web.base_path), mode.developer.exchanges
    reference = request.query_params.get("reference", "")
    if reference:
        known = next((each for each in exchanges.list_exchanges() if each.request_id == reference), None)
        return await not_found(request, web) if known is None else see_other(f"{addresses.list}/{known.exchange_id}")
    client_id, every = request.query_params.get("client_id", ""), request.query_params.get("view") == "requests"
    found = exchanges.list_exchanges(client_id=client_id or None)
    counted: dict[str, int] = {}
    for each in exchanges.list_exchanges():
        counted[each.client_id] = counted.get(each.client_id, 0) + 1
    sign_ins = _sign_ins(found, addresses)
    rows = tuple(addresses.row(each, each) for each in reversed(found))
    of_client = {"client_id": client_id} if client_id else {}
    view = TrafficPage(
        frame=Frame(up=mode.up),
        here=addresses.list,
        sign_ins_url=_with(addresses.list, of_client),
        requests_url=_with(addresses.list, {"view": "requests", **of_client}),
        events=web.base_path + EVENTS_PATH,
        readiness_url=web.base_path + READINESS_PATH,
        clients=tuple(sorted((name, count) for name, count in counted.items() if name)),
        client_id=client_id,
        every=every,
        sign_ins=() if every else sign_ins[:SHOWN],
        rows=rows[:SHOWN] if every else (),
        more=max(0, len(rows if every else sign_ins) - SHOWN),
    )
    return page_response(request, web.renderer, view)


def _with(address: str, query: Mapping[str, str]) -> str:
    return f"{address}?{urlencode(query)}" if query else address


def _sign_ins(found: Iterable[Exchange], addresses: Addresses) -> tuple[SignInRow, ...]:
    """The sign-ins, the one with the newest request first."""
    grouped: dict[str, list[Exchange]] = {}
    for each in found:
        if each.sign_in is not None:
            grouped.setdefault(each.sign_in.sign_in_id, []).append(each)
    newest = sorted(grouped.items(), key=lambda item: -item[1][-1].exchange_id)
    return tuple(
        SignInRow(
            url=addresses.sign_in(sign_in_id),
            at=addresses.time(steps[0].at),
            client_id=next((each.client_id for each in steps if each.client_id), ""),
            steps=addresses.rows(steps),
        )
        for sign_in_id, steps in newest
    )


async def one(request: Request, web: WebContext, mode: Mode) -> Response:
    """One request with its checks, tokens and answer."""
    exchanges = mode.developer.exchanges
    exchange = exchanges.get(number(request.path_params["rest"]))
    if exchange is None:
        return await not_found(request, web)
    return page_response(request, web.renderer, exchange_page(exchange, exchanges, Addresses(web.base_path)))


def exchange_page(exchange: Exchange, exchanges: Exchanges, addresses: Addresses) -> ExchangePage:
    """The view of one request."""
    found = inspection.inspect(exchange, exchanges)
    steps = exchanges.of_sign_in(exchange.sign_in.sign_in_id) if exchange.sign_in else [exchange]
    catalogue = f"{addresses.base}{CATALOGUE_PATH}#{exchange.reason}" if found.reason else ""
    return ExchangePage(
        frame=Frame(up=Link(url=addresses.list, text=phrase("Inspector"))),
        row=addresses.row(exchange, exchange),
        steps=addresses.rows(steps, exchange) if len(steps) > 1 else (),
        sign_in_url=addresses.sign_in(exchange.sign_in.sign_in_id) if exchange.sign_in else "",
        found=found,
        milliseconds=f"{exchange.seconds * 1000:.1f} ms",
        day=addresses.day(exchange.at),
        cause=_cause(exchange),
        catalogue=catalogue,
        good_url=f"{addresses.list}/{found.last_good}" if found.last_good else "",
        json_url=f"{addresses.base}{EXCHANGES_PATH}/{exchange.exchange_id}",
        parameters=_values(exchange.parameters),
        headers=_values(exchange.headers),
        response_headers=_values(exchange.response_headers),
        body=_body(exchange),
        callback=_values(exchange.callback),
    )


def _cause(exchange: Exchange) -> str:
    """The cause without the values, which stand below it."""
    found = exchange.explanation
    if found is None:
        return exchange.detail
    return found.cause or exchange.detail.removesuffix(found.text(""))


def _values(pairs: Iterable[tuple[str, str]]) -> tuple[Value, ...]:
    return tuple(_value(name, value) for name, value in pairs)


def _value(name: str, value: str) -> Value:
    """A value; a token, which the page decodes, is cut."""
    if len(value) > _LONG and value.count(".") in _TOKENS and " " not in value.removeprefix("DPoP "):
        kind = "JWT" if value.count(".") == min(_TOKENS) else "encrypted JWT"
        return Value(name=name, text=f"{value[:24]}...", remark=f"{kind}, {len(value)} characters")
    return Value(name=name, text=value)


def _body(exchange: Exchange) -> tuple[Line, ...]:
    """The answer's body, JSON in lines, with its tokens cut."""
    text = exchange.response_body.decode("utf-8", "replace")
    if text.startswith("{"):
        try:
            members = msgspec.json.decode(text)
        except msgspec.DecodeError:
            members = None
        if isinstance(members, dict):
            shown = {name: _short(name, value) for name, value in members.items()}
            return inspection.lines(shown, exchange.at)
    value = _value("", text)
    return (inspection.Line(text=value.text, note=value.remark),) if text else ()


def _short(name: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    cut = _value(name, value)
    return f"{cut.text} ({cut.remark})" if cut.remark else cut.text


async def sign_in(request: Request, web: WebContext, mode: Mode) -> Response:
    """A sign-in: its requests in order, each with its checks."""
    exchanges, addresses = mode.developer.exchanges, Addresses(web.base_path)
    steps = exchanges.of_sign_in(request.path_params["rest"])
    if not steps:
        return await not_found(request, web)
    view = SignInPage(
        frame=Frame(up=Link(url=addresses.list, text=phrase("Inspector"))),
        client_id=next((each.client_id for each in steps if each.client_id), ""),
        request_uri=steps[0].request_uri,
        day=addresses.day(steps[0].at),
        steps=tuple(
            (row, inspection.inspect(each, exchanges)) for row, each in zip(addresses.rows(steps), steps, strict=True)
        ),
    )
    return page_response(request, web.renderer, view)
