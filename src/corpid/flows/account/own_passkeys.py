"""A person looks after their passkeys (D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.directory.access import Object, Person, authorise
from corpid.directory.records import Passkey
from corpid.flows import letters, passkey_names, passkeys
from corpid.flows.account import openings, own_factors, visits
from corpid.flows.sign_in import Rejected
from corpid.ports import FactorChange
from corpid.protocol.limits import PASSKEYS_PER_PERSON
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.directory.held_factors import HeldFactors
    from corpid.flows.account.visits import AccountVisit
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider


def offered(provider: Provider) -> bool:
    """Whether passkeys work here (D46)."""
    return passkeys.offered(provider)


def full(factors: HeldFactors) -> bool:
    """Whether this person has as many passkeys as anybody may have (D46)."""
    return len(factors.passkeys) >= PASSKEYS_PER_PERSON


async def options(provider: Provider, visit: AccountVisit) -> str:
    """The JSON that a page gives the browser to make a passkey; empty where passkeys do not work (D46)."""
    return await passkeys.registration_options(provider, visit.user, visit.session.session_id)


async def add(provider: Provider, caller: Caller, visit: AccountVisit, *, answer: str) -> None:
    """A further passkey. Raises Rejected, StaleStep, Throttled and TooOld (WebAuthn §7.1, D46)."""
    await openings.admit(provider, caller, visit)
    factors = await own_factors.of(provider, visit)
    if full(factors):
        raise Rejected(
            phrase("You have {passkeys} passkeys, which is as many as there can be.", passkeys=PASSKEYS_PER_PERSON)
        )
    made = await passkeys.newly_made(provider, caller, visit.session.session_id, answer=answer)
    passkey = Passkey(
        user_id=visit.user.user_id,
        name=passkey_names.given(provider, caller),
        created_at=int(caller.now),
        **msgspec.structs.asdict(made),
    )
    before = factors.credentials
    change = FactorChange(before=before, after=before, add_passkey=passkey, passkeys_at_most=PASSKEYS_PER_PERSON)
    await own_factors.write(provider, caller, visit, change, "factors.add_passkey", letters.PASSKEY_ADDED)


async def rename(provider: Provider, caller: Caller, visit: AccountVisit, passkey: Passkey, *, name: str) -> None:
    """Call a passkey something else. Raises Rejected, Throttled, TooOld and access.Forbidden (D46, D51)."""
    await openings.admit(provider, caller, visit)
    renamed = msgspec.structs.replace(passkey, name=passkey_names.chosen(name))
    actor = Person(user_id=visit.user.user_id)
    authorise(actor, "write", Object(kind="credentials", user_id=passkey.user_id))
    event = visits.event(caller, visit, "factors.rename_passkey")
    if not await provider.registry.factors.rename_passkey(renamed, event):
        raise Rejected(own_factors.MEANWHILE)
    await openings.close(provider, caller, visit)


async def remove(provider: Provider, caller: Caller, visit: AccountVisit, passkey: Passkey) -> None:
    """Remove a passkey, if another way in is left: a passkey, or a password with a second factor that does not run out.

    Raises Rejected, Throttled, TooOld and access.Forbidden. Source: D45, D46
    """
    await openings.admit(provider, caller, visit)
    authorise(Person(user_id=visit.user.user_id), "write", Object(kind="credentials", user_id=passkey.user_id))
    factors = await own_factors.of(provider, visit)
    needed = own_factors.need_passkey(provider, visit, factors)
    if needed and len(factors.passkeys) == 1:
        raise Rejected(phrase("This passkey is your only way in. Set up another one, or a password and an app, first."))
    change = FactorChange(
        before=factors.credentials,
        after=factors.credentials,
        remove_passkey=passkey.credential_id,
        passkey_remains=needed,
        end_sessions_but=visit.session.session_id,
    )
    await own_factors.write(provider, caller, visit, change, "factors.remove_passkey", letters.PASSKEY_REMOVED)
