"""The token endpoint (Spec 4.3, Spec "The order of a request", D18-D21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows import namespaces, rate_limits
from corpid.flows.oauth import client_authentication, dpop
from corpid.flows.oauth.client_authentication import AuthenticatedClient
from corpid.flows.oauth.client_keys import id_token_key
from corpid.jose import encryption
from corpid.jose.key_ring import ACCESS_TOKEN
from corpid.jose.keys import EncryptionKey
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.parties import entity_attributes, packed_parties, packed_subject, user_attributes
from corpid.rules.limits import ACCESS_TOKEN_SECONDS
from corpid.rules.oauth import client_registration, deprecated_usage, scopes, token_request, tokens
from corpid.rules.oauth.discovery import TOKEN_PATH
from corpid.rules.oauth.dpop import Proof, Target
from corpid.rules.oauth.errors import (
    InvalidGrant,
    RequestOf,
    ServerError,
    list_values,
    shorten_value,
    without_query,
)
from corpid.rules.oauth.generations import GENERATIONS, Generation
from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.token_request import TokenRequest
from corpid.rules.oauth.tokens import LegacyClaims, Parties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.records import Client, Grant


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The token response (Spec 2.4); `expires_in` in seconds."""

    access_token: str
    id_token: str
    token_type: str
    expires_in: int
    scope: str
    client_id: str
    """for the log; not part of the response"""


class _Redemption(msgspec.Struct, frozen=True, kw_only=True):
    """A token request with proven client and key, its code not taken."""

    caller: AuthenticatedClient
    generation: Generation
    request: TokenRequest
    proof: Proof | None
    encrypted_to: EncryptionKey | None
    """None: the ID token is signed only"""
    token_id: str

    @property
    def client(self) -> Client:
        return self.caller.client


async def exchange(
    context: RequestContext,
    parameters: dict[str, str],
    *,
    authorization: Sequence[bytes],
    proofs: Sequence[bytes],
) -> TokenResponse:
    """Redeem a code. Raises the errors of Spec 7.3 (RFC 6749 §4.1.3, RFC 9449 §5, Spec "The order of a request")."""
    policy = context.provider.policy
    generation = policy.generation_of_code(parameters.get("code", ""))
    request = token_request.validate_token_request(parameters, generation)
    caller = await client_authentication.authenticate(
        context, parameters, authorization, generation=generation, endpoint=rate_limits.TOKEN
    )
    with RequestOf(caller.client.client_id):
        pkce_optional = client_registration.pkce_optional(caller.client, generation, context.today)
        token_request.require_verifier(request, generation, pkce_optional=pkce_optional)
        proof = None
        if generation.sender_constrained:
            target = Target(method="POST", url=policy.base_url + TOKEN_PATH)
            proof = dpop.require_proof(context, proofs, target, rules=generation)
        redemption = _Redemption(
            caller=caller,
            generation=generation,
            request=request,
            proof=proof,
            encrypted_to=await id_token_key(context, caller.client, generation, caller.keys, refusal=ServerError),
            token_id=tokens.identifier(
                issuer=policy.base_url,
                client_id=caller.client.client_id,
                code=request.code,
                challenge=request.challenge,
            ),
        )
        grant, loss_tag = await _spend(context, redemption)
        jkt = proof.jkt if proof else None
        grant = token_request.redeem(grant, request, jkt=jkt, mismatch_code=policy.dpop_mismatch_code)
        subject = await _parties(context, redemption, grant)
        of_assertion = deprecated_usage.of_assertion(
            lifetime=caller.assertion.lifetime,
            has_jti=caller.assertion.jti is not None,
            names_endpoint=caller.assertion.names_endpoint,
            successor=GENERATIONS[generation.successor] if generation.successor else None,
        )
        found = (*grant.deprecated_uses, *of_assertion)
        if found or generation.successor:
            context.provider.usage.note(grant.client_id, generation.name, found, context.now)
        issued = _issue(context, redemption, grant, subject, loss_tag)
    context.provider.counters.sign_in(issued.client_id, context.now)
    return issued


async def _spend(context: RequestContext, redemption: _Redemption) -> tuple[Grant, str]:
    """Spend proof and assertion and take the code.

    Returns also the mark of an access token (D67): that of the loss known when the code is taken, since a later one
    loses the note that the token is revoked. If the code is gone, the token that it may have yielded is revoked (D18).
    """
    issuer, client_id = context.provider.policy.base_url, redemption.client.client_id
    request, generation = redemption.request, redemption.generation
    skew = await context.provider.client_clocks.record_skew(redemption.caller.assertion, context.provider.transient)
    async with context.provider.transient.batch(context.now) as batch:
        loss_tag = context.provider.transient.loss.token_tag(context.now)
        await dpop.spend_proof_and_assertion(context, batch, redemption.proof, redemption.caller.assertion, skew)
        code = namespaces.code_entry(issuer, generation.name, client_id, request.code, request.challenge)
        grant = await code.take(batch)
        if grant is None:
            await namespaces.DENIED_TOKEN.entry(issuer, redemption.token_id).put(batch, b"1")
            issued = context.provider.issued.issued_code(request.code)
            refusal = token_request.not_found(issued, request, client_id, now=context.now)
            await client_authentication.audit_replay(context, AuditAction.CODE_REPLAY, client_id, refusal.reason)
            raise refusal
        context.provider.issued.note_redeemed(request.code)
    return grant, loss_tag


async def _parties(context: RequestContext, redemption: _Redemption, grant: Grant) -> Parties:
    client, generation = redemption.client, redemption.generation
    if not client_registration.serves(client, generation, context.today):
        raise InvalidGrant(Reason.GENERATION_WITHDRAWN, token_request.FAILED).with_cause(
            cause="the client no longer lists the generation",
            expected=f"the generation {generation.name}",
            registered=client_registration.registered_generations(client),
        )
    if grant.redirect_uri not in client.redirect_uris:
        raise InvalidGrant(Reason.REDIRECT_URI_NOT_REGISTERED, token_request.FAILED).with_cause(
            cause="the redirect_uri is no longer registered",
            received=without_query(grant.redirect_uri),
            registered=list_values(map(without_query, client.redirect_uris)),
        )
    if not scopes.are_allowed(client, grant.scopes):
        raise InvalidGrant(Reason.SCOPE_WITHDRAWN, token_request.FAILED).with_cause(
            cause="the client may no longer ask for these scopes",
            received=shorten_value(" ".join(grant.scopes)),
            registered=shorten_value(" ".join(client.scopes)),
        )
    acting = await context.provider.registry_cache.acting(grant.user_id, grant.entity_id, context.now)
    if acting is None:
        cause = await context.provider.registry_cache.find_obstacle(grant.user_id, grant.entity_id, context.now)
        raise InvalidGrant(Reason.PERSON_MAY_NOT_ACT, token_request.FAILED).with_cause(
            cause=f"the person may no longer act for the entity: {cause}"
        )
    user, entity = acting.user, acting.entity
    packed = None
    if generation.packed_subject:
        packed = LegacyClaims(
            sub=packed_subject(user, entity), attributes=packed_parties(user, entity, acting.administrator)
        )
    return Parties(
        user_id=grant.user_id,
        entity_id=grant.entity_id,
        user_attributes=user_attributes(user, grant.scopes),
        entity_attributes=entity_attributes(entity, grant.scopes),
        packed=packed,
    )


def _issue(
    context: RequestContext, redemption: _Redemption, grant: Grant, subject: Parties, loss_tag: str
) -> TokenResponse:
    issuer, client, generation = context.provider.policy.base_url, redemption.client, redemption.generation
    ring = context.keys.ring
    access_claims = tokens.access_token_claims(
        grant,
        subject,
        client.subject,
        issuer=issuer,
        audience=[issuer + resource.path for resource in generation.resources],
        token_id=redemption.token_id,
        loss=loss_tag,
        now=int(context.now),
    )
    access = ring.sign(msgspec.json.encode(access_claims), ACCESS_TOKEN)
    id_claims = tokens.id_token_claims(
        grant, subject, client.subject, generation, issuer=issuer, access_token=access, now=int(context.now)
    )
    identity = ring.sign(msgspec.json.encode(id_claims), "JWT")
    if redemption.encrypted_to is not None:
        repeated = context.provider.policy.replicated_claims(client)
        enc = client.id_token_encryption_enc
        identity = encryption.encrypt(identity, redemption.encrypted_to, enc, claims=repeated)
    return TokenResponse(
        access_token=access,
        id_token=identity,
        token_type=generation.scheme,
        expires_in=ACCESS_TOKEN_SECONDS,
        scope=" ".join(grant.scopes),
        client_id=client.client_id,
    )
