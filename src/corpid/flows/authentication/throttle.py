"""Growing delay for wrong passwords and codes, never a permanent lock (D47).

Each attempt is counted before it is tried. Past the free ones an attempt must win a slot, whose lifetime
is the delay. An account is counted for each address, so that one stranger slows only themselves. When very
many addresses guess at it, it is counted for each neighbourhood of addresses too; never for all of them
together, or strangers could keep its owner out. A browser that signed in here before is counted on its own.
An attempt that was never tried is given back, so what can be given back is counted in fixed windows of time:
nothing is left over for a later one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.flows import namespaces
from corpid.rules.limits import FACTOR_CHANGES
from corpid.rules.networks import neighbourhood, site
from corpid.texts import counted

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import TransientUnit
    from corpid.texts import Phrase

_Who: TypeAlias = tuple[str, ...]

_FREE_FOR_ACCOUNT: Final = 5
"""from one address, or in one known browser"""
_FREE_FOR_ACCOUNT_EVERYWHERE: Final = 100
"""beyond them a neighbourhood is counted as an address is"""
_LONGEST_NEARBY_SECONDS: Final = 60
"""shorter, since neighbours share it"""
_FREE_FOR_ADDRESS: Final = 50
_ATTEMPTS_OF_A_SIGN_IN: Final = 2
_FREE_FOR_LINK_CODES: Final = 20
"""wrong ones, from one address"""
_LONGEST_SECONDS: Final = 300
_COUNTED_IN_SECONDS: Final = 300
"""what is longer is told in minutes"""


class Throttled(Exception):
    """Too many attempts; `seconds` until the next may be tried."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"try again in {seconds} seconds")
        self.seconds = seconds

    @property
    def sentence(self) -> Phrase:
        """What the person reads."""
        if self.seconds > _COUNTED_IN_SECONDS:
            return counted(
                -(-self.seconds // 60),
                "Too many attempts. Wait {count} minute, then try again.",
                "Too many attempts. Wait {count} minutes, then try again.",
            )
        return counted(
            self.seconds,
            "Too many attempts. Wait {count} second, then try again.",
            "Too many attempts. Wait {count} seconds, then try again.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """One of the counts that an attempt has raised."""

    who: _Who
    until: int = 0
    """when the delay ends that it has begun, in epoch seconds; 0: none"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that was admitted, and what it was counted for."""

    counts: tuple[_Count, ...]
    known: bool = False
    """whether the browser is known for the account"""


def _window(now: float) -> str:
    return str(int(now // namespaces.ATTEMPTS.seconds))


def _address(context: RequestContext) -> _Who:
    """The sign-ins of an address end with its attempts, too."""
    return ("address", site(context.address), _window(context.now))


async def last_entity(context: RequestContext, user_name: str, browser_key: str) -> str | None:
    """The entity that a person chose last in a browser where they have signed in before, empty for none yet.

    None where the browser is not known for them. Source: D17, D47
    """
    known = _known(context, user_name, browser_key)
    value = await context.provider.transient.get(namespaces.KNOWN_BROWSER.name, known, now=context.now)
    return None if value is None else value.decode()


async def remember(
    context: RequestContext, unit: TransientUnit, user_name: str, browser_key: str, entity_id: str | None
) -> None:
    """Know a browser again for a person, and what they chose last in it (D17, D47)."""
    known = _known(context, user_name, browser_key)
    await unit.put(namespaces.KNOWN_BROWSER.name, known, (entity_id or "").encode(), namespaces.KNOWN_BROWSER.seconds)


async def is_known(context: RequestContext, user_name: str, browser_key: str) -> bool:
    """Whether a person has signed in before in this browser, with every factor (D47)."""
    return await last_entity(context, user_name, browser_key) is not None


def _known(context: RequestContext, user_name: str, browser_key: str) -> bytes:
    return namespaces.key(namespaces.KNOWN_BROWSER, context.provider.policy.base_url, user_name, browser_key)


def _everywhere(user_name: str) -> _Who:
    return ("account", user_name)


async def _from(context: RequestContext, unit: TransientUnit, place: str, user_name: str) -> _Who:
    return ("account", user_name, place, await _unlocks(context, unit, user_name), _window(context.now))


async def _in_browser(context: RequestContext, unit: TransientUnit, browser_key: str, user_name: str) -> _Who:
    return ("browser", user_name, browser_key, await _unlocks(context, unit, user_name), _window(context.now))


async def _unlocks(context: RequestContext, unit: TransientUnit, user_name: str) -> str:
    """Part of what is counted, so that it is counted anew after each unlocking, which knows neither addresses nor browsers."""
    unlocks = await unit.get(
        namespaces.UNLOCKS.name, namespaces.key(namespaces.UNLOCKS, context.provider.policy.base_url, user_name)
    )
    return (unlocks or b"0").decode()


def _codes(user_name: str) -> _Who:
    return ("codes", user_name)


async def attempt_second_factor(context: RequestContext, user_name: str, browser_key: str) -> None:
    """Count an attempt to show the second factor. Raises Throttled where it comes too early.

    Only who has the password comes so far, so an account's attempts in browsers that are not known count together,
    wherever they come from. A known browser is the owner's, who is not to be kept out by a thief of the password.
    D45, D47
    """
    if not await is_known(context, user_name, browser_key):
        async with context.provider.transient.unit(context.now) as unit:
            await _admit(context, unit, _codes(user_name), _FREE_FOR_ACCOUNT)
    await attempt(context, user_name, browser_key)


async def attempt(context: RequestContext, user_name: str, browser_key: str) -> Attempt:
    """Count an attempt to show a factor. Raises Throttled where it comes too early (D47)."""
    known = await is_known(context, user_name, browser_key)
    async with context.provider.transient.unit(context.now) as unit:
        if known:
            own = await _in_browser(context, unit, browser_key, user_name)
            counts = [await _admit(context, unit, own, _FREE_FOR_ACCOUNT)]
        else:
            counts = await _admit_unknown(context, unit, user_name)
        counts.append(await _admit_address(context, unit))
    return Attempt(counts=tuple(counts), known=known)


async def attempt_unguessable(context: RequestContext) -> None:
    """Count an attempt to show a passkey or a recovery code. Raises Throttled where it comes too early.

    Nobody guesses a signature or 80 random bits, so nothing is counted for the owner, whom a stranger or a thief of
    the password could then keep out. D45, D46, D47
    """
    async with context.provider.transient.unit(context.now) as unit:
        await _admit_address(context, unit)


async def attempt_with_link(context: RequestContext, link_hash: str) -> Attempt:
    """Count an attempt to show a factor to the enrolment of a link. Raises Throttled where it comes too early.

    Who has the link is counted by it alone, so that guesses in the sign-in never shut the way to mend it. D47
    """
    async with context.provider.transient.unit(context.now) as unit:
        of_link = await _admit(context, unit, ("link", link_hash, _window(context.now)), _FREE_FOR_ACCOUNT)
        of_address = await _admit_address(context, unit)
    return Attempt(counts=(of_link, of_address))


async def attempt_link_code(context: RequestContext) -> None:
    """Count an attempt to open a link by its code. Raises Throttled if it comes too early (D47)."""
    who = _link_codes(context)
    async with context.provider.transient.unit(context.now) as unit:
        accepted = await unit.get(
            namespaces.SIGN_INS.name, namespaces.key(namespaces.SIGN_INS, context.provider.policy.base_url, *who)
        )
        await _admit(context, unit, who, _FREE_FOR_LINK_CODES + int(accepted or b"0"))


async def link_code_accepted(context: RequestContext, unit: TransientUnit) -> None:
    """Give an address back the attempt with which it opened a link: many people may have one address (D47)."""
    key = namespaces.key(namespaces.SIGN_INS, context.provider.policy.base_url, *_link_codes(context))
    await unit.count(namespaces.SIGN_INS.name, key, namespaces.SIGN_INS.seconds)


def _link_codes(context: RequestContext) -> tuple[str, ...]:
    """Counted in fixed windows, so that attempts and opened links end together."""
    return ("link codes", site(context.address), _window(context.now))


async def change(context: RequestContext, by: str) -> Attempt:
    """Count an attempt to change one's own factors: `by` a person's id, or the hash of a link. Raises Throttled where it comes too early.

    Each may cost a hash and a letter, and hashing and mail are there for everybody. Who has a link is counted by it
    alone, so that a thief in the account never shuts the way to mend it. D47
    """
    async with context.provider.transient.unit(context.now) as unit:
        count = await _admit(context, unit, ("change", by, _window(context.now)), FACTOR_CHANGES)
    return Attempt(counts=(count,))


async def give_back(context: RequestContext, attempt: Attempt) -> None:
    """Take an attempt of this request out of the counts, because no password was looked at (D47)."""
    kind, issuer = namespaces.ATTEMPTS_GIVEN_BACK, context.provider.policy.base_url
    async with context.provider.transient.unit(context.now) as unit:
        for each in attempt.counts:
            # Past its end another attempt may have begun a delay of the same name.
            if context.provider.clock() < each.until:
                await unit.take(
                    namespaces.ATTEMPT_SLOT.name, namespaces.key(namespaces.ATTEMPT_SLOT, issuer, *each.who)
                )
        # After the delays, as in `succeeded`, or two that meet would wait for each other on PostgreSQL.
        for each in attempt.counts:
            await unit.count(kind.name, namespaces.key(kind, issuer, *each.who), kind.seconds)


async def _admit_unknown(context: RequestContext, unit: TransientUnit, user_name: str) -> list[_Count]:
    here = await _from(context, unit, site(context.address), user_name)
    counts = [await _admit(context, unit, here, _FREE_FOR_ACCOUNT)]
    everywhere = namespaces.key(namespaces.ATTEMPTS, context.provider.policy.base_url, *_everywhere(user_name))
    if (
        await unit.count(namespaces.ATTEMPTS.name, everywhere, namespaces.ATTEMPTS.seconds)
        > _FREE_FOR_ACCOUNT_EVERYWHERE
    ):
        nearby = await _from(context, unit, neighbourhood(context.address), user_name)
        longest = _LONGEST_NEARBY_SECONDS
        counts.append(await _admit(context, unit, nearby, _FREE_FOR_ACCOUNT, longest=longest))
    return counts


async def _admit_address(context: RequestContext, unit: TransientUnit) -> _Count:
    signed_in = await unit.get(namespaces.SIGN_INS.name, _sign_ins(context))
    free = _FREE_FOR_ADDRESS + _ATTEMPTS_OF_A_SIGN_IN * int(signed_in or b"0")
    return await _admit(context, unit, _address(context), free)


def _sign_ins(context: RequestContext) -> bytes:
    return namespaces.key(namespaces.SIGN_INS, context.provider.policy.base_url, *_address(context))


async def _admit(
    context: RequestContext,
    unit: TransientUnit,
    who: _Who,
    free: int,
    *,
    longest: int = _LONGEST_SECONDS,
) -> _Count:
    issuer, back = context.provider.policy.base_url, namespaces.ATTEMPTS_GIVEN_BACK
    attempts = await unit.count(
        namespaces.ATTEMPTS.name, namespaces.key(namespaces.ATTEMPTS, issuer, *who), namespaces.ATTEMPTS.seconds
    )
    if attempts > free:
        attempts -= int(await unit.get(back.name, namespaces.key(back, issuer, *who)) or b"0")
    if attempts <= free:
        return _Count(who=who)
    delay = min(2 ** min(attempts - free, 16), longest)
    slot = namespaces.key(namespaces.ATTEMPT_SLOT, issuer, *who)
    if not await unit.add(namespaces.ATTEMPT_SLOT.name, slot, delay, str(int(context.now) + delay).encode()):
        until = await unit.get(namespaces.ATTEMPT_SLOT.name, slot)
        raise Throttled(max(1, int(until or b"0") - int(context.now)))
    return _Count(who=who, until=int(context.now) + delay)


async def succeeded(context: RequestContext, unit: TransientUnit, user_name: str, browser_key: str) -> None:
    """After every factor was shown: forget this account's attempts.

    The address gets back what this sign-in cost it and no more, or one account of one's own would be a licence
    to try the passwords of others. D47
    """
    issuer = context.provider.policy.base_url
    here = await _from(context, unit, site(context.address), user_name)
    nearby = await _from(context, unit, neighbourhood(context.address), user_name)
    own = await _in_browser(context, unit, browser_key, user_name)
    # In the order in which an attempt counts them, or two that meet would wait for each other on PostgreSQL.
    for who in (here, own, _everywhere(user_name), nearby, _codes(user_name)):
        await _forget(unit, issuer, who)
    back = namespaces.ATTEMPTS_GIVEN_BACK
    for who in (here, own, nearby):
        await unit.take(back.name, namespaces.key(back, issuer, *who))
    await unit.count(namespaces.SIGN_INS.name, _sign_ins(context), namespaces.SIGN_INS.seconds)


async def _forget(unit: TransientUnit, issuer: str, who: _Who) -> None:
    await unit.take(namespaces.ATTEMPTS.name, namespaces.key(namespaces.ATTEMPTS, issuer, *who))
    await unit.take(namespaces.ATTEMPT_SLOT.name, namespaces.key(namespaces.ATTEMPT_SLOT, issuer, *who))


async def unlock(unit: TransientUnit, issuer: str, user_name: str) -> None:
    """An operator ends the delay of an account; `user_name` in its mapped form (D47)."""
    await _forget(unit, issuer, _everywhere(user_name))
    await _forget(unit, issuer, _codes(user_name))
    await unit.count(
        namespaces.UNLOCKS.name, namespaces.key(namespaces.UNLOCKS, issuer, user_name), namespaces.UNLOCKS.seconds
    )
