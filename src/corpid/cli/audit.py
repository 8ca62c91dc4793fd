"""`corpid audit`: what was done, by whom, and with what outcome (D57)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from corpid import settings
from corpid.cli import output
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.operations import audit
from corpid.ports import AuditQuery
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory import audit_questions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from zoneinfo import ZoneInfo

    from corpid.engines import Stores
    from corpid.ports import AuditEntry

app = typer.Typer(no_args_is_help=True)

_LAST: Final = 50
_AT_MOST: Final = 10_000
_FILTERS: Final = ("last", "since", "user", "entity", "client", "action", "object")
_ACTIONS: Final = {action.value: action for action in AuditAction}
_UPDATE: Final = ".update"
"""how actions end that do not say what was changed"""
_IDENTIFIER: Final = 8
"""characters of an identifier that stand for somebody whose name is gone"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """Entries, with what a reader needs: names and time zone."""

    entries: list[AuditEntry]
    names: dict[str, str]
    zone: ZoneInfo
    unknown: tuple[str, ...] = ()
    """sentences about what was asked for and is not in the directory"""


@app.command("list")
def list_entries(
    *,
    last: Annotated[int | None, typer.Option(help=f"So many entries. Default: {_LAST}.", min=1, max=_AT_MOST)] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only later ones: 30m, 2h, 3d, 1w, a day, or a time.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="What this person did, and what was done to them.")
    ] = None,
    entity: Annotated[str | None, typer.Option(metavar="ID", help="What concerns this entity.")] = None,
    client: Annotated[str | None, typer.Option(metavar="ID", help="What concerns this client.")] = None,
    action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="An action, or the start of several: membership.")
    ] = None,
    object_: Annotated[
        str | None,
        typer.Option("--object", metavar="KEY", help="What was done to the record with this key: books, lim/E1001."),
    ] = None,
    after: Annotated[
        int | None, typer.Option(help="For programs: entries after this number, the oldest first, no gaps.", min=0)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="With --after: at most so many. Default: 100.", min=1, max=10000)
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line, with members before and after.")
    ] = False,
) -> None:
    """Show what was done, the latest first."""
    asked = {
        "last": last, "since": since, "user": user, "entity": entity, "client": client, "action": action,
        "object": object_,
    }  # fmt: skip
    if after is None and limit is not None:
        output.fail("--limit goes with --after; without it, --last says how many")
    if after is not None and any(asked[name] is not None for name in _FILTERS):
        output.fail("--after gives every entry in order, and goes with --limit and --json only")
    shown = run(_following(after, limit or 100) if after is not None else _latest(asked))
    if json:
        output.json_lines(_for_programs(shown))
        return
    if not shown.entries:
        output.say(" ".join(("No entry fits.", *shown.unknown)) if after is None else "There is no later entry.")
        return
    order = "The latest first" if after is None else "The oldest first"
    output.say(f"{order}; times in {shown.zone.key}.")
    output.aligned(_line(entry, shown) for entry in shown.entries)


@app.command()
def erase(
    user: Annotated[str, typer.Argument(help="A removed person: user name or identifier.")],
) -> None:
    """Erase the addresses and names in entries about a removed person.

    The entries stay, with who did what and when by identifier. This cannot be undone.
    """
    user_id, erased = run(_erase(user))
    output.say(f"Erased the details of {erased:,} entries of the person {user_id}.")


async def _following(after: int, limit: int) -> _Shown:
    chosen = settings.load()
    async with open_registry(chosen) as stores:
        entries = await stores.registry.audit.entries(after=after, limit=limit)
        return await _with_names(stores, entries, chosen.timezone)


async def _latest(asked: Mapping[str, str | int | None]) -> _Shown:
    chosen = settings.load()
    async with open_registry(chosen) as stores:
        try:
            query = await _query(stores, {name: str(value) for name, value in asked.items() if value}, chosen.timezone)
        except audit_questions.NotUnderstood as error:
            output.fail(str(error))
        last = asked["last"]
        entries = await stores.registry.audit.latest(query, limit=last if isinstance(last, int) else _LAST)
        shown = await _with_names(stores, entries, chosen.timezone)
        return shown if entries else replace(shown, unknown=await audit.unknown(stores.registry, query))


async def _query(stores: Stores, asked: Mapping[str, str], zone: ZoneInfo) -> AuditQuery:
    since, action, user, key = (asked.get(name, "") for name in ("since", "action", "user", "object"))
    actions = audit_questions.actions(action) if action else ()
    moment = audit_questions.moment(since, now=stores.clock(), zone=zone) if since else 0
    return AuditQuery(
        user_id=await audit.person(stores.registry, user) if user else "",
        entity_id=asked.get("entity", ""),
        client_id=asked.get("client", ""),
        actions=actions,
        object=await _key(stores, key),
        since=moment,
    )


async def _key(stores: Stores, key: str) -> str:
    """The key of a record.

    As typed, a user name may stand for a person.
    """
    first, slash, rest = key.partition("/")
    user = await stores.registry.directory.user_by_name(first) if first and slash else None
    return f"{user.user_id}{slash}{rest}" if user is not None else key


async def _with_names(stores: Stores, entries: list[AuditEntry], zone: ZoneInfo) -> _Shown:
    return _Shown(entries=entries, names=await audit.names(stores.registry, entries), zone=zone)


async def _erase(user: str) -> tuple[str, int]:
    async with open_registry(settings.load()) as stores:
        return await audit.erase_person(stores.registry, stores.erase, user, actor=stores.actor, now=stores.clock())


def _for_programs(shown: _Shown) -> Iterator[dict[str, object]]:
    for entry in shown.entries:
        action = _ACTIONS.get(entry.action)
        yield {
            **msgspec.structs.asdict(entry),
            "time": datetime.fromtimestamp(entry.at, shown.zone).isoformat(),
            "actor_name": _who(entry.actor, shown.names),
            "object_kind": action.object_kind if action is not None else entry.action.partition(".")[0],
        }


def _line(entry: AuditEntry, shown: _Shown) -> tuple[str, str, str]:
    action = _ACTIONS.get(entry.action)
    what = action.said if action is not None else entry.action
    refused = " (refused)" if entry.outcome == "refused" else ""
    about = _about(entry, action, shown.names)
    time = datetime.fromtimestamp(entry.at, shown.zone)
    members = ", ".join(entry.detail.get("members", "").split()) if entry.action.endswith(_UPDATE) else ""
    told = f"{what}{refused}{': ' if about else ''}{about}{f' ({members})' if members else ''}"
    return f"{time:%Y-%m-%d %H:%M}", _who(entry.actor, shown.names), told


def _who(actor: str, names: Mapping[str, str]) -> str:
    kind, _, name = actor.partition(":")
    if kind == "user":
        return _name(name, names)
    return _file_name(name) if kind == "file" else name or kind


def _about(entry: AuditEntry, action: AuditAction | None, names: Mapping[str, str]) -> str:
    """The object in words; of a sign-in client and entity.

    Empty if it is the actor.
    """
    if action is not None and action.object_kind == "file":
        return _file_name(entry.object)
    of_sign_in = action is not None and action.object_kind == "sign_in"
    parts = (entry.client_id, entry.entity_id) if of_sign_in or not entry.object else entry.object.split("/")
    told = " ".join(_name(part, names) for part in parts if part)
    return "" if entry.actor == f"user:{entry.object}" else told


def _file_name(path: str) -> str:
    """The name of a file without its folders."""
    return PurePath(path).name or path


def _name(identifier: str, names: Mapping[str, str]) -> str:
    if identifier in names:
        return names[identifier]
    return f"{identifier[:_IDENTIFIER]}…" if audit.is_user_id(identifier) else identifier
