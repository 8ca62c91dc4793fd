"""The audit's stream: targets, lines, syslog messages, and the position (docs/decisions/0030)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from corpid.rules.audit import AuditAction

MESSAGE_BYTES: Final = 64 * 1024
"""of a syslog message: a longer entry is shortened, since receivers cut off what they do not expect"""
_FORMS: Final = "the path of a file, syslog+tls://HOST:PORT, syslog+tcp://HOST:PORT or syslog+unix:///PATH"
_FACILITY: Final = 13
"""log audit (RFC 5424 §6.2.1)"""
_WARNING, _INFORMATIONAL = 4, 6
_PRINTABLE: Final = re.compile(r"[!-~]+", re.ASCII)
_LONGEST_NAME, _LONGEST_ID = 255, 32
_LONGEST_VALUE: Final = 1000
_ALWAYS: Final = (
    "number",
    "at",
    "time",
    "actor",
    "action",
    "object_kind",
    "object",
    "client_id",
    "entity_id",
    "outcome",
)
"""members that a shortened entry keeps, the last ones to go"""


class StreamTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A file or server that the audit is streamed to."""

    kind: Literal["file", "tcp", "tls", "unix"]
    path: str = ""
    """of the file or the socket"""
    host: str = ""
    port: int = 0


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of the stream, and the process that streams.

    A process that streams changes it again and again: one that finds it unchanged for long takes over.
    """

    number: int = 0
    """of the last entry that was handed over"""
    process: str = ""
    """the identifier of the process that streams; empty: any may begin"""
    beat: int = 0
    """raised with each change"""
    failed: str = ""
    """why the last attempt failed; empty: it did not"""


def target(value: str) -> StreamTarget:
    """Return the target that a value of `audit_stream` names.

    Raises ValueError with a sentence. Source: docs/decisions/0030
    """
    scheme, separator, _ = value.partition("://")
    if not separator:
        return StreamTarget(kind="file", path=value)
    if scheme in {"syslog", "syslog+udp", "udp"}:
        raise ValueError(f"{scheme}:// is UDP, which loses entries without notice: write {_FORMS}")
    if scheme not in {"syslog+tcp", "syslog+tls", "syslog+unix"}:
        raise ValueError(f"{scheme[:20]}:// is no target: write {_FORMS}")
    try:
        parts = urlsplit(value)
        port = parts.port or 0
    except ValueError as error:
        raise ValueError(f"{value} is not a URL ({error}): write {_FORMS}") from error
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"{scheme}:// takes no user, query or fragment: write {_FORMS}")
    if scheme == "syslog+unix":
        if parts.netloc or len(parts.path) < len("/x"):
            raise ValueError(f"{value} names no socket: write for example syslog+unix:///dev/log")
        return StreamTarget(kind="unix", path=parts.path)
    if not parts.hostname or not port or parts.path not in {"", "/"}:
        raise ValueError(f"{value} is not HOST:PORT: write for example {scheme}://siem.example.org:6514")
    return StreamTarget(kind="tls" if scheme == "syslog+tls" else "tcp", host=parts.hostname, port=port)


def json_line(entry: Mapping[str, Any]) -> bytes:
    r"""Return an entry as JSON in printable ASCII, without a line end.

    Everything else is escaped (`\n`, `\u2028`), so that no value ends a line, for any reader. Source: RFC 8259 §7
    """
    action = str(entry["action"])
    known = _ACTIONS.get(action)
    members = {
        **entry,
        "time": _time(int(entry["at"])),
        "object_kind": known.object_kind if known is not None else action.partition(".")[0],
    }
    return _json(members)


def syslog_message(entry: Mapping[str, Any], *, host: str) -> bytes:
    """Return an entry as a syslog message, with JSON as its text.

    `host` is the name of this machine. Source: RFC 5424 §6
    """
    severity = _WARNING if entry["outcome"] == "refused" else _INFORMATIONAL
    action = str(entry["action"])
    header = " ".join(
        (
            f"<{_FACILITY * 8 + severity}>1",
            _time(int(entry["at"])),
            _header_field(host, _LONGEST_NAME),
            "corpid",
            "-",
            _header_field(action, _LONGEST_ID),
            "-",
            "",
        )
    ).encode()
    text = json_line(entry)
    if len(header) + len(text) > MESSAGE_BYTES:
        shortened = {name: value for name, value in entry.items() if name not in {"before", "after", "detail"}}
        text = json_line({**shortened, "shortened": True})
    if len(header) + len(text) > MESSAGE_BYTES:
        kept = {name: entry[name] for name in _ALWAYS if name in entry}
        cut = {name: each[:_LONGEST_VALUE] if isinstance(each, str) else each for name, each in kept.items()}
        text = json_line({**cut, "shortened": True})
    return header + text


def octet_counted(message: bytes) -> bytes:
    """Return a syslog message as a frame of a stream.

    Source: RFC 6587 §3.4.1, RFC 5425 §4.3
    """
    return b"%d %b" % (len(message), message)


_ACTIONS: Final = {action.value: action for action in AuditAction}


def _json(members: Mapping[str, Any]) -> bytes:
    text = json.dumps(members, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("\x7f", "\\u007f").encode("ascii")


def _time(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _header_field(text: str, longest: int) -> str:
    """A printable field of the header; `-` for none (RFC 5424 §6)."""
    return text if _PRINTABLE.fullmatch(text) and len(text) <= longest else "-"
