"""What a browser's answer proves of a passkey (WebAuthn Level 3, D46)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import cbor2
import pytest
import webauthn
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st
from webauthn.helpers.structs import AuthenticatorTransport, PublicKeyCredentialDescriptor, UserVerificationRequirement

from corpid.jose.encoding import base64url, from_base64url
from corpid.rules.authentication import passkey_verification, passkeys
from corpid.rules.authentication.passkeys import (
    CounterWentBack,
    NewPasskey,
    PasskeyRefused,
    RelyingParty,
    UsedPasskey,
    relying_party,
)
from tests.authenticator import KEYS, MAY_SYNC, PRESENT, SYNCED, VERIFIED, Authenticator
from tests.certificates import Authority

ORIGIN = "https://login.example:8443"
PARTY = relying_party(f"{ORIGIN}/idp", "Example")
CHALLENGE = b"nonce.mac"
OWNER = b"alice"
EC_KEY, P_256 = bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06082a8648ce3d030107")
"""what an elliptic key and its curve are called in a certificate (RFC 5480 §2.1.1)"""
GET = passkeys.authentication_options(PARTY, challenge=CHALLENGE)
CREATE = passkey_verification.registration_options(
    PARTY, challenge=CHALLENGE, user_handle=OWNER, user_name="alice", display_name="Alice Tan", known=("AAAA",)
)
CANNOT_BE_TRUSTED = {
    "another origin": {"origin": "https://login.example"},
    "a look-alike": {"origin": "https://login.example:8443.evil.example"},
    "another relying party": {"rp_id": "evil.example"},
    "another challenge": {"challenge": base64url(b"other.mac")},
    "a registration": {"type": "webauthn.create"},
    "a frame in another page": {"crossOrigin": True},
}


def used(key: Authenticator, answer: str, *, sign_count: int = 0, owner: bytes = OWNER) -> UsedPasskey:
    return passkey_verification.verify_authentication(
        PARTY,
        passkeys.parse_answer(answer),
        challenge=CHALLENGE,
        public_key=key.record("alice").public_key,
        sign_count=sign_count,
        synced=bool(key.flags & MAY_SYNC),
        user_handle=owner,
    )


def changed(answer: str, **response: Any) -> str:
    read = json.loads(answer)
    read["response"].update(response)
    return json.dumps(read)


def test_the_relying_party_is_the_host_of_base_url_and_its_origin() -> None:
    """WebAuthn §5.1.2, D46: neither port nor path belong to the rpId, the path not to the origin."""
    assert (PARTY.rp_id, PARTY.origin) == ("login.example", ORIGIN)


def test_a_sign_in_asks_for_any_passkey_whose_user_is_verified() -> None:
    """D46: discoverable, so nobody is named."""
    asked = json.loads(GET)
    assert asked["rpId"] == "login.example"
    assert asked["userVerification"] == "required"
    assert from_base64url(asked["challenge"]) == CHALLENGE
    assert not asked.get("allowCredentials")


def test_a_new_passkey_has_to_be_discoverable_and_to_verify_its_user() -> None:
    """D46; and what the person has already is not made again."""
    asked = json.loads(CREATE)
    assert asked["authenticatorSelection"]["residentKey"] == "required"
    assert asked["authenticatorSelection"]["userVerification"] == "required"
    assert [known["id"] for known in asked["excludeCredentials"]] == ["AAAA"]
    assert {-7, -8, -257} <= {each["alg"] for each in asked["pubKeyCredParams"]}


@pytest.mark.parametrize("algorithm", KEYS)
def test_what_is_registered_can_be_used(algorithm: str) -> None:
    """WebAuthn §7.1, §7.2."""
    key = Authenticator(user_handle=OWNER, algorithm=algorithm, flags=PRESENT | VERIFIED | MAY_SYNC | SYNCED)
    new = passkey_verification.verify_registration(
        PARTY, passkeys.parse_answer(key.make(CREATE, ORIGIN)), challenge=CHALLENGE
    )
    assert new == NewPasskey(
        credential_id=base64url(key.credential_id),
        public_key=key.record("alice").public_key,
        sign_count=1,
        aaguid="00000000-0000-0000-0000-000000000000",
        synced=True,
        transports=("hybrid", "internal"),
    )
    assert used(key, key.use(GET, ORIGIN), sign_count=new.sign_count) == UsedPasskey(sign_count=2)


@pytest.mark.parametrize("changes", CANNOT_BE_TRUSTED.values(), ids=CANNOT_BE_TRUSTED.keys())
def test_an_answer_for_anything_else_is_refused(changes: dict[str, Any]) -> None:
    """WebAuthn §7.2."""
    key = Authenticator(user_handle=OWNER)
    with pytest.raises(PasskeyRefused):
        used(key, key.use(GET, **{"origin": ORIGIN, **changes}))


@pytest.mark.parametrize("flags", [0, PRESENT, VERIFIED, PRESENT | MAY_SYNC])
def test_a_person_who_was_not_there_or_not_verified_is_refused(flags: int) -> None:
    """D46, at a sign-in and when a passkey is made."""
    key = Authenticator(user_handle=OWNER, flags=flags)
    with pytest.raises(PasskeyRefused):
        used(key, key.use(GET, ORIGIN))
    with pytest.raises(PasskeyRefused):
        passkey_verification.verify_registration(
            PARTY, passkeys.parse_answer(key.make(CREATE, ORIGIN)), challenge=CHALLENGE
        )


@dataclass(frozen=True, kw_only=True)
class Junk:
    """In the place of a key: what an authenticator could say of it, COSE (RFC 9053)."""

    says: object

    def public(self) -> object:
        return self.says


@pytest.mark.parametrize(
    "says",
    [
        {1: 2, 3: -7, -1: 1, -2: bytes(32), -3: bytes(32)},
        {1: 2, 3: -7, -1: 9, -2: bytes(32), -3: bytes(32)},
        {1: 2, 3: -7, -1: 1, -2: "x", -3: 5},
        {1: 2, 3: -257, -1: 1, -2: bytes(32), -3: bytes(32)},
        {1: 1, 3: -8, -1: 6, -2: b"1"},
        {1: 3, 3: -257, -1: b"", -2: b""},
        {},
    ],
    ids=["off its curve", "an unknown curve", "no numbers", "another algorithm", "short", "empty", "nothing"],
)
def test_a_key_that_could_never_be_used_is_refused_when_it_is_made(says: object) -> None:
    """WebAuthn §7.1, D46: or the person would learn of it when they need it."""
    key = Authenticator(user_handle=OWNER)
    key._key = Junk(says=says)  # type: ignore[assignment]
    with pytest.raises(PasskeyRefused):
        passkey_verification.verify_registration(
            PARTY, passkeys.parse_answer(key.make(CREATE, ORIGIN)), challenge=CHALLENGE
        )


@pytest.mark.parametrize("known", [EC_KEY, P_256], ids=["key type", "curve"])
@pytest.mark.parametrize("form", ["packed", "fido-u2f"])
def test_a_certificate_of_an_unknown_kind_is_refused_and_never_an_error(known: bytes, form: str) -> None:
    """D33: nobody asked for an attestation, yet a browser may send one."""
    certificate = Authority("Maker").chain[0].public_bytes(Encoding.DER)
    unknown = certificate.replace(known, known[:-1] + b"\x77")
    assert unknown != certificate
    answer = Authenticator(user_handle=OWNER).make(CREATE, ORIGIN)
    made = cbor2.loads(from_base64url(json.loads(answer)["response"]["attestationObject"]))
    made |= {"fmt": form, "attStmt": {"alg": -7, "x5c": [unknown], "sig": b"x"}}
    sent = passkeys.parse_answer(changed(answer, attestationObject=base64url(cbor2.dumps(made))))
    with pytest.raises(PasskeyRefused):
        passkey_verification.verify_registration(PARTY, sent, challenge=CHALLENGE)


def test_another_key_another_owner_and_a_changed_answer_are_refused() -> None:
    """WebAuthn §7.2."""
    key, other = Authenticator(user_handle=OWNER), Authenticator(user_handle=OWNER)
    answer = key.use(GET, ORIGIN)
    forged = json.loads(other.use(GET, ORIGIN))
    for attempt in (
        json.dumps(forged),
        changed(answer, userHandle=base64url(b"bob")),
        changed(answer, userHandle=None),
        changed(answer, signature=base64url(b"x" * 70)),
        changed(answer, authenticatorData=forged["response"]["authenticatorData"][:-1] + "A"),
        changed(answer, clientDataJSON=base64url(b"{}")),
        json.dumps({**json.loads(answer), "rawId": forged["rawId"]}),
        json.dumps({**json.loads(answer), "type": "password"}),
    ):
        with pytest.raises(PasskeyRefused):
            used(key, attempt)


@pytest.mark.parametrize(("last", "now"), [(5, 5), (5, 4), (5, 0), (1, 0), (2**32 - 1, 7)])
def test_a_counter_that_does_not_rise_is_refused(last: int, now: int) -> None:
    """D46: where either is not zero."""
    key = Authenticator(user_handle=OWNER)
    with pytest.raises(CounterWentBack, match="counter"):
        used(key, key.use(GET, ORIGIN, count=now), sign_count=last)


@pytest.mark.parametrize(("last", "now"), [(0, 0), (0, 1), (5, 6), (5, 500)])
def test_a_counter_that_rises_or_was_never_there_is_accepted(last: int, now: int) -> None:
    """D46."""
    key = Authenticator(user_handle=OWNER)
    assert used(key, key.use(GET, ORIGIN, count=now), sign_count=last).sign_count == now


def read(answer: str) -> None:
    """Everything that is read of an answer before a passkey is known, and after."""
    parsed = passkeys.parse_answer(answer)
    passkeys.credential_id(parsed)
    passkeys.challenge_of(parsed)
    used(Authenticator(user_handle=OWNER), answer)


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary().map(base64url),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("id", "rawId", "type", "response", "authenticatorAttachment", "clientExtensionResults")
PARTS = ("clientDataJSON", "authenticatorData", "signature", "userHandle")


@given(
    st.text() | ODD.map(json.dumps) | st.sampled_from(["[" * 9000, '{"a":' * 3000, "{}" * 9000, "\ud800", '"\\ud800"'])
)
def test_what_is_no_answer_is_refused_and_never_an_error(answer: str) -> None:
    """D33."""
    with pytest.raises(PasskeyRefused):
        read(answer)


@given(st.sampled_from((*FIELDS, *PARTS)), ODD)
def test_an_answer_with_one_wrong_member_is_refused(member: str, value: object) -> None:
    """WebAuthn §7.2: the last two members prove nothing, and may be anything that can be read."""
    key = Authenticator(user_handle=OWNER)
    answer = json.loads(key.use(GET, ORIGIN))
    (answer["response"] if member in PARTS else answer)[member] = value
    sent = json.dumps(answer)
    try:
        parsed = passkeys.parse_answer(sent)
        passkeys.credential_id(parsed)
        passkeys.challenge_of(parsed)
        used(key, sent)
    except PasskeyRefused:
        return
    assert member in FIELDS[-2:]


@given(st.binary(max_size=200))
def test_authenticator_data_of_any_bytes_is_refused(state: bytes) -> None:
    """Also what is no CBOR behind its flags."""
    key = Authenticator(user_handle=OWNER)
    for flags in (0x85, 0xC5):
        odd = key._state("login.example", 1, state, flags)
        with pytest.raises(PasskeyRefused):
            used(key, changed(key.use(GET, ORIGIN), authenticatorData=base64url(odd)))
    made = passkeys.parse_answer(changed(key.make(CREATE, ORIGIN), attestationObject=base64url(state)))
    with pytest.raises(PasskeyRefused):
        passkey_verification.verify_registration(PARTY, made, challenge=CHALLENGE)


@pytest.mark.parametrize("named", ["", "a", "====", "AA\x00A", "é", "A" * 1366, 7, None, ["AAAA"]])
def test_a_credential_id_is_base64url_of_at_most_1023_bytes(named: object) -> None:
    """WebAuthn §5.8.3; it goes to the database."""
    with pytest.raises(PasskeyRefused):
        passkeys.credential_id({"id": named})


def test_an_answer_may_be_long_but_not_endless() -> None:
    """D47."""
    with pytest.raises(PasskeyRefused, match="too long"):
        passkeys.parse_answer(json.dumps({"id": "A" * 65_536}))


@pytest.mark.parametrize("rp_id", ["op.example", "localhost"])
@pytest.mark.parametrize(
    "allowed", [{}, {"eDE": ("usb", "internal"), "eDI": ()}, {base64url(bytes(range(64))): ("hybrid",)}]
)
def test_the_options_are_those_of_the_library_that_verifies(rp_id: str, allowed: dict[str, tuple[str, ...]]) -> None:
    """WebAuthn §5.5, docs/decisions/0036: written without it, since every sign-in page has them."""
    theirs = webauthn.generate_authentication_options(
        rp_id=rp_id,
        challenge=b"challenge \xff",
        timeout=passkeys.MILLISECONDS,
        user_verification=UserVerificationRequirement.REQUIRED,
        allow_credentials=[
            PublicKeyCredentialDescriptor(
                id=from_base64url(each), transports=[AuthenticatorTransport(known) for known in transports] or None
            )
            for each, transports in allowed.items()
        ],
    )
    party = RelyingParty(rp_id=rp_id, origin=f"https://{rp_id}", name="Provider")
    ours = passkeys.authentication_options(party, challenge=b"challenge \xff", allowed=allowed)
    assert ours == webauthn.helpers.options_to_json(theirs)
