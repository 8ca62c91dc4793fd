"""An operator's own certificates for the provider's keys: asked for, stored, given up again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.directory.access import Object, authorise
from corpid.flows.administration.writing import Refused, audit_event
from corpid.flows.key_rotation import signing_keys
from corpid.flows.own_keys import open_key
from corpid.jose import certificates
from corpid.jose.certificates import CertificateRefused

if TYPE_CHECKING:
    from corpid.directory.access import Actor
    from corpid.ports import Registry, SealedKey


async def signing_request(registry: Registry, actor: Actor, kid: str, *, subject_name: str) -> str:
    """A request, PEM, for a certificate of this key under this common name; the private key stays sealed.

    Raises writing.Refused for a kid that names no usable key and a name that no certificate can hold,
    access.Forbidden, StoreUnavailable. Source: RFC 2986 §4
    """
    authorise(actor, "write", Object(kind="key"))
    key = open_key(await _usable(registry, kid))
    try:
        return certificates.signing_request(key.private, subject_name=subject_name)
    except CertificateRefused as error:
        raise Refused(f"{error}: choose another with --subject-name") from error


async def certify(registry: Registry, actor: Actor, kid: str, chain: str, *, now: float) -> SealedKey:
    """Store a certificate chain (PEM) with a key; a running server publishes it within 5 s. Returns the key.

    Raises writing.Refused for a kid that names no usable key and a chain that is not this key's or not valid
    at `now`, access.Forbidden, StoreUnavailable. Source: RFC 7517 §4.7, Spec 2.9
    """
    authorise(actor, "write", Object(kind="key"))
    key = await _usable(registry, kid)
    try:
        parsed = certificates.parse_chain(chain)
        certificates.check_chain(parsed, open_key(key).public, now=now)
    except CertificateRefused as error:
        raise Refused(f"this is no certificate chain for the key {kid}: {error}") from error
    certified = msgspec.structs.replace(key, certificate_chain=certificates.pem(parsed))
    fingerprint = certificates.fingerprint(parsed[0])
    await registry.keys.update(certified, audit_event(actor, "key.certify", kid, fingerprint=fingerprint))
    return certified


async def give_up(registry: Registry, actor: Actor, kid: str) -> SealedKey:
    """Go back to the certificate that the key signs itself. Returns the key.

    Raises writing.Refused for a kid that names no key and a key without a chain, access.Forbidden,
    StoreUnavailable. Source: Spec 2.9
    """
    authorise(actor, "delete", Object(kind="key"))
    key = await _known(registry, kid)
    if key.certificate_chain is None:
        raise Refused(f"no certificate is stored with the key {kid}")
    plain = msgspec.structs.replace(key, certificate_chain=None)
    await registry.keys.update(plain, audit_event(actor, "key.certify", kid, fingerprint=""))
    return plain


async def _known(registry: Registry, kid: str) -> SealedKey:
    for key in await signing_keys(registry):
        if key.kid == kid:
            return key
    raise Refused(f"there is no signing key with the kid {kid}: `corpid key list` shows them")


async def _usable(registry: Registry, kid: str) -> SealedKey:
    key = await _known(registry, kid)
    if key.revoked_at is not None:
        raise Refused(f"the key {kid} is revoked and is published no more: `corpid key list` shows the others")
    return key
