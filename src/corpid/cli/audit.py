"""`corpid audit`: entries, seals, export, erasure (D57, D58)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from corpid.cli import output
from corpid.cli.running import on_stores, with_stores
from corpid.flows.operations import audit, audit_seals, audit_stream
from corpid.rules.audit import AuditAction, AuditEntry, AuditQuery
from corpid.rules.directory import audit_reading
from corpid.rules.directory.names import is_user_id
from corpid.stores import private_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from zoneinfo import ZoneInfo

    from corpid.engines import Stores
    from corpid.flows.operations.audit_seals import SealVerification

app = typer.Typer(no_args_is_help=True)

_LAST: Final = 50
_AT_MOST: Final = 10_000
_LAST_NUMBER: Final = (1 << 63) - 1
_FILTERS: Final = ("last", "since", "user", "entity", "client", "action", "object")
_ACTIONS: Final = {action.value: action for action in AuditAction}
_UPDATE: Final = ".update"
"""the end of actions that do not say what was changed"""
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_IDENTIFIER: Final = 8
"""characters of an identifier that are shown for a person whose name is gone"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EntryPrinter:
    """Entries, with the names and time zone for showing them."""

    entries: list[AuditEntry]
    names: dict[str, str]
    zone: ZoneInfo
    unknown: tuple[str, ...] = ()
    """sentences about filters that name nothing in the directory"""


@app.command("list")
def list_entries(
    *,
    last: Annotated[int | None, typer.Option(help=f"Number of entries. Default: {_LAST}.", min=1, max=_AT_MOST)] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only entries since then: 30m, 2h, 3d, 1w, a day, or a time.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="What this person did, and what was done to them.")
    ] = None,
    entity: Annotated[str | None, typer.Option(metavar="ID", help="What concerns this entity.")] = None,
    client: Annotated[str | None, typer.Option(metavar="ID", help="What concerns this client.")] = None,
    action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="An action, or the beginning of several, such as membership.")
    ] = None,
    object_: Annotated[
        str | None,
        typer.Option(
            "--object", metavar="KEY", help="What was done to the record with this key, such as books or lim/E1001."
        ),
    ] = None,
    after: Annotated[
        int | None, typer.Option(help="For programs: entries after this number, the oldest first, no gaps.", min=0)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="With --after: at most this many. Default: 100.", min=1, max=10000)
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, with members before and after.")
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
    shown = with_stores(
        partial(_following, after=after, limit=limit or 100) if after is not None else partial(_latest, asked=asked)
    )
    if json:
        output.json_lines(_for_programs(shown))
        return
    if not shown.entries:
        output.say(" ".join(("No entry matches.", *shown.unknown)) if after is None else "There are no later entries.")
        return
    order = "The latest first" if after is None else "The oldest first"
    output.say(f"{order}; times in {shown.zone.key}.")
    output.aligned(_line(entry, shown) for entry in shown.entries)


@app.command()
def verify(
    *,
    expect: Annotated[
        str | None,
        typer.Option(
            metavar="DIGEST",
            help="The digest of a seal, from the log or an export; also finds entries cut off at the end.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the audit against its seals.

    Exits with 1 if an entry was changed, removed, inserted or moved, if seals or details are missing without a reason,
    or if something else in the database contradicts the audit. Entries that are not sealed yet are counted: they are
    not protected.
    """
    if expect is not None and not _DIGEST.fullmatch(expect):
        output.fail("--expect takes the digest of a seal: 64 hexadecimal digits, as in the log (audit_sealed)")
    found, zone = with_stores(partial(_verify, expect=expect or ""))
    if json:
        output.as_json(found)
    else:
        for finding in found.findings:
            output.say(finding.text)
        for sentence in _verified(found, expect or "", zone):
            output.say(sentence)
    if found.found or found.expected is False:
        raise typer.Exit(1)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="A new file; - writes to standard output.")] = Path("-"),
) -> None:
    """Write keys, entries and seals as JSON lines, to be verified elsewhere.

    The export includes addresses and names of people.
    """
    if str(file) == "-":
        with_stores(lambda stores: _export(stores, output.json_lines))
        return
    try:
        with private_files.new_file(file) as opened:  # whole or not at all

            def write(values: list[dict[str, Any]]) -> None:
                opened.writelines(msgspec.json.encode(value) + b"\n" for value in values)

            with_stores(lambda stores: _export(stores, write))
    except FileExistsError:
        output.fail(f"{file} exists already, and an export never replaces a file: name another one")
    except OSError as error:
        output.fail(f"{file} cannot be written: {error.strerror}")


@app.command()
@on_stores
async def seal(stores: Stores) -> None:
    """Seal every entry now, as before an export.

    A running server does it by itself, at least once an hour.
    """
    seals = stores.registry.seals
    made = await audit_seals.Sealer(stores.registry, output.say).seal_all(stores.actor, now=stores.clock())
    last = await seals.last()
    unsealed, _, _ = await seals.unsealed(after=0 if last is None else last.last)
    if not made and not unsealed:
        output.say("Every entry is sealed already.")
    if unsealed:
        output.say(f"{_count(unsealed, 'entry', 'entries')} cannot be sealed yet: something is still being written.")


@app.command()
@on_stores
async def stream(
    stores: Stores,
    *,
    after: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Continue after this entry; 0: from the beginning.", min=0, max=_LAST_NUMBER
        ),
    ] = None,
) -> None:
    """Show the position of the audit's stream, or move it.

    A smaller number sends entries again, a larger one leaves some out.
    """
    registry, to = stores.registry, stores.settings.audit_stream
    if after is not None and not await audit_stream.set_position(registry, stores.actor, after, now=stores.clock()):
        output.fail("the position changed at the same moment: try again")
    progress = await audit_stream.read_progress(registry, stores.actor)
    position = progress.position
    if not to:
        left = f" An earlier stream ended at entry {position.number}." if position.number else ""
        output.say(f"The audit is streamed nowhere: audit_stream is not set.{left}")
        return
    process = f" by the process {position.process[:_IDENTIFIER]}…" if position.process else ""
    output.say(f"Streamed to {to}{process}, up to entry {position.number}.")
    if progress.oldest_at is not None:
        output.say(
            f"{_count(progress.waiting, 'entry waits', 'entries wait')}, the oldest since "
            f"{datetime.fromtimestamp(progress.oldest_at, stores.settings.timezone):%Y-%m-%d %H:%M}."
        )
    if position.failed:
        output.say(f"The last attempt failed: {position.failed}.")


@app.command()
def erase(
    user: Annotated[str, typer.Argument(help="A removed person: user name or identifier.")],
) -> None:
    """Erase the addresses and names in entries about a removed person.

    The entries stay, with who did what and when by identifier. This cannot be undone.
    """
    user_id, erased = with_stores(
        lambda stores: audit.erase_person(stores.registry, user, actor=stores.actor, now=stores.clock())
    )
    output.say(f"Erased the details of {erased:,} entries of the person {user_id}.")


async def _following(stores: Stores, *, after: int, limit: int) -> _EntryPrinter:
    entries = await stores.registry.audit.entries(after=after, limit=limit)
    return await _with_names(stores, entries)


async def _latest(stores: Stores, *, asked: Mapping[str, str | int | None]) -> _EntryPrinter:
    try:
        query = await _query(stores, {name: str(value) for name, value in asked.items() if value})
    except audit_reading.InvalidFilter as error:
        output.fail(str(error))
    last = asked["last"]
    entries = await stores.registry.audit.latest(query, limit=last if isinstance(last, int) else _LAST)
    shown = await _with_names(stores, entries)
    return shown if entries else replace(shown, unknown=await audit.warn_of_unknown(stores.registry, query))


async def _query(stores: Stores, asked: Mapping[str, str]) -> AuditQuery:
    since, action, user, key = (asked.get(name, "") for name in ("since", "action", "user", "object"))
    actions = audit_reading.find_actions(action) if action else ()
    moment = audit_reading.parse_moment(since, now=stores.clock(), zone=stores.settings.timezone) if since else 0
    return AuditQuery(
        user_id=await audit.identify_person(stores.registry, user) if user else "",
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


async def _with_names(stores: Stores, entries: list[AuditEntry]) -> _EntryPrinter:
    names = await audit.read_names(stores.registry, entries, actor=stores.actor)
    return _EntryPrinter(entries=entries, names=names, zone=stores.settings.timezone)


async def _verify(stores: Stores, *, expect: str) -> tuple[SealVerification, ZoneInfo]:
    found = await audit_seals.verify(stores.registry, stores.actor, now=stores.clock(), expect=expect)
    return found, stores.settings.timezone


async def _export(stores: Stores, write: Callable[[list[dict[str, Any]]], None]) -> None:
    async for line in audit_seals.export(stores.registry, stores.actor, now=stores.clock()):
        write([line])


def _verified(found: SealVerification, expect: str, zone: ZoneInfo) -> Iterator[str]:
    """The result of a verification in sentences."""
    if found.found > len(found.findings):
        yield f"{found.found - len(found.findings):,} more are not shown."
    if not found.seals and found.found:
        yield f"{_count(found.found, 'problem')} found: there is no seal, so no entry can be verified."
    elif not found.seals:
        yield "There is no seal: nothing is protected."
    else:
        gone = f" {_count(found.pruned, 'sealed entry', 'sealed entries')} removed by age." if found.pruned else ""
        erased = f" The details of {found.erased:,} were erased." if found.erased else ""
        result = f"{_count(found.found, 'problem')} found" if found.found else "No problems found"
        seals, entries = _count(found.seals, "seal"), _count(found.entries, "entry", "entries")
        yield f"{result}: {seals} and {entries} were verified, up to number {found.sealed_to}.{gone}{erased}"
        at = datetime.fromtimestamp(found.sealed_at, zone)
        yield f"The last seal is of {at:%Y-%m-%d %H:%M}. Its digest: {found.digest}"
    if found.expected is False:
        yield f"No seal has the digest {expect}: the end was cut off, seals were replaced, or a backup was restored."
    if found.unsealed:
        which = f"{found.first_unsealed} to {found.last_unsealed}" if found.unsealed > 1 else f"{found.last_unsealed}"
        yield f"{_count(found.unsealed, 'entry', 'entries')} not sealed yet, and not protected: {which}."
    if found.found or found.expected is False:
        yield (
            "Somebody changed the database without CorpID, or restored a part of it. Copy the database before anything "
            "else writes to it, and compare the audit with an earlier export, a backup, and the digests in the log "
            "(audit_sealed)."
        )


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def _for_programs(shown: _EntryPrinter) -> Iterator[dict[str, object]]:
    for entry in shown.entries:
        action = _ACTIONS.get(entry.action)
        yield {
            **msgspec.structs.asdict(entry),
            "time": datetime.fromtimestamp(entry.at, shown.zone).isoformat(),
            "actor_name": _who(entry.actor, shown.names),
            "people": audit.people_of(entry, shown.names),
            "object_kind": action.object_kind if action is not None else entry.action.partition(".")[0],
        }


def _line(entry: AuditEntry, shown: _EntryPrinter) -> tuple[str, str, str]:
    action = _ACTIONS.get(entry.action)
    what = action.summary if action is not None else entry.action
    refused = " (refused)" if entry.outcome == "refused" else ""
    about = _about(entry, action, {**shown.names, **audit.people_of(entry, shown.names)})
    time = datetime.fromtimestamp(entry.at, shown.zone)
    members = ", ".join(entry.detail.get("members", "").split()) if entry.action.endswith(_UPDATE) else ""
    text = f"{what}{refused}{': ' if about else ''}{about}{f' ({members})' if members else ''}"
    return f"{time:%Y-%m-%d %H:%M}", _who(entry.actor, shown.names), text


def _who(actor: str, names: Mapping[str, str]) -> str:
    kind, _, name = actor.partition(":")
    if kind in {"user", "operator"}:
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
    named = " ".join(_name(part, names) for part in parts if part)
    return "" if entry.actor == f"user:{entry.object}" else named


def _file_name(path: str) -> str:
    """The name of a file without its folders."""
    return PurePath(path).name or path


def _name(identifier: str, names: Mapping[str, str]) -> str:
    if identifier in names:
        return names[identifier]
    return f"{identifier[:_IDENTIFIER]}…" if is_user_id(identifier) else identifier
