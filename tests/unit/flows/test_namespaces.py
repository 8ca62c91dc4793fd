"""What lives in the transient store: its lifetimes, and how its keys are made (D15, D18, D49, docs/architecture.md, "One-time use")."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.flows import namespaces
from corpid.flows.namespaces import Namespace
from corpid.rules import limits
from corpid.rules.oauth.records import Grant
from tests.memory_store import MemoryTransientStore
from tests.unit.jose.signed import tuple_of

EVERY = [one for one in vars(namespaces).values() if isinstance(one, Namespace)]
STORED = {
    "pushed_request": (720, "e0bda6480cdbc18c"),
    "arrival": (7200, "70da26d97ee22445"),
    "interaction_count": (720, "3b294a9e8f247de5"),
    "interaction": (7500, "5be9e6d65ffde4a6"),
    "unfinished": (720, "a539e6411d14f2db"),
    "claim": (7500, "2afeb71ded6f4eee"),
    "completed": (7500, "44cfe475ffeef669"),
    "api_keys": (86400, "e871fc95791d63f3"),
    "rate": (120, "743deb74cfc9d035"),
    "step": (60, "534b8d9f37c54f61"),
    "code": (60, "ec50d4f0ffd5b67e"),
    "denied_token": (660, "86fc7b2a129e4663"),
    "proof": (0, "8c1c368c6ee64e24"),
    "assertion": (0, "6f910d879589bc01"),
    "browser": (7776000, "f7c5c6ed6fe62608"),
    "retired_browser": (86700, "6e287a97586006de"),
    "repeated_form": (60, "d50d64a44c2f859a"),
    "repeat_misses": (60, "59af013a2fb97080"),
    "known_browser": (7776000, "b7eb911f776dd941"),
    "attempts": (900, "b17485af9a5b2c5a"),
    "unlocks": (1800, "76ef94ca01998666"),
    "attempt_bucket": (900, "b280874398609af8"),
    "second_factor_misses": (7200, "505ac694781e3c50"),
    "misses_of_owner": (86400, "d14dd35ed57105ba"),
    "challenge": (7500, "8998393caebf614e"),
    "answered_invitation": (86400, "09925d1e660b82ce"),
    "notice_emails": (120, "c770538d334da16c"),
    "notices_to_person": (86400, "d62d4132f50027c1"),
    "invitation_letters": (120, "e43255a84e15cd4c"),
    "invitations": (86400, "e4b77d2bf195a741"),
    "invitations_to_address": (86400, "e6323cac13b23c8f"),
    "help_by_entity": (86400, "640a4253e0900461"),
    "help_links_to_member": (86400, "4b3caefdf96add58"),
    "help_links_to_person": (86400, "46b7038239fff6f1"),
    "help_unlock_of_member": (3600, "0a1c4dc616486802"),
    "help_unlock_of_person": (3600, "aa6528f035b72de6"),
    "help_unlocks_of_member": (86400, "ff41ec5b316333b2"),
    "help_unlocks_of_person": (86400, "e27289aaf065a68b"),
    "mailed_codes": (3600, "e375d66214e2a182"),
    "newcomer": (7776000, "feac7f790748c1ae"),
    "recoveries": (3600, "ed0d2e7d4c7aaa1f"),
    "recovery_letters": (1800, "6f765b7e599a2aaa"),
    "enrolment": (3900, "5b439a882ebf9a15"),
    "opened_link": (86400, "1a2d16fa8341afb8"),
    "link_claim": (3600, "096e2fa961af2e3c"),
    "account_page": (600, "b5df97d3c1f2a82a"),
    "closed_account_page": (3600, "e345aa3e1348edeb"),
    "kept_form": (600, "8b27517544435730"),
    "rejected_form": (600, "97dd3081ef156d3b"),
    "rejected_once": (600, "f5644a40dc2f6c3c"),
    "shown_once": (60, "6a82b9ae5487c86b"),
    "saved_form": (60, "9c5da726a2223538"),
    "newest_form": (600, "2d58a60785d2195b"),
    "undo": (600, "178133ae622934d8"),
    "new_email": (600, "09007dd6b6c86838"),
    "new_email_codes": (86400, "5d92b8960ecae54c"),
    "new_email_codes_to": (86400, "1b75d3ff8647d57c"),
    "undone_email": (86400, "f82b7abcf1724010"),
    "account_offer": (86400, "6615ff685ce67742"),
    "under_way": (3600, "7af4da0cd6035094"),
    "data_copies": (86400, "0283064e0f2612e3"),
    "access_requests": (86400, "3a8a2bc4f1b702a9"),
}
"""each namespace with its lifetime in seconds, and how its key for the parts one, two begins"""
PARTS = st.lists(st.text(max_size=5), max_size=4).map(tuple)


def test_each_kind_has_a_name_of_its_own() -> None:
    assert len({kind.name for kind in EVERY}) == len(EVERY) >= 15


def test_a_key_is_the_hash_of_a_length_prefixed_tuple() -> None:
    written = tuple_of("code", "https://op", "rp", "ü", "x" * 43)
    assert namespaces.CODE.entry("https://op", "rp", "ü", "x" * 43).key == hashlib.sha256(written).digest()


@given(PARTS, PARTS)
def test_different_parts_have_different_keys(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Whatever moves from one part to its neighbour: ("ab", "c") is not ("a", "bc")."""
    same = namespaces.PROOF.entry("issuer", *one).key == namespaces.PROOF.entry("issuer", *other).key
    assert same == (one == other)


def test_nothing_of_one_kind_or_issuer_stands_for_anothers() -> None:
    keys = {kind.entry(issuer, "x").key for kind in EVERY for issuer in ("a", "b")}
    assert len(keys) == 2 * len(EVERY)


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        (namespaces.PUSHED_REQUEST, 720),
        (namespaces.CODE, 60),
        (namespaces.DENIED_TOKEN, 660),
        (namespaces.CLAIM, 7200 + 300),
        (namespaces.COMPLETED, 7200 + 300),
    ],
)
def test_the_lifetimes_are_those_of_the_decisions(kind: Namespace[Any], seconds: int) -> None:
    """D15, D18, D49: codes and pushed requests end exactly, what was spent outlives its end by 300 s."""
    assert kind.seconds == seconds


def test_claims_and_completions_outlive_every_extension_of_an_interaction() -> None:
    """D15."""
    longest = limits.REQUEST_URI_SECONDS + limits.INTERACTION_SECONDS * (1 + limits.INTERACTION_EXTENSIONS)
    for kind in (
        namespaces.CLAIM,
        namespaces.COMPLETED,
        namespaces.INTERACTION,
        namespaces.ARRIVAL,
        namespaces.SECOND_FACTOR_MISSES,
    ):
        assert kind.seconds >= longest
    assert limits.DENY_ENTRY_SECONDS >= limits.ACCESS_TOKEN_SECONDS + limits.CODE_SECONDS


def test_names_lifetimes_and_keys_stay_as_running_versions_know_them() -> None:
    """D18, D49: nodes of two versions serve side by side, and each finds and spends what the other wrote."""
    now = {kind.name: (kind.seconds, kind.entry("https://op.example", "one", "two").key.hex()[:16]) for kind in EVERY}
    assert now == STORED
    code = namespaces.code_entry("https://op.example", "current", "rp", "code", "challenge")
    assert code.key.hex()[:16] == "7b283c0dbac4518e"


async def test_an_entry_has_its_namespaces_name_lifetime_and_codec_whatever_the_verb() -> None:
    """D18: a code is one MessagePack record, taken once, and ends exactly."""
    store = MemoryTransientStore()
    grant = Grant(
        client_id="rp", generation="current", redirect_uri="https://rp.example/cb", scopes=("openid",), nonce="n", jkt=None, user_id="u",
        entity_id="e", auth_time=1, amr=("pwd",), acr="urn:acr", deprecated_uses=(), sid="s",
    )  # fmt: skip
    code = namespaces.code_entry("https://op", "current", "rp", "code", "challenge")

    async with store.batch(0) as batch:
        await code.put(batch, grant)
        assert await batch.get("code", code.key) == msgspec.msgpack.encode(grant)
        assert not await code.add(batch, grant)
    assert await code.read(store, now=59.9) == grant
    assert await code.read(store, now=60) is None
    async with store.batch(1) as batch:
        assert await code.get(batch) == grant
        assert await code.take(batch) == grant
        assert await code.take(batch) is None
        proof = namespaces.PROOF.entry("https://op", "jkt", "jti")
        assert await proof.add(batch, seconds=9)
        assert not await proof.add(batch, seconds=9)
        rate = namespaces.RATE.entry("https://op", "rp")
        assert [await rate.count(batch), await rate.count(batch)] == [1, 2]
    assert await proof.read(store, now=9.9) == b""
    assert await proof.read(store, now=10) is None
    assert await rate.read(store, now=120.9) == b"2"
    assert await rate.read(store, now=121) is None
