"""SIGTERM and Ctrl-C, for commands that run until they are stopped."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


def on_stop(action: Callable[[], object]) -> None:
    """Do something at SIGTERM or Ctrl-C, instead of ending at once.

    Inside the loop.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, action)


def stop_event() -> asyncio.Event:
    """An event that SIGTERM or Ctrl-C sets.

    Inside the loop.
    """
    stopped = asyncio.Event()
    on_stop(stopped.set)
    return stopped
