"""The pages of developer mode, in the states that look different (D66)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from corpid.texts import phrase
from corpid.web.developer.orders_page import OrderRow, OrdersPage
from corpid.web.developer.pages import AnybodyPage, Typed
from corpid.web.pages.layout import Frame, Link

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View

EMPTY: Final = AnybodyPage(
    frame=Frame(form_token="t0ken", under_way=True, up=Link(url="/sign-in/1", text=phrase("Back to the sign-in"))),
    action="/developer/anybody",
)
ANN: Final = Typed(
    name="Ann Anybody",
    entity="209999001A",
    entity_name="Anything Pte. Ltd.",
    roles="HARBOUR-PERMIT; Checker; Pier 7; Permit Year=2027\nFOOD-LICENCE; Viewer",
    third_party="209900042K; TAX-FILING; Preparer; Tax Year=2026",
)

SANDBOX: Final = OrdersPage(
    frame=Frame(form_token="t0ken", under_way=True, up=Link(url="/developer", text=phrase("For developers"))),
    action="/developer/orders",
    clients=("demo-rp", "a-client-with-a-name-that-is-as-long-as-a-client-identifier-can-reasonably-be"),
)
ROWS: Final = (
    OrderRow(order_id="1", name="error", members=(("endpoint", "token"), ("error", "temporarily_unavailable"), ("description", "a description without any spaces: " + "x" * 90)), client_id="demo-rp", sign_in="", left=2, obeyed=0),
    OrderRow(order_id="2", name="callback", members=(("fault", "late"),), client_id="", sign_in="urn:x", left=None, obeyed=12),
)  # fmt: skip

STATES: Final[Mapping[str, View]] = {
    "anybody": EMPTY,
    "anybody-made": replace(EMPTY, typed=ANN, made="Ann Anybody", link="/developer/anybody?as=e30"),
    "anybody-refused": replace(
        EMPTY,
        typed=ANN,
        errors=(("roles", phrase("This cannot be used: {problem}", problem="PERMITS is no service")),),
    ),
    "anybody-json": replace(EMPTY, typed=Typed(json='{\n  "entity": "209900042K"\n}'), made="Anybody 1A2B", link="/x"),
    "sandbox": SANDBOX,
    "sandbox-orders": replace(SANDBOX, rows=ROWS, saved=phrase("In force: {name}.", name="callback")),
    "sandbox-refused": replace(
        SANDBOX,
        clients=(),
        opened="token",
        typed={"token-token": "id_token", "token-fault": "missing-claim"},
        errors=(("token-claim", phrase("This cannot be used: {problem}", problem="claim is missing")),),
    ),
}
