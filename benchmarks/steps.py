"""The requests of a flow, each with what its answer must be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from benchmarks.http_client import Answer, encode
from benchmarks.relying_party import CLIENT_ID, REDIRECT_URI, Flow, Maker, open_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.generations import Generation

PAR, AUTHORIZE, TOKEN = "PAR", "authorize", "token"


class Wrong(Exception):
    """An answer is not what it must be; short, so that equal ones can be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request: made from the flow, and its answer judged and kept there. `accept` raises Wrong."""

    name: str
    request: Callable[[Flow], bytes]
    accept: Callable[[Flow, Answer], None]


def of_a_flow(maker: Maker) -> tuple[Step, ...]:
    """PAR if the generation has it, authorize with a session, token, every resource."""
    push = Step(name=PAR, request=lambda flow: flow.push_request, accept=_pushed)
    return (
        *((push,) if maker.endpoints.generation.pushed else ()),
        Step(name=AUTHORIZE, request=authorization(maker), accept=called_back),
        *back_channel(maker),
    )


def back_channel(maker: Maker) -> tuple[Step, ...]:
    """Token and every resource."""
    generation = maker.endpoints.generation

    def redeem(flow: Flow) -> bytes:
        body = f"{flow.token_body}&code={quote(flow.code)}".encode()
        return encode("POST", maker.endpoints.token, flow.token_head, body)

    def accept(flow: Flow, answer: Answer) -> None:
        document = _json(TOKEN, answer, 200)
        require(
            TOKEN, document.get("token_type") == generation.token_type, f"token_type is not {generation.token_type}"
        )
        flow.access_token, flow.id_token = document["access_token"], document["id_token"]

    resources = [_read(maker, generation, number) for number in range(len(generation.resources))]
    return Step(name=TOKEN, request=redeem, accept=accept), *resources


def _read(maker: Maker, generation: Generation, number: int) -> Step:
    name = generation.resources[number].name
    content_type = "application/jwt" if generation.resources_signed else "application/json"

    def request(flow: Flow) -> bytes:
        if flow.resource_requests:
            return flow.resource_requests[number]
        signer = flow.signer or open_key(flow.proof_key)
        return maker.resource_request(number, signer, flow.proof_jwk, flow.access_token)

    def accept(flow: Flow, answer: Answer) -> None:
        require(name, answer.status == 200, f"status {answer.status} {answer.get(b'www-authenticate')[:200]}")
        require(name, answer.get(b"content-type") == content_type, f"not {content_type}")
        flow.answers[name] = answer.body.decode()

    return Step(name=name, request=request, accept=accept)


def authorization_url(maker: Maker, flow: Flow) -> str:
    """Where the browser is sent."""
    query = flow.query or urlencode({"client_id": CLIENT_ID, "request_uri": flow.request_uri})
    return f"{maker.endpoints.authorize}?{query}"


def authorization(maker: Maker) -> Callable[[Flow], bytes]:
    """A browser with its cookie at authorize."""
    return lambda flow: encode("GET", authorization_url(maker, flow), f"Cookie: {flow.cookie}\r\n")


def require(step: str, holds: object, problem: str) -> None:
    """Raises Wrong unless it holds."""
    if not holds:
        raise Wrong(f"{step}: {problem}")


def called_back(flow: Flow, answer: Answer) -> None:
    """A redirect to the relying party with a code, the state, and the issuer if it is expected."""
    location = urlsplit(answer.get(b"location"))
    query = parse_qs(location.query)
    require(AUTHORIZE, answer.status == 302, f"status {answer.status}")
    require(AUTHORIZE, location._replace(query="").geturl() == REDIRECT_URI, "leads elsewhere")
    expected = {"code", "state", "iss"} if flow.iss else {"code", "state"}
    require(AUTHORIZE, query.keys() == expected, f"the callback holds {', '.join(sorted(query))}")
    require(AUTHORIZE, query["state"] == [flow.state], "another state")
    require(AUTHORIZE, query.get("iss", [""]) == [flow.iss], "another iss")
    flow.code = query["code"][0]


def _json(step: str, answer: Answer, status: int) -> dict[str, Any]:
    error = answer.body[:200].decode(errors="replace") if answer.status >= 400 else ""
    require(step, answer.status == status, f"status {answer.status} {error}")
    require(step, answer.get(b"content-type") == "application/json", "no JSON")
    document: dict[str, Any] = json.loads(answer.body)
    return document


def _pushed(flow: Flow, answer: Answer) -> None:
    document = _json(PAR, answer, 201)
    require(PAR, document.get("expires_in") == 60, "expires_in is not 60")
    flow.request_uri = document["request_uri"]
