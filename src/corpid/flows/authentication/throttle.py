"""Growing delay for wrong passwords and codes, never a permanent lock (D47).

Each attempt is counted before it is tried, in a bucket that also says until when the next one waits
(`rules.authentication.throttling`). Past the free ones an attempt begins a delay, and of those that do so at once one is
tried. An account is counted for each address, so that one stranger slows only themselves. When very many addresses guess
at it, it is counted for each neighbourhood of addresses too; never for all of them together, or strangers could keep its
owner out. A browser that signed in here before is counted on its own, and by nothing else. An attempt that was never
tried is given back, so what can be given back is counted in fixed windows of time: nothing is left over for a later one.

Buckets are taken in one order, codes, account or browser, everywhere, neighbourhood, address, or two requests that meet
would wait for each other on PostgreSQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.flows import namespaces
from corpid.rules.authentication.throttling import blocking, bucket, delay
from corpid.rules.limits import FACTOR_CHANGES
from corpid.rules.networks import neighbourhood, site
from corpid.texts import counted

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import TransientUnit
    from corpid.rules.authentication.throttling import Bucket
    from corpid.texts import Phrase

_Who: TypeAlias = tuple[str, ...]

_FREE_FOR_ACCOUNT: Final = 5
"""from one address, or in one known browser"""
_FREE_FOR_ACCOUNT_EVERYWHERE: Final = 100
"""beyond them a neighbourhood is counted as an address is"""
_LONGEST_NEARBY_SECONDS: Final = 60
"""shorter, since neighbours share it"""
_FREE_FOR_ADDRESS: Final = 50
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
    step: int = 0
    """what was added to begin it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that was admitted, and what it was counted for."""

    counts: tuple[_Count, ...]
    known: bool = False
    """whether the browser is known for the account"""


def _window(now: float) -> str:
    return str(int(now // namespaces.ATTEMPTS.seconds))


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
    return namespaces.key(namespaces.KNOWN_BROWSER, context.provider.policy.deployment_url, user_name, browser_key)


def _everywhere(user_name: str) -> _Who:
    return ("account", user_name)


def _from(context: RequestContext, place: str, user_name: str) -> _Who:
    return ("account", user_name, place, _window(context.now))


def _in_browser(context: RequestContext, browser_key: str, user_name: str) -> _Who:
    return ("browser", user_name, browser_key, _window(context.now))


def _codes(user_name: str) -> _Who:
    return ("codes", user_name)


def _address(context: RequestContext) -> _Who:
    return ("address", site(context.address), _window(context.now))


async def attempt(context: RequestContext, user_name: str, browser_key: str, *, known: bool) -> Attempt:
    """Count an attempt to show a password; `known`: whether the browser is known. Raises Throttled where it comes too early (D47)."""
    async with context.provider.transient.unit(context.now) as unit:
        if known:
            return await _attempt_in_browser(context, unit, user_name, browser_key)
        counts = await _admit_account(context, unit, user_name)
        everywhere = namespaces.key(
            namespaces.ATTEMPTS, context.provider.policy.deployment_url, *_everywhere(user_name)
        )
        attempts = await unit.count(namespaces.ATTEMPTS.name, everywhere, namespaces.ATTEMPTS.seconds)
        if attempts > _FREE_FOR_ACCOUNT_EVERYWHERE:
            nearby, longest = _from(context, neighbourhood(context.address), user_name), _LONGEST_NEARBY_SECONDS
            counts += await _admit(context, unit, nearby, _FREE_FOR_ACCOUNT, user_name=user_name, longest=longest)
        return Attempt(counts=(*counts, *await _admit_address(context, unit)))


async def attempt_second_factor(
    context: RequestContext, unit: TransientUnit, user_name: str, browser_key: str, *, known: bool
) -> Attempt:
    """Count an attempt to show a second factor that can be guessed. Raises Throttled where it comes too early.

    Only who has the password comes so far, so an account's attempts in browsers that are not known count together,
    wherever they come from. A known browser is the owner's, who is not to be kept out by a thief of the password.
    D45, D47
    """
    if known:
        return await _attempt_in_browser(context, unit, user_name, browser_key)
    counts = await _admit(context, unit, _codes(user_name), _FREE_FOR_ACCOUNT)
    counts += await _admit_account(context, unit, user_name)
    return Attempt(counts=(*counts, *await _admit_address(context, unit)))


async def _attempt_in_browser(
    context: RequestContext, unit: TransientUnit, user_name: str, browser_key: str
) -> Attempt:
    own = _in_browser(context, browser_key, user_name)
    return Attempt(counts=tuple(await _admit(context, unit, own, _FREE_FOR_ACCOUNT, user_name=user_name)), known=True)


async def _admit_account(context: RequestContext, unit: TransientUnit, user_name: str) -> list[_Count]:
    here = _from(context, site(context.address), user_name)
    return await _admit(context, unit, here, _FREE_FOR_ACCOUNT, user_name=user_name)


async def attempt_unguessable(context: RequestContext, unit: TransientUnit) -> None:
    """Count an attempt to show a passkey or a recovery code. Raises Throttled where it comes too early.

    Nobody guesses a signature or 80 random bits, so nothing is counted for the owner, whom a stranger or a thief of
    the password could then keep out. D45, D46, D47
    """
    await _admit_address(context, unit)


async def attempt_with_link(context: RequestContext, link_hash: str) -> Attempt:
    """Count an attempt to show a factor to the enrolment of a link. Raises Throttled where it comes too early.

    Who has the link is counted by it alone, so that guesses in the sign-in never shut the way to mend it. D47
    """
    async with context.provider.transient.unit(context.now) as unit:
        of_link = await _admit(context, unit, ("link", link_hash, _window(context.now)), _FREE_FOR_ACCOUNT)
        of_address = await _admit_address(context, unit)
    return Attempt(counts=(*of_link, *of_address))


async def attempt_link_code(context: RequestContext) -> None:
    """Count an attempt to open a link by its code. Raises Throttled if it comes too early (D47)."""
    async with context.provider.transient.unit(context.now) as unit:
        await _admit(context, unit, _link_codes(context), _FREE_FOR_LINK_CODES)


async def link_code_accepted(context: RequestContext, unit: TransientUnit) -> None:
    """Give an address back the attempt with which it opened a link: many people may have one address (D47)."""
    await _count(context, unit, _link_codes(context), -1)


def _link_codes(context: RequestContext) -> _Who:
    """Counted in fixed windows, so that attempts and opened links end together."""
    return ("link codes", site(context.address), _window(context.now))


async def change(context: RequestContext, by: str) -> Attempt:
    """Count an attempt to change one's own factors: `by` a person's id, or the hash of a link. Raises Throttled where it comes too early.

    Each may cost a hash and a letter, and hashing and mail are there for everybody. Who has a link is counted by it
    alone, so that a thief in the account never shuts the way to mend it. D47
    """
    async with context.provider.transient.unit(context.now) as unit:
        counts = await _admit(context, unit, ("change", by, _window(context.now)), FACTOR_CHANGES)
    return Attempt(counts=tuple(counts))


async def give_back(context: RequestContext, attempt: Attempt) -> None:
    """Take an attempt of this request out of the counts, because no password was looked at (D47)."""
    async with context.provider.transient.unit(context.now) as unit:
        for each in attempt.counts:
            # Past its end another attempt may have begun a delay in its place.
            begun = each.step if context.provider.clock() < each.until else 0
            await _count(context, unit, each.who, -1 - begun)


async def _admit_address(context: RequestContext, unit: TransientUnit) -> list[_Count]:
    return await _admit(context, unit, _address(context), _FREE_FOR_ADDRESS)


async def _count(context: RequestContext, unit: TransientUnit, who: _Who, by: int) -> Bucket:
    kind = namespaces.ATTEMPT_BUCKET
    key = namespaces.key(kind, context.provider.policy.deployment_url, *who)
    return bucket(await unit.count(kind.name, key, kind.seconds, by))


async def _admit(
    context: RequestContext,
    unit: TransientUnit,
    who: _Who,
    free: int,
    *,
    user_name: str = "",
    longest: int = _LONGEST_SECONDS,
) -> list[_Count]:
    """Count an attempt; `user_name` in its mapped form, where an operator can end the delay by unlocking the account."""
    found = await _count(context, unit, who, 1)
    if found.attempts <= free:
        return [_Count(who=who)]
    unlocks = await _unlocks(context, unit, user_name)
    if unlocks:
        return [_Count(who=who), *await _admit(context, unit, (*who, unlocks), free, longest=longest)]
    now, ends = int(context.now), found.blocked_until(context.now)
    if context.now < ends:
        raise Throttled(min(max(1, ends - now), longest))
    until = now + delay(found.attempts, free=free, longest=longest)
    step = until - ends
    begun = await _count(context, unit, who, blocking(step))
    if begun.blocked != found.blocked + step:
        # Another attempt has begun a delay since: it is the one that is tried.
        await _count(context, unit, who, -blocking(step))
        raise Throttled(max(1, until - now))
    return [_Count(who=who, until=until, step=blocking(step))]


async def _unlocks(context: RequestContext, unit: TransientUnit, user_name: str) -> str:
    """Part of what is counted past the free attempts, so that they are counted anew after each unlocking, which knows
    neither addresses nor browsers; empty if there was none, and for what cannot be unlocked."""
    if not user_name:
        return ""
    key = namespaces.key(namespaces.UNLOCKS, context.provider.policy.deployment_url, user_name)
    return (await unit.get(namespaces.UNLOCKS.name, key) or b"").decode()


async def succeeded(
    context: RequestContext, unit: TransientUnit, user_name: str, browser_key: str, *, known: bool, of_address: int
) -> None:
    """After every factor was shown: forget this account's attempts, in a known browser those that were made in it.

    The address gets back what this sign-in cost it, `of_address` attempts, and no more, or one account of one's own
    would be a licence to try the passwords of others. D47
    """
    if known:
        await _forget(context, unit, _in_browser(context, browser_key, user_name), user_name)
    else:
        await _forget(context, unit, _codes(user_name))
        await _forget(context, unit, _from(context, site(context.address), user_name), user_name)
        if (
            await _forget_everywhere(unit, context.provider.policy.deployment_url, user_name)
            > _FREE_FOR_ACCOUNT_EVERYWHERE
        ):
            await _forget(context, unit, _from(context, neighbourhood(context.address), user_name), user_name)
    if of_address:
        await _count(context, unit, _address(context), -of_address)


async def _forget(context: RequestContext, unit: TransientUnit, who: _Who, user_name: str = "") -> None:
    kind, issuer = namespaces.ATTEMPT_BUCKET, context.provider.policy.deployment_url
    found = bucket(int(await unit.take(kind.name, namespaces.key(kind, issuer, *who)) or b"0"))
    if found.attempts > _FREE_FOR_ACCOUNT:
        unlocks = await _unlocks(context, unit, user_name)
        if unlocks:
            await unit.take(kind.name, namespaces.key(kind, issuer, *who, unlocks))


async def _forget_everywhere(unit: TransientUnit, issuer: str, user_name: str) -> int:
    key = namespaces.key(namespaces.ATTEMPTS, issuer, *_everywhere(user_name))
    return int(await unit.take(namespaces.ATTEMPTS.name, key) or b"0")


async def unlock(unit: TransientUnit, issuer: str, user_name: str) -> None:
    """An operator ends the delay of an account; `user_name` in its mapped form (D47)."""
    codes = namespaces.key(namespaces.ATTEMPT_BUCKET, issuer, *_codes(user_name))
    await unit.take(namespaces.ATTEMPT_BUCKET.name, codes)
    await _forget_everywhere(unit, issuer, user_name)
    await unit.count(
        namespaces.UNLOCKS.name, namespaces.key(namespaces.UNLOCKS, issuer, user_name), namespaces.UNLOCKS.seconds
    )
