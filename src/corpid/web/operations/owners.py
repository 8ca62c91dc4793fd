"""New organisations in the console, and owners that an operator appoints (D53, D54)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import appointments as flow
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.entity_choice import STATUSES
from corpid.rules.directory.member_details import InvalidDetails, MemberDetails
from corpid.rules.directory.names import COUNTRIES, remedy_of
from corpid.rules.directory.values import address
from corpid.texts import phrase
from corpid.web.operations import views
from corpid.web.operations.entities import NEW, ONE, TYPES, entity_of, entity_page_path, entity_path
from corpid.web.operations.page_context import ConsoleContext, ConsolePage, console_path, frame
from corpid.web.operations.reasons import REASON, acting
from corpid.web.pages.layout import Link
from corpid.web.pages.refusals import reason_of
from corpid.web.sites import FormResult, InvalidForm, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

_FIELDS: Final = ("entity_id", "name", "type", "registration_number", "country", "status")
_OWNER: Final = ("owner_name", "owner_email")
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9._-]{1,10}")
_NAME_CHARACTERS: Final = 200
_NUMBER_CHARACTERS: Final = 50
_MEMBER, _INVITED, _NOBODY = "member", "invited", "nobody"


def _typed(at: ConsoleContext, names: tuple[str, ...]) -> dict[str, str]:
    return {name: at.form.get(name, "").strip() for name in names}


async def new_page(at: ConsoleContext) -> View:
    """The form of a new organisation and its first owner."""
    back = console_path(at.web, "entities")
    typed = {"type": "UEN", "status": "Registered", **_typed(at, (*_FIELDS, *_OWNER, REASON))}
    if not at.form:
        typed |= {"type": "UEN", "status": "Registered"}
    return views.NewOrganisation(
        frame=frame(at, section="entities", up=Link(url=back, text=phrase("Organisations"))),
        action=console_path(at.web, NEW),
        typed=typed,
        types=tuple(TYPES.items()),
        statuses=tuple((value, STATUSES[value]) for value in ("Registered", "Deregistered", "Withdrawn", "")),
        mail_works=at.web.provider.mail.works,
        back=back,
        errors=at.errors,
    )


async def add(at: ConsoleContext) -> FormResult:
    """Add an organisation and invite its first owner: both or neither."""
    typed = _typed(at, (*_FIELDS, *_OWNER))
    errors = [*_wrong(typed), *(_wrong_person(typed, *_OWNER) if typed["owner_name"] or typed["owner_email"] else ())]
    if errors:
        raise InvalidForm(*errors)
    actor = acting(at)
    provider = at.context.provider
    owner = MemberDetails(name=typed["owner_name"], email=typed["owner_email"]) if typed["owner_email"] else None
    members = {name: typed[name] for name in _FIELDS if name != "entity_id"}
    try:
        await flow.add_entity_with_owner(
            provider.registry, at.web.provider.passwords, typed["entity_id"], members, owner,
            actor=actor, now=at.context.now, new_id=at.web.new_user_id,
        )  # fmt: skip
    except InvalidDetails as error:
        raise InvalidInput(phrase("Check the owner's name and address: {reason}.", reason=str(error))) from None
    except (Refused, Conflict) as refused:
        if await _exists(at, typed["entity_id"]):
            raise InvalidInput(
                phrase("There is an organisation with this identifier already."), field="entity_id"
            ) from None
        raise InvalidInput(phrase("It was not added: {reason}.", reason=reason_of(refused))) from None
    provider.registry_cache.drop()
    return FormResult("entity-add", entity_page_path(typed["entity_id"]))


async def _exists(at: ConsoleContext, entity_id: str) -> bool:
    try:
        await flow.list_owners(at.context.provider.registry, entity_id, actor=at.actor)
    except Refused:
        return False
    return True


def _wrong(typed: Mapping[str, str]) -> list[FieldError]:
    """The errors of an organisation's fields (R-12.4, R-14.2)."""
    errors = facts_errors(typed)
    if not _IDENTIFIER.fullmatch(typed["entity_id"]):
        wrong = phrase("Use 1 to 10 letters, digits, full stops, hyphens or underscores.")
        errors.insert(0, ("entity_id", wrong))
    return errors


def facts_errors(typed: Mapping[str, str]) -> list[FieldError]:
    """The errors of the facts that can be changed later (R-12.4)."""
    errors: list[FieldError] = []
    if not typed["name"] or len(typed["name"]) > _NAME_CHARACTERS:
        errors.append(
            (
                "name",
                phrase("Enter the name of the organisation, in at most {count} characters.", count=_NAME_CHARACTERS),
            )
        )
    if typed["type"] not in TYPES:
        errors.append(("type", phrase("Choose how the organisation is registered.")))
    if len(typed["registration_number"]) > _NUMBER_CHARACTERS:
        errors.append(("registration_number", phrase("Use at most {count} characters.", count=_NUMBER_CHARACTERS)))
    if typed["country"] not in COUNTRIES:
        errors.append(("country", phrase("Enter the country's code of two capital letters, such as SG.")))
    if typed["status"] not in STATUSES:
        errors.append(("status", phrase("Choose one of the statuses.")))
    return errors


def _wrong_person(typed: Mapping[str, str], name: str, email: str) -> list[FieldError]:
    """The errors of the fields about somebody to invite (D60)."""
    errors: list[FieldError] = []
    if not typed[name] or len(typed[name]) > _NAME_CHARACTERS:
        errors.append((name, phrase("Enter the person's name.")))
    remedy = phrase("Enter an e-mail address, such as name@example.com.")
    try:
        if not address(typed[email]):
            errors.append((email, remedy))
    except ValueError as error:
        errors.append((email, remedy_of(error, remedy)))
    return errors


async def owner_page(at: ConsoleContext) -> View:
    """The form that appoints an owner, also in place of another."""
    entity = await entity_of(at)
    held = await flow.list_owners(at.context.provider.registry, entity.entity_id, actor=at.actor)
    back = entity_path(at.web, entity.entity_id)
    return views.AppointOwner(
        frame=frame(at, section="entities", up=Link(url=back, text=phrase("Back"))),
        action=console_path(at.web, at.page),
        organisation=entity.name,
        owners=(
            *((user_id, name, "") for user_id, name in held.items()),
            (_NOBODY, phrase("Nobody: every present owner stays"), ""),
        )
        if held
        else (),
        ways=(
            (_INVITED, phrase("Invite somebody by e-mail"), ""),
            (_MEMBER, phrase("A person who already belongs to the organisation"), ""),
        ),
        typed=_typed(at, ("way", "user_name", "instead_of", *_OWNER, REASON)),
        mail_works=at.web.provider.mail.works,
        back=back,
        errors=at.errors,
    )


async def appoint(at: ConsoleContext) -> FormResult:
    """Appoint an owner. Raises InvalidInput, InvalidForm, NotFound, Forbidden."""
    entity = await entity_of(at)
    typed = _typed(at, ("way", "user_name", "instead_of", *_OWNER))
    owner: str | MemberDetails
    if typed["way"] == _MEMBER:
        owner, errors = typed["user_name"], []
        if not owner:
            errors = [("user_name", phrase("Enter the person's user name."))]
    elif typed["way"] == _INVITED:
        owner = MemberDetails(name=typed["owner_name"], email=typed["owner_email"])
        errors = _wrong_person(typed, *_OWNER)
    else:
        raise InvalidInput(phrase("Choose who becomes an owner."), field="way")
    if errors:
        raise InvalidForm(*errors)
    provider = at.context.provider
    if not typed["instead_of"] and await flow.list_owners(provider.registry, entity.entity_id, actor=at.actor):
        raise InvalidInput(phrase("Choose an owner, or nobody."), field="instead_of")
    instead_of = "" if typed["instead_of"] == _NOBODY else typed["instead_of"]
    actor = acting(at)
    try:
        await flow.appoint_owner(
            provider.registry, entity.entity_id, owner, instead_of=instead_of,
            actor=actor, now=at.context.now, new_id=at.web.new_user_id,
        )  # fmt: skip
    except InvalidDetails as error:
        raise InvalidInput(phrase("Check the owner's name and address: {reason}.", reason=str(error))) from None
    except Forbidden as refused:
        raise InvalidInput(phrase("You may not do this: {reason}.", reason=refused.reason)) from None
    except (Refused, Conflict) as refused:
        raise InvalidInput(phrase("It was not done: {reason}.", reason=reason_of(refused))) from None
    provider.registry_cache.drop()
    return FormResult("owner-appointed", entity_page_path(entity.entity_id))


SECTION: Final = Section[ConsoleContext](
    pages={NEW: ConsolePage(view=new_page, submit=add, fresh=True, needs=("write", "entity"))},
    named_pages={
        re.compile(rf"{ONE}/owner"): ConsolePage(
            view=owner_page, submit=appoint, fresh=True, needs=("write", "administrator")
        )
    },
    fields=frozenset({*_FIELDS, *_OWNER, "way", "user_name", "instead_of", REASON}),
    changes={
        "entity-add": phrase("The organisation is added."),
        "owner-appointed": phrase("The owner is appointed."),
    },
)
