"""The key that an ID token is encrypted to: PAR, authorize and token endpoint ask the same way (D21, D27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.protocol.id_token import registered_wrap

if TYPE_CHECKING:
    from corpid.jose.keys import ClientKeySet, EncryptionKey
    from corpid.protocol.errors import InvalidRequest, ServerError
    from corpid.protocol.generations import Generation
    from corpid.protocol.records import Client


def id_token_key(
    client: Client, generation: Generation, keys: ClientKeySet, *, refusal: type[InvalidRequest | ServerError]
) -> EncryptionKey | None:
    """The client's key for its ID tokens; None where they are not encrypted.

    Raises `refusal` where there has to be one and is none. Source: D21, D27, decisions "Generations"
    """
    if not generation.id_token_encrypted and client.id_token_encryption_alg is None:
        return None
    wrap = registered_wrap(client)
    key = keys.encryption_for(wrap)
    if key is None:
        fit = f" and alg {wrap}" if wrap else ""
        raise refusal(f"the key set of this client has no usable key with use enc{fit} for the ID token")
    return key
