"""Keys of a relying party: one for signing, one for decryption."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from joserfc.jwk import ECKey

from corpid.sandbox.jwt import ALGORITHM_OF_CURVE

if TYPE_CHECKING:
    from pathlib import Path

    from joserfc.jwk import KeyParameters


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
            keys = cls.generate()
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump({"signing": keys.signing.as_dict(private=True),
                           "encryption": keys.encryption.as_dict(private=True)}, file, indent=1)  # fmt: skip
            return keys
        stored = json.loads(path.read_text())
        try:
            return cls(signing=ECKey.import_key(stored["signing"]), encryption=ECKey.import_key(stored["encryption"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} does not hold the demo RP's keys; delete it or use --fresh") from error

    def public(self) -> dict[str, Any]:
        """The JWK Set to register: public members only (RFC 7517 §5)."""
        return {"keys": [public(self.signing, "use", "kid", "alg"), public(self.encryption, "use", "kid", "alg")]}


def public(key: ECKey, *described: str) -> dict[str, Any]:
    """The public members of an EC key, and chosen description members.

    Source: RFC 7518 §6.2.1
    """
    everything = key.as_dict(private=False)
    return {name: everything[name] for name in ("kty", "crv", "x", "y", *described)}
