"""Answers to probes of `corpid doctor` (D47, D49)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules import probes
from corpid.rules.failures import SecretUnreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope, Send

    from corpid.rules.probes import Probe
    from corpid.web.http.addresses import ClientAddresses

HEADER: Final = probes.HEADER.lower().encode()
_RETURNED: Final = tuple((name.lower().encode(), value.encode()) for name, value in probes.RETURNED)


class Probes:
    """Answers requests that carry a valid token."""

    def __init__(self, open_token: Callable[[str], str], *, clock: Callable[[], float]) -> None:
        """`open_token` returns what a token seals. Raises SecretUnreadable."""
        self._open = open_token
        self._clock = clock

    async def answer(self, scope: Scope, send: Send, addresses: ClientAddresses) -> bool:
        """Answer a probe; False, and nothing sent, for any other request."""
        probe = self._probe(scope)
        if probe is None:
            return False
        scope["state"]["log"]["detail"] = "a probe of corpid doctor"
        if probe.wait:
            await asyncio.sleep(probe.wait)
        body = msgspec.json.encode(_received(probe, scope, addresses))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            *_RETURNED,
        ]
        if probe.padding:
            headers.append((probes.PADDING.lower().encode(), b"x" * probe.padding))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return True

    def _probe(self, scope: Scope) -> Probe | None:
        tokens = scope["state"]["headers"][HEADER]
        if scope["method"] != "GET" or len(tokens) != 1 or len(tokens[0]) > probes.TOKEN_CHARACTERS:
            return None
        try:
            opened = self._open(tokens[0].decode("latin-1"))
        except SecretUnreadable:
            return None
        return probes.read(opened, self._clock())


def _received(probe: Probe, scope: Scope, addresses: ClientAddresses) -> probes.RequestReport:
    fields: dict[bytes, list[bytes]] = scope["state"]["headers"]
    peer = scope["client"][0] if scope.get("client") else ""
    return probes.RequestReport(
        probe=probe.id,
        path=(scope.get("raw_path") or scope["path"].encode()).decode("latin-1"),
        query_bytes=len(scope["query_string"]),
        http_version=scope["http_version"],
        peer=peer,
        is_trusted=addresses.trusts(peer),
        address=scope["state"]["client_address"],
        headers={
            name: [value.decode("latin-1") for value in fields[name.encode()]]
            for name in probes.REPORTED
            if name.encode() in fields
        },
    )
