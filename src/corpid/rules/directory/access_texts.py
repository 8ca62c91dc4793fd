"""Levels and roles in words, in the reader's language."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from corpid.rules.directory.names import set_apart
from corpid.rules.directory.values import NO_BEGINNING, NO_END
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from corpid.rules.directory.records import Assignment, Service, ThirdPartyAssignment, ThirdPartyGrant

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
