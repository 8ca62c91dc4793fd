"""Sessions and locks of a person, for administrators."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.flows.directory import people
from corpid.flows.directory.people_facts import authorise_on_person
from corpid.flows.directory.write import audit_event
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication.sign_in import fingerprint
from corpid.rules.directory.access import Object, refuse_early

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.authentication.records import Session
    from corpid.rules.authentication.throttling import CodeGuesses
    from corpid.rules.directory.actors import Actor
    from corpid.rules.directory.records import User
    from corpid.stores.sql.registry import Registry
    from corpid.stores.transient import TransientStore

_NAME_CHARACTERS: Final = 32


def name_of(session: Session) -> str:
    """Return the public identifier of a session.

    Nothing can be done with it but to end the session. Source: D30
    """
    return sha256(session.session_id.encode()).hexdigest()[:_NAME_CHARACTERS]


async def sessions_of(
    registry: Registry, user_name: str, *, actor: Actor, now: float
) -> tuple[User | None, Sequence[Session]]:
    """Return a person and their live sessions, the latest first.

    None without a person of this name. `now` is in epoch seconds. Raises access.Forbidden, StoreUnavailable. Source:
    D30, D53
    """
    refuse_early(actor, "read", Object(kind="session"))
    user = await registry.directory.user_by_name(user_name)
    if user is None:
        return None, ()
    await authorise_on_person(registry, actor, "read", Object(kind="session", user_id=user.user_id))
    return user, await registry.sessions.list_for_user(user.user_id, now=now)


async def session(
    registry: Registry, user_id: str, name: str, *, actor: Actor, now: float
) -> tuple[User, Session] | None:
    """Return a live session by its person and name.

    None if there is none. Raises access.Forbidden, StoreUnavailable. Source: D30, D53
    """
    refuse_early(actor, "read", Object(kind="session"))
    user = await registry.directory.user(user_id)
    if user is None:
        return None
    await authorise_on_person(registry, actor, "read", Object(kind="session", user_id=user_id))
    live = await registry.sessions.list_for_user(user_id, now=now)
    found = next((each for each in live if name_of(each) == name), None)
    return None if found is None else (user, found)


async def end_session(registry: Registry, ending: Session, *, actor: Actor) -> bool:
    """End a session; False if it had ended before.

    Raises access.Forbidden, StoreUnavailable. Source: D30, D53
    """
    await authorise_on_person(registry, actor, "delete", Object(kind="session", user_id=ending.user_id))
    event = audit_event(actor, AuditAction.SESSION_END, ending.user_id)
    return await registry.sessions.end(ending.session_id, event)


async def end_sessions(registry: Registry, user_name: str, *, actor: Actor) -> bool:
    """End every session of a person.

    False if there is no such person. Raises access.Forbidden, StoreUnavailable. Source: D30, D53
    """
    refuse_early(actor, "delete", Object(kind="session"))
    user = await registry.directory.user_by_name(user_name)
    if user is None:
        return False
    await authorise_on_person(registry, actor, "delete", Object(kind="session", user_id=user.user_id))
    await registry.sessions.end_all(user.user_id, audit_event(actor, AuditAction.SESSION_END_ALL, user.user_id))
    return True


async def locks_of(
    registry: Registry, user_name: str, *, actor: Actor, now: float
) -> tuple[User | None, list[CodeGuesses]]:
    """Return a person and the pauses after wrong codes that hold.

    None without a person of this name. The shorter delays after wrong passwords belong to an address, not to a person.
    Raises access.Forbidden, StoreUnavailable. Source: D45, D53
    """
    refuse_early(actor, "read", Object(kind="lock"))
    user = await registry.directory.user_by_name(user_name)
    if user is None:
        return None, []
    await authorise_on_person(registry, actor, "read", Object(kind="lock", user_id=user.user_id))
    factors = fingerprint(await registry.factors.credentials(user.user_id)).hex()
    counts = await registry.code_guesses.list_for_user(user.user_id)
    return user, [each for each in counts if each.paused_until > now and each.factors == factors]


async def end_locks(
    registry: Registry, transient: TransientStore, issuer: str, user_name: str, *, actor: Actor, now: float
) -> bool:
    """End a person's delays and pauses.

    False if there is no such person. `issuer` is the one that delays are counted under. Raises access.Forbidden,
    StoreUnavailable. Source: D45, D47
    """
    refuse_early(actor, "delete", Object(kind="lock"))
    user = await registry.directory.user_by_name(user_name)
    if user is None:
        return False
    await authorise_on_person(registry, actor, "delete", Object(kind="lock", user_id=user.user_id))
    event = audit_event(actor, AuditAction.USER_UNLOCK, user.user_id)
    await people.unlock(registry, transient, issuer, user, event=event, now=now)
    return True
