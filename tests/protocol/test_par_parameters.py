"""What a pushed authorization request may say (Spec 4.1, 7.1; D3, D4, D10-D14, D18, D40).

Every refusal here leaves nothing behind: the same assertion and the same proof push the honest request afterwards.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.rules.oauth.authorization_request import PARAMETERS, PushedRequest, RequestParameter
from tests.protocol.deployment import PAR
from tests.protocol.expectations import PUSHED, SIGNED
from tests.protocol.refusals import json_refusal, not_cached
from tests.world.clients import CALLBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations(*PUSHED)
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
LEVEL_2 = "urn:idp:authentication:loa:2"


def refuse(world: World, error: str = "invalid_request", /, **form: Any) -> str:
    """Push one dishonest parameter: refused, nothing spent; then honestly with the same assertion and proof."""
    honest: dict[str, Any] = {"client_assertion": world.rp.assertion(), "state": "st4te"}
    headers = {"DPoP": world.rp.proof("POST", PAR)}
    state = {**honest, **form}["state"]
    with world.nothing_spent():
        answer = world.push(headers=headers, **{**honest, **form})
    echoed = (
        state if isinstance(state, str) and 0 < len(state) <= 2048 and state.isascii() and state.isprintable() else None
    )
    sentence = json_refusal(answer, 400, error, state=echoed)
    assert world.push(headers=headers, **honest).status_code == 201
    return sentence


def accept(world: World, **form: Any) -> Any:
    """Push one unusual but proper parameter; what was stored."""
    before = world.stored()
    answer = world.push(**form)
    assert answer.status_code == 201, answer.text
    (value,) = [row[2] for row in world.stored() - before if row[0] == "pushed_request"]
    return msgspec.msgpack.decode(value, type=PushedRequest).request


OPTIONAL = ("state", "nonce", "authentication_context_type")
"""in the generation that says so"""
REQUIRED = (
    "client_id", "response_type", "redirect_uri", "scope", "code_challenge", "code_challenge_method", *OPTIONAL,
)  # fmt: skip


@pytest.mark.generations(*PUSHED)
@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("value", [None, ""], ids=["absent", "empty"])
def test_a_missing_parameter_is_invalid_request_and_is_named(shared: World, name: str, value: str | None) -> None:
    """Spec 4.1, D5; D14: a parameter without a value counts as absent; Spec "Generations": FAPI2 requires less."""
    if name in OPTIONAL and name not in shared.expected.required:
        accept(shared, **{name: value})
        return
    sentence = refuse(shared, **{name: value})
    assert sentence.removesuffix(": the context_type_rule of this client is required") == f"parameter {name} is missing"


@pytest.mark.parametrize("value", ["authinfo", "OPENID", "authinfo tpauthinfo"])
def test_without_openid_the_scope_is_invalid(shared: World, value: str) -> None:
    """Spec 4.1, D5: openid missing is invalid_scope."""
    refuse(shared, "invalid_scope", scope=value)


@pytest.mark.parametrize(
    "value",
    [
        "openid openid2", "openid email", "openid AUTHINFO", "openid  authinfo", " openid", "openid ", "openid\tauthinfo",
        "openid\nauthinfo", "openid,authinfo", 'openid "', "openid \\", "openid é", f"openid {'x' * 400}",
    ],
)  # fmt: skip
def test_an_unknown_or_malformed_scope_is_invalid(shared: World, value: str) -> None:
    """Spec 7.1; RFC 6749 §3.3: tokens separated by single spaces."""
    refuse(shared, "invalid_scope", scope=value)


def test_a_scope_beyond_the_clients_list_is_invalid(world: World) -> None:
    """Spec 7.1: beyond the client's granted scope."""
    world.registers(scopes=("openid", "authinfo"))
    world.rp.scope = "openid authinfo"
    assert refuse(world, "invalid_scope", scope="openid tpauthinfo").startswith(
        "this client is not registered for scope"
    )


def test_a_scope_that_is_named_twice_is_granted_once(shared: World) -> None:
    """RFC 6749 §3.3: a scope is a set."""
    assert accept(shared, scope="authinfo openid authinfo").scopes == ("authinfo", "openid")


@pytest.mark.parametrize(
    "value",
    [
        f"{CALLBACK}/", f"{CALLBACK}?", f"{CALLBACK}#", f"{CALLBACK}?x=1", "https://RP.example/callback",
        "https://rp.example:443/callback", "HTTPS://rp.example/callback", "https://rp.example/Callback",
        "https://rp.example/%63allback", "http://rp.example/callback", "https://rp.example/other",
        "https://rp.example/x/../callback", f" {CALLBACK}", f"{CALLBACK}\n", "https://evil.example/callback", "x",
    ],
)  # fmt: skip
def test_a_redirect_uri_is_compared_character_by_character(shared: World, value: str) -> None:
    """Spec 4.1: must equal one of those registered; D38: exact strings."""
    refuse(shared, redirect_uri=value)


def test_each_registered_redirect_uri_may_be_named(shared: World) -> None:
    """Spec 4.1; D38: a registered query is part of the string."""
    uri = "https://rp.example/other?kept=1"
    assert accept(shared, redirect_uri=uri).redirect_uri == uri


@pytest.mark.parametrize("value", ["token", "id_token", "code id_token", "none", "Code", "code "])
def test_only_code_is_a_response_type(shared: World, value: str) -> None:
    """Spec 4.1: the only value supported."""
    refuse(shared, response_type=value)


@pytest.mark.parametrize("value", ["plain", "s256", "S512", "S256 "])
def test_only_s256_is_a_challenge_method(shared: World, value: str) -> None:
    """Spec 4.1: the only value supported."""
    refuse(shared, code_challenge_method=value)


@pytest.mark.parametrize(
    "value",
    [
        CHALLENGE[:-1], f"{CHALLENGE}A", f"{CHALLENGE}=", CHALLENGE[:-1] + "N", CHALLENGE.replace("-", "+"),
        CHALLENGE.replace("-", "/"), f"{CHALLENGE[:-1]} ", f" {CHALLENGE[1:]}", f"{CHALLENGE[:-2]}\n{CHALLENGE[-1]}", "A" * 128, "é" * 43,
    ],
)  # fmt: skip
def test_a_code_challenge_is_43_characters_of_canonical_base64url(shared: World, value: str) -> None:
    """D18. The last character of a SHA-256 hash has two bits that must be zero."""
    refuse(shared, code_challenge=value)


@pytest.mark.parametrize(("name", "longest"), [("state", 2048), ("nonce", 512)])
def test_state_and_nonce_may_be_long_and_hold_any_printable_character(shared: World, name: str, longest: int) -> None:
    """D13: returned whole."""
    printable = "".join(map(chr, range(0x20, 0x7F)))
    for value in ("x", printable, "y" * longest):
        assert getattr(accept(shared, **{name: value}), name) == value


@pytest.mark.parametrize(("name", "longest"), [("state", 2048), ("nonce", 512)])
@pytest.mark.parametrize(
    "spoil", [lambda n: "y" * (n + 1), lambda _: "é", lambda _: "a\x00", lambda _: "a\x7f", lambda _: "a\nb"]
)
def test_a_state_or_nonce_beyond_that_is_refused(
    shared: World, name: str, longest: int, spoil: Callable[[int], str]
) -> None:
    """D13, and D4: what is not well-formed is not echoed."""
    refuse(shared, **{name: spoil(longest)})


@pytest.mark.parametrize("value", [f"urn:idp:authentication:loa:3 {LEVEL_2}", LEVEL_2, f"{LEVEL_2} x", None, ""])
def test_the_first_supported_acr_value_wins_and_without_any_the_clients_level(shared: World, value: str | None) -> None:
    """Spec 4.1, D10."""
    assert accept(shared, acr_values=value).acr == LEVEL_2


@pytest.mark.parametrize(
    "value", ["urn:idp:authentication:loa:3", "urn:idp:authentication:loa:1", "2", "URN:idp:authentication:loa:2"]
)
@pytest.mark.generations(*SIGNED)
def test_acr_values_without_a_supported_one_are_refused(shared: World, value: str) -> None:
    """Spec "Generations": invalid_request, but in FAPI2."""
    refuse(shared, acr_values=value)


@pytest.mark.parametrize(
    "value", ["APP_PAYMENT_DEFAULT", "app_authentication_default", "APP_AUTHENTICATION_DEFAULT ", "x"]
)
def test_a_context_type_outside_the_clients_list_is_refused(shared: World, value: str) -> None:
    """D11."""
    refuse(shared, authentication_context_type=value)


def test_a_context_type_on_the_clients_list_is_taken(world: World) -> None:
    """D11: an operator can allow others, and then only those."""
    world.registers(context_types=("APP_PAYMENT_DEFAULT",))
    assert accept(world, authentication_context_type="APP_PAYMENT_DEFAULT").context_type == "APP_PAYMENT_DEFAULT"
    refusal = world.push(authentication_context_type="APP_AUTHENTICATION_DEFAULT", state="s")
    json_refusal(refusal, 400, "invalid_request", state="s")


@pytest.mark.parametrize("value", [None, "", "APP_AUTHENTICATION_DEFAULT"])
def test_a_client_with_the_rule_optional_may_leave_its_context_type_out(world: World, value: str | None) -> None:
    """D63."""
    world.registers(context_type_rule="optional")
    assert accept(world, authentication_context_type=value).context_type == (value or None)


@pytest.mark.parametrize("rule", ["required", "optional"])
def test_the_clients_list_holds_whatever_its_rule(world: World, rule: str) -> None:
    """D63, D11."""
    world.registers(context_type_rule=rule, context_types=("APP_PAYMENT_DEFAULT",))
    refusal = world.push(authentication_context_type="APP_AUTHENTICATION_DEFAULT", state="s")
    assert "must be one of APP_PAYMENT_DEFAULT" in json_refusal(refusal, 400, "invalid_request", state="s")


@pytest.mark.parametrize("value", ["APP_AUTHENTICATION_DEFAULT", "x"])
def test_a_client_with_the_rule_refused_must_leave_its_context_type_out(world: World, value: str) -> None:
    """D63: in every generation, with a sentence that names the rule; nothing is spent."""
    world.registers(context_type_rule="refused")
    with world.nothing_spent():
        refusal = world.push(authentication_context_type=value, state="s")
        told = json_refusal(refusal, 400, "invalid_request", state="s")
    assert told == "leave authentication_context_type out: the context_type_rule of this client is refused"
    for absent in (None, ""):
        assert accept(world, authentication_context_type=absent).context_type is None


@pytest.mark.parametrize("value", ["x" * 100, "Aa0 .,-@'!()", None, ""])
def test_a_context_message_within_its_alphabet_is_taken(shared: World, value: str | None) -> None:
    """D12."""
    assert accept(shared, authentication_context_message=value).context_message == (value or None)


@pytest.mark.parametrize("value", ["x" * 101, "<b>", "a&b", "50%", "a\nb", "é", "a_b", 'a"b', "a/b", "a:b", "a\tb"])
def test_a_context_message_outside_it_is_refused(shared: World, value: str) -> None:
    """D12: at most 100 characters: ASCII letters, digits, space and . , - @ ' ! ( )."""
    refuse(shared, authentication_context_message=value)


@pytest.mark.parametrize("sign", ". , - @ ' ! ( )".split())
def test_a_deployment_may_take_letters_digits_and_spaces_alone(worlds: Worlds, sign: str) -> None:
    """D12: the preset; R-5.1. What is refused spends nothing."""
    plain = worlds.fresh(context_message_punctuation=False)
    assert accept(plain, authentication_context_message="Pay 10 now").context_message == "Pay 10 now"
    message = refuse(plain, authentication_context_message=f"Pay 10{sign}")
    assert message.endswith("at most 100 characters: ASCII letters, digits and spaces")


@pytest.mark.parametrize("parameter", [each for each in PARAMETERS if each.limit], ids=lambda each: each.name)
def test_a_text_is_taken_up_to_its_limit_and_refused_beyond_it(shared: World, parameter: RequestParameter) -> None:
    """Spec 8: each text that is declared."""
    accept(shared, **{parameter.name: "x" * parameter.limit})
    assert refuse(shared, **{parameter.name: "x" * (parameter.limit + 1)}).startswith(f"{parameter.name} must be ")


@pytest.mark.parametrize("parameter", [each for each in PARAMETERS if each.example], ids=lambda each: each.name)
def test_the_example_of_a_parameter_is_taken(shared: World, parameter: RequestParameter) -> None:
    """Spec 4.1: what the Bruno collections send."""
    accept(shared, **{parameter.name: parameter.example})


@pytest.mark.parametrize("value", ["none login", "login none", "unknown", "NONE", "login,consent"])
def test_prompt_none_stands_alone_and_unknown_values_are_refused(shared: World, value: str) -> None:
    """D40."""
    refuse(shared, prompt=value)


@pytest.mark.parametrize("value", ["none", "login", "login consent select_account", None, ""])
def test_every_known_prompt_is_taken(shared: World, value: str | None) -> None:
    """D40."""
    assert accept(shared, prompt=value).prompt == tuple((value or "").split())


@pytest.mark.parametrize("value", ["-1", "1.5", "x", "1e3", " 1", "٣", "9" * 40])
def test_max_age_is_a_whole_number_of_seconds(shared: World, value: str) -> None:
    """D40."""
    refuse(shared, max_age=value)


@pytest.mark.parametrize("value", ["0", "3600", "999999999"])
def test_a_proper_max_age_is_taken(shared: World, value: str) -> None:
    """D40."""
    assert accept(shared, max_age=value).max_age == int(value)


@pytest.mark.parametrize("value", ["fragment", "form_post", "jwt", "query "])
def test_a_response_mode_that_is_not_served_is_refused(shared: World, value: str) -> None:
    """Spec "Generations": query alone, wherever requests are pushed."""
    refuse(shared, response_mode=value)
    assert accept(shared, response_mode="query").response_mode == "query"


@pytest.mark.parametrize("name", ["request", "request_uri"])
def test_a_request_object_or_reference_in_the_body_is_refused(shared: World, name: str) -> None:
    """D14; RFC 9126 §2.1."""
    assert refuse(shared, **{name: "urn:x"}).startswith(f"parameter {name} is not accepted here")


@pytest.mark.parametrize(
    "name", [*REQUIRED, "scope", "client_assertion_type", "dpop_jkt", "acr_values", "prompt", "max_age"]
)
def test_a_repeated_known_parameter_is_refused(shared: World, name: str) -> None:
    """D14, and D4: a state that was sent twice is not echoed."""
    value = str({**shared.rp.push_parameters(), "dpop_jkt": "x"}.get(name, "login"))
    assert refuse(shared, **{name: [value, value]}) == f"parameter {name} is repeated"


@pytest.mark.parametrize(
    "form", [{"unknown": "x"}, {"unknown": ["x", "y"]}, {"display": "popup"}, {"claims": "{"}, {"ünknown": "ü"}]
)
def test_unknown_parameters_are_ignored(shared: World, form: dict[str, Any]) -> None:
    """D14, repeated or not; D40: display."""
    accept(shared, **form)


def test_success_is_a_reference_that_nobody_can_guess(shared: World) -> None:
    """Spec 4.1, D3, D31."""
    answer = shared.push()
    assert (answer.status_code, answer.headers["content-type"]) == (201, "application/json")
    assert not_cached(answer)
    body = answer.json()
    assert body.keys() == {"request_uri", "expires_in"}
    assert body["expires_in"] == 60
    prefix, _, reference = body["request_uri"].rpartition(":")
    assert prefix == "urn:ietf:params:oauth:request_uri"
    assert len(reference) == 43
    assert reference not in shared.push(state=secrets.token_hex()).text
