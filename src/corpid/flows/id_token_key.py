"""The key that something is encrypted to for a client: ID tokens, and userinfo (D21, D22, D27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.client_authentication import no_key_set
from corpid.ports import KeySetUnavailable
from corpid.protocol.id_token import registered_wrap

if TYPE_CHECKING:
    from corpid.flows.provider import Provider
    from corpid.jose.keys import ClientKeySet, EncryptionKey
    from corpid.protocol.errors import InvalidRequest, ServerError
    from corpid.protocol.generations import Generation
    from corpid.protocol.records import Client


async def id_token_key(
    provider: Provider,
    client: Client,
    generation: Generation,
    keys: ClientKeySet,
    *,
    refusal: type[InvalidRequest | ServerError],
    now: float,
) -> EncryptionKey | None:
    """The client's key for its ID tokens; None if they are not encrypted.

    Raises `refusal` if there has to be one and is none, ServerError. Source: D21, D27, decisions "Generations"
    """
    if not generation.id_token_encrypted and client.id_token_encryption_alg is None:
        return None
    wrap = registered_wrap(client)
    key = await encryption_key(provider, client, keys, wrap, now=now)
    if key is None:
        fit = f" and alg {wrap}" if wrap else ""
        raise refusal(f"the key set of this client has no usable key with use enc{fit} for the ID token")
    return key


async def encryption_key(
    provider: Provider, client: Client, keys: ClientKeySet, alg: str | None, *, now: float
) -> EncryptionKey | None:
    """The key of `keys` for a JWE alg (None: the default choice); None if there is none.

    A set without one is fetched again, at most once a minute, so that a client that has put its key there need not
    wait. Raises ServerError. Source: D27
    """
    key = keys.encryption_for(alg)
    if key is not None:
        return key
    try:
        keys = await provider.client_keys.refetched(client, now=now)
    except KeySetUnavailable as error:
        raise no_key_set(provider, str(error)) from None
    return keys.encryption_for(alg)
