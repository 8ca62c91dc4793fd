"""An operator's own certificates for the provider's signing keys (D42, Spec 2.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows.directory.write import Refused
from corpid.flows.operations.signing_keys import change, open_key, stored_keys
from corpid.jose import certificates
from corpid.jose.certificates import CertificateRefused
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.signing_keys import KeyTransition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.rules.directory.actors import Actor
    from corpid.rules.signing_keys import ProviderKey
    from corpid.stores.sql.registry import Registry


async def signing_request(registry: Registry, actor: Actor, kid: str, *, subject_name: str) -> str:
    """A PEM certificate request for this key and common name.

    The private key stays encrypted.

    Raises write.Refused for a kid that names no usable key and a name that no certificate can hold,
    access.Forbidden, StoreUnavailable. Source: RFC 2986 §4
    """
    authorise(actor, "write", Object(kind="key"))
    key = open_key(_usable(await stored_keys(registry), kid))
    try:
        return certificates.signing_request(key.private, subject_name=subject_name)
    except CertificateRefused as error:
        raise Refused(f"{error}: choose another with --subject-name") from error


async def certify(registry: Registry, actor: Actor, kid: str, chain: str, *, now: float) -> ProviderKey:
    """Store a certificate chain (PEM) with a key.

    A running server publishes it within 5 s. Returns the key. Raises write.Refused for a kid that names no usable key
    and a chain that is not this key's or not valid at `now`, access.Forbidden, StoreUnavailable. Source: RFC 7517 §4.7,
    Spec 2.9
    """
    authorise(actor, "write", Object(kind="key"))

    def plan(keys: list[ProviderKey]) -> list[KeyTransition]:
        key = _usable(keys, kid)
        try:
            parsed = certificates.parse_chain(chain)
            certificates.check_chain(parsed, open_key(key).public, now=now)
        except CertificateRefused as error:
            raise Refused(f"this is no certificate chain for the key {kid}: {error}") from error
        certified = msgspec.structs.replace(key, certificate_chain=certificates.pem(parsed))
        fingerprint = certificates.fingerprint(parsed[0])
        return [KeyTransition(key=certified, action=AuditAction.KEY_CERTIFY, details={"fingerprint": fingerprint})]

    return (await change(registry, actor, plan))[0].key


async def give_up(registry: Registry, actor: Actor, kid: str) -> ProviderKey:
    """Go back to the certificate that the key signs itself.

    Returns the key. Raises write.Refused for a kid that names no key and a key without a chain, access.Forbidden,
    StoreUnavailable. Source: Spec 2.9
    """
    authorise(actor, "delete", Object(kind="key"))

    def plan(keys: list[ProviderKey]) -> list[KeyTransition]:
        key = _known(keys, kid)
        if key.certificate_chain is None:
            raise Refused(f"no certificate is stored with the key {kid}")
        plain = msgspec.structs.replace(key, certificate_chain=None)
        return [KeyTransition(key=plain, action=AuditAction.KEY_CERTIFY, details={"fingerprint": ""})]

    return (await change(registry, actor, plan))[0].key


def _known(keys: Iterable[ProviderKey], kid: str) -> ProviderKey:
    for key in keys:
        if key.kid == kid:
            return key
    raise Refused(f"there is no signing key with the kid {kid}: `corpid key list` shows them")


def _usable(keys: Iterable[ProviderKey], kid: str) -> ProviderKey:
    key = _known(keys, kid)
    if key.revoked_at is not None:
        raise Refused(f"the key {kid} is revoked and is published no more: `corpid key list` shows the others")
    return key
