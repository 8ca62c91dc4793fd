"""Links that operators give to people, and what people sign in with."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import settings
from corpid.app import new_id, open_registry
from corpid.cli import output
from corpid.directory.access import OPERATOR
from corpid.engines import open_mail
from corpid.flows.administration import inviting
from corpid.flows.administration.inviting import Office
from corpid.flows.links import LIFETIMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from zoneinfo import ZoneInfo

    from corpid.app import Stores
    from corpid.flows.administration.inviting import Given, Held
    from corpid.ports import LinkPurpose
    from corpid.settings import Settings

OnlyPrint = Annotated[bool, typer.Option("--print", help="Only show the link; send no mail.")]
_HOUR: Final = 3600
_MINUTE: Final = 60


class Purpose(StrEnum):
    """What a link renews."""

    PASSWORD = "password"
    SECOND_FACTOR = "second-factor"


_PURPOSES: Final[Mapping[Purpose, LinkPurpose]] = {
    Purpose.PASSWORD: "password",
    Purpose.SECOND_FACTOR: "second_factor",
}


@asynccontextmanager
async def _office() -> AsyncIterator[tuple[Settings, Stores, Office]]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        office = Office(
            registry=opened.registry, base_url=chosen.base_url, new_id=new_id, now=opened.clock(), actor=OPERATOR
        )
        yield chosen, opened, office


async def _sent(chosen: Settings, opened: Stores, given: Given, *, only_print: bool) -> bool:
    if only_print:
        return False
    async with open_mail(chosen, clock=opened.clock) as mail:
        return inviting.send(mail, given, provider=chosen.name)


async def add(user_name: str, members: Mapping[str, object], *, only_print: bool) -> tuple[Given, bool]:
    """Add a person without factors and invite them; the link, and whether a letter was posted."""
    async with _office() as (chosen, opened, office):
        given = await inviting.add_invited(
            office, opened.passwords, user_name, members, new_user_id=lambda: str(uuid.uuid4())
        )
        return given, await _sent(chosen, opened, given, only_print=only_print)


async def invite(user_name: str, *, anew: bool, only_print: bool) -> tuple[Given, bool]:
    """Invite a person; the link, and whether a letter was posted."""
    async with _office() as (chosen, opened, office):
        given = await inviting.invite(office, user_name, anew=anew)
        return given, await _sent(chosen, opened, given, only_print=only_print)


async def give(user_name: str, purpose: Purpose, *, only_print: bool) -> tuple[Given, bool]:
    """Make a link for a person; the link, and whether a letter was posted."""
    async with _office() as (chosen, opened, office):
        given = await inviting.give_link(office, user_name, _PURPOSES[purpose])
        return given, await _sent(chosen, opened, given, only_print=only_print)


async def held(user_name: str) -> tuple[Held, ZoneInfo]:
    """What a person has, and the time zone of the deployment."""
    async with _office() as (chosen, opened, _):
        return await inviting.factors(opened.registry, user_name, actor=OPERATOR), chosen.timezone


def tell(done: str, given: Given, *, sent: bool) -> None:
    """Show a link, how long it works, and where it went."""
    seconds = LIFETIMES[given.purpose]
    lasts = f"{seconds // _HOUR} hours" if seconds >= _HOUR else f"{seconds // _MINUTE} minutes"
    where = f"The link is on its way to {given.user.email}. It" if sent else "Give them this link. It"
    shown = {"User name": given.user.user_name, "Link": given.url}
    output.members(f"{done} {where} works once, for {lasts}:", shown)


def listed(has: Held, zone: ZoneInfo) -> dict[str, str]:
    """One line for each factor; moments in the time zone of the deployment."""
    keys = "\n".join(_passkey(each.name, each.created_at, each.used_at, zone) for each in has.passkeys)
    return {
        "Password": "set" if has.password else "none",
        "Authenticator app": "set up" if has.app else "none",
        "Passkeys": keys or "none",
        "Recovery codes": f"{has.recovery_codes} left" if has.recovery_codes else "none",
    }


def _passkey(name: str, created_at: int, used_at: int, zone: ZoneInfo) -> str:
    used = f"used last on {_day(used_at, zone)}" if used_at else "never used"
    return f"{name}, made on {_day(created_at, zone)}, {used}"


def _day(moment: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(moment, zone).date().isoformat()
