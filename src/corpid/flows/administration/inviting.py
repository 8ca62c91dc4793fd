"""Giving people links to set their factors, and telling which they have (D44, D45, D46)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from corpid.directory.access import Actor, Object, authorise
from corpid.directory.records import User
from corpid.flows import links, notices
from corpid.flows.administration.adding import addition
from corpid.flows.administration.users import credentials_of, replace_factors, user_named
from corpid.flows.administration.writing import Refused, audit_event, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.ports import LinkPurpose, Mail, Passkey, Passwords, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a person has to sign in with; nothing of it is secret."""

    user: User
    password: bool
    app: bool
    passkeys: tuple[Passkey, ...]
    recovery_codes: int
    """how many are left"""

    @property
    def any(self) -> bool:
        """Whether there is a factor."""
        return self.password or self.app or bool(self.passkeys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A link that was made for a person."""

    user: User
    url: str
    purpose: LinkPurpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """What making a link needs. `now` is in epoch seconds, `base_url` without a trailing slash."""

    registry: Registry
    base_url: str
    new_id: Callable[[], str]
    now: float
    actor: Actor


async def add_invited(
    office: Office,
    passwords: Passwords,
    user_name: str,
    members: Mapping[str, object],
    *,
    new_user_id: Callable[[], str],
) -> Given:
    """Add a person without any factor, and invite them; `members` as in a directory file.

    Raises writing.Refused, access.Forbidden, StoreUnavailable. D46, D51
    """
    adding = await addition(office.registry, passwords, User, "users", user_name, members, new_user_id=new_user_id)
    user = adding.record
    event = audit_event(office.actor, "user.add", user.user_id)
    await write(office.registry, office.actor, adding.changes, event)
    return await _give(office, user, "invitation")


async def invite(office: Office, user_name: str, *, anew: bool = False) -> Given:
    """Invite a person to set up their sign-in. Who has factors is invited only `anew`, which removes them all first.

    Raises writing.Refused, access.Forbidden, StoreUnavailable. D46
    """
    held = await factors(office.registry, user_name, actor=office.actor)
    if held.any and not anew:
        raise Refused(
            f"{held.user.user_name} can sign in already: `corpid user link` renews one factor, and "
            "`corpid user invite --anew` removes every one first"
        )
    if anew:
        known = await credentials_of(office.registry, held.user)
        bare = msgspec.structs.replace(
            known,
            password_hash=None,
            password_set_by="operator",
            password_source="",
            totp_secret=None,
            totp_set_by="operator",
        )
        await replace_factors(office.registry, known, bare, "user.remove_factors", actor=office.actor)
    return await _give(office, held.user, "invitation")


async def give_link(office: Office, user_name: str, purpose: LinkPurpose) -> Given:
    """A link for a new password or a new second factor, for who still has the other one.

    Raises writing.Refused, access.Forbidden, StoreUnavailable. D44, D45
    """
    held = await factors(office.registry, user_name, actor=office.actor)
    shown = held.password if purpose == "second_factor" else held.app or held.passkeys or held.recovery_codes
    if not shown:
        lacks = "password" if purpose == "second_factor" else "second factor"
        raise Refused(
            f"{held.user.user_name} has no {lacks} to show first: use `corpid user invite {held.user.user_name} --anew`"
        )
    return await _give(office, held.user, purpose)


async def factors(registry: Registry, user_name: str, *, actor: Actor) -> Held:
    """What a person has to sign in with.

    Raises writing.Refused when there is no such person, access.Forbidden, StoreUnavailable. D45, D46
    """
    user = await user_named(registry, user_name, actor=actor)
    authorise(actor, "read", Object(kind="credentials", user_id=user.user_id))
    known = await credentials_of(registry, user)
    return Held(
        user=user,
        password=known.password_hash is not None,
        app=known.totp_secret is not None,
        passkeys=tuple(await registry.factors.passkeys(user.user_id)),
        recovery_codes=await registry.factors.recovery_codes_left(user.user_id),
    )


async def _give(office: Office, user: User, purpose: LinkPurpose) -> Given:
    path = await links.make(office.registry, user, purpose, actor=office.actor, now=office.now, new_id=office.new_id)
    return Given(user=user, url=office.base_url + path, purpose=purpose)


def send(mail: Mail, given: Given, *, provider: str) -> bool:
    """Send a link to the person it was made for; whether there is an address, and mail. Source: DESIGN, Security"""
    if not mail.works or not given.user.email:
        return False
    notices.link(mail, given.user, given.purpose, given.url, provider=provider)
    return True
