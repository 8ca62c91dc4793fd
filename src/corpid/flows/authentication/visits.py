"""Who may see an interaction's pages: the browser that it belongs to (D15, D34)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from corpid.flows.authentication import browsers, completion, interactions, second_factor_methods
from corpid.flows.authentication.sign_in import Visit
from corpid.rules.authentication import single_sign_on

if TYPE_CHECKING:
    from corpid.flows.authentication.interactions import Interaction
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Credentials


class NoInteraction(Exception):
    """There is no such sign-in, or it ended long ago."""


class ForeignBrowser(Exception):
    """The browser is not the one that began this sign-in, or keeps no cookies."""

    def __init__(self, interaction: Interaction) -> None:
        super().__init__("another browser")
        self.interaction = interaction


async def visit(context: RequestContext, interaction_id: str, cookie: str | None) -> Visit:
    """A browser at its own interaction.

    Raises NoInteraction, ForeignBrowser, and InvalidRequest where client or redirect URI are gone. Source: D15, D34
    """
    interaction = await interactions.load(context, interaction_id)
    if interaction is None:
        raise NoInteraction
    browser = await browsers.recognise(context, cookie)
    if browser is None or cookie is None or browser.browser_id != interaction.browser_id:
        raise ForeignBrowser(interaction)
    client = await completion.registered(context, interaction.request)
    found = Visit(interaction=interaction, browser=browser, cookie=cookie, client=client)
    return await _as_it_still_holds(context, found)


async def _as_it_still_holds(context: RequestContext, visit: Visit) -> Visit:
    """With nobody signed in where the session or the sign-in has ended or grown too old, or a factor changed (D30, D40, D50)."""
    interaction = visit.interaction
    if not interaction.user_id or interaction.outcome is not None:
        return visit
    if interaction.session_id:
        session = await context.provider.registry.sessions.get(interaction.session_id, now=context.now)
        holds = browsers.suffices(context, session, interaction.request)
        return visit if holds else replace(visit, interaction=interaction.anonymous)
    credentials = await context.provider.registry.factors.credentials(interaction.user_id)
    holds = await interactions.same_factors(context, interaction, credentials)
    if holds and interaction.signed_in:
        holds = single_sign_on.still_suffices(interaction.request, auth_time=interaction.auth_time, now=context.now)
    if holds and interaction.made_session_id:
        holds = await context.provider.registry.sessions.get(interaction.made_session_id, now=context.now) is not None
    if not holds:
        return replace(visit, interaction=interaction.anonymous)
    return visit if interaction.signed_in else await _beside_a_password(context, visit, credentials)


async def _beside_a_password(context: RequestContext, visit: Visit, credentials: Credentials) -> Visit:
    """With who has typed their password here; nobody where what goes with it was used up, or taken away (D45, D50)."""
    interaction = visit.interaction
    user = await context.provider.registry.directory.user(interaction.user_id)
    standing = await second_factor_methods.pending_second_factor(context, user, credentials) if user else None
    if standing is None or not standing.ways:
        return replace(visit, interaction=interaction.anonymous, lacks_second_factor=interaction.user_id)
    return replace(visit, standing=standing)
