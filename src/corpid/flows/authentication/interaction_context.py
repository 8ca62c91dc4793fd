"""The context of an interaction: all that a step needs, loaded once.

Source: D15, D34
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from corpid.flows.authentication import browsers, completion, consents, factors, interactions, own_pages, throttle
from corpid.flows.authentication.browsers import Browser, SubmittedForm
from corpid.flows.authentication.factors import PendingSecondFactor
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.records import Session
from corpid.rules.authentication.sign_in import Interaction, SignInEvent, SignInState
from corpid.rules.directory.records import Account, User
from corpid.rules.oauth.records import Client

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext


class InteractionContext(msgspec.Struct, frozen=True, kw_only=True):
    """A browser at its own interaction, with the data loaded for it.

    `cookie` is the value that the browser sent.
    """

    interaction: Interaction
    browser: Browser
    cookie: str
    client: Client
    asks_consent: bool
    """true if this sign-in has a page for consent, except if that is remembered (D29, D40)"""
    consented_for: str = ""
    """the entity for which consent is remembered, if it was looked up"""
    session: Session | None = None
    """the session that signed it in, or that its factors began"""
    awaiting_second_factor: PendingSecondFactor | None = None
    """the person who has typed their password here, and nothing else yet"""
    last_entity: str | None = None
    """the person's last choice in this browser, empty for none yet; None: it is not known for them, or there is no
    person"""
    picked_language: str = ""
    """the tag of the language that was picked on a page of this sign-in; empty: none"""
    form: SubmittedForm = msgspec.field(default_factory=SubmittedForm)
    """the submitted form, if it proves a factor"""
    renewing: Account | None = None
    """the person who signs in again, and nobody else, before their first factor"""
    lacks_second_factor: User | None = None
    """the person who typed their password here but has no second factor left; they are not signed in for now"""

    def state_of(self, context: RequestContext, interaction: Interaction, *, usable: bool = False) -> SignInState:
        """Return the state of an interaction of this browser.

        `usable` is as in `rules.authentication.sign_in.state`. Source: D15
        """
        remembered = bool(interaction.entity_id) and interaction.entity_id == self.consented_for
        asks_consent = self.asks_consent and not remembered
        return machine.state(interaction, now=context.now, usable=usable, asks_consent=asks_consent)

    def require(self, context: RequestContext, event: SignInEvent, *, usable: bool = False) -> None:
        """Check that the loaded sign-in accepts this event. Raises StaleStep.

        Source: D15
        """
        machine.require(self.state_of(context, self.interaction, usable=usable), event)

    def knows(self) -> bool:
        """Return whether any person has signed in in this browser.

        It may then be known for the current person. Source: D47
        """
        browser = self.browser
        return bool(browser.user_id or browser.kept_name or browser.session_id)


def with_passkey(loaded: InteractionContext) -> InteractionContext:
    """The context of a browser in which a passkey was created.

    It is stored with the browser at the end of the sign-in. Source: D46
    """
    return replace(loaded, browser=replace(loaded.browser, used_passkey=True))


class NoInteraction(Exception):
    """A sign-in that does not exist, or ended long ago."""


class ForeignBrowser(Exception):
    """A browser that did not begin this sign-in, or keeps no cookies."""

    def __init__(self, interaction: Interaction) -> None:
        super().__init__("another browser")
        self.interaction = interaction


async def load_interaction(context: RequestContext, interaction_id: str, cookie: str | None) -> InteractionContext:
    """Load the interaction of a browser.

    Raises NoInteraction, ForeignBrowser, and InvalidRequest if the client or its redirect URI no longer exists. Source:
    D15, D34
    """
    stored = interactions.INTERACTION.entry(context.provider.policy.base_url, interaction_id)
    recognised = await browsers.recognise_with(context, cookie, stored)
    browser, interaction = recognised
    if interaction is None:
        raise NoInteraction
    if browser is None or cookie is None or browser.browser_id != interaction.browser_id:
        raise ForeignBrowser(interaction)
    request = interaction.request
    client = await completion.find_client(context, request)
    asks_consent = consents.is_asked(client, request)
    found = InteractionContext(
        interaction=interaction, browser=browser, cookie=cookie, client=client, asks_consent=asks_consent
    )
    held = await _as_it_still_holds(context, found)
    if held.interaction.renewed_session_id and not held.interaction.user_id and interaction.outcome is None:
        held = await _renewing(context, held)
    if interaction.outcome is not None or not asks_consent:
        return held
    return await with_consent(context, held, held.interaction)


async def load_for_return(context: RequestContext, interaction_id: str, browser: Browser | None) -> Interaction | None:
    """Load the sign-in to which a page of this browser leads back.

    The result is None for another browser's, and for one that has ended. Source: D15, D34
    """
    if browser is None or not interaction_id:
        return None
    found = await interactions.load(context, interaction_id)
    if found is None or found.browser_id != browser.browser_id:
        return None
    return found if machine.closure_reason(found, None, now=context.now) is None else None


async def with_consent(
    context: RequestContext, loaded: InteractionContext, interaction: Interaction
) -> InteractionContext:
    """Return the context with remembered consent looked up.

    It is that for the entity of `interaction`: the context's own, or the one after a step. For a sign-in that asks for
    consent. Source: D29
    """
    given = await consents.is_given(
        context,
        loaded.client,
        interaction.request,
        user_id=interaction.user_id,
        entity_id=interaction.entity_id,
    )
    return replace(loaded, consented_for=interaction.entity_id if given else "")


async def _renewing(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    """Return the context with the person who has to sign in again.

    Once their session has ended, anybody may sign in.
    """
    interaction = loaded.interaction
    session = await context.provider.registry.sessions.get(interaction.renewed_session_id, now=context.now)
    purpose = own_pages.purpose(interaction.request)
    if session is not None and browsers.of_browser(context, loaded.browser, session, purpose) is not None:
        account = await context.provider.registry.factors.account(session.user_id)
        if account is not None and account.user.enabled:
            return replace(loaded, renewing=account)
    plain = replace(interaction, renewed_session_id="", back=None, request=own_pages.plain(interaction.request))
    return replace(loaded, interaction=plain)


async def _as_it_still_holds(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    """Return the context, anonymous if its authentication is no longer valid.

    That is so if the session or the sign-in has ended or grown too old, or if a factor changed.
    """
    interaction = loaded.interaction
    if not interaction.user_id or interaction.outcome is not None:
        return loaded
    if interaction.session_id:
        session = await context.provider.registry.sessions.get(interaction.session_id, now=context.now)
        if browsers.suffices(context, session, interaction.request):
            return replace(loaded, session=session)
        return replace(loaded, interaction=interaction.anonymous)
    if interaction.made_session_id:
        return await _as_its_session_holds(context, loaded)
    signed_in = interaction.signed_in
    # A known browser counts the attempts at a second factor on its own.
    last, browser_key = None, loaded.browser.browser_key
    if not signed_in and loaded.knows():
        last = await throttle.last_entity(context, interaction.user_name, browser_key, user_id=interaction.user_id)
    group = throttle.guess_group(context, interaction.user_id, browser_key, known=last is not None)
    account = await context.provider.registry.factors.account(interaction.user_id, browser=group)
    if account is None:
        return replace(loaded, interaction=interaction.anonymous)
    held = account.held
    owns_passkey = any(each.credential_id == interaction.passkey for each in held.passkeys)
    same = interactions.same_factors(interaction, held.credentials, owns_passkey=owns_passkey)
    if not machine.holds(interaction, same_factors=same, session_lives=False, now=context.now):
        return replace(loaded, interaction=interaction.anonymous)
    if signed_in:
        return loaded
    pending = factors.pending_second_factor(context, account)
    if not pending.ways:
        return replace(loaded, interaction=interaction.anonymous, lacks_second_factor=account.user, last_entity=last)
    return replace(loaded, awaiting_second_factor=pending, last_entity=last)


async def _as_its_session_holds(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    interaction, sessions = loaded.interaction, context.provider.registry.sessions
    made = await sessions.with_factors(interaction.made_session_id, passkey=interaction.passkey, now=context.now)
    if made is not None:
        same = interactions.same_factors(interaction, made.credentials, owns_passkey=made.owns_passkey)
        if machine.holds(interaction, same_factors=same, session_lives=True, now=context.now):
            return replace(loaded, session=made.session)
    return replace(loaded, interaction=interaction.anonymous)
