"""Views of the pages on an entity's people."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from corpid.texts import phrase
from corpid.web.pages.layout import Field, FormView, Link, Pager, PageView, ViewPart

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.texts import Phrase


class PersonRow(ViewPart, frozen=True, kw_only=True):
    url: str
    name: str
    user_name: str
    email: str
    state: str
    state_text: Phrase
    level: Phrase | None
    roles: int
    details: tuple[str, ...] = ()
    """job title, department and the like"""


class People(PageView, frozen=True, kw_only=True):
    """The people of an entity, searched and filtered."""

    template: ClassVar[str] = "manage/people.html"
    heading: ClassVar[Phrase] = phrase("People")

    action: str
    people: tuple[PersonRow, ...]
    pager: Pager
    search: str
    state: str
    states: tuple[tuple[str, Phrase], ...]
    service: str
    services: tuple[tuple[str, Phrase | str], ...]
    narrowed: bool
    everybody: str
    """the address of the list without filters"""
    invite: str | None
    """the address of the page that invites; None: the reader may not"""
    own_services: bool
    """whether only access at the reader's services is counted"""


class Invite(FormView, frozen=True, kw_only=True):
    """An invitation of one person."""

    template: ClassVar[str] = "manage/invite.html"
    heading: ClassVar[Phrase] = phrase("Invite a person")

    note: Phrase
    mail_works: bool
    fields: tuple[Field, ...]
    needs_approval: bool
    several: str


class InviteSeveral(FormView, frozen=True, kw_only=True):
    """Invitations of several people, pasted as lines."""

    template: ClassVar[str] = "manage/invite_several.html"
    heading: ClassVar[Phrase] = phrase("Invite several people")

    note: Phrase
    mail_works: bool
    hint: Phrase
    people: str
    needs_approval: bool
    one: str


class InvitationPreview(FormView, frozen=True, kw_only=True):
    """The people about to be invited, before the e-mails are sent."""

    template: ClassVar[str] = "manage/invitation_preview.html"

    heading: Phrase
    note: Phrase
    mail_works: bool
    found: tuple[tuple[str, str], ...]
    """name and address"""
    people: str
    button: Phrase
    needs_approval: bool


class RoleSentence(ViewPart, frozen=True, kw_only=True):
    """Access in a sentence, with links to change it."""

    sentence: Phrase
    details: tuple[Phrase, ...]
    tag: Phrase | None = None
    what: str = ""
    """names it in its links, for those who hear them"""
    change: str = ""
    take_away: str = ""


class HistoryEntry(ViewPart, frozen=True, kw_only=True):
    """A change in a person's history."""

    at: datetime
    what: Phrase
    by: Phrase | str


class PersonPage(PageView, frozen=True, kw_only=True):
    """A person, as their entity sees them."""

    template: ClassVar[str] = "manage/person.html"

    heading: Phrase
    user_name: str
    """that of the account; empty of somebody invited"""
    written_user_name: str
    """that which the entity wrote, if it is another one"""
    email: str
    details: tuple[Field, ...]
    """those that the entity wrote"""
    state: str
    state_text: Phrase
    state_sentence: Phrase
    level: Phrase | None
    mail: Phrase | None
    """what became of the e-mail of the invitation"""
    roles: tuple[RoleSentence, ...]
    pager: Pager
    access_refused: Phrase | None
    """why the reader cannot change this access"""
    own_services: bool
    for_others: tuple[RoleSentence, ...]
    refused: Phrase | None
    """why the reader cannot change this membership"""
    give_access: str | None
    edit: str | None
    actions: tuple[Link, ...]
    end: Link | None
    entries: tuple[HistoryEntry, ...]
    history: str | None
    entity: str
    number: str
    number_name: Phrase
    as_of: Phrase
    """the day on which the page was made, for its printed copy"""
    helps: tuple[Link, ...] = ()
    """with signing in"""
    help_refused: Phrase | None = None
    """who else can help"""
    requests: tuple[Link, ...] = ()
    """those on the person that wait for a decision"""


class EditPerson(FormView, frozen=True, kw_only=True):
    """A form for what an entity writes about a person."""

    template: ClassVar[str] = "manage/edit_person.html"
    heading: ClassVar[Phrase] = phrase("Change details")

    fields: tuple[Field, ...]
    seen: str
    """digest of the details that it was made of"""
    needs_approval: bool


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
