"""Entries of the audit, each action in a line that unfolds."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from corpid.flows.operations.history import KINDS, HistoryNames
from corpid.rules.directory.change_texts import MOST_NAMED
from corpid.texts import phrase
from corpid.web.pages import change_sentences as texts
from corpid.web.pages.components import Cell, Details, TimelineEntry, Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.audit import AuditEntry, AuditPart

PAGE: Final = 50
"""entries that are read first"""
_FURTHER: Final = (500, 500)
"""entries that are read for the rest of an action of many"""
_UNFOLDED: Final = 100
"""entries of one action that are listed"""
_CHANGES: Final = frozenset(action for actions in KINDS.values() for action in actions)
"""actions of which one form may have several; the steps of a sign-in are not one"""


class Actions(NamedTuple):
    """Entries that were made together, the latest first."""

    groups: list[list[AuditEntry]]
    before: int
    """the place after them; 0: there are no more"""
    is_cut: bool = False
    """whether more belong to the last one than are read"""

    @property
    def named(self) -> list[AuditEntry]:
        """The entries whose names are shown."""
        return [each for some in self.groups for each in (*some[:_UNFOLDED], *_list_earliest(some))]


def _list_earliest(entries: list[AuditEntry]) -> list[AuditEntry]:
    """The earliest entries of each action, which a sentence names."""
    of_action: defaultdict[str, list[AuditEntry]] = defaultdict(list)
    for each in entries:
        of_action[each.action].append(each)
    return [each for alike in of_action.values() for each in alike[-MOST_NAMED:]]


async def read_actions(read: Callable[[int, int], Awaitable[AuditPart]], *, before: int, most: int) -> Actions:
    """Read entries together by batch, approved request or form.

    `read` takes a place and a limit.
    """
    entries: list[AuditEntry] = []
    groups: list[list[AuditEntry]] = []
    for limit in (PAGE, *_FURTHER):
        found = await read(before, limit)
        entries, before = [*entries, *found.entries], found.before
        groups = [list(some) for _, some in groupby(entries, _name_action)]
        if not before or len(groups) > most or not entries or len(groups[-1]) == 1:
            break
    if len(groups) > most:
        return Actions(groups[:most], groups[most - 1][-1].number)
    return Actions(groups, before, is_cut=bool(before) and len(groups) > 0 and len(groups[-1]) > 1)


def _name_action(entry: AuditEntry) -> tuple[str, str]:
    """The action of an entry, with its author: a line names one."""
    together = entry.detail.get("batch") or entry.approval
    return together or (entry.request_id if entry.action in _CHANGES else "") or str(entry.number), entry.actor


def fold_actions(
    found: Actions, names: HistoryNames, line: Callable[[AuditEntry], TimelineEntry]
) -> tuple[TimelineEntry, ...]:
    """Each action in a line; `line` is that of one entry."""
    lines = []
    for some in found.groups:
        first = line(some[-1])
        if len(some) > 1:
            is_cut = found.is_cut and some is found.groups[-1]
            listed: list[Value] = [line(each).text for each in some[:_UNFOLDED]]
            left = len(some) - len(listed)
            if left or is_cut:
                more = (
                    phrase("And at least {count} more", count=left)
                    if is_cut
                    else phrase("And {count} more", count=left)
                )
                listed.append(more)
            text = texts.describe_entries(some, names, is_cut=is_cut)
            first = replace(first, text=Cell(values=(text,), notes=(Details(about="", facts=(), items=tuple(listed)),)))
        lines.append(first)
    return tuple(lines)
