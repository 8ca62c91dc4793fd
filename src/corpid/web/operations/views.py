"""Views of organisations, people and services in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from corpid.texts import phrase
from corpid.web.pages.layout import FormView, PageView, ViewPart

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from corpid.texts import Phrase
    from corpid.web.pages.layout import Field, Link, Pager

Fact = tuple["Phrase", "Phrase | str"]


class StateLabel(ViewPart, frozen=True, kw_only=True):
    """A state in a word: `warning` or `error` colours it."""

    text: Phrase
    tone: str = ""


def active(enabled: bool) -> StateLabel:
    """The state of a record that can be disabled."""
    return StateLabel(text=phrase("Active")) if enabled else StateLabel(text=phrase("Disabled"), tone="error")


class Line(ViewPart, frozen=True, kw_only=True):
    """A line of a list: a link, further texts, and a state."""

    url: str
    """empty: the page is not for this operator"""
    name: str
    texts: tuple[Phrase | str, ...]
    state: StateLabel | None = None


class SearchedList(PageView, frozen=True, kw_only=True):
    """A list that can be searched in several ways."""

    template: ClassVar[str] = "console/list.html"

    heading: Phrase
    action: str
    label: Phrase
    """of the field"""
    ways: Sequence[tuple[str, Phrase]]
    """value and text of what is searched"""
    by: str
    search: str
    columns: tuple[Phrase, ...]
    lines: tuple[Line, ...]
    empty: Phrase
    add: Link | None = None
    pager: Pager


class OrganisationLine(ViewPart, frozen=True, kw_only=True):
    url: str
    name: str
    level: Phrase | None
    state: StateLabel


class RoleLine(ViewPart, frozen=True, kw_only=True):
    service: str
    service_url: str
    role: str
    organisation: str
    part: str = ""
    """of the organisation"""
    until: date | None


class SessionLine(ViewPart, frozen=True, kw_only=True):
    """A browser in which a person is signed in."""

    device: str
    purpose: Phrase
    since: datetime
    seen: datetime
    way: Phrase | None
    """how they signed in there"""
    end: str = ""
    """of the page that ends it; empty for those who may not"""


class ConsolePersonView(PageView, frozen=True, kw_only=True):
    """A person as an operator sees them."""

    template: ClassVar[str] = "console/person.html"

    heading: Phrase
    name: str
    state: StateLabel
    facts: tuple[Fact, ...]
    sign_in: tuple[Fact, ...]
    invited_until: datetime | None
    paused: tuple[tuple[Phrase, datetime], ...]
    """where, and until when"""
    actions: tuple[Link, ...]
    organisations: tuple[OrganisationLine, ...]
    roles: tuple[RoleLine, ...]
    sessions: tuple[SessionLine, ...]
    more: Phrase | None
    """if a table does not show everything"""


class AdministratorLine(ViewPart, frozen=True, kw_only=True):
    url: str
    """of the person's page; empty for somebody invited"""
    name: str
    level: Phrase
    services: str
    state: StateLabel
    resend: str = ""
    """of the page that sends the invitation again"""


class PartyLine(ViewPart, frozen=True, kw_only=True):
    """The other side of a third-party authorisation."""

    url: str
    name: str
    service: str
    role: str
    until: date | None
    state: StateLabel


class OrganisationView(PageView, frozen=True, kw_only=True):
    """An organisation as an operator sees it."""

    template: ClassVar[str] = "console/organisation.html"

    heading: Phrase
    name: str
    state: StateLabel
    facts: tuple[Fact, ...]
    no_owner: bool
    actions: tuple[Link, ...]
    administrators: tuple[AdministratorLine, ...]
    more_administrators: bool
    third_parties: tuple[PartyLine, ...]
    more_third_parties: bool
    clients: tuple[PartyLine, ...]
    """for which it is a third party"""
    more_clients: bool


class NewOrganisation(FormView, frozen=True, kw_only=True):
    """The form of a new organisation, and of its first owner."""

    template: ClassVar[str] = "console/new_organisation.html"
    heading: ClassVar[Phrase] = phrase("Add an organisation")

    fields: tuple[Field, ...]
    owner: tuple[Field, ...]
    mail_works: bool


class AppointOwner(FormView, frozen=True, kw_only=True):
    """The form that appoints an owner, also in place of another."""

    template: ClassVar[str] = "console/owner.html"
    heading: ClassVar[Phrase] = phrase("Appoint an owner")

    organisation: str
    owners: tuple[tuple[str, Phrase | str, str], ...]
    """of the field `instead_of`"""
    ways: tuple[tuple[str, Phrase, str], ...]
    """of the field `way`"""
    fields: tuple[Field, ...]
    """of somebody to invite"""
    typed: dict[str, str]
    mail_works: bool


class RoleOfService(ViewPart, frozen=True, kw_only=True):
    name: str
    description: str


class ServiceView(PageView, frozen=True, kw_only=True):
    """A service, its roles, and the clients that use it."""

    template: ClassVar[str] = "console/service.html"

    heading: Phrase
    name: str
    description: str
    state: StateLabel
    facts: tuple[Fact, ...]
    edit: str
    """of the form; empty for those who may not change it"""
    roles: tuple[RoleOfService, ...]
    clients: tuple[tuple[str, str], ...]
    """name and identifier"""
    more_clients: bool


class EditService(FormView, frozen=True, kw_only=True):
    """The form of a service's texts, and of its approval."""

    template: ClassVar[str] = "console/edit_service.html"
    heading: ClassVar[Phrase] = phrase("Change the service")

    texts: tuple[Field, ...]
    roles: tuple[Field, ...]
    """the descriptions of its roles"""
    approval: tuple[Field, ...]
