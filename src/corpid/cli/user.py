"""`corpid user`: people, their links and factors."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.cli.user_import import import_all
from corpid.cli.user_lists import show, show_all
from corpid.engines import new_id, new_user_id, open_mail, open_registry
from corpid.flows.account.links import PURPOSES
from corpid.flows.directory import people
from corpid.flows.directory.people import LinkDependencies
from corpid.flows.operations import erasure
from corpid.rules.authentication.totp import SECRET_BYTES, otpauth_uri, secret_from
from corpid.rules.limits import HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from zoneinfo import ZoneInfo

    from corpid.engines import Stores
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.directory.people import IssuedLink
    from corpid.flows.operations.erasure import ErasureResult
    from corpid.rules.authentication.records import LinkPurpose, PersonFactors
    from corpid.rules.directory.records import User
    from corpid.settings import Settings


async def held_factors(user_name: str) -> tuple[User, PersonFactors, ZoneInfo]:
    """A person, their factors, and the deployment's time zone."""
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        user, has = await people.factors(opened.registry, user_name, actor=opened.actor)
        return user, has, chosen.timezone


def listed(has: PersonFactors, zone: ZoneInfo) -> dict[str, str | tuple[str, ...]]:
    """One line for each factor.

    Moments in the time zone of the deployment.
    """
    keys = tuple(_passkey(each.name, each.created_at, each.used_at, zone) for each in has.passkeys)
    return {
        "Password": "set" if has.password else "none",
        "Authenticator app": "set up" if has.app else "none",
        "Passkeys": keys or "none",
        "Recovery codes": f"{has.codes} left" if has.codes else "none",
    }


def _passkey(name: str, created_at: int, used_at: int, zone: ZoneInfo) -> str:
    used = f"used last on {_day(used_at, zone)}" if used_at else "never used"
    return f"{name}, made on {_day(created_at, zone)}, {used}"


def _day(moment: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(moment, zone).date().isoformat()


OnlyPrint = Annotated[bool, typer.Option("--print", help="Only show the link; send no e-mail.")]


class Purpose(StrEnum):
    """The purpose of a link."""

    PASSWORD = "password"
    SECOND_FACTOR = "second-factor"


_PURPOSES: Final[Mapping[Purpose, LinkPurpose]] = {
    Purpose.PASSWORD: "password",
    Purpose.SECOND_FACTOR: "second_factor",
}


@asynccontextmanager
async def _office() -> AsyncIterator[tuple[Settings, Stores, LinkDependencies]]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        office = LinkDependencies(
            registry=opened.registry, base_url=chosen.base_url, new_id=new_id, now=opened.clock(), actor=opened.actor
        )
        yield chosen, opened, office


async def _sent(chosen: Settings, opened: Stores, given: IssuedLink, *, only_print: bool) -> bool:
    if only_print:
        return False
    async with open_mail(chosen, clock=opened.clock) as mail:
        return people.send(mail, given, provider_name=chosen.name)


async def add_with_link(user_name: str, members: Mapping[str, object], *, only_print: bool) -> tuple[IssuedLink, bool]:
    """Add a person without factors and invite them.

    The link, and whether an e-mail was sent.
    """
    async with _office() as (chosen, opened, office):
        given = await people.add_invited(office, opened.passwords, user_name, members, new_user_id=new_user_id)
        return given, await _sent(chosen, opened, given, only_print=only_print)


async def print_invitation(user_name: str, *, anew: bool, only_print: bool) -> tuple[IssuedLink, bool]:
    """Invite a person; returns the link and whether it was mailed."""
    async with _office() as (chosen, opened, office):
        given = await people.invite(office, user_name, anew=anew)
        return given, await _sent(chosen, opened, given, only_print=only_print)


async def give(user_name: str, purpose: Purpose, *, only_print: bool) -> tuple[IssuedLink, bool]:
    """Make a link for a person.

    The link, and whether an e-mail was sent.
    """
    async with _office() as (chosen, opened, office):
        given = await people.give_link(office, user_name, _PURPOSES[purpose])
        return given, await _sent(chosen, opened, given, only_print=only_print)


def show_link(done: str, given: IssuedLink, *, sent: bool) -> None:
    """Show a link with its code, lifetime and recipient."""
    seconds = PURPOSES[given.purpose].seconds
    lasts = f"{seconds // HOUR} hours" if seconds >= HOUR else f"{seconds // MINUTE} minutes"
    where = f"The link is on its way to {given.user.email}. It" if sent else "Give them this link. It"
    shown = {"User name": given.user.user_name, "Link": given.link.url, "Code": given.link.code}
    output.members(f"{done} {where} works once, for {lasts}:", shown)


app = typer.Typer(no_args_is_help=True)
app.command("list")(show_all)
app.command("import")(import_all)
app.command()(show)

UserName = Annotated[str, typer.Argument(help="The person's user name.")]

_UNMISTAKABLE: Final = "abcdefghijkmnpqrstuvwxyz23456789"
_GROUPS: Final = 4
_GROUP_LENGTH: Final = 5


@app.command()
def add(
    user_name: UserName,
    *,
    name: Annotated[str, typer.Option(help="The person's full name.")],
    entity: Annotated[list[str] | None, typer.Option(help="An entity the person acts for; repeat.")] = None,
    email: Annotated[str | None, typer.Option(help="E-mail address.")] = None,
    language: Annotated[str | None, typer.Option(help="Language of the pages, such as en.")] = None,
    identity_number: Annotated[str | None, typer.Option(help="Identity number.")] = None,
    identity_country: Annotated[str | None, typer.Option(help="Country that issued it, two letters.")] = None,
    foreign: Annotated[bool, typer.Option("--foreign", help="A foreign account.")] = False,
    with_factors: Annotated[
        bool, typer.Option("--with-factors", help="Make a first password and TOTP secret, and show them once.")
    ] = False,
    only_print: OnlyPrint = False,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Add a person, and invite them to set up their sign-in."""
    members: dict[str, object] = {
        "name": name,
        "memberships": entity,
        "email": email,
        "language": language,
        "identity_number": identity_number,
        "identity_country": identity_country,
        "account_type": "foreign" if foreign else None,
    }
    if dry_run:
        listing.report(run(_considered(user_name, members)), dry_run=True, json=json)
        return
    if not with_factors:
        given, sent = run(add_with_link(user_name, members, only_print=only_print))
        if json:
            link = {"url": given.link.url, "code": given.link.code, "seconds": PURPOSES[given.purpose].seconds}
            output.as_json({"user": given.user, "link": link, "sent": sent})
            return
        show_link(f"{given.user.name} is added.", given, sent=sent)
        return
    password, secret = _new_password(), _new_secret()
    user, issuer = run(_add(user_name, members, password, secret))
    authenticator = _authenticator(secret, user, issuer)
    if json:
        uri = authenticator["For authenticator apps"]
        output.as_json({"user": user, "password": password, "totp_secret": secret, "otpauth_uri": uri})
        return
    shown = {"User name": user.user_name, "Password": password} | authenticator
    output.members(f"{user.name} is added. This is shown once:", shown)


@app.command()
def invite(
    user_name: UserName,
    *,
    anew: Annotated[
        bool, typer.Option("--anew", help="Remove every factor of the person first, and end their sessions.")
    ] = False,
    only_print: OnlyPrint = False,
) -> None:
    """Let a person set up their sign-in, by a link.

    The link works for 72 hours. It is shown here, and sent if CorpID sends mail.
    """
    given, sent = run(print_invitation(user_name, anew=anew, only_print=only_print))
    show_link(f"{given.user.name} is invited.", given, sent=sent)


@app.command()
def link(
    user_name: UserName,
    *,
    purpose: Annotated[
        Purpose, typer.Option("--for", help="What the person lost; the other factor is asked for first.")
    ],
    only_print: OnlyPrint = False,
) -> None:
    """Let a person set a new password or second factor.

    The link works for 30 minutes for a password, 24 hours for a second factor.
    """
    given, sent = run(give(user_name, purpose, only_print=only_print))
    show_link(f"{given.user.name} can continue.", given, sent=sent)


@app.command()
def factors(user_name: UserName) -> None:
    """List a person's factors. Nothing secret is shown."""
    user, held, zone = run(held_factors(user_name))
    output.members(f"{user.name} ({user.user_name}) has:", listed(held, zone))


@app.command()
def reset_password(user_name: UserName) -> None:
    """Give a person a new password, which is shown once."""
    password = _new_password()
    user = run(_reset_password(user_name, password))
    output.members(
        "The password has been changed. These are shown once:", {"User name": user.user_name, "Password": password}
    )


@app.command()
def reset_factors(user_name: UserName) -> None:
    """Replace a person's second factor by a new TOTP secret.

    It is shown once. Passkeys and recovery codes end.
    """
    secret = _new_secret()
    user, issuer = run(_reset_factors(user_name, secret))
    shown = {"User name": user.user_name} | _authenticator(secret, user, issuer)
    output.members(
        "The second factor has been replaced; passkeys and recovery codes have been removed. These are shown once:",
        shown,
    )


@app.command()
def disable(user_name: UserName, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Disable a person: no sign-in, and tokens end within 5 seconds."""
    _switch(user_name, enabled=False, dry_run=dry_run, json=json)


@app.command()
def enable(user_name: UserName, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Enable a person again."""
    _switch(user_name, enabled=True, dry_run=dry_run, json=json)


def _switch(user_name: str, *, enabled: bool, dry_run: bool, json: bool) -> None:
    applied = run(_switched(user_name, enabled=enabled, dry_run=dry_run))
    listing.report(applied, dry_run=dry_run, json=json, done=listing.state(enabled=enabled))


@app.command()
def unlock(user_name: UserName) -> None:
    """End the delay that follows wrong passwords and codes."""
    user = run(_unlock(user_name))
    output.say(f"The user {user.user_name} can try again at once.")


@app.command()
def erase(
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
    erased = run(_erase(user, unrequested=unrequested))
    for remark in erased.remarks:
        output.warn(remark)
    output.say(f"Erased the person {erased.user_id}, with the details of {erased.details:,} entries of the audit.")


def _new_password() -> str:
    groups = ("".join(secrets.choice(_UNMISTAKABLE) for _ in range(_GROUP_LENGTH)) for _ in range(_GROUPS))
    return "-".join(groups)


def _new_secret() -> str:
    return secret_from(secrets.token_bytes(SECRET_BYTES))


def _authenticator(secret: str, user: User, issuer: str) -> dict[str, str]:
    uri = otpauth_uri(secret, account=user.user_name, issuer=issuer)
    return {"TOTP secret": secret, "For authenticator apps": uri}


async def _add(user_name: str, members: dict[str, object], password: str, secret: str) -> tuple[User, str]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        user = await people.add_user(
            opened.registry,
            opened.passwords,
            user_name,
            members,
            password=password,
            totp_secret=secret,
            new_user_id=new_user_id,
            actor=opened.actor,
        )
    return user, chosen.name


async def _erase(user: str, *, unrequested: bool) -> ErasureResult:
    chosen = settings.load()
    async with open_registry(chosen) as opened, open_mail(chosen, clock=opened.clock) as mail:
        return await erasure.erase(
            opened.registry,
            opened.erase,
            await erasure.identifier(opened.registry, user),
            actor=opened.actor,
            now=opened.clock(),
            mail=mail,
            provider_name=chosen.name,
            unrequested=unrequested,
        )


async def _reset_password(user_name: str, password: str) -> User:
    async with open_registry(settings.load()) as opened:
        return await people.reset_password(opened.registry, opened.passwords, user_name, password, actor=opened.actor)


async def _reset_factors(user_name: str, secret: str) -> tuple[User, str]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        return await people.reset_factors(opened.registry, user_name, secret, actor=opened.actor), chosen.name


async def _considered(user_name: str, members: dict[str, object]) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await people.considered_addition(
            opened.registry, opened.passwords, user_name, members, new_user_id=new_user_id, actor=opened.actor
        )


async def _switched(user_name: str, *, enabled: bool, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await people.switch_user(
            opened.registry, user_name, enabled=enabled, actor=opened.actor, dry_run=dry_run
        )


async def _unlock(user_name: str) -> User:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        return await people.unlock_user(
            opened.registry,
            opened.transient,
            chosen.base_url,
            user_name,
            actor=opened.actor,
            now=opened.clock(),
        )
