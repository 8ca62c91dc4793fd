"""The token endpoint: a code becomes tokens (Spec 4.3, decisions "order", D18-D21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.flows import namespaces
from corpid.flows.oauth import client_authentication, dpop, rate_limits, replay_audit
from corpid.flows.oauth.client_authentication import AuthenticatedClient, no_key_set
from corpid.jose import encryption
from corpid.jose.keys import EncryptionKey
from corpid.ports import KeySetUnavailable
from corpid.rules.directory.parties import entity_attributes, packed_parties, packed_subject, user_attributes
from corpid.rules.limits import ACCESS_TOKEN_SECONDS
from corpid.rules.oauth import deprecated_usage, scopes, tokens
from corpid.rules.oauth import token_request as grants
from corpid.rules.oauth.discovery import TOKEN_PATH
from corpid.rules.oauth.dpop import Proof, Target
from corpid.rules.oauth.errors import InvalidGrant, InvalidRequest, ServerError
from corpid.rules.oauth.generations import GENERATIONS, Generation
from corpid.rules.oauth.token_request import TokenRequest
from corpid.rules.oauth.tokens import Packed, Parties, registered_wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.provider import Provider
    from corpid.jose.keys import ClientKeySet
    from corpid.rules.oauth.records import Client, Grant


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


class TokenResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The token response (Spec 2.4); `expires_in` in seconds."""

    access_token: str
    id_token: str
    token_type: str
    expires_in: int
    scope: str
    client_id: str


class _Redemption(msgspec.Struct, frozen=True, kw_only=True):
    """A token request whose client and key are proven; its code is still to be taken."""

    caller: AuthenticatedClient
    generation: Generation
    request: TokenRequest
    proof: Proof | None
    encrypted_to: EncryptionKey | None
    """None: the ID token is signed only"""
    token_id: str
    request_id: str

    @property
    def client(self) -> Client:
        return self.caller.client


async def exchange(
    provider: Provider,
    parameters: dict[str, str],
    *,
    authorization: Sequence[bytes],
    proofs: Sequence[bytes],
    now: float,
    request_id: str = "",
    address: str = "",
) -> TokenResponse:
    """Redeem a code. Raises the errors of Spec 7.3 (RFC 6749 §4.1.3, RFC 9449 §5, decisions "order")."""
    redemption = await _proven(provider, parameters, authorization, proofs, now, request_id, address)
    grant = await _spend(provider, redemption, now)
    jkt = redemption.proof.jkt if redemption.proof else None
    grant = grants.redeem(grant, redemption.request, jkt=jkt, mismatch_code=provider.policy.dpop_mismatch_code)
    subject = await _parties(provider, redemption, grant, now)
    _note_use(provider, redemption, grant, now)
    return await _issue(provider, redemption, grant, subject, now)


async def _proven(
    provider: Provider,
    parameters: dict[str, str],
    authorization: Sequence[bytes],
    proofs: Sequence[bytes],
    now: float,
    request_id: str,
    address: str,
) -> _Redemption:
    generation = provider.policy.generation_of_code(parameters.get("code", ""))
    request = grants.validate(parameters, generation)
    caller = await client_authentication.authenticate(
        provider,
        parameters,
        authorization,
        generation=generation,
        endpoint=rate_limits.TOKEN,
        address=address,
        now=now,
    )
    pkce_optional = provider.policy.pkce_optional(caller.client, generation, now)
    grants.require_verifier(request, generation, pkce_optional=pkce_optional)
    return _Redemption(
        caller=caller,
        generation=generation,
        request=request,
        proof=await _prove(provider, proofs, generation, now),
        encrypted_to=await id_token_key(provider, caller.client, generation, caller.keys, refusal=ServerError, now=now),
        token_id=tokens.identifier(
            issuer=provider.policy.base_url,
            client_id=caller.client.client_id,
            code=request.code,
            challenge=request.challenge,
        ),
        request_id=request_id,
    )


async def _prove(provider: Provider, proofs: Sequence[bytes], generation: Generation, now: float) -> Proof | None:
    if not generation.sender_constrained:
        return None
    target = Target(method="POST", url=provider.policy.base_url + TOKEN_PATH)
    proof = await dpop.verify_proof(provider, proofs, target, generation=generation, now=now)
    if proof is None:
        raise InvalidRequest("a DPoP header is needed")
    return proof


async def _spend(provider: Provider, redemption: _Redemption, now: float) -> Grant:
    """Spend proof and assertion and take the code; a code that is not there ends the token it may have yielded (D18)."""
    issuer, client_id, request_id = provider.policy.base_url, redemption.client.client_id, redemption.request_id
    request, generation = redemption.request, redemption.generation
    async with provider.transient.unit(now) as unit:
        if redemption.proof is not None:
            await dpop.spend(provider, unit, redemption.proof, client_id=client_id, request_id=request_id, now=now)
        await client_authentication.spend(provider, unit, redemption.caller.assertion, request_id=request_id, now=now)
        code = namespaces.code_entry(issuer, generation.name, client_id, request.code, request.challenge)
        grant = await code.take(unit)
        if grant is None:
            await namespaces.DENIED_TOKEN.entry(issuer, redemption.token_id).put(unit, b"1")
            await replay_audit.record(provider, "code.replay", client_id, request_id=request_id, now=now)
            raise InvalidGrant(grants.FAILED, detail="no such code of this client with this verifier")
    return grant


async def _parties(provider: Provider, redemption: _Redemption, grant: Grant, now: float) -> Parties:
    client, generation = redemption.client, redemption.generation
    if not provider.policy.serves(client, generation, now):
        raise InvalidGrant(grants.FAILED, detail="the client no longer lists the generation")
    if grant.redirect_uri not in client.redirect_uris:
        raise InvalidGrant(grants.FAILED, detail="the redirect_uri is no longer registered")
    if not scopes.covered(client, grant.scopes):
        raise InvalidGrant(grants.FAILED, detail="the client may no longer ask for these scopes")
    acting = await provider.registry_cache.acting(grant.user_id, grant.entity_id, now)
    if acting is None:
        raise InvalidGrant(grants.FAILED, detail="the person may no longer act for the entity")
    user, entity = acting.user, acting.entity
    packed = None
    if generation.packed_subject:
        packed = Packed(sub=packed_subject(user, entity), told=packed_parties(user, entity))
    return Parties(
        user_id=grant.user_id,
        entity_id=grant.entity_id,
        user_attributes=user_attributes(user, grant.scopes),
        entity_attributes=entity_attributes(entity, grant.scopes),
        packed=packed,
    )


def _note_use(provider: Provider, redemption: _Redemption, grant: Grant, now: float) -> None:
    """Count what a generation or an exception that ends is still used for, and how (`corpid client migration`)."""
    generation, assertion = redemption.generation, redemption.caller.assertion
    of_assertion = deprecated_usage.of_assertion(
        lifetime=assertion.lifetime,
        has_jti=assertion.jti is not None,
        names_endpoint=assertion.names_endpoint,
        successor=GENERATIONS[generation.successor] if generation.successor else None,
    )
    found = (*grant.habits, *of_assertion)
    if found or generation.successor:
        provider.usage.note(grant.client_id, generation.name, found, now)


async def _issue(
    provider: Provider, redemption: _Redemption, grant: Grant, subject: Parties, now: float
) -> TokenResponse:
    issuer, client, generation = provider.policy.base_url, redemption.client, redemption.generation
    ring = await provider.signing_keys.ring(now)
    access_claims = tokens.access_token_claims(
        grant,
        subject,
        client.subject,
        issuer=issuer,
        audience=[issuer + resource.path for resource in generation.resources],
        token_id=redemption.token_id,
        now=int(now),
    )
    access = ring.sign(msgspec.json.encode(access_claims), tokens.TYPE)
    id_claims = tokens.id_token_claims(
        grant, subject, client.subject, generation, issuer=issuer, access_token=access, now=int(now)
    )
    identity = ring.sign(msgspec.json.encode(id_claims), "JWT")
    if redemption.encrypted_to is not None:
        repeated = provider.policy.replicated_claims(client.client_id)
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
