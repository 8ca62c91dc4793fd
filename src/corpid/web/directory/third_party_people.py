"""A third party's people: access within what was granted (D56, R-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import grants
from corpid.flows.directory.members import find_one_member
from corpid.flows.directory.person_names import names_digest
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.records import NO_END, ThirdPartyAssignment
from corpid.texts import Phrase, phrase
from corpid.web.directory.choose_person import PERSON_CHOSEN, choose_person
from corpid.web.directory.page_context import PortalContext, portal_path
from corpid.web.directory.third_party_objects import (
    THIRD_PARTIES,
    authorisation,
    check_version,
    facts,
    is_client,
    page_of,
    role,
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
from corpid.web.directory.writing import NO_REASON, await_plan, check_names, names_shown, submit_changes
from corpid.web.pages import access_texts, role_fields
from corpid.web.pages.access_texts import GONE
from corpid.web.pages.layout import Link
from corpid.web.sites import NOTHING_DIFFERENT, FormResult, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.directory.grants import Authorisation, ThirdPartyRole
    from corpid.flows.directory.members import Member
    from corpid.rules.directory.plan import Change
    from corpid.web.pages.views import View

_END_OF_GRANT: Final = phrase("Leave it empty for the last day of the authorisation.")
_SUB_ENTITY_HINT: Final = phrase("For which part of the organisation.")


async def _granted(at: PortalContext) -> Authorisation:
    """The page's accepted authorisation, for the third party."""
    found = await authorisation(at)
    if is_client(at, found) or found.grant.state != "accepted":
        raise NotFound
    return found


async def _member(at: PortalContext) -> Member | None:
    """The chosen member; None for an invitation or nobody."""
    membership_id = at.form.get(PERSON_CHOSEN) or at.query.get(PERSON_CHOSEN, "")
    found = await find_one_member(at.context.provider.registry, at.actor, membership_id)
    return None if found is None or found.membership.invited else found


async def assign(at: PortalContext) -> View:
    """The person, and then the terms of their access (D56)."""
    found = await _granted(at)
    person = await _member(at)
    return await _choose(at, found) if person is None else _terms(at, found, person)


async def _choose(at: PortalContext, found: Authorisation) -> View:
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


def _terms(at: PortalContext, found: Authorisation, person: Member) -> View:
    grant, service, form = found.grant, found.service, at.form
    first = max(at.context.today, grant.start_date)
    asks_sub_entity = service.sub_entity != "none" and not grant.sub_entity
    return EnterTerms(
        frame=up(at, found, names=names_shown(person)),
        errors=at.errors,
        action=portal_path(at.web, at.page),
        heading=phrase("What may {person} do for {client}?", person=person.name, client=found.client_entity.name),
        lead=(phrase("Authorised: {sentence}", sentence=sentence(found)),),
        roles=role_options(service, grant),
        role=form.get("role", ""),
        sub_entity=form.get("sub_entity", "") if asks_sub_entity else None,
        sub_entity_label=role_fields.mark_label(role_fields.PART, required=service.sub_entity == "mandatory"),
        sub_entity_hint=_SUB_ENTITY_HINT,
        start=form.get("start", first),
        end=form.get("end", "") if form else shown_day(grant.end_date),
        end_hint=NO_END_HINT if grant.end_date == NO_END else _END_OF_GRANT,
        parameters=parameter_fields(at, service, (), grant),
        hidden=((PERSON_CHOSEN, person.membership.membership_id),),
        reason=form.get("reason", "") if grants.needs_approval(at.entity, service) else None,
        back=portal_path(at.web, at.page),
        notes=at.notes,
    )


def _sentence(found: Authorisation, row: ThirdPartyAssignment, person: str) -> Phrase:
    return access_texts.role_sentence(person, row, service=found.service.name, entity=found.client_entity.name)


def _require_reason(at: PortalContext, found: Authorisation) -> None:
    if grants.needs_approval(at.entity, found.service) and not at.form.get("reason", "").strip():
        raise InvalidInput(NO_REASON, field="reason")


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
    registry, passwords = at.context.provider.registry, at.context.provider.passwords
    found = await _granted(at)
    person = await _member(at)
    if person is None:
        raise NotFound
    check_names(at, names_shown(person))
    allow_editing(at)
    terms = read(at, found.service, within=found.grant)
    wanted = ThirdPartyAssignment(
        user_id=person.user.user_id,
        entity_id=at.entity.entity_id,
        client_entity_id=found.grant.client_entity_id,
        service_id=found.grant.service_id,
        role=terms.role,
        sub_entity=terms.sub_entity,
        start_date=terms.start_date,
        end_date=terms.end_date,
        parameters=terms.parameters,
    )
    if await grants.is_stored(registry, wanted):
        raise InvalidInput(phrase("{person} has this access already: change it in the list.", person=person.name))
    changes = await await_plan(grants.plan_role(registry, passwords, at.actor, wanted, None))
    _require_reason(at, found)
    return _AccessInput(found, wanted, person.name, names_shown(person), changes)


async def save_role(at: PortalContext) -> FormResult:
    """Give access, after a confirmation. Raises InvalidInput, InvalidForm, ConfirmationRequired, NotFound."""
    entered = await _entered_role(at)
    require_confirmation(at)
    saved = FormResult("role-given", page_of("grant", entered.found.grant))
    return await submit_changes(
        at, entered.changes, saved, seen=[Precondition(ThirdPartyAssignment, entered.row.key, None)]
    )


async def check_role(at: PortalContext) -> View:
    """The confirmation of giving access. Raises InvalidInput, InvalidForm, NotFound."""
    entered = await _entered_role(at)
    return _check(at, entered, heading=phrase("Check the access"), button=phrase("Give access"))


def _check(at: PortalContext, entered: _AccessInput, *, heading: Phrase, button: Phrase) -> View:
    found, wanted = entered.found, entered.row
    return AuthorisationConfirmation(
        frame=up(at, found, names=entered.names),
        errors=at.errors,
        action=portal_path(at.web, at.page),
        heading=heading,
        sentence=_sentence(found, wanted, entered.person),
        facts=facts(wanted),
        consequences=(phrase("{name} sees that this person acts for it.", name=found.client_entity.name),),
        hidden=repeated_fields(at),
        button=button,
    )


async def _given(at: PortalContext) -> tuple[ThirdPartyRole, Authorisation]:
    """The page's role, and the authorisation under it."""
    found = await role(at)
    if found.under is None:
        raise NotFound
    return found.given, found.under


def _names(given: ThirdPartyRole) -> str:
    return names_digest([(given.row.user_id, given.name)])


async def change(at: PortalContext) -> View:
    """Other dates and parameters of a person's access."""
    given, found = await _given(at)
    row, form = given.row, at.form
    return EnterTerms(
        frame=up(at, found, names=_names(given)),
        errors=at.errors,
        action=portal_path(at.web, at.page),
        heading=phrase("Change the access of {person}", person=given.name or GONE),
        lead=(_sentence(found, row, given.name or GONE), phrase("Authorised: {sentence}", sentence=sentence(found))),
        roles=(),
        role="",
        sub_entity=None,
        sub_entity_hint=_SUB_ENTITY_HINT,
        start=form.get("start", "") if form else shown_day(row.start_date),
        end=form.get("end", "") if form else shown_day(row.end_date),
        end_hint=NO_END_HINT if found.grant.end_date == NO_END else _END_OF_GRANT,
        parameters=parameter_fields(at, found.service, row.parameters, found.grant),
        hidden=(("version", version(at, row)),),
        reason=form.get("reason", "") if grants.needs_approval(at.entity, found.service) else None,
        back=url(at, "grant", found.grant),
        notes=at.notes,
        further=Link(url=url(at, "take-away", row), text=phrase("Take this access away")),
    )


async def _entered_change(at: PortalContext) -> _AccessInput:
    """The access as the form changes it."""
    registry, passwords = at.context.provider.registry, at.context.provider.passwords
    given, found = await _given(at)
    check_names(at, _names(given))
    check_version(at, given.row)
    allow_editing(at)
    terms = read(at, found.service, within=found.grant, was=given.row)
    wanted = msgspec.structs.replace(
        given.row, start_date=terms.start_date, end_date=terms.end_date, parameters=terms.parameters
    )
    changes = await await_plan(grants.plan_role(registry, passwords, at.actor, wanted, given.row))
    if not changes:
        raise InvalidInput(NOTHING_DIFFERENT)
    _require_reason(at, found)
    return _AccessInput(found, wanted, given.name or GONE, _names(given), changes)


async def save_change(at: PortalContext) -> FormResult:
    """Change access, after a confirmation. Raises InvalidInput, InvalidForm, ConfirmationRequired, NotFound."""
    entered = await _entered_change(at)
    require_confirmation(at)
    return await submit_changes(at, entered.changes, FormResult("role-changed", page_of("grant", entered.found.grant)))


async def check_change(at: PortalContext) -> View:
    """The confirmation of changing access. Raises InvalidInput, InvalidForm, NotFound."""
    return _check(at, await _entered_change(at), heading=phrase("Check the change"), button=phrase("Change it"))


async def take_away(at: PortalContext) -> View:
    """The confirmation of taking a person's access away (D56)."""
    found = await role(at)
    row = found.given.row
    ends = access_texts.role_end_sentence(
        found.given.name or GONE, row, service=found.service.name, entity=found.client_entity.name
    )
    return AuthorisationConfirmation(
        frame=up(at, found.under, names=_names(found.given)),
        errors=at.errors,
        action=portal_path(at.web, at.page),
        heading=phrase("Take this access away?"),
        sentence=ends,
        facts=facts(row),
        consequences=(phrase("Other access of this person stays."),),
        hidden=(("version", version(at, row)),),
        reason=at.form.get("reason", "") if grants.needs_approval(at.entity, found.service) else None,
        button=phrase("Take it away"),
        danger=True,
        back=url(at, "grant", found.under.grant) if found.under is not None else portal_path(at.web, THIRD_PARTIES),
        notes=at.notes,
    )


async def save_taken(at: PortalContext) -> FormResult:
    """Take a person's access away. Raises InvalidInput, NotFound."""
    found = await role(at)
    check_names(at, _names(found.given))
    check_version(at, found.given.row)
    page = page_of("grant", found.under.grant) if found.under is not None else THIRD_PARTIES
    return await submit_changes(at, [grants.plan_role_end(found.given.row)], FormResult("role-taken", page))
