"""The keys of a client, for encryption and for an operator.

Those with which it signs are `client_authentication`'s. Source: D21, D27, D28
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.jose.keys import ClientKeySet, EncryptionKey, key_set_members
from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.failures import KeySetUnavailable
from corpid.rules.oauth.errors import InvalidRequest, ServerError
from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.tokens import registered_wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.flows.request_context import Provider, RequestContext
    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import Client


async def current_keys(context: RequestContext, client: Client) -> ClientKeySet:
    """The key set of a client as it is known. Raises ServerError. Source: D27, D28"""
    try:
        return await context.provider.client_keys.current(client, now=context.now)
    except KeySetUnavailable as error:
        raise no_key_set(str(error)) from None


async def id_token_key(
    context: RequestContext,
    client: Client,
    generation: Generation,
    keys: ClientKeySet,
    *,
    refusal: type[InvalidRequest | ServerError],
) -> EncryptionKey | None:
    """The client's key for its ID tokens.

    None if they are not encrypted.

    Raises `refusal` if there has to be one and is none, ServerError. Source: D21, D27, Spec "Generations"
    """
    if not generation.id_token_encrypted and client.id_token_encryption_alg is None:
        return None
    wrap = registered_wrap(client)
    found = keys.encryption_for(wrap)
    return found or await encryption_key(context, client, keys, wrap, refusal=refusal, purpose=" for the ID token")


async def encryption_key(
    context: RequestContext,
    client: Client,
    keys: ClientKeySet,
    alg: str | None,
    *,
    refusal: type[InvalidRequest | ServerError],
    purpose: str = "",
) -> EncryptionKey:
    """The key of `keys` for a JWE alg (None: the default choice).

    A set without one is fetched again, at most once a minute, so that a client that has put its key there need not
    wait. Raises `refusal` if there is none, ServerError. Source: D27, D28
    """
    key = keys.encryption_for(alg)
    if key is not None:
        return key
    try:
        keys = await context.provider.client_keys.refetch(client, now=context.now)
    except KeySetUnavailable as error:
        raise no_key_set(str(error)) from None
    key = keys.encryption_for(alg)
    if key is not None:
        return key
    text = f"the key set of this client has no usable key with use enc{f' and alg {alg}' if alg else ''}{purpose}"
    raise refusal(Reason.CLIENT_ENCRYPTION_KEY_MISSING, text).with_cause(cause=f"{text}: {keys.why_no_encryption()}")


class ClientKeyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a client, and the faults of its set."""

    url: str
    """where it is published; empty if it stands in the record"""
    failure: str = ""
    """why there is none"""
    signing: tuple[tuple[str, str], ...] = ()
    """kid, perhaps empty, and algorithm of each key that signs"""
    encryption: tuple[tuple[str, str], ...] = ()
    """the same of each key that encrypts, the default one first"""
    problems: tuple[str, ...] = ()
    certificates: tuple[tuple[str, int], ...] = ()
    """kid, and the end of the certificate in x5c, epoch seconds; a key without one has no end of its own"""


def no_key_set(cause: str, reason: Reason = Reason.CLIENT_KEYS_UNAVAILABLE) -> ServerError:
    """Return the refusal for a client without a usable key set.

    The caller sees the cause in developer mode. Source: D27, D28
    """
    return ServerError(reason, "the key set of this client cannot be fetched or used", detail=cause)


async def describe_keys(provider: Provider, client: Client, *, actor: Actor, now: float) -> ClientKeyReport:
    """Fetch a client's key set again and describe it.

    At most once a minute. `now` is in epoch seconds. Raises access.Forbidden, StoreUnavailable. Source: D27
    """
    authorise(actor, "read", Object(kind="client"))
    url = client.jwks_uri or ""
    try:
        found = await provider.client_keys.refetch(client, now=now)
    except KeySetUnavailable as error:
        return ClientKeyReport(url=url, failure=str(error))
    stored = await provider.registry.clients.fetched_key_set(client.client_id) if url else None
    jwks = stored.jwks if stored else client.jwks or ""
    return msgspec.structs.replace(report_keys(found, url), certificates=tuple(list_certificates(jwks)))


def list_certificates(jwks: str) -> Iterator[tuple[str, int]]:
    """The kid and the end of each certificate.

    Ends are in epoch seconds. Source: RFC 7517 §4.7
    """
    from corpid.jose.certificates import certificate_end  # noqa: PLC0415 - for a page of the console alone

    keys = key_set_members(jwks).get("keys") if jwks else ()
    for key in keys if isinstance(keys, list) else ():
        chain = key.get("x5c") if isinstance(key, dict) else None
        if isinstance(chain, list) and chain:
            ends = certificate_end(str(chain[0]))
            if ends is not None:
                yield str(key.get("kid", "")), ends


def report_keys(found: ClientKeySet, url: str = "") -> ClientKeyReport:
    """Describe the keys of a set, published at `url` or written out. Source: D27"""
    by_kid: dict[str, EncryptionKey] = {}
    for key in (found.encryption, *found.by_wrap.values()):
        if key is not None:
            by_kid.setdefault(key.kid, key)
    problems = list(found.problems)
    if not found.signing:
        problems.append("no key can verify its signatures: it needs an EC key with use sig")
    return ClientKeyReport(
        url=url,
        signing=tuple((key.kid or "", key.verifier.algorithm.name) for key in found.signing),
        encryption=tuple((key.kid, key.wrap) for key in by_kid.values()),
        problems=tuple(problems),
    )
