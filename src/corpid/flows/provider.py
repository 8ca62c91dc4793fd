"""The Provider: everything a flow may use, put together once by `app`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.protocol.generations import GENERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from corpid.flows.live import LiveState
    from corpid.flows.own_keys import OwnKeys
    from corpid.ports import ClientKeys, Passwords, Registry, TransientStore
    from corpid.protocol.generations import Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What an operator decides for the deployment; `base_url` has no trailing slash and is the issuer."""

    base_url: str
    name: str
    pushed: Generation
    """the generation that PAR serves, with the algorithms that work here (D42)"""
    returns_iss: bool
    """whether callbacks carry `iss`; discovery says the same (RFC 9207)"""
    session_seconds: int
    """absolute lifetime of single sign-on; 0 turns it off (D30)"""
    timezone: ZoneInfo
    acr_prefix: str
    """acr is this and the level, e.g. `urn:idp:authentication:loa:2` (D10)"""
    dpop_nonces: bool
    """whether proofs must carry a server nonce (RFC 9449 §8, D7)"""
    developer_mode: bool

    @property
    def iss_of_callback(self) -> str | None:
        """The `iss` of a callback, None where callbacks carry none (RFC 9207 §2)."""
        return self.base_url if self.returns_iss else None

    def generation(self, name: str) -> Generation:
        """A generation by its name, as records name it."""
        return {**GENERATIONS, self.pushed.name: self.pushed}[name]

    def generation_of_code(self, code: str) -> Generation:
        """The generation that a code's first character names, else the pushed one (decisions "Generations")."""
        named = (g.name for g in GENERATIONS.values() if g.code_prefix == code[:1])
        return self.generation(next(named, self.pushed.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Policy and ports, and what is held ready in memory."""

    policy: Policy
    registry: Registry
    transient: TransientStore
    client_keys: ClientKeys
    passwords: Passwords
    own_keys: OwnKeys
    live: LiveState
    clock: Callable[[], float]
    new_id: Callable[[], str]
    """32 random bytes, base64url without padding"""
