"""The fields of a role: read from a form, and shown."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from corpid.rules.directory.records import Service
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
from corpid.web.pages.components import Radios
from corpid.web.pages.layout import Component, Field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from corpid.rules.directory.role_forms import ValuesInUse
    from corpid.rules.directory.values import ParameterDefinition
    from corpid.texts import Phrase
    from corpid.web.pages.layout import FieldError

PARAMETER: Final = "parameter-"
DAYS: Final = frozenset({"start", "start_date", "end", "end_date"})
FIELDS: Final = DAYS | {"role", "sub_entity"}
PART: Final = phrase("Part of the organisation")
_PARAMETERS: Final = "parameters/"
ACCESS: Final = "access"
"""the field of a service and role that are chosen at once"""
_OPTIONS: Final = 12
"""that are shown as radio buttons; more are a list to choose from"""
NO_SERVICE: Final = Service(service_id="", name="")
"""before one is chosen: it has days only"""
Option = tuple[str, "Phrase | str", "Phrase | str"]
"""value, text and further text of a radio button"""


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


def build_fields(
    form: RoleForm, today: date, *, always: bool = False, used: ValuesInUse = NO_VALUES
) -> tuple[Component, ...]:
    """The fields of a form.

    `always` offers to begin as it did, without a first day; `used` is offered for values that are typed.
    """
    service = form.service
    typed = []
    if service.sub_entity != "none":
        label = mark_label(PART, required=service.sub_entity == "mandatory")
        hint = phrase("Such as a branch or a department, as the service knows it")
        typed.append(
            Field(name="sub_entity", label=label, hint=hint, value=form.sub_entity, most=32, offered=used.sub_entities)
        )
    typed += [
        _parameter(each, form.parameters.get(each.name, ""), used.parameters.get(each.name, ()))
        for each in service.parameters
    ]
    starts: list[Option] = [(TODAY, phrase("Today"), ""), (ON_DAY, phrase("On a day that I choose"), "")]
    if always or form.start == ALWAYS:
        starts.insert(0, (ALWAYS, phrase("As before: without a first day"), ""))
    first = "" if form.start_date == NO_BEGINNING else form.start_date
    ends: tuple[Option, ...] = (
        (YEAR_END, phrase("At the end of this year"), phrase("{day}", day=year_end(today))),
        (ONE_YEAR, phrase("After one year"), ""),
        (ENDLESS, phrase("Never"), phrase("Until somebody ends it")),
        (ON_DAY, phrase("On a day that I choose"), ""),
    )
    roles = Radios(name="role", legend=phrase("Role"), options=role_options(service), value=form.role)
    return (
        *((roles,) if service.roles else ()),
        *typed,
        Radios(
            name="start", legend=phrase("The access begins"), options=tuple(starts), value=form.start,
            day=Field(name="start_date", label=phrase("First day"), kind="date", value=first),
        ),
        Radios(
            name="end", legend=phrase("The access ends"), options=ends, value=form.end,
            day=Field(name="end_date", label=phrase("Last day"), kind="date", value=form.end_date),
        ),
    )  # fmt: skip


_HINTS: Final = {
    "alpha": phrase("Letters only"),
    "number": phrase("A number"),
    "year": phrase("A year, such as 2026"),
}
_KINDS: Final = {"date": "date", "number": "decimal", "year": "numeric"}


def _parameter(definition: ParameterDefinition, value: str, used: tuple[str, ...]) -> Field:
    return Field(
        name=parameter_field(definition.name),
        label=mark_label(definition.name, required=definition.mandatory),
        hint=_HINTS.get(definition.kind),
        kind=_KINDS.get(definition.kind, "text"),
        value=value,
        offered=() if definition.kind == "date" else used,
    )


def read_choice(chosen: str, services: Sequence[Service], otherwise: str = "") -> tuple[Service | None, str]:
    """The service in ACCESS, and the role if both were one choice.

    `otherwise` is the identifier of a service that was chosen before.
    """
    service_id, _, role = chosen.partition("/")
    wanted = services[0].service_id if len(services) == 1 else unquote(service_id) or otherwise
    return next((each for each in services if each.service_id == wanted), None), unquote(role)


def name_choice(service: Service, role: str = "") -> str:
    """The value of ACCESS for a service, perhaps with a role."""
    return quote(service.service_id, safe="") + (f"/{quote(role, safe='')}" if role else "")


def choose_role(services: Sequence[Service], asked: Phrase, value: str) -> Component:
    """The choice among all roles of all services."""
    options: list[tuple[str, Phrase | str, str]] = []
    for each in services:
        options += [
            (
                name_choice(each, role),
                phrase("{service}: {role}", service=each.name, role=role),
                described or each.description,
            )
            for role, _, described in role_options(each)
        ] or [(name_choice(each), each.name, each.description)]
    if len(options) <= _OPTIONS:
        return Radios(name=ACCESS, legend=asked, options=tuple(options), value=value)
    words = (("", phrase("Choose a role")), *((option, text) for option, text, _ in options))
    return Field(name=ACCESS, label=asked, kind="words", words=words, value=value)
