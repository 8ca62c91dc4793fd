"""The pages of a sign-in that cannot go on: what happened, and the way back (D15, D34, D45)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpid.texts import phrase
from corpid.web import views
from corpid.web.frame import Frame, Link
from corpid.web.signin.pages import asker, place

if TYPE_CHECKING:
    from corpid.flows.interactions import Interaction
    from corpid.flows.sign_in import Visit
    from corpid.protocol.records import Client
    from corpid.web.endpoints import Desk
    from corpid.web.views import View


def _way_back(desk: Desk, visit: Visit) -> Link:
    url = place(desk, visit.interaction.interaction_id, "leave")
    return Link(url=url, text=phrase("Return to {name}", name=visit.client.name))


def expired(desk: Desk, visit: Visit) -> View:
    """The ten minutes are over (D15)."""
    return views.Problem(
        frame=asker(visit),
        heading=phrase("This sign-in has expired"),
        paragraphs=(
            phrase("For your safety a sign-in has to be finished within a few minutes. Nothing was shared."),
            phrase("Return to {name} and start again.", name=visit.client.name),
        ),
        back=_way_back(desk, visit),
    )


def ended(desk: Desk, visit: Visit) -> View:
    """This sign-in was finished before, here or in another tab (D15)."""
    return views.Problem(
        frame=asker(visit),
        heading=phrase("This sign-in is finished"),
        paragraphs=(
            phrase("It was completed or cancelled, here or in another tab, and works only once."),
            phrase("Return to {name}. If you are not signed in there, start again.", name=visit.client.name),
        ),
        back=_way_back(desk, visit),
    )


def shut(desk: Desk, visit: Visit) -> View:
    """Too many wrong codes have ended this sign-in (D45)."""
    return views.Problem(
        frame=asker(visit),
        heading=phrase("This sign-in was stopped"),
        paragraphs=(
            phrase("The code was wrong too often, so this sign-in was ended for your safety. Nothing was shared."),
            phrase("Return to {name} and start again.", name=visit.client.name),
        ),
        back=_way_back(desk, visit),
    )


def other_browser(client: Client | None, interaction: Interaction) -> View:
    """The page was opened in another browser than the one that began, or cookies are blocked (D34)."""
    parts = urlsplit(interaction.request.redirect_uri)
    name = client.name if client is not None else None
    link = Link(url=f"{parts.scheme}://{parts.netloc}/", text=phrase("Go to {name}", name=name)) if name else None
    return views.Problem(
        frame=Frame(client_name=name, ui_locales=interaction.request.ui_locales),
        heading=phrase("This sign-in belongs to another browser"),
        paragraphs=(
            phrase("It was started in another browser or window, or this browser does not keep cookies."),
            phrase("Allow cookies for this site, go back to the service you came from and start again."),
        ),
        back=link,
    )


def claimed_elsewhere(visit: Visit) -> View:
    """Another browser was quicker with this request (D15)."""
    return other_browser(visit.client, visit.interaction)


def unknown() -> View:
    """There is no such sign-in any more."""
    return views.Problem(
        frame=Frame(),
        heading=phrase("This sign-in is no longer here"),
        paragraphs=(
            phrase("The address is incomplete, or the sign-in ended some time ago."),
            phrase("Go back to the service you came from and start again."),
        ),
    )
