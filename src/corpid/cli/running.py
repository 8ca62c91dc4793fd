"""A command's work, and its refusals as sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from corpid import settings
from corpid.cli import output
from corpid.engines import StartError, Stores, open_registry
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.changes import Conflict, LastOwnerRemoved
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.failures import PasswordsBusy, SecretUnreadable, StoreUnavailable
from corpid.settings import Settings, SettingsError

T = TypeVar("T")


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


def with_stores(work: Callable[[Stores, Settings], Awaitable[T]]) -> T:
    """Do a command's work on the stores of the settings, as `run`."""

    async def opened() -> T:
        chosen = settings.load()
        async with open_registry(chosen) as stores:
            return await work(stores, chosen)

    return run(opened())
