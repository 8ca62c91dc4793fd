"""The e-mails of notices about the administration of entities.

Each says who did what, for which organisation, and what to do. None has a link that does anything: the button leads to
the page of the very thing, in the portal for the organisation that it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Final
from urllib.parse import quote

import msgspec

from corpid.flows.authentication.own_pages import PATHS
from corpid.rules.directory.approvals import LIFETIME_SECONDS, decision_reason, is_asked_for_oneself
from corpid.rules.directory.names import quoted
from corpid.rules.directory.records import ChangeRequest, Entity, RequestComment, User
from corpid.rules.directory.values import NO_END
from corpid.rules.emails import Action, Email, EmailPart, Facts, UrlLine, to_email_time
from corpid.texts import Phrase, counted, phrase

MANAGE_PATH: Final = PATHS["manage"]
"""the pages of an entity's administrators"""
REVIEW_PAGE: Final = "access-review"
OF_ENTITY: Final = "of"
"""the parameter of a link to the portal: it chooses no entity, and another entity's page is not shown at it"""
MOST_LISTED: Final = 10
"""occasions that an e-mail names; of the others it tells the number"""

_WHEN: Final = phrase("When")
_BY: Final = phrase("By")
_CHANGE: Final = phrase("Requested change")
_REASON: Final = phrase("Reason")
_LEVELS: Final = {
    "owner": phrase("owner"),
    "administrator": phrase("administrator"),
    "sub_administrator": phrase("sub-administrator"),
}
_CHANGES: Final = {
    "given": phrase("Given"),
    "changed": phrase("Changed"),
    "ended": phrase("Ended"),
    "suspended": phrase("Suspended"),
    "restored": phrase("Restored"),
}
_SUBJECTS: Final[Mapping[str, Callable[..., Phrase]]] = {
    "given": lambda **named: phrase("You may now act for {entity}: {what}", **named),
    "changed": lambda **named: phrase("Your access for {entity} was changed: {what}", **named),
    "ended": lambda **named: phrase("Your access for {entity} has ended: {what}", **named),
}
"""subjects of an e-mail about one role"""
_OF_MEMBERSHIP: Final[Mapping[str, tuple[Callable[..., Phrase], Callable[..., Phrase]]]] = {
    "suspended": (
        lambda **named: phrase("Your membership of {entity} was suspended", **named),
        lambda **named: phrase("{name} suspended your membership of {entity}.", **named),
    ),
    "restored": (
        lambda **named: phrase("Your membership of {entity} was restored", **named),
        lambda **named: phrase("{name} restored your membership of {entity}.", **named),
    ),
    "ended": (
        lambda **named: phrase("Your membership of {entity} has ended", **named),
        lambda **named: phrase("{name} ended your membership of {entity}.", **named),
    ),
}
"""subjects of an e-mail about the membership alone, and its first sentence"""
_OF_ACCESS: Final = (
    lambda **named: phrase("What you may do for {entity} has changed", **named),
    lambda **named: phrase("{name} changed what you may do for {entity}.", **named),
)
"""the same of any other change"""
_DECISIONS: Final[Mapping[str, Callable[..., Phrase]]] = {
    "approved": lambda **named: phrase("Your request at {entity} was approved: {change}", **named),
    "declined": lambda **named: phrase("Your request at {entity} was declined: {change}", **named),
    "expired": lambda **named: phrase("Your request at {entity} has expired: {change}", **named),
    "withdrawn": lambda **named: phrase("Your request at {entity} was withdrawn: {change}", **named),
}
_OUTCOMES: Final = {
    "approved": phrase("Approved"),
    "declined": phrase("Declined"),
    "expired": phrase("Expired: nobody decided within 14 days"),
    "withdrawn": phrase("Withdrawn"),
}


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """The person an e-mail goes to, and the entity it is about."""

    user: User
    entity: Entity
    deployment_url: str
    as_operator: bool = False
    """whether they decide in place of the entity, which has no pages for them"""


class RequestInWords(msgspec.Struct, frozen=True, kw_only=True):
    """A request, by the words and names that its reader knows."""

    record: ChangeRequest
    change: Phrase
    """what is asked, a sentence"""
    requester: str | Phrase
    decided_by: str | Phrase = ""
    comments: tuple[tuple[RequestComment, str | Phrase], ...] = ()
    """each with its author"""


class RoleNames(msgspec.Struct, frozen=True, kw_only=True):
    """A role by the names that people know."""

    service: str
    role: str = ""
    sub_entity: str = ""
    client: str = ""
    """the client entity, of a third party's person"""
    end_date: str = ""


class AccessChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of what a person may do."""

    change: str
    """given, changed, ended, suspended or restored"""
    level: str = ""
    role: RoleNames | None = None
    """neither: the membership"""


def build_access_email(
    reader: Reader, changes: Sequence[AccessChange], *, by: Sequence[str | Phrase], at: int
) -> Email:
    """The changes by others of what a person may do.

    `by` names who did it, if known. Source: docs/decisions/0022
    """
    entity, first = reader.entity.name, changes[0]
    rows = [(_CHANGES[each.change], _describe_change(each, entity)) for each in changes[:MOST_LISTED]]
    of_membership = len(changes) == 1 and first.role is None and not first.level
    subject_of, lead_of = _OF_MEMBERSHIP.get(first.change, _OF_ACCESS) if of_membership else _OF_ACCESS
    parts: tuple[EmailPart, ...] = (
        lead_of(name=by[0], entity=entity)
        if len(by) == 1
        else phrase("What you may do for {entity} was changed.", entity=entity),
        Facts((*rows, *_describe_making(by, at))),
        *_count_further(len(changes)),
        phrase("If you did not expect this, ask an administrator of {entity}.", entity=entity),
        _link_access(reader),
    )
    if len(changes) == 1 and first.role is not None and first.change in _SUBJECTS:
        subject = _SUBJECTS[first.change](entity=entity, what=_describe_role(_drop_end(first.role)))
        preview = phrase("If you did not expect this, ask an administrator of {entity}.", entity=entity)
    else:
        subject = subject_of(entity=entity)
        preview = phrase("{name}: {value}", name=rows[0][0], value=rows[0][1])
    return _build_email(reader, subject, preview, parts)


def build_ending_email(reader: Reader, roles: Sequence[RoleNames]) -> Email:
    """Roles of a person end soon.

    Source: docs/decisions/0022
    """
    entity = reader.entity.name
    rows = [(_describe_last_day(each.end_date), _describe_role(_drop_end(each))) for each in roles[:MOST_LISTED]]
    parts: tuple[EmailPart, ...] = (
        phrase("Your access for {entity} ends after these days:", entity=entity),
        Facts(tuple(rows)),
        *_count_further(len(roles)),
        phrase("If you still need it afterwards, ask an administrator of {entity}.", entity=entity),
        _link_access(reader),
    )
    if len(roles) == 1:
        what, day = rows[0][1], _read_day(roles[0].end_date)
        subject = phrase("Your access for {entity} ends after {day}: {what}", entity=entity, day=day, what=what)
        preview = phrase("If you still need it afterwards, ask an administrator of {entity}.", entity=entity)
    else:
        subject = phrase("Your access for {entity} ends soon", entity=entity)
        preview = phrase("{name}: {value}", name=rows[0][0], value=rows[0][1])
    return _build_email(reader, subject, preview, parts)


def build_others_ending_email(reader: Reader, roles: Sequence[tuple[str, RoleNames]], count: int) -> Email:
    """Roles of an entity's people end soon; `count` says how many.

    `roles` are those that are named, each with the name of its person. Source: docs/decisions/0022
    """
    entity = reader.entity.name
    rows = tuple(
        (
            phrase("{name}", name=person),
            phrase("{what}, until {day}", what=_describe_role(_drop_end(role)), day=_read_day(role.end_date)),
        )
        for person, role in roles[:MOST_LISTED]
    )
    parts: tuple[EmailPart, ...] = (
        counted(
            count,
            "{count} role of a person at {entity} ends within 30 days.",
            "{count} roles of people at {entity} end within 30 days.",
            entity=entity,
        ),
        Facts(rows),
        *_count_further(count),
        phrase("Extend what is still needed. The people concerned have been told."),
        _link_portal(reader, phrase("See access that ends soon"), "ending"),
    )
    subject = phrase("Access of people at {entity} ends soon", entity=entity)
    return _build_email(reader, subject, phrase("Extend what is still needed."), parts)


def build_owner_email(
    reader: Reader, changes: Sequence[tuple[str, str]], *, by: Sequence[str | Phrase], at: int
) -> Email:
    """Owners of an entity were appointed or are none any more.

    `changes` are appointed or ended, and the person's name; `by` names who did it, if known. Source:
    docs/decisions/0022
    """
    entity = reader.entity.name
    words = {"appointed": phrase("New owner"), "ended": phrase("No longer an owner")}
    rows = [(words[change], name) for change, name in changes[:MOST_LISTED]]
    parts: tuple[EmailPart, ...] = (
        phrase("The owners of {entity} have changed. Owners can do everything for it.", entity=entity),
        Facts((*rows, *_describe_making(by, at))),
        *_count_further(len(changes)),
        phrase("If you did not expect this, ask another administrator of {entity} now.", entity=entity),
        _link_portal(reader, phrase("See the administrators"), "administrators"),
    )
    first, name = changes[0]
    if len(changes) == 1 and first == "appointed":
        subject = phrase("{name} is now an owner of {entity}", name=name, entity=entity)
    elif len(changes) == 1:
        subject = phrase("{name} is no longer an owner of {entity}", name=name, entity=entity)
    else:
        subject = phrase("The owners of {entity} have changed", entity=entity)
    preview = phrase("If you did not expect this, ask another administrator of {entity} now.", entity=entity)
    return _build_email(reader, subject, preview, parts)


def build_token_email(reader: Reader, tokens: Sequence[tuple[str, int]]) -> Email:
    """Provisioning tokens end soon; each with its name and end.

    Source: docs/decisions/0022
    """
    entity = reader.entity.name
    rows = tuple((phrase("{name}", name=name), to_email_time(ends)) for name, ends in tokens[:MOST_LISTED])
    parts: tuple[EmailPart, ...] = (
        counted(
            len(tokens),
            "A provisioning token of {entity} works until:",
            "{count} provisioning tokens of {entity} work until:",
            entity=entity,
        ),
        Facts(rows),
        phrase(
            "Create another token before then. Otherwise {entity}'s own directory stops updating people here.",
            entity=entity,
        ),
        _link_portal(reader, phrase("See the tokens"), "tokens"),
    )
    if len(tokens) == 1:
        subject = phrase("The provisioning token {name} of {entity} ends soon", name=tokens[0][0], entity=entity)
    else:
        subject = phrase("Provisioning tokens of {entity} end soon", entity=entity)
    return _build_email(reader, subject, phrase("Create another one before then."), parts)


def build_waiting_email(reader: Reader, requests: Sequence[RequestInWords], count: int) -> Email:
    """Requests wait for the decision of a person; `count` says how many.

    `requests` are those that are named. Source: docs/decisions/0022
    """
    entity, first = reader.entity.name, requests[0]
    rows: list[tuple[tuple[Phrase, str | datetime], ...]] = [
        (
            (_CHANGE, each.change),
            (phrase("Requested by"), each.requester),
            (_REASON, each.record.reason),
            (phrase("Decide by"), to_email_time(each.record.created_at + LIFETIME_SECONDS)),
        )
        for each in requests
    ]
    lead = counted(
        count,
        "Somebody at {entity} asks for a change that you can approve or decline:",
        "People at {entity} ask for {count} changes that you can approve or decline:",
        entity=entity,
    )
    if count == 1:
        subject = phrase("Request at {entity}: {change}", entity=entity, change=first.change)
        preview = phrase("Requested by {name}. Approve or decline it within 14 days.", name=first.requester)
        action = _link_portal(reader, phrase("See the request"), _request_page(first))
        command = f"corpid approval show {first.record.request_id}"
    else:
        subject = phrase("{count} requests at {entity} need your decision", count=count, entity=entity)
        preview = phrase("Approve or decline them within 14 days.")
        action = _link_portal(reader, phrase("See the requests"), "requests")
        command = f"corpid approval list --entity {reader.entity.entity_id}"
    by_command = phrase(
        "Nobody at {entity} can decide at present. As an operator, use the command {command}.",
        entity=entity,
        command=command,
    )
    end = by_command if reader.as_operator else action
    parts = (lead, *_list_requests(reader, requests, rows), *_count_further(count), end)
    return _build_email(reader, subject, preview, parts)


def build_comments_email(
    reader: Reader, requests: Sequence[RequestInWords], count: int, new_comments: Mapping[str, Collection[int]]
) -> Email:
    """Others have commented on requests; `count` says on how many.

    `requests` are those that are named, `new_comments` their numbers, from 1, by request. Source: D55
    """
    entity, first = reader.entity.name, requests[0]
    own = f"user:{reader.user.user_id}"
    new = [
        [one for number, one in enumerate(each.comments, start=1) if number in new_comments[each.record.request_id]]
        for each in requests
    ]
    rows: list[tuple[tuple[Phrase, str | datetime], ...]] = [
        ((_CHANGE, each.change), *((phrase("{name} wrote", name=author), comment.text) for comment, author in some))
        for each, some in zip(requests, new, strict=True)
    ]
    _, author = new[0][-1]
    of_own = all(is_asked_for_oneself(each.record) and each.record.requester == own for each in requests)
    if count == 1:
        subject = phrase("Comment on a request at {entity}: {change}", entity=entity, change=first.change)
        action = _link_portal(reader, phrase("See the request"), _request_page(first))
    else:
        subject = phrase("Comments on {count} requests at {entity}", count=count, entity=entity)
        action = _link_portal(reader, phrase("See the requests"), "requests")
    parts = (
        *_list_requests(reader, requests, rows),
        *_count_further(count),
        _link_access(reader) if of_own else action,
    )
    return _build_email(reader, subject, phrase("{name} wrote a comment.", name=author), parts)


def build_decided_email(reader: Reader, requests: Sequence[RequestInWords], count: int) -> Email:
    """Requests of a person were decided; `count` says how many.

    `requests` are those that are named. Source: docs/decisions/0022
    """
    entity, first = reader.entity.name, requests[0]
    rows: list[tuple[tuple[Phrase, str | datetime], ...]] = [
        (
            (_CHANGE, each.change),
            (phrase("Outcome"), _OUTCOMES[each.record.state]),
            *([(phrase("Decided by"), each.decided_by)] if each.decided_by else []),
            *([(_REASON, decision_reason(each.record))] if each.record.decided_reason else []),
            (phrase("Requested"), to_email_time(each.record.created_at)),
        )
        for each in requests
    ]
    lead = counted(
        count,
        "This is the decision about your request at {entity}:",
        "These are the decisions about {count} requests of yours at {entity}:",
        entity=entity,
    )
    if count == 1:
        subject = _DECISIONS[first.record.state](entity=entity, change=first.change)
    else:
        subject = phrase("{count} of your requests at {entity} were decided", count=count, entity=entity)
    reason = decision_reason(first.record) if first.record.decided_reason else ""
    preview = phrase("Reason: {reason}", reason=reason) if reason else _OUTCOMES[first.record.state]
    if all(is_asked_for_oneself(each.record) for each in requests):
        action = _link_access(reader)
    elif count == 1:
        action = _link_portal(reader, phrase("See your request"), _request_page(first))
    else:
        action = _link_portal(reader, phrase("See your requests"), "requests")
    parts = (lead, *_list_requests(reader, requests, rows), *_count_further(count), action)
    return _build_email(reader, subject, preview, parts)


def _list_requests(
    reader: Reader, requests: Sequence[RequestInWords], rows: Sequence[tuple[tuple[Phrase, str | datetime], ...]]
) -> Iterable[EmailPart]:
    """The facts of each request.

    If there are several, each has its own address.
    """
    for request, facts in zip(requests, rows, strict=True):
        yield Facts(facts)
        if len(requests) > 1 and not reader.as_operator and not is_asked_for_oneself(request.record):
            yield UrlLine(_portal_url(reader, _request_page(request)))


def _request_page(request: RequestInWords) -> str:
    return f"requests/{quote(request.record.request_id, safe='')}"


def build_review_email(reader: Reader, *, due: date, again: bool) -> Email:
    """The yearly access review of an entity is due.

    Its link is to the review of this entity, and chooses none. Source: D54, docs/decisions/0022
    """
    entity = reader.entity.name
    lead = (
        phrase("The yearly access review of {entity} has been due since {day}.", entity=entity, day=due)
        if again
        else phrase("The yearly access review of {entity} is due.", entity=entity)
    )
    parts: tuple[EmailPart, ...] = (
        lead,
        phrase(
            "Review what each person may do, keep it or end it, and sign off the review. An administrator can help."
        ),
        _link_portal(reader, phrase("See the access review"), REVIEW_PAGE),
    )
    subject = (
        phrase("The access review of {entity} is overdue", entity=entity)
        if again
        else phrase("The access review of {entity} is due", entity=entity)
    )
    return _build_email(reader, subject, phrase("Review what each person may do, keep it or end it."), parts)


def _build_email(reader: Reader, subject: Phrase, preview: Phrase, parts: tuple[EmailPart, ...]) -> Email:
    user = reader.user
    return Email(to=user.email, subject=subject, preview=preview, name=user.name, parts=parts, language=user.language)


def _describe_making(by: Sequence[str | Phrase], at: int) -> tuple[tuple[Phrase, str | datetime], ...]:
    """The authors and the time of changes."""
    when: tuple[Phrase, str | datetime] = (_WHEN, to_email_time(at))
    return ((_BY, phrase("{name}", name=tuple(by))), when) if by else (when,)


def _link_access(reader: Reader) -> Action:
    return Action(text=phrase("See your access"), url=f"{reader.deployment_url}{PATHS['account']}/access")


def _link_portal(reader: Reader, text: Phrase, page: str) -> Action:
    return Action(text=text, url=_portal_url(reader, page))


def _portal_url(reader: Reader, page: str) -> str:
    return f"{reader.deployment_url}{MANAGE_PATH}/{page}?{OF_ENTITY}={quote(reader.entity.entity_id, safe='')}"


def _count_further(count: int) -> Iterable[Phrase]:
    left = count - MOST_LISTED
    if left > 0:
        yield counted(left, "There is {count} more.", "There are {count} more.")


def _describe_change(change: AccessChange, entity: str) -> Phrase:
    if change.role is not None:
        return _describe_role(change.role if change.change in {"given", "changed"} else _drop_end(change.role))
    if change.level:
        return phrase("administration of {entity}, as {level}", entity=entity, level=_LEVELS[change.level])
    return phrase("acting for {entity}", entity=entity)


def _drop_end(role: RoleNames) -> RoleNames:
    return msgspec.structs.replace(role, end_date="")


def _describe_role(role: RoleNames) -> Phrase:
    said = (
        phrase("{role} at {service}", role=role.role, service=role.service)
        if role.role
        else phrase("access to {service}", service=role.service)
    )
    if role.sub_entity:
        said = phrase("{what}, for the part “{part}”", what=said, part=quoted(role.sub_entity))
    if role.client:
        said = phrase("{what}, for {client}", what=said, client=role.client)
    if role.end_date and role.end_date != NO_END:
        said = phrase("{what}, until {day}", what=said, day=_read_day(role.end_date))
    return said


def _describe_last_day(day: str) -> Phrase:
    return phrase("Until {day}", day=_read_day(day))


def _read_day(day: str) -> date | str:
    try:
        return date.fromisoformat(day)
    except ValueError:
        return day
