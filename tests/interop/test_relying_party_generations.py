"""The relying-party simulator in each generation: it believes an honest provider, and refuses one wrong value.

What all generations share is in test_relying_party.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from joserfc.jwk import ECKey

from corpid_dev.relying_party import verification
from corpid_dev.relying_party.interfaces import CURRENT, FAPI2, INTERFACES, INTERMEDIATE, LEGACY, Interface
from corpid_dev.relying_party.verification import Callback, CheckFailed, ProviderError
from tests.interop.counterpart import (
    ATTRIBUTES,
    AUTH_INFO,
    CALLBACK,
    ISSUER,
    PACKED,
    THIRD_PARTIES,
    Counterpart,
    certified,
    header,
    put,
    swap,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER_KEY = ECKey.generate_key("P-256", {"kid": "op-1", "use": "sig", "alg": "ES256"})


def lacking(member: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """userInfo or entityInfo without one member."""
    block = "userInfo" if member in verification.USER else "entityInfo"
    return within(block, **{member: None})


def each_key(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: {"keys": [change(entry) for entry in document["keys"]]}


def foreign(text: Callback) -> Callback:
    """The answer in the form, and something of it in the address too."""
    return Callback(f"{text}?code=c2", text.form)


TAMPERED: list[tuple[Interface, str, Callable[[Any], Any], str]] = [
    (LEGACY, "discovery", put(**{"authorization-info_endpoint": None}), "discovery: endpoints"),
    (LEGACY, "token", put(token_type="DPoP"), "token: token_type"),
    (LEGACY, "keys", each_key(put(x5c=None)), "provider keys: certificates"),
    (LEGACY, "keys", each_key(put(x5c=["AAAA"])), "provider keys: certificates"),
    (LEGACY, "keys", each_key(put(x5t="AAAA")), "provider keys: certificates"),
    (LEGACY, "keys", each_key(put(**{"x5t#S256": None})), "provider keys: certificates"),
    (LEGACY, "keys", each_key(put(**certified(OTHER_KEY))), "provider keys: certificates"),
    (LEGACY, "id token", put(sub=None), "ID token: sub"),
    (LEGACY, "id token", put(sub="person-1"), "ID token: sub"),
    (LEGACY, "id token", put(sub=PACKED["sub"] + ",s=S0000002W"), "ID token: sub"),
    (LEGACY, "id token", put(sub="s=S 1,uuid=p,u=a,c=SG"), "ID token: sub"),
    (LEGACY, "id token", put(sub="s=100%,uuid=p,u=a,c=SG"), "ID token: sub"),
    (LEGACY, "id token", put(sub="s=S1,uuid=,u=a,c=SG"), "ID token: sub"),
    (LEGACY, "id token", put(sub="s=S1,uuid=p,u=a"), "ID token: sub"),
    (LEGACY, "id token", put(userInfo=None), "ID token: userInfo"),
    (LEGACY, "id token", put(entityInfo="200000001A"), "ID token: entityInfo"),
    *[(LEGACY, "id token", lacking(name), "ID token: userInfo") for name in verification.USER],
    *[(LEGACY, "id token", lacking(name), "ID token: entityInfo") for name in verification.ENTITY],
    (LEGACY, "id token", within("userInfo", CPUID_FullName=["Rina"]), "ID token: userInfo"),
    (LEGACY, "id token", within("userInfo", ISSPHOLDER="yes"), "ID token: ISSPHOLDER"),
    (LEGACY, "id token", within("userInfo", CPAccType="Robot"), "ID token: CPAccType"),
    (LEGACY, "id token", within("entityInfo", CPEntID=""), "ID token: CPEntID"),
    (LEGACY, "id token", within("entityInfo", CPEnt_TYPE="uen"), "ID token: CPEnt_TYPE"),
    (LEGACY, "id token", within("entityInfo", CPEnt_Status="Deregistered"), "ID token: CPEnt_Status"),
    (LEGACY, "id token", within("entityInfo", CPEnt_TYPE="NON-UEN"), "ID token: CPEnt_Status"),
    (LEGACY, "id token", within("entityInfo", CPNonUEN_Name="X"), "ID token: CPNonUEN_* blank for UEN"),
    (LEGACY, "id token", put(at_hash=None), "ID token: at_hash"),
    (LEGACY, "id token", put(amr=None), "ID token: amr"),
    (LEGACY, "id token", put(auth_time=None), "ID token: auth_time"),
    (LEGACY, "access token", put(sub="person-1"), "access token: sub as in the ID token"),
    (LEGACY, "access token", put(entity=None), "access token: entity as in the ID token"),
    (LEGACY, "access token", put(entity={"sub": "2", "sub_type": "entity"}), "access token: entity as in the ID token"),
    (LEGACY, "access token", put(cnf={"jkt": "j"}), "access token: bound to no key"),
    (LEGACY, "access token", put(aud=[f"{ISSUER}/userinfo"]), "access token: aud"),
    (LEGACY, "authorization-info", put(sub="person-1"), "authorization-info: sub as in the ID token"),
    (LEGACY, "authorization-info", put(aud="rp-2"), "authorization-info: aud"),
    (LEGACY, "authorization-info", put(exp=None), "authorization-info: iat and exp are whole numbers"),
    (LEGACY, "authorization-info", put(AuthInfo=None), "authorization-info: AuthInfo: shape"),
    (LEGACY, "authorization-info", put(AuthInfo="{}"), "authorization-info: AuthInfo: shape"),
    (LEGACY, "authorization-info", put(TPAuthInfo=AUTH_INFO), "authorization-info: TPAuthInfo: shape"),
    (LEGACY, "authorization-info key", lambda _: OTHER_KEY, "authorization-info: signature"),
    (LEGACY, "authorization-info response", header("content-type", "application/json"),
     "authorization-info: content type"),
    (LEGACY, "authorization-info response", header("cache-control", "private"), "authorization-info: not cached"),
    (INTERMEDIATE, "discovery", put(entityinfo_endpoint=None), "discovery: endpoints"),
    (INTERMEDIATE, "discovery", put(entityinfo_signing_alg_values_supported=None), "discovery: supports what we use"),
    (INTERMEDIATE, "access token", put(aud=[f"{ISSUER}/userinfo"]), "access token: aud"),
    (INTERMEDIATE, "entity-info", put(sub="person-2"), "entity-info: sub as in the ID token"),
    (INTERMEDIATE, "entity-info", put(aud="rp-2"), "entity-info: aud"),
    (INTERMEDIATE, "entity-info", put(iss=None), "entity-info: iss"),
    (INTERMEDIATE, "entity-info", put(entity_info=None), "entity-info: entity_info as in the ID token"),
    (INTERMEDIATE, "entity-info", within("entity_info", entity_name="X"), "entity-info: entity_info as in the ID token"),
    (INTERMEDIATE, "entity-info key", lambda _: OTHER_KEY, "entity-info: signature"),
    (INTERMEDIATE, "entity-info response", header("content-type", "application/json"), "entity-info: content type"),
    (FAPI2, "id token key", lambda _: OTHER_KEY, "ID token: signature"),
    (FAPI2, "id token", put(sub_type=None), "ID token: sub_type"),
    (FAPI2, "token", lambda document: {**document, "id_token": f"{document['id_token']}.a.b"}, "ID token: signed (JWS)"),
    (FAPI2, "access token", put(cnf=None), "access token: cnf.jkt"),
    (FAPI2, "userinfo response", header("content-type", "application/jwt"), "userinfo: content type"),
    (FAPI2, "userinfo response", header("pragma", "cache"), "userinfo: not cached (HTTP/1.0)"),
    (FAPI2, "userinfo response", header("www-authenticate", "DPoP"), "userinfo: no challenge"),
    (FAPI2, "userinfo", lambda _: ["person-1"], "userinfo: JSON object"),
    (FAPI2, "userinfo", put(sub="person-2"), "userinfo: sub as in the ID token"),
    (FAPI2, "userinfo", put(auth_info=None), "userinfo: auth_info: shape"),
]  # fmt: skip


@pytest.mark.parametrize("interface", INTERFACES.values(), ids=INTERFACES)
def test_an_honest_provider_is_believed(interface: Interface) -> None:
    """Otherwise the refusals below would prove nothing. Spec "Generations"."""
    counterpart = Counterpart(interface)
    told = counterpart.run()
    assert told[interface.userinfo.blocks["authinfo"]] == AUTH_INFO
    assert told[interface.userinfo.blocks["tpauthinfo"]] == THIRD_PARTIES
    assert all(check.passed for check in counterpart.rp.checks.checks)
    assert [exchange.title for exchange in counterpart.rp.timeline.exchanges] == [
        "Discovery",
        *(["Pushed authorization request"] if interface.pushed else []),
        "Token",
        "Keys of the provider",
        *(["Entity-info"] if interface.entity_info else []),
        interface.userinfo.title,
    ]


@pytest.mark.parametrize(
    ("interface", "where", "change", "check"),
    [pytest.param(*case, id=f"{number}-{case[0].name}-{case[-1]}") for number, case in enumerate(TAMPERED)],
)
def test_an_answer_that_is_wrong_in_one_place_is_refused(
    interface: Interface, where: str, change: Callable[[Any], Any], check: str
) -> None:
    """Spec 2.6, 2.8, 2.9; R-12.2; D20, D22, D23, D26."""
    counterpart = Counterpart(interface)
    counterpart.change[where] = change
    with pytest.raises(CheckFailed) as refused:
        counterpart.run()
    assert refused.value.check == check
    assert [one.name for one in counterpart.rp.checks.checks if not one.passed] == [check]


@pytest.mark.parametrize("mode", LEGACY.response_modes)
def test_an_answer_is_taken_in_the_response_mode_that_was_asked_for(mode: str) -> None:
    """D38."""
    counterpart = Counterpart(LEGACY, response_mode=mode)
    assert counterpart.run()["sub"] == PACKED["sub"]
    asked = dict(parse_qsl(urlsplit(counterpart.rp.authorization_url()).query))
    assert asked["response_mode"] == mode


@pytest.mark.parametrize(
    ("mode", "change"),
    [
        ("query", swap("?", "#")),
        ("query", lambda callback: Callback(CALLBACK, parse_qsl(urlsplit(callback).query))),
        ("fragment", swap("#", "?")),
        ("form_post", lambda callback: f"{CALLBACK}?state={callback.state}&code=c1"),
        ("form_post", foreign),
    ],
)  # fmt: skip
def test_an_answer_in_another_response_mode_is_refused(mode: str, change: Callable[[Any], Any]) -> None:
    """OAuth 2.0 Multiple Response Type Encoding Practices §2.1."""
    counterpart = Counterpart(LEGACY, response_mode=mode)
    counterpart.change["callback"] = change
    with pytest.raises(CheckFailed) as refused:
        counterpart.run()
    assert refused.value.check == "callback: response mode"


@pytest.mark.parametrize("mode", LEGACY.response_modes)
def test_state_and_errors_are_read_where_the_answer_is(mode: str) -> None:
    """Spec 4.2: a foreign state is refused, an error with the right one is told."""
    counterpart = Counterpart(LEGACY, response_mode=mode)
    asyncio.run(counterpart.rp.begin())
    with pytest.raises(CheckFailed, match="state"):
        counterpart.rp.callback(counterpart.callback(state="x"))
    with pytest.raises(ProviderError, match="access_denied"):
        counterpart.rp.callback(counterpart.callback(error="access_denied"))


def test_a_form_may_be_given_beside_its_address() -> None:
    """The fields as a website reads them."""
    counterpart = Counterpart(LEGACY, response_mode="form_post")
    asyncio.run(counterpart.rp.begin())
    assert counterpart.rp.callback(CALLBACK, [("code", "c1"), ("state", counterpart.rp.sign_in.state)]) == "c1"


def test_the_front_channel_request_carries_everything_and_no_secret() -> None:
    """R-10.2: no client assertion, no proof, and what the others push besides is not sent."""
    rp = Counterpart(LEGACY).rp
    sent = dict(parse_qsl(urlsplit(asyncio.run(rp.begin())).query))
    assert sent == {
        "client_id": "rp-1",
        "response_type": "code",
        "redirect_uri": CALLBACK,
        "scope": rp.scope,
        "state": rp.sign_in.state,
        "nonce": rp.sign_in.nonce,
        "code_challenge": sent["code_challenge"],
        "code_challenge_method": "S256",
    }
    assert dict(parse_qsl(urlsplit(rp.authorization_url(nonce=None)).query)).keys() == sent.keys() - {"nonce"}


@pytest.mark.parametrize("interface", INTERFACES.values(), ids=INTERFACES)
def test_proofs_go_where_the_generation_has_them(interface: Interface) -> None:
    """RFC 9449 §10: optional at PAR in FAPI2; a bearer token comes without any."""
    counterpart = Counterpart(interface)
    counterpart.run()
    proven = {each.title for each in counterpart.rp.timeline.exchanges if "dpop" in dict(each.request_headers)}
    expected = {
        "legacy": set(),
        "intermediate": {"Pushed authorization request", "Token", "Userinfo", "Entity-info"},
        "current": {"Pushed authorization request", "Token", "Userinfo"},
        "fapi2": {"Token", "Userinfo"},
    }
    assert proven == expected[interface.name]


@pytest.mark.parametrize("interface", INTERFACES.values(), ids=INTERFACES)
def test_blocks_that_were_registered_as_texts_arrive_as_objects(interface: Interface) -> None:
    """D22."""
    assert Counterpart(interface, stringified_blocks=True).run()[interface.userinfo.blocks["authinfo"]] == AUTH_INFO
    plain = Counterpart(interface, stringified_blocks=True)
    plain.stringified = False
    with pytest.raises(CheckFailed, match="text"):
        plain.run()


def test_a_fapi_client_may_register_encryption_and_signed_userinfo() -> None:
    """Spec "Generations": encrypted, signed if the client registered so; then nothing less is believed."""
    assert Counterpart(FAPI2, id_token_enc="A256CBC-HS512", userinfo_signed=True).run()["auth_info"] == AUTH_INFO
    with pytest.raises(CheckFailed, match="encrypted"):
        _told_plainly(Counterpart(FAPI2, id_token_enc="A256CBC-HS512"), id_token_enc=None)
    with pytest.raises(CheckFailed, match="content type"):
        _told_plainly(Counterpart(FAPI2, userinfo_signed=True), userinfo_signed=False)


def _told_plainly(counterpart: Counterpart, **registered: Any) -> None:
    """The provider acts as if the client had registered something else."""
    asked = {name: getattr(counterpart.rp, name) for name in registered}

    def answer(request: httpx.Request) -> httpx.Response:
        for name, value in registered.items():
            setattr(counterpart.rp, name, value)
        try:
            return counterpart.answer(request)
        finally:
            for name, value in asked.items():
                setattr(counterpart.rp, name, value)

    counterpart.rp.http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    counterpart.run()


def test_a_legacy_relying_party_takes_the_document_of_the_generation_beside_it() -> None:
    """Spec "Side by side": CURRENT's document, plus authorization-info_endpoint."""
    counterpart = Counterpart(LEGACY)
    own = Counterpart(CURRENT).discovery(httpx.Request("GET", ISSUER)).json()
    counterpart.change["discovery"] = lambda document: {**document, **own}
    assert counterpart.run()["AuthInfo"] == AUTH_INFO


def test_entity_info_is_where_the_generation_has_it() -> None:
    """D26."""
    counterpart, other = Counterpart(INTERMEDIATE), Counterpart(CURRENT)
    counterpart.run()
    other.run()
    assert asyncio.run(counterpart.rp.entity_info("POST"))["entity_info"] == ATTRIBUTES
    with pytest.raises(ValueError, match="no entity-info"):
        asyncio.run(other.rp.entity_info())
    with pytest.raises(ValueError, match="redeem first"):
        asyncio.run(Counterpart(INTERMEDIATE).rp.entity_info())


def test_a_packed_subject_is_unpacked_whatever_its_order() -> None:
    """R-12.2: the order is not guaranteed; values are percent-encoded."""
    told = {"c": "SG", "u": "A,B", "uuid": "p-1", "s": "S=1 1%"}
    assert verification.members("c=SG,u=A%2CB,uuid=p-1,s=S%3D1%201%25") == told
    for wrong in ("", "s", "s=1,uuid=2,u=3,c=4,x=5", "s=1,uuid=2,u=3", "s=%zz,uuid=2,u=3,c=4", "s=%FF,uuid=2,u=3,c=4"):
        with pytest.raises(ValueError, match=r"."):
            verification.members(wrong)
