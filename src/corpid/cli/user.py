"""`corpid user`: people, their links and factors; tables of many people."""

from __future__ import annotations

import secrets
from datetime import datetime
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads annotations
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from corpid.cli import listing, output, records
from corpid.cli.records import LEVELS, View, list_obstacles, role_data
from corpid.cli.running import on_stores, with_stores
from corpid.engines import Stores, new_id, new_user_id, open_mail
from corpid.flows.account.links import PURPOSES
from corpid.flows.directory import imports, people
from corpid.flows.directory.people import IssuedLink, LinkDependencies, PersonRecords, load_person
from corpid.flows.directory.single_records import add_record
from corpid.flows.operations import erasure
from corpid.rules.authentication.totp import SECRET_BYTES, otpauth_uri, secret_from
from corpid.rules.directory.nodes import SHOWN, locate_problem
from corpid.rules.directory.records import Administrator, Membership, Operator, User
from corpid.rules.directory.roles import RoleRecords, name_entity, sentence
from corpid.rules.directory.sources import channel, in_words
from corpid.rules.limits import HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from zoneinfo import ZoneInfo

    from corpid.flows.directory.lists import Belonging
    from corpid.rules.authentication.records import EmailChange, LinkPurpose, PersonFactors
    from corpid.rules.oauth.consent import Consent


app = records.commands_of("user")

UserName = Annotated[str, typer.Argument(metavar="USER", help="The person's user name.")]
OnlyPrint = Annotated[bool, typer.Option("--print", help="Only show the link; send no e-mail.")]
WithFactors = Annotated[
    bool, typer.Option("--with-factors", help="Create a first password and TOTP secret, and show them once.")
]
_MEMBERS: Final = records.member_options(records.NOUNS["user"], new=True)


class LostFactor(StrEnum):
    """A factor that a person lost."""

    PASSWORD = "password"
    SECOND_FACTOR = "second-factor"


_PURPOSES: Final[Mapping[LostFactor, LinkPurpose]] = {
    LostFactor.PASSWORD: "password",
    LostFactor.SECOND_FACTOR: "second_factor",
}

_UNMISTAKABLE: Final = "abcdefghijkmnpqrstuvwxyz23456789"
_GROUPS: Final = 4
_GROUP_LENGTH: Final = 5

_REPORT_EVERY: Final = 1000
"""people"""


@app.command()
@on_stores
async def show(
    stores: Stores,
    user_name: Annotated[str, typer.Argument(metavar="USER", help="The person's user name.")],
    *,
    limit: Annotated[
        int, typer.Option(help="Show at most this many entities, and this many roles.", min=1, max=1000)
    ] = 50,
    json: listing.AsJson = False,
) -> None:
    """Show one person with their access.

    For each role it says for which entity, until when, and who gave it.
    """
    shown = await load_person(stores.registry, stores.actor, user_name, limit=limit, now=stores.clock())
    view = View(stores.settings, listing.today(stores))
    invited = view.moment(shown.invited_until) if shown.invited_until else ""
    if json:
        output.as_json(_as_data(shown, view, invited))
        return
    user = shown.user
    values = {
        "Name": user.name,
        "E-mail": user.email,
        "New e-mail": _waiting(shown.email_change, view),
        "Identity": " ".join(filter(None, (user.identity_number, user.identity_country))),
        "Account": user.account_type,
        "Identifier": user.user_id,
        "State": listing.state_of(user),
        "Signs in with": "" if user.placeholder else _signs_in(user.user_name, shown.factors, invited),
        "Operator": shown.operator and f"{shown.operator}{_given(_by(shown, Operator, user.key))}",
        "Added by": _by(shown, User, user.key),
        "To be deleted": shown.deletion_requested_at and f"asked for it on {view.moment(shown.deletion_requested_at)}",
    }
    output.members(user.user_name, {name: value for name, value in values.items() if value})
    output.say("")
    for each in (*_sentences(shown, view.today), *(_shares(each, view.chosen.timezone) for each in shown.consents)):
        output.say(each)


def _waiting(change: EmailChange | None, view: View) -> str:
    return f"{change.new_email}, proven by the person, from {view.moment(int(change.effective_at))}" if change else ""


def _sentences(shown: PersonRecords, today: str) -> Iterator[str]:
    name = shown.user.user_name
    for held in shown.memberships.found:
        off = "; ".join(list_obstacles(shown.user, held.membership, held.entity))
        level = LEVELS.get(held.level, "")
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


def _by(shown: PersonRecords, kind: type, key: tuple[str, ...]) -> str:
    """The last writer of a record in words; empty if unknown."""
    return in_words(shown.written_by.get((kind, key), ""), shown.user_names)


def _given(by: str) -> str:
    return f" (given by {by})" if by else ""


def _given_both(shown: PersonRecords, held: Belonging) -> str:
    """The givers of membership and level; one if they are the same."""
    membership = _by(shown, Membership, held.membership.key)
    level = _by(shown, Administrator, held.membership.key) if held.level else membership
    if membership == level:
        return _given(membership)
    parts = (f"membership by {membership}" if membership else "", f"level by {level}" if level else "")
    return f" ({', '.join(filter(None, parts))})"


def _source(shown: PersonRecords, kind: type, key: tuple[str, ...]) -> dict[str, str] | None:
    """The last writer of a record for JSON; None if unknown."""
    actor = shown.written_by.get((kind, key), "")
    return {"source": channel(actor), "actor": actor, "by": in_words(actor, shown.user_names)} if actor else None


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


def _as_data(shown: PersonRecords, view: View, invited: str) -> dict[str, object]:
    has, waiting = shown.factors, shown.email_change
    return {
        **msgspec.structs.asdict(shown.user),
        "factors": {
            "password": has.password, "app": has.app, "passkeys": len(has.passkeys), "recovery_codes": has.codes,
        },
        "invited_until": invited or None,
        "deletion_requested_at": shown.deletion_requested_at or None,
        "email_change": waiting and {"email": waiting.new_email, "effective_at": waiting.effective_at},
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
        "roles": [_role(shown, each, view) for each in shown.roles.found],
        "third_party_roles": [_role(shown, each, view) for each in shown.third_party_roles.found],
        "complete": not (shown.memberships.after or shown.roles.after or shown.third_party_roles.after),
    }  # fmt: skip


def _role(shown: PersonRecords, role: RoleRecords, view: View) -> dict[str, object]:
    return {**role_data(role, view), "given_by": _source(shown, type(role.row), role.row.key)}


def _add(
    user_name: str,
    *,
    entity: list[str] | None,
    foreign: bool,
    with_factors: bool,
    only_print: bool,
    dry_run: bool,
    json: bool,
    **given: Any,  # noqa: ANN401
) -> None:
    members = {**records.read_members(_MEMBERS, given), "memberships": entity or None}
    if foreign:
        members["account_type"] = "foreign"
    if dry_run:
        applied = with_stores(
            lambda stores: add_record(
                stores.registry, stores.passwords, "user", {"user_name": user_name}, members, actor=stores.actor,
                new_user_id=new_user_id, dry_run=True,
            )
        )  # fmt: skip
        listing.report(applied, dry_run=True, json=json)
        return
    if not with_factors:
        issued, sent = _issue_link(
            lambda needed, stores: people.add_invited(
                needed, stores.passwords, user_name, members, new_user_id=new_user_id
            ),
            only_print=only_print,
        )
        if json:
            link = {"url": issued.link.url, "code": issued.link.code, "seconds": PURPOSES[issued.purpose].seconds}
            output.as_json({"user": issued.user, "link": link, "sent": sent})
            return
        _show_link(f"{issued.user.name} is added.", issued, sent=sent)
        return
    password, secret = _new_password(), _new_secret()

    async def added(stores: Stores) -> tuple[User, str]:
        user = await people.add_user(
            stores.registry, stores.passwords, user_name, members, password=password, totp_secret=secret,
            new_user_id=new_user_id, actor=stores.actor,
        )  # fmt: skip
        return user, stores.settings.name

    user, issuer = with_stores(added)
    authenticator = _authenticator(secret, user, issuer)
    if json:
        uri = authenticator["For authenticator apps"]
        output.as_json({"user": user, "password": password, "totp_secret": secret, "otpauth_uri": uri})
        return
    shown = {"User name": user.user_name, "Password": password} | authenticator
    output.members(f"{user.name} is added. This is shown once:", shown)


records.register(
    app, "add", "Add a person, and invite them to set up their sign-in.",
    [
        *records.own_arguments(records.NOUNS["user"]), *(each.parameter for each in _MEMBERS),
        records.option("entity", list[str], "An entity that the person acts for; repeat for several."),
        records.flag("foreign", Annotated[bool, typer.Option("--foreign", help="The same as --account-type foreign.")]),
        records.flag("with_factors", WithFactors), records.flag("only_print", OnlyPrint), records.DRY_RUN, records.JSON,
    ],
    _add,
)  # fmt: skip


def _new_password() -> str:
    groups = ("".join(secrets.choice(_UNMISTAKABLE) for _ in range(_GROUP_LENGTH)) for _ in range(_GROUPS))
    return "-".join(groups)


def _new_secret() -> str:
    return secret_from(secrets.token_bytes(SECRET_BYTES))


def _authenticator(secret: str, user: User, issuer: str) -> dict[str, str]:
    uri = otpauth_uri(secret, account=user.user_name, issuer=issuer)
    return {"TOTP secret": secret, "For authenticator apps": uri}


@app.command("import")
def import_all(
    file: Annotated[
        Path, typer.Argument(help="A table (CSV) whose first line names its columns; - reads standard input.")
    ],
    *,
    entity: Annotated[str, typer.Option(metavar="ID", help="The entity that they act for.")],
    invite: Annotated[
        bool | None,
        typer.Option(
            "--invite/--no-invite", help="Make members who accept an invitation, with or without an e-mail to each."
        ),
    ] = None,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Add the people of a table, who act for one entity.

    The columns are user_name, name, email, language, identity_number, identity_country and account_type; the first two
    are needed. The same table again adds what is missing, and nothing else.

    With --invite or --no-invite no accounts are made: each person becomes a member of the entity by accepting an
    invitation. The columns are then user_name, external_id, name, given_name, family_name and email.
    """
    content, name = output.read_file(file)
    how: dict[str, Any] = {"file": name, "entity_id": entity, "report": _report_progress, "dry_run": dry_run}
    if invite is None:
        imported = with_stores(
            lambda stores: imports.import_people(
                stores.registry, stores.passwords, content, actor=stores.actor, new_user_id=new_user_id, **how
            )
        )
    else:
        imported = with_stores(
            lambda stores: imports.import_members(
                stores.registry, content, send=invite, actor=stores.actor, now=stores.clock(), new_id=new_user_id, **how
            )
        )
    if json:
        output.as_json(imported)
        return
    for remark in imported.remarks[:SHOWN]:
        output.warn(locate_problem(name, remark))
    if len(imported.remarks) > SHOWN:
        output.warn(f"and {len(imported.remarks) - SHOWN:,} more remarks: --json lists them")
    if not imported.added and not imported.memberships:
        output.say(f"Nothing to change: all of the {imported.people:,} people are there and act for {entity}.")
        return
    if invite is not None:
        counts = f"{imported.memberships:,} invited, of {imported.people:,} people in the table"
        without = f"; {len(imported.remarks):,} without an e-mail address" if len(imported.remarks) else ""
        output.say(f"{'Would be' if dry_run else 'Done'}: {counts}{without}.")
        return
    counts = f"{imported.added:,} people and {imported.memberships:,} memberships added, of {imported.people:,} people"
    output.say(f"{'Would be' if dry_run else 'Done'}: {counts} in the table.")


def _report_progress(what: str, done: int, total: int) -> None:
    if total > _REPORT_EVERY and (done % _REPORT_EVERY == 0 or done == total):
        output.line(f"{what.capitalize()}: {done:,} of {total:,} people", error=True)


@app.command()
def invite(
    user_name: UserName,
    *,
    anew: Annotated[
        bool, typer.Option("--anew", help="Remove every factor of the person first, and end their sessions.")
    ] = False,
    only_print: OnlyPrint = False,
) -> None:
    """Invite a person to set up their sign-in by a link.

    The link works for 72 hours. It is shown here, and sent if CorpID sends mail.
    """
    given, sent = _issue_link(lambda needed, _: people.invite_user(needed, user_name, anew=anew), only_print=only_print)
    _show_link(f"{given.user.name} is invited.", given, sent=sent)


@app.command()
def link(
    user_name: UserName,
    *,
    purpose: Annotated[
        LostFactor, typer.Option("--for", help="What the person lost; the other factor is asked for first.")
    ],
    only_print: OnlyPrint = False,
) -> None:
    """Let a person set a new password or second factor.

    The link works for 30 minutes for a password, 24 hours for a second factor.
    """
    for_purpose = _PURPOSES[purpose]
    given, sent = _issue_link(lambda needed, _: people.give_link(needed, user_name, for_purpose), only_print=only_print)
    _show_link(f"{given.user.name} can continue.", given, sent=sent)


def _issue_link(
    issue: Callable[[LinkDependencies, Stores], Awaitable[IssuedLink]], *, only_print: bool
) -> tuple[IssuedLink, bool]:
    """Issue a link and send it, if CorpID sends mail.

    Returns the link, and whether it was sent.
    """

    async def issued(stores: Stores) -> tuple[IssuedLink, bool]:
        needed = LinkDependencies(
            registry=stores.registry, base_url=stores.settings.base_url, new_id=new_id, now=stores.clock(),
            actor=stores.actor,
        )  # fmt: skip
        given = await issue(needed, stores)
        if only_print:
            return given, False
        async with open_mail(stores.settings, clock=stores.clock) as mail:
            return given, people.send_link(mail, given, provider_name=stores.settings.name)

    return with_stores(issued)


def _show_link(done: str, given: IssuedLink, *, sent: bool) -> None:
    """Show a link with its code, lifetime and recipient."""
    seconds = PURPOSES[given.purpose].seconds
    lasts = f"{seconds // HOUR} hours" if seconds >= HOUR else f"{seconds // MINUTE} minutes"
    where = f"The link is on its way to {given.user.email}. It" if sent else "Give them this link. It"
    shown = {"User name": given.user.user_name, "Link": given.link.url, "Code": given.link.code}
    output.members(f"{done} {where} works once, for {lasts}:", shown)


@app.command()
@on_stores
async def factors(stores: Stores, user_name: UserName) -> None:
    """List a person's factors. Nothing secret is shown."""
    user, has = await people.load_factors(stores.registry, user_name, actor=stores.actor)
    zone = stores.settings.timezone
    shown = {
        "Password": "set" if has.password else "none",
        "Authenticator app": "set up" if has.app else "none",
        "Passkeys": tuple(_describe_passkey(each.name, each.created_at, each.used_at, zone) for each in has.passkeys)
        or "none",
        "Recovery codes": f"{has.codes} left" if has.codes else "none",
    }
    output.members(f"{user.name} ({user.user_name}) has:", shown)


def _describe_passkey(name: str, created_at: int, used_at: int, zone: ZoneInfo) -> str:
    used = f"used last on {_day(used_at, zone)}" if used_at else "never used"
    return f"{name}, made on {_day(created_at, zone)}, {used}"


def _day(moment: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(moment, zone).date().isoformat()


@app.command()
def reset_password(user_name: UserName) -> None:
    """Give a person a new password, which is shown once."""
    password = _new_password()
    user = with_stores(
        lambda stores: people.reset_password(stores.registry, stores.passwords, user_name, password, actor=stores.actor)
    )
    output.members(
        "The password has been changed. These are shown once:", {"User name": user.user_name, "Password": password}
    )


@app.command()
@on_stores
async def reset_factors(stores: Stores, user_name: UserName) -> None:
    """Replace a person's second factor with a new TOTP secret.

    It is shown once. Passkeys and recovery codes stop working.
    """
    secret = _new_secret()
    user = await people.reset_factors(stores.registry, user_name, secret, actor=stores.actor)
    shown = {"User name": user.user_name} | _authenticator(secret, user, stores.settings.name)
    output.members(
        "The second factor has been replaced; passkeys and recovery codes have been removed. These are shown once:",
        shown,
    )


@app.command()
def unlock(user_name: UserName) -> None:
    """End the delay that follows wrong passwords and codes."""
    user = with_stores(
        lambda stores: people.unlock_user(
            stores.registry,
            stores.transient,
            stores.settings.base_url,
            user_name,
            actor=stores.actor,
            now=stores.clock(),
        )
    )
    output.say(f"The user {user.user_name} can try again at once.")


@app.command()
@on_stores
async def erase(
    stores: Stores,
    user: Annotated[str, typer.Argument(help="The person: user name or identifier.")],
    *,
    unrequested: Annotated[
        bool, typer.Option("--unrequested", help="Also if the person has not asked for it in their account.")
    ] = False,
) -> None:
    """Erase a person who asked to be deleted. This cannot be undone.

    Removes them with their factors, sessions, consents, memberships and roles, and their names and addresses from the
    audit, whose entries keep their identifier. Run it again if it was interrupted.
    """
    async with open_mail(stores.settings, clock=stores.clock) as mail:
        person = await erasure.identify_person(stores.registry, user)
        erased = await erasure.erase(
            stores.registry, person, actor=stores.actor, now=stores.clock(), mail=mail,
            provider_name=stores.settings.name, unrequested=unrequested,
        )  # fmt: skip
    for remark in erased.remarks:
        output.warn(remark)
    output.say(f"Erased the person {erased.user_id}, with the details of {erased.details:,} entries of the audit.")
