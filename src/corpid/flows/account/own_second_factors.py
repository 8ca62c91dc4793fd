"""A person looks after what goes with their password: an authenticator app, and recovery codes (D45).

What is offered stays the same in one browser until it is used, also after a new sign-in: whoever has scanned a
picture or printed codes does not find other ones on the page when they come back. A change of the password or the
app ends what was offered before, since somebody else may have seen it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from corpid.flows import kinds, letters, offers
from corpid.flows.account import openings, own_factors
from corpid.flows.interactions import StaleStep, fingerprint
from corpid.flows.sign_in import Rejected
from corpid.jose.encoding import base64url
from corpid.ports import FactorChange
from corpid.protocol import recovery_codes, totp
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.directory.records import Credentials
    from corpid.flows.account.visits import AccountVisit
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider

Offered: TypeAlias = Literal["app", "codes"]
_PURPOSE: Final = "account"


async def offer(provider: Provider, caller: Caller, visit: AccountVisit, what: Offered) -> str:
    """What stands for the app's key or the codes that this person is offered in this browser, for a day (D45)."""
    credentials = await provider.registry.factors.credentials(visit.user.user_id)
    kind, key, made = kinds.ACCOUNT_OFFER, _offer_key(provider, visit, credentials, what), provider.new_id()
    standing = await provider.transient.get(kind.name, key, now=caller.now)
    if standing is None:
        async with provider.transient.unit(caller.now) as unit:
            first = await unit.add(kind.name, key, kind.seconds, made.encode())
            standing = made.encode() if first else await unit.get(kind.name, key)
    if standing is None:
        raise StaleStep
    return standing.decode()


def _offer_key(provider: Provider, visit: AccountVisit, credentials: Credentials, what: Offered) -> bytes:
    parts = (visit.browser.browser_id, credentials.user_id, base64url(fingerprint(credentials)), what)
    return kinds.key(kinds.ACCOUNT_OFFER, provider.policy.base_url, *parts)


async def _spend(
    provider: Provider, caller: Caller, visit: AccountVisit, before: Credentials, what: Offered, shown: str
) -> None:
    async with provider.transient.unit(caller.now) as unit:
        spent = await unit.take(kinds.ACCOUNT_OFFER.name, _offer_key(provider, visit, before, what))
    if spent != shown.encode():
        raise StaleStep


def app_secret(provider: Provider, shown: str) -> str:
    """The secret (base32) of an offer. `own_keys.ring` was awaited before (D45)."""
    return offers.app_secret(provider, _PURPOSE, shown)


def codes(provider: Provider, shown: str) -> tuple[str, ...]:
    """The recovery codes of an offer. `own_keys.ring` was awaited before (D45)."""
    return offers.codes(provider, _PURPOSE, shown)


async def set_up_app(provider: Provider, caller: Caller, visit: AccountVisit, *, code: str) -> None:
    """A new app, which shows by its first code that it has the secret. Raises Rejected, StaleStep, Throttled and TooOld (D45)."""
    await openings.admit(provider, caller, visit)
    shown = await offer(provider, caller, visit, "app")
    secret = app_secret(provider, shown)
    try:
        step = totp.matching_step(secret, code, caller.now)
    except totp.WrongCode:
        raise Rejected(
            phrase("This code is not right. Check that the app shows this account, then type its newest code.")
        ) from None
    before = (await own_factors.of(provider, visit)).credentials
    await _spend(provider, caller, visit, before, "app", shown)
    after = before.with_app(secret, "user", step=step)
    change = FactorChange(before=before, after=after, end_sessions_but=visit.session.session_id)
    notice = letters.APP_REPLACED if before.totp_secret else letters.APP_ADDED
    await own_factors.write(provider, caller, visit, change, "factors.app", notice)


async def remove_app(provider: Provider, caller: Caller, visit: AccountVisit) -> None:
    """Remove the app, if another way in is left that lasts. Raises Rejected, StaleStep, Throttled and TooOld (D45)."""
    await openings.admit(provider, caller, visit)
    factors = await own_factors.of(provider, visit)
    before = factors.credentials
    if not factors.app:
        raise StaleStep
    after = before.without_app("user")
    needed = own_factors.need_passkey(provider, visit, replace(factors, credentials=after))
    if needed and not factors.passkeys:
        raise Rejected(phrase("The app is part of your only way in. Add a passkey first."))
    change = FactorChange(before=before, after=after, passkey_remains=needed, end_sessions_but=visit.session.session_id)
    await own_factors.write(provider, caller, visit, change, "factors.remove_app", letters.APP_REMOVED)


async def replace_codes(provider: Provider, caller: Caller, visit: AccountVisit, *, shown: str, kept: bool) -> None:
    """Recovery codes that the person has kept replace those before. Raises Rejected, StaleStep, Throttled and TooOld (D45)."""
    await openings.admit(provider, caller, visit)
    if shown != await offer(provider, caller, visit, "codes"):
        raise StaleStep
    if not kept:
        raise Rejected(phrase("Keep the codes first, then say that you have done so."))
    before, user_id = (await own_factors.of(provider, visit)).credentials, visit.user.user_id
    await _spend(provider, caller, visit, before, "codes", shown)
    hashes = tuple(recovery_codes.hashed(user_id, code) for code in codes(provider, shown))
    change = FactorChange(before=before, after=before, recovery_codes=hashes, end_sessions_but=visit.session.session_id)
    await own_factors.write(provider, caller, visit, change, "factors.recovery_codes", letters.NEW_RECOVERY_CODES)


async def remove_codes(provider: Provider, caller: Caller, visit: AccountVisit) -> None:
    """Remove the recovery codes that are left, if there is another way in. Raises Rejected, StaleStep, Throttled and TooOld (D45)."""
    await openings.admit(provider, caller, visit)
    factors = await own_factors.of(provider, visit)
    if not factors.codes:
        raise StaleStep
    needed = own_factors.need_passkey(provider, visit, factors)
    if needed and not factors.passkeys:
        raise Rejected(phrase("These codes are part of your only way in. Set up an app or a passkey first."))
    change = FactorChange(
        before=factors.credentials,
        after=factors.credentials,
        recovery_codes=(),
        passkey_remains=needed,
        end_sessions_but=visit.session.session_id,
    )
    await own_factors.write(
        provider, caller, visit, change, "factors.remove_recovery_codes", letters.RECOVERY_CODES_REMOVED
    )
