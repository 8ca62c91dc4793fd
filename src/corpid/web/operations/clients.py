"""Clients in the console: list, one, keys, refusals, form."""

from __future__ import annotations

import re
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote, urlencode

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import clients as flow
from corpid.flows.directory.lists import list_records
from corpid.flows.directory.single_records import set_enabled, update_record
from corpid.flows.directory.write import InvalidMembers, Refused
from corpid.flows.oauth import client_keys
from corpid.flows.operations import audit
from corpid.flows.operations.buffers import REFUSALS_KEPT, list_refusals
from corpid.flows.operations.migration_report import report_of
from corpid.rules.audit_actions import AuditAction
from corpid.rules.audit_records import AuditQuery
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.lists import CLIENTS as CLIENT_LIST
from corpid.rules.fields import NOTHING
from corpid.rules.oauth.client_registration import used_generations
from corpid.rules.oauth.errors import reason_of
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.texts import Phrase, phrase
from corpid.web.operations.page_context import (
    REASON,
    ConsoleContext,
    ConsolePage,
    actor_with_reason,
    console_path,
    frame,
    is_current,
    path_if_allowed,
    question,
    section_link,
    show_list,
    version_of,
)
from corpid.web.pages import errors
from corpid.web.pages.client_fields import (
    FIELDS,
    fields_of,
    mistakes,
    named_faults,
    new_values,
    opens_rare,
    read,
    typed_in,
    values_of,
    without_private_keys,
)
from corpid.web.pages.components import Value, enabled_label
from corpid.web.pages.layout import FormView, Link, PageView, ViewPart
from corpid.web.sites import NOTHING_DIFFERENT, EditConflict, FormResult, InvalidForm, NotFound, Section, await_found

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from corpid.flows.oauth.client_keys import ClientKeyReport
    from corpid.flows.operations.migration_report import ClientUse
    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.rules.oauth.records import Client
    from corpid.rules.oauth.refusals import ClientRefusal
    from corpid.web.pages.client_fields import Fields
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

CLIENTS: Final = "clients"
CLIENT: Final = "client"
_CHANGES: Final = tuple(action for action in AuditAction if action.startswith("client."))
_LATEST: Final = 20
"""changes on a client's page"""
_NEW_CLIENT: Final = "new-client"
_CHANGED: Final = phrase(
    "Somebody else has changed this client meanwhile. Nothing of your change was saved: this is the client as it is now."
)


class RefusalLine(ViewPart, frozen=True, kw_only=True):
    """A refusal, with what to do about it."""

    at: datetime
    request: str
    reason: str
    detail: str
    remedy: str
    reference: str


class HistoryLine(ViewPart, frozen=True, kw_only=True):
    """A change of a client's record, with its reason."""

    at: datetime
    actor: str
    action: str
    members: str
    reason: str


class ClientPage(PageView, frozen=True, kw_only=True):
    """One client: record, keys now, refusals and history."""

    template: ClassVar[str] = "console/client.html"

    heading: Phrase
    client_id: str
    enabled: bool
    facts: tuple[tuple[Phrase | str, str], ...]
    keys: ClientKeyReport
    migration: tuple[ClientUse, ...]
    last_days: dict[str, date]
    """of generations in `migration`"""
    last_used: dict[str, datetime]
    """the same, when it was used last"""
    refusals: tuple[RefusalLine, ...]
    claimed: tuple[RefusalLine, ...]
    most: int
    most_claimed: int
    history: tuple[HistoryLine, ...] = ()
    whole_history: str = ""
    """the page of the audit that goes on"""
    edit: str = ""
    switch: str = ""
    drop: str = ""


class ClientForm(FormView, frozen=True, kw_only=True):
    """The form of a client.

    Fields: client_id of a new one, its members, and reason.
    """

    template: ClassVar[str] = "console/client_form.html"

    heading: Phrase
    groups: tuple[Fields, ...]
    more: tuple[Fields, ...]
    """those that most clients leave as they are"""
    more_open: bool
    new: bool
    identifier: str = "client_id"
    """the name of its identifier on the wire"""
    client_id: str = ""


async def show_clients(at: ConsoleContext) -> View:
    """The list of clients, by identifier. Raises access.Forbidden."""

    def row(client: Client) -> tuple[Value, ...]:
        generations = ", ".join(each.name for each in used_generations(client, at.web.client_rules))
        ends = date.fromisoformat(client.legacy_until) if client.legacy_until else None
        shown = phrase("{generations}; legacy until {day}", generations=generations, day=ends) if ends else generations
        link = Link(url=client_path(at, client.client_id), text=client.client_id)
        return link, client.name, shown, enabled_label(client.enabled)

    new = path_if_allowed(at, "new-client")
    return await show_list(
        at, CLIENTS, partial(list_records, at.registry, at.actor, CLIENT_LIST), row, heading=phrase("Clients"),
        columns=(phrase("Identifier"), phrase("Name"), phrase("Generations"), phrase("State")),
        label=phrase("Identifier begins with"), none=phrase("No client is registered yet."),
        not_found=phrase("No client is found. Type only the beginning."),
        add=Link(url=new, text=phrase("Register a client")) if new else None,
    )  # fmt: skip


def client_path(at: ConsoleContext, client_id: str) -> str:
    """The address path of a client's page."""
    return console_path(at.web, client_page_path(client_id))


def client_page_path(client_id: str, page: str = CLIENT) -> str:
    """The path of a client's page in the console."""
    return f"{page}/{quote(client_id, safe='')}"


async def this_client(at: ConsoleContext) -> Client:
    """The client that the page is about. Raises NotFound, access.Forbidden."""
    return await await_found(flow.find_client(at.registry, at.page.partition("/")[2], actor=at.actor))


async def show_client(at: ConsoleContext) -> View:
    """One client. Raises NotFound, access.Forbidden."""
    found = await this_client(at)
    refusals = await list_refusals(at.registry, found.client_id, actor=at.actor)
    uses = await report_of(
        at.registry, found, actor=at.actor, generations=GENERATIONS, today=at.context.today, rules=at.web.client_rules
    )
    looked = await client_keys.describe_keys(at.provider, found, actor=at.actor, now=at.context.now)
    return ClientPage(
        frame=frame(at, section=CLIENTS, up=section_link(at, CLIENTS)),
        heading=phrase("Client {name}", name=found.name),
        client_id=found.client_id,
        enabled=found.enabled,
        facts=tuple(_list_facts(found)),
        keys=looked,
        migration=tuple(uses),
        last_days={each.generation: date.fromisoformat(each.last_day) for each in uses if each.last_day},
        last_used={each.generation: at.moment(each.last_at) for each in uses if each.last_at},
        refusals=tuple(_refusal_line(at, each) for each in refusals if not each.claimed),
        claimed=tuple(_refusal_line(at, each) for each in refusals if each.claimed),
        most=REFUSALS_KEPT[False],
        most_claimed=REFUSALS_KEPT[True],
        history=await _load_history(at, found),
        whole_history=console_path(at.web, f"audit?{urlencode({'client': found.client_id, 'action': 'client.'})}"),
        edit=path_if_allowed(at, client_page_path(found.client_id, "edit-client")),
        switch=path_if_allowed(at, client_page_path(found.client_id, "switch-client")),
        drop=path_if_allowed(at, client_page_path(found.client_id, "drop-keys")) if found.jwks_uri else "",
    )


def _list_facts(client: Client) -> list[tuple[Phrase | str, str]]:
    """The members that differ from their default."""
    found: list[tuple[Phrase | str, str]] = []
    for name, each in CLIENT_MEMBERS.items():
        value = getattr(client, name)
        if value == each.default or value in (None, (), "") or name in {"jwks", "enabled", "name"}:
            continue
        found.append((each.member.label or name, ", ".join(value) if isinstance(value, tuple) else str(value)))
    return found


async def _load_history(at: ConsoleContext, client: Client) -> tuple[HistoryLine, ...]:
    """The latest changes of a client's record (D57)."""
    query = AuditQuery(client_id=client.client_id, actions=_CHANGES)
    found = await audit.read_part(at.registry, query, limit=_LATEST, actor=at.actor)
    names = await audit.read_names(at.registry, found.entries)
    return tuple(
        HistoryLine(
            at=at.moment(each.at),
            actor=":".join(names.get(part, part) for part in each.actor.split(":", 1)),
            action=each.action,
            members=each.detail.get("members", ""),
            reason=each.detail.get("reason_given", ""),
        )
        for each in found.entries
    )


def _refusal_line(at: ConsoleContext, refusal: ClientRefusal) -> RefusalLine:
    return RefusalLine(
        at=at.moment(refusal.at),
        request=f"{refusal.method} {refusal.path}",
        reason=refusal.reason,
        detail=refusal.detail,
        remedy=reason_of(refusal.reason).value.remedy,
        reference=refusal.request_id,
    )


async def show_switch(at: ConsoleContext) -> View:
    """The question before a client is enabled or disabled."""
    found = await this_client(at)
    if found.enabled:
        heading = phrase("Disable {name}?", name=found.name)
        consequence = phrase("Nobody can sign in to it any more, and its tokens are refused within five seconds.")
    else:
        heading = phrase("Enable {name}?", name=found.name)
        consequence = phrase("People can sign in to it again at once.")
    return question(
        at,
        CLIENTS,
        Link(url=client_path(at, found.client_id), text=phrase("Go back")),
        heading,
        (consequence,),
        phrase("Disable it") if found.enabled else phrase("Enable it"),
        destroys=found.enabled,
        decision="disable" if found.enabled else "enable",
    )


async def switch_client(at: ConsoleContext) -> FormResult:
    """Enable or disable the client, as the page said. Raises InvalidInput, StaleStep."""
    found = await this_client(at)
    if at.form.get("decision") not in {"enable", "disable"}:
        raise StaleStep
    wanted = at.form.get("decision") == "enable"
    actor = actor_with_reason(at)
    if found.enabled != wanted:
        await set_enabled(at.registry, "client", {"client_id": found.client_id}, enabled=wanted, actor=actor)
        at.provider.registry_cache.drop()
    return FormResult("client-enabled" if wanted else "client-disabled", client_page_path(found.client_id))


async def show_drop(at: ConsoleContext) -> View:
    """The question before fetched keys are dropped.

    Raises NotFound for a client without any.
    """
    found = await this_client(at)
    if found.jwks_uri is None:
        raise NotFound
    return question(
        at,
        CLIENTS,
        Link(url=client_path(at, found.client_id), text=phrase("Go back")),
        phrase("Forget the stored keys of {name}?", name=found.name),
        (phrase("They are fetched again with its next request. Do this if a key of the client has leaked."),),
        phrase("Forget the keys"),
        destroys=True,
    )


async def drop_keys(at: ConsoleContext) -> FormResult:
    """Drop the fetched keys of the client. Raises InvalidInput, NotFound, Refused."""
    found = await this_client(at)
    if found.jwks_uri is None:
        raise NotFound
    await flow.drop_keys(at.registry, found.client_id, actor=actor_with_reason(at))
    return FormResult("client-keys", client_page_path(found.client_id))


async def show_new(at: ConsoleContext) -> View:
    return _show_form(at, phrase("Register a client"), new_values(), back=console_path(at.web, CLIENTS))


async def show_edit(at: ConsoleContext) -> View:
    """The form of a client that is there. Raises NotFound, access.Forbidden."""
    found = await this_client(at)
    heading = phrase("Change {name}", name=found.name)
    return _show_form(at, heading, values_of(found), back=client_path(at, found.client_id), version=version_of(found))


def _show_form(at: ConsoleContext, heading: Phrase, values: Mapping[str, str], *, back: str, version: str = "") -> View:
    given = without_private_keys({**(at.form or values)})
    return ClientForm(
        frame=frame(
            at, section=CLIENTS, up=Link(url=back, text=phrase("Go back")), step_name=at.form.get("step", version)
        ),
        heading=heading,
        groups=fields_of(given, rare=False),
        more=fields_of(given, rare=True),
        more_open=opens_rare(given, at.errors),
        new=not version,
        client_id=at.form.get("client_id", ""),
    )


def _read_members(at: ConsoleContext, before: Mapping[str, str]) -> dict[str, object]:
    """The members that the form changes, as in a directory file.

    None for those that stay.
    """
    members: dict[str, object] = {}
    for name, each in FIELDS.items():
        typed = typed_in(at.form, name)
        members[name] = None if typed == before[name].strip() else read(each, typed)
    return members


async def add_client(at: ConsoleContext) -> FormResult:
    """Register the client of the form. Raises InvalidForm, access.Forbidden."""
    client_id = at.form.get("client_id", "").strip()
    no_identifier = [] if client_id else [("client_id", phrase("Enter the identifier of the client."))]
    actor = _check_form(at, no_identifier)
    members = {name: value or None for name, value in _read_members(at, dict.fromkeys(FIELDS, "")).items()}
    members = {name: None if value == NOTHING else value for name, value in members.items()}
    try:
        await flow.add_client(
            at.registry, at.provider.passwords, client_id, members, actor=actor, rules=at.web.client_rules
        )
    except Refused as refused:
        raise _name_faults(refused) from None
    return FormResult("client-added", client_page_path(client_id))


async def edit_client(at: ConsoleContext) -> FormResult:
    """Change the client as the form says. Raises InvalidInput, InvalidForm, EditConflict, NotFound."""
    found = await this_client(at)
    if not is_current(at, found):
        raise EditConflict(_CHANGED)
    actor = _check_form(at, [])
    members = _read_members(at, values_of(found))
    if all(value is None for value in members.values()):
        raise InvalidInput(NOTHING_DIFFERENT)
    try:
        await update_record(
            at.registry, at.provider.passwords, "client", {"client_id": found.client_id}, members,
            actor=actor, rules=at.web.client_rules, was=found,
        )  # fmt: skip
    except Conflict:
        raise EditConflict(_CHANGED) from None
    except Refused as refused:
        raise _name_faults(refused) from None
    return FormResult("client-changed", client_page_path(found.client_id))


def _check_form(at: ConsoleContext, errors: list[FieldError]) -> DeploymentOperator:
    """The operator with the reason, if the form can be read.

    `errors` are those found before.
    """
    typed = {name: at.form.get(name, "").strip() for name in FIELDS}
    errors = [*errors, *mistakes(typed, developer_mode=at.web.client_rules.developer_mode)]
    try:
        actor = actor_with_reason(at)
    except InvalidInput as rejected:
        raise InvalidForm(*errors, (REASON, rejected.sentence)) from None
    if errors:
        raise InvalidForm(*errors)
    return actor


def _name_faults(refused: Refused) -> InvalidForm:
    """The faults, each at its field.

    The sentences are the registration's own.
    """
    faults = refused.faults if isinstance(refused, InvalidMembers) else (errors.reason_of(refused),)
    return InvalidForm(*named_faults(faults))


def _one(page: str) -> re.Pattern[str]:
    """The paths of a page about one client."""
    return re.compile(page + r"/[^/]{1,300}")


_WRITING: Final = ("write", "client")
SECTION: Final = Section[ConsoleContext](
    pages={
        CLIENTS: ConsolePage(view=show_clients),
        _NEW_CLIENT: ConsolePage(
            view=show_new, submit=add_client, fresh=True, kept=without_private_keys, needs=_WRITING
        ),
    },
    named_pages={
        _one(CLIENT): ConsolePage(view=show_client),
        _one("edit-client"): ConsolePage(
            view=show_edit, submit=edit_client, fresh=True, kept=without_private_keys, needs=_WRITING
        ),
        _one("switch-client"): ConsolePage(view=show_switch, submit=switch_client, fresh=True, needs=_WRITING),
        _one("drop-keys"): ConsolePage(view=show_drop, submit=drop_keys, fresh=True, needs=_WRITING),
    },
    fields=frozenset({"client_id", "decision", REASON, *FIELDS}),
    filters=frozenset({"search", "after", "before"}),
    changes={
        "client-enabled": phrase("The client has been enabled."),
        "client-disabled": phrase("The client has been disabled."),
        "client-keys": phrase("The stored keys have been dropped."),
        "client-added": phrase("The client has been registered."),
        "client-changed": phrase("The client has been changed."),
    },
)
