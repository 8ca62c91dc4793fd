"""Passwords: argon2id in bounded threads of its own, the same work for nobody (D44)."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import replace

import argon2
import pytest
from argon2.profiles import CHEAPEST, RFC_9106_LOW_MEMORY

from corpid.outbound.passwords import Argon2Passwords, Passwords, guessable_passwords, parameters
from corpid.rules.authentication.passwords import (
    COMMAND_LINE,
    LONGEST_PASSWORD,
    PROFILES,
    SHORTEST_PASSWORD,
    HashCost,
    read_hash_cost,
)
from corpid.rules.failures import PasswordsBusy
from tests.logs import capture_logs

CHEAP = replace(CHEAPEST, salt_len=16, hash_len=32)
RIGHT = "a horse named Battery"


def cheap(threads: int = 1, waiting: int | None = None) -> Argon2Passwords:
    return Argon2Passwords(threads=threads, waiting=waiting, profile=CHEAP)


async def test_a_password_fits_its_own_hash_and_no_other_password_does() -> None:
    port: Passwords = cheap()
    passwords = cheap()
    hashed = await port.hash(RIGHT, source=COMMAND_LINE)
    assert hashed.startswith("$argon2id$")
    assert await passwords.hash(RIGHT) != hashed
    assert await passwords.verify(hashed, RIGHT) is True
    for wrong in ("", RIGHT + " ", RIGHT.upper(), RIGHT + "\0", RIGHT * 100):
        assert await passwords.verify(hashed, wrong) is False


async def test_every_way_to_type_the_same_characters_fits() -> None:
    """D44: after NFC."""
    passwords = cheap()
    hashed = await passwords.hash("Caf\u00e9 on the corner")
    assert await passwords.verify(hashed, "Cafe\u0301 on the corner") is True
    assert await passwords.verify(hashed, "Cafe on the corner") is False


@pytest.mark.parametrize("stored", ["horse and battery", "horse\u00a0and\u00a0battery"])
async def test_a_password_fits_with_any_space_also_one_hashed_before_spaces_were_mapped(stored: str) -> None:
    """RFC 8265 §4.2.2, D75."""
    passwords = cheap()
    hashed = passwords._hasher.hash(stored.encode())
    assert await passwords.verify(hashed, "horse\u00a0and\u00a0battery") is True
    assert await passwords.verify(hashed, "horse\u00a0and\u00a0batterx") is False
    assert await passwords.verify(await passwords.hash("horse\u00a0and\u00a0battery"), "horse and battery") is True


@pytest.mark.parametrize("typed", ["horse\u00a0and battery", "horse and battery", "e\u0301" * 12, "x" * 1000])
async def test_both_forms_are_one_attempt_with_the_same_work_for_nobody(
    typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D44, D47, D75."""
    passwords = cheap()
    wrong = await passwords.hash(RIGHT)
    jobs, hashes = Counter[str](), Counter[str]()
    who = ""
    submit, verify = passwords._threads.submit, argon2.PasswordHasher.verify
    monkeypatch.setattr(passwords._threads, "submit", lambda *args: (jobs.update([who]), submit(*args))[1])
    monkeypatch.setattr(argon2.PasswordHasher, "verify", lambda *args: (hashes.update([who]), verify(*args))[1])
    for who, held in (("somebody", wrong), ("nobody", None)):  # noqa: B007 - the wrappers read it
        assert await passwords.verify(held, typed) is False
    assert jobs == {"somebody": 1, "nobody": 1}
    assert hashes["somebody"] == hashes["nobody"] == (2 if "\u00a0" in typed else 1)


def test_nobodys_password_is_refused_after_the_same_work() -> None:
    """D44: for an unknown user a hash of exactly the same cost is computed."""
    passwords = Argon2Passwords(threads=1, profile=RFC_9106_LOW_MEMORY)
    assert argon2.extract_parameters(passwords._nobody) == RFC_9106_LOW_MEMORY
    with pytest.raises(argon2.exceptions.VerifyMismatchError):
        argon2.PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY).verify(passwords._nobody, RIGHT)
    assert asyncio.run(passwords.verify(None, RIGHT)) is False


@pytest.mark.parametrize(
    "text", ["", "plain", "$argon2id$v=19$m=8,t=1,p=1$", "$2b$12$abcdefghijklmnopqrstuv", "h\u00e4sh"]
)
def test_a_hash_that_cannot_be_read_refuses_and_is_logged(text: str) -> None:
    with capture_logs() as logged:
        assert asyncio.run(cheap().verify(text, RIGHT)) is False
    assert [line["event"] for line in logged] == ["password_hash_unusable"]


async def test_any_text_can_be_tried_even_one_that_is_no_unicode() -> None:
    passwords = cheap()
    hashed = await passwords.hash(RIGHT)
    for text in ("\ud800", "\0", "a\u0315\u0300" * 30000):
        assert await passwords.verify(hashed, text) is False


def test_hashes_are_made_with_the_second_profile_of_rfc_9106_or_more_unless_told_otherwise() -> None:
    passwords = Argon2Passwords(threads=1)
    parameters = argon2.extract_parameters(asyncio.run(passwords.hash(RIGHT)))
    assert parameters.type is argon2.Type.ID
    assert (parameters.memory_cost, parameters.time_cost, parameters.parallelism) == (65536, 3, 4)


@pytest.mark.parametrize("cost", PROFILES.values(), ids=PROFILES)
def test_nobodys_hash_costs_what_the_setting_says(cost: HashCost) -> None:
    """D44: an unknown user costs a hash at the current setting."""
    passwords = Argon2Passwords(threads=1, profile=parameters(cost))
    assert read_hash_cost(passwords._nobody) == cost
    assert read_hash_cost(asyncio.run(passwords.hash(RIGHT))) == cost


async def test_a_hash_that_costs_less_is_outdated_and_one_that_costs_more_is_not() -> None:
    """D44: raised to the setting, never lowered."""
    old, new = cheap(), Argon2Passwords(threads=1, profile=replace(CHEAP, time_cost=2))
    hashed = await old.hash(RIGHT)
    assert old.is_outdated(hashed) is False
    assert new.is_outdated(hashed) is True
    assert old.is_outdated(await new.hash(RIGHT)) is False
    assert await new.verify(hashed, RIGHT) is True
    assert new.is_outdated(await new.hash(RIGHT)) is False


def occupied(passwords: Argon2Passwords, threads: int) -> threading.Event:
    """Keep all threads busy until the event is set."""
    release, started = threading.Event(), threading.Semaphore(0)

    def work() -> None:
        started.release()
        release.wait(60)

    for _ in range(threads):
        passwords._threads.submit(work, COMMAND_LINE)
    for _ in range(threads):
        started.acquire()
    return release


async def test_beyond_its_bound_a_check_is_refused_and_never_queued() -> None:
    passwords = cheap(threads=1, waiting=2)
    release = occupied(passwords, 1)
    waiting = [asyncio.create_task(passwords.verify(None, RIGHT)) for _ in range(2)]
    await asyncio.sleep(0)
    for refused in (passwords.verify(None, RIGHT), passwords.hash(RIGHT)):
        with pytest.raises(PasswordsBusy):
            await refused
    release.set()
    assert await asyncio.gather(*waiting) == [False, False]
    assert await passwords.verify(None, RIGHT) is False


async def test_whoever_goes_away_gives_the_place_in_the_queue_back() -> None:
    passwords = cheap(threads=1, waiting=1)
    release = occupied(passwords, 1)
    waiting = asyncio.create_task(passwords.verify(None, RIGHT))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    patient = asyncio.create_task(passwords.verify(None, RIGHT))
    await asyncio.sleep(0)
    release.set()
    assert await patient is False


def test_after_closing_nothing_is_taken_on() -> None:
    passwords = cheap()
    passwords.close()
    for _ in range(40):
        with pytest.raises(PasswordsBusy, match="stopped"):
            asyncio.run(passwords.verify(None, RIGHT))


def test_the_blocklist_holds_what_people_come_up_with_in_the_form_that_is_compared() -> None:
    blocklist = guessable_passwords()
    for obvious in (
        "password1234", "123456789012", "qwertyuiop12", "administrator", "aaaaaaaaaaaa", "abcabcabcabc", "welcome2024!",
        "1qaz2wsx3edc", "p@ssw0rd1234", "passwordpassword", "iloveyou1234", "abcdefghijkl", "098765432109",
    ):  # fmt: skip
        assert obvious in blocklist, obvious
    assert all(text == text.casefold() and SHORTEST_PASSWORD <= len(text) <= LONGEST_PASSWORD for text in blocklist)
    assert 5_000 < len(blocklist) < 100_000
    assert RIGHT.casefold() not in blocklist
