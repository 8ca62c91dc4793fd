"""What a hostile client sends: refused soon, by an error of SCIM, with nothing written (D47, D60)."""

from __future__ import annotations

import gzip
import json
from itertools import product
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.scim.calling import PATCH, USER, Scim, address_of, refused

if TYPE_CHECKING:
    import pytest

WHERE = "/Users"
BODIES = [
    b"", b"{", b"[]", b'"x"', b"null", b"\xff", b'{"userName": "a", "userName": "b"}', b"[" * 30_000,
    b'{"userName": "a\\u0000"}', b'{"userName": "\\ud800"}', b'{"userName": 1e999}', b'{"userName": ' + b"9" * 5000 + b"}",
    b'{"userName": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}}}}}}}}',
    b'{"schemas": "x", "userName": "a"}', b'{"schemas": [7], "userName": "a"}', b'{"userName": ["a"]}',
]  # fmt: skip


def test_a_body_that_is_no_user_is_refused(scim: Scim) -> None:
    """RFC 7493 §2, RFC 7644 §3.12."""
    for body in BODIES:
        answer = scim.call("POST", WHERE, body=body)
        assert refused(answer, 400, answer.json().get("scimType"))
    assert scim.found("Users", 'userName eq "a"') == []


def test_a_body_has_a_limit(scim: Scim) -> None:
    """D47."""
    refused(scim.call("POST", WHERE, body=b" " * 65_537), 413)
    large = json.dumps({"schemas": [USER], "userName": "mei", **address_of("mei"), "x": "y" * 60_000}).encode()
    assert scim.call("POST", WHERE, body=large).status_code == 201


def test_another_media_type_is_refused(scim: Scim) -> None:
    """RFC 7644 §3.1."""
    body = json.dumps({"schemas": [USER], "userName": "mei", **address_of("mei")}).encode()
    for media_type in ("text/plain", "application/xml", "application/x-www-form-urlencoded"):
        refused(scim.call("POST", WHERE, body=body, content_type=media_type), 415)
    packed = scim.call("POST", WHERE, body=gzip.compress(body), content_encoding="gzip")
    assert "Content-Encoding gzip is not supported" in refused(packed, 415)
    assert scim.get("/Users", content_encoding="gzip").status_code == 200
    assert scim.call("POST", WHERE, body=body, content_type="application/json; charset=utf-8").status_code == 201


def test_ten_thousand_operations_are_refused_at_once(scim: Scim) -> None:
    """D47: as many as fit into a body, and as many as a user or a group may have."""
    user, group = scim.added("mei"), scim.group()
    for many in (51, 1500):
        operations = [{"op": "add", "path": "active", "value": True}] * many
        body = json.dumps({"schemas": [PATCH], "Operations": operations}).encode()
        answer = scim.call("PATCH", f"/Users/{user['id']}", body=body)
        refused(answer, 413 if len(body) > 65536 else 400, None if len(body) > 65536 else "invalidValue")
    body = json.dumps({"Operations": [{"op": "add", "path": "members", "value": []}] * 10_000}).encode()
    refused(scim.call("PATCH", f"/Groups/{group['id']}", body=body), 413)
    tiny = b'{"Operations": [' + b",".join([b'{"op":"add"}'] * 4500) + b"]}"
    refused(scim.call("PATCH", f"/Groups/{group['id']}", body=tiny), 400, "invalidValue")


FILTERS = [
    "(" * 400 + 'userName eq "a"' + ")" * 400,
    "not (" * 150 + "userName pr" + ")" * 150,
    " and ".join(['userName co "a"'] * 50),
    " or ".join(['userName co "a"'] * 50),
    'userName eq "' + "a" * 990 + '"',
    'userName eq "' + "a" * 20_000 + '"',
    'emails[emails[emails[type eq "a"]]]',
    "userName",
    'userName eq "a',
    '"a" eq userName',
    'userName eq "a" and',
    "\x00",
    "userName eq \ud7ff",
]


def test_a_hostile_filter_is_refused_or_finds_nobody(scim: Scim) -> None:
    """D47: nested, long or quadratic."""
    for kind, text in product(("Users", "Groups"), FILTERS):
        answer = scim.get(f"/{kind}?filter={quote(text)}")
        assert answer.status_code in {200, 400}, answer.text
        if answer.status_code == 400:
            refused(answer, 400, "invalidFilter")
        else:
            assert answer.json()["Resources"] == []


QUERIES = [
    "filter=userName%20eq%20%22a%22&filter=id%20eq%20%22b%22",
    "count=x",
    "startIndex=1.5",
    "sortBy=title",
    "sortOrder=sideways&sortBy=id",
    "attributes=userName&excludedAttributes=name",
    "attributes=" + "a," * 2000,
    "excludedAttributes=" + "userName," * 2000,
    "filter=%FF",
    "cursor=x",
    "count=99999999999999999999999",
    "startIndex=99999999999999999999999",
    "&".join(f"a{number}=b" for number in range(200)),
]


def test_a_hostile_query_is_refused(scim: Scim) -> None:
    """RFC 7644 §3.12, D47."""
    for query in QUERIES:
        answer = scim.get(f"/Users?{query}")
        assert answer.status_code in {200, 400, 501}, answer.text
        assert answer.status_code != 200 or "99999999999999999999999" in query


def test_a_search_with_attributes_that_are_no_text_is_refused(scim: Scim) -> None:
    """RFC 7644 §3.4.3, D28: by a sentence, and not as a fault of ours."""
    for sent in (7, True, {"a": 1}, [7, None]):
        for name in ("attributes", "excludedAttributes"):
            answer = scim.call("POST", "/Users/.search", {name: sent})
            assert refused(answer, 400, answer.json().get("scimType"))


def test_a_hostile_path_is_nothing(scim: Scim) -> None:
    """RFC 7644 §3.12."""
    for path in [
        "/Users/%00",
        "/Users/a%0Ab",
        "/Users/" + "a" * 3000,
        "/Groups/%00",
        "/Users/a/b",
        "/Users/..",
        "//Users",
    ]:
        assert scim.get(path).status_code == 404


def test_a_fault_tells_nothing(scim: Scim, monkeypatch: pytest.MonkeyPatch) -> None:
    """D28, D48: 500 in SCIM's form, with no word of what went wrong."""
    monkeypatch.setattr(type(scim.world.provider.registry.directory), "scan", lambda *_: 1 / 0)
    told = refused(scim.get("/Groups"), 500)
    assert "zero" not in told
