"""The end of a sign-in: exactly one code, or one refusal, for a pushed request (D15, D18, D50)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.authentication import account_client, interactions
from corpid.flows.authentication.interactions import Interaction, Outcome
from corpid.rules.directory.access import whoever
from corpid.rules.limits import REDIRECT_REPEATED_SECONDS
from corpid.rules.oauth import acr, authorization_response, deprecated_usage, scopes
from corpid.rules.oauth.errors import AccessDenied, InvalidRequest, InvalidRequestURI
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import Grant, RequestingClient

if TYPE_CHECKING:
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import AuditEvent, TransientUnit
    from corpid.rules.oauth.authorization_response import AuthorizationResponse
    from corpid.rules.oauth.errors import OAuthError
    from corpid.rules.oauth.records import AuthorizationRequest, Client

OF_SESSION: Final = "session"
"""the way of a sign-in in which nothing was asked for: single sign-on keeps how its session began, not with which code"""


class OtherBrowser(Exception):
    """Another browser has passed the first factor for this request (D15)."""


class AlreadyCompleted(Exception):
    """This request was completed before, by another page or tab (D15)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """Which interaction answered a request, and when (epoch seconds)."""

    interaction_id: str
    at: int

    def given_up(self, now: float) -> bool:
        """Whether an answer that is not written yet never will be: nobody could take it any more (D15)."""
        return now >= self.at + REDIRECT_REPEATED_SECONDS


async def registered(provider: Provider, request: AuthorizationRequest, *, now: float) -> Client:
    """The client of a request that may still be answered at its redirect URI.

    Raises InvalidRequest, which becomes a page. Source: D16, D50
    """
    client = await account_client.requesting_client(provider, request.client_id, now=now)
    if client is None:
        raise InvalidRequest("this client is not known here, or has been disabled")
    if request.redirect_uri not in client.redirect_uris:
        asker = RequestingClient(client=client, ui_locales=request.ui_locales)
        raise InvalidRequest("the address to return to is no longer registered for this client").of(asker)
    return client


async def still_allowed(provider: Provider, client: Client, interaction: Interaction, now: float) -> None:
    """What a completion looks at once more. Raises AccessDenied. Source: D50"""
    request = interaction.request
    generation = provider.policy.serving(request.generation)
    if generation is None or not provider.policy.serves(client, generation, now):
        raise AccessDenied("this client may no longer use this interface")
    if not scopes.covered(client, request.scopes):
        raise AccessDenied("this client may no longer ask for these scopes")
    if not acr.met(request.acr, prefix=provider.policy.acr_prefix, level=interaction.level):
        raise AccessDenied("the assurance level that was asked for was not reached")
    if await provider.registry_cache.acting(interaction.user_id, interaction.entity_id, now) is None:
        raise AccessDenied("this person may no longer act for this entity")


async def claimed_elsewhere(provider: Provider, interaction: Interaction, *, now: float) -> bool:
    """Whether another browser has claimed the request of an interaction that has not claimed it itself (D15)."""
    if interaction.user_id and not interaction.session_id:
        return False
    owner = await provider.transient.get(namespaces.CLAIM.name, interactions.claim_key(provider, interaction), now=now)
    return owner not in (None, interaction.browser_id.encode())


async def completed(provider: Provider, interaction: Interaction, *, now: float) -> Completed | None:
    """What has answered the request of an interaction, None while nothing has (D15)."""
    key = interactions.request_key(provider, namespaces.COMPLETED, interaction.request.client_id, interaction.reference)
    value = await provider.transient.get(namespaces.COMPLETED.name, key, now=now)
    if value is None:
        return None
    interaction_id, _, at = value.decode().partition(" ")
    # While an upgrade goes on, a process of before may have written no time.
    return Completed(interaction_id=interaction_id, at=int(at or 0))


def code_of(provider: Provider, interaction: Interaction) -> str:
    """The code of a finished interaction: derived, never stored in clear (D15)."""
    prefix = GENERATIONS[interaction.request.generation].code_prefix
    return prefix + provider.signing_keys.mac("code", interaction.interaction_id)


async def _win(provider: Provider, unit: TransientUnit, caller: Caller, interaction: Interaction) -> None:
    request = interaction.request
    if not await interactions.claim_request(provider, unit, interaction):
        raise OtherBrowser
    key = interactions.request_key(provider, namespaces.COMPLETED, request.client_id, interaction.reference)
    winner = f"{interaction.interaction_id} {int(caller.now)}".encode()
    if not await unit.add(namespaces.COMPLETED.name, key, namespaces.COMPLETED.seconds, winner):
        raise AlreadyCompleted


async def write_code(provider: Provider, unit: TransientUnit, caller: Caller, interaction: Interaction) -> str:
    """Complete the request and write its code; returns the code.

    Raises OtherBrowser and AlreadyCompleted. `signing_keys.ring` was awaited before. Source: D15, D18
    """
    await _win(provider, unit, caller, interaction)
    request = interaction.request
    code = code_of(provider, interaction)
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
        acr=acr.urn(provider.policy.acr_prefix, interaction.level),
        habits=_habits(request),
        sid=_sid(provider, interaction),
    )
    entry = namespaces.code_entry(
        provider.policy.base_url, request.generation, request.client_id, code, request.code_challenge
    )
    await entry.put(unit, grant)
    await provider.registry.audit.write(event(caller, interaction, "sign_in.complete"), now=caller.now)
    return code


def _sid(provider: Provider, interaction: Interaction) -> str:
    """The session's name for this client alone: neither tells the session's key, nor do two clients know it is one.

    Empty if there is none that outlives the sign-in. Source: OpenID Connect Front-Channel Logout §3, Spec 2.8
    """
    request, session = interaction.request, interaction.session_id or interaction.made_session_id
    if not (GENERATIONS[request.generation].session_told and provider.policy.session_seconds and session):
        return ""
    return provider.signing_keys.mac("sid", request.client_id, session)


def _habits(request: AuthorizationRequest) -> tuple[str, ...]:
    successor = GENERATIONS[request.generation].successor
    return request.habits + (() if successor is None else deprecated_usage.of_request(request, GENERATIONS[successor]))


def event(caller: Caller, interaction: Interaction, action: str, *, refused: str = "") -> AuditEvent:
    """What the audit is told of the end of a sign-in. Source: DESIGN, Security"""
    request = interaction.request
    return caller.event(
        whoever(interaction.user_id),
        action,
        subject=interaction.interaction_id[:8],
        client_id=request.client_id,
        entity_id=interaction.entity_id,
        outcome="refused" if refused else "ok",
        amr=" ".join(interaction.amr),
        way=_way(interaction),
        context_type=request.context_type or "",
        context_message=request.context_message or "",
        reason=refused,
    )


def _way(interaction: Interaction) -> str:
    if interaction.session_id:
        return OF_SESSION
    return interaction.way.value if interaction.way is not None else ""


async def complete(provider: Provider, caller: Caller, interaction: Interaction) -> Interaction:
    """Finish an interaction in which every factor and choice was made; returns it as it is now.

    Raises StaleStep, OtherBrowser, AlreadyCompleted, and InvalidRequest where client or redirect URI are gone.
    Source: decisions "completion", D15, D50
    """
    client = await registered(provider, interaction.request, now=caller.now)
    try:
        await still_allowed(provider, client, interaction, caller.now)
    except AccessDenied as error:
        return await refuse(provider, caller, interaction, error)
    await provider.signing_keys.ring(caller.now)
    finished = msgspec.structs.replace(
        interaction, serial=interaction.serial + 1, outcome=Outcome.CODE, finished_at=caller.now
    )
    async with provider.transient.unit(caller.now) as unit:
        await interactions.claim_step(provider, unit, interaction)
        await write_code(provider, unit, caller, interaction)
        await interactions.save(provider, unit, finished)
    return finished


async def refuse(provider: Provider, caller: Caller, interaction: Interaction, error: OAuthError) -> Interaction:
    """Finish an interaction with an error for the client: cancelled, refused, not allowed.

    Before the first factor the request stays open for other browsers: anybody may have its URL. Raises StaleStep,
    OtherBrowser, AlreadyCompleted. Source: D15, D17
    """
    finished = msgspec.structs.replace(
        interaction,
        serial=interaction.serial + 1,
        outcome=Outcome.REFUSED,
        finished_at=caller.now,
        error_description=error.description,
    )
    async with provider.transient.unit(caller.now) as unit:
        await interactions.claim_step(provider, unit, interaction)
        if interaction.user_id or await interactions.is_claimed(provider, unit, interaction):
            await _win(provider, unit, caller, interaction)
        await interactions.save(provider, unit, finished)
        refusal = event(caller, interaction, "sign_in.refuse", refused=error.description)
        await provider.registry.audit.write(refusal, now=caller.now)
    return finished


def _ended(request: AuthorizationRequest) -> OAuthError:
    """A request without a request_uri cannot have a wrong one (D16, D17)."""
    sentence = "this sign-in has ended or has expired"
    return InvalidRequestURI(sentence) if GENERATIONS[request.generation].pushed else AccessDenied(sentence)


async def leave(provider: Provider, caller: Caller, interaction: Interaction) -> AuthorizationResponse:
    """Where a finished interaction sends the browser; the same redirect for 60 s, then D16's answer.

    Raises InvalidRequest where client or redirect URI are gone. Source: D15, D16
    """
    request = interaction.request
    await registered(provider, request, now=caller.now)
    if account_client.purpose(request) == "account":
        return account_client.way_on(provider, request, cancelled=interaction.outcome is Outcome.REFUSED)
    address = authorization_response.of_request(request, iss=provider.policy.iss_of_callback)
    repeated = caller.now < interaction.finished_at + REDIRECT_REPEATED_SECONDS
    if interaction.outcome is Outcome.CODE and repeated:
        await provider.signing_keys.ring(caller.now)
        return authorization_response.success(address, code=code_of(provider, interaction))
    error = _ended(request)
    if interaction.outcome is Outcome.REFUSED and repeated:
        error = AccessDenied(interaction.error_description)
    return authorization_response.failure(address, error, reference=caller.request_id)
