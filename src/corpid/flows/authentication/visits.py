"""Access to an interaction's pages, limited to its own browser (D15, D34)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from corpid.flows.authentication import (
    browsers,
    code_guesses,
    completion,
    interactions,
    second_factor_methods,
    throttle,
)
from corpid.flows.authentication.sign_in import Visit
from corpid.rules.authentication import sign_in as machine

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import Session
    from corpid.rules.authentication.sign_in import Interaction


class NoInteraction(Exception):
    """A sign-in that does not exist, or ended long ago."""


class ForeignBrowser(Exception):
    """A browser that did not begin this sign-in, or keeps no cookies."""

    def __init__(self, interaction: Interaction) -> None:
        super().__init__("another browser")
        self.interaction = interaction


async def visit(context: RequestContext, interaction_id: str, cookie: str | None) -> Visit:
    """Load the interaction of a browser.

    Raises NoInteraction, ForeignBrowser, and InvalidRequest if the client or its redirect URI no longer exists. Source:
    D15, D34
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
    """Return the visit, anonymous if its authentication is no longer valid.

    That is so if the session or the sign-in has ended or grown too old, or if a factor changed. Source: D30, D40, D50
    """
    interaction = visit.interaction
    if not interaction.user_id or interaction.outcome is not None:
        return visit
    if interaction.session_id:
        session = await context.provider.registry.sessions.get(interaction.session_id, now=context.now)
        if browsers.suffices(context, session, interaction.request):
            return replace(visit, session=session)
        return replace(visit, interaction=interaction.anonymous)
    last = await _last_entity(context, visit)
    group = code_guesses.group(context, interaction.user_id, visit.browser.browser_key, known=last is not None)
    account = await context.provider.registry.factors.account(interaction.user_id, browser=group)
    made = await _made(context, interaction)
    same = account is not None and interactions.same_factors(interaction, account.held)
    if account is None or not machine.holds(
        interaction, same_factors=same, session_lives=made is not None, now=context.now
    ):
        return replace(visit, interaction=interaction.anonymous)
    if interaction.signed_in:
        return replace(visit, session=made)
    standing = second_factor_methods.pending_second_factor(context, account)
    if not standing.ways:
        return replace(visit, interaction=interaction.anonymous, lacks_second_factor=account.user, last_entity=last)
    return replace(visit, standing=standing, last_entity=last)


async def _last_entity(context: RequestContext, visit: Visit) -> str | None:
    """Return the last entity, loaded if a second factor is asked for.

    A known browser counts the attempts at that factor on its own. Source: D45, D47
    """
    if visit.interaction.signed_in or not visit.knows():
        return None
    return await throttle.last_entity(context, visit.interaction.user_name, visit.browser.browser_key)


async def _made(context: RequestContext, interaction: Interaction) -> Session | None:
    if not interaction.made_session_id:
        return None
    return await context.provider.registry.sessions.get(interaction.made_session_id, now=context.now)
