"""Levels and roles in words, and changes that need approval in sentences (D55).

Pages and e-mails have the same ones, in the reader's language.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from corpid.rules.directory.access import SYSTEM
from corpid.rules.directory.memberships import is_redirection
from corpid.rules.directory.names import label_identity, set_apart
from corpid.rules.directory.records import (
    ADMINISTRATOR_LEVELS,
    Administrator,
    Assignment,
    Change,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.rules.directory.values import NO_BEGINNING, NO_END
from corpid.texts import Phrase, counted, phrase

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord

GONE: Final = phrase("(removed person)")
"""the name of somebody who is no longer known"""


def sentence(name: str, row: Assignment | ThirdPartyAssignment, service: Service, entity: str, today: date) -> Phrase:
    """A role as a sentence about its person."""
    return role_sentence(name, row, service=service.name, entity=entity, today=today)


def role_sentence(
    name: str | Phrase,
    row: Assignment | ThirdPartyAssignment | ThirdPartyGrant,
    *,
    service: str,
    entity: str,
    today: date | None = None,
) -> Phrase:
    """Say what a role or authorisation allows.

    Without `today` for readers on other days.
    """
    when = duration(row.start_date, row.end_date, today)
    if row.role:
        return phrase(
            "{name} may act as {role} at {service} for {entity} {when}.",
            name=name, role=row.role, service=service, entity=entity, when=when,
        )  # fmt: skip
    return phrase(
        "{name} may act at {service} for {entity} {when}.", name=name, service=service, entity=entity, when=when
    )


def short_role(row: Assignment | ThirdPartyAssignment, service: str, today: date) -> Phrase:
    """A role next to its person: service, role and days."""
    what = phrase("{service}: {role}", service=service, role=row.role) if row.role else phrase("{name}", name=service)
    has_begun = row.start_date <= today.isoformat()
    when = duration(NO_BEGINNING if has_begun else row.start_date, row.end_date)
    return phrase("{what}, {when}", what=what, when=when)


def role_end_sentence(
    name: str | Phrase, row: Assignment | ThirdPartyAssignment | ThirdPartyGrant, *, service: str, entity: str
) -> Phrase:
    """Say what the end of a role or grant takes away."""
    if row.role:
        return phrase(
            "{name} may no longer act as {role} at {service} for {entity}.",
            name=name, role=row.role, service=service, entity=entity,
        )  # fmt: skip
    return phrase("{name} may no longer act at {service} for {entity}.", name=name, service=service, entity=entity)


def own_sentence(row: Assignment | ThirdPartyAssignment, service: Service, entity: str, today: date) -> Phrase:
    """A role as a sentence to its person."""
    when = duration(row.start_date, row.end_date, today)
    if row.role:
        return phrase(
            "You may act as {role} at {service} for {entity} {when}.",
            role=row.role, service=service.name, entity=entity, when=when,
        )  # fmt: skip
    return phrase("You may act at {service} for {entity} {when}.", service=service.name, entity=entity, when=when)


def asked_sentence(row: Assignment, service: Service, entity: str, today: date) -> Phrase:
    """A requested role as a sentence to its person."""
    when = duration(row.start_date, row.end_date, today)
    if row.role:
        return phrase(
            "You asked to act as {role} at {service} for {entity} {when}.",
            role=row.role, service=service.name, entity=entity, when=when,
        )  # fmt: skip
    return phrase("You asked to act at {service} for {entity} {when}.", service=service.name, entity=entity, when=when)


def duration(start_date: str, end_date: str, today: date | None = None) -> Phrase:
    """The days of a role or authorisation, which complete a sentence. Source: D23"""
    first = None if start_date == NO_BEGINNING else date.fromisoformat(start_date)
    last = None if end_date == NO_END else date.fromisoformat(end_date)
    if first is not None and first == today:
        return phrase("from today until {until}", until=last) if last else phrase("from today, with no end date")
    if first is not None and last is not None:
        return phrase("from {start} until {until}", start=first, until=last)
    if first is not None:
        return phrase("from {start}, with no end date", start=first)
    return phrase("until {until}", until=last) if last is not None else phrase("with no end date")


def details(row: Assignment | ThirdPartyAssignment | ThirdPartyGrant, *, part: bool = True) -> tuple[Phrase, ...]:
    """The limits of a role or authorisation: parameters and reference.

    With `part` also the part of the organisation.
    """
    given = (phrase("{name}: {value}", name=each.name, value=set_apart(each.value)) for each in row.parameters)
    return (*(_name_part(row.sub_entity) if part else ()), *given, *name_reference(row.ref))


def name_role(row: Assignment | ThirdPartyAssignment | ThirdPartyGrant) -> Phrase:
    """A role among those of one person or organisation at one service."""
    role = phrase("Role: {name}", name=set_apart(row.role)) if row.role else phrase("Any role")
    return joined((role, *_name_part(row.sub_entity), *name_reference(row.ref))) or role


def name_parts(role: str, sub_entity: str, ref: str) -> Phrase | None:
    """Those of role, part and reference that are not empty."""
    named = (phrase("Role: {name}", name=set_apart(role)),) if role else ()
    return joined((*named, *_name_part(sub_entity), *name_reference(ref)))


def _name_part(sub_entity: str) -> tuple[Phrase, ...]:
    return (phrase("Part of the organisation: {name}", name=set_apart(sub_entity)),) if sub_entity else ()


def name_reference(ref: str) -> tuple[Phrase, ...]:
    """The reference of a role, if it has one. Source: D53"""
    return (phrase("Reference: {ref}", ref=set_apart(ref)),) if ref else ()


def joined(limits: tuple[Phrase, ...]) -> Phrase | None:
    """The limits of a role beside each other."""
    if len(limits) < 2:
        return limits[0] if limits else None
    return phrase("{first} · {rest}", first=limits[0], rest=joined(limits[1:]))


def state(row: Assignment | ThirdPartyAssignment | ThirdPartyGrant, today: date) -> Phrase | None:
    """The state of a role or authorisation by date; None: it holds."""
    if row.end_date < today.isoformat():
        return phrase("Ended")
    return phrase("Not started yet") if row.start_date > today.isoformat() else None


OPERATOR: Final = phrase("The operator")
MOST_NAMED: Final = 2
"""people by name, if others are counted"""
ENDINGS: Final = frozenset({"end", "revoke"})
LEADING: Final = ENDINGS | {"invite", "join"}
"""kinds that name a request, whatever else it has"""
_GIVING: Final = frozenset({"assignment add"})
"""kinds that name a request before those that take away"""


class RequestNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of what changes are about, by identifier."""

    people: Mapping[str, str]
    entities: Mapping[str, str]
    services: Mapping[str, str]


def name_actor(actor: str, people: Mapping[str, str]) -> str | Phrase:
    """The author of a change, as an entity may know them. Source: D61"""
    kind, _, identifier = actor.partition(":")
    if kind == "user":
        return people.get(identifier) or GONE
    if kind == "client":
        return phrase("The program {name}", name=identifier)
    if kind == "token":
        return phrase("Your system, with a provisioning token")
    return phrase("The sign-in service itself") if kind == SYSTEM else OPERATOR


class ChangeGroup(msgspec.Struct, frozen=True):
    """Changes that differ in their people only."""

    changes: tuple[Change, ...]
    roles: tuple[Change, ...] = ()
    """the role that each of these people is given with the invitation"""

    @property
    def kind(self) -> str:
        """That of each of them, as `kind_of` has it."""
        return kind_of(self.changes[0])

    @property
    def user_ids(self) -> frozenset[str]:
        """The people whom they concern."""
        return frozenset(each.record.key[0] for each in self.changes)


_ACCEPTED: Final = ("offered", "accepted")


def kind_of(change: Change) -> str:
    """The name of what is done, a key of `_TITLES`. Source: D55"""
    record, before, verb = change.record, change.before, change.verb
    if isinstance(record, ThirdPartyAssignment):
        return f"assignment {verb}"
    if isinstance(before, ThirdPartyGrant) and verb == "change" and (before.state, record.state) == _ACCEPTED:
        return "grant accept"
    if isinstance(before, Entity) and isinstance(record, Entity) and verb == "change":
        if before.enabled != record.enabled:
            return "entity enable" if record.enabled else "entity disable"
        return "entity details" if before.approvals == record.approvals else "entity change"
    if not isinstance(record, Membership):
        return f"{change.kind} {verb}"
    if verb == "add":
        return "invite" if record.invited else "join"
    if verb == "remove":
        return "revoke" if record.invited else "end"
    same = isinstance(before, Membership) and replace(
        before, enabled=record.enabled, changed_at=record.changed_at
    ) == record  # fmt: skip
    return ("restore" if record.enabled else "suspend") if same else "details"


def group_changes(changes: Sequence[Change]) -> list[ChangeGroup]:
    """Put together what is done with several people alike. Source: D55"""
    found: defaultdict[object, list[Change]] = defaultdict(list)
    for number, each in enumerate(changes):
        kind = kind_of(each)
        if isinstance(each.record, Membership):
            found[kind if kind != "details" else number].append(each)
        else:
            found[kind, _without_person(each.before), _without_person(each.after)].append(each)
    groups = [ChangeGroup(tuple(some)) for some in found.values()]
    roles = [each for each in groups if each.kind == "assignment add"]
    for at, group in enumerate(groups):
        given = [each for each in roles if each.user_ids == group.user_ids]
        if group.kind in {"invite", "join"} and len(given) == 1:
            groups[at] = ChangeGroup(group.changes, given[0].changes)
            groups.remove(given[0])
            break
    return groups


def _find_main(changes: Sequence[Change]) -> tuple[ChangeGroup, int]:
    """The main group of changes, and how many it leaves unsaid."""
    groups = group_changes(changes)
    main = next((each for kinds in (LEADING, _GIVING) for each in groups if each.kind in kinds), groups[0])
    implied = main.user_ids if main.kind in ENDINGS else frozenset()
    return main, sum(len(each.changes) for each in groups if each is not main and not each.user_ids <= implied)


def find_named_change(changes: Sequence[Change]) -> Change:
    """The change that a title names, with its role. Source: D55"""
    main, _ = _find_main(changes)
    return (main.roles or main.changes)[0]


def _count_rest(rest: int, main: Phrase) -> Phrase:
    if not rest:
        return main
    return counted(rest, "{change}, and {count} more change", "{change}, and {count} more changes", change=main)


def _without_person(record: KeyedRecord | None) -> object:
    if isinstance(record, Assignment | ThirdPartyAssignment):
        return replace(record, user_id="")
    return record


def title_changes(changes: Sequence[Change], names: RequestNames, *, brief: bool = False) -> Phrase:
    """The title of a request: its main changes, and how many more.

    A brief one says what is done with whom. Source: D55
    """
    main, rest = _find_main(changes)
    return _count_rest(rest, title_group(main, names, brief=brief))


def title_group(group: ChangeGroup, names: RequestNames, *, brief: bool = False) -> Phrase:
    """The title of a group, which begins with a verb. Source: D55"""
    record = group.changes[0].record
    who: str | Phrase = counted(len(group.changes), "{count} person", "{count} people")
    if isinstance(record, ThirdPartyGrant):
        side = record.client_entity_id if group.kind == "grant accept" else record.entity_id
        who = names.entities.get(side, side)
    elif isinstance(record, Entity):
        who = names.entities.get(record.entity_id, record.name)
    elif len(group.changes) == 1:
        who = name_person(group.changes[0], names)
    title = _TITLES[group.kind](who) if group.kind in _TITLES else phrase("Another change")
    what = "" if brief else name_access(group.roles[0].record if group.roles else record, names)
    return phrase("{change}: {object}", change=title, object=what) if what else title


def name_access(record: KeyedRecord, names: RequestNames) -> str | Phrase:
    """The role of a change with its limits, or the level.

    Empty for other records.
    """
    if isinstance(record, Administrator):
        return ADMINISTRATOR_LEVELS[record.level]
    if not isinstance(record, Assignment | ThirdPartyAssignment | ThirdPartyGrant):
        return ""
    service: str | Phrase = names.services.get(record.service_id, record.service_id)
    if record.role:
        service = phrase("{role} at {service}", role=record.role, service=service)
    ends = () if record.end_date == NO_END else (duration(record.start_date, record.end_date),)
    if isinstance(record, ThirdPartyAssignment):
        client = names.entities.get(record.client_entity_id, record.client_entity_id)
        service = phrase("{role} for {entity}", role=service, entity=client)
    part = (set_apart(record.sub_entity),) if record.sub_entity else ()
    for each in (*part, *name_reference(record.ref), *ends):
        service = phrase("{first}, {rest}", first=service, rest=each)
    return service


def list_names(people: Sequence[str | Phrase]) -> Phrase:
    """Two names, and how many more."""
    if len(people) <= MOST_NAMED:
        return phrase("{names}", names=tuple(people))
    return phrase(
        "{first}, {second} and {count} more", first=people[0], second=people[1], count=len(people) - MOST_NAMED
    )


def describe_done(changes: Sequence[Change], names: RequestNames) -> Phrase:
    """The sentence of changes that were made, with their people. Source: D68, D80"""
    main, rest = _find_main(changes)
    done = say_done(
        main.kind,
        [_name_of(each.record.key[0], names) for each in main.changes],
        name_access(main.changes[0].record, names),
    )
    return _count_rest(rest, done or title_group(main, names))


def say_done(kind: str, people: Sequence[str | Phrase], what: str | Phrase) -> Phrase | None:
    """The sentence of something that was done with people.

    None for a kind that names nobody.
    """
    say = _DONE.get(kind)
    return say(len(people), who=list_names(people), what=what) if say else None


def summarise_change(change: Change, names: RequestNames) -> Phrase:
    """A change in a sentence. Source: D55"""
    record = change.record
    match record:
        case Assignment() | ThirdPartyAssignment():
            return _describe_role(change, record, names)
        case ThirdPartyGrant():
            return _describe_grant(change, record, names)
        case Administrator():
            return _describe_level(change, record, names)
        case Membership():
            return _describe_membership(change, record, names)
        case Entity():
            return _describe_entity(change, record, names)
        case _:
            return phrase("Something else changes.")


def _describe_entity(change: Change, entity: Entity, names: RequestNames) -> Phrase:
    before, name = change.before, names.entities.get(entity.entity_id, entity.name)
    if change.verb == "remove":
        return phrase("{entity} is removed.", entity=name)
    if isinstance(before, Entity) and before.enabled != entity.enabled:
        return (
            phrase("{entity} is enabled.", entity=name)
            if entity.enabled
            else phrase("{entity} is disabled.", entity=name)
        )
    if isinstance(before, Entity) and before.approvals != entity.approvals:
        return phrase("The approval setting changes.")
    return phrase("The details of {entity} change.", entity=name)


def name_person(change: Change, names: RequestNames) -> str | Phrase:
    """The person of a change, whom it invites by the address.

    Marked only if the changes concern an account that is called like it, too. Source: D68
    """
    record = change.record
    if isinstance(record, Membership) and record.invited and change.verb == "add":
        label = label_identity(record.email.lower() or record.membership_id, record.name)
        others = (name for user_id, name in names.people.items() if user_id != record.user_id)
        if all(name.partition(" ")[0] != label.partition(" ")[0] for name in others):
            return label
    return _name_of(record.key[0], names)


def _name_of(user_id: str, names: RequestNames) -> str | Phrase:
    return names.people.get(user_id) or GONE


def _describe_role(change: Change, row: Assignment | ThirdPartyAssignment, names: RequestNames) -> Phrase:
    person, service = _name_of(row.user_id, names), names.services.get(row.service_id, row.service_id)
    entity_id = row.client_entity_id if isinstance(row, ThirdPartyAssignment) else row.entity_id
    entity = names.entities.get(entity_id, entity_id)
    if change.verb == "change":
        return phrase(
            "The access of {person} at {service} for {entity} changes: {role}",
            person=person, service=service, entity=entity, role=name_role(row),
        )  # fmt: skip
    if change.verb == "remove":
        return role_end_sentence(person, row, service=service, entity=entity)
    return role_sentence(person, row, service=service, entity=entity)


def describe_authorisation(
    grant: ThirdPartyGrant, *, client: str, third_party: str, service: str, has_roles: bool = True
) -> Phrase:
    """Say what a grant allows, or would allow. Source: D56"""
    if grant.role or not has_roles:
        return role_sentence(third_party, grant, service=service, entity=client)
    return phrase(
        "{name} may act in any role at {service} for {entity} {when}.",
        name=third_party, service=service, entity=client, when=duration(grant.start_date, grant.end_date),
    )  # fmt: skip


def describe_new_terms(change: Change, third_party: str) -> Phrase | None:
    """Say what new terms of a grant mean at first.

    None for another change. Source: D56
    """
    was, becomes = change.before, change.after
    if kind_of(change) != "grant change" or not isinstance(was, ThirdPartyGrant):
        return None
    if was.state == "offered":
        return phrase(
            "These terms apply from now on. The offer has no effect until {name} accepts it.", name=third_party
        )
    if isinstance(becomes, ThirdPartyGrant) and becomes.state == "accepted":
        return phrase(
            "It takes effect at once: access of people of {name} outside these terms has no effect any more.",
            name=third_party,
        )
    return phrase(
        "This is more than {name} has accepted. Until it accepts again, none of its people may act for you here.",
        name=third_party,
    )


def _describe_grant(change: Change, grant: ThirdPartyGrant, names: RequestNames) -> Phrase:
    client, third_party = (names.entities.get(each, each) for each in (grant.client_entity_id, grant.entity_id))
    service = names.services.get(grant.service_id, grant.service_id)
    if change.verb == "remove":
        return role_end_sentence(third_party, grant, service=service, entity=client)
    if change.verb == "change" and getattr(change.before, "state", "") == grant.state:
        return phrase(
            "What {third_party} may do for {client} at {service} changes: {role}",
            third_party=third_party, client=client, service=service, role=name_role(grant),
        )  # fmt: skip
    allowed = describe_authorisation(grant, client=client, third_party=third_party, service=service)
    if grant.state == "offered":
        return phrase("Offer: {sentence}", sentence=allowed)
    return phrase("Accepted: {sentence}", sentence=allowed)


def _describe_level(change: Change, held: Administrator, names: RequestNames) -> Phrase:
    person, level = _name_of(held.user_id, names), ADMINISTRATOR_LEVELS[held.level]
    if change.verb == "add":
        return phrase("{person} is appointed as {level}.", person=person, level=level)
    if change.verb == "remove":
        return phrase("{person} is no longer an administrator.", person=person)
    return phrase("What {person} may administer changes.", person=person)


def _describe_membership(change: Change, held: Membership, names: RequestNames) -> Phrase:
    person = name_person(change, names)
    if change.verb == "remove":
        return phrase("{person} no longer belongs to the organisation, and loses all access here.", person=person)
    if is_redirection(change.before, change.after):
        return phrase(
            "The invitation of {person} goes to another address. Access and a level that were given or requested for the "
            "earlier one end.",
            person=person,
        )
    if kind_of(change) == "restore":
        return phrase("{person} can act for the organisation again, with the access from before.", person=person)
    if kind_of(change) == "suspend":
        return phrase("{person} can no longer act for the organisation until they are restored.", person=person)
    if change.verb == "change":
        return phrase("What is recorded here about {person} changes.", person=person)
    if held.invited:
        return phrase("{person} is invited to the organisation.", person=person)
    return phrase("{person} becomes a member of the organisation.", person=person)


_TITLES: Final[Mapping[str, Callable[[str | Phrase], Phrase]]] = {
    "invite": lambda who: phrase("Invite {name}", name=who),
    "join": lambda who: phrase("Add {name}", name=who),
    "end": lambda who: phrase("End the membership of {name}", name=who),
    "revoke": lambda who: phrase("Revoke the invitation of {name}", name=who),
    "suspend": lambda who: phrase("Suspend {name}", name=who),
    "restore": lambda who: phrase("Restore {name}", name=who),
    "details": lambda who: phrase("Change details of {name}", name=who),
    "assignment add": lambda who: phrase("Give access to {name}", name=who),
    "assignment change": lambda who: phrase("Change the access of {name}", name=who),
    "assignment remove": lambda who: phrase("Remove the access of {name}", name=who),
    "administrator add": lambda who: phrase("Appoint {name}", name=who),
    "administrator change": lambda who: phrase("Change the level of {name}", name=who),
    "administrator remove": lambda who: phrase("Remove the level of {name}", name=who),
    "grant add": lambda who: phrase("Authorise {name}", name=who),
    "grant change": lambda who: phrase("Change the authorisation of {name}", name=who),
    "grant accept": lambda who: phrase("Accept the offer of {name}", name=who),
    "grant remove": lambda who: phrase("End the authorisation of {name}", name=who),
    "entity change": lambda _: phrase("Change what needs approval"),
    "entity details": lambda who: phrase("Change details of {name}", name=who),
    "entity disable": lambda who: phrase("Disable {name}", name=who),
    "entity enable": lambda who: phrase("Enable {name}", name=who),
    "entity remove": lambda who: phrase("Remove {name}", name=who),
}
_DONE: Final[Mapping[str, Callable[..., Phrase]]] = {
    "invite": lambda n, **of: counted(n, "{count} person invited: {who}", "{count} people invited: {who}", **of),
    "join": lambda n, **of: counted(n, "{count} person added: {who}", "{count} people added: {who}", **of),
    "end": lambda n, **of: counted(n, "{count} membership ended: {who}", "{count} memberships ended: {who}", **of),
    "suspend": lambda n, **of: counted(n, "{count} person suspended: {who}", "{count} people suspended: {who}", **of),
    "restore": lambda n, **of: counted(n, "{count} person restored: {who}", "{count} people restored: {who}", **of),
    "assignment add": lambda n, **of: counted(
        n, "{count} person got access ({what}): {who}", "{count} people got access ({what}): {who}", **of
    ),
    "assignment change": lambda n, **of: counted(
        n, "Access of {count} person changed ({what}): {who}", "Access of {count} people changed ({what}): {who}", **of
    ),
    "assignment remove": lambda n, **of: counted(
        n, "{count} person lost access ({what}): {who}", "{count} people lost access ({what}): {who}", **of
    ),
}
