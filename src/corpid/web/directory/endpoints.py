"""Endpoints of the portal: its table of pages, and the first ones.

These are home, the choice of the entity, search (D83), settings, and access that ends. Source: D53, D54
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from corpid.flows.authentication.entity_selection import QUERY_CHARACTERS
from corpid.flows.directory import approvals, portal
from corpid.flows.directory.access_review import load_review_state
from corpid.flows.directory.approvals import load_names
from corpid.flows.directory.notice_texts import OF_ENTITY
from corpid.flows.directory.search import names_in_request, search_entity
from corpid.flows.directory.undo import find_undoable, keep_for_undo, undo_changes
from corpid.flows.directory.write import RequestDetails
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.access_texts import describe_done, title_changes
from corpid.rules.directory.entity_choice import NUMBERS, search_words
from corpid.rules.directory.records import APPROVALS, ENTITY_STATUSES, EntityStatus, Service
from corpid.rules.directory.words import find_reasons
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.directory import (
    access,
    access_list,
    access_review,
    administrators,
    history,
    people,
    person,
    provisioning_tokens,
    requests,
    third_parties,
    third_party_terms,
)
from corpid.web.directory.access_list import ACCESS
from corpid.web.directory.page_context import (
    APPROVALS_SETTING,
    ENTITY,
    ORGANISATION,
    SEARCH,
    SETTINGS,
    PortalContext,
    PortalPage,
    admit,
    await_change,
    bare_frame,
    choosing,
    frame,
    next_page,
    remembered,
    saved_or_requested,
)
from corpid.web.directory.people import PEOPLE, PERSON
from corpid.web.own_pages import forbidden_page, serve
from corpid.web.pages.components import (
    Alert,
    Alerts,
    Cell,
    Facts,
    Form,
    Heading,
    Label,
    Link,
    LinkList,
    Paragraph,
    Part,
    Radios,
    Timeline,
    Value,
    View,
    count_found,
    state_label,
    table,
)
from corpid.web.pages.responses import see_other
from corpid.web.pages.views import Choice, ChooseEntity, Problem
from corpid.web.sites import (
    UNDO_PAGE,
    UNDONE,
    Check,
    EntryRefused,
    FormResult,
    NotFound,
    Section,
    SeeOther,
    Site,
    SiteUndo,
    check_page,
    first_page,
    ways_out,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.flows.directory.grants import Authorisation
    from corpid.flows.directory.lists import ListPage
    from corpid.flows.directory.members import MemberSummary
    from corpid.flows.directory.portal import PortalRequest
    from corpid.rules.directory.memberships import EntityTotals
    from corpid.web import sites
    from corpid.web.context import WebContext

    T = TypeVar("T")
    _Row: TypeAlias = Callable[[PortalContext, T, Sequence[str]], tuple[Value, ...]]


async def show_settings(at: PortalContext) -> View:
    """The settings of the entity that they act for."""
    entity, level = at.entity, at.actor.level

    links: list[tuple[Link, Value]] = [
        (at.link(administrators.ADMINISTRATORS, phrase("Administrators")), phrase("Who manages people and access here"))
    ]
    if level == "owner":
        links.append((at.link(APPROVALS_SETTING, phrase("Approvals")), APPROVALS[entity.approvals]))
    if level != "sub_administrator":
        state = await load_review_state(at.registry, at.actor, entity.entity_id)
        said = await access_review.describe_state(at, state)
        links.append((at.link(access_review.REVIEW, access_review.HEADING), said))
    if level == "owner":
        purpose = phrase("For the system of your organisation that keeps people up to date here")
        links.append((at.link(provisioning_tokens.TOKENS, provisioning_tokens.HEADING), purpose))
    facts: list[tuple[Phrase, Value]] = [
        (phrase("Name"), entity.name),
        (NUMBERS[entity.type], entity.registration_number),
    ]
    if entity.status:
        facts.append((phrase("Status in the register"), ENTITY_STATUSES[entity.status]))
    if level != "owner":
        facts.append((phrase("What needs approval"), APPROVALS[entity.approvals]))
    return at.build_page(
        phrase("Settings"),
        LinkList(links=tuple(links)),
        Heading(phrase("Organisation")),
        Facts(tuple(facts)),
        Paragraph(phrase("If something here is wrong, ask the operator of this service to correct it."), look="hint"),
    )


async def show_approval_setting(at: PortalContext) -> View:
    """The entity's choice of which changes need approval; for owners."""
    if at.actor.level != "owner":
        raise NotFound
    lower = phrase("Only if you reduce approval: that itself needs approval.")
    return at.build_page(
        phrase("Which changes need approval"),
        phrase(
            "A change that needs approval takes effect when another administrator has approved it. After 14 days "
            "without a decision it expires."
        ),
        Form(
            parts=(
                Radios(
                    name="approvals",
                    legend=phrase("What needs approval"),
                    hint=phrase("This needs at least two people who can approve: owners or administrators."),
                    options=tuple((value, text, None) for value, text in APPROVALS.items()),
                    value=at.form.get("approvals", at.entity.approvals),
                ),
            ),
            reason=None if at.entity.approvals == "none" else lower,
            button=phrase("Save"),
        ),
    )


async def save_approval_setting(at: PortalContext) -> FormResult:
    """Change which changes need approval, or request it. Raises InvalidInput. Source: D55"""
    if at.actor.level != "owner":
        raise NotFound
    chosen = next((value for value in APPROVALS if value == at.form.get("approvals", "")), None)
    if chosen is None:
        raise InvalidInput(phrase("Choose one of these."), field="approvals")
    if chosen == at.entity.approvals:
        return FormResult("", SETTINGS)
    if await approvals.lacks_approvers(at.registry, at.entity, chosen):
        raise InvalidInput(
            phrase("At least two people are needed who can approve: appoint another owner or administrator first."),
            field="approvals",
        )
    at.reason(needed=approvals.lowers_approvals(at.entity, chosen))
    return await at.submit_changes(
        [approvals.plan_choice(at.entity, chosen)], FormResult("approvals-changed", SETTINGS)
    )


_SETTINGS: Final = Section[PortalContext](
    name=SETTINGS,
    pages={
        SETTINGS: PortalPage(view=show_settings),
        APPROVALS_SETTING: PortalPage(view=show_approval_setting, submit=save_approval_setting, fresh=True),
    },
    fields=frozenset({"reason", "approvals"}),
    changes={"approvals-changed": phrase("The approval setting changes.")},
)


_EACH: Final = 10
"""records of a kind"""
_CHARACTERS: Final = 100


async def show_search(at: PortalContext) -> View:
    """The page of a search, by kind."""
    text = at.query.get(SEARCH, "").strip()[:_CHARACTERS]
    found = await search_entity(at.registry, at.actor, at.entity, text, now=at.context.now, limit=_EACH)

    def show(kind: Phrase, page: ListPage[T], headings: tuple[Phrase, ...], row: _Row[T]) -> Part:
        rows = (row(at, each, found.words) for each in page.found)
        return table(count_found(kind, page.total), headings, rows) if page.found else None

    parts = (
        show(phrase("People"), found.people, (phrase("Name"), phrase("User name"), phrase("State")), _person),
        at.link(PEOPLE, phrase("Show all people who match"), q=text) if found.people.after else None,
        show(phrase("Services"), found.services, (phrase("Service"), phrase("Role")), _service),
        show(phrase("Third parties"), found.authorisations, third_parties.COLUMNS, _third_party),
        show(phrase("Requests"), found.requests, requests.COLUMNS, _request),
    )
    nothing = (
        phrase("Nothing found. Search for words of people, third parties, services or requests, in any order.")
        if text
        else phrase("Enter what you search for in the field above.")
    )
    heading = phrase("Search: {text}", text=text) if text else phrase("Search")
    return at.build_page(heading, *(parts if any(parts) else (Paragraph(nothing, look="empty"),)))


def _person(at: PortalContext, each: MemberSummary, asked: Sequence[str]) -> tuple[Value, ...]:
    member = each.member
    hidden = member.membership.user_name, member.membership.email or member.user.email
    why = find_reasons(asked, f"{member.name_alone} {member.identity}", hidden)
    link = at.link(f"{PERSON}/{member.membership.membership_id}", member.name_alone)
    return Cell(values=(link,), notes=why), member.identity, state_label(member.state)


def _service(at: PortalContext, each: Service, asked: Sequence[str]) -> tuple[Value, ...]:
    roles = tuple(at.link(ACCESS, role, each.name, service=each.service_id, role=role) for role in each.roles)
    why = find_reasons(asked, " ".join((each.name, *each.roles)), (each.description,))
    link = at.link(ACCESS, each.name, service=each.service_id)
    return Cell(values=(link,), notes=why), Cell(values=roles) if roles else None


def _third_party(at: PortalContext, each: Authorisation, _: Sequence[str]) -> tuple[Value, ...]:
    return third_parties.row(at, each)


def _request(at: PortalContext, each: approvals.Request, asked: Sequence[str]) -> tuple[Value, ...]:
    """The row of a request, with names that its title leaves out."""
    shown, *others = requests.row(at, each)
    title = title_changes(each.changes, each.names)
    hidden = (*names_in_request(each), *([phrase("Requested by {name}", name=each.requester)] if each.own else ()))
    why = find_reasons(asked, f"{title} {each.record.reason} {'' if each.own else each.requester}", hidden)
    return Cell(values=(shown,), notes=why), *others


_SEARCH: Final = Section[PortalContext](
    name=SEARCH,
    pages={SEARCH: PortalPage(view=show_search)},
    filters=frozenset({SEARCH}),
)


_UNDO: Final = "undo"
_REASON: Final = phrase("To undo a change that was made a moment ago")
"""for the approver, if undoing it needs approval by now"""
_RECENT: Final = 5
"""changes on the home page"""
_STATUS: Final[Mapping[EntityStatus, Phrase]] = {
    "Deregistered": phrase(
        "The register says that this organisation is deregistered. Services may no longer accept it."
    ),
    "Withdrawn": phrase(
        "The register says that the registration of this organisation is withdrawn. Services may no longer accept it."
    ),
}


async def show_home(at: PortalContext) -> View:
    """The home page of the entity that they act for."""
    first, last = _soon(at)
    found = await portal.load_home_numbers(at.registry, at.actor, first=first, last=last)
    sees_all = at.actor.level != "sub_administrator"
    needs = (*(await _review(at) if sees_all else ()), *_needs(at, found, sees_all=sees_all))
    nothing = Paragraph(phrase("Nothing needs you at present."), look="empty")
    figures = [("people", _people(found.people))]
    if sees_all:
        figures.append(("invite", phrase("Invite a person")))
    else:
        figures.append((access_list.ENDING, phrase("Access at your services that ends within 30 days")))
    return at.build_page(
        phrase("Home"),
        Paragraph(_STATUS[at.entity.status], look="warning") if at.entity.status in _STATUS else None,
        *(_first_steps(at) if found.people <= 1 and sees_all else ()),
        Heading(phrase("Needs you")),
        Alerts(alerts=needs) if needs else nothing,
        Heading(phrase("At a glance")),
        _links(at, figures),
        Paragraph(phrase("Nobody's access ends within 30 days."), look="hint")
        if sees_all and not found.ending
        else None,
        *(await _recent(at) if sees_all else ()),
        main_action=at.link("access/new", phrase("Give access")),
    )


def _links(at: PortalContext, pages: Iterable[tuple[str, Phrase]]) -> LinkList:
    return LinkList(links=tuple((at.link(page, text), None) for page, text in pages))


async def _recent(at: PortalContext) -> tuple[Part, ...]:
    found = await history.list_recent(at, most=_RECENT)
    every = at.link(history.HISTORY, phrase("All changes"))
    return (
        Heading(phrase("Last changes")),
        *((Timeline(found), every) if found else (phrase("There are no changes yet."),)),
    )


def _soon(at: PortalContext) -> tuple[str, str]:
    """Today, and the last of the days that follow."""
    return at.context.today, (at.context.day + timedelta(days=access_list.SOON_DAYS)).isoformat()


def _first_steps(at: PortalContext) -> tuple[Part, ...]:
    """Of an entity with nobody but the reader."""
    steps = [
        ("invite", phrase("Invite the people who should act for your organisation.")),
        ("access/new", phrase("Give each of them access to the services they need.")),
    ]
    if at.actor.level == "owner":
        appoint = phrase("Appoint a second owner, so that your organisation never depends on one person.")
        steps.append(("administrators/appoint", appoint))
    return Heading(phrase("What to do first")), _links(at, steps)


def _need(at: PortalContext, label: Phrase, page: str, text: Phrase) -> Alert:
    return Alert(label=Label(label, "warning"), text=at.link(page, text))


def _needs(at: PortalContext, totals: EntityTotals, *, sees_all: bool) -> tuple[Alert, ...]:
    """Matters that wait for the reader, or that they wait for."""
    visit, requests_label = at.visit, phrase("Requests")
    own = counted(
        visit.own_requests,
        "{count} request of yours needs another administrator.",
        "{count} requests of yours need another administrator.",
    )
    commented = counted(
        visit.commented_requests,
        "Somebody has commented on {count} request of yours.",
        "Somebody has commented on {count} requests of yours.",
    )
    offers = counted(
        totals.offers,
        "{count} offer to act for another organisation needs your answer.",
        "{count} offers to act for other organisations need your answer.",
    )
    ending = counted(totals.ending, "{count} role ends within 30 days.", "{count} roles end within 30 days.")
    found = (
        (visit.requests or visit.more_requests, requests_label, "requests", _requests(visit)),
        (visit.own_requests, requests_label, "requests", own),
        (visit.commented_requests, requests_label, "requests", commented),
        (sees_all and totals.offers, phrase("Third parties"), "third-parties", offers),
        (sees_all and totals.ending, phrase("Access"), access_list.ENDING, ending),
    )
    return tuple(_need(at, *shown) for waits, *shown in found if waits)  # type: ignore[arg-type]


async def _review(at: PortalContext) -> tuple[Alert, ...]:
    """The access review, if it is due or under way (D57)."""
    state = await load_review_state(at.registry, at.actor, at.entity.entity_id)
    review = state.review
    if review is None or not (review.began_at or review.due_at <= at.context.now):
        return ()
    text = phrase("The yearly access review is due.")
    if review.began_at:
        text = phrase(
            "The access review is in progress: {kept} of {count} people reviewed.", kept=state.kept, count=state.people
        )
    return (_need(at, phrase("Access review"), "access-review", text),)


def _requests(found: PortalRequest) -> Phrase:
    if found.more_requests:
        return phrase(
            "More than {count} requests are waiting. See which ones need your decision.", count=portal.MOST_REQUESTS
        )
    return counted(found.requests, "{count} request needs your decision.", "{count} requests need your decision.")


def _people(count: int) -> Phrase:
    if count >= portal.MOST_COUNTED_PEOPLE:
        return phrase("At least {count} people belong to your organisation.", count=count)
    return counted(count, "{count} person belongs to your organisation.", "{count} people belong to your organisation.")


async def show_choice(at: PortalContext) -> View | Response:
    """The choice of the entity, or of another one than before. Source: D54"""
    visit = at.visit
    if visit.entity is not None and not visit.several:
        return see_other(at.path(next_page(at)))
    mine = await portal.list_administered(at.context, at.visit.user.user_id)
    if not mine:
        return Problem(
            frame=bare_frame(at),
            heading=phrase("You do not administer an organisation"),
            paragraphs=(
                phrase("You are signed in as {name}.", name=at.visit.user.name),
                phrase("These pages are for people who decide who may act for their organisation."),
                phrase("If you should have this access, ask an owner of your organisation."),
            ),
            back=first_page(at.web, "account"),
            others=ways_out(at.web, "manage"),
        )
    query = at.query.get("query", at.form.get("query", ""))[:QUERY_CHARACTERS]
    words = search_words(query)
    found = [
        each for each in mine if all(word in f"{each.name} {each.registration_number}".casefold() for word in words)
    ]
    here = at.path(ORGANISATION)
    return ChooseEntity(
        frame=frame(at, section=ORGANISATION) if visit.entity else bare_frame(at),
        action=at.path(choosing(next_page(at))),
        search_action=here,
        choices=tuple(
            Choice(
                id=each.entity_id,
                name=each.name,
                number=each.registration_number,
                number_name=NUMBERS[each.type],
                status=ENTITY_STATUSES[each.status] if each.status else None,
                preselected=each == visit.entity,
            )
            for each in found
        ),
        total=len(found),
        query=query,
    )


async def choose_entity(at: PortalContext) -> FormResult:
    """Choose the entity that was sent. Raises InvalidInput, StaleStep. Source: D54"""
    await portal.choose_entity(at.context, at.visit, at.form.get("entity", ""))
    return FormResult("", next_page(at))


async def show_ending(_: PortalContext) -> View:
    """Lead to roles that end soon, from an e-mail. Raises SeeOther."""
    raise SeeOther(access_list.ENDING)


async def ask_undo(at: PortalContext) -> Check:
    """The check before an undo, or why nothing was undone.

    An undo comes here after a new sign-in only. Raises SeeOther if nothing was tried. Source: D80
    """
    if not at.form.get(UNDONE):
        raise SeeOther("")

    async def name_change() -> tuple[Part, ...]:
        offered = None if at.errors else await _find_undoable(at)
        return (offered[1],) if offered is not None and offered[0] == at.form[UNDONE] else ()

    return Check(
        heading=phrase("The last change was not undone") if at.errors else phrase("Undo the last change?"),
        parts=(),
        further=name_change,
        hidden=((UNDONE, at.form[UNDONE]), (UNDO_PAGE, at.form.get(UNDO_PAGE, ""))),
        button=phrase("Undo"),
        refused=phrase("Open the record, and change it there.") if at.errors else None,
        back=at.section_link(""),
        at_once=True,
        change=lambda: _undo(at),
    )


async def _undo(at: PortalContext) -> FormResult:
    """Undo the last change, or request that.

    Leads back to the page that offered it. Raises InvalidInput. Source: D80
    """
    page = at.form.get(UNDO_PAGE, "")
    if at.page_at(page.partition("?")[0]) is None:
        page = ""
    try:
        asking = RequestDetails(str(_REASON), at.context.now, at.provider.new_id())
        undoing = undo_changes(at.context, at.visit.session.browser_id, at.actor, asking, named=at.form[UNDONE])
        request = await await_change(undoing)
    finally:
        at.actor.written.clear()
    return saved_or_requested(request, FormResult("undone", page))


async def _keep_for_undo(at: PortalContext) -> None:
    if at.visit.actor is not None:
        await keep_for_undo(at.context, at.visit.session.browser_id, at.actor, at.actor.written)


async def _find_undoable(at: PortalContext) -> tuple[str, Phrase] | None:
    """The last change, if it can be undone, with whom it concerns. Source: D68, D80"""
    if at.visit.actor is None:
        return None
    found = await find_undoable(at.context, at.visit.session.browser_id, at.actor)
    if found is None:
        return None
    names = await load_names(at.registry, at.actor.entity_id, found.changes)
    return found.name, describe_done(found.changes, names)


async def _describe_undone(at: PortalContext) -> Phrase | None:
    done = await history.describe_last(at)
    return phrase("Undone. {change}", change=done) if done else None


SECTION: Final = Section[PortalContext](
    pages={
        "": PortalPage(view=show_home, offers_undo=True),
        ORGANISATION: PortalPage(view=show_choice, submit=choose_entity, field="entity"),
        "ending": PortalPage(view=show_ending),
        _UNDO: check_page(ask_undo),
    },
    changes={"undone": phrase("The last change has been undone.")},
    fields=frozenset({"entity", "query", UNDONE, UNDO_PAGE}),
    filters=frozenset({"after", "query"}),
)


async def _arrive(at: sites.PageContext[SelfServiceRequest]) -> PortalRequest:
    # A link of somebody else's does not choose, only a sign-in that came back for a change (D54).
    wanted = at.query.get(ENTITY, "") if at.again else ""
    try:
        visit = await portal.admit_to_entity(at.context, at.visit, wanted=wanted, choosing=at.page == ORGANISATION)
    except Forbidden as forbidden:
        back = at.link(ORGANISATION, phrase("Change organisation"))
        raise EntryRefused(forbidden_page("manage", forbidden, back, ways_out(at.web, "manage"))) from None
    if visit.entity is None and at.page != ORGANISATION:
        of = at.query.get(OF_ENTITY, "")
        raise SeeOther(choosing(f"{at.page}?{OF_ENTITY}={of}" if of else at.page))
    return visit


_SITE: Final = Site(
    purpose="manage",
    sections=(
        SECTION,
        _SETTINGS,
        administrators.SECTION,
        access_review.SECTION,
        provisioning_tokens.SECTION,
        history.SECTION,
        requests.SECTION,
        third_parties.SECTION,
        third_party_terms.OFFERS_SECTION,
        third_party_terms.PEOPLE_SECTION,
        access.SECTION,
        access_list.SECTION,
        people.SECTION,
        person.SECTION,
        _SEARCH,
    ),
    context=PortalContext,
    arrive=_arrive,
    admit=admit,
    remembered=remembered,
    undo=SiteUndo(page=_UNDO, keep=_keep_for_undo, offered=_find_undoable, describe_undone=_describe_undone),
    keeps=True,
)


async def manage(request: Request, web: WebContext) -> Response:
    """Every address of the portal (D53, D54)."""
    return await serve(_SITE, request, web)
