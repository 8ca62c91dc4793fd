"""Remembered consents of a person, for those who administer (D29)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.directory.access import Object, authorise, refuse_early

if TYPE_CHECKING:
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.records import User
    from corpid.rules.oauth.consent import Consent
    from corpid.stores.sql.registry import Registry


async def consents_of(registry: Registry, actor: Actor, user_id: str, *, now: float) -> list[Consent]:
    """Return the remembered consents of a person, in order.

    By entity, client, issuer and scopes. `now` is in epoch seconds. Raises access.Forbidden, StoreUnavailable. Source:
    D29
    """
    authorise(actor, "read", Object(kind="consent", user_id=user_id))
    return await registry.consents.list_for_user(user_id, now=now)


async def consents_of_named(
    registry: Registry, actor: Actor, user_name: str, *, now: float
) -> tuple[User | None, list[Consent]]:
    """Return a person of a user name, and their consents.

    None without one. Raises access.Forbidden, StoreUnavailable. Source: D29
    """
    refuse_early(actor, "read", Object(kind="consent"))
    user = await registry.directory.user_by_name(user_name)
    return user, [] if user is None else await consents_of(registry, actor, user.user_id, now=now)
