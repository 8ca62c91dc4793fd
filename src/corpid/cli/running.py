"""A command's work, and its refusals as sentences."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any, TypeVar

from corpid.cli import output
from corpid.engines import StartError
from corpid.flows.directory.write import Refused
from corpid.ports import Conflict, LastOwnerRemoved, PasswordsBusy, SecretUnreadable, StoreUnavailable
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.nodes import DirectoryError
from corpid.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


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


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do a command's work.

    A refusal becomes a sentence on stderr and exit code 1.
    """
    try:
        return asyncio.run(work)
    except Refused as error:
        output.fail(*map(str, error.args))
    except (Forbidden, SettingsError, StartError, SecretUnreadable) as error:
        output.fail(str(error))
    except DirectoryError as error:
        output.fail(*error.lines(), "Nothing was changed.")
    except LastOwnerRemoved as error:
        output.fail(f"{error}.", "Nothing was changed.")
    except Conflict as error:
        output.fail(f"The database refused this: {error}")
    except StoreUnavailable as error:
        output.fail(f"This cannot be done at the moment: {error}")
    except PasswordsBusy:
        output.fail("Too many passwords are being hashed; try again in a moment.")
