"""The real provider, asked with requests as the HTTP parser hands them on, and what such requests are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, unquote

from hypothesis import strategies as st

from corpid.rules.directory.records import Entity, Membership, User
from corpid.rules.oauth.client_assertion import ASSERTION_TYPE
from corpid.rules.oauth.discovery import AUTHORIZATION_PATH, DISCOVERY_PATH, JWKS_PATH, PAR_PATH, TOKEN_PATH
from tests.fuzz.examples import TEXT, tokens
from tests.unit.jose.signed import key, key_set, public_jwk, sign
from tests.unit.rules.oauth.given import CLIENT, NOW
from tests.world import clients

if TYPE_CHECKING:
    import asyncio

    from hypothesis.strategies import SearchStrategy

    from corpid.app import Application

ISSUER: Final = "http://localhost:8080"
HOST: Final = (b"host", b"localhost:8080")
FORM: Final = (b"content-type", b"application/x-www-form-urlencoded")
RP: Final = clients.record(
    CLIENT.client_id,
    name=CLIENT.name,
    sector=CLIENT.sector,
    redirect_uris=CLIENT.redirect_uris,
    scopes=CLIENT.scopes,
    context_types=CLIENT.context_types,
    generations=("current", "legacy"),
    legacy_until=clients.FAR,
    pkce="optional",
    jwks=key_set(public_jwk(key(), use="sig", kid="a"), public_jwk(key("P-384"), use="enc", kid="e")),
)
RECORDS: Final = (
    RP,
    User(user_id="user-1", user_name="rina", name="Rina"),
    Entity(entity_id="200000001A", type="UEN", registration_number="200000001A", country="SG", name="Works"),
    Membership(user_id="user-1", entity_id="200000001A"),
)
METHODS: Final = st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", "PUT", "QUERY"])
NUMBER: Final = count()

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the HTTP parser hands it on."""

    method: str
    path: bytes
    query: bytes = b""
    headers: Headers
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The real provider, its one clock standing still."""

    runner: asyncio.Runner
    application: Application

    def answered(self, asked: Asked) -> int:
        """The status. Whatever is wrong with a request is the caller's fault, and said so in the answer's own form."""
        status, headers, body = self.runner.run(called(self.application, asked))
        assert 200 <= status < 500, (status, asked, body)
        if headers.get(b"content-type") == b"application/json" and status >= 400 and body:
            content = json.loads(body)
            assert content["error"] != "server_error"
            assert content["error_description"].isascii()
        assert all(b"\n" not in value and b"\r" not in value for value in headers.values())
        return status


async def called(application: Application, asked: Asked) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers and body, as the HTTP server would get them."""
    scope: Any = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": asked.method, "scheme": "http",
        "path": unquote(asked.path.decode("latin-1")), "raw_path": asked.path, "root_path": "",
        "query_string": asked.query, "headers": [HOST, *asked.headers], "client": ("192.0.2.1", 1), "server": ("s", 1),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": asked.body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await application.asgi(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), body


def assertion() -> str:
    claims = {"iss": "rp-1", "sub": "rp-1", "aud": ISSUER, "jti": f"a{next(NUMBER):08}", "iat": NOW, "exp": NOW + 60}
    return sign(claims)


def proof_claims(method: str, path: str, **more: object) -> dict[str, object]:
    return {"jti": f"p{next(NUMBER):08}", "htm": method, "htu": ISSUER + path, "iat": NOW, **more}


def proofs(method: str, path: str, **more: object) -> SearchStrategy[bytes]:
    """Proofs that are right or nearly so; those of one length, so that nothing drawn depends on the count of them."""
    header: dict[str, Any] = {"typ": "dpop+jwt", "jwk": public_jwk(key())}
    fresh = st.builds(lambda: proof_claims(method, path, **more))
    right = fresh.map(lambda claims: sign(claims, **header))
    return (right | fresh.flatmap(lambda claims: tokens(header, claims))).map(header_value)


def header_value(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(None, b"\r\n\0")


LINES: Final = st.binary(max_size=40).map(lambda raw: raw.translate(None, b"\r\n\0"))
NAMES: Final = st.sampled_from(
    [
        b"authorization", b"dpop", b"content-type", b"cookie", b"origin", b"sec-fetch-site", b"sec-fetch-dest",
        b"sec-purpose", b"accept", b"accept-language", b"x-forwarded-for", b"forwarded", b"host", b"if-none-match",
        b"accept-encoding", b"range",
    ]
)  # fmt: skip
HEADERS: Final = st.lists(
    st.tuples(NAMES, LINES) | st.sampled_from([FORM, (b"sec-fetch-site", b"same-origin")]), max_size=5
)
PATHS: Final = st.sampled_from(
    [PAR_PATH, AUTHORIZATION_PATH, TOKEN_PATH, "/userinfo", DISCOVERY_PATH, JWKS_PATH, "/", "/sign-out", "/healthz",
     "/readyz", "/static/site.css", "/sign-in/x", "/sign-in/x/password", "/sign-in//", "/entity-info",
     "/authorization-info", "/api/token", "/.well-known/oauth-authorization-server/api"]
)  # fmt: skip
RAW_PATHS: Final = PATHS.map(str.encode) | st.tuples(PATHS, LINES).map(lambda parts: parts[0].encode() + parts[1])


def form(valid: dict[str, str], names: frozenset[str]) -> SearchStrategy[bytes]:
    """A form with some members changed, added, emptied or repeated."""
    changes: SearchStrategy[dict[str, str]] = st.just({}) | st.dictionaries(
        st.sampled_from(sorted(names)), TEXT, max_size=3
    )
    changed = changes.map(lambda more: [*{**valid, **more}.items()])
    added: SearchStrategy[list[tuple[str, str]]] = st.just([]) | st.lists(
        st.tuples(st.sampled_from(sorted(names)) | TEXT, TEXT), max_size=1
    )
    pairs = st.tuples(changed, added)
    return pairs.map(
        lambda both: "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in both[0] + both[1]).encode()
    )


def with_assertion(valid: dict[str, str], names: frozenset[str]) -> SearchStrategy[bytes]:
    fresh = st.builds(lambda: {**valid, "client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion()})
    return fresh.flatmap(lambda found: form(found, names))
