"""What userinfo answers: envelope, claims, and the blocks of roles (Spec 2.5, 2.6, 4.4; D22, D23; R-14)."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid_dev.relying_party import jwt
from tests.protocol import directory
from tests.protocol.deployment import ISSUER, USERINFO
from tests.protocol.directory import (
    AUTH_INFO,
    CLIENT_ENTITY,
    MAKER,
    PERMITS,
    THIRD_PARTY,
    THIRD_PARTY_GRANT,
    TP_AUTH_INFO,
)
from tests.protocol.expectations import EVERY, PUSHED, SIGNED
from tests.protocol.refusals import not_cached, resource_refusal
from tests.world.clients import rp_keys
from tests.world.clock import NOON

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations(*SIGNED)
EIGHT = NOON + 86400
"""2027-01-16 08:00:00 UTC, midnight in Los Angeles"""
BLOCKS = {"authinfo": "auth_info", "tpauthinfo": "tp_auth_info"}
EMPTY: dict[str, Any] = {"Result_Set": {"ESrvc_Row_Count": 0, "ESrvc_Result": []}}


def claims(world: World, method: str = "GET") -> dict[str, Any]:
    """The verified claims for the token just redeemed."""
    return world.run(world.rp.userinfo(method))


def block(world: World, scope: str) -> str:
    """The name of the block for this scope: Spec "Generations" (Spec 2.5, 2.6)."""
    return (
        {"authinfo": "AuthInfo", "tpauthinfo": "TPAuthInfo"}[scope] if world.interface.packed_subject else BLOCKS[scope]
    )


def redeemed(world: World, scope: str = "openid authinfo tpauthinfo") -> World:
    world.rp.scope = scope
    world.tokens()
    return world


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_answer_is_a_signed_jwt_with_exactly_these_claims(shared: World, method: str) -> None:
    """Spec 2.5, D22: aud a string, exp 600 s after iat."""
    redeemed(shared)
    answer = shared.userinfo(method=method)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/jwt")
    assert not_cached(answer)
    assert "www-authenticate" not in answer.headers
    header, payload = jwt.peek(answer.text)
    kid = json.loads(shared.get(f"{ISSUER}/.well-known/keys").content)["keys"][0]["kid"]
    assert header == {"alg": "ES256", "kid": kid, "typ": "JWT"}
    now = int(shared.clock.now)
    assert payload == {
        "iss": ISSUER,
        "aud": "rp-1",
        "sub": directory.ALICE.user_id,
        "iat": now,
        "exp": now + 600,
        "auth_info": AUTH_INFO,
        "tp_auth_info": TP_AUTH_INFO,
    }


@pytest.mark.parametrize(
    "scope",
    [
        "openid",
        "openid authinfo",
        "openid tpauthinfo",
        "openid user.name entity.identity",
        "tpauthinfo openid authinfo",
    ],
)
def test_a_block_is_there_exactly_for_its_scope(shared: World, scope: str) -> None:
    """Spec 2.5, 4.9; the identity scopes tell nothing here."""
    wanted = {name for asked, name in BLOCKS.items() if asked in scope.split()}
    assert claims(redeemed(shared, scope)).keys() == {"iss", "aud", "sub", "iat", "exp"} | wanted


@pytest.mark.generations(*PUSHED)
@pytest.mark.parametrize("subject", ["user", "entity"])
def test_sub_is_that_of_the_id_token(world: World, subject: str) -> None:
    """D1; OpenID Connect Core §5.3.2."""
    world.registers(subject=subject)
    identity = world.tokens().id_token["sub"]
    expected = {"user": directory.ALICE.user_id, "entity": directory.HARBOUR.entity_id}[subject]
    assert claims(world)["sub"] == identity == expected


@pytest.mark.generations(*PUSHED)
@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"", None),
        (b"access_token=x", "application/x-www-form-urlencoded"),
        (b"{", "application/json"),
        (b"\xff" * 60_000, "x/y"),
    ],
)
def test_whatever_the_body_of_a_post_holds_is_ignored(shared: World, content: bytes, media_type: str | None) -> None:
    """Spec 4.4: POST needs no body; any body sent is ignored."""
    token = redeemed(shared).rp.sign_in.tokens.access_token  # type: ignore[union-attr]
    headers = {"Authorization": f"DPoP {token}", "DPoP": shared.rp.proof("POST", USERINFO, token)}
    more = {"Content-Type": media_type} if media_type else {}
    answer = shared.run(shared.http.post(USERINFO, content=content, headers={**headers, **more}))
    assert answer.status_code == 200


@pytest.mark.parametrize("accept", ["application/json", "text/html", "application/jwt;q=0", ""])
def test_accept_is_never_a_reason_to_refuse(shared: World, accept: str) -> None:
    """D22: never 406."""
    redeemed(shared)
    assert shared.userinfo(Accept=accept).headers["content-type"] == "application/jwt"


@pytest.mark.generations(*EVERY)
def test_head_is_answered_like_get(shared: World) -> None:
    """D32; its proof is for HEAD (RFC 9449 §4.3)."""
    redeemed(shared)
    assert shared.userinfo(method="HEAD").status_code == 200


@pytest.mark.parametrize("enc", ["A256GCM", "A256CBC-HS512"])
def test_a_client_may_have_the_answer_nested_in_a_jwe(world: World, enc: str) -> None:
    """D22."""
    world.registers(userinfo_encryption_enc=enc)
    redeemed(world)
    header, _ = jwt.peek(world.userinfo().text)
    assert (header["enc"], header["kid"]) == (enc, rp_keys("rp-1").encryption.get("kid"))
    world.rp.userinfo_enc = enc
    assert claims(world)["auth_info"] == AUTH_INFO


def test_an_encrypted_answer_without_a_key_to_encrypt_to_is_a_server_error(world: World) -> None:
    """D27: never in clear."""
    world.registers(userinfo_encryption_enc="A256GCM")
    redeemed(world)
    world.registers(userinfo_encryption_enc="A256GCM", jwks=json.dumps({"keys": rp_keys("rp-1").public()["keys"][:1]}))
    resource_refusal(world.userinfo(), 500, "server_error")


def test_a_client_may_have_the_blocks_as_text(world: World) -> None:
    """D22: stringified_blocks, the public service's wire form."""
    world.registers(stringified_blocks=True)
    redeemed(world)
    _, found = jwt.peek(world.userinfo().text)
    assert found is not None
    assert isinstance(found["auth_info"], str)
    assert (json.loads(found["auth_info"]), json.loads(found["tp_auth_info"])) == (AUTH_INFO, TP_AUTH_INFO)


@pytest.mark.generations(*EVERY)
def test_authinfo_without_an_assignment_is_there_and_empty(world: World) -> None:
    """D23: present, count 0; and no third-party row, no block."""
    world.deletes(MAKER, THIRD_PARTY)
    found = claims(redeemed(world))
    assert found[block(world, "authinfo")] == EMPTY
    assert block(world, "tpauthinfo") not in found


def _grant_another_role(world: World) -> None:
    world.deletes(THIRD_PARTY_GRANT)
    world.writes(msgspec.structs.replace(THIRD_PARTY_GRANT, role="Maker"))


NO_THIRD_PARTIES: dict[str, Callable[[World], None]] = {
    "the service allows none": lambda w: w.writes(msgspec.structs.replace(PERMITS, third_parties=False)),
    "the service is off": lambda w: w.writes(msgspec.structs.replace(PERMITS, enabled=False)),
    "nothing granted": lambda w: w.deletes(THIRD_PARTY_GRANT),
    "another role granted": _grant_another_role,
    "the client entity is off": lambda w: w.writes(msgspec.structs.replace(CLIENT_ENTITY, enabled=False)),
    "the grant is over": lambda w: w.writes(msgspec.structs.replace(THIRD_PARTY_GRANT, end_date="2027-01-14")),
    "the row is over": lambda w: w.writes(msgspec.structs.replace(THIRD_PARTY, end_date="2027-01-14")),
    "not a service of the client": lambda w: w.writes(w.client(services=("GRANTS",))),
}


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("change", NO_THIRD_PARTIES.values(), ids=NO_THIRD_PARTIES)
def test_without_a_row_that_holds_today_there_is_no_third_party_block(
    world: World, change: Callable[[World], None]
) -> None:
    """D23: scope, a service that allows third parties, and at least one row, else absent; R-21."""
    redeemed(world)
    assert block(world, "tpauthinfo") in claims(world)
    change(world)
    assert block(world, "tpauthinfo") not in claims(world)


@pytest.mark.generations("legacy", "current")
@pytest.mark.parametrize(
    ("zone", "now", "today"),
    [
        ("UTC", EIGHT, "2027-01-16"),
        ("Asia/Singapore", EIGHT + 7 * 3600 + 59 * 60, "2027-01-16"),
        ("Asia/Singapore", EIGHT + 8 * 3600, "2027-01-17"),
        ("America/Los_Angeles", EIGHT - 1, "2027-01-15"),
        ("America/Los_Angeles", EIGHT, "2027-01-16"),
        ("Pacific/Kiritimati", EIGHT + 2 * 3600, "2027-01-17"),
    ],
)
def test_dates_begin_and_end_in_the_time_zone_of_the_deployment(
    worlds: Worlds, zone: str, now: float, today: str
) -> None:
    """D23: inclusive; rows outside them are left out."""
    day = date.fromisoformat(today)
    yesterday, tomorrow = (str(day + timedelta(days=n)) for n in (-1, 1))
    spans = {
        "a": ("2020-01-01", yesterday),
        "b": ("2020-01-01", today),
        "c": (today, "9999-12-31"),
        "d": (tomorrow, "9999-12-31"),
        "e": (today, today),
    }
    world = worlds.fresh(timezone=zone)
    rows = [
        msgspec.structs.replace(MAKER, ref=ref, sub_entity=ref, start_date=start, end_date=end)
        for ref, (start, end) in spans.items()
    ]
    world.writes(*rows)
    world.clock.now = now - 60
    world.sign_in()
    world.tokens()
    world.clock.now = now
    services = claims(world)[block(world, "authinfo")]["Result_Set"]["ESrvc_Result"]
    found = services[0]["Auth_Result_Set"]["Row"]
    assert [row["CPEntID_SUB"] for row in found] == ["PORT", "b", "c", "e"]


@pytest.mark.generations(*EVERY)
def test_a_role_that_was_given_is_seen_within_five_seconds(world: World) -> None:
    """D50: looked at again at every resource."""
    redeemed(world)
    assert claims(world)[block(world, "authinfo")] == AUTH_INFO
    world.deletes(MAKER)
    assert claims(world)[block(world, "authinfo")] == EMPTY
