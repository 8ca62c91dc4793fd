"""A relying party on npm's openid-client, as a process that is told what to do (`stock_node.mjs`)."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.interop.node_process import NodeProcess, running_script
from tests.interop.stock_clients import Registered, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid_dev.relying_party.verification import Callback

CLIENT = Path(__file__).with_name("stock_node.mjs")
CONTENT_ENCRYPTIONS = ["A256CBC-HS512", "A256GCM"]


class NodeClient:
    """See `stock_clients.StockClient`."""

    def __init__(self, registered: Registered, script: NodeProcess) -> None:
        self.registered = registered
        self.script = script

    def connect(self) -> None:
        known = self.registered
        metadata = {"id_token_signed_response_alg": "ES256"}
        if known.id_token_encrypted:
            metadata["id_token_encrypted_response_alg"] = known.wrap
        if known.userinfo_signed:
            metadata["userinfo_signed_response_alg"] = "ES256"
        self.script.call(
            "connect",
            issuer=known.issuer,
            clientId=known.client_id,
            keyFile=str(known.keys),
            metadata=metadata,
            decrypts=CONTENT_ENCRYPTIONS if known.id_token_encrypted or known.userinfo_encrypted else None,
        )

    def begin(self, *, bare: bool = False, **parameters: str) -> str:
        known = self.registered
        sent = {**known.request, **parameters}
        address = self.script.call(
            "begin", pushed=known.interface.pushed, bound=known.interface.bound, bare=bare, parameters=sent
        )
        return str(address)

    def finish(self, callback: Callback, *, with_another_key: bool = False) -> Tokens:
        form = None if callback.form is None else urlencode(callback.form)
        return Tokens(**self.script.call("finish", url=str(callback), form=form, withAnotherKey=with_another_key))

    def userinfo(self) -> dict[str, Any]:
        return dict(self.script.call("userinfo"))

    def read(self, endpoint: str, method: str) -> dict[str, Any]:
        return dict(self.script.call("read", endpoint=endpoint, method=method))


@contextmanager
def connected(registered: Registered) -> Iterator[NodeClient]:
    """A client that has read the provider's metadata."""
    with running_script(CLIENT) as script:
        client = NodeClient(registered, script)
        client.connect()
        yield client
