"""Many hostile callers at once: the server answers everybody else, and its memory stays bounded (D47)."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

from corpid.web.http.connections import Limits
from tests.web.served import SHORT, Recorder, Served, served

GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
MEGABYTE = 1_000_000


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def sent_before_the_end(running: Served, opening: bytes, piece: bytes, total: int = 50 * MEGABYTE) -> int:
    with running.call() as caller:
        return caller.say(opening).say_while_heard(piece, total)


def test_50_mb_of_headers_are_not_read() -> None:
    with served(Recorder()) as running:
        before = resident()
        for piece in (b"X: " + b"x" * 60_000 + b"\r\n", b"x" * 65_536, b"a:\r\n" * 10_000):
            assert sent_before_the_end(running, b"GET /a HTTP/1.1\r\n", piece) < 20 * MEGABYTE
        assert sent_before_the_end(running, b"GET /", b"x" * 65_536) < 20 * MEGABYTE
        assert resident() - before < 20 * MEGABYTE


def test_50_mb_of_body_are_not_read() -> None:
    opening = b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    extension = b"1;" + b"x" * 60_000 + b"\r\nx\r\n"
    with served(Recorder()) as running:
        before = resident()
        for piece in (b"ffff\r\n" + b"x" * 65_535 + b"\r\n", extension, b"1\r\nx\r\n" * 10_000):
            assert sent_before_the_end(running, opening, piece) < 20 * MEGABYTE
        assert sent_before_the_end(running, opening + b"0\r\nX: ", b"x" * 65_536) < 20 * MEGABYTE
        assert resident() - before < 20 * MEGABYTE


def test_endless_pipelining_is_not_queued() -> None:
    app = Recorder()
    with served(app) as running:
        before = resident()
        wait = GET.replace(b"/a", b"/wait")
        with running.call() as caller:
            caller.socket.settimeout(0.5)  # the server may also simply not read on
            assert caller.say(wait).say_while_heard(GET * 2_000, 50 * MEGABYTE) < 20 * MEGABYTE
        app.gate.set()
        assert resident() - before < 20 * MEGABYTE
        assert len(app.asked) <= Limits().pipelined + 1


def test_slow_callers_delay_nobody_and_are_all_hung_up_on() -> None:
    with served(Recorder(), limits=SHORT) as running, ExitStack() as open_calls:
        slow = [open_calls.enter_context(running.call()) for _ in range(200)]
        for number, caller in enumerate(slow):
            caller.say(
                (b"GET /a HTTP/1.1\r\nX-", b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab")[number % 2]
            )
        with running.call() as quick:
            assert quick.say(GET).answer().status == 200
        assert {caller.answer().status for caller in slow} == {408}
        assert all(caller.hung_up() for caller in slow)


def test_a_byte_at_a_time_does_not_win_more_time() -> None:
    with served(Recorder(), limits=SHORT) as running, running.call() as caller:
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.02):
                caller.say_while_heard(b"x", 1)

        dripping = threading.Thread(target=drip)
        caller.say(b"GET /a HTTP/1.1\r\nX: ")
        dripping.start()
        try:
            assert caller.answer().status == 408
        finally:
            stop.set()
            dripping.join()


def test_callers_that_vanish_leave_nothing_behind() -> None:
    app = Recorder()
    with served(app) as running:
        for opening in (b"", b"GET /a", b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab", GET) * 25:
            with running.call() as caller:
                caller.say(opening)
        with running.call() as caller:
            assert caller.say(GET).answer().status == 200
        assert running.begin_stop().result(10) is None
        assert {asked.path for asked in app.asked} == {"/a"}
        assert all(asked.method == "GET" for asked in app.asked)
