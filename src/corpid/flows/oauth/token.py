"""The token endpoint, and the tokens of the admin API.

Source: Spec 4.3, Spec "The order of a request", RFC 6749 §4.4, RFC 9449, D18-D21, D59
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import msgspec

from corpid.flows import namespaces, rate_limits
from corpid.flows.oauth import client_authentication, dpop
from corpid.flows.oauth.client_authentication import AuthenticatedClient
from corpid.flows.oauth.client_keys import id_token_key
from corpid.jose import encryption
from corpid.jose.key_ring import ACCESS_TOKEN
from corpid.jose.keys import EncryptionKey
from corpid.rules.audit import AuditAction
from corpid.rules.directory.access import ApiClient
from corpid.rules.directory.parties import entity_attributes, packed_parties, packed_subject, user_attributes
from corpid.rules.limits import ACCESS_TOKEN_SECONDS, API_TOKEN_SECONDS
from corpid.rules.oauth import (
    api_client,
    authorization_request,
    client_assertion,
    client_registration,
    deprecated_usage,
    token_request,
    tokens,
)
from corpid.rules.oauth.discovery import TOKEN_PATH
from corpid.rules.oauth.dpop import Proof, ProofTarget
from corpid.rules.oauth.errors import (
    Explanation,
    InvalidGrant,
    InvalidToken,
    RequestOf,
    ServerError,
    UnauthorizedClient,
    clip_text,
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
    from corpid.rules.oauth.api_client import ApiScope, RegisteredApiClient
    from corpid.rules.oauth.client_assertion import Assertion
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
            target = ProofTarget(method="POST", url=policy.base_url + TOKEN_PATH)
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
    if not authorization_request.are_allowed(client, grant.scopes):
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
    api_client.validate(parameters)
    client, assertion = await _authenticate(context, parameters, authorization)
    with RequestOf(client.client_id):
        granted = api_client.granted_scopes(parameters.get("scope"), client.scopes)
        target = ProofTarget(method="POST", url=policy.base_url + api_client.TOKEN_PATH)
        proof = dpop.require_proof(context, proofs, target, rules=policy.api)
        if not await _may_act(context, client, now=context.now):
            raise UnauthorizedClient(
                Reason.API_CLIENT_ENTITY, "the entity that this client is bound to is disabled or removed"
            )
        skew = await context.provider.client_clocks.record_skew(assertion, context.provider.transient)
        async with context.provider.transient.batch(context.now) as batch:
            await dpop.spend_proof_and_assertion(context, batch, proof, assertion, skew)
    claims = api_client.access_token_claims(
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
        issuer=policy.base_url + api_client.ISSUER_PATH,
        resource_url=policy.base_url + api_client.API_PATH,
        now=context.now,
        parties=api_client.no_person,
    )
    origin = urlsplit(policy.base_url)
    target = ProofTarget(method=method, url=f"{origin.scheme}://{origin.netloc}{path}")
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
    issuer = policy.base_url + api_client.ISSUER_PATH
    await context.provider.rate_limits.address(rate_limits.TOKEN, context.address, context.now, context.counts)
    candidate = client_assertion.read(
        parameters,
        authorization,
        issuer=issuer,
        endpoint=policy.base_url + api_client.TOKEN_PATH,
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
