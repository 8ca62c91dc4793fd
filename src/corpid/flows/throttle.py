"""Growing delay for wrong passwords and codes, never a permanent lock (D47).

Each attempt is counted before it is tried. Past the free ones an attempt must win a slot, whose lifetime
is the delay. An account is counted for each address first, so that one stranger slows only themselves; then
for all addresses, with a short delay. A browser that signed in here before is counted on its own.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from corpid.flows import kinds

if TYPE_CHECKING:
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import TransientUnit

_FREE_FOR_ACCOUNT: Final = 5
"""from one address, or in one known browser"""
_FREE_FOR_ACCOUNT_EVERYWHERE: Final = 100
_LONGEST_EVERYWHERE_SECONDS: Final = 5
_FREE_FOR_ADDRESS: Final = 50
_ATTEMPTS_OF_A_SIGN_IN: Final = 2
_LONGEST_SECONDS: Final = 300
_IPV6_SITE: Final = 64


class Throttled(Exception):
    """Too many attempts; `seconds` until the next may be tried."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"try again in {seconds} seconds")
        self.seconds = seconds


def site(address: str) -> str:
    """What counts as one place: an IPv4 address, or the network that one customer has of IPv6. Source: D47"""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4 or parsed.ipv4_mapped is not None:
        return str(parsed if parsed.version == 4 else parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_SITE), strict=False))


def _address(caller: Caller) -> tuple[str, ...]:
    """An address counts in fixed windows, so that its attempts and its sign-ins end together."""
    return ("address", site(caller.address), str(int(caller.now // kinds.ATTEMPTS.seconds)))


async def _is_known(provider: Provider, user_name: str, browser_id: str, now: float) -> bool:
    known = kinds.key(kinds.KNOWN_BROWSER, provider.policy.base_url, user_name, browser_id)
    return await provider.transient.get(kinds.KNOWN_BROWSER.name, known, now=now) is not None


def _everywhere(user_name: str) -> tuple[str, ...]:
    return ("account", user_name)


async def _from_here(provider: Provider, unit: TransientUnit, caller: Caller, user_name: str) -> tuple[str, ...]:
    """Counted anew after each unlocking, which cannot know the addresses."""
    unlocks = await unit.get(kinds.UNLOCKS.name, kinds.key(kinds.UNLOCKS, provider.policy.base_url, user_name))
    return ("account", user_name, site(caller.address), (unlocks or b"0").decode())


def _codes(user_name: str) -> tuple[str, ...]:
    return ("codes", user_name)


def _in_browser(user_name: str, browser_id: str) -> tuple[str, ...]:
    return ("browser", user_name, browser_id)


async def attempt_second_factor(provider: Provider, caller: Caller, user_name: str, browser_id: str) -> None:
    """Count an attempt to show the second factor. Raises Throttled where it comes too early.

    Only who has the password comes so far, so an account's attempts count from all addresses and browsers
    together without a stranger keeping anybody out. D45, D47
    """
    async with provider.transient.unit(caller.now) as unit:
        await _admit(provider, unit, _codes(user_name), _FREE_FOR_ACCOUNT, caller.now)
    await attempt(provider, caller, user_name, browser_id)


async def attempt(provider: Provider, caller: Caller, user_name: str, browser_id: str) -> None:
    """Count an attempt to show a factor. Raises Throttled where it comes too early (D47)."""
    known = await _is_known(provider, user_name, browser_id, caller.now)
    async with provider.transient.unit(caller.now) as unit:
        if known:
            await _admit(provider, unit, _in_browser(user_name, browser_id), _FREE_FOR_ACCOUNT, caller.now)
        else:
            here = await _from_here(provider, unit, caller, user_name)
            await _admit(provider, unit, here, _FREE_FOR_ACCOUNT, caller.now)
            everywhere, longest = _everywhere(user_name), _LONGEST_EVERYWHERE_SECONDS
            await _admit(provider, unit, everywhere, _FREE_FOR_ACCOUNT_EVERYWHERE, caller.now, longest=longest)
        signed_in = await unit.get(kinds.SIGN_INS.name, _sign_ins(provider, caller))
        free = _FREE_FOR_ADDRESS + _ATTEMPTS_OF_A_SIGN_IN * int(signed_in or b"0")
        await _admit(provider, unit, _address(caller), free, caller.now)


def _sign_ins(provider: Provider, caller: Caller) -> bytes:
    return kinds.key(kinds.SIGN_INS, provider.policy.base_url, *_address(caller))


async def _admit(
    provider: Provider,
    unit: TransientUnit,
    who: tuple[str, ...],
    free: int,
    now: float,
    *,
    longest: int = _LONGEST_SECONDS,
) -> None:
    issuer = provider.policy.base_url
    attempts = await unit.count(kinds.ATTEMPTS.name, kinds.key(kinds.ATTEMPTS, issuer, *who), kinds.ATTEMPTS.seconds)
    if attempts <= free:
        return
    delay = min(2 ** min(attempts - free, 16), longest)
    slot = kinds.key(kinds.ATTEMPT_SLOT, issuer, *who)
    if not await unit.add(kinds.ATTEMPT_SLOT.name, slot, delay, str(int(now) + delay).encode()):
        until = await unit.get(kinds.ATTEMPT_SLOT.name, slot)
        raise Throttled(max(1, int(until or b"0") - int(now)))


async def succeeded(provider: Provider, unit: TransientUnit, caller: Caller, user_name: str, browser_id: str) -> None:
    """After every factor was shown: forget this account's attempts, and remember the browser.

    The address gets back what this sign-in cost it and no more, or one account of one's own would be a licence
    to try the passwords of others. D47
    """
    issuer = provider.policy.base_url
    here = await _from_here(provider, unit, caller, user_name)
    for who in (_everywhere(user_name), _codes(user_name), here, _in_browser(user_name, browser_id)):
        await _forget(unit, issuer, who)
    await unit.count(kinds.SIGN_INS.name, _sign_ins(provider, caller), kinds.SIGN_INS.seconds)
    known = kinds.key(kinds.KNOWN_BROWSER, issuer, user_name, browser_id)
    await unit.put(kinds.KNOWN_BROWSER.name, known, b"1", kinds.KNOWN_BROWSER.seconds)


async def _forget(unit: TransientUnit, issuer: str, who: tuple[str, ...]) -> None:
    await unit.take(kinds.ATTEMPTS.name, kinds.key(kinds.ATTEMPTS, issuer, *who))
    await unit.take(kinds.ATTEMPT_SLOT.name, kinds.key(kinds.ATTEMPT_SLOT, issuer, *who))


async def unlock(unit: TransientUnit, issuer: str, user_name: str) -> None:
    """An operator ends the delay of an account; `user_name` in its mapped form (D47)."""
    await _forget(unit, issuer, _everywhere(user_name))
    await _forget(unit, issuer, _codes(user_name))
    await unit.count(kinds.UNLOCKS.name, kinds.key(kinds.UNLOCKS, issuer, user_name), kinds.UNLOCKS.seconds)
