"""The frame of a sign-in's pages: client, step, time limit, ways out (DESIGN "Pages")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from corpid.flows.authentication import account_client, interactions
from corpid.rules.limits import ACCOUNT_FRESH_SECONDS, INTERACTION_EXTENSIONS
from corpid.texts import phrase
from corpid.web.context import interaction_path
from corpid.web.pages.layout import Form, Frame, time_limit

if TYPE_CHECKING:
    from corpid.flows.authentication.visits import Visit
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.sign_in import Interaction
    from corpid.rules.oauth.records import Client
    from corpid.web.context import WebContext

_ANEW: Final = phrase(
    "Sign in again to change how you sign in: your last sign-in was more than {minutes} minutes ago.",
    minutes=ACCOUNT_FRESH_SECONDS // 60,
)
_NO_MORE_TIME: Final = phrase("This sign-in cannot be extended any more.")


def step_name(interaction: Interaction) -> str:
    """Return the step that a form names.

    An extension does not change it. Source: D15, WCAG 2.2.1
    """
    return str(interaction.serial - interaction.extensions)


def frame(web: WebContext, context: RequestContext, visit: Visit, *, step: tuple[int, int] | None) -> Frame:
    """Return the frame of a page that asks something.

    `step` is its number and the number of steps. Source: D12, D15, D17
    """
    interaction, provider = visit.interaction, web.provider
    extendable = interaction.extensions < INTERACTION_EXTENSIONS
    where = interaction.interaction_id
    return Frame(
        client_name=visit.client.name,
        message=interaction.request.context_message,
        user_name=interaction.user_name or None,
        step=step,
        step_name=step_name(interaction),
        form_token=interactions.form_token(context, visit.browser.browser_id, where),
        cancel=Form(action=interaction_path(web, where, "cancel")),
        limit=time_limit(
            interaction.expires_at,
            now=context.now,
            zone=provider.policy.timezone,
            more=Form(action=interaction_path(web, where, "extend")) if extendable else None,
            at_end=_NO_MORE_TIME,
        ),
        under_way=True,
        reason=_ANEW if account_client.is_reauthentication(interaction.request) else None,
        ui_locales=interaction.request.ui_locales,
        here=interaction_path(web, where),
    )


async def final_frame(web: WebContext, context: RequestContext, client: Client, interaction: Interaction) -> Frame:
    """Return the frame of a page that asks nothing more.

    It names the client and, once chosen, the entity. Source: D12
    """
    known, acting = client_frame(web, client, interaction), None
    if interaction.entity_id:
        acting = await web.provider.registry_cache.acting(interaction.user_id, interaction.entity_id, context.now)
    return replace(known, entity=acting.entity.name) if acting else known


def client_frame(web: WebContext, client: Client, interaction: Interaction) -> Frame:
    """Return the frame without data from the directory.

    The directory may be unavailable. Source: D12
    """
    request = interaction.request
    return Frame(
        client_name=client.name,
        message=request.context_message,
        ui_locales=request.ui_locales,
        here=interaction_path(web, interaction.interaction_id),
    )
