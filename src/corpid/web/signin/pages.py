"""From what a flow says is current to the page that shows it (DESIGN "Pages")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from corpid.directory.parties import what_a_scope_tells
from corpid.flows import interactions, sign_in
from corpid.protocol.generations import GENERATIONS
from corpid.protocol.limits import INTERACTION_EXTENSIONS
from corpid.protocol.scopes import IDENTITY_SCOPES
from corpid.web import views

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.directory.choice import Choice
    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.sign_in import Visit
    from corpid.protocol.records import AuthorizationRequest, Client
    from corpid.web.endpoints import Desk
    from corpid.web.views import FieldError, View


def place(desk: Desk, interaction_id: str, action: str = "") -> str:
    """The address path of an interaction's page, or of one of its actions."""
    return f"{desk.base_path}/sign-in/{interaction_id}" + (f"/{action}" if action else "")


def step_name(interaction: Interaction) -> str:
    """What a form says of its page: more time leaves the forms that are shown as they are (D15, WCAG 2.2.1)."""
    return str(interaction.serial - interaction.extensions)


def _steps(visit: Visit) -> int:
    """Password, code, choice, and consent where it is asked."""
    return 4 if sign_in.asks_consent(visit) else 3


def frame(desk: Desk, caller: Caller, visit: Visit, *, step: int | None) -> views.Frame:
    """What surrounds every step: who asks, the message, the time limit, the way out (D12, D15, D17)."""
    interaction, provider = visit.interaction, desk.provider
    extendable = interaction.extensions < INTERACTION_EXTENSIONS
    until = datetime.fromtimestamp(interaction.expires_at, provider.policy.timezone)
    where = interaction.interaction_id
    return views.Frame(
        client_name=visit.client.name,
        message=interaction.request.context_message,
        user_name=interaction.user_name or None,
        step=(step, _steps(visit)) if step is not None and not interaction.session_id else None,
        step_name=step_name(interaction),
        form_token=interactions.form_token(provider, visit.browser.browser_id, where),
        cancel=views.Form(action=place(desk, where, "cancel")),
        expires_at=f"{until:%H:%M} {until.tzname()}",
        expires_in=max(0, int(interaction.expires_at - caller.now)),
        extend=views.Form(action=place(desk, where, "extend")) if extendable else None,
    )


def _shown(choice: Choice, preselected: str) -> views.Choice:
    entity = choice.entity
    return views.Choice(
        id=entity.entity_id,
        name=entity.name,
        number=entity.registration_number,
        type=entity.type,
        status=entity.status,
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
    return views.SignIn(
        frame=frame(desk, caller, visit, step=1),
        action=place(desk, visit.interaction.interaction_id, "password"),
        user_name=again.typed,
        errors=again.errors,
    )


def _code(desk: Desk, caller: Caller, visit: Visit, _: sign_in.AskCode, again: _Again) -> View:
    return views.SecondFactor(
        frame=frame(desk, caller, visit, step=2),
        action=place(desk, visit.interaction.interaction_id, "code"),
        errors=again.errors,
    )


def _choice(desk: Desk, caller: Caller, visit: Visit, page: sign_in.ChooseEntity, again: _Again) -> View:
    where = visit.interaction.interaction_id
    return views.ChooseEntity(
        frame=frame(desk, caller, visit, step=3),
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
        frame=frame(desk, caller, visit, step=_steps(visit)),
        action=place(desk, visit.interaction.interaction_id, "consent"),
        items=_told(visit.interaction.request),
        entity=page.choice.entity.name,
    )


def _confirm(desk: Desk, caller: Caller, visit: Visit, page: sign_in.Confirm, _: _Again) -> View:
    return views.Confirm(
        frame=frame(desk, caller, visit, step=None),
        action=place(desk, visit.interaction.interaction_id, "confirm"),
        user_name=page.user.name,
        entity=page.choice.entity.name,
    )


_VIEWS: Final[Mapping[type[sign_in.Page], Callable[..., View]]] = {
    sign_in.AskPassword: _password,
    sign_in.AskCode: _code,
    sign_in.ChooseEntity: _choice,
    sign_in.NoEntity: _no_entity,
    sign_in.AskConsent: _consent,
    sign_in.Confirm: _confirm,
}


def _told(request: AuthorizationRequest) -> tuple[str, ...]:
    """What consent concerns; where a client wants it asked for less (D40), what every sign-in tells.

    A packed subject and what stands beside it tell everything, whatever was asked for (R-12.2).
    """
    everything = GENERATIONS[request.generation].packed_subject
    scopes = IDENTITY_SCOPES if everything else request.scopes
    told = tuple(what_a_scope_tells(scope) for scope in scopes if scope in IDENTITY_SCOPES)
    return told or ("That you signed in, the organisation that you act for, and what you may do for it",)


def leaving(desk: Desk, visit: Visit) -> View:
    """The own page between the last POST and the client (D37)."""
    return views.Leave(
        frame=views.Frame(client_name=visit.client.name),
        url=place(desk, visit.interaction.interaction_id, "leave"),
        client_name=visit.client.name,
    )


def waiting(desk: Desk, visit: Visit) -> View:
    """A completion is being written by another request (D15)."""
    return views.Wait(
        frame=views.Frame(client_name=visit.client.name), url=place(desk, visit.interaction.interaction_id)
    )


def _way_back(desk: Desk, visit: Visit) -> views.Link:
    url = place(desk, visit.interaction.interaction_id, "leave")
    return views.Link(url=url, text=f"Return to {visit.client.name}")


def expired(desk: Desk, visit: Visit) -> View:
    """The ten minutes are over (D15)."""
    return views.Problem(
        frame=views.Frame(client_name=visit.client.name),
        heading="This sign-in has expired",
        paragraphs=(
            "For your safety a sign-in has to be finished within a few minutes. Nothing was shared.",
            f"Return to {visit.client.name} and start again.",
        ),
        back=_way_back(desk, visit),
    )


def ended(desk: Desk, visit: Visit) -> View:
    """This sign-in was finished before, here or in another tab (D15)."""
    return views.Problem(
        frame=views.Frame(client_name=visit.client.name),
        heading="This sign-in is finished",
        paragraphs=(
            "It was completed or cancelled, here or in another tab, and works only once.",
            f"Return to {visit.client.name}. If you are not signed in there, start again.",
        ),
        back=_way_back(desk, visit),
    )


def shut(desk: Desk, visit: Visit) -> View:
    """Too many wrong codes have ended this sign-in (D45)."""
    return views.Problem(
        frame=views.Frame(client_name=visit.client.name),
        heading="This sign-in was stopped",
        paragraphs=(
            "The code was wrong too often, so this sign-in was ended for your safety. Nothing was shared.",
            f"Return to {visit.client.name} and start again.",
        ),
        back=_way_back(desk, visit),
    )


def other_browser(client: Client | None, interaction: Interaction) -> View:
    """The page was opened in another browser than the one that began, or cookies are blocked (D34)."""
    parts = urlsplit(interaction.request.redirect_uri)
    name = client.name if client is not None else None
    link = views.Link(url=f"{parts.scheme}://{parts.netloc}/", text=f"Go to {name}") if name else None
    return views.Problem(
        frame=views.Frame(client_name=name),
        heading="This sign-in belongs to another browser",
        paragraphs=(
            "It was started in another browser or window, or this browser does not keep cookies.",
            "Allow cookies for this site, go back to the service you came from and start again.",
        ),
        back=link,
    )


def claimed_elsewhere(visit: Visit) -> View:
    """Another browser was quicker with this request (D15)."""
    return other_browser(visit.client, visit.interaction)


def unknown() -> View:
    """There is no such sign-in any more."""
    return views.Problem(
        frame=views.Frame(),
        heading="This sign-in is no longer here",
        paragraphs=(
            "The address is incomplete, or the sign-in ended some time ago.",
            "Go back to the service you came from and start again.",
        ),
    )
