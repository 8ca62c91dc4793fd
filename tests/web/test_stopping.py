"""How a server starts and stops."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from corpid.web.http.server import ListenError, bind
from tests.web.served import PATIENCE, Recorder, served

GET_WAIT = b"GET /wait HTTP/1.1\r\nHost: h\r\n\r\n"
GET = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"


def test_a_request_in_flight_is_finished_and_idle_connections_are_closed() -> None:
    app, told = Recorder(), []
    with served(app, drain_seconds=60, on_draining=lambda: told.append("draining")) as running:
        with running.call() as busy, running.call() as idle:
            assert idle.say(GET).answer().status == 200
            busy.say(GET_WAIT)
            assert app.waiting.wait(PATIENCE)
            stopped = running.begin_stop()
            assert idle.hung_up()
            assert told == ["draining"]
            app.gate.set()
            answer = busy.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert busy.hung_up()
        stopped.result(PATIENCE)
        with pytest.raises(ConnectionRefusedError):
            running.call()


def test_while_something_is_in_flight_newcomers_still_hear_that_we_are_stopping() -> None:
    app, draining = Recorder(), threading.Event()
    with served(app, drain_seconds=60, on_draining=draining.set) as running:
        with running.call() as busy:
            busy.say(GET_WAIT)
            assert app.waiting.wait(PATIENCE)
            stopped = running.begin_stop()
            assert draining.wait(PATIENCE)
            with running.call() as late:
                answer = late.say(GET).answer()
                assert (answer.status, answer.headers["connection"]) == (200, "close")
            app.gate.set()
            assert busy.answer().status == 200
        stopped.result(PATIENCE)


def test_what_takes_longer_than_the_drain_is_cut_off() -> None:
    app = Recorder()
    with served(app, drain_seconds=0.2) as running, running.call() as busy:
        busy.say(GET_WAIT)
        assert app.waiting.wait(PATIENCE)
        running.begin_stop().result(PATIENCE)
        assert b"200" not in busy.rest()


def test_a_port_that_is_taken_is_refused_with_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"port {port} on 127.0.0.1 is taken by another program"):
            bind("127.0.0.1", port)
    with pytest.raises(ListenError, match="is not an address of this machine"):
        bind("no such host", 0)
    with pytest.raises(ListenError, match=r"cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


PROGRAM = """
import asyncio, sys
from corpid.web.http.server import Server, bind, run, serve
from tests.web.served import Recorder
app = Recorder()
app.gate.set()
sockets = bind("127.0.0.1", 0)
told = lambda: print(sockets[0].getsockname()[1], flush=True)
run(serve(Server(app, on_draining=lambda: print("draining", flush=True)), sockets, on_started=told))
print("stopped", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_process_gracefully(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}
    ) as process:
        assert process.stdout is not None
        with socket.create_connection(("127.0.0.1", int(process.stdout.readline())), timeout=PATIENCE) as caller:
            caller.sendall(GET)
            assert caller.recv(100).startswith(b"HTTP/1.1 200 OK")
            process.send_signal(number)
            assert process.stdout.read().split() == ["draining", "stopped"]
        assert process.wait(PATIENCE) == 0


def test_during_the_delay_everything_goes_on_but_readyz() -> None:
    """Drain delay; a balancer needs time to notice."""
    draining = threading.Event()
    with served(Recorder(), drain_seconds=60, delay_seconds=60, on_draining=draining.set) as running:
        with running.call() as caller:
            stopped = running.begin_stop()
            assert draining.wait(PATIENCE)
            for _ in range(2):
                answer = caller.say(GET).answer()
                assert answer.status == 200
                assert answer.headers.get("connection") != "close"
            with running.call() as newcomer:
                assert newcomer.say(GET).answer().status == 200
            assert not stopped.done()
            running.loop.call_soon_threadsafe(running.server.force)
        stopped.result(PATIENCE)
