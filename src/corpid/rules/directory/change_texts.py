"""Changes that need approval in sentences, for pages and e-mails (D55)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.directory.access_texts import GONE, duration, name_role, role_end_sentence, role_sentence
from corpid.rules.directory.actors import SYSTEM
from corpid.rules.directory.invitations import is_redirection
from corpid.rules.directory.records import (
    ADMINISTRATOR_LEVELS,
    Administrator,
    Assignment,
    Entity,
    Membership,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.texts import counted, phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.directory.records import Change
    from corpid.texts import Phrase


OPERATOR: Final = phrase("The operator")


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


def summarise_changes(changes: Sequence[Change], names: RequestNames) -> Phrase:
    """The first change of a request, and how many more."""
    first = summarise_change(changes[0], names)
    if len(changes) == 1:
        return first
    more = counted(len(changes) - 1, "and {count} more change", "and {count} more changes")
    return phrase("{change} ({more})", change=first, more=more)


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


def _describe_grant(change: Change, grant: ThirdPartyGrant, names: RequestNames) -> Phrase:
    client, third_party = (names.entities.get(each, each) for each in (grant.client_entity_id, grant.entity_id))
    service = names.services.get(grant.service_id, grant.service_id)
    if change.verb == "remove":
        return phrase(
            "{third_party} may no longer act for {client} at {service}.",
            third_party=third_party, client=client, service=service,
        )  # fmt: skip
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
    person = _name_of(held.user_id, names)
    if change.verb == "remove":
        return phrase("{person} no longer belongs to the organisation, and loses all access here.", person=person)
    if is_redirection(change.before, change.after):
        return phrase(
            "The invitation of {person} goes to another address. Access and a level that were given or requested for the "
            "earlier one end.",
            person=person,
        )
    if change.verb == "change":
        return phrase("What is recorded here about {person} changes.", person=person)
    if held.invited:
        return phrase("{person} is invited to the organisation.", person=person)
    return phrase("{person} becomes a member of the organisation.", person=person)
