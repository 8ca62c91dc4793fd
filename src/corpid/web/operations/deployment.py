"""The deployment in the console: overview and maintenance (D50, D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.operations import overview as flow
from corpid.flows.operations import readiness
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.limits import DAY
from corpid.rules.server_processes import VERSION
from corpid.texts import Phrase, counted, phrase
from corpid.web.operations.clients import (
    CLIENT,
    RANGE,
    SOON_DAYS,
    asked_period,
    client_path,
    reasons_table,
    refused_share,
    traffic_chart,
)
from corpid.web.operations.jobs import JOBS
from corpid.web.operations.page_context import REASON, ConsoleContext, ConsolePage
from corpid.web.pages.components import (
    PROBLEM,
    WARNING,
    Actions,
    Alert,
    Alerts,
    Cell,
    Code,
    English,
    Facts,
    Group,
    Heading,
    Label,
    Link,
    Paragraph,
    Part,
    Table,
    Tile,
    Tiles,
    Tone,
    Value,
    View,
    table,
)
from corpid.web.sites import Check, FormResult, Section, check_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corpid.flows.operations.overview import EngineStates, Overview, ProcessSummary, Week
    from corpid.rules.diagnostics import Finding

MAINTENANCE: Final = "maintenance"
_SWITCH: Final = "switch-maintenance"
_SETTINGS: Final = "settings"
_KEY: Final = "key_encryption_key"
"""a setting that is shown by no more than whether servers differ in it"""
_MOST: Final = 4
"""clients, and reasons, of a table, and clients that need attention"""
_REMEDIES: Final[Mapping[str, tuple[str, Phrase]]] = {
    "signing keys": ("rotate-key", phrase("Rotate key")),
    "audit seals": ("verify-audit", phrase("Verify the audit")),
    "PKCE": ("clients", phrase("Open clients")),
    "issuers": ("clients", phrase("Open clients")),
}
"""findings that a page settles: its path, and the text of the button"""
_OPEN_SETTINGS: Final = (_SETTINGS, phrase("Open settings"))
"""the same of every other finding, which says what to change"""


async def show_overview(at: ConsoleContext) -> View:
    """The overview of the deployment. Raises access.Forbidden."""
    found = await flow.overview(
        at.provider, at.actor, now=at.context.now, period=asked_period(at), rules=at.web.client_rules
    )
    alerts = sorted(_list_alerts(at, found), key=lambda each: each.label.tone != "error")
    return at.build_page(
        phrase("Overview"),
        Alerts(alerts=tuple(alerts)) if alerts else Paragraph(phrase("Nothing needs attention."), look="hint"),
        Tiles(tiles=(*_week_tiles(found.this_week, found.last_week), _key_tile(at, found), _failing_tile(at, found))),
        *_list_traffic(at, found),
        _servers_table(at, found.processes),
        _engine_facts(found.engines),
    )


def _list_traffic(at: ConsoleContext, found: Overview) -> tuple[Part, ...]:
    """The chart and its tables, or one sentence if all are empty."""
    chart = traffic_chart(at, found.traffic, "")
    if not any(each.sign_ins or each.refusals for each in found.traffic.points):
        nothing = phrase("Nobody signed in, and no request was refused.")
        return Heading(chart.title), chart.ranges, Paragraph(nothing, look="empty")
    tables = _clients_table(at, found), reasons_table(found.traffic, most=_MOST)
    return chart, Group(parts=tables, look="beside")


def _list_alerts(at: ConsoleContext, found: Overview) -> Iterator[Alert]:
    """Matters for attention, each with the page that settles it."""
    if found.engines.not_ready:
        text = phrase("This server is not ready: {part}", part=found.engines.not_ready)
        yield Alert(label=PROBLEM, text=text, link=at.link(*_OPEN_SETTINGS))
    if found.maintenance:
        text = phrase("Maintenance is on. Nobody can sign in.")
        yield Alert(label=WARNING, text=text, link=at.allowed_link(_SWITCH, phrase("Turn maintenance off")))
    for each in found.findings:
        yield _finding_alert(at, each, PROBLEM if each.verdict == "problem" else WARNING)
    for client in found.this_week.failing[:_MOST]:
        text = phrase(
            "{name}: in 7 days, refused requests {refusals}, sign-ins {sign_ins}.",
            name=client.name, refusals=client.refusals, sign_ins=client.sign_ins,
        )  # fmt: skip
        yield Alert(
            label=PROBLEM, text=text, link=Link(url=client_path(at, client.client_id), text=phrase("Open client"))
        )
    for use in found.ending:
        if use.days_left is None or use.days_left > SOON_DAYS:
            continue
        link = Link(url=client_path(at, use.client_id), text=phrase("Open client"))
        if use.passed:
            text = phrase("{name}: its time for {generation} has passed.", name=use.name, generation=use.generation)
        else:
            text = counted(
                use.days_left, "{name}: {count} day left for {generation}.", "{name}: {count} days left for {generation}.",
                name=use.name, generation=use.generation,
            )  # fmt: skip
        yield Alert(label=WARNING, text=text, link=link)


def _finding_alert(at: ConsoleContext, finding: Finding, label: Label) -> Alert:
    """A finding of `corpid doctor`.

    It has a link to the page that settles it, or else says what to change.
    """
    remedy = at.allowed_link(*_REMEDIES[finding.about]) if finding.about in _REMEDIES else None
    text = f"{finding.about}: {finding.seen}" if remedy else f"{finding.about}: {finding.seen} {finding.change}"
    return Alert(label=label, text=English(text.strip()), link=remedy or at.link(*_OPEN_SETTINGS))


async def show_settings(at: ConsoleContext) -> View:
    """The settings of the answering server, and where they are."""
    shared = at.provider.node.process.settings
    return at.build_page(
        phrase("Settings of this server"),
        phrase(
            "They are in the file corpid.toml of each server, or in its variables that begin with CORPID_. A change takes "
            "effect when the server is started again."
        ),
        table(
            phrase("Settings that every server must share, without secrets"),
            (phrase("Setting"), phrase("Value")),
            ((Code(name), value) for name, value in sorted(shared.items()) if name != _KEY),
        ),
        up=at.section_link(""),
    )


def _week_tiles(this: Week, last: Week) -> tuple[Tile, Tile]:
    """Sign-ins and refusals of 7 days, against the 7 before."""
    return (
        Tile(
            label=phrase("Sign-ins in 7 days"),
            value=this.sign_ins,
            note=phrase("{number} the week before", number=last.sign_ins),
        ),
        Tile(
            label=phrase("Refused in 7 days"),
            value=refused_share(this.sign_ins, this.refusals),
            note=phrase("{number} the week before", number=refused_share(last.sign_ins, last.refusals)),
            tone="error" if this.refusals > this.sign_ins else "",
        ),
    )


def _key_tile(at: ConsoleContext, found: Overview) -> Tile:
    label, url = phrase("Next key date"), at.path("keys")
    notes = {
        "signs": phrase("A key begins to sign"),
        "retires": phrase("A key retires"),
        "withdrawn": phrase("A key is withdrawn"),
    }
    for date in found.key_dates[:1]:
        return Tile(label=label, value=at.moment(date.at).date(), note=notes[date.what], url=url)
    signing = [each.signs_from for each in found.keys if each.state == "in use" and each.signs_from]
    days = int((at.context.now - max(signing)) // DAY) if signing else 0
    note = counted(days, "The key has signed for {count} day", "The key has signed for {count} days")
    return Tile(label=label, value=phrase("None planned"), note=note if signing else None, url=url)


def _failing_tile(at: ConsoleContext, found: Overview) -> Tile:
    failing = len(found.this_week.failing)
    return Tile(
        label=phrase("Clients failing"),
        value=failing,
        note=phrase("{number} the week before", number=len(found.last_week.failing)),
        tone="error" if failing else "",
        url=at.path("clients"),
    )


def _clients_table(at: ConsoleContext, found: Overview) -> Table:
    rows: list[tuple[Value, ...]] = []
    for each in found.traffic.clients[:_MOST]:
        link = (
            at.record_link(CLIENT, each.client_id, each.name)
            if each.name
            else each.client_id or phrase("no registered client")
        )
        rows.append((link, each.sign_ins, each.refusals))
    return table(
        phrase("By client, the most refused first"),
        (phrase("Client"), phrase("Sign-ins"), phrase("Refusals")),
        rows,
    )


def _servers_table(at: ConsoleContext, processes: Sequence[ProcessSummary]) -> Table:
    """Every process that serves, and its state."""
    rows: list[tuple[Value, ...]] = []
    for each in processes:
        machine = phrase(
            "{machine}, process {number}, {address}", machine=each.host, number=str(each.number), address=each.address
        )
        rows.append((machine, each.version, at.moment(each.started_at), _process_state(at, each)))
    return table(
        phrase("Servers, each seen once a minute"),
        (phrase("Machine"), phrase("Version"), phrase("Started"), phrase("State")),
        rows,
    )


def _process_state(at: ConsoleContext, process: ProcessSummary) -> Value:
    if not process.live:
        seen = phrase("last seen {moment}", moment=at.moment(process.seen_at))
        return Cell(values=(Label(phrase("Gone"), "error"), seen))
    answers = (phrase("answers you"),) if process.answers else ()
    if not process.differs_in:
        return Cell(values=(Label(phrase("Serves"), "good"), *answers))
    tone: Tone = "warning" if process.differs_in == (VERSION,) else "error"
    differing = (f"{name}: {process.settings.get(name, '')}" for name in process.differs_in if name != VERSION)
    version = (phrase("another version"),) if VERSION in process.differs_in else ()
    label = Label(phrase("Serves, and differs"), tone)
    return Cell(values=(label, *version, *answers), notes=tuple(map(Code, differing)))


def _engine_facts(found: EngineStates) -> Facts:
    """The parts that the asked server uses, and their states."""
    answers, failing = Label(phrase("Responding"), "good"), Label(phrase("Not responding"), "error")
    mail = Label(phrase("Sending"), "good") if found.sends_mail else Label(phrase("Off"), "warning")
    database = failing if found.not_ready == readiness.DATABASE else answers
    transient = failing if found.not_ready == readiness.TRANSIENT else answers
    return Facts(
        (
            (phrase("Database"), Cell(values=(found.database, database))),
            (phrase("Short-lived state"), Cell(values=(found.transient, transient))),
            (phrase("E-mail"), mail),
        ),
        line=True,
    )


async def show_maintenance(at: ConsoleContext) -> View:
    """The state of maintenance. Raises access.Forbidden."""
    on = await readiness.maintenance(at.registry, actor=at.actor)
    if on:
        state = Cell(
            values=(Label(phrase("On"), "warning"), phrase("Nobody can sign in. Clients are asked to try again later."))
        )
    else:
        state = Cell(values=(Label(phrase("Off"), "good"), phrase("Everything runs as usual.")))
    return at.build_page(
        phrase("Maintenance"),
        state,
        Actions((at.link(JOBS, phrase("Jobs")),)),
        main_action=at.allowed_link(_SWITCH, phrase("Turn maintenance off") if on else phrase("Turn maintenance on")),
    )


async def ask_switch(at: ConsoleContext) -> Check:
    """The check before maintenance is switched.

    Raises StaleStep, access.Forbidden.
    """
    is_on = await readiness.maintenance(at.registry, actor=at.actor)
    decision = at.form.get("decision", "") if at.form else "off" if is_on else "on"
    if decision not in {"on", "off"}:
        raise StaleStep
    on = decision == "on"
    if on:
        heading, button = phrase("Turn maintenance on?"), phrase("Turn maintenance on")
        parts = (
            phrase("While maintenance is on, nobody can sign in except to this console."),
            phrase("Clients are asked to try again later. Every running server applies this within 5 seconds."),
        )
    else:
        heading, button = phrase("Turn maintenance off?"), phrase("Turn maintenance off")
        parts = (
            phrase("People can sign in again."),
            phrase("Every running server applies this within 5 seconds."),
        )
    return Check(
        heading=heading,
        parts=parts,
        button=button,
        danger=on,
        hidden=(("decision", decision),),
        change=lambda: readiness.switch_maintenance(at.registry, on=on, actor=at.actor_with_reason()),
        done=FormResult(f"maintenance-{decision}", MAINTENANCE),
    )


OVERVIEW: Final = Section[ConsoleContext](
    pages={
        "": ConsolePage(view=show_overview),
        _SETTINGS: ConsolePage(view=show_settings, needs=("read", "deployment")),
    },
    filters=frozenset({RANGE}),
)
SECTION: Final = Section[ConsoleContext](
    name=MAINTENANCE,
    pages={
        MAINTENANCE: ConsolePage(view=show_maintenance),
        _SWITCH: check_page(ask_switch, needs=("write", "deployment"), leads_to=MAINTENANCE),
    },
    fields=frozenset({"decision", REASON}),
    changes={"maintenance-on": phrase("Maintenance is on."), "maintenance-off": phrase("Maintenance is off.")},
)
