"""The access of an entity's people: list, numbers, bulk end, CSV (D53, D81, D83)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Literal, cast, get_args
from urllib.parse import urlencode

from corpid.flows.directory import role_assignment
from corpid.flows.directory.approvals import RequestedRemovals, find_requested_removals
from corpid.flows.directory.lists import ListPage, read_all
from corpid.flows.directory.members import write_selected
from corpid.flows.directory.notice_texts import REVIEW_PAGE
from corpid.flows.directory.role_assignment import EntityRole, RoleFilter
from corpid.rules.directory import access_texts
from corpid.rules.directory.approvals import kind_needs_approval
from corpid.rules.directory.memberships import RoleOrder
from corpid.rules.directory.records import Change
from corpid.rules.directory.values import NO_BEGINNING
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.directory.member_texts import rejected
from corpid.web.directory.page_context import REQUESTED, PortalContext, PortalPage, await_change, names_shown
from corpid.web.directory.people import PERSON, choice_filter
from corpid.web.lists import SORT, export_list, read_sort, sorting_column
from corpid.web.pages.change_sentences import list_parameters
from corpid.web.pages.components import (
    LEAVE_OUT,
    ROW,
    SELECT,
    Actions,
    Cell,
    Choice,
    Column,
    Field,
    Filters,
    Label,
    Link,
    Paragraph,
    Part,
    Selection,
    Table,
    Value,
    View,
    counted_pager,
    is_chosen,
    keep_left_out,
    last_day,
    table,
)
from corpid.web.sites import NAMES_CHANGED, Check, FormResult, Section, SeeOther, await_found, check_page, version_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from starlette.responses import Response


ACCESS: Final = "access"
_END: Final = f"{ACCESS}/end"
_ROLES: Final = f"{ACCESS}/roles"
_CSV: Final = f"{ACCESS}/csv"
SOON_DAYS: Final = 30
ENDING: Final = f"{ACCESS}?ends={SOON_DAYS}"
"""the roles that end soon"""
_SEARCH: Final = "q"
_FILTERS: Final = frozenset({_SEARCH, "service", "role", "ends"})
_ORDERS: Final = get_args(RoleOrder)
_SHOWN: Final = 50
_MOST_ENDED: Final = 1000
"""roles of one selection"""
_READ_AT_ONCE: Final = 500
_ENDS: Final[Mapping[str, Phrase]] = {
    str(SOON_DAYS): phrase("Within 30 days"),
    "dated": phrase("On a day"),
    "over": phrase("Already ended"),
}
_IN_USE: Final = phrase("Roles in use")
_TAKE_AWAY: Final = phrase("Remove access")
REMOVAL_REQUESTED: Final = Label(phrase("Removal requested"), "warning")
_CHOOSE: Final = phrase("Choose the access in the list first.")


# --- the list


def _filters(given: Mapping[str, str]) -> dict[str, str]:
    """The filters and the order of an address or of a form."""
    known = {name: given.get(name, "").strip() for name in sorted(_FILTERS)}
    return known | {
        "ends": known["ends"] if known["ends"] in _ENDS else "",
        SORT: read_sort(given, _ORDERS),
    }


def _wanted(at: PortalContext, filters: Mapping[str, str]) -> RoleFilter:
    """The roles that are asked for.

    Those that have ended only if they alone are; by last day only those that end, which are in this order by default.
    """
    today = at.context.day
    first, last = today, None
    if filters["ends"] == "over":
        first, last = date.min, today - timedelta(days=1)
    elif filters["ends"] == "dated":
        last = date.max - timedelta(days=1)
    elif filters["ends"]:
        last = today + timedelta(days=SOON_DAYS)
    order = filters[SORT].removeprefix("-")
    if not order or (order == "until" and last is None):
        order = "until" if last else "person"
    return RoleFilter(
        search=filters[_SEARCH],
        service_id=filters["service"],
        role=filters["role"],
        first=first.isoformat(),
        last=last.isoformat() if last else "",
        order=cast("RoleOrder", order),
        descending=filters[SORT] == f"-{order}",
    )


async def show_access(at: PortalContext) -> View:
    """A page of the roles of the entity's people."""
    filters, after, before = _filters(at.query), at.query.get("after", ""), at.query.get("before", "")
    wanted = _wanted(at, filters)
    found = await await_found(
        role_assignment.list_entity_roles(at.registry, at.actor, wanted, after=after, before=before, limit=_SHOWN)
    )
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    at_service = tuple((each.service_id, each.name) for each in services)
    service = next((each for each in services if each.service_id == filters["service"]), None)
    protected = await role_assignment.find_protected(at.registry, at.actor, found.found)
    removed = await find_requested_removals(at.registry, at.actor, now=at.context.now)
    kept = {name: value for name, value in filters.items() if value}
    narrowed = {name: value for name, value in kept.items() if name != SORT}
    total = found.total.count if found.total and found.total.exact else 0
    everything = 1 < total <= _MOST_ENDED
    own = at.actor.level == "sub_administrator"
    sort = f"{'-' if wanted.descending else ''}{wanted.order}"

    def column(heading: Phrase, order: RoleOrder) -> Column:
        ending = {"ends": filters["ends"] or "dated"} if order == "until" else {}
        narrow: Literal["", "end"] = "end" if ending else ""
        return sorting_column(at, ACCESS, heading, order, sort, narrowed | ending, narrow=narrow)

    return at.build_page(
        phrase("Access"),
        Actions((at.link(_ROLES, _IN_USE), *([] if own else [at.link(REVIEW_PAGE, phrase("Access review"))]))),
        Table(
            caption=phrase("What people may do for your organisation"),
            filters=Filters(
                action=at.path(ACCESS),
                fields=(
                    Field(
                        name=_SEARCH, kind="search", label=phrase("Name, user name or e-mail address"),
                        value=filters[_SEARCH],
                    ),
                    choice_filter(phrase("Service"), "service", filters["service"], at_service),
                    *(
                        (choice_filter(phrase("Role"), "role", filters["role"], ((each, each) for each in service.roles)),)
                        if service is not None and service.roles
                        else ()
                    ),
                    choice_filter(phrase("Ends"), "ends", filters["ends"], _ENDS.items()),
                ),
                kept=((SORT, filters[SORT]),) if filters[SORT] else (),
            ),
            columns=(
                column(phrase("Person"), "person"),
                column(phrase("Service"), "service"),
                column(phrase("Role"), "role"),
                Column(phrase("Part of the organisation")),
                column(phrase("Until"), "until"),
            ),
            rows=tuple(
                (None if each.member.user.user_id in protected else _choice(at, each), *_row(at, each, removed))
                for each in found.found
            ),
            empty=_empty(at, bool(narrowed or found.after)),
            pager=counted_pager(
                at.path(ACCESS), kept, at.query, found,
                most=_SHOWN, searched_on=len(found.found) < _SHOWN and not before,
            ),
            selection=Selection(
                action=at.path(_END),
                buttons=(("end", _TAKE_AWAY),),
                everything=phrase("Select all {count} in this list", count=total) if everything else None,
                all_chosen="all" in at.form,
                total=total,
                note=phrase("To select all, narrow the list to at most {count} roles.", count=_MOST_ENDED)
                if total > _MOST_ENDED
                else None,
                kept=(*kept.items(), *keep_left_out(at.form, (each.id for each in found.found))),
            ),
            csv=at.path(_CSV, **kept),
        ),
        main_action=at.link(f"{ACCESS}/new", phrase("Give access")),
    )  # fmt: skip


def _empty(at: PortalContext, narrowed: bool) -> Cell:
    if narrowed:
        everything = at.link(ACCESS, phrase("Show all access"))
        return Cell(values=(phrase("No access found."), everything))
    return Cell(
        values=(
            phrase("Nobody has access yet."),
            at.link(f"{ACCESS}/new", phrase("Give access")),
        )
    )


def _choice(at: PortalContext, role: EntityRole) -> Choice:
    named = phrase("{service}: {role}", service=role.service.name, role=role.row.role) if role.row.role else None
    what: Phrase | str = named or role.service.name
    name = phrase("Select {name}, {what}", name=role.member.name, what=what)
    return Choice(value=role.id, name=name, chosen=is_chosen(at.form, role.id))


def _row(at: PortalContext, role: EntityRole, removed: RequestedRemovals) -> tuple[Value, ...]:
    """The cells of a role."""
    row, member = role.row, role.member
    person = at.link(f"{PERSON}/{member.membership.membership_id}", member.name)
    state = access_texts.state(row, at.context.day)
    until = last_day(row.end_date)
    requested = (REMOVAL_REQUESTED,) if row in removed else ()
    return (
        person,
        role.service.name,
        Cell(values=(row.role or None, *requested), notes=access_texts.details(row, part=False)),
        row.sub_entity or None,
        Cell(values=(until, Label(state, "warning"))) if state else until,
    )


# --- roles in use


async def show_roles(at: PortalContext) -> View:
    """The roles of each service, and how many hold them."""
    wanted = _wanted(at, _filters({}))
    counts, whole = await role_assignment.count_entity_roles(at.registry, at.actor, wanted)
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    rows: list[tuple[Value, ...]] = []
    for service in services:
        given = {role: count for (service_id, role), count in counts.items() if service_id == service.service_id}
        for role in (*service.roles, *(each for each in given if each not in service.roles)) or ("",):
            address = at.path(ACCESS, service=service.service_id, role=role)
            count = given.get(role, 0)
            what = f"{service.name} {role}".strip()
            rows.append((service.name, role or None, Link(url=address, text=str(count), about=what) if count else 0))
    return at.build_page(
        _IN_USE,
        None
        if whole
        else Paragraph(phrase("There is too much to count. These are the numbers of a part."), look="hint"),
        table(
            phrase("Services and roles, and how often each is given"),
            (phrase("Service"), phrase("Role"), phrase("Times given")),
            rows,
            empty=phrase("There is no service that {entity} may use.", entity=at.entity.name),
        ),
    )


# --- ending many


async def _selected(at: PortalContext) -> tuple[list[EntityRole], int]:
    """The selected roles that may be ended, and the number of others.

    Source: D81
    """
    if at.form.get("all"):
        wanted = _wanted(at, _filters(at.form))
        every = read_all(_page_reader(at, wanted), most=_MOST_ENDED, at_once=_READ_AT_ONCE)
        found = [each async for each in every if f"{LEAVE_OUT}{each.id}" not in at.form]
    else:
        chosen = [name.removeprefix(SELECT) for name in at.form if name.startswith(SELECT)]
        found = await role_assignment.load_roles(at.registry, at.actor, chosen)
    protected = await role_assignment.find_protected(at.registry, at.actor, found)
    mine = [each for each in found if each.member.user.user_id not in protected]
    return mine, len(found) - len(mine)


def _page_reader(at: PortalContext, wanted: RoleFilter) -> Callable[[str, int], Awaitable[ListPage[EntityRole]]]:
    return lambda after, limit: role_assignment.list_entity_roles(
        at.registry, at.actor, wanted, after=after, limit=limit
    )


def _digest(roles: Sequence[EntityRole]) -> str:
    """A digest of roles and their people as shown. Source: D68, D81"""
    return version_of(*sorted((each.id, version_of(each.row), names_shown(each.member)) for each in roles))


async def show_refused(at: PortalContext) -> View:
    """The list, with what is selected. Raises SeeOther if nothing was tried."""
    if not at.form:
        raise SeeOther(ACCESS)
    return await show_access(replace(at, query=_filters(at.form)))


async def ask_end(at: PortalContext) -> Check:
    """The check before selected roles are ended. Raises InvalidInput. Source: D81"""
    roles, others = await _selected(at)
    if not roles and not others:
        raise InvalidInput(_CHOOSE)
    selected = tuple((f"{SELECT}{each.id}", "yes") for each in roles)
    if at.form.get("all"):
        left_out = ((name, "yes") for name in at.form if name.startswith(LEAVE_OUT))
        selected = (("all", "yes"), *_filters(at.form).items(), *left_out)
    narrowed = {name: value for name, value in _filters(at.form).items() if value}
    page = f"{ACCESS}?{urlencode(narrowed)}" if narrowed else ACCESS
    up = at.link(ACCESS, phrase("Access"), **narrowed)
    return await check_end(at, roles, others, hidden=selected, up=up, page=page)


async def check_end(
    at: PortalContext,
    roles: Sequence[EntityRole],
    others: int,
    *,
    hidden: tuple[tuple[str, str], ...],
    up: Link,
    page: str,
    decision: str = "",
    stays: bool = False,
) -> Check:
    """The check before roles are ended.

    `others` is the number of those that stay, `hidden` what selects them, and `page` is shown afterwards, if it `stays`
    also after a request. Source: D81
    """
    removed = await find_requested_removals(at.registry, at.actor, now=at.context.now)
    again = sum(each.row in removed for each in roles)
    people, more = len({each.member.user.user_id for each in roles}), len(roles) - _SHOWN
    needs = any(kind_needs_approval("assignment", at.entity, each.service) for each in roles)
    parts: list[Part] = []
    if others:
        stay = counted(
            others,
            "{count} role stays, since you cannot change that person's access.",
            "{count} roles stay, since you cannot change the access of these people.",
        )
        parts.append(stay)
    if roles:
        lost = counted(len(roles), "{count} role", "{count} roles")
        loses = counted(people, "{count} person loses {roles}.", "{count} people lose {roles}.", roles=lost)
        parts.append(Paragraph(loses, look="summary"))
    if again:
        asked = phrase("The removal of {count} of these roles is already requested.", count=again)
        parts.append(Paragraph(asked, look="warning"))
    columns = (phrase("Person"), phrase("Service"), phrase("Role"), phrase("Part of the organisation"), phrase("Until"))
    not_listed = counted(more, "{count} more role is not listed here.", "{count} more roles are not listed here.")
    rows = (_row(at, each, removed) for each in roles[:_SHOWN])
    parts.append(table(phrase("What is removed"), columns, rows, more=not_listed if more > 0 else None))

    async def end() -> FormResult:
        if not roles:
            raise InvalidInput(_CHOOSE)
        changes = [Change(each.row, None) for each in roles]
        asking = at.request_details(approval_needed=needs)
        outcome = await await_change(write_selected(at.registry, at.actor, changes, asking=asking))
        requests = outcome.requests
        if outcome.stopped is not None:
            why = rejected(outcome.stopped, entity=at.entity).sentence
            raise InvalidInput(_say_stopped(outcome.done, why, requested=bool(requests)))
        if not requests or stays:
            return FormResult(REQUESTED if requests else "access-removed", page)
        return FormResult(REQUESTED, f"requests/{requests[0].request_id}" if len(requests) == 1 else "requests")

    return Check(
        heading=phrase("Remove access?"),
        parts=tuple(parts),
        refused=None if roles else _CHOOSE,
        hidden=hidden,
        decision=decision,
        button=_TAKE_AWAY,
        danger=True,
        needs_approval=needs,
        step_name=_digest(roles),
        outdated=NAMES_CHANGED,
        up=up,
        change=end,
    )


def _say_stopped(done: int, why: Phrase, *, requested: bool) -> Phrase:
    """The sentence about a removal of many that stopped."""
    if requested:
        return counted(
            done,
            "Approval was requested for the removal of {count} role only. {reason}",
            "Approval was requested for the removal of {count} roles only. {reason}",
            reason=why,
        )
    return counted(
        done, "Only {count} role was removed. {reason}", "Only {count} roles were removed. {reason}", reason=why
    )


# --- CSV


async def export_access(at: PortalContext) -> Response:
    """The filtered list as CSV."""
    read = _page_reader(at, _wanted(at, _filters(at.query)))
    return await export_list(at, f"access-{at.context.today}", _COLUMNS, read, _line, at_once=_READ_AT_ONCE)


def _line(role: EntityRole) -> Iterable[str]:
    row, member = role.row, role.member
    first = "" if row.start_date == NO_BEGINNING else row.start_date
    last = last_day(row.end_date)
    return (
        member.name_alone, member.marked_identity, member.email, role.service.name, row.role, row.sub_entity,
        list_parameters(row.parameters),
        first, str(last) if isinstance(last, date) else "",
    )  # fmt: skip


_COLUMNS: Final = (
    phrase("Name"), phrase("User name"), phrase("E-mail address"), phrase("Service"), phrase("Role"),
    phrase("Part of the organisation"), phrase("Parameters"), phrase("First day"), phrase("Last day"),
)  # fmt: skip


SECTION: Final = Section[PortalContext](
    name=ACCESS,
    pages={
        ACCESS: PortalPage(view=show_access),
        _ROLES: PortalPage(view=show_roles),
        _CSV: PortalPage(view=export_access),
        _END: check_page(ask_end, form=show_refused, needs=("delete", "assignment")),
    },
    fields=_FILTERS | {SORT, "all", "decision", "reason"},
    filters=_FILTERS | {SORT, "after", "before", ROW},
    prefixes=(SELECT, LEAVE_OUT),
)
