"""Terms of third-party authorisations, and access within them (D56, R-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import grants
from corpid.flows.directory.grants import Authorisation
from corpid.flows.directory.members import find_one_member
from corpid.flows.directory.person_names import digest_names
from corpid.rules.directory import access_texts
from corpid.rules.directory.access_texts import GONE, duration
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS, kind_needs_approval
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.records import Change, ThirdPartyAssignment, ThirdPartyGrant
from corpid.rules.directory.role_forms import (
    ENDS_BEFORE_START,
    day,
    day_fault,
    missing_parameter,
    sub_entity_fault,
    value_fault,
)
from corpid.rules.directory.values import NO_BEGINNING, NO_END, Parameter, parameter_values, stored_value
from corpid.texts import Phrase, phrase
from corpid.web.context import ENTERED
from corpid.web.directory.page_context import (
    NO_REASON,
    PortalContext,
    PortalPage,
    await_change,
    check_names,
    names_shown,
    portal_path,
    submit_changes,
)
from corpid.web.directory.people import PERSON_CHOSEN, choose_person
from corpid.web.directory.third_parties import (
    OFFER,
    THIRD_PARTIES,
    AuthorisationConfirmation,
    authorisation,
    check_version,
    facts,
    is_client,
    named,
    page_of,
    role,
    sentence,
    up,
    url,
    version,
)
from corpid.web.pages import role_fields
from corpid.web.pages.layout import FormView, Link, PageView, ViewPart
from corpid.web.pages.role_fields import PARAMETER, parameter_field
from corpid.web.sites import NOTHING_DIFFERENT, ConfirmationRequired, FormResult, InvalidForm, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from corpid.flows.directory.grants import ThirdPartyRole
    from corpid.flows.directory.members import Member
    from corpid.rules.directory.records import Entity, Service
    from corpid.rules.directory.values import ParameterDefinition
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.role_fields import Option
    from corpid.web.pages.views import View

NO_END_HINT: Final = phrase("Leave it empty for no end.")
SUB_ENTITY: Final = role_fields.mark_label(role_fields.PART, required=False)
ANY: Final = "*"
"""the value of the field `role` for any"""
FIELDS: Final = frozenset({"role", "sub_entity", "start", "end", "reason", "confirmed", "version"})
_SUB_ENTITY_HINT: Final = phrase("Leave it empty to allow any.")


_END_OF_GRANT: Final = phrase("Leave it empty for the last day of the authorisation.")
_PART_HINT: Final = phrase("For which part of the organisation.")


class OrganisationLine(ViewPart, frozen=True, kw_only=True):
    """An organisation that was found."""

    url: str
    name: str
    number: str
    number_name: Phrase


class FindOrganisation(PageView, frozen=True, kw_only=True):
    """The organisation that an offer is for. Field and error id: organisation."""

    template: ClassVar[str] = "manage/find_organisation.html"
    heading: ClassVar[Phrase] = phrase("Which organisation will act for yours?")

    action: str
    typed: str
    found: tuple[OrganisationLine, ...]
    back: str


class ServiceLine(ViewPart, frozen=True, kw_only=True):
    """A service that can be chosen."""

    url: str
    name: str
    description: str


class ChooseService(PageView, frozen=True, kw_only=True):
    template: ClassVar[str] = "manage/choose_service.html"
    heading: ClassVar[Phrase] = phrase("At which service?")

    name: str
    services: tuple[ServiceLine, ...]
    back: str


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
    further: Link | None = None
    most: int = MOST_REASON_CHARACTERS


class Terms(ViewPart, frozen=True, kw_only=True):
    role: str
    sub_entity: str
    start_date: str
    end_date: str
    parameters: tuple[Parameter, ...]


# --- the form of terms


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
    every_page_has = {"form_token", "step", "names", "confirmed", ENTERED}
    return tuple((name, text) for name, text in at.form.items() if name not in every_page_has)


def parameter_fields(
    at: PortalContext, service: Service, before: tuple[Parameter, ...], within: ThirdPartyGrant | None
) -> tuple[ParameterField, ...]:
    """The fields of a service's parameters.

    `within` is the grant of a person's role.
    """
    return tuple(_parameter_field(at, each, before, within) for each in service.parameters)


def _parameter_field(
    at: PortalContext, defined: ParameterDefinition, before: tuple[Parameter, ...], within: ThirdPartyGrant | None
) -> ParameterField:
    name = parameter_field(defined.name)
    known = sorted(parameter_values(before, defined.name))
    allowed = sorted(parameter_values(within.parameters, defined.name)) if within is not None else []
    if within is None:
        hint = phrase("The values that are allowed, one per line. Leave it empty to allow any.")
    elif allowed:
        hint = phrase("One value per line. These are authorised: {values}.", values=tuple(allowed))
        known = known or allowed[:1] * (len(allowed) == 1)
    elif defined.mandatory:
        hint = phrase("One value per line.")
    else:
        hint = phrase("One value per line. Leave it empty if there is none.")
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
        return ((ANY, phrase("Any role"), ""), *options) if options else ()
    return () if within.role else options


def read_terms(
    at: PortalContext,
    service: Service,
    *,
    within: ThirdPartyGrant | None = None,
    was: ThirdPartyGrant | ThirdPartyAssignment | None = None,
) -> Terms:
    """The terms of the form; role and sub-entity stay those of `was`.

    `within` is the grant of a person's role. Raises InvalidForm with every error. Source: D56, R-21
    """
    errors: list[FieldError] = []
    role, sub_entity = (was.role, was.sub_entity) if was else _read_role(at, service, within, errors)
    earliest = max(at.context.today, within.start_date) if within is not None else at.context.today
    start_date = _read_day(at, "start", was.start_date if was is not None else earliest, errors)
    end_date = _read_day(at, "end", within.end_date if within is not None else NO_END, errors)
    if not any(field in {"start", "end"} for field, _ in errors):
        if end_date < start_date:
            errors.append(("end", ENDS_BEFORE_START))
        elif within is not None and not within.start_date <= start_date <= end_date <= within.end_date:
            dates = duration(within.start_date, within.end_date)
            errors.append(("start", phrase("Choose days within the authorisation: {dates}.", dates=dates)))
    parameters: list[Parameter] = []
    for defined in service.parameters:
        name = parameter_field(defined.name)
        typed = dict.fromkeys(line.strip() for line in at.form.get(name, "").splitlines())
        values = list(dict.fromkeys(stored_value(defined.kind, value) for value in typed if value))
        if why := next(_find_faults(service, defined, values, within), None):
            errors.append((name, why))
        parameters += (Parameter(name=defined.name, value=value) for value in values)
    if errors:
        raise InvalidForm(*errors)
    return Terms(
        role=role, sub_entity=sub_entity, start_date=start_date, end_date=end_date, parameters=tuple(parameters)
    )


def _read_role(
    at: PortalContext, service: Service, within: ThirdPartyGrant | None, errors: list[FieldError]
) -> tuple[str, str]:
    """The role and the part of the organisation."""
    options = {each[0] for each in role_options(service, within)}
    typed = at.form.get("role", "")
    if options and typed not in options:
        errors.append(("role", phrase("Choose a role.") if within else phrase("Choose one role, or any role.")))
    if not options:
        typed = within.role if within is not None else ""
    role = "" if typed == ANY else typed
    if within is not None and within.sub_entity:
        return role, within.sub_entity
    sub_entity = " ".join(at.form.get("sub_entity", "").split())
    if why := sub_entity_fault(service, sub_entity, needed=within is not None):
        errors.append(("sub_entity", why))
    return role, "" if service.sub_entity == "none" else sub_entity


def _read_day(at: PortalContext, name: str, otherwise: str, errors: list[FieldError]) -> str:
    typed = at.form.get(name, "").strip()
    found = day(typed) if typed else None
    if typed and found is None:
        errors.append((name, day_fault(typed)))
    return found.isoformat() if found else otherwise


def _find_faults(
    service: Service, defined: ParameterDefinition, values: list[str], within: ThirdPartyGrant | None
) -> Iterator[Phrase]:
    allowed = parameter_values(within.parameters, defined.name) if within is not None else set()
    if within is not None and not values and (defined.mandatory or allowed):
        yield missing_parameter(defined, service)
    for value in values:
        if why := value_fault(defined, value):
            yield why
        if allowed and value not in allowed:
            yield phrase("Only these values are authorised: {values}.", values=tuple(sorted(allowed)))


def shown_day(text: str) -> str:
    """A day for a field; empty if there is none."""
    return "" if text in {NO_BEGINNING, NO_END} else text


# --- offers, and changes of them


def _given(at: PortalContext, name: str) -> str:
    return at.form.get(name) or at.query.get(name, "")


async def show_offer(at: PortalContext) -> View:
    """An offer, one question after the other (D56)."""
    to = await _organisation(at, _given(at, "to"))
    if to is None:
        return await _find_organisation(at)
    services = await grants.list_services(at.registry, at.actor)
    service = next((each for each in services if each.service_id == _given(at, "service")), None)
    if service is None:
        return _choose_service(at, to, services)
    return _show_terms(at, to, service)


async def _organisation(at: PortalContext, entity_id: str) -> Entity | None:
    if not entity_id or entity_id == at.entity.entity_id:
        return None
    found = await grants.find_organisations(at.registry, at.actor, entity_id)
    return next((each for each in found if each.entity_id == entity_id), None)


async def _find_organisation(at: PortalContext) -> View:
    here = portal_path(at.web, OFFER)
    typed = at.query.get("organisation", "").strip()
    errors: tuple[FieldError, ...] = at.errors
    found = await grants.find_organisations(at.registry, at.actor, typed) if typed else []
    others = [each for each in found if each.entity_id != at.entity.entity_id]
    if typed and found and not others:
        errors = (("organisation", phrase("This is your own organisation.")),)
    elif "organisation" in at.query and not others:
        errors = (
            (
                "organisation",
                phrase("No organisation has exactly this number or name. Ask them how they are registered."),
            ),
        )
    return FindOrganisation(
        frame=up(at),
        errors=errors,
        action=here,
        typed=typed,
        found=tuple(
            OrganisationLine(
                url=f"{here}?{urlencode({'to': each.entity_id})}",
                name=each.name,
                number=each.registration_number,
                number_name=NUMBERS[each.type],
            )
            for each in others
        ),
        back=portal_path(at.web, THIRD_PARTIES),
    )


def _choose_service(at: PortalContext, to: Entity, services: list[Service]) -> View:
    here = portal_path(at.web, OFFER)
    return ChooseService(
        frame=up(at),
        name=to.name,
        services=tuple(
            ServiceLine(
                url=f"{here}?{urlencode({'to': to.entity_id, 'service': each.service_id})}",
                name=each.name,
                description=each.description,
            )
            for each in services
        ),
        back=here,
    )


def _show_terms(at: PortalContext, to: Entity, service: Service) -> View:
    return EnterTerms(
        frame=up(at),
        heading=phrase("What may {name} do?", name=to.name),
        lead=(phrase("At {service}, for {client}.", service=service.name, client=at.entity.name),),
        roles=role_options(service, None),
        role=at.form.get("role", ""),
        sub_entity=None if service.sub_entity == "none" else at.form.get("sub_entity", ""),
        sub_entity_hint=_SUB_ENTITY_HINT,
        start=at.form.get("start", at.context.today),
        end=at.form.get("end", ""),
        end_hint=NO_END_HINT,
        parameters=parameter_fields(at, service, (), None),
        hidden=(("to", to.entity_id), ("service", service.service_id)),
        reason=at.form.get("reason", "") if kind_needs_approval("grant", at.entity, service) else None,
        back=f"{portal_path(at.web, OFFER)}?{urlencode({'to': to.entity_id})}",
    )


class _OfferInput(NamedTuple):
    """The authorisation that a form describes."""

    found: Authorisation
    """as it would be, or as it is before the change"""
    grant: ThirdPartyGrant
    """as it would be"""
    changes: Sequence[Change]


async def _entered_offer(at: PortalContext) -> _OfferInput:
    to = await _organisation(at, at.form.get("to", ""))
    services = await grants.list_services(at.registry, at.actor)
    service = next((each for each in services if each.service_id == at.form.get("service", "")), None)
    if to is None or service is None:
        raise InvalidInput(phrase("Choose the organisation and the service again."))
    allow_editing(at)
    terms = read_terms(at, service)
    wanted = ThirdPartyGrant(
        client_entity_id=at.entity.entity_id,
        entity_id=to.entity_id,
        service_id=service.service_id,
        state="offered",
        **msgspec.structs.asdict(terms),
    )
    if await grants.is_stored(at.registry, wanted):
        raise InvalidInput(
            phrase(
                "{name} already has this authorisation, or an offer of it: open it and change it there.", name=to.name
            )
        )
    changes = await await_change(grants.plan_terms(at.registry, at.actor, None, wanted))
    require_reason(at, service)
    found = Authorisation(grant=wanted, client_entity=at.entity, third_party=to, service=service)
    return _OfferInput(found, wanted, changes)


async def save_offer(at: PortalContext) -> FormResult:
    """Offer what was entered, after a confirmation. Raises InvalidInput, InvalidForm, ConfirmationRequired."""
    entered = await _entered_offer(at)
    require_confirmation(at)
    saved = FormResult("grant-offered", page_of("grant", entered.grant))
    return await submit_changes(at, entered.changes, saved)


async def check_offer(at: PortalContext) -> View:
    """The confirmation of an offer. Raises InvalidInput, InvalidForm."""
    entered = await _entered_offer(at)
    name = entered.found.third_party.name
    return AuthorisationConfirmation(
        frame=up(at),
        heading=phrase("Check the offer"),
        sentence=sentence(entered.found),
        facts=facts(entered.grant),
        consequences=(
            phrase("It has no effect until {name} accepts it.", name=name),
            phrase(
                "{name} then chooses which of its people act for you. You see who they are, and can end it at any time.",
                name=name,
            ),
        ),
        hidden=repeated_fields(at),
        button=phrase("Make the offer"),
    )


def require_reason(at: PortalContext, service: Service) -> None:
    """Raise InvalidInput for a form without the reason that its approval needs."""
    if kind_needs_approval("grant", at.entity, service) and not at.form.get("reason", "").strip():
        raise InvalidInput(NO_REASON, field="reason")


async def show_change(at: PortalContext) -> View:
    """Other terms of an authorisation, by the organisation that gave it."""
    found = await authorisation(at)
    if not is_client(at, found):
        raise NotFound
    grant, form = found.grant, at.form
    return EnterTerms(
        frame=up(at, found),
        heading=phrase("Limit or change it"),
        lead=(sentence(found), phrase("For another service or role, make another offer.")),
        roles=(),
        role="",
        sub_entity=None,
        sub_entity_hint=_SUB_ENTITY_HINT,
        start=form.get("start", "") if form else shown_day(grant.start_date),
        end=form.get("end", "") if form else shown_day(grant.end_date),
        end_hint=NO_END_HINT,
        parameters=parameter_fields(at, found.service, grant.parameters, None),
        hidden=(("version", version(at, grant)),),
        reason=form.get("reason", "") if kind_needs_approval("grant", at.entity, found.service) else None,
        back=url(at, "grant", grant),
    )


async def _entered_change(at: PortalContext) -> _OfferInput:
    """The terms as the form changes them."""
    found = await authorisation(at)
    if not is_client(at, found):
        raise NotFound
    check_version(at, found.grant)
    allow_editing(at)
    terms = read_terms(at, found.service, was=found.grant)
    wanted = msgspec.structs.replace(found.grant, **msgspec.structs.asdict(terms))
    changes = await await_change(grants.plan_terms(at.registry, at.actor, found.grant, wanted))
    if not changes:
        raise InvalidInput(NOTHING_DIFFERENT)
    require_reason(at, found.service)
    becomes = changes[0].after
    assert isinstance(becomes, ThirdPartyGrant)  # noqa: S101 - a change of a grant
    return _OfferInput(found, becomes, changes)


async def save_change(at: PortalContext) -> FormResult:
    """Change the terms, after a confirmation. Raises InvalidInput, InvalidForm, ConfirmationRequired, NotFound."""
    entered = await _entered_change(at)
    require_confirmation(at)
    return await submit_changes(at, entered.changes, FormResult("grant-changed", page_of("grant", entered.grant)))


async def check_change(at: PortalContext) -> View:
    """The confirmation of other terms. Raises InvalidInput, InvalidForm, NotFound."""
    entered = await _entered_change(at)
    return AuthorisationConfirmation(
        frame=up(at, entered.found),
        heading=phrase("Check the change"),
        sentence=sentence(entered.found, entered.grant),
        facts=facts(entered.grant),
        consequences=(_consequence(entered.found, entered.grant),),
        hidden=repeated_fields(at),
        button=phrase("Change it"),
        danger=entered.found.grant.state == "accepted",
    )


def _consequence(found: Authorisation, becomes: ThirdPartyGrant) -> Phrase:
    name = found.third_party.name
    if found.grant.state == "offered":
        return phrase("These terms apply from now on. The offer has no effect until {name} accepts it.", name=name)
    if becomes.state == "accepted":
        return phrase(
            "It takes effect at once: access of people of {name} outside these terms has no effect any more.", name=name
        )
    return phrase(
        "This is more than {name} has accepted. Until it accepts again, none of its people may act for you here.",
        name=name,
    )


_OFFERING: Final = ("write", "grant")
OFFERS_SECTION: Final = Section[PortalContext](
    pages={OFFER: PortalPage(view=show_offer, submit=save_offer, check=check_offer, fresh=True, needs=_OFFERING)},
    named_pages={
        named("change"): PortalPage(
            view=show_change, submit=save_change, check=check_change, fresh=True, needs=_OFFERING
        )
    },
    fields=FIELDS | {"to", "service"},
    filters=frozenset({"organisation", "to", "service"}),
    prefixes=(PARAMETER,),
    changes={
        "grant-offered": phrase("The offer has been made."),
        "grant-changed": phrase("The authorisation has been changed."),
    },
)


# --- access of people


async def _granted(at: PortalContext) -> Authorisation:
    """The page's accepted authorisation, for the third party."""
    found = await authorisation(at)
    if is_client(at, found) or found.grant.state != "accepted":
        raise NotFound
    return found


async def _member(at: PortalContext) -> Member | None:
    """The chosen member; None for an invitation or nobody."""
    membership_id = at.form.get(PERSON_CHOSEN) or at.query.get(PERSON_CHOSEN, "")
    found = await find_one_member(at.registry, at.actor, membership_id)
    return None if found is None or found.membership.invited else found


async def show_assignment(at: PortalContext) -> View:
    """The person, and then the terms of their access (D56)."""
    found = await _granted(at)
    person = await _member(at)
    return await _choose_member(at, found) if person is None else _show_access_terms(at, found, person)


async def _choose_member(at: PortalContext, found: Authorisation) -> View:
    def to(member: Member) -> str | Phrase:
        if member.membership.invited:
            return phrase("Has not accepted the invitation yet")
        if member.user.user_id == at.actor.user_id and not (at.actor.alone and at.actor.level == "owner"):
            return phrase("This is you: another administrator can give you access")
        return f"{portal_path(at.web, at.page)}?{urlencode({PERSON_CHOSEN: member.membership.membership_id})}"

    return await choose_person(
        at,
        at.page,
        to,
        frame=up(at, found),
        heading=phrase("Which of your people will act?"),
        asked=phrase("Choose the person"),
        lead=sentence(found),
    )


def _show_access_terms(at: PortalContext, found: Authorisation, person: Member) -> View:
    grant, service, form = found.grant, found.service, at.form
    first = max(at.context.today, grant.start_date)
    asks_sub_entity = service.sub_entity != "none" and not grant.sub_entity
    return EnterTerms(
        frame=up(at, found, names=names_shown(person)),
        heading=phrase("What may {person} do for {client}?", person=person.name, client=found.client_entity.name),
        lead=(phrase("Authorised: {sentence}", sentence=sentence(found)),),
        roles=role_options(service, grant),
        role=form.get("role", ""),
        sub_entity=form.get("sub_entity", "") if asks_sub_entity else None,
        sub_entity_label=role_fields.mark_label(role_fields.PART, required=service.sub_entity == "mandatory"),
        sub_entity_hint=_PART_HINT,
        start=form.get("start", first),
        end=form.get("end", "") if form else shown_day(grant.end_date),
        end_hint=NO_END_HINT if grant.end_date == NO_END else _END_OF_GRANT,
        parameters=parameter_fields(at, service, (), grant),
        hidden=((PERSON_CHOSEN, person.membership.membership_id),),
        reason=form.get("reason", "") if kind_needs_approval("grant", at.entity, service) else None,
        back=portal_path(at.web, at.page),
    )


def _sentence(found: Authorisation, row: ThirdPartyAssignment, person: str) -> Phrase:
    return access_texts.role_sentence(person, row, service=found.service.name, entity=found.client_entity.name)


class _AccessInput(NamedTuple):
    """The access that a form describes."""

    found: Authorisation
    row: ThirdPartyAssignment
    person: str
    names: str
    """the digest of the person, as shown"""
    changes: Sequence[Change]


async def _entered_role(at: PortalContext) -> _AccessInput:
    """The access that the form gives."""
    found = await _granted(at)
    person = await _member(at)
    if person is None:
        raise NotFound
    check_names(at, names_shown(person))
    allow_editing(at)
    terms = read_terms(at, found.service, within=found.grant)
    wanted = ThirdPartyAssignment(
        user_id=person.user.user_id,
        entity_id=at.entity.entity_id,
        client_entity_id=found.grant.client_entity_id,
        service_id=found.grant.service_id,
        **msgspec.structs.asdict(terms),
    )
    if await grants.is_stored(at.registry, wanted):
        raise InvalidInput(phrase("{person} already has this access: change it in the list.", person=person.name))
    changes = await await_change(grants.plan_terms(at.registry, at.actor, None, wanted))
    require_reason(at, found.service)
    return _AccessInput(found, wanted, person.name, names_shown(person), changes)


async def save_role(at: PortalContext) -> FormResult:
    """Give access, after a confirmation. Raises InvalidInput, InvalidForm, ConfirmationRequired, NotFound."""
    entered = await _entered_role(at)
    require_confirmation(at)
    saved = FormResult("role-given", page_of("grant", entered.found.grant))
    return await submit_changes(at, entered.changes, saved)


async def check_role(at: PortalContext) -> View:
    """The confirmation of giving access. Raises InvalidInput, InvalidForm, NotFound."""
    entered = await _entered_role(at)
    return _confirm(at, entered, heading=phrase("Check the access"), button=phrase("Give access"))


def _confirm(at: PortalContext, entered: _AccessInput, *, heading: Phrase, button: Phrase) -> View:
    found, wanted = entered.found, entered.row
    return AuthorisationConfirmation(
        frame=up(at, found, names=entered.names),
        heading=heading,
        sentence=_sentence(found, wanted, entered.person),
        facts=facts(wanted),
        consequences=(phrase("{name} sees that this person acts for it.", name=found.client_entity.name),),
        hidden=repeated_fields(at),
        button=button,
    )


async def _given_role(at: PortalContext) -> tuple[ThirdPartyRole, Authorisation]:
    """The page's role, and the authorisation under it."""
    found = await role(at)
    if found.under is None:
        raise NotFound
    return found.given, found.under


def _names(given: ThirdPartyRole) -> str:
    return digest_names([(given.row.user_id, given.name)])


async def show_role_change(at: PortalContext) -> View:
    """Other dates and parameters of a person's access."""
    given, found = await _given_role(at)
    row, form = given.row, at.form
    return EnterTerms(
        frame=up(at, found, names=_names(given)),
        heading=phrase("Change the access of {person}", person=given.name or GONE),
        lead=(_sentence(found, row, given.name or GONE), phrase("Authorised: {sentence}", sentence=sentence(found))),
        roles=(),
        role="",
        sub_entity=None,
        sub_entity_hint=_PART_HINT,
        start=form.get("start", "") if form else shown_day(row.start_date),
        end=form.get("end", "") if form else shown_day(row.end_date),
        end_hint=NO_END_HINT if found.grant.end_date == NO_END else _END_OF_GRANT,
        parameters=parameter_fields(at, found.service, row.parameters, found.grant),
        hidden=(("version", version(at, row)),),
        reason=form.get("reason", "") if kind_needs_approval("grant", at.entity, found.service) else None,
        back=url(at, "grant", found.grant),
        further=Link(url=url(at, "take-away", row), text=phrase("Remove this access")),
    )


async def _entered_role_change(at: PortalContext) -> _AccessInput:
    """The access as the form changes it."""
    given, found = await _given_role(at)
    check_names(at, _names(given))
    check_version(at, given.row)
    allow_editing(at)
    terms = read_terms(at, found.service, within=found.grant, was=given.row)
    wanted = msgspec.structs.replace(given.row, **msgspec.structs.asdict(terms))
    changes = await await_change(grants.plan_terms(at.registry, at.actor, given.row, wanted))
    if not changes:
        raise InvalidInput(NOTHING_DIFFERENT)
    require_reason(at, found.service)
    return _AccessInput(found, wanted, given.name or GONE, _names(given), changes)


async def save_role_change(at: PortalContext) -> FormResult:
    """Change access, after a confirmation. Raises InvalidInput, InvalidForm, ConfirmationRequired, NotFound."""
    entered = await _entered_role_change(at)
    require_confirmation(at)
    return await submit_changes(at, entered.changes, FormResult("role-changed", page_of("grant", entered.found.grant)))


async def check_role_change(at: PortalContext) -> View:
    """The confirmation of changing access. Raises InvalidInput, InvalidForm, NotFound."""
    return _confirm(at, await _entered_role_change(at), heading=phrase("Check the change"), button=phrase("Change it"))


async def show_removal(at: PortalContext) -> View:
    """The confirmation of taking a person's access away (D56)."""
    found = await role(at)
    row = found.given.row
    ends = access_texts.role_end_sentence(
        found.given.name or GONE, row, service=found.service.name, entity=found.client_entity.name
    )
    return AuthorisationConfirmation(
        frame=up(at, found.under, names=_names(found.given)),
        heading=phrase("Remove this access?"),
        sentence=ends,
        facts=facts(row),
        consequences=(phrase("Other access of this person stays."),),
        hidden=(("version", version(at, row)),),
        reason=at.form.get("reason", "") if kind_needs_approval("grant", at.entity, found.service) else None,
        button=phrase("Remove it"),
        danger=True,
        back=url(at, "grant", found.under.grant) if found.under is not None else portal_path(at.web, THIRD_PARTIES),
    )


async def save_removal(at: PortalContext) -> FormResult:
    """Take a person's access away. Raises InvalidInput, NotFound."""
    found = await role(at)
    check_names(at, _names(found.given))
    check_version(at, found.given.row)
    page = page_of("grant", found.under.grant) if found.under is not None else THIRD_PARTIES
    return await submit_changes(at, [Change(found.given.row, None)], FormResult("role-taken", page))


_ASSIGNING: Final = ("write", "third-party row")
PEOPLE_SECTION: Final = Section[PortalContext](
    named_pages={
        named("assign"): PortalPage(
            view=show_assignment, submit=save_role, check=check_role, fresh=True, needs=_ASSIGNING
        ),
        named("change-role"): PortalPage(
            view=show_role_change, submit=save_role_change, check=check_role_change, fresh=True, needs=_ASSIGNING
        ),
        named("take-away"): PortalPage(
            view=show_removal, submit=save_removal, fresh=True, needs=("delete", "third-party row")
        ),
    },
    fields=FIELDS | {PERSON_CHOSEN},
    filters=frozenset({PERSON_CHOSEN, "find", "after"}),
    prefixes=(role_fields.PARAMETER,),
    changes={
        "role-given": phrase("The access has been given."),
        "role-changed": phrase("The access has been changed."),
        "role-taken": phrase("The access has been removed."),
    },
)
