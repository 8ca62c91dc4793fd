"""Client authentication, for PAR and the token endpoint.

It verifies, and spends nothing: the assertion is spent with the proof, by `dpop.spend_proof_and_assertion`. Source: D8,
D9
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces, rate_limits
from corpid.flows.oauth.client_clocks import UNKNOWN, ClockSkew
from corpid.flows.oauth.client_keys import no_key_set
from corpid.jose.keys import ClientKeySet
from corpid.rules.audit import AuditAction
from corpid.rules.directory.access import ANONYMOUS
from corpid.rules.failures import KeySetUnavailable
from corpid.rules.oauth import client_assertion, client_registration
from corpid.rules.oauth.client_assertion import Assertion, Candidate, KeyNotFound
from corpid.rules.oauth.discovery import PAR_PATH, TOKEN_PATH
from corpid.rules.oauth.errors import (
    Explanation,
    InvalidClient,
    RequestOf,
    TemporarilyUnavailable,
    clip_text,
    list_values,
)
from corpid.rules.oauth.records import FIRST_ISSUER, Client, HasKeys
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.outbound.client_keys import ClientKeys
    from corpid.rules.oauth.generations import Generation

_PATHS: Final[Mapping[str, str]] = MappingProxyType({rate_limits.PAR: PAR_PATH, rate_limits.TOKEN: TOKEN_PATH})


class AuthenticatedClient(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated client; its assertion is still to be spent."""

    client: Client
    keys: ClientKeySet
    assertion: Assertion


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

    `endpoint` is one of `rate_limits`, `authorization` are the request's Authorization headers. Raises InvalidClient,
    InvalidRequest, ServerError, TooManyRequests. Source: RFC 7523 §3, D5, D8, D27, D64
    """
    policy = context.provider.policy
    issuer, url = policy.base_url, policy.base_url + _PATHS[endpoint]
    await context.provider.rate_limits.address(endpoint, context.address, context.now, context.counts)
    candidate = client_assertion.read(
        parameters, authorization, issuer=issuer, endpoint=url, rules=generation, now=context.now
    )
    known = await context.provider.registry_cache.known_client(candidate.client_id, context.now)
    client = context.provider.registry_cache.admit_client(known)
    if client is None:
        reason, explanation = not_admitted(known, candidate.client_id, policy.issuer_id)
        raise client_assertion.refuse_assertion(reason, candidate, issuer=issuer, explanation=explanation)
    if policy.pushed is not None and not client_registration.serves(client, generation, context.today):
        # A caller names the generation by the code it sends, so the milder rules of another one apply to its own
        # clients only (D8, Spec "No downgrade").
        try:
            client_assertion.read(parameters, issuer=issuer, endpoint=url, rules=policy.pushed, now=context.now)
        except InvalidClient as error:
            explanation = Explanation(cause=error.exact)
            raise client_assertion.refuse_assertion(
                error.reason, candidate, issuer=issuer, explanation=explanation
            ) from None
    if not client_assertion.may_name_its_audience(candidate, client, today=context.today):
        explanation = Explanation(
            cause="aud is the endpoint, which this client may not name today",
            received=url,
            expected=issuer,
            registered=f"endpoint_audience_until {client.endpoint_audience_until or 'none'}",
        )
        raise client_assertion.refuse_assertion(
            Reason.ASSERTION_AUDIENCE_ENDPOINT, candidate, issuer=issuer, explanation=explanation
        )
    keys, assertion = await verify_assertion(
        context, client, candidate, source=context.provider.client_keys, issuer=issuer, endpoint=endpoint
    )
    return AuthenticatedClient(client=client, keys=keys, assertion=assertion)


async def verify_assertion(
    context: RequestContext, client: HasKeys, candidate: Candidate, *, source: ClientKeys, issuer: str, endpoint: str
) -> tuple[ClientKeySet, Assertion]:
    """Verify a client's assertion by its keys, and count the request.

    `source` has the keys of this kind of client, `issuer` is that of the authorization server, `endpoint` one of
    `rate_limits`. Raises InvalidClient, ServerError, TooManyRequests, StoreUnavailable. Source: RFC 7523 §3, D27, D47
    """
    try:
        keys = await source.current(client, now=context.now)
        try:
            assertion = client_assertion.verify(candidate, keys, now=context.now)
        except KeyNotFound:
            keys = await source.refetch(client, now=context.now)
            if client.jwks_uri and not keys.signing:
                # An inline set without a key would have been refused at registration.
                why = "; ".join(keys.problems) or "no key has use sig"
                cause = f"the key set at {client.jwks_uri} has no usable signing key: {why}"
                raise no_key_set(cause, Reason.CLIENT_SIGNING_KEY_MISSING) from None
            try:
                assertion = client_assertion.verify(candidate, keys, now=context.now)
            except KeyNotFound:
                reason, explanation = client_assertion.unverified_reason(candidate, keys)
                raise client_assertion.refuse_assertion(
                    reason, candidate, issuer=issuer, explanation=explanation
                ) from None
    except KeySetUnavailable as error:
        raise no_key_set(str(error)) from None
    with RequestOf(client.client_id):
        await context.provider.rate_limits.client(
            endpoint, client.client_id, context.address, context.now, context.counts
        )
    return keys, assertion


def not_admitted(known: Client | None, client_id: str, issuer_id: str) -> tuple[Reason, Explanation]:
    """The reason why a client is not served at this issuer.

    `known` is its record, None if there is none. Source: D28, D62
    """
    received = f"client_id {clip_text(client_id)}"
    if known is None:
        return Reason.CLIENT_UNKNOWN, Explanation(cause="no client has this client_id", received=received)
    if not known.enabled:
        return Reason.CLIENT_DISABLED, Explanation(cause="the client is disabled", received=received)
    return Reason.CLIENT_OF_ANOTHER_ISSUER, Explanation(
        cause=f"the client is not registered at the issuer {issuer_id}",
        received=received,
        registered=f"issuers {list_values(known.issuers or (FIRST_ISSUER,))}",
    )


def refuse_spent_before_loss(context: RequestContext, assertion: Assertion, skew: ClockSkew) -> None:
    """Refuse an assertion that may have been spent before data was lost.

    It comes before the proof, inside the batch: a proof waits less, and Retry-After is that of both. `skew` is that of
    the client, from `ClockSkews.record_skew`. Raises TemporarilyUnavailable. Source: D67
    """
    loss = context.provider.transient.loss
    if loss.may_have_been_spent(assertion.issued_at):
        of_this = skew if skew.loss == loss.name else UNKNOWN
        if wait := max(of_this.wait, loss.assertion_wait(assertion.issued_at, of_this.seconds)):
            raise data_lost(max(wait, loss.completion_wait(context.now)))


def unspent(context: RequestContext, assertion: Assertion) -> Entry[bytes] | None:
    """The entry that spends an assertion's jti; None if it has none. Source: RFC 7523 §3, D8"""
    if assertion.jti is None:
        return None
    return namespaces.ASSERTION.entry(context.provider.policy.base_url, assertion.client_id, assertion.jti)


async def refuse_replay(context: RequestContext, assertion: Assertion) -> InvalidClient:
    """The refusal of an assertion that was spent before, which is audited.

    It is called inside the batch that detected it. Raises StoreUnavailable. Source: RFC 7523 §3, D8
    """
    await audit_replay(context, AuditAction.ASSERTION_REPLAY, assertion.client_id, Reason.ASSERTION_REPLAYED)
    return InvalidClient(
        Reason.ASSERTION_REPLAYED,
        "client_assertion: its jti was already used; create a new assertion for each request",
    )


def data_lost(seconds: int) -> TemporarilyUnavailable:
    """The refusal of what may have been spent before a loss.

    It passes when it is made again in `seconds`. Source: D67
    """
    return TemporarilyUnavailable(
        Reason.DATA_LOST,
        f"this provider lost its short-lived data a moment ago: repeat the request in {seconds} s, with a new "
        "client_assertion and DPoP proof",
        retry_after=seconds,
    )


async def audit_replay(context: RequestContext, action: AuditAction, client_id: str, reason: Reason) -> None:
    """Write the audit event of a replay.

    `reason` is that of the refusal. Before, the client has been authenticated or its access token verified. It is
    called inside the batch that detected the replay, so the event is stored together with what that batch spent. Raises
    StoreUnavailable. Source: SECURITY.md, D7, D8, D18
    """
    event = context.event(ANONYMOUS, action, client_id=client_id, outcome="refused", reason=reason.code)
    event = msgspec.structs.replace(event, actor=f"client:{client_id}")
    await context.provider.registry.audit.write(event, now=context.now)
