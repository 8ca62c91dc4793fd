"""The form of an authorisation's terms, or a role's (D56, R-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS
from corpid.rules.directory.records import NO_BEGINNING, NO_END, Parameter, parameter_values
from corpid.rules.directory.role_forms import (
    ENDS_BEFORE_START,
    day,
    day_fault,
    missing_parameter,
    sub_entity_fault,
    value_fault,
)
from corpid.rules.directory.values import stored_value
from corpid.texts import phrase
from corpid.web.context import ENTERED
from corpid.web.pages import role_fields
from corpid.web.pages.access_texts import duration
from corpid.web.pages.layout import FormView, ViewPart
from corpid.web.pages.role_fields import parameter_field
from corpid.web.sites import ConfirmationRequired, InvalidForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpid.rules.directory.records import (
        ParameterDefinition,
        Service,
        ThirdPartyAssignment,
        ThirdPartyGrant,
    )
    from corpid.texts import Phrase
    from corpid.web.directory.page_context import PortalContext
    from corpid.web.pages.layout import FieldError, Link
    from corpid.web.pages.role_fields import Option

_ANY_ROLE: Final = phrase("Any role")
NO_END_HINT: Final = phrase("Leave it empty for no end.")
SUB_ENTITY: Final = role_fields.mark_label(role_fields.PART, required=False)
ANY: Final = "*"
"""the value of the field `role` for any"""
_FRESH: Final = frozenset({"form_token", "step", "names", "confirmed", ENTERED})
"""fields that every page of a form has anew"""
FIELDS: Final = frozenset({"role", "sub_entity", "start", "end", "reason", "confirmed", "version"})


class ParameterField(ViewPart, frozen=True, kw_only=True):
    """The field of a parameter, one value a line.

    The id of its error is its name.
    """

    name: str
    label: Phrase
    value: str
    hint: Phrase


class EnterTerms(FormView, frozen=True, kw_only=True):
    """Role, dates and further terms.

    Fields: as in FIELDS, and those of parameters. Error ids: these.
    """

    template: ClassVar[str] = "manage/third_party_terms.html"

    heading: Phrase
    lead: tuple[Phrase, ...]
    """what is known already"""
    roles: tuple[Option, ...]
    """value, text and description; none: there is nothing to choose"""
    role: str
    sub_entity: str | None
    """None: it is not asked for"""
    sub_entity_hint: Phrase
    sub_entity_label: Phrase = SUB_ENTITY
    start: str
    end: str
    end_hint: Phrase
    parameters: tuple[ParameterField, ...]
    hidden: tuple[tuple[str, str], ...]
    reason: str | None
    """None: it needs no approval"""
    back: str
    notes: tuple[Phrase, ...]
    further: Link | None = None
    most: int = MOST_REASON_CHARACTERS


class AuthorisationConfirmation(FormView, frozen=True, kw_only=True):
    """A confirmation, in sentences.

    The button sends confirmed=yes, the way back confirmed=no.
    """

    template: ClassVar[str] = "manage/third_party_confirm.html"

    heading: Phrase
    sentence: Phrase
    facts: tuple[tuple[Phrase, str], ...] = ()
    consequences: tuple[Phrase, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    reason: str | None = None
    """as typed; None: it is not asked for here"""
    button: Phrase
    danger: bool = False
    back: str = ""
    """an address; empty: the form is shown again"""
    notes: tuple[Phrase, ...] = ()
    most: int = MOST_REASON_CHARACTERS

    @property
    def needs_approval(self) -> bool:
        """True if a reason goes with it, typed here or before."""
        return self.reason is not None or any(name == "reason" for name, _ in self.hidden)


class Terms(ViewPart, frozen=True, kw_only=True):
    """The entered terms."""

    role: str
    sub_entity: str
    start_date: str
    end_date: str
    parameters: tuple[Parameter, ...]


def allow_editing(at: PortalContext) -> None:
    """Raise InvalidForm, without errors, to go back to the form."""
    if at.form.get("confirmed") == "no":
        raise InvalidForm


def require_confirmation(at: PortalContext) -> None:
    """Raise ConfirmationRequired until a form is confirmed."""
    if at.form.get("confirmed") != "yes":
        raise ConfirmationRequired


def repeated_fields(at: PortalContext) -> tuple[tuple[str, str], ...]:
    """The fields of the form that a confirmation sends again."""
    return tuple((name, text) for name, text in at.form.items() if name not in _FRESH)


def parameter_fields(
    at: PortalContext, service: Service, before: tuple[Parameter, ...], within: ThirdPartyGrant | None
) -> tuple[ParameterField, ...]:
    """The fields of a service's parameters.

    `within` is the grant of a person's role.
    """
    return tuple(_field(at, each, before, within) for each in service.parameters)


def _field(
    at: PortalContext, defined: ParameterDefinition, before: tuple[Parameter, ...], within: ThirdPartyGrant | None
) -> ParameterField:
    name = parameter_field(defined.name)
    known = sorted(parameter_values(before, defined.name))
    allowed = sorted(parameter_values(within.parameters, defined.name)) if within is not None else []
    if within is None:
        hint = phrase("The values that are allowed, one a line. Leave it empty to allow any.")
    elif allowed:
        hint = phrase("One value a line. These are authorised: {values}.", values=tuple(allowed))
        known = known or allowed[:1] * (len(allowed) == 1)
    elif defined.mandatory:
        hint = phrase("One value a line.")
    else:
        hint = phrase("One value a line. Leave it empty if there is none.")
    typed = at.form.get(name, "") if at.form else "\n".join(known)
    required = within is not None and (defined.mandatory or bool(allowed))
    return ParameterField(
        name=name, label=role_fields.mark_label(defined.name, required=required), value=typed, hint=hint
    )


def role_options(service: Service, within: ThirdPartyGrant | None) -> tuple[Option, ...]:
    """The roles to choose from, each with its description.

    `within` is the grant of a person's role.
    """
    options = role_fields.role_options(service)
    if within is None:
        return ((ANY, _ANY_ROLE, ""), *options) if options else ()
    return () if within.role else options


def read(
    at: PortalContext,
    service: Service,
    *,
    within: ThirdPartyGrant | None = None,
    was: ThirdPartyGrant | ThirdPartyAssignment | None = None,
) -> Terms:
    """The terms of the form; role and sub-entity stay those of `was`.

    `within` is the grant of a person's role. Raises InvalidForm with every error. Source: D56, R-21
    """
    reading = _TermsReader(at, service, within, was)
    terms = reading.terms()
    if reading.errors:
        raise InvalidForm(*reading.errors)
    return terms


class _TermsReader:
    def __init__(
        self,
        at: PortalContext,
        service: Service,
        within: ThirdPartyGrant | None,
        was: ThirdPartyGrant | ThirdPartyAssignment | None,
    ) -> None:
        self._at, self._service, self._within, self._was = at, service, within, was
        self.errors: list[FieldError] = []

    def terms(self) -> Terms:
        role, sub_entity = (self._was.role, self._was.sub_entity) if self._was else (self._role(), self._sub_entity())
        start_date, end_date = self._dates()
        return Terms(
            role=role,
            sub_entity=sub_entity,
            start_date=start_date,
            end_date=end_date,
            parameters=tuple(self._parameters()),
        )

    def _role(self) -> str:
        options = {each[0] for each in role_options(self._service, self._within)}
        typed = self._at.form.get("role", "")
        if options and typed not in options:
            wanted = phrase("Choose a role.") if self._within else phrase("Choose one role, or any role.")
            self.errors.append(("role", wanted))
        if not options:
            return self._within.role if self._within is not None else ""
        return "" if typed == ANY else typed

    def _sub_entity(self) -> str:
        if self._within is not None and self._within.sub_entity:
            return self._within.sub_entity
        typed = " ".join(self._at.form.get("sub_entity", "").split())
        if why := sub_entity_fault(self._service, typed, needed=self._within is not None):
            self.errors.append(("sub_entity", why))
        return "" if self._service.sub_entity == "none" else typed

    def _dates(self) -> tuple[str, str]:
        today, within, was = self._at.context.today, self._within, self._was
        known = len(self.errors)
        earliest = max(today, within.start_date) if within is not None else today
        start = self._day("start", was.start_date if was is not None else earliest)
        end = self._day("end", within.end_date if within is not None else NO_END)
        misread = len(self.errors) > known
        if not misread and end < start:
            self.errors.append(("end", ENDS_BEFORE_START))
        elif not misread and within is not None and not within.start_date <= start <= end <= within.end_date:
            dates = duration(within.start_date, within.end_date)
            self.errors.append(
                ("start", phrase("Choose days within the authorisation, which is {dates}.", dates=dates))
            )
        return start, end

    def _day(self, name: str, otherwise: str) -> str:
        typed = self._at.form.get(name, "").strip()
        if not typed:
            return otherwise
        found = day(typed)
        if found is None:
            self.errors.append((name, day_fault(typed)))
            return otherwise
        return found.isoformat()

    def _parameters(self) -> Iterator[Parameter]:
        for defined in self._service.parameters:
            name = parameter_field(defined.name)
            typed = dict.fromkeys(line.strip() for line in self._at.form.get(name, "").splitlines())
            values = list(dict.fromkeys(stored_value(defined.kind, value) for value in typed if value))
            for error in self._faults(defined, values):
                self.errors.append((name, error))
                break
            yield from (Parameter(name=defined.name, value=value) for value in values)

    def _faults(self, defined: ParameterDefinition, values: list[str]) -> Iterable[Phrase]:
        allowed = parameter_values(self._within.parameters, defined.name) if self._within is not None else set()
        if self._within is not None and not values and (defined.mandatory or allowed):
            yield missing_parameter(defined, self._service)
        for value in values:
            if why := value_fault(defined, value):
                yield why
            if allowed and value not in allowed:
                yield phrase("Only these values are authorised: {values}.", values=tuple(sorted(allowed)))


def shown_day(text: str) -> str:
    """A day for a field; empty if there is none."""
    return "" if text in {NO_BEGINNING, NO_END} else text
