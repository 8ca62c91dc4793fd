"""What a LEGACY code yields: bearer tokens, the packed subject, everything told in userInfo and entityInfo (R-12.2, R-13; D1, D8, D18)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.rules.directory.records import Administrator, AdministratorLevel, Entity, Membership, User
from corpid_dev.relying_party import jwt, verification
from tests.protocol import directory
from tests.protocol.deployment import ISSUER, TOKEN
from tests.protocol.refusals import json_refusal, not_cached
from tests.world.clients import CALLBACK, FAR

if TYPE_CHECKING:
    import httpx

    from tests.protocol.provider import World, Worlds

RESOURCE = f"{ISSUER}/authorization-info"
BLANK = {"CPNonUEN_Country": "", "CPNonUEN_RegNo": "", "CPNonUEN_Name": ""}
ALICE_FOR_HARBOUR = f"s=S0000001X,uuid={directory.ALICE.user_id},u=209900042KS0000001X,c=SG"


@pytest.fixture
def world(worlds: Worlds) -> World:
    """LEGACY alone, with single sign-on; Alice is signed in."""
    made = worlds.fresh(generations=("legacy",))
    made.sign_in()
    return made


def acting(world: World, user: User = directory.ALICE, entity: Entity = directory.HARBOUR) -> Any:
    """The tokens of this person for this entity, which they act for alone."""
    membership = Membership(user_id=user.user_id, entity_id=entity.entity_id)
    world.deletes(directory.MEMBERSHIP)
    world.writes(user, entity, membership)
    return world.tokens()


def test_the_answer_is_a_bearer_token_and_an_id_token(world: World) -> None:
    """Spec 2.4, R-11; D31; the scopes as granted."""
    world.rp.scope = "openid tpauthinfo authinfo"
    answer = world.redeem(world.code())
    assert answer.status_code == 200
    body = answer.json()
    assert body.keys() == {"access_token", "id_token", "token_type", "expires_in", "scope"}
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("Bearer", 600, "openid tpauthinfo authinfo")
    assert not_cached(answer)
    assert answer.headers["content-type"] == "application/json"
    assert len(body["id_token"].split(".")) == 5
    outer = jwt.peek(body["id_token"])[0]
    assert (outer["enc"], outer["cty"]) == ("A256CBC-HS512", "JWT")


@pytest.mark.parametrize("scope", ["openid", "openid authinfo tpauthinfo"])
@pytest.mark.parametrize("subject", ["user", "entity"])
def test_the_id_token_has_exactly_these_claims(world: World, scope: str, subject: str) -> None:
    """R-12.2: userInfo and entityInfo always; D1: packed, whatever the client's subject is; D40: auth_time always."""
    world.registers(generations=("legacy",), legacy_until=FAR, subject=subject)
    begun = int(world.clock.now)
    world.rp.scope = scope
    found, now = world.tokens(), int(world.clock.now)
    assert found.id_token == {
        "iss": ISSUER,
        "aud": "rp-1",
        "iat": now,
        "exp": now + 600,
        "nonce": world.rp.sign_in.nonce,
        "at_hash": jwt.half_digest(found.access_token),
        "auth_time": begun - 5,
        "amr": ["pwd", "otp", "mfa"],
        "sid": found.id_token["sid"],
        "sub": ALICE_FOR_HARBOUR,
        "userInfo": {"CPAccType": "User", "CPUID_FullName": "Alice Ä. Example", "ISSPHOLDER": "YES"},
        "entityInfo": {"CPEntID": "209900042K", "CPEnt_TYPE": "UEN", "CPEnt_Status": "Registered", **BLANK},
    }


@pytest.mark.parametrize(
    ("level", "shown"), [("owner", "Admin"), ("administrator", "Admin"), ("sub_administrator", "Sub-Admin")]
)
def test_the_account_type_tells_the_level_at_this_entity(world: World, level: AdministratorLevel, shown: str) -> None:
    """D53; one that ended is told no more."""
    administrator = Administrator(user_id=directory.ALICE.user_id, entity_id=directory.HARBOUR.entity_id, level=level)
    world.writes(administrator)
    assert world.tokens().id_token["userInfo"]["CPAccType"] == shown
    world.deletes(administrator)
    assert world.tokens().id_token["userInfo"]["CPAccType"] == "User"


def test_the_access_token_has_exactly_these_claims_and_no_key(world: World) -> None:
    """R-13, D20: cnf absent in LEGACY; nothing is told of the person beyond the packed subject."""
    found, now = world.tokens(), int(world.clock.now)
    claims = found.access_token_claims
    assert claims == {
        "iss": ISSUER,
        "aud": [RESOURCE],
        "sub": ALICE_FOR_HARBOUR,
        "entity": {"sub": "209900042K", "sub_type": "entity"},
        "client_id": "rp-1",
        "scope": "openid authinfo tpauthinfo",
        "iat": now,
        "exp": now + 600,
        "jti": claims["jti"],
        "auth_time": now,
        "acr": "urn:idp:authentication:loa:2",
    }
    assert found.access_token_header["typ"] == "at+jwt"


def test_nonce_is_absent_if_none_was_sent(world: World) -> None:
    """Spec "Generations": not required; OpenID Connect Core §2."""
    world.rp.sign_in.nonce = None  # type: ignore[assignment]
    code = world.run(_code(world, world.get(world.asked(nonce=None))))
    found = world.run(world.rp.believe(world.redeem(code)))
    assert "nonce" not in found.id_token


async def _code(world: World, answer: httpx.Response) -> str:
    return world.rp.callback(answer.headers["location"])


ENTITIES: dict[str, tuple[Entity, dict[str, str]]] = {
    "UEN": (directory.HARBOUR, {"CPEnt_TYPE": "UEN", "CPEnt_Status": "Registered", **BLANK}),
    "deregistered": (
        msgspec.structs.replace(directory.HARBOUR, status="Deregistered"),
        {"CPEnt_TYPE": "UEN", "CPEnt_Status": "De-Registered", **BLANK},
    ),
    "withdrawn": (
        msgspec.structs.replace(directory.HARBOUR, status="Withdrawn"),
        {"CPEnt_TYPE": "UEN", "CPEnt_Status": "Withdrawn", **BLANK},
    ),
    "foreign": (
        directory.FOREIGN,
        {
            "CPEnt_TYPE": "NON-UEN",
            "CPEnt_Status": "",
            "CPNonUEN_Country": "DE",
            "CPNonUEN_RegNo": "HRB 4711",
            "CPNonUEN_Name": "Nordwerk GmbH",
        },
    ),
    "taxed only": (
        msgspec.structs.replace(directory.FOREIGN, type="GSTN", country="SG", status="Registered"),
        {
            "CPEnt_TYPE": "GSTN",
            "CPEnt_Status": "Registered",
            "CPNonUEN_Country": "SG",
            "CPNonUEN_RegNo": "HRB 4711",
            "CPNonUEN_Name": "Nordwerk GmbH",
        },
    ),
    "foreign with a status": (
        msgspec.structs.replace(directory.FOREIGN, status="Registered", name='A "&" <b>, Ü=1'),
        {
            "CPEnt_TYPE": "NON-UEN",
            "CPEnt_Status": "",
            "CPNonUEN_Country": "DE",
            "CPNonUEN_RegNo": "HRB 4711",
            "CPNonUEN_Name": 'A "&" <b>, Ü=1',
        },
    ),
}


@pytest.mark.parametrize(("entity", "told"), ENTITIES.values(), ids=ENTITIES)
def test_entity_info_tells_every_member_blank_rather_than_absent(
    world: World, entity: Entity, told: dict[str, str]
) -> None:
    """R-12.2: members are mandatory; status blank for NON-UEN, the rest blank for UEN; De-Registered with its hyphen."""
    world.registers(generations=("legacy",), legacy_until=FAR, services=("PERMITS",))
    statuses = ("Registered", "Deregistered", "Withdrawn", "")
    types = ("UEN", "NON-UEN", "GSTN")
    world.writes(msgspec.structs.replace(directory.PERMITS, entity_statuses=statuses, entity_types=types))
    found = acting(world, entity=entity).id_token
    assert found["entityInfo"] == {"CPEntID": entity.entity_id, **told}
    assert verification.members(found["sub"])["u"] == f"{entity.entity_id}S0000001X"


PERSONS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "foreign account": (
        {"account_type": "foreign", "identity_number": "P 123", "identity_country": "DE"},
        {"s": "P 123", "c": "DE"},
        "NO",
    ),
    "without number": ({"identity_number": "", "identity_country": ""}, {"s": "", "c": ""}, "YES"),
    "comma": ({"identity_number": "1,u=evil,c=XX"}, {"s": "1,u=evil,c=XX", "c": "SG"}, "YES"),
    "equals": ({"identity_number": "1=2"}, {"s": "1=2", "c": "SG"}, "YES"),
    "percent": ({"identity_number": "1%2Cu%3Devil"}, {"s": "1%2Cu%3Devil", "c": "SG"}, "YES"),
    "space": ({"identity_number": " 1 2 "}, {"s": " 1 2 ", "c": "SG"}, "YES"),
    "not ASCII": ({"identity_number": "Ä\u202e1"}, {"s": "Ä\u202e1", "c": "SG"}, "YES"),
    "quotes": ({"identity_number": '"\\\n'}, {"s": '"\\\n', "c": "SG"}, "YES"),
}


@pytest.mark.parametrize(("changes", "said", "holder"), PERSONS.values(), ids=PERSONS)
def test_no_value_of_the_packed_subject_can_pose_as_another_member(
    world: World, changes: dict[str, str], said: dict[str, str], holder: str
) -> None:
    """R-12.2; docs/decisions/0007; the same sub in ID token, access token and authorization-info (D1)."""
    user = msgspec.structs.replace(directory.ALICE, **changes)
    found = acting(world, user)
    sub = found.id_token["sub"]
    assert [part.partition("=")[0] for part in sub.split(",")] == ["s", "uuid", "u", "c"]
    expected = {"uuid": user.user_id, "u": f"209900042K{user.identity_number}", **said}
    assert verification.members(sub) == expected
    assert sub.isascii()
    assert sub.replace(" ", "") == sub
    assert found.access_token_claims["sub"] == sub
    assert world.run(world.rp.userinfo())["sub"] == sub
    assert found.id_token["userInfo"]["ISSPHOLDER"] == holder


# The token request


@pytest.mark.parametrize("proof", ["honest", "x", "", "two"])
def test_a_dpop_header_beside_a_legacy_code_is_not_looked_at(world: World, proof: str) -> None:
    """Spec "Generations": relying parties that move send it everywhere; nothing is bound to its key or spent."""
    code, honest = world.code(), world.rp.proof("POST", TOKEN)
    header: Any = {"honest": honest, "two": [honest, honest]}.get(proof, proof)
    answer = world.redeem(code, headers={"DPoP": header})
    tokens = world.run(world.rp.believe(answer))
    assert tokens.raw["token_type"] == "Bearer"
    assert "cnf" not in tokens.access_token_claims
    assert "proof" not in world.kinds()
    assert world.userinfo(DPoP=honest).status_code == 200


@pytest.mark.parametrize(
    "verifier", [None, "", "v" * 42, "v" * 129, "v" * 42 + "ä", "v" * 42 + " ", ["v" * 43, "v" * 43]]
)
def test_a_missing_or_malformed_verifier_is_invalid_request_and_spends_nothing(world: World, verifier: Any) -> None:
    """Spec "Generations"; RFC 7636 §4.1."""
    code, form = world.code(), {"client_assertion": world.rp.assertion()}
    with world.nothing_spent():
        json_refusal(world.redeem(code, code_verifier=verifier, **form), 400, "invalid_request")
    assert world.redeem(code, **form).status_code == 200


@pytest.mark.parametrize(("later", "alive"), [(59.9, True), (60, False)])
def test_a_code_lives_for_sixty_seconds(world: World, later: float, alive: bool) -> None:
    """Spec 2.3, 8: in every generation (R-1 had ten minutes in LEGACY)."""
    code = world.code()
    world.clock.now += later
    assert (world.redeem(code).status_code == 200) == alive


@pytest.mark.parametrize("uri", ["https://rp.example/other?kept=1", f"{CALLBACK}/"])
def test_another_redirect_uri_is_invalid_grant_and_leaves_the_code_spent(world: World, uri: str) -> None:
    """D18."""
    code = world.code()
    json_refusal(world.redeem(code, redirect_uri=uri), 400, "invalid_grant")
    json_refusal(world.redeem(code), 400, "invalid_grant")


def test_of_sixteen_simultaneous_redemptions_one_succeeds_and_its_token_is_dead_afterwards(world: World) -> None:
    """D18: a replay kills the first token, even if it loses the race by a hair."""
    code = world.code()
    answers = world.run(_together(world, code, times=16))
    won = [answer for answer in answers if answer.status_code == 200]
    assert len(won) == 1
    for answer in answers:
        assert answer in won or json_refusal(answer, 400, "invalid_grant")
    assert world.userinfo(token=won[0].json()["access_token"]).status_code == 401
    assert world.kinds().count("denied_token") == 1


async def _together(world: World, code: str, *, times: int) -> list[httpx.Response]:
    return await asyncio.gather(*(world.rp.token(code) for _ in range(times)))
