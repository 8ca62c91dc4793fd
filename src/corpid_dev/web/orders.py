"""Orders of the sandbox, for programs: JSON in, JSON out (D66).

The page of the sandbox: orders in force, and a form each (D66).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from corpid.flows.authentication import browsers, interactions
from corpid.flows.encrypted_values import StoredForm
from corpid.rules.oauth import parameters
from corpid.texts import Phrase, phrase
from corpid.web.context import WebContext, with_parameter
from corpid.web.http.requests import client_request, cookie, form_bytes, headers, page_request
from corpid.web.pages.components import FormView, Frame, ViewPart
from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import NO_STORE, page_for_browser, refuse_forged, require_own_form, see_other
from corpid.web.routes import as_json, as_page
from corpid_dev.flows.orders import MOST, ActiveOrder, TooManyOrders, place
from corpid_dev.rules.orders import BY_NAME, COMMON, KINDS, InvalidOrder, OrderKind, OrderMember, document_from_texts
from corpid_dev.web import endpoints, stored_forms
from corpid_dev.web.endpoints import JSON, json_members, refuse_other_sites
from corpid_dev.web.paths import ORDERS_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

    from corpid.flows.request_context import RequestContext
    from corpid_dev.web.mode import Mode

_FORM: Final = "orders"
_DONE: Final = "done"
"""the parameter that says what was done"""
_WITHDRAWN: Final = "withdrawn"
_OWN: Final = frozenset({"form_token", "step", "order", "id"})


def field(kind: OrderKind, member: str) -> str:
    """The name of a member's field, in the form of its order."""
    return f"{kind.name}-{member}"


_FIELDS: Final = _OWN | {field(kind, each.name) for kind in KINDS for each in (*kind.members, *COMMON)}


class OrderField(ViewPart, frozen=True, kw_only=True):
    """A field of an order's form."""

    name: str
    label: str
    hint: str
    value: str
    options: tuple[tuple[str, str], ...] = ()
    """of a choice: value and text"""
    numeric: bool = False


class OrdersPage(FormView, frozen=True, kw_only=True):
    """The orders in force, and a form for each kind.

    Fields and error ids: name of the order, a hyphen, member.
    """

    template: ClassVar[str] = "developer/orders.html"
    heading: ClassVar[Phrase] = phrase("Sandbox")

    rows: Sequence[ActiveOrder] = ()
    clients: tuple[str, ...] = ()
    opened: str = ""
    """name of the order whose form is open"""
    typed: Mapping[str, str] = msgspec.field(default_factory=dict)
    saved: Phrase | None = None
    kinds: ClassVar[tuple[OrderKind, ...]] = KINDS

    def fields(self, kind: OrderKind) -> list[OrderField]:
        """The fields of an order's form, with what was typed."""
        common = () if kind.everybody else COMMON
        return [self._field(kind, each) for each in (*kind.members, *common)]

    def _field(self, kind: OrderKind, member: OrderMember) -> OrderField:
        name = field(kind, member.name)
        default = "" if member.default is None else str(member.default).lower() if member.flag else str(member.default)
        choices = tuple((each, each) for each in member.choices)
        if member.choices and not member.required and member.default is None:
            choices = (("", "none"), *choices)
        if member.flag:
            choices = (("false", "no"), ("true", "yes"))
        if member.name == "client_id" and self.clients:
            choices = (("", "every client"), *((each, each) for each in self.clients))
        numeric = member.least is not None
        return OrderField(
            name=name,
            label=member.name if member.required or choices else f"{member.name} (optional)",
            hint=_plain(f"{member.help}; a {member.type}" if numeric else member.help),
            value=self.typed.get(name, default),
            options=choices,
            numeric=numeric and member.whole,
        )


def _plain(text: str) -> str:
    """A text of the declarations as a hint."""
    plain = text.replace("`", "")
    return plain[:1].upper() + plain[1:]


async def page(request: Request, web: WebContext, mode: Mode) -> Response:
    """Show the orders, or place and withdraw them."""
    context = await page_request(request, web.provider)
    browser = await browsers.recognise(context, cookie(request, web.cookie_name))
    if request.method == "POST":
        refuse_forged(request, web)
        return await _submit(request, web, context, mode, browser.browser_id if browser else "")
    clients = await context.provider.registry.clients.list_all()
    view = partial(
        _view,
        web,
        context,
        mode,
        form=await stored_forms.read_form(request, context, browser, web.base_path + ORDERS_PATH),
        clients=tuple(sorted(each.client_id for each in clients if each.enabled)),
        saved=_saved(request.query_params.get(_DONE, "")),
    )
    return await page_for_browser(request, web, context, browser, view)


def _saved(done: str) -> Phrase | None:
    """The sentence on what was done."""
    if done == _WITHDRAWN:
        return phrase("The order is withdrawn.")
    if done not in BY_NAME:
        return None
    return phrase("Done: {name}.", name=done) if BY_NAME[done].once else phrase("In force: {name}.", name=done)


def _view(
    web: WebContext,
    context: RequestContext,
    mode: Mode,
    browser_id: str,
    *,
    form: StoredForm | None,
    clients: tuple[str, ...],
    saved: Phrase | None,
) -> OrdersPage:
    here = web.base_path + ORDERS_PATH
    return OrdersPage(
        frame=Frame(
            form_token=interactions.form_token(context, browser_id, _FORM),
            under_way=True,
            here=with_parameter(here) if form else here,
            up=mode.up,
        ),
        action=here,
        rows=mode.developer.orders.list_orders(issuer_id=context.provider.policy.issuer_id),
        clients=clients,
        opened=form.fields.get("order", "") if form else "",
        typed=form.fields if form else {},
        errors=form.errors if form else (),
        saved=saved,
    )


async def _submit(request: Request, web: WebContext, context: RequestContext, mode: Mode, browser_id: str) -> Response:
    form = parameters.parse(await form_bytes(request), _FIELDS)
    require_own_form(context, form, browser_id, _FORM)
    orders, issuer_id, here = mode.developer.orders, web.provider.policy.issuer_id, web.base_path + ORDERS_PATH
    match form.get("step", ""):
        case "withdraw":
            orders.withdraw(form.get("id", ""), issuer_id=issuer_id)
            return see_other(f"{here}?{_DONE}={_WITHDRAWN}")
        case "withdraw-all":
            orders.withdraw_all(issuer_id=issuer_id)
            return see_other(f"{here}?{_DONE}={_WITHDRAWN}")
    name = form.get("order", "")
    texts = {key.removeprefix(f"{name}-"): text for key, text in form.items() if key.startswith(f"{name}-")}
    try:
        await place(context, orders, mode.developer.sandbox_keys, [document_from_texts(name, texts)])
    except InvalidOrder as unfit:
        where = f"{name}-{unfit.member}" if name in BY_NAME and unfit.member != "order" else ""
        problem = f"{unfit.member} {unfit.text}" if unfit.text.startswith(("is ", "must ", "has ")) else str(unfit)
        error = (where, phrase("This cannot be used: {problem}", problem=problem))
    except TooManyOrders:
        error = ("", phrase("This cannot be used: {problem}", problem=f"{MOST} orders are in force"))
    else:
        return see_other(f"{here}?{urlencode({_DONE: name})}")
    return await stored_forms.to_entered(context, browser_id, here, StoredForm(fields=form, errors=(error,)))


def for_a_page(request: Request) -> bool:
    """Return whether a browser asks for the page, or sends its form."""
    if request.method == "POST":
        sent = headers(request, b"content-type")
        return bool(sent) and sent[0].startswith(b"application/x-www-form-urlencoded")
    return request.method != "DELETE" and any(b"text/html" in each for each in headers(request, b"accept"))


async def orders(request: Request, web: WebContext, mode: Mode) -> Response:
    """Place an order, list those in force, or withdraw them."""
    if for_a_page(request):
        return await page(request, web, mode)
    placed, issuer_id = mode.developer.orders, web.provider.policy.issuer_id
    client_id = request.query_params.get("client_id")
    if request.method == "POST":
        refuse_other_sites(request, web)
        context = await client_request(request, web.provider)
        [made] = await endpoints.place(context, mode, [await json_members(request)])
        request.scope["state"]["log"]["detail"] = f"sandbox: {made.order.name} placed"
        return _json(made.document, status=201)
    if request.method == "DELETE":
        refuse_other_sites(request, web)
        return _json({"withdrawn": placed.withdraw_all(issuer_id=issuer_id, client_id=client_id)})
    found = placed.list_orders(issuer_id=issuer_id, client_id=client_id)
    return _json({"orders": [each.document for each in found]})


async def order(request: Request, web: WebContext, mode: Mode) -> Response:
    """Withdraw one order."""
    refuse_other_sites(request, web)
    issuer_id = web.provider.policy.issuer_id
    if not mode.developer.orders.withdraw(request.path_params["rest"], issuer_id=issuer_id):
        return await not_found(request, web)
    return _json({"withdrawn": 1})


def fails(request: Request, error: Exception, web: WebContext) -> Response:
    """Render an error as a page, or as JSON for a program."""
    return as_page(request, error, web) if for_a_page(request) else as_json(request, error, web)


def _json(content: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, NO_STORE, JSON)
