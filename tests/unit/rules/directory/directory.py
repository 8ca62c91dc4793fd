"""A small directory that the tests of the law share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.directory.document import LEVELS, Current, Kind, parse, user_ids
from corpid.rules.directory.plan import ALL_BUT_LEVELS, Plan, plan
from corpid.rules.directory.records import User

if TYPE_CHECKING:
    from corpid.rules.directory.sources import Ownership
    from corpid.rules.fields import KeyedRecord

FILE = """
entities:
  A1: {type: UEN, country: SG, name: Alpha, status: Registered}
  B2: {type: NON-UEN, registration_number: HRB 7, country: DE, name: Beta}
  C3: {type: UEN, country: SG, name: Gamma}
services:
  PERMIT:
    name: Permits
    roles: [Maker, Checker]
    parameters: {Year: {kind: year, mandatory: true}, Note: {}}
    third_parties: true
    sub_entity: optional
  PLAIN: {name: Plain}
users:
  rina: {name: Rina, memberships: [A1, B2]}
  arjun: {name: Arjun, memberships: [A1]}
assignments:
  - {user: rina, entity: A1, service: PERMIT, role: Maker, parameters: {Year: 2026}}
third_party:
  grants:
    - {client_entity: C3, third_party: A1, service: PERMIT, role: Maker, start_date: 2025-01-01, end_date: 2026-12-31}
  assignments:
    - user: rina
      third_party: A1
      client_entity: C3
      service: PERMIT
      role: Maker
      start_date: 2025-06-01
      end_date: 2026-06-30
      parameters: {Year: 2026}
"""

State = dict["Kind", dict[tuple[str, ...], "KeyedRecord"]]


def planned(
    text: str,
    state: State | None = None,
    *,
    prune: bool = False,
    levels: bool = False,
    claims: Ownership | None = None,
) -> Plan:
    """The plan of a file against a directory; a new user's identifier is `id-` and the name."""
    kinds = (ALL_BUT_LEVELS if prune else frozenset()) | (LEVELS if levels else frozenset())
    document = parse(text.encode(), "f.yaml")
    held = state or {}
    users = [user for user in held.get("user", {}).values() if isinstance(user, User)]
    by_name = {user.user_name: user for user in users}
    by_id = {user.user_id: user for user in users}
    fresh = {name: f"id-{name}" for (name,) in document.entries_of("user") if name not in by_name}
    ids = user_ids(document, by_name, by_id, fresh)
    return plan(
        document, Current(records=held), ids,
        check_client=lambda _: [], prune=kinds, claims=claims,
    )  # fmt: skip


def after(text: str, state: State | None = None, *, prune: bool = False, levels: bool = False) -> State:
    """The directory once a file was applied."""
    result: State = {kind: dict(records) for kind, records in (state or {}).items()}
    for change in planned(text, state, prune=prune, levels=levels).changes:
        records = result.setdefault(change.kind, {})
        if change.after is None:
            del records[change.key]
        else:
            records[change.key] = change.after
    return result
