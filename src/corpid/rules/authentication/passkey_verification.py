"""Passkeys: registration, and verification of a browser's answers.

What it needs takes long to load, so it is loaded once a page has asked for a passkey. Source: WebAuthn Level 3, D46
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import cbor2
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

from corpid.jose.encoding import from_base64url
from corpid.rules.authentication.passkeys import (
    MALFORMED,
    MILLISECONDS,
    CounterWentBack,
    NewPasskey,
    PasskeyRefused,
    RelyingParty,
    UsedPasskey,
    refuse_embedded,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


_MALFORMED: Final = (*MALFORMED, WebAuthnException, UnsupportedAlgorithm, cbor2.CBORError)
_TRANSPORTS: Final = frozenset(each.value for each in AuthenticatorTransport)


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
        refuse_embedded(answer)
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
        refuse_embedded(answer)
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
