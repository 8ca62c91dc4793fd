"""Views of the pages on people's access, with what their templates show."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from corpid.texts import phrase
from corpid.web.pages.layout import Link, PageView, ViewPart

if TYPE_CHECKING:
    from corpid.texts import Phrase
    from corpid.web.pages.role_fields import Option, RoleFields

HeldLine = tuple["Phrase", "tuple[Phrase, ...]"]
"""a role that a person has: its sentence and its limits"""
Pairs = tuple[tuple[str, str], ...]
"""hidden fields: name and value"""


class GiveAccess(PageView, frozen=True, kw_only=True):
    """A person's new access: service, role and days, one after the other."""

    template: ClassVar[str] = "manage/give_access.html"
    heading: ClassVar[Phrase] = phrase("Give access")

    action: str
    kept: Pairs
    """what was chosen before"""
    chosen: tuple[tuple[Phrase, str, str], ...]
    """what was chosen, by name, value and where to change it"""
    held: tuple[HeldLine, ...] = ()
    """what the person has already; at the service, once it is chosen"""
    holds_more: bool = False
    refused: Phrase | None = None
    """why nothing can be given"""
    services: tuple[Option, ...] = ()
    service: str = ""
    find: str = ""
    searchable: bool = False
    fields: RoleFields | None = None
    confirm: AccessConfirmation | None = None
    notes: tuple[Phrase, ...] = ()
    back: Link
    links: tuple[Link, ...] = ()


class AccessConfirmation(ViewPart, frozen=True, kw_only=True):
    """A change in a sentence, to be confirmed."""

    sentence: Phrase
    details: tuple[Phrase, ...]
    kept: Pairs
    needs_approval: bool
    reason: str
    again: str
    """where to change what was typed"""
    was: Phrase | None = None
    was_details: tuple[Phrase, ...] = ()


class ChangeAccess(PageView, frozen=True, kw_only=True):
    """A role to be changed: fields, then both sentences."""

    template: ClassVar[str] = "manage/change_access.html"
    heading: ClassVar[Phrase] = phrase("Change access")

    action: str
    was: Phrase
    was_details: tuple[Phrase, ...]
    refused: Phrase | None = None
    fields: RoleFields | None = None
    confirm: AccessConfirmation | None = None
    notes: tuple[Phrase, ...] = ()
    remove: str
    back: Link


class RemoveAccess(PageView, frozen=True, kw_only=True):
    """A role to be taken away."""

    template: ClassVar[str] = "manage/remove_access.html"
    heading: ClassVar[Phrase] = phrase("Take this access away?")

    action: str
    was: Phrase
    was_details: tuple[Phrase, ...]
    loses: Phrase
    refused: Phrase | None = None
    needs_approval: bool
    reason: str
    notes: tuple[Phrase, ...] = ()
    back: Link


class CopiedRole(ViewPart, frozen=True, kw_only=True):
    """A role that can be copied: its box and its sentence."""

    name: str
    sentence: Phrase
    details: tuple[Phrase, ...]
    chosen: bool


class CopyAccess(PageView, frozen=True, kw_only=True):
    """The roles of a colleague, to be given to a person."""

    template: ClassVar[str] = "manage/copy_access.html"
    heading: ClassVar[Phrase] = phrase("Copy a colleague's access")

    action: str
    kept: Pairs
    colleague: str
    another: str
    """where to choose another colleague"""
    roles: tuple[CopiedRole, ...]
    held: tuple[HeldLine, ...]
    """what the person has already"""
    more: bool
    not_all: bool = False
    """whether the colleague has more roles than this page looks at"""
    needs_approval: bool
    reason: str
    notes: tuple[Phrase, ...] = ()
    back: Link


class ImportedLine(ViewPart, frozen=True, kw_only=True):
    """The effect of a line of a table."""

    number: int
    does: Phrase
    sentence: Phrase
    details: tuple[Phrase, ...]


class ImportAccess(PageView, frozen=True, kw_only=True):
    """A table of people and roles: pasted, looked at, confirmed."""

    template: ClassVar[str] = "manage/import_access.html"
    heading: ClassVar[Phrase] = phrase("Give access with a table")

    action: str
    table: str
    columns: tuple[str, ...]
    most_lines: int
    problems: tuple[tuple[int, str], ...]
    """line and what is wrong there"""
    lines: tuple[ImportedLine, ...]
    changes: Phrase | None
    """how many there would be; None before the table was sent"""
    is_change: bool
    needs_approval: bool
    reason: str
    notes: tuple[Phrase, ...] = ()
    back: str
