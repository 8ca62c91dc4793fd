"""A role as described in a form: choices, checks, resulting row.

A mandatory value is required here, so that no relying party reads a missing one. Source: R-14.1, R-20, D23
"""

from __future__ import annotations

from calendar import monthrange
from collections import Counter, defaultdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from corpid.rules.directory.records import Assignment, Entity, Service, ThirdPartyAssignment
from corpid.rules.directory.values import (
    NO_BEGINNING,
    NO_END,
    PARAMETER_VALUE,
    SUB_ENTITY,
    Parameter,
    ParameterDefinition,
    ParameterKind,
    stored_value,
    unfit_parameter,
)
from corpid.rules.readers import InvalidDate, InvalidValue, Reader, Scalar, display_name, real_day
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


VALUES_IN_USE: Final = 20
"""that a form offers for one field"""
TODAY: Final = "today"
ALWAYS: Final = "always"
YEAR_END: Final = "year-end"
ONE_YEAR: Final = "one-year"
ENDLESS: Final = "none"
ON_DAY: Final = "date"
STARTS: Final = (TODAY, ON_DAY, ALWAYS)
ENDS: Final = (YEAR_END, ONE_YEAR, ENDLESS, ON_DAY)
_NO_SUCH_DAY: Final = phrase("Enter a date that exists.")
_NO_DATE: Final = phrase("Enter a date as year, month and day, such as 2026-11-30.")
ENDS_BEFORE_START: Final = phrase("Enter a last day that is not before the first day.")
_OF_KIND: Final[Mapping[ParameterKind, Phrase]] = {
    "alpha": phrase("Enter letters only."),
    "number": phrase("Enter a number."),
    "year": phrase("Enter a year of four digits, such as 2026."),
}


def is_open_to(service: Service, entity: Entity) -> bool:
    """Return whether an entity may use a service. Source: R-20"""
    return service.enabled and entity.type in service.entity_types and entity.status in service.entity_statuses


class RoleForm(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the form, as they were sent."""

    service: Service
    role: str = ""
    sub_entity: str = ""
    parameters: dict[str, str] = {}
    """name → value"""
    start: str = TODAY
    """one of STARTS"""
    start_date: str = ""
    """if `start` is ON_DAY"""
    end: str = ONE_YEAR
    """one of ENDS"""
    end_date: str = ""
    """if `end` is ON_DAY"""


class ValuesInUse(msgspec.Struct, frozen=True, kw_only=True):
    """The values that roles at a service have, the most frequent first."""

    sub_entities: tuple[str, ...] = ()
    parameters: dict[str, tuple[str, ...]] = {}
    """name → values"""


NO_VALUES: Final = ValuesInUse()


def most_frequent_values(rows: Iterable[Assignment | ThirdPartyAssignment]) -> ValuesInUse:
    """The most frequent values of roles, at most VALUES_IN_USE of a kind. Source: R-14.1"""
    sub_entities, parameters = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for row in rows:
        sub_entities[row.sub_entity] += 1
        for each in row.parameters:
            parameters[each.name][each.value] += 1
    return ValuesInUse(
        sub_entities=_most_frequent(sub_entities),
        parameters={name: _most_frequent(values) for name, values in parameters.items()},
    )


def _most_frequent(values: Counter[str]) -> tuple[str, ...]:
    return tuple(value for value, _ in values.most_common(VALUES_IN_USE + 1) if value)[:VALUES_IN_USE]


def form_of(row: Assignment, service: Service) -> RoleForm:
    """The form that describes a row as it is. Source: D23"""
    held: dict[str, str] = {}
    for each in row.parameters:
        held.setdefault(each.name, each.value)
    return RoleForm(
        service=service,
        role=row.role,
        sub_entity=row.sub_entity,
        parameters=held,
        start=ALWAYS if row.start_date == NO_BEGINNING else ON_DAY,
        start_date="" if row.start_date == NO_BEGINNING else row.start_date,
        end=ENDLESS if row.end_date == NO_END else ON_DAY,
        end_date="" if row.end_date == NO_END else row.end_date,
    )


def faults(form: RoleForm, today: date) -> tuple[tuple[str, Phrase], ...]:
    """Everything that has to be put right: member, and what to do.

    A parameter's member is `parameters/` and its name. Source: R-14.1, R-20, D23
    """
    return tuple(_faults(form, today))


def _faults(form: RoleForm, today: date) -> Iterator[tuple[str, Phrase]]:
    service = form.service
    if service.roles and form.role not in service.roles:
        yield "role", phrase("Choose a role.")
    if why := sub_entity_fault(service, form.sub_entity):
        yield "sub_entity", why
    for definition in service.parameters:
        if why := _misfit(definition, form.parameters.get(definition.name, "").strip(), service):
            yield f"parameters/{definition.name}", why
    yield from _misdated(form, today)


def sub_entity_fault(service: Service, text: str, *, needed: bool = True) -> Phrase | None:
    """The fault of a sub-entity, as an instruction. Source: R-14.1"""
    if service.sub_entity == "none":
        return None
    if needed and service.sub_entity == "mandatory" and not text.strip():
        return phrase("Enter the part of the organisation. {service} needs it.", service=service.name)
    return _advise(SUB_ENTITY, text)


def _misfit(definition: ParameterDefinition, value: str, service: Service) -> Phrase | None:
    if definition.mandatory and not value:
        return missing_parameter(definition, service)
    return value_fault(definition, value)


def missing_parameter(definition: ParameterDefinition, service: Service) -> Phrase:
    """The request for a value that a role needs. Source: R-14.1"""
    return phrase("Enter the {name}. {service} needs it.", name=definition.name, service=service.name)


def value_fault(definition: ParameterDefinition, value: str) -> Phrase | None:
    """The fault of a parameter's value, as an instruction. Source: R-14.1"""
    if unfit_parameter(definition.kind, value):
        return day_fault(value) if definition.kind == "date" else _OF_KIND[definition.kind]
    return _advise(PARAMETER_VALUE, value)


def _misdated(form: RoleForm, today: date) -> Iterator[tuple[str, Phrase]]:
    start, end = _start(form, today), _end(form, today)
    if form.start not in STARTS:
        yield "start", phrase("Choose when the access begins.")
    elif start is None:
        yield "start_date", day_fault(form.start_date)
    if form.end not in ENDS:
        yield "end", phrase("Choose when the access ends.")
    elif end is None:
        yield "end_date", day_fault(form.end_date)
    elif end < today:
        yield "end_date", phrase("Enter today or a later day.")
    elif start is not None and end < start:
        yield "end_date", ENDS_BEFORE_START


def _advise(read: Reader, text: str) -> Phrase | None:
    try:
        read(Scalar(0, text.strip(), plain=False))
    except InvalidValue as error:
        return error.remedy
    return None


def _start(form: RoleForm, today: date) -> date | None:
    """The first day; None for one that does not exist."""
    if form.start == ON_DAY:
        return day(form.start_date)
    return date.min if form.start == ALWAYS else today


def _end(form: RoleForm, today: date) -> date | None:
    """The last day; None for one that does not exist."""
    if form.end == ON_DAY:
        return day(form.end_date)
    if form.end == YEAR_END:
        return year_end(today)
    if form.end == ONE_YEAR:
        return one_year(_start(form, today) or today)
    return date.max


def with_last_day(form: RoleForm, today: date) -> RoleForm:
    """The form with its last day as a date.

    If the day follows from today: what is confirmed tomorrow ends on the day that was shown. Source: D54, D68
    """
    last = _end(form, today) if form.end in {YEAR_END, ONE_YEAR} else None
    return form if last is None else replace(form, end=ON_DAY, end_date=last.isoformat())


def day(text: str) -> date | None:
    """The day that was typed; None if there is no such day. Source: D23"""
    try:
        return date.fromisoformat(real_day(text))
    except ValueError:
        return None


def day_fault(text: str) -> Phrase:
    """The fault of a text: its form, or the day. Source: D23"""
    try:
        real_day(text)
    except InvalidDate:
        return _NO_DATE
    except ValueError:
        pass
    return _NO_SUCH_DAY


def year_end(today: date) -> date:
    """The last day of a year. Source: D23"""
    return date(today.year, 12, 31)


def one_year(first: date) -> date:
    """The last day of the year that begins on a day. Source: D23"""
    year = first.year + 1
    if first.year >= date.max.year:
        return date.max
    return date(year, first.month, min(first.day, monthrange(year, first.month)[1])) - timedelta(days=1)


def row_of(
    form: RoleForm, *, user_id: str, entity_id: str, today: date, ref: str = "", was: Assignment | None = None
) -> Assignment:
    """The row that a form without faults describes.

    A form has one value of each parameter: where it still is the first one of the row that `was`, the others stay.
    Source: R-14.1, D23
    """
    start, end = _start(form, today) or today, _end(form, today) or date.max
    parameters: list[Parameter] = []
    for each in form.service.parameters:
        value = stored_value(each.kind, form.parameters.get(each.name, "").strip())
        held = [known for known in was.parameters if known.name == each.name] if was is not None else []
        if held and held[0].value == value:
            parameters += held
        elif value:
            parameters.append(Parameter(name=each.name, value=_tidy(value)))
    return Assignment(
        user_id=user_id,
        entity_id=entity_id,
        service_id=form.service.service_id,
        role=form.role if form.service.roles else "",
        sub_entity=_tidy(form.sub_entity) if form.service.sub_entity != "none" else "",
        ref=ref,
        start_date=start.isoformat(),
        end_date=end.isoformat(),
        parameters=tuple(parameters),
    )


def _tidy(text: str) -> str:
    return display_name(text) if text.strip() else ""
