"""Sign-ins of test people without a browser, for CI: `POST /developer/sign-ins` (D66)."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest

from corpid.rules.oauth import acr
from corpid.web.telemetry import access_log
from corpid_dev.relying_party.verification import Callback
from tests.developer.scene import SIGN_INS, demo_world, order
from tests.logs import log_left_alone
from tests.sign_in.world import IDENTITY, KEYS, World, query_of

FIRST, SECOND = "200000001A", "200000002A"
ALICE = {"user": "alice", "entity": FIRST}


async def callback_of(made: World, url: str, **members: str) -> str:
    answer = await order(made, {"authorize_url": url, **ALICE, **members})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["callback_url"])


async def refused(made: World, members: object, **headers: str) -> str:
    answer = await order(made, members, **headers)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"] == "invalid_request"
    return str(answer.json()["error_description"])


async def test_the_callback_is_what_a_browser_would_have_brought() -> None:
    """D66: the code, the tokens and userinfo are real; acr and amr are those of the default way."""
    async with demo_world() as made:
        rp = await made.relying_party()
        tokens = await rp.redeem(Callback(await callback_of(made, await rp.begin())))
        assert tokens.id_token["entity"]["sub"] == FIRST
        assert tokens.id_token["amr"] == ["pwd", "otp", "mfa"]
        assert tokens.id_token["acr"] == "urn:idp:authentication:loa:2"
        assert (await rp.userinfo())["sub"] == "id-alice"


@pytest.mark.parametrize("way", acr.SIMULATED)
async def test_amr_is_that_of_the_named_way(way: str) -> None:
    """D66, RFC 8176."""
    async with demo_world() as made:
        rp = await made.relying_party()
        tokens = await rp.redeem(Callback(await callback_of(made, await rp.begin(), way=way)))
        assert tuple(tokens.id_token["amr"]) == acr.SIMULATED[way]


async def test_the_one_entity_needs_no_name_and_several_do() -> None:
    """D17: the person would be asked to choose; the refusal names whom for, and uses nothing up."""
    async with demo_world() as made:
        rp = await made.relying_party()
        url = await rp.begin()
        description = await refused(made, {"authorize_url": url, "user": "alice"})
        assert f"{FIRST}, {SECOND}" in description
        assert "code" in query_of(await callback_of(made, url, entity=SECOND))

    async with demo_world(entities=1) as made:
        url = await (await made.relying_party()).begin()
        answer = await order(made, {"authorize_url": url, "user": "alice"})
        assert "code" in query_of(answer.json()["callback_url"])


async def test_an_entity_that_the_person_could_not_choose_is_refused() -> None:
    """D17: the rules of the choice hold."""
    async with demo_world() as made:
        url = await (await made.relying_party()).begin()
        assert FIRST in await refused(made, {"authorize_url": url, "user": "alice", "entity": "209999999Z"})


async def test_a_person_without_a_usable_entity_brings_access_denied() -> None:
    """D17."""
    async with demo_world(entities=0) as made:
        url = await (await made.relying_party()).begin()
        answer = await order(made, {"authorize_url": url, "user": "alice"})
        assert query_of(answer.json()["callback_url"])["error"] == "access_denied"


async def test_consent_is_asked_for_and_answered() -> None:
    """D29: agreeing is remembered as if it had been clicked, refusing is access_denied."""
    async with demo_world() as made:
        await made.client(sector="private")
        rp = await made.relying_party(scope=f"openid {IDENTITY}")
        declined = query_of(await callback_of(made, await rp.begin(), consent="refuse"))
        assert declined["error"] == "access_denied"
        assert await made.audit("consent.give") == []
        assert "code" in query_of(await callback_of(made, await rp.begin()))
        assert len(await made.audit("consent.give")) == 1


async def test_prompt_none_is_answered_as_ever() -> None:
    """D40: nobody is signed in, so no page may be shown."""
    async with demo_world() as made:
        rp = await made.relying_party(prompt="none")
        assert query_of(await callback_of(made, await rp.begin()))["error"] == "login_required"


async def test_login_hint_signs_nobody_in() -> None:
    """D40: the order says who signs in, the request does not."""
    async with demo_world() as made:
        rp = await made.relying_party(login_hint="bob")
        tokens = await rp.redeem(Callback(await callback_of(made, await rp.begin())))
        assert tokens.id_token["sub"] == "id-alice"


async def test_a_request_is_answered_once() -> None:
    """D15: the second order finds it completed."""
    async with demo_world() as made:
        url = await (await made.relying_party()).begin()
        assert "code" in query_of(await callback_of(made, url))
        assert query_of(await callback_of(made, url))["error"] == "invalid_request_uri"


@pytest.mark.parametrize("user", ["bob", "nobody", " ", "\u202e"])
async def test_only_test_people_are_signed_in(user: str) -> None:
    """D66: those that the demo's directory marks."""
    async with demo_world() as made:
        await made.person("bob")
        url = await (await made.relying_party()).begin()
        assert "test person" in await refused(made, {"authorize_url": url, "user": user, "entity": FIRST})


async def test_a_disabled_test_person_is_not_signed_in() -> None:
    """D50."""
    async with demo_world() as made:
        await made.disable("alice")
        url = await (await made.relying_party()).begin()
        assert "test person" in await refused(made, {"authorize_url": url, **ALICE})


async def test_log_and_audit_say_simulated() -> None:
    """D66, D48, D57: nobody takes it for a sign-in with factors."""
    stream = io.BytesIO()
    with log_left_alone():
        access_log.configure(clock=time.time, stream=stream)
        async with demo_world() as made:
            await callback_of(made, await (await made.relying_party()).begin(), way="passkey")
            (simulated,) = await made.audit("sign_in.simulate")
            assert (simulated.actor, simulated.detail["amr"]) == ("user:id-alice", "pop user mfa")
            (completed,) = await made.audit("sign_in.complete")
            assert completed.detail["way"] == "simulated"
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["detail"] for line in lines if line.get("path") == "/developer/sign-ins"] == ["simulated"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://rp.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:8081"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://rp.example"},
    ],
)
async def test_a_page_of_another_site_is_refused(headers: dict[str, str]) -> None:
    """D35, D66: also one on another port of this machine."""
    async with demo_world() as made:
        url = await (await made.relying_party()).begin()
        assert "another site" in await refused(made, {"authorize_url": url, **ALICE}, **headers)
        assert await made.audit("sign_in.simulate") == []


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("user=alice", "application/x-www-form-urlencoded"),
        ('{"user": "alice"}', "text/plain"),
        ("[]", "application/json"),
        ('{"authorize_url": "a", "user": "alice", "user": "bob"}', "application/json"),
        ('{"authorize_url": "a", "user": "alice", "role": "x"}', "application/json"),
        ('{"authorize_url": "a", "user": "alice", "way": "magic"}', "application/json"),
        ('{"user": "alice"}', "application/json"),
    ],
)
async def test_only_json_with_known_members_is_read(body: str, content_type: str) -> None:
    """D33, D66: no form of another site can have this type without being asked for."""
    async with demo_world() as made:
        http = await made.http()
        answer = await http.post(SIGN_INS, content=body, headers={"Content-Type": content_type})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"] == "invalid_request"


@pytest.mark.parametrize(
    "url", ["https://op.example/mga/sps/oauth/oauth20/authorize?client_id=rp1", "/authorize", "http://localhost:8080/"]
)
async def test_the_request_is_one_to_this_issuer(url: str) -> None:
    """D66."""
    async with demo_world() as made:
        said = await refused(made, {"authorize_url": url, **ALICE})
        assert "authorize_url must be" in said
        assert "each further issuer takes its own" in said


@pytest.mark.parametrize("mode", ["query", "fragment", "form_post"])
async def test_a_request_in_the_query_is_answered_in_its_response_mode(mode: str) -> None:
    """Spec "Generations": LEGACY pushes nothing, and may ask for a form."""
    async with demo_world(generations=("legacy",)) as made:
        rp = made.party("rp1", made.connect("192.0.2.1"), keys=KEYS, scope="openid", response_mode=mode)
        answer = await order(made, {"authorize_url": await rp.begin(), **ALICE})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert ("form" in found) == (mode == "form_post")
        form = list(found["form"].items()) if "form" in found else None
        tokens = await rp.redeem(Callback(found["callback_url"], form))
        assert tokens.id_token["userInfo"]["CPUID_FullName"] == "Alice Tan"
