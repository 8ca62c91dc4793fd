"""Change requests in the portal: lists, one request, and decisions (D55)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.rules.directory.access import SYSTEM
from corpid.rules.directory.access_texts import (
    GONE,
    ChangeGroup,
    describe_new_terms,
    details,
    find_named_change,
    group_changes,
    name_person,
    summarise_change,
    title_changes,
    title_group,
)
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS, ApprovalState, decision_reason, is_one_line
from corpid.rules.directory.records import (
    APPROVALS,
    Assignment,
    Change,
    Membership,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.directory.page_context import (
    APPROVALS_SETTING,
    REQUEST_SENT,
    REQUESTED,
    PortalContext,
    PortalPage,
    await_change,
    no_approver,
)
from corpid.web.pages.change_sentences import DisplayValue, describe_members
from corpid.web.pages.components import (
    Actions,
    Cell,
    Column,
    Facts,
    Field,
    Form,
    Group,
    Heading,
    Label,
    Link,
    NavigationLink,
    Paragraph,
    Part,
    Table,
    Tabs,
    Timeline,
    TimelineEntry,
    Value,
    View,
    pager_of,
    table,
)
from corpid.web.sites import Check, FormResult, NotFound, Section, SeeOther, await_found, check_page

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from corpid.flows.directory.approvals import Request

REQUESTS: Final = "requests"
COLUMNS: Final = (
    phrase("Request"), phrase("Requested by"), phrase("Reason"), phrase("Who can decide"), phrase("Expires"),
)  # fmt: skip
_PER_PAGE: Final = 50
_FEW: Final = 10
"""changes that stand above the buttons"""
_NAMED: Final = 5
"""people who can approve, by name"""
_ENDED: Final = "ended"

STATES: Final[Mapping[ApprovalState, Phrase]] = {
    ApprovalState.PENDING: phrase("Waiting"),
    ApprovalState.APPROVED: phrase("Approved"),
    ApprovalState.DECLINED: phrase("Declined"),
    ApprovalState.WITHDRAWN: phrase("Withdrawn"),
    ApprovalState.EXPIRED: phrase("Expired"),
}
"""how the state of a request is called on a page"""


def _path(at: PortalContext, found: Request, verb: str = "") -> str:
    return at.path(f"{REQUESTS}/{verb}{quote(found.record.request_id, safe='')}")


def _requester(found: Request) -> Value:
    return phrase("You") if found.own else found.requester


def _approvers(found: Request) -> Value:
    if not found.approvers:
        return Label(phrase("Nobody at present"), "warning")
    *names, last = (name or GONE for name in found.approvers)
    if len(names) < _NAMED:
        return phrase("{names}", names=(*names, last))
    return phrase("{names} and others", names=tuple(names))


def _decided_by(found: Request) -> Value:
    """The people who can decide, or the decision with its reason."""
    if found.state is ApprovalState.PENDING:
        return _approvers(found)
    given = decision_reason(found.record)
    return Cell(values=(Label(STATES[found.state]),), notes=(given,) if given else ())


def _ended_at(at: PortalContext, found: Request) -> datetime:
    return at.moment(found.record.decided_at or found.expires_at)


def row(at: PortalContext, found: Request) -> tuple[Value, ...]:
    """A request, by COLUMNS; the heads differ if it has ended."""
    role = find_named_change(found.changes).record
    limits = details(role, part=False) if isinstance(role, Assignment | ThirdPartyAssignment) else ()
    link = Link(url=_path(at, found), text=title_changes(found.changes, found.names))
    number = len(found.comments)
    comments = (counted(number, "{count} comment", "{count} comments"),) if number else ()
    return (
        Cell(values=(link,), notes=(*limits, *comments)),
        _requester(found),
        found.record.reason,
        _decided_by(found),
        _ended_at(at, found).date(),
    )


async def show_requests(at: PortalContext) -> View:
    """Requests that wait, or those that have ended (D55)."""
    now, chosen = at.context.now, at.query.get("state", "")
    ended = {state.value: (state,) for state in approvals.ENDED} | {_ENDED: approvals.ENDED}
    chosen = chosen if chosen in ended else ""
    states = {"": STATES[ApprovalState.PENDING], _ENDED: phrase("All that have ended")}
    tabs = Tabs(
        label=phrase("State"),
        links=tuple(
            NavigationLink(
                url=at.path(REQUESTS, state=state), text=text, current=state == chosen,
                count=0 if state else at.visit.requests,
            )
            for state, text in (states | {state.value: STATES[state] for state in approvals.ENDED}).items()
        ),
    )  # fmt: skip

    async def listed(name: str, caption: Phrase, empty: Phrase) -> Table:
        place, columns, limit = at.query.get(name, ""), COLUMNS, _PER_PAGE
        if chosen:
            columns = (*COLUMNS[:3], phrase("Decision"), phrase("Ended"))
            found = await approvals.list_ended(
                at.registry, at.actor, states=ended[chosen], now=now, before=place, limit=limit
            )
        else:
            own = name == "own"
            waiting = approvals.list_waiting(at.registry, at.actor, own=own, now=now, after=place, limit=limit)
            found = await await_found(waiting)
        return Table(
            caption=caption,
            heading=True,
            columns=tuple(map(Column, columns)),
            rows=tuple(row(at, each) for each in found.found),
            empty=None if found.after else empty,
            pager=pager_of(
                at.path(REQUESTS), {"state": chosen} if chosen else {}, came=name in at.query,
                after=found.after, name=name, searched_on=len(found.found) < _PER_PAGE,
            ),
        )  # fmt: skip

    if chosen:
        none = phrase("There are no such requests.")
        tables = [await listed("before", phrase("Requests that have ended, the latest first"), none)]
    else:
        nothing = phrase(
            "Nothing needs your decision. Changes that need approval appear here when somebody else requests them."
        )
        tables = [
            await listed("waiting", phrase("Waiting for your decision"), nothing),
            await listed("own", phrase("Requested by you"), phrase("None of your requests is waiting.")),
        ]
    change = at.link(APPROVALS_SETTING, phrase("Change this"))
    chooses = (change,) if at.actor.level == "owner" else ()
    return at.build_page(
        phrase("Requests"),
        tabs,
        *tables,
        Heading(phrase("What needs approval")),
        Cell(values=(phrase("{sentence}.", sentence=APPROVALS[at.entity.approvals]), *chooses)),
        Paragraph(phrase("A service may also require approval for access to it."), look="hint"),
    )


async def _found(at: PortalContext) -> Request:
    request_id = at.page.rpartition("/")[2]
    try:
        return await approvals.load_request(at.registry, at.actor, request_id, now=at.context.now)
    except approvals.NoRequest:
        raise NotFound from None


def _list_limits(group: ChangeGroup) -> tuple[Phrase, ...]:
    """The limits below a sentence, which no table of values has."""
    change = group.changes[0]
    record = change.record
    if isinstance(record, ThirdPartyGrant):
        return details(record) if change.verb == "change" else ()
    return details(record) if isinstance(record, Assignment | ThirdPartyAssignment) and _is_said(group) else ()


def _is_said(group: ChangeGroup) -> bool:
    """Return whether its sentence says all of a change."""
    change = group.changes[0]
    is_role = isinstance(change.record, Assignment | ThirdPartyAssignment)
    return is_role and change.verb != "change" and len(group.changes) == 1


def _show_changes(found: Request) -> tuple[Part, ...]:
    """A sentence for each change, or for several alike."""
    shown: list[Part] = []
    for group in group_changes(found.changes):
        alone = len(group.changes) == 1 and not group.roles
        asked = summarise_change(group.changes[0], found.names) if alone else title_group(group, found.names)
        sentence = phrase("Asked for: {change}", change=asked)
        shown.append(Paragraph(Cell(values=(sentence,), notes=_list_limits(group)), look="summary"))
    invited_here = {each.key[0] for each in found.changes if isinstance(each.record, Membership)}
    gone = found.name_changes.gone if found.name_changes else frozenset()
    for person in found.record.people if found.state is ApprovalState.PENDING else ():
        if person.invited and person.user_id not in invited_here | gone:
            name = found.names.people.get(person.user_id) or GONE
            shown.append(Paragraph(phrase("It has no effect until {name} accepts the invitation.", name=name)))
    if found.name_changes and found.name_changes.changed:
        names_now = ((was or phrase("Not recorded"), now or GONE) for was, now in found.name_changes.changed)
        warning = phrase("Names have changed since this was requested. Check that the right person is meant.")
        shown += (
            Paragraph(warning, look="warning"),
            table(
                phrase("Names when this was requested, and now"), (phrase("When requested"), phrase("Now")), names_now
            ),
        )
    return tuple(shown)


def _show_effects(found: Request) -> tuple[Phrase, ...]:
    """Effects of new terms of authorisations, while the request waits."""
    if found.state is not ApprovalState.PENDING:
        return ()
    grants = ((each, each.record.entity_id) for each in found.changes if isinstance(each.record, ThirdPartyGrant))
    effects = (describe_new_terms(each, found.names.entities.get(party, party)) for each, party in grants)
    return tuple(each for each in effects if each is not None)


def _show_facts(found: Request) -> tuple[Part, ...]:
    """Details of changes: values, and people with what differs between them.

    Before and after stand only where something changes.
    """
    shown: list[Part] = []
    for group in group_changes(found.changes):
        if _is_said(group):
            continue
        changing = group.changes[0].verb == "change"
        each_of = [describe_members(each, found.names) for each in group.changes]
        common = [one for one in each_of[0] if all(one in others for others in each_of)]
        common += describe_members(group.roles[0], found.names) if group.roles else []
        columns: tuple[Phrase, ...] = phrase("What"), phrase("Value")
        rows: list[tuple[Value, ...]] = [(one.name, _value(one.after) or _value(one.before)) for one in common]
        if changing:
            columns = phrase("What"), phrase("Before"), phrase("After")
            rows = [(one.name, _value(one.before), _value(one.after)) for one in common]
        shown.append(table(phrase("Before and after") if changing else phrase("Details"), columns, rows))
        if len(group.changes) == 1:
            continue
        who = [name_person(each, found.names) for each in group.changes]
        cells = [
            {one.name: _value(one.after) or _value(one.before) for one in some if one not in common} for some in each_of
        ]
        labels = [_label_texts(each) for each in group.changes]
        differing = dict.fromkeys(
            name
            for label, some in zip(labels, cells, strict=True)
            for name, value in some.items()
            if value not in label
        )
        people = ((person, *(some.get(name) for name in differing)) for person, some in zip(who, cells, strict=True))
        shown.append(table(phrase("People"), (phrase("Person"), *differing), people))
    return tuple(shown)


def _label_texts(change: Change) -> tuple[str, ...]:
    """Address and name of an invited person, which their label has."""
    record = change.record
    return (record.email.lower(), record.name) if isinstance(record, Membership) and record.invited else ()


def _value(shown: DisplayValue) -> Value:
    return shown.day or shown.text


def _why_not(found: Request) -> Phrase | None:
    if not found.own:
        return phrase("You cannot decide on this request: {reason}.", reason=found.why_not)
    if found.nobody_approves:
        return phrase("You made this request, so you cannot approve it yourself.")
    return phrase("You made this request, so another administrator has to decide.")


def _step_name(found: Request) -> str:
    """The number of comments: who approves has read them all."""
    return str(len(found.comments))


async def show_request(at: PortalContext) -> View:
    """One request, with the forms that decide and comment (D55, D68)."""
    found = await _found(at)
    record, pending = found.record, found.state is ApprovalState.PENDING
    facts: list[tuple[Phrase, Value]] = [
        (phrase("State"), Label(STATES[found.state], "warning" if pending else "")),
        (phrase("Made"), at.moment(record.created_at)),
    ]
    if pending:
        facts += [(phrase("Who can decide"), _approvers(found)), (phrase("Expires"), at.moment(found.expires_at))]
    else:
        facts.append((phrase("Ended"), _ended_at(at, found)))
    if not pending and record.decided_by not in ("", SYSTEM):
        facts.append((phrase("Decided by"), found.decided_by))
    if not pending and (given := decision_reason(record)):
        facts.append((phrase("Reason for the decision"), given))
    tables = _show_facts(found)
    is_long = len(found.changes) > _FEW
    asks = Facts(((phrase("Requested by"), _requester(found)), (phrase("Reason for the request"), record.reason)))
    changes = *_show_changes(found), *_show_effects(found), asks, *(() if is_long else tables)
    return at.build_page(
        title_changes(found.changes, found.names, brief=True),
        Group(
            look="beside",
            parts=(Group(look="stack", parts=(*changes, *_show_decision(at, found))), Facts(tuple(facts))),
        ),
        *(tables if is_long else ()),
        *_show_comments(at, found),
        names=found.name_changes.digest if found.name_changes else "",
        step_name=_step_name(found),
        back=None,
    )


def _show_decision(at: PortalContext, found: Request) -> tuple[Part, ...]:
    """The form that decides on a request, or why there is none."""
    if found.state is not ApprovalState.PENDING:
        return ()
    parts: list[Part] = []
    if found.nobody_approves:
        nobody = no_approver(at)
        alone = phrase("Nobody else in your organisation can approve this at present.")
        links = (nobody.link,) if nobody.link else ()
        parts.append(Paragraph(Cell(values=(alone, nobody.text, *links)), look="warning"))
    withdraw = Actions((Link(url=_path(at, found, "withdraw/"), text=phrase("Withdraw")),))
    if found.why_not:
        return *parts, _why_not(found), withdraw if found.can_withdraw else None
    form = Form(
        action=_path(at, found, "decide/"),
        button=phrase("Approve"),
        decision="approve",
        other=("decline", phrase("Decline")),
        reason=phrase("Required to decline. The person who made the request can read it."),
    )
    if found.why_no_approval:
        parts.append(phrase("You can decline it, but not approve it: {reason}.", reason=found.why_no_approval))
        form = replace(form, button=phrase("Decline"), decision="decline", other=None)
    return *parts, form


def _show_comments(at: PortalContext, found: Request) -> tuple[Part, ...]:
    """The comments on a request, and the form that adds one."""
    may_comment = found.state is ApprovalState.PENDING and (found.own or not found.why_not)
    if not (found.comments or may_comment):
        return ()
    entries = (
        TimelineEntry(
            text=each.text, by=phrase("You") if each.author == at.actor.name else author, at=at.moment(each.at)
        )
        for each, author in found.comments
    )
    field = Field(
        name="comment", label=phrase("Comment"), most=MOST_REASON_CHARACTERS, value=at.form.get("comment", ""),
        hint=phrase("We send it by e-mail to the person who made the request and to everybody who has commented."),
    )  # fmt: skip
    form = Form(action=_path(at, found, "comment/"), parts=(field,), secondary=True, button=phrase("Send comment"))
    return (
        Heading(phrase("Comments")),
        Timeline(tuple(entries)) if found.comments else None,
        form if may_comment else None,
    )


async def save_comment(at: PortalContext) -> FormResult:
    """Add a comment. Raises InvalidInput."""
    found = await _found(at)
    text = at.form.get("comment", "").strip()
    if not is_one_line(text):
        wrong = phrase("Enter a comment of one line, at most {count} characters long.", count=MOST_REASON_CHARACTERS)
        raise InvalidInput(wrong, field="comment")
    request_id, now = found.record.request_id, at.context.now
    await await_change(approvals.comment_on_request(at.registry, request_id, actor=at.actor, text=text, now=now))
    return FormResult("request-commented", f"{REQUESTS}/{request_id}")


async def ask_withdrawal(at: PortalContext) -> Check:
    """The check before one's own request is withdrawn."""
    found = await _found(at)
    request_id, page = found.record.request_id, f"{REQUESTS}/{found.record.request_id}"
    if not (at.form or found.can_withdraw):
        raise SeeOther(page)

    async def withdraw() -> FormResult:
        reason, now = at.reason(), at.context.now
        await await_change(approvals.withdraw_request(at.registry, request_id, actor=at.actor, reason=reason, now=now))
        return FormResult("request-withdrawn", page)

    return Check(
        heading=phrase("Withdraw your request?"),
        parts=(
            *_show_changes(found),
            phrase("Nobody can approve it any more, and nothing changes."),
        ),
        below=_show_facts(found),
        button=phrase("Withdraw the request"),
        danger=True,
        reason=phrase("You can leave it empty."),
        up=Link(url=_path(at, found), text=COLUMNS[0]),
        change=withdraw,
    )


async def save_decision(at: PortalContext) -> FormResult:
    """Approve or decline, with the reason. Raises InvalidInput."""
    found = await _found(at)
    decision = at.form.get("decision", "")
    if decision not in {"approve", "decline"}:
        raise InvalidInput(phrase("Choose whether to approve or decline."))
    given = at.reason()
    if not given and decision == "decline":
        raise InvalidInput(phrase("Enter a reason. The person who made the request reads it."), field="reason")
    now = at.context.now
    request_id = found.record.request_id
    if decision == "decline":
        await await_change(approvals.decline_request(at.registry, request_id, actor=at.actor, reason=given, now=now))
        return FormResult("request-declined", f"{REQUESTS}/{request_id}")
    at.check_step(_step_name(found))
    names = at.form.get("names", "")
    await await_change(
        approvals.approve_request(at.registry, request_id, actor=at.actor, reason=given, now=now, names=names)
    )
    return FormResult("request-approved", f"{REQUESTS}/{request_id}")


def _named(verb: str = "") -> re.Pattern[str]:
    return re.compile(rf"{REQUESTS}/{verb}[0-9a-f]+-[A-Za-z0-9_-]+")


SECTION: Final = Section[PortalContext](
    name=REQUESTS,
    pages={
        REQUESTS: PortalPage(view=show_requests),
    },
    named_pages={
        _named(): PortalPage(view=show_request),
        _named("decide/"): PortalPage(view=show_request, submit=save_decision, fresh=True, needs=("write", "approval")),
        _named("comment/"): PortalPage(
            view=show_request, submit=save_comment, fresh=True, needs=("write", "withdrawal")
        ),
        _named("withdraw/"): check_page(ask_withdrawal, needs=("write", "withdrawal")),
    },
    fields=frozenset({"reason", "decision", "comment"}),
    filters=frozenset({"state", "before", "waiting", "own"}),
    changes={
        "request-approved": phrase("The request has been approved, and the change has been made."),
        "request-declined": phrase("The request has been declined. Nothing has changed."),
        "request-withdrawn": phrase("Your request has been withdrawn."),
        "request-commented": phrase("Your comment has been sent."),
        REQUESTED: REQUEST_SENT,
    },
)
