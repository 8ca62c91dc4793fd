"""The parts of docs generated from declarations (`make tables`): settings, generations, client members, audit actions, access, orders of the sandbox, the doctor's checks, the libraries, the reference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import msgspec

from corpid.cli.doctor import local_checks, request_checks
from corpid.rules import readers
from corpid.rules.audit import AuditAction
from corpid.rules.directory import values
from corpid.rules.directory.access import ACTIONS, CONDITIONS, OBJECT_KINDS, ROLES, RULES, Action, ObjectKind, Role
from corpid.rules.directory.document import SECTIONS
from corpid.rules.directory.memberships import PLAIN_DETAILS
from corpid.rules.oauth.api_client import API_SCOPE_MEANINGS
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.settings import documentation
from corpid.web.api.application import document
from corpid_dev.readiness.cases import CASES
from scripts.reference import (
    answers,
    bruno,
    claims,
    context_types,
    errors,
    generations,
    libraries,
    openapi,
    pages,
    sandbox,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.rules.fields import Field
    from corpid_dev.readiness.case import Source

_DOCS: Final = Path(__file__).parents[1] / "docs"
_REFERENCE: Final = _DOCS / "reference"

_BEGIN: Final = "<!-- made by `make tables` -->\n"
_END: Final = "<!-- end -->\n"


def written(page: str, made: str) -> str:
    """The page with `made` between its marks."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    return before + begin + made + end + after


def with_details(page: str) -> str:
    """The page with the plain details of a member between its marks, as attributes of SCIM or as columns of tables."""
    attributes = [
        f"`{attribute}`{' of the enterprise extension' if schema else ''}"
        for schema, _, attribute in (each.scim.rpartition(":") for each in PLAIN_DETAILS.values())
    ]
    for kind, names in (("scim", attributes), ("keys", [f"`{key}`" for key in PLAIN_DETAILS])):
        made = f"<!-- {kind} of details -->{', '.join(names[:-1])} and {names[-1]}<!-- end of details -->"
        page = re.sub(rf"<!-- {kind} of details -->.*?<!-- end of details -->", made, page, flags=re.DOTALL)
    return page


_FORMATS: Final[Mapping[object, str]] = {
    readers.yes_or_no: "`true` or `false`",
    readers.day: "day",
    values.login: "user name",
    values.ENTITY_ID: "entity identifier",
    values.SERVICE_ID: "service identifier",
    values.stable_id: "UUID",
    values.country: "ISO 3166-1 alpha-2",
    values.country_or_empty: "ISO 3166-1 alpha-2",
    values.email: "address, in ASCII before the @",
    values.language: "tag such as `en` or `zh-Hans`",
    values.row_parameters: "name → value, or name → list of values",
    values.parameter_definitions: "name (at most 30) → `{kind, mandatory}`; kind is one of "
    + ", ".join(f"`{word}`" for word in get_args(values.ParameterKind)),
    values.role_descriptions: f"role → text {values.DESCRIPTION_CHARACTERS}",
    values.administered_services: "list of services, or the word `all`",
}
"""reader → what it takes, if words and length do not say it"""


def with_fields(page: str) -> str:
    """The page with the keys of each section between its marks."""
    for name, section in SECTIONS.items():
        before, begin, rest = page.partition(f"<!-- keys of {name} -->\n")
        _, end, after = rest.partition("<!-- end of keys -->\n")
        rows = "".join(_field_row(key, each) for key, each in section.keys.items()) if begin else ""
        head = "| Key | Value | Default | Meaning |\n|---|---|---|---|\n" if begin else ""
        page = before + begin + head + rows + end + after
    return page


def _field_row(key: str, declared: Field) -> str:
    cells = (
        f"`{key}`{' *new*' if declared.needed else ''}",
        declared.doc or _format(declared),
        declared.default_doc or ("none" if declared.default == () else _default(declared)),
        declared.help.rstrip("."),
    )
    return "|".join(("", *(f" {cell} " if cell else " " for cell in cells), "\n"))


def _format(declared: Field) -> str:
    """The values that a key can have."""
    if declared.words:
        optional = [""] if "" in (declared.default if declared.listed else (declared.default,)) else []
        words = [f"`{word}`" if word else '`""`' for word in (*declared.words, *optional)]
        return f"list of {', '.join(words)}" if declared.listed else f"{', '.join(words[:-1])} or {words[-1]}"
    if declared.read in _FORMATS:
        return _FORMATS[declared.read]
    length = getattr(declared.read.item if isinstance(declared.read, readers.ListReader) else declared.read, "most", 0)
    return f"list of texts {length}" if declared.listed else f"text {length}"


def client_members() -> str:
    """The table of a client's members."""
    rows = "".join(_row(each) for each in CLIENT_MEMBERS.values())
    return "| Key | Value | Default | Generations |\n|---|---|---|---|\n" + rows


def audit_actions() -> str:
    """The table of the audit's actions."""
    return "| Action | When |\n|---|---|\n" + "".join(f"| `{each.value}` | {each.when} |\n" for each in AuditAction)


def access() -> str:
    """The matrix of roles, actions and objects, and the conditions that its numbers mean."""
    rows = [
        [f"{kind}: {action}", *(_allowed(role, action, kind) for role in ROLES)]
        for kind in OBJECT_KINDS
        for action in ACTIONS
        if any((role, action, kind) in RULES for role in ROLES)
    ]
    head = ["Object and action", *(role.replace("_", "-") for role in ROLES)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))
    numbered = (f"{number}. only {condition.description}\n" for number, condition in enumerate(CONDITIONS, start=1))
    return f"{table}\n{''.join(numbered)}"


def api_scopes() -> str:
    """The table of the admin API's scopes."""
    return "| Scope | Lets a client |\n|---|---|\n" + "".join(
        f"| `{scope}` | {what[:1].lower()}{what[1:]} |\n" for scope, what in API_SCOPE_MEANINGS.items()
    )


def readiness_cases() -> str:
    """The table of the readiness report's cases."""
    rows = "".join(
        f"| `{case.id}` | {case.title} | {case.fix} | {', '.join(map(_source, case.sources))} |\n"
        for case in CASES.values()
    )
    return f"| Case | What is expected | How to fix it | Source |\n|---|---|---|---|\n{rows}"


def doctor_checks() -> str:
    """The table of what `corpid doctor` looks at through the proxy."""
    kinds = {
        "requests": request_checks.CHECKS,
        "probes": (*request_checks.PROBE_CHECKS, request_checks.SLOW_PROBE),
        "`--proxy`": local_checks.CHECKS,
    }
    rows = "".join(
        f"| {about} | {_promise(check.__doc__ or '')} | {kind} |\n"
        for kind, checks in kinds.items()
        for about, check in checks
    )
    return f"| Name | Checks that | By |\n|---|---|---|\n{rows}"


def _promise(description: str) -> str:
    """What a check checks, from the first line of its description."""
    first = description.partition("\n")[0].removeprefix("Check that ")
    return first.partition(" (")[0].rstrip(".")


def _source(source: Source) -> str:
    return f"[{source.name}]({source.url})" if source.url else source.name


def _allowed(role: Role, action: Action, kind: ObjectKind) -> str:
    conditions = RULES.get((role, action, kind))
    if conditions is None:
        return ""
    return ", ".join(str(place + 1) for place in sorted(map(CONDITIONS.index, conditions))) or "yes"


WHOLE: Final[Mapping[Path, Callable[[], str]]] = {
    _DOCS / "settings.md": documentation,
    _DOCS / "generations.md": generations.page,
    _DOCS / "libraries.md": libraries.page,
    _REFERENCE / "claims.md": claims.claims,
    _REFERENCE / "endpoints.md": pages.page,
    _REFERENCE / "authorization-data.md": claims.authorization_data,
}
"""pages that are written from the first line to the last"""
API_DOCUMENT: Final = _DOCS / "openapi.json"
"""the OpenAPI document of the admin API, as a deployment of this name serves it"""
API_BASE_URL: Final = "https://sso.example.org"
_SCHEMAS: Final = Path(__file__).parents[1] / "src" / "corpid_dev" / "schemas"


def schemas() -> dict[Path, str]:
    """The JSON Schemas, TypeScript types and OpenAPI documents, which are in the package."""
    documents = {f"{name}.json": _json(document) for name, document in answers.schemas().items()}
    types = {f"{name}.d.ts": text for name, text in answers.types().items()}
    described = {f"openapi-{name}.json": _json(document) for name, document in openapi.documents().items()}
    return {_SCHEMAS / name: text for name, text in (documents | types | described).items()}


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


PAGES: Final[Mapping[Path, Callable[[], str]]] = {
    _DOCS / "directory.md": client_members,
    _REFERENCE / "errors.md": errors.catalogue,
    _DOCS / "audit.md": audit_actions,
    _DOCS / "administration.md": access,
    _DOCS / "api.md": api_scopes,
    _DOCS / "relying-parties.md": context_types.table,
    _DOCS / "sandbox.md": sandbox.tables,
    _DOCS / "readiness.md": readiness_cases,
    _DOCS / "doctor.md": doctor_checks,
}


def _row(declared: Field) -> str:
    cells = (
        f"`{declared.name}`{' *new*' if declared.needed else ''}",
        declared.doc,
        declared.default_doc or _default(declared),
        ", ".join(f"`{each.name}`" for each in GENERATIONS.values() if getattr(each, declared.concerns))
        if declared.concerns
        else "",
    )
    return "|".join(("", *(f" {cell} " if cell else " " for cell in cells), "\n"))


def _default(declared: Field) -> str:
    default = declared.default
    if isinstance(default, tuple):
        return f"`[{', '.join(map(_stated, default))}]`"
    if default in (None, msgspec.NODEFAULT):
        return "`none`" if declared.clearable else ""
    return f"`{_stated(default)}`"


def _stated(value: object) -> str:
    """A value as a file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'


if __name__ == "__main__":
    for path, made in WHOLE.items():
        path.write_text(made(), encoding="utf-8")
    for path, text in {**schemas(), **bruno.files()}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    API_DOCUMENT.write_bytes(document(API_BASE_URL))
    for path, made in PAGES.items():
        path.write_text(written(path.read_text(encoding="utf-8"), made()), encoding="utf-8")
    for path in (_DOCS / "directory.md", _DOCS / "scim.md"):
        path.write_text(with_details(with_fields(path.read_text(encoding="utf-8"))), encoding="utf-8")
