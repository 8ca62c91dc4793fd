"""The keys to which what a client receives is encrypted.

Source: D21, D27
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.oauth.client_authentication import no_key_set
from corpid.rules.failures import KeySetUnavailable
from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.tokens import registered_wrap

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.jose.keys import ClientKeySet, EncryptionKey
    from corpid.rules.oauth.errors import InvalidRequest, ServerError
    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import Client


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
