"""A passkey in software, and the browser around it: what they answer is real (WebAuthn Level 3)."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from corpid.jose.encoding import base64url, from_base64url
from corpid.rules.authentication.records import Passkey

PRESENT: Final = 0x01
VERIFIED: Final = 0x04
MAY_SYNC: Final = 0x08
SYNCED: Final = 0x10
ATTESTED: Final = 0x40
NO_MAKE: Final = bytes(16)


class _Es256:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())

    def public(self) -> dict[int, Any]:
        point = self._key.public_key().public_numbers()
        return {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)}

    def sign(self, what: bytes) -> bytes:
        return self._key.sign(what, ec.ECDSA(hashes.SHA256()))

    def private(self) -> bytes:
        form = (Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        return self._key.private_bytes(*form)


class _Ed25519:
    def __init__(self) -> None:
        self._key = ed25519.Ed25519PrivateKey.generate()

    def public(self) -> dict[int, Any]:
        return {1: 1, 3: -8, -1: 6, -2: self._key.public_key().public_bytes_raw()}

    def sign(self, what: bytes) -> bytes:
        return self._key.sign(what)


class _Rs256:
    def __init__(self) -> None:
        self._key = rsa.generate_private_key(65537, 2048)

    def public(self) -> dict[int, Any]:
        numbers = self._key.public_key().public_numbers()
        return {1: 3, 3: -257, -1: numbers.n.to_bytes(256), -2: numbers.e.to_bytes(3)}

    def sign(self, what: bytes) -> bytes:
        return self._key.sign(what, padding.PKCS1v15(), hashes.SHA256())


KEYS: Final[dict[str, type[_Es256 | _Ed25519 | _Rs256]]] = {"ES256": _Es256, "EdDSA": _Ed25519, "RS256": _Rs256}


@dataclass(kw_only=True)
class Authenticator:
    """One passkey. `count` is raised by each use, unless it is None: many authenticators have no counter."""

    user_handle: bytes
    algorithm: str = "ES256"
    count: int | None = 0
    flags: int = PRESENT | VERIFIED
    credential_id: bytes = field(default_factory=lambda: os.urandom(32))

    def __post_init__(self) -> None:
        self._key = KEYS[self.algorithm]()

    def _next(self) -> int:
        if self.count is None:
            return 0
        self.count += 1
        return self.count

    def _state(self, rp_id: str, count: int, more: bytes = b"", flags: int | None = None) -> bytes:
        shown = self.flags if flags is None else flags
        return sha256(rp_id.encode()).digest() + bytes([shown]) + count.to_bytes(4) + more

    def make(self, options: str, origin: str, **changes: Any) -> str:
        """The answer to the options of a registration. `changes` are of the client data."""
        asked = json.loads(options)
        key = cbor2.dumps(self._key.public())
        attested = NO_MAKE + len(self.credential_id).to_bytes(2) + self.credential_id + key
        state = self._state(asked["rp"]["id"], self._next(), attested, self.flags | ATTESTED)
        response = {
            "clientDataJSON": client_data("webauthn.create", asked["challenge"], origin, **changes),
            "attestationObject": base64url(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": state})),
            "transports": ["internal", "hybrid", "made-up"],
        }
        return self._answer(response)

    def use(self, options: str, origin: str, *, rp_id: str = "", count: int | None = None, **changes: Any) -> str:
        """The answer to the options of a sign-in. `changes` are of the client data."""
        asked = json.loads(options)
        state = self._state(rp_id or asked["rpId"], self._next() if count is None else count)
        challenge = changes.pop("challenge", asked["challenge"])
        client = client_data(changes.pop("type", "webauthn.get"), challenge, origin, **changes)
        response = {
            "clientDataJSON": client,
            "authenticatorData": base64url(state),
            "signature": base64url(self._key.sign(state + sha256(from_base64url(client)).digest())),
            "userHandle": base64url(self.user_handle),
        }
        return self._answer(response)

    def _answer(self, response: dict[str, Any]) -> str:
        identifier = base64url(self.credential_id)
        return json.dumps({"id": identifier, "rawId": identifier, "type": "public-key", "response": response})

    def for_chromium(self, rp_id: str) -> dict[str, Any]:
        """The same key in the form that Chromium's virtual authenticator takes (CDP, WebAuthn.addCredential); ES256."""
        assert isinstance(self._key, _Es256)
        return {
            "credentialId": base64.b64encode(self.credential_id).decode(),
            "isResidentCredential": True,
            "rpId": rp_id,
            "privateKey": base64.b64encode(self._key.private()).decode(),
            "userHandle": base64.b64encode(self.user_handle).decode(),
            "signCount": self.count or 0,
        }

    def record(self, user_id: str, **more: Any) -> Passkey:
        """As the registry keeps it."""
        fields: dict[str, Any] = {
            "sign_count": self.count or 0, "name": "A key", "aaguid": "", "synced": False, "transports": (), "created_at": 1,
        }  # fmt: skip
        return Passkey(
            credential_id=base64url(self.credential_id),
            user_id=user_id,
            public_key=base64url(cbor2.dumps(self._key.public())),
            **{**fields, **more},
        )


def client_data(kind: str, challenge: str, origin: str, **more: Any) -> str:
    """What the browser says of itself, base64url."""
    return base64url(json.dumps({"type": kind, "challenge": challenge, "origin": origin, **more}).encode())
