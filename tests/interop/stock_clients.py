"""What the stock libraries have in common: how a relying party is registered, and what it can be told to do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from joserfc.jwk import ECKey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from corpid_dev.relying_party.interfaces import Interface
    from corpid_dev.relying_party.verification import Callback

CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


def write_keys(path: Path, signing_alg: str = "ES256", encryption_alg: str = "ECDH-ES+A256KW") -> Path:
    """A key file as the examples make them, with algorithms of choice."""
    signing = ECKey.generate_key(CURVES[signing_alg], {"use": "sig", "alg": signing_alg, "kid": "its-sig"})
    encryption = ECKey.generate_key("P-256", {"use": "enc", "alg": encryption_alg, "kid": "its-enc"})
    keys = {"signing": signing.as_dict(private=True), "encryption": encryption.as_dict(private=True)}
    path.write_text(json.dumps(keys))
    return path


def public_keys(path: Path) -> dict[str, Any]:
    """The key set to register for a key file."""
    keys = json.loads(path.read_text()).values()
    return {"keys": [{name: value for name, value in key.items() if name != "d"} for key in keys]}


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A relying party of one generation, and what it registered beside its name, address, keys and services."""

    issuer: str
    client_id: str
    keys: Path
    interface: Interface
    members: Mapping[str, Any] = field(default_factory=dict)
    scope: str = "openid authinfo tpauthinfo"
    redirect_uri: str = "http://127.0.0.1:9/callback"
    """nobody listens there: the browser stops before it"""

    @property
    def request(self) -> dict[str, str]:
        """What it sends with each authorization request, beside what its library adds."""
        return {"redirect_uri": self.redirect_uri, "scope": self.scope, **self.interface.parameters}

    @property
    def wrap(self) -> str:
        """The algorithm of its encryption key."""
        algorithm: str = json.loads(self.keys.read_text())["encryption"]["alg"]
        return algorithm

    @property
    def id_token_encrypted(self) -> bool:
        return self.interface.id_token_enc is not None or "id_token_encryption_alg" in self.members

    @property
    def userinfo_signed(self) -> bool:
        return self.interface.userinfo.signed or "userinfo_signing_alg" in self.members

    @property
    def userinfo_encrypted(self) -> bool:
        return "userinfo_encryption_enc" in self.members


class Tokens(NamedTuple):
    """The ID token's claims, which the library has verified, and what the token endpoint answered."""

    claims: dict[str, Any]
    answer: dict[str, Any]


class Refused(Exception):
    """The provider's refusal by its code and status, or the library's own by its name for it."""

    def __init__(self, code: str, status: int | None) -> None:
        super().__init__(code)
        self.code = code
        self.status = status


class StockClient(Protocol):
    """A relying party on a stock library that keeps one sign-in. Every method raises Refused."""

    registered: Registered

    def begin(self, *, bare: bool = False, **parameters: str) -> str:
        """Where to send the browser; `bare` asks without state and nonce."""

    def finish(self, callback: Callback, *, with_another_key: bool = False) -> Tokens:
        """Redeem the code; with another DPoP key than the one of the beginning where asked."""

    def userinfo(self) -> dict[str, Any]:
        """The claims of userinfo_endpoint, verified."""

    def read(self, endpoint: str, method: str) -> dict[str, Any]:
        """The claims of the resource that this metadata member names, verified just as strictly."""
