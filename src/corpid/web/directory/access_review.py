"""The yearly access review in the portal (D54, D57)."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import date, datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from msgspec.structs import replace

from corpid.flows.directory import access_review, lists, members, role_assignment
from corpid.flows.directory.access_review import (
    AccessChanged,
    KeepDecision,
    NoOpenReview,
    ReviewIncomplete,
    ReviewState,
)
from corpid.flows.directory.access_review import ReviewedPerson as Found
from corpid.flows.directory.approvals import RequestedRemovals, find_requested_removals
from corpid.flows.directory.notice_texts import REVIEW_PAGE
from corpid.flows.operations import history
from corpid.rules.directory import access_texts
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.memberships import Member
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import ADMINISTRATOR_LEVELS, Assignment, Service, ThirdPartyAssignment
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.directory.access import FROM, REMOVE, this_member
from corpid.web.directory.access_list import REMOVAL_REQUESTED, check_end
from corpid.web.directory.member_texts import REFUSALS, rejected
from corpid.web.directory.page_context import SETTINGS, PortalContext, names_shown, saved_or_requested
from corpid.web.directory.people import FILTERS, PERSON, list_filters, read_filter
from corpid.web.directory.person import ask_about, membership_id_of, name_role
from corpid.web.pages.change_sentences import name_author
from corpid.web.pages.components import (
    MEMBER_STATES,
    ROW,
    SELECT,
    Actions,
    Cell,
    Choice,
    Column,
    Filters,
    Label,
    Link,
    NavigationLink,
    Paragraph,
    Part,
    Selection,
    Table,
    Tabs,
    Value,
    View,
    counted_pager,
)
from corpid.web.sites import NAMES_CHANGED, Check, FormResult, NotFound, Section, await_found, check_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.rules.directory.roles import RoleRecords

REVIEW: Final = REVIEW_PAGE
_SIGN_OFF: Final = f"{REVIEW}/sign-off"
_BEGIN: Final = "begin"
"""the parameter that shows the list before the review is due"""
HEADING: Final = phrase("Access review")
_ACCESS: Final = "access"
"""the parameter that shows those without access"""
_NONE: Final = "none"
_REMOVE: Final = "remove"
"""the decision"""
_STAYS: Final = phrase(
    "Roles for other organisations and levels such as sub-administrator stay: change these on the person's page."
)
_SHOWN_HERE: Final = "shown-"
"""the prefix of the hidden fields that name everybody of a page"""
_SHOWN: Final = 40
"""people of a page: a form has at most a hundred fields"""
_BEGIN_IT: Final = phrase(
    "In a review you check what each person may do: keep it, remove roles, or end the membership. You can begin before it is due."
)
_HOW: Final = phrase(
    "Keep what each person may do, remove roles, or end the membership. If anything changes after you kept "
    "somebody, they are listed again."
)
_CHANGED: Final = phrase("Somebody's access has changed since you looked. Check it again, then keep it.")
_NOT_OPEN: Final = phrase("No review is in progress. It begins with the first person that you keep or end.")
_LEFT: Final = phrase("Somebody was added or changed in the meantime. Review everybody who is listed again.")
_OWN: Final = phrase("This is you. Another owner or administrator has to review your access.")


# --- the list


async def show_review(at: PortalContext) -> View:
    """The review's state, and a page of people to review."""
    entity_id, query = at.entity.entity_id, at.query
    state = await access_review.load_review_state(at.registry, at.actor, entity_id)
    of = state.review
    under_way = of is not None and bool(of.began_at)
    begins = under_way or (of is not None and of.due_at <= at.context.now) or bool(query.get(_BEGIN))
    if not begins:
        begin = at.link(REVIEW, phrase("Begin the review"), **{_BEGIN: "yes"})
        return at.build_page(
            HEADING, await describe_state(at, state), await _last(at, state) or None, _BEGIN_IT, Actions((begin,))
        )
    any_left, listed = await _list_left(at)
    if under_way:  # those who changed meanwhile may have come back
        state = await access_review.load_review_state(at.registry, at.actor, entity_id)
    finished = under_way and not any_left
    kept = state.kept if under_way else 0
    progress = phrase("{kept} of {count} people reviewed", kept=kept, count=state.people)
    done = (
        Paragraph(phrase("Everybody has been reviewed. Sign off the review to finish it."), look="empty"),
        Actions((at.link(_SIGN_OFF, phrase("Sign off")),)),
    )
    return at.build_page(
        HEADING,
        None if query.get(_BEGIN) and not under_way else await describe_state(at, state),
        await _last(at, state) or None,
        Paragraph(progress, look="summary"),
        *(done if finished else (_HOW, *listed)),
    )


async def _list_left(at: PortalContext) -> tuple[bool, tuple[Part, ...]]:
    """The list of people to review, after whether anybody is left.

    Those with access, and apart from them those without.
    """
    query = at.query
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    wanted, without = read_filter(query, services), query.get(_ACCESS) == _NONE
    reading = access_review.list_people_left(
        at.registry, at.actor, wanted, with_access=not without, after=query.get("after", ""),
        before=query.get("before", ""), limit=_SHOWN,
    )  # fmt: skip
    left = await await_found(reading)
    kept = {name: query[name] for name in (_BEGIN, _ACCESS, *FILTERS) if query.get(name)}
    tabs = (("", phrase("With access"), left.with_access), (_NONE, phrase("Without access"), left.without_access))
    page, numbered = left.page, {**query, ROW: str(left.first)}
    return left.any_left, (
        Tabs(
            label=phrase("Access"),
            links=tuple(
                NavigationLink(
                    url=at.path(REVIEW, **{**kept, _ACCESS: value}), text=text, count=count,
                    current=(value == _NONE) is without,
                )
                for value, text, count in tabs
            ),
        ),
        replace(
            await _table(at, page.found),
            filters=Filters(
                action=at.path(REVIEW),
                fields=list_filters(wanted, services),
                kept=tuple((name, value) for name, value in kept.items() if name not in FILTERS),
            ),
            empty=phrase("Nobody is left to review here."),
            pager=counted_pager(at.path(REVIEW), kept, numbered, page, most=_SHOWN),
        ),
    )  # fmt: skip


async def _find_any(at: PortalContext) -> bool:
    """Return whether anybody is still to be reviewed."""
    reading = access_review.list_reviewed_people(
        at.registry, at.actor, at.entity.entity_id, unreviewed=True, after="", limit=1
    )
    return bool((await reading).found)


def _here(at: PortalContext) -> str:
    """The place in the review to which each decision leads back."""
    return f"{REVIEW}?{urlencode(at.filters)}" if at.filters else REVIEW


async def describe_state(at: PortalContext, state: ReviewState) -> Phrase:
    """When the next review is due, or who began this one."""
    of = state.review
    if of is None:
        return phrase("There has been no review yet. The first one is due within a year.")
    if of.began_at:
        name = state.names[of.began_by]
        return phrase("{name} began this review on {day}.", name=name, day=_day(at, of.began_at))
    if of.due_at <= at.context.now:
        return phrase("A review has been due since {day}.", day=_day(at, of.due_at))
    return phrase("The next review is due on {day}.", day=_day(at, of.due_at))


async def _last(at: PortalContext, state: ReviewState) -> Phrase | None:
    of = state.review
    if of is None or not of.signed_off_at:
        return None
    return phrase(
        "{name} signed off the last review on {day}. People kept: {kept}. Memberships ended: {ended}.",
        name=state.names[of.signed_off_by], day=_day(at, of.signed_off_at), kept=of.kept, ended=of.ended,
    )  # fmt: skip


def _day(at: PortalContext, moment: int) -> date:
    return datetime.fromtimestamp(moment, at.provider.policy.timezone).date()


class _Around(NamedTuple):
    """Records that the rows of a page are shown with."""

    services: Mapping[str, str]
    """of sub-administrators, by identifier"""
    removed: RequestedRemovals
    given: history.Grants


async def _table(at: PortalContext, found: Sequence[Found]) -> Table:
    """A page of people, one row for each access."""
    directory = at.registry.directory
    held: list[Assignment | ThirdPartyAssignment] = []
    for each in found:
        held += each.access.roles
        held += each.access.third_party_roles
    roles: defaultdict[str, list[RoleRecords]] = defaultdict(list)
    for role in await lists.load_roles(directory, held):
        roles[role.row.user_id].append(role)
    levels = [each.access.administrator for each in found if each.access.administrator]
    named = {service for one in levels if isinstance(one.services, tuple) for service in one.services}
    services = {
        each.service_id: each.name for each in (await directory.read(Service, [(one,) for one in named])).values()
    }
    around = _Around(
        services=services,
        removed=await find_requested_removals(at.registry, at.actor, now=at.context.now),
        given=await history.load_grants(at.registry, at.actor, held),
    )
    rows = [row for each in found for row in await _rows(at, each, roles[each.user.user_id], around)]
    choices = [row[0] for row in rows if isinstance(row[0], Choice)]
    return Table(
        caption=phrase("What each person may do"),
        columns=(Column(phrase("Person")), Column(phrase("Access")), Column(phrase("Decision"), narrow="end")),
        rows=tuple(rows if choices else (row[1:] for row in rows)),
        selection=Selection(
            action=at.path(REVIEW, **at.filters),
            buttons=(("keep", phrase("Keep access")), (_REMOVE, phrase("Remove roles"))),
            everything=phrase("Select everybody on this page"),
            kept=tuple((f"{_SHOWN_HERE}{each.value}", "yes") for each in choices),
        )
        if choices
        else None,
    )


async def _rows(
    at: PortalContext, each: Found, roles: Sequence[RoleRecords], around: _Around
) -> list[tuple[Value | Choice, ...]]:
    """A person's rows: the first one chooses them."""
    membership, level = each.access.membership, each.access.administrator
    ends = membership in around.removed
    member = Member(membership=membership, user=each.user)
    name, own = member.name, each.user.user_id == at.actor.user_id
    page = f"{PERSON}/{membership.membership_id}"
    shown = f"{each.seen}.{names_shown(member)}"
    sent = next((one for one in _read_kept(at.form) if one[0] == membership.membership_id), None)
    changed = sent is not None and sent[1] != shown
    why_not = _OWN if own and not await access_review.may_keep_own(at.registry, at.actor) else None
    notes: list[Value] = [why_not] if why_not else []
    refusal = own or level is not None
    may_end = (
        not refusal or not (await members.preview_change(at.registry, membership, actor=at.actor, end=True)).refusal
    )
    if may_end and not ends:
        end = f"{page}/revoke" if membership.invited else f"{REVIEW}/{membership.membership_id}/end"
        kept = {} if membership.invited else at.filters
        notes.append(at.link(end, phrase("End the membership"), about=name, **kept))
    tags = (
        REMOVAL_REQUESTED if ends else None,
        Label(MEMBER_STATES[member.state], "warning") if member.state != "active" else None,
        Label(phrase("Changed since you looked"), "error") if changed else None,
    )
    link = at.link(page, name)
    person = Cell(values=(link, *(each for each in tags if each)), notes=tuple(notes))
    access: list[tuple[Value, Value]] = []
    if level is not None:
        every = level.services == "all"
        named = (phrase("Every service"),) if every else sorted(around.services.get(one, one) for one in level.services)
        access.append((Cell(values=(ADMINISTRATOR_LEVELS[level.level],), notes=tuple(named)), None))
    for role in roles:
        row, given = role.row, around.given.entries.get(role.row.key)
        state = access_texts.state(row, at.context.day)
        said = access_texts.short_role(row, role.service.name, at.context.day)
        if role.client_entity is not None:
            said = phrase("{role}, for {entity}", role=said, entity=at.name_of(role.client_entity))
        if given is not None:
            giver = name_author(given.actor, given, around.given.names, at.entity.entity_id)
            said = phrase("{role}, given by {name}", role=said, name=giver)
        cell = Cell(values=(said, *([Label(state)] if state else [])), notes=access_texts.details(row))
        changeable = (not own or why_not is None) and isinstance(row, Assignment)
        about = phrase("{names}", names=(name, name_role(role)))
        remove = at.link(f"{REMOVE}/{object_id(row.key)}", phrase("Remove"), about, **{FROM: _here(at)})
        requested = REMOVAL_REQUESTED if row in around.removed else None
        access.append((cell, requested or (remove if changeable else None)))
    if not access:
        access.append((phrase("None"), None))
    choice = (
        None
        if why_not
        else Choice(
            value=f"{membership.membership_id}.{shown}",
            name=phrase("Select {name}", name=name),
            chosen=sent is not None and not changed,
        )
    )
    return [
        (choice if number == 0 else None, person if number == 0 else link, *row) for number, row in enumerate(access)
    ]


# --- deciding


async def ask_decision(at: PortalContext) -> Check:
    """The check before chosen people lose their access.

    They keep it without one. Raises InvalidInput.
    """
    if not _read_kept(at.form):
        raise InvalidInput(phrase("Select people first."))
    up = _to_review(at)
    if at.form.get("decision") != _REMOVE:
        return Check(heading=HEADING, parts=(), button=HEADING, up=up, at_once=True, change=lambda: _keep_access(at))
    people = await _chosen(at)
    roles = [role for each in people for role in (await role_assignment.list_roles(at.registry, at.actor, each)).found]
    protected = await role_assignment.find_protected(at.registry, at.actor, roles)
    mine = [each for each in roles if each.member.user.user_id not in protected]
    chosen = tuple((name, "yes") for name in at.form if name.startswith((SELECT, _SHOWN_HERE)) or name == "all")
    asked = await check_end(
        at, mine, len(roles) - len(mine), hidden=chosen, up=up, page=_here(at), decision=_REMOVE, stays=True
    )
    return replace(asked, action=at.path(REVIEW, **at.filters), parts=(*asked.parts, Paragraph(_STAYS, look="hint")))


async def _chosen(at: PortalContext) -> list[Member]:
    """The chosen people, as they were shown. Raises InvalidInput."""
    found = []
    for membership_id, shown in _read_kept(at.form):
        try:
            member = await this_member(at, membership_id)
        except NotFound:
            raise InvalidInput(_CHANGED) from None
        if shown.partition(".")[2] != names_shown(member):
            raise InvalidInput(NAMES_CHANGED)
        found.append(member)
    return found


async def _keep_access(at: PortalContext) -> FormResult:
    """Keep the access of the chosen people. Raises InvalidInput, Conflict."""
    wanted = _read_kept(at.form)
    await access_review.load_review_state(at.registry, at.actor, at.entity.entity_id)
    kept = [
        KeepDecision(user_id=found.user.user_id, seen=shown.partition(".")[0])
        for found, (_, shown) in zip(await _chosen(at), wanted, strict=True)
    ]
    try:
        await access_review.keep_access(at.registry, at.actor, at.entity.entity_id, kept, now=at.context.now)
    except AccessChanged:
        raise InvalidInput(_CHANGED) from None
    except Forbidden as error:
        own = any(each.user_id == at.actor.user_id for each in kept)
        raise InvalidInput(_OWN if own else phrase("You cannot do this: {reason}.", reason=error.reason)) from None
    return FormResult("access-kept" if len(kept) > 1 else "access-kept-one", _here(at))


def _read_kept(form: Mapping[str, str]) -> list[tuple[str, str]]:
    """Memberships that are chosen, each with the digests of what was shown."""
    prefix = _SHOWN_HERE if form.get("all") else SELECT
    chosen = [name.removeprefix(prefix) for name in form if name.startswith(prefix)]
    parts = (each.rsplit(".", 2) for each in chosen[: access_review.MOST_DECISIONS])
    return [(each[0], f"{each[1]}.{each[2]}") for each in parts if len(each) > 2]


# --- ending


async def ask_end(at: PortalContext) -> Check:
    """The check before a membership is ended. Raises NotFound for an invitation."""
    await access_review.load_review_state(at.registry, at.actor, at.entity.entity_id)
    found = await this_member(at, membership_id_of(at))
    if found.membership.invited:
        raise NotFound

    async def end() -> FormResult:
        try:
            request = await access_review.end_access(
                at.registry, at.actor, at.entity.entity_id, found.user.user_id, at.request_details()
            )
        except REFUSALS as error:
            raise rejected(error, entity=at.entity, name=found.name) from None
        return saved_or_requested(request, FormResult("person-ended", _here(at)), stays=True)

    asked = await ask_about(at, found, "end", end, up=_to_review(at))
    return replace(asked, action=at.path(at.page, **at.filters))


def _to_review(at: PortalContext) -> Link:
    return at.link(REVIEW, HEADING, **at.filters)


# --- signing off


async def ask_sign_off(at: PortalContext) -> Check:
    """The check before the review is signed off."""
    state = await access_review.load_review_state(at.registry, at.actor, at.entity.entity_id)
    refused = None
    if state.review is None or not state.review.began_at:
        refused = _NOT_OPEN
    elif await _find_any(at):
        refused = _LEFT
    stays = counted(
        state.kept,
        "The access of {count} person stays as you and other administrators saw it.",
        "The access of {count} people stays as you and other administrators saw it.",
    )
    shows = phrase("The history shows your name and the day. The next review is due in a year.")

    async def sign_off() -> None:
        try:
            await access_review.sign_off_review(at.registry, at.actor, at.entity.entity_id, now=at.context.now)
        except NoOpenReview:
            raise InvalidInput(_NOT_OPEN) from None
        except ReviewIncomplete:
            raise InvalidInput(_LEFT) from None

    return Check(
        heading=phrase("Sign off the review?"),
        parts=() if refused else (stays, shows),
        names=None,
        button=phrase("Sign off"),
        refused=refused,
        up=_to_review(at),
        change=sign_off,
        done=FormResult("review-signed-off", REVIEW),
    )


_ID: Final = "[^/]{1,100}"
SECTION: Final = Section[PortalContext](
    name=SETTINGS,
    pages={
        REVIEW: check_page(ask_decision, form=show_review, needs=("write", "access review")),
        _SIGN_OFF: check_page(ask_sign_off, needs=("write", "access review")),
    },
    named_pages={re.compile(f"{REVIEW}/{_ID}/end"): check_page(ask_end, needs=("delete", "membership"))},
    fields=frozenset({"all", "decision", "reason"}),
    filters=frozenset({"after", "before", ROW, _BEGIN, _ACCESS, *FILTERS}),
    prefixes=(SELECT, _SHOWN_HERE),
    changes={
        "access-kept-one": phrase("The access stays as shown."),
        "access-kept": phrase("The access of those people stays as shown."),
        "review-signed-off": phrase("The review has been signed off."),
    },
)
