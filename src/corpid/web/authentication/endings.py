"""Pages of a sign-in that has ended, or is not this browser's (D15, D34)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from corpid.rules.authentication.sign_in import ClosureReason
from corpid.texts import phrase
from corpid.web.authentication.pages import final_frame
from corpid.web.context import interaction_path
from corpid.web.pages import views
from corpid.web.pages.layout import Frame, Link, ViewPart, client_site

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.sign_in import Interaction
    from corpid.rules.oauth.records import Client
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View


class SignInEnd(Enum):
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


class _EndingText(ViewPart, frozen=True, kw_only=True):
    heading: Phrase
    explanation: Phrase
    advice: Callable[[str], Phrase]
    """by the client's name"""
    answers: bool = True
    """true if the link back carries an answer of this sign-in"""


def _start_again(name: str) -> Phrase:
    return phrase("Return to {name} and start again.", name=name)


def _start_again_unless_signed_in(name: str) -> Phrase:
    return phrase("Return to {name}. If you are not signed in there, start again.", name=name)


def _go_on_there(name: str) -> Phrase:
    return phrase(
        "Continue there. If that was not you, or the other page is closed, go to {name} and start again.", name=name
    )


_COMPLETED: Final = _EndingText(
    heading=phrase("This sign-in is finished"),
    explanation=phrase("It was completed or cancelled, here or in another tab. A sign-in works only once."),
    advice=_start_again_unless_signed_in,
)
_ENDING_TEXTS: Final[Mapping[SignInEnd, _EndingText]] = {
    SignInEnd.EXPIRED: _EndingText(
        heading=phrase("This sign-in has expired"),
        explanation=phrase(
            "For your security, you have to finish signing in within a few minutes. Nothing was shared."
        ),
        advice=_start_again,
    ),
    SignInEnd.ENDED: _COMPLETED,
    SignInEnd.ENDED_ELSEWHERE: _EndingText(
        heading=_COMPLETED.heading, explanation=_COMPLETED.explanation, advice=_COMPLETED.advice, answers=False
    ),
    SignInEnd.SHUT: _EndingText(
        heading=phrase("This sign-in was stopped"),
        explanation=phrase(
            "The code was wrong too many times, so we ended this sign-in for your security. Nothing was shared."
        ),
        advice=_start_again,
    ),
    SignInEnd.CLAIMED_ELSEWHERE: _EndingText(
        heading=phrase("This sign-in continues in another browser"),
        explanation=phrase("The same link was also opened in another browser or window, and somebody continued there."),
        advice=_go_on_there,
        answers=False,
    ),
}


OF_CLOSED: Final[Mapping[ClosureReason, SignInEnd]] = {
    ClosureReason.ENDED: SignInEnd.ENDED,
    ClosureReason.ANSWERED_ELSEWHERE: SignInEnd.ENDED_ELSEWHERE,
    ClosureReason.EXPIRED: SignInEnd.EXPIRED,
}


def ending_page(ending: SignInEnd, name: str, frame: Frame, back: Link | None) -> views.Problem:
    """Return the page of an ending; `name` is the client's name."""
    text = _ENDING_TEXTS[ending]
    return views.Problem(frame=frame, heading=text.heading, paragraphs=(text.explanation, text.advice(name)), back=back)


async def ended_page(web: WebContext, context: RequestContext, visit: InteractionContext, ending: SignInEnd) -> View:
    """Return the page of a finished sign-in, for its own browser."""
    client, interaction = visit.client, visit.interaction
    answer = Link(
        url=interaction_path(web, interaction.interaction_id, "leave"),
        text=phrase("Return to {name}", name=client.name),
    )
    back = answer if _ENDING_TEXTS[ending].answers else client_site(client, interaction.request.redirect_uri)
    return ending_page(ending, client.name, await final_frame(web, context, client, interaction), back)


def other_browser(client: Client | None, interaction: Interaction) -> View:
    """Return the page for another browser than the sign-in's own.

    It is also shown if cookies are blocked. Source: D34
    """
    request = interaction.request
    return views.Problem(
        frame=Frame(client_name=client.name if client else None, ui_locales=request.ui_locales),
        heading=phrase("This sign-in belongs to another browser"),
        paragraphs=(
            phrase("It was started in another browser or window, or this browser does not accept cookies."),
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
            phrase("This browser does not accept cookies, or the address was opened in another browser."),
            phrase("Allow cookies for this site, go back to the service you came from and start again."),
        ),
    )


def unknown(reason: Phrase | None = None) -> View:
    """Return the page for a sign-in that no longer exists.

    `reason` is the one that is known.
    """
    return views.Problem(
        frame=Frame(),
        heading=phrase("We cannot find this sign-in"),
        paragraphs=(
            reason or phrase("The address is incomplete, or the sign-in ended a while ago."),
            phrase("Go back to the service you came from and start again."),
        ),
    )
