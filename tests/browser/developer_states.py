"""The pages of developer mode, in the states that look different (D66)."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs
from msgspec.structs import replace

from corpid.rules.directory.records import Service
from corpid.rules.oauth.client_registration import PLAIN_RULES
from corpid.rules.oauth.errors import Explanation
from corpid.texts import phrase
from corpid.web.pages.client_fields import PRIVATE_KEY, choices_of, fields_of, new_values
from corpid.web.pages.components import Frame, Link, View
from corpid_dev.flows import inspection
from corpid_dev.flows.exchanges import Exchange, Exchanges, SignedToken
from corpid_dev.flows.orders import ActiveOrder
from corpid_dev.flows.readiness_runs import Run, RunRequest, RunState
from corpid_dev.readiness.cases import BASELINE, CASES
from corpid_dev.readiness.observation import Finding, Observation, Verdict
from corpid_dev.readiness.report import Report, Result
from corpid_dev.relying_party.jwt import base64url
from corpid_dev.rules.orders import Order
from corpid_dev.web import index, readiness, traffic
from corpid_dev.web.clients import HEADING, DeveloperClientForm
from corpid_dev.web.documents import build_page
from corpid_dev.web.mode import TITLE
from corpid_dev.web.orders import OrdersPage
from corpid_dev.web.pages import AnybodyPage, PersonFields
from corpid_dev.web.readiness import ReadinessPage
from tests.browser.seeded import Recorder, Visit
from tests.developer.scene import developer
from tests.developer.test_clients import SHOP, sent
from tests.sign_in.world import world

if TYPE_CHECKING:
    from collections.abc import Mapping


EMPTY: Final = AnybodyPage(
    frame=Frame(form_token="t0ken", under_way=True, up=Link(url="/sign-in/1", text=phrase("Back to the sign-in"))),
    action="/developer/anybody",
    clients="/developer/clients",
)
ANN: Final = PersonFields(
    name="Ann Anybody",
    entity="209999001A",
    entity_name="Anything Pte. Ltd.",
    roles="HARBOUR-PERMIT; Checker; Pier 7; Permit Year=2027\nFOOD-LICENCE; Viewer",
    third_party="209900042K; TAX-FILING; Preparer; Tax Year=2026",
)

LONG: Final = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesellschaft"
CHOICES: Final = choices_of(
    PLAIN_RULES, [Service(service_id=each, name=each.capitalize()) for each in ("HARBOUR-PERMIT", "TAX-FILING")]
)
OF_CLIENTS: Final = Frame(under_way=True, up=Link(url="/developer/clients", text=HEADING))
NEW: Final = DeveloperClientForm(
    frame=structs.replace(OF_CLIENTS, form_token="t0ken"),
    action="/developer/clients/new",
    heading=phrase("Register a client"),
    groups=fields_of(new_values({"services": ("HARBOUR-PERMIT", "TAX-FILING")}), CHOICES, rare=False),
    more=fields_of(new_values(), CHOICES, rare=True),
    more_open=False,
    new=True,
    back="/developer/clients",
    advice={},
)
WRONG_FORM: Final = replace(
    NEW,
    groups=fields_of(
        {**new_values(), "redirect_uris": "http://rp.example/cb\nhttp://localhost:8410/cb"}, CHOICES, rare=False
    ),
    client_id="my-rp",
    checked=True,
    advice={
        "redirect_uris": ("http://localhost:8410/cb and http://127.0.0.1:8410/cb are two addresses.",),
        "services": ("Without a service userinfo has no roles.",),
    },
    errors=(
        ("redirect_uris", phrase("{sentence}.", sentence="http://rp.example/cb: begin with https://")),
        ("jwks", PRIVATE_KEY),
    ),
)
ISSUER: Final = "http://localhost:8400"
AT: Final = 1_795_000_000.0


def _token(header: dict[str, object], claims: dict[str, object]) -> str:
    return ".".join((*(base64url(json.dumps(part).encode()) for part in (header, claims)), "c2lnbmF0dXJl"))


def _exchange(endpoint: Any, path: str, status: int, **more: Any) -> Exchange:
    return Exchange(
        request_id="0123456789abcdef", at=AT, issuer_id="default", issuer=ISSUER, endpoint=endpoint, method="POST",
        path=path, query="", client_id="permits-portal", authenticated=True, status=status, seconds=0.0042,
        **{"headers": (("host", "localhost:8400"), ("content-type", "application/x-www-form-urlencoded")), **more},
    )  # fmt: skip


def _kept() -> tuple[Exchanges, Exchange, Exchange]:
    """A good push, a refused one, and tokens."""
    assertion = _token(
        {"typ": "JWT", "alg": "ES256", "kid": "permits-2026"},
        {
            "iss": "permits-portal",
            "sub": "permits-portal",
            "aud": ISSUER,
            "iat": AT - 25,
            "exp": AT + 35,
            "jti": "7Gq0",
        },
    )
    proof = _token(
        {"typ": "dpop+jwt", "alg": "ES256", "jwk": {"kty": "EC", "crv": "P-256", "x": "a" * 43, "y": "b" * 43}},
        {"htm": "POST", "htu": f"{ISSUER}/request", "iat": AT, "jti": "k2Lw"},
    )
    sent = (
        ("client_id", "permits-portal"), ("client_assertion", assertion), ("response_type", "code"),
        ("redirect_uri", "https://permits.example/callback"), ("scope", "openid authinfo"), ("state", "Zm9vYmFy"),
    )  # fmt: skip
    headers = (("host", "localhost:8400"), ("dpop", proof), ("content-type", "application/x-www-form-urlencoded"))
    good = _exchange("par", "/request", 201, parameters=sent, headers=headers, body=b"x")
    wrong = tuple((name, value + "/" if name == "redirect_uri" else value) for name, value in sent)
    bad = _exchange(
        "par", "/request", 400, parameters=wrong, headers=headers, body=b"x", error="invalid_request",
        reason="redirect_uri_not_registered", detail="redirect_uri is not registered",
        response_headers=[("content-type", "application/json"), ("cache-control", "no-store")],
        response_body=b'{"error": "invalid_request", "error_description": "redirect_uri is not registered (reference 0123)"}',
        explanation=Explanation(
            cause="redirect_uri is not registered: it differs by a slash at the end of the path",
            received="https://permits.example/callback/", registered="https://permits.example/callback",
        ),
    )  # fmt: skip
    identity = {
        "iss": ISSUER,
        "aud": "permits-portal",
        "sub": "5b0b",
        "iat": AT,
        "exp": AT + 600,
        "amr": ["pwd", "otp"],
    }
    token = _exchange(
        "token", "/mga/sps/oauth/oauth20/token", 200, parameters=(("grant_type", "authorization_code"), ("code", "c" * 43)),
        response_headers=[("content-type", "application/json")], response_body=b'{"token_type": "DPoP", "expires_in": 600}',
        signed=[SignedToken(typ="JWT", token=_token({"alg": "ES256", "kid": "2026", "typ": "JWT"}, identity))],
    )  # fmt: skip
    exchanges = Exchanges()
    for each in (good, bad, token):
        exchanges.begin(each)
        exchanges.add(each)
    return exchanges, bad, token


KEPT, REFUSED, TOKEN = _kept()
ADDRESSES: Final = traffic.Addresses("")
UP: Final = Frame(up=Link(url="/developer/traffic", text=phrase("Inspector")))
TRAFFIC: Final = traffic.TrafficPage(
    frame=Frame(),
    here="/developer/traffic",
    sign_ins_url="/developer/traffic",
    requests_url="/developer/traffic?view=requests",
    events="",
    readiness_url="/developer/readiness",
    clients=(("permits-portal", 3), ("a-client-whose-identifier-is-as-long-as-one-may-be-or-longer", 12)),
    client_id="",
    every=False,
)
ROWS: Final = tuple(
    replace(row, orders=orders)
    for row, orders in zip(ADDRESSES.rows(KEPT.list_exchanges()), ("", "", "token"), strict=True)
)
SANDBOX: Final = OrdersPage(
    frame=Frame(form_token="t0ken", under_way=True, up=Link(url="/developer/traffic", text=phrase("Inspector"))),
    action="/developer/orders",
    clients=("demo-rp", "a-client-with-a-name-that-is-as-long-as-a-client-identifier-can-reasonably-be"),
)
ORDERS: Final = (
    ActiveOrder(
        order_id="1", issuer_id="first", at=0, left=2,
        order=Order(name="error", client_id="demo-rp", members={"endpoint": "token", "error": "temporarily_unavailable", "description": "a description without any spaces: " + "x" * 90}),
    ),
    ActiveOrder(
        order_id="2", issuer_id="first", at=0, left=None, obeyed=12, order=Order(name="callback", members={"fault": "late"}, sign_in="urn:x"),
    ),
)  # fmt: skip

READINESS: Final = ReadinessPage(
    frame=Frame(form_token="t0ken", under_way=True, up=Link(url="/developer", text=TITLE)),
    action="/developer/readiness",
    command="corpid rp-check LOGIN-URL --developer http://localhost:8400/developer",
    runs=True,
    people=(("rina", "Rina Rahman (rina)"), ("bob", f"{LONG} (bob)")),
    traffic="/developer/traffic",
)
CHECKED: Final = RunRequest(
    issuer=ISSUER, url=f"http://127.0.0.1:8410/login?next={'a' * 90}", user="rina", entity="209900042K"
)
LINES: Final = deque(("PASSED baseline: a session begins", f"FAILED state-altered: the page says {'x' * 90}"))
REPORT: Final = Report(
    url=CHECKED.url,
    issuer=CHECKED.issuer,
    client_id="permits-portal",
    marker="",
    user=CHECKED.user,
    at=0,
    seconds=60,
    results=(
        Result(
            case=BASELINE,
            finding=Finding(verdict=Verdict.PASSED, seen="a session begins"),
            observation=Observation(sign_ins=()),
            seconds=1,
        ),
        Result(
            case=CASES["state-altered"],
            finding=Finding(verdict=Verdict.FAILED, seen=f"a session began at http://127.0.0.1:8410/{'b' * 90}"),
            observation=Observation(sign_ins=()),
            seconds=1,
        ),
    ),
)

STATES: Final[Mapping[str, View]] = {
    "readiness": READINESS,
    "readiness-refused": replace(
        READINESS,
        typed={**readiness.EMPTY, "url": "rp.example/login"},
        errors=(("url", phrase("Enter an address that begins with http:// or https://, without a password.")),),
    ),
    "readiness-running": replace(READINESS, run=Run(asked=CHECKED, lines=LINES)),
    "readiness-done": replace(READINESS, run=Run(asked=CHECKED, state=RunState.DONE, report=REPORT)),
    "readiness-by-command": replace(READINESS, runs=False),
    "schemas": build_page("/developer/schemas/"),
    "schemas-of-a-generation": build_page("/developer/schemas/", "current"),
    "anybody": EMPTY,
    "anybody-made": replace(EMPTY, typed=ANN, made="Ann Anybody", link="/developer/anybody?as=e30"),
    "anybody-refused": replace(
        EMPTY,
        typed=ANN,
        errors=(("roles", phrase("This cannot be used: {problem}", problem="PERMITS is no service")),),
    ),
    "inspector-empty": TRAFFIC,
    "inspector-sign-ins": replace(
        TRAFFIC,
        sign_ins=(
            traffic.SignInRow(url="/s/2", at="12:00:02", client_id="permits-portal", steps=(ROWS[0], ROWS[1])),
            traffic.SignInRow(url="/s/1", at="12:00:00", client_id="permits-portal", steps=(ROWS[0], ROWS[2])),
        ),
        more=7,
    ),
    "inspector-requests": replace(TRAFFIC, every=True, rows=ROWS, client_id="permits-portal"),
    "inspector-refused": traffic.exchange_page(REFUSED, KEPT, ADDRESSES),
    "inspector-token": traffic.exchange_page(TOKEN, KEPT, ADDRESSES),
    "inspector-sign-in": traffic.SignInPage(
        frame=UP,
        client_id="permits-portal",
        request_uri="urn:ietf:params:oauth:request_uri:" + "r" * 43,
        day="2026-11-17 10:26:40 UTC",
        steps=(
            (ROWS[0], inspection.inspect(KEPT.list_exchanges()[0], KEPT)),
            (ROWS[1], inspection.inspect(REFUSED, KEPT)),
        ),
    ),
    "anybody-json": replace(
        EMPTY, typed=PersonFields(json='{\n  "entity": "209900042K"\n}'), made="Anybody 1A2B", link="/x"
    ),
    "developer-index": index.view("", "http://localhost:8400"),
    "developer-client-form": NEW,
    "developer-client-checked": WRONG_FORM,
    "sandbox": SANDBOX,
    "sandbox-orders": replace(SANDBOX, rows=ORDERS, saved=phrase("In force: {name}.", name="callback")),
    "sandbox-refused": replace(
        SANDBOX,
        clients=(),
        opened="token",
        typed={"token-token": "id_token", "token-fault": "missing-claim"},
        errors=(("token-claim", phrase("This cannot be used: {problem}", problem="claim is missing")),),
    ),
}

OF_CLIENT_PAGES: Final[Mapping[str, Visit]] = {
    "developer-clients": Visit("clients"),
    "developer-client-own": Visit("clients/client/rp1"),
    "developer-client": Visit("clients/client/my-rp?saved=1"),
    "developer-client-remove": Visit("clients/remove/my-rp"),
    "developer-clients-removed": Visit("clients/remove/my-rp", {}),
}


async def walk_clients(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open the pages of the demo's own client, and of one that is registered and removed."""
    async with world(developer=developer(own_clients={"rp1"})) as made:
        members = {**SHOP, "client_id": "my-rp", "name": f"My {LONG}"}
        assert (await sent(made, members)).status_code < 300
        browser = await made.browser()
        for name, visit in visits.items():
            await recorder.visit(name, visit, browser, f"{made.base}/developer/{visit.page}")
