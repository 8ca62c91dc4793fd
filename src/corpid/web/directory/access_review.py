"""The yearly access review in the portal (D54, D57)."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import access_review, lists, members
from corpid.flows.directory.access_review import AccessChanged, KeepDecision, NoOpenReview, ReviewIncomplete
from corpid.flows.directory.members import Member
from corpid.flows.directory.notice_texts import REVIEW_OF, REVIEW_PAGE
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.records import Membership, Service, User
from corpid.texts import counted, phrase
from corpid.web.directory.member_texts import REFUSALS, STATES, level_sentence, refusal_sentence, rejected
from corpid.web.directory.page_context import (
    NAMES_CHANGED,
    SETTINGS,
    PortalContext,
    PortalPage,
    check_names,
    choosing,
    frame,
    names_shown,
    portal_path,
    query_address,
    request_details,
    saved_or_requested,
    section_link,
)
from corpid.web.directory.people import PERSON
from corpid.web.directory.people_views import ConfirmAction, RoleSentence
from corpid.web.directory.person import (
    CONFIRMED_ACTIONS,
    describe_role,
    ending_sentences,
    membership_id_of,
    this_member,
)
from corpid.web.pages.access_texts import GONE
from corpid.web.pages.layout import Link, Pager, PageView, ViewPart
from corpid.web.pages.views import Problem
from corpid.web.sites import FormResult, NotFound, Section, await_found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from corpid.flows.directory.access_review import ReviewedPerson as Found
    from corpid.flows.directory.access_review import ReviewState
    from corpid.rules.directory.records import Assignment, ThirdPartyAssignment
    from corpid.rules.directory.roles import RoleRecords
    from corpid.texts import Phrase
    from corpid.web.pages.views import View

REVIEW: Final = REVIEW_PAGE
_SIGN_OFF: Final = f"{REVIEW}/sign-off"
_BEGIN: Final = "begin"
"""the parameter that shows the list before the review is due"""
_KEEP: Final = "keep"
"""the name of the buttons"""
_TICK: Final = "keep-"
"""before a membership in the name of its checkbox"""
_SHOWN: Final = 50
_CHANGED: Final = phrase("What somebody may do has changed since you looked. Look at it again, then keep it.")
_NOT_OPEN: Final = phrase("No review is under way. It begins when you keep or end the first person.")
_LEFT: Final = phrase("Somebody was added or changed meanwhile. Look at everybody who is in the list again.")
_OWN: Final = phrase("This is you. Another owner or administrator has to look at your access.")


class ReviewedPerson(ViewPart, frozen=True, kw_only=True):
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


# --- the list


async def show_review(at: PortalContext) -> View:
    """The review's state, and a page of people to review."""
    entity_id, query = at.entity.entity_id, at.query
    if query.get(REVIEW_OF, entity_id) != entity_id:
        return _of_another(at)
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
    return AccessReview(
        frame=frame(at, section=SETTINGS, up=section_link(at, SETTINGS)),
        action=query_address(at, REVIEW, **begin, after=after),
        state=await describe_state(at, state),
        last=await _last(at, state),
        progress=phrase("{kept} of {count} people looked at", kept=state.kept, count=state.people)
        if under_way
        else None,
        kept=state.kept,
        count=state.people,
        begin="" if shows else query_address(at, REVIEW, **begin),
        people=await _shown(at, found.found),
        sign_off=portal_path(at.web, _SIGN_OFF) if under_way and not left else "",
        pager=Pager(
            first=query_address(at, REVIEW, **begin) if after else "",
            next=query_address(at, REVIEW, **begin, after=found.after) if found.after else "",
        ),
    )


def _of_another(at: PortalContext) -> Problem:
    """The answer to a link that was made for another entity (D54)."""
    page = f"{REVIEW}?{REVIEW_OF}={at.query[REVIEW_OF]}"
    return Problem(
        frame=frame(at, section=SETTINGS, up=section_link(at, SETTINGS)),
        heading=phrase("This review is of another organisation"),
        paragraphs=(
            phrase("You act for {entity} at present.", entity=at.entity.name),
            phrase("To see the review, choose the organisation that the e-mail names."),
        ),
        back=Link(url=portal_path(at.web, choosing(page)), text=phrase("Change organisation")),
    )


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
        name = await _who(at, of.began_by)
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
        name=await _who(at, of.signed_off_by), day=_day(at, of.signed_off_at), kept=of.kept, ended=of.ended,
    )  # fmt: skip


def _day(at: PortalContext, moment: int) -> date:
    return datetime.fromtimestamp(moment, at.provider.policy.timezone).date()


async def _who(at: PortalContext, actor: str) -> str | Phrase:
    """The name of a person who decided, if they still belong (D61)."""
    directory, user_id = at.registry.directory, actor.removeprefix("user:")
    key = (user_id, at.entity.entity_id)
    membership = (await directory.read(Membership, [key])).get(key)
    user = (await directory.read(User, [(user_id,)])).get((user_id,))
    return Member(membership=membership, user=user).name if membership and user else GONE


async def _shown(at: PortalContext, found: Sequence[Found]) -> tuple[ReviewedPerson, ...]:
    directory = at.registry.directory
    rows: list[Assignment | ThirdPartyAssignment] = []
    for each in found:
        rows += each.access.roles
        rows += each.access.third_party_roles
    roles: defaultdict[str, list[RoleRecords]] = defaultdict(list)
    for role in await lists.load_roles(directory, rows):
        roles[role.row.user_id].append(role)
    held = [each.access.administrator for each in found if each.access.administrator]
    named = {service for one in held if isinstance(one.services, tuple) for service in one.services}
    services = {
        each.service_id: each.name for each in (await directory.read(Service, [(one,) for one in named])).values()
    }
    return tuple([await _person(at, each, roles[each.user.user_id], services) for each in found])


async def _person(
    at: PortalContext, each: Found, roles: Sequence[RoleRecords], services: Mapping[str, str]
) -> ReviewedPerson:
    access = each.access
    membership, held = access.membership, access.administrator
    member = Member(membership=membership, user=each.user)
    name, own = member.name, each.user.user_id == at.actor.user_id
    ends = True
    if own or held is not None:
        ends = not (await members.preview_change(at.registry, membership, actor=at.actor, end=True)).refusal
    listed_services = held.services if held is not None and isinstance(held.services, tuple) else ()
    ticked = at.form.get(_TICK + membership.membership_id, "")
    pressed, _, pressed_seen = at.form.get(_KEEP, "").rpartition(" ")
    sent = pressed_seen if pressed == membership.membership_id else ticked
    shown = f"{each.seen}.{names_shown(member)}"
    person = f"{PERSON}/{membership.membership_id}"
    kind = f"{person}/revoke" if membership.invited else f"{REVIEW}/{membership.membership_id}/end"
    return ReviewedPerson(
        url=portal_path(at.web, person),
        name=name,
        tags=() if member.state == "active" else (STATES[member.state],),
        level=level_sentence(name, held, at.entity, tuple(sorted(services.get(one, one) for one in listed_services)))
        if held
        else None,
        roles=tuple(describe_role(at, name, role) for role in roles),
        field=_TICK + membership.membership_id,
        seen=shown,
        button=f"{membership.membership_id} {shown}",
        ticked=ticked == shown,
        changed=bool(sent) and sent != shown,
        why_not=_OWN if own and not await access_review.may_keep_own(at.registry, at.actor) else None,
        end=portal_path(at.web, kind) if ends else "",
    )


# --- keeping


async def keep_access(at: PortalContext) -> FormResult:
    """Keep the access of the chosen people. Raises InvalidInput, Conflict."""
    wanted = _read_kept(at.form)
    if not wanted:
        raise InvalidInput(phrase("Tick the people whose access is to stay, or use the button below a person."))
    await access_review.load_review_state(at.registry, at.actor, at.entity.entity_id)
    kept = []
    for membership_id, shown in wanted.items():
        try:
            found = await this_member(at, membership_id)
        except NotFound:
            raise InvalidInput(_CHANGED) from None
        seen, _, names = shown.partition(".")
        if names != names_shown(found):
            raise InvalidInput(NAMES_CHANGED)
        kept.append(KeepDecision(user_id=found.user.user_id, seen=seen))
    try:
        await access_review.keep_access(at.registry, at.actor, at.entity.entity_id, kept, now=at.context.now)
    except AccessChanged:
        raise InvalidInput(_CHANGED) from None
    except Forbidden as error:
        own = any(each.user_id == at.actor.user_id for each in kept)
        raise InvalidInput(_OWN if own else phrase("The reason: {reason}.", reason=error.reason)) from None
    after = at.query.get("after", "")
    page = f"{REVIEW}?{urlencode({'after': after})}" if after else REVIEW
    return FormResult("access-kept" if len(kept) > 1 else "access-kept-one", page)


def _read_kept(form: Mapping[str, str]) -> dict[str, str]:
    """The digests shown for each chosen person, by membership."""
    membership_id, _, seen = form.get(_KEEP, "").rpartition(" ")
    if membership_id:
        return {membership_id: seen}
    chosen = {name.removeprefix(_TICK): seen for name, seen in form.items() if name.startswith(_TICK)}
    return dict(list(chosen.items())[: access_review.MOST_DECISIONS])


# --- ending


async def show_end(at: PortalContext) -> View:
    """The question before a membership is ended, with what it takes away."""
    await access_review.load_review_state(at.registry, at.actor, at.entity.entity_id)
    found = await _belonging(at)
    possible = await members.preview_change(at.registry, found.membership, actor=at.actor, end=True)
    action, refusal = CONFIRMED_ACTIONS["end"], possible.refusal
    return ConfirmAction(
        frame=frame(at, section=SETTINGS, up=_to_review(at), names=names_shown(found)),
        heading=action.heading(found.name),
        sentences=() if refusal else action.sentences(at, found),
        taken=() if refusal else await ending_sentences(at, found),
        refused=refusal_sentence(refusal, found.name, at.entity) if refusal else None,
        button=phrase("Send for approval") if possible.needs_approval else action.button,
        look="button-danger",
        back=Link(url=portal_path(at.web, REVIEW), text=action.keep),
        needs_approval=possible.needs_approval,
    )


async def end_membership(at: PortalContext) -> FormResult:
    """End a membership, or request it. Raises NotFound, InvalidInput."""
    found = await _belonging(at)
    check_names(at, names_shown(found))
    try:
        request = await access_review.end_access(
            at.registry, at.actor, at.entity.entity_id, found.user.user_id, request_details(at)
        )
    except REFUSALS as error:
        raise rejected(error, entity=at.entity, name=found.name) from None
    return saved_or_requested(request, FormResult("person-ended", REVIEW))


async def _belonging(at: PortalContext) -> Member:
    """The member that the address names, who is not only invited."""
    found = await this_member(at, membership_id_of(at))
    if found.membership.invited:
        raise NotFound
    return found


def _to_review(at: PortalContext) -> Link:
    return Link(url=portal_path(at.web, REVIEW), text=AccessReview.heading)


# --- signing off


async def show_sign_off(at: PortalContext) -> View:
    """The question before the review is signed off."""
    state = await access_review.load_review_state(at.registry, at.actor, at.entity.entity_id)
    under_way = state.review is not None and bool(state.review.began_at)
    refused = None
    if not under_way:
        refused = _NOT_OPEN
    elif (await _people(at, "")).found:
        refused = _LEFT
    return ConfirmAction(
        frame=frame(at, section=SETTINGS, up=_to_review(at)),
        heading=phrase("Sign off the review?"),
        sentences=()
        if refused
        else (
            counted(
                state.kept,
                "The access of {count} person stays as you and other administrators saw it.",
                "The access of {count} people stays as you and other administrators saw it.",
            ),
            phrase("Your name and the day stand in the history. The next review is due in a year."),
        ),
        refused=refused,
        button=phrase("Sign off"),
        back=Link(url=portal_path(at.web, REVIEW), text=phrase("Go back")),
        needs_approval=False,
    )


async def sign_off(at: PortalContext) -> FormResult:
    """Sign the review off. Raises InvalidInput."""
    signing = access_review.sign_off_review(at.registry, at.actor, at.entity.entity_id, now=at.context.now)
    try:
        await signing
    except NoOpenReview:
        raise InvalidInput(_NOT_OPEN) from None
    except ReviewIncomplete:
        raise InvalidInput(_LEFT) from None
    return FormResult("review-signed-off", REVIEW)


_ID: Final = "[^/]{1,100}"
SECTION: Final = Section[PortalContext](
    pages={
        REVIEW: PortalPage(view=show_review, submit=keep_access, fresh=True, needs=("write", "access review")),
        _SIGN_OFF: PortalPage(view=show_sign_off, submit=sign_off, fresh=True, needs=("write", "access review")),
    },
    named_pages={
        re.compile(f"{REVIEW}/{_ID}/end"): PortalPage(
            view=show_end, submit=end_membership, fresh=True, needs=("delete", "membership")
        )
    },
    fields=frozenset({_KEEP, "reason"}),
    filters=frozenset({"after", _BEGIN}),
    prefixes=(_TICK,),
    changes={
        "access-kept-one": phrase("The access stays as it was shown."),
        "access-kept": phrase("The access of those people stays as it was shown."),
        "review-signed-off": phrase("The review has been signed off."),
    },
)
