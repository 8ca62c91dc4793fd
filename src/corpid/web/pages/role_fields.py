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
    ValuesInUse,
    faults,
    one_year,
    with_last_day,
    year_end,
)
from corpid.rules.directory.values import NO_BEGINNING, ParameterDefinition
from corpid.texts import Phrase, phrase
from corpid.web.pages.components import Component, Field, FieldError, Radios, RoleChoice, RoleGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date


PARAMETER: Final = "parameter-"
DAYS: Final = frozenset({"start", "start_date", "end", "end_date"})
ACCESS: Final = "access"
"""the field of a service and role that are chosen at once"""
CHECK: Final = "check"
"""the field that says what a form has asked for: EVERYTHING, or the values of one service"""
EVERYTHING: Final = "all"
FIELDS: Final = DAYS | {"role", ACCESS, CHECK}
PART: Final = phrase("Part of the organisation")
_PARAMETERS: Final = "parameters/"
_OPTIONS: Final = 12
"""that are all in view; of more each service is opened"""
_VALUES: Final = 20
"""fields of values of one form, which may have a hundred with its selected rows; of more services the values are asked
for once one is chosen"""
NO_SERVICE: Final = Service(service_id="", name="")
"""before one is chosen: it has days only"""
Option = tuple[str, "Phrase | str", "Phrase | str"]
"""value, text and further text of a radio button"""


def mark_label(label: str, *, required: bool) -> Phrase:
    """The label of a value, marked as required or optional."""
    return phrase("{name} (required)", name=label) if required else phrase("{name} (optional)", name=label)


def value_field(service: Service, parameter: str = "") -> str:
    """The field of a parameter, or of the part of the organisation."""
    return f"{PARAMETER}{sha256(f'{service.service_id}/{parameter}'.encode()).hexdigest()[:12]}"


def _count_values(service: Service) -> int:
    """The number of fields of what a role needs but its days."""
    return (service.sub_entity != "none") + len(service.parameters)


def role_options(service: Service) -> tuple[Option, ...]:
    """The roles of a service to choose from, each with its description."""
    described = {each.name: each.description for each in service.role_descriptions}
    return tuple((role, role, described.get(role, "")) for role in service.roles)


def _describe(service: Service, description: str) -> Phrase | str:
    """The description of a role, with the values that it needs."""
    part = (PART,) if service.sub_entity == "mandatory" else ()
    needed = (*part, *(each.name for each in service.parameters if each.mandatory))
    if not needed:
        return description
    needs = phrase("Needs: {names}", names=needed)
    return phrase("{description}. {needs}", description=description, needs=needs) if description else needs


def read(given: Mapping[str, str], service: Service, *, otherwise: RoleForm | None = None) -> RoleForm:
    """The form as it was sent; `otherwise` holds what was not."""
    known = otherwise or RoleForm(service=service)
    named = {each.name: given.get(value_field(service, each.name)) for each in service.parameters}
    only = service.roles[0] if len(service.roles) == 1 else ""
    return RoleForm(
        service=service,
        role=given.get("role", known.role) or only,
        sub_entity=given.get(value_field(service), known.sub_entity),
        parameters={
            name: value if value is not None else known.parameters.get(name, "") for name, value in named.items()
        },
        start=given.get("start", known.start),
        start_date=given.get("start_date", known.start_date),
        end=given.get("end", known.end),
        end_date=given.get("end_date", known.end_date),
    )


def find_errors(form: RoleForm, today: date) -> tuple[FieldError, ...]:
    """The faults of a form, by the name of their field."""
    return tuple((_field(form.service, member), text) for member, text in faults(form, today))


def _field(service: Service, member: str) -> str:
    if member == "sub_entity":
        return value_field(service)
    return value_field(service, member.removeprefix(_PARAMETERS)) if member.startswith(_PARAMETERS) else member


def to_hidden_fields(form: RoleForm, today: date, *, chosen: bool = False) -> tuple[tuple[str, str], ...]:
    """The form as it was sent, its last day a date.

    `chosen` says whether its role was one of several services'.
    """
    form, service = with_last_day(form, today), form.service
    role = (ACCESS, name_choice(service, form.role)) if chosen else ("role", form.role)
    days = ("start", form.start), ("start_date", form.start_date), ("end", form.end), ("end_date", form.end_date)
    values = ((value_field(service, name), value) for name, value in (("", form.sub_entity), *form.parameters.items()))
    return tuple((name, value) for name, value in (role, *days, *values) if value)


def build_fields(
    form: RoleForm, today: date, *, always: bool = False, used: ValuesInUse = NO_VALUES
) -> tuple[Component, ...]:
    """The fields of a role at one service.

    `always` offers to begin as it did, without a first day; `used` is offered for values that are typed.
    """
    options = role_options(form.service)
    roles = (Radios(name="role", legend=phrase("Role"), options=options, value=form.role),) if options else ()
    return *roles, *_values(form, used), *_days(form, today, always=always)


def _values(form: RoleForm, used: ValuesInUse) -> tuple[Field, ...]:
    service, part = form.service, tuple[Field, ...]()
    if service.sub_entity != "none":
        label = mark_label(PART, required=service.sub_entity == "mandatory")
        hint = phrase("Such as a branch or a department, as the service knows it")
        name, offered = value_field(service), used.sub_entities
        part = (Field(name=name, label=label, hint=hint, value=form.sub_entity, most=32, offered=offered),)
    return *part, *(
        _parameter(service, each, form.parameters.get(each.name, ""), used.parameters.get(each.name, ()))
        for each in service.parameters
    )


def _days(form: RoleForm, today: date, *, always: bool = False) -> tuple[Component, ...]:
    starts: list[Option] = [(TODAY, phrase("Today"), ""), (ON_DAY, phrase("On a day that I choose"), "")]
    if always or form.start == ALWAYS:
        starts.insert(0, (ALWAYS, phrase("As before: without a first day"), ""))
    first = "" if form.start_date == NO_BEGINNING else form.start_date
    ends: tuple[Option, ...] = (
        (YEAR_END, phrase("At the end of this year"), phrase("{day}", day=year_end(today))),
        (ONE_YEAR, phrase("After one year"), phrase("{day} if the access begins today", day=one_year(today))),
        (ENDLESS, phrase("Never"), phrase("Until somebody ends it")),
        (ON_DAY, phrase("On a day that I choose"), ""),
    )
    return (
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


def _parameter(service: Service, definition: ParameterDefinition, value: str, used: tuple[str, ...]) -> Field:
    return Field(
        name=value_field(service, definition.name),
        label=mark_label(definition.name, required=definition.mandatory),
        hint=_HINTS.get(definition.kind),
        kind=_KINDS.get(definition.kind, "text"),
        value=value,
        offered=() if definition.kind == "date" else used,
    )


# --- a role among those of several services


def read_choice(
    given: Mapping[str, str], services: Sequence[Service], today: date, missing: Phrase
) -> tuple[RoleForm, tuple[FieldError, ...] | None]:
    """The role that was chosen, and its errors.

    None if the form has not asked for everything yet. `missing` asks for the choice.
    """
    service_id, _, role = given.get(ACCESS, "").partition("/")
    service = next((each for each in services if each.service_id == unquote(service_id)), NO_SERVICE)
    form = read({**given, "role": unquote(role)}, service)
    if not given.get(CHECK):
        return form, None
    errors = find_errors(form, today)
    if service is NO_SERVICE or "role" in dict(errors):
        return form, ((ACCESS, missing), *(each for each in errors if each[0] in DAYS))
    if _count_values(service) and given[CHECK] not in (EVERYTHING, name_choice(service)):
        return form, tuple(each for each in errors if each[0] in DAYS) or None
    return form, errors


def name_choice(service: Service, role: str = "") -> str:
    """The value of ACCESS for a service, perhaps with a role."""
    return quote(service.service_id, safe="") + (f"/{quote(role, safe='')}" if role else "")


def list_asked(services: Sequence[Service], form: RoleForm) -> list[Service]:
    """The services whose values `choose_role` asks for at once."""
    every = sum(map(_count_values, services)) <= _VALUES
    return [each for each in services if _count_values(each) and (every or each == form.service)]


def choose_role(
    services: Sequence[Service], form: RoleForm, today: date, asked: Phrase, used: Mapping[str, ValuesInUse],
    *, none: Phrase | None = None,
) -> tuple[Component, ...]:  # fmt: skip
    """The fields of a role among those of several services.

    `asked` is the question; `used` has the values that are offered, by service; `none` is the choice of no role.
    """
    valued = list_asked(services, form)
    groups = tuple(
        RoleGroup(
            name=each.name,
            options=tuple(
                (
                    name_choice(each, role),
                    phrase("{service}: {role}", service=each.name, role=role) if role else each.name,
                    _describe(each, described or each.description),
                )
                for role, _, described in role_options(each) or (("", "", ""),)
            ),
            fields=_values(
                form if each == form.service else RoleForm(service=each), used.get(each.service_id, NO_VALUES)
            )
            if each in valued
            else (),
        )
        for each in services
    )
    options = [option for each in groups for option, _, _ in each.options]
    chosen = name_choice(form.service, form.role) if form.service.service_id else ""
    choice = RoleChoice(
        name=ACCESS,
        legend=asked,
        groups=groups,
        none=none,
        asked=(
            CHECK,
            EVERYTHING if sum(map(_count_values, services)) <= _VALUES else chosen.partition("/")[0] or "role",
        ),
        value=chosen or (options[0] if len(options) == 1 and none is None else ""),
        folded=len(options) > _OPTIONS,
    )
    return choice, *_days(form, today)
