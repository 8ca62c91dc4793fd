"""Signing keys: in use, their calendar, and an operator's certificates (D42, Spec 2.9)."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.flows.directory.write import Refused, audit_event
from corpid.jose import key_ring
from corpid.jose.encoding import base64url, from_base64url, json_object, tuple_bytes
from corpid.jose.key_ring import KeyRing, SigningKey, generate_private_jwk
from corpid.rules import signing_keys as rules
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.access import Actor, ApiClient, Object, authorise
from corpid.rules.limits import LIVE_STATE_SECONDS
from corpid.rules.signing_keys import AGREED_SECONDS, KEPT_SECONDS, STANDBY, KeyTransition, ProviderKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from corpid.stores.sql.registry import Registry

_NONCE_SECONDS: Final = 120
ROTATED_EVERY_SECONDS: Final = 3600
"""between two keys, if a program makes them"""


def open_key(key: ProviderKey) -> SigningKey:
    """A stored signing key, ready for use (D42)."""
    return key_ring.open_signing_key(
        key.secret,
        active_from=key.active_from,
        retired_at=key.retired_at,
        revoked_at=key.revoked_at,
        created_at=key.created_at,
        certificate_chain=key.certificate_chain,
    )


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """The keys of one moment: signing key ring and server secret.

    Only this deployment reads what the server secret protects.
    """

    ring: KeyRing
    secret: bytes
    _keyed: hmac.HMAC = field(init=False, repr=False, compare=False)
    """the secret, prepared: a copy costs half as much as preparing it"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keyed", hmac.new(self.secret, digestmod="sha256"))

    def mac(self, purpose: str, *parts: str) -> str:
        """HMAC-SHA256 by the server secret over a length-prefixed tuple, base64url."""
        return base64url(self.digest(purpose, *parts))

    def digest(self, purpose: str, *parts: str) -> bytes:
        """The 32 bytes of `mac`."""
        keyed = self._keyed.copy()
        keyed.update(msgspec.msgpack.encode((purpose, *parts)))
        return keyed.digest()

    def dpop_nonce(self, now: float, *, loss: str, steps_back: int = 0) -> str:
        """The server nonce, `steps_back` steps of 120 seconds ago.

        `loss` is the name of the last loss of data: no earlier nonce is one after it. Source: RFC 9449 §8, D67
        """
        return self.mac("dpop-nonce", loss, str(int(now // _NONCE_SECONDS) - steps_back))

    def is_dpop_nonce(self, nonce: str | None, now: float, *, loss: str) -> bool:
        """Return whether a nonce is the present or the previous one.

        Source: RFC 9449 §8, D67
        """
        return nonce is not None and any(
            hmac.compare_digest(nonce.encode(), self.dpop_nonce(now, loss=loss, steps_back=back).encode())
            for back in (0, 1)
        )


class SigningKeys:
    """The stored keys, held in memory.

    A change made elsewhere is seen within five seconds.

    `certificates` publishes a certificate with every key. `issuer` is the base_url of a further issuer, empty for the
    first: what one of them has authenticated by the server secret means nothing to another (D62).
    """

    def __init__(self, registry: Registry, *, certificates: bool = False, issuer: str = "") -> None:
        self._registry = registry
        self._certificates = certificates
        self._issuer = issuer
        self._keys: ServerKeys | None = None
        self._stored: list[ProviderKey] = []
        self._looked_at = float("-inf")
        self._revoked_by: dict[str, int] = {}
        """by kid, the latest moment at which this process stops accepting a revoked key"""

    async def keys_at(self, now: float) -> ServerKeys:
        """The keys at `now`.

        Raises StoreUnavailable. ValueError if no key may sign or the server secret is missing (D42).
        """
        return self.fresh(now) or self.use(await self._registry.keys.list_all(), now)

    def fresh(self, now: float) -> ServerKeys | None:
        """The keys at `now`, unless they have to be read again (D42)."""
        keys = self._keys
        if keys is None or not 0 <= now - self._looked_at < LIVE_STATE_SECONDS or now >= keys.ring.until:
            return None
        return keys

    @property
    def revoked(self) -> frozenset[str]:
        """The kids of the revoked keys, as they were read last. Source: D42"""
        return frozenset(key.kid for key in self._stored if key.revoked_at is not None)

    def use(self, stored: list[ProviderKey], now: float) -> ServerKeys:
        """Take over the stored keys as they were just read.

        Raises ValueError as `keys_at`. Source: D42
        """
        if stored != self._stored or self._keys is None or now >= self._keys.ring.until:
            opened = [open_key(self._as_revoked(key, now)) for key in stored if key.use == "sig"]
            ring = key_ring.build(opened, now=now, kept_seconds=KEPT_SECONDS, with_certificates=self._certificates)
            secret = next((from_base64url(key.secret) for key in stored if key.use == "mac"), b"")
            if not secret:  # an HMAC without one is one that anybody can compute
                raise ValueError(
                    "the server secret is missing from the stored keys: restore the database from a backup"
                )
            # The first issuer uses the stored secret; each further one uses a secret derived from it.
            own = hmac.digest(secret, tuple_bytes("issuer", self._issuer), "sha256") if self._issuer else secret
            self._keys = ServerKeys(ring, own)
            self._stored = stored
        self._looked_at = now
        return self._keys

    def drop(self) -> None:
        """Read the stored keys again at the next call. Source: D42"""
        self._looked_at = float("-inf")

    def _as_revoked(self, key: ProviderKey, now: float) -> ProviderKey:
        """The key, revoked soon after this process has read of it.

        Even if its clock is behind.
        """
        if key.revoked_at is None:
            return key
        latest = self._revoked_by.setdefault(key.kid, int(now) + 2 * AGREED_SECONDS)
        return msgspec.structs.replace(key, revoked_at=min(key.revoked_at, latest))


class TooSoon(Exception):
    """The newest key is too young for another one."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"try again in {seconds} seconds")
        self.seconds = seconds


class RotationRefused(Exception):
    """The change names no key, or the calendar has changed meanwhile.

    The text says what to do.
    """


def new_key(use: Literal["sig", "audit"], *, now: float, active_from: float) -> ProviderKey:
    """A new key, for tokens or for seals of the audit (D42, D58)."""
    private = generate_private_jwk()
    return ProviderKey(
        kid=str(json_object(private)["kid"]),
        use=use,
        secret=private,
        created_at=int(now),
        active_from=int(active_from),
    )


async def ensure_first_keys(registry: Registry, *, now: float) -> None:
    """Give a new deployment its first keys, once.

    The signing key, a standby key and the server secret. Source: D42
    """
    if await registry.keys.list_all():
        return
    mac = ProviderKey(
        kid="server-secret",
        use="mac",
        secret=base64url(secrets.token_bytes(32)),
        created_at=int(now),
        active_from=int(now),
    )
    await registry.keys.add_first([new_key("sig", now=now, active_from=now), _standby_key(now), mac])


def _standby_key(now: float) -> ProviderKey:
    """A new signing key that is published and waits."""
    return new_key("sig", now=now, active_from=STANDBY)


async def ensure_standby_key(registry: Registry, *, now: float) -> bool:
    """Publish a standby key, if there is none.

    Of several processes one does; returns whether it was this one. Deployments of earlier versions have none.
    Source: D42
    """
    if any(rules.is_standby(key) for key in await stored_keys(registry)):
        return False

    def decide(keys: list[ProviderKey]) -> list[KeyTransition]:
        return rules.standby(keys, lambda: _standby_key(now))

    return bool(await change(registry, None, decide))


async def change(
    registry: Registry, actor: Actor | None, plan: Callable[[list[ProviderKey]], list[KeyTransition]]
) -> list[KeyTransition]:
    """Change the calendar as planned from the present keys.

    All of it happens at once, or nothing. Two changes at the same time happen one after the other. Without an actor,
    CorpID itself does it. Source: D42
    """
    planned: list[KeyTransition] = []

    def decide(stored: list[ProviderKey]) -> list[tuple[ProviderKey, AuditEvent]]:
        planned[:] = plan(_in_order(stored))
        return [(step.key, _event(actor, step)) for step in planned]

    await registry.keys.change(decide)
    return planned


def _event(actor: Actor | None, step: KeyTransition) -> AuditEvent:
    if actor is None:
        return AuditEvent(actor="system", action=step.action, object=step.key.kid, detail=step.details)
    return audit_event(actor, step.action, step.key.kid, **step.details)


async def stored_keys(registry: Registry) -> list[ProviderKey]:
    """Every signing key, oldest first, also retired and revoked ones (D42)."""
    return _in_order(await registry.keys.list_all())


def _in_order(stored: Iterable[ProviderKey]) -> list[ProviderKey]:
    """The signing keys, oldest first, the standby key last."""
    found = (key for key in stored if key.use == "sig")
    return sorted(found, key=lambda key: (key.created_at, key.active_from, key.kid))


async def list_keys(registry: Registry, actor: Actor) -> list[ProviderKey]:
    """Every signing key with its dates.

    Raises access.Forbidden, StoreUnavailable. Source: D42, D59
    """
    authorise(actor, "read", Object(kind="key"))
    return await stored_keys(registry)


async def rotate(
    registry: Registry,
    actor: Actor,
    *,
    now: float,
    at_once: bool = False,
    seen: str | None = None,
    unknown: bool = False,
) -> ProviderKey:
    """Rotate the key: the next one signs, another standby key is published.

    Returns the key that signs next.

    It is published already, and signs in two hours; `at_once`: now, or within five seconds if it is as young. `seen` is
    the tag of the calendar that the caller decided on. `unknown` is of developer mode: a key that was never published
    signs at once (D66). Raises access.Forbidden, StoreUnavailable, RotationRefused if the calendar has changed since,
    and for a client of the API TooSoon.
    Source: Spec 9, D42
    """
    authorise(actor, "write", Object(kind="key"))

    def plan(keys: list[ProviderKey]) -> list[KeyTransition]:
        if isinstance(actor, ApiClient):
            # Refuse a program that makes key after key. Each is published, fetched and kept.
            newest = max((key.created_at for key in keys), default=0)
            left = newest + ROTATED_EVERY_SECONDS - now
            if 0 < left <= ROTATED_EVERY_SECONDS:
                raise TooSoon(ceil(left))
        if seen is not None and seen != rules.calendar_tag(keys):
            raise RotationRefused("the keys have been changed meanwhile")
        return rules.rotation(keys, lambda: _standby_key(now), now=int(now), at_once=at_once, unknown=unknown)

    return (await change(registry, actor, plan))[0].key


async def revoke(registry: Registry, actor: Actor, kid: str, *, now: float) -> ProviderKey | None:
    """Stop publishing and accepting a key within seconds.

    Returns the key that signs in its place, or None if it did not sign and was not about to.

    That key is published already. Raises RotationRefused for an unknown kid. Source: D42
    """
    authorise(actor, "delete", Object(kind="key"))
    if any(other.kid == kid and other.use == "audit" for other in await registry.keys.list_all()):
        raise RotationRefused(f"the key {kid} seals the audit, and stays: `corpid key rotate --audit` replaces it")

    def plan(keys: list[ProviderKey]) -> list[KeyTransition]:
        key = next((key for key in keys if key.kid == kid), None)
        if key is None:
            raise RotationRefused(f"there is no signing key with the kid {kid}: `corpid key list` shows them")
        if key.revoked_at is not None:
            raise RotationRefused(f"the key {kid} is revoked already")
        return rules.revocation(keys, key, lambda: _standby_key(now), now=int(now))

    steps = await change(registry, actor, plan)
    return next((step.key for step in steps if step.action is AuditAction.KEY_ROTATE), None)


async def rewrap(registry: Registry, actor: Actor) -> int:
    """Encrypt every secret with the present key-encryption key.

    Returns how many used another.

    Raises access.Forbidden; SecretUnreadable for a row that no configured key opens, then nothing is changed. D43
    """
    authorise(actor, "write", Object(kind="key"))
    return await registry.keys.rewrap(audit_event(actor, AuditAction.KEY_REWRAP, ""))


async def request_certificate(registry: Registry, actor: Actor, kid: str, *, subject_name: str) -> str:
    """A PEM certificate request for this key and common name.

    The private key stays encrypted.

    Raises write.Refused for a kid that names no usable key and a name that no certificate can hold,
    access.Forbidden, StoreUnavailable. Source: RFC 2986 §4
    """
    from corpid.jose import certificates  # noqa: PLC0415 - takes long to load, and most commands do without

    authorise(actor, "write", Object(kind="key"))
    key = open_key(_find_usable_key(await stored_keys(registry), kid))
    try:
        return certificates.signing_request(key.private, subject_name=subject_name)
    except certificates.CertificateRefused as error:
        raise Refused(f"{error}: choose another with --subject-name") from error


async def certify(registry: Registry, actor: Actor, kid: str, chain: str, *, now: float) -> ProviderKey:
    """Store a certificate chain (PEM) with a key.

    A running server publishes it within 5 s. Returns the key. Raises write.Refused for a kid that names no usable key
    and a chain that is not this key's or not valid at `now`, access.Forbidden, StoreUnavailable. Source: RFC 7517 §4.7,
    Spec 2.9
    """
    from corpid.jose import certificates  # noqa: PLC0415 - takes long to load, and most commands do without

    authorise(actor, "write", Object(kind="key"))

    def plan(keys: list[ProviderKey]) -> list[KeyTransition]:
        key = _find_usable_key(keys, kid)
        try:
            parsed = certificates.parse_chain(chain)
            certificates.check_chain(parsed, open_key(key).public, now=now)
        except certificates.CertificateRefused as error:
            raise Refused(f"this is no certificate chain for the key {kid}: {error}") from error
        certified = msgspec.structs.replace(key, certificate_chain=certificates.pem(parsed))
        fingerprint = certificates.fingerprint(parsed[0])
        return [KeyTransition(key=certified, action=AuditAction.KEY_CERTIFY, details={"fingerprint": fingerprint})]

    return (await change(registry, actor, plan))[0].key


async def remove_certificate(registry: Registry, actor: Actor, kid: str) -> ProviderKey:
    """Go back to the certificate that the key signs itself.

    Returns the key. Raises write.Refused for a kid that names no key and a key without a chain, access.Forbidden,
    StoreUnavailable. Source: Spec 2.9
    """
    authorise(actor, "delete", Object(kind="key"))

    def plan(keys: list[ProviderKey]) -> list[KeyTransition]:
        key = _find_key(keys, kid)
        if key.certificate_chain is None:
            raise Refused(f"no certificate is stored with the key {kid}")
        plain = msgspec.structs.replace(key, certificate_chain=None)
        return [KeyTransition(key=plain, action=AuditAction.KEY_CERTIFY, details={"fingerprint": ""})]

    return (await change(registry, actor, plan))[0].key


def _find_key(keys: Iterable[ProviderKey], kid: str) -> ProviderKey:
    for key in keys:
        if key.kid == kid:
            return key
    raise Refused(f"there is no signing key with the kid {kid}: `corpid key list` shows them")


def _find_usable_key(keys: Iterable[ProviderKey], kid: str) -> ProviderKey:
    key = _find_key(keys, kid)
    if key.revoked_at is not None:
        raise Refused(f"the key {kid} is revoked and is published no more: `corpid key list` shows the others")
    return key
