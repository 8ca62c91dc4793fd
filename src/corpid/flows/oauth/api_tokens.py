"""Tokens of the admin API, issued and verified.

Source: RFC 6749 §4.4, RFC 9449, D59
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import msgspec

from corpid.flows import rate_limits
from corpid.flows.oauth import client_authentication, dpop
from corpid.jose.key_ring import ACCESS_TOKEN
from corpid.rules.directory.actors import ApiClient
from corpid.rules.limits import API_TOKEN_SECONDS
from corpid.rules.oauth import api_server, client_assertion, tokens
from corpid.rules.oauth.dpop import Target
from corpid.rules.oauth.errors import (
    Explanation,
    InvalidToken,
    RequestOf,
    UnauthorizedClient,
    clip_text,
)
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.api_client import ApiScope, RegisteredApiClient
    from corpid.rules.oauth.client_assertion import Assertion


class ApiTokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The token response (RFC 6749 §5.1); `expires_in` in seconds."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    client_id: str


async def issue(
    context: RequestContext, parameters: dict[str, str], *, authorization: Sequence[bytes], proofs: Sequence[bytes]
) -> ApiTokenResponse:
    """Issue a token to a client of the admin API.

    It is bound to the key of the proof. `authorization` and `proofs` are the request's headers Authorization and DPoP.
    The order is that of the core's token endpoint: what is refused before the last step spends nothing. Raises
    InvalidRequest, UnsupportedGrantType, InvalidClient, InvalidScope, InvalidDPoPProof, UseDPoPNonce,
    UnauthorizedClient, TooManyRequests, ServerError, StoreUnavailable. Source: RFC 6749 §4.4, RFC 9449 §5, Spec
    "The order of a request", D59
    """
    policy = context.provider.policy
    api_server.validate(parameters)
    client, assertion = await _authenticate(context, parameters, authorization)
    with RequestOf(client.client_id):
        granted = api_server.granted_scopes(parameters.get("scope"), client.scopes)
        target = Target(method="POST", url=policy.base_url + api_server.TOKEN_PATH)
        proof = dpop.require_proof(context, proofs, target, rules=policy.api)
        if not await _may_act(context, client, now=context.now):
            raise UnauthorizedClient(
                Reason.API_CLIENT_ENTITY, "the entity that this client is bound to is disabled or removed"
            )
        skew = await context.provider.client_clocks.record_skew(assertion, context.provider.transient)
        async with context.provider.transient.batch(context.now) as batch:
            await dpop.spend_proof_and_assertion(context, batch, proof, assertion, skew)
    claims = api_server.access_token_claims(
        base_url=policy.base_url,
        client_id=client.client_id,
        entity_id=client.entity_id,
        granted=granted,
        jkt=proof.jkt,
        token_id=context.provider.new_id(),
        loss=context.provider.transient.loss.token_tag(context.now),
        now=int(context.now),
    )
    return ApiTokenResponse(
        access_token=context.keys.ring.sign(msgspec.json.encode(claims), ACCESS_TOKEN),
        token_type=policy.api.scheme,
        expires_in=API_TOKEN_SECONDS,
        scope=" ".join(granted),
        client_id=client.client_id,
    )


async def verify(
    context: RequestContext, *, method: str, path: str, authorization: Sequence[bytes], proofs: Sequence[bytes]
) -> ApiClient:
    """Verify the token and the proof of a request to the API.

    `path` is that of the request's URL as it was sent, base_url's included and without query; `authorization` and
    `proofs` are the headers Authorization and DPoP. The proof is spent. Returns the client with the scopes of its
    token; `access.authorise` decides what they suffice for. Raises CredentialsRequired, InvalidRequest, InvalidToken
    (also if client, entity or a scope of the token has ended since), InvalidDPoPProof, UseDPoPNonce, StoreUnavailable.
    Source: RFC 9449 §7, D6, D50, D59
    """
    policy = context.provider.policy
    text = tokens.access_token(authorization, policy.api.scheme)
    token = tokens.verify(
        text,
        context.keys.ring,
        issuer=policy.base_url + api_server.ISSUER_PATH,
        resource_url=policy.base_url + api_server.API_PATH,
        now=context.now,
        parties=api_server.no_person,
    )
    origin = urlsplit(policy.base_url)
    target = Target(method=method, url=f"{origin.scheme}://{origin.netloc}{path}")
    proof = dpop.require_proof(context, proofs, target, rules=policy.api, access_token=text)
    tokens.validate_binding(token, proof.jkt)
    with RequestOf(token.client_id):
        if context.provider.transient.loss.refuses_token(token.issued_at, token.loss):
            raise InvalidToken(
                Reason.ACCESS_TOKEN_BEFORE_RESTART,
                "access token: issued before this provider lost its short-lived data; request a new one",
            )
        async with context.provider.transient.batch(context.now) as batch:
            await dpop.spend(context, batch, proof, client_id=token.client_id)
        actor = ApiClient(
            client_id=token.client_id,
            scopes=frozenset(cast("tuple[ApiScope, ...]", token.scopes)),
            entity_id=token.entity_id,
        )
        await refuse_ended(context, actor, now=context.now)
    return actor


async def _authenticate(
    context: RequestContext, parameters: dict[str, str], authorization: Sequence[bytes]
) -> tuple[RegisteredApiClient, Assertion]:
    """Authenticate a client of the API; its audience is the API's issuer."""
    policy = context.provider.policy
    issuer = policy.base_url + api_server.ISSUER_PATH
    await context.provider.rate_limits.address(rate_limits.TOKEN, context.address, context.now, context.counts)
    candidate = client_assertion.read(
        parameters,
        authorization,
        issuer=issuer,
        endpoint=policy.base_url + api_server.TOKEN_PATH,
        rules=policy.api,
        now=context.now,
    )
    client = await context.provider.registry_cache.api_client(candidate.client_id, context.now)
    if client is None:
        explanation = Explanation(
            cause="unknown or disabled client of the admin API", received=f"client_id {clip_text(candidate.client_id)}"
        )
        raise client_assertion.refuse_assertion(
            Reason.CLIENT_UNKNOWN, candidate, issuer=issuer, explanation=explanation
        )
    _, assertion = await client_authentication.verify_assertion(
        context, client, candidate, source=context.provider.api_client_keys, issuer=issuer, endpoint=rate_limits.TOKEN
    )
    return client, assertion


async def refuse_ended(context: RequestContext, actor: ApiClient, *, now: float) -> None:
    """Refuse a token whose client, binding or scopes have ended since.

    `now` is in epoch seconds: later than the request, if its body took long. Raises InvalidToken, StoreUnavailable.
    Source: D50
    """
    client = await context.provider.registry_cache.api_client(actor.client_id, now)
    if client is None:
        raise InvalidToken(Reason.ACCESS_TOKEN_CLIENT, "access token: its client is unknown or disabled")
    if client.entity_id != actor.entity_id or not await _may_act(context, client, now=now):
        raise InvalidToken(
            Reason.API_CLIENT_ENTITY,
            "access token: its client's entity has changed, or is disabled or removed",
        )
    if not actor.scopes.issubset(client.scopes):
        raise InvalidToken(Reason.SCOPE_WITHDRAWN, "access token: its client may no longer request these scopes")


async def _may_act(context: RequestContext, client: RegisteredApiClient, *, now: float) -> bool:
    """Return whether a client's entity is enabled, if it has one."""
    if not client.entity_id:
        return True
    entity = await context.provider.registry_cache.entity(client.entity_id, now)
    return entity is not None and entity.enabled
