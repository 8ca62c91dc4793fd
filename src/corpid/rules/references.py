"""References of requests, in errors, the log and the audit (D28, D82).

A reference is 16 hexadecimal digits. The first eight are the second in which the request came, so that its entries
are found without an index, and its log lines by time.
"""

from __future__ import annotations

import re
from typing import Final

REFERENCE: Final = "[0-9a-f]{16}"
LOG_FIELD: Final = "request_id"
"""the field of a log line that has it"""
_ALONE: Final = re.compile(rf"(?<![0-9A-Za-z_-]){REFERENCE}(?![0-9A-Za-z_-])", re.ASCII | re.IGNORECASE)
_NAMED: Final = re.compile(
    rf"(?:reference|{LOG_FIELD})\"?['\"\s:=(]{{1,4}}({REFERENCE})(?![0-9A-Za-z_-])", re.ASCII | re.IGNORECASE
)
_EARLIEST: Final = 1_767_225_600
"""the first second of 2026: an earlier one is no time, but a reference of a version whose references had none"""
_AHEAD_SECONDS: Final = 3600
"""how far the clock of another server may be ahead"""
_HALF: Final = (1 << 32) - 1


def make_reference(now: float, number: int) -> str:
    """The reference of a request of this moment.

    `now` is in epoch seconds; of `number` the last 32 bits count.
    """
    return f"{int(now) & _HALF:08x}{number & _HALF:08x}"


def find_reference(text: str) -> str:
    """The reference in a pasted text, in lower case.

    Empty if there is none. The text may be the reference alone, an `error_description`, or a line of the log, where other fields look alike.
    """
    found = _NAMED.search(text)
    if found:
        return found[1].lower()
    alone = _ALONE.search(text)
    return alone[0].lower() if alone else ""


def moment_of(reference: str, *, now: float) -> int:
    """The second in which a request came, in epoch seconds.

    0 for a reference that names none: one of an earlier version.
    """
    moment = int(reference[:8], 16)
    return moment if _EARLIEST <= moment <= now + _AHEAD_SECONDS else 0
