"""Pages on the reader's own access, and requests for more (D53, D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import own_access
from corpid.flows.directory.approvals import NoRequest
from corpid.flows.directory.own_access import AlreadyAsked, AlreadyHeld, TooManyAsked
from corpid.flows.directory.write import Refused
from corpid.rules.directory import roles
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS, decision_reason
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.records import NO_END
from corpid.rules.directory.role_forms import faults, row_of
from corpid.rules.limits import ACCESS_REQUESTS_PER_DAY
from corpid.texts import phrase
from corpid.web import sites
from corpid.web.account import views
from corpid.web.account.page_context import AccountContext, account_path, frame, moment
from corpid.web.pages import access_texts, role_fields
from corpid.web.pages.layout import FormView, Link, PageView, ViewPart
from corpid.web.pages.refusals import refusal_of
from corpid.web.sites import CHANGED_MEANWHILE, FormResult, InvalidForm, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime

    from corpid.flows.directory.own_access import Giver, OwnEntity, OwnRequest, OwnRole
    from corpid.rules.directory.records import Assignment, Entity, Service
    from corpid.texts import Phrase
    from corpid.web.pages.role_fields import Option, RoleFields
    from corpid.web.pages.views import View

ACCESS: Final = "access"
ASK: Final = "access/ask"
_MOST_UNFOLDED: Final = 4
"""organisations whose roles are shown at once"""
_LEVELS: Final[Mapping[str, Phrase]] = {
    "owner": phrase("You are an owner: you decide everything for this organisation here."),
    "administrator": phrase("You are an administrator: you decide who may act for this organisation."),
    "sub_administrator": phrase("You are a sub-administrator: you give roles at some services."),
}
_STATES: Final[Mapping[str, Phrase]] = {
    "approved": phrase("Approved"),
    "declined": phrase("Declined"),
    "withdrawn": phrase("Withdrawn"),
    "expired": phrase("Expired: nobody decided within 14 days"),
    "pending": phrase("Waits for an administrator"),
}


class RoleLine(ViewPart, frozen=True, kw_only=True):
    """A role of the reader in a sentence."""

    sentence: Phrase
    state: Phrase | None
    details: tuple[Phrase, ...]
    given: Phrase | None


class Organisation(ViewPart, frozen=True, kw_only=True):
    """An organisation of the reader, with what they may do for it."""

    name: str
    level: Phrase | None
    suspended: bool
    roles: tuple[RoleLine, ...]
    ask: str
    """where to ask for more; empty if that is not possible"""


class RequestLine(ViewPart, frozen=True, kw_only=True):
    id: str
    sentence: Phrase
    details: tuple[Phrase, ...]
    state: Phrase
    waits: bool
    since: datetime
    reason: str
    answer: str
    """the reason of the person who decided"""


class OwnAccess(FormView, frozen=True, kw_only=True):
    """The reader's organisations, roles and requests."""

    template: ClassVar[str] = "account/access.html"
    heading: ClassVar[Phrase] = phrase("Your access")

    organisations: tuple[Organisation, ...]
    folded: bool = False
    """whether the roles of each are shown on demand only"""
    requests: tuple[RequestLine, ...]
    sharing: Link
    saved: Phrase | None = None


class AskForAccess(PageView, frozen=True, kw_only=True):
    """A request for access: organisation, service, role and reason."""

    template: ClassVar[str] = "account/ask_for_access.html"
    heading: ClassVar[Phrase] = phrase("Ask for access")

    action: str
    kept: tuple[tuple[str, str], ...] = ()
    chosen: tuple[tuple[Phrase, str, str], ...] = ()
    """what was chosen: name, value, where to choose another"""
    entities: tuple[Option, ...] = ()
    services: tuple[Option, ...] = ()
    nothing: Phrase | None = None
    """why nothing can be asked for"""
    fields: RoleFields | None = None
    undecided: bool = False
    """whether nobody could decide on it at present"""
    reason: str = ""
    reason_characters: int = MOST_REASON_CHARACTERS
    back: str


def section(account: AccountContext) -> views.Section:
    """The part of the overview that leads to these pages."""
    return views.Section(
        url=account_path(account.web, ACCESS),
        name=OwnAccess.heading,
        state=phrase("What you may do, and for which organisation"),
    )


async def access(account: AccountContext) -> View:
    """The organisations and roles of the reader, and their requests."""
    context, user_id = account.context, account.visit.user.user_id
    found = await own_access.list_own_access(context.provider.registry, user_id)
    asked = await own_access.list_requests(context, user_id)
    return OwnAccess(
        frame=frame(account),
        action=account_path(account.web, ACCESS),
        organisations=tuple(_organisation(account, each) for each in found),
        folded=len(found) > _MOST_UNFOLDED,
        requests=tuple(_request(account, each) for each in asked),
        sharing=Link(url=account_path(account.web, "sharing"), text=phrase("Services that receive your details")),
        saved=account.saved,
        errors=account.errors,
    )


def _organisation(account: AccountContext, found: OwnEntity) -> Organisation:
    usable = found.membership.enabled and found.entity.enabled
    ordered = sorted(found.roles, key=lambda each: (each.role.row.end_date < account.context.today, each.role.row.key))
    return Organisation(
        name=found.entity.name,
        level=_LEVELS.get(found.level),
        suspended=not usable,
        roles=tuple(_line(each, account.context.day) for each in ordered),
        ask=f"{account_path(account.web, ASK)}?entity={found.entity.entity_id}" if usable else "",
    )


def _line(own: OwnRole, today: date) -> RoleLine:
    role = own.role
    state = access_texts.state(role.row, today)
    if state is None and roles.reasons(role, today.isoformat()):
        state = phrase("Has no effect now")
    for_whom = role.client_entity or role.entity
    row = msgspec.structs.replace(role.row, end_date=roles.last_day(role, today.isoformat()) or NO_END)
    return RoleLine(
        sentence=access_texts.own_sentence(row, role.service, for_whom.name, today),
        state=state,
        details=access_texts.details(row),
        given=_given(own.giver),
    )


def _given(giver: Giver) -> Phrase | None:
    match giver.kind:
        case "person":
            if giver.name:
                return phrase("Given by {name}", name=giver.name)
            return phrase("Given by an administrator who has left")
        case "you":
            return phrase("Given by you")
        case "operator":
            return phrase("Given by the operator of this service")
        case "program":
            return phrase("Given by a system of your organisation")
    return None


def _request(account: AccountContext, own: OwnRequest) -> RequestLine:
    return RequestLine(
        id=own.request.request_id,
        sentence=access_texts.asked_sentence(own.row, own.service, own.entity.name, account.context.day),
        details=access_texts.details(own.row),
        state=_STATES[own.state],
        waits=own.state == "pending",
        since=moment(account.web, own.request.created_at),
        reason=own.request.reason,
        answer=decision_reason(own.request) if own.state in {"approved", "declined"} else "",
    )


async def ask(account: AccountContext) -> View:
    """The form of a request, one step at a time."""
    given = {**account.query, **account.form}
    view = AskForAccess(
        frame=frame(account, up=Link(url=account_path(account.web, ACCESS), text=OwnAccess.heading)),
        action=account_path(account.web, ASK),
        back=account_path(account.web, ACCESS),
        reason=given.get("reason", ""),
        errors=account.errors,
    )
    entities = await own_access.list_requestable_entities(account.context, account.visit.user.user_id)
    if not entities:
        return replace(view, nothing=phrase("You do not belong to an organisation."))
    entity = entities[0] if len(entities) == 1 else _of_id(entities, given.get("entity", ""))
    if entity is None:
        wrong = (("entity", phrase("Choose an organisation.")),) if given.get("check") == "entity" else ()
        options: tuple[Option, ...] = tuple((each.entity_id, each.name, each.entity_id) for each in entities)
        return replace(view, entities=options, errors=view.errors or wrong)
    here = account_path(account.web, ASK)
    view = replace(
        view,
        kept=(("entity", entity.entity_id),),
        chosen=((phrase("Organisation"), entity.name, here if len(entities) > 1 else ""),),
    )
    services = await _services(account, entity)
    if not services:
        return replace(view, nothing=phrase("There is no service that {entity} may use.", entity=entity.name))
    service = next((each for each in services if each.service_id == given.get("service")), None)
    if service is None:
        wrong = (("service", phrase("Choose a service.")),) if given.get("check") == "service" else ()
        options = tuple((each.service_id, each.name, each.description) for each in services)
        return replace(view, services=options, errors=view.errors or wrong)
    form = role_fields.read(given, service)
    return replace(
        view,
        kept=(*view.kept, ("service", service.service_id)),
        chosen=(*view.chosen, (phrase("Service"), service.name, f"{here}?entity={entity.entity_id}")),
        fields=role_fields.build_fields(form, account.context.day),
        undecided=await own_access.has_no_approver(account.context, account.visit.user.user_id, entity, service),
    )


async def _services(account: AccountContext, entity: Entity) -> list[Service]:
    return await own_access.list_requestable_services(account.context, account.visit.user.user_id, entity)


def _of_id(entities: Sequence[Entity], entity_id: str) -> Entity | None:
    return next((each for each in entities if each.entity_id == entity_id), None)


async def request(account: AccountContext) -> FormResult:
    """Send the request. Raises InvalidInput, InvalidForm, NotFound."""
    context, form, user_id = account.context, account.form, account.visit.user.user_id
    entity = _of_id(await own_access.list_requestable_entities(context, user_id), form.get("entity", ""))
    if entity is None:
        raise NotFound
    service = next((each for each in await _services(account, entity) if each.service_id == form.get("service")), None)
    if service is None:
        raise InvalidInput(phrase("Choose a service."), field="service")
    typed, reason = role_fields.read(form, service), " ".join(form.get("reason", "").split())
    wrong = role_fields.errors_of(faults(typed, context.day))
    if not reason:
        wrong = (*wrong, ("reason", phrase("Say why you need it.")))
    elif len(reason) > MOST_REASON_CHARACTERS:
        wrong = (*wrong, ("reason", phrase("Enter at most {limit} characters.", limit=MOST_REASON_CHARACTERS)))
    if wrong:
        raise InvalidForm(*wrong)
    await _send(account, row_of(typed, user_id=user_id, entity_id=entity.entity_id, today=context.day), reason)
    return FormResult("access-asked", ACCESS)


async def _send(account: AccountContext, row: Assignment, reason: str) -> None:
    field = "role" if row.role else ""
    try:
        await own_access.request_access(account.context, row, reason=reason)
    except AlreadyHeld:
        raise InvalidInput(phrase("You have this role already."), field=field) from None
    except AlreadyAsked:
        raise InvalidInput(
            phrase("You have asked for this already, and it waits for an administrator."), field=field
        ) from None
    except TooManyAsked:
        raise InvalidInput(
            phrase("You have asked {limit} times today. Try again tomorrow.", limit=ACCESS_REQUESTS_PER_DAY)
        ) from None
    except (Refused, Forbidden) as error:
        raise InvalidInput(refusal_of(error)) from None
    except Conflict:
        raise InvalidInput(CHANGED_MEANWHILE) from None


async def withdraw(account: AccountContext) -> FormResult:
    """Withdraw a request of the reader. Raises InvalidInput, NotFound."""
    try:
        await own_access.withdraw_request(account.context, account.visit.user.user_id, account.form.get("request", ""))
    except NoRequest:
        raise NotFound from None
    except (Refused, Conflict):
        raise InvalidInput(phrase("This request has been decided already.")) from None
    return FormResult("access-withdrawn", ACCESS)


SECTION: Final = Section[AccountContext](
    pages={
        ACCESS: sites.SitePage(view=access, submit=withdraw, leads_to=ACCESS),
        ASK: sites.SitePage(view=ask, submit=request, leads_to=ACCESS),
    },
    fields=role_fields.FIELDS | {"entity", "service", "reason", "request"},
    filters=role_fields.FIELDS | {"entity", "service"},
    prefixes=(role_fields.PARAMETER,),
    changes={
        "access-asked": phrase("Your request has been sent to the administrators of your organisation."),
        "access-withdrawn": phrase("Your request has been withdrawn."),
    },
)
