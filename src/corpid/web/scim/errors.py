"""Errors of SCIM, in its own form (RFC 7644 §3.12)."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pydantic import ValidationError
from scim2_models import (
    ConflictException,
    Error,
    ForbiddenException,
    InvalidValueException,
    NotFoundException,
    PreconditionFailedException,
    SCIMException,
    UniquenessException,
)
from scim2_server.errors import MethodNotAllowedException
from scim2_server.responses import SCIM_MEDIA_TYPE
from starlette.responses import Response

from corpid.flows.directory.invitations import RETRY_SECONDS, TooManyInvitations
from corpid.flows.directory.member_changes import LastOwner
from corpid.flows.directory.members import UnknownMember
from corpid.flows.directory.provisioned_groups import UnknownMembers
from corpid.flows.directory.write import IdentifierConflict, Refused
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.changes import ChangedMeanwhile, Conflict
from corpid.rules.directory.member_details import InvalidDetails
from corpid.rules.directory.records import MemberDetails
from corpid.rules.fields import fields_of
from corpid.rules.oauth.errors import CredentialsRequired, TemporarilyUnavailable
from corpid.texts import capitalise
from corpid.web.pages import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request

    from corpid.web.context import WebContext

_ATTRIBUTES: Final = {each.name: each.scim for each in fields_of(MemberDetails).values()}


_EXPECTED: Final = {
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "an object"),
    "list_type": "a list",
    "string_type": "a text",
}
"""pydantic's type of an error → what is expected"""
SCHEME: Final = "Bearer"


class TooMany(SCIMException):
    """A daily limit was exceeded."""

    status = 429


def scim_error(error: Exception) -> SCIMException | None:
    """The SCIM error of an exception of rules or flows.

    None for errors of OAuth and for unforeseen ones. Source: RFC 7644 §3.12, D60
    """
    invalid = error if isinstance(error, ValidationError) else error.__cause__ or error.__context__
    if isinstance(error, SCIMException | ValidationError) and isinstance(invalid, ValidationError):
        # The first fault of a resource, in CorpID's words. The library's texts contain its own types and web address.
        fault = invalid.errors()[0]
        found = Error.from_validation_error(fault)
        if not fault["type"].startswith("scim_"):
            attribute = str(found.detail).removeprefix(fault["msg"]).removeprefix(": ") or "the body"
            expected = _EXPECTED.get(fault["type"]) or fault.get("ctx", {}).get("expected", "another value")
            found = found.model_copy(update={"detail": f"{attribute}: {expected} is expected here"})
        return SCIMException.from_error(found)
    if isinstance(error, SCIMException):
        return error
    return next((made(error) for kind, made in _ERRORS if isinstance(error, kind)), None)


def _taken(attribute: str) -> SCIMException:
    return UniquenessException(detail=f"Another user of this entity has this {attribute}")


def _malformed(error: Any) -> SCIMException:  # noqa: ANN401
    faults = (f"{_ATTRIBUTES.get(member, member)}: {sentence}" for member, sentence in error.faults)
    return InvalidValueException(detail="; ".join(faults))


_ERRORS: Final[Sequence[tuple[type[Exception], Callable[[Any], SCIMException]]]] = (
    (UnknownMember, lambda _: NotFoundException(detail="There is no such resource")),
    (UnknownMembers, lambda error: InvalidValueException(detail=f"members: {error}")),
    (IdentifierConflict, lambda error: _taken(_ATTRIBUTES[error.member])),
    (
        LastOwner,
        lambda _: ConflictException(detail="Without this user the entity would have no owner: appoint one first"),
    ),
    (
        ChangedMeanwhile,
        lambda _: PreconditionFailedException(detail="The resource has changed: read it again"),
    ),
    (Refused, lambda error: InvalidValueException(detail=capitalise(str(error)))),
    (Conflict, lambda error: ConflictException(detail=capitalise(str(error)))),
    (InvalidDetails, _malformed),
    (TooManyInvitations, lambda error: TooMany(detail=capitalise(str(error)))),
    (Forbidden, lambda error: ForbiddenException(detail=capitalise(error.reason))),
)
"""subclasses before their base"""


def response(request: Request, raised: Exception, web: WebContext) -> Response:
    """The answer to a refused request, which the log line names.

    Source: RFC 6750 §3, RFC 7644 §3.12, D28, D48
    """
    found = scim_error(raised)
    headers = {"Cache-Control": "no-store"}
    if found is None:
        error = errors.as_oauth_error(raised)
        errors.record(request, error)
        found = SCIMException(detail=capitalise(error.description))
        found.status = error.status
        if error.status == HTTPStatus.UNAUTHORIZED:
            error_member = "" if isinstance(error, CredentialsRequired) else f', error="{error.code}"'
            headers["WWW-Authenticate"] = f'{SCHEME} realm="{web.provider.policy.base_url}"' + error_member
        if isinstance(error, TemporarilyUnavailable):
            headers["Retry-After"] = str(error.retry_after)
    else:
        request.scope["state"]["log"]["detail"] = f"{HTTPStatus(found.status).phrase}: {found.scim_type or 'SCIM'}"
    if isinstance(raised, TooManyInvitations):
        headers["Retry-After"] = str(RETRY_SECONDS)
    if isinstance(found, MethodNotAllowedException):
        headers["Allow"] = ", ".join([*found.allowed, *(["HEAD"] if "GET" in found.allowed else [])])
    content = msgspec.json.encode(found.to_error().model_dump())
    return Response(content, found.status, headers, SCIM_MEDIA_TYPE)
