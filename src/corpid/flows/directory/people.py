"""People: adding and disabling them, their links and factors (D44, D45, D46)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.flows import notifications
from corpid.flows.account import links
from corpid.flows.authentication import throttle
from corpid.flows.authentication.factors import hash_password, held_factors
from corpid.flows.directory.apply import prepare_addition
from corpid.flows.directory.finding import authorise_on_person, find_user, refuse_invited
from corpid.flows.directory.write import Refused, audit_event, write_changes
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication.passwords import COMMAND_LINE, PasswordRefused
from corpid.rules.authentication.records import Credentials, FactorChange, LinkPurpose, NewLink, PersonFactors
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.names import canonical
from corpid.rules.directory.records import Change, User
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.outbound.mail import Mail
    from corpid.outbound.passwords import Passwords
    from corpid.rules.audit_records import AuditEvent
    from corpid.rules.directory.actors import Actor
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
