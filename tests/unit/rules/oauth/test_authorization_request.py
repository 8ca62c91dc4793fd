"""Parameters into a typed authorization request: every content rule of PAR (Spec 4.1, D10-D14, D40)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.rules.oauth import authorization_request
from corpid.rules.oauth.authorization_request import (
    PUSHED_PARAMETERS,
    REQUEST_PARAMETERS,
    AuthorizationRequest,
    choose_error_mode,
    said_at_consent,
    validate_request,
)
from corpid.rules.oauth.errors import InvalidRequest, InvalidScope, RequestNotSupported, RequestURINotSupported
from corpid.rules.oauth.generations import CURRENT, LEGACY
from tests.unit.rules.oauth.given import CHALLENGE, CLIENT, JKT, PARAMETERS, PREFIX


def validated(**changes: str | None) -> AuthorizationRequest:
    given = {name: value for name, value in {**PARAMETERS, **changes}.items() if value is not None}
    return validate_request(given, CLIENT, CURRENT, jkt=JKT, acr_prefix=PREFIX)


def test_a_request_keeps_what_was_asked() -> None:
    assert validated() == AuthorizationRequest(
        client_id="rp-1",
        generation="current",
        redirect_uri="https://rp.example/callback",
        scopes=("openid", "authinfo"),
        code_challenge=CHALLENGE,
        state="the state",
        nonce="the nonce",
        acr="urn:idp:authentication:loa:2",
        context_type="APP_AUTHENTICATION_DEFAULT",
        jkt=JKT,
    )


@pytest.mark.parametrize("name", sorted(PARAMETERS.keys() - {"client_id"}))
def test_a_required_parameter_that_is_missing_is_named(name: str) -> None:
    """Spec 4.1; D5: no scope parameter at all is invalid_request."""
    with pytest.raises(InvalidRequest, match=f"parameter {name} is missing"):
        validated(**{name: None})


def test_a_scope_without_openid_is_an_invalid_scope() -> None:
    """D5."""
    with pytest.raises(InvalidScope):
        validated(scope="authinfo")


@pytest.mark.parametrize("name", ["state", "nonce", "authentication_context_type"])
def test_what_one_generation_requires_another_may_leave_out(name: str) -> None:
    """Spec "Generations": what differs is a field of the record."""
    lenient = replace(CURRENT, required_parameters=frozenset())
    given = {key: value for key, value in PARAMETERS.items() if key != name}
    validate_request(given, CLIENT, lenient, jkt=None, acr_prefix=PREFIX)


@pytest.mark.parametrize("name", ["request", "request_uri"])
def test_a_request_object_is_not_accepted_in_a_pushed_request(name: str) -> None:
    """RFC 9126 §2.1, D14."""
    with pytest.raises(InvalidRequest, match=f"parameter {name} is not accepted"):
        validated(**{name: "anything"})


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"request": "a.b.c"}, RequestNotSupported),
        ({"request_uri": "urn:x"}, RequestURINotSupported),
        ({"request": "a.b.c", "request_uri": "urn:x"}, RequestNotSupported),
    ],
)
def test_a_query_with_a_request_object_is_told_so_by_its_own_code(
    more: dict[str, str], refusal: type[RequestNotSupported | RequestURINotSupported]
) -> None:
    """D14; OpenID Connect Core §3.1.2.6."""
    with pytest.raises(refusal, match="is not accepted"):
        validate_request({**PARAMETERS, **more}, CLIENT, LEGACY, jkt=None, acr_prefix=PREFIX)
    validate_request(PARAMETERS, CLIENT, LEGACY, jkt=None, acr_prefix=PREFIX)


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        (b"", "query"),
        (b"response_mode=query", "query"),
        (b"response_mode=fragment&scope=%zz", "fragment"),
        (b"response_mode=form_post", "form_post"),
        (b"response_mode=form%5Fpost", "form_post"),
        (b"response_mode=fragment&response_mode=fragment", "query"),
        (b"response_mode=", "query"),
        (b"response_mode=jwt", "query"),
        (b"response_mode=Fragment", "query"),
        (b"response_mode=%ff", "query"),
        (b"response_mode=" + b"x" * 9000, "query"),
    ],
)
def test_an_error_is_answered_in_the_mode_that_was_asked_once_and_is_served_else_by_query(
    query: bytes, mode: str
) -> None:
    """Spec "Unserved modes and endpoints": unserved or unknown response_mode is told by query."""
    assert choose_error_mode(query, LEGACY) == mode
    assert choose_error_mode(query, CURRENT) == "query"


@pytest.mark.parametrize(
    "uri",
    [
        "https://rp.example/callback/",
        "https://rp.example/callback?",
        "https://rp.example/callback#",
        "https://RP.example/callback",
        "https://rp.example:443/callback",
        "https://rp.example/%63allback",
        "http://rp.example/callback",
        "https://rp.example/other",
        "https://rp.example/other?tenant=2",
        "https://rp.example/callback\n",
    ],
)
def test_a_redirect_uri_is_one_of_those_registered_character_by_character(uri: str) -> None:
    """D38."""
    with pytest.raises(InvalidRequest, match="character by character"):
        validated(redirect_uri=uri)
    assert validated(redirect_uri=CLIENT.redirect_uris[1]).redirect_uri == CLIENT.redirect_uris[1]


@pytest.mark.parametrize("value", ["token", "id_token", "code id_token", "Code", "none"])
def test_code_is_the_only_response_type(value: str) -> None:
    with pytest.raises(InvalidRequest, match="response_type must be code"):
        validated(response_type=value)


@pytest.mark.parametrize("value", ["fragment", "form_post", "query.jwt", "Query"])
def test_a_response_mode_that_is_not_served_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequest, match=r"response_mode must be query$"):
        validated(response_mode=value)
    assert validated(response_mode="query").response_mode == "query"


def test_pkce_is_required_and_s256() -> None:
    with pytest.raises(InvalidRequest, match="code_challenge_method must be S256"):
        validated(code_challenge_method="plain")
    with pytest.raises(InvalidRequest, match="43 base64url characters"):
        validated(code_challenge="short")


@pytest.mark.parametrize(("name", "longest"), [("state", 2048), ("nonce", 512)])
def test_state_and_nonce_are_printable_ascii_of_a_bounded_length(name: str, longest: int) -> None:
    """D13: returned whole, so longer ones are refused and never cut."""
    for fitting in ("x", " ~", "x" * longest):
        assert getattr(validated(**{name: fitting}), name) == fitting
    for wrong in ("x" * (longest + 1), "a\n", "\x7f", "\0", "ü", "\u200b"):
        with pytest.raises(InvalidRequest, match=f"{name} must be 1 to {longest} printable ASCII"):
            validated(**{name: wrong})


def test_a_context_type_is_one_that_the_client_may_name() -> None:
    """D11."""
    assert validated(authentication_context_type="APP_PAYMENT_DEFAULT").context_type == "APP_PAYMENT_DEFAULT"
    for wrong in ("BANK_CASA_OPENING", "app_payment_default", "APP_PAYMENT_DEFAULT "):
        with pytest.raises(InvalidRequest, match="must be one of APP_AUTHENTICATION_DEFAULT, APP_PAYMENT_DEFAULT"):
            validated(authentication_context_type=wrong)


def test_a_context_message_has_a_hundred_plain_characters_at_most() -> None:
    """D12: it is shown to a person and kept in the audit record."""
    for fitting in ("Pay S. O'Neil (Ltd), now! a-b @ 9", "x" * 100):
        assert validated(authentication_context_message=fitting).context_message == fitting
    for wrong in ("x" * 101, "a<b", 'a"b', "a/b", "a:b", "a\nb", "a\n", "ü", "\u202e", "a;b", "a&b", "a_b", "a+b"):
        with pytest.raises(InvalidRequest, match="at most 100 characters"):
            validated(authentication_context_message=wrong)


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        (None, ()),
        (" ", ()),
        ("none", ("none",)),
        ("login consent", ("login", "consent")),
        ("login login", ("login",)),
        ("select_account", ("select_account",)),
    ],
)
def test_prompt_is_a_list_of_known_values(text: str | None, prompt: tuple[str, ...]) -> None:
    assert validated(prompt=text).prompt == prompt


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("none login", "prompt none cannot be combined"),
        ("consent none", "prompt none cannot be combined"),
        ("create", "prompt must be among consent, login, none, select_account"),
        ("None", "prompt must be among"),
        ("login,consent", "prompt must be among"),
    ],
)
def test_prompt_with_an_unknown_value_or_none_beside_another_is_refused(text: str, reason: str) -> None:
    """D40."""
    with pytest.raises(InvalidRequest, match=reason):
        validated(prompt=text)


def test_max_age_is_a_whole_number_of_seconds() -> None:
    for text, read in ((None, None), ("0", 0), ("007", 7), ("999999999", 999999999)):
        assert validated(max_age=text).max_age == read
    for wrong in ("-1", "1.5", "1e3", "ten", " 1", "1\n", "\u0661", "1000000000"):
        with pytest.raises(InvalidRequest, match="max_age must be a whole number"):
            validated(max_age=wrong)


def test_values_of_acr_are_looked_at() -> None:
    with pytest.raises(InvalidRequest, match="acr_values contains no supported value"):
        validated(acr_values="urn:idp:authentication:loa:9")


def test_the_parameters_that_are_read_are_those_of_the_specification() -> None:
    """Spec 4.1: a name that is missing in the list would be ignored."""
    table = {
        "client_id", "client_assertion_type", "client_assertion", "code_challenge", "code_challenge_method",
        "response_type", "redirect_uri", "scope", "state", "nonce", "acr_values", "authentication_context_type",
        "authentication_context_message", "dpop_jkt",
    }  # fmt: skip
    assert table <= PUSHED_PARAMETERS
    assert REQUEST_PARAMETERS < PUSHED_PARAMETERS


def test_a_parameter_with_a_reader_is_required_by_generations_alone() -> None:
    """Spec "Generations": else it would be documented as required, and accepted without."""
    assert [each.name for each in authorization_request.PARAMETERS if each.read is not None and each.required] == []
    declared = {each.name: each for each in authorization_request.PARAMETERS}
    assert all(declared[name].is_required(CURRENT) for name in CURRENT.required_parameters)


def test_the_consent_page_shows_only_texts_with_a_label() -> None:
    """D29: the message stands in the frame of every page (D12)."""
    assert said_at_consent(validated(authentication_context_message="Pay 10 now", state="secret")) == ()
