"""The pushed authorization request (RFC 9126, Spec 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import client_authentication, kinds, possession, rates
from corpid.flows.id_token_key import id_token_key
from corpid.protocol import authorization_request, habits
from corpid.protocol.dpop import Target
from corpid.protocol.errors import InvalidRequest, UnauthorizedClient
from corpid.protocol.limits import REQUEST_URI_SECONDS
from corpid.protocol.metadata import PAR_PATH
from corpid.protocol.records import PushedRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.client_authentication import AuthenticatedClient
    from corpid.flows.provider import Provider
    from corpid.protocol.dpop import Proof
    from corpid.protocol.generations import Generation
    from corpid.protocol.records import AuthorizationRequest

REQUEST_URI_PREFIX: Final = "urn:ietf:params:oauth:request_uri:"


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to a pushed request; `expires_in` in seconds (Spec 2.2)."""

    request_uri: str
    expires_in: int
    client_id: str


async def push(
    provider: Provider,
    parameters: dict[str, str],
    *,
    authorization: Sequence[bytes],
    proofs: Sequence[bytes],
    generation: Generation,
    now: float,
    request_id: str = "",
    address: str = "",
) -> Pushed:
    """Accept a pushed authorization request. Raises the errors of Spec 7.1 (RFC 9126 §2, decisions "order")."""
    policy = provider.policy
    caller = await client_authentication.authenticate(
        provider,
        parameters,
        authorization,
        generation=generation,
        endpoint=rates.PAR,
        address=address,
        now=now,
    )
    client = caller.client
    if not policy.serves(client, generation, now):
        raise UnauthorizedClient("this client is not registered for the generation that is served here")
    if parameters.get("client_id") is None:
        raise InvalidRequest("parameter client_id is missing")
    target = Target(method="POST", url=policy.base_url + PAR_PATH)
    proof = await possession.prove(provider, proofs, target, generation=generation, now=now)
    request = authorization_request.validate(
        parameters,
        client,
        generation,
        jkt=possession.bound_key(proof, parameters.get("dpop_jkt"), generation=generation),
        acr_prefix=policy.acr_prefix,
        message_punctuation=policy.context_message_punctuation,
    )
    if caller.assertion.names_endpoint:
        request = msgspec.structs.replace(request, habits=(habits.PAR_ENDPOINT_AUDIENCE,))
    await id_token_key(provider, client, generation, caller.keys, refusal=InvalidRequest, now=now)
    return await _write(provider, caller, proof, request, request_id=request_id, now=now)


async def _write(
    provider: Provider,
    caller: AuthenticatedClient,
    proof: Proof | None,
    request: AuthorizationRequest,
    *,
    request_id: str,
    now: float,
) -> Pushed:
    reference, client_id = provider.new_id(), caller.client.client_id
    async with provider.transient.unit(now) as unit:
        if proof is not None:
            await possession.spend(provider, unit, proof, client_id=client_id, request_id=request_id, now=now)
        await client_authentication.spend(provider, unit, caller.assertion, request_id=request_id, now=now)
        await unit.put(
            kinds.PUSHED_REQUEST.name,
            kinds.key(kinds.PUSHED_REQUEST, provider.policy.base_url, client_id, reference),
            msgspec.msgpack.encode(PushedRequest(request=request, pushed_at=now)),
            kinds.PUSHED_REQUEST.seconds,
        )
    return Pushed(request_uri=REQUEST_URI_PREFIX + reference, expires_in=REQUEST_URI_SECONDS, client_id=client_id)
