"""DPoP proofs, for PAR, token endpoint and resources.

`verify_proof` spends nothing; the functions below it spend a proof, alone or with an assertion. Source: RFC 9449, D6,
D7
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from corpid.flows import namespaces
from corpid.flows.oauth import client_authentication
from corpid.rules.audit import AuditAction
from corpid.rules.oauth import dpop
from corpid.rules.oauth.errors import InvalidDPoPProof, InvalidRequest, UseDPoPNonce, abbreviate_hash
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.namespaces import Entry, EntryVerb
    from corpid.flows.oauth.client_clocks import ClockSkew
    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.client_assertion import Assertion
    from corpid.rules.oauth.dpop import Proof, ProofTarget
    from corpid.rules.oauth.generations import AuthenticationRules, Generation
    from corpid.stores.transient import TransientBatch

T = TypeVar("T")


def verify_proof(
    context: RequestContext,
    headers: Sequence[bytes],
    target: ProofTarget,
    *,
    rules: AuthenticationRules,
    access_token: str | None = None,
) -> Proof | None:
    """Verify the request's DPoP header.

    None if it has none. Nothing is spent yet.

    Raises InvalidDPoPProof, or UseDPoPNonce if server nonces are on. By rules whose tokens are bound to no
    key, the header is not looked at. Source: RFC 9449 §4.3, §8
    """
    text = dpop.header(headers) if rules.sender_constrained else None
    if text is None:
        return None
    proof = dpop.verify(text, target, algorithms=rules.proof_algorithms, now=context.now, access_token=access_token)
    if context.provider.policy.dpop_nonces:
        _require_nonce(context, proof)
    return proof


def require_proof(
    context: RequestContext,
    headers: Sequence[bytes],
    target: ProofTarget,
    *,
    rules: AuthenticationRules,
    access_token: str | None = None,
) -> Proof:
    """As `verify_proof`, for a request that must have a proof.

    Raises InvalidRequest if it has none, and as `verify_proof`. Source: RFC 9449 §4.3, §8
    """
    proof = verify_proof(context, headers, target, rules=rules, access_token=access_token)
    if proof is None:
        raise InvalidRequest(Reason.PROOF_MISSING, "a DPoP header is required")
    return proof


def _require_nonce(context: RequestContext, proof: Proof) -> None:
    """Require a nonce that was made since the last data loss.

    None is made before every process has noticed the loss: one that has not would spend the proof where nobody looks
    later.
    """
    loss = context.provider.transient.loss
    if wait := loss.completion_wait(context.now):
        raise client_authentication.data_lost(wait)
    if not context.keys.is_dpop_nonce(proof.nonce, context.now, loss=loss.name):
        raise UseDPoPNonce(
            Reason.PROOF_NONCE,
            "the DPoP proof must carry the nonce of the DPoP-Nonce header",
            nonce=context.keys.dpop_nonce(context.now, loss=loss.name),
        )


def bound_key(proof: Proof | None, dpop_jkt: str | None, *, generation: Generation) -> str | None:
    """The key thumbprint that a code will be bound to.

    It comes from the proof and dpop_jkt. Raises InvalidRequest. Source: RFC 9449 §10, D6
    """
    if dpop_jkt is not None:
        dpop.validate_jkt(dpop_jkt)
    if proof is not None and dpop_jkt is not None and dpop_jkt != proof.jkt:
        raise InvalidRequest(
            Reason.JKT_OF_ANOTHER_KEY, "dpop_jkt is not the thumbprint of the DPoP proof's key"
        ).with_cause(received=abbreviate_hash(dpop_jkt), expected=abbreviate_hash(proof.jkt))
    if proof is None and dpop_jkt is None and generation.key_binding_required:
        raise InvalidRequest(Reason.PROOF_MISSING, "a DPoP header or the parameter dpop_jkt is required")
    return proof.jkt if proof is not None else dpop_jkt


async def spend(context: RequestContext, batch: TransientBatch, proof: Proof, *, client_id: str) -> None:
    """Spend the jti of a client's proof.

    Raises InvalidDPoPProof if it was spent before, UseDPoPNonce or TemporarilyUnavailable if it may have been spent
    before data was lost. Source: RFC 9449 §11.1, D7, D67
    """
    if not await _unspent(context, proof).add(batch, seconds=proof.remember_seconds):
        raise await _replayed(context, client_id)


async def spend_proof_and_assertion(
    context: RequestContext,
    batch: TransientBatch,
    proof: Proof | None,
    assertion: Assertion,
    skew: ClockSkew,
    *further: EntryVerb[bool],
) -> None:
    """Spend a client's proof, if any, and its assertion.

    Both are spent in one pipeline, together with further verbs. A replayed proof leaves the assertion unspent: it is
    given back then, which only the request that has just spent it does. The further verbs are carried out also if proof
    or assertion was replayed; nothing is, if either is refused before. `skew` is that of the client, from
    `ClockSkews.record_skew`. Raises as `spend`, and InvalidClient for a replayed assertion. Source: RFC 9449 §11.1,
    RFC 7523 §3, Spec "The order of a request", D67
    """
    client_authentication.refuse_spent_before_loss(context, assertion, skew)
    verbs, spent = [*further], client_authentication.unspent(context, assertion)
    if proof is not None:
        verbs.append(_unspent(context, proof).adding(seconds=proof.remember_seconds))
    if spent is not None:
        verbs.append(spent.adding(seconds=assertion.remember_seconds))
    if not verbs:
        return
    results = [*await namespaces.pipeline(batch, *verbs)]
    is_new_assertion = results.pop() if spent is not None else True
    is_new_proof = results.pop() if proof is not None else True
    if not is_new_proof:
        if spent is not None and is_new_assertion:
            await spent.take(batch)
        raise await _replayed(context, assertion.client_id)
    if not is_new_assertion:
        raise await client_authentication.refuse_replay(context, assertion)


async def spend_with(
    context: RequestContext, batch: TransientBatch, proof: Proof, verb: EntryVerb[T], *, client_id: str
) -> T:
    """As `spend`, in one pipeline with another verb.

    Returns the result of that verb. Raises as `spend`. Source: RFC 9449 §11.1, D7, D67
    """
    spending = _unspent(context, proof).adding(seconds=proof.remember_seconds)
    is_new, result = await namespaces.pipeline(batch, spending, verb)
    if not is_new:
        raise await _replayed(context, client_id)
    return result


def _unspent(context: RequestContext, proof: Proof) -> Entry[bytes]:
    if context.provider.transient.loss.may_have_been_spent(proof.issued_at):
        _require_nonce(context, proof)
    return namespaces.PROOF.entry(context.provider.policy.base_url, proof.jkt, proof.jti)


async def _replayed(context: RequestContext, client_id: str) -> InvalidDPoPProof:
    await client_authentication.audit_replay(context, AuditAction.PROOF_REPLAY, client_id, Reason.PROOF_REPLAYED)
    return InvalidDPoPProof(
        Reason.PROOF_REPLAYED, "DPoP proof: its jti was already used; create a new proof for each request"
    )
