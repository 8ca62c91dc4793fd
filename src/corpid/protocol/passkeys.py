"""Passkeys: what a browser is asked, and what its answer proves (WebAuthn Level 3, D46).

The user is always verified by the authenticator, so a passkey counts as two factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import cbor2
import msgspec
import webauthn
from webauthn.helpers import bytes_to_base64url, options_to_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from corpid.jose.encoding import from_base64url, json_object
from corpid.jose.errors import MalformedToken

if TYPE_CHECKING:
    from collections.abc import Sequence

MILLISECONDS: Final = 300_000
"""how long a browser lets a person look for their passkey"""
ANSWER_BYTES: Final = 16_384
CREDENTIAL_ID_BYTES: Final = 1023
"""WebAuthn §5.8.3"""
_MALFORMED: Final = (
    WebAuthnException, MalformedToken, cbor2.CBORError, ArithmeticError, AttributeError, LookupError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip
_TRANSPORTS: Final = frozenset(each.value for each in AuthenticatorTransport)


class PasskeyRefused(Exception):
    """A browser's answer proves nothing; the text is for the log, never for the page."""


class CounterWentBack(PasskeyRefused):
    """The signature is good, and its counter is not above the last one: perhaps a copy of the key (D46)."""


class RelyingParty(msgspec.Struct, frozen=True, kw_only=True):
    """Whom passkeys are made for: the provider's own pages."""

    rp_id: str
    origin: str
    name: str


class NewPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """What a registration proved."""

    credential_id: str
    """base64url"""
    public_key: str
    """COSE, base64url"""
    sign_count: int
    aaguid: str
    synced: bool
    """whether it can be on several devices of its owner"""
    transports: tuple[str, ...]


class UsedPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """What a sign-in proved."""

    sign_count: int
    synced: bool


def relying_party(base_url: str, name: str) -> RelyingParty:
    """Origin and rpId of a provider: those of its base_url. Source: WebAuthn §5.1.2, D46"""
    parts = urlsplit(base_url)
    return RelyingParty(rp_id=parts.hostname or "", origin=f"{parts.scheme}://{parts.netloc}", name=name)


def registration_options(
    party: RelyingParty,
    *,
    challenge: bytes,
    user_handle: bytes,
    user_name: str,
    display_name: str,
    known: Sequence[str] = (),
) -> str:
    """The JSON that `navigator.credentials.create` gets; `known` are credential ids that the person has already.

    Source: WebAuthn §5.4, D46
    """
    options = webauthn.generate_registration_options(
        rp_id=party.rp_id,
        rp_name=party.name,
        user_id=user_handle,
        user_name=user_name,
        user_display_name=display_name,
        challenge=challenge,
        timeout=MILLISECONDS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=from_base64url(each)) for each in known],
    )
    return options_to_json(options)


def authentication_options(party: RelyingParty, *, challenge: bytes) -> str:
    """The JSON that `navigator.credentials.get` gets: any passkey of this provider, nobody is named. Source: WebAuthn §5.5, D46"""
    options = webauthn.generate_authentication_options(
        rp_id=party.rp_id,
        challenge=challenge,
        timeout=MILLISECONDS,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return options_to_json(options)


def parse_answer(answer: str) -> dict[str, Any]:
    """The JSON of a browser's answer. Raises PasskeyRefused. Source: WebAuthn §5.1, D46"""
    if len(answer) > ANSWER_BYTES:
        raise PasskeyRefused("the answer is too long")
    try:
        return json_object(answer)
    except MalformedToken as error:
        raise PasskeyRefused("the answer is no JSON object") from error


def credential_id(answer: dict[str, Any]) -> str:
    """Which passkey an answer claims to be of. Raises PasskeyRefused. Source: WebAuthn §7.2, D46"""
    try:
        named = answer["id"]
        length = len(from_base64url(named))
    except _MALFORMED as error:
        raise PasskeyRefused("the answer names no credential") from error
    if not 0 < length <= CREDENTIAL_ID_BYTES:
        raise PasskeyRefused("the answer names no credential")
    return str(named)


def challenge_of(answer: dict[str, Any]) -> bytes:
    """The challenge that an answer claims to be for. Raises PasskeyRefused. Source: WebAuthn §5.8.1, D46"""
    try:
        return from_base64url(_said_by_browser(answer)["challenge"])
    except _MALFORMED as error:
        raise PasskeyRefused("the answer has no challenge") from error


def _said_by_browser(answer: dict[str, Any]) -> dict[str, Any]:
    return json_object(from_base64url(answer["response"]["clientDataJSON"]))


def _refuse_embedded(answer: dict[str, Any]) -> None:
    """Our pages are never inside another's; who answers from there was led there."""
    if _said_by_browser(answer).get("crossOrigin"):
        raise PasskeyRefused("the answer was made inside a page of another origin")


def verify_registration(party: RelyingParty, answer: dict[str, Any], *, challenge: bytes) -> NewPasskey:
    """The passkey that a browser has made. Raises PasskeyRefused. Source: WebAuthn §7.1, D46"""
    try:
        _refuse_embedded(answer)
        proven = webauthn.verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.rp_id,
            expected_origin=party.origin,
            require_user_verification=True,
        )
        told = answer["response"].get("transports") or ()
        transports = tuple(sorted({each for each in told if each in _TRANSPORTS}))
    except _MALFORMED as error:
        raise PasskeyRefused(str(error)) from error
    return NewPasskey(
        credential_id=bytes_to_base64url(proven.credential_id),
        public_key=bytes_to_base64url(proven.credential_public_key),
        sign_count=proven.sign_count,
        aaguid=proven.aaguid,
        synced=proven.credential_device_type is CredentialDeviceType.MULTI_DEVICE,
        transports=transports,
    )


def verify_authentication(
    party: RelyingParty,
    answer: dict[str, Any],
    *,
    challenge: bytes,
    public_key: str,
    sign_count: int,
    user_handle: bytes,
) -> UsedPasskey:
    """What a browser has proved with a stored passkey: its key, last counter and owner's handle come in.

    Raises PasskeyRefused, and CounterWentBack where either counter is not zero and the new one is not above
    the last. Source: WebAuthn §7.2, D46
    """
    try:
        _refuse_embedded(answer)
        proven = webauthn.verify_authentication_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.rp_id,
            expected_origin=party.origin,
            credential_public_key=from_base64url(public_key),
            credential_current_sign_count=0,
            require_user_verification=True,
        )
        named = from_base64url(answer["response"]["userHandle"])
    except _MALFORMED as error:
        raise PasskeyRefused(str(error)) from error
    if named != user_handle:
        raise PasskeyRefused("the answer names another owner")
    if (proven.new_sign_count or sign_count) and proven.new_sign_count <= sign_count:
        raise CounterWentBack(f"the counter is {proven.new_sign_count}, and was {sign_count}")
    return UsedPasskey(
        sign_count=proven.new_sign_count, synced=proven.credential_device_type is CredentialDeviceType.MULTI_DEVICE
    )
