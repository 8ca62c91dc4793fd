"""The extension of a demo: all of developer mode, with test people (D66)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from corpid_dev.flows.recording_keys import FaultInjectingCache, RecordingSigningKeys
from corpid_dev.web.documents import DOCUMENTS, Documents
from corpid_dev.web.fault_injection import SandboxFaultInjector
from corpid_dev.web.mode import Mode
from corpid_dev.web.observer import Observer
from corpid_dev.web.routes import routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from corpid.flows.request_context import Policy
    from corpid.stores.sql.registry import Registry
    from corpid.web.routes import Route
    from corpid_dev.flows.people import Developer


class DemoExtension(Documents):
    """All of developer mode.

    What composes a demo makes one; no setting does.
    """

    is_demo: ClassVar[bool] = True

    def __init__(self, developer: Developer) -> None:
        self._developer: Final = developer
        developer.fault_injector = developer.fault_injector or SandboxFaultInjector(
            developer.orders, developer.sandbox_keys, sleep=developer.sleep
        )

    def routes(self, base_url: str) -> tuple[Route, ...]:
        """Every route of developer mode, for those who see it."""
        return (*(replace(route, developer=True) for route in DOCUMENTS), *routes(self.mode(base_url)))

    def mode(self, base_url: str) -> Mode:
        """Developer mode at an issuer."""
        return Mode(self._developer, base_url=base_url)

    def application(self, router: ASGIApp, policy: Policy, clock: Callable[[], float]) -> ASGIApp:
        """The router, whose exchanges are kept and may be altered."""
        return Observer(router, self._developer, policy, clock)

    def registry_cache(self, registry: Registry) -> FaultInjectingCache:
        """The registry cache at which orders refuse requests."""
        return FaultInjectingCache(registry, developer=self._developer)

    def signing_keys(self, registry: Registry, *, certificates: bool, issuer: str) -> RecordingSigningKeys:
        """The signing keys that show what they sign."""
        return RecordingSigningKeys(registry, developer=self._developer, certificates=certificates, issuer=issuer)
