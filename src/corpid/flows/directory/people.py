"""People: adding and disabling them, links, factors, records (D44, D45, D46).

Those who administer read factors, memberships, levels and roles in one answer; consents (D29), requests to be deleted
(D61), sessions (D30) and locks (D45, D47) by themselves, and end them.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import notifications
from corpid.flows.account import links
from corpid.flows.authentication import throttle
from corpid.flows.authentication.factors import hash_password, held_factors
from corpid.flows.directory.apply import prepare_addition
from corpid.flows.directory.lists import (
    Belonging,
    ListPage,
    authorise_on_person,
    find_user,
    list_with_records,
    refuse_invited,
)
from corpid.flows.directory.write import Refused, audit_event, write_changes
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication.passwords import COMMAND_LINE, PasswordRefused
from corpid.rules.authentication.records import (
    Credentials,
    EmailChange,
    FactorChange,
    LinkPurpose,
    NewLink,
    PersonFactors,
    Session,
)
from corpid.rules.authentication.sign_in import fingerprint
from corpid.rules.directory.access import Action, Actor, Object, ObjectKind, authorise, refuse_early
from corpid.rules.directory.lists import ASSIGNMENTS, MEMBERSHIPS, THIRD_PARTY_ASSIGNMENTS
from corpid.rules.directory.names import canonical
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    DeletionRequest,
    Membership,
    Operator,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.directory.roles import RoleRecords
from corpid.rules.directory.sources import people as people_among
from corpid.rules.oauth.consent import Consent
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpid.outbound.mail import Mail
    from corpid.outbound.passwords import Passwords
    from corpid.rules.authentication.throttling import CodeGuesses
    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.registry import Registry
    from corpid.stores.transient import TransientStore


async def add_user(
    registry: Registry,
    passwords: Passwords,
    user_name: str,
    members: Mapping[str, object],
    *,
    password: str,
    totp_secret: str,
    new_user_id: Callable[[], str],
    actor: Actor,
) -> User:
    """Add a person with a first password and TOTP secret (base32).

    `members` as in a directory file.

    Raises write.Refused, access.Forbidden, StoreUnavailable, PasswordsBusy. D44, D45, D51
    """
    user, prepared = await prepare_addition(registry, passwords, User, user_name, members, new_user_id=new_user_id)
    password_hash = await _hash_password(passwords, user, password)
    factors = (
        Credentials(user_id=user.user_id).with_password(password_hash, "operator").with_app(totp_secret, "operator")
    )
    change = Change(None, factors)
    await write_changes(registry, actor, [*prepared.changes, change], planned=True)
    return user


async def reset_password(
    registry: Registry, passwords: Passwords, user_name: str, password: str, *, actor: Actor
) -> User:
    """Give a person a new password and end their sessions.

    A directory file does not undo it later.

    Raises write.Refused when there is no such person or the password is not one that a person may have,
    access.Forbidden, StoreUnavailable, PasswordsBusy. D44
    """
    user = await _find_account(registry, user_name, actor=actor)
    known = await registry.factors.credentials(user.user_id)
    becomes = known.with_password(await _hash_password(passwords, user, password), "operator")
    await write_changes(registry, actor, [Change(known, becomes, action=AuditAction.USER_RESET_PASSWORD)])
    return user


async def reset_factors(registry: Registry, user_name: str, totp_secret: str, *, actor: Actor) -> User:
    """Replace a person's second factor with a new TOTP secret.

    `totp_secret` is base32. Ends their sessions, and removes passkeys and recovery codes. A directory file does not
    undo it later. Raises write.Refused if there is no such person, access.Forbidden, StoreUnavailable. Source: D45
    """
    user = await _find_account(registry, user_name, actor=actor)
    known = await registry.factors.credentials(user.user_id)
    becomes = known.with_app(totp_secret, "operator")
    await replace_factors(registry, known, becomes, AuditAction.USER_RESET_FACTORS, actor=actor)
    return user


async def replace_factors(
    registry: Registry, known: Credentials, becomes: Credentials, action: AuditAction, *, actor: Actor
) -> None:
    """Write a person's password and app, and end their sessions.

    Removes their passkeys and recovery codes. Raises write.Refused if they were changed meanwhile, access.Forbidden,
    StoreUnavailable. Source: D45, D46
    """
    authorise(actor, "write", Object(kind="credentials", user_id=known.user_id))
    change = FactorChange(before=known, after=becomes, remove_passkeys=True, recovery_codes=(), end_sessions_but="")
    if not await registry.factors.change(change, audit_event(actor, action, known.user_id)):
        raise Refused(phrase("somebody else changed the factors at the same time: try again"))


async def unlock_user(
    registry: Registry, transient: TransientStore, issuer: str, user_name: str, *, actor: Actor, now: float
) -> User:
    """End a person's delays and pauses after wrong passwords and codes.

    `now` in epoch seconds.

    Raises write.Refused when there is no such person, access.Forbidden, StoreUnavailable. D45, D47
    """
    user = await find_user(registry, user_name, actor=actor)
    await authorise_on_person(registry, actor, "delete", Object(kind="lock", user_id=user.user_id))
    event = audit_event(actor, AuditAction.USER_UNLOCK, user.user_id)
    await unlock_account(registry, transient, issuer, user, event=event, now=now)
    return user


async def unlock_account(
    registry: Registry, transient: TransientStore, issuer: str, user: User, *, event: AuditEvent, now: float
) -> None:
    """End the delays and pauses of a person.

    Who was found and authorised before. `now` in epoch seconds. Raises StoreUnavailable. D45, D47
    """
    async with transient.batch(now) as batch:
        await throttle.unlock(batch, issuer, canonical(user.user_name))
        await registry.code_guesses.forget_all(user.user_id, event)


async def _hash_password(passwords: Passwords, user: User, password: str) -> str:
    try:
        return await hash_password(passwords, user, password, source=COMMAND_LINE)
    except PasswordRefused as error:
        raise Refused(str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedLink:
    """A link that was made for a person."""

    user: User
    link: NewLink
    purpose: LinkPurpose


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkDependencies:
    """Dependencies of making a link.

    `now` is in epoch seconds, `base_url` without a trailing slash.
    """

    registry: Registry
    base_url: str
    new_id: Callable[[], str]
    now: float
    actor: Actor


async def add_invited(
    deps: LinkDependencies,
    passwords: Passwords,
    user_name: str,
    members: Mapping[str, object],
    *,
    new_user_id: Callable[[], str],
) -> IssuedLink:
    """Add a person without any factor, and invite them.

    `members` as in a directory file.

    Raises write.Refused, access.Forbidden, StoreUnavailable. D46, D51
    """
    user, prepared = await prepare_addition(deps.registry, passwords, User, user_name, members, new_user_id=new_user_id)
    await write_changes(deps.registry, deps.actor, prepared.changes, planned=True)
    return await _issue_link(deps, user, "invitation")


async def invite_user(deps: LinkDependencies, user_name: str, *, anew: bool = False) -> IssuedLink:
    """Invite a person to set up their sign-in.

    With factors only `anew`, which removes them first.

    Raises write.Refused, access.Forbidden, StoreUnavailable. D46
    """
    user, held = await load_factors(deps.registry, user_name, actor=deps.actor)
    refuse_invited(user)
    if held.any and not anew:
        raise Refused(
            f"{user.user_name} can sign in already: `corpid user link` renews one factor, and "
            "`corpid user invite --anew` removes every one first"
        )
    if anew:
        bare = Credentials(user_id=user.user_id, password_set_by="operator", totp_set_by="operator")
        await replace_factors(deps.registry, held.credentials, bare, AuditAction.USER_REMOVE_FACTORS, actor=deps.actor)
    return await _issue_link(deps, user, "invitation")


async def give_link(deps: LinkDependencies, user_name: str, purpose: LinkPurpose) -> IssuedLink:
    """A link to set a new password or second factor.

    The person must still have the other one. Raises write.Refused, access.Forbidden, StoreUnavailable. Source: D44,
    D45
    """
    user, held = await load_factors(deps.registry, user_name, actor=deps.actor)
    refuse_invited(user)
    asked = links.PURPOSES[purpose].asks_for
    if asked and not {"password": held.password, "second factor": held.second_factor}[asked]:
        raise Refused(
            f"{user.user_name} has no {asked} to show first: use `corpid user invite {user.user_name} --anew`"
        )
    return await _issue_link(deps, user, purpose)


async def load_factors(registry: Registry, user_name: str, *, actor: Actor) -> tuple[User, PersonFactors]:
    """A person and their factors.

    Raises write.Refused if there is no such person, access.Forbidden, StoreUnavailable. Source: D45, D46
    """
    user = await find_user(registry, user_name, actor=actor)
    await authorise_on_person(registry, actor, "read", Object(kind="credentials", user_id=user.user_id))
    return user, await held_factors(registry, user.user_id)


async def _find_account(registry: Registry, user_name: str, *, actor: Actor) -> User:
    user = await find_user(registry, user_name, actor=actor)
    refuse_invited(user)
    return user


async def _issue_link(deps: LinkDependencies, user: User, purpose: LinkPurpose) -> IssuedLink:
    texts = links.PURPOSES[purpose]
    thing = Object(kind=texts.object_kind, user_id=user.user_id)
    await authorise_on_person(deps.registry, deps.actor, "write", thing)
    link = await links.write_link(
        deps.registry, user, purpose, event=audit_event(deps.actor, texts.made, user.user_id), base_url=deps.base_url,
        now=deps.now, new_id=deps.new_id,
    )  # fmt: skip
    return IssuedLink(user=user, link=link, purpose=purpose)


def send_link(mail: Mail, given: IssuedLink, *, provider_name: str) -> bool:
    """Send a link to the person it was made for.

    Whether there is an address, and mail.
    """
    if not mail.works or not given.user.email:
        return False
    purpose = links.PURPOSES[given.purpose]
    notifications.link(
        mail, given.user, given.link, heading=purpose.heading, lead=purpose.lead, provider_name=provider_name
    )
    return True


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
    user, held = await load_factors(registry, user_name, actor=actor)
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
    await unlock_account(registry, transient, issuer, user, event=event, now=now)
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
