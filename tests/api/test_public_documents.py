"""Public documents of the admin API: compressed once, with entity tags (D31, D84; RFC 9110)."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

import pytest

from corpid.flows.operations.audit_seals import Sealer, rotate_audit_key
from corpid.rules.directory.access import CommandLine
from corpid.web.api import application
from corpid.web.http import documents
from tests.protocol.deployment import ISSUER

if TYPE_CHECKING:
    import httpx

    from tests.protocol.provider import World

PATHS = ("openapi.json", "audit/keys")
ACTOR = CommandLine(by="ops@node1")


def get(world: World, path: str, method: str = "GET", **named: str) -> httpx.Response:
    headers = {"accept-encoding": "identity"} | {name.replace("_", "-"): value for name, value in named.items()}
    answer: httpx.Response = world.run(world.http.request(method, f"{ISSUER}/api/v1/{path}", headers=headers))
    return answer


async def several(world: World) -> list[int]:
    """Statuses of four requests for the document at the same time."""
    url = f"{ISSUER}/api/v1/openapi.json"
    answers = await asyncio.gather(*(world.http.get(url, headers={"accept-encoding": "gzip"}) for _ in range(4)))
    return [answer.status_code for answer in answers]


@pytest.fixture(autouse=True)
def sealed(world: World) -> None:
    world.run(Sealer(world.provider.registry, lambda _: None).seal_all(ACTOR, now=world.clock.now))


@pytest.mark.parametrize("path", PATHS)
def test_a_public_document_has_a_tag_for_each_coding_and_caches_tell_them_apart(world: World, path: str) -> None:
    """RFC 9110 §8.8.1, §12.5.5: a strong tag names bytes."""
    plain, compressed = get(world, path), get(world, path, accept_encoding="br, gzip;q=0.5")
    assert (plain.status_code, compressed.status_code) == (200, 200)
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert plain.content == compressed.content  # httpx has undone the coding
    assert int(compressed.headers["content-length"]) == len(gzip.compress(plain.content, mtime=0))
    assert plain.headers["etag"] != compressed.headers["etag"]
    for answer in (plain, compressed):
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["cache-control"].startswith("public, max-age=")
        assert answer.headers["etag"].startswith('"')
    assert "content-encoding" not in get(world, path, accept_encoding="gzip;q=0").headers


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("named", ["{tag}", "W/{tag}", '"other", W/"{inner}" , "more"', '"a,b",{tag}', "*"])
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_who_has_a_document_is_told_so_without_it(world: World, path: str, named: str, coding: str) -> None:
    """RFC 9110 §13.1.2, §15.4.5: weak comparison, lists, `*`; GET and HEAD."""
    tag = get(world, path, accept_encoding=coding).headers["etag"]
    value = named.format(tag=tag, inner=tag.strip('"'))
    for method in ("GET", "HEAD"):
        answer = get(world, path, method, accept_encoding=coding, if_none_match=value)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["cache-control"].startswith("public, max-age=")
        assert not {"content-length", "content-type", "content-encoding"} & set(answer.headers)


@pytest.mark.parametrize("path", PATHS)
def test_another_tag_is_answered_with_the_document(world: World, path: str) -> None:
    """RFC 9110 §13.1.2: also that of the other coding, and what is no list of tags."""
    tag = get(world, path).headers["etag"]
    other = get(world, path, accept_encoding="gzip").headers["etag"]
    for value in ('"x"', other, tag.strip('"'), f'{tag[:-1]}x"', '"*"', '"*', ""):
        assert get(world, path, if_none_match=value).status_code == 200, value


@pytest.mark.parametrize("path", PATHS)
def test_head_has_the_headers_of_get(world: World, path: str) -> None:
    """D32, RFC 9110 §9.3.2."""
    for coding in ("identity", "gzip"):
        shown, head = get(world, path, accept_encoding=coding), get(world, path, "HEAD", accept_encoding=coding)
        assert (head.status_code, head.content) == (200, b"")
        for name in ("etag", "content-length", "content-type", "vary", "cache-control"):
            assert head.headers[name] == shown.headers[name], name


def test_a_new_audit_key_changes_the_tag(world: World) -> None:
    tag = get(world, "audit/keys").headers["etag"]
    world.run(rotate_audit_key(world.provider.registry, ACTOR, now=world.clock.now))
    answer = get(world, "audit/keys", if_none_match=tag)
    assert answer.status_code == 200
    assert answer.headers["etag"] != tag


def test_a_document_is_made_and_compressed_once_and_not_in_the_loop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks, and however many at the same time."""
    made: list[bool] = []
    make, pack = application.document.__wrapped__, gzip.compress

    def counted(base_url: str) -> bytes:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            made.append(True)
        else:
            made.append(False)
        return make(base_url)

    packed: list[int] = []

    def counting(content: bytes, **more: int) -> bytes:
        packed.append(len(content))
        return pack(content, **more)

    monkeypatch.setattr(application, "document", counted)
    monkeypatch.setattr(gzip, "compress", counting)
    application._DOCUMENTS.clear()
    documents.compress_content.cache_clear()

    assert world.run(several(world)) == [200] * 4
    assert made == [True]
    assert len(packed) == 1
