"""JSON Schemas of the admin API, with examples (D59).

Those of records follow from the declarations that read them (`rules.directory.objects`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpid.ports import AuditEntry
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.objects import RESOURCES
from corpid.rules.directory.sections import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.directory.objects import Resource

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer"}
_MAYBE_NUMBER: Final[Schema] = {"type": ["integer", "null"]}
_LINA: Final = "5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10"

EXAMPLES: Final[Mapping[str, Schema]] = {
    "Entity": {"entity_id": "E1001", "type": "UEN", "country": "SG", "name": "Harbour Bakery Pte. Ltd."},
    "User": {"user_name": "lina", "name": "Tan Lina", "email": "lina@example.org"},
    "Membership": {"user": "lina", "entity": "E1001"},
    "Service": {"service_id": "TAX-FILING", "name": "Tax filing", "roles": ["Preparer", "Approver"]},
    "Assignment": {"user": "lina", "entity": "E1001", "service": "TAX-FILING", "role": "Preparer"},
    "ThirdPartyGrant": {"client_entity": "E1001", "third_party": "E2002", "service": "TAX-FILING", "role": "Preparer"},
    "ThirdPartyAssignment": {
        "user": "ravi", "third_party": "E2002", "client_entity": "E1001", "service": "TAX-FILING", "role": "Preparer",
    },
    "Administrator": {"user": "lina", "entity": "E1001", "level": "administrator"},
    "Client": {
        "client_id": "books", "name": "Books", "redirect_uris": ["https://books.example.org/callback"],
        "jwks_uri": "https://books.example.org/jwks.json",
    },
}  # fmt: skip
"""title of a resource → a new object"""
_CHANGES: Final[Mapping[str, Schema]] = {
    "Entity": {"name": "Harbour Bakery and Café Pte. Ltd."},
    "User": {"email": "tan.lina@example.org"},
    "Membership": {"enabled": False},
    "Service": {"roles": ["Preparer", "Approver", "Viewer"]},
    "Assignment": {"end_date": "2027-12-31"},
    "ThirdPartyGrant": {"end_date": None},
    "ThirdPartyAssignment": {"end_date": "2027-12-31"},
    "Administrator": {"level": "sub_administrator", "services": ["TAX-FILING"]},
    "Client": {"enabled": False},
}
_KEY: Final[Schema] = {
    "id": "Zk3_signing", "state": "in use", "created_at": 1795000000, "signs_from": 1795007200, "retired_at": None,
    "revoked_at": None, "etag": '"r5x0dYzq1B7cWm3kTtq8AqvJw2E"',
}  # fmt: skip
_ENTRY: Final[Schema] = {
    "number": 4711, "at": 1795000000, "actor": "client:payroll", "action": AuditAction.ASSIGNMENT_ADD.value,
    "object": f"{_LINA}/E1001/TAX-FILING/Preparer//", "client_id": "", "entity_id": "E1001", "other_entity_id": "",
    "outcome": "ok", "request_id": "7f3a90c1d2e4b586", "detail": {}, "before": {}, "after": {"role": "Preparer"},
    "erased": False,
}  # fmt: skip


def example(title: str) -> Schema:
    """An object of a resource as it is shown."""
    new = EXAMPLES[title]
    shown = {"id": str(next(iter(new.values()))), **new, "etag": '"r5x0dYzq1B7cWm3kTtq8AqvJw2E"'}
    if title == "User":
        shown["id"] = _LINA
    if "user" in new:
        shown |= {"id": "WyI1YjBiNmQwZSJd", "user_id": _LINA}
    return shown


def components() -> dict[str, Schema]:
    """Every named schema. Source: OpenAPI 3.1"""
    found: dict[str, Schema] = {}
    for resource in RESOURCES:
        found |= _of(resource)
    return {**found, **_others()}


def _of(resource: Resource) -> dict[str, Schema]:
    title, properties = resource.title, resource.properties
    read_only: Schema = {
        "id": {**_TEXT, "readOnly": True, "description": "Names the object in a path; opaque."},
        "etag": {**_TEXT, "readOnly": True, "description": "The entity tag, for If-Match."},
    }
    if resource.names_user:
        read_only["user_id"] = {**_TEXT, "readOnly": True, "description": "The person's UUID, which never changes."}
    shown = {**read_only, **{name: _loose(schema) for name, schema in properties.items()}}
    patched = {name: _nullable(schema) for name, schema in properties.items() if name not in resource.identity}
    closed = {"type": "object", "additionalProperties": False}
    return {
        title: {
            **closed, "properties": shown, "required": ["id", "etag", *resource.required],
            "examples": [example(title)],
        },
        f"New{title}": {
            **closed, "properties": properties, "required": resource.required, "examples": [EXAMPLES[title]],
        },
        f"{title}Patch": {**closed, "properties": patched, "examples": [_CHANGES[title]]},
        f"{title}Page": _page({"$ref": f"#/components/schemas/{title}"}, example(title)),
    }  # fmt: skip


def _loose(schema: Schema) -> Schema:
    """As it is shown: a later version may know more values."""
    return {name: value for name, value in schema.items() if name != "enum"}


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _page(items: Schema, one: Schema) -> Schema:
    following = {**_TEXT, "description": "The cursor of the next page; missing on the last one."}
    return {
        "type": "object",
        "properties": {"items": {"type": "array", "items": items}, "next": following},
        "required": ["items"],
        "examples": [{"items": [one]}],
    }


def _others() -> dict[str, Schema]:
    key = {"type": "object", "properties": dict.fromkeys(("id", "state", "etag"), _TEXT), "examples": [_KEY]}
    key["properties"] |= {"created_at": _NUMBER, "signs_from": _NUMBER}  # type: ignore[operator]
    key["properties"] |= dict.fromkeys(("retired_at", "revoked_at"), _MAYBE_NUMBER)  # type: ignore[operator]
    key["required"] = list(_KEY)
    fault = {
        "type": "object",
        "properties": {
            "pointer": {**_TEXT, "description": "JSON pointer of the member (RFC 6901)."},
            "parameter": {**_TEXT, "description": "Name of the query parameter."},
            "line": {**_TEXT, "description": "Line of a document in YAML."},
            "detail": {**_TEXT, "description": "What is wrong, and what may stand there."},
        },
        "required": ["detail"],
    }
    maintenance = {"maintenance": {"type": "boolean"}}
    return {
        "Problem": {
            "type": "object",
            "description": "Problem details (RFC 9457).",
            "properties": {
                "type": _TEXT, "title": _TEXT, "status": _NUMBER, "detail": _TEXT,
                "reference": {**_TEXT, "description": "Names the request in the log."},
                "errors": {"type": "array", "items": fault},
            },
            "required": ["type", "title", "status", "detail", "reference"],
        },
        "Key": key,
        "KeyPage": _page({"$ref": "#/components/schemas/Key"}, _KEY),
        "NewKey": {
            "type": "object", "properties": {"at_once": {"type": "boolean"}}, "additionalProperties": False,
            "examples": [{}],
        },
        "AuditEntry": _entry(),
        "AuditPage": _page({"$ref": "#/components/schemas/AuditEntry"}, _ENTRY),
        "Maintenance": {
            "type": "object", "properties": maintenance, "required": ["maintenance"], "additionalProperties": False,
            "examples": [{"maintenance": False}],
        },
        "DirectoryDocument": {
            "type": "object",
            "description": "A directory file: docs/directory.md has its sections and keys.",
            "properties": {name.split(".")[0]: {} for name in SECTIONS},
            "additionalProperties": False,
            "examples": [{"entities": {"E1001": {"type": "UEN", "country": "SG", "name": "Harbour Bakery Pte. Ltd."}}}],
        },
        "Applied": {
            "type": "object",
            "description": "What `corpid apply --json` prints, with its warnings.",
            "properties": {
                "changes": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "sign": {"type": "string", "enum": ["+", "~", "-"]},
                            "subject": _TEXT,
                            "members": {"type": "array", "items": _TEXT},
                        },
                        "required": ["sign", "subject", "members"],
                    },
                },
                "kept": {
                    "type": "array",
                    "description": "What stays because others wrote it (docs/directory.md, \"Who wins\").",
                    "items": {
                        "type": "object",
                        "properties": {
                            "verb": {"type": "string", "enum": ["add", "change", "remove"]},
                            "subject": _TEXT,
                            **{name: {"type": "array", "items": _TEXT} for name in ("members", "sources", "by")},
                        },
                        "required": ["verb", "subject", "members", "sources", "by"],
                    },
                },
                "written": {"type": "boolean"},
                "warnings": {"type": "array", "items": _TEXT},
            },
            "required": ["changes", "kept", "written", "warnings"],
            "examples": [
                {
                    "changes": [{"sign": "+", "subject": "entity E1001", "members": ["type: UEN"]}],
                    "kept": [],
                    "written": True,
                    "warnings": [],
                }
            ],
        },
    }  # fmt: skip


def _entry() -> Schema:
    objects = ("detail", "before", "after")
    kinds: dict[str, Schema] = {"number": _NUMBER, "at": _NUMBER, "erased": {"type": "boolean"}}
    kinds |= {key: {"type": "object"} for key in objects}
    names = AuditEntry.__struct_fields__
    return {
        "type": "object",
        "properties": {name: kinds.get(name, _TEXT) for name in names},
        "required": list(names),
        "examples": [_ENTRY],
    }
