"""A call of the admin API, its answer, and errors (RFC 9457)."""

from __future__ import annotations

import base64
import binascii
import hmac
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from corpid.flows import namespaces
from corpid.flows.directory.approvals import NoRequest
from corpid.flows.directory.invitations import RETRY_SECONDS, TooManyInvitations
from corpid.flows.directory.objects import Administration, ObjectChanged, ObjectConflict, ObjectNotFound
from corpid.flows.directory.write import IdentifierConflict, NoReason, Refused
from corpid.flows.large import in_thread_if_many
from corpid.flows.operations.idempotency import KEY_CHARACTERS, KeyReused, once_at_end, run_once
from corpid.rules.directory.access import ApiClient, Forbidden
from corpid.rules.directory.members import visible_members
from corpid.rules.directory.memberships import InvalidDetails
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.nodes import SHOWN, DirectoryError, Json, json_value
from corpid.rules.directory.objects import InvalidObject
from corpid.rules.directory.records import Conflict
from corpid.rules.failures import PasswordsBusy, StoreUnavailable
from corpid.rules.limits import BODY_BYTES
from corpid.rules.oauth.api_client import API_PATH, StoredResponse
from corpid.rules.oauth.errors import OAuthError, TemporarilyUnavailable, UseDPoPNonce
from corpid.texts import capitalise
from corpid.web.http.requests import encoding_fault, headers
from corpid.web.pages import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from corpid.flows.request_context import Provider, RequestContext
    from corpid.stores.sql.registry import Registry
    from corpid.web.context import WebContext

MEDIA_TYPE: Final = "application/problem+json"
_RETRY_SECONDS: Final = 5


class Problem(Exception):
    """A refusal with its status; `detail` is a sentence for the caller.

    `faults` are members `pointer` or `parameter`, and `detail`.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        faults: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.faults = tuple(faults)
        self.headers = dict(headers or {})


def problem_of_error(error: Exception) -> Problem | None:
    """The problem of an exception of the flows.

    None for one that is not foreseen, and for those of OAuth.
    """
    match error:
        case Problem():
            return error
        case InvalidObject(faults=faults):
            return _unfit((fault.pointer, fault.detail) for fault in faults[:SHOWN])
        case ObjectNotFound() | NoRequest():
            return Problem(404, "There is no such object")
        case NoReason():
            return Problem(
                422, "This needs another administrator's approval: give the reason in the header Change-Reason"
            )
        case ObjectConflict() | Refused() | Conflict():
            return Problem(409, capitalise(str(error)))
        case ObjectChanged():
            return Problem(
                412, "The object has changed since you read it: read it again, and decide on its current state"
            )
        case KeyReused():
            return Problem(422, "This Idempotency-Key was used for another request: use a new one")
        case Forbidden(reason=reason):
            return Problem(403, capitalise(reason))
        case StoreUnavailable() | PasswordsBusy():
            busy = {"Retry-After": str(_RETRY_SECONDS)}
            return Problem(503, "CorpID is busy or unavailable: try again in a moment", headers=busy)
        case _:
            return _of_invitation(error)


def _of_invitation(error: Exception) -> Problem | None:
    match error:
        case TooManyInvitations():
            return Problem(429, capitalise(str(error)), headers={"Retry-After": str(RETRY_SECONDS)})
        case IdentifierConflict(member=member):
            fault = {"pointer": f"/{member}", "detail": "another member of this entity has it"}
            return Problem(409, capitalise(str(error)), faults=[fault])
        case InvalidDetails(faults=faults):
            return _unfit((f"/{member}", sentence) for member, sentence in faults)
        case _:
            return None


def _unfit(faults: Iterable[tuple[str, str]]) -> Problem:
    listed = [{"pointer": pointer, "detail": detail} for pointer, detail in faults]
    return Problem(422, "The body is not valid: see errors", faults=listed)


def response(request: Request, error: Exception, web: WebContext) -> Response:
    """The answer to a refused request, which the log line names.

    Source: RFC 9457 §3, D28, D59
    """
    problem = problem_of_error(error) or _of_oauth(request, error, web)
    state = request.scope["state"]
    log, reference = state["log"], state["request_id"]
    if "reason" not in log:
        log["detail"] = f"{HTTPStatus(problem.status).phrase}: {', '.join(_places(problem)) or type(error).__name__}"
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        "reference": reference,
    }
    if problem.faults:
        content["errors"] = problem.faults
    headers = {"Cache-Control": "no-store", **problem.headers}
    return Response(msgspec.json.encode(content), problem.status, headers, MEDIA_TYPE)


def _of_oauth(request: Request, raised: Exception, web: WebContext) -> Problem:
    """A refusal of access token or proof, or a fault.

    With the challenge of an access token (RFC 9449 §7.1).
    """
    rules = web.provider.policy.api
    challenge = f'{rules.scheme} algs="{" ".join(rules.proof_algorithms)}"'
    error = errors.as_oauth_error(raised)
    errors.record(request, error)
    status = 401 if isinstance(error, UseDPoPNonce) else error.status
    headers: dict[str, str] = {}
    if status in {400, 401, 403} and isinstance(raised, OAuthError):
        error_member = "" if error.code == "credentials_required" else f', error="{error.code}"'
        scope = getattr(error, "scope", "")
        headers["WWW-Authenticate"] = challenge + error_member + (f', scope="{scope}"' if scope else "")
    if isinstance(error, UseDPoPNonce):
        headers["DPoP-Nonce"] = error.nonce
    if isinstance(error, TemporarilyUnavailable):
        headers["Retry-After"] = str(error.retry_after)
    return Problem(status, capitalise(error.description), headers=headers)


def _places(problem: Problem) -> list[str]:
    """The places of the faults.

    What they say may repeat a value.
    """
    return [fault.get("pointer") or fault.get("parameter", "") for fault in problem.faults]


JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
_BYTES_AT_ONCE: Final = 1000
_NUMBER_DIGITS: Final = 18
KEYS_PER_DAY: Final = 100_000
"""of one client: each is a row for a day"""
CHANGE_REASON: Final = "Change-Reason"
"""a header: addresses are logged on the way, and a merge patch has no place for it (RFC 9110 §17.9)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A successful answer. `body` None: there is none."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    shows: str = ""
    """the identifier of the object that it shows"""

    def stored(self, request: str) -> StoredResponse:
        """The answer as it is stored.

        It holds no member of a record: a person may be removed, and their data must go with them.
        """
        headers = {name: value for name, value in self.headers.items() if name != "ETag"}
        return StoredResponse(request=request, status=self.status, headers=headers, body="", shown=self.shows)


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
    def registry(self) -> Registry:
        """The lasting records."""
        return self.provider.registry

    def location(self, collection: str, identifier: str) -> str:
        """The address of an object."""
        return f"{self.provider.policy.base_url}{API_PATH}/{collection}/{quote(identifier, safe='')}"

    def after(self, width: int) -> tuple[str, ...]:
        """The place after which a page begins; empty for the first one.

        Raises Problem for a cursor that no list of this width has given.
        """
        sent = self.given["cursor"]
        return () if sent is None else read_cursor(sent, width)

    @property
    def administration(self) -> Administration:
        """The dependencies of the flows of objects."""
        return Administration(
            registry=self.registry,
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

        A MAC: a hash could be searched for members that the caller is shown in part. What the store and background
        tasks write changes no tag. Source: RFC 9110 §8.8.3
        """
        canonical = msgspec.json.encode(visible_members(record), order="sorted").decode()
        return f'"{self.context.keys.mac("api entity tag", type(record).__name__, canonical)[:27]}"'

    def matches(self, tag: str) -> bool:
        """Return whether If-Match names a tag.

        Source: RFC 9110 §13.1.1
        """
        named = [each.strip() for each in self._header(b"if-match").split(",")]
        return "*" in named or any(hmac.compare_digest(each.encode(), tag.encode()) for each in named)

    def _header(self, name: bytes) -> str:
        return b", ".join(headers(self.request, name)).decode("latin-1")

    async def body(self, *types: str, most: int = BODY_BYTES) -> bytes:
        """The body, which has to be of one of these media types.

        `most` is the number of bytes that it may have. Raises Problem: 413, 415, and 400 if it does not come to its
        end.
        """
        self.media_type(*types)
        whole = bytearray()
        try:
            async for piece in self.request.stream():
                whole += piece
                if len(whole) > most:
                    raise Problem(413, f"A body can have at most {most:,} bytes here")
        except ClientDisconnect:
            raise Problem(400, "The request ended before its body was complete") from None
        return bytes(whole)

    def media_type(self, *types: str) -> str:
        """The media type of the body.

        Raises Problem if it is none of these, or compressed.
        """
        sent = headers(self.request, b"content-type")
        if len(sent) > 1:
            raise Problem(415, "Content-Type came more than once: send it once", headers={"Accept": ", ".join(types)})
        named = sent[0].decode("latin-1").partition(";")[0].strip().lower() if sent else ""
        if named not in types:
            raise Problem(415, f"Content-Type must be {' or '.join(types)}", headers={"Accept": ", ".join(types)})
        if fault := encoding_fault(self.request):
            raise Problem(415, fault, headers={"Accept-Encoding": "identity"})
        return named

    async def json(self, *types: str) -> Json:
        """The body as JSON. Raises Problem: 400, 413, 415."""
        return parse_json(await self.body(*(types or (JSON,))))

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

    async def carry_out(
        self, body: bytes, work: Callable[[], Awaitable[Answer]], again: Callable[[StoredResponse], Awaitable[Answer]]
    ) -> Response:
        """Carry out a POST, once if it names an Idempotency-Key.

        `again` makes the body of a repeated answer from the present records. Raises Problem for a malformed
        key, and whatever the flow raises.
        """
        key = self.key()
        if key is None:
            return self._respond(await work())
        mac, made = self._mac(body), list[Answer]()

        async def stored() -> StoredResponse:
            await self._count_key()
            made.append(await work())
            return made[-1].stored(mac)

        registry, client_id = self.registry, self.actor.client_id
        with self.exclude_others(f"key {key}"):
            first, repeated = await run_once(registry, client_id, key, mac, stored, now=self.context.now)
        return await self._repeat(first, again) if repeated else self._respond(made[-1])

    async def carry_out_at_end(
        self,
        body: bytes,
        work: Callable[[Callable[[Answer], Awaitable[None]] | None], Awaitable[Answer]],
        again: Callable[[StoredResponse], Awaitable[Answer]],
    ) -> Response:
        """Carry out a long POST, once if it names an Idempotency-Key.

        `work` gets what it awaits in the transaction of its last change, with the answer. The rest as of `carry_out`.
        """
        key = self.key()
        if key is None:
            return self._respond(await work(None))
        mac, made = await in_thread_if_many(lambda: self._mac(body), len(body) // _BYTES_AT_ONCE), list[Answer]()

        async def stored(save: Callable[[StoredResponse], Awaitable[None]]) -> StoredResponse:
            await self._count_key()
            made.append(await work(lambda answer: save(answer.stored(mac))))
            return made[-1].stored(mac)

        registry, client_id = self.registry, self.actor.client_id
        with self.exclude_others(f"key {key}"):
            first, repeated = await once_at_end(registry, client_id, key, mac, stored, now=self.context.now)
        return await self._repeat(first, again) if repeated else self._respond(made[-1])

    async def _count_key(self) -> None:
        """Count a new key of this client.

        Raises Problem beyond the most of a day.
        """
        counter = namespaces.API_KEYS.entry(self.provider.policy.deployment_url, self.actor.client_id)
        async with self.provider.transient.batch(self.context.now) as batch:
            counted = await self.context.counts.count(batch, counter)
        if counted > KEYS_PER_DAY:
            detail = f"A client can send {KEYS_PER_DAY:,} keys a day: continue without Idempotency-Key, or later"
            raise Problem(429, detail, headers={"Retry-After": "3600"})

    def _respond(self, answer: Answer) -> Response:
        self.provider.registry_cache.drop()
        return respond(answer)

    async def _repeat(self, first: StoredResponse, again: Callable[[StoredResponse], Awaitable[Answer]]) -> Response:
        """The first answer again.

        Raises Problem if what it showed is there no more.
        """
        replayed = {"Idempotent-Replayed": "true"}
        if first.body:  # as a version before this one has stored it
            return _response(first.body.encode(), first.status, {**first.headers, **replayed})
        try:
            shown = await again(first)
        except ObjectNotFound:
            raise Problem(
                409, "The object that this request created has since been removed", headers=replayed
            ) from None
        return _response(_encoded(shown), first.status, {**first.headers, **shown.headers, **replayed})

    def _mac(self, body: bytes) -> str:
        """A MAC that differs between requests with the same key."""
        path = self.request.scope["path"].removeprefix(self.web.base_path)
        query = self.request.scope["query_string"].decode("latin-1")
        content = body.hex() if len(body) <= BODY_BYTES else sha256(body).hexdigest()
        return self.context.keys.mac("api request", path, query, content, self.actor.reason)

    @contextmanager
    def exclude_others(self, what: str) -> Iterator[None]:
        """Keep out other such calls of this client.

        Those of this process: the store keeps out the others. Raises Problem if there is one.
        """
        named = (self.actor.client_id, what)
        if named in self.web.api_calls:
            raise Problem(
                409,
                "A request of this kind from this client is still in progress: wait for its response",
                headers={"Retry-After": "1"},
            )
        self.web.api_calls.add(named)
        try:
            yield
        finally:
            self.web.api_calls.discard(named)


def parse_json(content: bytes) -> Json:
    """A strict JSON value. Raises Problem."""
    try:
        return json_value(content)
    except DirectoryError as error:
        raise Problem(400, f"The body cannot be read: {error.problems[0].reason}") from None


def respond(answer: Answer) -> Response:
    """The response of a call that is not repeated."""
    return _response(_encoded(answer), answer.status, answer.headers)


def show(members: Mapping[str, Any], *, location: str = "", shows: str = "") -> Answer:
    """The answer that shows an object, with its entity tag.

    201 with the location of an object that was added.
    """
    headers = {"ETag": members["etag"], **({"Location": location} if location else {})}
    return Answer(body=members, status=201 if location else 200, headers=headers, shows=shows)


def respond_page(items: Sequence[Mapping[str, Any]], after: tuple[str, ...] | str = "") -> Response:
    """A page of a list.

    `after` is the place of its last item, if others follow.
    """
    place = (after,) if isinstance(after, str) else after
    return respond(Answer(body={"items": items, "next": write_cursor(place)} if after else {"items": items}))


def write_cursor(after: tuple[str, ...]) -> str:
    """A place in a list, opaque to callers. Source: D59"""
    return base64.urlsafe_b64encode(msgspec.json.encode(after)).rstrip(b"=").decode("ascii")


def read_cursor(text: str, width: int = 0) -> tuple[str, ...]:
    """The place that a cursor means.

    Raises Problem for a text that no list of this width, if it is given, has given.
    """
    try:
        octets = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        after = msgspec.json.decode(octets, type=tuple[str, ...])
    except (ValueError, binascii.Error, RecursionError):
        after = ()
    wrong = len(after) != width if width else not after
    if wrong or not all(map(is_storable, after)):
        raise unknown_cursor()
    return after


def unknown_cursor() -> Problem:
    """The refusal of a text that no list has given."""
    detail = "This is not a cursor of this list: use the member next of a page, with the same filters and the same sort"
    return Problem(400, detail, faults=[{"parameter": "cursor", "detail": detail}])


def read_number(text: str) -> int:
    """A number in a cursor.

    Raises Problem for what no list has given.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS else int(*read_cursor("", 1))


def _encoded(answer: Answer) -> bytes:
    return b"" if answer.body is None else msgspec.json.encode(answer.body)


def _response(body: bytes, status: int, headers: Mapping[str, str]) -> Response:
    return Response(body, status, {"Cache-Control": "no-store", **headers}, JSON if body else None)
