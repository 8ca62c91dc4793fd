"""What a person signs in with, as they look after it themselves (D44, D45, D46).

Each change is one conditional write, on a page that a fresh sign-in has opened; the person is told by letter, and
where a factor was removed or replaced every other session of theirs ends with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.directory.access import Object, Person, authorise
from corpid.directory.password_rules import PasswordRefused
from corpid.flows import held_factors, letters, password_checks, ways
from corpid.flows.account import openings, visits
from corpid.flows.sign_in import Rejected
from corpid.ports import FactorChange
from corpid.protocol.totp import STEP_SECONDS
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.directory.held_factors import HeldFactors
    from corpid.flows.account.visits import AccountVisit
    from corpid.flows.caller import Caller
    from corpid.flows.letters import Notice
    from corpid.flows.provider import Provider

MEANWHILE: Final = phrase("Your sign-in was changed meanwhile, on another page. Look at it again.")


async def of(provider: Provider, visit: AccountVisit) -> HeldFactors:
    """The factors of the person who sits here (D44, D45, D46)."""
    return await held_factors.of(provider.registry, visit.user.user_id)


def go_with_password(provider: Provider, visit: AccountVisit, factors: HeldFactors) -> bool:
    """Whether there is anything that a password can be used with, whether or not there is one (D45)."""
    return bool(ways.of(provider, visit.user, factors))


def need_passkey(provider: Provider, visit: AccountVisit, factors: HeldFactors) -> bool:
    """Whether a person with these gets in, for good, by a passkey only (D45)."""
    return not factors.can_sign_in_without_passkeys(mailed=ways.mails_codes(provider, visit.user))


def app_used_at(factors: HeldFactors) -> int:
    """When the code of the app was shown that was taken last, in epoch seconds; 0: never (RFC 6238 §4)."""
    return factors.credentials.totp_last_step * STEP_SECONDS if factors.app else 0


async def change_password(provider: Provider, caller: Caller, visit: AccountVisit, *, password: str) -> None:
    """A new password. Raises Rejected, Throttled, TooOld, PasswordsBusy (D44, D47)."""
    attempt = await openings.admit(provider, caller, visit)
    before = (await of(provider, visit)).credentials
    try:
        password_hash = await password_checks.chosen(provider, caller, attempt, visit.user, password)
    except PasswordRefused as refusal:
        raise Rejected(refusal.sentence) from None
    after = before.with_password(password_hash, "user")
    change = FactorChange(before=before, after=after, end_sessions_but=visit.session.session_id)
    await write(provider, caller, visit, change, "factors.password", letters.PASSWORD_CHANGED)


async def write(
    provider: Provider, caller: Caller, visit: AccountVisit, change: FactorChange, action: str, notice: Notice
) -> None:
    """Write a change, close the page that it was made on, and tell the person. Raises Rejected and TooOld.

    A session that has ended since the page was sent writes nothing. Source: D30, D45
    """
    openings.require(visit, now=caller.now)
    authorise(Person(user_id=visit.user.user_id), "write", Object(kind="credentials", user_id=change.after.user_id))
    change = msgspec.structs.replace(change, session_id=visit.session.session_id)
    if not await provider.registry.factors.change(change, visits.event(caller, visit, action)):
        raise Rejected(MEANWHILE)
    await openings.close(provider, caller, visit)
    letters.tell(provider, visit.user, notice)
