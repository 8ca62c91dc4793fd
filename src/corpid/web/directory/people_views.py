"""Views of the pages on an entity's people."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from corpid.web.pages.layout import FormView, Link, ViewPart

if TYPE_CHECKING:
    from corpid.texts import Phrase


class RoleSentence(ViewPart, frozen=True, kw_only=True):
    """Access in a sentence, with links to change it."""

    sentence: Phrase
    details: tuple[Phrase, ...]
    tag: Phrase | None = None
    what: str = ""
    """names it in its links, for those who hear them"""
    change: str = ""
    take_away: str = ""


class ConfirmAction(FormView, frozen=True, kw_only=True):
    template: ClassVar[str] = "manage/confirm_person.html"

    heading: Phrase
    sentences: tuple[Phrase, ...]
    taken: tuple[Phrase, ...] = ()
    """what it takes away"""
    refused: Phrase | None = None
    button: Phrase
    look: Literal["", "button-danger"] = ""
    back: Link
    needs_approval: bool
