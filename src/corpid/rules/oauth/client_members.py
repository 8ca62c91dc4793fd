"""Declarations of the members of a client's record.

The members themselves are in `records.Client`.

From a declaration follow the keys of a directory file, the options of `corpid client add` and `corpid client update`,
the values that can be registered, and the table in docs/directory.md.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, Union, get_args, get_origin

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Form: TypeAlias = Literal["text", "identifier", "algorithm", "url", "day", "key set", "word", "flag", "number"]
"""how one value is written; `word` is one of `values`, `algorithm` an identifier that may hold +"""


class MemberDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of a member, in addition to its type."""

    help: str = ""
    """a sentence for the option of the commands; empty: no option sets it"""
    default_help: str = ""
    """further help of `client add`, on omitting the option"""
    doc: str
    """the value, for docs/directory.md"""
    default_doc: str = ""
    """the meaning of omitting it, for docs/directory.md; empty: the record's default"""
    form: Form | None = None
    """of the value, or of each value of a list; None: as its type says"""
    limit: int = 64
    """characters of a text or identifier"""
    values: tuple[str, ...] = ()
    """the closed list of its words; a Literal type says them itself"""
    least: int = 0
    """how many values a list has at least"""
    needed: bool = False
    """a new client cannot do without it"""
    clearable: bool = False
    """`none` takes the value away"""
    concerns: str = ""
    """the field of the generations that have what it is about; empty: it concerns all of them"""
    former: str = ""
    """a former name, which files and the commands still take"""
    in_file: bool = True
    """whether a directory file may set it"""
    example: object
    """a value for tests, if one differs from the default; all examples can be registered together"""


class ClientMember(msgspec.Struct, frozen=True, kw_only=True):
    """A declared member: name, type in a closed form, and default."""

    name: str
    member: MemberDeclaration
    form: Form
    values: tuple[str, ...]
    listed: bool
    """it holds a list of such values"""
    default: object

    @property
    def option(self) -> str:
        """The name of its option, with underscores.

        An option of a list names one value of it.
        """
        return self.name.removesuffix("s") if self.listed else self.name

    @property
    def is_flag_or_none(self) -> bool:
        """True for a flag that may have no value."""
        return self.form == "flag" and self.member.clearable

    @property
    def empties(self) -> bool:
        """True if `none` empties it: no value, or an empty list."""
        return self.member.clearable or (self.listed and self.member.least == 0)


_FORMS: Final[Mapping[object, Form]] = {bool: "flag", int: "number"}


def declared_members(record: type[msgspec.Struct]) -> dict[str, ClientMember]:
    """The declared members of a record, name → declaration, in its order.

    Raises TypeError for one whose form follows neither from its type nor from its declaration.
    Source: docs/architecture.md, "One declaration"
    """
    found = {}
    for field in msgspec.structs.fields(record):
        if get_origin(field.type) is not Annotated:
            continue
        annotated, member = get_args(field.type)
        default = None if field.default is msgspec.NODEFAULT else field.default
        found[field.name] = _declared(field.name, annotated, member, default)
    return found


def _declared(name: str, annotated: object, member: MemberDeclaration, default: object) -> ClientMember:
    is_list = get_origin(annotated) is tuple
    [kind] = [each for each in _alternatives(get_args(annotated)[0] if is_list else annotated) if each is not NoneType]
    values = get_args(kind) if get_origin(kind) is Literal else member.values
    form = member.form or ("word" if values else _FORMS.get(kind))
    if form is None:
        raise TypeError(f"the form of {name} does not follow from its type: declare it")
    return ClientMember(name=name, member=member, form=form, values=values, listed=is_list, default=default)


def _alternatives(annotated: object) -> tuple[object, ...]:
    return get_args(annotated) if get_origin(annotated) in {Union, _UNION} else (annotated,)


_UNION: Final = get_origin(int | None)
