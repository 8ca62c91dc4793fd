"""Services in the console: list, roles and texts (D53, D55)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import to_builtins
from msgspec.structs import replace

from corpid.flows.directory import clients as flow
from corpid.flows.directory.lists import find_service, list_records
from corpid.rules.directory import values
from corpid.rules.directory.lists import SERVICES
from corpid.rules.directory.records import Service
from corpid.rules.fields import Field, fields_of
from corpid.texts import phrase
from corpid.web.operations.clients import client_path
from corpid.web.operations.page_context import (
    AT_ONCE,
    KEPT_BY_AUDIT,
    LIST_FILTERS,
    ONLY_FIRST,
    REASON,
    ConsoleContext,
    ConsolePage,
    check_current,
    record_page,
    save_record,
    show_list,
)
from corpid.web.pages.components import Actions, Facts, Form, Heading, Link, Value, View, enabled_label, table
from corpid.web.pages.record_forms import RecordForm, form_of
from corpid.web.sites import FormResult, InvalidForm, Section, await_found

if TYPE_CHECKING:
    from starlette.responses import Response

_ONE: Final = r"services/[^/]+"
_ROLE: Final = "role-"
_TEXTS: Final = form_of(Service, "name", "description")
_APPROVAL: Final = form_of(Service, "approval_required")
_YES: Final = phrase("Yes")
_NO: Final = phrase("No")
_CHANGED: Final = phrase(
    "Somebody else has changed this service in the meantime. Your changes were not saved: this is the service as it "
    "is now."
)


async def show_services(at: ConsoleContext) -> View | Response:
    """A page of services by identifier."""

    def row(service: Service) -> tuple[Value, ...]:
        link = at.record_link("services", service.service_id, service.service_id)
        return link, service.name, _YES if service.approval_required else _NO, enabled_label(service.enabled)

    return await show_list(
        at, "services", SERVICES, partial(list_records, at.registry, at.actor, SERVICES), row,
        heading=phrase("Services"),
        columns=(
            (phrase("Identifier"), "id"), (phrase("Name"), ""), (phrase("Needs approval"), ""), (phrase("State"), ""),
        ),
        label=phrase("Name or identifier"), none=phrase("There are no services yet. A directory file adds them."),
        not_found=phrase("No service found. Check the spelling."),
    )  # fmt: skip


def _here(service: Service, page: str = "") -> str:
    return record_page("services", service.service_id, page)


async def _load_service(at: ConsoleContext) -> Service:
    return await await_found(find_service(at.registry, at.page.split("/")[1], actor=at.actor))


async def show_service(at: ConsoleContext) -> View:
    """One service: facts, roles, and the clients that use it."""
    service = await _load_service(at)
    clients = await flow.list_clients_of_service(at.registry, service.service_id, actor=at.actor)
    edit = at.allowed_link(_here(service, "edit"), phrase("Change the service"))
    return at.build_page(
        phrase("Service: {name}", name=service.name),
        enabled_label(service.enabled),
        service.description or None,
        Facts(
            (
                (phrase("Identifier"), service.service_id),
                (phrase("Roles need approval at every organisation"), _YES if service.approval_required else _NO),
                (phrase("Third parties can be authorised"), _YES if service.third_parties else _NO),
                (
                    phrase("Part of the organisation in a role"),
                    fields_of(Service)["sub_entity"].choices[service.sub_entity],
                ),
                (
                    phrase("Parameters of a role"),
                    ", ".join(each.name for each in service.parameters) or phrase("None"),
                ),
            )
        ),
        Actions((edit,) if edit else ()),
        Heading(phrase("Roles")),
        table(
            phrase("What people can be given at this service."),
            (phrase("Role"), phrase("Description")),
            tuple(_describe_roles(service).items()),
            empty=phrase("It has no roles: people get access to the service as a whole."),
        ),
        Heading(phrase("Clients")),
        table(
            phrase("They ask for access at this service."),
            (phrase("Name"), phrase("Identifier")),
            tuple(
                (Link(url=client_path(at, each.client_id), text=each.name), each.client_id)
                for each in clients[:AT_ONCE]
            ),
            empty=phrase("No client uses it."),
            more=ONLY_FIRST if len(clients) > AT_ONCE else None,
        ),
        name=service.name,
    )


def _describe_roles(service: Service) -> dict[str, str]:
    described = {each.name: each.description for each in service.role_descriptions}
    return {name: described.get(name, "") for name in service.roles}


def _descriptions(service: Service) -> RecordForm:
    """The form of the roles' descriptions: a role may be called anything."""
    described = Field(read=values.DESCRIPTION)
    return RecordForm(
        {
            f"{_ROLE}{number}": replace(described, name=name, form_label=phrase("{name}", name=name))
            for number, name in enumerate(service.roles)
        }
    )


async def show_edit(at: ConsoleContext) -> View:
    """The form of a service's texts, and of its approval."""
    service = await _load_service(at)
    back = at.path(_here(service))
    held = {**_TEXTS.read(at.form), **_APPROVAL.read(at.form)} if at.form else to_builtins(service)
    roles = _descriptions(service)
    return at.build_page(
        phrase("Change the service"),
        Form(
            parts=(
                *_TEXTS.show(held),
                Heading(phrase("Descriptions of the roles")) if service.roles else None,
                *roles.show(roles.read(at.form) if at.form else _describe_roles(service)),
                Heading(phrase("Approval")),
                *_APPROVAL.show(held),
            ),
            reason=KEPT_BY_AUDIT,
            button=phrase("Save"),
        ),
        up=Link(url=back, text=phrase("Back")),
        step_name=at.step_of(service),
    )


async def edit_service(at: ConsoleContext) -> FormResult:
    """Change the service. Raises InvalidInput, InvalidForm, EditConflict, NotFound."""
    service = await _load_service(at)
    check_current(at, service, _CHANGED)
    roles, texts = _descriptions(service), _TEXTS.read(at.form)
    described = roles.read(at.form)
    if errors := [*_TEXTS.find_errors(texts), *roles.find_errors(described)]:
        raise InvalidForm(*errors)
    members = {
        **texts,
        **_APPROVAL.read(at.form),
        "role_descriptions": {name: text for name, text in described.items() if text},
    }
    await save_record(at, "service", service, members, _CHANGED)
    return FormResult("service-edit", _here(service))


SECTION: Final = Section[ConsoleContext](
    name="services",
    pages={"services": ConsolePage(view=show_services)},
    named_pages={
        re.compile(_ONE): ConsolePage(view=show_service),
        re.compile(rf"{_ONE}/edit"): ConsolePage(
            view=show_edit, submit=edit_service, fresh=True, needs=("write", "service")
        ),
    },
    fields=frozenset({*_TEXTS.fields, *_APPROVAL.fields, REASON}),
    filters=LIST_FILTERS,
    prefixes=(_ROLE,),
    changes={"service-edit": phrase("The service has been changed.")},
)
