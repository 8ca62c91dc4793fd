"""The calendar of signing keys, whatever operators do and in whatever order (D42)."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from corpid.rules import signing_keys
from corpid.rules.signing_keys import AGREED_SECONDS, STANDBY, KeyTransition, ProviderKey

NOW = 1_800_000_000
PAUSES = (0, 1, 2, 3, 5, 6, 60, 3600, 7200, 20_000)
CHANGES = 6
EXAMPLES = 20


class Calendar:
    """Keys without secrets, and the present moment."""

    def __init__(self) -> None:
        self.now = NOW
        self._made = 0
        self.keys = {"k1": msgspec.structs.replace(self.make(), active_from=NOW)}
        self.keys["k2"] = self.make()
        self.now += 60

    def make(self) -> ProviderKey:
        self._made += 1
        return ProviderKey(kid=f"k{self._made}", use="sig", secret="", created_at=self.now, active_from=STANDBY)

    def rotate(self, *, at_once: bool = False) -> None:
        self._take(signing_keys.rotation(list(self.keys.values()), self.make, now=self.now, at_once=at_once))

    def revoke(self, kid: str) -> None:
        keys = list(self.keys.values())
        self._take(signing_keys.revocation(keys, self.keys[kid], self.make, now=self.now))

    def _take(self, steps: list[KeyTransition]) -> None:
        self.keys |= {step.key.kid: step.key for step in steps}

    def signing(self, moment: int) -> ProviderKey:
        """The newest key whose dates let it sign."""
        found = [
            key
            for key in self.keys.values()
            if key.active_from <= moment
            and (key.retired_at is None or moment < key.retired_at)
            and (key.revoked_at is None or moment < key.revoked_at)
        ]
        assert found, f"no key signs {moment - self.now} s after the change"
        return max(found, key=lambda key: key.active_from)


def test_a_revoked_successor_gives_way_at_once_though_another_key_is_scheduled() -> None:
    calendar = Calendar()
    calendar.revoke("k2")
    calendar.revoke("k1")
    calendar.now += 2
    calendar.rotate()
    calendar.now += 1
    calendar.revoke("k3")
    assert calendar.keys["k4"].active_from == calendar.keys["k1"].retired_at
    calendar.revoke("k4")
    assert calendar.signing(calendar.now + AGREED_SECONDS).kid == "k5"


def test_a_young_key_waits_also_while_a_revoked_one_signs() -> None:
    calendar = Calendar()
    calendar.rotate(at_once=True)
    calendar.now += 1
    calendar.revoke("k2")
    calendar.now += 3
    calendar.rotate(at_once=True)
    assert calendar.keys["k3"].active_from == calendar.keys["k2"].retired_at


@pytest.mark.parametrize("example", range(EXAMPLES))
def test_at_each_moment_a_known_key_signs_and_no_revoked_one_does_for_long(example: int) -> None:
    for seed in range(example * EXAMPLES, (example + 1) * EXAMPLES):
        chance, calendar = Random(seed), Calendar()
        revoked: dict[str, int] = {}
        for _ in range(CHANGES):
            change = chance.choice(("rotate", "at once", "revoke", "revoke"))
            if change == "revoke":
                kid = chance.choice([key.kid for key in calendar.keys.values() if key.revoked_at is None])
                calendar.revoke(kid)
                revoked[kid] = calendar.now
            else:
                calendar.rotate(at_once=change == "at once")
            assert [signing_keys.is_standby(key) for key in calendar.keys.values()].count(True) == 1
            pause = chance.choice(PAUSES)
            for moment in (*range(calendar.now, calendar.now + min(pause, 12) + 1), calendar.now + pause):
                signing = calendar.signing(moment)
                assert moment >= signing.created_at + AGREED_SECONDS
                assert moment < revoked.get(signing.kid, moment) + AGREED_SECONDS
            calendar.now += pause
        for kid, at in revoked.items():
            assert (calendar.keys[kid].revoked_at or 0) <= at + 2 * AGREED_SECONDS
