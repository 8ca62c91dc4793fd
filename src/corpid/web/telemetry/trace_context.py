"""The trace of a request, as in W3C Trace Context.

Needs no OpenTelemetry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

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
