"""Declarations of what an RP receives: members, their JSON Schema, TypeScript and table rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without members: its JSON Schema, and its name in TypeScript."""

    schema: dict[str, Any]
    typescript: str
    said: str
    """its name in tables"""


@dataclass(frozen=True, slots=True)
class ListOf:
    """An array whose items have one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Either:
    """One of two shapes, as the client is registered."""

    first: Shape
    other: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of an object."""

    name: str
    shape: Shape
    meaning: str
    when: str = ""
    """when it is there; empty: always"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An object with named members."""

    name: str
    """in TypeScript, and under `$defs`"""
    about: str
    members: tuple[Member, ...]
    one_of: tuple[str, ...] = ()
    """optional members of which exactly one is there"""

    def named(self, name: str) -> Member:
        """The member with this name."""
        return next(member for member in self.members if member.name == name)


Shape: TypeAlias = "Scalar | ListOf | Either | Record"

TEXT: Final = Scalar({"type": "string"}, "string", "string")
URL: Final = Scalar({"type": "string", "format": "uri"}, "string", "URL")
DAY: Final = Scalar({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}, "string", "date `YYYY-MM-DD`")
WHOLE: Final = Scalar({"type": "integer", "minimum": 0}, "number", "number")
MOMENT: Final = Scalar({"type": "integer", "minimum": 0}, "number", "UNIX seconds")
TRUTH: Final = Scalar({"type": "boolean"}, "boolean", "boolean")
COMPACT_JWS: Final = Scalar({"type": "string", "pattern": r"^[\w-]+\.[\w-]+\.[\w-]+$"}, "string", "compact JWS")
COMPACT_JWE: Final = Scalar(
    {"type": "string", "pattern": r"^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+$"}, "string", "compact JWE"
)


def constant(value: str) -> Scalar:
    """The one value."""
    return Scalar({"const": value}, f'"{value}"', f"`{value}`")


def among(*values: str) -> Scalar:
    """One of these values."""
    listed = " or ".join(f"`{value}`" if value else "empty" for value in values)
    return Scalar({"enum": list(values)}, " | ".join(f'"{value}"' for value in values), listed)


def text_of(record: Record) -> Scalar:
    """A string that contains the record as JSON."""
    schema = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": f"#/$defs/{record.name}"},
    }
    return Scalar(schema, "string", f"string with {record.name} as JSON")


def said(shape: Shape) -> str:
    """The name of a shape in tables."""
    match shape:
        case Scalar():
            return shape.said
        case ListOf():
            return f"array of {said(shape.item)}"
        case Either():
            return f"{said(shape.first)}, or {said(shape.other)}"
        case Record():
            return f"object {shape.name}"


def schema(shape: Shape) -> dict[str, Any]:
    """The JSON Schema of a shape; records by reference."""
    match shape:
        case Scalar():
            return dict(shape.schema)
        case ListOf():
            return {"type": "array", "items": schema(shape.item)}
        case Either():
            return {"anyOf": [schema(shape.first), schema(shape.other)]}
        case Record():
            return {"$ref": f"#/$defs/{shape.name}"}


def record_schema(record: Record) -> dict[str, Any]:
    """The JSON Schema of a record, with its own members only; others are ignored."""
    made: dict[str, Any] = {
        "title": record.name,
        "description": record.about,
        "type": "object",
        "properties": {
            member.name: {**schema(member.shape), "description": described(member)} for member in record.members
        },
        "required": [member.name for member in record.members if not member.when],
    }
    if record.one_of:
        made["oneOf"] = [{"required": [name]} for name in record.one_of]
    return made


def described(member: Member) -> str:
    """Meaning and condition in one text."""
    return f"{member.meaning} ({member.when})" if member.when else member.meaning


def records(shapes: Sequence[Shape]) -> dict[str, Record]:
    """Every record that the shapes are made of, by name, each after those that it needs."""
    found: dict[str, Record] = {}
    for shape in shapes:
        for record in _inside(shape):
            if found.setdefault(record.name, record) != record:
                raise ValueError(f"two records are called {record.name}")
    return found


def _inside(shape: Shape) -> Iterator[Record]:
    match shape:
        case Scalar():
            return
        case ListOf():
            yield from _inside(shape.item)
        case Either():
            yield from _inside(shape.first)
            yield from _inside(shape.other)
        case Record():
            for member in shape.members:
                yield from _inside(member.shape)
            yield shape


def schemas_of(roots: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Name → JSON Schema of every record."""
    return {each.name: record_schema(each) for each in records(roots).values()}


def document(name: str, title: str, roots: Sequence[Record]) -> dict[str, Any]:
    """A JSON Schema document with every record under `$defs`."""
    return {"$schema": DIALECT, "$id": f"urn:corpid:schemas:{name}", "title": title, "$defs": schemas_of(roots)}


def typescript(title: str, roots: Sequence[Record]) -> str:
    """TypeScript interfaces of every record."""
    parts = [f"// {title} Made by `make tables`.\n"]
    for record in records(roots).values():
        lines = [f"\n/** {record.about} */", f"export interface {record.name} {{"]
        for member in record.members:
            mark = "?" if member.when else ""
            name = member.name if member.name.isidentifier() else f'"{member.name}"'
            lines += [f"  /** {described(member)} */", f"  {name}{mark}: {_typescript(member.shape)};"]
        parts.append("\n".join([*lines, "}\n"]))
    return "".join(parts)


def _typescript(shape: Shape) -> str:
    match shape:
        case Scalar():
            return shape.typescript
        case ListOf():
            inner = _typescript(shape.item)
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case Either():
            return f"{_typescript(shape.first)} | {_typescript(shape.other)}"
        case Record():
            return shape.name


def table(members: Sequence[Member]) -> str:
    """The members as a table."""
    rows = "".join(
        f"| `{member.name}` | {said(member.shape)} | {member.when or 'always'} | {member.meaning} |\n"
        for member in members
    )
    return f"| Member | Type | There | Meaning |\n|---|---|---|---|\n{rows}"
