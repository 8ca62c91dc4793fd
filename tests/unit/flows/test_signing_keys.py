"""The provider's keys: made once, rotated, revoked; held ready, and read again within five seconds (D42)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from corpid.flows.operations import signing_keys
from corpid.flows.operations.signing_keys import RotationRefused, SigningKeys
from corpid.jose import compact
from corpid.jose.compact import BadSignature
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.actors import CommandLine, Person
from tests.unit.flows.opened import NOW, with_provider

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.flows.provider import Provider

OPERATOR = CommandLine(by="lee@node1")
TWO_HOURS = 7200
KEPT = 600 + 3600


async def published(provider: Provider, now: float) -> list[str]:
    ring = (await provider.signing_keys.at(now)).ring
    kids = [jwk["kid"] for jwk in json.loads(ring.public_key_set)["keys"]]
    assert kids[0] == ring.active.kid
    return kids


def test_the_first_keys_are_made_once(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        before = await provider.registry.keys.all()
        await signing_keys.ensure_first_keys(provider.registry, now=NOW + 99)
        assert await provider.registry.keys.all() == before
        assert sorted(key.use for key in before) == ["mac", "sig"]

    with_provider(tmp_path, story)


def test_a_rotation_publishes_for_two_hours_then_signs_and_keeps_the_old_key(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        (old,) = await published(provider, NOW)
        token = compact.parse((await provider.signing_keys.at(NOW)).ring.sign(b"{}", "JWT"))
        new = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)).kid
        for age, kids in ((5, [old, new]), (TWO_HOURS - 1, [old, new]), (TWO_HOURS, [new, old])):
            assert await published(provider, NOW + age) == kids
        last = NOW + TWO_HOURS + KEPT
        (await provider.signing_keys.at(last - 1)).ring.verify(token)
        assert await published(provider, last) == [new]
        with pytest.raises(BadSignature):
            (await provider.signing_keys.at(last)).ring.verify(token)

    with_provider(tmp_path, story)


def test_a_rotation_is_noticed_within_five_seconds_without_a_restart(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        (old,) = await published(provider, NOW)
        new = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW + 1, at_once=True)).kid
        assert await published(provider, NOW + 4.9) == [old]
        assert await published(provider, NOW + 5) == [new, old]

    with_provider(tmp_path, story)


def test_two_rotations_in_a_row_leave_no_moment_without_a_key(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        first = (await published(provider, NOW))[0]
        second = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)).kid
        third = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW + 600)).kid
        signing = [
            (await provider.signing_keys.at(NOW + TWO_HOURS + age)).ring.active.kid for age in (-1, 0, 599, 600, 10**6)
        ]
        assert signing == [first, second, second, third, third]

    with_provider(tmp_path, story)


def test_a_revoked_key_is_gone_at_once_and_another_signs(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        (old,) = await published(provider, NOW)
        made = await signing_keys.revoke(provider.registry, OPERATOR, old, now=NOW + 10)
        assert made is not None
        assert await published(provider, NOW + 15) == [made.kid]
        assert await published(provider, NOW + 10**7) == [made.kid]
        with pytest.raises(RotationRefused, match="revoked already"):
            await signing_keys.revoke(provider.registry, OPERATOR, old, now=NOW + 20)

    with_provider(tmp_path, story)


def test_revoking_the_next_key_leaves_the_present_one_until_another_takes_over(tmp_path: Path) -> None:
    """Whatever is revoked, at no later moment is there no key that signs."""

    async def story(provider: Provider) -> None:
        (old,) = await published(provider, NOW)
        doubtful = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)).kid
        made = await signing_keys.revoke(provider.registry, OPERATOR, doubtful, now=NOW + 600)
        assert made is not None
        assert made.active_from == NOW + 600 + TWO_HOURS
        assert await published(provider, NOW + 605) == [old, made.kid]
        signing = [
            (await provider.signing_keys.at(NOW + TWO_HOURS + age)).ring.active.kid for age in (0, 599, 600, 10**6)
        ]
        assert signing == [old, old, made.kid, made.kid]

    with_provider(tmp_path, story)


def test_revoking_the_middle_one_of_three_keys_leaves_no_gap(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        first = (await published(provider, NOW))[0]
        second = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)).kid
        third = (await signing_keys.rotate(provider.registry, OPERATOR, now=NOW + 600)).kid
        assert await signing_keys.revoke(provider.registry, OPERATOR, second, now=NOW + 700) is None
        signing = [
            (await provider.signing_keys.at(NOW + TWO_HOURS + age)).ring.active.kid for age in (-1, 0, 599, 600, 10**6)
        ]
        assert signing == [first, first, first, third, third]

    with_provider(tmp_path, story)


def test_revoking_the_key_that_signs_while_the_next_one_waits_makes_one_at_once(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        first = (await published(provider, NOW))[0]
        await signing_keys.rotate(provider.registry, OPERATOR, now=NOW)
        made = await signing_keys.revoke(provider.registry, OPERATOR, first, now=NOW + 10)
        assert made is not None
        signing = [(await provider.signing_keys.at(NOW + age)).ring.active.kid for age in (15, TWO_HOURS, 10**7)]
        assert signing == [made.kid] * 3

    with_provider(tmp_path, story)


def test_an_unknown_key_is_not_revoked(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        with pytest.raises(RotationRefused, match="corpid key list"):
            await signing_keys.revoke(provider.registry, OPERATOR, "server-secret", now=NOW)

    with_provider(tmp_path, story)


def test_only_an_operator_touches_the_keys(tmp_path: Path) -> None:
    """DESIGN "Security": the law of access is asked by every write."""

    async def story(provider: Provider) -> None:
        before = await provider.registry.keys.all()
        with pytest.raises(Forbidden):
            await signing_keys.rotate(provider.registry, Person("u"), now=NOW)
        with pytest.raises(Forbidden):
            await signing_keys.revoke(provider.registry, Person("u"), before[0].kid, now=NOW)
        assert await provider.registry.keys.all() == before

    with_provider(tmp_path, story)


def test_the_servers_mac_is_the_same_for_the_same_parts_only(tmp_path: Path) -> None:
    async def story(provider: Provider) -> None:
        mac = (await provider.signing_keys.at(NOW)).mac
        assert mac("code", "ab", "c") == mac("code", "ab", "c")
        assert len({mac("code", "ab", "c"), mac("code", "a", "bc"), mac("form", "ab", "c"), mac("code", "abc")}) == 4
        assert len(mac("code")) == 43

    with_provider(tmp_path, story)


def test_no_keys_are_given_out_without_the_server_secret(tmp_path: Path) -> None:
    """Fails closed: an HMAC without a secret is one that anybody can compute."""

    async def story(provider: Provider) -> None:
        with closing(sqlite3.connect(tmp_path / "corpid.sqlite")) as database, database:
            database.execute("DELETE FROM keys WHERE use = 'mac'")
        with pytest.raises(ValueError, match="the server secret is missing"):
            await SigningKeys(provider.registry).at(NOW)

    with_provider(tmp_path, story)


def test_a_proofs_nonce_holds_for_its_step_of_two_minutes_and_the_next(tmp_path: Path) -> None:
    """RFC 9449 §8."""

    async def story(provider: Provider) -> None:
        keys, begin = await provider.signing_keys.at(NOW), NOW // 120 * 120
        nonce = keys.dpop_nonce(begin, loss="")
        assert keys.dpop_nonce(begin + 119.9, loss="") == nonce
        assert keys.is_dpop_nonce(nonce, begin, loss="")
        assert keys.is_dpop_nonce(nonce, begin + 239.9, loss="")
        assert not keys.is_dpop_nonce(nonce, begin + 240, loss="")
        assert not keys.is_dpop_nonce(nonce, begin - 1, loss="")
        for wrong in (None, "", nonce + "x", "ü"):
            assert not keys.is_dpop_nonce(wrong, begin, loss="")

    with_provider(tmp_path, story)


def test_a_nonce_of_before_a_loss_of_data_is_none_after_it(tmp_path: Path) -> None:
    """D67: the name of the loss is part of it."""

    async def story(provider: Provider) -> None:
        keys = await provider.signing_keys.at(NOW)
        before, after = keys.dpop_nonce(NOW, loss=""), keys.dpop_nonce(NOW, loss="0001-a-b")
        assert keys.is_dpop_nonce(after, NOW, loss="0001-a-b")
        for nonce, loss in ((before, "0001-a-b"), (after, "0002-c-b"), (after, "")):
            assert not keys.is_dpop_nonce(nonce, NOW, loss=loss)

    with_provider(tmp_path, story)
