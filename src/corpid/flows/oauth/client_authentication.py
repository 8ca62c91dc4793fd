"""Client authentication, for PAR and the token endpoint (D8, D9).

Source: D8, D9
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.oauth import rate_limits
from corpid.jose.keys import ClientKeySet
from corpid.ports import KeySetUnavailable
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.actors import ANONYMOUS
from corpid.rules.limits import CLOCK_AHEAD_SECONDS
from corpid.rules.oauth import client_assertion, client_registration
from corpid.rules.oauth.client_assertion import Assertion, KeyNotFound
from corpid.rules.oauth.discovery import PAR_PATH, TOKEN_PATH
from corpid.rules.oauth.errors import InvalidClient, InvalidRequest, RequestOf, ServerError
from corpid.rules.oauth.records import Client
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.ports import TransientUnit
    from corpid.rules.oauth.client_assertion import Candidate
    from corpid.rules.oauth.generations import Generation

_PATHS: Final[Mapping[str, str]] = MappingProxyType({rate_limits.PAR: PAR_PATH, rate_limits.TOKEN: TOKEN_PATH})


class AuthenticatedClient(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated client; its assertion is still to be spent."""

    client: Client
    keys: ClientKeySet
    assertion: Assertion


def no_key_set(context: RequestContext, cause: str, reason: Reason = Reason.CLIENT_KEYS_UNAVAILABLE) -> ServerError:
    """Return the refusal for a client without a usable key set.

    The caller sees the cause in developer mode. Source: D27, D28
    """
    sentence = "the key set of this client cannot be fetched or used"
    public = f"{sentence}: {cause}" if context.provider.policy.developer_mode else sentence
    return ServerError(reason, public, detail=cause)


async def authenticate(
    context: RequestContext,
    parameters: Mapping[str, str],
    authorization: Sequence[bytes],
    *,
    generation: Generation,
    endpoint: str,
) -> AuthenticatedClient:
    """Authenticate the client by its assertion.

    Nothing is spent yet, but the request is counted (D47).

    `endpoint` is one of `rate_limits`, `address` the caller's. `authorization` are the request's Authorization headers:
    another method in addition to the assertion is refused. Raises InvalidClient, InvalidRequest, ServerError,
    TooManyRequests. Source: RFC 7523 §3, D5, D8, D27, D64
    """
    await context.provider.rate_limits.address(endpoint, context.address, context.now)
    if "client_assertion" in parameters and ("client_secret" in parameters or authorization):
        raise InvalidRequest(
            Reason.CLIENT_AUTHENTICATION_TWICE,
            "use client_assertion alone, without client_secret or an Authorization header",
        )
    candidate = _read(context, parameters, endpoint, generation)
    client = await context.provider.registry_cache.client(candidate.client_id, context.now)
    if client is None:
        raise _failed(context, Reason.CLIENT_UNKNOWN, candidate, "unknown or disabled client")
    _judge_again(context, parameters, client, candidate, generation, endpoint)
    if not client_assertion.may_name_its_audience(candidate, client, today=context.today):
        detail = "aud is the endpoint, which this client may not name today"
        raise _failed(context, Reason.ASSERTION_AUDIENCE_ENDPOINT, candidate, detail)
    try:
        keys = await context.provider.client_keys.current(client, now=context.now)
        try:
            assertion = client_assertion.verify(candidate, keys, now=context.now)
        except KeyNotFound:
            keys = await context.provider.client_keys.refetched(client, now=context.now)
            if client.jwks_uri and not keys.signing:
                cause = _no_signing_key(client.jwks_uri, keys)
                raise no_key_set(context, cause, Reason.CLIENT_SIGNING_KEY_MISSING) from None
            assertion = _verify_again(context, candidate, keys)
    except KeySetUnavailable as error:
        raise no_key_set(context, str(error)) from None
    with RequestOf(client.client_id):
        await context.provider.rate_limits.client(endpoint, client.client_id, context.address, context.now)
    return AuthenticatedClient(client=client, keys=keys, assertion=assertion)


def _read(context: RequestContext, parameters: Mapping[str, str], endpoint: str, generation: Generation) -> Candidate:
    issuer = context.provider.policy.base_url
    url = issuer + _PATHS[endpoint]
    return client_assertion.read(parameters, issuer=issuer, endpoint=url, generation=generation, now=context.now)


def _failed(context: RequestContext, reason: Reason, candidate: Candidate, detail: str) -> InvalidClient:
    policy = context.provider.policy
    return client_assertion.failed(
        reason, candidate, issuer=policy.base_url, developer_mode=policy.developer_mode, detail=detail
    )


def _judge_again(
    context: RequestContext,
    parameters: Mapping[str, str],
    client: Client,
    candidate: Candidate,
    generation: Generation,
    endpoint: str,
) -> None:
    """Verify the assertion again by the rules of the code's generation.

    A caller names the generation by the code it sends, so the milder rules of another one apply to its own clients
    only. Raises InvalidClient. Source: D8, decisions "No downgrade"
    """
    pushed = context.provider.policy.pushed
    if pushed is None or client_registration.serves(client, generation, context.today):
        return
    try:
        _read(context, parameters, endpoint, pushed)
    except InvalidClient as error:
        raise _failed(context, error.reason, candidate, error.description) from None


def _no_signing_key(url: str, keys: ClientKeySet) -> str:
    """The reason why no key fits, and what the client must change.

    Applies to fetched key sets: an inline set without a key would have been refused at registration. Source: D27
    """
    return f"the key set at {url} has no usable signing key: {'; '.join(keys.problems) or 'no key has use sig'}"


def _verify_again(context: RequestContext, candidate: Candidate, keys: ClientKeySet) -> Assertion:
    try:
        return client_assertion.verify(candidate, keys, now=context.now)
    except KeyNotFound:
        detail = "no registered key fits kid and alg, or none verifies it"
        raise _failed(context, Reason.ASSERTION_SIGNATURE, candidate, detail) from None


async def spend(context: RequestContext, unit: TransientUnit, assertion: Assertion) -> None:
    """Spend the assertion's jti.

    Raises InvalidClient if it was spent before (RFC 7523 §3, D8).
    """
    if (
        assertion.issued_at < context.provider.transient.reject_issued_before + CLOCK_AHEAD_SECONDS
    ):  # iat may lie ahead (D49)
        raise InvalidClient(
            Reason.ASSERTION_BEFORE_RESTART,
            "client_assertion: made before this provider's restart or just after it, or without iat to tell; make a new one, with iat",
        )
    if assertion.jti is None:
        return
    spent = namespaces.ASSERTION.entry(context.provider.policy.base_url, assertion.client_id, assertion.jti)
    if not await spent.add(unit, seconds=assertion.remember_seconds):
        await audit_replay(context, AuditAction.ASSERTION_REPLAY, assertion.client_id)
        raise InvalidClient(
            Reason.ASSERTION_REPLAYED,
            "client_assertion: its jti was used before; make a new assertion for each request",
        )


async def audit_replay(context: RequestContext, action: AuditAction, client_id: str) -> None:
    """Write the audit event of a replay.

    Before, the client has been authenticated or its access token verified. It is called inside the unit that detected
    the replay, so the event is stored together with what that unit spent. Raises StoreUnavailable. Source: DESIGN
    "Security", D7, D8, D18
    """
    event = context.event(ANONYMOUS, action, client_id=client_id, outcome="refused")
    event = msgspec.structs.replace(event, actor=f"client:{client_id}")
    await context.provider.registry.audit.write(event, now=context.now)
