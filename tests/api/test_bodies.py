"""Bodies that are malformed, hostile or too large: refused with a sentence, nothing written (D59)."""

from __future__ import annotations

import gzip
import json as jsons
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpid.flows.directory.apply import apply_document
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.nodes import DirectoryError, Json, json_value, merge_patch, nodes, pointer
from corpid.rules.directory.objects import RESOURCES, InvalidObject, key_of, object_id, parse_object
from corpid.rules.directory.records import Entity
from tests.api.calling import ENTITY, Api, pointers
from tests.protocol.api_callers import registered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


MALFORMED = [
    (b"", "not valid JSON"),
    (b"{", "not valid JSON"),
    (b'{"name": "a", "name": "b"}', "'name' occurs twice in one object"),
    (b'{"name": NaN}', "NaN is not JSON"),
    (b'{"name": -Infinity}', "-Infinity is not JSON"),
    (b'{"name": 1e999}', "out of range"),
    (b'{"name": "\\ud800"}', "single surrogate"),
    (b'{"na\\u0000me": 1}', "U+0000"),
    (b'{"name": "\\u0000"}', "U+0000"),
    (b'{"name": "\xff"}', "not UTF-8"),
    (b'{"name": ' + b"[" * 12 + b"]" * 12 + b"}", "nested too deeply"),
    (b"[" * 60_000, "nested too deeply"),
    (b'{"name": ' + b"9" * 5000 + b"}", "too many digits"),
    (b"\xef\xbb\xbf{}", "not valid JSON"),
]


@pytest.mark.parametrize(("body", "why"), MALFORMED, ids=range(len(MALFORMED)))
def test_a_body_that_is_no_json_is_refused_and_says_why(body: bytes, why: str) -> None:
    """RFC 7493 §2, D59."""
    with pytest.raises(DirectoryError) as refused:
        json_value(body)
    assert why in refused.value.problems[0].reason


def test_such_a_body_is_a_problem_and_writes_nothing(api: Api) -> None:
    """RFC 9457."""
    for body, _ in MALFORMED:
        answer = api.call("POST", "/entities", body=body)
        assert answer.status_code == 400
        assert answer.json()["detail"].startswith("The body cannot be read: ")
    deep = api.call("POST", "/directory", body=b'{"entities": ' * 11 + b"{}" + b"}" * 11)
    assert deep.status_code == 400
    for body in (b"[]", b'"x"', b"null", b"7"):
        assert api.call("POST", "/entities", body=body).status_code == 422
        assert api.call("POST", "/keys", body=body).status_code == 422
    assert api.every("/entities?search=E1001") == []


def test_a_body_of_another_type_or_size_is_refused(api: Api) -> None:
    """RFC 9110 §15.5.14, §15.5.16."""
    answer = api.call("POST", "/entities", body=b"a=b", content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.headers["accept"]) == (415, "application/json")
    added = api.added("/entities", ENTITY)
    plain = api.call("PATCH", "/entities/E1001", body=b"{}", if_match=added["etag"], content_type="text/plain")
    assert plain.status_code == 415
    merge = {"if_match": added["etag"], "content_type": "application/merge-patch+json; charset=utf-8"}
    assert api.call("PATCH", "/entities/E1001", body=b"{}", **merge).status_code == 200
    twice = api.call("POST", "/entities", body=b"{}", content_type=["application/json"] * 2)
    assert (twice.status_code, twice.json()["detail"]) == (415, "Content-Type came more than once: send it once")
    packed = api.call("POST", "/entities", body=gzip.compress(b"{}"), content_encoding="gzip")
    assert (packed.status_code, packed.headers["accept-encoding"]) == (415, "identity")
    assert packed.json()["detail"] == "Content-Encoding gzip is not supported: send the body as it is"
    large = b'{"name": "' + b"x" * 65536 + b'"}'
    assert api.call("POST", "/entities", body=large).status_code == 413


def test_a_document_of_the_directory_is_planned_or_applied_whole_or_not_at_all(api: Api) -> None:
    """D59: what `corpid apply --json` prints; faults by pointer in JSON, by line in YAML."""
    new = {"type": "UEN", "country": "SG", "name": "Harbour Bakery"}
    document = {"entities": {"E1001": new}, "users": {"lina": {"name": "Lina", "memberships": ["E1001"]}}}
    planned = api.post("/directory?dry_run=true", document).json()
    assert [each["subject"] for each in planned["changes"]] == [
        "entity E1001", "user lina", "membership: lina acts for E1001",
    ]  # fmt: skip
    assert (planned["written"], api.get("/entities/E1001").status_code) == (False, 404)
    broken = {**document, "assignments": [{"user": "lina", "entity": "E1001", "service": "PERMTIS", "role": "X"}]}
    faults = pointers(api.post("/directory", broken))
    assert list(faults) == ["/assignments/0/service"]
    yaml = b"entities:\n  E1001: {type: UEN, country: SG, name: Harbour Bakery}\n  E1002: {tpye: UEN}\n"
    told = api.call("POST", "/directory", body=yaml, content_type="application/yaml").json()["errors"]
    assert told == [{"line": "3", "detail": "'tpye' is not a field of an entity; did you mean 'type'?"}]
    assert api.get("/entities/E1001").status_code == 404
    assert api.post("/directory", document, idempotency_key="k").json() == {**planned, "written": True}
    assert api.post("/directory", document, idempotency_key="k").json()["written"]
    assert api.post("/directory", document).json() == {"changes": [], "kept": [], "written": False, "warnings": []}
    applied = api.get("/audit?action=directory.apply&limit=1").json()["items"][0]
    assert applied["actor"] == "client:api-1"


async def slowly(whole: Any, world: Any, members: Any) -> AsyncIterator[bytes]:
    yield whole[:9]
    await world.running.write(registered("api-1", **members))
    world.clock.now += 6
    yield whole[9:]


@pytest.mark.parametrize("ended", ["nothing", "the client", "its right"])
def test_a_document_that_comes_slowly_is_refused_if_the_right_ended_meanwhile(api: Api, ended: str) -> None:
    """D50: whoever is put away writes nothing five seconds later, however long the body took."""
    world = api.world
    endings: dict[str, dict[str, Any]] = {
        "the client": {"enabled": False},
        "its right": {"scopes": ("directory.read",)},
    }
    members = endings.get(ended, {})
    whole = jsons.dumps({"entities": {"E1001": {"type": "UEN", "country": "SG", "name": "Bakery"}}}).encode()

    answer = api.call("POST", "/directory", body=slowly(whole, world, members))  # type: ignore[arg-type]
    assert answer.status_code == (200 if ended == "nothing" else 401), answer.text
    found = world.run(world.provider.registry.directory.read(Entity, [("E1001",)]))
    assert bool(found) is (ended == "nothing")


def test_a_document_changes_what_programs_wrote_and_the_rest_if_it_takes_it_over(api: Api) -> None:
    """D59 with D65: single objects are changed whoever wrote them."""
    document = {"entities": {"E1001": {"type": "UEN", "country": "SG", "name": "Harbour Bakery"}}}
    assert api.post("/directory", document).json()["written"]
    actor, content = CommandLine(by="lee@node1"), b"entities: {E1001: {name: By hand}}"
    provider = api.world.provider
    api.world.run(
        apply_document(
            provider.registry, provider.passwords, content, file="", actor=actor, new_user_id=str, take_over=True
        )
    )
    left = api.post("/directory", document).json()
    assert (left["changes"], left["written"]) == ([], False)
    by = {"sources": ["command line"], "by": ["lee@node1 on the command line"]}
    assert left["kept"] == [{"verb": "change", "subject": "entity E1001", "members": ["name"], **by}]
    assert api.post("/directory?take_over=true", document).json()["written"]
    assert api.get("/entities/E1001").json()["name"] == "Harbour Bakery"


def test_a_document_gives_a_program_no_more_than_single_objects_do(api: Api) -> None:
    """D53, D59: neither factors nor operators nor owners, and no prune that takes them."""
    factors = {"users": {"alice": {"totp_secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}}}
    operators = {"operators": [{"user": "alice", "level": "operator"}]}
    owners = {"administrators": [{"user": "alice", "entity": "209900042K", "level": "owner"}]}
    plain = {"users": {"alice": {"password": "correct horse battery staple"}}}
    assert [api.post("/directory", each).status_code for each in (factors, operators, owners, plain)] == [
        403, 403, 403, 422,
    ]  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
@settings(max_examples=60)
def test_whatever_comes_is_an_object_or_every_fault_by_its_pointer(value: Json) -> None:
    """D59: no other exception, for any JSON."""
    document = nodes(value)
    assert document.pointer(1) == ""
    for resource in RESOURCES:
        known: Json = value if isinstance(value, dict) else {**dict.fromkeys(resource.keys, value)}
        with suppress(InvalidObject):
            parse_object(resource, known)


@given(content=st.binary(max_size=60))
def test_whatever_bytes_come_are_json_or_a_refusal(content: bytes) -> None:
    with suppress(DirectoryError):
        json_value(content)


@given(key=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5), min_size=2, max_size=7))
def test_an_identifier_is_of_one_key_only(key: list[str]) -> None:
    """D59."""
    identifier = object_id(tuple(key))
    assert key_of(identifier, len(key)) == tuple(key)
    assert key_of(identifier, len(key) + 1) is None
    assert key_of(identifier + "A", len(key)) is None
    assert key_of(identifier[:-1], len(key)) is None


@given(text=st.text(max_size=40))
def test_whatever_text_comes_is_an_identifier_or_that_of_nothing(text: str) -> None:
    assert key_of(text, 6) is None or len(key_of(text, 6) or ()) == 6


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}), ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}), ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}), (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]), ({"a": "foo"}, None, None), ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}), ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)  # fmt: skip
def test_patches_are_merged_as_the_rfc_shows(target: Json, patch: Json, result: Json) -> None:
    """RFC 7396 appendix A."""
    assert merge_patch(target, patch) == result


def test_a_pointer_escapes_what_it_has_to() -> None:
    """RFC 6901 §3."""
    assert pointer("a/b", "m~n", 0) == "/a~1b/m~0n/0"


@pytest.mark.full
def test_a_body_within_the_limit_makes_neither_a_loop_wait_nor_memory_grow() -> None:
    """D59: what is built of 64 KiB stays within a few MiB, and no list is compared with itself."""
    heavy: list[tuple[str, Json]] = [
        ("assignments", {"n" * 30_000: [0] * 15_000}),
        ("assignments", {"parameters": {"n" * 30_000: [0] * 15_000}}),
        ("assignments", {"parameters": {f"{number}{'n' * 600}": [0] * 150 for number in range(50)}}),
        ("services", {"service_id": "S", "name": "S", "roles": [f"r{number}" for number in range(7000)]}),
        ("clients", {f"cl{number}": 0 for number in range(5500)}),
    ]
    kinds = {each.path: each for each in RESOURCES}
    for path, value in heavy:
        tracemalloc.start()
        with suppress(InvalidObject):
            parse_object(kinds[path], value)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 24 << 20, path


def test_no_more_faults_are_told_than_anybody_reads(api: Api) -> None:
    """RFC 6901 §3, D59."""
    for told in (
        api.post("/entities", {f"a~/{number}": 1 for number in range(300)}),
        api.post("/keys", {f"a~/{number}": 1 for number in range(300)}),
        api.get("/entities?" + "&".join(f"x{number}=1" for number in range(300))),
        api.post("/directory", {"users": {"u": {f"a~/{number}": 1 for number in range(300)}}}),
    ):
        assert len(told.json()["errors"]) == 50
    assert "/a~0~10" in pointers(api.post("/keys", {"a~/0": 1}))
