"""A call of the admin API, and its answer."""

from __future__ import annotations

import base64
import binascii
import hmac
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.responses import Response

from corpid.flows.directory.objects import Administration
from corpid.flows.operations.answers import KEY_CHARACTERS, once
from corpid.ports import StoredAnswer
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS
from corpid.rules.directory.json_nodes import json_value
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.limits import BODY_BYTES
from corpid.web.api.problems import Problem
from corpid.web.http.requests import headers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.requests import Request

    from corpid.flows.provider import Provider
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.actors import ApiClient
    from corpid.rules.directory.json_nodes import Json
    from corpid.web.context import WebContext

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
CHANGE_REASON: Final = "Change-Reason"
"""a header: addresses are logged on the way, and a merge patch has no place for it (RFC 9110 §17.9)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A successful answer. `body` None: there is none."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def stored(self, request: str) -> StoredAnswer:
        """The answer as it is repeated."""
        text = "" if self.body is None else msgspec.json.encode(self.body).decode()
        return StoredAnswer(request=request, status=self.status, headers=self.headers, body=text)


@dataclass(slots=True, kw_only=True)
class Call:
    """A request that was admitted, with its parsed parameters."""

    request: Request
    web: WebContext
    context: RequestContext
    actor: ApiClient
    given: dict[str, Any] = field(default_factory=dict)
    """path and query parameters"""

    @property
    def provider(self) -> Provider:
        """The provider of the first issuer."""
        return self.context.provider

    @property
    def administration(self) -> Administration:
        """The dependencies of the flows of objects."""
        return Administration(
            registry=self.provider.registry,
            passwords=self.provider.passwords,
            actor=self.actor,
            rules=self.web.client_rules,
            new_user_id=self.web.new_user_id,
            tag=self.tag,
            now=self.context.now,
            new_id=self.provider.new_id,
        )

    def tag(self, record: msgspec.Struct) -> str:
        """The strong entity tag of a record.

        A MAC: a hash could be searched for members that the caller is shown in part. Source: RFC 9110 §8.8.3
        """
        canonical = msgspec.json.encode(record).decode()
        return f'"{self.context.keys.mac("api entity tag", type(record).__name__, canonical)[:27]}"'

    def matches(self, tag: str) -> bool:
        """Return whether If-Match names a tag.

        Source: RFC 9110 §13.1.1
        """
        named = [each.strip() for each in self._header(b"if-match").split(",")]
        return "*" in named or any(hmac.compare_digest(each.encode(), tag.encode()) for each in named)

    def _header(self, name: bytes) -> str:
        return b", ".join(headers(self.request, name)).decode("latin-1")

    async def body(self, *types: str) -> bytes:
        """The body, which has to be of one of these media types.

        Raises Problem: 413, 415.
        """
        self.media_type(*types)
        whole = bytearray()
        async for piece in self.request.stream():
            whole += piece
            if len(whole) > BODY_BYTES:
                raise Problem(413, f"A body may have {BODY_BYTES:,} bytes here")
        return bytes(whole)

    def media_type(self, *types: str) -> str:
        """The media type of the body.

        Raises Problem if it is none of these.
        """
        sent = headers(self.request, b"content-type")
        named = sent[0].decode("latin-1").partition(";")[0].strip().lower() if len(sent) == 1 else ""
        if named not in types:
            raise Problem(415, f"Content-Type must be {' or '.join(types)}", headers={"Accept": ", ".join(types)})
        return named

    async def json(self, *types: str) -> Json:
        """The body as JSON. Raises Problem: 400, 413, 415."""
        return parsed(await self.body(*(types or (JSON,))))

    def key(self) -> str | None:
        """The Idempotency-Key; None if there is none.

        Raises Problem for a malformed one.
        """
        sent = headers(self.request, b"idempotency-key")
        if not sent:
            return None
        key = sent[0].decode("latin-1")
        if len(sent) > 1 or not 1 <= len(key) <= KEY_CHARACTERS or not key.isascii() or not key.isprintable():
            raise Problem(400, f"Idempotency-Key must be 1 to {KEY_CHARACTERS} printable ASCII characters, sent once")
        return key

    async def carried_out(self, body: bytes, work: Callable[[], Awaitable[Answer]]) -> Response:
        """Carry out a POST, once if it names an Idempotency-Key.

        Raises Problem for a malformed key, and whatever the flow raises.
        """
        key = self.key()
        if key is None:
            answer = (await work()).stored("")
            self.provider.registry_cache.drop()
            return _response(answer, repeated=False)
        path, query = self.request.scope["path"], self.request.scope["query_string"].decode("latin-1")
        mac = self.context.keys.mac("api request", path, query, body.hex(), self.actor.reason)

        async def stored() -> StoredAnswer:
            return (await work()).stored(mac)

        with self.alone(f"key {key}"):
            answer, repeated = await once(
                self.provider.registry, self.actor.client_id, key, mac, stored, now=self.context.now
            )
        self.provider.registry_cache.drop()
        return _response(answer, repeated=repeated)

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Keep out other such calls of this client.

        Those of this process: the store keeps out the others. Raises Problem if there is one.
        """
        named = (self.actor.client_id, what)
        if named in self.web.api_calls:
            raise Problem(
                409,
                "Such a request of this client is being carried out: wait for its answer",
                headers={"Retry-After": "1"},
            )
        self.web.api_calls.add(named)
        try:
            yield
        finally:
            self.web.api_calls.discard(named)


def reason_of(request: Request) -> str:
    """The text of the header Change-Reason; empty if there is none.

    Printable ASCII with UTF-8 in percent-encoding, since not all of HTTP carries more. Raises Problem. Source: D55, RFC
    9110 §5.5
    """
    sent = headers(request, CHANGE_REASON.encode().lower())
    try:
        reason = unquote_to_bytes(b"".join(sent).decode("ascii")).decode().strip(" ")
    except UnicodeDecodeError:
        reason = "\0"
    if len(sent) > 1 or len(reason) > MOST_REASON_CHARACTERS or not reason.isprintable():
        raise Problem(
            400,
            f"{CHANGE_REASON} must be one line of at most {MOST_REASON_CHARACTERS} characters, sent once: ASCII, and "
            "other characters as UTF-8 in percent-encoding",
        )
    return reason


def parsed(content: bytes) -> Json:
    """A strict JSON value. Raises Problem."""
    try:
        return json_value(content)
    except DirectoryError as error:
        raise Problem(400, f"The body cannot be read: {error.problems[0].reason}") from None


def plain(answer: Answer) -> Response:
    """The response of a call that is not repeated."""
    return _response(answer.stored(""), repeated=False)


def _response(answer: StoredAnswer, *, repeated: bool) -> Response:
    told = {"Idempotent-Replayed": "true"} if repeated else {}
    sent = {"Cache-Control": "no-store", **answer.headers, **told}
    return Response(answer.body.encode(), answer.status, sent, JSON if answer.body else None)


def cursor(after: tuple[str, ...]) -> str:
    """A place in a list, opaque to callers. Source: D59"""
    return base64.urlsafe_b64encode(msgspec.json.encode(after)).rstrip(b"=").decode("ascii")


def place(text: str, width: int) -> tuple[str, ...]:
    """The place that a cursor means.

    Raises Problem for a text that no list of this width has given.
    """
    try:
        octets = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        after = msgspec.json.decode(octets, type=tuple[str, ...])
    except (ValueError, binascii.Error, RecursionError):
        after = ()
    if len(after) != width or any("\0" in part or not part.isprintable() for part in after):
        detail = "This is no place in this list: take the member next of a page, with the same filters"
        raise Problem(400, detail, faults=[{"parameter": "cursor", "detail": detail}])
    return after
