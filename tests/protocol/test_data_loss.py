"""A store that lost data: what may have been spent before is not accepted (docs/reliability.md, D67)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.data_loss import NO_LOSS, DataLoss
from corpid.rules.limits import INTERACTION_SECONDS
from tests.protocol.deployment import ISSUER, PAR, fill
from tests.protocol.expectations import PUSHED
from tests.protocol.provider import World
from tests.protocol.refusals import json_refusal
from tests.protocol.test_client_assertion import ask, is_accepted
from tests.world.clock import NOON, Clock

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

AHEAD = 30
LOST = "This site lost the sign-ins that were in progress a few minutes ago. This is not your fault."


def after_a_power_loss(path: Path) -> None:
    """A deployment whose machine was started anew."""
    asyncio.run(fill(path, Clock(), base_url=ISSUER, trusted_proxies=("127.0.0.1",)))
    lose_power(path)


def lose_power(path: Path) -> None:
    """The machine was started anew, as far as the database and the LMDB file can tell."""
    with closing(sqlite3.connect(path / "corpid.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE deployment SET value = 'an earlier one' WHERE name = 'machine_start'")
    for file in (path / "short-lived").glob("*.mdb"):
        file.rename(file.with_name("00000000-0000-4000-8000-000000000000.mdb"))


@pytest.mark.generations(*PUSHED)
def test_a_proof_with_a_nonce_made_since_the_loss_is_accepted_at_once(tmp_path: Path, speaking: str) -> None:
    """D67: the nonce says that the proof is younger than the loss; without one it may have been spent before it."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        world.clock.now = NOON + 1

        def push(**claims: Any) -> httpx.Response:
            """With an assertion that nobody can have made before the loss."""
            assertion = world.rp.assertion(iat=NOON + AHEAD, exp=NOON + AHEAD + 60)
            proof = world.rp.proof("POST", PAR, **claims)
            return world.push(headers={"DPoP": proof}, client_assertion=assertion, state="s")

        before = world.run(world.provider.signing_keys.keys_at(NOON)).dpop_nonce(NOON, loss="")
        for claims in ({}, {"nonce": before}, {"nonce": "n" * 43}):
            with world.nothing_spent():
                demanded = push(**claims)
                json_refusal(demanded, 400, "use_dpop_nonce", state="s")
        nonce = demanded.headers["dpop-nonce"]
        assert push(nonce=nonce).status_code == 201
        assert push(iat=NOON + AHEAD).status_code == 201, "nobody can have made it before the loss"


@pytest.mark.generations(*PUSHED)
def test_it_is_spent_all_the_same(tmp_path: Path, speaking: str) -> None:
    """D7, D67: a nonce is good for many proofs, a proof for one request."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        fresh: Any = {"iat": NOON + AHEAD, "exp": NOON + AHEAD + 60}
        proof = world.rp.proof("POST", PAR)
        demanded = world.push(headers={"DPoP": proof}, client_assertion=world.rp.assertion(**fresh))
        proof = world.rp.proof("POST", PAR, nonce=demanded.headers["dpop-nonce"])
        for status in (201, world.expected.bad_proof_status):
            answer = world.push(headers={"DPoP": proof}, client_assertion=world.rp.assertion(**fresh))
            assert answer.status_code == status, answer.text
        assert answer.json()["error"] == "invalid_dpop_proof"


@pytest.mark.generations(*PUSHED)
def test_later_no_nonce_is_demanded(tmp_path: Path, speaking: str) -> None:
    """D7: iat may lie 30 s ahead, so what was spent just before the loss may be dated 30 s after it."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        world.clock.now = NOON + AHEAD
        assert world.push(headers={"DPoP": world.rp.proof("POST", PAR)}).status_code == 201


@pytest.mark.generations("current", "legacy", "fapi2")
def test_assertions_that_may_have_been_spent_are_unavailable_until_a_moment_that_is_named(
    tmp_path: Path, speaking: str
) -> None:
    """D67: 503 and Retry-After, since it is not the client's fault; what is made then is accepted."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        world.clock.now = NOON + 9
        says, wait = is_unavailable(world, ask(world, world.rp.assertion(), **with_nonce(world)))
        assert (wait, f"in {wait} s" in says) == (AHEAD - 9, True)
        world.clock.now += wait - 1
        is_unavailable(world, ask(world, world.rp.assertion(), **with_nonce(world)))
        world.clock.now += 1
        is_accepted(world, ask(world, world.rp.assertion(), **with_nonce(world)))


@pytest.mark.generations(*PUSHED)
def test_the_wait_that_is_named_is_that_of_assertion_and_proof_together(
    monkeypatch: pytest.MonkeyPatch, speaking: str
) -> None:
    """D67: not first that of the proof, and after it another one; the proof is not spent."""
    with World(generations=(speaking,)) as world:
        loss = DataLoss(name="lost", reject_issued_before=NOON + 13, complete_from=NOON + 3)
        monkeypatch.setattr(type(world.provider.transient), "loss", property(lambda _: loss))
        with world.nothing_spent():
            _, wait = is_unavailable(world, ask(world, world.rp.assertion(), DPoP=world.rp.proof("POST", PAR)))
        assert wait == 13 + AHEAD
        world.clock.now += wait
        is_accepted(world, ask(world, world.rp.assertion(), DPoP=world.rp.proof("POST", PAR)))


@pytest.mark.generations("fapi2")
def test_an_assertion_without_iat_waits_for_the_length_of_its_cap(tmp_path: Path, speaking: str) -> None:
    """docs/reliability.md: it may have been made 600 s before its exp."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        for later, lifetime in ((AHEAD - 1, 600), (AHEAD, 60), (AHEAD + 539, 60)):
            world.clock.now = NOON + later
            assertion = world.rp.assertion(iat=None, exp=world.clock.now + lifetime)
            _, wait = is_unavailable(world, ask(world, assertion, **with_nonce(world)))
            assert wait == AHEAD + 600 - later - lifetime
        for later, lifetime in ((AHEAD + 539, 600), (AHEAD + 540, 60)):
            world.clock.now = NOON + later
            is_accepted(world, ask(world, world.rp.assertion(iat=None, exp=world.clock.now + lifetime)))


def is_unavailable(world: World, answer: httpx.Response) -> tuple[str, int]:
    """The sentence, and the seconds of Retry-After."""
    state = "s" if world.interface.pushed else None
    says = json_refusal(answer, 503, "temporarily_unavailable", state=state)
    return says, int(answer.headers["retry-after"])


def with_nonce(world: World) -> dict[str, Any]:
    """The proof of a client that has asked for a nonce; none where no proof is sent."""
    if not world.interface.pushed:
        return {}
    keys, now = world.run(world.provider.signing_keys.keys_at(world.clock())), world.clock()
    nonce = keys.dpop_nonce(now, loss=world.provider.transient.loss.name)
    return {"DPoP": world.rp.proof("POST", PAR, nonce=nonce)}


def losing(acting: Any, losses: list[DataLoss], later: DataLoss) -> Any:
    """The same look-up of who acts, before which data is lost."""

    async def after_the_loss(*given: Any) -> Any:
        losses.append(later)
        return await acting(*given)

    return after_the_loss


@pytest.mark.generations(*PUSHED)
def test_a_token_whose_code_was_taken_before_the_loss_is_from_before_it(
    monkeypatch: pytest.MonkeyPatch, speaking: str
) -> None:
    """D18, D67: its code may have been presented again meanwhile, and the note of that is lost; a node may be slow."""
    with World(generations=(speaking,)) as world:
        losses = [NO_LOSS]
        monkeypatch.setattr(type(world.provider.transient), "loss", property(lambda _: losses[-1]))
        code, cache = world.code(), type(world.provider.registry_cache)
        later = DataLoss(name="later", reject_issued_before=world.clock.now + 13)
        monkeypatch.setattr(cache, "acting", losing(cache.acting, losses, later))
        world.run(world.rp.believe(world.redeem(code)))
        assert losses[-1] is not NO_LOSS
        refused = world.userinfo()
        assert refused.status_code == 401
        assert "invalid_token" in refused.headers["www-authenticate"]


@pytest.mark.generations(*PUSHED)
def test_a_person_whose_sign_in_was_lost_is_told_so(tmp_path: Path, speaking: str) -> None:
    """D16, D67: at the address that was pushed, and on a page that was open; later it is a link that has expired."""
    asyncio.run(fill(tmp_path, Clock(), base_url=ISSUER, trusted_proxies=("127.0.0.1",)))
    with World(at=tmp_path, generations=(speaking,)) as world:
        pushed = world.asked()
        opened = world.get(world.asked()).headers["location"]
        cookies = "; ".join(f"{name}={value}" for name, value in world.browser.http.cookies.items())
        assert world.get(opened).status_code == 200
    lose_power(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        for later, is_told in ((1, True), (INTERACTION_SECONDS - 1, True), (INTERACTION_SECONDS, False)):
            world.clock.now = NOON + later
            for address, status in ((pushed, 400), (opened, 404)):
                answer = world.get(address, cookie=cookies)
                assert answer.status_code == status, answer.text
                assert (LOST in answer.text) == is_told
