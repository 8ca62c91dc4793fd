"""What a client's registration must hold (Spec 1, D8, D11, D21, D27, D38)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.client_registration import RegistrationError, public_key_set, register, register_api_client
from corpid.rules.oauth.generations import CURRENT
from corpid.rules.oauth.records import CLIENT_MEMBERS
from tests.unit.rules.oauth.clients import CLIENT, ENCRYPTION, SIGNING, jwk, rules_of


def faults(*, developer_mode: bool = False, **members: object) -> set[str]:
    try:
        register(msgspec.structs.replace(CLIENT, **members), rules_of(developer_mode=developer_mode, pushed=CURRENT))
    except RegistrationError as error:
        return {fault.member for fault in error.faults}
    return set()


def test_an_ordinary_client_is_registered_without_remarks() -> None:
    assert register(CLIENT, rules_of(pushed=CURRENT)) == ()


@pytest.mark.parametrize(
    "uri",
    [
        "https://rp.example/callback?tenant=7", "https://rp.example:8443/cb", "https://rp.example", "https://[2001:db8::1]/cb",
        "https://RP.example/cb", "https://[2001:DB8::1]:8443/cb", "https://rp.example/a%20b/(c)?x=1;y=2&z=%C3%A9", "https://rp.example:443/cb",
    ],
)  # fmt: skip
def test_an_exact_https_uri_may_be_registered(uri: str) -> None:
    """D38."""
    assert faults(redirect_uris=(uri,)) == set()


@pytest.mark.parametrize("member", [name for name, each in CLIENT_MEMBERS.items() if each.form == "url"])
def test_every_member_that_is_declared_a_url_is_checked_as_one(member: str) -> None:
    """D27, D38: no declaration without its rule, so that no page or outgoing request meets another scheme."""
    hostile = "javascript:alert(1)"
    members: dict[str, Any] = {member: (hostile,) if isinstance(getattr(CLIENT, member), tuple) else hostile}
    assert member in faults(**members)


@pytest.mark.parametrize(
    "uri",
    [
        "http://rp.example/cb", "http://localhost/cb", "javascript:alert(1)", "com.example.app:/cb", "//rp.example/cb", "/cb",
        "https://user@rp.example/cb", "https://user:pw@rp.example/cb", "https://@rp.example/cb", "https://rp.example/cb#f",
        "https://rp.example/cb#", "https:///cb", "https://", "https://rp.example/*\\", "https://rp.example/c b",
        "https://rp.example/é", "https://rp.example/" + "x" * 2048, "https://rp.example/cb?code=1", "https://rp.example/cb?a=1&state",
        "https://rp.example/cb?iss=", "https://rp.example/cb?error_uri=x", "https://rp.example/cb?%63ode=1", "https://rp.example:0/cb",
        "https://rp.example:x/cb", "https://*.example/cb", "https://[::1/cb", "https://rp.exa\nmple/cb", "",
        "https://rp.example/<cb>", 'https://rp.example/"cb"', "https://rp.example/%", "https://rp.example/%4", "https://rp.example/%zz",
        "https://rp.example/{cb}", "https://rp.example/a|b", "https://rp.example/a^b`", "https://rp.example/a[0]", "https://rp.example/cb?a[]=1",
        "https://rp.example:080/cb", "https://rp.example:/cb", "https://rp.example:00443/cb", "https://[fe80::1%25eth0]/cb",
        "https://[fe80::1%eth0]/cb", "https://[v1.a]/cb", "https://rp.example/cb?a=1;code=2", "https://rp.example/cb?a;state",
        "https://rp.example/cb?a=1;iss=2", "https://rp.example/cb?;error=1", "https://rp.example/cb?a;%65rror_uri=x",
    ],
)  # fmt: skip
def test_every_other_redirect_uri_is_refused(uri: str) -> None:
    """D38, SECURITY.md: no userinfo, no fragment, https, no parameter of the response itself."""
    assert faults(redirect_uris=(uri,)) == {"redirect_uris"}


@pytest.mark.parametrize(("uri", "fine"), [
    ("http://localhost:9000/cb", True), ("http://127.0.0.1/cb", True), ("http://127.8.0.1/cb", True), ("http://[::1]/cb", True),
    ("http://rp.example/cb", False), ("http://10.0.0.1/cb", False), ("http://localhost.example/cb", False), ("ftp://localhost/cb", False),
])  # fmt: skip
def test_developer_mode_allows_http_on_this_machine_only(uri: str, fine: bool) -> None:
    """D38."""
    assert (faults(developer_mode=True, redirect_uris=(uri,)) == set()) is fine


@pytest.mark.parametrize(
    ("own_url", "uri", "fine"),
    [
        ("https://op.example", "https://op.example", False), ("https://op.example", "https://OP.Example/token", False),
        ("https://op.example", "https://op.example:443/cb?x=1", False), ("https://op.example:443/", "https://op.example/cb", False),
        ("https://op.example/corpid", "https://op.example/elsewhere", False), ("https://OP.example", "https://op.example/cb", False),
        ("https://[2001:db8::1]", "https://[2001:DB8:0::1]/cb", False), ("https://op.example:8443", "https://op.example:8443/cb", False),
        ("http://localhost:8080", "http://LOCALHOST:8080/cb", False), ("http://localhost", "http://localhost:80/cb", False),
        ("https://op.example", "https://op.example:8443/cb", True), ("https://op.example:8443", "https://op.example/cb", True),
        ("https://op.example", "https://rp.op.example/cb", True), ("https://op.example", "https://op.example.rp.example/cb", True),
        ("http://localhost:8080", "http://localhost:9000/cb", True), ("http://localhost:8080", "https://localhost:8080/cb", True),
        ("http://127.0.0.1:8080", "http://localhost:8080/cb", True), ("", "https://op.example/cb", True),
    ],
)  # fmt: skip
def test_the_providers_own_origin_is_no_place_to_redirect_to(own_url: str, uri: str, fine: bool) -> None:
    """D35: a page of ours that posts an answer to ourselves would look like a form of ours. RFC 6454 §4."""
    client = msgspec.structs.replace(CLIENT, redirect_uris=(uri,))
    rules = rules_of(developer_mode=True, pushed=CURRENT, own_url=own_url)
    if fine:
        register(client, rules)
        return
    with pytest.raises(RegistrationError, match="this is the address of the provider itself: register one of the"):
        register(client, rules)


@pytest.mark.parametrize(("uri", "fine"), [
    ("https://rp.example/jwks", True), ("https://rp.example:443/jwks", True), ("http://rp.example/jwks", False),
    ("https://rp.example:8443/jwks", False), ("https://10.0.0.1/jwks", False), ("https://[::1]/jwks", False),
    ("https://localhost/jwks", False), ("https://2130706433/jwks", False), ("https://127.1/jwks", False), ("https://0x7f.1/jwks", False),
    ("https://u@rp.example/jwks", False), ("https://rp.example/jwks#x", False), ("https://x.localhost/jwks", False),
    ("https://A.b.LOCALHOST/jwks", False),
    ("https://localhost.rp.example/jwks", True), ("https://mylocalhost.example/jwks", True),
])  # fmt: skip
def test_a_key_url_is_https_on_port_443_of_a_named_host(uri: str, fine: bool) -> None:
    """D27; developer mode lifts scheme, port and address."""
    assert (faults(jwks=None, jwks_uri=uri) == set()) is fine
    if "@" not in uri and "#" not in uri:
        assert faults(developer_mode=True, jwks=None, jwks_uri=uri) == set()


@pytest.mark.parametrize("host", [
    "8.8.8.8", "8.8.8.8:443", "[2001:4860:4860::8888]", "[::ffff:8.8.8.8]", "[::ffff:808:808]", "[64:ff9b::8.8.8.8]", "134744072",
    "0x08080808", "0X8080808", "8.526344", "8.8.2056", "010.010.010.010", "8.8.8.0x8", "0x8.0x8.0x8.0x8", "8.8.0x808", "8.0x80808",
    "a.0x", "a.8", "01002004010",
])  # fmt: skip
def test_a_key_url_with_an_ip_address_is_refused_in_every_form_and_the_fault_says_what_to_use(host: str) -> None:
    """D27; WHATWG URL §3.5: a host whose last label is a number is an IPv4 address."""
    client = msgspec.structs.replace(CLIENT, jwks=None, jwks_uri=f"https://{host}/jwks")
    with pytest.raises(RegistrationError, match=r"such as keys\.example\.org, instead of an IP address"):
        register(client, rules_of(pushed=CURRENT))
    assert faults(developer_mode=True, jwks=None, jwks_uri=f"https://{host}/jwks") == set()


@pytest.mark.parametrize("uri", ["https://localhost./jwks", "https://x.localhost./jwks", "https://rp.example./jwks"])
def test_a_key_url_has_one_spelling_without_a_dot_at_the_end_of_its_host(uri: str) -> None:
    """D27, D38: `localhost.` is no way around the rule for `localhost` (RFC 6761 §6.3)."""
    assert faults(jwks=None, jwks_uri=uri) == {"jwks_uri"}


@pytest.mark.parametrize("kid", ["\x1b]0;x\x07", "\x9b2J", "a\u202eb", "zero\u200bwidth", "k" * 257, "a\nb", "é", 1])
@pytest.mark.parametrize("key", [SIGNING, ENCRYPTION])
def test_a_kid_that_no_terminal_should_see_is_refused(kid: object, key: dict[str, object]) -> None:
    """D27; it reached the terminal of whoever registered or listed the client. The refusal does not repeat it."""
    text = json.dumps({"keys": [SIGNING, ENCRYPTION, {**key, "kid": kid}]})
    with pytest.raises(RegistrationError, match="key 3: kid is not a string of printable ASCII") as refused:
        register(msgspec.structs.replace(CLIENT, jwks=text), rules_of(pushed=CURRENT))
    assert str(refused.value).isprintable()
    assert [fault.member for fault in refused.value.faults] == ["jwks"]


def test_exactly_one_source_of_keys_is_needed() -> None:
    """D27."""
    assert faults(jwks=None) == {"jwks"}
    assert faults(jwks_uri="https://rp.example/jwks") == {"jwks"}


@pytest.mark.parametrize("keys", [
    [], [SIGNING], [ENCRYPTION], [SIGNING, jwk("enc", None)], [jwk("sig", "s", alg="ES512"), ENCRYPTION], ["key"],
    [SIGNING, ENCRYPTION] * 11,
])  # fmt: skip
def test_a_key_set_needs_a_usable_signing_and_a_usable_encryption_key(keys: list[object]) -> None:
    """D8, D21, D27: said at registration, not after somebody signed in."""
    assert faults(jwks=json.dumps({"keys": keys})) == {"jwks"}


@given(st.text())
def test_any_text_in_place_of_a_key_set_is_refused_with_a_reason(text: str) -> None:
    assert faults(jwks=public_key_set(text)) == {"jwks"}


def test_a_private_key_inside_another_member_is_refused() -> None:
    """RFC 7517 §9.3, D27: no door stores it, and so none shows it."""
    private = {**SIGNING, "d": "secret"}
    public = [SIGNING, ENCRYPTION]
    for key_set in (
        {"keys": [*public, json.dumps(private)]},
        {"keys": [{**SIGNING, "x5c": [private]}, ENCRYPTION]},
        {"keys": public, "backup": private},
    ):
        assert faults(jwks=json.dumps(key_set)) == {"jwks"}
        client = RegisteredApiClient(client_id="api", name="API", scopes=(), jwks=json.dumps(key_set))
        with pytest.raises(RegistrationError, match="inside another member"):
            register_api_client(client, rules_of())
    assert faults(jwks=json.dumps({"keys": [private, ENCRYPTION], "d": "beside"})) == set()


def test_private_members_are_never_stored() -> None:
    """D27, RFC 7517 §9.3."""
    stored = public_key_set(json.dumps({"keys": [{**SIGNING, "d": "secret"}, ENCRYPTION]}))
    assert "secret" not in stored
    assert json.loads(stored)["keys"] == [SIGNING, ENCRYPTION]
    assert public_key_set(stored) == stored


@pytest.mark.parametrize(("member", "value"), [
    ("scopes", ("openid", "profile")), ("scopes", ("authinfo",)), ("generations", ("future",)), ("id_token_encryption_alg", "ECDH-ES"), ("userinfo_signing_alg", "ES384"),
    ("context_types", ("ANYTHING",)),
    ("context_types", ()), ("id_token_encryption_enc", "A128GCM"), ("userinfo_encryption_enc", "none"), ("assurance_level", 3),
    ("redirect_uris", ()),
])  # fmt: skip
def test_what_is_not_implemented_cannot_be_registered(member: str, value: object) -> None:
    """D11, D21, D41."""
    assert faults(developer_mode=False, **{member: value}) == {member}


def test_all_faults_are_named_together() -> None:
    assert faults(redirect_uris=("http://x.example",), scopes=("x",), assurance_level=1) == {
        "redirect_uris", "scopes", "assurance_level",
    }  # fmt: skip
