"""Changes and entries of the audit in sentences (D55, D57, D61).

The portal's history and the audit of the console have the same: names that come as links stay links, and an action of
many entries is one line that unfolds.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import date, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from corpid.flows.directory.write import ACTIONS
from corpid.flows.operations import history
from corpid.flows.operations.history import HistoryNames, acting_for, noun, person_of, service_of
from corpid.rules.audit import BYPASSED, INVITATION, INVITED_PERSON, ROLE_PARTS, AuditAction, AuditEntry, AuditPart
from corpid.rules.directory.access_texts import (
    ENDINGS,
    GONE,
    LEADING,
    MOST_NAMED,
    RequestNames,
    name_actor,
    name_parts,
    say_done,
    title_changes,
)
from corpid.rules.directory.names import label_identity, label_invited, set_apart
from corpid.rules.directory.records import RECORDS, Change
from corpid.rules.directory.values import NO_BEGINNING, NO_END, Parameter
from corpid.rules.fields import Field, fields_of
from corpid.texts import Phrase, counted, phrase
from corpid.web.pages.components import Cell, Details, TimelineEntry, Value, ViewPart

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from zoneinfo import ZoneInfo

    import msgspec


class DisplayValue(ViewPart, frozen=True, kw_only=True):
    """A value as a page shows it: a day, or a text."""

    text: str = ""
    day: date | None = None


class MemberChange(ViewPart, frozen=True, kw_only=True):
    """A member before and after; empty: it had, or has, none."""

    name: Phrase
    before: DisplayValue
    after: DisplayValue


def describe_members(change: Change, names: RequestNames) -> list[MemberChange]:
    """Members of a change that differ, as people read them. Source: D55"""
    return list(_compare_members(change.before, change.after, names))


_STATES: Final = {"offered": phrase("offered"), "accepted": phrase("active")}
_WITHOUT_NEWS: Final = frozenset({"state", "enabled"})
"""members that say nothing new about a record that is added or removed"""


def _compare_members(
    was: msgspec.Struct | None, becomes: msgspec.Struct | None, names: RequestNames
) -> Iterator[MemberChange]:
    record = becomes or was
    for member, field in fields_of(type(record)).items() if record is not None else ():
        if field.label is None:
            continue
        before, after = (
            _display(field, getattr(each, member), names) if each else DisplayValue() for each in (was, becomes)
        )
        whole = was is None or becomes is None
        if before != after and not (whole and member in _WITHOUT_NEWS):
            yield MemberChange(name=field.label, before=before, after=after)


def _display(field: Field, value: object, names: RequestNames) -> DisplayValue:
    member = field.name
    if member in {"start_date", "end_date"}:
        return DisplayValue() if value in {NO_BEGINNING, NO_END} else DisplayValue(day=date.fromisoformat(str(value)))
    if member == "parameters":
        return DisplayValue(text=list_parameters(value))  # type: ignore[arg-type]
    if member == "services":
        if not isinstance(value, tuple):
            return DisplayValue(text=phrase("every service"))
        return DisplayValue(text=", ".join(names.services.get(each, each) for each in value))
    if isinstance(value, bool):
        return DisplayValue(text=phrase("yes") if value else phrase("no"))
    if member in {"email", "user_name"}:
        return DisplayValue(text=str(value).lower())  # a capital I looks like a small l (D68)
    known = _STATES if member == "state" else field.choices
    return DisplayValue(text=known.get(str(value), str(value)))


def list_parameters(parameters: Iterable[Parameter]) -> str:
    """Parameters in one line, the values of each together. Source: R-14.1"""
    found: dict[str, list[str]] = {}
    for each in parameters:
        found.setdefault(each.name, []).append(set_apart(each.value))
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in found.items())


KINDS: Final[Mapping[str, Phrase]] = {
    "people": phrase("People"),
    "access": phrase("Access"),
    "third-parties": phrase("Third parties"),
    "administrators": phrase("Administrators and tokens"),
    "requests": phrase("Requests"),
    "settings": phrase("Settings"),
}
"""kind of change → its name"""

_OF_PERSON: Final[Mapping[str, Callable[[str | Phrase], Phrase]]] = {
    AuditAction.MEMBERSHIP_ADD: lambda name: phrase("{name} can act for the organisation", name=name),
    AuditAction.MEMBERSHIP_INVITE: lambda name: phrase("{name} was invited", name=name),
    AuditAction.MEMBERSHIP_UPDATE: lambda name: phrase("The membership of {name} was changed", name=name),
    AuditAction.MEMBERSHIP_REMOVE: lambda name: phrase("{name} can no longer act for the organisation", name=name),
    AuditAction.MEMBERSHIP_ACCEPT: lambda name: phrase("{name} accepted the invitation", name=name),
    AuditAction.MEMBERSHIP_RESEND: lambda name: phrase("The invitation of {name} was sent again", name=name),
    AuditAction.MEMBERSHIP_DECLINE: lambda name: phrase("{name} declined the invitation", name=name),
    AuditAction.MEMBERSHIP_SEND_PASSWORD_LINK: lambda name: phrase(
        "Help for {name} with signing in: a link for a new password", name=name
    ),
    AuditAction.MEMBERSHIP_SEND_SECOND_FACTOR_LINK: lambda name: phrase(
        "Help for {name} with signing in: a link for a new second step", name=name
    ),
    AuditAction.MEMBERSHIP_UNLOCK: lambda name: phrase(
        "Help for {name} with signing in: unlocking the account", name=name
    ),
    AuditAction.ACCESS_REVIEW_KEEP: lambda name: phrase("The access of {name} was kept in a review", name=name),
    AuditAction.ADMINISTRATOR_ADD: lambda name: phrase("{name} became an administrator", name=name),
    AuditAction.ADMINISTRATOR_UPDATE: lambda name: phrase("The level of {name} was changed", name=name),
    AuditAction.ADMINISTRATOR_REMOVE: lambda name: phrase("{name} no longer administers the organisation", name=name),
}
_OF_SWITCH: Final[Mapping[object, Callable[[str | Phrase], Phrase]]] = {
    False: lambda name: phrase("The membership of {name} was suspended", name=name),
    True: lambda name: phrase("The membership of {name} was restored", name=name),
}
"""whether a changed membership is enabled → its sentence"""
_OF_LEVEL: Final[Mapping[object, Callable[[str | Phrase], Phrase]]] = {
    "owner": lambda name: phrase("{name} became an owner", name=name),
    "sub_administrator": lambda name: phrase("{name} became a sub-administrator", name=name),
}
"""level of a new administrator → its sentence"""
_OF_ROLE: Final[Mapping[str, Callable[..., Phrase]]] = {
    AuditAction.ASSIGNMENT_ADD: lambda **named: phrase("{name} got access as {role} at {service}", **named),
    AuditAction.ASSIGNMENT_UPDATE: lambda **named: phrase(
        "The access of {name} as {role} at {service} was changed", **named
    ),
    AuditAction.ASSIGNMENT_REMOVE: lambda **named: phrase("{name} lost access as {role} at {service}", **named),
    AuditAction.THIRD_PARTY_ASSIGNMENT_ADD: lambda **named: phrase(
        "{name} of {third_party} got access as {role} at {service} for {client}", **named
    ),
    AuditAction.THIRD_PARTY_ASSIGNMENT_UPDATE: lambda **named: phrase(
        "The access of {name} of {third_party} as {role} at {service} for {client} was changed", **named
    ),
    AuditAction.THIRD_PARTY_ASSIGNMENT_REMOVE: lambda **named: phrase(
        "{name} of {third_party} lost access as {role} at {service} for {client}", **named
    ),
}
_OF_ROLELESS: Final[Mapping[str, Callable[..., Phrase]]] = {
    AuditAction.ASSIGNMENT_ADD: lambda **named: phrase("{name} got access at {service}", **named),
    AuditAction.ASSIGNMENT_UPDATE: lambda **named: phrase("The access of {name} at {service} was changed", **named),
    AuditAction.ASSIGNMENT_REMOVE: lambda **named: phrase("{name} lost access at {service}", **named),
    AuditAction.THIRD_PARTY_ASSIGNMENT_ADD: lambda **named: phrase(
        "{name} of {third_party} got access at {service} for {client}", **named
    ),
    AuditAction.THIRD_PARTY_ASSIGNMENT_UPDATE: lambda **named: phrase(
        "The access of {name} of {third_party} at {service} for {client} was changed", **named
    ),
    AuditAction.THIRD_PARTY_ASSIGNMENT_REMOVE: lambda **named: phrase(
        "{name} of {third_party} lost access at {service} for {client}", **named
    ),
}
_OF_GRANT: Final[Mapping[str, Callable[..., Phrase]]] = {
    AuditAction.GRANT_OFFER: lambda **named: phrase(
        "{client} offers {third_party} to act for it at {service}", **named
    ),
    AuditAction.GRANT_ACCEPT: lambda **named: phrase("{third_party} agreed to act for {client} at {service}", **named),
    AuditAction.GRANT_DECLINE: lambda **named: phrase(
        "{third_party} declined to act for {client} at {service}", **named
    ),
    AuditAction.GRANT_WITHDRAW: lambda **named: phrase(
        "The offer of {client} to {third_party} for {service} was withdrawn", **named
    ),
    AuditAction.GRANT_END: lambda **named: phrase("{third_party} no longer acts for {client} at {service}", **named),
    AuditAction.GRANT_ADD: lambda **named: phrase("{third_party} may act for {client} at {service}", **named),
    AuditAction.GRANT_UPDATE: lambda **named: phrase(
        "What {third_party} may do for {client} at {service} was changed", **named
    ),
    AuditAction.GRANT_REMOVE: lambda **named: phrase("{third_party} no longer acts for {client} at {service}", **named),
}
_OF_REQUEST: Final[Mapping[str, Callable[[Phrase], Phrase]]] = {
    AuditAction.APPROVAL_REQUEST: lambda change: phrase("A change was requested: {change}", change=change),
    AuditAction.APPROVAL_APPROVE: lambda change: phrase("A request was approved: {change}", change=change),
    AuditAction.APPROVAL_DECLINE: lambda change: phrase("A request was declined: {change}", change=change),
    AuditAction.APPROVAL_WITHDRAW: lambda change: phrase("A request was withdrawn: {change}", change=change),
    AuditAction.APPROVAL_COMMENT: lambda change: phrase("A comment was added to a request: {change}", change=change),
    AuditAction.APPROVAL_EXPIRE: lambda change: phrase("A request expired after 14 days: {change}", change=change),
}
_PLAIN: Final[Mapping[str, Phrase]] = {
    **{each: each.summary for each in (AuditAction.ACCESS_REVIEW_BEGIN, AuditAction.ACCESS_REVIEW_SIGN_OFF)},
    AuditAction.APPROVAL_REQUEST: phrase("A change was requested"),
    AuditAction.APPROVAL_APPROVE: phrase("A request was approved"),
    AuditAction.APPROVAL_DECLINE: phrase("A request was declined"),
    AuditAction.APPROVAL_WITHDRAW: phrase("A request was withdrawn"),
    AuditAction.APPROVAL_COMMENT: AuditAction.APPROVAL_COMMENT.summary,
    AuditAction.APPROVAL_EXPIRE: phrase("A request expired after 14 days"),
    AuditAction.PROVISIONING_TOKEN_ADD: phrase("A provisioning token was created"),
    AuditAction.PROVISIONING_TOKEN_REMOVE: phrase("A provisioning token was revoked"),
    AuditAction.ENTITY_ADD: phrase("The organisation was added"),
    AuditAction.ENTITY_UPDATE: phrase("The organisation's settings were changed"),
    AuditAction.ENTITY_REMOVE: phrase("The organisation was removed"),
    AuditAction.ENTITY_ENABLE: phrase("The organisation was enabled"),
    AuditAction.ENTITY_DISABLE: phrase("The organisation was disabled"),
}

_ACTIONS: Final = frozenset(action.value for action in AuditAction)

_MEMBERS: Final[Mapping[str, Phrase]] = {
    "service_id": phrase("Service"),
    "enabled": phrase("Active"),
    "invited": phrase("Invited"),
    "reason": phrase("Reason"),
    "decided_reason": phrase("Reason for the decision"),
    "expires_at": phrase("Valid until"),
}
"""members that are shown though requests do not name them; the others are keys and bookkeeping"""
_RECORDS: Final = {str(ACTIONS[kind, "add"]).partition(".")[0]: record for kind, record in RECORDS.items()}
"""noun of an audit action → its record"""
_OTHER_VALUES: Final[Mapping[tuple[str, str], Phrase]] = {
    ("services", "all"): phrase("Every service"),
    ("state", "pending"): phrase("Waiting"),
    ("state", "approved"): phrase("Approved"),
    ("state", "declined"): phrase("Declined"),
    ("state", "withdrawn"): phrase("Withdrawn"),
    ("state", "expired"): phrase("Expired"),
    ("state", "offered"): phrase("Offered"),
    ("state", "accepted"): phrase("Active"),
    ("start_date", NO_BEGINNING): phrase("Always"),
    ("end_date", NO_END): phrase("No end"),
}


def describe_entry(entry: AuditEntry, names: HistoryNames) -> Phrase:
    """The sentence of an entry, without a full stop."""
    action = entry.action
    if action == AuditAction.ADMINISTRATOR_ADD and (level := _OF_LEVEL.get(entry.after.get("level"))):
        return level(name_person(entry, names))
    if action == AuditAction.MEMBERSHIP_UPDATE and (switch := _OF_SWITCH.get(entry.after.get("enabled"))):
        return switch(name_person(entry, names))
    if action == AuditAction.MEMBERSHIP_ACCEPT and (invitation := entry.detail.get(INVITATION)):
        accepted = label_invited(invitation)
        return phrase("{name} accepted the invitation of {invited}", name=name_person(entry, names), invited=accepted)
    if action in _OF_PERSON:
        return _OF_PERSON[action](name_person(entry, names))
    if action in _OF_ROLE or action in _OF_GRANT:
        return _describe_right(entry, names)
    if changes := names.requests.changes.get(entry.object):
        return _OF_REQUEST[action](title_changes(changes, names.requests.names[entry.object]))
    if action in _PLAIN:
        return _PLAIN[action]
    done = AuditAction(action).summary if action in _ACTIONS else phrase("Another change")
    about = name_object(entry, names)
    return phrase("{change}: {object}", change=done, object=about) if about else done


def _describe_right(entry: AuditEntry, names: HistoryNames) -> Phrase:
    """The sentence of an entry about a role or an authorisation."""
    action, (role, *further) = entry.action, _name_right(entry)
    service = _name_service(entry, names, "" if action in _OF_ROLE else role, *further)
    own, other = _entity(entry.entity_id, names), _entity(entry.other_entity_id, names)
    if action in _OF_GRANT:
        if action == AuditAction.GRANT_ADD and entry.after.get("state") == "offered":
            action = AuditAction.GRANT_OFFER  # nobody may act before the third party accepts
        return _OF_GRANT[action](client=own, third_party=other, service=service)
    named = {"name": name_person(entry, names), "service": service}
    if noun(entry) == "third_party_assignment":
        named |= {"third_party": own, "client": other}
    return _OF_ROLE[action](**named, role=role) if role else _OF_ROLELESS[action](**named)


def _name_service(entry: AuditEntry, names: HistoryNames, *parts: str) -> str | Phrase:
    """The service of an entry, with these parts of its role."""
    service_id = service_of(entry)
    service, limits = names.services.get(service_id, service_id), name_parts(*parts)
    return phrase("{service} ({limits})", service=service, limits=limits) if limits else service


def describe_entries(entries: Sequence[AuditEntry], names: HistoryNames, *, is_cut: bool = False) -> Phrase:
    """The sentence of changes that were made together, the latest first.

    Alike ones are counted, with the first names; `is_cut` says that there are more.
    """
    first, number = describe_entry(entries[-1], names), len(entries) - 1
    if not number:
        return first
    if not is_cut and (done := _say_done(entries, names)):
        return done
    if is_cut:
        return phrase("{change}, and at least {count} more changes", change=first, count=number)
    return counted(number, "{change}, and {count} more change", "{change}, and {count} more changes", change=first)


def _say_done(entries: Sequence[AuditEntry], names: HistoryNames) -> Phrase | None:
    """The sentence of entries of one kind.

    None if it left something unsaid. What comes with an invitation or an end goes without saying, except a level that is given.
    """
    kinds = [_kind_of(each) for each in entries]
    main = next((kind for kind in kinds if kind in LEADING), kinds[0])
    alike = [each for each, kind in zip(entries, kinds, strict=True) if kind == main]
    about = {(service_of(each), *_name_right(each)) for each in alike}
    people = {person_of(each): each for each in reversed(alike)}
    others = [each for each, kind in zip(entries, kinds, strict=True) if kind != main]
    implied = main in LEADING and all(
        person_of(each) in people and (main in ENDINGS or noun(each) != "administrator") for each in others
    )
    if (others and not implied) or len(about) > 1 or len(people) < len(alike):
        return None
    [(service_id, role, *further)] = about
    what: str | Phrase = names.services.get(service_id, service_id)
    if role:
        what = phrase("{role} at {service}", role=role, service=what)
    if limits := name_parts("", *further):
        what = phrase("{first}, {rest}", first=what, rest=limits)
    return say_done(main, [name_person(each, names) for each in people.values()], what)


def _kind_of(entry: AuditEntry) -> str:
    """The kind of an entry, as changes have it (`access_texts.kind_of`)."""
    if entry.action == AuditAction.MEMBERSHIP_UPDATE and entry.after.keys() <= {"enabled", "changed_at"}:
        return "restore" if entry.after.get("enabled") else "suspend"
    return _KINDS.get(entry.action, str(entry.action))


_KINDS: Final[Mapping[str, str]] = {
    AuditAction.MEMBERSHIP_INVITE: "invite",
    AuditAction.MEMBERSHIP_ADD: "join",
    AuditAction.MEMBERSHIP_REMOVE: "end",
    AuditAction.ASSIGNMENT_ADD: "assignment add",
    AuditAction.ASSIGNMENT_UPDATE: "assignment change",
    AuditAction.ASSIGNMENT_REMOVE: "assignment remove",
}


def name_object(entry: AuditEntry, names: HistoryNames) -> str:
    """The name of an object of an entry.

    Its key if it has none. Empty for a sign-in, whose key says nothing to people.
    """
    key, kind = entry.object, AuditAction(entry.action).object_kind if entry.action in _ACTIONS else ""
    known = {
        "user": names.people, "operator": names.people, "credentials": names.people, "service": names.services,
        "entity": names.entities, "client": names.clients,
    }.get(kind, {})  # fmt: skip
    name = known.get(key) or known.get(key.partition("/")[0]) or names.people.get(key)
    return name or ("" if kind == "sign_in" else key)


def _name_right(entry: AuditEntry) -> list[str]:
    """Role, part and reference in an entry on one.

    They end its object, which does not tell them apart if one has a slash: then its members do.
    """
    parts, at = entry.object.split("/"), 4 if noun(entry) == "third_party_assignment" else 3
    in_object = (
        parts[at:] if len(parts) == at + len(ROLE_PARTS) else ["/".join(parts[at:-2] or parts[at : at + 1]), "", ""]
    )
    members = (entry.detail, entry.after, entry.before)
    return [
        next((str(each[name]) for each in members if isinstance(each.get(name), str)), otherwise)
        for name, otherwise in zip(ROLE_PARTS, in_object, strict=True)
    ]


def name_person(entry: AuditEntry, names: HistoryNames) -> str | Phrase:
    """The name of an entry's person.

    Somebody invited is named as they were then, whatever became of the invitation. Source: D68
    """
    if invited := entry.detail.get(INVITED_PERSON):
        return label_invited(invited)
    return names.people.get(person_of(entry)) or _invited(entry.after) or _invited(entry.before) or GONE


def _invited(members: Mapping[str, object]) -> str:
    """The invited person of an entry, marked as invited.

    Nobody else is called by what an entity wrote (D68).
    """
    if members.get("invited") not in {True, "true"}:
        return ""
    address, name = (str(members.get(member) or "") for member in ("email", "name"))
    return label_identity(address.lower(), name, invited=True)


def _entity(entity_id: str, names: HistoryNames) -> str:
    return names.entities.get(entity_id, entity_id)


def name_author(actor: str, entry: AuditEntry, names: HistoryNames, own: str) -> str | Phrase:
    """The author of a change, as the entity may know them (D61)."""
    kind, _, identifier = actor.partition(":")
    if kind == "user":
        name = names.people.get(identifier, "")
        if name and identifier not in names.outside:
            return name
        other = entry.other_entity_id if entry.entity_id == own else entry.entity_id
        if acting_for(entry) == own:
            other = ""
        if name and other:
            return phrase("{name} of {entity}", name=name, entity=_entity(other, names))
        return phrase("Somebody of {entity}", entity=_entity(other, names)) if other else GONE
    if kind == "token" and entry.entity_id != own:
        return phrase("The system of {entity}", entity=_entity(entry.entity_id, names))
    return name_actor(actor, names.people)


def name_both(author: str | Phrase, approver: str | Phrase) -> str | Phrase:
    """The author of a change, with who approved it, if somebody did."""
    return phrase("{name}, approved by {approver}", name=author, approver=approver) if approver else author


def list_notes(entry: AuditEntry, names: HistoryNames, own: str) -> tuple[Phrase, ...]:
    """Sentences on the approval of a change."""
    found = []
    if approver := entry.detail.get("approved_by", ""):
        found.append(phrase("Approved by {name}.", name=name_author(approver, entry, names, own)))
    if entry.detail.get("approval") == BYPASSED:
        found.append(phrase("The operator made this change without the approval that such a change needs."))
    if entry.detail.get("cleared") == "user_name":
        found.append(
            phrase(
                "The user name that your organisation had entered was cleared: it is now another member's account user name."
            )
        )
    if entry.detail.get("self"):
        found.append(phrase("An owner changed this for themselves, as the only administrator."))
    if entry.outcome != "ok":
        found.append(phrase("It was refused."))
    return tuple(found)


def list_differences(
    entry: AuditEntry, names: HistoryNames, zone: ZoneInfo
) -> tuple[tuple[Phrase, tuple[str | Phrase, ...], tuple[str | Phrase, ...]], ...]:
    """The members of a change: name, values before, values after."""
    found = []
    record = _RECORDS.get(noun(entry))
    fields = fields_of(record) if record else {}
    declared = {each.name: each.label for each in fields.values() if each.label}
    for member, name in {**declared, **_MEMBERS, **declared}.items():
        if member in entry.before or member in entry.after:
            choices = fields[member].choices if member in fields else {}
            was, becomes = (
                _values(member, each.get(member), choices, names, zone) for each in (entry.before, entry.after)
            )
            found.append((name, was, becomes))
    return tuple(found)


def _values(
    member: str, value: object, choices: Mapping[str, Phrase], names: HistoryNames, zone: ZoneInfo
) -> tuple[str | Phrase, ...]:
    several = value if isinstance(value, list) else () if value in (None, "") else (value,)
    return tuple(choices.get(str(each)) or _one(member, each, names, zone) for each in several)


def _one(member: str, value: object, names: HistoryNames, zone: ZoneInfo) -> str | Phrase:
    if isinstance(value, bool):
        return phrase("Yes") if value else phrase("No")
    if isinstance(value, dict):  # a parameter
        return f"{value.get('name', '')} = {set_apart(str(value.get('value', '')))}"
    if member == "expires_at" and isinstance(value, int):
        return datetime.fromtimestamp(value, zone).date().isoformat()
    text = str(value).lower() if member in {"email", "user_name"} else str(value)
    if (member, text) in _OTHER_VALUES:
        return _OTHER_VALUES[member, text]
    if member in {"services", "service_id"}:
        return names.services.get(text, text)
    if member in {"start_date", "end_date"} and _is_day(text):
        return f"{date.fromisoformat(text):%d %b %Y}".lstrip("0")
    return text


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


PAGE: Final = 50
"""entries that are read first"""
_FURTHER: Final = (500, 500)
"""entries that are read for the rest of an action of many"""
_UNFOLDED: Final = 100
"""entries of one action that are listed"""
_CHANGES: Final = frozenset(action for actions in history.KINDS.values() for action in actions)
"""actions of which one form may have several; the steps of a sign-in are not one"""


class Actions(NamedTuple):
    """Entries that were made together, the latest first."""

    groups: list[list[AuditEntry]]
    before: int
    """the place after them; 0: there are no more"""
    is_cut: bool = False
    """whether more belong to the last one than are read"""

    @property
    def named(self) -> list[AuditEntry]:
        """The entries whose names are shown."""
        return [each for some in self.groups for each in (*some[:_UNFOLDED], *_list_earliest(some))]


def _list_earliest(entries: list[AuditEntry]) -> list[AuditEntry]:
    """The earliest entries of each action, which a sentence names."""
    of_action: defaultdict[str, list[AuditEntry]] = defaultdict(list)
    for each in entries:
        of_action[each.action].append(each)
    return [each for alike in of_action.values() for each in alike[-MOST_NAMED:]]


async def read_actions(read: Callable[[int, int], Awaitable[AuditPart]], *, before: int, most: int) -> Actions:
    """Read entries together by batch, approved request or form.

    `read` takes a place and a limit.
    """
    entries: list[AuditEntry] = []
    groups: list[list[AuditEntry]] = []
    for limit in (PAGE, *_FURTHER):
        found = await read(before, limit)
        entries, before = [*entries, *found.entries], found.before
        groups = [list(some) for _, some in groupby(entries, _name_action)]
        if not before or len(groups) > most or not entries or len(groups[-1]) == 1:
            break
    if len(groups) > most:
        return Actions(groups[:most], groups[most - 1][-1].number)
    return Actions(groups, before, is_cut=bool(before) and len(groups) > 0 and len(groups[-1]) > 1)


def _name_action(entry: AuditEntry) -> tuple[str, str]:
    """The action of an entry, with its author: a line names one."""
    together = entry.detail.get("batch") or entry.approval
    return together or (entry.request_id if entry.action in _CHANGES else "") or str(entry.number), entry.actor


def fold_actions(
    found: Actions, names: HistoryNames, line: Callable[[AuditEntry], TimelineEntry]
) -> tuple[TimelineEntry, ...]:
    """Each action in a line; `line` is that of one entry."""
    lines = []
    for some in found.groups:
        first = line(some[-1])
        if len(some) > 1:
            is_cut = found.is_cut and some is found.groups[-1]
            listed: list[Value] = [line(each).text for each in some[:_UNFOLDED]]
            left = len(some) - len(listed)
            if left or is_cut:
                more = (
                    phrase("And at least {count} more", count=left)
                    if is_cut
                    else phrase("And {count} more", count=left)
                )
                listed.append(more)
            text = describe_entries(some, names, is_cut=is_cut)
            first = replace(first, text=Cell(values=(text,), notes=(Details(about="", facts=(), items=tuple(listed)),)))
        lines.append(first)
    return tuple(lines)
