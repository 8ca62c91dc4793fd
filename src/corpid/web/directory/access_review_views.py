"""Views of the yearly access review (D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from corpid.texts import phrase
from corpid.web.pages.layout import Pager, PageView, ViewPart

if TYPE_CHECKING:
    from corpid.texts import Phrase
    from corpid.web.directory.people_views import RoleSentence


class ReviewedPerson(ViewPart, frozen=True, kw_only=True):
    """A person to review, with their access."""

    url: str
    name: str
    tags: tuple[Phrase, ...]
    level: Phrase | None
    roles: tuple[RoleSentence, ...]
    field: str
    """the name of the checkbox"""
    seen: str
    """its value, which names what is shown here"""
    button: str
    """the value of the button that keeps this person"""
    ticked: bool
    changed: bool
    """whether this is no longer as it was when it was ticked"""
    why_not: Phrase | None
    """why the reader cannot keep this person"""
    end: str
    """the address of the page that ends the membership; empty if the reader cannot"""


class AccessReview(PageView, frozen=True, kw_only=True):
    """The review's state, and a page of people to review."""

    template: ClassVar[str] = "manage/access_review.html"
    heading: ClassVar[Phrase] = phrase("Access review")

    action: str
    state: Phrase
    last: Phrase | None
    """who signed the last one off"""
    progress: Phrase | None
    kept: int
    count: int
    begin: str
    """the address of the list before the review is due; empty if the list is here, or nothing is left"""
    people: tuple[ReviewedPerson, ...]
    sign_off: str
    """the address of the confirmation; empty while somebody is left"""
    pager: Pager
    saved: Phrase | None = None
    notes: tuple[Phrase, ...] = ()
