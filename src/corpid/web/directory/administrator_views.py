"""Views of the administrators in the portal (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from corpid.texts import phrase
from corpid.web.pages.layout import FormView, PageView, ViewPart

if TYPE_CHECKING:
    from corpid.texts import Phrase


class AdministratorRow(ViewPart, frozen=True, kw_only=True):
    """An administrator in the list."""

    name: str
    user_name: str
    level: Phrase
    sentence: Phrase
    tags: tuple[Phrase, ...]
    change: str
    """the address of the page on which the level is changed; empty if it cannot be"""
    reason: Phrase | None
    """why it cannot"""


class Administrators(PageView, frozen=True, kw_only=True):
    """The administrators of an entity."""

    template: ClassVar[str] = "manage/administrators.html"
    heading: ClassVar[Phrase] = phrase("Administrators")

    rows: tuple[AdministratorRow, ...]
    appoint: str
    """the address of the choice of a person; empty for those who appoint nobody"""
    tokens: str
    """the address of the provisioning tokens; empty for those who may not see them"""
    review: str
    """the address of the access review; empty as `appoint`"""
    saved: Phrase | None = None


class ChooseLevel(FormView, frozen=True, kw_only=True):
    """The level of a person, and then the services of a sub-administrator.

    Fields: level, or all_services and service-….
    """

    template: ClassVar[str] = "manage/administrator.html"

    heading: Phrase
    name: str
    user_name: str
    now: Phrase | None
    """what they may do at present"""
    levels: tuple[tuple[str, Phrase, Phrase], ...]
    level: str
    chosen: Phrase | None = None
    """what the level lets a person do whose services are asked; None while the level itself is"""
    another: str = ""
    """where to choose another level; empty if there is none"""
    services: tuple[tuple[str, str, str, bool], ...]
    """name of the checkbox, name of the service, its description, whether it is ticked"""
    all_services: bool
    more_services: bool = False
    """whether there are more than are listed"""
    held: str
    why_not: Phrase | None
    remove: str
    """the address on which the level is taken away; empty if there is none, or it cannot be"""
    keeps: Phrase | None
    """why the level cannot be taken away"""
    back: str
    notes: tuple[Phrase, ...] = ()


class ConfirmLevel(FormView, frozen=True, kw_only=True):
    """The summary of an appointment, to be confirmed; its form repeats `fields`.

    Field: reason, if asked.
    """

    template: ClassVar[str] = "manage/confirm_level.html"
    heading: ClassVar[Phrase] = phrase("Check and confirm")

    summary: Phrase
    consequences: tuple[Phrase, ...]
    fields: tuple[tuple[str, str], ...]
    explains: bool
    """whether a reason is asked, for the person who approves"""
    reason: str
    button: Phrase
    back: str


class RemoveLevel(FormView, frozen=True, kw_only=True):
    """The confirmation of taking a level away. Field: reason, if asked."""

    template: ClassVar[str] = "manage/remove_administrator.html"

    heading: Phrase
    consequences: tuple[Phrase, ...]
    held: str
    explains: bool
    reason: str
    allowed: bool
    back: str
    notes: tuple[Phrase, ...] = ()
