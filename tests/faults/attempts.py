"""Whole flows whose every message is kept, so that after a fault everything can be sent a second time (D7, D8, D15, D18)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty


@dataclass
class Attempt:
    """One flow from push to token: what was sent, and how far the answers came."""

    rp: RelyingParty
    push: tuple[dict[str, str], dict[str, str]]
    pushed: bool = False
    url: str = ""
    code: str = ""
    exchange: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    sent: bool = False
    token: str = ""


class Failed(Exception):
    """An answer that an undisturbed flow does not get."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(f"{answer.status_code} {answer.headers.get('location', '')} {answer.text}")
        self.answer = answer


def expected(status: int, answer: httpx.Response) -> httpx.Response:
    if answer.status_code != status or "error=" in answer.headers.get("location", ""):
        raise Failed(answer)
    return answer


async def attempt(rp: RelyingParty, browsing: httpx.AsyncClient, attempts: list[Attempt]) -> None:
    """A whole flow of somebody who is signed in; what was answered is noted as soon as it is.

    Raises Failed for an answer that an undisturbed flow does not get.
    """
    metadata = await rp.discover()
    one = Attempt(rp, _signed(rp, metadata["pushed_authorization_request_endpoint"]))
    attempts.append(one)
    answer = expected(201, await rp.push(*one.push))
    one.pushed = True
    rp.sign_in.request_uri = answer.json()["request_uri"]
    one.url = rp.authorization_url()
    answer = expected(302, await browsing.get(one.url, follow_redirects=False))
    one.code = rp.callback(answer.headers["location"])
    one.exchange = _signed(rp, metadata["token_endpoint"])
    one.sent = True
    answer = expected(200, await rp.token(one.code, *one.exchange))
    one.token = answer.json()["access_token"]


def _signed(rp: RelyingParty, url: str) -> tuple[dict[str, str], dict[str, str]]:
    return {"client_assertion": rp.assertion()}, {"DPoP": rp.proof("POST", url)}


def refused(answer: httpx.Response, status: int, error: str) -> None:
    assert (answer.status_code, answer.json().get("error")) == (status, error), answer.text


async def nothing_twice(
    http: httpx.AsyncClient, browsing: httpx.AsyncClient, one: Attempt, *, whole: bool = True
) -> str:
    """Use everything of a flow again, after the fault; how its token request ended the second time. `whole` says whether
    the engine does what a request asks of it all or not at all."""
    rp = one.rp
    rp.http = http
    proof_spent = await rp.push({"client_assertion": rp.assertion()}, one.push[1])
    assertion_spent = await rp.push(one.push[0])
    if one.pushed:
        refused(proof_spent, 401, "invalid_dpop_proof")
        refused(assertion_spent, 401, "invalid_client")
    if one.code:
        answer = await browsing.get(one.url, follow_redirects=False)
        assert "error=invalid_request_uri" in answer.headers["location"]
    if one.token:
        assert (await rp.resource(access_token=one.token)).status_code == 200
        refused(await rp.token(one.code, *one.exchange), 401, "invalid_dpop_proof")
        assert (await rp.resource(access_token=one.token)).status_code == 200
        refused(await rp.token(one.code), 400, "invalid_grant")
        refused(await rp.resource(access_token=one.token), 401, "invalid_token")
        return "refused"
    if not one.sent:
        return "never sent"
    return await _in_doubt(rp, one, whole=whole)


async def _in_doubt(rp: RelyingParty, one: Attempt, *, whole: bool) -> str:
    """A token request without an answer: either nothing of it happened, or all of it did. On Redis the engine may have
    stopped between two verbs: then the proof is spent, and the code still good, once."""
    again = await rp.token(one.code, *one.exchange)
    if again.status_code == 200:
        refused(await rp.token(one.code), 400, "invalid_grant")
        return "first time"
    refused(again, 401, "invalid_dpop_proof")
    later = await rp.token(one.code)
    if not whole and later.status_code == 200:
        refused(await rp.token(one.code), 400, "invalid_grant")
        return "had begun"
    refused(later, 400, "invalid_grant")
    return "had happened"


def told_to_retry(answer: httpx.Response) -> None:
    """In JSON, on a page, or in the callback where the client is known (Spec 7)."""
    if answer.status_code == 302:
        assert "error=temporarily_unavailable" in answer.headers["location"]
        return
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) > 0
    if answer.headers["content-type"] == "application/json":
        assert answer.json()["error"] == "temporarily_unavailable"
