"""The console's pages, in the states that look different (D53)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.operations import signing_keys
from corpid.rules.directory.access import CommandLine
from corpid.rules.limits import DAY, HOUR
from corpid.rules.oauth.refusals import ClientRefusal
from tests.adapters.opened import EVENT
from tests.browser.seeded import Recorder, Visit
from tests.console.scene import REASON, console, in_console
from tests.sign_in.world import World, world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.server_processes import ServerProcess

AT: Final = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
OPS: Final = CommandLine(by="tests@here")
LONG: Final = "vereinigte-donaudampfschifffahrtsgesellschaft-und-soehne-asia-pacific"

PERMITS_KEYS: Final = json.dumps(
    {
        "keys": [
            {
                "crv": "P-256",
                "x": "UTa2KztuJuBTT7MGPTyHDF4knvy41Z3JORuXwzocDbk",
                "y": "B2sQCEgDZqFUOzeDsBBO-h6aoZDKKOmOKppJJPEicBs",
                "kty": "EC",
                "use": "sig",
                "kid": "permits-sig-2026",
            },
            {
                "crv": "P-256",
                "x": "5BKMCfYjUxBlqb_AyvxQC7Ti4yUCzpaxyxLg9tOHjSM",
                "y": "jCKbcOuLtfwlzkrIewBvM7ybg3Meao_de7BuyAlTtCk",
                "kty": "EC",
                "use": "enc",
                "kid": "permits-enc-2026",
            },
        ]
    }
)
PEM: Final = """
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEbGuS50v8pm8Jlfz8C4ryas4c3vnP
Vqx1GA7Q6pQZvV1VOnStbMcQFsFYIq0pxG413E8CzYSKQLYhXLpDGQUQ4g==
-----END PUBLIC KEY-----
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0TH8wVA7xDtCAQY9Zz7WKLceXSNg
mfYfXOCRvlKnrvwLi9kgRW3iQoDNI8PCbO+Bg9utv+m1Xaevz5ojYaA2/Q==
-----END PUBLIC KEY-----
"""
NEW: Final[Mapping[str, Visit]] = {
    "console-overview-new": Visit(""),
    "console-settings": Visit("settings"),
    "console-maintenance": Visit("maintenance"),
    "console-client-keys": Visit(
        "new-client",
        {
            "client_id": "permits", "name": "Harbour permits", "redirect_uris": "https://permits.example/cb",
            "jwks": PEM, "reason": REASON,
        },
    ),
    "console-client-form": Visit(
        "new-client",
        {
            "name": "Shop", "redirect_uris": "http://shop.example/cb", "generations:legacy": "yes",
            "jwks": '{"keys": [', "reason": "",
        },
    ),
    "console-client-connect": Visit(
        "new-client",
        {
            "client_id": "shop", "name": "Shop", "redirect_uris": "https://shop.example/cb",
            "jwks_uri": "https://shop.example/jwks", "services:PERMITS": "yes", "reason": REASON,
        },
    ),
}  # fmt: skip
"""of a deployment in which nothing has happened"""
BUSY: Final[Mapping[str, Visit]] = {
    "console-overview": Visit(""),
    "console-overview-month": Visit("?range=30d"),
    "console-clients-busy": Visit("clients"),
    "console-client": Visit("client/harbour-permits"),
    "console-client-disabled": Visit(f"client/{LONG}"),
    "console-client-edit": Visit("edit-client/harbour-permits"),
    "console-keys": Visit("keys"),
    "console-maintenance-on": Visit("maintenance"),
}
VISITS: Final = {**NEW, **BUSY}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as an operator, of a new deployment, then of a busy one."""
    async with world(operators_need_passkey=False) as made:
        browser = await in_console(made, "operator")
        for name, visit in visits.items():
            made.clock.pass_(1)
            # The process notes itself by its own name, too, if this takes long.
            await made.provider.registry.server_processes.note(replace(_own(made), seen_at=int(made.clock())))
            if name == next(iter(BUSY)):
                await _seed(made)
                browser = await in_console(made, "operator")
            await recorder.visit(name, visit, browser, console(made, visit.page))


def _own(made: World) -> ServerProcess:
    """The process that answers, the same on every machine."""
    own: ServerProcess = replace(made.provider.node.process, host="node-1", number=812, address="0.0.0.0:8000")
    return own


async def _seed(made: World) -> None:
    """A month of sign-ins, refusals, servers that differ, and keys in every state."""
    registry, now = made.provider.registry, made.clock()
    await made.client(
        "harbour-permits", name="Harbour permits", generations=("current", "legacy"), legacy_until="2027-03-31",
        redirect_uris=("https://permits.example/cb", f"https://permits.example/{'long/' * 12}cb"), jwks=PERMITS_KEYS,
    )  # fmt: skip
    await made.client(LONG, name="Vereinigte Donaudampfschifffahrtsgesellschaft", enabled=False, jwks=PERMITS_KEYS)
    await made.client("elsewhere", name="Elsewhere", issuers=("elsewhere",))
    for ago in range(30 * 24):
        at = now - ago * HOUR
        for _ in range(3 * (ago % 12)):
            made.provider.counters.sign_in("harbour-permits", at)
        if ago % 7 == 0:
            made.provider.counters.refusal("harbour-permits", "assertion_audience", at, authenticated=True)
            made.provider.counters.refusal(LONG, "redirect_uri_not_registered", at, authenticated=False)
            made.provider.counters.refusal("", "client_unknown", at, authenticated=False)
    await made.provider.counters.flush(registry)
    for claimed in (False, True):
        for number in range(2):
            made.provider.refusals.note(
                ClientRefusal(
                    client_id="harbour-permits", claimed=claimed, at=now - 60 * number, request_id=f"5f1c2a9be04d771{number}",
                    method="POST", path="/request", reason="assertion_audience",
                    detail="aud of the assertion is https://login.example.org/token",
                )
            )  # fmt: skip
    await made.provider.refusals.flush(registry)
    made.provider.usage.note("harbour-permits", "legacy", [], now)
    await made.provider.usage.flush(registry)
    own = _own(made)
    node = replace(own, started_at=int(now) - 3 * HOUR, seen_at=int(now), host="node-2", process_id="node-2")
    for process in (
        replace(own, seen_at=int(now)),
        node,
        replace(node, host="node-3.a-long-name-of-a-machine.example.org", process_id="3", settings={**own.settings, "base_url": "https://login.example.org/other"}),
        replace(node, host="node-4", process_id="4", version="0.2.0"),
        replace(node, host="node-5", process_id="5", seen_at=int(now) - 3 * HOUR),
    ):  # fmt: skip
        await registry.server_processes.note(process)
    first, _ = await signing_keys.stored_keys(registry)
    await signing_keys.rotate(registry, OPS, now=now - DAY)
    await signing_keys.rotate(registry, OPS, now=now)
    await signing_keys.revoke(registry, OPS, first.kid, now=now)
    await registry.deployment.set_maintenance(True, EVENT)
