"""Clients in the console: list, one, keys, refusals, form."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Final, Unpack

import msgspec
from msgspec.structs import replace

from corpid.flows.directory import clients as flow
from corpid.flows.directory.lists import ListPage, PageOptions, list_records
from corpid.flows.directory.single_records import set_enabled, update_record
from corpid.flows.directory.write import InvalidMembers, Refused
from corpid.flows.oauth import client_keys
from corpid.flows.operations import overview
from corpid.flows.operations.buffers import REFUSALS_KEPT, list_refusals
from corpid.flows.operations.migration_report import ClientUse, report_of
from corpid.jose.keys import parse_client_key_set
from corpid.rules.audit import AuditAction, AuditQuery
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.lists import CLIENTS as CLIENT_LIST
from corpid.rules.directory.records import Conflict
from corpid.rules.fields import NOTHING
from corpid.rules.hourly_counts import BY_HOUR, PERIODS, Period
from corpid.rules.limits import DAY
from corpid.rules.oauth.client_registration import issuers_of, used_generations
from corpid.rules.oauth.discovery import DISCOVERY_PATH
from corpid.rules.oauth.errors import reason_of
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.pasted_keys import read_pasted
from corpid.rules.oauth.records import CLIENT_MEMBERS, Client
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.operations.audit import recent_entries
from corpid.web.operations.page_context import (
    KEPT_BY_AUDIT,
    LIST_FILTERS,
    REASON,
    ConsoleContext,
    ConsolePage,
    check_current,
    record_page,
    show_list,
)
from corpid.web.pages import errors
from corpid.web.pages.client_fields import (
    CLIENT_ID,
    FIELDS,
    PREFIXES,
    add_faults,
    choices_of,
    complete,
    describe_keys,
    fields_of,
    is_same,
    list_keys,
    mistakes,
    new_values,
    opens_rare,
    read,
    read_form,
    values_of,
)
from corpid.web.pages.components import (
    ACTIVE,
    DISABLED,
    PROBLEM,
    WARNING,
    Actions,
    Alert,
    Alerts,
    Cell,
    Chart,
    Code,
    Disclosure,
    English,
    Facts,
    Field,
    FieldError,
    Form,
    Heading,
    Label,
    Link,
    NavigationLink,
    Paragraph,
    Part,
    Series,
    Snippets,
    Table,
    Tabs,
    Tile,
    Tiles,
    Value,
    View,
    table,
)
from corpid.web.pages.snippets import snippets
from corpid.web.sites import (
    NOTHING_DIFFERENT,
    Check,
    ConfirmationRequired,
    EditConflict,
    FormResult,
    InvalidForm,
    NotFound,
    Section,
    await_found,
    check_page,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from starlette.responses import Response

    from corpid.flows.oauth.client_keys import ClientKeyReport
    from corpid.flows.operations.overview import ClientHealth, ClientState, Traffic
    from corpid.rules.directory.access import DeploymentOperator
    from corpid.rules.oauth.refusals import ClientRefusal

CLIENTS: Final = "clients"
CLIENT: Final = "client"
_CHANGES: Final = tuple(action for action in AuditAction if action.startswith("client."))
_REASONS: Final = 20
"""reasons of refusals on a client's page"""
_NEW_CLIENT: Final = "new-client"
SOON_DAYS: Final = 30
"""before the last day of a generation, an exception or a certificate"""
_CHECK: Final = "check"
"""the button that only checks a form"""
_CHANGED: Final = phrase(
    "Somebody else has changed this client in the meantime. Your changes were not saved: this is the client as it "
    "is now."
)


RANGE: Final = "range"
"""the parameter that names the period of a chart"""
_PERIODS: Final[Mapping[Period, Phrase]] = {
    "today": phrase("Today"),
    "7d": phrase("7 days"),
    "30d": phrase("30 days"),
    "90d": phrase("90 days"),
}


def asked_period(at: ConsoleContext) -> Period:
    """The period that the address names, 7 days by default."""
    return next((each for each in PERIODS if each == at.query.get(RANGE)), "7d")


def traffic_chart(at: ConsoleContext, traffic: Traffic, page: str) -> Chart:
    """The sign-ins and refusals of a period, with links to other periods."""
    by_hour = traffic.period in BY_HOUR
    return Chart(
        name="traffic",
        title=phrase("Sign-ins and refusals"),
        by_hour=by_hour,
        beginnings=[at.moment(each.begins_at) for each in traffic.points],
        series=(
            Series(
                title=phrase("Completed sign-ins per hour") if by_hour else phrase("Completed sign-ins per day"),
                values=[each.sign_ins for each in traffic.points],
                colour="good",
            ),
            Series(
                title=phrase("Refused requests per hour") if by_hour else phrase("Refused requests per day"),
                values=[each.refusals for each in traffic.points],
                colour="bad",
            ),
        ),
        ranges=Tabs(
            label=phrase("Time range"),
            links=tuple(
                NavigationLink(url=at.path(page, **{RANGE: period}), text=text, current=period == traffic.period)
                for period, text in _PERIODS.items()
            ),
        ),
    )


def refused_share(sign_ins: int, refusals: int) -> str:
    """The share of refusals among both, in percent."""
    return f"{100 * refusals / max(sign_ins + refusals, 1):.1f} %"


def reasons_table(traffic: Traffic, *, most: int, with_remedy: bool = False) -> Table:
    """The refusals of a period by reason, the most frequent first."""
    headings = (phrase("Reason"), *((phrase("What to do"),) if with_remedy else ()), phrase("Count"))
    rows: list[tuple[Value, ...]] = []
    for each in traffic.reasons[:most]:
        reason, remedy = describe_reason(each.reason)
        rows.append((reason, remedy, each.count) if with_remedy else (reason, each.count))
    return table(phrase("Refusals by reason"), headings, rows, empty=phrase("Nothing was refused."))


def describe_reason(code: str, detail: str = "") -> tuple[Cell, English]:
    """The code of a refusal with its cause or `detail`, the remedy."""
    reason = reason_of(code).value
    return Cell(values=(Code(code),), notes=(English(detail or reason.cause),)), English(reason.remedy)


async def show_clients(at: ConsoleContext) -> View | Response:
    """The list of clients with their health, by identifier. Raises access.Forbidden."""

    async def read(**asked: Unpack[PageOptions]) -> ListPage[ClientState]:
        page = await list_records(at.registry, at.actor, CLIENT_LIST, **asked)
        found = await overview.client_states(
            at.registry, at.actor, page.found, now=at.context.now, today=at.context.today, rules=at.web.client_rules
        )
        return msgspec.structs.replace(page, found=found)

    def row(found: ClientState) -> tuple[Value, ...]:
        client = found.client
        generations = ", ".join(each.name for each in used_generations(client, at.web.client_rules))
        link = at.record_link(CLIENT, client.client_id, client.client_id)
        signed_in = found.latest.last_sign_in
        return link, client.name, generations, at.moment(signed_in) if signed_in else "", _describe_state(at, found)

    return await show_list(
        at, CLIENTS, CLIENT_LIST, read, row, heading=phrase("Clients"),
        columns=(
            (phrase("Identifier"), "id"), (phrase("Name"), ""), (phrase("Generations"), ""), (phrase("Last sign-in"), ""),
            (phrase("State"), ""),
        ),
        label=phrase("Name or identifier"), none=phrase("No client is registered yet."),
        not_found=phrase("No client found. Check the spelling."),
        add=at.allowed_link(_NEW_CLIENT, phrase("Register a client")),
    )  # fmt: skip


def _describe_state(at: ConsoleContext, found: ClientState) -> Cell:
    """The state of a client, and the reasons for it."""
    reasons = dict(_list_reasons(at, found))
    tones = set(reasons.values())
    label = PROBLEM if "error" in tones else WARNING if "warning" in tones else ACTIVE
    return Cell(values=(label if found.client.enabled else DISABLED,), notes=tuple(reasons))


def _list_reasons(at: ConsoleContext, found: ClientState) -> Iterator[tuple[Phrase, str]]:
    """The reasons for a state, each with its tone."""
    latest, now = found.latest, at.context.now
    if latest.refusals:
        text = counted(
            latest.refusals + latest.sign_ins,
            "{refusals} of {count} request refused in 24 hours",
            "{refusals} of {count} requests refused in 24 hours",
            refusals=latest.refusals,
        )
        yield text, "error" if latest.refusals > latest.sign_ins else ""
    for kid, ends in found.certificates:
        day = at.moment(ends).date()
        if ends <= now:
            yield phrase("The certificate of {key} ended on {day}", key=kid, day=day), "error"
        elif ends <= now + SOON_DAYS * DAY:
            yield phrase("The certificate of {key} ends on {day}", key=kid, day=day), "warning"
    for use in found.uses:
        if use.last_day is not None and use.days_left is not None:
            tone = "warning" if use.days_left <= SOON_DAYS else ""
            yield (
                phrase("{generation} until {day}", generation=use.generation, day=date.fromisoformat(use.last_day)),
                tone,
            )
    if latest.deprecated_at:
        yield phrase("Last deprecated use: {day}", day=at.moment(latest.deprecated_at).date()), ""


def client_path(at: ConsoleContext, client_id: str) -> str:
    """The address path of a client's page."""
    return at.path(client_page_path(client_id))


def client_page_path(client_id: str, page: str = CLIENT) -> str:
    """The path of a client's page in the console."""
    return record_page(page, client_id)


async def this_client(at: ConsoleContext) -> Client:
    """The client that the page is about. Raises NotFound, access.Forbidden."""
    return await await_found(flow.find_client(at.registry, at.page.partition("/")[2], actor=at.actor))


async def show_client(at: ConsoleContext) -> View:
    """One client: health, keys now, record, refusals, history. Raises NotFound, access.Forbidden."""
    found = await this_client(at)
    now, zone = at.context.now, at.provider.policy.timezone
    health = await overview.client_health(at.registry, at.actor, found, asked_period(at), now=now, zone=zone)
    uses = await report_of(
        at.registry, found, actor=at.actor, generations=GENERATIONS, today=at.context.today, rules=at.web.client_rules
    )
    refusals = await list_refusals(at.registry, found.client_id, actor=at.actor)
    claimed, proven = ([each for each in refusals if each.claimed == claims] for claims in (True, False))
    disabled = Cell(values=(DISABLED, phrase("Nobody can sign in to this client.")))
    [edit, *others] = _actions(at, found)
    return at.build_page(
        phrase("Client {name}", name=found.name),
        None if found.enabled else disabled,
        Actions(tuple(each for each in others if each)),
        _health_tiles(at, health),
        traffic_chart(at, health.traffic, client_page_path(found.client_id)),
        reasons_table(health.traffic, most=_REASONS, with_remedy=True),
        Heading(phrase("Keys (checked just now)")),
        *_list_keys(at, await client_keys.describe_keys(at.provider, found, actor=at.actor, now=now)),
        Heading(phrase("Deprecated use")) if uses else None,
        _uses_table(at, uses) if uses else None,
        Heading(phrase("Record")),
        Facts(tuple(_list_facts(found))),
        Heading(phrase("Refused requests")),
        _refusals_table(at, phrase("Requests that this client made, the latest first"), proven)
        if proven or not claimed
        else None,
        _refusals_table(at, phrase("Requests that only name this client, the latest first"), claimed)
        if claimed
        else None,
        Paragraph(phrase("These requests were not authenticated: anybody can send them."), look="hint")
        if claimed
        else None,
        Paragraph(
            phrase(
                "The latest {most} are kept, and {claimed} of those that only name this client. The last few seconds "
                "may be missing.",
                most=REFUSALS_KEPT[False],
                claimed=REFUSALS_KEPT[True],
            ),
            look="hint",
        ),
        Heading(phrase("History")),
        *await recent_entries(
            at,
            AuditQuery(client_id=found.client_id, actions=_CHANGES),
            {"client": found.client_id, "action": "client."},
        ),
        main_action=edit,
    )


def _actions(at: ConsoleContext, client: Client) -> list[Link | None]:
    """The actions on a client, its change first.

    None for those that are not for this operator.
    """

    def link(page: str, text: Phrase) -> Link | None:
        return at.allowed_link(client_page_path(client.client_id, page), text)

    return [
        link("edit-client", phrase("Change this client")),
        link("connect-client", phrase("Connection details")),
        link("switch-client", phrase("Disable it") if client.enabled else phrase("Enable it")),
        link("drop-keys", phrase("Clear the stored keys")) if client.jwks_uri else None,
    ]


def _health_tiles(at: ConsoleContext, health: ClientHealth) -> Tiles:
    points = health.traffic.points
    sign_ins, refusals = sum(each.sign_ins for each in points), sum(each.refusals for each in points)
    return Tiles(
        tiles=(
            Tile(
                label=phrase("Last sign-in"),
                value=phrase("None recorded") if health.last_sign_in is None else at.moment(health.last_sign_in),
            ),
            Tile(label=phrase("Sign-ins"), value=sign_ins, note=_PERIODS[health.traffic.period]),
            Tile(
                label=phrase("Refused"),
                value=refused_share(sign_ins, refusals),
                note=counted(refusals, "{count} request", "{count} requests"),
                tone="error" if refusals > sign_ins else "",
            ),
        )
    )


def _list_keys(at: ConsoleContext, keys: ClientKeyReport) -> Iterator[Part]:
    found = [keys.failure] if keys.failure else keys.problems
    if found:
        yield Alerts(alerts=tuple(Alert(label=PROBLEM, text=English(each)) for each in found))
    yield Facts(
        (
            (phrase("Published at"), Code(keys.url) if keys.url else phrase("in its record")),
            *list_keys(keys),
            *((phrase("Certificate of {key} ends", key=kid), _end(at, ends)) for kid, ends in keys.certificates),
        )
    )


def _end(at: ConsoleContext, ends: int) -> Value:
    day = at.moment(ends).date()
    return day if ends > at.context.now else Cell(values=(day, Label(phrase("passed"), "error")))


def _uses_table(at: ConsoleContext, uses: Iterable[ClientUse]) -> Table:
    """The endings, and what their successors would refuse."""
    rows: list[tuple[Value, ...]] = []
    for use in uses:
        day = date.fromisoformat(use.last_day) if use.last_day else phrase("No end")
        left: Value = Label(phrase("passed"), "error") if use.passed else None
        if use.days_left is not None and not use.passed:
            left = counted(use.days_left, "{count} day left", "{count} days left")
        habits = tuple(English(f"{each.refused} ({each.count:,})") for each in use.habits)
        rows.append(
            (
                use.generation,
                Cell(values=(day,), notes=(left,) if left else ()),
                Cell(values=(use.uses,), notes=(at.moment(use.last_at),) if use.last_at else ()),
                Cell(values=(), notes=habits) if habits else None,
            )
        )
    return table(
        phrase("Generations and exceptions that end"),
        (phrase("Generation"), phrase("Last day"), phrase("Sign-ins"), phrase("What will be refused")),
        rows,
    )


def _list_facts(client: Client) -> Iterator[tuple[Phrase, Value]]:
    """The members that differ from their default."""
    yield phrase("Identifier"), Code(client.client_id)
    for name, each in CLIENT_MEMBERS.items():
        value = getattr(client, name)
        if value == each.default or value in (None, (), "") or name in {"jwks", "enabled", "name"}:
            continue
        label = each.label or phrase("{text}", text=name)
        yield label, ", ".join(value) if isinstance(value, tuple) else str(value)


def _refusals_table(at: ConsoleContext, caption: Phrase, refusals: Iterable[ClientRefusal]) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            Cell(values=(at.moment(each.at),), notes=(Code(each.request_id),)),
            Code(f"{each.method} {each.path}"),
            *describe_reason(each.reason, each.detail),
        )
        for each in refusals
    ]
    return table(
        caption,
        (phrase("Time"), phrase("Request"), phrase("What was wrong"), phrase("What to do")),
        rows,
        empty=phrase("None of its requests was refused recently."),
    )


async def show_connection(at: ConsoleContext) -> View:
    """The issuer, its addresses, and a snippet for each language.

    Raises NotFound, access.Forbidden.
    """
    found = await this_client(at)
    issuers = issuers_of(found, at.web.client_rules)
    addresses = {name: each.own_url or at.provider.policy.base_url for name, each in issuers.items()}
    used = used_generations(found, at.web.client_rules)
    shown = [
        (addresses[name], generation)
        for name, issuer in issuers.items()
        for generation in reversed(used)
        if generation in issuer.served
    ]
    return at.build_page(
        phrase("Connect {name}", name=found.name),
        *(Facts(tuple(_list_connection(found, each)), copies=True) for each in addresses.values()),
        *(
            (
                Heading(phrase("Commands and settings")),
                phrase(
                    "The commands run an example of CorpID's source as this client. The file keys.json holds its "
                    "private keys."
                ),
                Snippets(snippets=snippets(found, *shown[0])),
            )
            if shown
            else ()
        ),
        up=_client_link(at, found),
    )


def _list_connection(client: Client, issuer: str) -> Iterator[tuple[Phrase, Value]]:
    yield phrase("Issuer"), Code(issuer)
    yield phrase("Discovery address"), Code(f"{issuer}{DISCOVERY_PATH}")
    yield phrase("Identifier"), Code(client.client_id)
    yield phrase("Redirect URIs"), Cell(values=tuple(map(Code, client.redirect_uris)))
    yield phrase("Scopes"), Cell(values=tuple(map(Code, client.scopes)))
    if client.jwks:
        yield from list_keys(client_keys.report_keys(parse_client_key_set(client.jwks)))


async def ask_switch(at: ConsoleContext) -> Check:
    """The check before a client is enabled or disabled.

    Raises NotFound, StaleStep.
    """
    found = await this_client(at)
    decision = at.form.get("decision", "") if at.form else "disable" if found.enabled else "enable"
    if decision not in {"enable", "disable"}:
        raise StaleStep
    enables = decision == "enable"
    if enables:
        heading, button = phrase("Enable {name}?", name=found.name), phrase("Enable it")
        consequence = phrase("People can sign in to it again at once.")
    else:
        heading, button = phrase("Disable {name}?", name=found.name), phrase("Disable it")
        consequence = phrase("Nobody can sign in to it any more, and its tokens are refused within five seconds.")

    async def switch() -> None:
        actor = at.actor_with_reason()
        if found.enabled != enables:
            await set_enabled(at.registry, "client", {"client_id": found.client_id}, enabled=enables, actor=actor)
            at.provider.registry_cache.drop()

    return Check(
        heading=heading,
        parts=(consequence,),
        button=button,
        danger=not enables,
        hidden=(("decision", decision),),
        up=_client_link(at, found),
        change=switch,
        done=FormResult(f"client-{decision}d", client_page_path(found.client_id)),
    )


def _client_link(at: ConsoleContext, client: Client) -> Link:
    return Link(url=client_path(at, client.client_id), text=phrase("Client {name}", name=client.name))


async def ask_drop(at: ConsoleContext) -> Check:
    """The check before fetched keys are dropped.

    Raises NotFound for a client without any.
    """
    found = await this_client(at)
    if found.jwks_uri is None:
        raise NotFound
    return Check(
        heading=phrase("Clear the stored keys of {name}?", name=found.name),
        parts=(phrase("They are fetched again with its next request. Do this if a key of the client has leaked."),),
        button=phrase("Clear the keys"),
        danger=True,
        up=_client_link(at, found),
        change=lambda: flow.drop_keys(at.registry, found.client_id, actor=at.actor_with_reason()),
        done=FormResult("client-keys", client_page_path(found.client_id)),
    )


async def show_new(at: ConsoleContext) -> View:
    return await _show_form(at, phrase("Register a client"), new_values())


async def show_edit(at: ConsoleContext) -> View:
    """The form of a client that is there. Raises NotFound, access.Forbidden."""
    found = await this_client(at)
    heading = phrase("Change {name}", name=found.name)
    return await _show_form(at, heading, values_of(found), up=_client_link(at, found), version=version_of(found))


async def _show_form(
    at: ConsoleContext, heading: Phrase, values: Mapping[str, str], *, up: Link | None = None, version: str = ""
) -> View:
    given = read_form(at.form or values)
    services = await flow.list_services(at.registry, actor=at.actor)
    choices = choices_of(at.web.client_rules, services, given.get("issuers", ""))
    identifier = Field(
        name="client_id",
        label=phrase("Identifier"),
        hint=phrase("Letters, digits and . _ -, as the client will send it. It never changes."),
        value=at.form.get("client_id", ""),
    )
    first, *groups = fields_of(given, choices, rare=False)
    if not version:
        first = replace(first, fields=(identifier, *first.fields))
    more = Disclosure(
        look="settings",
        summary=phrase("More settings"),
        opened=opens_rare(given, at.errors),
        parts=fields_of(given, choices, rare=True),
    )
    return at.build_page(
        heading,
        Form(
            parts=(first, *groups, more),
            reason=KEPT_BY_AUDIT,
            button=phrase("Save") if version else phrase("Register"),
            other=(_CHECK, phrase("Check")),
        ),
        up=up,
        step_name=at.form.get("step", version),
    )


async def show_check(at: ConsoleContext) -> View:
    """The keys of a form as they will be registered."""
    new = at.page == _NEW_CLIENT
    name = at.form.get("name", "")
    return at.build_page(
        phrase("Register {name}?", name=name) if new else phrase("Change {name}?", name=name),
        phrase("What was pasted does not say everything about its keys. They will be registered like this:"),
        describe_keys(at.form.get("jwks", "")),
        phrase("Give each private key the kid of its public key."),
        Form(
            hidden=tuple((each, at.form[each]) for each in ("client_id", *FIELDS, REASON) if each in at.form),
            button=phrase("Register") if new else phrase("Save"),
            other=(_CHECK, phrase("Change the form")),
        ),
        back=None,
        step_name=at.form.get("step", ""),
    )


def _read_members(at: ConsoleContext, before: Mapping[str, str]) -> dict[str, object]:
    """The members that the form changes, as in a directory file.

    None for those that stay.
    """
    members: dict[str, object] = {}
    form = {**dict.fromkeys(FIELDS, ""), **read_form(at.form)}
    for name, each in FIELDS.items():
        members[name] = None if is_same(name, form[name], before[name]) else read(each, form[name])
    return members


async def add_client(at: ConsoleContext) -> FormResult:
    """Register the client of the form. Raises InvalidForm, ConfirmationRequired, access.Forbidden."""
    client_id = at.form.get(CLIENT_ID, "").strip()
    read_in = {name: value or None for name, value in _read_members(at, dict.fromkeys(FIELDS, "")).items()}
    members = {name: None if value == NOTHING else value for name, value in read_in.items()}

    async def write(fields: dict[str, object], actor: DeploymentOperator, *, dry_run: bool) -> None:
        key, rules = str(fields.pop(CLIENT_ID)), at.web.client_rules
        await flow.add_client(
            at.registry, at.provider.passwords, key, fields, actor=actor, rules=rules, dry_run=dry_run
        )

    await _write(at, {CLIENT_ID: client_id, **members}, write)
    return FormResult("client-added", client_page_path(client_id, "connect-client"))


async def edit_client(at: ConsoleContext) -> FormResult:
    """Change the client as the form says.

    Raises InvalidInput, InvalidForm, ConfirmationRequired, EditConflict, NotFound.
    """
    found = await this_client(at)
    check_current(at, found, _CHANGED)
    members = _read_members(at, values_of(found))
    is_same_client = all(value is None for value in members.values())

    async def write(fields: dict[str, object], actor: DeploymentOperator, *, dry_run: bool) -> None:
        if is_same_client and not dry_run:
            raise InvalidInput(NOTHING_DIFFERENT)
        if any(value is not None for value in fields.values()):
            await update_record(
                at.registry, at.provider.passwords, "client", {CLIENT_ID: found.client_id}, fields,
                actor=actor, rules=at.web.client_rules, was=found, dry_run=dry_run,
            )  # fmt: skip

    try:
        await _write(at, members, write)
    except Conflict:
        raise EditConflict(_CHANGED) from None
    return FormResult("client-changed", client_page_path(found.client_id))


async def _write(at: ConsoleContext, members: Mapping[str, object], write: Callable[..., Awaitable[None]]) -> None:
    """Write members, unless something is wrong, or a check was asked for.

    `write` takes the members and the operator. Raises InvalidForm with every error, ConfirmationRequired, and what
    `write` raises.
    """
    wrong = mistakes({name: at.form.get(name, "").strip() for name in members})
    completed, checks = read_pasted(at.form.get("jwks", "")).completed, at.form.get("decision") == _CHECK
    actor = at.actor
    reason: list[FieldError] = []
    if not checks:
        try:
            actor = at.actor_with_reason()
        except InvalidInput as rejected:
            reason.append((REASON, rejected.sentence))
    try:
        await write(complete(members, wrong), actor, dry_run=checks or completed or bool(wrong or reason))
    except Refused as refused:
        # The sentences are the registration's own.
        wrong = add_faults(
            wrong, refused.faults if isinstance(refused, InvalidMembers) else (errors.reason_of(refused),)
        )
    if checks or wrong or reason:
        raise InvalidForm(*wrong, *reason)
    if completed:
        raise ConfirmationRequired


def _one(page: str) -> re.Pattern[str]:
    """The paths of a page about one client."""
    return re.compile(page + r"/[^/]{1,300}")


_WRITING: Final = ("write", "client")
SECTION: Final = Section[ConsoleContext](
    name=CLIENTS,
    pages={
        CLIENTS: ConsolePage(view=show_clients),
        _NEW_CLIENT: ConsolePage(
            view=show_new, submit=add_client, check=show_check, fresh=True, kept=read_form, needs=_WRITING
        ),
    },
    named_pages={
        _one(CLIENT): ConsolePage(view=show_client),
        _one("connect-client"): ConsolePage(view=show_connection),
        _one("edit-client"): ConsolePage(
            view=show_edit, submit=edit_client, check=show_check, fresh=True, kept=read_form, needs=_WRITING
        ),
        _one("switch-client"): check_page(ask_switch, needs=_WRITING),
        _one("drop-keys"): check_page(ask_drop, needs=_WRITING),
    },
    fields=frozenset({"client_id", "decision", REASON, *FIELDS}),
    filters=LIST_FILTERS | {RANGE},
    prefixes=PREFIXES,
    changes={
        "client-enabled": phrase("The client has been enabled."),
        "client-disabled": phrase("The client has been disabled."),
        "client-keys": phrase("The stored keys have been cleared."),
        "client-added": phrase("The client has been registered."),
        "client-changed": phrase("The client has been changed."),
    },
)
