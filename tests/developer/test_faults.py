"""Each order of the sandbox over a real flow, with the sandbox's own relying party, which believes nothing (D66)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from corpid.rules.oauth.records import FIRST_ISSUER
from corpid_dev.rules.orders import BY_NAME, CALLBACK_FAULTS, ERRORS, REQUESTED_WITHOUT_CLIENT, TOKEN_FAULTS
from tests.developer.ordering import ALICE, called_back, outcome, party, placed, sandbox_world
from tests.developer.scene import order
from tests.sign_in.world import BASE, KEYS, World, walk_to
from tests.tiers import first_or_full
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from corpid_dev.flows.people import Developer

GENERATIONS: Final = ("current", "intermediate", "legacy", "fapi2")
_EVERYWHERE: Final = {
    "signature": "signature: does not verify",
    "alg-none": "alg: expected ES256, got none",
    "alg-hs256": "alg: expected ES256, got HS256",
    "iss": "iss: expected",
    "aud": "aud: expected",
    "exp": "exp: passed",
    "iat": "iat: is 3600 s in the future",
    "sub": "sub as in the ID token: expected",
    "missing-claim": "sub",
}
VERDICTS: Final = {
    "id_token": {
        **_EVERYWHERE,
        "aud-further": "aud: expected",
        "nonce": "nonce: expected",
        "nonce-missing": "nonce: expected",
        "at-hash": "at_hash: expected",
        "other-encryption-key": "decryption: cannot be decrypted",
        "not-encrypted": "encrypted (JWE): has 3 parts",
    },
    "access_token": _EVERYWHERE,
    "userinfo": {
        **_EVERYWHERE,
        "aud-further": "aud: expected",
        "other-encryption-key": "decryption: cannot be decrypted",
        "not-encrypted": "encrypted (JWE): has 3 parts",
        "extra-roles": "session",
        "empty-result-set": "session",
        "many-rows": "session",
    },
}
"""token → fault → what the relying party says: `session`, or the check that fails"""
NOT_JUDGED: Final = dict.fromkeys(("iss", "aud", "aud-further", "exp", "iat"), "session")
"""of userinfo in JSON, which needs none of these claims (OpenID Connect Core §5.3.2)"""
SIGNED_ONLY: Final = {"signature", "alg-none", "alg-hs256"}
ENCRYPTED_ONLY: Final = {"other-encryption-key", "not-encrypted"}


def test_every_fault_has_a_verdict() -> None:
    """The table above is the declaration's."""
    assert {token: set(found) for token, found in VERDICTS.items()} == {
        token: {each.name for each in TOKEN_FAULTS if token in each.tokens} for token in VERDICTS
    }


async def _walk(made: World, mode: Developer, token: str, faults: dict[str, str], **options: Any) -> None:
    for fault, verdict in faults.items():
        claim = {"claim": "sub"} if fault == "missing-claim" else {}
        await placed(made, "token", token=token, fault=fault, times=1, **claim)
        found = await outcome(made, await party(made, **options))
        assert verdict in found, (token, fault, found)
        assert mode.orders.list_orders(issuer_id="first") == [], (token, fault)


@pytest.mark.parametrize("generation", first_or_full(GENERATIONS))
@pytest.mark.parametrize("token", VERDICTS)
async def test_a_token_is_wrong_in_one_way_and_refused(token: str, generation: str) -> None:
    """OpenID Connect Core §3.1.3.7, RFC 8725: the sandbox's relying party names the fault."""
    async with sandbox_world(generations=(generation,)) as (made, mode):
        encrypted = token == "id_token" and generation != "fapi2"
        left_out = set() if encrypted else ENCRYPTED_ONLY
        plain = (token, generation) == ("userinfo", "fapi2")
        if plain:
            left_out |= SIGNED_ONLY
        judged = {name: each for name, each in VERDICTS[token].items() if name not in left_out}
        await _walk(made, mode, token, {**judged, **(NOT_JUDGED if plain else {})})
        for fault in left_out & VERDICTS[token].keys():
            placing = await placed(made, "token", token=token, fault=fault, times=1)
            assert await outcome(made, await party(made)) == "session", fault
            assert mode.orders.withdraw(placing["id"], issuer_id="first"), "what cannot be applied is not used up"


async def test_userinfo_that_is_registered_to_be_encrypted() -> None:
    """D22: encrypted to another key, and not at all."""
    async with sandbox_world() as (made, mode):
        alg = str(KEYS.encryption.get("alg"))
        await made.client(userinfo_encryption_alg=alg, userinfo_encryption_enc="A256GCM")
        options = {"userinfo_enc": "A256GCM"}
        assert await outcome(made, await party(made, **options)) == "session"
        await _walk(made, mode, "userinfo", VERDICTS["userinfo"], **options)


@pytest.mark.parametrize("generation", first_or_full(GENERATIONS))
async def test_a_callback_is_wrong_in_one_way_and_refused(generation: str) -> None:
    """RFC 6749 §10.12, RFC 9207 §2.4: state and iss altered, the code twice, late, or unknown."""
    verdicts = {
        "state": "callback: state: expected",
        "state-missing": "callback: state: expected",
        "iss": "callback: iss: expected",
        "iss-missing": "callback: iss: expected",
        "error": "callback: access_denied",
        "error-state": "callback: state: expected",
        "code-twice": "callback: nothing twice",
        "late": "token: invalid_grant",
        "code": "token: invalid_grant",
    }
    assert verdicts.keys() == {each.name for each in CALLBACK_FAULTS}

    async with sandbox_world(generations=(generation,)) as (made, mode):
        for fault, verdict in verdicts.items():
            if fault == "iss-missing" and not made.provider.policy.returns_iss:
                continue
            error = {"error": "access_denied"} if fault.startswith("error") else {}
            await placed(made, "callback", fault=fault, times=1, **error)
            found = await outcome(made, await party(made))
            assert found.startswith(verdict), (fault, found)
            assert mode.orders.list_orders(issuer_id="first") == [], fault


@pytest.mark.parametrize("mode_of_answer", ["query", "fragment", "form_post"])
async def test_a_callback_of_a_browser_is_changed_in_its_response_mode(mode_of_answer: str) -> None:
    """D38: also the page that posts the parameters, which says that it obeyed an order."""
    async with sandbox_world(generations=("legacy",)) as (made, _):
        for name, members, verdict in (
            ("callback", {"fault": "state"}, "another-state"),
            ("callback", {"fault": "code-twice"}, "nothing twice"),
            ("error", {"endpoint": "authorize", "error": "access_denied"}, "access_denied"),
        ):
            await placed(made, name, times=1, **members)
            rp = made.party("rp1", made.connect("192.0.2.1"), keys=KEYS, scope="openid", response_mode=mode_of_answer)
            browser = made.new_browser()
            steps = () if name == "error" else ("password", "code", "entity")
            await walk_to(made, browser, rp, steps)
            made.clock.now += 60
            if mode_of_answer == "form_post":
                assert f"Sandbox: this answer was ordered ({name})" in browser.page.text
                await browser.fill_and_submit()
            assert browser.left is not None
            with pytest.raises(Exception, match=verdict):
                rp.callback(browser.left)


@pytest.mark.parametrize("generation", first_or_full(GENERATIONS[:3]))
async def test_every_endpoint_answers_with_every_error(generation: str) -> None:
    """Spec 7: status, code and headers of the error, which the answer says was ordered."""
    where = {
        "par": "pushed request", "authorize": "callback", "token": "token", "userinfo": "userinfo",
        "authorization-info": "authorization-info",
    }  # fmt: skip

    async with sandbox_world(generations=(generation,)) as (made, mode):
        served = {"par"} if made.provider.policy.pushed else set()
        served |= {each.name for found in made.provider.policy.served for each in found.resources} - {"entity-info"}
        for endpoint in (served | {"authorize", "token"}) & where.keys():
            for error, status in ERRORS[endpoint].items():
                await placed(made, "error", endpoint=endpoint, error=error, times=1)
                assert await outcome(made, await party(made)) == f"{where[endpoint]}: {error}"
                last = mode.exchanges.list_exchanges()[-1]
                assert last.orders == ["error"]
                assert dict(last.response_headers)["corpid-sandbox"] == "error"
                assert endpoint == "authorize" or last.status == status
                assert ("retry-after" in dict(last.response_headers)) == (last.status == 503)
                assert ("www-authenticate" in dict(last.response_headers)) == (
                    (endpoint in BY_RESOURCE and status < 500) or error == "invalid_dpop_proof"
                )


BY_RESOURCE: Final = frozenset({"userinfo", "authorization-info", "entity-info"})


async def test_an_error_has_the_ordered_status_description_and_retry_after() -> None:
    """RFC 9110 §10.2.3; PAR repeats the state (D4)."""
    async with sandbox_world() as (made, _):
        members: dict[str, Any] = {"status": 429, "description": "slow down", "retry_after": 7, "times": 1}
        await placed(made, "error", endpoint="par", error="temporarily_unavailable", **members)
        rp = await party(made)
        answer = await rp.push()
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
        assert answer.json()["error_description"].startswith("slow down (reference ")
        assert answer.json()["state"] == rp.sign_in.state
        for endpoint, path in zip(REQUESTED_WITHOUT_CLIENT, ("keys", "openid-configuration"), strict=True):
            await placed(made, "error", None, endpoint=endpoint, error="server_error", **members)
            answer = await rp.http.get(f"{BASE}/.well-known/{path}")
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
            assert answer.json()["error"] == "server_error"
            assert (await rp.http.get(f"{BASE}/.well-known/{path}")).status_code == 200


async def test_maintenance_is_answered_as_the_providers_own() -> None:
    """Spec 7: the same status, code and headers at each endpoint."""

    async def asked(made: World) -> list[Any]:
        rp, found = await party(made), []
        tokens_of = await party(made)
        found.append(await rp.push())
        found.append(await tokens_of.token("x" * 43))
        found.append(await tokens_of.resource(access_token="x"))
        url = f"{BASE}/mga/sps/oauth/oauth20/authorize?client_id=rp1"
        found.append(await rp.http.post(url, content="client_id=rp1", headers={"Content-Type": FORM}))
        return [(each.status_code, each.headers.get("retry-after"), each.headers.get("content-type")) for each in found]

    async with sandbox_world() as (made, _):
        await placed(made, "maintenance", None)
        ordered = await asked(made)
        await (await made.http()).delete(f"{BASE}/developer/orders")
        usual = await asked(made)
        await made.provider.registry.deployment.set_maintenance(True, EVENT)
        made.provider.registry_cache.drop()
        assert ordered == await asked(made)
        assert ordered != usual
        assert ordered[2] == usual[2], "a resource goes on (D72)"


FORM: Final = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("which", ["unknown", "retired", "unpublished"])
async def test_a_token_by_a_key_outside_the_set_is_refused(which: str) -> None:
    """Spec 4.7: its kid is in no set, also after the set was fetched again."""
    async with sandbox_world() as (made, _):
        for token in ("id_token", "userinfo"):
            await placed(made, "signing-key", which=which, token=token, times=1)
            assert "no key with use=sig has the kid" in await outcome(made, await party(made))
        assert await outcome(made, await party(made)) == "session"


async def test_a_rotated_key_signs_at_once_and_a_withdrawn_one_is_gone() -> None:
    """Spec 9: the new kid is published; `withdraw` takes the old key out, and `retired` then signs with that one."""

    async def kids(made: World) -> list[str]:
        document = (await (await made.http()).get(f"{BASE}/.well-known/keys")).json()
        return [key["kid"] for key in document["keys"]]

    async with sandbox_world() as (made, _):
        rp = await party(made)
        assert await outcome(made, rp) == "session"
        first, standby = await kids(made)
        assert (await placed(made, "rotate-key", None))["left"] == 0
        assert await outcome(made, rp) == "session", "an unknown kid makes it fetch the set again"
        second, *before = await kids(made)
        assert set(before) == {first, standby}
        await placed(made, "rotate-key", None, withdraw=True)
        assert second not in await kids(made)
        assert await outcome(made, await party(made)) == "session"
        await placed(made, "signing-key", which="retired", times=1)
        assert second in await outcome(made, await party(made))


async def test_an_answer_is_held_back() -> None:
    """The time goes by before the endpoint looks at the request: a proof may be too old then."""
    async with sandbox_world() as (made, mode):
        for endpoint, verdict in (("userinfo", "session"), ("token", "session"), ("authorize", "session")):
            began = made.clock.now
            await placed(made, "latency", endpoint=endpoint, seconds=12.5, times=1)
            rp = await party(made)
            url = await rp.begin()
            browser = made.new_browser()
            if endpoint == "authorize":
                await browser.open(url)
            else:
                assert await outcome(made, rp) == verdict
            assert made.clock.now == began + 12.5
            assert any(each.orders == ["latency"] for each in mode.exchanges.list_exchanges())


async def test_the_token_type_is_another() -> None:
    """Spec 2.4."""
    async with sandbox_world() as (made, _):
        await placed(made, "token-type", times=1)
        assert await outcome(made, await party(made)) == "token: token_type: expected DPoP, got Bearer"


async def test_a_nonce_is_demanded_until_the_proof_has_it() -> None:
    """RFC 9449 §8: the request is repeated with the nonce of the answer."""
    async with sandbox_world() as (made, _):
        for endpoint in ("par", "token", "userinfo"):
            await placed(made, "dpop-nonce", endpoint=endpoint)
        rp = await party(made)
        refused = await rp.push()
        assert (refused.status_code, refused.json()["error"]) == (400, "use_dpop_nonce")
        nonce = refused.headers["dpop-nonce"]
        url = rp.metadata["pushed_authorization_request_endpoint"]
        pushed = await rp.push(headers={"DPoP": rp.proof("POST", url, nonce=nonce)})
        assert pushed.status_code == 201
        rp.sign_in.request_uri = pushed.json()["request_uri"]
        answer = await order(made, {"authorize_url": rp.authorization_url(), **ALICE})
        code = rp.callback(answer.json()["callback_url"])
        refused = await rp.token(code)
        assert refused.json()["error"] == "use_dpop_nonce"
        url = rp.metadata["token_endpoint"]
        tokens = await rp.believe(await rp.token(code, headers={"DPoP": rp.proof("POST", url, nonce=nonce)}))
        assert tokens.access_token
        refused = await rp.resource()
        assert (refused.status_code, refused.headers["dpop-nonce"]) == (401, nonce)
        url = rp.metadata["userinfo_endpoint"]
        answer = await rp.resource(headers={"DPoP": rp.proof("GET", url, tokens.access_token, nonce=nonce)})
        assert answer.status_code == 200


@pytest.mark.parametrize("generation", ["current", "legacy"])
async def test_an_order_for_one_sign_in_is_followed_to_its_end(generation: str) -> None:
    """request_uri, or state → code → access token; the sign-in next to it is left alone."""
    async with sandbox_world(generations=(generation,)) as (made, _):
        for ordered in (
            {"order": "callback", "fault": "state"},
            {"order": "error", "endpoint": "authorize", "error": "access_denied"},
            {"order": "latency", "endpoint": "authorize", "seconds": 1},
            {"order": "error", "endpoint": "token", "error": "server_error"},
            {"order": "token", "token": "id_token", "fault": "exp"},
            {"order": "token", "token": "userinfo", "fault": "exp"},
        ):
            one, other = await party(made), await party(made)
            began = made.clock.now
            back, others_back = await called_back(made, one, orders=[ordered]), await called_back(made, other)
            assert (await _end(other, others_back)) == "session"
            wrong = await _end(one, back)
            assert wrong != "session" or made.clock.now == began + 1, ordered


async def _end(rp: Any, back: str) -> str:
    try:
        await rp.redeem(back)
        await rp.userinfo()
    except Exception as failed:  # noqa: BLE001 - whatever it is that the relying party refuses
        return str(failed)
    return "session"


async def test_two_requests_never_share_the_last_of_times() -> None:
    """D66: taken in one step, also if both are held back before."""
    async with sandbox_world() as (made, _):
        await placed(made, "error", endpoint="par", error="server_error", times=3)
        await placed(made, "latency", endpoint="par", seconds=1)
        parties = [await party(made) for _ in range(10)]
        answers = await asyncio.gather(*(each.push() for each in parties))
        assert sorted(each.status_code for each in answers) == [201] * 7 + [500] * 3


async def test_orders_of_one_client_touch_no_other_clients_traffic() -> None:
    """D66: every order at once, and another client signs in, with not one answer changed."""
    async with sandbox_world() as (made, mode):
        await made.client("rp2")
        orders: tuple[tuple[str, dict[str, Any]], ...] = (
            ("maintenance", {}),
            ("latency", {"endpoint": "token", "seconds": 9}),
            ("token-type", {}),
            *(("dpop-nonce", {"endpoint": each}) for each in ("par", "token", "userinfo")),
            *(
                ("error", {"endpoint": each, "error": "server_error"})
                for each in ("par", "authorize", "token", "userinfo")
            ),
            *(("signing-key", {"which": each}) for each in ("unknown", "retired", "unpublished")),
            *(("callback", {"fault": each.name}) for each in CALLBACK_FAULTS if not each.needs),
            *(
                ("token", {"token": token, "fault": each.name})
                for each in TOKEN_FAULTS
                for token in each.tokens
                if not each.needs
            ),
        )
        for name, members in orders:
            await placed(made, name, "rp1", **members)
        began = made.clock.now
        assert await outcome(made, await party(made, "rp2")) == "session"
        assert made.clock.now == began
        touched = [each for each in mode.exchanges.list_exchanges() if each.orders]
        assert touched == []
        assert await outcome(made, await party(made)) == "pushed request: temporarily_unavailable"


def test_every_order_has_a_test() -> None:
    """A new one is joined to those above."""
    assert set(BY_NAME) == {
        "error", "latency", "maintenance", "rotate-key", "signing-key", "token", "callback", "token-type", "dpop-nonce",
    }  # fmt: skip


async def test_who_does_not_see_developer_mode_uses_up_no_order_of_a_sign_in() -> None:
    """D66: without the key that path is 404, without delay or mark."""
    async with sandbox_world() as (made, mode):
        await placed(made, "latency", endpoint="authorize", seconds=5, times=1)
        sent = {**ALICE, "authorize_url": f"{BASE}/authorize?client_id=rp1&request_uri=x"}
        began = made.clock.now
        answer = await order(made, sent, address="192.0.2.7")
        assert (answer.status_code, made.clock.now) == (404, began)
        assert "corpid-sandbox" not in answer.headers
        assert [each.left for each in mode.orders.list_orders(issuer_id=FIRST_ISSUER)] == [1]
