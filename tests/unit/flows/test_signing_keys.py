"""The provider's keys: made once, rotated, revoked; held ready, and read again within five seconds (D42)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from corpid.flows.operations import signing_keys
from corpid.flows.operations.signing_keys import RotationRefused, SigningKeys
from corpid.jose import compact
from corpid.jose.compact import BadSignature
from corpid.rules import signing_keys as rules
from corpid.rules.directory.access import CommandLine, Forbidden, Person
from corpid.rules.directory.records import Conflict
from tests.unit.flows.opened import NOW, provider_at

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.flows.request_context import Provider

OPERATOR = CommandLine(by="lee@node1")
TWO_HOURS = 7200
LATER = 60
"""after the start, when every process knows the first keys"""
KEPT = 600 + 3600


async def published(provider: Provider, now: float) -> list[str]:
    """The kids of the key set without that of the standby key, the one that signs first."""
    ring = (await provider.signing_keys.keys_at(now)).ring
    kids = [jwk["kid"] for jwk in json.loads(ring.public_key_set)["keys"]]
    assert kids[0] == ring.active.kid
    waiting = [key.kid for key in await signing_keys.stored_keys(provider.registry) if rules.is_standby(key)]
    assert len(waiting) == 1
    return [kid for kid in kids if kid not in waiting]


async def standby(provider: Provider) -> str:
    """The kid of the standby key."""
    (key,) = [key for key in await signing_keys.stored_keys(provider.registry) if rules.is_standby(key)]
    assert rules.state(key, NOW) == "standby"
    return key.kid


async def test_the_first_keys_are_made_once(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        before = await provider.registry.keys.list_all()
        await signing_keys.ensure_first_keys(provider.registry, now=NOW + 99)
        assert not await signing_keys.ensure_standby_key(provider.registry, now=NOW + 99)
        assert await provider.registry.keys.list_all() == before
        assert sorted(key.use for key in before) == ["mac", "sig", "sig"]


async def test_a_deployment_of_an_earlier_version_gets_its_standby_key_once(tmp_path: Path) -> None:
    """D42: also if several processes start together."""
    async with provider_at(tmp_path) as provider:
        kid = await standby(provider)
        with closing(sqlite3.connect(tmp_path / "corpid.sqlite")) as database, database:
            database.execute("DELETE FROM keys WHERE kid = ?", (kid,))
        made = [signing_keys.ensure_standby_key(provider.registry, now=NOW) for _ in range(5)]
        assert sorted(await asyncio.gather(*made)) == [False] * 4 + [True]
        assert await standby(provider) != kid
        assert [entry.action for entry in await provider.registry.audit.entries()] == ["key.publish"]


async def test_a_rotation_lets_the_published_key_sign_after_two_hours_and_keeps_the_old_key(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        (old,) = await published(provider, NOW)
        known = await standby(provider)
        token = compact.parse((await provider.signing_keys.keys_at(NOW)).ring.sign(b"{}", "JWT"))
        new = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)).kid
        assert new == known
        for age, kids in ((5, [old, new]), (TWO_HOURS - 1, [old, new]), (TWO_HOURS, [new, old])):
            assert await published(provider, NOW + age) == kids
        last = NOW + TWO_HOURS + KEPT
        (await provider.signing_keys.keys_at(last - 1)).ring.verify(token)
        assert await published(provider, last) == [new]
        with pytest.raises(BadSignature):
            (await provider.signing_keys.keys_at(last)).ring.verify(token)


async def test_a_rotation_is_noticed_within_five_seconds_without_a_restart(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        start = NOW + LATER
        (old,) = await published(provider, start)
        new = (await signing_keys.rotate(provider.registry, OPERATOR, now=start + 1, at_once=True)).kid
        assert (await provider.signing_keys.keys_at(start + 4.9)).ring.active.kid == old
        assert await published(provider, start + 5) == [new, old]


async def test_a_key_that_not_every_process_knows_signs_when_they_do(tmp_path: Path) -> None:
    """D42: a standby key of this moment is known to each process after five seconds."""
    async with provider_at(tmp_path) as provider:
        start, registry = NOW + LATER, provider.registry
        (first,) = await published(provider, start)
        second = await signing_keys.revoke(registry, OPERATOR, first, now=start)
        assert second is not None
        assert second.active_from == start
        third = await signing_keys.revoke(registry, OPERATOR, second.kid, now=start + 1)
        assert third is not None
        assert third.active_from == start + 5
        told = second_token = None
        for age, kids in ((1, {first, second.kid, third.kid}), (5, {second.kid, third.kid}), (10, {third.kid})):
            other = SigningKeys(registry)
            ring = (await other.keys_at(start + age)).ring
            assert set(ring.by_kid) == kids | {await standby(provider)}
            second_token = second_token or compact.parse(ring.sign(b"{}", "JWT"))
            told = ring.active.kid
            assert told == (second.kid if age < 5 else third.kid)
            if age < 10:
                ring.verify(second_token)


async def test_two_rotations_in_a_row_leave_no_moment_without_a_key(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        first = (await published(provider, NOW))[0]
        second = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)).kid
        third = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW + 600)).kid
        signing = [
            (await provider.signing_keys.keys_at(NOW + TWO_HOURS + age)).ring.active.kid
            for age in (-1, 0, 599, 600, 10**6)
        ]
        assert signing == [first, second, second, third, third]


async def test_a_revoked_key_is_gone_in_five_seconds_and_the_published_one_signs_at_once(tmp_path: Path) -> None:
    """D42: every process knows the next key already, and both are accepted until each knows of the revocation."""
    async with provider_at(tmp_path) as provider:
        start = NOW + LATER
        (old,), known = await published(provider, start), await standby(provider)
        stale = compact.parse((await provider.signing_keys.keys_at(start)).ring.sign(b"{}", "JWT"))
        next_key = await signing_keys.revoke(provider.registry, OPERATOR, old, now=start)
        assert next_key is not None
        assert next_key.kid == known
        elsewhere = (await SigningKeys(provider.registry).keys_at(start)).ring
        assert elsewhere.active.kid == known
        elsewhere.verify(stale)
        (await provider.signing_keys.keys_at(start + 4)).ring.verify(compact.parse(elsewhere.sign(b"{}", "JWT")))
        assert await published(provider, start + 5) == [known]
        assert await published(provider, start + 10**7) == [known]
        with pytest.raises(BadSignature):
            (await provider.signing_keys.keys_at(start + 5)).ring.verify(stale)
        with pytest.raises(RotationRefused, match="revoked already"):
            await signing_keys.revoke(provider.registry, OPERATOR, old, now=start + 20)


async def test_a_clock_that_is_behind_does_not_bring_a_revoked_key_back(tmp_path: Path) -> None:
    """D42: ten seconds after a process knows of it, it is gone."""
    async with provider_at(tmp_path) as provider:
        (old,) = await published(provider, NOW)
        await signing_keys.revoke(provider.registry, OPERATOR, old, now=NOW + 3600)
        ring = (await provider.signing_keys.keys_at(NOW + 10)).ring
        assert old in ring.by_kid
        assert old not in (await provider.signing_keys.keys_at(NOW + 20)).ring.by_kid


async def test_revoking_the_scheduled_key_lets_the_next_one_take_its_place(tmp_path: Path) -> None:
    """Whatever is revoked, at no later moment is there no key that signs."""
    async with provider_at(tmp_path) as provider:
        (old,) = await published(provider, NOW)
        doubtful = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)).kid
        made = await signing_keys.revoke(provider.registry, OPERATOR, doubtful, now=NOW + 600)
        assert made is not None
        assert made.active_from == NOW + TWO_HOURS
        assert await published(provider, NOW + 605) == [old, made.kid]
        signing = [
            (await provider.signing_keys.keys_at(NOW + TWO_HOURS + age)).ring.active.kid for age in (-1, 0, 10**6)
        ]
        assert signing == [old, made.kid, made.kid]


async def test_revoking_the_standby_key_publishes_another(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        (old,), doubtful = await published(provider, NOW), await standby(provider)
        assert await signing_keys.revoke(provider.registry, OPERATOR, doubtful, now=NOW) is None
        assert await standby(provider) != doubtful
        assert await published(provider, NOW + 5) == [old]
        assert doubtful not in (await provider.signing_keys.keys_at(NOW + 5)).ring.by_kid


async def test_revoking_the_middle_one_of_three_keys_leaves_no_gap(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        first = (await published(provider, NOW))[0]
        second = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)).kid
        third = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW + 600)).kid
        assert await signing_keys.revoke(provider.registry, OPERATOR, second, now=NOW + 700) is None
        signing = [
            (await provider.signing_keys.keys_at(NOW + TWO_HOURS + age)).ring.active.kid
            for age in (-1, 0, 599, 600, 10**6)
        ]
        assert signing == [first, first, first, third, third]


async def test_revoking_the_key_that_signs_while_the_next_one_waits_lets_that_one_sign_at_once(tmp_path: Path) -> None:
    """Issue: the key that is already published signs next."""
    async with provider_at(tmp_path) as provider:
        first = (await published(provider, NOW))[0]
        scheduled = await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)
        next_key = await signing_keys.revoke(provider.registry, OPERATOR, first, now=NOW + 10)
        assert next_key is not None
        assert next_key.kid == scheduled.kid
        signing = [(await provider.signing_keys.keys_at(NOW + age)).ring.active.kid for age in (15, TWO_HOURS, 10**7)]
        assert signing == [scheduled.kid] * 3


async def test_of_two_operators_who_revoke_the_same_key_one_does(tmp_path: Path) -> None:
    """Each change is decided on the keys as they are."""
    async with provider_at(tmp_path) as provider:
        (old,) = await published(provider, NOW)
        both = [signing_keys.revoke(provider.registry, OPERATOR, old, now=NOW) for _ in range(2)]
        answers = await asyncio.gather(*both, return_exceptions=True)
        assert sorted(type(each).__name__ for each in answers) == ["ProviderKey", "RotationRefused"]
        assert len(await signing_keys.stored_keys(provider.registry)) == 3
        await standby(provider)


async def test_a_change_that_fails_on_the_way_leaves_every_key_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process died between two statements."""
    async with provider_at(tmp_path) as provider:
        before = await provider.registry.keys.list_all()
        with closing(sqlite3.connect(tmp_path / "corpid.sqlite")) as database, database:
            database.execute(
                "CREATE TRIGGER broken BEFORE INSERT ON keys BEGIN SELECT RAISE(ABORT, 'nothing more'); END"
            )
        with pytest.raises(Conflict):
            await signing_keys.revoke(provider.registry, OPERATOR, (await published(provider, NOW))[0], now=NOW)
        assert await provider.registry.keys.list_all() == before


async def test_dates_of_the_list_never_contradict_one_another(tmp_path: Path) -> None:
    """Issue: a key signs before it retires, or never; a revoked one has no later date."""
    async with provider_at(tmp_path) as provider:
        now = NOW
        for step in range(12):
            now += 700 * (1 + step % 3)
            stored = await signing_keys.stored_keys(provider.registry)
            alive = [key for key in stored if key.revoked_at is None]
            if step % 2:
                await signing_keys.rotate(provider.registry, OPERATOR, now=now, at_once=step % 3 == 0)
            else:
                await signing_keys.revoke(provider.registry, OPERATOR, alive[step % len(alive)].kid, now=now)
            stored = await signing_keys.stored_keys(provider.registry)
            for later in (0, 30, 10**5):
                assert [rules.state(key, now + later) for key in stored].count("in use") == 1
                assert [rules.state(key, now + later) for key in stored].count("standby") == 1
            for key in stored:
                dates = [rules.signs_from(key), rules.retires_at(key), rules.published_until(key)]
                told = [date for date in dates if date is not None]
                assert told == sorted(told), key
                assert rules.retires_at(key) is None or rules.signs_from(key) is not None


async def test_an_unknown_key_is_not_revoked(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        with pytest.raises(RotationRefused, match="corpid key list"):
            await signing_keys.revoke(provider.registry, OPERATOR, "server-secret", now=NOW)


async def test_only_an_operator_touches_the_keys(tmp_path: Path) -> None:
    """SECURITY.md: the law of access is asked by every write."""
    async with provider_at(tmp_path) as provider:
        before = await provider.registry.keys.list_all()
        with pytest.raises(Forbidden):
            await signing_keys.rotate(provider.registry, Person("u"), now=NOW)
        with pytest.raises(Forbidden):
            await signing_keys.revoke(provider.registry, Person("u"), before[0].kid, now=NOW)
        assert await provider.registry.keys.list_all() == before


async def test_the_servers_mac_is_the_same_for_the_same_parts_only(tmp_path: Path) -> None:
    async with provider_at(tmp_path) as provider:
        mac = (await provider.signing_keys.keys_at(NOW)).mac
        assert mac("code", "ab", "c") == mac("code", "ab", "c")
        assert len({mac("code", "ab", "c"), mac("code", "a", "bc"), mac("form", "ab", "c"), mac("code", "abc")}) == 4
        assert len(mac("code")) == 43


async def test_no_keys_are_given_out_without_the_server_secret(tmp_path: Path) -> None:
    """Fails closed: an HMAC without a secret is one that anybody can compute."""
    async with provider_at(tmp_path) as provider:
        with closing(sqlite3.connect(tmp_path / "corpid.sqlite")) as database, database:
            database.execute("DELETE FROM keys WHERE use = 'mac'")
        with pytest.raises(ValueError, match="the server secret is missing"):
            await SigningKeys(provider.registry).keys_at(NOW)


async def test_a_proofs_nonce_holds_for_its_step_of_two_minutes_and_the_next(tmp_path: Path) -> None:
    """RFC 9449 §8."""
    async with provider_at(tmp_path) as provider:
        keys, begin = await provider.signing_keys.keys_at(NOW), NOW // 120 * 120
        nonce = keys.dpop_nonce(begin, loss="")
        assert keys.dpop_nonce(begin + 119.9, loss="") == nonce
        assert keys.is_dpop_nonce(nonce, begin, loss="")
        assert keys.is_dpop_nonce(nonce, begin + 239.9, loss="")
        assert not keys.is_dpop_nonce(nonce, begin + 240, loss="")
        assert not keys.is_dpop_nonce(nonce, begin - 1, loss="")
        for wrong in (None, "", nonce + "x", "ü"):
            assert not keys.is_dpop_nonce(wrong, begin, loss="")


async def test_a_nonce_of_before_a_loss_of_data_is_none_after_it(tmp_path: Path) -> None:
    """D67: the name of the loss is part of it."""
    async with provider_at(tmp_path) as provider:
        keys = await provider.signing_keys.keys_at(NOW)
        before, after = keys.dpop_nonce(NOW, loss=""), keys.dpop_nonce(NOW, loss="0001-a-b")
        assert keys.is_dpop_nonce(after, NOW, loss="0001-a-b")
        for nonce, loss in ((before, "0001-a-b"), (after, "0002-c-b"), (after, "")):
            assert not keys.is_dpop_nonce(nonce, NOW, loss=loss)
