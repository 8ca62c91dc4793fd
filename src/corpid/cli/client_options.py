"""Options of client members, made from their declarations (`CLIENT_MEMBERS`)."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from corpid.cli import output
from corpid.rules.directory.sections import NOTHING
from corpid.rules.oauth.records import CLIENT_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.rules.oauth.client_members import Declared, Form

_TYPES: Final[Mapping[Form, type]] = {"key set": Path, "flag": bool, "number": int}
_METAVARS: Final[Mapping[Form, str]] = {"day": "DATE"}
OPTIONS: Final = {each.option: each for each in CLIENT_MEMBERS.values() if each.member.help}
"""parameter of the commands → the member that it sets"""


def takes_members(command: Callable[..., None], *, new: bool) -> Callable[..., None]:
    """The command with an option for each member, before its own.

    It is called with `members`, as in a directory file: None for what was not given. `new`: the client is a new one,
    which needs some members and gets defaults; else `none` empties what may be empty.
    """

    @functools.wraps(command)
    def run(**given: object) -> None:
        members = {each.name: _value(each, given.pop(option), new=new) for option, each in OPTIONS.items()}
        command(**given, members=members)

    own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "members"]
    options = [_parameter(option, each, new=new) for option, each in OPTIONS.items()]
    arguments = [each for each in own if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    flags = [each for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY]
    run.__signature__ = inspect.Signature([*arguments, *options, *flags])  # type: ignore[attr-defined]
    return run


def _parameter(option: str, declared: Declared, *, new: bool) -> inspect.Parameter:
    kind: Any = _TYPES.get(declared.form, str)
    is_required = new and declared.member.needed
    listed: Any = list[kind] if declared.listed else kind
    info = typer.Option(*_names(option, declared), metavar=_METAVARS.get(declared.form), help=_help(declared, new=new))
    return inspect.Parameter(
        option,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else None,
        annotation=Annotated[listed if is_required else listed | None, info],
    )


def _names(option: str, declared: Declared) -> list[str]:
    name = option.replace("_", "-")
    if declared.form == "flag":
        return [f"--{name}/--no-{name}"]
    return [f"--{each}" for each in (name, declared.member.former.replace("_", "-")) if each]


def _help(declared: Declared, *, new: bool) -> str:
    emptied = "none empties the list." if declared.listed else "none takes it away."
    further = declared.member.default_help if new else emptied if declared.empties else ""
    return f"{declared.member.help} {further}".strip()


def _value(declared: Declared, given: object, *, new: bool) -> object:
    if given is None or given == []:
        return None
    if declared.listed:
        return [] if not new and declared.empties and given == [NOTHING] else given
    if isinstance(given, Path):
        return output.text_of(given, expected="a JSON Web Key Set")
    return given
