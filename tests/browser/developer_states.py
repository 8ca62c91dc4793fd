"""The pages of developer mode, in the states that look different (D66)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from corpid.rules.oauth.generations import CURRENT
from corpid.rules.oauth.records import Client
from corpid.texts import phrase
from corpid.web.developer.clients import (
    ClientLine,
    DeveloperClient,
    DeveloperClientForm,
    DeveloperClients,
    RemoveClient,
)
from corpid.web.developer.pages import AnybodyPage, Typed
from corpid.web.developer.snippets import snippets
from corpid.web.pages.client_fields import PRIVATE_KEY, fields_of, new_values
from corpid.web.pages.layout import Frame, Link

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View

EMPTY: Final = AnybodyPage(
    frame=Frame(form_token="t0ken", under_way=True, up=Link(url="/sign-in/1", text=phrase("Back to the sign-in"))),
    action="/developer/anybody",
    clients="/developer/clients",
)
ANN: Final = Typed(
    name="Ann Anybody",
    entity="209999001A",
    entity_name="Anything Pte. Ltd.",
    roles="HARBOUR-PERMIT; Checker; Pier 7; Permit Year=2027\nFOOD-LICENCE; Viewer",
    third_party="209900042K; TAX-FILING; Preparer; Tax Year=2026",
)

LONG: Final = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesellschaft"
REGISTERED: Final = Client(
    client_id="my-rp",
    name="My application",
    redirect_uris=("http://127.0.0.1:8410/callback", f"https://rp.example/{'a' * 90}"),
    scopes=("openid", "authinfo", "user.name"),
    services=("HARBOUR-PERMIT", "FOOD-LICENCE"),
    jwks_uri="https://rp.example/jwks",
)
OF_CLIENTS: Final = Frame(under_way=True, up=Link(url="/developer/clients", text=DeveloperClients.heading))
LISTED: Final = (
    ClientLine(url="/1", client_id="demo-rp", name="Demo RP", generations=("current",), own=True),
    ClientLine(url="/2", client_id="my-rp", name=LONG, generations=("legacy", "current"), own=False),
)
NEW: Final = DeveloperClientForm(
    frame=replace(OF_CLIENTS, form_token="t0ken"),
    action="/developer/clients/new",
    heading=phrase("Register a client"),
    groups=fields_of(new_values({"services": ("HARBOUR-PERMIT", "TAX-FILING")}), rare=False),
    more=fields_of(new_values(), rare=True),
    more_open=False,
    new=True,
    back="/developer/clients",
    advice={},
)
WRONG_FORM: Final = replace(
    NEW,
    groups=fields_of({**new_values(), "redirect_uris": "http://rp.example/cb\nhttp://localhost:8410/cb"}, rare=False),
    client_id="my-rp",
    checked=True,
    advice={
        "redirect_uris": ("http://localhost:8410/cb and http://127.0.0.1:8410/cb are two addresses.",),
        "services": ("Without a service userinfo has no roles.",),
    },
    errors=(
        ("redirect_uris", phrase("{sentence}.", sentence="http://rp.example/cb: the scheme must be https")),
        ("jwks", PRIVATE_KEY),
    ),
)
ONE: Final = DeveloperClient(
    frame=OF_CLIENTS,
    heading=phrase("Client {name}", name="My application"),
    client_id="my-rp",
    redirect_uris=REGISTERED.redirect_uris,
    scopes=REGISTERED.scopes,
    services=REGISTERED.services,
    generations=("current",),
    advice=("jwks_uri: no key set was fetched: no connection to 127.0.0.1: connection refused.",),
    snippets=snippets(REGISTERED, "http://localhost:8400", CURRENT),
    saved=True,
    edit="/edit",
    remove="/remove",
)

STATES: Final[Mapping[str, View]] = {
    "anybody": EMPTY,
    "anybody-made": replace(EMPTY, typed=ANN, made="Ann Anybody", link="/developer/anybody?as=e30"),
    "anybody-refused": replace(
        EMPTY,
        typed=ANN,
        errors=(("roles", phrase("This cannot be used: {problem}", problem="PERMITS is no service")),),
    ),
    "anybody-json": replace(EMPTY, typed=Typed(json='{\n  "entity": "209900042K"\n}'), made="Anybody 1A2B", link="/x"),
    "developer-clients": DeveloperClients(frame=OF_CLIENTS, clients=LISTED, register="/new"),
    "developer-clients-removed": DeveloperClients(frame=OF_CLIENTS, clients=LISTED[:1], register="/new", removed=True),
    "developer-client-form": NEW,
    "developer-client-checked": WRONG_FORM,
    "developer-client": ONE,
    "developer-client-own": replace(ONE, snippets=(), advice=(), saved=False, edit="", remove=""),
    "developer-client-remove": RemoveClient(
        frame=replace(OF_CLIENTS, form_token="t0ken"),
        action="/developer/clients/remove/my-rp",
        heading=phrase("Remove {name}?", name="My application"),
        back="/developer/clients/client/my-rp",
    ),
}
