"""The ways in which a person can show a second factor beside their password (D45)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from corpid.protocol.limits import MAILED_CODE_SECONDS, MAILED_CODES_PER_SIGN_IN

if TYPE_CHECKING:
    from corpid.directory.records import Credentials, User
    from corpid.flows.interactions import Interaction
    from corpid.flows.provider import Provider


class Way(Enum):
    """What is asked for, the most usual first."""

    APP = "app"
    EMAIL = "email"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskCode:
    """The password was right: a code is asked for in this way, and these others stand beside it."""

    way: Way
    others: tuple[Way, ...] = ()
    email: str = ""
    """where codes go, if the way is by e-mail"""
    under_way: bool = False
    """whether a code was sent that still works"""
    more: bool = True
    """whether a further one can be sent in this sign-in"""


async def of(provider: Provider, user: User, credentials: Credentials) -> tuple[Way, ...]:
    """The ways that this person has; empty where only a passkey, or nothing, goes with the password (D45)."""
    has = {
        Way.APP: credentials.totp_secret is not None,
        Way.EMAIL: mails_codes(provider, user),
        Way.RECOVERY: await provider.registry.factors.recovery_codes_left(user.user_id) > 0,
    }
    return tuple(way for way in Way if has[way])


def mails_codes(provider: Provider, user: User) -> bool:
    """Whether a code can go to this person by e-mail (D45)."""
    return provider.policy.email_codes and provider.mail.works and bool(user.email)


def chosen(interaction: Interaction, ways: tuple[Way, ...]) -> Way:
    """The way of these that an interaction is at: the one that was chosen, as long as it is there (D45)."""
    return next((way for way in ways if way.value == interaction.way), ways[0] if ways else Way.APP)


def under_way(interaction: Interaction, *, now: float) -> bool:
    """Whether a code was sent by e-mail that still works (D45)."""
    return bool(interaction.mailed_at) and now < interaction.mailed_at + MAILED_CODE_SECONDS


async def asked(provider: Provider, interaction: Interaction, *, now: float) -> AskCode:
    """What the page of the second factor asks for (D45)."""
    user = await provider.registry.directory.user(interaction.user_id)
    credentials = await provider.registry.directory.credentials(interaction.user_id)
    if user is None or credentials is None:
        return AskCode(way=Way.APP)
    ways = await of(provider, user, credentials)
    way, sent = chosen(interaction, ways), under_way(interaction, now=now)
    more = interaction.mails < MAILED_CODES_PER_SIGN_IN
    lead_on = (other for other in ways if other is not Way.EMAIL or sent or more)
    return AskCode(
        way=way,
        others=tuple(other for other in lead_on if other is not way),
        email=user.email,
        under_way=sent,
        more=more,
    )
