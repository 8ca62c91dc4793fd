"""Passkeys: options for the browser and verification of its answers.

The authenticator always verifies the user, so a passkey counts as two factors. Source: WebAuthn Level 3, D46
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import cbor2
import msgspec
import webauthn
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from webauthn.helpers import (
    bytes_to_base64url,
    decode_credential_public_key,
    decoded_public_key_to_cryptography,
    options_to_json,
    verify_signature,
)
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from corpid.jose.encoding import MalformedToken, from_base64url, json_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.rules.authentication.rp_id import RelyingParty

MILLISECONDS: Final = 300_000
"""the time that a browser gives a person to find their passkey"""
ANSWER_BYTES: Final = 16_384
CREDENTIAL_ID_BYTES: Final = 1023
"""WebAuthn §5.8.3"""
_MALFORMED: Final = (
    WebAuthnException, MalformedToken, UnsupportedAlgorithm, cbor2.CBORError, ArithmeticError, AttributeError,
    LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
_TRANSPORTS: Final = frozenset(each.value for each in AuthenticatorTransport)


class PasskeyRefused(Exception):
    """The error for a browser's answer that proves nothing.

    The text is for the log, never for the page.
    """


class CounterWentBack(PasskeyRefused):
    """A valid signature whose counter is not above the last one (D46).

    The key may have been copied.
    """


class NewPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verified registration."""

    credential_id: str
    """base64url"""
    public_key: str
    """COSE, base64url"""
    sign_count: int
    aaguid: str
    synced: bool
    """true if it can be on several devices of its owner"""
    transports: tuple[str, ...]


class UsedPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verified sign-in."""

    sign_count: int


def registration_options(
    party: RelyingParty,
    *,
    challenge: bytes,
    user_handle: bytes,
    user_name: str,
    display_name: str,
    known: Sequence[str] = (),
) -> str:
    """Return the JSON for `navigator.credentials.create`.

    `known` are the credential ids that the person already has. Source: WebAuthn §5.4, D46
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


def authentication_options(
    party: RelyingParty, *, challenge: bytes, allowed: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return the JSON for `navigator.credentials.get`.

    Without `allowed`, any passkey of this provider will do and no person is named. `allowed` are the credential ids of
    one person, who is already known, each with its transports. Source: WebAuthn §5.5, §14.6.3, D46
    """
    if not allowed:
        before, after = _options_of_anybody(party.rp_id)
        return f"{before}{bytes_to_base64url(challenge)}{after}"
    return _authentication_options(
        party.rp_id,
        challenge,
        [
            PublicKeyCredentialDescriptor(
                id=from_base64url(each), transports=[AuthenticatorTransport(known) for known in transports] or None
            )
            for each, transports in allowed.items()
        ],
    )


@lru_cache(maxsize=64)
def _options_of_anybody(rp_id: str) -> tuple[str, str]:
    """The options that name nobody, before and after their challenge."""
    mark = b"challenge"
    before, _, after = _authentication_options(rp_id, mark, []).partition(bytes_to_base64url(mark))
    return before, after


def _authentication_options(rp_id: str, challenge: bytes, allowed: list[PublicKeyCredentialDescriptor]) -> str:
    options = webauthn.generate_authentication_options(
        rp_id=rp_id,
        challenge=challenge,
        timeout=MILLISECONDS,
        user_verification=UserVerificationRequirement.REQUIRED,
        allow_credentials=allowed,
    )
    return options_to_json(options)


def parse_answer(answer: str) -> dict[str, Any]:
    """Parse the JSON of a browser's answer. Raises PasskeyRefused.

    Source: WebAuthn §5.1, D46
    """
    if len(answer) > ANSWER_BYTES:
        raise PasskeyRefused("the answer is too long")
    try:
        return json_object(answer)
    except MalformedToken as error:
        raise PasskeyRefused("the answer is no JSON object") from error


def credential_id(answer: dict[str, Any]) -> str:
    """Return the credential id that an answer claims. Raises PasskeyRefused.

    Source: WebAuthn §7.2, D46
    """
    try:
        named = answer["id"]
        length = len(from_base64url(named))
    except _MALFORMED as error:
        raise PasskeyRefused("the answer names no credential") from error
    if not 0 < length <= CREDENTIAL_ID_BYTES:
        raise PasskeyRefused("the answer names no credential")
    return str(named)


def challenge_of(answer: dict[str, Any]) -> bytes:
    """Return the challenge that an answer claims. Raises PasskeyRefused.

    Source: WebAuthn §5.8.1, D46
    """
    try:
        return from_base64url(_said_by_browser(answer)["challenge"])
    except _MALFORMED as error:
        raise PasskeyRefused("the answer has no challenge") from error


def _said_by_browser(answer: dict[str, Any]) -> dict[str, Any]:
    return json_object(from_base64url(answer["response"]["clientDataJSON"]))


def _refuse_embedded(answer: dict[str, Any]) -> None:
    """Refuse an answer that was made inside a page of another origin.

    The provider's pages are never embedded in another page, so a person who answers from there was led there. Raises
    PasskeyRefused.
    """
    if _said_by_browser(answer).get("crossOrigin"):
        raise PasskeyRefused("the answer was made inside a page of another origin")


def _refuse_useless(public_key: bytes) -> None:
    """Refuse a public key that cannot verify signatures.

    A usable key rejects an empty signature as invalid. Any other key fails earlier, with one of the errors in
    `_MALFORMED`.
    """
    key = decode_credential_public_key(public_key)
    with suppress(InvalidSignature):
        verify_signature(
            public_key=decoded_public_key_to_cryptography(key), signature_alg=key.alg, signature=b"", data=b""
        )


def verify_registration(party: RelyingParty, answer: dict[str, Any], *, challenge: bytes) -> NewPasskey:
    """Verify the passkey that a browser has made.

    Raises PasskeyRefused, also for an invalid key: a point off its curve, or an unknown curve. Source: WebAuthn §7.1,
    D46
    """
    try:
        _refuse_embedded(answer)
        proven = webauthn.verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.rp_id,
            expected_origin=party.origin,
            require_user_verification=True,
        )
        _refuse_useless(proven.credential_public_key)
        sent = answer["response"].get("transports") or ()
        transports = tuple(sorted({each for each in sent if each in _TRANSPORTS}))
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
    synced: bool,
    user_handle: bytes,
    identified: bool = False,
) -> UsedPasskey:
    """Verify an answer against a stored passkey.

    Its key, counter, kind and user handle are checked. The handle may be missing if the browser was given the passkeys
    that will do, because their owner was `identified`. Raises PasskeyRefused, also if a single-device passkey now
    claims to be multi-device, or the reverse. Raises CounterWentBack if either counter is not zero and the new one is
    not above the last. Source: WebAuthn §6.1.3, §7.2, D46
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
        handle = answer["response"].get("userHandle")
        named = user_handle if identified and handle is None else from_base64url(handle)
    except _MALFORMED as error:
        raise PasskeyRefused(str(error)) from error
    if named != user_handle:
        raise PasskeyRefused("the answer names another owner")
    if synced is not (proven.credential_device_type is CredentialDeviceType.MULTI_DEVICE):
        raise PasskeyRefused(f"the passkey was {'not ' * (not synced)}one for several devices, and now says otherwise")
    if (proven.new_sign_count or sign_count) and proven.new_sign_count <= sign_count:
        raise CounterWentBack(f"the counter is {proven.new_sign_count}, and was {sign_count}")
    return UsedPasskey(sign_count=proven.new_sign_count)
