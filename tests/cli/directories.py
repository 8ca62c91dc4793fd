"""A small directory in which somebody may do something, and somebody no longer."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.conftest import Terminal, at
from tests.engines import sqlite

if TYPE_CHECKING:
    from corpid.engines import Stores

DIRECTORY = """
entities:
  209900042K: {type: UEN, country: SG, name: Saltwater Foods}
  B2: {type: NON-UEN, country: SG, registration_number: X1, name: Beta, enabled: false}
  C3: {type: NON-UEN, country: SG, registration_number: X2, name: Gamma}
services:
  PERMITS:
    name: Building permits
    roles: [Approver, Filer]
    role_descriptions: {Approver: Approves permits.}
    third_parties: true
    sub_entity: optional
    parameters: {Limit: {kind: number}}
  TAXES: {name: Taxes, roles: [Viewer]}
users:
  rina: {name: Rina Example, email: rina@example.com, memberships: [209900042K, B2]}
  arjun: {name: Arjun, memberships: [209900042K]}
  mei: {name: Mei}
administrators:
  - {user: rina, entity: 209900042K, level: owner}
  - {user: arjun, entity: 209900042K, level: sub_administrator, services: [PERMITS]}
operators: [{user: mei, level: operator}]
assignments:
  - {user: rina, entity: 209900042K, service: PERMITS, role: Approver, end_date: 2999-12-31}
  - {user: rina, entity: 209900042K, service: PERMITS, role: Approver, ref: two, sub_entity: North, parameters: {Limit: [500]}}
  - {user: rina, entity: 209900042K, service: TAXES, role: Viewer, start_date: 2999-01-01}
  - {user: rina, entity: B2, service: TAXES, role: Viewer, end_date: 2020-01-01}
third_party:
  grants: [{client_entity: C3, third_party: 209900042K, service: PERMITS, end_date: 2998-12-31}]
  assignments:
    - {user: rina, third_party: 209900042K, client_entity: C3, service: PERMITS, role: Filer, end_date: 2998-12-31}
"""


def fill(terminal: Terminal) -> str:
    """Apply the directory, and name the file; an empty deployment gets a copy, which takes a tenth of the time."""
    data = terminal.folder / "data"
    if [each.name for each in data.iterdir()] == ["corpid.sqlite"]:
        shutil.copytree(_filled(), data, dirs_exist_ok=True)
        return str(_filled().parent / "directory.yaml")
    file = terminal.file(DIRECTORY)
    terminal.done("apply", file)
    return file


@cache
def _filled() -> Path:
    """The data of a deployment with the directory, for this test process."""
    folder = Path(tempfile.mkdtemp(prefix="corpid-filled-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with at(folder) as terminal:
        sqlite(folder / "data" / "corpid.sqlite")
        terminal.done("apply", terminal.file(DIRECTORY))
    return folder / "data"


async def last_event(stores: Stores) -> tuple[str, str, dict[str, str]]:
    """The action, object and detail of the last audit entry."""
    last = (await stores.registry.audit.entries(limit=1000))[-1]
    return last.action, last.object.partition("/")[2], last.detail
