"""The authorization request, each parameter declared once, and its responses.

From a parameter's declaration follow the names that are read (D14), its value in the record, the inspector's check of
it, its rows in docs/reference/endpoints.md and the OpenAPI documents, and its place in the Bruno collections.
Source: Spec 4.1, 4.2, 4.9, R-4.1, RFC 6749 §4.1.1, §4.1.2, RFC 9207, D10-D14, D38, D40
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias, get_args, get_origin

import msgspec
from msgspec.structs import replace

from corpid.rules.limits import CONTEXT_MESSAGE_CHARACTERS, NONCE_CHARACTERS, STATE_CHARACTERS, UI_LOCALES_CHARACTERS
from corpid.rules.oauth import acr, token_request
from corpid.rules.oauth.errors import (
    InvalidRequest,
    InvalidScope,
    OAuthError,
    RequestNotSupported,
    RequestURINotSupported,
    list_values,
    public_members,
    shorten_value,
    url_difference,
    without_query,
)
from corpid.rules.oauth.parameters import encode_pairs, lone, require_parameter
from corpid.rules.oauth.refusals import Reason
from corpid.texts import Phrase

if TYPE_CHECKING:
    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import Client

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*")


def validate_scopes(
    text: str, registered: Collection[str], known: Sequence[str], *, needed: str = "openid"
) -> tuple[str, ...]:
    """The requested scopes, each once, in the order asked.

    `registered` are the client's, `known` those of the interface, `needed` is one that must be among them; empty: none.

    Raises InvalidScope. Source: RFC 6749 §3.3, Spec 4.1
    """
    if not _SCOPE.fullmatch(text):
        raise InvalidScope(Reason.SCOPE_MALFORMED, "scope must be a list of scope names separated by single spaces")
    requested = tuple(dict.fromkeys(text.split(" ")))
    if needed and needed not in requested:
        raise InvalidScope(Reason.SCOPE_WITHOUT_OPENID, f"scope must include {needed}").with_cause(
            received=shorten_value(text)
        )
    for scope in requested:
        if scope not in known:
            raise InvalidScope(Reason.SCOPE_UNKNOWN, f"scope {scope} is not known here; known: {' '.join(known)}")
        if scope not in registered:
            raise InvalidScope(
                Reason.SCOPE_NOT_REGISTERED, f"this client is not registered for scope {scope}"
            ).with_cause(registered=shorten_value(" ".join(registered)))
    return requested


def are_allowed(client: Client, granted: Iterable[str]) -> bool:
    """Return whether a client is still allowed every granted scope.

    Source: D50
    """
    return set(granted).issubset(client.scopes)


_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+")
_MESSAGE: Final = re.compile(r"[A-Za-z0-9 .,\-@'!()]+")
_PLAIN_MESSAGE: Final = re.compile(r"[A-Za-z0-9 ]+")
_PROMPTS: Final = frozenset({"none", "login", "consent", "select_account"})
_LANGUAGE_TAG: Final = re.compile(r"[A-Za-z0-9-]{1,35}")
_MAX_AGE: Final = re.compile(r"[0-9]{1,9}")

Required: TypeAlias = bool | Callable[["Generation"], bool]
Documented: TypeAlias = str | Callable[["Generation"], str]
"""a text for the documents, the same in all generations or not"""


class RequestRules(NamedTuple):
    """The client, generation and policy that a request has to fit."""

    client: Client
    generation: Generation
    acr_prefix: str
    message_punctuation: bool


class RequestParameter(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of a parameter."""

    name: str = ""
    """empty: that of its member of the record"""
    pushed_only: bool = False
    """anybody can write a query, so it says nothing to the person"""
    required: Required = False
    """of one without a reader; the others are required by `required_parameters` of the generations"""
    refused: bool = False
    limit: int = 0
    """characters of a text"""
    read: Callable[[RequestParameter, str | None, RequestRules], Any] | None = None
    """its value in the record; None: `validate_request` reads it in an order of its own"""
    reasons: tuple[Reason, ...]
    """why a request is refused for it"""
    value: Documented = ""
    """what may stand there"""
    meaning: Documented
    condition: Documented = ""
    """when it is required otherwise than in general"""
    label: Phrase | None = None
    """its name on the consent page; None: it is not shown there"""
    expected: str = ""
    """for the inspector"""
    check: str = ""
    """its name in the inspector; empty: that of the parameter"""
    example: str = ""
    """what the Bruno collections send, unless it is a variable of theirs"""

    def is_required(self, generation: Generation) -> bool:
        """Return whether a request of a generation needs it.

        A client's record may say otherwise. Source: Spec 4.1
        """
        required = self.required(generation) if callable(self.required) else self.required
        return required or self.name in generation.required_parameters


def _read_printable(parameter: RequestParameter, value: str | None, _: RequestRules) -> str | None:
    if value is not None and (len(value) > parameter.limit or not _PRINTABLE.fullmatch(value)):
        raise InvalidRequest(
            Reason.PARAMETER_NOT_PRINTABLE,
            f"{parameter.name} must be 1 to {parameter.limit} printable ASCII characters",
        )
    return value


_printable_text: Final = partial(RequestParameter, read=_read_printable, reasons=(Reason.PARAMETER_NOT_PRINTABLE,))


def _choose_acr(_: RequestParameter, value: str | None, rules: RequestRules) -> str:
    return acr.choose(
        value, prefix=rules.acr_prefix, client_level=rules.client.assurance_level, generation=rules.generation
    )


def _read_context_type(parameter: RequestParameter, value: str | None, rules: RequestRules) -> str | None:
    client, rule, name = rules.client, rules.client.context_type_rule, parameter.name
    registered = f"the context_type_rule of this client is {rule}"
    if value is None and rule == "required" and parameter.is_required(rules.generation):
        refusal = InvalidRequest(Reason.CONTEXT_TYPE_MISSING, f"parameter {name} is missing: {registered}")
        raise refusal.with_cause(expected=list_values(client.context_types))
    if value is not None and rule == "refused":
        raise InvalidRequest(Reason.CONTEXT_TYPE_REFUSED, f"leave {name} out: {registered}")
    if value is not None and value not in client.context_types:
        raise InvalidRequest(
            Reason.CONTEXT_TYPE_UNKNOWN, f"{name} must be one of {', '.join(client.context_types)}"
        ).with_cause(received=shorten_value(value))
    return value


def _read_context_message(parameter: RequestParameter, value: str | None, rules: RequestRules) -> str | None:
    punctuation = rules.message_punctuation
    alphabet = _MESSAGE if punctuation else _PLAIN_MESSAGE
    if value is not None and (len(value) > parameter.limit or not alphabet.fullmatch(value)):
        allowed = (
            "ASCII letters, digits, space and . , - @ ' ! ( )" if punctuation else "ASCII letters, digits and spaces"
        )
        raise InvalidRequest(
            Reason.CONTEXT_MESSAGE, f"{parameter.name} must be at most {parameter.limit} characters: {allowed}"
        )
    return value


def _read_prompt(_: RequestParameter, value: str | None, __: RequestRules) -> tuple[str, ...]:
    prompts = tuple(dict.fromkeys((value or "").split()))
    if not _PROMPTS.issuperset(prompts):
        raise InvalidRequest(Reason.PROMPT_UNKNOWN, f"prompt must be among {', '.join(sorted(_PROMPTS))}").with_cause(
            received=shorten_value(value)
        )
    if "none" in prompts and len(prompts) > 1:
        raise InvalidRequest(Reason.PROMPT_NONE_WITH_ANOTHER, "prompt none cannot be combined with another value")
    return prompts


def _read_max_age(_: RequestParameter, value: str | None, __: RequestRules) -> int | None:
    if value is None:
        return None
    if not _MAX_AGE.fullmatch(value):
        raise InvalidRequest(Reason.MAX_AGE, "max_age must be a whole number of seconds")
    return int(value)


def _read_ui_locales(parameter: RequestParameter, value: str | None, _: RequestRules) -> tuple[str, ...]:
    """The language tags.

    Unknown or malformed ones are ignored (OpenID Connect Core §3.1.2.1).
    """
    if value is None:
        return ()
    if len(value) > parameter.limit:
        raise InvalidRequest(Reason.UI_LOCALES, f"ui_locales must be at most {parameter.limit} characters")
    return tuple(tag for tag in value.split(" ") if _LANGUAGE_TAG.fullmatch(tag))


def _pkce_required(generation: Generation) -> bool:
    return not generation.pkce_optional


def _pkce_condition(generation: Generation) -> str:
    return "required unless the client is registered with `pkce: optional`" if generation.pkce_optional else ""


class AuthorizationRequest(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A validated authorization request (Spec 4.1).

    It is stored without names: a new member goes to the end and has a default.
    """

    client_id: str
    generation: str
    redirect_uri: Annotated[
        str,
        RequestParameter(
            required=True, reasons=(Reason.REDIRECT_URI_NOT_REGISTERED,), value="URL",
            meaning="One of your registered redirect URIs, equal character by character.",
        ),
    ]  # fmt: skip
    scopes: Annotated[
        tuple[str, ...],
        RequestParameter(
            name="scope", required=True,
            reasons=(
                Reason.SCOPE_MALFORMED, Reason.SCOPE_WITHOUT_OPENID, Reason.SCOPE_UNKNOWN, Reason.SCOPE_NOT_REGISTERED,
            ),
            value="scopes, separated by single spaces", meaning="Must contain `openid`; see [claims.md](claims.md).",
        ),
    ]  # fmt: skip
    code_challenge: Annotated[
        str,
        RequestParameter(
            required=_pkce_required, condition=_pkce_condition, reasons=(Reason.CHALLENGE_MALFORMED,),
            value="43 characters, base64url", meaning="SHA-256 of `code_verifier`.",
        ),
        RequestParameter(
            name="code_challenge_method", required=_pkce_required, condition=_pkce_condition,
            reasons=(Reason.CHALLENGE_METHOD,), value="`S256`", meaning="The only method.", example="S256",
        ),
    ]  # fmt: skip
    """empty: the request had none"""
    state: Annotated[
        str | None,
        _printable_text(
            limit=STATE_CHARACTERS, meaning="Comes back unchanged. Bind it to the browser, and compare it."
        ),
    ] = None
    nonce: Annotated[
        str | None, _printable_text(limit=NONCE_CHARACTERS, meaning="Comes back in the ID token. Compare it.")
    ] = None
    acr: Annotated[
        str,
        RequestParameter(
            name="acr_values", read=_choose_acr, reasons=(Reason.ACR_VALUES,),
            value="such as `urn:idp:authentication:loa:2`, separated by spaces",
            meaning=lambda generation: "Wanted levels; the first supported one counts. Without it the client's level applies."
            + (" Without any supported one: `invalid_request`." if generation.unknown_acr_refused else ""),
            expected="one of acr_values_supported", example="urn:idp:authentication:loa:2",
        ),
    ]  # fmt: skip
    """the level to be reached, as a URN"""
    context_type: Annotated[
        str | None,
        RequestParameter(
            name="authentication_context_type", pushed_only=True, read=_read_context_type,
            reasons=(Reason.CONTEXT_TYPE_MISSING, Reason.CONTEXT_TYPE_REFUSED, Reason.CONTEXT_TYPE_UNKNOWN),
            value="a value that the client is registered for; default `APP_AUTHENTICATION_DEFAULT`",
            meaning="[Kind of transaction](../relying-parties.md#the-value-of-authentication_context_type).",
            condition=lambda generation: "as the client's `context_type_rule` says"
            if "authentication_context_type" in generation.required_parameters else "",
            check="authentication_context_type, as the client's registration says",
            example="APP_AUTHENTICATION_DEFAULT",
        ),
    ] = None  # fmt: skip
    context_message: Annotated[
        str | None,
        RequestParameter(
            name="authentication_context_message", pushed_only=True, limit=CONTEXT_MESSAGE_CHARACTERS,
            read=_read_context_message, reasons=(Reason.CONTEXT_MESSAGE,),
            value=f"up to {CONTEXT_MESSAGE_CHARACTERS} ASCII letters, digits, spaces and `. , - @ ' ! ( )`; the preset "
            "`public-service` allows letters, digits and spaces only",
            meaning="Shown to the person on every page of the sign-in.",
            expected=f"at most {CONTEXT_MESSAGE_CHARACTERS} allowed characters", example="Signing in from Bruno",
        ),
    ] = None  # fmt: skip
    jkt: Annotated[
        str | None,
        RequestParameter(
            name="dpop_jkt", pushed_only=True, reasons=(Reason.JKT_MALFORMED, Reason.JKT_OF_ANOTHER_KEY),
            value="43 characters, base64url",
            meaning="SHA-256 thumbprint of your DPoP key; with a `DPoP` header it must be that key's.",
            condition=lambda generation: "required without a `DPoP` header" if generation.key_binding_required else "",
        ),
    ] = None  # fmt: skip
    response_mode: Annotated[
        str,
        RequestParameter(
            reasons=(Reason.RESPONSE_MODE,),
            value=lambda generation: " or ".join(f"`{mode}`" for mode in generation.response_modes),
            meaning=lambda generation: f"Form of the callback; default `{generation.response_modes[0]}`.",
            example="query",
        ),
    ] = "query"  # fmt: skip
    prompt: Annotated[
        tuple[str, ...],
        RequestParameter(
            read=_read_prompt, reasons=(Reason.PROMPT_UNKNOWN, Reason.PROMPT_NONE_WITH_ANOTHER),
            value="`none`; or `login`, `consent`, `select_account`, separated by spaces",
            meaning="`none`: no page, else `login_required`, `consent_required` or `interaction_required`.",
            expected="of prompt_values_supported, none only alone", example="login",
        ),
    ] = ()  # fmt: skip
    max_age: Annotated[
        int | None,
        RequestParameter(
            read=_read_max_age, reasons=(Reason.MAX_AGE,), value="seconds, up to 9 digits",
            meaning="The person authenticates again if their sign-in is older.", expected="a whole number of seconds",
            example="3600",
        ),
    ] = None  # fmt: skip
    ui_locales: Annotated[
        tuple[str, ...],
        RequestParameter(
            limit=UI_LOCALES_CHARACTERS, read=_read_ui_locales, reasons=(Reason.UI_LOCALES,),
            value=f"language tags, separated by spaces, {UI_LOCALES_CHARACTERS} characters",
            meaning="Wanted languages of the pages.", example="en",
        ),
    ] = ()  # fmt: skip
    """language tags, the best first"""
    deprecated_uses: tuple[str, ...] = ()
    """the counters of its push (`deprecated_usage`)"""


class PushedRequest(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A pushed request as stored, with the moment its 60 seconds begin.

    Source: D15
    """

    request: AuthorizationRequest
    pushed_at: float


_REQUEST_OBJECTS: Final = (
    ("request", Reason.REQUEST_OBJECT, RequestNotSupported),
    ("request_uri", Reason.REQUEST_OBJECT_BY_REFERENCE, RequestURINotSupported),
)
"""the last is the refusal in a query; a pushed request has one error code for both"""


def _refused_object(in_query: str, generation: Generation) -> str:
    return (
        f"Request objects are refused: {'`invalid_request`' if generation.pushed else f'callback with `{in_query}`'}."
    )


def _declared() -> Iterator[tuple[str, RequestParameter]]:
    """Each parameter with its member of the record, empty for none."""
    yield "", RequestParameter(
        name="response_type", required=True, reasons=(Reason.RESPONSE_TYPE,), value="`code`", meaning="The only flow.",
        example="code",
    )  # fmt: skip
    for field in msgspec.structs.fields(AuthorizationRequest):
        if get_origin(field.type) is Annotated:
            for parameter in get_args(field.type)[1:]:
                if parameter.label and not parameter.pushed_only:
                    raise TypeError(
                        f"{field.name}: anybody writes a query, and people would read it: declare pushed_only"
                    )
                yield field.name, replace(parameter, name=parameter.name or field.name)
    for name, reason, in_query in _REQUEST_OBJECTS:
        yield (
            "",
            RequestParameter(
                name=name, refused=True, reasons=(reason,), meaning=partial(_refused_object, in_query.code)
            ),
        )


_DECLARED: Final = tuple(_declared())
PARAMETERS: Final = tuple(parameter for _, parameter in _DECLARED)
"""without those of client authentication, in the order of the documents"""
_READ: Final = sorted(
    ((member, parameter, parameter.read) for member, parameter in _DECLARED if parameter.read is not None),
    key=lambda each: each[2] is not _read_printable,
)
"""member, its parameter and reader, texts first, since one check of the inspector stands for all of these"""
REQUEST_PARAMETERS: Final = frozenset({"client_id", *(each.name for each in PARAMETERS if not each.pushed_only)})
"""what an authorization request in the query may hold"""
PUSHED_PARAMETERS: Final = REQUEST_PARAMETERS.union(
    (each.name for each in PARAMETERS), ("client_assertion_type", "client_assertion", "client_secret")
)


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
    response_mode = parameters.get("response_mode", generation.response_modes[0])
    if response_mode not in generation.response_modes:
        raise InvalidRequest(
            Reason.RESPONSE_MODE, f"response_mode must be {' or '.join(generation.response_modes)}"
        ).with_cause(received=shorten_value(response_mode))
    for name, reason, in_query in _REQUEST_OBJECTS:
        if name in parameters:
            refusal = InvalidRequest if generation.pushed else in_query
            raise refusal(reason, f"parameter {name} is not accepted here")
    granted = validate_scopes(require_parameter(parameters, "scope"), client.scopes, generation.scopes)
    redirect_uri = require_registered_redirect_uri(parameters, client)
    if require_parameter(parameters, "response_type") != "code":
        raise InvalidRequest(Reason.RESPONSE_TYPE, "response_type must be code").with_cause(
            received=shorten_value(parameters["response_type"])
        )
    challenge = token_request.read_challenge(parameters, optional=pkce_optional)
    for name in sorted(generation.required_parameters - {"authentication_context_type"}):
        require_parameter(parameters, name)
    rules = RequestRules(
        client=client, generation=generation, acr_prefix=acr_prefix, message_punctuation=message_punctuation
    )
    return AuthorizationRequest(
        client_id=client.client_id,
        generation=generation.name,
        redirect_uri=redirect_uri,
        scopes=granted,
        code_challenge=challenge,
        jkt=jkt,
        response_mode=response_mode,
        **{member: read(parameter, parameters.get(parameter.name), rules) for member, parameter, read in _READ},
    )


def said_at_consent(request: AuthorizationRequest) -> tuple[tuple[Phrase, str], ...]:
    """The texts that the consent page shows, each with its label.

    Source: D29
    """
    texts = ((each.label, getattr(request, member)) for member, each in _DECLARED if each.label is not None)
    return tuple((label, text) for label, text in texts if text)


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


_MODE_CHARACTERS: Final = 32


class AuthorizationResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response to a proven redirect URI, with its parameters."""

    redirect_uri: str
    mode: str
    """query, fragment or form_post"""
    parameters: tuple[tuple[str, str], ...]
    reason: str = ""
    """the code of a refusal's reason, for the log"""
    detail: str = ""
    """the exact cause of a refusal, for the log"""

    @property
    def error(self) -> str:
        """The error code, empty for a response with a code."""
        return dict(self.parameters).get("error", "")

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


def choose_error_mode(raw: bytes, generation: Generation) -> str:
    """The response mode of a query request's error.

    The requested one, if it was requested once and is served. Source: OAuth 2.0 Multiple Response Type Encoding
    Practices §2.1, Spec "Generations"
    """
    asked = lone(raw, "response_mode", longest=_MODE_CHARACTERS)
    return asked if asked in generation.response_modes else generation.response_modes[0]


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
    return AuthorizationResponse(
        redirect_uri=address.redirect_uri, mode=address.mode, parameters=tuple(parameters.items())
    )
