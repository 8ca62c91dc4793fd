"""Pages of the sign-in: frame and steps.

The pages of its ends are in `endpoints`. A step's page is built from the flow's current page. Source: D12, D15, D17,
D34, D45
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec.structs import replace

from corpid.flows.authentication import consents, entity_selection, interactions, own_pages, passkeys, sign_in
from corpid.flows.authentication.factors import SecondFactorQuestion
from corpid.flows.authentication.own_pages import RECOVERY_PATH
from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.sign_in import Interaction, SecondFactorMethod
from corpid.rules.directory.entity_choice import NUMBERS, EntityChoice
from corpid.rules.directory.parties import consent_items, consent_summary
from corpid.rules.directory.records import ENTITY_STATUSES, ListedTestPerson
from corpid.rules.limits import ACCOUNT_FRESH_SECONDS, MINUTE
from corpid.rules.oauth import acr
from corpid.rules.oauth.authorization_request import said_at_consent
from corpid.rules.oauth.consent import shared_scopes
from corpid.texts import Phrase, phrase
from corpid.web.context import SIGN_IN, WebContext, interaction_path, with_parameter
from corpid.web.pages import views
from corpid.web.pages.components import ButtonForm, FieldError, Frame, View, in_frame, time_limit
from corpid.web.pages.views import AskPasskey, second_factor_form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.records import Client

_SIGN_IN_AGAIN: Final = phrase(
    "To change how you sign in, sign in again: you last signed in more than {minutes} minutes ago.",
    minutes=ACCOUNT_FRESH_SECONDS // MINUTE,
)
_SIGN_IN_AGAIN_TO_GO_ON: Final = phrase("To go on, sign in again: this step needs a recent sign-in.")
"""in the portal and the console, whose windows differ from the account's"""
AT_ONCE: Final = "at-once"
"""the action that asks for no factor, in developer mode (D66)"""
_NO_MORE_TIME: Final = phrase("You cannot get more time for this sign-in.")


def _reason(interaction: Interaction) -> Phrase | None:
    if not own_pages.is_reauthentication(interaction.request):
        return None
    return _SIGN_IN_AGAIN if own_pages.purpose(interaction.request) == "account" else _SIGN_IN_AGAIN_TO_GO_ON


def _frame(context: RequestContext, loaded: InteractionContext, where: str, *, step: tuple[int, int] | None) -> Frame:
    """Return the frame of a page that asks something.

    `where` is the path of the sign-in, `step` is its number and the number of steps, if that is known.
    """
    interaction = loaded.interaction
    extendable = machine.extendable(interaction)
    return Frame(
        client_name=loaded.client.name,
        message=interaction.request.context_message,
        user_name=interaction.user_name or None,
        step=step,
        step_name=sign_in.step_name(interaction),
        form_token=interactions.form_token(context, loaded.browser.browser_id, interaction.interaction_id),
        cancel=ButtonForm(action=f"{where}/cancel"),
        limit=time_limit(
            interaction.expires_at,
            now=context.now,
            zone=context.provider.policy.timezone,
            more=ButtonForm(action=f"{where}/extend") if extendable else None,
            at_end=_NO_MORE_TIME,
        ),
        under_way=True,
        reason=_reason(interaction),
        ui_locales=interaction.request.ui_locales,
        account_language=interaction.language if interaction.user_id else loaded.browser.language,
        sign_in=interaction.interaction_id,
        here=where,
    )


async def final_frame(
    web: WebContext, context: RequestContext, client: Client, interaction: Interaction, *, under_way: bool = False
) -> Frame:
    """Return the frame of a page that asks nothing more.

    It names the client and, once chosen, the entity. Source: D12
    """
    acting = None
    if interaction.entity_id:
        acting = await web.provider.registry_cache.acting(interaction.user_id, interaction.entity_id, context.now)
    entity = acting.entity.name if acting else None
    return client_frame(web, client, interaction, entity=entity, under_way=under_way)


def client_frame(
    web: WebContext, client: Client, interaction: Interaction, *, entity: str | None = None, under_way: bool
) -> Frame:
    """Return the frame without other data from the directory.

    The directory may be unavailable. Source: D12
    """
    request = interaction.request
    return Frame(
        client_name=client.name,
        message=request.context_message,
        entity=entity,
        under_way=under_way,
        ui_locales=request.ui_locales,
        sign_in=interaction.interaction_id,
        here=interaction_path(web, interaction.interaction_id),
    )


def _factors(loaded: InteractionContext) -> int:
    """Return the number of steps for factors.

    It is 0 with single sign-on, 1 with a passkey, and 2 with a password and a second factor.
    """
    if loaded.interaction.session_id:
        return 0
    return 1 if loaded.interaction.amr == acr.PASSKEY else 2


def _steps(loaded: InteractionContext, *, chooses: bool) -> int:
    """The number of steps: factors, and choice and consent if asked for."""
    return _factors(loaded) + chooses + loaded.asks_consent


async def _chooses(context: RequestContext, loaded: InteractionContext) -> bool:
    """Return whether an entity has to be chosen.

    Before the last factor, it says whether a choice is possible.
    """
    interaction = loaded.interaction
    if not interaction.signed_in or not sign_in.asks_entity(loaded):
        return sign_in.asks_entity(loaded)
    user_id, request = interaction.user_id, interaction.request
    return not await entity_selection.find_only_entity(context, user_id, loaded.client, request)


def _shown(choice: EntityChoice, preselected: str) -> views.Choice:
    entity = choice.entity
    return views.Choice(
        id=entity.entity_id,
        name=entity.name,
        number=entity.registration_number,
        number_name=NUMBERS[entity.type],
        status=ENTITY_STATUSES[entity.status] if entity.status else None,
        usable=choice.usable,
        reason=choice.reason,
        preselected=choice.usable and entity.entity_id == preselected,
    )


@dataclass(slots=True, kw_only=True, eq=False)
class Retry:
    """Content that depends on the request: errors, typed text, test people."""

    errors: tuple[FieldError, ...] = ()
    typed: str = ""
    query: str = ""
    test_people: Sequence[ListedTestPerson] = ()
    """whom developer mode signs in at once (D66)"""


@dataclass(slots=True, kw_only=True, eq=False)
class _PageInputs:
    """Inputs of a page, in addition to the flow's step."""

    web: WebContext
    context: RequestContext
    loaded: InteractionContext
    where: str
    """the path of the sign-in's page"""
    steps: int
    again: Retry

    def path_of(self, action: str = "") -> str:
        """Return the path of the sign-in's page or of an action."""
        return f"{self.where}/{action}" if action else self.where

    def frame(self, step: int | None, *, total_known: bool = True) -> Frame:
        """Return the frame of the page; `step` counts from one.

        It is shown with the number of steps, or not at all.
        """
        # The entities that can be chosen may change meanwhile, and so may the number of steps.
        numbers = (step, max(step, self.steps)) if step and total_known else None
        return _frame(self.context, self.loaded, self.where, step=numbers)


async def of_step(
    web: WebContext, context: RequestContext, loaded: InteractionContext, page: sign_in.InteractionPage, again: Retry
) -> View:
    steps = _steps(loaded, chooses=await _chooses(context, loaded))
    where = interaction_path(web, loaded.interaction.interaction_id)
    look = _PageInputs(web=web, context=context, loaded=loaded, where=where, steps=steps, again=again)
    view = _VIEWS[type(page)](look, page)
    return in_frame(view, here=with_parameter(where), entered="1") if again.errors else view


def _password(look: _PageInputs, page: sign_in.PasswordQuestion) -> View:
    options = passkeys.options(look.context, look.loaded)
    lacks_second_factor = (("password", sign_in.no_second_factor(look.context)),) if page.lacks_second_factor else ()
    # Only the person may learn whether there is a choice, and a passkey counts as two factors at once.
    total_known = not (sign_in.asks_entity(look.loaded) or options)
    user = look.loaded.renewing.user if look.loaded.renewing else None
    people = [each for each in look.again.test_people if user is None or each.user_name == user.user_name]
    return views.SignIn(
        frame=look.frame(1, total_known=total_known),
        action=look.path_of("password"),
        person=user.name if user else "",
        user_name=user.user_name if user else look.again.typed,
        passkey=AskPasskey(action=look.path_of("passkey"), options=options) if options else None,
        passkey_first=look.loaded.browser.used_passkey or user is not None,
        recover=_recover(look),
        at_once=_at_once(look, people) if people else None,
        errors=look.again.errors or lacks_second_factor,
    )


def _at_once(look: _PageInputs, people: Sequence[ListedTestPerson]) -> views.TestPersonForm:
    developer, here = look.web.developer, {SIGN_IN: look.loaded.interaction.interaction_id}
    return views.TestPersonForm(
        action=look.path_of(AT_ONCE),
        people=people,
        ways=tuple(acr.SIMULATED),
        anybody="" if developer is None else f"{look.web.base_path}{developer.anybody_path}?{urlencode(here)}",
    )


def _recover(look: _PageInputs) -> str:
    """Return the address of the page for a forgotten password.

    It leads back to this sign-in. A further issuer's sign-in is unknown at the first one, where the page is.
    """
    web = look.web
    page = web.account_base + RECOVERY_PATH
    if web.account_base != web.base_path:
        return page
    return f"{page}?{urlencode({SIGN_IN: look.loaded.interaction.interaction_id})}"


def _second_factor(look: _PageInputs, page: SecondFactorQuestion) -> View:
    heading, wanted = second_factor_form(page, look.path_of("way"))
    if page.way is SecondFactorMethod.PASSKEY:
        options = passkeys.options(look.context, look.loaded, allowed=page.passkeys)
        wanted = replace(wanted, passkey=AskPasskey(action=look.path_of("passkey"), options=options))
    return views.SecondFactor(
        frame=look.frame(2, total_known=not sign_in.asks_entity(look.loaded)),
        action=look.path_of("code"),
        heading=heading,
        asked=wanted,
        sends_mail=look.context.provider.mail.works,
        errors=look.again.errors,
    )


def _offer(look: _PageInputs, page: sign_in.PasskeyOffer) -> View:
    options = passkeys.offer_options(look.context, look.loaded, page)
    return views.OfferPasskey(
        # "Not now" continues: nobody should give up their sign-in here by mistake.
        frame=replace(look.frame(None), cancel=None),
        action=look.path_of("offer"),
        passkey=AskPasskey(action=look.path_of("offer"), options=options) if options else None,
        errors=look.again.errors,
    )


def _choice(look: _PageInputs, page: sign_in.EntityQuestion) -> View:
    # The entity decides whether consent is remembered.
    total_known = not consents.spares_page(look.context, look.loaded.client, look.loaded.interaction.request)
    around = look.frame(_factors(look.loaded) + 1, total_known=total_known)
    searched = urlencode({"query": look.again.query})
    return views.ChooseEntity(
        frame=replace(around, here=f"{around.here}?{searched}") if look.again.query else around,
        action=look.path_of("entity"),
        search_action=look.path_of(),
        choices=tuple(_shown(choice, page.preselected) for choice in page.choices),
        total=page.total,
        query=look.again.query,
        other_account=bool(look.loaded.interaction.session_id),
        errors=look.again.errors,
    )


def _no_entity(look: _PageInputs, page: sign_in.NoEntity) -> View:
    return views.Explain(
        frame=replace(look.frame(None), cancel=None),
        action=look.path_of("cancel"),
        choices=tuple(_shown(choice, "") for choice in page.choices),
        total=page.total,
        other_account=look.path_of("entity") if look.loaded.interaction.session_id else "",
        errors=look.again.errors,
    )


def _consent(look: _PageInputs, page: sign_in.ConsentQuestion) -> View:
    name, request = page.choice.entity.name, look.loaded.interaction.request
    shared, until = shared_scopes(request), consents.expiry(look.context, look.loaded.client, request)
    return views.Consent(
        frame=replace(look.frame(look.steps), entity=name),
        action=look.path_of("consent"),
        summary=consent_summary(shared),
        items=consent_items(shared),
        said=said_at_consent(request),
        until=None if until is None else datetime.fromtimestamp(until, look.web.provider.policy.timezone),
        other_account=bool(look.loaded.interaction.session_id),
        errors=look.again.errors,
    )


def _confirm(look: _PageInputs, page: sign_in.SignInConfirmation) -> View:
    name = page.choice.entity.name
    return views.SignInConfirmationView(
        frame=replace(look.frame(None), entity=name),
        action=look.path_of("confirm"),
        user_name=page.user.name,
        entity=name,
        errors=look.again.errors,
    )


_VIEWS: Final[Mapping[type[sign_in.InteractionPage], Callable[..., View]]] = {
    sign_in.PasswordQuestion: _password,
    SecondFactorQuestion: _second_factor,
    sign_in.PasskeyOffer: _offer,
    sign_in.EntityQuestion: _choice,
    sign_in.NoEntity: _no_entity,
    sign_in.ConsentQuestion: _consent,
    sign_in.SignInConfirmation: _confirm,
}


async def leaving(web: WebContext, context: RequestContext, loaded: InteractionContext) -> View:
    """Return the page between the last POST and the client (D37)."""
    around = await final_frame(web, context, loaded.client, loaded.interaction, under_way=True)
    return views.Leave(frame=around, url=f"{around.here}/leave", client_name=loaded.client.name)


async def waiting_page(web: WebContext, context: RequestContext, loaded: InteractionContext) -> View:
    """Return the page for a completion that another request is writing (D15)."""
    around = await final_frame(web, context, loaded.client, loaded.interaction, under_way=True)
    return views.Wait(frame=around, url=around.here)
