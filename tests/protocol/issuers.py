"""A deployment with two issuers: what their relying parties and browsers do (D62)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.interfaces import INTERFACES
from corpid_dev.relying_party.people import Person, sign_in
from corpid_dev.relying_party.relying_party import RelyingParty
from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.world.clients import FAR, rp_keys

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

BESIDE: Final = "https://legacy.example"
BELOW: Final = f"{ISSUER}/before"
PLACES: Final = pytest.mark.parametrize("there", [BESIDE, BELOW], ids=["another host", "a path of the same host"])
FURTHER: Final = "further"
"""the id of the second issuer"""
OWN_COOKIE: Final = "__Host-corpid"
COOKIE_THERE: Final = f"{OWN_COOKIE}-{FURTHER}"


def alice() -> Person:
    return Person(user_name="alice", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)


class TwoIssuers:
    """A world with a first issuer at `ISSUER` and a further one `there`; rp-1 is known to both, in the generation of each.

    `generations` are those of the two, `own` are further settings of the second, `options` those of the deployment.
    """

    def __init__(
        self,
        worlds: Worlds,
        there: str,
        generations: tuple[str, str],
        own: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        table = {"id": FURTHER, "base_url": there, "generations": [generations[1]], **(own or {})}
        self.world: World = worlds.fresh(generations=generations[:1], issuers=(table,), **options)
        self.there, self._generations = there, generations
        self.registers()
        self.here = self.world.party()
        self.further = self.party()

    def registers(self, client_id: str = "rp-1", **changes: Any) -> RelyingParty:
        """A client as it is registered at both, with these changes."""
        ends = {"legacy_until": FAR} if "legacy" in self._generations else {}
        known = {"generations": tuple(dict.fromkeys(self._generations)), "issuers": ("first", FURTHER), **ends}
        return self.world.registers(client_id, **{**known, **changes})

    def party(self, client_id: str = "rp-1") -> RelyingParty:
        """A client's relying party at the further issuer."""
        world = self.world
        return RelyingParty(
            client_id=client_id, issuer=self.there, http=world.http, clock=world.clock, keys=rp_keys(client_id),
            interface=INTERFACES[self._generations[1]],
        )  # fmt: skip

    def browser(self) -> Browser:
        """A browser that walks the pages of both."""
        transport = httpx.ASGITransport(app=self.world.application.asgi)
        return Browser(httpx.AsyncClient(transport=transport), frozenset({ISSUER, BESIDE}))

    def signed_in(self, rp: RelyingParty, browser: Browser) -> str:
        """Sign in through the pages; the callback URL. Thirty seconds pass, for the next code."""
        self.world.clock.now += 30
        url = self.world.run(rp.begin())
        callback = self.world.run(sign_in(browser, url, alice(), now=self.world.clock))
        return str(callback.url) if hasattr(callback, "url") else str(callback)

    def code(self, rp: RelyingParty, browser: Browser | None = None) -> str:
        return str(rp.callback(self.signed_in(rp, browser or self.browser())))

    def tokens(self, rp: RelyingParty) -> Any:
        return self.world.run(rp.believe(self.world.redeem(self.code(rp), rp)))

    def get(self, url: str, browser: Browser | None = None, /, **headers: str) -> httpx.Response:
        http = (browser or self.browser()).http
        return self.world.run(http.get(url, headers=headers, follow_redirects=False))


def two(worlds: Worlds, there: str, **options: Any) -> TwoIssuers:
    """CURRENT at the first issuer and LEGACY at the further one: the deployment of a migration."""
    return TwoIssuers(worlds, there, ("current", "legacy"), **options)
