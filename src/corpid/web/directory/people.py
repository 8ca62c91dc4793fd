"""People of an entity: list, choice of one, invitations (D53, D55, D60, D61)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar, cast, get_args
from urllib.parse import urlencode

from corpid.flows.directory import members, role_assignment
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.lists import ListPage as FoundPage
from corpid.flows.directory.members import (
    MOST_INVITED,
    MOST_SELECTED,
    LeftOut,
    MemberAction,
    MemberFilter,
    MemberSummary,
    UnknownMember,
    preview_bulk,
    select_filtered,
    select_members,
    write_bulk,
)
from corpid.flows.directory.write import Refused
from corpid.flows.operations import history
from corpid.rules.directory import tables
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.access_texts import details, duration, role_sentence
from corpid.rules.directory.approvals import kind_needs_approval
from corpid.rules.directory.memberships import PLAIN_DETAILS, InvalidDetails, Member, MemberState, check_details
from corpid.rules.directory.records import ADMINISTRATOR_LEVELS, Assignment, Conflict, Entity, MemberDetails, Service
from corpid.rules.directory.role_forms import RoleForm, row_of
from corpid.rules.fields import fields_of
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.directory.member_texts import (
    EACH_GETS,
    REFUSALS,
    access_refusal,
    belongs,
    refusal_sentence,
    rejected,
)
from corpid.web.directory.page_context import REQUESTED, PortalContext, PortalPage, names_shown, saved_or_requested
from corpid.web.http.requests import UPLOAD
from corpid.web.lists import SORT, export_list, read_sort, sorting_column
from corpid.web.pages import role_fields
from corpid.web.pages.components import (
    LEAVE_OUT,
    MEMBER_STATES,
    ROW,
    SELECT,
    Cell,
    Choice,
    Column,
    Component,
    Disclosure,
    Field,
    FieldError,
    Filters,
    Form,
    Heading,
    Items,
    Label,
    Link,
    Page,
    Paragraph,
    Selection,
    Table,
    Value,
    View,
    ViewPart,
    counted_pager,
    is_chosen,
    keep_left_out,
    pager_of,
    state_label,
    table,
)
from corpid.web.pages.record_forms import advise, form_of
from corpid.web.sites import (
    CHANGED_MEANWHILE,
    CONFIRMED,
    Check,
    FormResult,
    InvalidForm,
    Section,
    SeeOther,
    await_found,
    check_page,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from starlette.responses import Response

    from corpid.rules.directory.tables import PastedPerson

T = TypeVar("T")

PEOPLE: Final = "people"
PERSON: Final = "person"
"""the page of a person, which names the membership"""
MEMBER: Final = form_of(MemberDetails, "name", "email")
INVITE: Final = "invite"
SELECTED: Final = "people/selected"
"""the page that asks before selected people are changed"""
PEOPLE_CSV: Final = "people/list.csv"
_EXPORTED_AT_ONCE: Final = 200
FILTERS: Final = ("q", "state", "service")
"""parameters that narrow a list of members"""
_NARROWED: Final = (*FILTERS, "sort")
"""parameters of the list, to which a change leads back"""
_GIVE: Final = "give"
_EDIT: Final = "edit"
"""the decision to choose another role"""
INVITED: Final = "invited"
"""the parameter of how many were invited, and the key of that change"""
_SHOWN: Final = 50
_SEARCH: Final = "q"
_USER_NAME: Final = "user_name"
_EMAIL: Final = "email"
_NAME: Final = "name"
_ORDERS: Final = {_NAME: "shown_name", _USER_NAME: "shown_user_name", _EMAIL: "shown_email"}
"""value of the parameter → order of the list"""
_CAPTIONS: Final = {
    _NAME: phrase("People by name"),
    _USER_NAME: phrase("People by user name"),
    _EMAIL: phrase("People by e-mail address"),
}
FIND: Final = "find"
"""the parameter of what is searched for"""
AFTER: Final = "after"
"""the parameter of the place at which the list goes on"""
PERSON_CHOSEN: Final = "person"
"""the parameter that names the chosen membership"""
_CHARACTERS: Final = 100
_PER_PAGE: Final = 25
SEVERAL: Final = f"{INVITE}/several"
_CHECK: Final = "check"
"""the button that shows again what the form would do"""
_LINES: Final = phrase(
    "One person per line, at most {most}: “Marcus Lee <marcus@example.com>”, “Marcus Lee, marcus@example.com” or "
    "only the address. You can paste lines from a mail program or a table.",
    most=MOST_INVITED,
)
UPLOADED: Final = Field(
    name=UPLOAD,
    kind="file",
    label=phrase("Or a file"),
    hint=phrase("A table that your spreadsheet has saved as CSV. It replaces what is typed above."),
    value="",
)
"""the field of a table that is uploaded (D81)"""
_ERRORS: Final = 20
"""lines whose errors are listed; further ones are counted"""
_LINE: Final = 60


async def show_people(at: PortalContext) -> Page:
    """The people of the entity, a page of fifty."""
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    wanted, sort = read_filter(at.query, services), read_sort(at.query, _ORDERS)
    try:
        page = await members.list_members(
            at.registry, wanted, actor=at.actor, after=at.query.get("after", ""), before=at.query.get("before", ""),
            limit=_SHOWN, **_order(sort),
        )  # fmt: skip
    except Refused:  # no place of this list
        page = FoundPage(found=())
    last = await _find_last_sign_ins(at, page.found)
    filters = {_SEARCH: wanted.search, "state": wanted.state, "service": wanted.service_id}
    kept = {name: value for name, value in filters.items() if value}
    sorted_by = {SORT: sort} if sort else {}
    may_change = members.may_invite(at.actor)
    invite = at.link(INVITE, phrase("Invite a person")) if may_change else None
    sorts = "" if page.by_word else sort or _USER_NAME
    columns = (
        sorting_column(at, PEOPLE, phrase("Name"), _NAME, sorts, kept),
        sorting_column(at, PEOPLE, phrase("User name"), _USER_NAME, sorts, kept),
        sorting_column(at, PEOPLE, phrase("E-mail address"), _EMAIL, sorts, kept, narrow="hidden"),
        Column(phrase("State"), narrow="end"),
        Column(phrase("Access"), narrow="hidden"),
        *((Column(phrase("Last sign-in"), narrow="hidden"),) if last is not None else ()),
    )
    empty: Value
    if kept:
        everybody = at.link(PEOPLE, phrase("Show everybody"))
        empty = Cell(values=(phrase("Nobody matches this search. Check the spelling."), everybody))
    else:
        empty = Cell(values=(phrase("There is nobody here yet."), *([invite] if invite else [])))
    return Page(
        frame=at.frame(),
        heading=phrase("People"),
        main_action=invite,
        saved=_saved(at),
        parts=(
            Table(
                caption=_CAPTIONS.get(sorts.removeprefix("-"), phrase("People")),
                columns=columns,
                rows=tuple(_row(at, each, last) for each in page.found),
                empty=empty,
                filters=Filters(
                    action=at.path(PEOPLE),
                    fields=list_filters(wanted, services),
                    kept=tuple(sorted_by.items()),
                ),
                selection=Selection(
                    action=at.path(SELECTED),
                    buttons=tuple((action, BULK_ACTIONS[action].button) for action in _list_actions(at)),
                    everything=_everything(page),
                    all_chosen="all" in at.form,
                    total=page.total.count if page.total else 0,
                    note=_why_not_all(page),
                    kept=(
                        *(kept | sorted_by).items(),
                        *keep_left_out(at.form, (each.member.membership.membership_id for each in page.found)),
                    ),
                ),
                pager=counted_pager(at.path(PEOPLE), kept | sorted_by, at.query, page, most=_SHOWN),
                csv=at.path(PEOPLE_CSV, **kept, **sorted_by),
            ),
            Paragraph(text=phrase("Only access at the services that you administer is counted."), look="hint")
            if at.actor.level == "sub_administrator"
            else None,
        ),
    )  # fmt: skip


class _Order(TypedDict):
    order: str
    descending: bool


def _order(sort: str) -> _Order:
    return _Order(order=_ORDERS[sort.removeprefix("-") or _USER_NAME], descending=sort.startswith("-"))


def list_filters(wanted: MemberFilter, services: Sequence[Service]) -> tuple[Field, ...]:
    """The fields that narrow a list of members."""
    at_service = tuple((each.service_id, each.name) for each in services)
    search = Field(
        name=_SEARCH, label=phrase("Name, e-mail address or other details"), kind="search", value=wanted.search,
        most=_CHARACTERS,
    )  # fmt: skip
    state = choice_filter(phrase("State"), "state", wanted.state, MEMBER_STATES.items())
    if not services:
        return search, state
    return search, state, choice_filter(phrase("Has access at"), "service", wanted.service_id, at_service)


def read_filter(given: Mapping[str, str], services: Sequence[Service]) -> MemberFilter:
    """The filter in an address or a form."""
    state, service = given.get("state", ""), given.get("service", "")
    return MemberFilter(
        search=given.get(_SEARCH, "").strip()[:_CHARACTERS],
        state=cast("MemberState", state) if state in get_args(MemberState) else "",
        service_id=service if service in {each.service_id for each in services} else "",
    )


async def _wanted(at: PortalContext, given: Mapping[str, str]) -> MemberFilter:
    return read_filter(given, await role_assignment.list_services(at.registry, at.actor, at.entity))


async def _find_last_sign_ins(at: PortalContext, page: Sequence[MemberSummary]) -> Mapping[str, int] | None:
    """The last sign-ins for the entity.

    None for a reader who may not see them.
    """
    try:
        return await history.find_last_sign_ins(at.registry, at.actor, [each.member.user.user_id for each in page])
    except Forbidden:
        return None


def _row(at: PortalContext, each: MemberSummary, last: Mapping[str, int] | None) -> tuple[Value | Choice, ...]:
    member = each.member
    membership, name, user_id = member.membership, member.name_alone, member.user.user_id
    url = at.path(f"{PERSON}/{membership.membership_id}")
    details = [value for detail in PLAIN_DETAILS if (value := getattr(membership, detail))]
    level = (Label(ADMINISTRATOR_LEVELS[each.level]),) if each.level else ()
    return (
        Choice(
            value=membership.membership_id,
            name=phrase("Select {name}", name=member.name),
            chosen=is_chosen(at.form, membership.membership_id),
        ),
        Cell(values=(Link(url=url, text=name), *level), notes=(", ".join(details),) if details else ()),
        member.identity,
        member.email,
        state_label(member.state),
        counted(each.roles, "{count} role", "{count} roles") if each.roles else phrase("None"),
        *((at.moment(last[user_id]) if user_id in last else None,) if last is not None else ()),
    )


def _identity(member: Member) -> Cell:
    """The user name, and the address if it is another one."""
    account, email = member.identity, member.email
    return Cell(values=(account,) if account else (), notes=(email,) if email and email != account else ())


def choice_filter(label: Phrase, name: str, chosen: str, options: Iterable[tuple[str, Phrase | str]]) -> Field:
    """The filter of a list by one of several values, or any."""
    words = (("", phrase("Any")), *options)
    return Field(name=name, kind="words", label=label, value=chosen, words=words)


def _everything(page: FoundPage[MemberSummary]) -> Phrase | None:
    """The text that selects the whole list.

    None for one person, and for more than can be changed at once.
    """
    if not (page.after or page.before):
        count = len(page.found)
        return phrase("Select all {count} in this list", count=count) if count > 1 else None
    if page.total is None or not page.total.exact or page.total.count > MOST_SELECTED:
        return None
    return counted(
        page.total.count, "Select all {count} in this list", "Select all {count} in this list, not only on this page"
    )


def _why_not_all(page: FoundPage[MemberSummary]) -> Phrase | None:
    """The note where the whole list cannot be selected."""
    is_long = page.total is not None and (not page.total.exact or page.total.count > MOST_SELECTED)
    return phrase("To select all, narrow the list to at most {count} people.", count=MOST_SELECTED) if is_long else None


def _saved(at: PortalContext) -> Phrase | None:
    """The change just made, with the number of those invited."""
    number = at.query.get(INVITED, "")
    if at.saved is None or not (number.isascii() and number.isdigit() and len(number) < len("1000")):
        return at.saved
    return counted(int(number), "{count} person has been invited.", "{count} people have been invited.")


async def download_people(at: PortalContext) -> Response:
    """The list, as it is filtered, as CSV."""
    wanted, order = await _wanted(at, at.query), _order(read_sort(at.query, _ORDERS))
    signed_in = {} if await _find_last_sign_ins(at, ()) is None else {"last_sign_in": ""}

    async def read(after: str, limit: int) -> FoundPage[tuple[MemberSummary, Mapping[str, int]]]:
        page = await await_found(
            members.list_members(at.registry, wanted, actor=at.actor, after=after, limit=limit, **order)
        )
        last = await _find_last_sign_ins(at, page.found) or {}
        return FoundPage(found=tuple((each, last) for each in page.found), after=page.after)

    def line(found: tuple[MemberSummary, Mapping[str, int]]) -> Iterable[str]:
        each, last = found
        member, at_last = each.member, last.get(each.member.user.user_id)
        return (
            member.name_alone, member.identity, member.email, member.state, each.level, str(each.roles),
            *(at.moment(at_last).isoformat() if at_last else "" for _ in signed_in),
            *(getattr(member.membership, detail) for detail in PLAIN_DETAILS),
        )  # fmt: skip

    columns = ("name", "user_name", "email", "state", "level", "roles", *signed_in, *PLAIN_DETAILS)
    return await export_list(at, "people", columns, read, line, at_once=_EXPORTED_AT_ONCE)


# --- several people at once


class BulkAction(ViewPart, frozen=True, kw_only=True):
    """An action on selected people, in words."""

    button: Phrase
    heading: Callable[[int], Phrase]
    sentence: Callable[[Entity], Phrase] | None = None
    """None: that of the role"""
    done: str


BULK_ACTIONS: Final[Mapping[str, BulkAction]] = {
    _GIVE: BulkAction(
        button=phrase("Give access"),
        heading=lambda count: counted(count, "Give access to {count} person?", "Give access to {count} people?"),
        done="access-given",
    ),
    "suspend": BulkAction(
        button=phrase("Suspend"),
        heading=lambda count: counted(count, "Suspend {count} person?", "Suspend {count} people?"),
        sentence=lambda entity: phrase(
            "They will no longer be able to act for {entity}. Levels and access are kept without effect, and come "
            "back when you restore the memberships.",
            entity=entity.name,
        ),
        done="people-suspended",
    ),
    "restore": BulkAction(
        button=phrase("Restore"),
        heading=lambda count: counted(count, "Restore {count} person?", "Restore {count} people?"),
        sentence=lambda entity: phrase(
            "They can act for {entity} again, with the levels and access that they had.", entity=entity.name
        ),
        done="people-restored",
    ),
    "end": BulkAction(
        button=phrase("End memberships"),
        heading=lambda count: counted(
            count, "End the membership of {count} person?", "End the memberships of {count} people?"
        ),
        sentence=lambda entity: phrase(
            "They will no longer be able to act for {entity}, and their levels and access end. The accounts stay. "
            "This cannot be undone: to come back, each person needs a new invitation and new access.",
            entity=entity.name,
        ),
        done="people-ended",
    ),
}


def _list_actions(at: PortalContext) -> tuple[str, ...]:
    """The actions that the reader's level has. Source: D53"""
    return tuple(BULK_ACTIONS) if members.may_invite(at.actor) else (_GIVE,)


async def _read_selected(at: PortalContext) -> tuple[str, list[Member]]:
    """The action of the form, and the people. Raises InvalidInput."""
    decision = at.form.get("decision", "")
    action = _GIVE if decision == _EDIT else decision
    if action not in _list_actions(at):
        raise InvalidInput(phrase("Choose what to do with the people that you select."))
    chosen = [name.removeprefix(SELECT) for name, value in at.form.items() if name.startswith(SELECT) and value]
    try:
        if at.form.get("all"):
            selected = await select_filtered(at.registry, await _wanted(at, at.form), actor=at.actor)
        else:
            selected = await select_members(at.registry, chosen, actor=at.actor)
    except UnknownMember:
        raise InvalidInput(CHANGED_MEANWHILE) from None
    selected = [each for each in selected if f"{LEAVE_OUT}{each.membership.membership_id}" not in at.form]
    if not selected:
        raise InvalidInput(phrase("Select at least one person."))
    return action, selected


async def show_selected(at: PortalContext) -> View:
    """The list, with the people who are selected.

    Raises SeeOther if nothing was tried.
    """
    if not at.form:
        raise SeeOther(PEOPLE)
    return await show_people(replace(at, query=_narrowed(at)))


def _narrowed(at: PortalContext) -> dict[str, str]:
    """The parameters of the list in which people were selected."""
    return {name: at.form[name] for name in _NARROWED if at.form.get(name)}


async def ask_selected(at: PortalContext) -> Check | Page:
    """The check before an action, with those left out.

    Before a role is given, its form. Raises InvalidInput.
    """
    name, selected = await _read_selected(at)
    action = cast("MemberAction", name)
    hidden, texts = _kept_selection(at), BULK_ACTIONS[name]
    if name == _GIVE:
        form, errors = await _read_role(at)
        if errors is None or errors:
            return await _ask_role(at, len(selected), form, errors or ())
        action = _role_of(at, form)
        hidden += [
            *role_fields.to_hidden_fields(form, at.context.day, chosen=True),
            (role_fields.CHECK, role_fields.EVERYTHING),
        ]
    preview = await preview_bulk(at.registry, selected, action, actor=at.actor, today=at.context.today)
    people, left_out = preview.members, preview.left_out
    columns = (phrase("Name"), phrase("User name and e-mail"), phrase("State"))

    async def write() -> FormResult:
        try:
            asking = at.request_details(approval_needed=preview.needs_approval)
            outcome = await write_bulk(at.registry, preview, actor=at.actor, asking=asking)
        except REFUSALS as error:
            raise rejected(error, entity=at.entity) from None
        if outcome.stopped is not None:
            raise InvalidInput(_say_stopped(at, outcome.done, outcome.stopped, requested=bool(outcome.requests)))
        page = f"{PEOPLE}?{urlencode(_narrowed(at))}" if _narrowed(at) else PEOPLE
        return FormResult(REQUESTED, "requests") if outcome.requests else FormResult(texts.done, page)

    return Check(
        heading=texts.heading(len(people)),
        parts=(texts.sentence(at.entity),) if texts.sentence else _say_role(at, people, form) if people else (),
        refused=None if people else phrase("Nobody whom you selected can be changed."),
        hidden=tuple(hidden),
        decision=name,
        button=texts.button,
        danger=name in {"suspend", "end"},
        other=(_EDIT, phrase("Change something")) if name == _GIVE else None,
        needs_approval=preview.needs_approval,
        below=(
            table(phrase("People to change"), columns, (_known(at, each) for each in people)),
            table(
                phrase("Left out"),
                (*columns[:2], phrase("Why")),
                ((*_known(at, each.member)[:2], _why_left_out(at, each, name)) for each in left_out),
            ),
        ),
        names=names_shown(*people),
        step_name=preview.digest,
        up=at.link(PEOPLE, phrase("People"), **_narrowed(at)),
        change=write,
    )


def _say_stopped(at: PortalContext, done: int, stopped: Exception, *, requested: bool) -> Phrase:
    """The sentence about a change of many that stopped."""
    why = rejected(stopped, entity=at.entity).sentence
    if requested:
        return counted(
            done,
            "Approval was requested for {count} person only. {reason}",
            "Approval was requested for {count} people only. {reason}",
            reason=why,
        )
    if isinstance(stopped, Conflict):
        return counted(
            done,
            "Only {count} person was changed: somebody else changed the others in the meantime. Check the others again.",
            "Only {count} people were changed: somebody else changed the others in the meantime. Check the others again.",
        )
    return counted(
        done, "Only {count} person was changed. {reason}", "Only {count} people were changed. {reason}", reason=why
    )


def _kept_selection(at: PortalContext) -> list[tuple[str, str]]:
    kept = ("all", *_NARROWED)
    return [(name, value) for name, value in at.form.items() if name in kept or name.startswith((SELECT, LEAVE_OUT))]


def _known(at: PortalContext, member: Member) -> tuple[Value, ...]:
    return (
        Link(url=at.path(f"{PERSON}/{member.membership.membership_id}"), text=member.name_alone),
        _identity(member),
        state_label(member.state),
    )


def _why_left_out(at: PortalContext, left_out: LeftOut, action: str) -> Phrase:
    member = left_out.member
    if left_out.refusal:
        explain = access_refusal if action == _GIVE else refusal_sentence
        return explain(left_out.refusal, member.name, at.entity)
    if action == _GIVE:
        return phrase("Already has this role.")
    return phrase("The state is {state}", state=MEMBER_STATES[member.state])


# --- a role that several people are given


async def _read_role(at: PortalContext) -> tuple[RoleForm, tuple[FieldError, ...] | None]:
    """The role of the form, with its errors.

    None if the form has not asked for everything yet.
    """
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    missing = phrase("Choose what these people may do.")
    form, errors = role_fields.read_choice(at.form, services, at.context.day, missing)
    return form, None if at.form.get("decision") == _EDIT else errors


async def choose_role(
    at: PortalContext, services: Sequence[Service], form: RoleForm, asked: Phrase, *, none: Phrase | None = None
) -> tuple[Component, ...]:
    """The fields of a role at any of these services.

    They offer values that the entity uses. `none` as in `role_fields.choose_role`.
    """
    used = {
        each.service_id: await role_assignment.list_values_in_use(at.registry, at.actor, each, today=at.context.today)
        for each in role_fields.list_asked(services, form)
    }
    return role_fields.choose_role(services, form, at.context.day, asked, used, none=none)


async def _ask_role(at: PortalContext, count: int, form: RoleForm, errors: tuple[FieldError, ...]) -> Page:
    """The form for the role that selected people get."""
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    return at.build_page(
        counted(count, "Give access to {count} person", "Give access to {count} people"),
        Form(
            parts=await choose_role(at, services, form, phrase("What may these people do?")),
            hidden=tuple(_kept_selection(at)),
            decision=_GIVE,
            button=phrase("Continue"),
        )
        if services
        else Paragraph(text=phrase("You cannot give access at any service."), look="empty"),
        errors=errors,
    )


def _role_of(at: PortalContext, form: RoleForm) -> Assignment:
    """The role of a form without faults, of nobody yet."""
    return row_of(form, user_id="", entity_id=at.entity.entity_id, today=at.context.day)


def _say_role(at: PortalContext, people: Sequence[Member], form: RoleForm) -> tuple[Component, ...]:
    """The sentence about the role of several people, and its limits."""
    row, who = _role_of(at, form), counted(len(people), "{count} person", "{count} people")
    sentence = role_sentence(who, row, service=form.service.name, entity=at.entity.name, today=at.context.day)
    no_effect = phrase("It has no effect for people who are invited or suspended until they accept or are restored.")
    waits = any(each.membership.invited or not each.membership.enabled for each in people)
    return (
        Paragraph(text=sentence, look="summary"),
        Items(items=details(row)),
        *((Paragraph(text=no_effect),) if waits else ()),
    )


# --- the choice of a person, for every page that is about one


async def choose_person(
    at: PortalContext,
    page: str,
    to: Callable[[Member], str | Phrase],
    *,
    heading: Phrase,
    asked: Phrase,
    up: Link | None = None,
    kept: tuple[tuple[str, str], ...] = (),
    lead: Phrase | None = None,
    links: tuple[Link, ...] = (),
    refused: Phrase | None = None,
    list_held: Callable[[Sequence[Member]], Awaitable[Mapping[str, tuple[Phrase, ...]]]] | None = None,
) -> Page:
    """The choice of a person on a page.

    `to` gives the address that a person leads to, or why they cannot be chosen; `refused` says why no choice would be
    of use; `list_held` finds the access that people have, by identifier. Raises NotFound for a place that is in no
    list. Source: D53, D54, D61
    """
    find, after = at.query.get(FIND, "").strip(), at.query.get(AFTER, "")
    found = await await_found(
        members.list_members(at.registry, MemberFilter(search=find), actor=at.actor, after=after, limit=_PER_PAGE)
    )
    here = at.path(page)
    same = {**dict(kept), **({FIND: find} if find else {})}
    held = await list_held([each.member for each in found.found]) if list_held else {}

    def row(each: MemberSummary) -> tuple[Value, ...]:
        member, leads = each.member, to(each.member)
        name = member.name_alone
        who = "" if member.identity == name else member.marked_identity
        levels = (Label(ADMINISTRATOR_LEVELS[each.level]),) if each.level else ()
        why_not = (leads,) if isinstance(leads, Phrase) else ()
        return (
            name if isinstance(leads, Phrase) else Link(url=leads, text=name, about=who),
            member.identity,
            Cell(values=(state_label(member.state), *levels), notes=why_not),
            *((Cell(values=(), notes=held.get(member.user.user_id, ())),) if held else ()),
        )

    columns = (phrase("Name"), phrase("User name"), phrase("State"), *((phrase("Already given"),) if held else ()))
    search = Field(
        name=FIND, label=phrase("Name, user name or e-mail address"), kind="search", value=find, most=_CHARACTERS
    )
    choice = (
        Paragraph(text=lead) if lead else None,
        Heading(text=asked),
        Filters(action=here, fields=(search,), kept=kept),
        Table(
            caption=phrase("People") if found.by_word else phrase("People by user name"),
            columns=tuple(map(Column, columns)),
            rows=tuple(map(row, found.found)),
            empty=phrase("Nobody found. Check the spelling, or invite the person first."),
            pager=pager_of(here, same, came=bool(after), after=found.after, name=AFTER),
        ),
    )
    return at.build_page(
        heading,
        *((Paragraph(text=refused, look="empty"),) if refused else choice),
        Paragraph(text=Cell(values=links)) if links else None,
        up=up,
    )


# --- invitations


async def show_invitation(at: PortalContext) -> View:
    """The form for one person."""
    return await _show_form(
        at,
        phrase("Invite a person"),
        MEMBER.show(at.form),
        phrase("Send invitation"),
        at.link(SEVERAL, phrase("Invite several people at once")),
    )


async def show_invitations(at: PortalContext) -> View:
    """The form for several people."""
    return await _show_form(
        at,
        phrase("Invite several people"),
        (_lines_of(at), UPLOADED),
        phrase("Check"),
        at.link(INVITE, phrase("Invite only one person")),
        upload=True,
    )


async def _show_form(
    at: PortalContext, heading: Phrase, who: Sequence[Component], button: Phrase, another: Link, *, upload: bool = False
) -> Page:
    needs_approval = not upload and kind_needs_approval("membership", at.entity)
    return at.build_page(
        heading,
        *_mail_notes(at),
        Form(parts=(*who, await _ask_access(at)), upload=upload, button=button, needs_approval=needs_approval),
        Paragraph(text=another),
    )


def _mail_notes(at: PortalContext) -> tuple[Paragraph | None, ...]:
    waits = phrase("This system sends no e-mails at present. The invitation waits until it does.")
    return Paragraph(text=EACH_GETS), None if at.provider.mail.works else Paragraph(text=waits, look="empty")


async def ask_invitation(at: PortalContext) -> Check:
    """The check of one invitation with a role.

    One without is sent at once. Raises InvalidForm, InvalidInput.
    """
    typed = MEMBER.read(at.form)
    if errors := MEMBER.find_errors(typed, required=True):
        raise InvalidForm(*errors)
    details = check_details(MemberDetails(**typed), named=False)
    if await members.known_addresses(at.registry, [details.email], actor=at.actor):
        raise InvalidInput(belongs(at.entity), field="email")
    up = at.link(INVITE, phrase("Invite a person"))
    return await _check_invitations(at, [details], MEMBER.show(at.form), up)


def detail_errors(error: InvalidDetails) -> list[FieldError]:
    """The errors of names and addresses that cannot be stored."""
    declared = fields_of(MemberDetails)
    return [
        (member, advise(declared[member], sentence, error.remedies.get(member))) for member, sentence in error.faults
    ]


def _lines_of(at: PortalContext) -> Field:
    return Field(name="people", label=phrase("People"), hint=_LINES, kind="lines", value=at.form.get("people", ""))


async def _read_access(at: PortalContext) -> tuple[Sequence[Service], RoleForm, tuple[FieldError, ...] | None]:
    """The services, and the access that invited people get, with its errors."""
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    missing = phrase("Choose one of these roles, or none yet.")
    return services, *role_fields.read_choice(at.form, services, at.context.day, missing)


async def _ask_access(at: PortalContext) -> Disclosure | None:
    """The fields of access that begins with the invitation."""
    services, form, _ = await _read_access(at)
    if not services:
        return None
    asked, none = phrase("What may these people do?"), phrase("Nothing yet")
    return Disclosure(
        summary=phrase("Give access, too"),
        opened=bool(at.form.get(role_fields.ACCESS)),
        look="settings",
        parts=await choose_role(at, services, form, asked, none=none),
    )


async def _read_people(at: PortalContext) -> list[MemberDetails]:
    people = tables.read_pasted_people(at.form.get("people", ""))
    if not people:
        raise InvalidInput(phrase("Enter one person a line."), field="people")
    if len(people) > MOST_INVITED:
        raise InvalidInput(
            phrase("These are {count} people. Invite at most {most} at once.", count=len(people), most=MOST_INVITED),
            field="people",
        )
    found = [each.details for each in people if each.details is not None]
    addresses = [each.email for each in found]
    known = await members.known_addresses(at.registry, addresses, actor=at.actor)
    errors = [sentence for each in people if (sentence := _describe_fault(at, each, known)) is not None]
    if errors:
        shown: list[FieldError] = [("people", each) for each in errors[:_ERRORS]]
        if len(errors) > _ERRORS:
            rest = len(errors) - _ERRORS
            shown.append(("people", counted(rest, "{count} more line is wrong.", "{count} more lines are wrong.")))
        raise InvalidForm(*shown)
    return found


async def ask_invitations(at: PortalContext) -> Check:
    """The check of invitations of several people. Raises InvalidForm, InvalidInput."""
    up = at.link(SEVERAL, phrase("Invite several people"))
    found = await _read_people(at)
    return await _check_invitations(at, found, (_lines_of(at), UPLOADED), up, always=True)


async def _check_invitations(
    at: PortalContext, people: Sequence[MemberDetails], fields: Sequence[Component], up: Link, *, always: bool = False
) -> Check:
    """The check of invitations; without access only if `always`."""
    number, access, form = len(people), None, None
    if at.form.get(role_fields.ACCESS):
        _, form, errors = await _read_access(at)
        if errors is None or errors:
            raise InvalidForm(*(errors or ()))
        if 2 * number > MOST_INVITED:
            most = MOST_INVITED // 2
            raise InvalidInput(phrase("With access, invite at most {most} people at once.", most=most), field="people")
        access = _role_of(at, form)

    at_once = not always and access is None and CONFIRMED not in at.form  # the check has its promise to keep

    async def invite() -> FormResult:
        return await _submit_invitations(at, people, access)

    return Check(
        heading=counted(number, "Invite {count} person?", "Invite {count} people?"),
        parts=(
            phrase("Nothing has been sent yet."),
            *_mail_notes(at),
            table(
                phrase("People to invite"),
                (phrase("Name"), phrase("E-mail address")),
                ((each.name or phrase("Not given"), each.email.lower()) for each in people),
            ),
            *(_say_access(at, form.service, access) if form and access else ()),
        ),
        at_once=at_once,
        upload=always,
        names="" if at_once else version_of(*people, access),
        fields=(Disclosure(summary=phrase("Change something"), parts=(*fields, await _ask_access(at))),),
        button=counted(number, "Send {count} invitation", "Send {count} invitations"),
        other=(_CHECK, phrase("Check again")),
        needs_approval=kind_needs_approval("membership", at.entity)
        or (form is not None and kind_needs_approval("assignment", at.entity, form.service)),
        up=up,
        change=invite,
    )


def _say_access(at: PortalContext, service: Service, row: Assignment) -> tuple[Component, ...]:
    access = (
        phrase("{role} at {service}", role=row.role, service=service.name)
        if row.role
        else phrase("{service} as a whole", service=service.name)
    )
    when = duration(row.start_date, row.end_date, at.context.day)
    sentence = phrase(
        "Each of them may act as {access} {when}, once the invitation is accepted.", access=access, when=when
    )
    return Paragraph(text=sentence, look="summary"), Items(items=details(row))


def _describe_fault(at: PortalContext, person: PastedPerson, known: frozenset[str]) -> Phrase | None:
    """The fault of a line in words; None without one."""
    line, text = person.line, person.text if len(person.text) <= _LINE else f"{person.text[:_LINE]}…"
    if person.details is not None:
        if person.details.email not in known:
            return None
        return phrase(
            "Line {line}: somebody with this address already belongs to {entity} or has been invited: {text}",
            line=line, entity=at.entity.name, text=text,
        )  # fmt: skip
    if person.fault == "repeated":
        return phrase("Line {line}: line {first} has this address already: {text}", line=line, first=person.first_line, text=text)  # fmt: skip
    if person.fault == "no address":
        return phrase("Line {line}: there is no e-mail address: {text}", line=line, text=text)
    if person.remedy is not None:
        return phrase("Line {line}: {remedy} {text}", line=line, remedy=person.remedy, text=text)
    if person.fault == "name":
        return phrase("Line {line}: this name cannot be used: {text}", line=line, text=text)
    return phrase("Line {line}: this is not an e-mail address such as name@example.com: {text}", line=line, text=text)


async def _submit_invitations(
    at: PortalContext, people: Sequence[MemberDetails], access: Assignment | None = None
) -> FormResult:
    """Invite people, or request it."""
    try:
        request = await members.submit_invitations(
            at.registry, InvitationLimit.for_request(at.context), people, actor=at.actor, asking=at.request_details(),
            new_id=at.web.new_user_id, access=access,
        )  # fmt: skip
    except REFUSALS as error:
        raise rejected(error, entity=at.entity) from None
    return saved_or_requested(request, FormResult(INVITED, f"{PEOPLE}?{INVITED}={len(people)}"))


_INVITING: Final = ("write", "invitation")
SECTION: Final = Section[PortalContext](
    name=PEOPLE,
    pages={
        PEOPLE: PortalPage(view=show_people),
        PEOPLE_CSV: PortalPage(view=download_people),
        SELECTED: check_page(ask_selected, form=show_selected, needs=("write", "assignment")),
        INVITE: check_page(ask_invitation, form=show_invitation, needs=_INVITING),
        SEVERAL: check_page(ask_invitations, form=show_invitations, field="people", upload="people", needs=_INVITING),
    },
    fields=role_fields.FIELDS | {"all", *_NARROWED, *MEMBER.fields, "people", "reason", "decision"},
    prefixes=(SELECT, LEAVE_OUT, role_fields.PARAMETER),
    filters=frozenset({_SEARCH, SORT, "state", "service", "after", "before", ROW}),
    changes={
        INVITED: phrase("The invitation has been sent."),
        "people-suspended": phrase("The memberships have been suspended."),
        "people-restored": phrase("The memberships have been restored."),
        "people-ended": phrase("The memberships have been ended."),
    },
)
