"""The issuer that answers a request, by Host and path (D35, D62)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from corpid.web.http.middleware import Issuers

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

AT_ROOT = frozenset({"/.well-known/change-password"})


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers nothing: the log fields name the issuer."""


async def _nothing(*_: Any) -> Any:
    return {}


def chosen(path: str, host: bytes, **base_urls: str) -> str:
    issuers = Issuers(dict.fromkeys(base_urls.items(), _application), of_first=AT_ROOT)
    log: dict[str, Any] = {}
    scope = {"type": "http", "path": path, "state": {"headers": {b"host": [host]}, "log": log}}
    asyncio.run(issuers(scope, _nothing, _nothing))
    return str(log["issuer"])


@pytest.mark.parametrize(
    ("path", "issuer"),
    [("/id", "first"), ("/id/token", "first"), ("/x/token", "other"), ("/y", "first"), ("/", "first")],
)
def test_a_path_of_no_issuer_of_the_first_ones_host_is_the_first_ones(path: str, issuer: str) -> None:
    """D62: also if another issuer has the shorter path."""
    both = {"first": "https://h.example/id", "other": "https://h.example/x"}
    assert chosen(path, b"h.example", **both) == issuer
    assert chosen(path, b"only-allowed.example", **both) == issuer


def test_the_first_issuer_has_the_paths_at_the_root_of_its_host() -> None:
    """RFC 8615 §3, D62: also if another issuer has the host without a path; on its own host that one answers."""
    both = {"first": "https://h.example/id", "other": "https://h.example"}
    assert chosen("/.well-known/change-password", b"h.example", **both) == "first"
    assert chosen("/.well-known/keys", b"h.example", **both) == "other"
    elsewhere = {"first": "https://h.example/id", "other": "https://o.example"}
    assert chosen("/.well-known/change-password", b"o.example", **elsewhere) == "other"


def test_a_host_of_another_issuer_alone_is_that_ones() -> None:
    """D62."""
    both = {"first": "https://h.example", "other": "https://o.example/x"}
    assert chosen("/y", b"o.example", **both) == "other"
    assert chosen("/y", b"O.EXAMPLE:443", **both) == "other"
