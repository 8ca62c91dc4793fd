"""The OpenAPI document of the admin API, from the table of operations (D59)."""

from __future__ import annotations

from hashlib import sha256
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from msgspec.structs import asdict

from corpid import __version__
from corpid.flows.operations.overview import EngineStates, Overview, ProcessSummary
from corpid.rules.audit import AuditAction, AuditEntry
from corpid.rules.audit_seals import SealFinding
from corpid.rules.directory.document import SECTIONS
from corpid.rules.directory.memberships import EmailState
from corpid.rules.directory.objects import RESOURCES, Resource
from corpid.rules.directory.records import MemberDetails
from corpid.rules.fields import fields_of
from corpid.rules.oauth.api_client import API_PATH, API_SCOPE_MEANINGS
from corpid.web.api.calls import CHANGE_REASON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corpid.web.api.operations import Operation

Schema = dict[str, Any]

SCHEME: Final = "api"
MOST_ID_CHARACTERS: Final = 1024
"""of an identifier in a path"""
_KINDS: Final[Mapping[Any, Schema]] = {str: {"type": "string"}, int: {"type": "integer"}, bool: {"type": "boolean"}}
_ALWAYS: Final = (400, 401, 403, 429, 503)
_MEANINGS: Final[Mapping[int, str]] = {
    400: "A parameter or the body cannot be read",
    401: "There is no valid access token, or no valid DPoP proof for it",
    403: "The token lacks the scope, or no rule allows this",
    404: "There is no such object, or the client cannot see it",
    409: "The object exists already, something that it depends on changed at the same time, or the last owner would be removed",
    412: "The object has changed since it was read",
    413: "The body is too large",
    415: "The body has another media type",
    422: "The body is not valid: `errors` names each member and the allowed values. Or the Idempotency-Key was used "
    "for another request",
    428: "If-Match is missing",
    429: "Too many requests: Retry-After says when to retry",
    503: "CorpID is busy, unavailable or under maintenance: Retry-After says when to retry",
}
_MEANINGS_OF_LISTS: Final[Mapping[int, str]] = {
    409: "Another export of this client is running: wait for its end",
    422: "An export would have more than 100,000 objects: narrow the list by its filters",
}
"""of errors of the operations that also give CSV"""
_ABOUT: Final = (
    "Administer a deployment from a program. Get access tokens at `{base_url}/api/token` by client_credentials with "
    "private_key_jwt and DPoP (RFC 9449); docs/api.md describes every step. Errors are problem "
    "details (RFC 9457)."
)
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
    "Service": {
        "roles": ["Preparer", "Approver", "Viewer"],
        "role_descriptions": {"Viewer": "Sees returns and changes nothing."},
    },
    "Assignment": {"end_date": "2027-12-31"},
    "ThirdPartyGrant": {"end_date": None},
    "ThirdPartyAssignment": {"end_date": "2027-12-31"},
    "Administrator": {"level": "sub_administrator", "services": ["TAX-FILING"]},
    "Client": {"enabled": False},
}
_DIFFERENCES: Final[Schema] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "sign": {"type": "string", "enum": ["+", "~", "-"]}, "subject": _TEXT,
            "members": {"type": "array", "items": _TEXT},
        },
        "required": ["sign", "subject", "members"],
    },
}  # fmt: skip
"""changes as `corpid apply --json` prints them"""
_KEY: Final[Schema] = {
    "id": "Zk3_signing", "state": "in use", "created_at": 1795000000, "signs_from": 1795007200, "retired_at": None,
    "revoked_at": None, "etag": '"r5x0dYzq1B7cWm3kTtq8AqvJw2E"',
}  # fmt: skip
_ENTRY: Final[Schema] = {
    "number": 4711, "at": 1795000000, "actor": "client:payroll", "action": AuditAction.ASSIGNMENT_ADD.value,
    "object": f"{_LINA}/E1001/TAX-FILING/Preparer//", "client_id": "", "entity_id": "E1001", "other_entity_id": "",
    "outcome": "ok", "request_id": "7f3a90c1d2e4b586", "detail": {}, "before": {}, "after": {"role": "Preparer"},
    "erased": False, "people": {_LINA: "lina"},
}  # fmt: skip
_CHANGE: Final[Schema] = {
    "sign": "+", "subject": "assignment: lina for E1001 at TAX-FILING as Preparer", "members": [],
}  # fmt: skip
_APPROVAL: Final[Schema] = {
    "id": "6b0a1f80-s3ytNpJ0C3", "entity": "E1001", "state": "pending", "requester": "client:payroll",
    "requester_name": "client:payroll", "reason": "Covers for Ravi in December", "changes": [_CHANGE],
    "created_at": 1795000000, "expires_at": 1796209600, "decided_at": None, "decided_by": "",
    "decided_by_name": "", "decided_reason": "", "comments": [], "etag": '"r5x0dYzq1B7cWm3kTtq8AqvJw2E"',
}  # fmt: skip
_VERIFIED: Final[Schema] = {
    "seals": 20, "sealed_to": 20113, "sealed_at": 1795000000, "digest": sha256(b"").hexdigest(), "entries": 20100,
    "pruned": 0, "erased": 3, "unsealed": 0, "first_unsealed": 0, "last_unsealed": 0, "found": 1,
    "findings": [{"object": "entry", "number": 4711, "problem": "changed", "text": "Entry 4711 was changed."}],
    "next": 20,
}  # fmt: skip
_SESSION: Final[Schema] = {
    "id": "WyI1YjBiNmQwZSIsIjNmIl0", "user": "lina", "user_id": _LINA, "purpose": "sign_in", "entity": "E1001",
    "device": "Firefox on Windows", "amr": ["pwd", "otp", "mfa"], "signed_in_at": 1795000000, "seen_at": 1795000120,
    "expires_at": 1795028800, "etag": '"r5x0dYzq1B7cWm3kTtq8AqvJw2E"',
}  # fmt: skip
_REFUSAL: Final[Schema] = {
    "client": "books", "claimed": False, "at": 1795000000, "reference": "4f1d2c3b5a69", "method": "POST", "path": "/request",
    "reason": "assertion_expired", "detail": "client_assertion: exp is 65 s in the past",
    "remedy": "Send an assertion that was made for this request.",
}  # fmt: skip
_DETAILS: Final = {name: {**_TEXT, "description": each.help} for name, each in fields_of(MemberDetails).items()}
_NEW_INVITATION: Final[Schema] = {"entity": "E1001", "name": "Tan Mei", "email": "mei@example.org"}
_INVITATION: Final[Schema] = {
    "id": "0f9d7c52-6a3b-4f0e-9a55-7d1c2b3a4e5f", "entity": "E1001",
    **asdict(MemberDetails(user_name="mei@example.org", name="Tan Mei", email="mei@example.org")),
    "state": "invited", "email_state": "waiting", "email_sent_at": None,
    "created_at": 1795000000, "etag": '"r5x0dYzq1B7cWm3kTtq8AqvJw2E"',
}  # fmt: skip
_APPLIED: Final[Schema] = {
    "changes": [{"sign": "+", "subject": "entity E1001", "members": ["type: UEN"]}], "kept": [], "written": True,
    "warnings": [],
}  # fmt: skip
_PUBLIC_KEY: Final[Schema] = {
    "kty": "EC", "crv": "P-256", "use": "sig", "kid": "Zk3_audit", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
}  # fmt: skip
_CONSENT: Final[Schema] = {
    "user": "lina", "user_id": _LINA, "client": "rp1", "entity": "E1001", "issuer": "first",
    "scopes": ["openid", "user.name"], "since": 1795000000, "until": 1826536000,
}  # fmt: skip
_ACCESS_REVIEW: Final[Schema] = {
    "entity": "E1001", "due_at": 1826536000, "began_at": 1826000000, "began_by": f"user:{_LINA}",
    "began_by_name": "lina (Lina Rahman)", "people": 12, "kept": 7, "signed_off_at": 1795000000,
    "signed_off_by": f"user:{_LINA}", "signed_off_by_name": "lina (Lina Rahman)", "last_kept": 11, "last_ended": 2,
}  # fmt: skip
_REVIEWED: Final[Schema] = {
    "membership": "0c5f9f2e-6c1b-4b53-9a55-1f2d7e0c9d11", "user_id": _LINA, "user": "lina", "name": "Lina Rahman",
    "enabled": True, "invited": False, "level": "administrator", "services": [],
    "roles": [{"service": "PERMITS", "role": "Approver", "sub_entity": "", "ref": "", "start_date": "0001-01-01",
               "end_date": "2027-12-31", "parameters": []}],
    "third_party_roles": [], "reviewed": False, "decision": "", "decided_at": None, "decided_by": "",
    "decided_by_name": "", "seen": "5b0b6d0e9a1c4f7d8e2a3b4c5d6e7f80",
}  # fmt: skip
_DELETION_REQUEST: Final[Schema] = {"user": "lina", "user_id": _LINA, "requested_at": 1795000000}
_ERASED: Final[Schema] = {"user_id": _LINA, "details": 42, "remarks": []}
_LOCK: Final[Schema] = {
    "user": "lina", "user_id": _LINA, "browser": "new", "guesses": 20, "ends_at": 1795000900,
}  # fmt: skip
_NOW: Final = 1_800_000_000
_TRAFFIC: Final[Schema] = {
    "period": "7d", "points": [{"begins_at": _NOW, "sign_ins": 120, "refusals": 2}],
    "clients": [{"client_id": "books", "name": "Books", "sign_ins": 120, "refusals": 2}],
    "reasons": [{"reason": "assertion_audience", "count": 2}],
}  # fmt: skip
_WEEK: Final[Schema] = {"sign_ins": 120, "refusals": 2, "failing": []}
_OVERVIEW: Final[Schema] = {
    "at": _NOW, "maintenance": False, "traffic": _TRAFFIC, "this_week": _WEEK, "last_week": _WEEK,
    "keys": [{
        "kid": "Qk3fJz0sV6o1l2b8mN4tYw9xRc5aHd7uEg", "state": "in use", "signs_from": _NOW - 86400, "retired_at": None,
    }],
    "key_dates": [], "ending": [],
    "engines": msgspec.to_builtins(EngineStates(
        version="0.1.0", host="node1", started_at=_NOW - 3600, workers=2, database="PostgreSQL", transient="Valkey",
        sends_mail=True, not_ready="",
    )),
    "processes": [msgspec.to_builtins(ProcessSummary(
        host="node1", number=812, address="0.0.0.0:8000", version="0.1.0", started_at=_NOW - 3600, seen_at=_NOW - 20,
        live=True, answers=True, differs_in=(),
        settings={"base_url": "https://login.example.org", "key_encryption_key": "Zk1c0pQ4"},
    ))],
    "findings": [{
        "about": "signing keys", "verdict": "warning",
        "seen": "Qk3fJz0sV6o1l2b8mN4tYw9xRc5aHd7uEg has signed for 401 days.",
        "change": "Change: run `corpid key rotate`, once a year.",
    }],
}  # fmt: skip
_PUBLIC_NAMES: Final = {"SigningKeyDates": "KeyShown", "EngineStates": "Engines", "ProcessSummary": "ProcessShown"}
"""class → name of its schema, where they differ: callers may have generated code from the names"""


def build_document(operations: Sequence[Operation], base_url: str) -> dict[str, Any]:
    """The document of a deployment. Source: OpenAPI 3.1"""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe_operation(operation)
    flow = {"tokenUrl": f"{base_url}/api/token", "scopes": dict(API_SCOPE_MEANINGS)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CorpID admin API",
            "description": _ABOUT.replace("{base_url}", base_url),
            "version": __version__,
        },
        "servers": [{"url": base_url + API_PATH}],
        "paths": paths,
        "components": {
            "schemas": _components(),
            "securitySchemes": {
                SCHEME: {
                    "type": "oauth2",
                    "description": "client_credentials; the token is bound to a DPoP key and sent with a proof (RFC 9449).",
                    "flows": {"clientCredentials": flow},
                }
            },
        },
    }


def _statuses(operation: Operation) -> tuple[int, ...]:
    """The statuses of the errors that an operation can answer."""
    found = {*_ALWAYS, *operation.errors} - (set() if operation.scope else {401, 403})
    changes = operation.conditional and operation.body
    found |= {409, 422} if changes or operation.csv or operation.repeatable or operation.requested else set()
    found |= {404} if operation.takes_object else set()
    found |= {412, 428} if operation.conditional else set()
    found |= {413, 415, 422} if operation.body else set()
    return tuple(sorted(found))


def _components() -> dict[str, Schema]:
    """Every named schema."""
    found: dict[str, Schema] = {}
    for resource in RESOURCES:
        found |= _record_schemas(resource)
    return {**found, **_other_schemas()}


def _example(title: str) -> Schema:
    """An object of a resource as it is shown."""
    new = EXAMPLES[title]
    shown = {"id": str(next(iter(new.values()))), **new, "etag": '"r5x0dYzq1B7cWm3kTtq8AqvJw2E"'}
    if title == "User":
        shown["id"] = _LINA
    if "user" in new:
        shown |= {"id": "WyI1YjBiNmQwZSJd", "user_id": _LINA, "identity": new["user"]}
    return shown


def _overview() -> dict[str, dict[str, Any]]:
    """The schema of the overview, with those of its parts."""
    reference = "#/components/schemas/{name}"
    _, made = msgspec.json.schema_components((Overview,), ref_template=reference)
    text = msgspec.json.encode(made).decode()
    for name, public in _PUBLIC_NAMES.items():
        text = text.replace(f'"{reference.format(name=name)}"', f'"{reference.format(name=public)}"')
        text = text.replace(f'"{name}":', f'"{public}":').replace(f'"title":"{name}"', f'"title":"{public}"')
    parts: dict[str, dict[str, Any]] = msgspec.json.decode(text)
    for part in parts.values():
        # The first line of a docstring; the rest is for those who read the code.
        part["description"] = part.get("description", "").partition("\n")[0]
    parts["Overview"]["examples"] = [_OVERVIEW]
    return parts


def _describe_operation(operation: Operation) -> dict[str, Any]:
    responses = {operation.status: _success(operation), **_requested(operation), **_errors(operation)}
    described: dict[str, Any] = {
        "tags": [operation.tag or operation.path.split("/")[1]],
        "summary": operation.summary,
        "description": operation.description,
        "operationId": operation.name,
        "parameters": [*_parameters(operation), *_headers(operation)],
        "responses": {str(status): response for status, response in responses.items()},
        "security": [{SCHEME: [operation.scope]}] if operation.scope else [],
    }
    if not described["parameters"]:
        del described["parameters"]
    if operation.body:
        schema = {"$ref": f"#/components/schemas/{operation.body}"}
        content = {kind: {"schema": schema} for kind in operation.media_types}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    """The parameters in path and query."""
    if operation.takes_object:
        schema = {"type": "string", "minLength": 1, "maxLength": MOST_ID_CHARACTERS}
        yield _parameter("path", "id", "The member `id` of the object.", schema, required=True)
    for query in operation.queries:
        schema = dict(_KINDS.get(query.kind) or {"enum": list(get_args(query.kind)), "type": "string"})
        if not query.needed and query.default is None:
            schema = {"anyOf": [schema, {"type": "null"}]}
        bounds = {"maximum": query.most, "minimum": query.least}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        yield _parameter("query", query.name, query.description, schema, required=query.needed, default=query.default)


def _parameter(
    where: str, name: str, description: str, schema: Schema, *, required: bool, default: object = None
) -> dict[str, Any]:
    described = {**schema, "description": description, **({} if default is None else {"default": default})}
    described["title"] = name.replace("_", " ").title()
    return {"name": name, "in": where, "required": required, "schema": described, "description": description}


def _headers(operation: Operation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if operation.conditional:
        description = "The entity tag of the object that you have read."
        found.append(
            {"name": "If-Match", "in": "header", "required": True, "description": description, "schema": _TEXT}
        )
    if operation.method not in {"GET", "HEAD"}:
        description = (
            "The reason, for the history; required if the change needs approval. Printable ASCII, with other "
            "characters as percent-encoded UTF-8."
        )
        schema = {"type": "string", "maxLength": 500, "pattern": "^[ -~]*$"}
        found.append({"name": CHANGE_REASON, "in": "header", "description": description, "schema": schema})
    if operation.repeatable:
        description = "Lets you safely repeat the request within 24 hours: you get the first response again."
        schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
        found.append({"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema})
    return found


def _success(operation: Operation) -> dict[str, Any]:
    words = {200: "Carried out", 201: "Added", 204: "Removed"}
    answer: dict[str, Any] = {"description": words[operation.status]}
    if operation.answer:
        schema = {"$ref": f"#/components/schemas/{operation.answer}"}
        answer["content"] = {operation.answer_type: {"schema": schema}}
        answer["content"] |= {"text/csv": {"schema": _TEXT}} if operation.csv else {}
    names = {201: ("ETag", "Location")}.get(operation.status, ())
    if names:
        answer["headers"] = {name: {"schema": {"type": "string"}} for name in names}
    return answer


def _requested(operation: Operation) -> dict[int | str, dict[str, Any]]:
    """The answer to a change that needs approval (D55)."""
    if not operation.requested:
        return {}
    schema = {"$ref": "#/components/schemas/Approval"}
    return {
        202: {
            "description": "Nothing has changed yet: the change needs another administrator's approval, and has been requested",
            "headers": {"Location": {"schema": {"type": "string"}}},
            "content": {"application/json": {"schema": schema}},
        }
    }


def _errors(operation: Operation) -> dict[int | str, dict[str, Any]]:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    meanings = {**_MEANINGS, **_MEANINGS_OF_LISTS} if operation.csv else _MEANINGS
    return {status: {"description": meanings[status], "content": problem} for status in _statuses(operation)}


def _record_schemas(resource: Resource) -> dict[str, Schema]:
    title, properties = resource.title, resource.properties
    kind = {**_TEXT, "readOnly": True}
    read_only = {
        "id": _said("Identifies the object in a path; opaque.", kind),
        "etag": _said("The entity tag, for If-Match.", kind),
    }
    if resource.names_user:
        read_only["user_id"] = _said("The person's UUID, which never changes.", kind)
        read_only["identity"] = _said(
            "The account's user name; of somebody invited, the address of the invitation.", kind
        )
    shown = {**read_only, **{name: _loose(schema) for name, schema in properties.items()}}
    patched = {name: _nullable(schema) for name, schema in properties.items() if name not in resource.identity}
    closed = {"type": "object", "additionalProperties": False}
    return {
        title: {
            **closed, "properties": shown, "required": ["id", "etag", *resource.required],
            "examples": [_example(title)],
        },
        f"New{title}": {
            **closed, "properties": properties, "required": resource.required, "examples": [EXAMPLES[title]],
        },
        f"{title}Patch": {**closed, "properties": patched, "examples": [_CHANGES[title]]},
        f"{title}Page": _list_page(title),
    }  # fmt: skip


def _loose(schema: Schema) -> Schema:
    """As it is shown: a later version may know more values."""
    return {name: value for name, value in schema.items() if name != "enum"}


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _page(items: Schema, one: Schema) -> Schema:
    following = {**_TEXT, "description": "The cursor of the next page; missing on the last page."}
    return {
        "type": "object",
        "properties": {"items": {"type": "array", "items": items}, "next": following},
        "required": ["items"],
        "examples": [{"items": [one]}],
    }


def _list_page(title: str) -> Schema:
    """A page of a list of records, which can be counted (D83)."""
    page = _page({"$ref": f"#/components/schemas/{title}"}, _example(title))
    page["properties"] |= {
        "previous": {**_TEXT, "description": "The cursor of the page before; missing on the first page."},
        "total": {**_NUMBER, "description": "Objects of all pages, counted up to 10,000; only with `total`."},
        "total_is_exact": {"type": "boolean", "description": "False if there are more than 10,000."},
    }
    return page


def _other_schemas() -> dict[str, Schema]:
    fault = {
        "type": "object",
        "properties": {
            "pointer": _said("JSON pointer of the member (RFC 6901)."),
            "parameter": _said("Name of the query parameter."),
            "line": _said("Line of a document in YAML."),
            "detail": _said("What is wrong, and what is allowed."),
        },
        "required": ["detail"],
    }
    return {
        "Problem": {
            "type": "object",
            "description": "Problem details (RFC 9457).",
            "properties": {
                "type": _TEXT, "title": _TEXT, "status": _NUMBER, "detail": _TEXT,
                "reference": _said("Identifies the request in the log."),
                "errors": {"type": "array", "items": fault},
            },
            "required": ["type", "title", "status", "detail", "reference"],
        },
        **_listed("Key", _shown(_KEY, "", {"signs_from": _MAYBE_NUMBER})),
        "NewKey": {
            "type": "object", "properties": {"at_once": {"type": "boolean"}}, "additionalProperties": False,
            "examples": [{}],
        },
        "KeySet": {
            "type": "object", "description": "A JWK Set (RFC 7517).",
            "properties": {"keys": {"type": "array", "items": {"type": "object"}}}, "required": ["keys"],
            "examples": [{"keys": [_PUBLIC_KEY]}],
        },
        **_listed("ClientRefusal", _shown(_REFUSAL, "A refused request of a relying party.", {
            "claimed": _said("Whether nobody had proven that the request was the client's.", {"type": "boolean"}),
            "at": _said("Epoch seconds.", _NUMBER),
            "reference": _said("The reference that the answer named."),
            "reason": _said("A code of the catalogue of refusals (docs/reference/errors.md)."),
        })),
        **_listed("Session", _shown(_SESSION, "A browser in which a person is signed in.", {
            "purpose": _said(
                "sign_in for single sign-on; account, manage or console for the pages of the provider itself."
            ),
            "entity": _said("The entity chosen last; empty before the first choice."),
            "device": _said("Browser and operating system, if known."),
        })),
        **_listed("Consent", _shown(_CONSENT, "What a person agreed to share with a relying party, for an entity.")),
        "AccessReview": _shown(
            _ACCESS_REVIEW, "The yearly access review of an entity: the next or open one, and the last one.",
            dict.fromkeys(("due_at", "began_at", "signed_off_at"), _MAYBE_NUMBER),
        ),
        **_listed("ReviewedPerson", _shown(
            _REVIEWED, "A person of an entity, what they may do, and the decision about it.", {
            "third_party_roles": {"type": "array", "items": {"type": "object"}},
            "services": {"anyOf": [{"type": "array", "items": _TEXT}, {"const": "all"}]},
            "reviewed": _said("Whether the person was kept with exactly what they may do now.", {"type": "boolean"}),
            "seen": _said("Names what is shown; it changes if anything of it changes."),
        })),
        **_listed("DeletionRequest", _shown(_DELETION_REQUEST, "A person who asked to be deleted, and when.")),
        "Erased": _shown(_ERASED, "An erased person, by what is left of them.", {
            "details": _said("Audit entries that lost their details.", _NUMBER),
        }),
        **_listed("Lock", _shown(_LOCK, "A pause after too many wrong codes.", {
            "browser": _said("known, new for all others together, or link for enrolments by a link."),
        })),
        **_listed("Invitation", _shown(_INVITATION, "An invitation to act for an entity, as the entity wrote it.", {
            **_DETAILS,
            "state": {"type": "string", "enum": ["invited", "accepted"]},
            "email_state": {
                "type": "string", "enum": list(get_args(EmailState)),
                "description": "none: no e-mail is to be sent. waiting: a server will send it. refused: the mail server "
                "reports no such mailbox. no_mail: it waits, because this deployment sends no e-mail (`mail_url`).",
            },
        })),
        "NewInvitation": {
            "type": "object",
            "properties": {
                "entity": _said("The entity that invites; by default the client's own entity."),
                **_DETAILS,
                "send": {"type": "boolean", "default": True, "description": "Whether to send the e-mail."},
            },
            "required": ["name", "email"], "additionalProperties": False, "examples": [_NEW_INVITATION],
        },
        **_listed("Approval", _shown(_APPROVAL, "A change that needs another administrator's approval.", {
            "changes": _DIFFERENCES,
            "state": _said("pending, approved (and done), declined, withdrawn or expired."),
            "entity": _said("The entity whose administrators decide."),
            "requester": _said("The actor, as in the audit."),
            "requester_name": _said("For a person, the user name and the name."),
            "decided_by_name": _said("Likewise; empty while the request waits."),
            "comments": {
                "type": "array", "description": "What administrators wrote about the request, the earliest first.",
                "items": _shown({"author": "user:u-1", "author_name": "lina (Lina Rahman)", "text": "Since when?",
                                 "at": 1795000100}, "", {"author": _said("The actor, as in the audit.")}),
            },
        })),
        "ApprovalPatch": {
            "type": "object", "properties": {"state": {"type": "string", "enum": ["withdrawn"]}},
            "required": ["state"], "additionalProperties": False, "examples": [{"state": "withdrawn"}],
        },
        **_listed("AuditEntry", _shown({each: _ENTRY[each] for each in (*AuditEntry.__struct_fields__, "people")}, "", {
            "people": _said("The user names of people in this entry, by identifier.", {"type": "object"}),
        }), page="AuditPage"),
        "AuditVerification": _shown(
            _VERIFIED, "The output of `corpid audit verify --json` for a part of the seals.", {
            "digest": _said("Digest of the last seal of this part, as in the log; empty if the part has no seal."),
            "entries": _said("Sealed entries that exist.", _NUMBER),
            "pruned": _said("Sealed entries that were removed by age.", _NUMBER),
            "erased": _said("Entries whose details were erased.", _NUMBER),
            "unsealed": _said("Entries that are not protected yet; counted in the last part.", _NUMBER),
            "found": _said("Number of problems; `findings` has at most 1,000.", _NUMBER),
            "findings": {"type": "array", "items": {
                "type": "object", "required": list(SealFinding.__struct_fields__),
                "properties": {
                    name: _NUMBER if name == "number" else _TEXT for name in SealFinding.__struct_fields__
                },
            }},
            "next": _said("The `after` of the next part; null after the last one.", _MAYBE_NUMBER),
        }),
        **_overview(),
        "Maintenance": {
            "type": "object", "properties": {"maintenance": {"type": "boolean"}}, "required": ["maintenance"],
            "additionalProperties": False, "examples": [{"maintenance": False}],
        },
        "DirectoryDocument": {
            "type": "object",
            "description": "A directory file: docs/directory.md has its sections and keys.",
            "properties": {name.split(".")[0]: {} for name in SECTIONS},
            "additionalProperties": False,
            "examples": [{"entities": {"E1001": {"type": "UEN", "country": "SG", "name": "Harbour Bakery Pte. Ltd."}}}],
        },
        "Applied": _shown(_APPLIED, "What `corpid apply --json` prints, with its warnings.", {
            "changes": _DIFFERENCES,
            "kept": {
                "type": "array",
                "description": "Records that stay because others wrote them (docs/directory.md, \"Who wins\").",
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
        }),
    }  # fmt: skip


def _said(description: str, kind: Schema = _TEXT) -> Schema:
    return {**kind, "description": description}


def _shown(example: Schema, description: str = "", members: Mapping[str, Schema] = MappingProxyType({})) -> Schema:
    """The schema of an answer.

    The kind of a member is that of the example's value, except of `members`.
    """
    return {
        "type": "object",
        **({"description": description} if description else {}),
        "properties": {name: members.get(name) or _kind_of(value) for name, value in example.items()},
        "required": list(example),
        "examples": [example],
    }


def _kind_of(value: object) -> Schema:
    """The kind of an example's value; null is a moment to come."""
    if isinstance(value, list):
        return {"type": "array", "items": _kind_of(value[0]) if value else _TEXT}
    return {bool: {"type": "boolean"}, int: _NUMBER, NoneType: _MAYBE_NUMBER, dict: {"type": "object"}}.get(
        type(value), _TEXT
    )


def _listed(title: str, schema: Schema, *, page: str = "") -> dict[str, Schema]:
    """The schema of an answer, and of a page of several."""
    [example] = schema["examples"]
    return {title: schema, page or f"{title}Page": _page({"$ref": f"#/components/schemas/{title}"}, example)}
