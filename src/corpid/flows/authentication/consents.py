"""Consent during a sign-in: asked for, remembered, recorded (D29)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication import sign_in
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person
from corpid.rules.oauth import consent
from corpid.rules.oauth.consent import Consent

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.sign_in import Interaction
    from corpid.rules.oauth.records import AuthorizationRequest, Client


def is_asked(client: Client, request: AuthorizationRequest) -> bool:
    """Return whether a sign-in needs consent, given now or before (D29, D40)."""
    return consent.needs_consent(client, request.scopes) or sign_in.requests_consent(request)


def is_remembered_here(context: RequestContext, client: Client, request: AuthorizationRequest) -> bool:
    """Return whether consent to this request is remembered.

    Consent that only the client asked for would not be asked for again in any case. Source: D29, D40
    """
    return bool(context.provider.policy.consent_days) and consent.needs_consent(client, request.scopes)


def spares_page(context: RequestContext, client: Client, request: AuthorizationRequest) -> bool:
    """Return whether remembered consent can spare the page.

    It cannot if the client requests the page. Source: D29, D40
    """
    return is_remembered_here(context, client, request) and not sign_in.requests_consent(request)


async def is_given(
    context: RequestContext, client: Client, request: AuthorizationRequest, *, user_id: str, entity_id: str
) -> bool:
    """Return whether remembered consent to this request spares the person the page (D29)."""
    if not entity_id or not spares_page(context, client, request):
        return False
    authorise(Person(user_id=user_id), "read", Object(kind="consent", user_id=user_id))
    remembered = await context.provider.registry.consents.find_remembered(
        user_id, entity_id, client.client_id, context.provider.policy.issuer_id, now=context.now
    )
    return consent.is_covered(request, (each.scopes for each in remembered))


def expiry(context: RequestContext, client: Client, request: AuthorizationRequest) -> int | None:
    """Return the end of a consent that is given now.

    In epoch seconds; None if it is not remembered. Source: D29
    """
    if not is_remembered_here(context, client, request):
        return None
    return consent.expiry(context.now, context.provider.policy.consent_days)


async def give(context: RequestContext, client: Client, interaction: Interaction) -> None:
    """Record the consent given in a sign-in.

    It is remembered if the policy says so, and if membership and client still exist. Source: D29
    """
    person, request = Person(user_id=interaction.user_id), interaction.request
    authorise(person, "write", Object(kind="consent", user_id=interaction.user_id))
    scopes, ends = consent.shared_scopes(request), expiry(context, client, request)
    event = context.event(
        person,
        AuditAction.CONSENT_GIVE,
        subject=client.client_id,
        client_id=client.client_id,
        entity_id=interaction.entity_id,
        scopes=" ".join(scopes),
        expires_at="" if ends is None else str(ends),
    )
    if ends is None:
        await context.provider.registry.audit.write(event, now=context.now)
        return
    given = Consent(
        user_id=interaction.user_id,
        entity_id=interaction.entity_id,
        client_id=client.client_id,
        issuer_id=context.provider.policy.issuer_id,
        scopes=scopes,
        given_at=int(context.now),
        expires_at=ends,
    )
    await context.provider.registry.consents.give(given, event)
