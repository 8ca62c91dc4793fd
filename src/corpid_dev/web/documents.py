"""Documents of developer mode: the catalogue of errors, and schemas (D66).

Unlike `routes`, it needs no test people, so `corpid serve` has it, too, in developer mode.

The catalogue of reasons for refusals, as a page of developer mode (D28).

JSON Schemas, TypeScript types and OpenAPI documents, for RP developers.

They are served in developer mode only, and stand in the package as files, which `make tables` writes. A browser gets a
page for each generation, made of its OpenAPI document. What developers read is in English everywhere.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args

import msgspec
from starlette.responses import Response

from corpid.rules.oauth.refusals import ErrorCode, Reason
from corpid.texts import Phrase, phrase
from corpid.web.pages.components import BARE, Frame, PageView, ViewPart
from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import NO_STORE, page_response, see_other
from corpid.web.routes import Extension, Route, as_json, as_page
from corpid_dev.web.paths import CATALOGUE_PATH, SCHEMAS_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from corpid.web.context import WebContext

_MEDIA_TYPES: Final = {".json": "application/json; charset=utf-8", ".ts": "text/plain; charset=utf-8"}
FILES: Final = {
    file.name: (file.read_bytes(), media_type)
    for file in sorted(files("corpid_dev").joinpath("schemas").iterdir(), key=lambda each: each.name)
    for ending, media_type in _MEDIA_TYPES.items()
    if file.name.endswith(ending)
}
"""name → content and media type"""
GENERATIONS: Final = tuple(name.removesuffix(".d.ts") for name in FILES if name.endswith(".d.ts"))
_FORMATS: Final = (("JSON Schema", "{}.json"), ("TypeScript", "{}.d.ts"), ("OpenAPI", "openapi-{}.json"))
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
"""of a description, to another document"""


class Member(ViewPart, frozen=True, kw_only=True):
    """A member of an object, or a parameter of a request."""

    name: str
    types: tuple[tuple[str, str], ...]
    """of which it has one; each with the name of its table, or none"""
    required: bool
    meaning: str


class MemberTable(ViewPart, frozen=True, kw_only=True):
    """An object and its members."""

    name: str
    meaning: str
    members: tuple[Member, ...]


class Operation(ViewPart, frozen=True, kw_only=True):
    """A request, its parameters and its responses."""

    method: str
    path: str
    request: MemberTable
    responses: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]
    """status, meaning, and types as those of a member"""


class SchemaPage(PageView, frozen=True, kw_only=True):
    """The files of each generation, and the contents of one."""

    template: ClassVar[str] = "developer/schemas.html"
    heading: ClassVar[Phrase] = phrase("Schemas")
    wide: ClassVar[bool] = True

    here: str
    generations: tuple[str, ...] = GENERATIONS
    formats: tuple[tuple[str, str], ...] = _FORMATS
    """name, and file by generation"""
    generation: str = ""
    operations: tuple[Operation, ...] = ()
    objects: tuple[MemberTable, ...] = ()
    frame: Frame = BARE


async def answer_schemas(request: Request, web: WebContext) -> Response:
    """A file, the page of a generation, or the list of both.

    The list is a page for browsers, else JSON.
    """
    name = request.path_params["rest"]
    if name in FILES:
        content, media_type = FILES[name]
        return Response(content, 200, NO_STORE, media_type)
    if name in GENERATIONS or (not name and "text/html" in request.headers.get("accept", "")):
        frame = BARE if web.developer is None else Frame(up=web.developer.up)
        return page_response(request, web.renderer, build_page(web.base_path + SCHEMAS_PATH, name, frame))
    if name:
        return await not_found(request, web)
    return Response(msgspec.json.encode({"files": list(FILES)}), 200, NO_STORE, _MEDIA_TYPES[".json"])


async def lead_to_schemas(_request: Request, web: WebContext) -> Response:
    """The address without its slash leads to the list."""
    return see_other(web.base_path + SCHEMAS_PATH)


def build_page(here: str, generation: str = "", frame: Frame = BARE) -> SchemaPage:
    """The page of a generation, or of none.

    `here` is the address of the list.
    """
    operations, objects = _read_document(generation) if generation else ((), ())
    return SchemaPage(here=here, generation=generation, operations=operations, objects=objects, frame=frame)


@cache
def _read_document(generation: str) -> tuple[tuple[Operation, ...], tuple[MemberTable, ...]]:
    document = msgspec.json.decode(FILES[f"openapi-{generation}.json"][0])
    operations = tuple(
        _read_operation(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    objects = tuple(_read_object(name, schema) for name, schema in document["components"]["schemas"].items())
    return operations, objects


def _read_operation(method: str, path: str, operation: Mapping[str, Any]) -> Operation:
    parameters = tuple(
        Member(
            name=each["name"],
            types=_read_types(each["schema"]),
            required=each.get("required", False),
            meaning=_plain(each),
        )
        for each in operation.get("parameters", ())
    )
    body = _read_content(operation.get("requestBody", {}))
    request = MemberTable(
        name=operation["summary"],
        meaning=_plain(operation),
        members=parameters + (_read_object("", body).members if body else ()),
    )
    responses = tuple(
        (status, _plain(each), _read_types(_read_content(each))) for status, each in operation["responses"].items()
    )
    return Operation(method=method.upper(), path=path, request=request, responses=responses)


def _read_content(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a body, of any media type; empty without one."""
    contents: Mapping[str, Mapping[str, Any]] = holder.get("content", {})
    return next((each["schema"] for each in contents.values() if "schema" in each), {})


def _read_object(name: str, schema: Mapping[str, Any]) -> MemberTable:
    required = schema.get("required", ())
    members = tuple(
        Member(name=member, types=_read_types(each), required=member in required, meaning=_plain(each))
        for member, each in schema.get("properties", {}).items()
    )
    return MemberTable(name=name, meaning=_plain(schema), members=members)


def _read_types(schema: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The types that a value may have, in words."""
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return ((name, name),)
        case {"anyOf": [*several]} | {"oneOf": [*several]}:
            return tuple(found for each in several for found in _read_types(each))
        case {"const": value}:
            return ((msgspec.json.encode(value).decode(), ""),)
        case {"enum": [*values]}:
            return tuple((msgspec.json.encode(value).decode(), "") for value in values)
        case {"type": "array", "items": items}:
            return tuple((f"array of {text}", name) for text, name in _read_types(items))
        case {"contentSchema": content}:
            return tuple((f"string with the JSON of {text}", name) for text, name in _read_types(content))
        case {"type": str(kind), "format": str(form)}:
            return ((f"{kind} ({form})", ""),)
        case {"type": str(kind)}:
            return ((kind, ""),)
        case _:
            return ()


def _plain(described: Mapping[str, Any]) -> str:
    """A description without links to other documents."""
    return _LINK.sub(r"\1", described.get("description", ""))


_QUERY_CHARACTERS: Final = 200


class ErrorCatalogue(PageView, frozen=True, kw_only=True):
    """Reasons under the first of their errors, with an anchor. Field: query."""

    template: ClassVar[str] = "error_catalogue.html"
    heading: ClassVar[Phrase] = phrase("Catalogue of errors")

    here: str
    query: str = ""
    errors_and_reasons: tuple[tuple[str, tuple[Reason, ...]], ...]
    frame: Frame = BARE

    @property
    def count(self) -> int:
        """The number of reasons that are shown."""
        return sum(len(reasons) for _, reasons in self.errors_and_reasons)


def catalogue(frame: Frame = BARE, *, here: str = CATALOGUE_PATH, query: str = "") -> ErrorCatalogue:
    """The view of the declared reasons.

    With a query of those in which its words stand, in any order.
    """
    words = query.casefold().split()
    by_error = (
        (error, tuple(each for each in Reason if each.value.errors[0] == error and _has_words(each, words)))
        for error in get_args(ErrorCode)
    )
    found = tuple((error, reasons) for error, reasons in by_error if reasons)
    return ErrorCatalogue(frame=frame, here=here, query=query, errors_and_reasons=found)


def _has_words(reason: Reason, words: list[str]) -> bool:
    value = reason.value
    text = " ".join((reason.code, *value.errors, value.cause, value.acts, value.remedy)).casefold()
    return all(word in text for word in words)


async def page(request: Request, web: WebContext) -> Response:
    """The catalogue, or what of it was searched for."""
    frame = BARE if web.developer is None else Frame(up=web.developer.up)
    query = request.query_params.get("query", "")[:_QUERY_CHARACTERS].strip()
    return page_response(request, web.renderer, catalogue(frame, here=web.base_path + CATALOGUE_PATH, query=query))


DOCUMENTS: Final = (
    Route(path=CATALOGUE_PATH, methods=("GET",), endpoint=page, fails=as_page),
    Route(path=SCHEMAS_PATH.rstrip("/"), methods=("GET",), endpoint=lead_to_schemas, fails=as_page),
    Route(path=f"{SCHEMAS_PATH}{{rest}}", methods=("GET",), endpoint=answer_schemas, fails=as_json),
)


class Documents(Extension):
    """The documents alone.

    `corpid serve` finds them in developer mode, by the entry point `corpid.developer_mode`.
    """

    package: ClassVar[str] = "corpid_dev"
    catalogue_path: ClassVar[str] = CATALOGUE_PATH

    def routes(self, base_url: str) -> tuple[Route, ...]:
        """The documents, at every issuer."""
        del base_url
        return DOCUMENTS
