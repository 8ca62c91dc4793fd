"""A person at a page of their account, and what surrounds that page (DESIGN "Pages")."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from corpid.flows import interactions
from corpid.flows.account import openings
from corpid.flows.account.own_client import PATH
from corpid.texts import phrase
from corpid.web.frame import Form, Frame, Link, time_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.account.visits import AccountVisit
    from corpid.flows.caller import Caller
    from corpid.texts import Phrase
    from corpid.web.endpoints import Desk
    from corpid.web.frame import FieldError

EXTEND: Final = "extend"
"""the last part of the address at which a page is given more time"""
_UP: Final = phrase("Your account")
_AGAIN: Final = phrase("You have signed in again. Nothing has changed yet: go on here.")
_CLOSES: Final = phrase(
    "There is no more time after that, but you can sign in again: what is shown here stays the same until you use it."
)
_SIGNED_OUT: Final = phrase("You are signed out after that, and can sign in again.")


class Gone(Exception):
    """What the page was about is not there, or not this person's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A person at a page of their account, with the form that they sent, if they did."""

    desk: Desk
    who: Caller
    visit: AccountVisit
    page: str
    form: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[FieldError, ...] = ()
    saved: bool = False
    """whether something was just changed"""
    again: bool = False
    """whether they come from a sign-in that the page asked for"""

    @property
    def notes(self) -> tuple[Phrase, ...]:
        """What is said before anything else on a page that may ask for a sign-in."""
        return (_AGAIN,) if self.again else ()


def place(desk: Desk, page: str = "") -> str:
    """The address path of a page of the account."""
    return f"{desk.base_path}{PATH}" + (f"/{page}" if page else "")


def moment(desk: Desk, at: float) -> datetime:
    """Epoch seconds in the time zone of the deployment."""
    return datetime.fromtimestamp(at, desk.provider.policy.timezone)


def frame(turn: Turn, *, up: Link | None = None, step_name: str = "") -> Frame:
    """Around a page of the account: how long it stays open, and the way up; the overview has none (D30, WCAG 2.2.1)."""
    desk, visit = turn.desk, turn.visit
    more = Form(action=place(desk, f"{turn.page}/{EXTEND}" if turn.page else EXTEND))
    return Frame(
        form_token=interactions.form_token(desk.provider, visit.browser.browser_id, visit.form),
        step_name=step_name,
        up=up or (Link(url=place(desk), text=_UP) if turn.page else None),
        limit=time_limit(
            openings.ends_at(desk.provider, visit),
            now=turn.who.now,
            zone=desk.provider.policy.timezone,
            more=more if openings.extendable(desk.provider, visit) else None,
            at_end=_SIGNED_OUT if visit.opening is None else _CLOSES,
            of_session=visit.opening is None,
        ),
        here=place(desk, turn.page),
    )
