"""The command `corpid`: one file per subject.

A file is loaded when one of its commands is asked for, so a command pays for the imports of its own subject only.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from contextlib import contextmanager
from copy import copy
from functools import cache
from importlib import import_module
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_name, get_group

from corpid import __version__
from corpid.rules.characters import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from typer.models import CommandInfo


class CommandEntry(NamedTuple):
    """A command or a subject, as the list shows it."""

    module: str
    """relative to this package, or absolute"""
    name: str
    """what it is called there: a function, or a `typer.Typer`"""
    help: str
    """of a function the first paragraph of its docstring"""


COMMANDS: Final = {
    "serve": CommandEntry(".serve", "serve", "Run the provider until SIGTERM or Ctrl-C."),
    "migrate": CommandEntry(".maintenance", "migrate", "Bring the database's schema up to this version."),
    "apply": CommandEntry(".directory", "apply", "Apply a directory file."),
    "export": CommandEntry(".directory", "export", "Write the directory as a file, without secrets."),
    "backup": CommandEntry(".maintenance", "backup", "Copy the database to a new file, also while servers use it."),
    "restore": CommandEntry(".maintenance", "restore", "Replace the database with a backup, while no server runs."),
    "doctor": CommandEntry(".doctor", "doctor", "Examine a running deployment: proxy, TLS, clocks, keys, engines."),
    "client": CommandEntry(
        ".client",
        "app",
        "Clients: add, update, migration, refusals, keys, list, show, disable, enable, remove, drop-keys.",
    ),
    "user": CommandEntry(
        ".user",
        "app",
        "People: list, show, add, update, remove, disable, enable; import, invite, link, factors, reset-password, "
        "reset-factors, unlock, erase.",
    ),
    "entity": CommandEntry(
        ".entities", "entity_commands", "Entities: list, show, review, add, update, remove, disable, enable."
    ),
    "membership": CommandEntry(
        ".entities",
        "membership_commands",
        "Memberships of people in entities: list, show, invite, resend, add, update, remove, disable, enable.",
    ),
    "provisioning-token": CommandEntry(
        ".entities", "token_commands", "Tokens by which SCIM clients provision an entity: add, list, remove."
    ),
    "service": CommandEntry(
        ".records", "service", "Services at which people have roles: list, show, add, update, remove, disable, enable."
    ),
    "role": CommandEntry(".records", "role", "Roles of people: list, show, add, update, remove."),
    "administrator": CommandEntry(
        ".records", "administrator", "Administrators of entities: list, show, add, update, remove."
    ),
    "operator": CommandEntry(".records", "operator", "Operators of the deployment: list, show, add, update, remove."),
    "third-party": CommandEntry(
        ".entities",
        "third_party_commands",
        "Third parties, which act for other entities: list, show, offer, accept, decline, end.",
    ),
    "approval": CommandEntry(".entities", "approval_commands", "Requested changes: list, show, approve, decline."),
    "key": CommandEntry(
        ".key",
        "app",
        "Signing keys and audit keys: list, rotate, revoke, request-certificate, certify; secrets at rest: rewrap.",
    ),
    "maintenance": CommandEntry(
        ".maintenance",
        "app",
        "Maintenance: on, off, status; old audit entries: prune; after pg_restore: after-restore; restart of Redis or "
        "Valkey: close-store, open-store.",
    ),
    "audit": CommandEntry(".audit", "app", "The audit: list, verify, export, seal, stream, erase."),
}
_OF_THE_KIT: Final = ("demo", "sandbox", "rp-new", "rp-check", "testing")
"""commands of the developer kit, which is another package"""


@cache
def _kit() -> tuple[dict[str, CommandEntry], str]:
    """The developer kit's commands, and why it is unusable.

    Each entry point of `corpid.commands` is a mapping like COMMANDS. None replaces a command of COMMANDS.
    """
    from corpid import developer_kit  # noqa: PLC0415 - most commands do without it

    try:
        found = developer_kit.load("corpid.commands")
        return {name: CommandEntry(*listed) for commands in found for name, listed in commands.items()}, ""
    except developer_kit.KitUnusable as error:
        return {}, str(error)
    except (AttributeError, TypeError):
        return {}, f"the commands of {developer_kit.DISTRIBUTION} are no list of commands; reinstall or remove it"


@cache
def _tell_of_unusable_kit() -> None:
    """Say once why commands are missing from the list."""
    _, reason = _kit()
    if reason:
        from corpid.cli import output  # noqa: PLC0415 - the list of all commands does without it

        output.warn(reason)


def find_commands() -> dict[str, CommandEntry]:
    """Every command that is installed."""
    return {**_kit()[0], **COMMANDS}


def _shown(commands: Mapping[str, CommandEntry]) -> dict[str, TyperCommand]:
    return {name: TyperCommand(name, help=listed.help) for name, listed in commands.items()}


@contextmanager
def _printable_refusals() -> Iterator[None]:
    """Make typer's refusals printable, since they repeat the arguments."""
    try:
        yield
    except typer.TyperException as error:
        error.message = printable(error.message)
        raise


class _Commands(TyperGroup):
    """All commands; a refusal of their arguments does nothing to the terminal.

    They are listed, completed and suggested by name and help alone. Those of the developer kit are looked for only
    where a name is none of ours, and for the list. Completion has no word about it.
    """

    def __init__(self, **given: Any) -> None:  # noqa: ANN401
        super().__init__(**given)
        self._own = self.commands
        self.commands = {**_shown(COMMANDS), **self._own}

    def list_commands(self, context: Any) -> list[str]:  # noqa: ANN401
        self.commands = {**_shown(find_commands()), **self._own}
        if not context.resilient_parsing:
            _tell_of_unusable_kit()
        return super().list_commands(context)

    def resolve_command(self, context: Any, arguments: list[str]) -> Any:  # noqa: ANN401
        asked = arguments[0] if arguments else ""
        if asked not in self.commands:
            commands, reason = _kit()
            if asked in _OF_THE_KIT and asked not in commands and not context.resilient_parsing:
                from corpid.cli import output  # noqa: PLC0415 - the list of all commands does without it

                missing = f"corpid {asked} is part of the developer kit, the package corpid-dev, which"
                if reason:
                    output.fail(f"{missing} cannot be used:", reason)
                output.fail(f"{missing} is not installed here")
            self.list_commands(context)
            if not context.resilient_parsing:  # a misspelt one may be of the kit that is not here
                self.commands = {**{name: TyperCommand(name) for name in _OF_THE_KIT}, **self.commands}
        name, command, rest = super().resolve_command(context, arguments)
        if name is None or name in self._own:  # None: completion asks for one that does not exist
            return name, command, rest
        return name, load_command(name, rest[0] if rest else ""), rest

    def make_context(self, *arguments: Any, **more: Any) -> Any:  # noqa: ANN401
        with _printable_refusals():
            return super().make_context(*arguments, **more)

    def invoke(self, context: Any) -> Any:  # noqa: ANN401
        with _printable_refusals():
            return super().invoke(context)


_REASON_CHARACTERS: Final = 500
_FIRST: Final = ("list", "show", "add", "update", "remove", "disable", "enable")
app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="The reason, kept in the audit with what the command changes.")
    ] = "",
) -> None:
    """An OpenID Provider for people who act for organisations."""
    if not reason:
        return
    # Most commands come without a reason, and the list of all commands does without these.
    from corpid import engines  # noqa: PLC0415
    from corpid.cli import output  # noqa: PLC0415

    if len(reason) > _REASON_CHARACTERS or not reason.isprintable():
        output.fail(f"--reason takes one line of at most {_REASON_CHARACTERS} characters")
    before = engines.reason.set(reason)
    context.call_on_close(lambda: engines.reason.reset(before))


@app.command()
def version() -> None:
    """Print the version."""
    from corpid.cli import output  # noqa: PLC0415 - the list of all commands does without it

    output.say(__version__)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Collect no garbage while modules load, which stay until the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _keep_command(subject: typer.Typer, wanted: str) -> typer.Typer:
    """The subject with the one command of this name.

    Unchanged if it has none.
    """
    of_name = [
        each
        for each in subject.registered_commands
        if each.callback and (each.name or get_command_name(each.callback.__name__)) == wanted
    ]
    if not of_name:
        return subject
    narrowed = copy(subject)
    narrowed.registered_commands = of_name
    return narrowed


def _place(registered: CommandInfo) -> int:
    """The place in the help of a subject."""
    return _FIRST.index(registered.name) if registered.name in _FIRST else len(_FIRST)


@cache
@_without_collection()
def load_command(name: str, wanted: str = "") -> Any:  # noqa: ANN401 - typer keeps the type of its commands to itself
    """A command or a subject, as typer runs it.

    Of a subject only the command `wanted` is made, if it has one of this name: each takes its time.
    """
    listed = COMMANDS.get(name) or find_commands()[name]
    found = getattr(import_module(listed.module, __name__), listed.name)
    if isinstance(found, typer.Typer):
        found = _keep_command(found, wanted)
        found.registered_commands.sort(key=_place)
    holder = typer.Typer()
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name, help=listed.help)
    else:
        holder.command(name)(found)
    for registered in (found if isinstance(found, typer.Typer) else holder).registered_commands:
        # The lines of a docstring are those of the source; a terminal has its own width.
        paragraphs = (getdoc(registered.callback) or "").split("\n\n")
        registered.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    return get_group(holder).commands[name]


def report_unforeseen(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an unforeseen exception without its text.

    Python's own hook would print it as it is.
    """
    from corpid.cli import output  # noqa: PLC0415 - the list of all commands does without it

    output.document("".join(traceback.format_exception(kind, error, trace)), error=True)


def main() -> None:
    """The entry point of the command line."""
    sys.excepthook = report_unforeseen
    # Settings have passwords in them, and plugins of other packages would see them; looking for some takes time, too.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    app()
