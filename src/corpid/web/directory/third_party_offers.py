"""Offers to third parties in the portal: made, and changed afterwards (D56, R-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import grants
from corpid.flows.directory.grants import Authorisation
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.records import NO_END, ThirdPartyGrant
from corpid.texts import Phrase, phrase
from corpid.web.directory.page_context import PortalContext, portal_path
from corpid.web.directory.third_party_objects import (
    OFFER,
    THIRD_PARTIES,
    authorisation,
    check_version,
    facts,
    is_client,
    page_of,
    sentence,
    up,
    url,
    version,
)
from corpid.web.directory.third_party_terms import (
    NO_END_HINT,
    AuthorisationConfirmation,
    EnterTerms,
    allow_editing,
    parameter_fields,
    read,
    repeated_fields,
    require_confirmation,
    role_options,
    shown_day,
)
from corpid.web.directory.writing import NO_REASON, await_plan, submit_changes
from corpid.web.pages.layout import PageView, ViewPart
from corpid.web.sites import NOTHING_DIFFERENT, FormResult, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.records import Entity, Service
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

_SUB_ENTITY_HINT: Final = phrase("Leave it empty to allow any.")


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
    notes: tuple[Phrase, ...]


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
    notes: tuple[Phrase, ...]


def _given(at: PortalContext, name: str) -> str:
    return at.form.get(name) or at.query.get(name, "")


async def offer(at: PortalContext) -> View:
    """An offer, one question after the other (D56)."""
    registry = at.context.provider.registry
    to = await _organisation(at, _given(at, "to"))
    if to is None:
        return await _find(at)
    services = await grants.list_services(registry, at.actor)
    service = next((each for each in services if each.service_id == _given(at, "service")), None)
    if service is None:
        return _choose_service(at, to, services)
    return _terms(at, to, service)


async def _organisation(at: PortalContext, entity_id: str) -> Entity | None:
    if not entity_id or entity_id == at.entity.entity_id:
        return None
    found = await grants.find_organisations(at.context.provider.registry, at.actor, entity_id)
    return next((each for each in found if each.entity_id == entity_id), None)


async def _find(at: PortalContext) -> View:
    here = portal_path(at.web, OFFER)
    typed = at.query.get("organisation", "").strip()
    errors: tuple[FieldError, ...] = at.errors
    found = await grants.find_organisations(at.context.provider.registry, at.actor, typed) if typed else []
    others = [each for each in found if each.entity_id != at.entity.entity_id]
    if typed and found and not others:
        errors = (("organisation", phrase("This is your own organisation.")),)
    elif "organisation" in at.query and not others:
        errors = (
            (
                "organisation",
                phrase("There is no organisation of exactly this number or name. Ask them how they are registered."),
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
        notes=at.notes,
    )


def _choose_service(at: PortalContext, to: Entity, services: list[Service]) -> View:
    here = portal_path(at.web, OFFER)
    return ChooseService(
        frame=up(at),
        errors=at.errors,
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
        notes=at.notes,
    )


def _terms(at: PortalContext, to: Entity, service: Service) -> View:
    return EnterTerms(
        frame=up(at),
        errors=at.errors,
        action=portal_path(at.web, OFFER),
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
        reason=at.form.get("reason", "") if grants.needs_approval(at.entity, service) else None,
        back=f"{portal_path(at.web, OFFER)}?{urlencode({'to': to.entity_id})}",
        notes=at.notes,
    )


class _OfferInput(NamedTuple):
    """The authorisation that a form describes."""

    found: Authorisation
    """as it would be, or as it is before the change"""
    grant: ThirdPartyGrant
    """as it would be"""
    changes: Sequence[Change]


async def _entered_offer(at: PortalContext) -> _OfferInput:
    """The offer of the form."""
    registry, passwords = at.context.provider.registry, at.context.provider.passwords
    to = await _organisation(at, at.form.get("to", ""))
    services = await grants.list_services(registry, at.actor)
    service = next((each for each in services if each.service_id == at.form.get("service", "")), None)
    if to is None or service is None:
        raise InvalidInput(phrase("Choose the organisation and the service again."))
    allow_editing(at)
    terms = read(at, service)
    wanted = ThirdPartyGrant(
        client_entity_id=at.entity.entity_id,
        entity_id=to.entity_id,
        service_id=service.service_id,
        role=terms.role,
        sub_entity=terms.sub_entity,
        start_date=terms.start_date,
        end_date=terms.end_date,
        parameters=terms.parameters,
        state="offered",
    )
    if await grants.is_stored(registry, wanted):
        raise InvalidInput(
            phrase(
                "{name} already has this authorisation, or an offer of it: open it and change it there.", name=to.name
            )
        )
    changes = await await_plan(grants.plan_offer(registry, passwords, wanted, None))
    _require_reason(at, service)
    found = Authorisation(grant=wanted, client_entity=at.entity, third_party=to, service=service)
    return _OfferInput(found, wanted, changes)


async def save_offer(at: PortalContext) -> FormResult:
    """Offer what was entered, after a confirmation. Raises InvalidInput, InvalidForm, ConfirmationRequired."""
    entered = await _entered_offer(at)
    require_confirmation(at)
    saved = FormResult("grant-offered", page_of("grant", entered.grant))
    return await submit_changes(
        at, entered.changes, saved, seen=[Precondition(ThirdPartyGrant, entered.grant.key, None)]
    )


async def check_offer(at: PortalContext) -> View:
    """The confirmation of an offer. Raises InvalidInput, InvalidForm."""
    entered = await _entered_offer(at)
    name = entered.found.third_party.name
    return AuthorisationConfirmation(
        frame=up(at),
        errors=at.errors,
        action=portal_path(at.web, OFFER),
        heading=phrase("Check the offer"),
        sentence=sentence(entered.found),
        facts=facts(entered.grant),
        consequences=(
            phrase("It gives nothing until {name} accepts it.", name=name),
            phrase(
                "{name} then chooses which of its people act for you. You see who they are, and can end it at any time.",
                name=name,
            ),
        ),
        hidden=repeated_fields(at),
        button=phrase("Make the offer"),
    )


def _require_reason(at: PortalContext, service: Service) -> None:
    if grants.needs_approval(at.entity, service) and not at.form.get("reason", "").strip():
        raise InvalidInput(NO_REASON, field="reason")


async def change(at: PortalContext) -> View:
    """Other terms of an authorisation, by the organisation that gave it."""
    found = await authorisation(at)
    if not is_client(at, found):
        raise NotFound
    grant, form = found.grant, at.form
    return EnterTerms(
        frame=up(at, found),
        errors=at.errors,
        action=portal_path(at.web, at.page),
        heading=phrase("Limit or change it"),
        lead=(sentence(found), _ROLE_STAYS),
        roles=(),
        role="",
        sub_entity=None,
        sub_entity_hint=_SUB_ENTITY_HINT,
        start=form.get("start", "") if form else shown_day(grant.start_date),
        end=form.get("end", "") if form else shown_day(grant.end_date),
        end_hint=NO_END_HINT,
        parameters=parameter_fields(at, found.service, grant.parameters, None),
        hidden=(("version", version(at, grant)),),
        reason=form.get("reason", "") if grants.needs_approval(at.entity, found.service) else None,
        back=url(at, "grant", grant),
        notes=at.notes,
    )


_ROLE_STAYS: Final = phrase("Another service or role takes another offer.")


async def _entered_change(at: PortalContext) -> _OfferInput:
    """The terms as the form changes them."""
    registry, passwords = at.context.provider.registry, at.context.provider.passwords
    found = await authorisation(at)
    if not is_client(at, found):
        raise NotFound
    check_version(at, found.grant)
    allow_editing(at)
    terms = read(at, found.service, was=found.grant)
    wanted = msgspec.structs.replace(
        found.grant,
        start_date=terms.start_date,
        end_date=terms.end_date if at.form.get("end") else NO_END,
        parameters=terms.parameters,
    )
    changes = await await_plan(grants.plan_offer(registry, passwords, wanted, found.grant))
    if not changes:
        raise InvalidInput(NOTHING_DIFFERENT)
    _require_reason(at, found.service)
    becomes = changes[0].becomes
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
        errors=at.errors,
        action=portal_path(at.web, at.page),
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
        return phrase("The offer stands in this form from now on. It gives nothing until {name} accepts it.", name=name)
    if becomes.state == "accepted":
        return phrase(
            "It takes effect at once: what people of {name} have outside these terms has no effect any more.", name=name
        )
    return phrase(
        "This is more than {name} has accepted. Until it accepts again, none of its people may act for you here.",
        name=name,
    )
