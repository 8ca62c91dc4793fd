"""Clients in the console: list, one client, its keys and refusals."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote, urlencode

from corpid.flows.directory import clients as flow
from corpid.flows.directory.write import Refused
from corpid.flows.oauth import client_keys
from corpid.flows.operations import audit
from corpid.flows.operations.buffers import REFUSALS_KEPT, list_refusals
from corpid.flows.operations.migration_report import report_of
from corpid.rules.audit_actions import AuditAction
from corpid.rules.audit_records import AuditQuery
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.oauth.client_registration import used_generations
from corpid.rules.oauth.errors import reason_of
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.texts import Phrase, phrase
from corpid.web.operations.confirm import question
from corpid.web.operations.page_context import (
    AT_ONCE,
    ConsoleContext,
    ConsolePage,
    console_path,
    frame,
    pager,
    path_if_allowed,
)
from corpid.web.operations.reasons import REASON, acting
from corpid.web.pages.client_fields import WORDS
from corpid.web.pages.layout import Link, Pager, PageView, ViewPart
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.flows.oauth.client_keys import ClientKeyReport
    from corpid.flows.operations.migration_report import ClientUse
    from corpid.rules.oauth.records import Client
    from corpid.rules.oauth.refusals import ClientRefusal
    from corpid.web.pages.views import View

CLIENTS: Final = "clients"
CLIENT: Final = "client"
_CHANGES: Final = tuple(action for action in AuditAction if action.startswith("client."))
_LATEST: Final = 20
"""changes on a client's page"""


class ClientLine(ViewPart, frozen=True, kw_only=True):
    url: str
    client_id: str
    name: str
    generations: tuple[str, ...]
    ends: date | None
    """the last day of the generation that ends"""
    enabled: bool


class Clients(PageView, frozen=True, kw_only=True):
    """The list of clients. Field of the search: search."""

    template: ClassVar[str] = "console/clients.html"
    heading: ClassVar[Phrase] = phrase("Clients")

    action: str
    search: str
    clients: tuple[ClientLine, ...]
    pager: Pager
    register: str = ""
    """the page that registers one; empty for who may not"""
    saved: Phrase | None = None


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
    saved: Phrase | None = None


async def clients(at: ConsoleContext) -> View:
    """The list of clients, by identifier. Raises access.Forbidden."""
    search, after = at.query.get("search", "").strip(), at.query.get("after", "")
    found = await flow.list_clients_page(
        at.context.provider.registry, search=search, after=after, limit=AT_ONCE + 1, actor=at.actor
    )
    shown = found[:AT_ONCE]
    return Clients(
        frame=frame(at, section=CLIENTS),
        action=console_path(at.web, CLIENTS),
        search=search,
        clients=tuple(_line(at, each) for each in shown),
        pager=pager(at, CLIENTS, shown[-1].client_id if len(found) > AT_ONCE else "", search=search),
        register=path_if_allowed(at, "new-client"),
        saved=at.saved,
    )


def client_path(at: ConsoleContext, client_id: str) -> str:
    """The address path of a client's page."""
    return console_path(at.web, client_page_path(client_id))


def client_page_path(client_id: str, page: str = CLIENT) -> str:
    """The path of a client's page in the console."""
    return f"{page}/{quote(client_id, safe='')}"


def _line(at: ConsoleContext, client: Client) -> ClientLine:
    return ClientLine(
        url=client_path(at, client.client_id),
        client_id=client.client_id,
        name=client.name,
        generations=tuple(each.name for each in used_generations(client, at.web.client_rules)),
        ends=date.fromisoformat(client.legacy_until) if client.legacy_until else None,
        enabled=client.enabled,
    )


async def this_client(at: ConsoleContext) -> Client:
    """The client that the page is about. Raises NotFound, access.Forbidden."""
    client_id = at.page.partition("/")[2]
    try:
        return await flow.find_client(at.context.provider.registry, client_id, actor=at.actor)
    except Refused:
        raise NotFound from None


async def client(at: ConsoleContext) -> View:
    """One client. Raises NotFound, access.Forbidden."""
    provider, found = at.context.provider, await this_client(at)
    refusals = await list_refusals(provider.registry, found.client_id, actor=at.actor)
    uses = await report_of(
        provider.registry,
        found,
        actor=at.actor,
        generations=GENERATIONS,
        today=at.context.today,
        rules=at.web.client_rules,
    )
    looked = await client_keys.describe_keys(provider, found, actor=at.actor, now=at.context.now)
    return ClientPage(
        frame=frame(at, section=CLIENTS, up=Link(url=console_path(at.web, CLIENTS), text=Clients.heading)),
        heading=phrase("Client {name}", name=found.name),
        client_id=found.client_id,
        enabled=found.enabled,
        facts=tuple(_facts(found)),
        keys=looked,
        migration=tuple(uses),
        last_days={each.generation: date.fromisoformat(each.last_day) for each in uses if each.last_day},
        last_used={each.generation: at.moment(each.last_at) for each in uses if each.last_at},
        refusals=tuple(_refusal(at, each) for each in refusals if not each.claimed),
        claimed=tuple(_refusal(at, each) for each in refusals if each.claimed),
        most=REFUSALS_KEPT[False],
        most_claimed=REFUSALS_KEPT[True],
        history=await _history(at, found),
        whole_history=console_path(at.web, f"audit?{urlencode({'client': found.client_id, 'action': 'client.'})}"),
        edit=path_if_allowed(at, client_page_path(found.client_id, "edit-client")),
        switch=path_if_allowed(at, client_page_path(found.client_id, "switch-client")),
        drop=path_if_allowed(at, client_page_path(found.client_id, "drop-keys")) if found.jwks_uri else "",
        saved=at.saved,
    )


def _facts(client: Client) -> list[tuple[Phrase | str, str]]:
    """The members that differ from their default."""
    found: list[tuple[Phrase | str, str]] = []
    for name, each in CLIENT_MEMBERS.items():
        value = getattr(client, name)
        if value == each.default or value in (None, (), "") or name in {"jwks", "enabled", "name"}:
            continue
        found.append(
            (WORDS[name].label if name in WORDS else name, ", ".join(value) if isinstance(value, tuple) else str(value))
        )
    return found


async def _history(at: ConsoleContext, client: Client) -> tuple[HistoryLine, ...]:
    """The latest changes of a client's record (D57)."""
    registry = at.context.provider.registry
    query = AuditQuery(client_id=client.client_id, actions=_CHANGES)
    found = await audit.read_part(registry, query, limit=_LATEST, actor=at.actor)
    names = await audit.read_names(registry, found.entries)
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


def _refusal(at: ConsoleContext, refusal: ClientRefusal) -> RefusalLine:
    return RefusalLine(
        at=at.moment(refusal.at),
        request=f"{refusal.method} {refusal.path}",
        reason=refusal.reason,
        detail=refusal.detail,
        remedy=reason_of(refusal.reason).value.remedy,
        reference=refusal.request_id,
    )


async def switch(at: ConsoleContext) -> View:
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


async def save_switch(at: ConsoleContext) -> FormResult:
    """Enable or disable the client, as the page said. Raises InvalidInput, StaleStep."""
    found = await this_client(at)
    if at.form.get("decision") not in {"enable", "disable"}:
        raise StaleStep
    wanted = at.form.get("decision") == "enable"
    actor = acting(at)
    if found.enabled != wanted:
        await flow.switch_client(at.context.provider.registry, found.client_id, enabled=wanted, actor=actor)
        at.context.provider.registry_cache.drop()
    return FormResult("client-enabled" if wanted else "client-disabled", client_page_path(found.client_id))


async def drop(at: ConsoleContext) -> View:
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


async def save_drop(at: ConsoleContext) -> FormResult:
    """Drop the fetched keys of the client. Raises InvalidInput, NotFound, Refused."""
    found = await this_client(at)
    if found.jwks_uri is None:
        raise NotFound
    await flow.drop_keys(at.context.provider.registry, found.client_id, actor=acting(at))
    return FormResult("client-keys", client_page_path(found.client_id))


def _at(page: str) -> re.Pattern[str]:
    return re.compile(page + r"/[^/]{1,300}")


SECTION: Final = Section[ConsoleContext](
    pages={CLIENTS: ConsolePage(view=clients)},
    named_pages={
        _at(CLIENT): ConsolePage(view=client),
        _at("switch-client"): ConsolePage(view=switch, submit=save_switch, fresh=True, needs=("write", "client")),
        _at("drop-keys"): ConsolePage(view=drop, submit=save_drop, fresh=True, needs=("write", "client")),
    },
    fields=frozenset({"decision", REASON}),
    filters=frozenset({"search", "after"}),
    changes={
        "client-enabled": phrase("The client has been enabled."),
        "client-disabled": phrase("The client has been disabled."),
        "client-keys": phrase("The stored keys have been dropped."),
        "client-added": phrase("The client has been registered."),
        "client-changed": phrase("The client has been changed."),
    },
)
