"""Pages of a sign-in, built from the flow's current page (DESIGN "Pages")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from corpid.flows.authentication import entity_selection, passkeys, sign_in
from corpid.flows.authentication.account_client import RECOVERY_PATH
from corpid.flows.authentication.second_factor_methods import AskSecondFactor
from corpid.rules.authentication.sign_in import Way
from corpid.rules.directory.entity_choice import STATUSES
from corpid.rules.directory.parties import consent_items
from corpid.rules.oauth import acr
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.scopes import IDENTITY_SCOPES
from corpid.web.authentication.page_context import final_frame, frame
from corpid.web.context import interaction_path
from corpid.web.pages import views
from corpid.web.pages.views import AskPasskey, asked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.flows.authentication.visits import Visit
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.entity_choice import Choice
    from corpid.rules.oauth.records import AuthorizationRequest
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.layout import FieldError, Frame
    from corpid.web.pages.views import View


def _factors(visit: Visit) -> int:
    """Return the number of steps for factors.

    It is 0 with single sign-on, 1 with a passkey, and 2 with a password and a second factor.
    """
    if visit.interaction.session_id:
        return 0
    return 1 if visit.interaction.amr == acr.PASSKEY else 2


def _steps(visit: Visit, *, chooses: bool) -> int:
    """The number of steps: factors, and choice and consent if asked for."""
    return _factors(visit) + chooses + visit.asks_consent


async def _chooses(context: RequestContext, visit: Visit) -> bool:
    """Return whether an entity has to be chosen.

    Before the last factor, it says whether a choice is possible.
    """
    interaction = visit.interaction
    if not interaction.signed_in or not sign_in.asks_entity(visit):
        return sign_in.asks_entity(visit)
    user_id, request = interaction.user_id, interaction.request
    return not await entity_selection.unasked(context, user_id, visit.client, request)


def _shown(choice: Choice, preselected: str) -> views.Choice:
    entity = choice.entity
    return views.Choice(
        id=entity.entity_id,
        name=entity.name,
        number=entity.registration_number,
        type=entity.type,
        status=STATUSES[entity.status] if entity.status else None,
        usable=choice.usable,
        reason=choice.reason,
        preselected=choice.usable and entity.entity_id == preselected,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Content of a page shown again: errors, typed user name, search text."""

    errors: tuple[FieldError, ...] = ()
    typed: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Inputs of a page, in addition to the flow's step."""

    web: WebContext
    context: RequestContext
    visit: Visit
    steps: int
    again: Again

    def at(self, action: str = "") -> str:
        """Return the path of the sign-in's page or of an action."""
        return interaction_path(self.web, self.visit.interaction.interaction_id, action)

    def frame(self, step: int | None) -> Frame:
        """Return the frame of the page; `step` counts from one."""
        # The entities that can be chosen may change meanwhile, and so may the number of steps.
        return frame(self.web, self.context, self.visit, step=(step, max(step, self.steps)) if step else None)


async def of_step(web: WebContext, context: RequestContext, visit: Visit, page: sign_in.Page, again: Again) -> View:
    """Return the page of a step."""
    steps = _steps(visit, chooses=await _chooses(context, visit))
    look = _Look(web=web, context=context, visit=visit, steps=steps, again=again)
    return _VIEWS[type(page)](look, page)


def _password(look: _Look, page: sign_in.AskPassword) -> View:
    provider = look.web.provider
    options = passkeys.options(look.context, look.visit)
    lacks_second_factor = (("password", sign_in.no_second_factor(look.context)),) if page.lacks_second_factor else ()
    # Only the person may learn whether there is a choice, and a passkey counts as two factors at once.
    fewer = sign_in.asks_entity(look.visit) or bool(options)
    return views.SignIn(
        frame=replace(look.frame(1), fewer_steps=fewer),
        action=look.at("password"),
        user_name=look.again.typed,
        passkey=AskPasskey(action=look.at("passkey"), options=options) if options else None,
        recover=look.web.account_base + RECOVERY_PATH if provider.mail.works else "",
        errors=look.again.errors or lacks_second_factor,
    )


def _second_factor(look: _Look, page: AskSecondFactor) -> View:
    heading, wanted = asked(page, look.at("way"))
    if page.way is Way.PASSKEY:
        options = passkeys.options(look.context, look.visit, allowed=page.passkeys)
        wanted = replace(wanted, passkey=AskPasskey(action=look.at("passkey"), options=options))
    return views.SecondFactor(
        frame=replace(look.frame(2), fewer_steps=sign_in.asks_entity(look.visit)),
        action=look.at("code"),
        heading=heading,
        asked=wanted,
        errors=look.again.errors,
    )


def _choice(look: _Look, page: sign_in.ChooseEntity) -> View:
    around, searched = look.frame(_factors(look.visit) + 1), urlencode({"query": look.again.query})
    return views.ChooseEntity(
        frame=replace(around, here=f"{around.here}?{searched}") if look.again.query else around,
        action=look.at("entity"),
        search_action=look.at(),
        choices=tuple(_shown(choice, page.preselected) for choice in page.choices),
        total=page.total,
        query=look.again.query,
        other_account=bool(look.visit.interaction.session_id),
        errors=look.again.errors,
    )


def _no_entity(look: _Look, page: sign_in.NoEntity) -> View:
    return views.Explain(
        frame=replace(look.frame(None), cancel=None),
        action=look.at("cancel"),
        choices=tuple(_shown(choice, "") for choice in page.choices),
        total=page.total,
        other_account=look.at("entity") if look.visit.interaction.session_id else "",
        errors=look.again.errors,
    )


def _consent(look: _Look, page: sign_in.AskConsent) -> View:
    name = page.choice.entity.name
    return views.Consent(
        frame=replace(look.frame(look.steps), entity=name),
        action=look.at("consent"),
        items=_told(look.visit.interaction.request),
        entity=name,
        other_account=bool(look.visit.interaction.session_id),
        errors=look.again.errors,
    )


def _confirm(look: _Look, page: sign_in.Confirm) -> View:
    name = page.choice.entity.name
    return views.Confirm(
        frame=replace(look.frame(None), entity=name),
        action=look.at("confirm"),
        user_name=page.user.name,
        entity=name,
        errors=look.again.errors,
    )


_VIEWS: Final[Mapping[type[sign_in.Page], Callable[..., View]]] = {
    sign_in.AskPassword: _password,
    AskSecondFactor: _second_factor,
    sign_in.ChooseEntity: _choice,
    sign_in.NoEntity: _no_entity,
    sign_in.AskConsent: _consent,
    sign_in.Confirm: _confirm,
}


def _told(request: AuthorizationRequest) -> tuple[Phrase, ...]:
    """Return the data that the client receives, as consent items.

    A packed subject contains all of them. Source: D29, R-12.2
    """
    generation = GENERATIONS[request.generation]
    parties = IDENTITY_SCOPES if generation.packed_subject else ()
    return consent_items((*request.scopes, *generation.unasked_scopes, *parties))


async def leaving(web: WebContext, context: RequestContext, visit: Visit) -> View:
    """Return the page between the last POST and the client (D37)."""
    around = await final_frame(web, context, visit.client, visit.interaction)
    return views.Leave(
        frame=replace(around, under_way=True),
        url=interaction_path(web, visit.interaction.interaction_id, "leave"),
        client_name=visit.client.name,
    )


async def waiting(web: WebContext, context: RequestContext, visit: Visit) -> View:
    """Return the page for a completion that another request is writing (D15)."""
    around = await final_frame(web, context, visit.client, visit.interaction)
    return views.Wait(
        frame=replace(around, under_way=True), url=interaction_path(web, visit.interaction.interaction_id)
    )
