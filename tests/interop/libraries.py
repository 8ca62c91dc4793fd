"""Relying parties on stock libraries: registered, connected and signed in."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop import stock_node, stock_python
from tests.interop.stock_clients import Registered, StockClient, Tokens, public_keys, write_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from corpid_dev.relying_party.interfaces import Interface
    from tests.interop.running import Provider

LIBRARIES: Mapping[str, Callable[[Registered], AbstractContextManager[StockClient]]] = {
    "node": stock_node.connected,
    "python": stock_python.connected,
}
LANGUAGES = tuple(LIBRARIES)
in_both_languages = pytest.mark.parametrize(
    "language", [pytest.param(each, marks=pytest.mark.full) if each == "node" else each for each in LANGUAGES]
)
"""What is one setting of one of them: with Node in `make test-full`. Whole sign-ins of each generation are in both."""
FAR_AWAY = "2999-12-31"
ROLES = [("", "Approver"), ("209912345D", "Applicant")]
"""what everybody may do: for whom beside the entity itself, and as what"""


def connected(language: str, registered: Registered) -> AbstractContextManager[StockClient]:
    """A relying party on the stock library of this language, which has read the provider's metadata."""
    return LIBRARIES[language](registered)


@contextmanager
def client_of(
    running: Provider, tmp_path: Path, language: str, interface: Interface, **members: Any
) -> Iterator[StockClient]:
    """A client that is registered for one generation with these members, and connected."""
    keys = write_keys(tmp_path / "keys.json")
    registered = Registered(
        issuer=running.issuer, client_id=tmp_path.name, keys=keys, interface=interface, members=members
    )
    generations = {"generations": [interface.name], **({"legacy_until": FAR_AWAY} if interface.ends else {})}
    running.register(registered.client_id, registered.redirect_uri, public_keys(keys), **generations, **members)
    with connected(language, registered) as client:
        yield client


def sign_in(running: Provider, client: StockClient, *, bare: bool = False, **parameters: str) -> Tokens:
    """Somebody signs in, and the library has checked what came back."""
    return client.finish(running.visited(client.begin(bare=bare, **parameters), running.newcomer()))


def roles(blocks: Mapping[str, Any], interface: Interface) -> list[tuple[str, str]]:
    """For whom, and as what, from both blocks, which have the same shape in every generation (D23)."""
    own, third_party = (blocks[interface.userinfo.blocks[scope]] for scope in ("authinfo", "tpauthinfo"))
    return [
        ("", row["CPRole"])
        for service in own["Result_Set"]["ESrvc_Result"]
        for row in service["Auth_Result_Set"]["Row"]
    ] + [
        (client["CP_Clnt_ID"], row["CPRole"])
        for service in third_party["Result_Set"]["ESrvc_Result"]
        for client in service["Auth_Set"]["TP_Auth"]
        for row in client["Auth_Result_Set"]["Row"]
    ]


def entity_of(claims: Mapping[str, Any]) -> str:
    """The identifier of the entity, as the ID token tells it (D2, R-12.2)."""
    told: str = claims["entityInfo"]["CPEntID"] if "entityInfo" in claims else claims["entity"]["sub"]
    return told
