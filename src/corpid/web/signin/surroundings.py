"""What surrounds the pages of a sign-in: who asks, for whom, how far it is, how long, and the ways out (DESIGN "Pages")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from corpid.flows import interactions
from corpid.flows.account import own_client
from corpid.protocol.limits import ACCOUNT_FRESH_SECONDS, INTERACTION_EXTENSIONS
from corpid.texts import phrase
from corpid.web.frame import Form, Frame, Link, time_limit
from corpid.web.signin.place import place

if TYPE_CHECKING:
    from corpid.flows.caller import Caller
    from corpid.flows.interactions import Interaction
    from corpid.flows.sign_in import Visit
    from corpid.protocol.records import Client
    from corpid.web.endpoints import Desk

_ANEW: Final = phrase(
    "Sign in again to change how you sign in: your last sign-in was more than {minutes} minutes ago.",
    minutes=ACCOUNT_FRESH_SECONDS // 60,
)
_NO_MORE_TIME: Final = phrase("This sign-in cannot be extended any more.")


def step_name(interaction: Interaction) -> str:
    """What a form says of its page: more time leaves the forms that are shown as they are (D15, WCAG 2.2.1)."""
    return str(interaction.serial - interaction.extensions)


def frame(desk: Desk, caller: Caller, visit: Visit, *, step: tuple[int, int] | None) -> Frame:
    """Around a page that asks something; `step` is its number and how many there are (D12, D15, D17)."""
    interaction, provider = visit.interaction, desk.provider
    extendable = interaction.extensions < INTERACTION_EXTENSIONS
    where = interaction.interaction_id
    return Frame(
        client_name=visit.client.name,
        message=interaction.request.context_message,
        user_name=interaction.user_name or None,
        step=step,
        step_name=step_name(interaction),
        form_token=interactions.form_token(provider, visit.browser.browser_id, where),
        cancel=Form(action=place(desk, where, "cancel")),
        limit=time_limit(
            interaction.expires_at,
            now=caller.now,
            zone=provider.policy.timezone,
            more=Form(action=place(desk, where, "extend")) if extendable else None,
            at_end=_NO_MORE_TIME,
        ),
        under_way=True,
        reason=_ANEW if own_client.made_anew(interaction.request) else None,
        ui_locales=interaction.request.ui_locales,
        here=place(desk, where),
    )


async def asker(desk: Desk, caller: Caller, client: Client, interaction: Interaction) -> Frame:
    """Around a page on which nothing is asked any more: who asked, and for whom, once that was chosen (D12)."""
    known, acting = asker_alone(desk, client, interaction), None
    if interaction.entity_id:
        acting = await desk.provider.live.acting(interaction.user_id, interaction.entity_id, caller.now)
    return replace(known, entity=acting.entity.name) if acting else known


def asker_alone(desk: Desk, client: Client, interaction: Interaction) -> Frame:
    """The same where the directory may not answer (D12)."""
    request = interaction.request
    return Frame(
        client_name=client.name,
        message=request.context_message,
        ui_locales=request.ui_locales,
        here=place(desk, interaction.interaction_id),
    )


def site(client: Client, redirect_uri: str = "") -> Link | None:
    """The way to who asked, where no answer can be given: the site of a redirect URI that is registered (D16).

    That of `redirect_uri`, if it is one; None for a client that has none.
    """
    known = redirect_uri if redirect_uri in client.redirect_uris else next(iter(client.redirect_uris), "")
    parts = urlsplit(known)
    # The own pages may lie below a path, and are entered at the one that they register.
    url = f"{parts.scheme}://{parts.netloc}/" if client.client_id else known
    return Link(url=url, text=phrase("Go to {name}", name=client.name)) if known else None
