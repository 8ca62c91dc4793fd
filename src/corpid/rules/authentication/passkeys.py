"""Passkeys: where they work, options for the browser, and its answers.

`passkey_verification` verifies answers; its library takes long to load. The authenticator always verifies the user, so
a passkey counts as two factors. Source: WebAuthn Level 3, D46
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from corpid.jose.encoding import MalformedToken, base64url, from_base64url, json_object

MILLISECONDS: Final = 300_000
"""the time that a browser gives a person to find their passkey"""
ANSWER_BYTES: Final = 16_384
CREDENTIAL_ID_BYTES: Final = 1023
"""WebAuthn §5.8.3"""
MALFORMED: Final = (
    MalformedToken, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""what reading an answer raises that is not as WebAuthn says"""


class RelyingParty(msgspec.Struct, frozen=True, kw_only=True):
    """The relying party of passkeys: the provider's own pages."""

    rp_id: str
    origin: str
    name: str


class PasskeyRefused(Exception):
    """The error for a browser's answer that proves nothing.

    The text is for the log, never for the page.
    """


class CounterWentBack(PasskeyRefused):
    """A valid signature whose counter is not above the last one (D46).

    The key may have been copied.
    """


class NewPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verified registration."""

    credential_id: str
    """base64url"""
    public_key: str
    """COSE, base64url"""
    sign_count: int
    aaguid: str
    synced: bool
    """true if it can be on several devices of its owner"""
    transports: tuple[str, ...]


class UsedPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verified sign-in."""

    sign_count: int


def passkeys_work_at(base_url: str, rp_id: str = "") -> bool:
    """Return whether passkeys of `rp_id` work at an issuer.

    They do if the issuer's host is that domain or a subdomain of it, and no IP address. Without an rp_id the passkeys
    belong to the issuer's own host. Source: WebAuthn §5.1.2, §5.1.3, D34, D46, D62
    """
    host = urlsplit(base_url).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return not rp_id or host == rp_id or host.endswith(f".{rp_id}")
    return False


@lru_cache(maxsize=64)
def relying_party(base_url: str, name: str, rp_id: str = "") -> RelyingParty:
    """Return the origin and rpId of an issuer.

    Without an rp_id, the host of its base_url is used. Source: WebAuthn §5.1.2, D46, D62
    """
    parts = urlsplit(base_url)
    return RelyingParty(rp_id=rp_id or parts.hostname or "", origin=f"{parts.scheme}://{parts.netloc}", name=name)


def authentication_options(
    party: RelyingParty, *, challenge: bytes, allowed: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return the JSON for `navigator.credentials.get`.

    Without `allowed`, any passkey of this provider will do and no person is named. `allowed` are the credential ids of
    one person, who is already known, each with its transports. Source: WebAuthn §5.5, §14.6.3, D46
    """
    if not allowed:
        before, after = _options_of_anybody(party.rp_id)
        return f"{before}{base64url(challenge)}{after}"
    return _authentication_options(
        party.rp_id,
        challenge,
        [
            {"id": each, "type": "public-key", **({"transports": list(transports)} if transports else {})}
            for each, transports in allowed.items()
        ],
    )


@lru_cache(maxsize=64)
def _options_of_anybody(rp_id: str) -> tuple[str, str]:
    """The options that name nobody, before and after their challenge."""
    mark = b"challenge"
    before, _, after = _authentication_options(rp_id, mark, []).partition(base64url(mark))
    return before, after


def _authentication_options(rp_id: str, challenge: bytes, allowed: list[dict[str, Any]]) -> str:
    options = {
        "challenge": base64url(challenge),
        "timeout": MILLISECONDS,
        "rpId": rp_id,
        "allowCredentials": allowed,
        "userVerification": "required",
    }
    return json.dumps(options)


def parse_answer(answer: str) -> dict[str, Any]:
    """Parse the JSON of a browser's answer. Raises PasskeyRefused.

    Source: WebAuthn §5.1, D46
    """
    if len(answer) > ANSWER_BYTES:
        raise PasskeyRefused("the answer is too long")
    try:
        return json_object(answer)
    except MalformedToken as error:
        raise PasskeyRefused("the answer is no JSON object") from error


def credential_id(answer: dict[str, Any]) -> str:
    """Return the credential id that an answer claims. Raises PasskeyRefused.

    Source: WebAuthn §7.2, D46
    """
    try:
        named = answer["id"]
        length = len(from_base64url(named))
    except MALFORMED as error:
        raise PasskeyRefused("the answer names no credential") from error
    if not 0 < length <= CREDENTIAL_ID_BYTES:
        raise PasskeyRefused("the answer names no credential")
    return str(named)


def challenge_of(answer: dict[str, Any]) -> bytes:
    """Return the challenge that an answer claims. Raises PasskeyRefused.

    Source: WebAuthn §5.8.1, D46
    """
    try:
        return from_base64url(_said_by_browser(answer)["challenge"])
    except MALFORMED as error:
        raise PasskeyRefused("the answer has no challenge") from error


def _said_by_browser(answer: dict[str, Any]) -> dict[str, Any]:
    return json_object(from_base64url(answer["response"]["clientDataJSON"]))


def refuse_embedded(answer: dict[str, Any]) -> None:
    """Refuse an answer that was made inside a page of another origin.

    The provider's pages are never embedded in another page, so a person who answers from there was led there. Raises
    PasskeyRefused. Source: WebAuthn §5.8.1, D46
    """
    if _said_by_browser(answer).get("crossOrigin"):
        raise PasskeyRefused("the answer was made inside a page of another origin")
