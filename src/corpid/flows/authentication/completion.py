"""The end of a sign-in: one code or refusal per request (D15, D18, D50).

A pushed request gets exactly one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows import namespaces
from corpid.flows.authentication import interactions, own_pages
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication.sign_in import CompletedInteraction, Interaction, InteractionOutcome, with_outcome
from corpid.rules.directory.access import ANONYMOUS, Person
from corpid.rules.limits import REDIRECT_REPEATED_SECONDS
from corpid.rules.oauth import acr, authorization_request, client_registration, deprecated_usage
from corpid.rules.oauth.errors import (
    AccessDenied,
    InvalidRequest,
    InvalidRequestURI,
    OAuthError,
    list_values,
    reason_of,
    shorten_value,
    without_query,
)
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import Client, Grant, RequestingClient
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.authorization_request import AuthorizationRequest, AuthorizationResponse
    from corpid.stores.transient import TransientBatch

OF_SESSION: Final = "session"
"""the method of a sign-in without questions: single sign-on records how its session began, but no code's method"""


class OtherBrowser(Exception):
    """Another browser has passed the first factor for this request (D15)."""


class AlreadyCompleted(Exception):
    """Another page or tab completed this request before (D15)."""


async def find_client(context: RequestContext, request: AuthorizationRequest) -> Client:
    """Return the client of a request that may still be answered.

    Its redirect URI must still be registered. Raises InvalidRequest, which becomes a page. Source: D16, D50
    """
    client = await own_pages.requesting_client(context, request.client_id)
    if client is None:
        raise InvalidRequest(Reason.CLIENT_GONE, "this client is not known here, or has been disabled")
    if request.redirect_uri not in client.redirect_uris:
        requesting_client = RequestingClient(client=client, ui_locales=request.ui_locales)
        raise (
            InvalidRequest(
                Reason.REDIRECT_URI_NOT_REGISTERED, "the address to return to is no longer registered for this client"
            )
            .with_cause(
                received=without_query(request.redirect_uri),
                registered=list_values(map(without_query, client.redirect_uris)),
            )
            .with_client(requesting_client)
        )
    return client


async def require_allowed(context: RequestContext, client: Client, interaction: Interaction) -> None:
    """Check again that the sign-in may be completed.

    Raises AccessDenied. Source: D50
    """
    request = interaction.request
    generation = context.provider.policy.serving(request.generation)
    if generation is None or not client_registration.serves(client, generation, context.today):
        raise AccessDenied(Reason.GENERATION_WITHDRAWN, "this client may no longer use this interface").with_cause(
            expected=f"the generation {request.generation}",
            registered=client_registration.registered_generations(client),
        )
    if not authorization_request.are_allowed(client, request.scopes):
        raise AccessDenied(Reason.SCOPE_WITHDRAWN, "this client may no longer ask for these scopes").with_cause(
            received=shorten_value(" ".join(request.scopes)), registered=shorten_value(" ".join(client.scopes))
        )
    if not acr.is_met(request.acr, prefix=context.provider.policy.acr_prefix, level=interaction.level):
        raise AccessDenied(Reason.ASSURANCE_LEVEL, "the assurance level that was asked for was not reached")
    if await context.provider.registry_cache.acting(interaction.user_id, interaction.entity_id, context.now) is None:
        cause = await context.provider.registry_cache.find_obstacle(
            interaction.user_id, interaction.entity_id, context.now
        )
        raise AccessDenied(Reason.PERSON_MAY_NOT_ACT, "this person may no longer act for this entity", detail=cause)


async def completed_or_claimed(
    context: RequestContext, interaction: Interaction
) -> tuple[CompletedInteraction | None, bool]:
    """Return as `find_completion`, and whether another browser has claimed the request.

    The latter is False if the interaction has claimed it itself. Source: D15
    """
    if interaction.user_id and not interaction.session_id:
        return await find_completion(context, interaction), False
    claim, completion = interactions.claim_of(context, interaction), interactions.completion_of(context, interaction)
    value, owner = await namespaces.read_each(context.provider.transient, completion, claim, now=context.now)
    return _completed(value), owner not in (None, interaction.browser_id)


async def find_completion(context: RequestContext, interaction: Interaction) -> CompletedInteraction | None:
    """Return the completion of an interaction's request.

    The result is None if the request has not been answered yet. Source: D15
    """
    return _completed(
        await interactions.completion_of(context, interaction).read(context.provider.transient, now=context.now)
    )


def _completed(value: str | None) -> CompletedInteraction | None:
    if value is None:
        return None
    interaction_id, _, at = value.partition(" ")
    # During an upgrade, a process of the previous version may have written no time.
    return CompletedInteraction(interaction_id=interaction_id, at=int(at or 0))


def code_of(context: RequestContext, interaction: Interaction) -> str:
    """The code of a finished interaction: derived, never stored in clear (D15)."""
    prefix = GENERATIONS[interaction.request.generation].code_prefix
    return prefix + context.keys.mac("code", interaction.interaction_id)


async def complete_request(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> None:
    """Complete the request of an interaction; only one can.

    Raises OtherBrowser and AlreadyCompleted. Source: D15
    """
    if not await interactions.claim_request(context, batch, interaction):
        raise OtherBrowser
    if not await interactions.completion_of(context, interaction).add(batch, _winner(context, interaction)):
        raise AlreadyCompleted


def _winner(context: RequestContext, interaction: Interaction) -> str:
    return f"{interaction.interaction_id} {int(context.now)}"


async def reopen(context: RequestContext, batch: TransientBatch, interaction: Interaction) -> None:
    """Undo `complete_request` after a failure.

    It also works on an engine that does not roll back its batches. Source: D15
    """
    await interactions.completion_of(context, interaction).take(batch)


async def write_code(
    context: RequestContext, batch: TransientBatch, interaction: Interaction, owner: str | None
) -> str:
    """Complete a new interaction, and write its code; returns the code.

    All in one pipeline. `owner` is the browser that had claimed the request when it was loaded, if any. The completion
    decides: a browser that claims the request at the same moment finds it completed. Raises OtherBrowser and
    AlreadyCompleted. Source: D15, D18
    """
    if owner not in (None, interaction.browser_id):
        raise OtherBrowser
    code, entry, grant = _granted(context, interaction)
    completion, claim = interactions.completion_of(context, interaction), interactions.claim_of(context, interaction)
    # The claim before the completion, as `complete_request` writes them, else both wait for each other's rows in
    # PostgreSQL.
    *_, is_first = await namespaces.pipeline(
        batch,
        entry.adding(grant),
        claim.adding(interaction.browser_id),
        completion.adding(_winner(context, interaction)),
    )
    if not is_first:  # nobody knows the code yet
        _, claimed_by = await namespaces.pipeline(batch, entry.taking(), claim.getting())
        raise AlreadyCompleted if claimed_by in (None, interaction.browser_id) else OtherBrowser
    await _record(context, interaction, code)
    return code


async def _record(context: RequestContext, interaction: Interaction, code: str) -> None:
    context.provider.issued.note_code(code, interaction.request, context.now)
    entry = event(context, interaction, AuditAction.SIGN_IN_COMPLETE)
    await context.provider.registry.audit.write(entry, now=context.now)


def _granted(context: RequestContext, interaction: Interaction) -> tuple[str, Entry[Grant], Grant]:
    """Return the code of an interaction, its entry, and what it grants."""
    request = interaction.request
    code, deprecated_uses = code_of(context, interaction), request.deprecated_uses
    successor = GENERATIONS[request.generation].successor
    if successor is not None:
        deprecated_uses += deprecated_usage.of_request(request, GENERATIONS[successor])
    grant = Grant(
        client_id=request.client_id,
        generation=request.generation,
        redirect_uri=request.redirect_uri,
        scopes=request.scopes,
        nonce=request.nonce,
        jkt=request.jkt,
        user_id=interaction.user_id,
        entity_id=interaction.entity_id,
        auth_time=interaction.auth_time,
        amr=interaction.amr,
        acr=acr.urn(context.provider.policy.acr_prefix, interaction.level),
        deprecated_uses=deprecated_uses,
        sid=_sid(context, interaction),
    )
    entry = namespaces.code_entry(
        context.provider.policy.base_url, request.generation, request.client_id, code, request.code_challenge
    )
    return code, entry, grant


def _sid(context: RequestContext, interaction: Interaction) -> str:
    """Return the session's name for this client alone.

    It does not reveal the session's key, and two clients cannot find out that they share a session. The result is empty
    if no session outlives the sign-in.
    """
    request, session = interaction.request, interaction.session_id or interaction.made_session_id
    if not (GENERATIONS[request.generation].sid_in_id_token and context.provider.policy.session_seconds and session):
        return ""
    return context.keys.mac("sid", request.client_id, session)


def event(context: RequestContext, interaction: Interaction, action: AuditAction, *, refused: str = "") -> AuditEvent:
    """Return the audit entry of the end of a sign-in."""
    request = interaction.request
    return context.event(
        Person(user_id=interaction.user_id) if interaction.user_id else ANONYMOUS,
        action,
        subject=interaction.interaction_id[:8],
        client_id=request.client_id,
        entity_id=interaction.entity_id,
        outcome="refused" if refused else "ok",
        amr=" ".join(interaction.amr),
        way=OF_SESSION if interaction.session_id else interaction.way.value if interaction.way is not None else "",
        context_type=request.context_type or "",
        context_message=request.context_message or "",
        reason=refused,
    )


async def conclude_sign_in(
    context: RequestContext, client: Client, before: Interaction, after: Interaction
) -> Interaction:
    """Finish a sign-in in which nothing remains to be asked.

    The result is a code, or a refusal if the sign-in is no longer allowed. `before` is the sign-in as it was loaded,
    `after` the result of this step so far. Source: Spec "Completion", D50
    """
    try:
        await require_allowed(context, client, after)
    except AccessDenied as error:
        return _refused(context, before, after, error)
    return with_outcome(before, after, InteractionOutcome.CODE, now=context.now)


def _refused(context: RequestContext, before: Interaction, after: Interaction, error: OAuthError) -> Interaction:
    return with_outcome(
        before,
        after,
        InteractionOutcome.REFUSED,
        now=context.now,
        description=error.explained_description if context.provider.policy.developer_mode else error.description,
        reason=error.reason.code,
    )


async def write_outcome(context: RequestContext, batch: TransientBatch, finished: Interaction) -> None:
    """Write the code or the audit entry of a completed request.

    The request must have been won; the interaction itself is written afterwards. Source: D15, D18, SECURITY.md
    """
    if finished.outcome is InteractionOutcome.CODE:
        code, stored, grant = _granted(context, finished)
        await stored.put(batch, grant)
        await _record(context, finished, code)
        return
    refused = finished.error_description if finished.outcome is InteractionOutcome.REFUSED else ""
    action = AuditAction.SIGN_IN_REFUSE if refused else AuditAction.SIGN_IN_COMPLETE
    entry = event(context, finished, action, refused=refused)
    await context.provider.registry.audit.write(entry, now=context.now)


async def refuse(context: RequestContext, interaction: Interaction, error: OAuthError) -> Interaction:
    """Finish an interaction with an error for the client.

    It was cancelled, refused or not allowed. Before the first factor the request stays open for other browsers, since
    anybody may have its URL. Raises StaleStep, OtherBrowser, AlreadyCompleted. Source: D15, D17
    """
    finished = _refused(context, interaction, interaction, error)
    async with context.provider.transient.batch(context.now) as batch:
        await interactions.claim_step(context, batch, interaction)
        if interaction.user_id or await interactions.is_claimed(context, batch, interaction):
            await complete_request(context, batch, interaction)
        await interactions.save(context, batch, finished)
        await write_outcome(context, batch, finished)
    return finished


async def leave(context: RequestContext, interaction: Interaction) -> AuthorizationResponse:
    """Return the browser's redirect from a finished interaction.

    It is the same for 60 s, then D16's answer. Raises InvalidRequest if the client or its redirect URI no longer
    exists. Source: D15, D16
    """
    request = interaction.request
    await find_client(context, request)
    if own_pages.purpose(request) != "sign_in":
        cancelled = interaction.outcome is InteractionOutcome.REFUSED
        return own_pages.way_on(context, request, cancelled=cancelled, back=interaction.back)
    address = authorization_request.address_response(request, iss=context.provider.policy.iss_of_callback)
    repeated = context.now < interaction.finished_at + REDIRECT_REPEATED_SECONDS
    if interaction.outcome is InteractionOutcome.CODE and repeated:
        return authorization_request.create_code_response(address, code=code_of(context, interaction))
    # A request without a request_uri cannot have an invalid one.
    refusal: type[OAuthError] = InvalidRequestURI if GENERATIONS[request.generation].pushed else AccessDenied
    error = refusal(Reason.SIGN_IN_ENDED, "this sign-in has ended or has expired")
    if interaction.outcome is InteractionOutcome.REFUSED and repeated:
        error = AccessDenied(reason_of(interaction.error_reason), interaction.error_description)
    return authorization_request.create_error_response(
        address, error, reference=context.request_id, catalogue=context.provider.policy.error_catalogue
    )
