"""Errors of the admin API as problem details (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from corpid.flows.directory.approvals import NoRequest
from corpid.flows.directory.invitations import RETRY_SECONDS, TooManyInvitations
from corpid.flows.directory.objects import ObjectChanged, ObjectConflict, ObjectNotFound
from corpid.flows.directory.write import IdentifierConflict, NoReason, Refused
from corpid.flows.operations.idempotency import KeyReused
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.member_details import InvalidDetails
from corpid.rules.directory.nodes import SHOWN
from corpid.rules.directory.objects import InvalidObject
from corpid.rules.failures import PasswordsBusy, StoreUnavailable
from corpid.rules.oauth.errors import OAuthError, TemporarilyUnavailable, UseDPoPNonce
from corpid.texts import capitalise
from corpid.web.pages import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request

    from corpid.web.context import WebContext

MEDIA_TYPE: Final = "application/problem+json"
_RETRY_SECONDS: Final = 5


class Problem(Exception):
    """A refusal with its status; `detail` is a sentence for the caller.

    `faults` are members `pointer` or `parameter`, and `detail`.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        faults: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.faults = tuple(faults)
        self.headers = dict(headers or {})


def problem_of_error(error: Exception) -> Problem | None:
    """The problem of an exception of the flows.

    None for one that is not foreseen, and for those of OAuth.
    """
    match error:
        case Problem():
            return error
        case InvalidObject(faults=faults):
            return _unfit((fault.pointer, fault.detail) for fault in faults[:SHOWN])
        case ObjectNotFound() | NoRequest():
            return Problem(404, "There is no such object")
        case NoReason():
            return Problem(
                422, "This needs another administrator's approval: give the reason in the header Change-Reason"
            )
        case ObjectConflict() | Refused() | Conflict():
            return Problem(409, capitalise(str(error)))
        case ObjectChanged():
            return Problem(
                412, "The object has changed since you read it: read it again, and decide on its current state"
            )
        case KeyReused():
            return Problem(422, "This Idempotency-Key was used for another request: use a new one")
        case Forbidden(reason=reason):
            return Problem(403, capitalise(reason))
        case StoreUnavailable() | PasswordsBusy():
            busy = {"Retry-After": str(_RETRY_SECONDS)}
            return Problem(503, "CorpID is busy or unavailable: try again in a moment", headers=busy)
        case _:
            return _of_invitation(error)


def _of_invitation(error: Exception) -> Problem | None:
    match error:
        case TooManyInvitations():
            return Problem(429, capitalise(str(error)), headers={"Retry-After": str(RETRY_SECONDS)})
        case IdentifierConflict(member=member):
            fault = {"pointer": f"/{member}", "detail": "another member of this entity has it"}
            return Problem(409, capitalise(str(error)), faults=[fault])
        case InvalidDetails(faults=faults):
            return _unfit((f"/{member}", sentence) for member, sentence in faults)
        case _:
            return None


def _unfit(faults: Iterable[tuple[str, str]]) -> Problem:
    listed = [{"pointer": pointer, "detail": detail} for pointer, detail in faults]
    return Problem(422, "The body is not valid: see errors", faults=listed)


def response(request: Request, error: Exception, web: WebContext) -> Response:
    """The answer to a refused request, which the log line names.

    Source: RFC 9457 §3, D28, D59
    """
    problem = problem_of_error(error) or _of_oauth(request, error, web)
    state = request.scope["state"]
    log, reference = state["log"], state["request_id"]
    if "reason" not in log:
        log["detail"] = f"{HTTPStatus(problem.status).phrase}: {', '.join(_places(problem)) or type(error).__name__}"
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        "reference": reference,
    }
    if problem.faults:
        content["errors"] = problem.faults
    headers = {"Cache-Control": "no-store", **problem.headers}
    return Response(msgspec.json.encode(content), problem.status, headers, MEDIA_TYPE)


def _of_oauth(request: Request, raised: Exception, web: WebContext) -> Problem:
    """A refusal of access token or proof, or a fault.

    With the challenge of an access token (RFC 9449 §7.1).
    """
    rules = web.provider.policy.api
    challenge = f'{rules.scheme} algs="{" ".join(rules.proof_algorithms)}"'
    error = errors.as_oauth_error(raised)
    errors.record(request, error)
    status = 401 if isinstance(error, UseDPoPNonce) else error.status
    headers: dict[str, str] = {}
    if status in {400, 401, 403} and isinstance(raised, OAuthError):
        error_member = "" if error.code == "credentials_required" else f', error="{error.code}"'
        scope = getattr(error, "scope", "")
        headers["WWW-Authenticate"] = challenge + error_member + (f', scope="{scope}"' if scope else "")
    if isinstance(error, UseDPoPNonce):
        headers["DPoP-Nonce"] = error.nonce
    if isinstance(error, TemporarilyUnavailable):
        headers["Retry-After"] = str(error.retry_after)
    return Problem(status, capitalise(error.description), headers=headers)


def _places(problem: Problem) -> list[str]:
    """The places of the faults.

    What they say may repeat a value.
    """
    return [fault.get("pointer") or fault.get("parameter", "") for fault in problem.faults]
