"""Error responses: as JSON, challenge or page (D5, D24, D28).

Also the reasons of refusals as pages say them within their own sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from corpid.jose.compact import MAX_BYTES
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.records import Conflict, LastOwnerRemoved, NameTaken
from corpid.rules.failures import PasswordsBusy, StoreUnavailable
from corpid.rules.oauth.client_assertion import claimed_client_id
from corpid.rules.oauth.errors import (
    ContentTooLarge,
    CredentialsRequired,
    InsufficientScope,
    InvalidClient,
    InvalidDPoPProof,
    InvalidRequestURI,
    OAuthError,
    ServerError,
    TemporarilyUnavailable,
    TooManyRequests,
    UnsupportedContentCoding,
    UseDPoPNonce,
    misplaced_parameters,
    public_members,
)
from corpid.rules.oauth.parameters import lone
from corpid.rules.oauth.refusals import Reason
from corpid.texts import Phrase, counted, phrase
from corpid.web.http.requests import headers
from corpid.web.pages.components import BARE, Frame, Link, ViewPart, client_site
from corpid.web.pages.responses import page_response
from corpid.web.pages.views import Problem
from corpid.web.telemetry.access_log import LogFields, exception_place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from corpid.rules.oauth.generations import AuthenticationRules
    from corpid.web.pages.rendering import Renderer

NOT_CACHED: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_NOT_AS_EXPECTED: Final = phrase(
    "The service you came from sent you here in a way that we cannot use. This is a fault at that service, not yours."
)
_FOR_PEOPLE: Final[Mapping[type[OAuthError], Phrase]] = {
    InvalidRequestURI: phrase("The link that brought you here has expired. It works once, and only for a short time."),
    ServerError: phrase("Something went wrong here. This is our fault, not yours."),
    TooManyRequests: phrase(
        "Too many requests are coming from your network at the moment, so we did not take this one."
    ),
    TemporarilyUnavailable: phrase(
        "This site is too busy at the moment, or under maintenance. This is not your fault."
    ),
}
"""the more special kind before the one that it is of"""
_TELL_SERVICE: Final = phrase(
    "Go back to the service you came from and try again. If this page comes back, tell that service, and give it the "
    "reference below."
)
_AGAIN: Final = phrase("Your sign-in is not lost. Wait a moment, then open the page again.")
_RELOAD: Final = phrase(
    "Wait a moment, then reload this page. If that does not help, go back to the service you came from and start again."
)
_TELL: Final = phrase("Starting again does not help. Tell the service you came from, and give it the reference below.")
_INSTEAD_OF_RETRY: Final[Mapping[Reason, Phrase]] = {
    Reason.CLIENT_ID_UNKNOWN: _TELL,
    Reason.CLIENT_DISABLED: _TELL,
    Reason.CLIENT_OF_ANOTHER_ISSUER: _TELL,
}
"""what helps if another attempt cannot"""
_BUSY: Final = phrase("Please try again in a moment")
_OLD_FORM: Final = frozenset({Reason.FORM_OF_ANOTHER_SITE, Reason.FORM_OF_ANOTHER_BROWSER})
_GO_BACK: Final = phrase("Go back to the service you came from and start again.")
_PAGE_STATUSES: Final = frozenset(
    {ContentTooLarge.status, ServerError.status, TemporarilyUnavailable.status, TooManyRequests.status}
)
_NAMING: Final = {"client_id": 256, "client_assertion": MAX_BYTES}
"""the parameters that say whose a request is, with the characters that are looked at"""
RESOURCE_STATUS: Final[Mapping[str, int]] = {UseDPoPNonce.code: 401}
"""error code → its status at resources if it is not the usual one"""


class ErrorContext(ViewPart, frozen=True, kw_only=True):
    """The context of an error page: frame and link to continue.

    `goes_on`: the sign-in continues.
    """

    frame: Frame = BARE
    back: Link | None = None
    goes_on: bool = False
    own_page: bool = False
    """whether it is a page of account, portal or console, at which no service waits"""


_MEANWHILE: Final = phrase("somebody else changed this at the same time: check it and try again")
_CONFLICTS: Final[Mapping[type[Conflict], Phrase]] = {
    NameTaken: phrase("another person has this user name"),
    LastOwnerRemoved: phrase("this would remove the last owner or the last operator"),
}


def as_oauth_error(error: Exception) -> OAuthError:
    """The public OAuth error of an exception.

    server_error if it is unknown, 503 without a store. Of an unknown one the log has type and place only, since its
    message may contain what a caller sent (D48).
    """
    if isinstance(error, OAuthError):
        return error
    if isinstance(error, StoreUnavailable | PasswordsBusy):
        reason = Reason.BUSY if isinstance(error, PasswordsBusy) else Reason.STORE_UNAVAILABLE
        busy = TemporarilyUnavailable(reason, "the provider is busy or down: try again in a moment", detail=str(error))
        busy.client_id = error.client_id
        return busy
    return ServerError(Reason.UNFORESEEN, "an unexpected error occurred", detail=exception_place(error))


def record(request: Request, error: OAuthError) -> str:
    """Record an error for the access log and return its reference.

    The entry names the client, or the one that the request claims. Source: D28, D48
    """
    state = request.scope["state"]
    shown = misplaced_parameters(
        error.reason,
        posted=request.method == "POST",
        query=request.scope["query_string"],
        body=state.get("form", b""),
        types=headers(request, b"content-type"),
    )
    if shown:
        error.with_hint(shown)
    log: LogFields = state["log"]
    log["error"] = error.code
    log["reason"] = error.reason.code
    log["detail"] = error.exact
    if error.explanation is not None:
        state["explanation"] = error.explanation
    if error.client_id:
        log["client_id"] = error.client_id
    elif "client_id" not in log:
        claimed = error.requesting_client.client.client_id if error.requesting_client else _claimed_client_id(request)
        if claimed:
            log["claimed_client_id"] = claimed
    reference: str = state["request_id"]
    return reference


def as_json(
    request: Request,
    raised: Exception,
    rules: AuthenticationRules,
    state: str | None = None,
    *,
    catalogue: str | None = None,
) -> Response:
    """An error of PAR or the token endpoint.

    `state` is echoed, at PAR; `catalogue` is that of `public_members`. Source: D4, D5, D28
    """
    error = as_oauth_error(raised)
    reference = record(request, error)
    content = public_members(error, reference, catalogue=catalogue)
    if state is not None:
        content["state"] = state
    status = rules.statuses.get(error.code, error.status)
    answer = Response(msgspec.json.encode(content), status, NOT_CACHED, "application/json")
    challenge = _challenge_of_endpoint(request, error, content, status)
    if challenge:
        answer.headers["WWW-Authenticate"] = challenge
    _add_error_headers(request, answer, error)
    return answer


def as_challenge(
    request: Request, raised: Exception, rules: AuthenticationRules, issuer: str, *, catalogue: str | None
) -> Response:
    """An error of a resource: one challenge, and the same in JSON.

    Without credentials it has neither error nor body; with a catalogue of reasons, a Link says why.
    Source: Spec 7.4, D24, D28, RFC 8288 §3
    """
    error = as_oauth_error(raised)
    reference = record(request, error)
    challenge = challenge_of(rules, issuer)
    if isinstance(error, CredentialsRequired):
        answer = Response(b"", error.status, {**NOT_CACHED, "WWW-Authenticate": challenge})
        if catalogue:
            members = public_members(error, reference, catalogue=catalogue)
            answer.headers["Link"] = f'<{members["error_uri"]}>; rel="help"; title="{members["error_description"]}"'
        _link_to_inspector(request, answer)
        return answer
    members = public_members(error, reference, catalogue=catalogue)
    challenge += f", {_parameters(members)}"
    if isinstance(error, InsufficientScope):
        challenge += f', scope="{error.scope}"'
    content = msgspec.json.encode(members)
    status = RESOURCE_STATUS.get(error.code, error.status)
    answer = Response(content, status, NOT_CACHED, "application/json")
    if status < ServerError.status:
        answer.headers["WWW-Authenticate"] = challenge
    _add_error_headers(request, answer, error)
    return answer


def challenge_of(rules: AuthenticationRules, issuer: str) -> str:
    """The start of the one challenge of a resource (D24)."""
    if rules.sender_constrained:
        return f'{rules.scheme} algs="{" ".join(rules.proof_algorithms)}"'
    return f'{rules.scheme} realm="{issuer}"'


def as_page(request: Request, raised: Exception, renderer: Renderer, met: ErrorContext | None = None) -> Response:
    """An error page: what happened, what to do, and the reference.

    What a developer has to change is in the log, under the reference, and in developer mode on the page. Source: D16,
    D28
    """
    error = as_oauth_error(raised)
    met = met or _met_by(error)
    reference = record(request, error)
    status = error.status if error.status in _PAGE_STATUSES else 400
    view = replace(problem(error, met, reference), inspector=request.scope["state"].get("inspector", ""))
    answer = page_response(request, renderer, view, status=status)
    _add_error_headers(request, answer, error)
    return answer


def problem(error: OAuthError, met: ErrorContext, reference: str) -> Problem:
    """The view of an error, with what the reader can do.

    Source: D16, D28
    """
    of_own_page = met.own_page or isinstance(error, ContentTooLarge)
    heading, paragraphs = _of_own_page(error) if of_own_page else _of_sign_in(error, met)
    return Problem(
        frame=met.frame,
        heading=heading,
        paragraphs=paragraphs,
        reference=reference,
        for_developers=error.cause,
        compared=error.explanation.values if error.explanation is not None else (),
        reason=error.reason.code,
        back=met.back,
    )


def machine_error(
    request: Request,
    status: int,
    reason: Reason,
    description: str,
    extra: dict[str, str],
    *,
    catalogue: str | None,
) -> Response:
    """404, 405 and their like on machine endpoints.

    `catalogue` is that of `public_members`. Source: D28, D32
    """
    state = request.scope["state"]
    (code,) = reason.value.errors
    state["log"].update(error=code, reason=reason.code)
    content = {"error": code, "error_description": f"{description} (reference {state['request_id']})"}
    if catalogue:
        content["error_uri"] = f"{catalogue}#{reason.code}"
    answer = Response(msgspec.json.encode(content), status, {**NOT_CACHED, **extra}, "application/json")
    _link_to_inspector(request, answer)
    return answer


def reason_of(refused: Exception) -> str:
    """The reason of a refusal, as a page can say it.

    What the registry's rules say about a record is no phrase, and stays in English.
    """
    if isinstance(refused, Forbidden):
        return refused.reason
    if isinstance(refused, Conflict):
        return _CONFLICTS.get(type(refused), _MEANWHILE)
    [first, *rest] = refused.args or ("",)
    if isinstance(first, Phrase) and not rest:
        return first
    return " ".join(str(each).strip() for each in refused.args).rstrip(".")


def refusal_of(error: Exception) -> Phrase:
    """A refusal of a flow in a sentence. Source: D50"""
    if isinstance(error, Forbidden):
        return phrase("You cannot do this: {reason}.", reason=error.reason)
    return phrase("This cannot be done: {reason}.", reason=reason_of(error))


def _claimed_client_id(request: Request) -> str:
    state = request.scope["state"]
    sent = state.get("parameters")
    if sent is None:
        raw = state.get("form") or request.scope["query_string"]
        found = {name: lone(raw, name, longest=longest) for name, longest in _NAMING.items()}
        sent = {name: value for name, value in found.items() if value is not None}
    return claimed_client_id(sent, headers(request, b"authorization"))


def _parameters(members: Mapping[str, str]) -> str:
    """The parameters of a challenge (RFC 6750 §3)."""
    return ", ".join(f'{name}="{value}"' for name, value in members.items() if name != "state")


def _challenge_of_endpoint(request: Request, error: OAuthError, members: Mapping[str, str], status: int) -> str:
    """A challenge for the Authorization header used, or for the proof."""
    if isinstance(error, InvalidDPoPProof) and status == InvalidDPoPProof.status:
        return f"DPoP {_parameters(members)}"
    authorization = headers(request, b"authorization")
    scheme = authorization[0].decode("latin-1").partition(" ")[0] if authorization else ""
    if isinstance(error, InvalidClient) and scheme.isascii() and scheme.replace("-", "").isalnum():
        return scheme
    return ""


def _add_error_headers(request: Request, answer: Response, error: OAuthError) -> None:
    _link_to_inspector(request, answer)
    if isinstance(error, UseDPoPNonce):
        answer.headers["DPoP-Nonce"] = error.nonce
    if isinstance(error, TemporarilyUnavailable):
        answer.headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, UnsupportedContentCoding):
        answer.headers["Accept-Encoding"] = "identity"


def _link_to_inspector(request: Request, answer: Response) -> None:
    """Name the request's page in the inspector (RFC 8288 §3, D66)."""
    inspector = request.scope["state"].get("inspector", "")
    if inspector:
        answer.headers.append("Link", f'<{inspector}>; rel="describedby"; title="This request in the inspector"')


def _of_sign_in(error: OAuthError, met: ErrorContext) -> tuple[Phrase, tuple[Phrase, ...]]:
    """Heading and paragraphs of a sign-in that failed."""
    busy = isinstance(error, TemporarilyUnavailable)
    heading = _BUSY if busy else phrase("This sign-in cannot continue")
    return heading, (_explanation(error, met), _advice(error, met))


def _of_own_page(error: OAuthError) -> tuple[Phrase, tuple[Phrase, ...]]:
    """Heading and paragraphs of a page of account, portal or console."""
    if isinstance(error, TooManyRequests):
        return phrase("Too many requests"), (_FOR_PEOPLE[TooManyRequests], _wait(error))
    if isinstance(error, TemporarilyUnavailable):
        return _BUSY, (_FOR_PEOPLE[TemporarilyUnavailable], phrase("Wait a moment, then reload this page."))
    if isinstance(error, ServerError):
        return phrase("Something went wrong"), (
            _FOR_PEOPLE[ServerError],
            phrase("Open the page again, and check whether your change was made before you repeat it."),
        )
    if isinstance(error, ContentTooLarge):
        return phrase("This form is too long"), (
            phrase("Nothing has changed. Go back, shorten what you entered, and send the form again."),
        )
    if error.reason in _OLD_FORM:
        return phrase("This form cannot be used any more"), (
            phrase("It is too old, or it was not opened here. Nothing has changed."),
            phrase("Open the page again, and fill in its form once more."),
        )
    return phrase("This page cannot be shown"), (
        error.sentence or phrase("This browser sent something that we cannot use."),
        phrase("Nothing has changed. Start again from the first page."),
    )


def _met_by(error: OAuthError) -> ErrorContext:
    """The error context of an interaction that failed to begin.

    Its client is known.
    """
    if error.requesting_client is None:
        return ErrorContext()
    client = error.requesting_client.client
    return ErrorContext(
        frame=Frame(client_name=client.name, ui_locales=error.requesting_client.ui_locales), back=client_site(client)
    )


def _explanation(error: OAuthError, met: ErrorContext) -> Phrase:
    """The explanation of an error, and whose fault it is."""
    if not _is_fault_of_service(error):
        return error.sentence or next(words for kind, words in _FOR_PEOPLE.items() if isinstance(error, kind))
    if met.goes_on:
        return phrase("This browser sent something that we cannot use.")
    name = met.frame.client_name
    if name is None:
        return _NOT_AS_EXPECTED
    return phrase("{name} sent you here in a way that we cannot use. This is a fault at {name}, not yours.", name=name)


def _is_fault_of_service(error: OAuthError) -> bool:
    return error.sentence is None and not isinstance(error, tuple(_FOR_PEOPLE))


def _advice(error: OAuthError, met: ErrorContext) -> Phrase:
    if isinstance(error, TooManyRequests):
        return _wait(error)
    if error.reason in _INSTEAD_OF_RETRY:
        return _INSTEAD_OF_RETRY[error.reason]
    name = met.frame.client_name
    if isinstance(error, TemporarilyUnavailable):
        return _AGAIN if met.goes_on else _RELOAD
    if name is None:
        return _TELL_SERVICE if _is_fault_of_service(error) else _GO_BACK
    if met.goes_on:
        return phrase("Open the page again. If that does not help, go back to {name} and start again.", name=name)
    if _is_fault_of_service(error):
        return phrase(
            "Go back to {name} and try again. If this page comes back, tell {name}, and give them the reference below.",
            name=name,
        )
    return phrase("Go back to {name} and start again.", name=name)


def _wait(error: TooManyRequests) -> Phrase:
    return counted(
        error.retry_after,
        "Wait {count} second, then reload this page.",
        "Wait {count} seconds, then reload this page.",
    )
