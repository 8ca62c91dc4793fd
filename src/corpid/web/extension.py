"""The one way to extend a provider, which developer mode alone uses (D66).

The developer kit (`corpid-dev`) has two extensions. A demo passes its own to `app.create`. Without one, `app.create` in
developer mode loads the other, which has no test people, by the entry point `corpid.developer_mode`. Nothing here names
a module of the kit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from corpid.flows.operations.signing_keys import SigningKeys
from corpid.flows.registry_cache import RegistryCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from corpid.flows.request_context import Policy
    from corpid.stores.sql.registry import Registry
    from corpid.web.context import DeveloperMode
    from corpid.web.route import Route


class Extension:
    """An extension of every issuer of a deployment. This one adds nothing."""

    package: ClassVar[str] = ""
    """a package with `web/templates`, `web/static` and `locales` of its own; empty: there is none"""
    catalogue_path: ClassVar[str] = ""
    """of the page that explains every reason of a refusal, under base_url; empty: there is none (D28)"""
    is_demo: ClassVar[bool] = False
    """whether people sign in without their factors; a store is marked for a demo when it is made, or never (D66)"""

    def routes(self, base_url: str) -> tuple[Route, ...]:
        """Routes after an issuer's own."""
        del base_url
        return ()

    def mode(self, base_url: str) -> DeveloperMode | None:
        """Developer mode at an issuer, as its pages ask for it."""
        del base_url
        return None

    def application(self, router: ASGIApp, policy: Policy, clock: Callable[[], float]) -> ASGIApp:
        """An issuer's application, around its router."""
        del policy, clock
        return router

    def registry_cache(self, registry: Registry) -> RegistryCache:
        """The registry cache of the deployment."""
        return RegistryCache(registry)

    def signing_keys(self, registry: Registry, *, certificates: bool, issuer: str) -> SigningKeys:
        """The signing keys of an issuer."""
        return SigningKeys(registry, certificates=certificates, issuer=issuer)
