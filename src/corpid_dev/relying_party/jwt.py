"""A relying party's keys, and JWTs as it makes and reads them.

On joserfc alone: the provider's own `corpid.jose` is not used here, since what checks the provider must not share its
mistakes. Key files are those of `corpid client keys`, as a relying party has them.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from joserfc import jwe, jws
from joserfc.jwk import ECKey, Key, KeyParameters, KeySet
from joserfc.registry import HeaderParameter

from corpid.stores import relying_party_keys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


MAX_BYTES = 4 * 1024 * 1024
"""of a token: userinfo of a person with thousands of roles"""
_REPEATED = {"iss": HeaderParameter("Issuer", "str"), "aud": HeaderParameter("Audience", "str")}
ALGORITHM_OF_CURVE = {"P-256": "ES256", "secp256k1": "ES256K", "P-384": "ES384", "P-521": "ES512"}


def base64url(content: bytes) -> str:
    """Bytes as base64url without padding (RFC 7515 §2)."""
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Base64url without padding as bytes; raises ValueError."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def digest(text: str) -> str:
    """base64url(SHA-256(ASCII text)): the S256 challenge and `ath`.

    Source: RFC 7636 §4.2, RFC 9449 §4.2
    """
    return base64url(hashlib.sha256(text.encode("ascii")).digest())


def half_digest(text: str) -> str:
    """base64url of the left half of SHA-256: `at_hash` under ES256.

    Source: OpenID Connect Core §3.1.3.6
    """
    return base64url(hashlib.sha256(text.encode("ascii")).digest()[:16])


def algorithm_of(key: Key) -> str:
    """The one JWS algorithm of an EC key's curve.

    Source: RFC 7518 §3.4, RFC 8812 §3.2
    """
    return ALGORITHM_OF_CURVE[str(key.get("crv"))]


def compact(header: Mapping[str, Any], payload: Mapping[str, Any] | bytes, key: Key) -> str:
    """Sign as a compact JWS (RFC 7515 §7.1).

    The header goes out exactly as given, however wrong, since tests tamper with it: an `alg` the key
    cannot make is signed with the algorithm of the key's curve, and `none` leaves the signature empty.
    """
    content = payload if isinstance(payload, bytes) else json.dumps(payload, separators=(",", ":")).encode()
    message = f"{base64url(json.dumps(dict(header), separators=(',', ':')).encode())}.{base64url(content)}"
    if header.get("alg") == "none":
        return f"{message}."
    model = jws.JWSRegistry.algorithms[algorithm_of(key) if isinstance(key, ECKey) else str(header["alg"])]
    return f"{message}.{base64url(model.sign(message.encode('ascii'), key))}"


def peek(token: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Header and payload of a compact JWT, unverified.

    The payload of a JWE is None. For display and key choice.

    Raises ValueError if it is not a compact JWT.
    """
    parts = token.split(".")
    if len(parts) not in (3, 5):
        raise ValueError("not a compact JWT: it has neither three nor five parts")
    header = json.loads(from_base64url(parts[0]))
    payload = json.loads(from_base64url(parts[1])) if len(parts) == 3 else None
    if not isinstance(header, dict) or not isinstance(payload, dict | None):
        raise ValueError("not a compact JWT: header and payload must be JSON objects")
    return header, payload


def verified(token: str, key: Key, algorithm: str) -> bytes:
    """The payload of a compact JWS with a valid signature.

    By this key and this algorithm only. Raises joserfc.errors.JoseError or ValueError.
    """
    return jws.deserialize_compact(token, key, algorithms=[algorithm], registry=_signature_registry(algorithm)).payload


def decrypted(token: str, key: Key, algorithms: tuple[str, str]) -> bytes:
    """The plaintext of a compact JWE.

    `algorithms` are the one `alg` and the one `enc` allowed.

    Its header may repeat iss and aud (RFC 7519 §5.3), and holds nothing else that is unknown. Raises
    joserfc.errors.JoseError or ValueError.
    """
    registry = jwe.JWERegistry(algorithms=list(algorithms), header_registry=_REPEATED)
    registry.max_ciphertext_length = MAX_BYTES
    plaintext = jwe.decrypt_compact(token, key, registry=registry).plaintext
    if plaintext is None:
        raise ValueError("the JWE has no plaintext")
    return plaintext


def key_set(document: Mapping[str, Any]) -> KeySet:
    """A JWK Set document as keys (RFC 7517 §5)."""
    return KeySet.import_key_set({"keys": list(document["keys"])})


def _signature_registry(algorithm: str) -> jws.JWSRegistry:
    registry = jws.JWSRegistry(algorithms=[algorithm])
    registry.max_payload_length = MAX_BYTES
    return registry


@dataclass(frozen=True, slots=True, kw_only=True)
class RelyingPartyKeys:
    """Private EC keys, each with its kid."""

    signing: ECKey
    encryption: ECKey

    @classmethod
    def generate(
        cls, *, signing_curve: str = "P-256", encryption_curve: str = "P-256", wrap: str = "ECDH-ES+A256KW"
    ) -> RelyingPartyKeys:
        """New keys.

        `wrap` is the JWE `alg` that the encryption key asks for (D21).
        """
        suffix = secrets.token_hex(4)
        signing: KeyParameters = {"use": "sig", "kid": f"rp-sig-{suffix}", "alg": ALGORITHM_OF_CURVE[signing_curve]}
        encryption: KeyParameters = {"use": "enc", "kid": f"rp-enc-{suffix}", "alg": wrap}
        return cls(
            signing=ECKey.generate_key(signing_curve, signing),
            encryption=ECKey.generate_key(encryption_curve, encryption),
        )

    @classmethod
    def kept_in(cls, path: Path) -> RelyingPartyKeys:
        """The keys in a file, which is written (0600) if missing.

        With new keys. A file with anything else raises ValueError.
        """
        if not path.exists():
            relying_party_keys.write_private(path)
        stored = json.loads(path.read_text())
        try:
            return cls(signing=ECKey.import_key(stored["signing"]), encryption=ECKey.import_key(stored["encryption"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} does not hold the demo RP's keys; delete it or use --fresh") from error

    @classmethod
    def written_to(cls, path: Path) -> tuple[RelyingPartyKeys, Path]:
        """New keys in a new file (0600), and their public key set.

        The key set is in a file of the same name with `.public` at its end, which is returned, too. Raises
        FileExistsError and other OSError.
        """
        public = relying_party_keys.write(path)
        return cls.kept_in(path), public

    def public(self) -> dict[str, Any]:
        """The JWK Set to register: public members only (RFC 7517 §5)."""
        return {
            "keys": [
                public_members(self.signing, "use", "kid", "alg"),
                public_members(self.encryption, "use", "kid", "alg"),
            ]
        }


def public_members(key: ECKey, *described: str) -> dict[str, Any]:
    """The public members of an EC key, and chosen description members.

    Source: RFC 7518 §6.2.1
    """
    everything = key.as_dict(private=False)
    return {name: everything[name] for name in ("kty", "crv", "x", "y", *described)}
