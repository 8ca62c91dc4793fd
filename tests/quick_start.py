"""`corpid …` in processes of its own that start quickly: forked from one that has imported the program already.

Importing takes most of what a short command or a small server takes. `Popen` and `run` are those of `subprocess` but for
that. What the import itself does, and what Python does before it, holds for processes that tests start with `subprocess`:
those of the wheel, of the demo's commands and of tests/web/test_serve_command.py.
"""

from __future__ import annotations

import array
import atexit
import builtins
import ctypes
import functools
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_PRELOADED: Final = ("alembic.operations", "alembic.runtime.migration", "asyncpg", "redis.asyncio", "uvloop")
"""what commands load only when they need it"""
_BECOME_PARENT_OF_ORPHANS: Final = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)"""
_LENGTH_BYTES: Final = 8
_UNBUFFERED: Final = "PYTHONUNBUFFERED"
_ENVIRONMENT: Final = dict(os.environ)


class LostStatusError(Exception):
    """Nobody can say how a process ended."""


class Popen(subprocess.Popen[Any]):
    """A child of this process as subprocess.Popen starts it; only for `python -m …`, `python -c …` and `corpid …`."""

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, close_fds: bool, pass_fds: Any, cwd: Any, env: Any, *rest: Any) -> None:  # fmt: skip
        _startupinfo, _creationflags, shell, *pipes = rest[:9]
        p2cread, _, _, c2pwrite, _, errwrite = pipes
        start_new_session = rest[14]
        environment = dict(os.environ if env is None else env)
        if sys.platform != "linux" or _of_python(environment) != _of_python(_ENVIRONMENT):
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest)  # type: ignore[misc]
            return
        assert not (executable or preexec_fn or pass_fds or shell)
        request = {
            "arguments": [os.fspath(each) for each in args],
            "cwd": os.fspath(cwd or Path.cwd()),
            "environment": environment,
            "new_session": bool(start_new_session),
        }
        standard = [usual if given == -1 else given for usual, given in enumerate((p2cread, c2pwrite, errwrite))]
        self.pid = _source().fork(request, standard)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        return self._waited(wait_flags)

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if _deadstate is not None:  # nobody asks any longer
            return super()._internal_poll(_deadstate)  # type: ignore[misc, no-any-return]
        if self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                ended, status = (0, 0) if self.returncode is not None else self._waited(os.WNOHANG)
                if ended == self.pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode

    def _waited(self, flags: int) -> tuple[int, int]:
        """What waitpid(2) says. Raises LostStatusError where subprocess would report success."""
        try:
            return os.waitpid(self.pid, flags)
        except ChildProcessError as error:
            raise LostStatusError(f"{self.args!r}: its exit status is lost, it was no child of this process") from error


def run(
    command: Sequence[str | Path], *, timeout: float, check: bool, capture_output: bool = False, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """What subprocess.run does, in a process that starts quickly."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} if capture_output else {}
    with Popen(command, **pipes, **options) as process:
        try:
            said, complaint = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    assert not check or process.returncode == 0, complaint
    return subprocess.CompletedProcess(process.args, process.returncode, said, complaint)


class _Source:
    """The process that others are forked from. They become children of this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.quick_start", str(number)],
                cwd=Path(__file__).parents[1], env=_ENVIRONMENT, pass_fds=(number,), stdin=subprocess.DEVNULL,
            )  # fmt: skip
        atexit.register(self.stop)

    def fork(self, request: dict[str, Any], standard: list[int]) -> int:
        """The process identifier of a new child of this process."""
        content = json.dumps(request).encode()
        with self._lock:
            # Only meanwhile, since who is left alone by others is nobody's child here; but before it is asked, since it
            # may have forked before sendall returns.
            _adopt(orphans=True)
            try:
                self._connection.sendmsg(
                    [len(content).to_bytes(_LENGTH_BYTES)],
                    [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", standard))],
                )
                self._connection.sendall(content)
                return int.from_bytes(_exactly(self._connection, _LENGTH_BYTES))
            finally:
                _adopt(orphans=False)

    def stop(self) -> None:
        self._connection.close()
        self._process.wait()


def stop() -> None:
    """End what processes are forked from; tests/conftest.py calls it at the end of the session."""
    if _source.cache_info().currsize:
        _source().stop()
        _source.cache_clear()


@functools.cache
def _source() -> _Source:
    return _Source()


def _of_python(environment: dict[str, str]) -> dict[str, str]:
    """What changes the interpreter before it runs anything: then a process is started as usual."""
    return {name: value for name, value in environment.items() if name.startswith("PYTHON") and name != _UNBUFFERED}


def _adopt(*, orphans: bool) -> None:
    done = ctypes.CDLL(None, use_errno=True).prctl(_BECOME_PARENT_OF_ORPHANS, int(orphans), 0, 0, 0)
    assert done == 0, os.strerror(ctypes.get_errno())


def _exactly(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        part = connection.recv(length - len(received))
        if not part:
            raise EOFError
        received += part
    return received


# In the process that others are forked from


def _requests(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. In the child: what it is to become; None when no more requests come."""
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, 3)
        if not head:
            return None
        request: dict[str, Any] = json.loads(_exactly(connection, int.from_bytes(head)))
        inherited = os.pipe()
        between = os.fork()
        if between == 0:
            process = os.fork()
            if process:
                os.write(inherited[1], process.to_bytes(_LENGTH_BYTES))
                os._exit(0)
            for each in inherited:
                os.close(each)
            connection.close()
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        os.waitpid(between, 0)  # from here on its child is another's
        connection.sendall(os.read(inherited[0], _LENGTH_BYTES))
        for each in inherited:
            os.close(each)


def _become(request: dict[str, Any]) -> list[str]:
    """Take over what Python gives a new process; its command line."""
    if request["new_session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if _UNBUFFERED in os.environ:
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    sys.path[0] = request["cwd"]
    return list(request["arguments"])


def _run(program: str, *arguments: str) -> None:
    """Run it in place of this module, as Python runs what its command line names."""
    option, module, rest = "-m", "corpid", list(arguments)
    if program == sys.executable:
        option, module, *rest = arguments
    sys.argv[:] = [program, *rest]
    if option == "-m":
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        assert option == "-c", option
        code, names = compile(module, "<string>", "exec"), {"__name__": "__main__", "__builtins__": builtins}
        main = globals()
        main.clear()
        main.update(names)
        exec(code, main)


def _main() -> list[str] | None:
    for name in _PRELOADED:
        importlib.import_module(name)
    commands = importlib.import_module("corpid.cli")
    for name in commands.find_commands():
        commands.load_command(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        request = _requests(connection)
    return None if request is None else _become(request)


if __name__ == "__main__" and (_line := _main()):
    _run(*_line)
