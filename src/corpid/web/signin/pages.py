"""From what a flow says is current to the page that shows it (DESIGN "Pages")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from corpid.directory.choice import STATUSES
from corpid.directory.parties import what_a_scope_tells
from corpid.flows import interactions, passkey_sign_in, sign_in
from corpid.flows.account import own_client
from corpid.flows.ways import AskCode
from corpid.protocol.generations import GENERATIONS
from corpid.protocol.limits import ACCOUNT_FRESH_SECONDS, INTERACTION_EXTENSIONS
from corpid.protocol.scopes import IDENTITY_SCOPES
from corpid.texts import phrase
from corpid.web import views
from corpid.web.enrolment.forgotten_password import RECOVER_PATH
from corpid.web.frame import Form, Frame
from corpid.web.signin.factor_fields import AskPasskey, asked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.directory.choice import Choice
    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.sign_in import Visit
    from corpid.protocol.records import AuthorizationRequest
    from corpid.texts import Phrase
    from corpid.web.endpoints import Desk
    from corpid.web.views import FieldError, View


_ANEW: Final = phrase(
    "Sign in again to change how you sign in: your last sign-in was more than {minutes} minutes ago.",
    minutes=ACCOUNT_FRESH_SECONDS // 60,
)


def place(desk: Desk, interaction_id: str, action: str = "") -> str:
    """The address path of an interaction's page, or of one of its actions."""
    return f"{desk.base_path}/sign-in/{interaction_id}" + (f"/{action}" if action else "")


def step_name(interaction: Interaction) -> str:
    """What a form says of its page: more time leaves the forms that are shown as they are (D15, WCAG 2.2.1)."""
    return str(interaction.serial - interaction.extensions)


def _factors(visit: Visit) -> int:
    """A passkey, or password and code."""
    return 1 if visit.interaction.passkey else 2


def _steps(visit: Visit) -> int:
    """The factors, the choice, and consent where it is asked."""
    return _factors(visit) + sign_in.asks_entity(visit) + sign_in.asks_consent(visit)


def frame(desk: Desk, caller: Caller, visit: Visit, *, step: int | None) -> Frame:
    """What surrounds every step: who asks, the message, the time limit, the way out (D12, D15, D17)."""
    interaction, provider = visit.interaction, desk.provider
    extendable = interaction.extensions < INTERACTION_EXTENSIONS
    where = interaction.interaction_id
    return Frame(
        client_name=visit.client.name,
        message=interaction.request.context_message,
        user_name=interaction.user_name or None,
        step=(step, _steps(visit)) if step is not None and not interaction.session_id else None,
        step_name=step_name(interaction),
        form_token=interactions.form_token(provider, visit.browser.browser_id, where),
        cancel=Form(action=place(desk, where, "cancel")),
        expires_at=datetime.fromtimestamp(interaction.expires_at, provider.policy.timezone),
        expires_in=max(0, int(interaction.expires_at - caller.now)),
        extend=Form(action=place(desk, where, "extend")) if extendable else None,
        last_time=None if extendable else phrase("This sign-in cannot be extended any more."),
        under_way=True,
        reason=_ANEW if own_client.made_anew(interaction.request) else None,
        ui_locales=interaction.request.ui_locales,
    )


def asker(visit: Visit) -> Frame:
    """What surrounds a page on which nothing is asked any more."""
    request = visit.interaction.request
    return Frame(
        client_name=visit.client.name,
        message=request.context_message,
        ui_locales=request.ui_locales,
    )


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
class _Again:
    """What a page shows again: what was wrong, what was typed, what was searched for."""

    errors: tuple[FieldError, ...]
    typed: str
    query: str


def of_step(
    desk: Desk,
    caller: Caller,
    visit: Visit,
    page: sign_in.Page,
    *,
    errors: tuple[FieldError, ...] = (),
    typed: str = "",
    query: str = "",
) -> View:
    """The page of a step; `typed` is the user name that was typed, `query` what was searched for."""
    return _VIEWS[type(page)](desk, caller, visit, page, _Again(errors=errors, typed=typed, query=query))


def _password(desk: Desk, caller: Caller, visit: Visit, _: sign_in.AskPassword, again: _Again) -> View:
    where = visit.interaction.interaction_id
    options = passkey_sign_in.options(desk.provider, visit)
    return views.SignIn(
        frame=frame(desk, caller, visit, step=1),
        action=place(desk, where, "password"),
        user_name=again.typed,
        passkey=AskPasskey(action=place(desk, where, "passkey"), options=options) if options else None,
        recover=desk.base_path + RECOVER_PATH if desk.provider.mail.works else "",
        errors=again.errors,
    )


def _code(desk: Desk, caller: Caller, visit: Visit, page: AskCode, again: _Again) -> View:
    where = visit.interaction.interaction_id
    heading, wanted = asked(page, place(desk, where, "way"))
    return views.SecondFactor(
        frame=frame(desk, caller, visit, step=2),
        action=place(desk, where, "code"),
        heading=heading,
        asked=wanted,
        errors=again.errors,
    )


def _choice(desk: Desk, caller: Caller, visit: Visit, page: sign_in.ChooseEntity, again: _Again) -> View:
    where = visit.interaction.interaction_id
    return views.ChooseEntity(
        frame=frame(desk, caller, visit, step=_factors(visit) + 1),
        action=place(desk, where, "entity"),
        search_action=place(desk, where),
        choices=tuple(_shown(choice, page.preselected) for choice in page.choices),
        total=page.total,
        query=again.query,
        other_account=bool(visit.interaction.session_id),
        errors=again.errors,
    )


def _no_entity(desk: Desk, caller: Caller, visit: Visit, page: sign_in.NoEntity, _: _Again) -> View:
    return views.Explain(
        frame=replace(frame(desk, caller, visit, step=None), cancel=None),
        action=place(desk, visit.interaction.interaction_id, "cancel"),
        choices=tuple(_shown(choice, "") for choice in page.choices),
        total=page.total,
    )


def _consent(desk: Desk, caller: Caller, visit: Visit, page: sign_in.AskConsent, _: _Again) -> View:
    return views.Consent(
        frame=replace(frame(desk, caller, visit, step=_steps(visit)), entity=page.choice.entity.name),
        action=place(desk, visit.interaction.interaction_id, "consent"),
        items=_told(visit.interaction.request),
        entity=page.choice.entity.name,
    )


def _confirm(desk: Desk, caller: Caller, visit: Visit, page: sign_in.Confirm, _: _Again) -> View:
    return views.Confirm(
        frame=replace(frame(desk, caller, visit, step=None), entity=page.choice.entity.name),
        action=place(desk, visit.interaction.interaction_id, "confirm"),
        user_name=page.user.name,
        entity=page.choice.entity.name,
    )


_VIEWS: Final[Mapping[type[sign_in.Page], Callable[..., View]]] = {
    sign_in.AskPassword: _password,
    AskCode: _code,
    sign_in.ChooseEntity: _choice,
    sign_in.NoEntity: _no_entity,
    sign_in.AskConsent: _consent,
    sign_in.Confirm: _confirm,
}


def _told(request: AuthorizationRequest) -> tuple[Phrase, ...]:
    """What consent concerns; where a client wants it asked for less (D40), what every sign-in tells.

    A packed subject and what stands beside it tell everything, whatever was asked for (R-12.2).
    """
    everything = GENERATIONS[request.generation].packed_subject
    scopes = IDENTITY_SCOPES if everything else request.scopes
    told = tuple(what_a_scope_tells(scope) for scope in scopes if scope in IDENTITY_SCOPES)
    return told or (phrase("That you signed in, the organisation that you act for, and what you may do for it"),)


async def leaving(desk: Desk, caller: Caller, visit: Visit) -> View:
    """The own page between the last POST and the client (D37)."""
    looked_at = visit.interaction
    chosen = None
    if looked_at.entity_id:
        chosen = await desk.provider.live.acting(looked_at.user_id, looked_at.entity_id, caller.now)
    return views.Leave(
        frame=replace(asker(visit), under_way=True, entity=chosen.entity.name if chosen else None),
        url=place(desk, looked_at.interaction_id, "leave"),
        client_name=visit.client.name,
    )


def waiting(desk: Desk, visit: Visit) -> View:
    """A completion is being written by another request (D15)."""
    return views.Wait(frame=replace(asker(visit), under_way=True), url=place(desk, visit.interaction.interaction_id))
