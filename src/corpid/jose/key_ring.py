"""The provider's signing keys: published, in use, retired, revoked (D42)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from corpid.jose import compact
from corpid.jose.compact import BadSignature
from corpid.jose.encoding import base64url, from_base64url, json_object
from corpid.jose.keys import ALGORITHMS, Verifier, coordinates, public_jwk, thumbprint

_ES256 = ALGORITHMS["ES256"]
ACCESS_TOKEN: Final = "at+jwt"
"""the typ of an access token (RFC 9068 §2.1)"""


def generate_private_jwk() -> str:
    """A new P-256 private key (JWK), its thumbprint as kid.

    No kid begins with a hyphen: a command would take it for an option. Source: RFC 7517 §4.5, RFC 7638
    """
    private = ec.generate_private_key(_ES256.curve)
    jwk = public_jwk(_ES256.curve_name, private.public_key())
    jwk["d"] = base64url(private.private_numbers().private_value.to_bytes(_ES256.size))
    jwk["kid"] = thumbprint(jwk)
    return generate_private_jwk() if thumbprint(jwk).startswith("-") else msgspec.json.encode(jwk).decode()


class ValidSignatures:
    """Signatures by one key that this process has made or verified.

    Only the latest: a client uses an access token soon after it was issued, and often again. A token is identified by
    the hash of its signing input. Source: docs/decisions/0033
    """

    MOST: Final = 8192

    def __init__(self) -> None:
        # Taking the first key of a dict scans every deleted entry before it.
        self._signatures: OrderedDict[bytes, bytes] = OrderedDict()

    def add(self, signing_input: bytes, signature: bytes) -> None:
        """Add a valid signature; drops the oldest if full."""
        if len(self._signatures) >= self.MOST:
            self._signatures.popitem(last=False)
        self._signatures[sha256(signing_input).digest()] = signature

    def contains(self, signing_input: bytes, signature: bytes) -> bool:
        """Return whether this signature of this input is remembered."""
        return self._signatures.get(sha256(signing_input).digest()) == signature


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key of the ring.

    Times in epoch seconds, None if it has not come to that.
    """

    kid: str
    private: ec.EllipticCurvePrivateKey
    public: ec.EllipticCurvePublicKey
    verifier: Verifier
    public_jwk: Mapping[str, str]
    active_from: int
    retired_at: int | None
    revoked_at: int | None
    created_at: int
    """when the certificate that it signs itself begins"""
    certificate_chain: str | None
    """PEM; None: the certificate that it signs itself"""
    headers: Mapping[str, bytes]
    """typ → encoded protected header"""
    valid: ValidSignatures = msgspec.field(default_factory=ValidSignatures)


def open_signing_key(
    private_jwk: str,
    *,
    active_from: int,
    retired_at: int | None,
    revoked_at: int | None,
    created_at: int | None = None,
    certificate_chain: str | None = None,
) -> SigningKey:
    """Prepare a stored private JWK for use.

    Unless another moment is given, it was made when it begins to sign.

    Source: RFC 7517 §4
    """
    jwk = json_object(private_jwk)
    private = ec.derive_private_key(int.from_bytes(from_base64url(str(jwk["d"]))), _ES256.curve)
    public = private.public_key()
    kid = str(jwk["kid"])
    published = {"kty": "EC", "use": "sig", "kid": kid, "alg": "ES256", "crv": "P-256"}
    published |= {"x": str(jwk["x"]), "y": str(jwk["y"])}
    headers = {
        typ: base64url(msgspec.json.encode({"alg": "ES256", "kid": kid, "typ": typ})).encode()
        for typ in ("JWT", ACCESS_TOKEN)
    }
    return SigningKey(
        kid=kid,
        private=private,
        public=public,
        verifier=_ES256.verifier(coordinates(public)),
        public_jwk=published,
        active_from=active_from,
        retired_at=retired_at,
        revoked_at=revoked_at,
        created_at=active_from if created_at is None else created_at,
        certificate_chain=certificate_chain,
        headers=headers,
    )


class KeyRing(msgspec.Struct, frozen=True, kw_only=True):
    """The signing keys of the deployment at one moment."""

    active: SigningKey
    by_kid: Mapping[str, SigningKey]
    """the verification keys: every published key"""
    public_key_set: bytes
    """the JWKS document"""
    until: float
    """when the calendar changes next, epoch seconds"""

    def sign(self, payload: bytes, typ: str) -> str:
        """A compact JWS by the active key.

        `typ` is JWT or at+jwt, which this provider verifies later (RFC 7515 §5.1).
        """
        key = self.active
        signing_input, signature = compact.sign_payload(key.headers[typ], payload, key.private, _ES256)
        if typ == ACCESS_TOKEN:
            key.valid.add(signing_input, signature)
        return compact.serialize_token(signing_input, signature)

    def verify(self, token: compact.Unverified) -> None:
        """Check one of our own signatures; one that is remembered is valid.

        Raises BadSignature, also if the key is no longer accepted (RFC 7515 §5.2).
        """
        key = self.by_kid.get(token.kid or "")
        if key is None:
            raise BadSignature("kid names no key of this provider")
        if not key.valid.contains(token.signing_input, token.signature):
            compact.verify(token, key.verifier)
            key.valid.add(token.signing_input, token.signature)


def build(keys: Iterable[SigningKey], *, now: float, kept_seconds: int, with_certificates: bool = False) -> KeyRing:
    """The ring at `now`: the newest key in force signs.

    Keys stay `kept_seconds` after retirement.

    `with_certificates` publishes x5c, x5t and x5t#S256 for every key. Raises ValueError when no key may sign.
    Source: D42, Spec 2.9
    """
    every = sorted(keys, key=lambda key: key.active_from)
    alive = [
        key
        for key in every
        if (key.revoked_at is None or now < key.revoked_at)
        and (key.retired_at is None or now < key.retired_at + kept_seconds)
    ]
    signing = [key for key in alive if key.active_from <= now and (key.retired_at is None or now < key.retired_at)]
    if not signing:  # the clock of the operator who revoked the last one is far ahead of ours
        ended = {key.retired_at for key in every if key.revoked_at is not None and key.revoked_at <= now}
        signing = [key for key in alive if key.active_from in ended]
    if not signing:
        raise ValueError("no signing key is in use: run `corpid key rotate --now`")
    changes = [float(key.active_from) for key in alive if key.active_from > now]
    changes += [float(at) for key in alive if key.retired_at for at in (key.retired_at, key.retired_at + kept_seconds)]
    changes += [float(key.revoked_at) for key in alive if key.revoked_at is not None]
    newest_first = [signing[-1], *(key for key in reversed(alive) if key is not signing[-1])]
    document = {"keys": [_published(key, with_certificates=with_certificates) for key in newest_first]}
    return KeyRing(
        active=signing[-1],
        by_kid={key.kid: key for key in alive},
        public_key_set=msgspec.json.encode(document),
        until=min((at for at in changes if at > now), default=float("inf")),
    )


def _published(key: SigningKey, *, with_certificates: bool) -> dict[str, object]:
    if not with_certificates:
        return dict(key.public_jwk)
    # Most deployments and all commands do without certificates, which take long to load.
    from corpid.jose import certificates  # noqa: PLC0415

    chain = certificates.chain_of(key.private, kid=key.kid, created_at=key.created_at, stored=key.certificate_chain)
    return {**key.public_jwk, **certificates.members(chain)}
