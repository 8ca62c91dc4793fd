"""Records of one person, as those who administer read and end them.

Factors, memberships, levels and roles in one answer; consents (D29), requests to be deleted (D61), sessions (D30) and
locks (D45, D47) by themselves.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory import people
from corpid.flows.directory.finding import authorise_on_person
from corpid.flows.directory.lists import Belonging, ListPage, list_with_records
from corpid.flows.directory.write import audit_event
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication.records import EmailChange, PersonFactors, Session
from corpid.rules.authentication.sign_in import fingerprint
from corpid.rules.directory.access import Action, Object, ObjectKind, authorise, refuse_early
from corpid.rules.directory.lists import ASSIGNMENTS, MEMBERSHIPS, THIRD_PARTY_ASSIGNMENTS
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    DeletionRequest,
    Membership,
    Operator,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.directory.roles import RoleRecords
from corpid.rules.directory.sources import people as people_among
from corpid.rules.oauth.consent import Consent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.authentication.throttling import CodeGuesses
    from corpid.rules.directory.actors import Actor
    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.registry import Registry
    from corpid.stores.transient import TransientStore

_NAME_CHARACTERS: Final = 32


class PersonRecords(msgspec.Struct, frozen=True, kw_only=True):
    """A person with everything that they hold, a page of each."""

    user: User
    factors: PersonFactors
    invited_until: int
    """when the invitation ends that the person has, in epoch seconds; 0: they have none"""
    deletion_requested_at: int
    """when they asked to be deleted, in epoch seconds; 0: they did not"""
    operator: str
    """their level as an operator of the deployment, if any"""
    consents: tuple[Consent, ...]
    """that are remembered, by entity and client"""
    memberships: ListPage[Belonging]
    roles: ListPage[RoleRecords]
    third_party_roles: ListPage[RoleRecords]
    email_change: EmailChange | None
    """a new address that the person has proven and that is not yet in effect (D61)"""
    written_by: dict[tuple[type, tuple[str, ...]], str]
    """type and key of a record → the actor that wrote it last; empty if it is not known (D65)"""
    user_names: dict[str, str]
    """user identifier → user name of the people among those actors"""


async def load_person(registry: Registry, actor: Actor, user_name: str, *, limit: int, now: float) -> PersonRecords:
    """Return a person with everything that they hold.

    `now` is in epoch seconds. At most `limit` memberships, and as many roles of each sort, and for each a few look-ups
    by key. Raises write.Refused if there is no such person, access.Forbidden, StoreUnavailable. Source: D50, D53, D65
    """
    user, held = await people.load_factors(registry, user_name, actor=actor)
    authorise(actor, "read", Object(kind="operator", user_id=user.user_id))
    links = await registry.factors.links_of(user.user_id)
    invited_until = [each.expires_at for each in links if each.purpose == "invitation" and each.expires_at > now]
    operators = await registry.directory.read(Operator, [user.key])
    belongs, own, for_others = [
        await list_with_records(registry, actor, each, {"user": user.user_name}, limit=limit)
        for each in (MEMBERSHIPS, ASSIGNMENTS, THIRD_PARTY_ASSIGNMENTS)
    ]
    keys: dict[type[KeyedRecord], list[tuple[str, ...]]] = {
        User: [user.key],
        Operator: [*operators],
        Membership: [each.membership.key for each in belongs.found],
        Administrator: [each.membership.key for each in belongs.found if each.level],
        Assignment: [role.row.key for role in own.found],
        ThirdPartyAssignment: [role.row.key for role in for_others.found],
    }
    written_by = {
        (kind, key): found.sources.record
        for kind, wanted_keys in keys.items()
        for key, found in (await registry.directory.sourced(kind, wanted_keys)).items()
    }
    names = await registry.directory.read(User, [(each,) for each in sorted(people_among(written_by.values()))])
    return PersonRecords(
        user=user,
        factors=held,
        invited_until=max(invited_until, default=0),
        deletion_requested_at=await find_deletion_time(registry, actor, user.user_id),
        operator=operators[user.key].level if user.key in operators else "",
        consents=tuple((await list_consents(registry, actor, user.user_id, now=now))[:limit]),
        memberships=belongs,
        email_change=await registry.email_changes.find(user.user_id),
        roles=own,
        third_party_roles=for_others,
        written_by=written_by,
        user_names={key[0]: each.user_name for key, each in names.items()},
    )


async def list_consents(registry: Registry, actor: Actor, user_id: str, *, now: float) -> list[Consent]:
    """Return the remembered consents of a person, in order.

    By entity, client, issuer and scopes. `now` is in epoch seconds. Raises access.Forbidden, StoreUnavailable. Source:
    D29
    """
    authorise(actor, "read", Object(kind="consent", user_id=user_id))
    return await registry.consents.list_for_user(user_id, now=now)


async def list_consents_by_name(
    registry: Registry, actor: Actor, user_name: str, *, now: float
) -> tuple[User | None, list[Consent]]:
    """Return a person of a user name, and their consents.

    None without one. Raises access.Forbidden, StoreUnavailable. Source: D29
    """
    refuse_early(actor, "read", Object(kind="consent"))
    user = await registry.directory.user_by_name(user_name)
    return user, [] if user is None else await list_consents(registry, actor, user.user_id, now=now)


async def find_deletion_time(registry: Registry, actor: Actor, user_id: str) -> int:
    """Return when a person asked to be deleted, in epoch seconds.

    0: they did not. Raises access.Forbidden, StoreUnavailable. Source: D61
    """
    authorise(actor, "read", Object(kind="deletion request", user_id=user_id))
    found = await registry.directory.find(DeletionRequest, user_id)
    return found.requested_at if found is not None else 0


def derive_session_name(session: Session) -> str:
    """Return the public identifier of a session.

    Nothing can be done with it but to end the session. Source: D30
    """
    return sha256(session.session_id.encode()).hexdigest()[:_NAME_CHARACTERS]


async def list_sessions(
    registry: Registry, user_name: str, *, actor: Actor, now: float
) -> tuple[User | None, Sequence[Session]]:
    """Return a person and their live sessions, the latest first.

    None without a person of this name. `now` is in epoch seconds. Raises access.Forbidden, StoreUnavailable. Source:
    D30, D53
    """
    user = await _find_person(registry, actor, "read", "session", user_name)
    if user is None:
        return None, ()
    return user, await registry.sessions.list_for_user(user.user_id, now=now)


async def find_session(
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
    found = next((each for each in live if derive_session_name(each) == name), None)
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
    user = await _find_person(registry, actor, "delete", "session", user_name)
    if user is None:
        return False
    await registry.sessions.end_all(user.user_id, audit_event(actor, AuditAction.SESSION_END_ALL, user.user_id))
    return True


async def list_locks(
    registry: Registry, user_name: str, *, actor: Actor, now: float
) -> tuple[User | None, list[CodeGuesses]]:
    """Return a person and the pauses after wrong codes that hold.

    None without a person of this name. The shorter delays after wrong passwords belong to an address, not to a person.
    Raises access.Forbidden, StoreUnavailable. Source: D45, D53
    """
    user = await _find_person(registry, actor, "read", "lock", user_name)
    if user is None:
        return None, []
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
    user = await _find_person(registry, actor, "delete", "lock", user_name)
    if user is None:
        return False
    event = audit_event(actor, AuditAction.USER_UNLOCK, user.user_id)
    await people.unlock_account(registry, transient, issuer, user, event=event, now=now)
    return True


async def _find_person(
    registry: Registry, actor: Actor, action: Action, kind: ObjectKind, user_name: str
) -> User | None:
    """Find a person, if the actor may do this to them."""
    refuse_early(actor, action, Object(kind=kind))
    user = await registry.directory.user_by_name(user_name)
    if user is not None:
        await authorise_on_person(registry, actor, action, Object(kind=kind, user_id=user.user_id))
    return user
