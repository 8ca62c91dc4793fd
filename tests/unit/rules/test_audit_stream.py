"""The audit's stream: what a target may be, and lines that no value can break (docs/decisions/0030)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.audit import AuditAction
from corpid.rules.audit_stream import MESSAGE_BYTES, StreamTarget, json_line, octet_counted, syslog_message, target

ENTRY: dict[str, Any] = {
    "number": 7,
    "at": 1_800_000_000,
    "actor": "user:u1",
    "action": "sign_in.complete",
    "object": "",
    "client_id": "rp",
    "entity_id": "E1",
    "other_entity_id": "",
    "outcome": "ok",
    "request_id": "r1",
    "detail": {"address": "192.0.2.7"},
    "before": {},
    "after": {},
    "erased": False,
}
HEADER = re.compile(
    rb"<(\d{1,3})>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ [!-~]{1,255} corpid - [!-~]{1,32} - (\{.*\})", re.DOTALL
)
"""RFC 5424 §6: no structured data, and JSON as the text"""


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("/var/log/corpid/audit.jsonl", StreamTarget(kind="file", path="/var/log/corpid/audit.jsonl")),
        ("syslog+tls://siem.example:6514", StreamTarget(kind="tls", host="siem.example", port=6514)),
        ("syslog+tcp://[::1]:601", StreamTarget(kind="tcp", host="::1", port=601)),
        ("syslog+unix:///dev/log", StreamTarget(kind="unix", path="/dev/log")),
    ],
)
def test_a_target_is_a_file_or_a_syslog_server(value: str, named: StreamTarget) -> None:
    assert target(value) == named


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("syslog://siem.example:514", "is UDP, which loses entries without notice"),
        ("https://siem.example/", "is no target"),
        ("syslog+tls://siem.example", "is not HOST:PORT"),
        ("syslog+tcp://siem.example:601/path", "is not HOST:PORT"),
        ("syslog+tcp://siem.example:99999", "is not a URL"),
        ("syslog+tls://me:word@siem.example:6514", "takes no user"),
        ("syslog+unix://dev/log", "names no socket"),
    ],
)
def test_another_target_is_refused(value: str, says: str) -> None:
    """UDP is no way: it cannot be at least once."""
    with pytest.raises(ValueError, match=re.escape(says)):
        target(value)


def test_a_line_has_what_a_program_needs() -> None:
    read = json.loads(json_line(ENTRY))
    assert read == {**ENTRY, "time": "2027-01-15T08:00:00Z", "object_kind": "sign_in"}


HOSTILE = st.dictionaries(
    st.text(max_size=8),
    st.text(max_size=30) | st.text(alphabet=st.sampled_from('\n\r\0\x7f\x85\u2028"\\ <9')),
    max_size=4,
) | st.just({"device": "\n<0>1 - - - - - - forged"})


@given(HOSTILE)
def test_no_value_ends_a_line_or_a_message(detail: dict[str, str]) -> None:
    """The hostile value is escaped, and read back as it was."""
    entry = {**ENTRY, "detail": detail, "object": next(iter(detail.values()), "")}
    line = json_line(entry)
    assert re.fullmatch(rb"[ -~]+", line)
    assert json.loads(line)["detail"] == detail
    message = syslog_message(entry, host="node1")
    found = HEADER.fullmatch(message)
    assert found is not None
    assert found[2] == line
    length, _, framed = octet_counted(message).partition(b" ")
    assert (int(length), framed) == (len(message), message)


@pytest.mark.parametrize("host", ["node1", "", "a b", "n\n"])
def test_every_action_and_host_makes_a_header(host: str) -> None:
    """RFC 5424 §6.2: printable ASCII of bounded length, or a hyphen."""
    for action in (*AuditAction, "of.another version", "x" * 40, "é"):
        assert HEADER.fullmatch(syslog_message({**ENTRY, "action": action}, host=host)), action


def test_a_refusal_is_a_warning_of_the_facility_for_audit() -> None:
    """RFC 5424 §6.2.1: 13, log audit."""
    assert syslog_message(ENTRY, host="n").startswith(b"<110>1 ")
    assert syslog_message({**ENTRY, "outcome": "refused"}, host="n").startswith(b"<108>1 ")


@pytest.mark.parametrize("large", ["detail", "before", "object"])
def test_a_message_that_is_too_large_is_shortened_and_says_so(large: str) -> None:
    value: Any = "x" * MESSAGE_BYTES
    entry = {**ENTRY, large: value if large == "object" else {"a": value}}
    message = syslog_message(entry, host="n")
    assert len(message) <= MESSAGE_BYTES
    read = json.loads(message[message.index(b"{") :])
    assert (read["number"], read["shortened"], read["actor"]) == (7, True, "user:u1")
    assert b"shortened" not in json_line(entry)
