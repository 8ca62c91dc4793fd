"""The sites of own pages: sections, pages and forms, as data (D30, D54).

The account, the portal and the console are such sites; `own_pages.serve` answers for each. The check before a change
says what will happen, with its form (D55, D68).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from corpid.flows.account import own_sessions
from corpid.flows.account.own_sessions import SelfServiceRequest
from corpid.flows.authentication.own_pages import PATHS, SIGN_OUT_PATH
from corpid.flows.directory.person_names import digest_names
from corpid.flows.directory.write import Refused
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web.context import ENTERED, WebContext
from corpid.web.pages.components import Actions, FieldError, Form, Frame, Link, Page, Paragraph, Part, View, ViewPart

if TYPE_CHECKING:
    import re
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.responses import Response

    from corpid.flows.request_context import Provider, RequestContext
    from corpid.rules.authentication.records import SessionPurpose
    from corpid.rules.directory.access import Action, ObjectKind
    from corpid.stores.sql.registry import Registry

SAVED: Final = "saved"
"""the parameter that names what was changed"""
_IN_PAGES: Final = "/?&=%+,:;@~"
"""stays as it is in the address of a page, which may be quoted already and may have a query"""
CONFIRMED: Final = "confirmed"
"""the field of the form on a check page"""
_EVERY_FORM: Final = frozenset({"form_token", "step", "names", ENTERED, CONFIRMED})
SIGNED_IN_AGAIN: Final = phrase("You have signed in again. Nothing has changed yet: continue here.")
STILL_HERE: Final = phrase("You did not sign in again, so nothing has changed. What you entered is still here.")
OTHER_ACCOUNT: Final = "other-account"
"""the parameter that asks for a sign-in with another account"""
NOTHING_DIFFERENT: Final = phrase("You have not changed anything.")
NAMES_CHANGED: Final = phrase("Names have changed since you looked. Check who is meant, and decide again.")
CHANGED_MEANWHILE: Final = phrase("Something changed while you were on this page. Check it, and try again.")


class NotFound(Exception):
    """The object of the page is missing, or another person's."""


class SeeOther(Exception):
    """Another page comes first: its path in the site."""

    def __init__(self, page: str) -> None:
        super().__init__(page)
        self.page = page


class EntryRefused(Exception):
    """A site that does not let the person in.

    It has the page that says why (403).
    """

    def __init__(self, view: View) -> None:
        super().__init__(view.heading)
        self.view = view


class ConfirmationRequired(Exception):
    """A form that is to be confirmed on its check page.

    It has the errors of a confirmation before.
    """

    def __init__(self, *errors: FieldError) -> None:
        super().__init__(*(text for _, text in errors))
        self.errors = errors


class EditConflict(Exception):
    """A form about a record that somebody else has changed.

    Its page is shown again as it is now.
    """

    def __init__(self, sentence: Phrase) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class InvalidForm(Exception):
    """A form that is not accepted, with every error."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__(*(text for _, text in errors))
        self.errors = errors


class FormResult(NamedTuple):
    """The change that a form made, and the next page."""

    change: str
    """a key of the site's `changes`; empty: none"""
    page: str


def version_of(*shown: object) -> str:
    """The state of records, for the field `step` of their form."""
    return sha256(msgspec.json.encode(shown)).hexdigest()


Visit = TypeVar("Visit", bound=SelfServiceRequest)


@dataclass(frozen=True, kw_only=True)
class PageContext(Generic[Visit]):
    """A person at one of these pages, with their form, if sent."""

    web: WebContext
    context: RequestContext
    visit: Visit
    page: str
    """its path in the site"""
    section: str = ""
    """the path of the first page of its section"""
    cookie: str = ""
    """the browser's cookie value"""
    query: Mapping[str, str] = field(default_factory=dict)
    page_at: Callable[[str], SitePage[Any] | None] = lambda _: None
    """the page of the site at a path"""
    form: Mapping[str, str] = field(default_factory=dict)
    """as sent now, or as kept because it was not accepted, or while the person signed in again"""
    entered: str = ""
    """names the stored form that the page shows (D73)"""
    errors: tuple[FieldError, ...] = ()
    saved: Phrase | None = None
    """what was just changed"""
    again: bool = False
    """whether they come from a sign-in that the page asked for"""
    cancelled: bool = False
    """whether they cancelled that sign-in, and their form was kept"""
    filters: Mapping[str, str] = field(default_factory=dict)
    """the known ones of the query"""

    @property
    def provider(self) -> Provider:
        return self.context.provider

    @property
    def registry(self) -> Registry:
        return self.context.provider.registry

    def path(self, page: str = "", **query: str) -> str:
        """The address path of a page, with parameters that have values."""
        path = site_path(self.web, self.visit.session.purpose, page)
        asked = urlencode({name: value for name, value in query.items() if value}) if query else ""
        return f"{path}?{asked}" if asked else path

    def link(self, page: str, text: Phrase | str, about: Phrase | str = "", **query: str) -> Link:
        """A link to a page of the site; `about` as in `Link`."""
        return Link(url=self.path(page, **query), text=text, about=about)

    def section_link(self, section: str) -> Link:
        """A link to the first page of a section."""
        raise NotImplementedError

    def frame(self, *, up: Link | None = None, names: str = "", step_name: str = "") -> Frame:
        """The frame of the page.

        `names` is the digest of the people whom its form is about.
        """
        raise NotImplementedError

    def build_page(
        self,
        heading: Phrase,
        *parts: Part,
        up: Link | None = None,
        names: str = "",
        step_name: str = "",
        name: str = "",
        main_action: Link | None = None,
        back: str | Link | None = "",
        notes: tuple[Phrase, ...] = (),
        errors: tuple[FieldError, ...] = (),
        action: str = "",
    ) -> Page:
        """The page, which leads up to the first one of its section.

        `up` replaces that. `names` and `step_name` are as in `Frame`, the others as in `Page`.
        """
        if up is None and self.page != self.section:
            up = self.section_link(self.section)
        return Page(
            frame=self.frame(up=up, names=names, step_name=step_name),
            heading=heading,
            name=name,
            main_action=main_action,
            parts=parts,
            back=back,
            notes=notes,
            errors=errors,
            action=action,
        )

    def check_step(self, step_name: str, outdated: Phrase = CHANGED_MEANWHILE) -> None:
        """Raise InvalidInput if the page of the form showed another state. Source: D54"""
        if self.form.get("step", "") != step_name:
            raise InvalidInput(outdated)

    def check_names(self, names: str) -> None:
        """Raise InvalidInput if the form was shown for other people. Source: D68"""
        if self.form.get("names", "") != names:
            raise InvalidInput(NAMES_CHANGED)

    @property
    def reason_hint(self) -> Phrase | None:
        """The hint of the reason that each change needs.

        None if it needs none.
        """
        return None

    @property
    def here(self) -> str:
        """The path in the site, with the known parameters."""
        query = {**self.filters, ENTERED: self.entered} if self.entered else self.filters
        return f"{self.page}?{urlencode(query)}" if query else self.page

    @property
    def notes(self) -> tuple[Phrase, ...]:
        if self.cancelled:
            return (STILL_HERE,)
        return (SIGNED_IN_AGAIN,) if self.again else ()

    def moment(self, seconds: float) -> datetime:
        """Epoch seconds in the time zone of the deployment."""
        return datetime.fromtimestamp(seconds, self.context.provider.policy.timezone)


T = TypeVar("T")


async def await_found(reading: Awaitable[T]) -> T:
    """Await what a page is about, or a page of a list.

    Raises NotFound for what is refused: an object or a place that is none.
    """
    try:
        return await reading
    except Refused:
        raise NotFound from None


At = TypeVar("At", bound=PageContext[Any])


async def open_form(at: At) -> At:
    """Require a sign-in that leaves time to fill in a form.

    Raises TooOld. Source: D54
    """
    own_sessions.require_recent(at.context, at.visit, seconds=own_sessions.FORM_SECONDS)
    return at


async def use_form(at: At) -> At:
    """Require a recent sign-in for a form. Raises TooOld. Source: D54"""
    own_sessions.require_recent(at.context, at.visit)
    return at


async def extend_session(at: PageContext[Any]) -> None:
    """Restart the idle time of the session. Source: D30, WCAG 2.2.1"""
    await own_sessions.use(at.context, at.visit)


@dataclass(frozen=True, kw_only=True)
class SitePage(Generic[At]):
    """A page: its view, its form's submission, and the next page."""

    view: Callable[[At], Awaitable[View | Response]]
    submit: Callable[[At], Awaitable[str | FormResult | Response]] | None = None
    """saves the form, and returns what was changed (`Site.changes`), or the response if nothing was; empty: nothing
    yet, and the page shows what is next"""
    check: Callable[[At], Awaitable[View]] | None = None
    """the page on which its form is confirmed: `submit` raises ConfirmationRequired until then"""
    leads_to: str = ""
    field: str = ""
    """the field of its errors; empty: the page as a whole"""
    fresh: bool = False
    """whether a recent sign-in opens it"""
    part_of: str | None = None
    """the page that contains it, which is opened in its place"""
    upload: str = ""
    """the field of its form that an uploaded table is read into (D81); its path is one of UPLOAD_PAGES"""
    kept: Callable[[dict[str, str]], dict[str, str]] = dict
    """what of its form is kept (D54, D73): no secrets"""
    offers_undo: bool = False
    """whether it offers to undo the last change also when it is opened later"""
    needs: tuple[Action, ObjectKind] | None = None
    """the right to what it changes: without it the page is neither linked to nor opened, nor is its form taken"""


class FieldNames(ViewPart, frozen=True, kw_only=True):
    """The accepted names of fields: these, and those with a prefix."""

    names: frozenset[str]
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        return name in self.names or (isinstance(name, str) and bool(self.prefixes) and name.startswith(self.prefixes))


@dataclass(frozen=True, kw_only=True)
class Section(Generic[At]):
    """Pages of one subject, with the fields of their forms."""

    name: str = ""
    """the path of its first page"""
    pages: Mapping[str, SitePage[At]] = field(default_factory=dict)
    """by the path after that of the site"""
    named_pages: Mapping[re.Pattern[str], SitePage[At]] = field(default_factory=dict)
    """those whose path names one of several"""
    fields: frozenset[str] = frozenset()
    """of their forms"""
    filters: frozenset[str] = frozenset()
    """the parameters of their addresses, which stay when the reader picks another language"""
    prefixes: tuple[str, ...] = ()
    """of the names of further fields"""
    changes: Mapping[str, Phrase] = field(default_factory=dict)
    """by what a page's `submit` returns"""


UNDONE: Final = "undone"
"""the field that names the change to be undone: another one may be the last by now"""
UNDO_PAGE: Final = "page"
"""the field with the page that offered it"""


@dataclass(frozen=True, kw_only=True)
class SiteUndo(Generic[At]):
    """The way in which a site undoes what a form has changed (D80)."""

    page: str
    """whose form undoes it"""
    keep: Callable[[At], Awaitable[object]]
    """after every form that was accepted"""
    offered: Callable[[At], Awaitable[tuple[str, Phrase] | None]]
    """what names the last change, for the field UNDONE of the form, and what was done; None if it cannot be undone"""
    describe_undone: Callable[[At], Awaitable[Phrase | None]]
    """what was undone just now; None if the reader may not read it"""


@dataclass(frozen=True, kw_only=True)
class Site(Generic[At]):
    """The pages of one purpose, and how a person comes to them."""

    purpose: SessionPurpose
    sections: tuple[Section[At], ...]
    context: type[At]
    """what its pages are given"""
    arrive: Callable[[PageContext[SelfServiceRequest]], Awaitable[SelfServiceRequest]]
    """the person as the site knows them: the visit of `context`; raises SeeOther, Forbidden, EntryRefused"""
    open: Callable[[At], Awaitable[At]] = open_form
    """before a page is shown that needs a recent sign-in; raises TooOld"""
    still_open: Callable[[At], Awaitable[At]] = use_form
    """before its form is used; raises TooOld, StaleStep"""
    extend: Callable[[At], Awaitable[object]] = extend_session
    """extends the time of a page; raises InvalidInput, StaleStep"""
    admit: Callable[[At, SitePage[At]], None] = lambda _at, _page: None
    """before a page is shown, or its form used, by what it needs; raises Forbidden"""
    remembered: Callable[[SelfServiceRequest], str] = lambda _: ""
    """what a new sign-in for a change leads back with, as a query; empty for nothing"""
    in_maintenance: bool = False
    """whether it is served during maintenance, too"""
    undo: SiteUndo[At] | None = None
    keeps: bool = False
    """whether the query, and a form that comes too late, are there again after a new sign-in, and a form that is sent
    twice, as by a double click, is used once"""

    @cached_property
    def fields(self) -> FieldNames:
        """The accepted names of fields of every form."""
        names = _EVERY_FORM.union(*(each.fields for each in self.sections))
        return FieldNames(names=names, prefixes=tuple(prefix for each in self.sections for prefix in each.prefixes))

    @cached_property
    def changes(self) -> Mapping[str, Phrase]:
        """Sentences on changes, by the key that `submit` returns."""
        return {name: text for each in self.sections for name, text in each.changes.items()}

    def page_at(self, path: str) -> SitePage[At] | None:
        """The page at a path; None if there is none."""
        found = self._found(path)
        return found[1] if found else None

    def section_at(self, path: str) -> Section[At]:
        """The section of a page."""
        found = self._found(path)
        return found[0] if found else Section()

    def _found(self, path: str) -> tuple[Section[At], SitePage[At]] | None:
        for section in self.sections:
            if path in section.pages:
                return section, section.pages[path]
        for section in self.sections:
            for pattern, page in section.named_pages.items():
                if pattern.fullmatch(path):
                    return section, page
        return None

    def above(self, path: str) -> str:
        """The nearest page above a path that opens without a recent sign-in."""
        while path:
            path = path.rpartition("/")[0]
            page = self.page_at(path)
            if page is not None and not page.fresh:
                return path
        return ""

    def path(self, web: WebContext, page: str = "") -> str:
        """The address path of one of its pages."""
        return site_path(web, self.purpose, page)


def site_path(web: WebContext, purpose: SessionPurpose, page: str = "") -> str:
    return f"{web.base_path}{PATHS[purpose]}" + (f"/{quote(page, safe=_IN_PAGES)}" if page else "")


_FIRST_PAGES: Final[Mapping[SessionPurpose, Phrase]] = {
    "account": phrase("Your account"),
    "manage": phrase("Back to portal home"),
    "console": phrase("Back to console home"),
}


def ways_out(web: WebContext, purpose: SessionPurpose) -> tuple[Link, ...]:
    """Links for a person who may open no page of a site. Source: D54"""
    return (
        Link(url=f"{site_path(web, purpose)}?{OTHER_ACCOUNT}", text=phrase("Use another account")),
        Link(url=web.account_base + SIGN_OUT_PATH, text=phrase("Sign out")),
    )


def first_page(web: WebContext, purpose: SessionPurpose) -> Link:
    return Link(url=site_path(web, purpose), text=_FIRST_PAGES[purpose])


class Check(ViewPart, frozen=True, kw_only=True):
    """A change that a page asks about before it is made."""

    heading: Phrase
    parts: tuple[Part, ...]
    """what is changed, and what follows"""
    further: Callable[[], Awaitable[tuple[Part, ...]]] | None = None
    """reads parts that are only shown"""
    fields: tuple[Part, ...] = ()
    """of the form"""
    hidden: tuple[tuple[str, str], ...] = ()
    """what the form sends again, such as the rows that were selected"""
    at_once: bool = False
    """whether the form that leads here needs no check"""
    upload: bool = False
    """whether it may have a file, and what is long"""
    button: Phrase
    decision: str = ""
    """what the button sends as `decision`"""
    other: tuple[str, Phrase] | None = None
    """a second button that changes nothing: its `decision`, and its text"""
    below: tuple[Part, ...] = ()
    """long lists, which stand below the form"""
    danger: bool = False
    """whether it takes something away"""
    reason: Phrase | None = None
    """the hint of the field for a reason; None: that of the site, if it asks for one"""
    needs_approval: bool = False
    refused: Phrase | None = None
    """why it cannot be made, in place of the form"""
    names: str | None = ""
    """the digest of the people whom it is about; None: of all that it says"""
    step_name: str = ""
    """names the state that is shown (`version_of`)"""
    outdated: Phrase = CHANGED_MEANWHILE
    """refuses a form that was shown for another state"""
    up: Link | None = None
    back: Link | None = None
    """leads away without a change; None: to `up`"""
    action: str = ""
    """its address, with what is to stay in it; empty: that of the page"""
    errors: tuple[FieldError, ...] = ()
    """before anything is sent"""
    change: Callable[[], Awaitable[object]]
    """makes the change; its FormResult, if it returns one, is that of the form"""
    done: FormResult = FormResult("", "")

    @property
    def digest(self) -> str:
        """The digest of whom or what its form was shown for."""
        return digest_names((self.heading, self.parts)) if self.names is None else self.names

    def show(self, *further: Part, reason: Phrase | None = None) -> tuple[Part, ...]:
        """The parts of its page: what is said, then the form.

        Or why there is no form. `further` stands before it, `reason` is the hint of the site.
        """
        if self.refused:
            back = self.back or self.up
            refused = Paragraph(self.refused, look="empty"), Actions((back,) if back else ())
            return *self.parts, *further, *refused, *self.below
        form = Form(
            parts=self.fields,
            hidden=(*self.hidden, (CONFIRMED, "yes")),
            upload=self.upload,
            button=self.button,
            decision=self.decision,
            other=self.other,
            danger=self.danger,
            reason=self.reason or reason,
            needs_approval=self.needs_approval,
            back=self.back,
        )
        return *self.parts, *further, form, *self.below

    async def build(self, at: PageContext[Any]) -> Page:
        """Its page."""
        further = await self.further() if self.further else ()
        return at.build_page(
            self.heading,
            *self.show(*further, reason=at.reason_hint),
            up=self.up,
            back=None if self.other else "",
            names=self.digest,
            step_name=self.step_name,
            errors=(*at.errors, *self.errors),
            action=self.action,
        )

    def is_confirmed(self, at: PageContext[Any]) -> bool:
        """Return whether its own form was sent, to change something."""
        decided_otherwise = self.other is not None and at.form.get("decision") == self.other[0]
        return self.at_once or (at.form.get(CONFIRMED) == "yes" and not decided_otherwise)


def check_page(
    ask: Callable[[At], Awaitable[Check | Page]],
    *,
    form: Callable[[At], Awaitable[View]] | None = None,
    needs: tuple[Action, ObjectKind] | None = None,
    leads_to: str = "",
    field: str = "",
    upload: str = "",
) -> SitePage[At]:
    """A page that asks before a change, and its form.

    `ask` returns a Page while something is to be entered first. `form` is the page before anything is sent, and shows
    what is wrong with it; without one `ask` is.
    """

    async def view(at: At) -> View:
        asked = await ask(at)
        if isinstance(asked, Page):
            return asked
        return await form(at) if asked.at_once and form is not None else await asked.build(at)

    async def submit(at: At) -> FormResult:
        asked = await ask(at)
        if isinstance(asked, Page) or not asked.is_confirmed(at):
            raise ConfirmationRequired
        try:
            if asked.step_name:
                at.check_step(asked.step_name, asked.outdated)
            if asked.digest:
                at.check_names(asked.digest)
            made = await asked.change()
        except InvalidInput as rejected:
            if form is None or asked.at_once:
                raise
            raise ConfirmationRequired((rejected.field, rejected.sentence)) from None
        return made if isinstance(made, FormResult) else asked.done

    return SitePage(
        view=form or view,
        check=view,
        submit=submit,
        fresh=True,
        needs=needs,
        leads_to=leads_to,
        field=field,
        upload=upload,
    )
