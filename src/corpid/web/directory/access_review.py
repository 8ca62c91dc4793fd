"""The yearly access review in the portal (D54, D57)."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import access_review, lists, members, role_assignment
from corpid.flows.directory.access_review import AccessChanged, KeepDecision, NoOpenReview, ReviewIncomplete
from corpid.flows.directory.notice_texts import REVIEW_PAGE
from corpid.rules.directory import access_texts
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.queries import Member
from corpid.rules.directory.records import Assignment, Service
from corpid.texts import counted, phrase
from corpid.web.check import Check, check_page
from corpid.web.directory.access import FROM, REMOVE, this_member
from corpid.web.directory.access_list import check_end
from corpid.web.directory.member_texts import REFUSALS, STATES, level_sentence, rejected
from corpid.web.directory.page_context import SETTINGS, PortalContext, names_shown, saved_or_requested
from corpid.web.directory.people import PERSON
from corpid.web.directory.person import ask_about, membership_id_of, name_role
from corpid.web.pages.components import SELECT, Actions, Cell, Choice, Column, Label, Paragraph, Selection, Table
from corpid.web.pages.layout import Link, pager_of
from corpid.web.sites import NAMES_CHANGED, FormResult, NotFound, Section, await_found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from corpid.flows.directory.access_review import ReviewedPerson as Found
    from corpid.flows.directory.access_review import ReviewState
    from corpid.rules.directory.records import ThirdPartyAssignment
    from corpid.rules.directory.roles import RoleRecords
    from corpid.texts import Phrase
    from corpid.web.pages.components import Part, Value
    from corpid.web.pages.views import View

REVIEW: Final = REVIEW_PAGE
_SIGN_OFF: Final = f"{REVIEW}/sign-off"
_BEGIN: Final = "begin"
"""the parameter that shows the list before the review is due"""
HEADING: Final = phrase("Access review")
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
    "In a review you check what each person may do, and keep it or end the membership. You can begin before it is due."
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
    due = of is not None and of.due_at <= at.context.now
    shows = under_way or due or bool(query.get(_BEGIN))
    begin = {} if under_way or due else {_BEGIN: "yes"}
    after = query.get("after", "")
    found = await _people(at, after) if shows else lists.ListPage(found=())
    if after and not found.found:
        after, found = "", await _people(at, "")
    left = bool(found.found)
    if left:  # those who changed meanwhile may have come back
        state = await access_review.load_review_state(at.registry, at.actor, entity_id)
    progress = phrase("{kept} of {count} people reviewed", kept=state.kept, count=state.people)
    last = await _last(at, state)
    page = at.build_page(
        HEADING,
        await describe_state(at, state),
        last or None,
        Paragraph(progress, look="summary") if under_way else None,
    )
    if not shows:
        parts: tuple[Part, ...] = (
            _BEGIN_IT,
            Actions((at.link(REVIEW, phrase("Begin the review"), **begin),)),
        )
    elif left:
        parts = (_HOW, await _table(at, found, begin, after))
    elif under_way:
        parts = (
            Paragraph(phrase("Everybody has been reviewed. Sign off the review to finish it."), look="empty"),
            Actions((at.link(_SIGN_OFF, phrase("Sign off")),)),
        )
    else:
        parts = ()
    return replace(page, parts=(*page.parts, *parts))


async def _people(at: PortalContext, after: str) -> lists.ListPage[Found]:
    reading = access_review.list_reviewed_people(
        at.registry, at.actor, at.entity.entity_id, unreviewed=True, after=after, limit=_SHOWN
    )
    return await await_found(reading)


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


async def _table(at: PortalContext, found: lists.ListPage[Found], begin: Mapping[str, str], after: str) -> Table:
    """A page of people, one row for each access."""
    directory = at.registry.directory
    held: list[Assignment | ThirdPartyAssignment] = []
    for each in found.found:
        held += each.access.roles
        held += each.access.third_party_roles
    roles: defaultdict[str, list[RoleRecords]] = defaultdict(list)
    for role in await lists.load_roles(directory, held):
        roles[role.row.user_id].append(role)
    levels = [each.access.administrator for each in found.found if each.access.administrator]
    named = {service for one in levels if isinstance(one.services, tuple) for service in one.services}
    services = {
        each.service_id: each.name for each in (await directory.read(Service, [(one,) for one in named])).values()
    }
    rows = [row for each in found.found for row in await _rows(at, each, roles[each.user.user_id], services)]
    choices = [row[0] for row in rows if isinstance(row[0], Choice)]
    return Table(
        caption=phrase("What each person may do"),
        columns=(Column(phrase("Person")), Column(phrase("Access")), Column(phrase("Decision"))),
        rows=tuple(rows if choices else (row[1:] for row in rows)),
        selection=Selection(
            action=at.path(REVIEW, **begin, after=after),
            buttons=(("keep", phrase("Keep access")), (_REMOVE, phrase("Remove roles"))),
            everything=phrase("Select everybody on this page"),
            kept=tuple((f"{_SHOWN_HERE}{each.value}", "yes") for each in choices),
        )
        if choices
        else None,
        pager=pager_of(at.path(REVIEW), begin, came=bool(after), after=found.after),
    )


async def _rows(
    at: PortalContext, each: Found, roles: Sequence[RoleRecords], services: Mapping[str, str]
) -> list[tuple[Value | Choice, ...]]:
    """A person's rows: the first one chooses them."""
    membership, level = each.access.membership, each.access.administrator
    member = Member(membership=membership, user=each.user)
    name, own = member.name, each.user.user_id == at.actor.user_id
    page = f"{PERSON}/{membership.membership_id}"
    shown = f"{each.seen}.{names_shown(member)}"
    sent = next((one for one in _read_kept(at.form) if one[0] == membership.membership_id), None)
    changed = sent is not None and sent[1] != shown
    why_not = _OWN if own and not await access_review.may_keep_own(at.registry, at.actor) else None
    notes: list[Value] = [why_not] if why_not else []
    refusal = own or level is not None
    if not refusal or not (await members.preview_change(at.registry, membership, actor=at.actor, end=True)).refusal:
        end = f"{page}/revoke" if membership.invited else f"{REVIEW}/{membership.membership_id}/end"
        notes.append(at.link(end, phrase("End the membership"), about=name))
    tags = (
        Label(STATES[member.state], "warning") if member.state != "active" else None,
        Label(phrase("Changed since you looked"), "error") if changed else None,
    )
    link = at.link(page, name)
    person = Cell(values=(link, *(each for each in tags if each)), notes=tuple(notes))
    access: list[tuple[Value, Value]] = []
    if level is not None:
        named = tuple(sorted(services.get(one, one) for one in level.services)) if level.services != "all" else ()
        access.append((level_sentence(name, level, at.entity, named), None))
    for role in roles:
        row, today = role.row, at.context.day
        entity = at.name_of(role.client_entity or role.entity)
        state = access_texts.state(row, today)
        cell = Cell(
            values=(access_texts.sentence(name, row, role.service, entity, today), *([Label(state)] if state else [])),
            notes=access_texts.details(row),
        )
        changeable = (not own or why_not is None) and isinstance(row, Assignment)
        about = phrase("{names}", names=(name, name_role(role)))
        remove = at.link(f"{REMOVE}/{object_id(row.key)}", phrase("Remove"), about, **{FROM: REVIEW})
        access.append((cell, remove if changeable else None))
    if not access:
        access.append((phrase("{name} has no access yet.", name=name), None))
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
    held = [await role_assignment.list_roles(at.registry, at.actor, each.user.user_id) for each in people]
    roles = [
        role_assignment.EntityRole(member=each, row=role.row, service=role.service)
        for each, page in zip(people, held, strict=True)
        for role in page.found
    ]
    protected = await role_assignment.find_protected(at.registry, at.actor, roles)
    mine = [each for each in roles if each.member.user.user_id not in protected]
    chosen = tuple((name, "yes") for name in at.form if name.startswith((SELECT, _SHOWN_HERE)) or name == "all")
    back = Link(url=up.url, text=phrase("Keep access") if mine else phrase("Go back"))
    asked = check_end(at, mine, len(roles) - len(mine), hidden=chosen, back=back, page=REVIEW, decision=_REMOVE)
    return replace(asked, parts=(*asked.parts, Paragraph(_STAYS, look="hint")))


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
    after = at.query.get("after", "")
    page = f"{REVIEW}?{urlencode({'after': after})}" if after else REVIEW
    return FormResult("access-kept" if len(kept) > 1 else "access-kept-one", page)


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
        return saved_or_requested(request, FormResult("person-ended", REVIEW))

    return await ask_about(at, found, "end", end, up=_to_review(at))


def _to_review(at: PortalContext) -> Link:
    return at.link(REVIEW, HEADING)


# --- signing off


async def ask_sign_off(at: PortalContext) -> Check:
    """The check before the review is signed off."""
    state = await access_review.load_review_state(at.registry, at.actor, at.entity.entity_id)
    refused = None
    if state.review is None or not state.review.began_at:
        refused = _NOT_OPEN
    elif (await _people(at, "")).found:
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

    up = _to_review(at)
    return Check(
        heading=phrase("Sign off the review?"),
        parts=() if refused else (stays, shows),
        button=phrase("Sign off"),
        refused=refused,
        up=up,
        back=Link(url=up.url, text=phrase("Go back")),
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
    filters=frozenset({"after", _BEGIN}),
    prefixes=(SELECT, _SHOWN_HERE),
    changes={
        "access-kept-one": phrase("The access stays as shown."),
        "access-kept": phrase("The access of those people stays as shown."),
        "review-signed-off": phrase("The review has been signed off."),
    },
)
