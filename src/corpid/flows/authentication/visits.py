"""Who may see an interaction's pages: the browser that it belongs to (D15, D34)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from corpid.flows.authentication import browsers, completion, interactions, second_factor_methods
from corpid.flows.authentication.sign_in import Visit
from corpid.rules.authentication import single_sign_on

if TYPE_CHECKING:
    from corpid.flows.authentication.interactions import Interaction
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.rules.authentication.records import Credentials


class NoInteraction(Exception):
    """There is no such sign-in, or it ended long ago."""


class ForeignBrowser(Exception):
    """The browser is not the one that began this sign-in, or keeps no cookies."""

    def __init__(self, interaction: Interaction) -> None:
        super().__init__("another browser")
        self.interaction = interaction


async def visit(provider: Provider, caller: Caller, interaction_id: str, cookie: str | None) -> Visit:
    """A browser at its own interaction.

    Raises NoInteraction, ForeignBrowser, and InvalidRequest where client or redirect URI are gone. Source: D15, D34
    """
    interaction = await interactions.load(provider, interaction_id, now=caller.now)
    if interaction is None:
        raise NoInteraction
    browser = await browsers.recognise(provider, cookie, now=caller.now)
    if browser is None or cookie is None or browser.browser_id != interaction.browser_id:
        raise ForeignBrowser(interaction)
    client = await completion.registered(provider, interaction.request, now=caller.now)
    await provider.signing_keys.ring(caller.now)
    found = Visit(interaction=interaction, browser=browser, cookie=cookie, client=client)
    return await _as_it_still_holds(provider, caller, found)


async def _as_it_still_holds(provider: Provider, caller: Caller, visit: Visit) -> Visit:
    """With nobody signed in where the session or the sign-in has ended or grown too old, or a factor changed (D30, D40, D50)."""
    interaction = visit.interaction
    if not interaction.user_id or interaction.outcome is not None:
        return visit
    if interaction.session_id:
        session = await provider.registry.sessions.get(interaction.session_id, now=caller.now)
        holds = browsers.suffices(provider, session, interaction.request, now=caller.now)
        return visit if holds else replace(visit, interaction=interaction.anonymous)
    credentials = await provider.registry.factors.credentials(interaction.user_id)
    holds = await interactions.same_factors(provider, interaction, credentials)
    if holds and interaction.signed_in:
        holds = single_sign_on.still_suffices(interaction.request, auth_time=interaction.auth_time, now=caller.now)
    if holds and interaction.made_session_id:
        holds = await provider.registry.sessions.get(interaction.made_session_id, now=caller.now) is not None
    if not holds:
        return replace(visit, interaction=interaction.anonymous)
    return visit if interaction.signed_in else await _beside_a_password(provider, visit, credentials)


async def _beside_a_password(provider: Provider, visit: Visit, credentials: Credentials) -> Visit:
    """With who has typed their password here; nobody where what goes with it was used up, or taken away (D45, D50)."""
    interaction = visit.interaction
    user = await provider.registry.directory.user(interaction.user_id)
    standing = await second_factor_methods.pending_second_factor(provider, user, credentials) if user else None
    if standing is None or not standing.ways:
        return replace(visit, interaction=interaction.anonymous, lacks_second_factor=interaction.user_id)
    return replace(visit, standing=standing)
