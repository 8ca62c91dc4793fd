"""The command `corpid`: one file per subject."""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from corpid import __version__
from corpid import app as application
from corpid.cli import audit, client, directory, key, maintenance, output, user
from corpid.cli.database import after_restore, backup, migrate, restore
from corpid.cli.demo import demo
from corpid.cli.directory import apply, export
from corpid.cli.doctor import doctor
from corpid.cli.serve import serve
from corpid.rules.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


@contextmanager
def _printable_refusals() -> Iterator[None]:
    """Make typer's refusals printable, since they repeat the arguments."""
    try:
        yield
    except typer.TyperException as error:
        error.message = printable(error.message)
        raise


class _Commands(TyperGroup):
    """All commands; a refusal of their arguments does nothing to the terminal."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:  # noqa: ANN401
        with _printable_refusals():
            return super().make_context(*arguments, **more)

    def invoke(self, context: Any) -> Any:  # noqa: ANN401
        with _printable_refusals():
            return super().invoke(context)


app = typer.Typer(
    cls=_Commands,
    help="An OpenID Provider for people who act for organisations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

for command in (demo, serve, migrate, apply, export, backup, restore, doctor):
    app.command()(command)
_REASON_CHARACTERS: Final = 500
_SUBJECTS: Final = {
    "client": client.app,
    "user": user.app,
    "entity": directory.entity_app,
    "key": key.app,
    "maintenance": maintenance.app,
    "audit": audit.app,
}
for name, commands in _SUBJECTS.items():
    app.add_typer(commands, name=name)
maintenance.app.command()(after_restore)


@app.callback()
def options(
    *,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why: kept in the audit with what the command changes.")
    ] = "",
) -> None:
    """Take what goes before a command."""
    if len(reason) > _REASON_CHARACTERS or not reason.isprintable():
        output.fail(f"--reason takes one line of at most {_REASON_CHARACTERS} characters")
    application.reason.set(reason)


@app.command()
def version() -> None:
    """Print the version."""
    output.say(__version__)


for commands in (app, *_SUBJECTS.values()):
    for registered in commands.registered_commands:
        # The lines of a docstring are those of the source; a terminal has its own width.
        paragraphs = (getdoc(registered.callback) or "").split("\n\n")
        registered.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)


def _report_unforeseen(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an unforeseen exception without its text.

    Python's own hook would print it as it is.
    """
    output.document("".join(traceback.format_exception(kind, error, trace)), error=True)


def main() -> None:
    """The entry point of the command line."""
    sys.excepthook = _report_unforeseen
    app()
