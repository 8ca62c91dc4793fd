"""Links that operators give to people."""

from __future__ import annotations

from contextlib import asynccontextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import settings
from corpid.app import new_id, new_user_id, open_registry
from corpid.cli import output
from corpid.directory.access import OPERATOR
from corpid.engines import open_mail
from corpid.flows.administration import inviting
from corpid.flows.administration.inviting import Office
from corpid.flows.links import PURPOSES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from corpid.app import Stores
    from corpid.flows.administration.inviting import Given
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
        return inviting.send(mail, given, provider_name=chosen.name)


async def add(user_name: str, members: Mapping[str, object], *, only_print: bool) -> tuple[Given, bool]:
    """Add a person without factors and invite them; the link, and whether a letter was posted."""
    async with _office() as (chosen, opened, office):
        given = await inviting.add_invited(office, opened.passwords, user_name, members, new_user_id=new_user_id)
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


def tell(done: str, given: Given, *, sent: bool) -> None:
    """Show a link, its code, how long it works, and where it went."""
    seconds = PURPOSES[given.purpose].seconds
    lasts = f"{seconds // _HOUR} hours" if seconds >= _HOUR else f"{seconds // _MINUTE} minutes"
    where = f"The link is on its way to {given.user.email}. It" if sent else "Give them this link. It"
    shown = {"User name": given.user.user_name, "Link": given.link.url, "Code": given.link.code}
    output.members(f"{done} {where} works once, for {lasts}:", shown)
