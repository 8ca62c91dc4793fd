"""Pages of a sign-in that cannot continue (D15, D34, D45)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from corpid.texts import phrase
from corpid.web.authentication.page_context import final_frame
from corpid.web.context import interaction_path
from corpid.web.pages import views
from corpid.web.pages.layout import Frame, Link, client_site

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.flows.authentication.visits import Visit
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.sign_in import Interaction
    from corpid.rules.oauth.records import Client
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View


class Ending(Enum):
    """The reason for the end of a sign-in."""

    EXPIRED = "expired"
    """the ten minutes are over (D15)"""
    ENDED = "ended"
    """finished before, here or in another tab (D15)"""
    ENDED_ELSEWHERE = "ended_elsewhere"
    """another sign-in answered the same request (D15)"""
    SHUT = "shut"
    """too many wrong codes (D45)"""
    CLAIMED_ELSEWHERE = "claimed_elsewhere"
    """another browser was first with this request (D15)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    heading: Phrase
    said: Phrase
    advice: Callable[[str], Phrase]
    """by the client's name"""
    answers: bool = True
    """true if the link back carries an answer of this sign-in"""


def _anew(name: str) -> Phrase:
    return phrase("Return to {name} and start again.", name=name)


def _anew_unless_signed_in(name: str) -> Phrase:
    return phrase("Return to {name}. If you are not signed in there, start again.", name=name)


def _there(name: str) -> Phrase:
    return phrase(
        "Go on there. If that was not you, or the other page is closed, go to {name} and start again.", name=name
    )


_COMPLETED: Final = _Told(
    heading=phrase("This sign-in is finished"),
    said=phrase("It was completed or cancelled, here or in another tab, and works only once."),
    advice=_anew_unless_signed_in,
)
_TOLD: Final[Mapping[Ending, _Told]] = {
    Ending.EXPIRED: _Told(
        heading=phrase("This sign-in has expired"),
        said=phrase("For your safety a sign-in has to be finished within a few minutes. Nothing was shared."),
        advice=_anew,
    ),
    Ending.ENDED: _COMPLETED,
    Ending.ENDED_ELSEWHERE: _Told(
        heading=_COMPLETED.heading, said=_COMPLETED.said, advice=_COMPLETED.advice, answers=False
    ),
    Ending.SHUT: _Told(
        heading=phrase("This sign-in was stopped"),
        said=phrase("The code was wrong too often, so this sign-in was ended for your safety. Nothing was shared."),
        advice=_anew,
    ),
    Ending.CLAIMED_ELSEWHERE: _Told(
        heading=phrase("This sign-in goes on in another browser"),
        said=phrase("The same link was opened in another browser or window too, and a person went on there."),
        advice=_there,
        answers=False,
    ),
}


def page(ending: Ending, name: str, frame: Frame, back: Link | None) -> views.Problem:
    """Return the page of an ending; `name` is the client's name."""
    told = _TOLD[ending]
    return views.Problem(frame=frame, heading=told.heading, paragraphs=(told.said, told.advice(name)), back=back)


async def over(web: WebContext, context: RequestContext, visit: Visit, ending: Ending) -> View:
    """Return the page of a finished sign-in, for its own browser."""
    client, interaction = visit.client, visit.interaction
    answer = Link(
        url=interaction_path(web, interaction.interaction_id, "leave"),
        text=phrase("Return to {name}", name=client.name),
    )
    back = answer if _TOLD[ending].answers else client_site(client, interaction.request.redirect_uri)
    return page(ending, client.name, await final_frame(web, context, client, interaction), back)


def other_browser(client: Client | None, interaction: Interaction) -> View:
    """Return the page for another browser than the sign-in's own.

    It is also shown if cookies are blocked. Source: D34
    """
    request = interaction.request
    return views.Problem(
        frame=Frame(client_name=client.name if client else None, ui_locales=request.ui_locales),
        heading=phrase("This sign-in belongs to another browser"),
        paragraphs=(
            phrase("It was started in another browser or window, or this browser does not keep cookies."),
            phrase("Allow cookies for this site, go back to the service you came from and start again."),
        ),
        back=client_site(client, request.redirect_uri) if client else None,
    )


def without_cookie() -> View:
    """Return the page for an unknown sign-in without a cookie.

    With a cookie, more might be known. Source: D34
    """
    return views.Problem(
        frame=Frame(),
        heading=phrase("Cookies are needed to sign in"),
        paragraphs=(
            phrase("This browser does not keep cookies, or the address was opened in another browser."),
            phrase("Allow cookies for this site, go back to the service you came from and start again."),
        ),
    )


def unknown() -> View:
    """Return the page for a sign-in that no longer exists."""
    return views.Problem(
        frame=Frame(),
        heading=phrase("This sign-in is no longer here"),
        paragraphs=(
            phrase("The address is incomplete, or the sign-in ended some time ago."),
            phrase("Go back to the service you came from and start again."),
        ),
    )
