"""What makes a provider dishonest once: changes of what goes over the wire."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from joserfc import jwe
from joserfc.jwk import ECKey

from corpid.jose.encoding import base64url

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def pushed_with(name: str, value: str) -> Callable[[bytes], bytes]:
    """The pushed request says something else than the client sent; the client assertion does not cover it."""

    def change(body: bytes) -> bytes:
        pairs = dict(parse_qsl(body.decode(), strict_parsing=True))
        assert name in pairs
        return urlencode({**pairs, name: value}).encode()

    return change


def member(name: str, change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    """One member of a JSON answer is another."""

    def changed(body: bytes) -> bytes:
        document = json.loads(body)
        return json.dumps({**document, name: change(document[name])}).encode()

    return changed


def other_key(published: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The provider's key identifiers, with keys that signed nothing."""
    return [{**key, **ECKey.generate_key("P-256").as_dict(private=False), "kid": key["kid"]} for key in published]


def other_token(token: str) -> str:
    """An access token whose signature has another first character."""
    start, signature = token.rsplit(".", 1)
    return f"{start}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"


def forged_payload(body: bytes) -> bytes:
    """A signed JWT that claims something else than was signed."""
    header, payload, signature = body.decode().split(".")
    claims = {**json.loads(urlsafe_b64decode(payload + "==")), "auth_info": {}, "entity_info": {}, "AuthInfo": {}}
    return f"{header}.{base64url(json.dumps(claims).encode())}.{signature}".encode()


def decrypted(id_token: str, keys: Path) -> str:
    """The signed ID token inside the encrypted one."""
    key = ECKey.import_key(json.loads(keys.read_text())["encryption"])
    algorithms = ["ECDH-ES+A256KW", "A256CBC-HS512"]
    plaintext = jwe.decrypt_compact(id_token, key, algorithms=algorithms).plaintext
    assert plaintext is not None
    return plaintext.decode()
