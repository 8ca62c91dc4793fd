"""Passwords, apps, passkeys and recovery codes, on each engine (D44, D45, D46)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials, FactorChange, Passkey, PersonFactors, Session
from corpid.rules.authentication.throttling import CodeGuesses
from corpid.rules.directory.records import Account, MissingReference
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import FACTORS, LIM, TAN, remove, write

if TYPE_CHECKING:
    from tests.adapters.databases import Place

KEY = Passkey(
    credential_id="A-_b", user_id=TAN.user_id, public_key="cHVi", sign_count=4, name="Tan's key", aaguid="0000",
    synced=False, transports=("hybrid", "internal"), created_at=5,
)  # fmt: skip
NOBODY = Credentials(user_id=TAN.user_id)
WITH = Credentials(user_id=TAN.user_id, password_hash="$argon2id$x", totp_secret="JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")


def add(passkey: Passkey) -> FactorChange:
    return FactorChange(before=NOBODY, after=NOBODY, add_passkey=passkey)


async def test_a_passkey_is_added_found_listed_renamed_and_removed(place: Place) -> None:
    """D46: by its owner only, and with its owner."""
    later = replace(KEY, credential_id="B", created_at=9, sign_count=2**32 - 1, transports=())

    async with place.opened() as stores:
        factors = stores.registry.factors
        await write(stores, TAN, LIM)
        assert await factors.change(add(later), EVENT)
        assert await factors.change(add(KEY), EVENT)
        assert not await factors.change(add(KEY), EVENT)
        assert (await factors.passkey("A-_b"), await factors.passkey("a-_b")) == (KEY, None)
        assert await factors.passkeys(TAN.user_id) == [KEY, later]
        assert await factors.passkeys(LIM.user_id) == []
        renamed = replace(later, name="Mine")
        assert not await factors.rename_passkey(replace(renamed, user_id=LIM.user_id), EVENT)
        before = len(await stores.registry.audit.entries())
        assert await factors.rename_passkey(renamed, EVENT)
        assert len(await stores.registry.audit.entries()) == before + 1
        foreign = Credentials(user_id=LIM.user_id)
        assert not await factors.change(FactorChange(before=foreign, after=foreign, remove_passkey="B"), EVENT)
        assert await factors.passkey("B") == replace(later, name="Mine")
        assert await factors.change(FactorChange(before=NOBODY, after=NOBODY, remove_passkey="B"), EVENT)
        assert await factors.passkey("B") is None
        await remove(stores, TAN)
        assert await factors.passkey("A-_b") is None


async def test_an_account_is_everything_that_a_person_signs_in_with_in_one_look(place: Place) -> None:
    """D44-D47, D51: whoever it is looked for by, and nothing of anybody else."""
    later = replace(KEY, credential_id="B", created_at=9)
    signed_in = AuditEvent(actor=f"user:{TAN.user_id}", action="sign_in.complete")

    async with place.opened() as stores:
        registry, factors = stores.registry, stores.registry.factors
        await write(stores, TAN, LIM)
        bare = await factors.account(TAN.user_id)
        assert bare == Account(
            user=TAN, held=PersonFactors(credentials=NOBODY, passkeys=(), codes=0),
            guesses=CodeGuesses(user_id=TAN.user_id), signed_in_before=False,
        )  # fmt: skip
        change = replace(add(later), after=WITH, recovery_codes=("a", "b", "c"))
        assert await factors.change(change, EVENT)
        assert await factors.change(FactorChange(before=WITH, after=WITH, add_passkey=KEY), EVENT)
        counted = CodeGuesses(user_id=TAN.user_id, browser="here", factors="f", guesses=3, paused_until=4, told_at=5)
        assert await registry.code_guesses.replace(replace(counted, guesses=0), counted)
        await registry.audit.write(signed_in, now=1)
        found = await factors.account(TAN.user_id, browser="here")
        assert found is not None and found.stored_secret not in (None, WITH.totp_secret)
        found = replace(found, stored_secret=None)
        assert found == Account(
            user=TAN, held=PersonFactors(credentials=WITH, passkeys=(KEY, later), codes=3), guesses=counted,
            signed_in_before=True,
        )  # fmt: skip
        elsewhere = await factors.account_by_name(TAN.user_name.upper())
        assert elsewhere is not None
        assert replace(elsewhere, stored_secret=None) == replace(found, guesses=CodeGuesses(user_id=TAN.user_id))
        assert await factors.account_by_passkey(later.credential_id) == elsewhere
        assert await factors.account_by_passkey("another") is None
        assert (await factors.account(LIM.user_id)) == Account(
            user=LIM, held=PersonFactors(credentials=Credentials(user_id=LIM.user_id), passkeys=(), codes=0),
            guesses=CodeGuesses(user_id=LIM.user_id), signed_in_before=False,
        )  # fmt: skip
        assert await factors.account("nobody") is None
        for name in ("nobody", "", "no\x00body"):
            assert await factors.account_by_name(name) is None


async def test_a_session_begins_only_for_a_person_who_is_as_they_were_seen(place: Place) -> None:
    """D50: enabled, with the same password and app, and with the passkey; a spent step of the app is no change."""
    async with place.opened() as stores:
        registry, sessions = stores.registry, stores.registry.sessions
        await write(stores, replace(TAN, enabled=True), LIM)
        assert await registry.factors.change(replace(add(KEY), after=WITH), EVENT)
        session = Session(
            session_id="s", user_id=TAN.user_id, browser_id="b", auth_time=1, amr=(), level=2, expires_at=2**33
        )

        async def begins(seen: Credentials, passkey: str = "") -> bool:
            same = await sessions.is_unchanged(seen, passkey=passkey)
            account = await registry.factors.account(seen.user_id)
            held = account.stored_secret if account is not None else None
            for stored in (held, "encrypted anew meanwhile", None):
                put = await sessions.put_if_unchanged(session, seen, passkey=passkey, stored_secret=stored)
                assert put is same
                assert (await sessions.get("s", now=NOW) is not None) is put
                await sessions.end("s", EVENT)
            return same

        assert await begins(WITH)
        assert await begins(WITH, KEY.credential_id)
        assert not await begins(WITH, "another")
        assert not await begins(replace(WITH, password_hash="$argon2id$y"))
        assert not await begins(replace(WITH, totp_secret=None))
        assert await registry.factors.raise_totp_step(TAN.user_id, 7, EVENT)
        assert await begins(WITH)
        assert not await begins(Credentials(user_id="nobody"))
        await write(stores, replace(TAN, enabled=False))
        assert not await begins(WITH)
        assert await sessions.is_unchanged(Credentials(user_id=LIM.user_id))


async def test_who_did_not_want_a_passkey_is_remembered_with_the_last_time(place: Place) -> None:
    """D46: read with the person, whatever passkeys they have; gone with them."""
    async with place.opened() as stores:
        factors = stores.registry.factors

        async def declined(user_id: str) -> int | None:
            found = await factors.account(user_id)
            return None if found is None else found.passkey_declined_at

        await write(stores, TAN, LIM)
        assert await declined(TAN.user_id) == 0
        await asyncio.gather(*(factors.decline_passkey(TAN.user_id, at=at) for at in (5, 5)))
        await factors.decline_passkey(TAN.user_id, at=9)
        assert (await declined(TAN.user_id), await declined(LIM.user_id)) == (9, 0)
        for each in (KEY, replace(KEY, credential_id="B")):
            assert await factors.change(add(each), EVENT)
        found = await factors.account_by_name(TAN.user_name)
        assert found is not None
        assert (found.passkey_declined_at, len(found.held.passkeys)) == (9, 2)
        await remove(stores, TAN)
        with pytest.raises(MissingReference):
            await factors.decline_passkey(TAN.user_id, at=10)
        await write(stores, TAN)
        assert await declined(TAN.user_id) == 0


async def test_a_passkey_is_used_from_the_counter_that_was_looked_at(place: Place) -> None:
    """D46: of several at once one is written, with its event."""
    async with place.opened() as stores:
        factors = stores.registry.factors
        await write(stores, TAN)
        await factors.change(add(KEY), EVENT)
        before = len(await stores.registry.audit.entries(limit=100))
        used = replace(KEY, sign_count=7, used_at=9, synced=True)
        assert sorted(await asyncio.gather(*(factors.use_passkey(used, KEY, EVENT) for _ in range(5)))) == [
            False
        ] * 4 + [True]
        assert await factors.passkey(KEY.credential_id) == used
        assert len(await stores.registry.audit.entries(limit=100)) == before + 1
        assert not await factors.use_passkey(replace(used, credential_id="C"), used, EVENT)


async def test_a_recovery_code_is_taken_once_and_by_its_owner(place: Place) -> None:
    """D45: new ones replace what was left."""
    async with place.opened() as stores:
        factors = stores.registry.factors
        await write(stores, TAN, LIM)
        change = FactorChange(before=NOBODY, after=NOBODY, recovery_codes=("a" * 64, "b" * 64))
        assert await factors.change(change, EVENT)
        assert await factors.recovery_codes_left(TAN.user_id) == 2
        assert not await factors.take_recovery_code(LIM.user_id, "a" * 64, EVENT)
        taken = await asyncio.gather(*(factors.take_recovery_code(TAN.user_id, "a" * 64, EVENT) for _ in range(5)))
        assert sorted(taken) == [False] * 4 + [True]
        assert await factors.recovery_codes_left(TAN.user_id) == 1
        assert await factors.change(replace(change, recovery_codes=("c" * 64,)), EVENT)
        assert not await factors.take_recovery_code(TAN.user_id, "b" * 64, EVENT)
        assert await factors.recovery_codes_left(TAN.user_id) == 1


async def test_a_change_is_written_whole_from_what_was_looked_at_or_not_at_all(place: Place) -> None:
    """docs/architecture.md, "One-time use": of two changes at once the second is told."""
    async with place.opened() as stores:
        factors = stores.registry.factors
        await write(stores, TAN)
        first = FactorChange(before=NOBODY, after=WITH, add_passkey=KEY, recovery_codes=("a" * 64,))
        second = replace(first, add_passkey=replace(KEY, credential_id="B"))
        assert await factors.change(first, EVENT)
        assert not await factors.change(second, EVENT)
        assert await factors.credentials(TAN.user_id) == WITH
        assert [each.credential_id for each in await factors.passkeys(TAN.user_id)] == [KEY.credential_id]
        known = FactorChange(before=WITH, after=NOBODY, add_passkey=KEY, recovery_codes=())
        assert not await factors.change(known, EVENT)
        assert await factors.recovery_codes_left(TAN.user_id) == 1
        assert await factors.credentials(TAN.user_id) == WITH


async def test_of_many_uses_of_one_totp_step_one_is_accepted(place: Place) -> None:
    """D45: a step works once."""
    async with place.opened() as stores:
        await write(stores, TAN, FACTORS)
        raised = await asyncio.gather(*(stores.registry.factors.raise_totp_step("u1", 6, EVENT) for _ in range(20)))
        assert raised.count(True) == 1
        assert not await stores.registry.factors.raise_totp_step("u1", 5, EVENT)
        assert await stores.registry.factors.raise_totp_step("u1", 7, EVENT)
        assert not await stores.registry.factors.raise_totp_step("nobody", 7, EVENT)
        assert len(await stores.registry.audit.entries()) == 3


async def test_writing_a_persons_factors_never_makes_a_spent_code_good(place: Place) -> None:
    """D45: what `corpid apply` read before a sign-in must not lower the step that the sign-in raised."""
    async with place.opened() as stores:
        await write(stores, TAN, FACTORS)
        await stores.registry.factors.raise_totp_step("u1", 9, EVENT)
        await write(stores, FACTORS)
        assert not await stores.registry.factors.raise_totp_step("u1", 9, EVENT)


async def test_a_rehash_replaces_only_the_hash_it_was_made_from(place: Place) -> None:
    """D44: a password that was changed meanwhile stays changed."""
    async with place.opened() as stores:
        await write(stores, TAN, FACTORS)
        factors = stores.registry.factors
        await factors.rehash("u1", "$argon2id$other", "$argon2id$wrong")
        assert await factors.credentials("u1") == FACTORS
        await factors.rehash("u1", "$argon2id$old", "$argon2id$new")
        assert await factors.credentials("u1") == replace(FACTORS, password_hash="$argon2id$new")


async def test_a_person_may_have_no_factor_yet(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, LIM)
        for user_id in (LIM.user_id, "nobody"):
            assert await stores.registry.factors.credentials(user_id) == Credentials(user_id=user_id)
