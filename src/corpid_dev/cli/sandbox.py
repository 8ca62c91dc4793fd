"""`corpid sandbox`: orders to a running demo (D66)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from corpid.cli import listing, output
from corpid_dev.developer_api import DEFAULT_URL, DeveloperApi, NotDone, developer_api, trusting
from corpid_dev.rules.orders import BY_NAME, KINDS, NAMES, OrderKind, document_from_texts

_Answer = TypeVar("_Answer")
_SECONDS: Final = 10.0

app = typer.Typer(no_args_is_help=True)

Address = Annotated[str, typer.Option("--developer", help="Address of developer mode, as `corpid demo` prints it.")]
Authority = Annotated[
    Path | None, typer.Option("--ca", metavar="FILE", help="PEM file of a certificate authority to trust, too.")
]
ClientId = Annotated[str, typer.Option("--client", help="Identifier of the client. Default: every client.")]


@app.command("orders")
def orders(name: Annotated[str, typer.Argument(help="One order, with its members and faults.")] = "") -> None:
    """List the orders that can be placed."""
    if not name:
        output.table("Orders", ("Order", "Members", "Help"), [(each.name, _usage(each), each.help) for each in KINDS])
        output.say("`corpid sandbox orders NAME` shows what an order takes, and what a correct relying party does.")
        return
    kind = _kind(name)
    output.say(kind.help)
    output.say(f"A correct relying party: {kind.right}")
    if kind.members:
        rows = [(each.name, each.type, each.help) for each in kind.members]
        output.table("Members", ("Member", "Type", "Help"), rows)
    if kind.faults:
        faults = [(each.name, ", ".join(each.tokens), each.help, each.right) for each in kind.faults]
        output.table("Faults", ("Fault", "Of", "Help", "A correct relying party"), faults)


@app.command()
def order(
    name: Annotated[str, typer.Argument(help=f"The order: {', '.join(NAMES)}.")],
    members: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MEMBER=VALUE]...", help="What the order needs, such as endpoint=token."),
    ] = None,
    *,
    client: ClientId = "",
    times: Annotated[str, typer.Option(help="How often it is obeyed. Default: until it is withdrawn.")] = "",
    sign_in: Annotated[str, typer.Option(help="request_uri, or state, of the one sign-in that it is for.")] = "",
    developer: Address = DEFAULT_URL,
    ca: Authority = None,
    json: listing.AsJson = False,
) -> None:
    """Place an order: the demo obeys it from now on."""
    _kind(name)
    texts = {"client_id": client, "times": times, "sign_in": sign_in}
    for each in members or ():
        member, found, value = each.partition("=")
        if not found:
            output.fail(f"{each} is not a member: write MEMBER=VALUE, such as endpoint=token")
        texts[member] = value
    placed = _asked(developer, ca, lambda api: api.place(document_from_texts(name, texts)))
    if json:
        output.as_json(placed)
    elif placed["left"] == 0:
        output.say(f"Done: {name}.")
    else:
        output.say(f"Order {placed['id']} is in force. `corpid sandbox withdraw {placed['id']}` ends it.")


@app.command("list")
def listed(
    *, client: ClientId = "", developer: Address = DEFAULT_URL, ca: Authority = None, json: listing.AsJson = False
) -> None:
    """List the orders in force."""
    found = _asked(developer, ca, lambda api: api.list_orders(client or None))
    if json:
        output.as_json({"orders": found})
    elif not found:
        output.say("No order is in force.")
    else:
        headings = ("Id", "Order", "Members", "Client", "Sign-in", "Left", "Obeyed")
        output.table("Orders in force", headings, [_row(each) for each in found])


@app.command()
def withdraw(
    order_id: Annotated[str, typer.Argument(metavar="[ID]", help="The order's id.")] = "",
    *,
    every: Annotated[bool, typer.Option("--all", help="Every order, or with --client those of one client.")] = False,
    client: ClientId = "",
    developer: Address = DEFAULT_URL,
    ca: Authority = None,
) -> None:
    """End an order, or all of them."""
    if bool(order_id) == every:
        output.fail("give either the order's id or --all")
    count = _asked(developer, ca, lambda api: api.withdraw_all(client or None) if every else api.withdraw(order_id))
    output.say(f"{count} {'order' if count == 1 else 'orders'} withdrawn.")


def _asked(developer: str, ca: Path | None, ask: Callable[[DeveloperApi], Awaitable[_Answer]]) -> _Answer:
    """The answer of a demo; what it refuses ends the command."""

    async def asked() -> _Answer:
        async with developer_api(developer, seconds=_SECONDS, tls=trusting(ca)) as api:
            return await ask(api)

    try:
        return asyncio.run(asked())
    except NotDone as error:
        output.fail(str(error))


def _kind(name: str) -> OrderKind:
    if name not in BY_NAME:
        output.fail(f"there is no order {name}: choose from {', '.join(NAMES)}")
    return BY_NAME[name]


def _usage(kind: OrderKind) -> tuple[str, ...] | str:
    return tuple(each.name if each.required else f"[{each.name}]" for each in kind.members)


def _row(placed: dict[str, Any]) -> tuple[str | tuple[str, ...], ...]:
    own = [each.name for each in BY_NAME[placed["order"]].members if each.name in placed]
    return (
        placed["id"],
        placed["order"],
        tuple(f"{name}={placed[name]}" for name in own),
        placed["client_id"] or "every",
        (placed["sign_in"] or "")[-12:],
        "" if placed["left"] is None else str(placed["left"]),
        str(placed["obeyed"]),
    )
