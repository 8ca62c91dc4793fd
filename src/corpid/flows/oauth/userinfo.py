"""The protected resources: userinfo, entity-info, authorization-info.

Source: Spec 4.4, 4.5, 4.8, D23, Spec "The order of a request"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows import namespaces
from corpid.flows.oauth import dpop
from corpid.flows.oauth.client_authentication import not_admitted
from corpid.flows.oauth.client_keys import current_keys, encryption_key
from corpid.jose import encryption
from corpid.rules.directory import roles
from corpid.rules.directory.parties import entity_attributes
from corpid.rules.oauth import authorization_request, client_registration, tokens
from corpid.rules.oauth.dpop import Proof, ProofTarget
from corpid.rules.oauth.errors import InvalidToken, RequestOf, ServerError, shorten_value
from corpid.rules.oauth.generations import ENTITY_SCOPES, Generation, ProtectedResource
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.records import ActingPerson
    from corpid.rules.oauth.records import Client
    from corpid.rules.oauth.tokens import AccessToken


class ResourceResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response of a resource: a signed JWT, or JSON.

    Source: Spec 2.5, D22
    """

    content: bytes
    client_id: str
    signed: bool


async def read(
    context: RequestContext,
    generation: Generation,
    resource: ProtectedResource,
    *,
    method: str,
    authorization: Sequence[bytes],
    proofs: Sequence[bytes],
) -> ResourceResponse:
    """Answer a resource request: signed, nested in a JWE, or plain.

    The generation and the client's registration decide which. Raises the errors of Spec 7.4. Source: RFC 9449 §7, Spec
    4.4, D22, D25, D26
    """
    text = tokens.access_token(authorization, generation.scheme)
    url = context.provider.policy.base_url + resource.path
    token = tokens.verify(
        text, context.keys.ring, issuer=context.provider.policy.base_url, resource_url=url, now=context.now
    )
    target = ProofTarget(method=method, url=url)
    proof = None
    if generation.sender_constrained:
        proof = dpop.require_proof(context, proofs, target, rules=generation, access_token=text)
    tokens.validate_binding(token, proof.jkt if proof else None)
    if resource.entity_member is not None:
        tokens.validate_scope(token, ENTITY_SCOPES)
    with RequestOf(token.client_id):
        await _spend(context, token, proof)
        client, acting = await _live(context, generation, token)
        blocks = await _blocks(context, resource, token, client)
        claims = tokens.userinfo_claims(
            token, client, blocks, issuer=context.provider.policy.base_url, now=int(context.now)
        )
        if resource.entity_member is not None:
            claims[resource.entity_member] = entity_attributes(acting.entity, token.scopes)
        content = msgspec.json.encode(claims)
        nesting = resource.nesting(client.userinfo_encryption_alg, client.userinfo_encryption_enc)
        if not (generation.userinfo_signed or client.userinfo_signing_alg or nesting):
            return ResourceResponse(content=content, client_id=client.client_id, signed=False)
        answer = context.keys.ring.sign(content, "JWT")
        if nesting is not None:
            key = await encryption_key(
                context, client, await current_keys(context, client), nesting.alg, refusal=ServerError
            )
            repeated = context.provider.policy.replicated_claims(client)
            answer = encryption.encrypt(answer, key, nesting.enc, claims=repeated)
        return ResourceResponse(content=answer.encode("ascii"), client_id=client.client_id, signed=True)


async def _spend(context: RequestContext, token: AccessToken, proof: Proof | None) -> None:
    denied = namespaces.DENIED_TOKEN.entry(context.provider.policy.base_url, token.jti)
    async with context.provider.transient.batch(context.now) as batch:
        if context.provider.transient.loss.refuses_token(token.issued_at, token.loss):
            raise InvalidToken(
                Reason.ACCESS_TOKEN_BEFORE_RESTART,
                "access token: issued before this provider lost its short-lived data; sign in again",
            )
        if proof is None:
            is_denied = await denied.get(batch)
        else:
            is_denied = await dpop.spend_with(context, batch, proof, denied.getting(), client_id=token.client_id)
        if is_denied is not None:
            raise InvalidToken(
                Reason.ACCESS_TOKEN_REVOKED, "access token: revoked, because its code was presented again"
            )


async def _live(context: RequestContext, generation: Generation, token: AccessToken) -> tuple[Client, ActingPerson]:
    known = await context.provider.registry_cache.known_client(token.client_id, context.now)
    client = context.provider.registry_cache.admit_client(known)
    if client is None:
        error = InvalidToken(Reason.ACCESS_TOKEN_CLIENT, "access token: its client is unknown or disabled")
        _, error.explanation = not_admitted(known, token.client_id, context.provider.policy.issuer_id)
        raise error
    if not client_registration.serves(client, generation, context.today):
        raise InvalidToken(
            Reason.GENERATION_WITHDRAWN, "access token: its client may no longer use this interface"
        ).with_cause(
            expected=f"the generation {generation.name}", registered=client_registration.registered_generations(client)
        )
    if not authorization_request.are_allowed(client, token.scopes):
        raise InvalidToken(
            Reason.SCOPE_WITHDRAWN, "access token: its client may no longer request these scopes"
        ).with_cause(received=shorten_value(" ".join(token.scopes)), registered=shorten_value(" ".join(client.scopes)))
    acting = await context.provider.registry_cache.acting(token.user_id, token.entity_id, context.now)
    if acting is None:
        cause = await context.provider.registry_cache.find_obstacle(token.user_id, token.entity_id, context.now)
        raise InvalidToken(
            Reason.PERSON_MAY_NOT_ACT, "access token: the person may no longer act for the entity", detail=cause
        )
    return client, acting


async def _blocks(
    context: RequestContext, resource: ProtectedResource, token: AccessToken, client: Client
) -> dict[str, dict[str, object]]:
    today = context.day
    wanted = [scope for scope in resource.claim_names if scope in token.scopes or not resource.scoped]
    services = await context.provider.registry_cache.services(client.services, context.now) if wanted else []
    chain = (token.user_id, token.entity_id, client.services)
    blocks: dict[str, dict[str, object]] = {}
    if "authinfo" in wanted:
        rows = await context.provider.registry_cache.assignments(*chain, context.now)
        blocks[resource.claim_names["authinfo"]] = roles.auth_info(rows, services, today)
    if "tpauthinfo" in wanted:
        others = await context.provider.registry_cache.third_party_rows(*chain, context.now)
        block = roles.tp_auth_info(others, services, today)
        if block is not None:
            blocks[resource.claim_names["tpauthinfo"]] = block
    return blocks
