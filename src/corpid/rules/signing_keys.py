"""Signing keys: their states, their calendar, and its changes (D42).

A key is in one of these states, and moves down the table only:

| State     | Dates                                      | published | signs |
|-----------|--------------------------------------------|-----------|-------|
| standby   | active_from is STANDBY                     | yes       | no    |
| scheduled | active_from is ahead                       | yes       | no    |
| in use    | active_from has passed, retired_at has not | yes       | yes   |
| retired   | retired_at has passed                      | for a time | no   |
| revoked   | revoked_at has passed                      | no        | no    |

There is always a standby key: relying parties and every process know it before it is needed. Whatever changes,
one key retires at the moment at which the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Annotated, Final, Literal

import msgspec

from corpid.jose.encoding import base64url
from corpid.rules.audit import AuditAction
from corpid.rules.fields import KEY, SECRET
from corpid.rules.limits import (
    ACCESS_TOKEN_SECONDS,
    KEY_PUBLISHED_BEFORE_USE_SECONDS,
    LIVE_STATE_SECONDS,
    METADATA_CACHE_SECONDS,
)

STANDBY: Final = 253_370_764_800
"""the year 9999: a key of no date, which also a server of the version before publishes and does not use"""
AGREED_SECONDS: Final = LIVE_STATE_SECONDS
"""after which every process knows of a change"""
KEPT_SECONDS: Final = ACCESS_TOKEN_SECONDS + METADATA_CACHE_SECONDS
"""a retired key stays published until the last token's exp and an hour"""


class ProviderKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the provider, opened.

    `use` is `sig` (an EC private JWK), `audit` (one that seals the audit), or `mac` (32 bytes, base64url).
    """

    kid: Annotated[str, KEY]
    use: Literal["sig", "audit", "mac"]
    secret: Annotated[str, SECRET]
    created_at: int
    active_from: int
    retired_at: int | None = None
    revoked_at: int | None = None
    certificate_chain: Annotated[str | None, SECRET] = None
    """PEM, the key's own certificate first; None: one that the key signed itself"""


class KeyTransition(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it becomes, and how the audit names that."""

    key: ProviderKey
    action: AuditAction
    details: dict[str, str]


def is_standby(key: ProviderKey) -> bool:
    """Return whether a key is published without a date. Source: D42"""
    return key.active_from == STANDBY and key.retired_at is None and key.revoked_at is None


def in_use(keys: Iterable[ProviderKey], now: float) -> ProviderKey | None:
    """The key that signs: the newest in force. Source: D42"""
    return max((key for key in keys if _signs(key, now)), key=lambda key: key.active_from, default=None)


def following(keys: Iterable[ProviderKey], now: float) -> ProviderKey | None:
    """The first scheduled key, or else the oldest standby key. Source: D42"""
    ahead = [key for key in keys if key.revoked_at is None and key.active_from > now and _ends(key) > key.active_from]
    return min(ahead, key=lambda key: (key.active_from, key.created_at, key.kid), default=None)


def state(key: ProviderKey, now: float) -> str:
    """The state of a signing key, in words. Source: D42"""
    if key.revoked_at is not None and key.revoked_at <= now:
        return "revoked"
    if is_standby(key):
        return "standby"
    if key.use == "audit" and key.retired_at is not None:
        return "retired, still verifies"
    if key.active_from > now:
        return "published, not yet in use"
    if key.retired_at is not None and key.retired_at <= now:
        return "retired, still verifies" if now < key.retired_at + KEPT_SECONDS else "retired"
    return "in use"


def signs_from(key: ProviderKey) -> int | None:
    """When a key begins or began to sign.

    Epoch seconds; None for a standby key, which has no date, and for one that ended before its date. Source: D42
    """
    ends = [at for at in (key.retired_at, key.revoked_at) if at is not None]
    return None if key.active_from == STANDBY or any(at <= key.active_from for at in ends) else key.active_from


def retires_at(key: ProviderKey) -> int | None:
    """When a key stops or stopped signing.

    Epoch seconds; None if it was revoked before. Source: D42
    """
    if signs_from(key) is None or key.retired_at is None:
        return None
    return None if key.revoked_at is not None and key.revoked_at < key.retired_at else key.retired_at


def published_until(key: ProviderKey) -> int | None:
    """When a key is withdrawn or was.

    Epoch seconds; None: not planned. Source: D42
    """
    if key.revoked_at is not None:
        return key.revoked_at
    return None if key.retired_at is None else key.retired_at + KEPT_SECONDS


class KeyDate(msgspec.Struct, frozen=True, kw_only=True):
    """A date ahead in the life of a signing key."""

    kid: str
    what: Literal["signs", "retires", "withdrawn"]
    """it begins to sign, it stops signing, or it is no longer published and its tokens are no longer accepted"""
    at: int
    """epoch seconds"""


def next_dates(keys: Iterable[ProviderKey], *, now: float) -> list[KeyDate]:
    """The dates of keys that are still ahead, in order. Source: D42"""
    found = []
    for key in keys:
        if key.revoked_at is not None:
            found.append(KeyDate(kid=key.kid, what="withdrawn", at=key.revoked_at))
        elif key.active_from != STANDBY:
            found.append(KeyDate(kid=key.kid, what="signs", at=key.active_from))
            if key.retired_at is not None:
                found.append(KeyDate(kid=key.kid, what="retires", at=key.retired_at))
                found.append(KeyDate(kid=key.kid, what="withdrawn", at=key.retired_at + KEPT_SECONDS))
    return sorted((each for each in found if each.at > now), key=lambda each: each.at)


def calendar_tag(stored: Sequence[ProviderKey]) -> str:
    """A name of the calendar that shows a repeated change. Source: D42"""
    dates = [(key.kid, key.active_from, key.retired_at, key.revoked_at) for key in stored]
    return base64url(sha256(msgspec.json.encode(dates)).digest())[:22]


def rotation(
    keys: Sequence[ProviderKey], make: Callable[[], ProviderKey], *, now: int, at_once: bool, unknown: bool = False
) -> list[KeyTransition]:
    """The steps of a rotation, that of the next key first.

    It was published already, and signs in two hours; `at_once`: as soon as every process knows it. `make` creates a
    standby key. `unknown`: a key that nobody knows signs at once (D66). Source: D42
    """
    if unknown:
        details = {"active_from": str(now), "at_once": "True"}
        first = KeyTransition(key=_dated(make(), active_from=now), action=AuditAction.KEY_ROTATE, details=details)
        return _completed(keys, [first], make, now=now)
    known = following(keys, now) if at_once else following([key for key in keys if is_standby(key)], now)
    following_key = known or make()
    begins = now + KEY_PUBLISHED_BEFORE_USE_SECONDS
    if at_once:
        begins = min(following_key.active_from, _agreed(following_key, now) if _any_signs(keys, now) else now)
    details = {"active_from": str(begins), "at_once": str(at_once)}
    scheduled = _dated(following_key, active_from=begins)
    return _completed(
        keys, [KeyTransition(key=scheduled, action=AuditAction.KEY_ROTATE, details=details)], make, now=now
    )


def revocation(
    keys: Sequence[ProviderKey], key: ProviderKey, make: Callable[[], ProviderKey], *, now: int
) -> list[KeyTransition]:
    """The steps of a revocation, that of the revoked key first.

    If it signs, the next key signs in its place as soon as every process knows it, and the revoked key's tokens are
    refused when every process knows that. A key that does not sign is revoked at once. Source: D42
    """
    others = [each for each in keys if each.kid != key.kid]
    steps, revoked_at, retired_at = [], now, key.retired_at
    signs = key == (in_use(keys, now) or following(keys, now))  # without one in use, the first one that follows
    if signs or (now < key.active_from <= now + AGREED_SECONDS and key.active_from < _ends(key)):
        successor = following(others, now) or make()
        begins = min(successor.active_from, _agreed(successor, now))
        revoked_at, retired_at = begins + AGREED_SECONDS, begins
        steps.append(_rotated(successor, begins))
    elif now < key.active_from < STANDBY and not any(now < other.active_from < STANDBY for other in others):
        successor = following(others, now) or make()
        steps.append(_rotated(successor, max(key.active_from, successor.created_at + KEY_PUBLISHED_BEFORE_USE_SECONDS)))
    ended = msgspec.structs.replace(key, retired_at=retired_at, revoked_at=revoked_at)
    first = KeyTransition(key=ended, action=AuditAction.KEY_REVOKE, details={"revoked_at": str(revoked_at)})
    return _completed(keys, [first, *steps], make, now=now)


def standby(keys: Sequence[ProviderKey], make: Callable[[], ProviderKey]) -> list[KeyTransition]:
    """The step that publishes a standby key, if there is none. Source: D42"""
    if any(is_standby(key) for key in keys):
        return []
    return [KeyTransition(key=make(), action=AuditAction.KEY_PUBLISH, details={})]


def _completed(
    keys: Sequence[ProviderKey], steps: list[KeyTransition], make: Callable[[], ProviderKey], *, now: int
) -> list[KeyTransition]:
    """The steps, and those that close gaps and publish a standby key."""
    after = {key.kid: key for key in keys} | {step.key.kid: step.key for step in steps}
    line = sorted(
        (key for key in after.values() if key.revoked_at is None and _is_ahead(key, now)),
        key=lambda key: key.active_from,
    )
    for key, after_it in zip_longest(line, line[1:]):
        end = None if after_it is None else after_it.active_from
        if key.retired_at != end:
            sooner = end is not None and end < _ends(key)
            details = {"retired_at": str(end)} if sooner else {"until": "" if end is None else str(end)}
            action = AuditAction.KEY_RETIRE if sooner else AuditAction.KEY_KEEP
            steps = [*steps, KeyTransition(key=_dated(key, retired_at=end), action=action, details=details)]
    return [*steps, *standby(list(after.values()), make)]


def _rotated(key: ProviderKey, begins: int) -> KeyTransition:
    details = {"active_from": str(begins), "at_once": "True"}
    return KeyTransition(key=_dated(key, active_from=begins), action=AuditAction.KEY_ROTATE, details=details)


def _dated(key: ProviderKey, **dates: int | None) -> ProviderKey:
    return msgspec.structs.replace(key, **dates)


def _agreed(key: ProviderKey, now: int) -> int:
    """The first moment at which every process knows a key."""
    return max(now, min(key.created_at, now) + AGREED_SECONDS)


def _signs(key: ProviderKey, now: float) -> bool:
    return key.revoked_at is None and key.active_from <= now < _ends(key)


def _any_signs(keys: Iterable[ProviderKey], now: float) -> bool:
    """Return whether a key signs, also one that is revoked soon."""
    return any(key.active_from <= now < _ends(key) and (key.revoked_at is None or now < key.revoked_at) for key in keys)


def _is_ahead(key: ProviderKey, now: float) -> bool:
    """Return whether a key is in use or scheduled."""
    return key.active_from < STANDBY and key.active_from < _ends(key) and now < _ends(key)


def _ends(key: ProviderKey) -> float:
    return float("inf") if key.retired_at is None else key.retired_at
