"""Second-factor methods: which a person has, and which are available at a sign-in (D45)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from corpid.rules.authentication import passkeys
from corpid.rules.authentication.person_factors import HeldFactors
from corpid.rules.authentication.records import Credentials
from corpid.rules.authentication.sign_in import Way
from corpid.rules.limits import MAILED_CODE_SECONDS, MAILED_CODES_PER_SIGN_IN

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import Account, Registry
    from corpid.rules.authentication.records import Passkey
    from corpid.rules.directory.records import User


async def held_factors(registry: Registry, user_id: str) -> HeldFactors:
    """The factors of a person; none of somebody who does not exist. Raises StoreUnavailable (D45, D46)."""
    found = await registry.factors.account(user_id)
    return HeldFactors(credentials=Credentials(user_id=user_id), passkeys=(), codes=0) if found is None else found.held


class Mailed(Protocol):
    """What codes are sent by e-mail for: a sign-in, or an enrolment."""

    @property
    def mails(self) -> int:
        """How many were sent."""

    @property
    def mailed_at(self) -> int:
        """When the last of them was, in epoch seconds; 0: there is none."""


class AtSecondFactor(Mailed, Protocol):
    """A sign-in whose password was right."""

    @property
    def way(self) -> Way | None:
        """The way that was chosen, None while none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSecondFactor:
    """The password was right: a second factor is asked for in this way, and these others stand beside it."""

    way: Way
    others: tuple[Way, ...] = ()
    email: str = ""
    """where codes go, if the way is by e-mail"""
    under_way: bool = False
    """whether a code was sent that still works"""
    more: bool = True
    """whether a further one can be sent in this sign-in"""
    passkeys: tuple[Passkey, ...] = ()
    """those that can be shown, if the way is by passkey"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSecondFactor:
    """Somebody whose password was right, as one look at the registry found them, and the ways that they have."""

    account: Account
    ways: tuple[Way, ...]
    shows_passkeys: bool
    """whether passkeys work here"""

    @property
    def user(self) -> User:
        return self.account.user

    @property
    def credentials(self) -> Credentials:
        return self.account.held.credentials

    @property
    def passkeys(self) -> tuple[Passkey, ...]:
        """None where passkeys do not work."""
        return self.account.held.passkeys if self.shows_passkeys else ()


def pending_second_factor(context: RequestContext, account: Account) -> PendingSecondFactor:
    """A person with the ways that they have; no way where nothing goes with the password (D45, D46)."""
    found = available(context, account.user, account.held)
    return PendingSecondFactor(account=account, ways=found, shows_passkeys=Way.PASSKEY in found)


def available(context: RequestContext, user: User, held: HeldFactors) -> tuple[Way, ...]:
    """The ways that this person has; empty where nothing goes with the password (D45, D46)."""
    has = {
        Way.APP: held.app,
        Way.PASSKEY: bool(held.passkeys) and _takes_passkeys(context),
        Way.EMAIL: mails_codes(context, user),
        Way.RECOVERY: held.codes > 0,
    }
    return tuple(way for way in Way if has[way])


def _takes_passkeys(context: RequestContext) -> bool:
    return passkeys.works_at(context.provider.policy.base_url, context.provider.policy.passkey_rp_id)


def mails_codes(context: RequestContext, user: User) -> bool:
    """Whether a code can go to this person by e-mail (D45)."""
    return context.provider.policy.email_codes and context.provider.mail.works and bool(user.email)


def chosen(interaction: AtSecondFactor, person: PendingSecondFactor) -> Way:
    """The way that an interaction is at, of somebody who has any: the one that was chosen, as long as it is there (D45)."""
    return next((way for way in person.ways if way is interaction.way), person.ways[0])


def under_way(mailed: Mailed, *, now: float) -> bool:
    """Whether a code was sent by e-mail that still works (D45)."""
    return bool(mailed.mailed_at) and now < mailed.mailed_at + MAILED_CODE_SECONDS


def asked(interaction: AtSecondFactor, person: PendingSecondFactor, *, now: float) -> AskSecondFactor:
    """What the page of the second factor asks of somebody who has a way (D45)."""
    way, sent = chosen(interaction, person), under_way(interaction, now=now)
    more = interaction.mails < MAILED_CODES_PER_SIGN_IN
    lead_on = (other for other in person.ways if other is not Way.EMAIL or sent or more)
    return AskSecondFactor(
        way=way,
        others=tuple(other for other in lead_on if other is not way),
        email=person.user.email,
        under_way=sent,
        more=more,
        passkeys=person.passkeys if way is Way.PASSKEY else (),
    )
