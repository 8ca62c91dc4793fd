"""What every refusal has in common: status, code, headers, body, and a reference that stands in the log; and what a client is told."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from corpid.rules.oauth.refusals import Reason
from corpid_dev.relying_party.browser import parse
from tests.world.clients import CALLBACK

if TYPE_CHECKING:
    import httpx

LOG: Final = io.BytesIO()
"""the access log of the tests in this folder"""
CHALLENGE: Final = 'DPoP algs="ES256 ES256K ES384 ES512"'
_PUBLIC: Final = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{1,300}")
_ENDING: Final = re.compile(r" \(reference ([0-9a-zA-Z_-]{8,64})\)$")


def logged(reference: str) -> dict[str, Any]:
    """The one line of the log under this reference (D28, D48)."""
    lines = [json.loads(line) for line in LOG.getvalue().splitlines() if reference.encode() in line]
    (line,) = [line for line in lines if line.get("request_id") == reference]
    return dict(line)


def is_public(description: str, error: str) -> str:
    """Printable ASCII without quote and backslash, at most 300 characters, ending with a reference of the log (D28)."""
    assert _PUBLIC.fullmatch(description), description
    ending = _ENDING.search(description)
    assert ending, description
    line = logged(ending[1])
    assert line["error"] == error
    assert error in Reason[line["reason"].upper()].value.errors
    assert not line.keys() >= {"client_id", "claimed_client_id"}
    return _ENDING.sub("", description)


def json_refusal(
    answer: httpx.Response, status: int, error: str, *, state: str | None = None, scheme: str | None = None
) -> str:
    """A refusal of PAR or the token endpoint; returns its sentence without the reference (D4, D5, D31).

    `state` is what must be echoed, `scheme` the challenge that an Authorization header calls for.
    """
    assert answer.status_code == status, answer.text
    body = answer.json()
    uri = _developers_link(body)
    expected = {"error", "error_description"} | ({"state"} if state is not None else set())
    assert body.keys() == expected, body
    assert body["error"] == error, body
    assert body.get("state") == state
    assert answer.headers["content-type"] == "application/json"
    assert not_cached(answer)
    challenges = [scheme] if scheme else []
    if error == "invalid_dpop_proof" and status == 401:
        challenges = [f'DPoP error="{error}", error_description="{body["error_description"]}"{uri}']
    assert answer.headers.get_list("www-authenticate") == challenges
    assert ("dpop-nonce" in answer.headers) == (error == "use_dpop_nonce")
    return is_public(body["error_description"], error)


def resource_refusal(answer: httpx.Response, status: int, error: str, start: str = CHALLENGE) -> str:
    """A refusal of a resource: one challenge, and the same in JSON; returns its sentence (Spec 7.4, D24).

    `start` is how its challenge begins.
    """
    assert answer.status_code == status, answer.text
    body = answer.json()
    uri = _developers_link(body)
    assert body.keys() == {"error", "error_description"}, body
    assert body["error"] == error, body
    description = body["error_description"]
    challenge = f'{start}, error="{error}", error_description="{description}"{uri}'
    assert answer.headers.get_list("www-authenticate") == ([challenge] if status < 500 else [])
    assert answer.headers["content-type"] == "application/json"
    assert not_cached(answer)
    return is_public(description, error)


def _developers_link(body: dict[str, str]) -> str:
    """Take out error_uri, which developer mode adds, and return it as a challenge says it."""
    uri = body.pop("error_uri", "")
    return f', error_uri="{uri}"' if uri else ""


def not_cached(answer: httpx.Response) -> bool:
    """`no-store`, and `no-cache` for the caches of yesterday (D31)."""
    stored = answer.headers.get_list("cache-control")
    return stored == ["no-store"] and answer.headers.get_list("pragma") == ["no-cache"]


def told(answer: httpx.Response, mode: str = "query", *, uri: str = CALLBACK) -> dict[str, str]:
    """What the client is told at this redirect URI, in this response mode and no other (RFC 6749 §4.1.2, D37, D38)."""
    assert answer.headers.get_list("cache-control") == ["no-store"]
    if mode == "form_post":
        assert answer.status_code == 200, answer.text
        assert "location" not in answer.headers
        (form,) = parse(answer.text).forms
        assert (form.method, form.action) == ("post", uri)
        pairs = [(control.name, control.value) for control in form.controls]
    else:
        assert (answer.status_code, answer.content) == (302, b""), answer.text
        start = uri + ("#" if mode == "fragment" else "&" if "?" in uri else "?")
        assert answer.headers["location"].startswith(start), answer.headers["location"]
        rest = answer.headers["location"].removeprefix(start)
        pairs = parse_qsl(rest, keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def told_error(
    answer: httpx.Response, error: str, *, state: str | None, mode: str = "query", iss: str | None = None
) -> str:
    """An error that the client is told; returns its sentence without the reference (Spec 7.2, D16, D28)."""
    found = told(answer, mode)
    description = found.pop("error_description")
    found.pop("error_uri", None)  # in developer mode
    expected = {"error": error, "state": state, "iss": iss}
    assert found == {name: value for name, value in expected.items() if value is not None}
    assert "set-cookie" not in answer.headers
    return is_public(description, error)


def error_page(answer: httpx.Response, *, hides: tuple[str, ...] = ()) -> None:
    """An error that only the person sees: no redirect, no cookie, no value of the request (D16, D28)."""
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8"), answer.text
    assert answer.headers.get_list("cache-control") == ["no-store"]
    assert "location" not in answer.headers
    assert "set-cookie" not in answer.headers
    assert not parse(answer.text).forms
    assert not [value for value in hides if value in answer.text]
    reference = answer.text.partition("eference")[2].partition("<code>")[2].partition("</code>")[0].strip()
    assert logged(reference)["error"]
