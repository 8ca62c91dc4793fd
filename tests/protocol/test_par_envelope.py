"""How a pushed authorization request is sent, and who may send it (Spec 4.1, 5, 7.1; D4, D5, D8, D14, D27, D32, D47)."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.protocol.deployment import PAR, TOKEN, USERINFO
from tests.protocol.expectations import EVERY, PUSHED, SIGNED
from tests.protocol.refusals import is_public, json_refusal, not_cached
from tests.world.clients import CALLBACK, rp_keys

if TYPE_CHECKING:
    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*PUSHED)
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("url", [PAR, TOKEN])
@pytest.mark.parametrize(
    "value",
    [
        "application/json",
        "multipart/form-data; boundary=x",
        "text/plain",
        "",
        "application/x-www-form-urlencodedx",
        [FORM, FORM],
        None,
    ],
)
def test_another_content_type_is_invalid_request_and_nothing_is_spent(shared: World, url: str, value: Any) -> None:
    """Spec 4.1, 4.3; D14."""
    honest = {"client_assertion": shared.rp.assertion()}
    headers = {"DPoP": shared.rp.proof("POST", PAR), "Content-Type": value}
    with shared.nothing_spent():
        asked: Any = {PAR: shared.push, TOKEN: partial(shared.redeem, "c")}[url]
        json_refusal(asked(headers=headers, **honest), 400, "invalid_request")
    assert shared.push(headers={**headers, "Content-Type": FORM}, **honest).status_code == 201


@pytest.mark.parametrize("value", [f"{FORM}; charset=utf-8", FORM.upper(), f"{FORM};charset=UTF-8", f" {FORM} ; x=y"])
def test_the_content_type_may_have_parameters_and_any_case(shared: World, value: str) -> None:
    """Spec 4.1: a variant adds charset."""
    assert shared.push(headers={"Content-Type": value}).status_code == 201


@pytest.mark.parametrize(
    ("url", "method", "allowed"),
    [
        *(
            (url, method, "POST")
            for url in (PAR, TOKEN)
            for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
        ),
        *((USERINFO, method, "GET, POST, HEAD") for method in ("PUT", "DELETE", "PATCH", "OPTIONS")),
    ],
)
def test_another_method_is_405_with_the_allowed_ones(shared: World, url: str, method: str, allowed: str) -> None:
    """D31, D32."""
    with shared.nothing_spent():
        answer = shared.run(shared.http.request(method, url))
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert answer.headers["content-type"] == "application/json"
    assert not_cached(answer)
    assert "access-control-allow-origin" not in answer.headers
    if method != "HEAD":
        is_public(answer.json()["error_description"], answer.json()["error"])


@pytest.mark.parametrize("body", [b"", b"&", b"=", b"&&=&", b"a", b"\xff\xfe=\x00", b"%", b"state", b"{}"])
def test_a_body_without_parameters_is_refused_as_what_is_missing(shared: World, body: bytes) -> None:
    """D5: assertion or its type missing is invalid_client; D14: what cannot be decoded is invalid_request."""
    answer = shared.push(body=body)
    json_refusal(answer, answer.status_code, {400: "invalid_request", 401: "invalid_client"}[answer.status_code])


@pytest.mark.parametrize("broken", [b"nonce=%zz", b"nonce=%f", b"nonce=%", b"nonce=%ff", b"scope=openid%C3%28"])
def test_what_is_not_utf8_or_badly_encoded_is_invalid_request_and_the_state_is_echoed(
    shared: World, broken: bytes
) -> None:
    """Spec 7.1: malformed; D4."""
    json_refusal(shared.push(body=b"state=st%2Fate+1&" + broken), 400, "invalid_request", state="st/ate 1")


@pytest.mark.parametrize(
    "body", [b"state=", b"state=a&state=a", b"state=%00", b"state=%zz", b"state=" + b"y" * 2049, b"State=a", b"x=state"]
)
def test_a_state_that_is_absent_repeated_or_malformed_is_not_echoed(shared: World, body: bytes) -> None:
    """D4: as sent, if it was sent once and is well-formed."""
    answer = shared.push(body=body)
    assert answer.json().keys() == {"error", "error_description"}


def test_the_token_endpoint_echoes_no_state(shared: World) -> None:
    """D4 speaks of PAR; Spec 4.3 has error and error_description alone."""
    json_refusal(shared.redeem("c", state="st4te", grant_type=None), 400, "invalid_request")


@pytest.mark.parametrize("missing", ["client_assertion", "client_assertion_type"])
@pytest.mark.parametrize("value", [None, ""])
def test_without_assertion_or_its_type_it_is_invalid_client(shared: World, missing: str, value: str | None) -> None:
    """D5; Spec 7.1: credential missing. No challenge, since no Authorization was used."""
    with shared.nothing_spent():
        json_refusal(shared.push(**{missing: value}), 401, "invalid_client", state=shared.rp.sign_in.state)
        json_refusal(shared.redeem("c", **{missing: value}), 401, "invalid_client")


@pytest.mark.parametrize(
    "value",
    [
        "urn:ietf:params:oauth:client-assertion-type:saml2-bearer",
        "jwt-bearer",
        "URN:ietf:params:oauth:client-assertion-type:jwt-bearer",
    ],
)
def test_another_assertion_type_is_invalid_client(shared: World, value: str) -> None:
    """Spec 4.1: exactly the one value."""
    json_refusal(shared.push(client_assertion_type=value, state="s"), 401, "invalid_client", state="s")


@pytest.mark.parametrize(
    ("value", "scheme"),
    [("Basic cnAtMTpzZWNyZXQ=", "Basic"), ("Bearer abc", "Bearer"), ("DPoP abc", "DPoP"), ("Digest", "Digest")],
)
def test_a_client_that_used_authorization_alone_is_challenged_with_that_scheme(
    shared: World, value: str, scheme: str
) -> None:
    """RFC 6749 §5.2, D5."""
    without = {"client_assertion": None, "client_assertion_type": None, "client_secret": None}
    answer = shared.push(headers={"Authorization": value}, state="s", **without)
    json_refusal(answer, 401, "invalid_client", state="s", scheme=scheme)
    answer = shared.redeem("c", headers={"Authorization": value}, **without)
    json_refusal(answer, 401, "invalid_client", scheme=scheme)


def test_a_client_secret_alone_authenticates_nobody(shared: World) -> None:
    """Spec 5: private_key_jwt is the only method."""
    without = {"client_assertion": None, "client_assertion_type": None, "client_secret": "s3cret"}
    json_refusal(shared.push(state="s", **without), 401, "invalid_client", state="s")


@pytest.mark.parametrize(
    ("headers", "form"),
    [
        ({"Authorization": "Basic cnAtMTpz"}, {}),
        ({"Authorization": ["Basic a", "Basic b"]}, {}),
        ({"Authorization": ""}, {}),
        ({}, {"client_secret": "s"}),
    ],
)
def test_a_second_authentication_method_beside_the_assertion_is_refused(shared: World, headers: Any, form: Any) -> None:
    """D8; RFC 6749 §2.3. Nothing is spent."""
    honest = {"client_assertion": shared.rp.assertion(), "state": "s"}
    with shared.nothing_spent():
        json_refusal(shared.push(headers=headers, **honest, **form), 400, "invalid_request", state="s")
        json_refusal(shared.redeem("c", headers=headers, **honest, **form), 400, "invalid_request")
    assert shared.push(**honest).status_code == 201


@pytest.mark.parametrize("client_id", ["rp-2", "RP-1", "rp-1 ", "nobody"])
def test_a_client_id_other_than_the_assertions_subject_is_invalid_client(shared: World, client_id: str) -> None:
    """Spec 5 rule 3, D5."""
    with shared.nothing_spent():
        json_refusal(shared.push(client_id=client_id, state="s"), 401, "invalid_client", state="s")
        json_refusal(shared.redeem("c", client_id=client_id), 401, "invalid_client")


def test_unknown_client_and_failed_signature_share_one_sentence(shared: World) -> None:
    """D28: never whether a client exists."""
    unknown = shared.party("nobody", keys=rp_keys("rp-1"))
    forged = shared.party("rp-1", keys=rp_keys("rp-2"))
    sentences = {json_refusal(shared.push(rp, state="s"), 401, "invalid_client", state="s") for rp in (unknown, forged)}
    assert len(sentences) == 1


@pytest.mark.parametrize("changes", [{"enabled": False}, {"jwks": json.dumps({"keys": []})}])
def test_a_client_that_is_disabled_or_has_no_usable_key_gets_the_same_sentence(
    world: World, changes: dict[str, Any]
) -> None:
    """D5, D27, D28: before authentication an answer speaks only of what the caller sent."""
    unknown = json_refusal(world.push(world.party("nobody"), state="s"), 401, "invalid_client", state="s")
    world.registers(**changes)
    assert json_refusal(world.push(state="s"), 401, "invalid_client", state="s") == unknown


def test_a_client_of_another_generation_is_unauthorized(world: World) -> None:
    """Spec "No downgrade": unauthorized_client 400."""
    own = world.interface.name
    others = tuple(name for name in EVERY if name != own)
    for named in (others[:1], others):
        world.registers(generations=named)
        with world.nothing_spent():
            json_refusal(world.push(state="s"), 400, "unauthorized_client", state="s")
    world.registers(generations=("legacy", own))
    assert world.push().status_code == 201


@pytest.mark.generations(*SIGNED)
@pytest.mark.parametrize("use", ["sig alone", "unusable enc"])
def test_without_an_encryption_key_the_push_is_refused_and_nothing_is_spent(world: World, use: str) -> None:
    """D27: no usable enc key at PAR is invalid_request, before anything is spent."""
    signing, enc = rp_keys("rp-1").public()["keys"]
    keys = [signing] if use == "sig alone" else [signing, {**enc, "alg": "RSA-OAEP"}]
    honest = {"client_assertion": world.rp.assertion(iat=world.clock.now + 10, exp=world.clock.now + 100), "state": "s"}
    headers = {"DPoP": world.rp.proof("POST", PAR)}
    world.registers(jwks=json.dumps({"keys": keys}))
    with world.nothing_spent():
        json_refusal(world.push(headers=headers, **honest), 400, "invalid_request", state="s")
    world.writes(world.client())
    assert world.push(headers=headers, **honest).status_code == 201


def test_a_client_with_a_broken_key_set_is_a_server_error(world: World) -> None:
    """D27: no set at all is server_error 500; the caller is not told what is in the record."""
    world.registers(jwks="{")
    sentence = json_refusal(world.push(state="s"), 500, "server_error", state="s")
    assert "key set" in sentence


def test_a_pushed_request_is_written_for_the_client_alone(shared: World) -> None:
    """D15: one record, one spent assertion, one spent proof; nothing else."""
    before = shared.kinds()
    assert shared.push(headers={"DPoP": shared.rp.proof("POST", PAR)}, redirect_uri=CALLBACK).status_code == 201
    assert sorted([*before, "assertion", "proof", "pushed_request"]) == shared.kinds()
