"""A person in the portal, frames of pages, changes by forms (D53, D54, D55)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from corpid.flows.authentication import interactions
from corpid.flows.directory.approvals import AlreadyDecided, NamesChanged, StaleRequest
from corpid.flows.directory.notice_texts import OF_ENTITY
from corpid.flows.directory.person_names import digest_names, name_as_known
from corpid.flows.directory.portal import PortalRequest
from corpid.flows.directory.write import NoReason, Refused, RequestDetails, write_changes
from corpid.rules.directory.access import EntityAdministrator, Forbidden, Object, refuse_early
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS
from corpid.rules.directory.records import (
    AdministratorLevel,
    Change,
    ChangeRequest,
    Conflict,
    Entity,
    Membership,
    Precondition,
)
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web import sites
from corpid.web.pages.components import Advice, Frame, Link, Navigation, NavigationLink
from corpid.web.pages.errors import refusal_of
from corpid.web.pages.views import Problem
from corpid.web.sites import (
    CHANGED_MEANWHILE,
    NAMES_CHANGED,
    EntryRefused,
    FormResult,
    PageContext,
    SeeOther,
    site_path,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.rules.directory.memberships import Member
    from corpid.web.context import WebContext

ORGANISATION: Final = "organisation"
"""the page on which the entity is chosen"""
ENTITY: Final = "entity"
"""the parameter that carries the chosen entity across a new sign-in"""
NEXT: Final = "page"
"""the parameter that carries the page that was asked for across the choice"""
_NEXT: Final = re.compile(r"[A-Za-z0-9/_-]{1,200}(\?of=[A-Za-z0-9._-]{1,50})?")
"""a page of the portal, and the entity that a link was made for"""
NO_REASON: Final = phrase("Say why, for the person who approves it.")
REQUEST_SENT: Final = phrase("Your request has been sent. Nothing changes until it is approved.")
"""the note after a change that needs approval"""
REQUESTED: Final = "requested"
"""its key, wherever the form was sent"""


@dataclass(frozen=True, kw_only=True)
class PortalContext(PageContext[PortalRequest]):
    """A person at a portal page, with their form, if sent."""

    @property
    def entity(self) -> Entity:
        """The entity that they act for.

        Raises SeeOther if it is still to be chosen.
        """
        if self.visit.entity is None:
            raise SeeOther(ORGANISATION)
        return self.visit.entity

    def name_of(self, entity: Entity) -> str:
        """The name of an organisation on these pages. Raises SeeOther. Source: D68"""
        return entity.name_for(self.entity.entity_id)

    @property
    def actor(self) -> EntityAdministrator:
        """The person as its administrator. Raises SeeOther as `entity`."""
        if self.visit.actor is None:
            raise SeeOther(ORGANISATION)
        return self.visit.actor

    def section_link(self, section: str) -> Link:
        return self.link(section, SECTIONS[section][0])

    def frame(self, *, up: Link | None = None, names: str = "", step_name: str = "") -> Frame:
        return frame(self, section=self.section, up=up, names=names, step_name=step_name)

    def reason(self, *, needed: bool = False) -> str:
        """The reason in the form, in one line.

        Raises InvalidInput, also without a reason that is needed. Source: D55
        """
        typed = " ".join(self.form.get("reason", "").split())
        if len(typed) > MOST_REASON_CHARACTERS or not typed.isprintable():
            raise InvalidInput(
                phrase("Write at most {count} characters.", count=MOST_REASON_CHARACTERS), field="reason"
            )
        if needed and not typed:
            raise InvalidInput(NO_REASON, field="reason")
        return typed

    def request_details(self, *, approval_needed: bool = False) -> RequestDetails:
        """A request by the form, with its reason.

        `approval_needed` says that the form promised that nothing changes before somebody approves it. Raises
        InvalidInput as `reason`. Source: D55
        """
        reason = self.reason(needed=approval_needed)
        return RequestDetails(reason, self.context.now, self.provider.new_id(), approval_needed=approval_needed)

    async def submit_changes(
        self,
        changes: Sequence[Change],
        saved: FormResult,
        *,
        of: Membership | None = None,
        approval_needed: bool = False,
    ) -> FormResult:
        """Write changes of records as they were read, or request them.

        Returns `saved`, or the page of the request. The reason is that of the form; `of` is the membership of the
        person concerned, as it was read; `approval_needed` is as in `request_details`. Raises InvalidInput as `await_change`.
        Source: D55, D68
        """
        seen = [Precondition(Membership, of.key, of)] if of is not None else ()
        writing = write_changes(
            self.registry, self.actor, changes, asking=self.request_details(approval_needed=approval_needed), seen=seen
        )
        return saved_or_requested(await await_change(writing), saved)


SEARCH: Final = "search"
"""the page that searches the organisation, and the field of its form"""
SETTINGS: Final = "settings"
APPROVALS_SETTING: Final = "approvals-setting"
PortalPage: TypeAlias = sites.SitePage[PortalContext]
"""a page of this site"""
SECTIONS: Final[Mapping[str, tuple[Phrase, frozenset[AdministratorLevel]]]] = {
    "": (phrase("Home"), frozenset({"owner", "administrator", "sub_administrator"})),
    "people": (phrase("People"), frozenset({"owner", "administrator", "sub_administrator"})),
    "access": (phrase("Access"), frozenset({"owner", "administrator", "sub_administrator"})),
    "third-parties": (phrase("Third parties"), frozenset({"owner", "administrator"})),
    "requests": (phrase("Requests"), frozenset({"owner", "administrator", "sub_administrator"})),
    "history": (phrase("History"), frozenset({"owner", "administrator"})),
    SETTINGS: (phrase("Settings"), frozenset({"owner", "administrator", "sub_administrator"})),
}
"""the sections of the portal by path, with the levels that see them"""


def next_page(at: PageContext[Any]) -> str:
    """The page to show after the choice; empty: the home page."""
    page = at.query.get(NEXT, "")
    return page if _NEXT.fullmatch(page) else ""


def choosing(page: str) -> str:
    """The page of the choice, which then leads to `page`."""
    return f"{ORGANISATION}?{urlencode({NEXT: page})}" if _NEXT.fullmatch(page) else ORGANISATION


def remembered(visit: SelfServiceRequest) -> str:
    """The chosen entity, which a new sign-in leads back to (D54)."""
    entity_id = visit.session.entity_id
    return f"{ENTITY}={quote(entity_id, safe='')}" if entity_id else ""


def portal_path(web: WebContext, page: str = "") -> str:
    return site_path(web, "manage", page)


def admit(at: PortalContext, page: PortalPage) -> None:
    """Require the right that a page declares.

    And that the entity is the one that a link was made for. Only the level counts here: the page itself says if it is
    about somebody whom that level does not reach. Raises access.Forbidden, EntryRefused. Source: D53, D54
    """
    of = at.query.get(OF_ENTITY, "")
    if of and at.visit.entity is not None and at.visit.entity.entity_id != of:
        raise EntryRefused(_refuse_other(at, f"{at.page}?{OF_ENTITY}={of}"))
    if page.needs:
        action, kind = page.needs
        # The age of the sign-in is checked later.
        recent = msgspec.structs.replace(at.actor, auth_time=at.actor.now)
        refuse_early(recent, action, Object(kind=kind, entity_id=recent.entity_id))


def _refuse_other(at: PortalContext, page: str) -> Problem:
    """The answer to a link that was made for another entity."""
    return Problem(
        frame=frame(at),
        heading=phrase("This page belongs to another organisation"),
        paragraphs=(
            phrase("You are acting for {entity}.", entity=at.entity.name),
            phrase("To see the page, choose the organisation that the e-mail names."),
        ),
        back=at.link(choosing(page), phrase("Change organisation")),
    )


def no_approver(at: PortalContext) -> Advice:
    """Advice for a change that nobody can approve. Source: D55"""
    if at.actor.level == "owner" and at.entity.approvals == "none":  # else their appointment needs approval, too
        return Advice(
            text=phrase("A second owner or administrator could approve it."),
            link=at.link("administrators/appoint", phrase("Appoint somebody")),
        )
    return Advice(
        text=phrase("Ask the operator of this service, who can approve it, or appoint somebody who can."),
        link=at.link("administrators", phrase("See who administers your organisation")),
    )


def frame(
    at: PortalContext, *, section: str = "", up: Link | None = None, step_name: str = "", names: str = ""
) -> Frame:
    """The frame of a portal page.

    `section` is a key of SECTIONS, `names` the digest of the people whom a form is about, for `check_names`.
    """
    web, visit = at.web, at.visit
    level, entity = at.actor.level, at.entity
    return Frame(
        form_token=interactions.form_token(at.context, visit.browser.browser_id, visit.form),
        step_name=step_name,
        names=names,
        up=up,
        account_language=visit.user.language,
        here=portal_path(web, at.here),
        no_approver=no_approver(at) if at.actor.only_approver else None,
        navigation=Navigation(
            label=phrase("Administration"),
            title=entity.name,
            person=visit.user.name,
            search=Link(url=portal_path(web, SEARCH), text=phrase("Search this organisation")),
            searched=at.query.get(SEARCH, ""),
            switch=Link(url=portal_path(web, ORGANISATION), text=phrase("Change organisation"))
            if visit.several
            else None,
            links=tuple(
                NavigationLink(
                    url=portal_path(web, path),
                    text=name,
                    current=path == section,
                    count=visit.requests if path == "requests" else 0,
                )
                for path, (name, levels) in SECTIONS.items()
                if level in levels
            ),
        ),
    )


def bare_frame(at: PortalContext) -> Frame:
    """The frame of a page before an entity is chosen."""
    visit = at.visit
    return Frame(
        form_token=interactions.form_token(at.context, visit.browser.browser_id, visit.form),
        account_language=visit.user.language,
        here=at.path(at.here),
    )


T = TypeVar("T")


async def await_change(changing: Awaitable[T]) -> T:
    """Await a change, or what would change.

    Raises InvalidInput with a sentence for a person. Source: D50, D55
    """
    try:
        return await changing
    except NoReason:
        raise InvalidInput(NO_REASON, field="reason") from None
    except AlreadyDecided:
        raise InvalidInput(phrase("This request has already been decided, or has expired.")) from None
    except NamesChanged:
        raise InvalidInput(NAMES_CHANGED) from None
    except StaleRequest:
        raise InvalidInput(
            phrase(
                "Something that this request changes has changed since it was made. Decline it; it has to be "
                "requested again."
            )
        ) from None
    except (Refused, Forbidden) as refused:
        raise InvalidInput(refusal_of(refused)) from None
    except Conflict:
        raise InvalidInput(CHANGED_MEANWHILE) from None


def names_shown(*people: Member) -> str:
    """A digest of people as a page shows them, for its frame. Source: D68"""
    return digest_names(name_as_known(each.user, each.membership) for each in people)


def saved_or_requested(request: ChangeRequest | None, saved: FormResult, *, stays: bool = False) -> FormResult:
    """The page after a change, or that of its request.

    `stays`: the same page after both. Source: D55
    """
    if request is None:
        return saved
    return FormResult(REQUESTED, saved.page if stays else f"requests/{request.request_id}")
