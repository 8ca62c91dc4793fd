"""Adding one record by a command: it passes the same law as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from corpid.directory.document import parse
from corpid.directory.export import one_entry
from corpid.directory.plan import Change
from corpid.directory.problems import DirectoryError
from corpid.directory.sections import SECTIONS
from corpid.flows.administration.preparing import prepare
from corpid.flows.administration.writing import Refused
from corpid.protocol.registration import PLAIN_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.ports import Passwords, Registry
    from corpid.protocol.registration import Rules

R = TypeVar("R", bound=msgspec.Struct)


class Addition(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """The record that is added, every change that goes with it, and remarks for people."""

    record: R
    changes: tuple[Change, ...]
    remarks: tuple[str, ...]


async def addition(
    registry: Registry,
    passwords: Passwords,
    record: type[R],
    section: str,
    key: str,
    members: Mapping[str, object],
    *,
    new_user_id: Callable[[], str],
    rules: Rules = PLAIN_RULES,
) -> Addition[R]:
    """What adding a record changes; `members` are keys of its section, None for those not given; `rules`
    are those of clients.

    Raises writing.Refused when it exists already or breaks a rule. Source: docs/directory.md
    """
    kind = SECTIONS[section].kind
    try:
        document = parse(one_entry(section, key, members), "")
        prepared = await prepare(registry, passwords, document, new_user_id=new_user_id, rules=rules)
    except DirectoryError as error:
        raise Refused("; ".join(problem.reason for problem in error.problems)) from None
    added = [change.becomes for change in prepared.plan.changes if change.kind == kind and change.verb == "add"]
    if not added or not isinstance(added[0], record):
        raise Refused(f"the {kind} {key} exists already: change it with `corpid apply`")
    return Addition(
        record=added[0],
        changes=prepared.plan.changes,
        remarks=tuple(warning.reason for warning in prepared.plan.warnings),
    )
