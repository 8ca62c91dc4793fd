"""The pushed authorization request (RFC 9126, Spec 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces, rate_limits
from corpid.flows.oauth import client_authentication, dpop
from corpid.flows.oauth.client_keys import id_token_key
from corpid.rules.limits import REQUEST_URI_SECONDS
from corpid.rules.oauth import authorization_request, client_registration, deprecated_usage
from corpid.rules.oauth.authorization_request import PushedRequest
from corpid.rules.oauth.discovery import PAR_PATH
from corpid.rules.oauth.dpop import ProofTarget
from corpid.rules.oauth.errors import InvalidRequest, OAuthError, RequestOf, UnauthorizedClient
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.generations import Generation

REQUEST_URI_PREFIX: Final = "urn:ietf:params:oauth:request_uri:"


class ParResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to a pushed request; `expires_in` in seconds (Spec 2.2)."""

    request_uri: str
    expires_in: int
    client_id: str
    """for the log; not part of the response"""


async def push(
    context: RequestContext,
    parameters: dict[str, str],
    *,
    authorization: Sequence[bytes],
    proofs: Sequence[bytes],
    generation: Generation,
) -> ParResponse:
    """Accept a pushed authorization request.

    Verify client, proof and content, record the skew of the client's clock (only a loss of data makes it matter), then
    spend proof and assertion together with writing the request.

    Raises the errors of Spec 7.1. Source: RFC 9126 §2, Spec "The order of a request", D67
    """
    policy = context.provider.policy
    caller = await client_authentication.authenticate(
        context, parameters, authorization, generation=generation, endpoint=rate_limits.PAR
    )
    client = caller.client
    with RequestOf(client.client_id):
        if not client_registration.serves(client, generation, context.today):
            raise UnauthorizedClient(
                Reason.GENERATION_NOT_REGISTERED, "this client is not registered for the generation that is served here"
            ).with_cause(expected=generation.name, registered=client_registration.registered_generations(client))
        if parameters.get("client_id") is None:
            raise InvalidRequest(Reason.PARAMETER_MISSING, "parameter client_id is missing")
        target = ProofTarget(method="POST", url=policy.base_url + PAR_PATH)
        proof = dpop.verify_proof(context, proofs, target, rules=generation)
        request = authorization_request.validate_request(
            parameters,
            client,
            generation,
            jkt=dpop.bound_key(proof, parameters.get("dpop_jkt"), generation=generation),
            acr_prefix=policy.acr_prefix,
            message_punctuation=policy.context_message_punctuation,
        )
        if caller.assertion.names_endpoint:
            request = msgspec.structs.replace(request, deprecated_uses=(deprecated_usage.PAR_ENDPOINT_AUDIENCE,))
        await id_token_key(context, client, generation, caller.keys, refusal=InvalidRequest)
        reference = context.provider.new_id()
        skew = await context.provider.client_clocks.record_skew(caller.assertion, context.provider.transient)
        entry = namespaces.PUSHED_REQUEST.entry(policy.base_url, client.client_id, reference)
        pushed = entry.adding(PushedRequest(request=request, pushed_at=context.now))
        async with context.provider.transient.batch(context.now) as batch:
            try:
                await dpop.spend_proof_and_assertion(context, batch, proof, caller.assertion, skew, pushed)
            except OAuthError:
                await entry.take(batch)  # it may have been written; nobody knows its reference yet
                raise
        context.provider.issued.note_request(reference, client.client_id)
        return ParResponse(
            request_uri=REQUEST_URI_PREFIX + reference, expires_in=REQUEST_URI_SECONDS, client_id=client.client_id
        )
