"""The fields of a role: read from a form, and shown."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.rules.directory.role_forms import (
    ALWAYS,
    ENDLESS,
    NO_VALUES,
    ON_DAY,
    ONE_YEAR,
    TODAY,
    YEAR_END,
    RoleForm,
    year_end,
)
from corpid.rules.directory.values import NO_BEGINNING
from corpid.texts import phrase
from corpid.web.pages.layout import ViewPart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from corpid.rules.directory.records import Service
    from corpid.rules.directory.role_forms import ValuesInUse
    from corpid.rules.directory.values import ParameterDefinition
    from corpid.texts import Phrase
    from corpid.web.pages.layout import FieldError

PARAMETER: Final = "parameter-"
FIELDS: Final = frozenset({"role", "sub_entity", "start", "start_date", "end", "end_date"})
PART: Final = phrase("Part of the organisation")
_PARAMETERS: Final = "parameters/"
_TYPES: Final = {"date": "date", "number": "text", "year": "text", "alpha": "text", "text": "text"}
Option = tuple[str, "Phrase | str", "Phrase | str"]
"""value, text and further text of a radio button"""


class ParameterField(ViewPart, frozen=True, kw_only=True):
    name: str
    label: Phrase
    value: str
    type: str
    hint: Phrase | None
    inputmode: str
    used: tuple[str, ...]
    """values that are in use, to choose from"""


class RoleFields(ViewPart, frozen=True, kw_only=True):
    """The fields of a role, as the page shows them."""

    roles: tuple[Option, ...]
    role: str
    sub_entity: Phrase | None
    """its label; None: it is not asked for"""
    sub_entity_value: str
    sub_entities: tuple[str, ...]
    """those that are in use, to choose from"""
    parameters: tuple[ParameterField, ...]
    starts: tuple[Option, ...]
    start: str
    start_date: str
    ends: tuple[Option, ...]
    end: str
    end_date: str


def mark_label(label: str, *, required: bool) -> Phrase:
    """The label of a value, marked as required or optional."""
    return phrase("{name} (required)", name=label) if required else phrase("{name} (optional)", name=label)


def parameter_field(name: str) -> str:
    """The field of a parameter, which may be called anything."""
    return f"{PARAMETER}{sha256(name.encode()).hexdigest()[:12]}"


def role_options(service: Service) -> tuple[Option, ...]:
    """The roles of a service to choose from, each with its description."""
    described = {each.name: each.description for each in service.role_descriptions}
    return tuple((role, role, described.get(role, "")) for role in service.roles)


def read(given: Mapping[str, str], service: Service, *, otherwise: RoleForm | None = None) -> RoleForm:
    """The form as it was sent; `otherwise` holds what was not."""
    known = otherwise or RoleForm(service=service)
    named = {each.name: given.get(parameter_field(each.name)) for each in service.parameters}
    only = service.roles[0] if len(service.roles) == 1 else ""
    return RoleForm(
        service=service,
        role=given.get("role", known.role) or only,
        sub_entity=given.get("sub_entity", known.sub_entity),
        parameters={
            name: value if value is not None else known.parameters.get(name, "") for name, value in named.items()
        },
        start=given.get("start", known.start),
        start_date=given.get("start_date", known.start_date),
        end=given.get("end", known.end),
        end_date=given.get("end_date", known.end_date),
    )


def errors_of(faults: tuple[tuple[str, Phrase], ...]) -> tuple[FieldError, ...]:
    """Faults of a form, by the name of their field."""
    return tuple((_field(member), text) for member, text in faults)


def _field(member: str) -> str:
    return parameter_field(member.removeprefix(_PARAMETERS)) if member.startswith(_PARAMETERS) else member


def to_hidden_fields(form: RoleForm) -> tuple[tuple[str, str], ...]:
    plain = (
        ("role", form.role), ("sub_entity", form.sub_entity), ("start", form.start), ("start_date", form.start_date),
        ("end", form.end), ("end_date", form.end_date),
    )  # fmt: skip
    named = ((parameter_field(name), value) for name, value in form.parameters.items())
    return tuple((name, value) for name, value in (*plain, *named) if value)


def build_fields(form: RoleForm, today: date, *, always: bool = False, used: ValuesInUse = NO_VALUES) -> RoleFields:
    """The fields of a form.

    `always` offers to begin as it did, without a first day; `used` is offered for values that are typed.
    """
    service = form.service
    starts: list[Option] = [(TODAY, phrase("Today"), ""), (ON_DAY, phrase("On a day that I choose"), "")]
    if always or form.start == ALWAYS:
        starts.insert(0, (ALWAYS, phrase("As before: without a first day"), ""))
    return RoleFields(
        roles=role_options(service),
        role=form.role,
        sub_entity=None
        if service.sub_entity == "none"
        else mark_label(PART, required=service.sub_entity == "mandatory"),
        sub_entity_value=form.sub_entity,
        sub_entities=used.sub_entities,
        parameters=tuple(
            _parameter(each, form.parameters.get(each.name, ""), used.parameters.get(each.name, ()))
            for each in service.parameters
        ),
        starts=tuple(starts),
        start=form.start,
        start_date="" if form.start_date == NO_BEGINNING else form.start_date,
        ends=(
            (YEAR_END, phrase("At the end of this year"), phrase("{day}", day=year_end(today))),
            (ONE_YEAR, phrase("After one year"), ""),
            (ENDLESS, phrase("Never"), phrase("Until somebody ends it")),
            (ON_DAY, phrase("On a day that I choose"), ""),
        ),
        end=form.end,
        end_date=form.end_date,
    )


_HINTS: Final = {
    "alpha": phrase("Letters only"),
    "number": phrase("A number"),
    "year": phrase("A year, such as 2026"),
}


def _parameter(definition: ParameterDefinition, value: str, used: tuple[str, ...]) -> ParameterField:
    return ParameterField(
        name=parameter_field(definition.name),
        label=mark_label(definition.name, required=definition.mandatory),
        value=value,
        type=_TYPES[definition.kind],
        hint=_HINTS.get(definition.kind),
        inputmode={"number": "decimal", "year": "numeric"}.get(definition.kind, "text"),
        used=() if definition.kind == "date" else used,
    )
