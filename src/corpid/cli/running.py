"""A command's work, and its refusals as sentences."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from corpid import settings
from corpid.cli import output
from corpid.engines import StartError, Stores, open_registry
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import Conflict, LastOwnerRemoved
from corpid.rules.failures import PasswordsBusy, SecretUnreadable, StoreUnavailable
from corpid.settings import SettingsError

P = ParamSpec("P")
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


def with_stores(work: Callable[[Stores], Awaitable[T]]) -> T:
    """Do a command's work on the stores of the settings, as `run`."""

    async def opened() -> T:
        async with open_registry(settings.load()) as stores:
            return await work(stores)

    return run(opened())


def on_stores(command: Callable[Concatenate[Stores, P], Awaitable[None]]) -> Callable[P, None]:
    """A command of typer from a coroutine on the stores.

    They are its first parameter, and are opened as by `with_stores`.
    """
    del command.__annotations__["stores"]  # the rest are arguments and options, which typer reads
    _, *parameters = inspect.signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def opened(*given: P.args, **named: P.kwargs) -> None:
        with_stores(lambda stores: command(stores, *given, **named))

    opened.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return opened
