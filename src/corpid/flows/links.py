"""Links that let a person set their factors: an invitation, a new password, a new second factor.

The secret part has 256 bits, stands in the address only, and is kept by its hash. Looking at a link spends
nothing, since mail programs look too; it is spent when what it leads to is written.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.directory.access import Actor, Object, authorise
from corpid.directory.records import Credentials
from corpid.flows import interactions
from corpid.jose.encoding import base64url
from corpid.ports import AuditEvent, Link
from corpid.protocol.limits import INVITATION_SECONDS, PASSWORD_LINK_SECONDS, SECOND_FACTOR_LINK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.directory.access import ObjectKind
    from corpid.directory.records import User
    from corpid.ports import LinkPurpose, Registry

LIFETIMES: Final[Mapping[LinkPurpose, int]] = {
    "invitation": INVITATION_SECONDS,
    "password": PASSWORD_LINK_SECONDS,
    "second_factor": SECOND_FACTOR_LINK_SECONDS,
}
"""in seconds"""
_OBJECTS: Final[Mapping[LinkPurpose, ObjectKind]] = {
    "invitation": "link",
    "password": "password link",
    "second_factor": "link",
}
PATH: Final = "/enrol/"


def link_hash(secret: str) -> str:
    """What a link is kept by. Source: DESIGN, Security"""
    return sha256(secret.encode()).hexdigest()


async def make(
    registry: Registry,
    user: User,
    purpose: LinkPurpose,
    *,
    actor: Actor,
    now: float,
    new_id: Callable[[], str],
    request_id: str = "",
    spared: str = "",
) -> str:
    """A new link for a person, who loses those before of the same purpose but the one with the hash `spared`.

    Returns the path below base_url. Raises access.Forbidden and StoreUnavailable. Source: DESIGN, Security
    """
    authorise(actor, "write", Object(kind=_OBJECTS[purpose], user_id=user.user_id))
    secret = new_id()
    link = Link(
        link_hash=link_hash(secret),
        purpose=purpose,
        user_id=user.user_id,
        created_at=int(now),
        expires_at=int(now) + LIFETIMES[purpose],
        factors=_fingerprint(await _credentials(registry, user.user_id)),
    )
    event = AuditEvent(actor=actor.name, action=f"link.{purpose}", object=user.user_id, request_id=request_id)
    await registry.factors.keep_link(link, event, spared=spared)
    return f"{PATH}{secret}"


async def holding(registry: Registry, link_hash: str, *, now: float) -> Link | None:
    """A link that still opens something, None where it does not or is not there. Source: DESIGN, Security"""
    link = await registry.factors.link(link_hash)
    if link is None:
        return None
    return link if opens(link, await _credentials(registry, link.user_id), now=now) else None


def opens(link: Link, credentials: Credentials, *, now: float) -> bool:
    """Whether a link that nobody has spent opens something: it lasts, and its owner's factors are as they were.

    Source: DESIGN, Security
    """
    return now < link.expires_at and _fingerprint(credentials) == link.factors


async def _credentials(registry: Registry, user_id: str) -> Credentials:
    return await registry.directory.credentials(user_id) or Credentials(user_id=user_id)


def _fingerprint(credentials: Credentials) -> str:
    return base64url(interactions.fingerprint(credentials))
