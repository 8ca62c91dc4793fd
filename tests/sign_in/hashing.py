"""Password checks that wait: a test holds the only thread, and lets it go."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from corpid.rules.authentication.passwords import COMMAND_LINE, HashingSource
from corpid.rules.failures import PasswordsBusy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sign_in.world import World


@contextmanager
def held(made: World) -> Iterator[None]:
    """No password is checked before the context ends."""
    free = threading.Event()
    made.passwords._threads.submit(lambda: free.wait(60), COMMAND_LINE)
    try:
        yield
    finally:
        free.set()


@contextmanager
def full(made: World) -> Iterator[None]:
    """Every place is taken, each by another network, so that nobody who comes displaces anybody; they are free again at the end."""
    taken = []
    with held(made):
        for number in count():
            source = HashingSource(network=str(number), account="", known=True)
            try:
                taken.append(made.passwords._threads.submit(lambda: None, source))
            except PasswordsBusy:
                break
        yield
    wait(taken)
