"""Any request to any endpoint is answered: never by a 500, never by an exception (Spec 7, D14, D24, D32)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, unquote

import msgspec
import pytest
from hypothesis import strategies as st

from corpid import app, settings
from corpid.directory.records import Entity, Membership, User
from corpid.jose.encoding import base64url
from corpid.ports import AuditEvent, Upsert
from corpid.protocol import access_token
from corpid.protocol.authorization_request import PUSHED_PARAMETERS
from corpid.protocol.client_assertion import ASSERTION_TYPE
from corpid.protocol.grant import TOKEN_PARAMETERS
from corpid.protocol.metadata import AUTHORIZATION_PATH, DISCOVERY_PATH, JWKS_PATH, PAR_PATH, TOKEN_PATH
from corpid.protocol.parties import Parties
from tests.fuzz.examples import TEXT, TIERS, hold, tokens
from tests.unit.jose.signed import key, key_set, public_jwk, sign
from tests.unit.protocol.given import CLIENT, NOW, PARAMETERS, VERIFIER, grant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import SearchStrategy

    from corpid.app import Application

ISSUER: Final = "http://localhost:8080"
HOST: Final = (b"host", b"localhost:8080")
FORM: Final = (b"content-type", b"application/x-www-form-urlencoded")
EVENT: Final = AuditEvent(actor="operator", action="test.change")
RP: Final = msgspec.structs.replace(
    CLIENT,
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
        status, headers, body = self.runner.run(_call(self.application, asked))
        assert 200 <= status < 500, (status, asked, body)
        if headers.get(b"content-type") == b"application/json" and status >= 400 and body:
            content = json.loads(body)
            assert content["error"] != "server_error"
            assert content["error_description"].isascii()
        assert all(b"\n" not in value and b"\r" not in value for value in headers.values())
        return status


async def _call(application: Application, asked: Asked) -> tuple[int, dict[bytes, bytes], bytes]:
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


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with asyncio.Runner() as runner:
        data_dir = tmp_path_factory.mktemp("fuzz")
        opened = app.create(settings.load(data_dir=data_dir, base_url=ISSUER), clock=lambda: NOW)
        application = runner.run(opened.__aenter__())
        registry = application.provider.registry
        runner.run(registry.directory.write([Upsert(record) for record in RECORDS], EVENT))
        yield World(runner=runner, application=application)
        runner.run(opened.__aexit__(None, None, None))


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
    return (right | fresh.flatmap(lambda claims: tokens(header, claims))).map(_header_value)


def _header_value(text: str) -> bytes:
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
     "/readyz", "/static/site.css", "/sign-in/x", "/sign-in/x/password", "/sign-in//", "/entity-info"]
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


@pytest.mark.parametrize("examples", TIERS)
def test_any_bytes_at_any_endpoint(world: World, examples: int) -> None:
    asked = st.builds(
        Asked,
        method=METHODS,
        path=RAW_PATHS,
        query=LINES
        | st.sampled_from([b"client_id=rp-1&request_uri=urn:ietf:params:oauth:request_uri:x", b"client_id"]),
        headers=HEADERS,
        body=st.binary(max_size=200) | form({}, PUSHED_PARAMETERS),
    )

    def check(request: Asked) -> None:
        world.answered(request)

    hold(examples, asked, check)


@pytest.mark.parametrize("examples", TIERS)
def test_pushed_requests_that_are_nearly_right(world: World, examples: int) -> None:
    statuses = set()
    asked = st.builds(
        Asked,
        method=st.just("POST"),
        path=st.just(PAR_PATH.encode()),
        headers=st.lists(proofs("POST", PAR_PATH), min_size=1, max_size=1).map(
            lambda found: [FORM, (b"dpop", found[0])]
        ),
        body=with_assertion(dict(PARAMETERS), PUSHED_PARAMETERS),
    )
    hold(examples, asked, lambda request: statuses.add(world.answered(request)))
    assert {201, 400, 401} <= statuses


@pytest.mark.parametrize("examples", TIERS)
def test_token_requests_that_are_nearly_right(world: World, examples: int) -> None:
    statuses = set()
    valid = {
        "grant_type": "authorization_code", "code": "c" + "x" * 43, "code_verifier": VERIFIER,
        "redirect_uri": CLIENT.redirect_uris[0],
    }  # fmt: skip
    asked = st.builds(
        Asked,
        method=st.just("POST"),
        path=st.just(TOKEN_PATH.encode()),
        headers=proofs("POST", TOKEN_PATH).map(lambda proof: [FORM, (b"dpop", proof)]),
        body=with_assertion(valid, TOKEN_PARAMETERS),
    )
    hold(examples, asked, lambda request: statuses.add(world.answered(request)))
    assert {400, 401} <= statuses


@pytest.mark.parametrize("examples", TIERS)
def test_userinfo_with_proofs_and_tokens_that_are_nearly_right(world: World, examples: int) -> None:
    ring = world.runner.run(world.application.provider.own_keys.ring(NOW))
    parties = Parties(user_id="user-1", entity_id="200000001A", user_attributes={}, entity_attributes={})
    claims = access_token.claims(
        grant(jkt=key().thumbprint()), parties, "user", issuer=ISSUER, audience=[ISSUER + "/userinfo"],
        token_id=base64url(b"jti"), now=int(NOW),
    )  # fmt: skip
    right = ring.sign(msgspec.json.encode(claims), access_token.TYPE)
    texts = st.just(right) | tokens({"typ": "at+jwt", "kid": ring.active.kid}, claims, ring.active.private)
    statuses = set()

    def check(given: tuple[str, str, bytes]) -> None:
        method, text, proof = given
        headers = [(b"authorization", b"DPoP " + _header_value(text)), (b"dpop", proof)]
        statuses.add(world.answered(Asked(method=method, path=b"/userinfo", headers=headers)))

    methods = st.sampled_from(["GET", "POST"])
    ath = base64url(hashlib.sha256(right.encode()).digest())
    given = methods.flatmap(lambda method: st.tuples(st.just(method), texts, proofs(method, "/userinfo", ath=ath)))
    hold(examples, given, check)
    assert {200, 401} <= statuses


@pytest.mark.parametrize("examples", TIERS)
def test_arrivals_that_are_nearly_right(world: World, examples: int) -> None:
    body = "&".join(
        f"{name}={quote_plus(value)}"
        for name, value in {
            **PARAMETERS,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": assertion(),
        }.items()
    )
    proof = sign(proof_claims("POST", PAR_PATH), typ="dpop+jwt", jwk=public_jwk(key()))
    pushed = Asked(method="POST", path=PAR_PATH.encode(), headers=[FORM, (b"dpop", proof.encode())], body=body.encode())
    status, _, content = world.runner.run(_call(world.application, pushed))
    assert status == 201
    valid = {"client_id": "rp-1", "request_uri": json.loads(content)["request_uri"]}
    statuses = set()
    queries = form(valid, frozenset({"client_id", "request_uri", "state"}))
    asked = st.builds(
        Asked,
        method=st.sampled_from(["GET", "HEAD", "POST"]),
        path=st.just(AUTHORIZATION_PATH.encode()),
        query=queries,
        headers=st.lists(st.tuples(NAMES.filter(lambda name: name != b"host"), LINES), max_size=3),
        body=queries,
    )
    hold(examples, asked, lambda request: statuses.add(world.answered(request)))
    assert {303, 400} <= statuses
