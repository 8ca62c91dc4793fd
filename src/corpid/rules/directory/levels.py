"""Levels in the plan of a directory file, and their protection.

A file is the operator's own: it may take an entity's last owner, with a warning, and never the last operator.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from corpid.rules.directory.nodes import Problem
from corpid.rules.directory.records import Administrator, Membership, Operator, User

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.rules.directory.current import Current, Key
    from corpid.rules.directory.document import Entry
    from corpid.rules.directory.sections import Kind

    Wanted: TypeAlias = Mapping[Kind, Mapping[Key, tuple[Entry, msgspec.Struct]]]
    Removed: TypeAlias = Mapping[Kind, frozenset[Key]]

FLAG: Final = "--prune-administrators"
APPROVERS: Final = 2
"""people who can approve, without whom an entity's administrators cannot demand it (D55)"""


class Directory:
    """The directory before and after the file."""

    def __init__(self, wanted: Wanted, current: Current, removed: Removed) -> None:
        self._wanted = wanted
        self._current = current
        self._removed = removed

    def record_before(self, kind: Kind, key: Key) -> msgspec.Struct | None:
        return self._current.records_of(kind).get(key)

    def record_after(self, kind: Kind, key: Key) -> msgspec.Struct | None:
        """A record as it will be; None if there will be none."""
        if key in self._wanted[kind]:
            return self._wanted[kind][key][1]
        return None if key in self._removed.get(kind, ()) else self._current.records_of(kind).get(key)

    def removes(self, kind: Kind, key: Key) -> bool:
        """Return whether the file's plan removes a record."""
        return key in self._removed.get(kind, ())

    def owners(self) -> tuple[dict[str, set[Key]], dict[str, set[Key]]]:
        """Owners who can act, by entity, before and after."""
        was: defaultdict[str, set[Key]] = defaultdict(set)
        becomes: defaultdict[str, set[Key]] = defaultdict(set)
        for key in self._keys("administrator"):
            for found, state in ((was, self.record_before), (becomes, self.record_after)):
                if _is_owner(state("administrator", key)) and _able(state("user", key[:1]), state("membership", key)):
                    found[key[1]].add(key)
        return dict(was), dict(becomes)

    def operators(self) -> tuple[set[Key], set[Key]]:
        """Operators who can act, with every right, before and after."""
        was, becomes = (
            {key for key in self._keys("operator") if _is_full(state("operator", key)) and _able(state("user", key))}
            for state in (self.record_before, self.record_after)
        )
        return was, becomes

    def approvers(self, entity_id: str) -> int:
        """Return how many administrators of an entity can approve, after."""
        return sum(
            _approves(self.record_after("administrator", key))
            and _able(self.record_after("user", key[:1]), self.record_after("membership", key))
            for key in self._keys("administrator")
            if key[1] == entity_id
        )

    def named_records(self, kind: Kind) -> Iterable[Key]:
        """The records of a kind that the file names."""
        return self._wanted[kind]

    def line_of(self, kind: Kind, key: Key) -> int:
        """The line of a record that the file names."""
        return self._wanted[kind][key][0].line

    def line(self, key: Key) -> int:
        """The line about a person's level; 0 if there is none."""
        named: tuple[tuple[Kind, Key], ...] = (
            ("administrator", key), ("operator", key), ("membership", key), ("user", key[:1]),
        )  # fmt: skip
        return next((self._wanted[kind][each][0].line for kind, each in named if each in self._wanted[kind]), 0)

    def _keys(self, kind: Kind) -> Iterable[Key]:
        return {*self._wanted[kind], *self._current.records_of(kind)}


def _able(*records: msgspec.Struct | None) -> bool:
    return all(isinstance(record, User | Membership) and record.enabled for record in records)


def _is_owner(record: msgspec.Struct | None) -> bool:
    return isinstance(record, Administrator) and record.level == "owner"


def _approves(record: msgspec.Struct | None) -> bool:
    return isinstance(record, Administrator) and record.approves


def _is_full(record: msgspec.Struct | None) -> bool:
    return isinstance(record, Operator) and record.level == "operator"


def entities_without_owner(directory: Directory) -> list[Problem]:
    """Warnings about entities that lose their last owner.

    Source: D54
    """
    was, becomes = directory.owners()
    lost = sorted(entity for entity in was.keys() - becomes.keys() if not directory.removes("entity", (entity,)))
    reason = "will have no owner who can act: appoint another one in administrators"
    return [Problem(max(map(directory.line, was[entity])), f"the entity {entity} {reason}") for entity in lost]


def entities_without_approvers(directory: Directory) -> list[Problem]:
    """Warnings about entities without enough approvers.

    Source: D55
    """
    found = []
    for key in directory.named_records("entity"):
        was, becomes = directory.record_before("entity", key), directory.record_after("entity", key)
        demanded = getattr(becomes, "approvals", "none")
        if (
            demanded != getattr(was, "approvals", "none")
            and demanded != "none"
            and directory.approvers(key[0]) < APPROVERS
        ):
            reason = f"the entity {key[0]} has fewer than two people who can approve: operators must approve instead"
            found.append(Problem(directory.line_of("entity", key), reason))
    return found


def lost_operators(directory: Directory) -> list[Problem]:
    """The problem of a file after which no operator could act.

    Source: D53
    """
    was, becomes = directory.operators()
    if not was or becomes:
        return []
    reason = "no operator who can act would remain: appoint another one in operators, with the level operator"
    return [Problem(max(map(directory.line, was)), reason)]


def find_unasked_removals(directory: Directory, removed: Removed) -> list[Problem]:
    """Problems of levels that pruning would remove unasked.

    Source: D65
    """
    administrators = [
        f"--prune would end the administration of {key[1]} by {name}: keep {name} and the membership, or add {FLAG}"
        for key in sorted(removed.get("administrator", ()))
        for name in [_name(directory, key)]
    ]
    operators = [
        f"--prune would remove {name}, who is an operator: keep {name} in users, or add {FLAG}"
        for key in sorted(removed.get("operator", ()))
        for name in [_name(directory, key)]
    ]
    return [Problem(0, reason) for reason in (*administrators, *operators)]


def _name(directory: Directory, key: Key) -> str:
    return str(getattr(directory.record_before("user", key[:1]), "user_name", key[0]))


def kept_to_level(record: msgspec.Struct) -> msgspec.Struct:
    """A record without members that its level ignores.

    So a later lower level begins without any service. Source: D53
    """
    if isinstance(record, Administrator) and record.level != "sub_administrator" and record.services:
        return msgspec.structs.replace(record, services=())
    return record


def without_services(record: msgspec.Struct, gone: frozenset[Key]) -> msgspec.Struct:
    """A sub-administrator without the services that are removed.

    A service of the same identifier that is made later is another one. Source: D53
    """
    if not isinstance(record, Administrator) or not isinstance(record.services, tuple):
        return record
    left = tuple(service_id for service_id in record.services if (service_id,) not in gone)
    return record if left == record.services else msgspec.structs.replace(record, services=left)
