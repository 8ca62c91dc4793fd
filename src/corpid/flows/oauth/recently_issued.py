"""Recent codes and pushed requests of this process, to explain later refusals.

The store finds a code only for its client and verifier (D18), and a pushed request only for its client, so a miss does
not say why. Nothing is decided here: what another process issued is refused in the same way, under a broader reason.
Source: D18, D28
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.rules.oauth.token_request import IssuedCode

if TYPE_CHECKING:
    from corpid.rules.oauth.authorization_request import AuthorizationRequest

KEPT: Final = 4096
"""of each kind: the codes of a minute at 68 sign-ins a second"""


class RecentlyIssued:
    """Hashes of recent codes and references, with their clients.

    They are lost if the process dies.
    """

    def __init__(self) -> None:
        self._codes: OrderedDict[bytes, IssuedCode] = OrderedDict()
        self._clients: OrderedDict[bytes, str] = OrderedDict()
        """of pushed requests"""

    def note_code(self, code: str, request: AuthorizationRequest, now: float) -> None:
        """Note a code that was written."""
        if len(self._codes) >= KEPT:
            self._codes.popitem(last=False)
        self._codes[_key(code)] = IssuedCode(request.client_id, request.code_challenge, now)

    def note_redeemed(self, code: str) -> None:
        """Note that a code was taken."""
        if (issued := self._codes.get(_key(code))) is not None:
            issued.redeemed = True

    def issued_code(self, code: str) -> IssuedCode | None:
        """The record of a code; None if another process issued it."""
        return self._codes.get(_key(code))

    def note_request(self, reference: str, client_id: str) -> None:
        """Note a request that was pushed."""
        if len(self._clients) >= KEPT:
            self._clients.popitem(last=False)
        self._clients[_key(reference)] = client_id

    def client_of_request(self, reference: str) -> str | None:
        """The client that pushed a request, if known."""
        return self._clients.get(_key(reference))


def _key(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
