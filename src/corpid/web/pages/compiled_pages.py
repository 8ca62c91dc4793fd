"""Pages of a sign-in, rendered once and filled for each request.

What belongs to one request is taken out of a view, and a gap put in its place: the identifier of the sign-in, the form
token, the time limit, names and texts of this person. The page of what is left is rendered once and cached; a view that
differs in anything else is another page. So no page that is cached has ever held what belongs to a request.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from markupsafe import escape
from msgspec.structs import replace

from corpid.web.pages.components import ButtonForm, FieldError, Frame, TimeLimit, View, ViewPart
from corpid.web.pages.views import (
    CHOICES_WITHOUT_SEARCH,
    AskPasskey,
    ChooseEntity,
    Consent,
    Leave,
    OfferPasskey,
    SecondFactor,
    SignIn,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from corpid.texts import Phrase

_MARK: Final = f"slot{secrets.token_hex(16)}"
"""no text contains it, and it needs no escaping in HTML or a URL"""
_MARKED: Final = re.compile(f"({_MARK}[a-z]+[0-9]*_)")


class Slot(str):
    """A place in a page that each request fills."""

    __slots__ = ()

    @classmethod
    def named(cls, name: str) -> Slot:
        """`name` in lower-case letters, perhaps with a number."""
        return cls(f"{_MARK}{name}_")


Filling: TypeAlias = dict[str, str]
"""HTML by slot"""


class CompiledPage:
    """Rendered HTML with slots."""

    __slots__ = ("_parts", "_slots")

    def __init__(self, html: str) -> None:
        self._parts = _MARKED.split(html)
        self._slots = self._parts[1::2]

    def filled(self, filling: Filling) -> str:
        """The HTML with every slot filled."""
        parts = self._parts.copy()
        parts[1::2] = map(filling.__getitem__, self._slots)
        return "".join(parts)


class _Seconds(int):
    """A number of seconds of which a page shows a gap."""

    def __str__(self) -> str:
        return _SECONDS


_SIGN_IN: Final = Slot.named("signin")
"""in every path of its pages"""
_TOKEN: Final = Slot.named("token")
_END: Final = Slot.named("end")
_SECONDS: Final = Slot.named("seconds")
_USER_NAME: Final = Slot.named("username")
_MESSAGE: Final = Slot.named("message")
_ENTITY: Final = Slot.named("entity")
_OPTIONS: Final = Slot.named("options")
CONTENT: Final = Slot.named("content")
"""of a page of which only the frame is cached"""
_CHOICES: Final = [
    {member: Slot.named(f"{member}{number}") for member in ("id", "name", "number")}
    for number in range(CHOICES_WITHOUT_SEARCH)
]
"""what is each entity's own, in a list that is short enough for all to be shown"""


class FrameView(ViewPart, frozen=True, kw_only=True):
    """A page around its content: what base.html shows of a view."""

    template: str
    heading: Phrase
    frame: Frame
    errors: tuple[FieldError, ...] = ()


CachedView: TypeAlias = SignIn | SecondFactor | ChooseEntity | Leave | FrameView
"""a view with gaps"""


def separate_slots(view: View, marked_up: Callable[[datetime], str]) -> tuple[CachedView, Filling] | None:
    """A view with gaps, and what this request fills them with.

    `marked_up` gives the HTML of a time of day. None if the page is rendered as a whole: one that belongs to no
    sign-in, or that answers what was typed.
    """
    frame = view.frame
    separate = _SEPARATE.get(type(view)) if frame.sign_in and not view.errors else None
    if separate is None:
        return None
    filling: Filling = {_SIGN_IN: frame.sign_in, _TOKEN: str(escape(frame.form_token))}
    cached = separate(view, _frame(frame, filling, marked_up), filling)
    return None if cached is None else (cached, filling)


def _frame(frame: Frame, filling: Filling, marked_up: Callable[[datetime], str]) -> Frame:
    sign_in, limit = frame.sign_in, frame.limit
    if limit is not None:
        filling[_END], filling[_SECONDS] = marked_up(limit.at), str(limit.seconds)
        limit = _limit(limit, sign_in)
    return replace(
        frame,
        sign_in="",
        form_token=_TOKEN,
        user_name=_gap(frame.user_name, _USER_NAME, filling),
        message=_gap(frame.message, _MESSAGE, filling),
        entity=_gap(frame.entity, _ENTITY, filling),
        cancel=_form(frame.cancel, sign_in),
        limit=limit,
        here=_path(frame.here, sign_in),
        # Those decide the language, and are not shown.
        ui_locales=(),
        account_language="",
    )


def _limit(limit: TimeLimit, sign_in: str) -> TimeLimit:
    # The template asks only whether the end is near, so one value stands for each answer.
    seconds = _Seconds(0 if limit.near else limit.warn_seconds + 1)
    return replace(limit, at=cast("datetime", _END), seconds=seconds, extend=_form(limit.extend, sign_in))


def _gap(text: str | None, gap: Slot, filling: Filling) -> str | None:
    """A gap for a text, unless there is none."""
    if not text:
        return text
    filling[gap] = str(escape(text))
    return gap


def _form(form: ButtonForm | None, sign_in: str) -> ButtonForm | None:
    return None if form is None else ButtonForm(action=_path(form.action, sign_in))


def _path(path: str, sign_in: str) -> str:
    return path.replace(sign_in, _SIGN_IN)


def _passkey(passkey: AskPasskey | None, sign_in: str, filling: Filling) -> AskPasskey | None:
    if passkey is None:
        return None
    filling[_OPTIONS] = str(escape(passkey.options))
    return replace(passkey, action=_path(passkey.action, sign_in), options=_OPTIONS)


def _sign_in(view: SignIn, frame: Frame, filling: Filling) -> SignIn | None:
    if view.at_once or view.person:
        return None
    here = view.frame.sign_in
    return replace(
        view,
        frame=frame,
        action=_path(view.action, here),
        passkey=_passkey(view.passkey, here, filling),
        recover=_path(view.recover, here),
    )


def _second_factor(view: SecondFactor, frame: Frame, filling: Filling) -> SecondFactor | FrameView:
    here, asked = view.frame.sign_in, view.asked
    if asked.hint.values:  # an e-mail address in it is one person's
        return _around(view, frame, filling)
    return replace(
        view,
        frame=frame,
        action=_path(view.action, here),
        asked=replace(
            asked,
            passkey=_passkey(asked.passkey, here, filling),
            ways_action=_path(asked.ways_action, here),
        ),
    )


def _leave(view: Leave, frame: Frame, _: Filling) -> Leave:
    return replace(view, frame=frame, url=_path(view.url, view.frame.sign_in))


def _choice(view: ChooseEntity, frame: Frame, filling: Filling) -> ChooseEntity | FrameView | None:
    # What was searched for is in the addresses of its page.
    if view.query:
        return None
    if view.searchable or len(view.choices) > len(_CHOICES):
        return _around(view, frame, filling)
    here, choices = view.frame.sign_in, []
    for choice, gaps in zip(view.choices, _CHOICES, strict=False):
        for member, gap in gaps.items():
            filling[gap] = str(escape(getattr(choice, member)))
        choices.append(replace(choice, **gaps))
    return replace(
        view,
        frame=frame,
        action=_path(view.action, here),
        search_action=_path(view.search_action, here),
        choices=tuple(choices),
    )


def _around(view: View, frame: Frame, _: Filling) -> FrameView:
    return FrameView(template=view.template, heading=view.heading, frame=frame)


_SEPARATE: Final[Mapping[type[Any], Callable[[Any, Frame, Filling], CachedView | None]]] = {
    SignIn: _sign_in,
    SecondFactor: _second_factor,
    Leave: _leave,
    ChooseEntity: _choice,
    # Their content is one person's.
    Consent: _around,
    OfferPasskey: _around,
}
