"""The sandbox: what obeys the orders at the protocol's endpoints (D66).

It changes requests and answers from outside. Of a response to the relying party the provider asks (`change_response`).
"""

from __future__ import annotations

import html
import re
import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.jose.key_ring import ACCESS_TOKEN, KeyRing
from corpid.rules.oauth.errors import InsufficientScope, OAuthError, TemporarilyUnavailable, UseDPoPNonce
from corpid.rules.oauth.refusals import Reason
from corpid_dev.flows.exchanges import Answer, Exchange, Pairs, decode_part
from corpid_dev.flows.orders import Orders, RequestOrigin, SandboxKeys
from corpid_dev.rules import wrong_claims
from corpid_dev.rules.orders import (
    BOUND,
    ERROR_CLASSES,
    ERRORS,
    LATE_SECONDS,
    REQUESTED_WITHOUT_CLIENT,
    RESOURCES,
    Order,
)
from corpid_dev.web.paths import SIGN_INS_PATH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


_DESCRIPTION: Final = "an order of the sandbox asks for this error"
_ENCRYPTION_FAULTS: Final = ("other-encryption-key", "not-encrypted")
_SIGNATURE_FAULTS: Final = {
    "alg-none": wrong_claims.unsigned_token,
    "alg-hs256": wrong_claims.by_published_key,
}
_OK: Final = 200
_KEPT: Final = 1000
_MARKED_PAGE: Final = re.compile(rb"<main\b[^>]*>")


class SandboxFaultInjector:
    """A FaultInjector: it changes answers as the orders in force say."""

    def __init__(self, orders: Orders, keys: SandboxKeys, *, sleep: Callable[[float], Awaitable[object]]) -> None:
        self._orders: Final = orders
        self._keys: Final = keys
        self._sleep: Final = sleep
        self._nonce: Final = secrets.token_urlsafe(16)
        self._refused: Final[dict[str, Order]] = {}
        """request id → the order by which it was refused, until it is answered"""

    async def intercept_request(self, exchange: Exchange) -> Answer | None:
        """Hold a request back, or answer it if it names no client."""
        endpoint = _endpoint(exchange)
        delayed = self._take("latency", exchange, lambda order: order.text("endpoint") == endpoint)
        if delayed is not None:
            await self._sleep(delayed.number("seconds"))
        if endpoint in REQUESTED_WITHOUT_CLIENT:
            order = self._take("error", exchange, lambda order: order.text("endpoint") == endpoint)
            return None if order is None else _error_answer(order, exchange.request_id)
        return None

    def refusing(self, exchange: Exchange) -> None:
        """Raise the ordered error, before the provider looks at the request."""
        endpoint = _endpoint(exchange)
        if endpoint not in ERRORS:
            return
        if endpoint not in RESOURCES and self._take("maintenance", exchange) is not None:
            raise TemporarilyUnavailable(
                Reason.SANDBOX_ORDER, "the provider is under maintenance: try again later", retry_after=60
            )
        order = self._take("error", exchange, lambda order: order.text("endpoint") == endpoint)
        if order is not None:
            if len(self._refused) >= _KEPT:
                self._refused.clear()
            self._refused[exchange.request_id] = order
            raise _error(order)
        proof = exchange.header("dpop")
        if endpoint in BOUND and proof and decode_part(proof, 1).get("nonce") != self._nonce:
            demanded = self._take("dpop-nonce", exchange, lambda order: order.text("endpoint") == endpoint)
            if demanded is not None:
                raise UseDPoPNonce(
                    Reason.SANDBOX_ORDER,
                    "the DPoP proof must carry the nonce of the DPoP-Nonce header",
                    nonce=self._nonce,
                )

    def signing(self, exchange: Exchange, ring: KeyRing, payload: bytes, typ: str) -> str | None:
        """A token in place of the ring's, or None."""
        claims: dict[str, Any] = msgspec.json.decode(payload)
        token = "access_token" if typ == ACCESS_TOKEN else "id_token" if exchange.endpoint == "token" else "userinfo"
        client_id = str(claims.get("client_id") or claims.get("aud"))
        now = int(claims["iat"])

        def fits(order: Order) -> bool:
            fault = order.text("fault")
            return order.text("token") == token and (
                fault == "signature"
                or fault in _SIGNATURE_FAULTS
                or wrong_claims.claims(order, claims, now=now) is not None
            )

        wrong = self._take("token", exchange, fits, client_id=client_id)
        by = None
        if typ == "JWT":
            by = self._take("signing-key", exchange, lambda order: order.text("token") == token, client_id=client_id)
        if wrong is None and by is None:
            return None
        key = ring.active if by is None else self._keys.key(by.text("which"))
        fault = "" if wrong is None else wrong.text("fault")
        if wrong is not None and fault not in ("signature", *_SIGNATURE_FAULTS):
            payload = msgspec.json.encode(wrong_claims.claims(wrong, claims, now=now))
        if fault in _SIGNATURE_FAULTS:
            return _SIGNATURE_FAULTS[fault](key, payload, typ)
        signed = wrong_claims.sign_token(key, payload, typ)
        return wrong_claims.with_bad_signature(signed) if fault == "signature" else signed

    async def alter_answer(self, exchange: Exchange) -> None:
        """Change an answer before it is sent."""
        refused = self._refused.pop(exchange.request_id, None)
        if refused is not None:
            _overrule(exchange, refused)
        elif exchange.status == _OK and exchange.endpoint == "token":
            self._change_tokens(exchange)
        elif exchange.status == _OK and exchange.endpoint in RESOURCES:
            self._change_resource(exchange)
        if exchange.orders and _header(exchange, "content-type").startswith("text/html"):
            _mark_page(exchange)

    # what is changed

    def _change_tokens(self, exchange: Exchange) -> None:
        members = msgspec.json.decode(exchange.response_body)
        id_token = members["id_token"]
        typed = self._take("token-type", exchange)
        if typed is not None:
            members["token_type"] = typed.text("value")
        if wrong_claims.is_encrypted(id_token):
            members["id_token"] = self._otherwise_encrypted(exchange, "id_token", id_token) or id_token
        if typed is not None or members["id_token"] != id_token:
            exchange.response_body = msgspec.json.encode(members)

    def _change_resource(self, exchange: Exchange) -> None:
        body = exchange.response_body
        if body.startswith(b"{"):
            claims: dict[str, Any] = msgspec.json.decode(body)
            now = int(claims.get("iat", 0))
            order = self._take(
                "token",
                exchange,
                lambda order: (
                    order.text("token") == "userinfo" and wrong_claims.claims(order, claims, now=now) is not None
                ),
            )
            if order is not None:
                exchange.response_body = msgspec.json.encode(wrong_claims.claims(order, claims, now=now))
        elif wrong_claims.is_encrypted(body.decode("ascii")):
            changed = self._otherwise_encrypted(exchange, "userinfo", body.decode("ascii"))
            exchange.response_body = body if changed is None else changed.encode("ascii")

    def _otherwise_encrypted(self, exchange: Exchange, token: str, encrypted: str) -> str | None:
        """The same JWS, encrypted to another key or not at all."""
        order = self._take(
            "token",
            exchange,
            lambda order: order.text("token") == token and order.text("fault") in _ENCRYPTION_FAULTS,
        )
        nested = next((each.token for each in reversed(exchange.signed) if each.typ == "JWT"), None)
        if order is None or nested is None:
            return None
        return (
            nested if order.text("fault") == "not-encrypted" else wrong_claims.encrypted_to_another(encrypted, nested)
        )

    async def change_callback(self, exchange: Exchange) -> Pairs:
        """The parameters for the redirect URI, as an order says."""
        given = exchange.callback
        order = self._take("callback", exchange, lambda order: wrong_claims.callback(order, given) is not None)
        if order is None:
            return given
        if order.text("fault") == "late":
            await self._sleep(order.number("seconds", LATE_SECONDS))
        return wrong_claims.callback(order, given) or given

    def _take(
        self, name: str, exchange: Exchange, fits: Callable[[Order], bool] = lambda _: True, *, client_id: str = ""
    ) -> Order | None:
        """Use an order once, and mark the exchange with it."""
        sign_in = exchange.sign_in
        asked = RequestOrigin(
            issuer_id=exchange.issuer_id,
            client_id=client_id or exchange.client_id or (sign_in.client_id if sign_in else ""),
            sign_in=() if sign_in is None else tuple(filter(None, (sign_in.request_uri, sign_in.state))),
        )
        order = self._orders.take(name, asked, fits)
        if order is not None:
            exchange.orders.append(name)
        return order


def _endpoint(exchange: Exchange) -> str:
    """The endpoint as orders name it."""
    if exchange.endpoint == "metadata":
        return "discovery"
    if exchange.endpoint == "callback" and exchange.path.endswith(SIGN_INS_PATH):
        return "authorize"
    return exchange.endpoint


def _error(order: Order) -> OAuthError:
    kind, description = ERROR_CLASSES[order.text("error")], order.text("description") or _DESCRIPTION
    if kind is InsufficientScope:
        return InsufficientScope(Reason.SANDBOX_ORDER, description, scope="openid")
    return kind(Reason.SANDBOX_ORDER, description)


def _error_answer(order: Order, reference: str) -> Answer:
    """An error at an endpoint whose requests name no client."""
    error, endpoint = order.text("error"), order.text("endpoint")
    status = int(order.number("status", ERRORS[endpoint][error]))
    text = f"{order.text('description') or _DESCRIPTION} (reference {reference})"
    headers = [("content-type", "application/json"), ("cache-control", "no-store")]
    seconds = order.members.get("retry_after", 5 if error == TemporarilyUnavailable.code else None)
    if seconds is not None:
        headers.append(("retry-after", str(seconds)))
    body = msgspec.json.encode({"error": error, "error_description": text})
    return Answer(status=status, headers=(*headers, ("content-length", str(len(body)))), body=body)


def _overrule(exchange: Exchange, order: Order) -> None:
    """Give a refusal the status and Retry-After of its order."""
    if "status" in order.members:
        exchange.status = int(order.number("status"))
    if "retry_after" in order.members:
        _set_header(exchange, "retry-after", order.text("retry_after"))


def _header(exchange: Exchange, name: str) -> str:
    return next((value for each, value in exchange.response_headers if each == name), "")


def _set_header(exchange: Exchange, name: str, value: str) -> None:
    exchange.response_headers = [pair for pair in exchange.response_headers if pair[0] != name]
    exchange.response_headers.append((name, value))


def _mark_page(exchange: Exchange) -> None:
    """Name the obeyed orders on a page."""
    names = ", ".join(dict.fromkeys(exchange.orders))
    line = f'<p class="sandbox-mark" lang="en" dir="ltr">Sandbox: this answer was ordered ({html.escape(names)}).</p>'
    exchange.response_body = _MARKED_PAGE.sub(
        lambda found: found.group() + line.encode(), exchange.response_body, count=1
    )
