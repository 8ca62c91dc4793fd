"""Inputs that common libraries and proxies make: what the RFCs let pass passes, every other answer names its true cause.

Each row is an input with its answer, in developer mode, where an answer says all (D28, D66).
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from corpid.jose.encoding import base64url, from_base64url
from tests.protocol.api_callers import ApiCaller, registered
from tests.protocol.every_refusal import text_of
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.test_every_refusal import DEVELOPER
from tests.world.clients import CALLBACK, rp_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.protocol.provider import World, Worlds

FORM: Final = "application/x-www-form-urlencoded"
ONLY: Final = "this provider knows private_key_jwt only, and has no client secrets"
AMP: Final = "&amp; stands where & belongs"
IN_ADDRESS: Final = "parameters in the address of a POST are not read: send them in the body, as a form"
MILLISECONDS: Final = "looks like milliseconds: a NumericDate is in seconds"
CLOCK: Final = "check the clock of the machine that made it"
TOKEN: Final = "/mga/sps/oauth/oauth20/token"
PAR: Final = "/request"


@dataclass(frozen=True, slots=True)
class Row:
    """An input, and its answer: a status, and what its text contains."""

    send: Callable[[World], httpx.Response]
    status: int
    says: str = ""
    generations: tuple[str, ...] = EVERY


def in_der(token: str) -> str:
    """A JWS whose signature is in DER."""
    signed, _, signature = token.rpartition(".")
    raw = from_base64url(signature)
    half = len(raw) // 2
    return f"{signed}.{base64url(encode_dss_signature(int.from_bytes(raw[:half]), int.from_bytes(raw[half:])))}"


def at(path: str, method: str = "POST", **options: Any) -> Callable[[World], httpx.Response]:
    return lambda w: w.run(w.http.request(method, w.issuer + path, **options))


def resource(method: str = "GET", *, query: str = "", **options: Any) -> Callable[[World], httpx.Response]:
    """A request at userinfo, or LEGACY's authorization-info."""

    def send(w: World) -> httpx.Response:
        path = "/userinfo" if w.interface.pushed else "/authorization-info"
        return at(path + query, method, **options)(w)

    return send


def pushed(**form: Any) -> Callable[[World], httpx.Response]:
    return lambda w: w.push(**{"state": "s", **form})


def with_proof(proof: Callable[[World], Any]) -> Callable[[World], httpx.Response]:
    return lambda w: w.push(state="s", headers={"DPoP": proof(w)})


def proof(w: World, **changes: Any) -> str:
    return w.rp.proof("POST", w.issuer + PAR, **changes)


def token(**form: Any) -> Callable[[World], httpx.Response]:
    """A token request, with an unknown code, since the client is looked at first."""

    def send(w: World) -> httpx.Response:
        made = {name: value(w) if callable(value) else value for name, value in form.items()}
        return w.redeem("c" * 43, **made)

    return send


def with_header(**headers: Any) -> Callable[[World], httpx.Response]:
    return lambda w: w.redeem("c" * 43, headers={name.replace("_", "-"): value for name, value in headers.items()})


def good(**headers: Any) -> Callable[[World], httpx.Response]:
    """A whole token request with these headers."""
    return lambda w: w.redeem(w.code(), headers={name.replace("_", "-"): value for name, value in headers.items()})


def token_parameters(w: World) -> dict[str, str]:
    return {
        "grant_type": "authorization_code", "code": "c" * 43, "redirect_uri": CALLBACK, "code_verifier": "v" * 43,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion": w.rp.assertion(),
    }  # fmt: skip


def in_the_query(path: str, *left: str) -> Callable[[World], httpx.Response]:
    """Parameters in the address; those that are left stand in the body."""

    def send(w: World) -> httpx.Response:
        parameters = {**w.rp.push_parameters(), **token_parameters(w)} if path == PAR else token_parameters(w)
        body = {name: parameters.pop(name) for name in left}
        return w.run(w.http.post(f"{w.issuer}{path}?{urlencode(parameters)}", data=body))

    return send


def in_html(w: World) -> httpx.Response:
    """An authorization address as it was written into HTML."""
    return w.get(w.asked().replace("&", "&amp;"))


def spaced_at_token(w: World) -> httpx.Response:
    return w.redeem(w.code(), redirect_uri=f"{CALLBACK} ")


def from_api(**options: Any) -> Callable[[World], httpx.Response]:
    """A token request of a client of the admin API."""

    def send(w: World) -> httpx.Response:
        w.writes(registered())
        caller = ApiCaller(
            client_id="api-1", issuer=f"{w.issuer}/api", keys=rp_keys("api-1"), http=w.http, clock=w.clock, world=w
        )
        made = {name: value(caller) if callable(value) else value for name, value in options.items()}
        return caller.ask(made.pop("headers", None), **made)

    return send


def milliseconds(w: World, ahead: float = 0) -> int:
    return int((w.clock.now + ahead) * 1000)


ROWS: Final = {
    # the body
    "a form in gzip at token": Row(
        at(TOKEN, content=gzip.compress(b"grant_type=x"), headers={"Content-Type": FORM, "Content-Encoding": "gzip"}),
        415, "Content-Encoding gzip is not supported: send the body as it is",
    ),
    "a form in gzip at PAR": Row(
        at(PAR, content=gzip.compress(b"client_id=x"), headers={"Content-Type": FORM, "Content-Encoding": "gzip"}),
        415, "Content-Encoding gzip is not supported: send the body as it is", PUSHED,
    ),
    "an unknown coding": Row(with_header(Content_Encoding="aws-chunked, x"), 415, "Content-Encoding aws-chunked x"),
    "no coding": Row(good(Content_Encoding=""), 200),
    "identity": Row(good(Content_Encoding="identity"), 200),
    "a charset": Row(good(Content_Type=f"{FORM};charset=UTF-8"), 200),
    "Content-Type in capitals": Row(good(Content_Type=FORM.upper()), 200),
    "Content-Type twice": Row(with_header(Content_Type=[FORM, FORM]), 400, "Content-Type came more than once: send it once"),
    "Content-Type joined": Row(with_header(Content_Type=f"{FORM}, {FORM}"), 400, f"received {FORM}, {FORM}"),
    "no Content-Type": Row(at(TOKEN), 400, "received nothing"),
    # where the parameters are
    "all in the address at token": Row(in_the_query(TOKEN), 400, IN_ADDRESS),
    "some in the address at token": Row(in_the_query(TOKEN, "code", "client_assertion"), 400, IN_ADDRESS),
    "the assertion's type in the address": Row(
        in_the_query(TOKEN, "grant_type", "code", "redirect_uri", "code_verifier", "client_assertion"), 401, IN_ADDRESS
    ),
    "all in the address at PAR": Row(in_the_query(PAR), 400, IN_ADDRESS, PUSHED),
    "a query beside a whole form": Row(
        lambda w: w.run(w.http.post(f"{w.issuer}{TOKEN}?x=y", data={**token_parameters(w), "grant_type": "x"})),
        400, "grant_type must be authorization_code",
    ),
    "an address from HTML": Row(in_html, 400, AMP, ("current",)),
    "a form from HTML": Row(
        at(TOKEN, content=b"code=x&amp;grant_type=authorization_code", headers={"Content-Type": FORM}), 400, AMP
    ),
    "an access token in the address": Row(resource(query="?access_token=x"), 401, "send it in the Authorization header"),
    "an access token in the address of a POST": Row(
        resource("POST", query="?access_token=x"), 401, "send it in the Authorization header"
    ),
    "an access token in the address of entity-info": Row(
        at("/entity-info?access_token=x", "GET"), 401, "send it in the Authorization header", ("intermediate",)
    ),
    "a space before the redirect URI": Row(
        pushed(redirect_uri=f" {CALLBACK}"), 400, "it differs by white space before or after it", PUSHED
    ),
    "a line end after the redirect URI": Row(
        pushed(redirect_uri=f"{CALLBACK}\r\n"), 400, "it differs by white space before or after it", PUSHED
    ),
    "a space after the redirect URI at token": Row(spaced_at_token, 400, "it differs by white space before or after it"),
    # other ways of client authentication
    "an empty Authorization header": Row(with_header(Authorization=""), 400, "received an empty Authorization header"),
    "Basic beside the assertion": Row(with_header(Authorization="Basic eDp5"), 400, "received an Authorization header"),
    "a secret beside the assertion": Row(token(client_secret="x"), 400, "received the parameter client_secret"),
    "a secret instead": Row(
        token(client_secret="x", client_assertion=None, client_assertion_type=None),
        401, f"{ONLY}; received the parameter client_secret",
    ),
    "Basic instead": Row(
        lambda w: w.redeem("c" * 43, headers={"Authorization": "Basic eDp5"}, client_assertion=None, client_assertion_type=None),
        401, f"{ONLY}; received an Authorization header",
    ),
    "client_id alone": Row(token(client_assertion=None, client_assertion_type=None), 401, f"{ONLY}; received nothing"),
    "another assertion type": Row(
        token(client_assertion_type="urn:ietf:params:oauth:client-assertion-type:saml2-bearer"), 401, ONLY
    ),
    "a secret for the admin API": Row(
        from_api(client_secret="x", client_assertion=None, client_assertion_type=None), 401, ONLY, ("current",)
    ),
    "an empty Authorization header at userinfo": Row(
        resource(headers={"Authorization": ""}), 401, "the Authorization header is empty"
    ),
    "an empty Authorization header at entity-info": Row(
        at("/entity-info", "GET", headers={"Authorization": " "}), 401, "the Authorization header is empty", ("intermediate",)
    ),
    "a compressed body at userinfo, which reads none": Row(
        resource("POST", content=b"x", headers={"Content-Encoding": "gzip"}), 401, "no Authorization header"
    ),
    # tokens
    "an assertion signed in DER": Row(
        token(client_assertion=lambda w: in_der(w.rp.assertion())), 401, "the signature is in DER: ES256 needs r and s alone, 32 bytes each"
    ),
    "a proof signed in DER": Row(with_proof(lambda w: in_der(proof(w))), 401, "the signature is in DER: ES256 needs", ("current",)),
    "an assertion in DER for the admin API": Row(
        from_api(client_assertion=lambda caller: in_der(caller.assertion())), 401, "the signature is in DER", ("current",)
    ),
    "iat in milliseconds": Row(
        token(client_assertion=lambda w: w.rp.assertion(iat=milliseconds(w), exp=milliseconds(w, 60))),
        401, f"client_assertion: iat {MILLISECONDS}",
    ),
    "exp in milliseconds": Row(
        token(client_assertion=lambda w: w.rp.assertion(exp=milliseconds(w, 60))), 401, f"client_assertion: exp {MILLISECONDS}"
    ),
    "nbf in milliseconds": Row(
        token(client_assertion=lambda w: w.rp.assertion(nbf=milliseconds(w))), 401, f"client_assertion: nbf {MILLISECONDS}"
    ),
    "a proof's iat in milliseconds": Row(
        with_proof(lambda w: proof(w, iat=milliseconds(w))), 401, f"DPoP proof: iat {MILLISECONDS}", ("current",)
    ),
    "two proofs in one header": Row(
        with_proof(lambda w: f"{proof(w)}, {proof(w)}"), 401, "the DPoP header holds more than one proof: send one", ("current",)
    ),
    "two proofs in one header at userinfo": Row(
        lambda w: w.userinfo(token=w.tokens().access_token, DPoP="x.y.z, x.y.z"), 401, "the DPoP header holds more than one proof: send one", ("current",)
    ),
    "two headers with proofs": Row(
        with_proof(lambda w: [proof(w), proof(w)]), 401, "the request has more than one DPoP header", ("current",)
    ),
    "an assertion that is late": Row(
        token(client_assertion=lambda w: w.rp.assertion(iat=w.clock.now - 72, exp=w.clock.now - 12)),
        401, f"expired 12 s ago by this server's clock; make a new one for each request, and {CLOCK}",
    ),
    "an assertion that is early": Row(
        token(client_assertion=lambda w: w.rp.assertion(iat=w.clock.now + 45, exp=w.clock.now + 90)),
        401, f"45 s ahead of this server's clock; 30 s are allowed; {CLOCK}",
    ),
    "a proof that is late": Row(
        with_proof(lambda w: proof(w, iat=int(w.clock.now) - 150)), 401, f"make a new proof for each request, and {CLOCK}", ("current",)
    ),
    # the content
    "no context type": Row(
        pushed(authentication_context_type=None), 400, "expected APP_AUTHENTICATION_DEFAULT", ("current",)
    ),
}  # fmt: skip


def in_their_generations(*names: str) -> pytest.MarkDecorator:
    """Runs once for each of these rows in each generation that it is of; `make test` takes the current one."""
    cases = [
        pytest.param(generation, name, marks=[] if generation == "current" else pytest.mark.full)
        for name in names
        for generation in ROWS[name].generations
    ]
    return pytest.mark.parametrize(("speaking", "name"), cases, indirect=["speaking"])


@in_their_generations(*ROWS)
def test_the_answer_is_the_one_of_the_table(worlds: Worlds, name: str) -> None:
    """D28: the cause, and what to do."""
    row = ROWS[name]
    answer = row.send(worlds.fresh(**DEVELOPER))
    assert answer.status_code == row.status, answer.text
    if row.says:
        text = text_of(answer.text).replace("&amp;", "&") if "<main" in answer.text else answer.text
        assert row.says in text + answer.headers.get("link", ""), text


@pytest.mark.generations(*EVERY)
def test_a_compressed_form_is_told_what_is_read(worlds: Worlds) -> None:
    """RFC 9110 §12.5.3, §15.5.16: also outside developer mode."""
    world = worlds.fresh()
    answer = with_header(Content_Encoding="gzip")(world)
    assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")
    assert answer.json()["error"] == "invalid_request"
    assert "Content-Encoding gzip is not supported" in answer.json()["error_description"]


@in_their_generations(*(name for name, row in ROWS.items() if row.says in {ONLY, IN_ADDRESS, AMP}))
def test_outside_developer_mode_the_cause_stands_in_the_log_alone(worlds: Worlds, name: str) -> None:
    """D28."""
    row = ROWS[name]
    answer = row.send(worlds.fresh())
    assert answer.status_code == row.status
    assert row.says not in answer.text.replace("&amp;amp;", "&amp;")


@pytest.mark.generations(*EVERY)
def test_nothing_of_a_query_reaches_the_answer(worlds: Worlds) -> None:
    """D48."""
    answer = in_the_query(TOKEN)(worlds.fresh(**DEVELOPER))
    assert urlsplit(str(answer.request.url)).query not in answer.text
    assert "v" * 43 not in answer.text
