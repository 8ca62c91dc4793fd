"""The calendar of the provider's keys: make the first, rotate, revoke (D42)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec

from corpid.directory.access import Object, authorise
from corpid.jose.encoding import base64url, json_object
from corpid.jose.key_ring import generate_private_jwk
from corpid.ports import AuditEvent, SealedKey
from corpid.protocol.limits import KEY_PUBLISHED_BEFORE_USE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.directory.access import Actor
    from corpid.ports import Registry


class RotationRefused(Exception):
    """The change would leave the provider without a key to sign with, or names no key; the text says what to do."""


def _new_key(*, now: float, active_from: float) -> SealedKey:
    private = generate_private_jwk()
    return SealedKey(
        kid=str(json_object(private)["kid"]),
        use="sig",
        secret=private,
        created_at=int(now),
        active_from=int(active_from),
    )


async def ensure_first_keys(registry: Registry, *, now: float) -> None:
    """Give a new deployment its signing key and its server secret, once (D42)."""
    if await registry.keys.all():
        return
    mac = SealedKey(
        kid="server-secret",
        use="mac",
        secret=base64url(secrets.token_bytes(32)),
        created_at=int(now),
        active_from=int(now),
    )
    await registry.keys.add_first([_new_key(now=now, active_from=now), mac])


async def signing_keys(registry: Registry) -> list[SealedKey]:
    """Every signing key, oldest first, also retired and revoked ones (D42)."""
    return [key for key in await registry.keys.all() if key.use == "sig"]


async def rotate(registry: Registry, actor: Actor, *, now: float, at_once: bool = False) -> SealedKey:
    """Make the next signing key and retire the others when it takes over.

    It signs after having been published for two hours; `at_once` skips the wait, which breaks clients that
    cache the key set until they fetch it again. Source: Spec 9, D42
    """
    active_from = int(now) if at_once else int(now) + KEY_PUBLISHED_BEFORE_USE_SECONDS
    authorise(actor, "write", Object(kind="key"))
    key = _new_key(now=now, active_from=active_from)
    event = _event(actor, "key.rotate", key.kid, {"active_from": str(active_from), "at_once": str(at_once)})
    older = [old for old in await signing_keys(registry) if old.revoked_at is None and old.retired_at is None]
    await registry.keys.add(key, event)
    for old in older:
        await registry.keys.update(msgspec.structs.replace(old, retired_at=active_from), event)
    return key


async def revoke(registry: Registry, actor: Actor, kid: str, *, now: float) -> SealedKey | None:
    """Stop publishing and accepting a key at once; returns the new key, where one had to be made.

    A new key signs at once if no other does; else it waits, and the one that signs now is kept until then.
    Raises RotationRefused for an unknown kid. Source: D42
    """
    authorise(actor, "delete", Object(kind="key"))
    keys = await signing_keys(registry)
    key = next((key for key in keys if key.kid == kid), None)
    if key is None:
        raise RotationRefused(f"there is no signing key with the kid {kid}: `corpid key list` shows them")
    if key.revoked_at is not None:
        raise RotationRefused(f"the key {kid} is revoked already")
    left = [other for other in keys if other.kid != kid and other.revoked_at is None]
    replacement = await _close_gap(registry, actor, left, now)
    await registry.keys.update(msgspec.structs.replace(key, revoked_at=int(now)), _event(actor, "key.revoke", kid, {}))
    return replacement


async def rewrap(reseal: Callable[[AuditEvent], Awaitable[int]], actor: Actor) -> int:
    """Seal every secret at rest with the present key-encryption key; returns how many were sealed with another.

    Raises access.Forbidden; SecretUnreadable for a row that no configured key opens, then nothing is changed. D43
    """
    authorise(actor, "write", Object(kind="key"))
    return await reseal(_event(actor, "key.rewrap", "", {}))


async def _close_gap(registry: Registry, actor: Actor, left: list[SealedKey], now: float) -> SealedKey | None:
    """See to it that of the keys that are left one signs at every moment; returns the key made for that."""
    signing = max((key for key in left if _signs(key, now)), key=lambda key: key.active_from, default=None)
    if signing is None:
        return await rotate(registry, actor, now=now, at_once=True)
    lasting = [key for key in left if key.retired_at is None]
    made = None if lasting else await rotate(registry, actor, now=now)
    successor = made or min(lasting, key=lambda key: key.active_from)
    if signing.retired_at is not None and signing.retired_at < successor.active_from:
        kept = msgspec.structs.replace(signing, retired_at=successor.active_from)
        await registry.keys.update(kept, _event(actor, "key.keep", kept.kid, {"until": str(kept.retired_at)}))
    return made


def _signs(key: SealedKey, now: float) -> bool:
    return key.revoked_at is None and key.active_from <= now and (key.retired_at is None or now < key.retired_at)


def _event(actor: Actor, action: str, kid: str, detail: dict[str, str]) -> AuditEvent:
    return AuditEvent(actor=actor.name, action=action, object=kid, detail=detail)
