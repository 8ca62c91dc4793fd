"""Context, form, cookie, request id and trace of a request.

Source: D14, D28, D34, D47, D48
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.flows import request_context
from corpid.flows.rate_limits import LimitCounts
from corpid.rules.limits import BODY_BYTES, BULK_BODY_BYTES, UPLOAD_BYTES
from corpid.rules.oauth.errors import (
    ContentTooLarge,
    InvalidRequest,
    UnsupportedContentCoding,
    clip_text,
    shorten_value,
)
from corpid.rules.oauth.parameters import find_boundary, parse_parts
from corpid.rules.oauth.refusals import Reason
from corpid.rules.references import make_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from starlette.requests import Request

    from corpid.flows.request_context import Provider, RequestContext


class _RequestIds:
    """References, with every 32-bit number from a random start in random steps."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._start = int.from_bytes(os.urandom(4))
        self._step = int.from_bytes(os.urandom(4)) | 1
        self._numbers = itertools.count()

    def next(self, now: float) -> str:
        """A reference that no other request of this process has.

        `now` is in epoch seconds. Our own, never the caller's (D28).
        """
        return make_reference(now, self._start + next(self._numbers) * self._step)


_ids: Final = _RequestIds()
# Processes that share a port were one process once, and must not walk in step.
os.register_at_fork(after_in_child=_ids.begin)


new_request_id: Final = _ids.next


def version_fault(version: str) -> tuple[int, Reason, str] | None:
    """The refusal of a major version of HTTP other than 1.

    A higher minor version is handled as 1.1. Source: RFC 9110 §2.5, §6.2, §15.6.6
    """
    major, _, _ = version.partition(".")
    if major == "1":
        return None
    if major == "0":  # also a request line without a version
        return 400, Reason.HTTP_MALFORMED, "The request line must end with HTTP/1.1"
    return 505, Reason.HTTP_NOT_SUPPORTED, "This connection speaks HTTP/1.1 only: end the request line with HTTP/1.1"


_TRACEPARENT: Final = re.compile(rb"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_FIRST_VERSION: Final = b"00"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceParent:
    """A caller's traceparent: trace and span, in hexadecimal."""

    trace: str
    span: str
    flags: str


def trace_parent(values: Sequence[bytes]) -> TraceParent | None:
    """The parsed traceparent.

    None unless there is exactly one valid one.

    Source: W3C Trace Context §3.2, D48
    """
    if len(values) != 1 or (found := _TRACEPARENT.fullmatch(values[0])) is None:
        return None
    version, trace, parent, flags, more = found.groups()
    if (version == _FIRST_VERSION and more is not None) or not trace.strip(b"0") or not parent.strip(b"0"):
        return None
    return TraceParent(trace=trace.decode(), span=parent.decode(), flags=flags.decode())


def trace_id(values: Sequence[bytes]) -> str | None:
    """The trace-id in the values of traceparent, 32 hexadecimal characters.

    None unless there is exactly one valid one.

    Source: W3C Trace Context §3.2, D48
    """
    found = trace_parent(values)
    return None if found is None else found.trace


FORM: Final = "application/x-www-form-urlencoded"
_COUNTS: Final = "counts"
"""in a request's state: its LimitCounts, once it has a context"""
_FORM: Final = FORM.encode()
UPLOAD: Final = "file"
"""the field of a file"""
_ADMITTED_BYTES: Final = 4096
"""which hold the token of a form, its first field"""
_COOKIES: Final = 1000
"""of one site: browsers keep a few hundred"""


async def client_request(request: Request, provider: Provider) -> RequestContext:
    """The context of a client's request, with one reading of the clock.

    Source: D49
    """
    state = request.scope["state"]
    return await request_context.request_context(
        provider,
        request_id=state["request_id"],
        address=state["client_address"],
        counts=state.setdefault(_COUNTS, LimitCounts()),
    )


async def page_request(request: Request, provider: Provider) -> RequestContext:
    """The context of a person's request, with their device.

    Source: D49, RFC 9110 §10.1.5
    """
    state = request.scope["state"]
    agents = state["headers"].get(b"user-agent")
    return await request_context.request_context(
        provider,
        request_id=state["request_id"],
        address=state["client_address"],
        user_agent=agents[0].decode("latin-1") if agents else "",
        counts=state.setdefault(_COUNTS, LimitCounts()),
    )


async def take_back_counts(request: Request, provider: Provider) -> None:
    """Take back what a request has counted at limits.

    For one that CorpID refuses for its own reasons. Source: D47
    """
    counts: LimitCounts | None = request.scope["state"].get(_COUNTS)
    if counts is not None:
        await counts.take_back(provider.transient, now=provider.clock())


def header_values(fields: Iterable[tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    """The values of each header field, by lower-case name.

    In their order. Source: RFC 9110 §5.2
    """
    found: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        if name in found:
            found[name].append(value)
        else:
            found[name] = [value]
    return found


def headers(request: Request, name: bytes) -> list[bytes]:
    """Every value of a header.

    `name` in lower case. The middleware has looked through the header once.
    """
    values: list[bytes] = request.scope["state"]["headers"].get(name, [])
    return values


async def form_bytes(request: Request) -> bytes:
    """The body of a form, kept for error rendering.

    Raises InvalidRequest for another Content-Type, and for a compressed one (Spec 4.1, D14).
    """
    state = request.scope["state"]
    if "form" in state:
        return bytes(state["form"])
    if not _names_form(state["headers"].get(b"content-type", ())):
        types = b", ".join(state["headers"].get(b"content-type", ())).decode("latin-1")
        raise InvalidRequest(Reason.BODY_NOT_A_FORM, f"Content-Type must be {FORM}").with_cause(
            received=shorten_value(types)
        )
    body = state["form"] = await _read_body(request, BODY_BYTES)
    return body


async def _read_body(request: Request, most: int, admit: Callable[[bytes], bool] | None = None) -> bytes:
    """The body, cut at UPLOAD_BYTES.

    It is empty if `admit`, which is given its beginning, refuses. Raises InvalidRequest if it is compressed, longer than
    `most`, or not whole.
    """
    if b"content-encoding" in request.scope["state"]["headers"] and (fault := encoding_fault(request)):
        raise UnsupportedContentCoding(Reason.BODY_ENCODED, fault)
    body, size, more = b"", 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise InvalidRequest(Reason.BODY_INCOMPLETE, "the request ended before its body was complete")
        piece, more = message.get("body", b""), message.get("more_body", False)
        size += len(piece)
        if size > most:
            raise ContentTooLarge(Reason.HTTP_BODY_TOO_LARGE, f"a form may have {most} bytes here")
        if len(body) <= UPLOAD_BYTES:  # what follows is read, so that the browser shows the answer, and thrown away
            body += piece
        if admit is not None and len(body) > _ADMITTED_BYTES:
            if not admit(body):
                return b""
            admit = None
    return body


def upload_boundary(request: Request) -> bytes:
    """The boundary of the parts of a form with a file.

    Empty for another body. Source: RFC 7578
    """
    return find_boundary(b",".join(headers(request, b"content-type")))


async def read_upload(
    request: Request, known: Collection[str], admit: Callable[[Mapping[str, str]], bool]
) -> tuple[dict[str, str], bytes]:
    """The parameters of a form, and its file, cut at UPLOAD_BYTES.

    `admit` looks at the parameters before the body is read on: without its consent there are none, and no file. Raises
    InvalidRequest. Source: D47, D81
    """
    boundary = upload_boundary(request)

    def admit_beginning(beginning: bytes) -> bool:
        whole = beginning[: beginning.rfind(b"\r\n--" + boundary)]
        return admit(parse_parts(whole, boundary, known, UPLOAD)[0])

    body = await _read_body(request, BULK_BODY_BYTES, admit_beginning)
    form, file = parse_parts(body, boundary, known, UPLOAD)
    if sum(map(len, form.values())) > BODY_BYTES:
        raise ContentTooLarge(Reason.HTTP_BODY_TOO_LARGE, f"the fields of a form may have {BODY_BYTES} bytes")
    return form, file


def encoding_fault(request: Request) -> str:
    """The fault of a compressed body, else empty. Source: RFC 9110 §8.4"""
    named = b",".join(headers(request, b"content-encoding")).decode("latin-1").lower()
    codings = [coding for each in named.split(",") if (coding := each.strip()) not in {"", "identity"}]
    return (
        f"Content-Encoding {clip_text(' '.join(codings))} is not supported: send the body as it is" if codings else ""
    )


def _names_form(types: Sequence[bytes]) -> bool:
    if len(types) != 1:
        return False
    return types[0] == _FORM or types[0].partition(b";")[0].strip().lower() == _FORM


def cookie(request: Request, name: str) -> str | None:
    """The value of a cookie, None unless it was sent exactly once.

    Source: D34
    """
    values = cookies(request, name)
    return values[0] if len(values) == 1 else None


def cookies(request: Request, name: str) -> list[str]:
    """Every value that was sent of a cookie.

    None if more cookies came than a browser keeps (RFC 6265 §5.4, §6.1).
    """
    state = request.scope["state"]
    if "cookies" not in state:
        found: dict[str, list[str]] = state.setdefault("cookies", {})
        sent = b";".join(state["headers"].get(b"cookie", ()))
        for pair in sent.decode("latin-1").split(";") if sent.count(b";") < _COOKIES else ():
            each, _, value = pair.strip().partition("=")
            found.setdefault(each, []).append(value)
    values: list[str] = state["cookies"].get(name, [])
    return values


def may_complete(request: Request) -> bool:
    """Return whether a GET is a person's navigation.

    Not a prefetch or an embedded fetch. Source: D30
    """
    if request.method != "GET" or headers(request, b"sec-purpose"):
        return False
    return headers(request, b"sec-fetch-dest") in ([], [b"document"])
