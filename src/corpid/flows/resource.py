"""A protected resource: what the person may do, signed (Spec 4.4, D23, decisions "order")."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from corpid.directory import authorization_data
from corpid.flows import kinds, possession
from corpid.jose import encryption
from corpid.ports import KeySetUnavailable
from corpid.protocol import access_token, credentials, scopes, userinfo
from corpid.protocol.dpop import Target
from corpid.protocol.errors import InvalidRequest, InvalidToken, ServerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.provider import Provider
    from corpid.protocol.access_token import AccessToken
    from corpid.protocol.dpop import Proof
    from corpid.protocol.generations import Generation, Resource
    from corpid.protocol.records import Client


async def read(
    provider: Provider,
    generation: Generation,
    resource: Resource,
    *,
    method: str,
    authorization: Sequence[bytes],
    proofs: Sequence[bytes],
    now: float,
    request_id: str = "",
) -> tuple[str, str]:
    """The answer of a resource as a signed JWT, nested in a JWE where the client registered for that.

    Returns it with the client_id. Raises the errors of Spec 7.4. Source: RFC 9449 §7, Spec 4.4, D22
    """
    text = credentials.access_token(authorization, generation.scheme)
    token, proof = await _verify(provider, generation, resource, text, method, proofs, now)
    await _spend(provider, token, proof, request_id=request_id, now=now)
    client = await _live(provider, token, now)
    blocks = await _blocks(provider, resource, token, client, now)
    claims = userinfo.claims(token, client, blocks, issuer=provider.policy.base_url, now=int(now))
    ring = await provider.own_keys.ring(now)
    answer = ring.sign(msgspec.json.encode(claims), "JWT")
    if client.userinfo_encryption_enc is not None:
        answer = await _encrypt(provider, client, answer, client.userinfo_encryption_enc, now)
    return answer, client.client_id


async def _verify(
    provider: Provider,
    generation: Generation,
    resource: Resource,
    text: str,
    method: str,
    proofs: Sequence[bytes],
    now: float,
) -> tuple[AccessToken, Proof]:
    """Token and proof, verified together or not at all."""
    url = provider.policy.base_url + resource.path
    ring = await provider.own_keys.ring(now)
    token = access_token.verify(text, ring, issuer=provider.policy.base_url, resource_url=url, now=now)
    target = Target(method=method, url=url)
    proof = await possession.prove(provider, proofs, target, generation=generation, now=now, access_token=text)
    if proof is None:
        raise InvalidRequest("a DPoP header is needed")
    access_token.validate_binding(token, proof.jkt)
    return token, proof


async def _spend(provider: Provider, token: AccessToken, proof: Proof, *, request_id: str, now: float) -> None:
    if token.issued_at < provider.transient.forgotten_at:
        raise InvalidToken("access token: issued before this provider's restart")
    denied = kinds.key(kinds.DENIED_TOKEN, provider.policy.base_url, token.jti)
    async with provider.transient.unit(now) as unit:
        await possession.spend(provider, unit, proof, client_id=token.client_id, request_id=request_id, now=now)
        if await unit.get(kinds.DENIED_TOKEN.name, denied) is not None:
            raise InvalidToken("access token: revoked, because its code was presented again")


async def _live(provider: Provider, token: AccessToken, now: float) -> Client:
    client = await provider.live.client(token.client_id, now)
    if client is None:
        raise InvalidToken("access token: its client is not known or disabled")
    if not scopes.covered(client, token.scopes):
        raise InvalidToken("access token: its client may no longer ask for these scopes")
    if await provider.live.acting(token.user_id, token.entity_id, now) is None:
        raise InvalidToken("access token: the person may no longer act for the entity")
    return client


async def _blocks(
    provider: Provider, resource: Resource, token: AccessToken, client: Client, now: float
) -> dict[str, dict[str, object]]:
    today = datetime.fromtimestamp(now, provider.policy.timezone).date()
    wanted = [scope for scope in resource.claim_names if scope in token.scopes]
    services = await provider.live.services(client.services, now) if wanted else []
    who = (token.user_id, token.entity_id, client.services)
    blocks: dict[str, dict[str, object]] = {}
    if "authinfo" in wanted:
        rows = await provider.live.assignments(*who, now)
        blocks[resource.claim_names["authinfo"]] = authorization_data.auth_info(rows, services, today)
    if "tpauthinfo" in wanted:
        others = await provider.live.third_party_rows(*who, now)
        block = authorization_data.tp_auth_info(others, services, today)
        if block is not None:
            blocks[resource.claim_names["tpauthinfo"]] = block
    return blocks


async def _encrypt(provider: Provider, client: Client, answer: str, enc: str, now: float) -> str:
    try:
        keys = await provider.client_keys.current(client, now=now)
    except KeySetUnavailable as error:
        raise ServerError("the key set of this client cannot be fetched or read", detail=str(error)) from None
    if keys.encryption is None:
        raise ServerError("the key set of this client has no usable key with use enc")
    return encryption.encrypt(answer, keys.encryption, enc)
