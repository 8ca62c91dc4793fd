"""Authorization requests and responses.

Parameters become a typed request by every content rule of PAR and of queries. Source: Spec 4.1, RFC 6749 §4.1.2, RFC
9207, D38
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.limits import CONTEXT_MESSAGE_CHARACTERS, NONCE_CHARACTERS, STATE_CHARACTERS, UI_LOCALES_CHARACTERS
from corpid.rules.oauth import acr, scopes, token_request
from corpid.rules.oauth.errors import (
    InvalidRequest,
    RequestNotSupported,
    RequestURINotSupported,
    list_values,
    public_members,
    shorten_value,
    url_difference,
    without_query,
)
from corpid.rules.oauth.parameters import encode_pairs, lone, require_parameter
from corpid.rules.oauth.records import AuthorizationRequest
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from corpid.rules.oauth.errors import OAuthError
    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import Client

REQUEST_PARAMETERS: Final = frozenset(
    {
        "client_id", "response_type", "redirect_uri", "scope", "state", "nonce", "code_challenge",
        "code_challenge_method", "acr_values", "response_mode", "prompt", "max_age", "request", "request_uri", "ui_locales",
    }
)  # fmt: skip
"""what an authorization request in the query may hold; anybody can write a query, so it says nothing to the person"""
PUSHED_PARAMETERS: Final = REQUEST_PARAMETERS | {
    "authentication_context_type", "authentication_context_message", "dpop_jkt",
    "client_assertion_type", "client_assertion", "client_secret",
}  # fmt: skip

_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+")
_MESSAGE: Final = re.compile(r"[A-Za-z0-9 .,\-@'!()]+")
_PLAIN_MESSAGE: Final = re.compile(r"[A-Za-z0-9 ]+")
_PROMPTS: Final = frozenset({"none", "login", "consent", "select_account"})
_MODE_CHARACTERS: Final = 32
_CONTEXT_TYPE: Final = "authentication_context_type"
_LANGUAGE_TAG: Final = re.compile(r"[A-Za-z0-9-]{1,35}")
_MAX_AGE: Final = re.compile(r"[0-9]{1,9}")


class AuthorizationResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response to a proven redirect URI, with its parameters."""

    redirect_uri: str
    mode: str
    """query, fragment or form_post"""
    parameters: Mapping[str, str]
    reason: str = ""
    """the code of a refusal's reason, for the log"""
    detail: str = ""
    """the exact cause of a refusal, for the log"""

    @property
    def posted(self) -> bool:
        """True if a form carries the parameters in its body.

        Source: OAuth 2.0 Form Post Response Mode §2
        """
        return self.mode == "form_post"

    @property
    def url(self) -> str:
        """The redirect URI with the response in its query or fragment.

        After its own query. Source: RFC 6749 §3.1.2, D38
        """
        if not self.parameters:
            return self.redirect_uri
        separator = "#" if self.mode == "fragment" else "&" if "?" in self.redirect_uri else "?"
        return f"{self.redirect_uri}{separator}{encode_pairs(self.parameters)}"


class ReturnAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A proven redirect URI with response mode, state and issuer."""

    redirect_uri: str
    mode: str
    state: str | None
    iss: str | None


def validate_request(
    parameters: dict[str, str],
    client: Client,
    generation: Generation,
    *,
    jkt: str | None,
    acr_prefix: str,
    message_punctuation: bool = True,
    pkce_optional: bool = False,
) -> AuthorizationRequest:
    """Validate the content of an authorization request of this client.

    `jkt` is the thumbprint of the key that the code will be bound to; `message_punctuation` allows more than letters,
    digits and spaces in the message; `pkce_optional` says whether the client may leave PKCE out. Raises InvalidRequest
    or InvalidScope, in the query also RequestNotSupported or RequestURINotSupported.
    Source: Spec 4.1, RFC 9126 §2.1, D5, D10-D14, D40, D63
    """
    response_mode = _read_response_mode(parameters, generation)
    _refuse_objects(parameters, generation)
    granted = scopes.validate_scopes(require_parameter(parameters, "scope"), client.scopes, generation.scopes)
    redirect_uri = require_registered_redirect_uri(parameters, client)
    if require_parameter(parameters, "response_type") != "code":
        raise InvalidRequest(Reason.RESPONSE_TYPE, "response_type must be code").with_cause(
            received=shorten_value(parameters["response_type"])
        )
    challenge = token_request.read_challenge(parameters, optional=pkce_optional)
    for name in sorted(generation.required_parameters - {_CONTEXT_TYPE}):
        require_parameter(parameters, name)
    return AuthorizationRequest(
        client_id=client.client_id,
        generation=generation.name,
        redirect_uri=redirect_uri,
        scopes=granted,
        code_challenge=challenge,
        state=_read_printable(parameters, "state", STATE_CHARACTERS),
        nonce=_read_printable(parameters, "nonce", NONCE_CHARACTERS),
        acr=acr.choose(
            parameters.get("acr_values"),
            prefix=acr_prefix,
            client_level=client.assurance_level,
            generation=generation,
        ),
        context_type=_read_context_type(parameters, client, generation),
        context_message=_read_context_message(parameters, punctuation=message_punctuation),
        jkt=jkt,
        response_mode=response_mode,
        prompt=_read_prompt(parameters),
        max_age=_read_max_age(parameters),
        ui_locales=_read_ui_locales(parameters),
    )


def require_registered_redirect_uri(parameters: dict[str, str], client: Client) -> str:
    """The redirect URI, if the client registered exactly this string.

    Raises InvalidRequest. Source: Spec 4.1, D38
    """
    value = require_parameter(parameters, "redirect_uri")
    if value not in client.redirect_uris:
        difference = url_difference(value, client.redirect_uris)
        raise InvalidRequest(
            Reason.REDIRECT_URI_NOT_REGISTERED,
            "redirect_uri is not one of the URIs registered for this client, character by character",
        ).with_cause(
            cause=f"redirect_uri is not registered{difference and f': {difference}'}",
            received=without_query(value),
            registered=list_values(map(without_query, client.redirect_uris)),
        )
    return value


def choose_error_mode(raw: bytes, generation: Generation) -> str:
    """The response mode of a query request's error.

    The requested one, if it was requested once and is served. Source: OAuth 2.0 Multiple Response Type Encoding
    Practices §2.1, Spec "Generations"
    """
    asked = lone(raw, "response_mode", longest=_MODE_CHARACTERS)
    return asked if asked in generation.response_modes else generation.response_modes[0]


def _read_printable(parameters: dict[str, str], name: str, longest: int) -> str | None:
    value = parameters.get(name)
    if value is not None and (len(value) > longest or not _PRINTABLE.fullmatch(value)):
        raise InvalidRequest(
            Reason.PARAMETER_NOT_PRINTABLE, f"{name} must be 1 to {longest} printable ASCII characters"
        )
    return value


def _read_context_type(parameters: dict[str, str], client: Client, generation: Generation) -> str | None:
    value, rule = parameters.get(_CONTEXT_TYPE), client.context_type_rule
    registered = f"the context_type_rule of this client is {rule}"
    if value is None and rule == "required" and _CONTEXT_TYPE in generation.required_parameters:
        refusal = InvalidRequest(Reason.CONTEXT_TYPE_MISSING, f"parameter {_CONTEXT_TYPE} is missing: {registered}")
        raise refusal.with_cause(expected=list_values(client.context_types))
    if value is not None and rule == "refused":
        raise InvalidRequest(Reason.CONTEXT_TYPE_REFUSED, f"leave {_CONTEXT_TYPE} out: {registered}")
    if value is not None and value not in client.context_types:
        raise InvalidRequest(
            Reason.CONTEXT_TYPE_UNKNOWN, f"{_CONTEXT_TYPE} must be one of {', '.join(client.context_types)}"
        ).with_cause(received=shorten_value(value))
    return value


def _read_context_message(parameters: dict[str, str], *, punctuation: bool) -> str | None:
    value = parameters.get("authentication_context_message")
    alphabet = _MESSAGE if punctuation else _PLAIN_MESSAGE
    if value is not None and (len(value) > CONTEXT_MESSAGE_CHARACTERS or not alphabet.fullmatch(value)):
        allowed = (
            "ASCII letters, digits, space and . , - @ ' ! ( )" if punctuation else "ASCII letters, digits and spaces"
        )
        raise InvalidRequest(
            Reason.CONTEXT_MESSAGE,
            f"authentication_context_message must be at most {CONTEXT_MESSAGE_CHARACTERS} characters: {allowed}",
        )
    return value


def _refuse_objects(parameters: dict[str, str], generation: Generation) -> None:
    """Refuse request objects: parameters must be sent directly.

    A pushed request has one error code for that, a query has two.
    """
    for name, reason, refusal in (
        ("request", Reason.REQUEST_OBJECT, RequestNotSupported),
        ("request_uri", Reason.REQUEST_OBJECT_BY_REFERENCE, RequestURINotSupported),
    ):
        if name in parameters:
            raise (InvalidRequest if generation.pushed else refusal)(reason, f"parameter {name} is not accepted here")


def _read_response_mode(parameters: dict[str, str], generation: Generation) -> str:
    value = parameters.get("response_mode", generation.response_modes[0])
    if value not in generation.response_modes:
        raise InvalidRequest(
            Reason.RESPONSE_MODE, f"response_mode must be {' or '.join(generation.response_modes)}"
        ).with_cause(received=shorten_value(value))
    return value


def _read_prompt(parameters: dict[str, str]) -> tuple[str, ...]:
    prompts = tuple(dict.fromkeys(parameters.get("prompt", "").split()))
    if not _PROMPTS.issuperset(prompts):
        raise InvalidRequest(Reason.PROMPT_UNKNOWN, f"prompt must be among {', '.join(sorted(_PROMPTS))}").with_cause(
            received=shorten_value(parameters["prompt"])
        )
    if "none" in prompts and len(prompts) > 1:
        raise InvalidRequest(Reason.PROMPT_NONE_WITH_ANOTHER, "prompt none cannot be combined with another value")
    return prompts


def _read_max_age(parameters: dict[str, str]) -> int | None:
    value = parameters.get("max_age")
    if value is None:
        return None
    if not _MAX_AGE.fullmatch(value):
        raise InvalidRequest(Reason.MAX_AGE, "max_age must be a whole number of seconds")
    return int(value)


def _read_ui_locales(parameters: dict[str, str]) -> tuple[str, ...]:
    """The language tags.

    Unknown or malformed ones are ignored (OpenID Connect Core §3.1.2.1).
    """
    value = parameters.get("ui_locales", "")
    if len(value) > UI_LOCALES_CHARACTERS:
        raise InvalidRequest(Reason.UI_LOCALES, f"ui_locales must be at most {UI_LOCALES_CHARACTERS} characters")
    return tuple(tag for tag in value.split(" ") if _LANGUAGE_TAG.fullmatch(tag))


def address_response(request: AuthorizationRequest, *, iss: str | None) -> ReturnAddress:
    """The return address of a validated request.

    Source: RFC 6749 §4.1.2, RFC 9207 §2
    """
    return ReturnAddress(redirect_uri=request.redirect_uri, mode=request.response_mode, state=request.state, iss=iss)


def create_code_response(address: ReturnAddress, *, code: str) -> AuthorizationResponse:
    """A code for the client (RFC 6749 §4.1.2)."""
    return _create_response(address, {"code": code})


def create_error_response(
    address: ReturnAddress, error: OAuthError, *, reference: str, catalogue: str | None = None
) -> AuthorizationResponse:
    """A refusal for the client.

    `reference` is the request id, `catalogue` that of `public_members`. Source: RFC 6749 §4.1.2.1, D28
    """
    parameters = public_members(error, reference, catalogue=catalogue)
    return msgspec.structs.replace(_create_response(address, parameters), reason=error.reason.code, detail=error.exact)


def _create_response(address: ReturnAddress, parameters: dict[str, str]) -> AuthorizationResponse:
    if address.state is not None:
        parameters["state"] = address.state
    if address.iss is not None:
        parameters["iss"] = address.iss
    return AuthorizationResponse(redirect_uri=address.redirect_uri, mode=address.mode, parameters=parameters)
