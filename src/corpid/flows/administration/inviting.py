"""Giving people links to set their factors, and telling which they have (D44, D45, D46)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.directory.access import Actor, Object, authorise
from corpid.directory.records import Credentials, User
from corpid.flows import held_factors, letters, links
from corpid.flows.administration.adding import addition
from corpid.flows.administration.users import replace_factors, user_named
from corpid.flows.administration.writing import Refused, audit_event, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.directory.held_factors import HeldFactors
    from corpid.ports import LinkPurpose, Mail, Passwords, Registry
    from corpid.protocol.link_codes import NewLink


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A link that was made for a person."""

    user: User
    link: NewLink
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
    user, held = await factors(office.registry, user_name, actor=office.actor)
    if held.any and not anew:
        raise Refused(
            f"{user.user_name} can sign in already: `corpid user link` renews one factor, and "
            "`corpid user invite --anew` removes every one first"
        )
    if anew:
        bare = Credentials(user_id=user.user_id, password_set_by="operator", totp_set_by="operator")
        await replace_factors(office.registry, held.credentials, bare, "user.remove_factors", actor=office.actor)
    return await _give(office, user, "invitation")


async def give_link(office: Office, user_name: str, purpose: LinkPurpose) -> Given:
    """A link for a new password or a new second factor, for who still has the other one.

    Raises writing.Refused, access.Forbidden, StoreUnavailable. D44, D45
    """
    user, held = await factors(office.registry, user_name, actor=office.actor)
    asked = links.PURPOSES[purpose].asks_for
    if asked and not {"password": held.password, "second factor": held.second_factor}[asked]:
        raise Refused(
            f"{user.user_name} has no {asked} to show first: use `corpid user invite {user.user_name} --anew`"
        )
    return await _give(office, user, purpose)


async def factors(registry: Registry, user_name: str, *, actor: Actor) -> tuple[User, HeldFactors]:
    """A person, and what they have to sign in with.

    Raises writing.Refused when there is no such person, access.Forbidden, StoreUnavailable. D45, D46
    """
    user = await user_named(registry, user_name, actor=actor)
    authorise(actor, "read", Object(kind="credentials", user_id=user.user_id))
    return user, await held_factors.of(registry, user.user_id)


async def _give(office: Office, user: User, purpose: LinkPurpose) -> Given:
    link = await links.make(
        office.registry,
        user,
        purpose,
        actor=office.actor,
        base_url=office.base_url,
        now=office.now,
        new_id=office.new_id,
    )
    return Given(user=user, link=link, purpose=purpose)


def send(mail: Mail, given: Given, *, provider_name: str) -> bool:
    """Send a link to the person it was made for; whether there is an address, and mail. Source: DESIGN, Security"""
    if not mail.works or not given.user.email:
        return False
    purpose = links.PURPOSES[given.purpose]
    letters.link(mail, given.user, given.link, heading=purpose.heading, lead=purpose.lead, provider_name=provider_name)
    return True
