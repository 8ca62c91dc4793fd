"""Change requests in the portal: lists, one request, and decisions (D55)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import approvals
from corpid.rules.directory.actors import SYSTEM
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS, ApprovalState, decision_reason
from corpid.rules.directory.records import APPROVALS, Assignment, ThirdPartyAssignment
from corpid.texts import Phrase, phrase
from corpid.web.directory.change_sentences import ChangeInWords, describe_change
from corpid.web.directory.page_context import (
    NO_REASON,
    REQUEST_SENT,
    REQUESTED,
    SETTINGS,
    PortalContext,
    PortalPage,
    await_change,
    frame,
    no_approver,
    portal_path,
    reason,
    section_link,
    submit_changes,
)
from corpid.web.pages.access_texts import GONE, details
from corpid.web.pages.layout import Advice, FormView, Pager, PageView, ViewPart, pager_of
from corpid.web.sites import FormResult, NotFound, Section, await_found

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from corpid.flows.directory.approvals import Request
    from corpid.flows.directory.lists import ListPage
    from corpid.rules.directory.records import Approvals
    from corpid.web.pages.views import View

REQUESTS: Final = "requests"
SETTING: Final = "approvals-setting"
_PER_PAGE: Final = 50
_ENDED: Final = "ended"
_REQUEST: Final = re.compile(r"requests/([0-9a-f]+-[A-Za-z0-9_-]+)")
_DECIDE: Final = re.compile(r"requests/decide/([0-9a-f]+-[A-Za-z0-9_-]+)")
_WITHDRAW: Final = re.compile(r"requests/withdraw/([0-9a-f]+-[A-Za-z0-9_-]+)")

STATES: Final[Mapping[ApprovalState, Phrase]] = {
    ApprovalState.PENDING: phrase("Waiting"),
    ApprovalState.APPROVED: phrase("Approved"),
    ApprovalState.DECLINED: phrase("Declined"),
    ApprovalState.WITHDRAWN: phrase("Withdrawn"),
    ApprovalState.EXPIRED: phrase("Expired"),
}
"""how the state of a request is called on a page"""
_NO_PAGER: Final = Pager()


class RequestLine(ViewPart, frozen=True, kw_only=True):
    url: str
    sentence: Phrase
    limits: tuple[Phrase, ...]
    """part of the organisation and parameters of its first change"""
    further: int
    """how many changes it has in addition"""
    requester: str | Phrase
    own: bool
    reason: str
    state: Phrase
    made: datetime
    ends: datetime
    """when it expires, or was decided"""


class Requests(PageView, frozen=True, kw_only=True):
    """The requests that wait, or those that have ended."""

    template: ClassVar[str] = "manage/requests.html"
    heading: ClassVar[Phrase] = phrase("Requests")

    action: str
    filters: tuple[tuple[str, Phrase], ...]
    chosen: str
    """a state, or `ended`; empty: those that wait"""
    setting: str
    """the address of the entity's choice; empty if the person cannot make it"""
    approvals: Phrase
    waiting: tuple[RequestLine, ...] = ()
    own: tuple[RequestLine, ...] = ()
    waiting_pager: Pager = _NO_PAGER
    own_pager: Pager = _NO_PAGER
    ended: tuple[RequestLine, ...] = ()
    ended_pager: Pager = _NO_PAGER


class OneRequest(PageView, frozen=True, kw_only=True):
    """One request, with what the person may do about it."""

    template: ClassVar[str] = "manage/request.html"
    heading: ClassVar[Phrase] = phrase("Request")

    changes: tuple[ChangeInWords, ...]
    line: RequestLine
    decided_by: str | Phrase
    decided_reason: str
    pending: bool
    why_not: Phrase | None
    decide: str
    """the address to decide; empty if they cannot"""
    withdraw: str
    name_changes: tuple[tuple[str, str], ...] = ()
    """of people: the names when it was made, and now"""
    nobody: Advice | None = None
    """what to do if nobody can approve it; None if somebody can"""


class Decide(FormView, frozen=True, kw_only=True):
    """Approve or decline a request. Fields: reason, decision. Error id: reason."""

    template: ClassVar[str] = "manage/decide.html"

    heading: Phrase
    changes: tuple[ChangeInWords, ...]
    line: RequestLine
    why_no_approval: Phrase | None
    """why they can only decline it"""
    withdrawing: bool
    name_changes: tuple[tuple[str, str], ...]
    """of people: the names when it was made, and now"""
    typed: str
    most: int = MOST_REASON_CHARACTERS


class ChooseApprovals(FormView, frozen=True, kw_only=True):
    """The choice of changes that need approval.

    Fields: approvals, reason. Error ids: these.
    """

    template: ClassVar[str] = "manage/approvals_setting.html"
    heading: ClassVar[Phrase] = phrase("Which changes need approval")

    options: tuple[tuple[str, Phrase, str], ...]
    chosen: str
    strict: bool
    """whether something needs approval now, so that lowering it is requested"""
    typed: str
    most: int = MOST_REASON_CHARACTERS


def _line(at: PortalContext, found: Request) -> RequestLine:
    record, change = found.record, found.changes[0]
    role = change.record
    return RequestLine(
        url=portal_path(at.web, f"{REQUESTS}/{quote(record.request_id, safe='')}"),
        sentence=describe_change(change, found.names).sentence,
        limits=details(role) if isinstance(role, Assignment | ThirdPartyAssignment) else (),
        further=len(found.changes) - 1,
        requester=found.requester or GONE,
        own=found.own,
        reason=record.reason,
        state=STATES[found.state],
        made=at.moment(record.created_at),
        ends=at.moment(record.decided_at or found.expires_at),
    )


def _pager(at: PortalContext, name: str, found: ListPage[Request], **kept: str) -> Pager:
    return pager_of(
        portal_path(at.web, REQUESTS),
        kept,
        came=name in at.query,
        after=found.after,
        name=name,
        searched_on=len(found.found) < _PER_PAGE,
    )


async def show_requests(at: PortalContext) -> View:
    """The requests of the entity (D55)."""
    now = at.context.now
    chosen = at.query.get("state", "")
    ended = {state.value: state for state in approvals.ENDED}
    options = [("", phrase("Waiting")), (_ENDED, phrase("All that have ended"))]
    options += [(value, STATES[state]) for value, state in ended.items()]
    shown: dict[str, object] = {}
    if chosen == _ENDED or chosen in ended:
        states = (ended[chosen],) if chosen in ended else approvals.ENDED
        page = await approvals.list_ended(
            at.registry, at.actor, states=states, now=now, before=at.query.get("before", ""), limit=_PER_PAGE
        )
        shown["ended"] = tuple(_line(at, each) for each in page.found)
        shown["ended_pager"] = _pager(at, "before", page, state=chosen)
    else:
        chosen = ""
        for name, own in (("waiting", False), ("own", True)):
            after = at.query.get(name, "")
            page = await await_found(
                approvals.list_waiting(at.registry, at.actor, own=own, now=now, after=after, limit=_PER_PAGE)
            )
            shown[name] = tuple(_line(at, each) for each in page.found)
            shown[f"{name}_pager"] = _pager(at, name, page)
    return Requests(
        frame=frame(at, section=REQUESTS),
        action=portal_path(at.web, REQUESTS),
        filters=tuple(options),
        chosen=chosen,
        setting=portal_path(at.web, SETTING) if at.actor.level == "owner" else "",
        approvals=APPROVALS[at.entity.approvals],
        **shown,  # type: ignore[arg-type]
    )


async def _found(at: PortalContext, pattern: re.Pattern[str]) -> Request:
    named = pattern.fullmatch(at.page)
    try:
        return await approvals.load_request(at.registry, at.actor, named[1] if named else "", now=at.context.now)
    except approvals.NoRequest:
        raise NotFound from None


async def show_request(at: PortalContext) -> View:
    """One request, with before and after (D55)."""
    found = await _found(at, _REQUEST)
    pending, request_id = found.state is ApprovalState.PENDING, quote(found.record.request_id, safe="")
    why_not: Phrase | None = None
    if pending and found.own:
        why_not = phrase("You made this request, so another administrator has to decide.")
        if found.nobody_approves:
            why_not = phrase("You made this request, so you cannot approve it yourself.")
    elif pending and found.why_not:
        why_not = phrase("You cannot decide on this request: {reason}.", reason=found.why_not)
    return OneRequest(
        frame=frame(at, section=REQUESTS, up=section_link(at, REQUESTS)),
        changes=tuple(describe_change(each, found.names) for each in found.changes),
        line=_line(at, found),
        decided_by="" if found.record.decided_by in ("", SYSTEM) else found.decided_by or GONE,
        decided_reason=decision_reason(found.record),
        pending=pending,
        name_changes=found.name_changes.changed if found.name_changes else (),
        why_not=why_not,
        nobody=no_approver(at) if found.nobody_approves else None,
        decide=portal_path(at.web, f"{REQUESTS}/decide/{request_id}") if pending and not found.why_not else "",
        withdraw=portal_path(at.web, f"{REQUESTS}/withdraw/{request_id}") if found.can_withdraw else "",
    )


async def _decision(at: PortalContext, found: Request, *, withdrawing: bool) -> View:
    line = _line(at, found)
    only_decline = None
    if found.why_no_approval:
        only_decline = phrase("You can decline it, but not approve it: {reason}.", reason=found.why_no_approval)
    names = found.name_changes.digest if found.name_changes and not withdrawing else ""
    return Decide(
        frame=frame(at, section=REQUESTS, up=section_link(at, REQUESTS), names=names),
        heading=phrase("Withdraw your request?") if withdrawing else phrase("Approve or decline"),
        changes=tuple(describe_change(each, found.names) for each in found.changes),
        line=line,
        why_no_approval=only_decline,
        withdrawing=withdrawing,
        name_changes=found.name_changes.changed if found.name_changes else (),
        typed=at.form.get("reason", ""),
        back=line.url,
    )


async def show_decision(at: PortalContext) -> View:
    """The form that decides on a request.

    Without the right to decide, the request itself.
    """
    found = await _found(at, _DECIDE)
    if not at.errors and (found.state is not ApprovalState.PENDING or found.why_not):
        return await show_request(_at(at, found))
    return await _decision(at, found, withdrawing=False)


async def show_withdrawal(at: PortalContext) -> View:
    """The form that takes back one's own request."""
    found = await _found(at, _WITHDRAW)
    if not at.errors and not found.can_withdraw:
        return await show_request(_at(at, found))
    return await _decision(at, found, withdrawing=True)


def _at(at: PortalContext, found: Request) -> PortalContext:
    return PortalContext(
        web=at.web, context=at.context, visit=at.visit, page=f"{REQUESTS}/{found.record.request_id}", query={}
    )


async def save_decision(at: PortalContext) -> FormResult:
    """Approve or decline, with the reason. Raises InvalidInput."""
    found = await _found(at, _DECIDE)
    decision = at.form.get("decision", "")
    if decision not in {"approve", "decline"}:
        raise InvalidInput(phrase("Choose whether to approve or decline."))
    given = reason(at)
    if not given:
        raise InvalidInput(phrase("Enter a reason. The person who made the request reads it."), field="reason")
    now = at.context.now
    request_id = found.record.request_id
    if decision == "decline":
        await await_change(approvals.decline_request(at.registry, request_id, actor=at.actor, reason=given, now=now))
        return FormResult("request-declined", f"{REQUESTS}/{request_id}")
    names = at.form.get("names", "")
    await await_change(
        approvals.approve_request(at.registry, request_id, actor=at.actor, reason=given, now=now, names=names)
    )
    return FormResult("request-approved", f"{REQUESTS}/{request_id}")


async def save_withdrawal(at: PortalContext) -> FormResult:
    """Take one's own request back. Raises InvalidInput."""
    found = await _found(at, _WITHDRAW)
    now = at.context.now
    request_id = found.record.request_id
    await await_change(approvals.withdraw_request(at.registry, request_id, actor=at.actor, reason=reason(at), now=now))
    return FormResult("request-withdrawn", f"{REQUESTS}/{request_id}")


async def show_setting(at: PortalContext) -> View:
    """The entity's choice of which changes need approval; for owners."""
    if at.actor.level != "owner":
        raise NotFound
    chosen: Approvals = at.entity.approvals
    return ChooseApprovals(
        frame=frame(at, section=SETTINGS, up=section_link(at, SETTINGS)),
        options=tuple((value, text, "") for value, text in APPROVALS.items()),
        chosen=at.form.get("approvals", chosen),
        strict=chosen != "none",
        typed=at.form.get("reason", ""),
        back=portal_path(at.web, SETTINGS),
    )


async def save_setting(at: PortalContext) -> FormResult:
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
    given = reason(at)
    if approvals.lowers_approvals(at.entity, chosen) and not given:
        raise InvalidInput(NO_REASON, field="reason")
    return await submit_changes(
        at, [approvals.plan_choice(at.entity, chosen)], FormResult("approvals-changed", SETTINGS)
    )


SECTION: Final = Section[PortalContext](
    pages={
        REQUESTS: PortalPage(view=show_requests),
        SETTING: PortalPage(view=show_setting, submit=save_setting, fresh=True),
    },
    named_pages={
        _REQUEST: PortalPage(view=show_request),
        _DECIDE: PortalPage(view=show_decision, submit=save_decision, fresh=True, needs=("write", "approval")),
        _WITHDRAW: PortalPage(view=show_withdrawal, submit=save_withdrawal, fresh=True, needs=("write", "withdrawal")),
    },
    fields=frozenset({"reason", "decision", "approvals"}),
    filters=frozenset({"state", "before", "waiting", "own"}),
    changes={
        "request-approved": phrase("The request is approved, and the change is made."),
        "request-declined": phrase("The request is declined. Nothing has changed."),
        "request-withdrawn": phrase("Your request is withdrawn."),
        "approvals-changed": phrase("Which changes need approval is changed."),
        REQUESTED: REQUEST_SENT,
    },
)
