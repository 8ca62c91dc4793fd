"""Who may see an interaction's pages: the browser that it belongs to (D15, D34)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import browsers, completion, interactions, kinds
from corpid.flows.sign_in import Visit

if TYPE_CHECKING:
    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.provider import Provider


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
    interaction = await _as_it_still_holds(provider, caller, interaction)
    await provider.own_keys.ring(caller.now)
    return Visit(interaction=interaction, browser=browser, cookie=cookie, client=client)


async def _as_it_still_holds(provider: Provider, caller: Caller, interaction: Interaction) -> Interaction:
    """With nobody signed in where the session has ended or grown too old, or a factor was changed meanwhile (D30, D50)."""
    if not interaction.user_id or interaction.outcome is not None:
        return interaction
    if interaction.session_id:
        session = await provider.registry.sessions.get(interaction.session_id, now=caller.now)
        holds = browsers.suffices(provider, session, interaction.request, now=caller.now)
    else:
        holds = await interactions.same_factors(provider, interaction)
    return interaction if holds else interaction.anonymous


async def completed_elsewhere(provider: Provider, caller: Caller, interaction: Interaction) -> str:
    """Which interaction completed the request: empty for none, else its id (D15)."""
    key = interactions.request_key(provider, kinds.COMPLETED, interaction.request.client_id, interaction.reference)
    value = await provider.transient.get(kinds.COMPLETED.name, key, now=caller.now)
    return (value or b"").decode()
