"""`corpid user list` and `corpid user show`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.role import as_data
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import deletion_requests, lists
from corpid.flows.directory.person import person
from corpid.rules.directory.effect import name_entity, sentence
from corpid.rules.directory.records import Administrator, Membership, Operator, User
from corpid.rules.directory.sources import channel, in_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from corpid.flows.directory.lists import Belonging, EntityMember, ListPage
    from corpid.flows.directory.person import Person
    from corpid.rules.authentication.records import EmailChange, PersonFactors
    from corpid.rules.directory.effect import Role
    from corpid.rules.oauth.consent import Consent

_LEVELS: Final = {"owner": "owner", "administrator": "administrator", "sub_administrator": "sub-administrator"}


def show_all(
    *,
    entity: Annotated[str, typer.Option(metavar="ID", help="Only the people of this entity.")] = "",
    search: Annotated[str, typer.Option(help="Only user names that begin with this.")] = "",
    name: Annotated[
        str, typer.Option(help="Only names that begin with this, sorted by name; without --entity and --search.")
    ] = "",
    deletion_requested: Annotated[
        bool, typer.Option("--deletion-requested", help="Only people who asked to be deleted, by identifier.")
    ] = False,
    limit: listing.Limit = listing.DEFAULT,
    after: listing.After = "",
    json: listing.AsJson = False,
) -> None:
    """List people, by user name."""
    if deletion_requested:
        if name or entity or search:
            output.fail("--deletion-requested cannot be combined with other filters: leave them out")
        _show_requests(after, limit, json=json)
        return
    if name and (entity or search):
        output.fail("--name cannot be combined with --entity or --search: leave them out")
    if entity:
        members = run(_members(entity, search, after, limit))
        if json:
            output.as_json({"users": [_member_data(each) for each in members.found], "after": members.after})
            return
        headings = ("User", "Name", "Level", "State")
        listing.show(
            f"People of {entity}", headings, members, _member, "user list", limit=limit, entity=entity, search=search
        )
        return
    people = run(_people(search, name, after, limit))
    if json:
        output.as_json({"users": people.found, "after": people.after})
        return
    listing.show(
        "People",
        ("User", "Name", "E-mail", "State"),
        people,
        _person,
        "user list",
        limit=limit,
        search=search,
        name=name,
    )


def _show_requests(after: str, limit: int, *, json: bool) -> None:
    found, zone = run(_requests(after, limit))
    if json:
        users = [
            {**msgspec.structs.asdict(each.user), "deletion_requested_at": each.requested_at} for each in found.found
        ]
        output.as_json({"users": users, "after": found.after})
        return
    headings = ("User", "Name", "E-mail", "Asked on")
    # The option has no value, so it goes with the command that leads on.
    listing.show(
        "People who asked to be deleted",
        headings,
        found,
        lambda each: (each.user.user_name, each.user.name, each.user.email, _moment(each.requested_at, zone)),
        "user list --deletion-requested",
        limit=limit,
    )


def _moment(at: int, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M} ({zone})"


def show(
    user_name: Annotated[str, typer.Argument(metavar="USER", help="The person's user name.")],
    *,
    limit: Annotated[
        int, typer.Option(help="Show at most this many entities, and this many roles.", min=1, max=1000)
    ] = 50,
    json: listing.AsJson = False,
) -> None:
    """Show one person, and what they may do, for whom, until when.

    Also who gave it.
    """
    shown, today, invited, zone = run(_one(user_name, limit))
    if json:
        output.as_json(_as_data(shown, today, invited))
        return
    user = shown.user
    values = {
        "Name": user.name,
        "E-mail": user.email,
        "New e-mail": _waiting(shown.email_change, zone),
        "Identity": " ".join(filter(None, (user.identity_number, user.identity_country))),
        "Account": user.account_type,
        "Identifier": user.user_id,
        "State": listing.state_of(user),
        "Signs in with": "" if user.placeholder else _signs_in(user.user_name, shown.factors, invited),
        "Operator": shown.operator and f"{shown.operator}{_given(_by(shown, Operator, user.key))}",
        "Added by": _by(shown, User, user.key),
        "To be deleted": shown.deletion_requested_at
        and f"asked for it on {_moment(shown.deletion_requested_at, zone)}",
    }
    output.members(user.user_name, {name: value for name, value in values.items() if value})
    output.say("")
    for each in (*_sentences(shown, today), *(_shares(each, zone) for each in shown.consents)):
        output.say(each)


def _waiting(change: EmailChange | None, zone: ZoneInfo) -> str:
    return f"{change.new_email}, proven by the person, from {_moment(int(change.effective_at), zone)}" if change else ""


def _sentences(shown: Person, today: str) -> Iterator[str]:
    name = shown.user.user_name
    for held in shown.memberships.found:
        off = _off(shown.user, held)
        level = _LEVELS.get(held.level, "")
        article = "an" if level[:1] in {"o", "a"} else "a"
        at = f", {article} {level} of it" if level else ""
        where = _services(held)
        why = f": {off}" if off else ""
        yield f"{'Cannot act' if off else 'Acts'} for {name_entity(held.entity)}{at}{where}{why}{_given_both(shown, held)}."
    if shown.memberships.after:
        yield f"Acts for more entities: `corpid entity list --user {name}` pages through them."
    if not shown.memberships.found:
        yield "Acts for no entity."
    for role in (*shown.roles.found, *shown.third_party_roles.found):
        yield sentence(role, today, _by(shown, type(role.row), role.row.key))
    if shown.roles.after:
        yield f"Has more roles: `corpid role list --user {name}` pages through them."
    if shown.third_party_roles.after:
        yield f"Has more roles for other entities: `corpid third-party list --user {name}` pages through them."
    if not shown.roles.found and not shown.third_party_roles.found:
        yield "Has no role at a service."


def _shares(consent: Consent, zone: ZoneInfo) -> str:
    since, until = (f"{datetime.fromtimestamp(at, zone):%Y-%m-%d}" for at in (consent.given_at, consent.expires_at))
    what = " ".join(consent.scopes)
    return (
        f"Agreed that {consent.client_id} receives, for {consent.entity_id}, since {since} and until {until}: {what}."
    )


def _by(shown: Person, kind: type, key: tuple[str, ...]) -> str:
    """The last writer of a record in words; empty if unknown."""
    return in_words(shown.written_by.get((kind, key), ""), shown.user_names)


def _given(by: str) -> str:
    return f" (given by {by})" if by else ""


def _given_both(shown: Person, held: Belonging) -> str:
    """The givers of membership and level; one if they are the same."""
    membership = _by(shown, Membership, held.membership.key)
    level = _by(shown, Administrator, held.membership.key) if held.level else membership
    if membership == level:
        return _given(membership)
    parts = (f"membership by {membership}" if membership else "", f"level by {level}" if level else "")
    return f" ({', '.join(filter(None, parts))})"


def _source(shown: Person, kind: type, key: tuple[str, ...]) -> dict[str, str] | None:
    """The last writer of a record for JSON; None if unknown."""
    actor = shown.written_by.get((kind, key), "")
    return {"source": channel(actor), "actor": actor, "by": in_words(actor, shown.user_names)} if actor else None


def _off(user: User, held: Belonging) -> str:
    reasons = (
        "the invitation has not been accepted"
        if held.membership.invited
        else ""
        if user.enabled
        else "the person is disabled",
        "" if held.membership.enabled else "the membership is disabled",
        "" if held.entity.enabled else "the entity is disabled",
    )
    return "; ".join(filter(None, reasons))


def _services(held: Belonging) -> str:
    if held.level != "sub_administrator":
        return ""
    if held.services == "all":
        return " (every service)"
    return f" ({', '.join(held.services)})" if held.services else " (no service)"


def _signs_in(user_name: str, has: PersonFactors, invited: str) -> str:
    parts = (
        "a password" if has.password else "",
        "an authenticator app" if has.app else "",
        f"{len(has.passkeys)} passkey{'s' if len(has.passkeys) > 1 else ''}" if has.passkeys else "",
        f"{has.codes} recovery codes" if has.codes else "",
    )
    nothing = f"invited until {invited}" if invited else f"`corpid user invite {user_name}` makes a link"
    return ", ".join(filter(None, parts)) or f"nothing yet: {nothing}"


def _as_data(shown: Person, today: str, invited: str) -> dict[str, object]:
    has = shown.factors
    return {
        **msgspec.structs.asdict(shown.user),
        "factors": {
            "password": has.password, "app": has.app, "passkeys": len(has.passkeys), "recovery_codes": has.codes,
        },
        "invited_until": invited or None,
        "deletion_requested_at": shown.deletion_requested_at or None,
        "email_change": _email_change(shown.email_change),
        "operator": shown.operator or None,
        "memberships": [
            {
                "entity": held.entity.entity_id,
                "name": held.entity.name,
                "enabled": held.membership.enabled and held.entity.enabled,
                "level": held.level or None,
                "given_by": _source(shown, Membership, held.membership.key),
                "level_given_by": _source(shown, Administrator, held.membership.key),
            }
            for held in shown.memberships.found
        ],
        "consents": [
            {
                "client": each.client_id, "entity": each.entity_id, "issuer": each.issuer_id, "scopes": each.scopes,
                "since": each.given_at, "until": each.expires_at,
            }
            for each in shown.consents
        ],
        "roles": [_role(shown, each, today) for each in shown.roles.found],
        "third_party_roles": [_role(shown, each, today) for each in shown.third_party_roles.found],
        "complete": not (shown.memberships.after or shown.roles.after or shown.third_party_roles.after),
    }  # fmt: skip


def _email_change(waiting: EmailChange | None) -> dict[str, object] | None:
    return {"email": waiting.new_email, "effective_at": waiting.effective_at} if waiting else None


def _role(shown: Person, role: Role, today: str) -> dict[str, object]:
    return {**as_data(role, today), "given_by": _source(shown, type(role.row), role.row.key)}


def _person(user: User) -> tuple[str, ...]:
    return user.user_name, user.name, user.email, listing.state_of(user)


def _member(member: EntityMember) -> tuple[str, ...]:
    user = member.user
    disabled = "membership disabled" if user.enabled and not member.membership.enabled else ""
    return user.user_name, user.name, _LEVELS.get(member.level, ""), disabled or listing.state_of(user)


def _member_data(member: EntityMember) -> dict[str, object]:
    return {
        **msgspec.structs.asdict(member.user),
        "membership_enabled": member.membership.enabled,
        "level": member.level or None,
    }


async def _people(search: str, name: str, after: str, limit: int) -> ListPage[User]:
    async with open_registry(settings.load()) as opened:
        if name:
            return await lists.people_by_name(opened.registry, opened.actor, name=name, after=after, limit=limit)
        return await lists.people(opened.registry, opened.actor, search=search, after=after, limit=limit)


async def _members(entity: str, search: str, after: str, limit: int) -> ListPage[EntityMember]:
    async with open_registry(settings.load()) as opened:
        return await lists.members(opened.registry, opened.actor, entity, search=search, after=after, limit=limit)


async def _requests(after: str, limit: int) -> tuple[ListPage[deletion_requests.PendingDeletion], ZoneInfo]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        return await deletion_requests.requests(
            opened.registry, opened.actor, after=after, limit=limit
        ), chosen.timezone


async def _one(user_name: str, limit: int) -> tuple[Person, str, str, ZoneInfo]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        found = await person(opened.registry, opened.actor, user_name, limit=limit, now=opened.clock())
        invited = _moment(found.invited_until, chosen.timezone) if found.invited_until else ""
        return found, listing.today(chosen, opened), invited, chosen.timezone
