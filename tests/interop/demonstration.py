"""A running demo, in a thread and a loop of its own."""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvloop

from corpid_dev.demo.demo import Demo, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


PATIENCE = 90.0


@contextmanager
def demonstrated(folder: Path, **options: Any) -> Iterator[Demo]:
    """A demo on free ports; the options are those of `running`."""
    started: queue.Queue[Demo | BaseException] = queue.Queue()
    stop = threading.Event()

    async def main() -> None:
        async with running(folder, first_port=0, **options) as demo:
            started.put(demo)
            while not stop.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.01)

    def run() -> None:
        try:
            uvloop.run(main())
        except BaseException as error:  # noqa: BLE001 - told to the test
            started.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        found = started.get(timeout=PATIENCE)
        assert not isinstance(found, BaseException), found
        yield found
    finally:
        stop.set()
        thread.join(PATIENCE)
