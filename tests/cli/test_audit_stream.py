"""`corpid audit stream`, and what `corpid maintenance prune` leaves for it (docs/decisions/0030)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.test_prune import events, of_two_ages

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

TO = {"audit_stream": "syslog+tls://siem.example:6514"}


def test_nothing_is_streamed_unless_it_is_set(terminal: Terminal) -> None:
    nowhere = "The audit is streamed nowhere: audit_stream is not set."
    assert terminal.done("audit", "stream").split("\n") == [nowhere, ""]
    terminal.look(of_two_ages)
    moved = terminal.done("audit", "stream", "--after", "2")
    assert " ".join(moved.split()) == f"{nowhere} An earlier stream ended at entry 2."


def test_it_shows_the_position_and_moves_it(terminal: Terminal) -> None:
    terminal.look(of_two_ages)
    with terminal.given(TO):
        shown = terminal.done("audit", "stream")
        assert "Streamed to syslog+tls://siem.example:6514, up to entry 0." in shown
        assert "3 entries wait, the oldest since " in shown
        assert "up to entry 2." in terminal.done("audit", "stream", "--after", "2")
    moved = terminal.look(events)[-1]
    assert (moved.action, moved.detail) == ("audit.stream", {"from": "0", "to": "2"})


def test_a_number_that_no_entry_can_have_is_refused(terminal: Terminal) -> None:
    """The database could not compare with it, so nothing would leave any more."""
    with terminal.given(TO):
        assert terminal.run("audit", "stream", "--after", str(1 << 63)).exit_code == 2
        assert "up to entry 0." in terminal.done("audit", "stream")


def test_what_has_not_left_is_not_pruned_and_this_is_said(terminal: Terminal) -> None:
    terminal.look(of_two_ages)
    with terminal.given(TO):
        terminal.done("audit", "stream", "--after", "1")
        told = terminal.done("maintenance", "prune", "--audit-days", "365", "--sign-in-days", "90")
        assert "Removed 1 audit entries" in told
        assert "Entries after number 1 stay, also old ones: audit_stream has not received them" in told
        terminal.done("audit", "stream", "--after", "100")
        told = terminal.done("maintenance", "prune", "--audit-days", "365", "--sign-in-days", "90")
        assert "Removed 1 audit entries" in told
        assert "audit_stream" not in told


def test_a_target_that_cannot_be_one_is_refused_at_the_start(terminal: Terminal) -> None:
    with terminal.given({"audit_stream": "syslog://siem.example:514"}):
        assert "CORPID_AUDIT_STREAM: syslog:// is UDP, which loses entries without notice" in terminal.refused("serve")
    with terminal.given({"audit_stream": "/tmp/x", "audit_stream_ca": "ca.pem"}):
        assert "audit_stream_ca is for TLS" in terminal.refused("serve")
