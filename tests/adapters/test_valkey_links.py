"""A link to Redis or Valkey, whatever its engine answers, and however the connection ends (docs/reliability.md).

The engine greets as Redis does, and afterwards says what the test lets it say. `stores.valkey.link` has the promises.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from unittest import TestCase

import hiredis
import pytest
import uvloop
from cryptography.hazmat.primitives.serialization import Encoding

from corpid.rules.failures import StoreUnavailable
from corpid.stores.valkey.link import EngineAddress, EngineLink, connect, parse_addresses
from corpid.stores.valkey.nodes import EngineNode
from tests.adapters.on_redis import PATIENCE_SECONDS, recovered
from tests.adapters.test_valkey_addresses import certify
from tests.certificates import Authority
from tests.logs import capture_logs

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    Loop = Callable[[], asyncio.AbstractEventLoop]

INFO: Final = b"redis_version:7.2.4\r\nrun_id:run\r\nrole:master\r\n"
LARGE: Final = b"v" * (8 << 20)
"""more than the sockets of both sides take"""


class ScriptedEngine:
    """Greets, then notes what it is asked, and says nothing of itself."""

    def __init__(self, *, greeting: bytes = b"", ends: bool = False) -> None:
        self.asked: asyncio.Queue[list[bytes]] = asyncio.Queue()
        self.lost = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self._greeting = greeting
        self._ends = ends
        self.writer: StreamWriter

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.writer = writer
        commands = hiredis.Reader()
        try:
            while data := await reader.read(1 << 16):
                commands.feed(data)
                while (command := commands.gets()) is not False:
                    self._hear(command)
                await self.reads.wait()
        except OSError:
            pass
        finally:
            writer.close()
            self.lost.set()

    def say(self, answer: bytes) -> None:
        self.writer.write(answer)

    def hang(self) -> None:
        """Take nothing from the socket any more, once it was read the next time."""
        self.reads.clear()

    def _hear(self, command: list[bytes]) -> None:
        if command[0] == b"CLIENT":
            self.say(b"+OK\r\n")
        elif command == [b"INFO"]:
            self.say(b"$%d\r\n%b\r\n%b" % (len(INFO), INFO, self._greeting))
            if self._ends:
                self.writer.close()
        else:
            self.asked.put_nowait(command)


class Wire:
    """Where the engine listens: "tcp", "unix" or "tls", on one sort of loop."""

    def __init__(self, kind: str, loop: Loop, path: Path) -> None:
        self.kind: Final = kind
        self._loop: Final = loop
        self._path: Final = path

    def run(self, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """To its end, after which nothing is left that was not closed."""

        async def patient() -> None:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await scenario()

        with asyncio.Runner(loop_factory=self._loop) as runner:
            runner.run(patient())
        gc.collect()  # what was not closed warns, and a warning is an error

    @asynccontextmanager
    async def url(self, engine: ScriptedEngine) -> AsyncIterator[str]:
        if self.kind == "unix":
            place = self._path / "socket"
            server = await asyncio.start_unix_server(engine.serve, place)
            url = f"unix://{place}"
        else:
            server = await asyncio.start_server(engine.serve, "localhost", 0, ssl=self._tls())
            host = f"localhost:{server.sockets[0].getsockname()[1]}"
            url = (
                f"rediss://{host}/0?ssl_ca_certs={self._path}/authority.pem"
                if self.kind == "tls"
                else f"redis://{host}"
            )
        async with server:
            yield url
            engine.reads.set()

    @asynccontextmanager
    async def link(self, engine: ScriptedEngine) -> AsyncIterator[EngineLink]:
        async with self.url(engine) as url:
            [address] = parse_addresses(url)
            link = await connect(address)
            try:
                yield link
            finally:
                await link.close()
                engine.reads.set()
                await engine.lost.wait()

    def _tls(self) -> ssl.SSLContext | None:
        if self.kind != "tls":
            return None
        authority = Authority("Authority")
        (self._path / "authority.pem").write_bytes(authority.chain[0].public_bytes(Encoding.PEM))
        certify(self._path, authority)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._path / "certificate.pem", self._path / "key.pem")
        return context


@pytest.fixture(
    params=[pytest.param(asyncio.new_event_loop, marks=pytest.mark.full), uvloop.new_event_loop],
    ids=["asyncio", "uvloop"],
)
def loop(request: pytest.FixtureRequest) -> Loop:
    made: Loop = request.param
    return made


@pytest.fixture(params=["tcp", "unix", "tls"])
def wire(request: pytest.FixtureRequest, loop: Loop, tmp_path: Path) -> Wire:
    return Wire(request.param, loop, tmp_path)


@pytest.fixture
def tcp(loop: Loop, tmp_path: Path) -> Wire:
    return Wire("tcp", loop, tmp_path)


def asking(link: EngineLink, *names: str) -> list[asyncio.Task[list[Any]]]:
    """A request each, in this order."""
    return [asyncio.create_task(link.ask(("GET", name))) for name in names]


async def heard(engine: ScriptedEngine, *names: str) -> None:
    for name in names:
        assert await engine.asked.get() == [b"GET", name.encode()]


async def failures(requests: list[asyncio.Task[list[Any]]]) -> list[str]:
    """What each says, all of which fail as an engine that is not there."""
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    return [str(outcome) for outcome in outcomes]


async def each_gets_its_own_answer_however_the_answers_are_cut(wire: Wire, answers: Any) -> None:
    engine = ScriptedEngine()
    async with wire.link(engine) as link:
        requests = asking(link, *answers)
        await heard(engine, *answers)
        for byte in b"".join(said for said, _ in answers.values()):
            engine.say(bytes([byte]))
            await asyncio.sleep(0)
        assert await asyncio.gather(*requests) == [[answer] for _, answer in answers.values()]


def test_each_gets_its_own_answer_however_the_answers_are_cut(wire: Wire) -> None:
    answers: dict[str, tuple[bytes, Any]] = {
        "value": (b"$6\r\nva\r\nue\r\n", b"va\r\nue"),
        "nothing": (b"$-1\r\n", None),
        "no list": (b"*-1\r\n", None),
        "empty": (b"$0\r\n\r\n", b""),
        "number": (b":-7\r\n", -7),
        "rows": (b"*2\r\n*3\r\n:0\r\n$-1\r\n*0\r\n+OK\r\n", [[0, None, []], b"OK"]),
        "status": (b"+OK\r\n", b"OK"),
    }

    wire.run(partial(each_gets_its_own_answer_however_the_answers_are_cut, wire, answers))


async def commands_of_one_iteration_of_the_loop_arrive_together_and_in_order(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        engine.reads.clear()  # it reads once, then no more
        requests = asking(link, *(str(number) for number in range(50)))
        await heard(engine, *(str(number) for number in range(50)))
        engine.say(b":1\r\n" * 50)
        assert await asyncio.gather(*requests) == [[1]] * 50


def test_commands_of_one_iteration_of_the_loop_arrive_together_and_in_order(tcp: Wire) -> None:
    tcp.run(partial(commands_of_one_iteration_of_the_loop_arrive_together_and_in_order, tcp))


async def what_was_not_sent_before_the_link_ended_is_never_sent(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        requests = asking(link, "a")
        asyncio.get_running_loop().call_soon(link.end, "over")
        assert await failures(requests) == [f"{link.address.name}: over"]
        engine.reads.set()
    await engine.lost.wait()
    assert engine.asked.empty()


def test_what_was_not_sent_before_the_link_ended_is_never_sent(tcp: Wire) -> None:
    tcp.run(partial(what_was_not_sent_before_the_link_ended_is_never_sent, tcp))


async def a_refusal_is_for_the_one_who_asked_even_within_a_list(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        requests = asking(link, "a", "b", "c")
        await heard(engine, "a", "b", "c")
        engine.say(b"-ERR not \xff this\r\n*2\r\n-ERR inner\r\n:1\r\n$1\r\nc\r\n")
        with pytest.raises(StoreUnavailable, match="ERR not \N{REPLACEMENT CHARACTER} this"):
            await requests[0]
        [[inner, number]] = await requests[1]
        assert (str(inner), number) == ("ERR inner", 1)
        assert await requests[2] == [b"c"]


def test_a_refusal_is_for_the_one_who_asked_even_within_a_list(tcp: Wire) -> None:
    tcp.run(partial(a_refusal_is_for_the_one_who_asked_even_within_a_list, tcp))


async def large_questions_and_answers_arrive_whole(wire: Wire) -> None:
    engine = ScriptedEngine()
    async with wire.link(engine) as link:
        requests = [asyncio.create_task(link.ask(("SET", "k", LARGE), ("GET", "k"))), *asking(link, "next")]
        assert await engine.asked.get() == [b"SET", b"k", LARGE]
        engine.say(b"+OK\r\n$%d\r\n%b\r\n:1\r\n" % (len(LARGE), LARGE))
        assert await asyncio.gather(*requests) == [[b"OK", LARGE], [1]]


def test_large_questions_and_answers_arrive_whole(wire: Wire) -> None:
    wire.run(partial(large_questions_and_answers_arrive_whole, wire))


async def a_command_that_cannot_be_written_takes_no_answer_from_another(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        wrong: Any = None
        with pytest.raises(TypeError):
            await link.ask(("GET", "a"), ("SET", "b", wrong))
        requests = asking(link, "c", "d")
        await heard(engine, "c", "d")
        engine.say(b":1\r\n:2\r\n")
        assert await asyncio.gather(*requests) == [[1], [2]]


def test_a_command_that_cannot_be_written_takes_no_answer_from_another(tcp: Wire) -> None:
    tcp.run(partial(a_command_that_cannot_be_written_takes_no_answer_from_another, tcp))


async def who_gives_up_half_way_takes_no_answer_from_another(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        given_up = asyncio.create_task(link.ask(("GET", "a"), ("GET", "b"), ("GET", "c")))
        requests = asking(link, "d")
        await heard(engine, "a", "b", "c", "d")
        engine.say(b":1\r\n")
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        engine.say(b":2\r\n-ERR three\r\n:4\r\n")
        assert await requests[0] == [4]


def test_who_gives_up_half_way_takes_no_answer_from_another(tcp: Wire) -> None:
    tcp.run(partial(who_gives_up_half_way_takes_no_answer_from_another, tcp))


async def an_answer_of_a_later_protocol_is_an_answer(tcp: Wire, false: bytes) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        requests = asking(link, "a", "b")
        await heard(engine, "a", "b")
        engine.say(false + b":1\r\n")
        [[first], [second]] = await asyncio.gather(*requests)
        assert not first
        assert second == 1


@pytest.mark.parametrize("false", [b"#f\r\n", b",0\r\n", b"_\r\n"])
def test_an_answer_of_a_later_protocol_is_an_answer(tcp: Wire, false: bytes) -> None:
    """Else all later answers would go to others than those who asked."""
    tcp.run(partial(an_answer_of_a_later_protocol_is_an_answer, tcp, false))


async def an_answer_to_no_question_is_given_to_nobody(unasked: bytes, tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        engine.say(unasked)
        await link.ended
        with pytest.raises(StoreUnavailable, match="what was not asked"):
            await link.ask(("GET", "a"))
    assert engine.asked.empty()


@pytest.mark.parametrize("unasked", [b"+OK\r\n", b"-ERR what\r\n", b"$9\r\nhalf"])
def test_an_answer_to_no_question_is_given_to_nobody(tcp: Wire, unasked: bytes) -> None:
    tcp.run(partial(an_answer_to_no_question_is_given_to_nobody, unasked, tcp))


async def an_answer_too_many_to_the_greeting_is_given_to_nobody(unasked: bytes, wire: Wire) -> None:
    engine = ScriptedEngine(greeting=unasked)
    async with wire.url(engine) as url:
        with pytest.raises(StoreUnavailable, match="answered more than it was asked"):
            await connect(*parse_addresses(url))
        await engine.lost.wait()


@pytest.mark.parametrize("unasked", [b"+OK\r\n", b"$9\r\nhalf"])
def test_an_answer_too_many_to_the_greeting_is_given_to_nobody(wire: Wire, unasked: bytes) -> None:
    wire.run(partial(an_answer_too_many_to_the_greeting_is_given_to_nobody, unasked, wire))


async def an_engine_that_leaves_after_greeting_is_found_to_have_left(wire: Wire, asked_late: Any) -> None:
    engine = ScriptedEngine(ends=True)
    async with wire.url(engine) as url:
        with pytest.raises(StoreUnavailable):
            await asked_late(url)
        await engine.lost.wait()
    assert engine.asked.empty()


async def asked_late(url: str) -> None:
    link = await connect(*parse_addresses(url))
    await link.ended
    await link.close()
    await link.ask(("GET", "a"))


def test_an_engine_that_leaves_after_greeting_is_found_to_have_left(wire: Wire) -> None:
    """Whether the end comes with the greeting or just after it."""
    wire.run(partial(an_engine_that_leaves_after_greeting_is_found_to_have_left, wire, asked_late))


async def the_end_of_a_connection_fails_everything_unanswered_and_nothing_is_asked_twice(wire: Wire, how: str) -> None:
    engine = ScriptedEngine()
    async with wire.link(engine) as link:
        requests = asking(link, "a", "b", "c")
        await heard(engine, "a", "b", "c")
        engine.say(b":1\r\n$9\r\nhalf")
        assert await requests[0] == [1]
        transport = engine.writer.transport
        transport.close() if how == "close" else transport.abort()
        assert all(reason.startswith(link.address.name) for reason in await failures(requests[1:]))
        await link.ended
        with pytest.raises(StoreUnavailable):
            await link.ask(("GET", "d"))
    assert engine.asked.empty()


@pytest.mark.parametrize("how", ["close", "abort"])
def test_the_end_of_a_connection_fails_everything_unanswered_and_nothing_is_asked_twice(wire: Wire, how: str) -> None:
    wire.run(partial(the_end_of_a_connection_fails_everything_unanswered_and_nothing_is_asked_twice, wire, how))


async def an_engine_that_says_no_more_and_reads_no_more_fails_everything(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        engine.hang()
        requests = [asyncio.create_task(link.ask(("SET", "k", LARGE, LARGE))), *asking(link, "a")]
        await asyncio.sleep(0)
        engine.writer.write_eof()
        await failures(requests)


def test_an_engine_that_says_no_more_and_reads_no_more_fails_everything(tcp: Wire) -> None:
    """The end of its answers is enough, though not all was sent yet."""
    tcp.run(partial(an_engine_that_says_no_more_and_reads_no_more_fails_everything, tcp))


async def closing_a_link_to_an_engine_that_hangs_leaves_nothing_open_and_nothing_to_be_sent(wire: Wire) -> None:
    engine = ScriptedEngine()
    async with wire.link(engine) as link:
        engine.hang()
        requests = [asyncio.create_task(link.ask(("SET", "k", LARGE, LARGE))), *asking(link, "a")]
        await asyncio.sleep(0)
        await link.close()
        assert all("closed" in reason for reason in await failures(requests))
    assert engine.asked.empty()


def test_closing_a_link_to_an_engine_that_hangs_leaves_nothing_open_and_nothing_to_be_sent(wire: Wire) -> None:
    wire.run(partial(closing_a_link_to_an_engine_that_hangs_leaves_nothing_open_and_nothing_to_be_sent, wire))


async def an_engine_that_is_far_behind_is_asked_nothing_more_until_it_answers(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        many = asyncio.create_task(link.ask(*[("GET", "a")] * 10_001))
        await heard(engine, "a")
        with pytest.raises(StoreUnavailable, match="10001 commands wait"):
            await link.ask(("GET", "b"))
        engine.say(b":1\r\n" * 10_001)
        assert await many == [1] * 10_001
        [later] = asking(link, "c")
        await heard(engine, *["a"] * 10_000, "c")
        engine.say(b":2\r\n")
        assert await later == [2]


def test_an_engine_that_is_far_behind_is_asked_nothing_more_until_it_answers(tcp: Wire) -> None:
    tcp.run(partial(an_engine_that_is_far_behind_is_asked_nothing_more_until_it_answers, tcp))


async def many_that_ask_while_the_connection_ends_fail_quietly(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        engine.writer.transport.abort()
        await failures(asking(link, *map(str, range(100))))


def test_many_that_ask_while_the_connection_ends_fail_quietly(tcp: Wire) -> None:
    with TestCase().assertNoLogs(level="WARNING"):
        tcp.run(partial(many_that_ask_while_the_connection_ends_fail_quietly, tcp))


async def garbage_fails_everything_after_it(tcp: Wire, garbage: bytes) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        requests = asking(link, "a", "b", "c")
        await heard(engine, "a", "b", "c")
        engine.say(b":1\r\n" + garbage + b":2\r\n:3\r\n")
        assert await requests[0] == [1]
        await failures(requests[1:])
        assert link.ended.done()


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b":1x\r\n", b"%1\r\n*0\r\n:1\r\n"])
def test_garbage_fails_everything_after_it(tcp: Wire, garbage: bytes) -> None:
    tcp.run(partial(garbage_fails_everything_after_it, tcp, garbage))


async def a_node_that_became_a_replica_is_asked_nothing_more(tcp: Wire) -> None:
    engine = ScriptedEngine()
    async with tcp.link(engine) as link:
        requests = asking(link, "a", "b")
        await heard(engine, "a", "b")
        engine.say(b"-READONLY You can't write against a read only replica.\r\n:2\r\n")
        first, second = await failures(requests)
        assert "READONLY" in first
        assert "replica of another" in second
        with pytest.raises(StoreUnavailable, match="replica of another"):
            await link.ask(("GET", "c"))


def test_a_node_that_became_a_replica_is_asked_nothing_more(tcp: Wire) -> None:
    tcp.run(partial(a_node_that_became_a_replica_is_asked_nothing_more, tcp))


class Clock:
    """Asks a node for its time, which is all that it looks at."""

    look_seconds = 0.01

    def __init__(self) -> None:
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.reasons: list[str] = []

    async def examine(self, link: EngineLink) -> None:
        await link.time()

    def lost(self, address: EngineAddress, reason: StoreUnavailable) -> None:
        self.reasons.append(f"{reason}")


async def a_node_that_answers_in_another_form_is_unreachable_until_it_does_not(tcp: Wire, answer: bytes) -> None:
    engine, clock = ScriptedEngine(), Clock()
    async with tcp.url(engine) as url:
        with capture_logs() as logged:
            node = EngineNode(parse_addresses(url)[0], clock)
            for _ in range(3):
                assert await engine.asked.get() == [b"TIME"]
                engine.say(answer)
            with pytest.raises(StoreUnavailable, match="answers in a form that CorpID does not know"):
                await node.wait_for_link()
        assert [line["event"] for line in logged] == ["engine_answer_unknown"]
        assert all("does not know" in reason for reason in clock.reasons)
        assert await engine.asked.get() == [b"TIME"]
        engine.say(b"*2\r\n+1\r\n+0\r\n")
        await recovered(node.wait_for_link)
        await node.close()
        await engine.lost.wait()


@pytest.mark.parametrize("answer", [b"+soon\r\n", b"*1\r\n+1\r\n", b"*2\r\n+a\r\n+b\r\n", b"*-1\r\n"])
def test_a_node_that_answers_in_another_form_is_unreachable_until_it_does_not(tcp: Wire, answer: bytes) -> None:
    """One line of the log, and the node is asked again: the task that keeps it does not end."""
    tcp.run(partial(a_node_that_answers_in_another_form_is_unreachable_until_it_does_not, tcp, answer))
