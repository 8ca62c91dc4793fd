"""Notices by e-mail about the administration of entities: which, and to whom.

A notice is queued with the facts that nobody can look up later, such as who an owner was; other names are looked up
when its e-mail is written. Those of one person, kind and entity go into one e-mail.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

from corpid.rules.audit import COMMENT, INVITED_PERSON, AuditAction, AuditEntry
from corpid.rules.directory.access import EntityAdministrator, Forbidden, Object, authorise
from corpid.rules.directory.records import (
    Administrator,
    AppointmentStatus,
    Assignment,
    ChangeRequest,
    ThirdPartyAssignment,
)
from corpid.rules.fields import KEY, OF_ENTITY, PERSON
from corpid.rules.limits import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken

NoticeKind: TypeAlias = Literal[
    "access", "access_ends", "access_of_others_ends", "owner", "token", "request", "comment", "decision", "review"
]

WAITED_FOR: Final[tuple[NoticeKind, ...]] = ("comment", "decision", "request")
"""kinds that somebody waits for: they leave before all that came up to `HEAD_START_SECONDS` earlier"""
HEAD_START_SECONDS: Final = HOUR
COLLECTED_SECONDS: Final = 2 * MINUTE
"""how long changes of somebody's access are collected for one e-mail"""
ENDS_WITHIN_DAYS: Final = 30
TOKEN_ENDS_WITHIN_DAYS: Final = (30, 7)
OLDEST_CHANGE_SECONDS: Final = 2 * DAY
"""older entries of the audit make no notices: none were sent for a while"""
LONGEST_WAIT_SECONDS: Final = 7 * DAY
"""a notice that could not be sent for so long is no longer sent"""
KEPT_SECONDS: Final = 90 * DAY
"""how long a sent notice is kept"""

_WITHOUT_NOTICE: Final = frozenset({"file", "token"})
"""kinds of actors whose changes of access come from a register of the entity or the operator"""


def _of_kind(noun: str) -> dict[str, str]:
    """Actions on a kind of record → meaning for its person."""
    words = {"add": "given", "update": "changed", "remove": "ended"}
    return {AuditAction(f"{noun}.{verb}"): word for verb, word in words.items()}


_ROLES: Final[Mapping[str, str]] = _of_kind("assignment") | _of_kind("third_party_assignment")
_LEVELS: Final[Mapping[str, str]] = _of_kind("administrator")
_MEMBERSHIPS: Final = frozenset(
    {AuditAction.MEMBERSHIP_ADD, AuditAction.MEMBERSHIP_UPDATE, AuditAction.MEMBERSHIP_REMOVE}
)
_DECISIONS: Final = frozenset({AuditAction.APPROVAL_APPROVE, AuditAction.APPROVAL_DECLINE, AuditAction.APPROVAL_EXPIRE})
WATCHED: Final = tuple(
    sorted({*_ROLES, *_LEVELS, *_MEMBERSHIPS, *_DECISIONS, AuditAction.APPROVAL_REQUEST, AuditAction.APPROVAL_COMMENT})
)
"""the actions of the audit that make notices"""
_OF_ROLE: Final = ("service_id", "role", "sub_entity", "client_entity_id")
"""members of a role's key, in the order of an object's name without person and entity"""


class QueuedNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice to one person that waits to be sent."""

    user_id: Annotated[str, PERSON]
    kind: Annotated[NoticeKind, KEY]
    entity_id: Annotated[str, OF_ENTITY]
    subject: Annotated[str, KEY]
    """the occasion: there is one notice about it to a person"""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    created_at: int
    due_at: int


def person_of(entry: AuditEntry) -> str:
    """The person whose role, level or membership an entry is about.

    Source: docs/decisions/0022
    """
    return entry.object.partition("/")[0]


def of_access(entry: AuditEntry) -> QueuedNotice | None:
    """The notice to a person that somebody else changed their access.

    None if they did it themselves, if it comes from a directory file or SCIM, and if nothing changed for them. Source:
    D54, D57
    """
    kind, _, name = entry.actor.partition(":")
    user_id = person_of(entry)
    facts = _access_facts(entry)
    if kind in _WITHOUT_NOTICE or name == user_id or not facts:
        return None
    return QueuedNotice(
        user_id=user_id,
        kind="access",
        entity_id=entry.entity_id,
        subject=f"{entry.number:020}",
        facts={**facts, "by": entry.actor},
        created_at=entry.at,
        due_at=entry.at + COLLECTED_SECONDS,
    )


def _access_facts(entry: AuditEntry) -> dict[str, str]:
    """The facts of a change; none if it means nothing."""
    if entry.action in _ROLES:
        members = {**_key_members(entry), **entry.before, **entry.after}
        facts = {name: str(members[name]) for name in (*_OF_ROLE, "end_date") if members.get(name)}
        return {"what": "role", "change": _ROLES[entry.action], **facts}
    if entry.action in _LEVELS:
        level = str(entry.after.get("level") or entry.before.get("level") or "")
        return {"what": "level", "change": _LEVELS[entry.action], "level": level}
    if entry.action == AuditAction.MEMBERSHIP_ADD and not entry.after.get("invited"):
        return {"what": "membership", "change": "given"}
    if entry.action == AuditAction.MEMBERSHIP_REMOVE and not entry.before.get("invited"):
        return {"what": "membership", "change": "ended"}
    if entry.action == AuditAction.MEMBERSHIP_UPDATE and "enabled" in entry.after:
        return {"what": "membership", "change": "restored" if entry.after["enabled"] else "suspended"}
    return {}


def _key_members(entry: AuditEntry) -> dict[str, str]:
    """Members of a role's key, from the object of an entry."""
    _, _, *parts = entry.object.split("/")
    if entry.action == AuditAction.ASSIGNMENT_UPDATE and len(parts) == len(("service", "role", "sub-entity", "ref")):
        return dict(zip(_OF_ROLE, parts, strict=False))
    if entry.action == AuditAction.THIRD_PARTY_ASSIGNMENT_UPDATE and len(parts) == len(_OF_ROLE) + 1:
        return dict(zip(_OF_ROLE[:3], parts[1:], strict=False)) | {"client_entity_id": parts[0]}
    return {}


def owner_change(entry: AuditEntry) -> Literal["", "appointed", "ended"]:
    """Return how an entry changes who is an owner; else nothing. Source: D53"""
    if entry.action not in _LEVELS:
        return ""
    was, becomes = entry.before.get("level") == "owner", entry.after.get("level") == "owner"
    return "" if was is becomes else "appointed" if becomes else "ended"


def of_owner(
    entry: AuditEntry, label: str, administrators: Iterable[AppointmentStatus[Administrator]]
) -> list[QueuedNotice]:
    """The notices that an owner was appointed or is none any more.

    To every other administrator of the entity, except the one who did it. `label` is who it is. Source: D53, D68
    """
    _, _, by = entry.actor.partition(":")
    facts = {"change": owner_change(entry), "label": label, "by": entry.actor}
    facts |= {"invited": "yes"} if INVITED_PERSON in entry.detail else {}
    told = [each.record.user_id for each in administrators if each.enabled]
    others = [each for each in told if each not in {by, person_of(entry)}]
    subject, due_at = f"{entry.number:020}", entry.at + COLLECTED_SECONDS
    return _to_each(others, "owner", entry.entity_id, subject, facts, at=entry.at, due_at=due_at)


def _to_each(
    user_ids: Iterable[str],
    kind: NoticeKind,
    entity_id: str,
    subject: str,
    facts: dict[str, str],
    *,
    at: int,
    due_at: int,
) -> list[QueuedNotice]:
    """The same notice to several people."""
    return [
        QueuedNotice(
            user_id=each, kind=kind, entity_id=entity_id, subject=subject, facts=facts, created_at=at, due_at=due_at
        )
        for each in user_ids
    ]


def _list_owners(administrators: Iterable[AppointmentStatus[Administrator]]) -> list[str]:
    """The user identifiers of those owners who can act."""
    return [each.record.user_id for each in administrators if each.enabled and each.record.level == "owner"]


def is_still_told(kind: NoticeKind, level: Administrator | None) -> bool:
    """Return whether this level still gets a notice.

    None: they administer the entity no longer, or never did. Source: D53, D61
    """
    match kind:
        case "token" | "review":
            return level is not None and level.level == "owner"
        case "access_of_others_ends":
            return level is not None and level.approves
        case "owner":
            return level is not None
    return True


def is_request(entry: AuditEntry) -> bool:
    """Return whether an entry is about a new change request. Source: D55"""
    return entry.action == AuditAction.APPROVAL_REQUEST


def is_decision(entry: AuditEntry) -> bool:
    """Return whether a request was decided, or expired. Source: D55"""
    return entry.action in _DECISIONS


def may_approve(held: Administrator, thing: Object, *, now: float) -> bool:
    """Return whether the rules let an administrator decide on a request. Source: D55"""
    actor = EntityAdministrator(
        user_id=held.user_id,
        entity_id=held.entity_id,
        level=held.level,
        services=held.services,
        alone=False,
        auth_time=now,
        now=now,
    )
    try:
        authorise(actor, "write", thing)
    except Forbidden:
        return False
    return True


def of_request(entry: AuditEntry, user_ids: Iterable[str]) -> list[QueuedNotice]:
    """The notices about a request that waits or was decided.

    Source: docs/decisions/0022
    """
    kind: NoticeKind = "request" if is_request(entry) else "decision"
    return _to_each(user_ids, kind, entry.entity_id, entry.object, {}, at=entry.at, due_at=entry.at)


def of_comment(entry: AuditEntry, request: ChangeRequest) -> list[QueuedNotice]:
    """The notices about a comment on a request.

    To its requester and to those who commented before, except its author. Source: D55, docs/decisions/0022
    """
    number = int(entry.detail[COMMENT])
    before = (each.author for each in request.comments[: number - 1])
    actors = {request.requester, *before} - {entry.actor}
    told = sorted(user_id for kind, _, user_id in (each.partition(":") for each in actors) if kind == "user")
    subject, due_at = f"{entry.object}/{entry.number:020}", entry.at + COLLECTED_SECONDS
    facts = {COMMENT: str(number)}
    return _to_each(told, "comment", entry.entity_id, subject, facts, at=entry.at, due_at=due_at)


def last_day_told(today: date) -> str:
    """The last day of roles whose end is near.

    Source: docs/decisions/0022
    """
    return (today + timedelta(days=ENDS_WITHIN_DAYS)).isoformat()


def of_end(row: Assignment | ThirdPartyAssignment, *, now: float) -> QueuedNotice:
    """The notice to a person that a role ends.

    Source: docs/decisions/0022
    """
    facts = {name: str(getattr(row, name, "")) for name in (*_OF_ROLE, "ref", "end_date")}
    client = row.client_entity_id if isinstance(row, ThirdPartyAssignment) else ""
    parts = (row.end_date, row.service_id, row.role, row.sub_entity, row.ref, client)
    return QueuedNotice(
        user_id=row.user_id,
        kind="access_ends",
        entity_id=row.entity_id,
        subject="/".join(parts),
        facts={name: value for name, value in facts.items() if value},
        created_at=int(now),
        due_at=int(now) + COLLECTED_SECONDS,
    )


def of_ends(end_date: str, held: AppointmentStatus[Administrator], *, now: float) -> QueuedNotice:
    """The notice to an administrator that roles end on a day.

    Source: docs/decisions/0022
    """
    return QueuedNotice(
        user_id=held.record.user_id,
        kind="access_of_others_ends",
        entity_id=held.record.entity_id,
        subject=end_date,
        created_at=int(now),
        due_at=int(now) + COLLECTED_SECONDS,
    )


def of_token(
    token: RegisteredProvisioningToken,
    days: int,
    administrators: Iterable[AppointmentStatus[Administrator]],
    *,
    now: float,
) -> list[QueuedNotice]:
    """The notices to owners that a provisioning token ends.

    None if it was made for fewer days. Source: D60
    """
    if token.expires_at - token.created_at <= days * DAY:
        return []
    owners, subject, facts = _list_owners(administrators), f"{token.token_id}/{days}", {"token": token.token_id}
    return _to_each(owners, "token", token.entity_id, subject, facts, at=int(now), due_at=int(now))


def of_review(
    entity_id: str, due_at: int, administrators: Iterable[AppointmentStatus[Administrator]], *, again: bool, now: float
) -> list[QueuedNotice]:
    """The notices to owners about a due access review.

    Source: docs/decisions/0022
    """
    owners, subject = _list_owners(administrators), f"{due_at}{'/again' if again else ''}"
    facts = {"due_at": str(due_at), **({"again": "true"} if again else {})}
    return _to_each(owners, "review", entity_id, subject, facts, at=int(now), due_at=int(now))


class NoticeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Notices that one e-mail is about."""

    user_id: str
    kind: NoticeKind
    entity_id: str
