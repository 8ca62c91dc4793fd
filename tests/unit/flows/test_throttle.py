"""Growing delay for wrong passwords and codes, never a permanent lock (D47)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.flows.authentication import throttle
from corpid.flows.authentication.throttle import Throttled
from tests.contexts import context
from tests.unit.flows.opened import NOW, provider_at

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.flows.request_context import Provider


async def delay(
    provider: Provider,
    now: float = NOW,
    *,
    address: str = "192.0.2.1",
    user_name: str = "rina",
    browser: str = "b1",
) -> int:
    """Seconds to wait; 0 where the attempt is admitted."""
    try:
        request = await context(provider, now=now, address=address)
        known = await throttle.is_known(request, user_name, browser)
        await throttle.attempt_password(request, user_name, browser, known=known)
    except Throttled as refused:
        return refused.seconds
    return 0


async def test_five_attempts_are_free_and_then_the_delay_doubles(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        for _ in range(5):
            assert await delay(provider) == 0
        now = NOW
        for seconds in (2, 4, 8, 16):
            assert await delay(provider, now) == 0
            assert 0 < await delay(provider, now) <= seconds
            assert await delay(provider, now + seconds - 1) == 1
            now += seconds


async def test_no_delay_is_longer_than_five_minutes_and_a_quiet_quarter_of_an_hour_ends_it(tmp_path: Path) -> None:
    """D47: never a permanent lock."""
    async with provider_at(tmp_path) as provider:
        now, longest = NOW, 0
        while now < NOW + 890:
            longest = max(longest, await delay(provider, now))
            now += 1
        assert 0 < longest <= 300
        assert await delay(provider, NOW + 900 + 300) == 0


async def test_an_account_is_delayed_whatever_the_browser_and_another_account_is_not(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        for number in range(6):
            assert await delay(provider, browser=f"b{number}") == 0
        assert await delay(provider, browser="new") > 0
        assert await delay(provider, user_name="other") == 0


async def test_one_stranger_who_never_stops_slows_only_themselves(tmp_path: Path) -> None:
    """D47: from another address the person gets in at once, after an hour of guesses a second."""
    async with provider_at(tmp_path) as provider:
        for second in range(3600):
            await delay(provider, NOW + second, address="198.51.100.1", browser="stranger")
        assert await delay(provider, NOW + 3600, address="192.0.2.7", browser="own") == 0


@pytest.mark.parametrize("address", ["192.0.2.{}", "2001:db8:1:{}::1"])
async def test_when_many_addresses_guess_neighbours_share_a_delay_of_a_minute_at_most(
    tmp_path: Path, address: str
) -> None:
    """D47: a hundred guesses at one account are free of it, and five more in each neighbourhood."""
    async with provider_at(tmp_path) as provider:
        delays = [await delay(provider, address=address.format(number), browser="b") for number in range(120)]
        assert not any(delays[:106])
        assert all(0 < seconds <= 60 for seconds in delays[106:])
        for number in range(13):
            await delay(provider, NOW + 60 * number, address=address.format(number + 120), browser="b")
        assert 0 < await delay(provider, NOW + 721, address=address.format(200)) <= 60


async def test_strangers_at_many_addresses_keep_nobody_out_of_a_new_browser_elsewhere(tmp_path: Path) -> None:
    """D47: after a hundred guesses, and then one a second from a network each time anew, the owner tries at once."""
    async with provider_at(tmp_path) as provider:
        for number in range(100):
            await delay(provider, address=f"2001:db8:0:{number:x}::1", browser="stranger")
        for second in range(300):
            await delay(provider, NOW + second, address=f"2001:db8:{second % 3:x}:{second:x}::1", browser="stranger")
            if second % 70 == 69:
                assert await delay(provider, NOW + second, address="198.51.100.7", browser=f"own{second}") == 0


async def test_a_sign_in_of_the_owner_gives_a_guesser_at_many_addresses_nothing_back(tmp_path: Path) -> None:
    """D47: guesses from anywhere stay counted for 15 minutes, or each sign-in would bring a hundred more."""
    async with provider_at(tmp_path) as provider:
        for number in range(120):
            await delay(provider, address=f"192.0.2.{number}", browser="stranger")
        async with provider.transient.batch(NOW) as batch:
            owner = await context(provider, now=NOW, address="198.51.100.7")
            await throttle.forget_attempts(owner, batch, "rina", "own", known=False, of_address=2)
        assert await delay(provider, address="192.0.2.200", browser="stranger") > 0


async def test_unlocking_ends_the_delay_of_a_neighbourhood_too(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        for number in range(120):
            await delay(provider, address=f"192.0.2.{number}", browser="b")
        async with provider.transient.batch(NOW) as batch:
            await throttle.unlock(batch, provider.policy.base_url, "rina")
        again = [await delay(provider, address=f"192.0.2.{number}", browser="b") for number in range(106)]
        assert not any(again)


async def test_each_unlocking_lasts_as_long_as_the_first(tmp_path: Path) -> None:
    """D47: also if half an hour has passed since the one before it."""
    async with provider_at(tmp_path) as provider:
        begin = NOW - NOW % 900
        for unlocked in (begin + 200, begin + 1990):
            for _ in range(12):
                await delay(provider, unlocked - 10)
            assert await delay(provider, unlocked - 10) > 0
            async with provider.transient.batch(unlocked) as batch:
                await throttle.unlock(batch, provider.policy.base_url, "rina")
        assert [await delay(provider, begin + 2001) for _ in range(6)] == [0] * 6


async def test_unlocking_ends_the_delay_at_every_address(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        for address in ("192.0.2.1", "198.51.100.1"):
            for _ in range(7):
                await delay(provider, address=address)
            assert await delay(provider, address=address) > 0
        async with provider.transient.batch(NOW) as batch:
            await throttle.unlock(batch, provider.policy.base_url, "rina")
        for address in ("192.0.2.1", "198.51.100.1"):
            assert await delay(provider, address=address) == 0


async def test_a_browser_that_signed_in_before_is_not_slowed_by_strangers(tmp_path: Path) -> None:
    """D47: a known browser keeps its own allowance, and only for its own account."""
    async with provider_at(tmp_path) as provider:
        async with provider.transient.batch(NOW) as batch:
            await throttle.forget_attempts(
                await context(provider, now=NOW, address="192.0.2.1"), batch, "rina", "known", known=False, of_address=2
            )
            await throttle.remember(await context(provider, now=NOW), batch, "rina", "known", None, user_id="u1")
        for _ in range(7):
            await delay(provider, browser="stranger")
        assert await delay(provider, browser="stranger") > 0
        for _ in range(6):
            assert await delay(provider, browser="known") == 0
        assert await delay(provider, browser="known") > 0


async def test_a_known_browser_is_slowed_by_nobody_at_its_address_and_forgives_nobody_there(tmp_path: Path) -> None:
    """D47: what strangers try at an office's address is theirs, also after somebody there has signed in."""
    async with provider_at(tmp_path) as provider:
        request = await context(provider, now=NOW, address="192.0.2.1")
        async with provider.transient.batch(NOW) as batch:
            await throttle.remember(request, batch, "rina", "known", None, user_id="u1")
        for number in range(60):
            await delay(provider, user_name=f"victim{number}", browser="stranger")
        for _ in range(7):
            await delay(provider, browser="stranger", address="198.51.100.1")
        assert await delay(provider, user_name="another", browser="stranger") > 0
        assert [await delay(provider, browser="known") for _ in range(5)] == [0] * 5
        async with provider.transient.batch(NOW) as batch:
            await throttle.forget_attempts(request, batch, "rina", "known", known=True, of_address=0)
        assert [await delay(provider, browser="known") for _ in range(5)] == [0] * 5
        assert await delay(provider, user_name="another", browser="stranger") > 0
        assert await delay(provider, browser="stranger", address="198.51.100.1") > 0


async def test_an_account_of_ones_own_is_no_licence_to_try_others(tmp_path: Path) -> None:
    """D47: a sign-in gives its address back what it cost, not what was tried on others meanwhile."""

    async def signs_in(provider: Provider, number: int) -> None:
        for _ in range(2):
            assert await delay(provider, user_name=f"own{number}", browser="b") == 0
        async with provider.transient.batch(NOW) as batch:
            await throttle.forget_attempts(
                await context(provider, now=NOW, address="192.0.2.1"),
                batch,
                f"own{number}",
                "b",
                known=False,
                of_address=2,
            )

    async with provider_at(tmp_path) as provider:
        for number in range(48):
            assert await delay(provider, user_name=f"victim{number}") == 0
            await signs_in(provider, number)
        tried = [await delay(provider, user_name=f"another{number}") for number in range(4)]
        assert [seconds > 0 for seconds in tried] == [False, False, False, True]
        assert await delay(provider, NOW + 900, user_name="victim52") == 0


async def test_an_office_behind_one_address_is_not_slowed_by_its_own_sign_ins(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        for number in range(100):
            for _ in range(2):
                assert await delay(provider, user_name=f"person{number}", browser=f"b{number}") == 0
            async with provider.transient.batch(NOW) as batch:
                await throttle.forget_attempts(
                    await context(provider, now=NOW, address="192.0.2.1"),
                    batch,
                    f"person{number}",
                    f"b{number}",
                    known=False,
                    of_address=2,
                )


async def test_an_address_has_fifty_free_attempts_over_all_accounts(tmp_path: Path) -> None:
    """An IPv6 address counts with its /64, in which a caller can choose freely."""
    async with provider_at(tmp_path) as provider:
        for address in ("192.0.2.1", "2001:db8:1:2::{}"):
            admitted = [
                await delay(provider, address=address.format(number), user_name=f"{address}{number}")
                for number in range(1, 53)
            ]
            assert admitted[:51] == [0] * 51
            assert admitted[51] > 0
        assert await delay(provider, address="2001:db8:1:3::1", user_name="x") == 0


@pytest.mark.parametrize("address", ["", "unknown", "fe80::1%eth0", "::ffff:192.0.2.1"])
async def test_an_address_of_any_form_is_counted(tmp_path: Path, address: str) -> None:
    async with provider_at(tmp_path) as provider:
        assert await delay(provider, address=address) == 0


async def test_success_and_an_operator_end_the_delay(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        issuer = provider.policy.base_url
        for _ in range(7):
            await delay(provider)
        assert await delay(provider) > 0
        async with provider.transient.batch(NOW) as batch:
            await throttle.unlock(batch, issuer, "rina")
        assert [await delay(provider) for _ in range(6)] == [0] * 6
        assert await delay(provider) > 0
        async with provider.transient.batch(NOW) as batch:
            await throttle.forget_attempts(
                await context(provider, now=NOW, address="192.0.2.1"), batch, "rina", "b1", known=False, of_address=2
            )
        assert [await delay(provider, browser="b2") for _ in range(6)] == [0] * 6
