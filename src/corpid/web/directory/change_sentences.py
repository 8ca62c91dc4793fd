"""Changes of the directory in sentences, with members before and after (D55)."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from corpid.rules.directory.invitations import is_redirection
from corpid.rules.directory.records import (
    NO_BEGINNING,
    NO_END,
    Administrator,
    Assignment,
    Entity,
    Membership,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.texts import phrase
from corpid.web.pages.access_texts import APPROVALS, GONE, LEVELS, duration, role_end_sentence, role_sentence
from corpid.web.pages.layout import ViewPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import msgspec

    from corpid.flows.directory.approvals import RequestNames
    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.records import Parameter
    from corpid.texts import Phrase

_YES: Final = phrase("yes")
_NO: Final = phrase("no")


class DisplayValue(ViewPart, frozen=True, kw_only=True):
    """A value as a page shows it: a day, or a text."""

    text: str = ""
    day: date | None = None


class MemberChange(ViewPart, frozen=True, kw_only=True):
    """A member before and after; empty: it had, or has, none."""

    name: Phrase
    before: DisplayValue
    after: DisplayValue


class ChangeInWords(ViewPart, frozen=True, kw_only=True):
    """A change in a sentence, with what differs."""

    sentence: Phrase
    members: tuple[MemberChange, ...]


def in_words(change: Change, names: RequestNames) -> ChangeInWords:
    """A change as people read it. Source: D55"""
    members = tuple(_members(change.was, change.becomes, names))
    return ChangeInWords(sentence=_sentence(change, names), members=members)


def _sentence(change: Change, names: RequestNames) -> Phrase:
    record = change.becomes or change.was
    match record:
        case Assignment() | ThirdPartyAssignment():
            return _of_role(change, record, names)
        case ThirdPartyGrant():
            return _of_grant(change, record, names)
        case Administrator():
            return _of_level(change, record, names)
        case Membership():
            return _of_membership(change, record, names)
        case Entity():
            return phrase("Which changes need approval is changed.")
        case _:
            return phrase("Something else changes.")


def _person(user_id: str, names: RequestNames) -> str | Phrase:
    return names.people.get(user_id) or GONE


def _of_role(change: Change, row: Assignment | ThirdPartyAssignment, names: RequestNames) -> Phrase:
    person, service = _person(row.user_id, names), names.services.get(row.service_id, row.service_id)
    entity_id = row.client_entity_id if isinstance(row, ThirdPartyAssignment) else row.entity_id
    entity = names.entities.get(entity_id, entity_id)
    if change.verb == "change":
        return phrase(
            "The access of {person} at {service} for {entity} changes.", person=person, service=service, entity=entity
        )
    if change.verb == "remove":
        return role_end_sentence(person, row, service=service, entity=entity)
    return role_sentence(person, row, service=service, entity=entity)


def authorisation_sentence(
    grant: ThirdPartyGrant, *, client: str, third_party: str, service: str, has_roles: bool = True
) -> Phrase:
    """Say what a grant allows, or would allow. Source: D56"""
    if grant.role or not has_roles:
        return role_sentence(third_party, grant, service=service, entity=client)
    return phrase(
        "{name} may act in any role at {service} for {entity} {when}.",
        name=third_party, service=service, entity=client, when=duration(grant.start_date, grant.end_date),
    )  # fmt: skip


def _of_grant(change: Change, grant: ThirdPartyGrant, names: RequestNames) -> Phrase:
    client, third_party = (names.entities.get(each, each) for each in (grant.client_entity_id, grant.entity_id))
    service = names.services.get(grant.service_id, grant.service_id)
    if change.verb == "remove":
        return phrase(
            "{third_party} may no longer act for {client} at {service}.",
            third_party=third_party, client=client, service=service,
        )  # fmt: skip
    if change.verb == "change" and getattr(change.was, "state", "") == grant.state:
        return phrase(
            "What {third_party} may do for {client} at {service} changes.",
            third_party=third_party, client=client, service=service,
        )  # fmt: skip
    allowed = authorisation_sentence(grant, client=client, third_party=third_party, service=service)
    if grant.state == "offered":
        return phrase("Offer: {sentence}", sentence=allowed)
    return phrase("Accepted: {sentence}", sentence=allowed)


def _of_level(change: Change, held: Administrator, names: RequestNames) -> Phrase:
    person, level = _person(held.user_id, names), LEVELS[held.level]
    if change.verb == "add":
        return phrase("{person} is appointed as {level}.", person=person, level=level)
    if change.verb == "remove":
        return phrase("{person} is no longer an administrator.", person=person)
    return phrase("What {person} may administer changes.", person=person)


def _of_membership(change: Change, held: Membership, names: RequestNames) -> Phrase:
    person = _person(held.user_id, names)
    if change.verb == "remove":
        return phrase("{person} no longer belongs to the organisation, and loses all access here.", person=person)
    if is_redirection(change.was, change.becomes):
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


MEMBERS: Final[Mapping[str, Phrase]] = {
    "role": phrase("Role"),
    "sub_entity": phrase("Part of the organisation"),
    "ref": phrase("Reference"),
    "start_date": phrase("From"),
    "end_date": phrase("Until"),
    "parameters": phrase("Details"),
    "state": phrase("State"),
    "level": phrase("Level"),
    "services": phrase("Services"),
    "approvals": phrase("Changes that need approval"),
    "enabled": phrase("May sign in for the organisation"),
    "name": phrase("Name"),
    "given_name": phrase("Given name"),
    "family_name": phrase("Family name"),
    "email": phrase("E-mail address"),
    "user_name": phrase("User name"),
    "external_id": phrase("Identifier in your system"),
}
"""members that are shown, in this order"""
_STATES: Final = {"offered": phrase("offered"), "accepted": phrase("accepted")}
_WITHOUT_NEWS: Final = frozenset({"state", "enabled"})
"""members that say nothing new about a record that is added or removed"""


def _members(was: msgspec.Struct | None, becomes: msgspec.Struct | None, names: RequestNames) -> Iterator[MemberChange]:
    record = becomes or was
    for member, name in MEMBERS.items():
        if not hasattr(record, member) or (isinstance(record, Entity) and member != "approvals"):
            continue
        before, after = (
            _shown(member, getattr(each, member), names) if each else DisplayValue() for each in (was, becomes)
        )
        whole = was is None or becomes is None
        if before != after and not (whole and member in _WITHOUT_NEWS):
            yield MemberChange(name=name, before=before, after=after)


def _shown(member: str, value: object, names: RequestNames) -> DisplayValue:
    if member in {"start_date", "end_date"}:
        return DisplayValue() if value in {NO_BEGINNING, NO_END} else DisplayValue(day=date.fromisoformat(str(value)))
    if member == "parameters":
        return DisplayValue(text=parameters_in_words(value))  # type: ignore[arg-type]
    if member == "services":
        if not isinstance(value, tuple):
            return DisplayValue(text=_ALL)
        return DisplayValue(text=", ".join(names.services.get(each, each) for each in value))
    if isinstance(value, bool):
        return DisplayValue(text=_YES if value else _NO)
    if member in {"email", "user_name"}:
        return DisplayValue(text=str(value).lower())  # a capital I looks like a small l (D68)
    known: Mapping[str, Phrase] = {"level": LEVELS, "approvals": APPROVALS, "state": _STATES}.get(member, {})  # type: ignore[assignment]
    return DisplayValue(text=known.get(str(value), str(value)))


_ALL: Final = phrase("every service")


def parameters_in_words(parameters: Iterable[Parameter]) -> str:
    """Parameters in one line, the values of each together. Source: R-14.1"""
    found: dict[str, list[str]] = {}
    for each in parameters:
        found.setdefault(each.name, []).append(each.value)
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in found.items())
