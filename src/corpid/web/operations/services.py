"""Services in the console: list, roles and texts (D53, D55)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import entities as flow
from corpid.flows.directory import lists
from corpid.flows.directory.finding import find_service
from corpid.flows.directory.write import Refused
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.values import DESCRIPTION_CHARACTERS, RoleDescription
from corpid.texts import phrase
from corpid.web.operations import views
from corpid.web.operations.page_context import (
    AT_ONCE,
    REASON,
    ConsoleContext,
    ConsolePage,
    actor_with_reason,
    console_path,
    frame,
    is_current,
    pager,
    path_if_allowed,
    section_link,
    step_of,
)
from corpid.web.pages.errors import reason_of
from corpid.web.pages.layout import Link
from corpid.web.sites import EditConflict, FormResult, InvalidForm, Section, await_found

if TYPE_CHECKING:
    from corpid.rules.directory.records import Service
    from corpid.texts import Phrase
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

_ONE: Final = r"services/[^/]+"
_ROLE: Final = "role-"
_NAME_CHARACTERS: Final = 100
_YES: Final = phrase("Yes")
_NO: Final = phrase("No")
_CHANGED: Final = phrase(
    "Somebody else has changed this service meanwhile. Nothing of your change was saved: this is the service as it is now."
)


async def show_services(at: ConsoleContext) -> View:
    """A page of services by identifier."""
    search = at.query.get("search", "").strip()[:_NAME_CHARACTERS]
    try:
        page = await lists.list_services(
            at.registry, at.actor, search=search, after=at.query.get("after", ""), limit=AT_ONCE
        )
    except Refused:
        page = lists.ListPage(found=())
    return views.SearchedList(
        frame=frame(at, section="services"),
        heading=phrase("Services"),
        action=console_path(at.web, "services"),
        label=phrase("Identifier begins with"),
        ways=(),
        by="",
        search=search,
        caption=phrase("Services"),
        columns=(phrase("Identifier"), phrase("Name"), phrase("Needs approval"), phrase("State")),
        lines=tuple(
            views.Line(
                url=console_path(at.web, _here(each)),
                name=each.service_id,
                texts=(each.name, _YES if each.approval_required else _NO),
                state=views.active(each.enabled),
            )
            for each in page.found
        ),
        empty=phrase("No service is found. Type only the beginning.")
        if search
        else phrase("There are no services yet. A directory file adds them."),
        pager=pager(at, "services", page.after, search=search),
        saved=at.saved,
    )


def _here(service: Service, page: str = "") -> str:
    return f"services/{quote(service.service_id, safe='')}" + (f"/{page}" if page else "")


async def _load_service(at: ConsoleContext) -> Service:
    return await await_found(find_service(at.registry, at.page.split("/")[1], actor=at.actor))


async def show_service(at: ConsoleContext) -> View:
    """One service: facts, roles, and the clients that use it."""
    service = await _load_service(at)
    clients, is_partial = await flow.list_clients_of_service(at.registry, service.service_id, actor=at.actor)
    return views.ServiceView(
        frame=frame(at, section="services", up=section_link(at, "services")),
        heading=phrase("Service: {name}", name=service.name),
        name=service.name,
        description=service.description,
        state=views.active(service.enabled),
        facts=(
            (phrase("Identifier"), service.service_id),
            (phrase("Roles need approval at every organisation"), _YES if service.approval_required else _NO),
            (phrase("Third parties can be authorised"), _YES if service.third_parties else _NO),
            (phrase("Part of the organisation in a role"), _SUB_ENTITY[service.sub_entity]),
            (phrase("Parameters of a role"), ", ".join(each.name for each in service.parameters) or phrase("None")),
        ),
        edit=path_if_allowed(at, _here(service, "edit")),
        roles=_roles(service),
        clients=tuple((each.name, each.client_id) for each in clients[:AT_ONCE]),
        more_clients=is_partial or len(clients) > AT_ONCE,
        saved=at.saved,
    )


_SUB_ENTITY: Final[dict[str, Phrase]] = {
    "none": phrase("Never"),
    "optional": phrase("Possible"),
    "mandatory": phrase("Required"),
}


def _roles(service: Service) -> tuple[views.RoleOfService, ...]:
    described = {each.name: each.description for each in service.role_descriptions}
    return tuple(
        views.RoleOfService(field=f"{_ROLE}{number}", name=name, description=described.get(name, ""))
        for number, name in enumerate(service.roles)
    )


async def show_edit(at: ConsoleContext) -> View:
    """The form of a service's texts, and of its approval."""
    service = await _load_service(at)
    back = console_path(at.web, _here(service))
    return views.EditService(
        frame=frame(at, section="services", up=Link(url=back, text=phrase("Back")), step_name=step_of(at, service)),
        action=console_path(at.web, at.page),
        name=at.form.get("name", service.name),
        description=at.form.get("description", service.description),
        roles=tuple(
            views.RoleOfService(field=each.field, name=each.name, description=at.form.get(each.field, each.description))
            for each in _roles(service)
        ),
        approval_required="approval_required" in at.form if at.form else service.approval_required,
        reason=at.form.get(REASON, ""),
        back=back,
        notes=at.notes,
        errors=at.errors,
    )


async def edit_service(at: ConsoleContext) -> FormResult:
    """Change the service. Raises InvalidInput, InvalidForm, EditConflict, NotFound."""
    service = await _load_service(at)
    if not is_current(at, service):
        raise EditConflict(_CHANGED)
    texts = {name: at.form.get(name, "").strip() for name in ("name", "description")}
    roles = [(each, at.form.get(each.field, "").strip()) for each in _roles(service)]
    if errors := _check_texts(texts, roles):
        raise InvalidForm(*errors)
    described = [RoleDescription(name=each.name, description=text) for each, text in roles if text]
    members = {
        **texts,
        "role_descriptions": {each.name: each.description for each in described},
        "approval_required": "approval_required" in at.form,
    }
    actor = actor_with_reason(at)
    try:
        await flow.update_service(
            at.registry, at.provider.passwords, service.service_id, members, actor=actor, was=service
        )
    except Conflict:
        raise EditConflict(_CHANGED) from None
    except Refused as refused:
        raise InvalidInput(phrase("It was not changed: {reason}.", reason=reason_of(refused))) from None
    at.provider.registry_cache.drop()
    return FormResult("service-edit", _here(service))


def _check_texts(texts: dict[str, str], roles: list[tuple[views.RoleOfService, str]]) -> list[FieldError]:
    errors: list[FieldError] = []
    if not texts["name"] or len(texts["name"]) > _NAME_CHARACTERS:
        errors.append(("name", phrase("Enter a name of at most {count} characters.", count=_NAME_CHARACTERS)))
    too_long = phrase("Use at most {count} characters.", count=DESCRIPTION_CHARACTERS)
    fields = [("description", texts["description"]), *((each.field, text) for each, text in roles)]
    errors += [(field, too_long) for field, text in fields if len(text) > DESCRIPTION_CHARACTERS]
    return errors


SECTION: Final = Section[ConsoleContext](
    pages={"services": ConsolePage(view=show_services)},
    named_pages={
        re.compile(_ONE): ConsolePage(view=show_service),
        re.compile(rf"{_ONE}/edit"): ConsolePage(
            view=show_edit, submit=edit_service, fresh=True, needs=("write", "service")
        ),
    },
    fields=frozenset({"name", "description", "approval_required", REASON}),
    filters=frozenset({"search", "after"}),
    prefixes=(_ROLE,),
    changes={"service-edit": phrase("The service is changed.")},
)
