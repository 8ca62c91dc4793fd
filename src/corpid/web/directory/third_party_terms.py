"""Terms of third-party authorisations, and access within them (D56, R-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory import grants, role_assignment
from corpid.flows.directory.grants import Authorisation, ThirdPartyRole
from corpid.flows.directory.members import UnknownMember, load_member
from corpid.flows.directory.person_names import digest_names
from corpid.rules.directory import access_texts
from corpid.rules.directory.access_texts import GONE, describe_new_terms, duration
from corpid.rules.directory.approvals import kind_needs_approval
from corpid.rules.directory.records import Change, Entity, Service, ThirdPartyAssignment, ThirdPartyGrant
from corpid.rules.directory.role_forms import (
    ENDS_BEFORE_START,
    NO_VALUES,
    ValuesInUse,
    day,
    day_fault,
    missing_parameter,
    sub_entity_fault,
    value_fault,
)
from corpid.rules.directory.values import (
    NO_BEGINNING,
    NO_END,
    Parameter,
    ParameterDefinition,
    parameter_values,
    stored_value,
)
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web.context import ENTERED
from corpid.web.directory.access import already_given, held_line
from corpid.web.directory.page_context import PortalContext, await_change, names_shown
from corpid.web.directory.people import PERSON_CHOSEN, choose_person
from corpid.web.directory.third_parties import (
    EDIT,
    OFFER,
    THIRD_PARTIES,
    ask_change,
    authorisation,
    facts,
    is_client,
    named,
    organisation_search,
    page_of,
    registration,
    role,
    sentence,
    up,
    url,
)
from corpid.web.pages import role_fields
from corpid.web.pages.components import (
    Actions,
    Facts,
    Field,
    FieldError,
    Form,
    Link,
    Page,
    Paragraph,
    Part,
    Radios,
    View,
    ViewPart,
    table,
)
from corpid.web.pages.role_fields import PARAMETER, Option, value_field
from corpid.web.sites import (
    CONFIRMED,
    NOTHING_DIFFERENT,
    Check,
    FormResult,
    InvalidForm,
    NotFound,
    Section,
    check_page,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from corpid.rules.directory.access import Action, ObjectKind
    from corpid.rules.directory.memberships import Member

NO_END_HINT: Final = phrase("Leave it empty for no end.")
ANY: Final = "*"
"""the value of the field `role` for any"""
FIELDS: Final = frozenset({"role", "sub_entity", "start", "end", "reason", "decision"})
_SUB_ENTITY_HINT: Final = phrase("Leave it empty to allow any.")


_END_OF_GRANT: Final = phrase("Leave it empty for the last day of the authorisation.")
_PART_HINT: Final = phrase("For which part of the organisation.")


class Terms(ViewPart, frozen=True, kw_only=True):
    role: str
    sub_entity: str
    start_date: str
    end_date: str
    parameters: tuple[Parameter, ...]


# --- the form of terms


def allow_editing(at: PortalContext) -> None:
    """Raise InvalidForm, without errors, to go back to the form."""
    if at.form.get("decision") == EDIT:
        raise InvalidForm


def repeated_fields(at: PortalContext) -> tuple[tuple[str, str], ...]:
    """The fields of the form that a confirmation sends again."""
    every_page_has = {"form_token", "step", "names", CONFIRMED, "decision", ENTERED}
    return tuple((name, text) for name, text in at.form.items() if name not in every_page_has)


def _confirm(
    at: PortalContext, heading: Phrase, sentence: Phrase, button: Phrase, changes: Sequence[Change],
    row: ThirdPartyGrant | ThirdPartyAssignment, done: FormResult, *consequences: Phrase | None, up: Link | None = None,
    names: str = "", step_name: str = "", danger: bool = False,
) -> Check:  # fmt: skip
    """The check of terms, whose second button shows their form again."""
    hidden, terms = repeated_fields(at), facts(row)
    return Check(
        heading=heading,
        parts=(Paragraph(sentence, look="summary"), Facts(terms) if terms else None, *consequences),
        hidden=hidden,
        button=phrase("Send for approval") if any(name == "reason" for name, _ in hidden) else button,
        danger=danger,
        other=(EDIT, phrase("Change something")),
        names=names,
        step_name=step_name,
        up=up,
        change=lambda: at.submit_changes(changes, done),
    )


def _show_terms(
    at: PortalContext, service: Service, up: Link | None, heading: Phrase, lead: tuple[Part, ...], *,
    start: str, end: str, end_hint: Phrase, back: str = "", hidden: tuple[tuple[str, str], ...] = (),
    roles: tuple[Option, ...] = (), part: Field | None = None, before: tuple[Parameter, ...] = (),
    within: ThirdPartyGrant | None = None, used: ValuesInUse = NO_VALUES, further: Link | None = None,
    names: str = "", step_name: str = "",
) -> Page:  # fmt: skip
    """The form of role, dates and further terms.

    `lead` is what is known already, `part` the field of the sub-entity, `before` the parameters held, `within` the grant
    of a person's role, and `used` says which values parameters have.
    """
    days = (
        Field(name="start", label=phrase("First day"), kind="date", value=start),
        Field(name="end", label=phrase("Last day"), kind="date", value=end, hint=end_hint),
    )
    parameters = (
        _parameter_field(at, service, each, before, within, used.parameters.get(each.name, ()))
        for each in service.parameters
    )
    return at.build_page(
        heading,
        *lead,
        Form(
            parts=(
                Radios(name="role", legend=phrase("Role"), options=roles, value=at.form.get("role", ""))
                if roles
                else None,
                *([part] if part else []),
                *days,
                *parameters,
            ),
            hidden=hidden,
            needs_approval=kind_needs_approval("grant", at.entity, service),
            button=phrase("Continue"),
        ),
        further or None,
        up=up,
        names=names,
        step_name=step_name,
        back=back,
    )


def _part_field(at: PortalContext, hint: Phrase, *, required: bool = False, offered: tuple[str, ...] = ()) -> Field:
    label = role_fields.mark_label(role_fields.PART, required=required)
    value = at.form.get("sub_entity", "")
    return Field(name="sub_entity", label=label, hint=hint, value=value, most=32, offered=offered)


def _parameter_field(
    at: PortalContext, service: Service, defined: ParameterDefinition, before: tuple[Parameter, ...],
    within: ThirdPartyGrant | None, used: tuple[str, ...],
) -> Field:  # fmt: skip
    name = value_field(service, defined.name)
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
    if used and not allowed and defined.kind != "date":
        hint = phrase("{hint} In use: {values}.", hint=hint, values=used)
    typed = at.form.get(name, "") if at.form else "\n".join(known)
    required = within is not None and (defined.mandatory or bool(allowed))
    label = role_fields.mark_label(defined.name, required=required)
    return Field(name=name, label=label, kind="lines", value=typed, hint=hint)


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
        name = value_field(service, defined.name)
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
    return await _offer_terms(at, to, service)


async def _organisation(at: PortalContext, entity_id: str) -> Entity | None:
    if not entity_id or entity_id == at.entity.entity_id:
        return None
    found = await grants.find_organisations(at.registry, at.actor, entity_id)
    return next((each for each in found if each.entity_id == entity_id), None)


async def _find_organisation(at: PortalContext) -> View:
    here = at.path(OFFER)
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
    rows = ((at.link(OFFER, each.name, to=each.entity_id), registration(each)) for each in others)
    hint = phrase("Its registration number, or its whole name exactly as it is registered")
    return at.build_page(
        phrase("Which organisation will act for yours?"),
        organisation_search(here, typed, hint),
        table(phrase("Choose the organisation"), (phrase("Organisation"), phrase("Number")), rows),
        errors=errors,
    )


def _choose_service(at: PortalContext, to: Entity, services: list[Service]) -> View:
    here = at.path(OFFER)
    rows = (
        (
            at.link(OFFER, each.name, to=to.entity_id, service=each.service_id),
            each.description,
        )
        for each in services
    )
    return at.build_page(
        phrase("At which service?"),
        phrase("Third party: {name}", name=at.name_of(to)),
        table(
            phrase("Services at which third parties can act"),
            (phrase("Service"), phrase("What it is for")),
            rows,
            empty=phrase("No service allows third parties here."),
        ),
        Actions((Link(url=here, text=phrase("Cancel")),)),
    )


async def _offer_terms(at: PortalContext, to: Entity, service: Service) -> View:
    used = await role_assignment.list_values_in_use(at.registry, at.actor, service, today=at.context.today)
    part = _part_field(at, _SUB_ENTITY_HINT, offered=used.sub_entities)
    return _show_terms(
        at,
        service,
        None,
        phrase("What may {name} do?", name=at.name_of(to)),
        (phrase("At {service}, for {client}.", service=service.name, client=at.entity.name),),
        roles=role_options(service, None),
        part=None if service.sub_entity == "none" else part,
        used=used,
        start=at.form.get("start", at.context.today),
        end=at.form.get("end", ""),
        end_hint=NO_END_HINT,
        hidden=(("to", to.entity_id), ("service", service.service_id)),
        back=at.path(OFFER, to=to.entity_id),
    )


async def _plan(
    at: PortalContext, service: Service, was: ThirdPartyGrant | ThirdPartyAssignment | None,
    wanted: ThirdPartyGrant | ThirdPartyAssignment,
) -> Sequence[Change]:  # fmt: skip
    """The changes to the wanted terms.

    Raises InvalidInput, also without the reason that their approval needs.
    """
    changes = await await_change(grants.plan_terms(at.registry, at.actor, was, wanted))
    if not changes:
        raise InvalidInput(NOTHING_DIFFERENT)
    at.reason(needed=kind_needs_approval("grant", at.entity, service))
    return changes


async def _ask_offer(at: PortalContext) -> Check:
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
    if await at.registry.directory.find(type(wanted), *wanted.key) is not None:
        raise InvalidInput(
            phrase(
                "{name} already has this authorisation, or an offer of it: open it and change it there.",
                name=at.name_of(to),
            )
        )
    changes, name = await _plan(at, service, None, wanted), at.name_of(to)
    chooses = phrase(
        "{name} then chooses which of its people act for you. You see who they are, and can end it at any time.",
        name=name,
    )
    return _confirm(
        at,
        phrase("Check the offer"),
        sentence(at, Authorisation(grant=wanted, client_entity=at.entity, third_party=to, service=service)),
        phrase("Make the offer"),
        changes,
        wanted,
        FormResult("grant-offered", page_of("grant", wanted)),
        phrase("It has no effect until {name} accepts it.", name=name),
        chooses,
    )


async def show_change(at: PortalContext) -> View:
    """Other terms of an authorisation, by the organisation that gave it."""
    found = await authorisation(at)
    if not is_client(at, found):
        raise NotFound
    grant, form = found.grant, at.form
    return _show_terms(
        at,
        found.service,
        up(at, found),
        phrase("Limit or change it"),
        (sentence(at, found), phrase("For another service or role, make another offer.")),
        start=form.get("start", "") if form else shown_day(grant.start_date),
        end=form.get("end", "") if form else shown_day(grant.end_date),
        end_hint=NO_END_HINT,
        before=grant.parameters,
        step_name=version_of(grant),
    )


async def _ask_change(at: PortalContext) -> Check:
    """The terms as the form changes them."""
    found = await authorisation(at)
    if not is_client(at, found):
        raise NotFound
    at.check_step(version_of(found.grant))
    allow_editing(at)
    terms = read_terms(at, found.service, was=found.grant)
    wanted = msgspec.structs.replace(found.grant, **msgspec.structs.asdict(terms))
    changes = await _plan(at, found.service, found.grant, wanted)
    becomes = changes[0].after
    assert isinstance(becomes, ThirdPartyGrant)  # noqa: S101 - a change of a grant
    return _confirm(
        at,
        phrase("Check the change"),
        sentence(at, found, becomes),
        phrase("Change it"),
        changes,
        becomes,
        FormResult("grant-changed", page_of("grant", becomes)),
        describe_new_terms(changes[0], at.name_of(found.third_party)),
        up=up(at, found),
        step_name=version_of(found.grant),
        danger=found.grant.state == "accepted",
    )


_OFFERING: Final[tuple[Action, ObjectKind]] = ("write", "grant")
OFFERS_SECTION: Final = Section[PortalContext](
    name=THIRD_PARTIES,
    pages={OFFER: check_page(_ask_offer, form=show_offer, needs=_OFFERING)},
    named_pages={named("change"): check_page(_ask_change, form=show_change, needs=_OFFERING)},
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
    try:
        found = await load_member(at.registry, membership_id, actor=at.actor)
    except UnknownMember:
        return None
    return None if found.membership.invited else found


async def show_assignment(at: PortalContext) -> View:
    """The person, and then the terms of their access (D56)."""
    found = await _granted(at)
    person = await _member(at)
    return await (_choose_member(at, found) if person is None else _show_access_terms(at, found, person))


async def _choose_member(at: PortalContext, found: Authorisation) -> View:
    def to(member: Member) -> str | Phrase:
        if member.membership.invited:
            return phrase("Has not accepted the invitation yet")
        if member.user.user_id == at.actor.user_id and not (at.actor.alone and at.actor.level == "owner"):
            return phrase("This is you: another administrator can give you access")
        return at.path(at.page, **{PERSON_CHOSEN: member.membership.membership_id})

    async def list_held(members: Sequence[Member]) -> dict[str, tuple[Phrase, ...]]:
        held: dict[str, tuple[Phrase, ...]] = {}
        for row, service in await _list_held(at, found, members):
            name = phrase("{name}", name=service.name)
            said = phrase("{service}: {role}", service=service.name, role=row.role) if row.role else name
            held[row.user_id] = (*held.get(row.user_id, ()), said)
        return held

    return await choose_person(
        at,
        at.page,
        to,
        up=up(at, found),
        heading=phrase("Which of your people will act?"),
        asked=phrase("Choose the person"),
        lead=sentence(at, found),
        list_held=list_held,
    )


async def _list_held(
    at: PortalContext, found: Authorisation, people: Sequence[Member]
) -> list[tuple[ThirdPartyAssignment, Service]]:
    """The roles of people for the client entity, at every service."""
    users = [each.user.user_id for each in people]
    client = found.grant.client_entity_id
    return await grants.list_held_roles(at.registry, at.actor, client, users, today=at.context.today)


async def _list_values(at: PortalContext, found: Authorisation) -> ValuesInUse:
    """The values in use of the third party's own people."""
    return await role_assignment.list_values_in_use(
        at.registry, at.actor, found.service, today=at.context.today, client_entity_id=found.grant.client_entity_id
    )


async def _show_access_terms(at: PortalContext, found: Authorisation, person: Member) -> View:
    grant, service, form = found.grant, found.service, at.form
    used = await _list_values(at, found)
    held = await _list_held(at, found, [person])
    first = max(at.context.today, grant.start_date)
    asks_sub_entity = service.sub_entity != "none" and not grant.sub_entity
    return _show_terms(
        at,
        service,
        up(at, found),
        phrase("What may {person} do for {client}?", person=person.name, client=at.name_of(found.client_entity)),
        (
            phrase("Authorised: {sentence}", sentence=sentence(at, found)),
            *already_given(
                [held_line(person.name, *each, at.name_of(found.client_entity), at.context.day) for each in held]
            ),
        ),
        roles=role_options(service, grant),
        part=_part_field(at, _PART_HINT, required=service.sub_entity == "mandatory", offered=used.sub_entities)
        if asks_sub_entity
        else None,
        used=used,
        start=form.get("start", first),
        end=form.get("end", "") if form else shown_day(grant.end_date),
        end_hint=NO_END_HINT if grant.end_date == NO_END else _END_OF_GRANT,
        within=grant,
        hidden=((PERSON_CHOSEN, person.membership.membership_id),),
        back=at.path(at.page),
        names=names_shown(person),
        step_name=version_of(grant),
    )


def _sentence(at: PortalContext, found: Authorisation, row: ThirdPartyAssignment, person: str) -> Phrase:
    return access_texts.role_sentence(person, row, service=found.service.name, entity=at.name_of(found.client_entity))


async def _ask_role(at: PortalContext) -> Check:
    """The access that the form gives."""
    found = await _granted(at)
    person = await _member(at)
    if person is None:
        raise NotFound
    at.check_names(names_shown(person))
    at.check_step(version_of(found.grant))
    allow_editing(at)
    terms = read_terms(at, found.service, within=found.grant)
    wanted = ThirdPartyAssignment(
        user_id=person.user.user_id,
        entity_id=at.entity.entity_id,
        client_entity_id=found.grant.client_entity_id,
        service_id=found.grant.service_id,
        **msgspec.structs.asdict(terms),
    )
    if await at.registry.directory.find(type(wanted), *wanted.key) is not None:
        raise InvalidInput(phrase("{person} already has this access: change it in the list.", person=person.name))
    changes = await _plan(at, found.service, None, wanted)
    return _check(at, found, changes, wanted, person.name, names_shown(person), version_of(found.grant))


def _check(
    at: PortalContext, found: Authorisation, changes: Sequence[Change], row: ThirdPartyAssignment, person: str,
    names: str, step_name: str, *, is_change: bool = False,
) -> Check:  # fmt: skip
    """The check of a person's access."""
    sees = phrase("{name} sees that this person acts for it, with the user name.", name=at.name_of(found.client_entity))
    return _confirm(
        at,
        phrase("Check the change") if is_change else phrase("Check the access"),
        _sentence(at, found, row, person),
        phrase("Change it") if is_change else phrase("Give access"),
        changes,
        row,
        FormResult("role-changed" if is_change else "role-given", page_of("grant", found.grant)),
        sees,
        up=up(at, found),
        names=names,
        step_name=step_name,
    )


async def _given_role(at: PortalContext) -> tuple[ThirdPartyRole, Authorisation]:
    """The page's role, and the authorisation under it."""
    found = await role(at)
    if found.under is None:
        raise NotFound
    return found.given, found.under


def _names(given: ThirdPartyRole) -> str:
    return digest_names([(given.row.user_id, str(given.name))])


async def show_role_change(at: PortalContext) -> View:
    """Other dates and parameters of a person's access."""
    given, found = await _given_role(at)
    row, form = given.row, at.form
    return _show_terms(
        at,
        found.service,
        up(at, found),
        phrase("Change the access of {person}", person=given.name or GONE),
        (
            _sentence(at, found, row, given.name or GONE),
            *access_texts.details(row),
            phrase("Authorised: {sentence}", sentence=sentence(at, found)),
        ),
        start=form.get("start", "") if form else shown_day(row.start_date),
        end=form.get("end", "") if form else shown_day(row.end_date),
        end_hint=NO_END_HINT if found.grant.end_date == NO_END else _END_OF_GRANT,
        before=row.parameters,
        within=found.grant,
        used=await _list_values(at, found),
        step_name=version_of(row, found.grant),
        further=Link(url=url(at, "take-away", row), text=phrase("Remove this access")),
        names=_names(given),
    )


async def _ask_role_change(at: PortalContext) -> Check:
    """The access as the form changes it."""
    given, found = await _given_role(at)
    at.check_names(_names(given))
    step_name = version_of(given.row, found.grant)
    at.check_step(step_name)
    allow_editing(at)
    terms = read_terms(at, found.service, within=found.grant, was=given.row)
    wanted = msgspec.structs.replace(given.row, **msgspec.structs.asdict(terms))
    changes = await _plan(at, found.service, given.row, wanted)
    return _check(at, found, changes, wanted, given.name or GONE, _names(given), step_name, is_change=True)


async def ask_removal(at: PortalContext) -> Check:
    """The check before a person's access is taken away (D56)."""
    found = await role(at)
    row, under = found.given.row, found.under
    return ask_change(
        at,
        row,
        found.service,
        phrase("Remove this access?"),
        access_texts.role_end_sentence(
            found.given.name or GONE, row, service=found.service.name, entity=at.name_of(found.client_entity)
        ),
        phrase("Remove it"),
        consequences=(phrase("Other access of this person stays."),),
        names=_names(found.given),
        asks_reason=True,
        up=up(at, under) if under is not None else at.section_link(THIRD_PARTIES),
        done=FormResult("role-taken", page_of("grant", under.grant) if under is not None else THIRD_PARTIES),
    )


_ASSIGNING: Final[tuple[Action, ObjectKind]] = ("write", "third-party row")
PEOPLE_SECTION: Final = Section[PortalContext](
    name=THIRD_PARTIES,
    named_pages={
        named("assign"): check_page(_ask_role, form=show_assignment, needs=_ASSIGNING),
        named("change-role"): check_page(_ask_role_change, form=show_role_change, needs=_ASSIGNING),
        named("take-away"): check_page(ask_removal, needs=("delete", "third-party row")),
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
