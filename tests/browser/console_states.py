"""The console's pages, in the states that look different (D53)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.oauth.client_keys import ClientKeyReport
from corpid.flows.operations.migration_report import ClientUse, DeprecatedUse
from corpid.rules.diagnostics import Finding
from corpid.rules.hourly_counts import Point
from corpid.texts import phrase
from corpid.web.operations.audit import Audit, EntryLine, ExportAudit, Verification
from corpid.web.operations.clients import ClientForm, ClientPage, HistoryLine, RefusalLine
from corpid.web.operations.deployment import (
    ClientCount,
    EngineLine,
    Maintenance,
    Overview,
    ProcessLine,
    ReasonCount,
    SigningKeyRow,
)
from corpid.web.operations.keys import KeyLine, Keys
from corpid.web.operations.page_context import SECTIONS
from corpid.web.pages.charts import of_traffic
from corpid.web.pages.client_fields import fields_of
from corpid.web.pages.components import Label
from corpid.web.pages.layout import Frame, Link, Navigation, NavigationLink, Pager

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.charts import Chart
    from corpid.web.pages.views import View

AT: Final = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
LONG: Final = "vereinigte-donaudampfschifffahrtsgesellschaft-und-soehne-asia-pacific"


def framed(section: str = "", *, up: Link | None = None) -> Frame:
    """The frame of a console page."""
    return Frame(
        form_token="t0ken",
        up=up,
        here="/console",
        navigation=Navigation(
            label=phrase("Console"),
            title=phrase("Console of {name}", name="CorpID"),
            person="Tan Wei Ling",
            links=tuple(
                NavigationLink(url=f"/console/{path}".removesuffix("/"), text=name, current=path == section)
                for path, name in SECTIONS.items()
            ),
        ),
    )


OF_CLIENT: Final = framed("clients", up=Link(url="/console/clients", text=phrase("Clients")))
NO_KEYS: Final = ClientKeyReport(
    url="https://permits.example/jwks", failure="no key set at https://permits.example/jwks: it answers 404"
)
KEYS_FOUND: Final = ClientKeyReport(
    url="https://permits.example/jwks",
    signing=("sig-2026 (ES256)",),
    encryption=("enc-2026 (ECDH-ES+A256KW)",),
    problems=("key 2: use is missing, so the key is ignored",),
)
REFUSED: Final = RefusalLine(
    at=AT,
    request="POST /request",
    reason="redirect_uri_not_registered",
    detail="received https://permits.example/callback/",
    remedy="Register the redirect URI exactly as it is sent, or send the registered one.",
    reference="4f3e2d1c0b9a8f7e",
)
CLIENT: Final = ClientPage(
    frame=OF_CLIENT,
    heading=phrase("Client {name}", name="Harbour permits"),
    client_id="harbour-permits",
    enabled=True,
    facts=((phrase("Redirect URIs"), "https://permits.example/cb, https://permits.example/other"), (phrase("Sector"), "government")),
    keys=KEYS_FOUND,
    migration=(
        ClientUse(
            client_id="harbour-permits", name="Harbour permits", generation="legacy", successor="current", allowed=True,
            last_day="2027-03-31", days_left=130, passed=False, lists_successor=True, reaches_successor=True, uses=4120,
            last_at=int(AT.timestamp()), habits=(DeprecatedUse(habit="no_pkce", refused="requests without code_challenge", count=12, last_at=0),),
        ),
    ),
    last_days={"legacy": date(2027, 3, 31)},
    last_used={"legacy": AT},
    refusals=(REFUSED, REFUSED),
    claimed=(REFUSED,),
    most=100,
    most_claimed=20,
    history=(
        HistoryLine(at=AT, actor="operator:wei.ling", action="client.update", members="redirect_uris", reason="asked for by the harbour office"),
        HistoryLine(at=AT, actor="command line:root@host", action="client.add", members="", reason=""),
    ),
    whole_history="/console/audit?client=harbour-permits",
    edit="/console/edit-client/harbour-permits",
    switch="/console/switch-client/harbour-permits",
    drop="/console/drop-keys/harbour-permits",
)  # fmt: skip
ENTRY: Final = EntryLine(
    number=48210,
    at=AT,
    actor="operator:wei.ling",
    action="client.update",
    object="harbour-permits",
    where="harbour-permits",
    refused=False,
    details=(("address", "192.0.2.7"), ("reason_given", "asked for by the harbour office")),
    changes=(("redirect_uris", '["https://permits.example/cb"]', '["https://permits.example/callback"]'),),
)


def charts(most: int) -> tuple[Chart, Chart]:
    """A week of sign-ins and refusals, the busiest hour with so many."""
    hours = [datetime(2026, 11, 15, tzinfo=UTC) + timedelta(hours=number) for number in range(168)]
    points = [
        Point(begins_at=int(at.timestamp()), sign_ins=most * (at.hour % 12) // 12, refusals=most * (at.hour % 5) // 60)
        for at in hours
    ]
    return of_traffic(points, "hour", name=f"week-{most}", zone=UTC)


PROCESS: Final = ProcessLine(
    host="node-1",
    number=812,
    address="0.0.0.0:8000",
    version="0.1.0",
    started=AT,
    seen=AT,
    live=True,
    answers=True,
    odd_version=False,
    odd_settings=(),
)
OVERVIEW: Final = Overview(
    frame=framed(),
    maintenance=False,
    findings=(
        Finding(
            about="signing keys",
            verdict="warning",
            seen="the key that signs is 400 days old.",
            change="Run `corpid key rotate`.",
        ),
    ),
    week=charts(1200),
    quarter=charts(90),
    clients=(
        ClientCount(name="Harbour permits", url="/1", sign_ins=41200, refusals=310),
        ClientCount(name="", url="", sign_ins=0, refusals=12),
    ),
    reasons=(ReasonCount(reason="assertion_audience", cause="The assertion is for somebody else.", count=300),),
    keys=(SigningKeyRow(kid="Aa9fYtB2k1s", state=phrase("Signs now"), signs_from=AT, retired=None),),
    keys_page="/console/keys",
    ending=tuple((use, "/1") for use in CLIENT.migration),
    not_ready="",
    engines=(
        EngineLine(name=phrase("Database"), engine="PostgreSQL 15", state=Label(phrase("Answers"))),
        EngineLine(
            name=phrase("Short-lived state"),
            engine="Valkey 8",
            state=Label(phrase("Does not answer"), "error"),
        ),
        EngineLine(name=phrase("E-mail"), engine="", state=Label(phrase("Off"), "warning")),
    ),
    processes=(
        PROCESS,
        replace(PROCESS, number=813, answers=False),
        replace(PROCESS, host="node-2", answers=False, version="0.2.0", odd_version=True),
        replace(
            PROCESS,
            host="node-3.a-long-name-of-a-machine.example.org",
            answers=False,
            odd_settings=(("base_url", "https://login.example.org/other"), ("key_encryption_key", "Zk1c0pQ4")),
        ),
        replace(PROCESS, host="node-4", answers=False, live=False),
    ),
)


STATES: Final[Mapping[str, View]] = {
    "console-overview": OVERVIEW,
    "console-export-audit": ExportAudit(
        frame=framed("audit"),
        action="/console/export-audit",
        given={"since": "3d", "until": "1h", "user": "", "entity": "200000001A", "client": "", "action": "client."},
        reason="",
        back="/console/audit",
        errors=(("until", phrase("The end is before the beginning.")),),
    ),
    "console-overview-new": replace(
        OVERVIEW, findings=(), week=charts(0), quarter=charts(0), clients=(), reasons=(), ending=()
    ),
    "console-client": CLIENT,
    "console-client-new": ClientPage(
        frame=OF_CLIENT, heading=phrase("Client {name}", name="Shop"), client_id="shop", enabled=False, facts=(),
        keys=NO_KEYS, migration=(), last_days={}, last_used={}, refusals=(), claimed=(), most=100, most_claimed=20,
        saved=phrase("The client has been registered."),
    ),
    "console-client-form": ClientForm(
        frame=OF_CLIENT,
        action="/console/new-client",
        heading=phrase("Register a client"),
        groups=fields_of({"name": "Shop", "redirect_uris": "http://shop.example/cb", "sector": "private"}, rare=False),
        more=fields_of({"pkce": "required"}, rare=True),
        more_open=False,
        new=True,
        back="/console/clients",
        errors=(
            ("redirect_uris", phrase("{url} begins with http://. Use https://.", url="http://shop.example/cb")),
            ("jwks_uri", phrase("Enter the address of the client's key set, or paste the key set below.")),
            ("reason", phrase("Say why. The audit keeps your reason.")),
        ),
    ),
    "console-client-edit": ClientForm(
        frame=OF_CLIENT,
        action="/console/edit-client/shop",
        heading=phrase("Change {name}", name="Harbour permits"),
        groups=fields_of(
            {"name": "Harbour permits", "redirect_uris": "https://permits.example/cb", "sector": "government", "jwks_uri": "https://permits.example/jwks", "scopes": "openid\nauthinfo", "generations": "current\nlegacy", "legacy_until": "2027-03-31"},
            rare=False,
        ),
        more=fields_of({"pkce": "optional", "subject": "user", "context_types": "APP_AUTHENTICATION_DEFAULT", "assurance_level": "2", "stringified_blocks": "yes"}, rare=True),
        more_open=True,
        new=False,
        reason="Asked for by the harbour office",
        back="/console/client/shop",
    ),
    "console-keys": Keys(
        frame=framed("keys"),
        keys=(
            KeyLine(
                kid="Nx7StAnDbY0", state=phrase("Published, signs when it is needed"),
                signs_from=None, retired=None, gone=None, revoke="/0",
            ),
            KeyLine(kid="Zq1WmJm3vQ0", state=phrase("Published, does not sign yet"), signs_from=AT, retired=None, gone=None, revoke="/1"),
            KeyLine(kid="Aa9fYtB2k1s", state=phrase("Signs now"), signs_from=AT, retired=AT, gone=AT, revoke="/2"),
            KeyLine(kid="0ldKeyOfLast", state=phrase("Revoked"), signs_from=AT, retired=AT, gone=AT, revoke=""),
        ),
        rotate="/console/rotate-key",
        rotate_now="/console/rotate-key-now",
        saved=phrase("The next key will sign."),
    ),
    "console-maintenance": Maintenance(frame=framed("maintenance"), on=False, switch="/console/switch-maintenance"),
    "console-maintenance-on": Maintenance(frame=framed("maintenance"), on=True, switch=""),
    "console-audit": Audit(
        frame=framed("audit"),
        action="/console/audit",
        given={"user": "", "entity": "", "client": "", "action": "client.", "since": ""},
        entries=(ENTRY, ENTRY),
        pager=Pager(first="/console/audit", next="/console/audit?before=1"),
        verify="/console/verify-audit",
        export="/console/export-audit",
    ),
    "console-audit-none": Audit(
        frame=framed("audit"),
        action="/console/audit",
        given={"user": "", "entity": "", "client": "", "action": "nonsense", "since": ""},
        entries=(),
        pager=Pager(),
        verify="/console/verify-audit",
        export="/console/export-audit",
        errors=(("action", phrase("{sentence}.", sentence="'nonsense' is not an action; docs/audit.md lists them")),),
    ),
    "console-verified": Verification(
        frame=framed("audit", up=Link(url="/console/audit", text=Audit.heading)),
        findings=(), seals=200, entries=48210, unsealed=12, sealed_at=AT, more="/console/verify-audit?after=200",
    ),
    "console-verified-broken": Verification(
        frame=framed("audit", up=Link(url="/console/audit", text=Audit.heading)),
        findings=("entry 48100 is not as it was sealed",), seals=12, entries=900, unsealed=3, sealed_at=AT, more="",
    ),
}  # fmt: skip
