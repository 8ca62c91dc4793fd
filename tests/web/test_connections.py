"""How many connections a process holds, and who makes room for a newcomer (D47); with TLS and without."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from corpid.web.http.connections import Limits
from corpid.web.http.server import server_context
from tests.web.served import PATIENCE, SHORT, Caller, Recorder, Served, served
from tests.web.test_tls import trusting, write_pair

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

GET = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
MOST = 8
FEW = Limits(connections=MOST)


class Place:
    """A server with few places, called over TLS or without."""

    def __init__(self, app: Recorder, running: Served, tls: ssl.SSLContext | None) -> None:
        self.app = app
        self.running = running
        self._tls = tls

    def call(self) -> Caller:
        return self.running.call(tls=self._tls)


@pytest.fixture(params=["http", "https"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    own_tls: ssl.SSLContext | None = None
    caller_tls: ssl.SSLContext | None = None
    if request.param == "https":
        pair = write_pair(tmp_path)
        own_tls, caller_tls = server_context(*pair), trusting(pair[0])
    app = Recorder()
    with served(app, limits=FEW, tls=own_tls) as running:
        yield Place(app, running, caller_tls)


def test_of_many_that_say_nothing_the_oldest_make_room(place: Place) -> None:
    """D47: with TLS, also those that have not shaken hands."""
    with ExitStack() as opened:
        silent = [
            opened.enter_context(socket.create_connection(("127.0.0.1", place.running.port), timeout=PATIENCE))
            for _ in range(5 * MOST)
        ]
        with place.call() as caller:
            assert caller.say(GET).answer().status == 200
            assert len(place.running.server.open_connections) == MOST
        assert silent[0].recv(1) == b""


def test_whoever_has_asked_before_stays_before_those_that_never_did(place: Place) -> None:
    with ExitStack() as opened:
        kept = opened.enter_context(place.call())
        assert kept.say(GET).answer().status == 200
        for _ in range(3 * MOST):
            opened.enter_context(place.call())
        assert kept.say(GET).answer().status == 200


def test_where_all_have_asked_the_one_that_rests_longest_makes_room(place: Place) -> None:
    with ExitStack() as opened:
        callers = [opened.enter_context(place.call()) for _ in range(MOST)]
        for caller in (*callers, callers[0]):
            assert caller.say(GET).answer().status == 200
        with place.call() as newcomer:
            assert newcomer.say(GET).answer().status == 200
        assert callers[1].hung_up()
        assert callers[0].say(GET).answer().status == 200


def test_nobody_who_waits_for_an_answer_makes_room(place: Place) -> None:
    with ExitStack() as opened:
        callers = [opened.enter_context(place.call()) for _ in range(MOST)]
        for caller in callers:
            caller.say(GET.replace(b"/a", b"/wait"))
        end = time.monotonic() + PATIENCE
        while len(place.app.asked) < MOST:
            assert time.monotonic() < end
            time.sleep(0.01)
        with socket.create_connection(("127.0.0.1", place.running.port), timeout=PATIENCE) as newcomer:
            assert newcomer.recv(1) == b""
        place.app.gate.set()
        assert {caller.answer().status for caller in callers} == {200}


def test_whoever_leaves_or_fails_to_shake_hands_takes_no_place(place: Place) -> None:
    for _ in range(3 * MOST):
        with socket.create_connection(("127.0.0.1", place.running.port), timeout=PATIENCE) as caller:
            caller.sendall(b"\x00\x01\x02\r\n\r\n")
            caller.settimeout(PATIENCE)
            while caller.recv(1 << 12):
                pass
    with place.call() as caller:
        assert caller.say(GET).answer().status == 200


def test_a_connection_that_says_nothing_has_the_time_of_a_head_and_not_that_of_an_idle_one() -> None:
    """D47: 10 seconds; what has asked before may rest longer."""
    patient = replace(SHORT, idle_seconds=60.0)
    with served(Recorder(), limits=patient) as running, running.call() as asked, running.call() as silent:
        assert asked.say(GET).answer().status == 200
        assert silent.hung_up()
        assert asked.say(GET).answer().status == 200


FILES = """
import resource
from corpid.web.http.connections import OTHER_FILES, files_for
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 2000))
print(files_for(500, 40) == 500, resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 540 + OTHER_FILES)
print(files_for(4000, 40) == 1960 - OTHER_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 2000)
"""


def test_a_process_lets_itself_open_as_many_files_as_it_needs_and_the_system_allows() -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 2000
    told = subprocess.run([sys.executable, "-c", FILES], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["True"] * 4
