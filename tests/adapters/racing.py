"""Several processes that start from one which has imported everything: `python racing.py PROGRAM BODY ADDRESS PROCESSES`.

Each is forked before anything is opened. All of them say that they are ready before any is told to go; what each
of them prints then is written as a JSON array. When one fails, the others are ended, and so does this program.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from typing import Any, BinaryIO, NamedTuple


class Racer(NamedTuple):
    """A process, and the other ends of its standard input and output."""

    pid: int
    input: BinaryIO
    output: BinaryIO


def start(code: str, program: dict[str, Any], number: int, running: list[Racer]) -> None:
    """Fork a process that executes the code with its number as second argument."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(in_read)
        os.close(out_write)
        running.append(Racer(pid, os.fdopen(in_write, "wb"), os.fdopen(out_read, "rb")))
        return
    for other in running:
        other.input.close()
        other.output.close()
    os.close(in_write)
    os.close(out_read)
    os.dup2(in_read, 0)
    os.dup2(out_write, 1)
    sys.argv[2:] = [str(number)]
    os._exit(status_of(code, program))


def status_of(code: str, program: dict[str, Any]) -> int:
    """Execute the code as a program; its exit status."""
    try:
        exec(code, program)
        sys.stdout.flush()
    except SystemExit as leaving:
        sys.stdout.flush()
        return leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:  # noqa: BLE001 - the process ends with it
        traceback.print_exc()
        return 1
    return 0


def main(imported: str, body: str, address: str, processes: int) -> int:
    program: dict[str, Any] = {"__name__": "__main__"}
    sys.argv[1:] = [address]
    exec(imported, program)
    running: list[Racer] = []
    try:
        for number in range(processes):
            start(body, program, number, running)
        if any(racer.output.readline() != b"ready\n" for racer in running):
            return 1
        for racer in running:
            racer.input.write(b"go\n")
            racer.input.flush()
        answers = [racer.output.read().decode().strip() for racer in running]
        print(json.dumps(answers), flush=True)
        return max(os.waitstatus_to_exitcode(os.waitpid(racer.pid, 0)[1]) != 0 for racer in take_all(running))
    finally:
        for racer in running:
            os.kill(racer.pid, signal.SIGKILL)
            os.waitpid(racer.pid, 0)


def take_all(running: list[Racer]) -> list[Racer]:
    """All of them, of which none is left to be ended."""
    taken = running[:]
    running.clear()
    return taken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
