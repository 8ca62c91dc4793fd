"""Developer mode of a deployment, and its test people (D66)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from corpid.rules.directory import names
from corpid.rules.directory.access import CommandLine, DirectoryFile
from corpid_dev.flows.exchanges import Exchanges, FaultInjector
from corpid_dev.flows.orders import Orders, SandboxKeys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from corpid.rules.directory.records import ListedTestPerson
    from corpid_dev.flows.readiness_runs import Runs


FILE: Final = "developer mode"
"""the name of developer mode in the audit"""


def writing(content: bytes) -> DirectoryFile:
    """The actor of what developer mode writes. Source: D57, D66"""
    return DirectoryFile.from_content(FILE, content, by=CommandLine(by=FILE))


@dataclass(slots=True, kw_only=True)
class Developer:
    """Developer mode of a deployment: test people, exchanges, the start's key.

    Only what composes a demo makes one; no setting does. Source: D66
    """

    key: str
    """random; what reaches the pages of developer mode from another machine must show it"""
    spares_loopback: bool = True
    """whether a connection from this machine needs no key; an engine of containers can make every connection look like one"""
    authority: Path | None = None
    """the file with the certificate authority that callers have to trust, if it is our own"""
    people: dict[str, ListedTestPerson] = field(default_factory=dict)
    """by user name in its mapped form"""
    own_clients: frozenset[str] = frozenset()
    """clients of the demo itself, which its pages and endpoints leave as they are"""
    exchanges: Exchanges = field(default_factory=Exchanges)
    """what relying parties sent and received"""
    fault_injector: FaultInjector | None = None
    """what may change answers; None: every answer is the provider's own"""

    orders: Orders = field(default_factory=Orders)
    """the orders of the sandbox that are in force"""
    sandbox_keys: SandboxKeys = field(default_factory=SandboxKeys)
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    """how an answer is held back"""
    readiness: Runs | None = None
    """what checks relying parties in the background; None: only the command does"""

    def add(self, people: Iterable[ListedTestPerson]) -> None:
        """Let these people be signed in without their factors. Source: D66"""
        self.people.update({names.user_name(each.user_name): each for each in people})

    def is_test_person(self, user_name: str) -> bool:
        """Return whether this user name is a test person's. Source: D51, D66"""
        try:
            return names.user_name(user_name) in self.people
        except ValueError:
            return False
