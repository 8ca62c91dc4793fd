"""What people sign in with, as operators see it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from corpid import settings
from corpid.app import open_registry
from corpid.directory.access import OPERATOR
from corpid.flows.administration import inviting

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from corpid.directory.held_factors import HeldFactors
    from corpid.directory.records import User


async def held(user_name: str) -> tuple[User, HeldFactors, ZoneInfo]:
    """A person, what they have, and the time zone of the deployment."""
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        user, has = await inviting.factors(opened.registry, user_name, actor=OPERATOR)
        return user, has, chosen.timezone


def listed(has: HeldFactors, zone: ZoneInfo) -> dict[str, str | tuple[str, ...]]:
    """One line for each factor; moments in the time zone of the deployment."""
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
