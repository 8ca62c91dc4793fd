"""The library with which relying parties speak LEGACY, as a process that is told what to do (`stock_legacy.mjs`)."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.interop.node_process import NodeProcess, running_script

if TYPE_CHECKING:
    from collections.abc import Iterator


CLIENT = Path(__file__).with_name("stock_legacy.mjs")


class Identity(NamedTuple):
    """What the library made of the token answer: claims that it has verified, and the parts of `sub`."""

    answer: dict[str, Any]
    identity: dict[str, Any]
    access: dict[str, Any]
    subject: dict[str, str]


class Roles(NamedTuple):
    """What the library made of authorization-info: its claims, and the rows that are valid today, by service."""

    payload: dict[str, Any]
    active: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class LegacyClient:
    """A relying party on the library. Every method raises stock_clients.Refused."""

    script: NodeProcess

    def begin(self, state: str, nonce: str | None) -> str:
        """The URL to send the browser to."""
        return str(self.script.call("begin", state=state, nonce=nonce))

    def finish(self, code: str) -> Identity:
        """Redeem a code."""
        return Identity(**self.script.call("finish", code=code))

    def roles(self) -> Roles:
        """Read authorization-info."""
        return Roles(**self.script.call("roles"))


@contextmanager
def connected(*, discovery: str, client_id: str, redirect_uri: str, keys: Path) -> Iterator[LegacyClient]:
    """A client that knows where the provider's metadata is."""
    with running_script(CLIENT) as script:
        script.call("connect", discovery=discovery, clientId=client_id, redirectUri=redirect_uri, keyFile=str(keys))
        yield LegacyClient(script)
