"""The catalogue of refusals.

Each reason has its OAuth error, the party that must act, its cause and its remedy. An `OAuthError` cannot be made
without a `Reason`, so every refusal is declared here. The log line of a refusal carries the code,
`corpid_refusals_total` counts by it, and docs/reference/errors.md is made from it (`make tables`).
"""

from __future__ import annotations

from enum import Enum, StrEnum, unique
from typing import Annotated, Literal, TypeAlias

import msgspec

from corpid.rules.fields import CLIENT, KEY

ErrorCode: TypeAlias = Literal[
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope",
    "unsupported_grant_type", "invalid_dpop_proof", "use_dpop_nonce", "invalid_request_uri", "request_not_supported",
    "request_uri_not_supported", "access_denied", "login_required", "interaction_required", "consent_required",
    "invalid_token", "insufficient_scope", "credentials_required", "server_error", "temporarily_unavailable",
    "misdirected_request",
]  # fmt: skip
"""what the log calls `error`; of these the wire never shows `credentials_required` and `misdirected_request`"""


class Acts(StrEnum):
    """The party that must act on a refusal."""

    RP_DEVELOPER = "RP developer"
    PERSON = "person"
    OPERATOR = "operator"
    ENTITY_ADMINISTRATOR = "entity administrator"


class Refusal(msgspec.Struct, frozen=True):
    """The declaration of a reason.

    A second or third error is that of another generation or endpoint.
    """

    errors: tuple[ErrorCode, ...]
    acts: Acts
    cause: str
    remedy: str


def _refusal(errors: ErrorCode | tuple[ErrorCode, ...], acts: Acts, cause: str, remedy: str) -> Refusal:
    """Declare a reason."""
    return Refusal((errors,) if isinstance(errors, str) else errors, acts, cause, remedy)


_RP = Acts.RP_DEVELOPER
_PERSON = Acts.PERSON
_OPERATOR = Acts.OPERATOR
_ADMINISTRATOR = Acts.ENTITY_ADMINISTRATOR


@unique
class Reason(Enum):
    """The reason for refusing a request.

    `code` appears in the log and names the anchor in docs/reference/errors.md.
    """

    # fmt: off
    # HTTP, at every endpoint
    HTTP_MALFORMED = _refusal("invalid_request", _RP,
        "The bytes are not a valid HTTP/1.1 request: the request line, a header or the target has a syntax error.",
        "Send the request with a standard HTTP library, and check what a proxy in between changes.")
    HTTP_NOT_SUPPORTED = _refusal("invalid_request", _RP,
        "The request uses a transfer coding other than chunked, the method CONNECT, or another major version of HTTP.",
        "Send the body with Content-Length or chunked, over HTTP/1.1.")
    HTTP_TOO_SLOW = _refusal("invalid_request", _RP,
        "The headers or the body of the request did not arrive in time.",
        "Send the whole request without delay. Check the network, and what a proxy buffers.")
    HTTP_HEAD_TOO_LARGE = _refusal("invalid_request", _RP,
        "The request line and headers together are longer than allowed.",
        "Push the request instead of sending it in the query; send fewer cookies and headers.")
    HTTP_BODY_TOO_LARGE = _refusal("invalid_request", _RP,
        "The body is longer than allowed.",
        "Send only the parameters of the endpoint.")
    HOST_NOT_EXACTLY_ONE = _refusal("invalid_request", _RP,
        "The request has no Host header, or more than one.",
        "Send exactly one Host header.")
    HOST_UNKNOWN = _refusal("misdirected_request", _OPERATOR,
        "The Host header is neither that of `base_url` nor in `allowed_hosts`.",
        "Let the proxy pass on the Host header, correct `base_url`, or add the name to `allowed_hosts`.")
    PATH_UNKNOWN = _refusal("invalid_request", _RP,
        "Nothing is served at this path.",
        "Take the endpoints' addresses from the discovery document.")
    METHOD_NOT_ALLOWED = _refusal("invalid_request", _RP,
        "The endpoint does not support this method.",
        "Use a method from the response's Allow header.")
    BODY_NOT_A_FORM = _refusal("invalid_request", _RP,
        "Content-Type is not application/x-www-form-urlencoded.",
        "Send the parameters as a form.")
    BODY_ENCODED = _refusal("invalid_request", _RP,
        "Content-Encoding says that the body is compressed, which no endpoint reads.",
        "Send the body as it is, without Content-Encoding.")
    BODY_INCOMPLETE = _refusal("invalid_request", _RP,
        "The connection ended before the body was complete.",
        "Send the whole body. Check Content-Length and the network.")
    PARAMETERS_TOO_MANY = _refusal("invalid_request", _RP,
        "The request has more parameters than allowed.",
        "Send only the parameters of the endpoint.")
    PARAMETERS_NOT_UTF_8 = _refusal("invalid_request", _RP,
        "A name or value is not encoded in UTF-8.",
        "Encode the parameters in UTF-8 before percent-encoding them.")
    PARAMETERS_BADLY_ENCODED = _refusal("invalid_request", _RP,
        "A percent sign is not followed by two hexadecimal digits.",
        "Let a library encode the parameters; encode a percent sign as %25.")
    PARAMETER_REPEATED = _refusal("invalid_request", _RP,
        "A parameter occurs twice that can occur only once.",
        "Send each parameter once.")
    PARAMETER_MISSING = _refusal("invalid_request", _RP,
        "A required parameter is missing or empty.",
        "Send the parameter that the description names.")
    RATE_LIMIT_OF_ADDRESS = _refusal("temporarily_unavailable", _RP,
        "One address has sent more requests in this minute than the limit.",
        "Wait as long as Retry-After says. An operator can raise the limit if many users share the address.")
    RATE_LIMIT_OF_CLIENT = _refusal("temporarily_unavailable", _RP,
        "This client has sent more requests in this minute than the limit.",
        "Wait as long as Retry-After says, and send requests only when a person signs in. An operator can raise the limit.")
    RATE_LIMIT_OF_NETWORK = _refusal("temporarily_unavailable", _PERSON,
        "More sign-ins were started from one network in this minute than the limit.",
        "Wait as long as the page says. An operator can raise the limit if it affects a network of real users.")
    RATE_LIMIT_OF_ALL = _refusal("temporarily_unavailable", _OPERATOR,
        "More sign-ins were started in this minute than the limit for all networks together.",
        "Check in the log where they come from. Raise the limit if they are real users.")
    BUSY = _refusal("temporarily_unavailable", _OPERATOR,
        "CorpID is handling too many requests, or checking too many passwords, at the same time.",
        "Callers wait and try again. If it lasts, add workers or machines.")
    STORE_UNAVAILABLE = _refusal("temporarily_unavailable", _OPERATOR,
        "A database or the engine for short-lived state does not respond or accepts no writes.",
        "Read the detail in the log, then run `corpid doctor`. Callers wait and try again.")
    DATA_LOST = _refusal("temporarily_unavailable", _OPERATOR,
        "The provider lost its short-lived state a moment ago, and cannot tell whether the assertion or the proof was used before.",
        "Callers wait as long as Retry-After says, then repeat the request with a new assertion, with iat, and a new proof.")
    MAINTENANCE = _refusal("temporarily_unavailable", _OPERATOR,
        "The provider is under maintenance: PAR, authorize, token and pages refuse, resources go on.",
        "Callers wait. `corpid maintenance off` ends it.")
    UNFORESEEN = _refusal("server_error", _OPERATOR,
        "An unexpected error.",
        "Report it with the place that the log names. Earlier lines of the log may say more.")

    # client authentication, at PAR and token
    CLIENT_AUTHENTICATION_TWICE = _refusal("invalid_request", _RP,
        "The request authenticates the client in more than one way.",
        "Send client_assertion alone, without client_secret and without an Authorization header.")
    ASSERTION_TYPE = _refusal("invalid_client", _RP,
        "client_assertion_type is missing, or is not the type for JWTs.",
        "Send client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer.")
    ASSERTION_MISSING = _refusal("invalid_client", _RP,
        "client_assertion is missing.",
        "Sign an assertion for each request and send it as client_assertion.")
    ASSERTION_MALFORMED = _refusal("invalid_client", _RP,
        "client_assertion is not a compact JWS with a JSON payload, is too long, or has a claim or header of the wrong type.",
        "Create the assertion with a JOSE library. The description says what is wrong.")
    ASSERTION_JWT_TYPE = _refusal("invalid_client", _RP,
        "The header's typ is not that of an assertion.",
        "Set typ to JWT or client-authentication+jwt, or omit it.")
    ASSERTION_ALGORITHM = _refusal("invalid_client", _RP,
        "The assertion is signed with an algorithm that this interface does not accept.",
        "Sign with one of the algorithms that the discovery document lists.")
    ASSERTION_ISSUER = _refusal("invalid_client", _RP,
        "iss and sub are not both the client_id.",
        "Set both to the client_id.")
    ASSERTION_AUDIENCE = _refusal("invalid_client", _RP,
        "aud is not the issuer, as one string.",
        "Set aud to exactly the issuer in the discovery document.")
    ASSERTION_AUDIENCE_ENDPOINT = _refusal("invalid_client", _RP,
        "aud is the endpoint's URL, which this client cannot use, or no longer.",
        "Set aud to the issuer. An operator can allow the endpoint for a time: the member `endpoint_audience_until`.")
    ASSERTION_JTI_MISSING = _refusal("invalid_client", _RP,
        "The assertion has no jti.",
        "Give each assertion its own jti.")
    ASSERTION_EXP_MISSING = _refusal("invalid_client", _RP,
        "The assertion has no exp.",
        "Set exp to a time shortly after iat.")
    ASSERTION_IAT_MISSING = _refusal("invalid_client", _RP,
        "The assertion has no iat.",
        "Set iat to the time of signing.")
    ASSERTION_EXPIRED = _refusal("invalid_client", _RP,
        "By this server's clock, exp has passed.",
        "Create a new assertion for each request, and compare the clocks.")
    ASSERTION_IN_THE_FUTURE = _refusal("invalid_client", _RP,
        "iat or nbf is further ahead of this server's clock than allowed.",
        "Compare the clocks, and synchronise them with NTP.")
    ASSERTION_LIFETIME = _refusal("invalid_client", _RP,
        "exp is later after iat than allowed.",
        "Shorten the assertion's lifetime; a minute is enough.")
    ASSERTION_CLIENT_ID = _refusal("invalid_client", _RP,
        "The parameter client_id differs from the assertion's sub.",
        "Send the same client_id in both.")
    ASSERTION_KEY = _refusal("invalid_client", _RP,
        "No registered signing key has the assertion's kid and alg.",
        "Sign with a key of the registered key set (use sig); `corpid client show` lists the keys.")
    ASSERTION_SIGNATURE = _refusal("invalid_client", _RP,
        "The registered key with the assertion's kid and alg does not verify its signature.",
        "Sign with the private key of the registered one: compare the public keys, which can have one kid by mistake.")
    ASSERTION_REPLAYED = _refusal("invalid_client", _RP,
        "An assertion with this jti was already used.",
        "Create a new assertion for each request, even when you repeat one.")
    CLIENT_UNKNOWN = _refusal("invalid_client", _OPERATOR,
        "The client is not registered, or is a disabled client of the admin API.",
        "Compare the client_id. `corpid client list` shows the registered ones.")
    CLIENT_DISABLED = _refusal(("invalid_client", "invalid_request"), _OPERATOR,
        "The client is disabled.",
        "`corpid client enable` enables it again.")
    CLIENT_OF_ANOTHER_ISSUER = _refusal(("invalid_client", "invalid_request"), _OPERATOR,
        "The client is registered, but not at the issuer that received the request.",
        "Use the issuer that the client is registered at, or add this one to its `issuers`.")
    CLIENT_KEYS_UNAVAILABLE = _refusal("server_error", _RP,
        "The key set at the client's jwks_uri cannot be fetched, or is not a key set.",
        "Serve a JWK Set there; the log says what failed. If your server handles one request at a time, register `jwks`; in "
        "developer mode you can instead register again while it runs.")
    CLIENT_SIGNING_KEY_MISSING = _refusal("server_error", _RP,
        "The key set at the client's jwks_uri has no usable signature key.",
        "Publish a key with use sig and an algorithm that the discovery document lists.")
    CLIENT_ENCRYPTION_KEY_MISSING = _refusal(("invalid_request", "server_error"), _RP,
        "The client's key set has no usable encryption key.",
        "Publish a key with use enc, for the registered algorithm if there is one.")
    GENERATION_NOT_REGISTERED = _refusal("unauthorized_client", _OPERATOR,
        "The client is not registered for this endpoint's interface, or its end date has passed.",
        "Add the interface to the client's `generations`, or use the one that the client is registered for.")

    # DPoP
    PROOF_MISSING = _refusal("invalid_request", _RP,
        "The DPoP header is missing; at PAR, so is dpop_jkt.",
        "Send a DPoP proof with the request.")
    PROOF_REPEATED_HEADER = _refusal("invalid_dpop_proof", _RP,
        "The request has more than one DPoP header, or one with several proofs.",
        "Send exactly one DPoP header with one proof. A comma in it shows that something in between joined two headers.")
    PROOF_MALFORMED = _refusal("invalid_dpop_proof", _RP,
        "The proof is not a compact JWS with a JSON payload, is too long, or has a claim or header of the wrong type.",
        "Create the proof with a DPoP or JOSE library. The description says what is wrong.")
    PROOF_JWT_TYPE = _refusal("invalid_dpop_proof", _RP,
        "The header's typ is not dpop+jwt.",
        "Set typ to dpop+jwt.")
    PROOF_ALGORITHM = _refusal("invalid_dpop_proof", _RP,
        "The proof is signed with an algorithm that this interface does not accept.",
        "Sign with one of dpop_signing_alg_values_supported.")
    PROOF_KEY = _refusal("invalid_dpop_proof", _RP,
        "The header has no jwk, or its jwk is not a usable public key.",
        "Put the public key into the header's jwk, never the private key.")
    PROOF_SIGNATURE = _refusal("invalid_dpop_proof", _RP,
        "The signature does not verify with the proof's own key.",
        "Sign with the private key of the jwk in the header.")
    PROOF_JTI_MISSING = _refusal("invalid_dpop_proof", _RP,
        "The proof has no jti.",
        "Give each proof its own jti.")
    PROOF_METHOD = _refusal("invalid_dpop_proof", _RP,
        "htm is not the method of the request.",
        "Set htm to the request's method, in capitals.")
    PROOF_URL = _refusal("invalid_dpop_proof", _RP,
        "htu is not the URL of the endpoint.",
        "Set htu to the endpoint's URL in the discovery document, without query and fragment.")
    PROOF_IAT_MISSING = _refusal("invalid_dpop_proof", _RP,
        "The proof has no iat.",
        "Set iat to the time of signing.")
    PROOF_TOO_OLD = _refusal("invalid_dpop_proof", _RP,
        "iat is further behind this server's clock than allowed, or exp has passed.",
        "Create a new proof for each request, and compare the clocks.")
    PROOF_IN_THE_FUTURE = _refusal("invalid_dpop_proof", _RP,
        "iat or nbf is further ahead of this server's clock than allowed.",
        "Compare the clocks, and synchronise them with NTP.")
    PROOF_TOKEN_HASH = _refusal("invalid_dpop_proof", _RP,
        "ath is not the hash of the access token that came with the proof.",
        "Set ath to the SHA-256 of the access token, in base64url.")
    PROOF_REPLAYED = _refusal("invalid_dpop_proof", _RP,
        "A proof with this jti was already used.",
        "Create a new proof for each request, even when you repeat one.")
    PROOF_NONCE = _refusal("use_dpop_nonce", _RP,
        "The proof has no nonce of the provider, or an old one.",
        "Repeat the request with a new proof that contains the nonce from the response's DPoP-Nonce header.")
    JKT_MALFORMED = _refusal("invalid_request", _RP,
        "dpop_jkt is not a thumbprint.",
        "Send the key's SHA-256 JWK thumbprint, 43 characters of base64url.")
    JKT_OF_ANOTHER_KEY = _refusal("invalid_request", _RP,
        "dpop_jkt is not the thumbprint of the proof's key.",
        "Use one key for both, or omit dpop_jkt.")

    # the content of an authorization request
    REDIRECT_URI_NOT_REGISTERED = _refusal(("invalid_request", "invalid_grant"), _RP,
        "redirect_uri does not exactly match a registered redirect URI of the client, or no longer does.",
        "Send a redirect URI exactly as registered, or have it registered: `corpid client update`.")
    REQUEST_OBJECT = _refusal(("invalid_request", "request_not_supported"), _RP,
        "The request contains the parameter request.",
        "Send the parameters themselves, not a request object.")
    REQUEST_OBJECT_BY_REFERENCE = _refusal(("invalid_request", "request_uri_not_supported"), _RP,
        "The request contains the parameter request_uri at a place where it would mean a request object.",
        "Send the parameters themselves, not a reference to a request object.")
    RESPONSE_TYPE = _refusal("invalid_request", _RP,
        "response_type is not code.",
        "Send response_type=code.")
    RESPONSE_MODE = _refusal("invalid_request", _RP,
        "This interface does not support the response_mode.",
        "Omit response_mode, or send one from the discovery document.")
    SCOPE_MALFORMED = _refusal("invalid_scope", _RP,
        "scope is not a list of names separated by single spaces.",
        "Separate the scopes by single spaces.")
    SCOPE_WITHOUT_OPENID = _refusal("invalid_scope", _RP,
        "scope does not contain openid.",
        "Add openid.")
    SCOPE_UNKNOWN = _refusal("invalid_scope", _RP,
        "A scope is unknown at this interface.",
        "Request scopes from the discovery document.")
    SCOPE_NOT_REGISTERED = _refusal("invalid_scope", _OPERATOR,
        "The client is not registered for a scope.",
        "Request fewer scopes, or have the scope registered: `corpid client update`.")
    CHALLENGE_METHOD = _refusal("invalid_request", _RP,
        "code_challenge_method is not S256.",
        "Send code_challenge_method=S256.")
    CHALLENGE_MALFORMED = _refusal("invalid_request", _RP,
        "code_challenge is not a SHA-256 hash in base64url.",
        "Send the SHA-256 of the code_verifier, 43 characters of base64url without padding.")
    PARAMETER_NOT_PRINTABLE = _refusal("invalid_request", _RP,
        "A text, such as state or nonce, is too long, or contains characters other than printable ASCII.",
        "Send the text that the description allows; as state or nonce, a random value of letters and digits.")
    ACR_VALUES = _refusal("invalid_request", _RP,
        "acr_values contains no supported value.",
        "Omit acr_values, or send one of acr_values_supported.")
    CONTEXT_TYPE_MISSING = _refusal("invalid_request", _RP,
        "authentication_context_type is missing, and this client must send it.",
        "Send one of the client's context types.")
    CONTEXT_TYPE_REFUSED = _refusal("invalid_request", _RP,
        "authentication_context_type was sent, and this client must not send it.",
        "Omit it. An operator can change the client's `context_type_rule`.")
    CONTEXT_TYPE_UNKNOWN = _refusal("invalid_request", _RP,
        "authentication_context_type is not one of the client's.",
        "Send one of the client's context types.")
    CONTEXT_MESSAGE = _refusal("invalid_request", _RP,
        "authentication_context_message is too long or contains a character that is not allowed.",
        "Shorten the message and use only the characters that the description lists.")
    PROMPT_UNKNOWN = _refusal("invalid_request", _RP,
        "prompt contains an unknown value.",
        "Send only values of the discovery document's prompt_values_supported.")
    PROMPT_NONE_WITH_ANOTHER = _refusal("invalid_request", _RP,
        "prompt contains none together with another value.",
        "Send none alone.")
    MAX_AGE = _refusal("invalid_request", _RP,
        "max_age is not a whole number of seconds.",
        "Send digits only.")
    UI_LOCALES = _refusal("invalid_request", _RP,
        "ui_locales is too long.",
        "Send fewer language tags.")

    # the authorization endpoint
    QUERY_TOO_LONG = _refusal("invalid_request", _RP,
        "A request sent by POST to the authorization endpoint is too long for a query.",
        "Push the request.")
    QUERY_EMPTY = _refusal("invalid_request", _RP,
        "A form sent to the authorization endpoint contains no parameter of an authorization request.",
        "Send client_id and request_uri.")
    CLIENT_ID_UNKNOWN = _refusal("invalid_request", _OPERATOR,
        "A browser arrived with a client_id that is not registered.",
        "Compare the client_id. `corpid client list` shows the registered ones.")
    REQUEST_NOT_PUSHED = _refusal("invalid_request", _RP,
        "The whole request came in the query, but this issuer accepts only pushed requests.",
        "Push the request to pushed_authorization_request_endpoint, then send the browser with client_id and request_uri.")
    QUERY_NOT_REGISTERED = _refusal("invalid_request", _OPERATOR,
        "The request came in the query, and the client is not registered for that, or no longer.",
        "The client can push the request, or you can add the interface to its `generations`.")
    REQUEST_URI_UNKNOWN = _refusal("invalid_request_uri", _RP,
        "request_uri is no longer stored, was never issued, or was issued by another node or before a restart.",
        "Push a new request for each sign-in, and redirect the browser without delay.")
    REQUEST_URI_FOREIGN = _refusal("invalid_request_uri", _RP,
        "request_uri does not have the form of this provider's.",
        "Send request_uri exactly as it came in the response to the pushed request.")
    REQUEST_URI_OF_ANOTHER_CLIENT = _refusal("invalid_request_uri", _RP,
        "request_uri was issued to another client.",
        "Send the client_id that pushed the request.")
    REQUEST_URI_EXPIRED = _refusal("invalid_request_uri", _RP,
        "The browser arrived after request_uri had expired.",
        "Push the request when the person starts to sign in, not before.")
    REQUEST_ALREADY_COMPLETED = _refusal("invalid_request_uri", _RP,
        "The request was already completed, and a browser opened its address again.",
        "Push a new request for each sign-in.")
    REQUEST_IN_TOO_MANY_BROWSERS = _refusal("invalid_request_uri", _RP,
        "More browsers have opened this request than the limit.",
        "Push a request for each sign-in, and give its address to only one browser.")
    LOGIN_REQUIRED = _refusal("login_required", _RP,
        "prompt is none, and nobody is signed in, or the existing sign-in is not sufficient.",
        "Send the browser again without prompt=none.")
    CONSENT_REQUIRED = _refusal("consent_required", _RP,
        "prompt is none, and CorpID has to ask the person for consent.",
        "Send the browser again without prompt=none.")
    ENTITY_CHOICE_REQUIRED = _refusal("interaction_required", _RP,
        "prompt is none, and the person has to choose an entity.",
        "Send the browser again without prompt=none.")
    PAGE_REQUIRED = _refusal("interaction_required", _RP,
        "prompt is none, and CorpID has to show a page, for example because the browser only prefetched the address.",
        "Send the browser again without prompt=none.")

    # the sign-in
    CLIENT_GONE = _refusal("invalid_request", _OPERATOR,
        "The client of an unfinished sign-in was removed or disabled.",
        "`corpid client enable` enables it again.")
    GENERATION_WITHDRAWN = _refusal(("access_denied", "invalid_grant", "invalid_token"), _OPERATOR,
        "The client may no longer use the interface with which the sign-in started.",
        "Add the interface to the client's `generations`, or use another one.")
    SCOPE_WITHDRAWN = _refusal(("access_denied", "invalid_grant", "invalid_token"), _OPERATOR,
        "The client may no longer request a scope that was granted.",
        "Request fewer scopes, or have the scope registered: `corpid client update`.")
    PERSON_MAY_NOT_ACT = _refusal(("access_denied", "invalid_grant", "invalid_token"), _ADMINISTRATOR,
        "The person, the entity or the membership is disabled or removed.",
        "If the person is to act for the entity, enable the person, the entity and the membership.")
    NO_ENTITY = _refusal("access_denied", _ADMINISTRATOR,
        "The person is signed in but cannot act for any entity that this client accepts.",
        "Make the person a member of an entity that the client's `entity_types` accept.")
    ASSURANCE_LEVEL = _refusal("access_denied", _PERSON,
        "The sign-in did not reach the requested assurance level.",
        "Sign in with both factors.")
    SECOND_FACTOR_FAILED = _refusal("access_denied", _PERSON,
        "The second factor was wrong too many times.",
        "Start again. An operator can unlock or reset the second factor.")
    CANCELLED = _refusal("access_denied", _PERSON,
        "The person cancelled the sign-in.",
        "No fix is needed. The relying party can offer to sign in again.")
    SIGN_IN_ENDED = _refusal(("invalid_request_uri", "access_denied"), _PERSON,
        "The sign-in was finished or has expired, and its page was opened again.",
        "Start a new sign-in.")
    SIGN_IN_REFUSED = _refusal("access_denied", _PERSON,
        "Another version of CorpID refused the sign-in, for a reason that this version does not know.",
        "Ask the operator: the reason is in the audit, action `sign_in.refuse`.")
    SIGN_IN_IN_ANOTHER_BROWSER = _refusal("invalid_request", _PERSON,
        "The sign-in was started in another browser, and continues there.",
        "Continue there, or start a new sign-in here.")
    SIGN_INS_AT_ONCE = _refusal("temporarily_unavailable", _PERSON,
        "One browser starts too many sign-ins at the same time.",
        "Try again in one tab.")
    STEP_UNKNOWN = _refusal("invalid_request", _PERSON,
        "A form was sent to an address of a sign-in or of the account that accepts none.",
        "Go back to the page and use its buttons.")
    FORM_OF_ANOTHER_SITE = _refusal("invalid_request", _PERSON,
        "A form was not sent from a page of this site: Sec-Fetch-Site or Origin says so.",
        "Open the page again. If it happens to everybody, a proxy changes Origin, or `base_url` is wrong.")
    FORM_OF_ANOTHER_BROWSER = _refusal("invalid_request", _PERSON,
        "A form's token is missing or belongs to another browser.",
        "Open the page again, and allow cookies for this site.")

    CLIENT_REFUSED = _refusal("invalid_request", _RP,
        "A client cannot be registered like this, in developer mode.",
        "The description names a member and what is wrong with it; `faults` names every one. See docs/relying-parties.md.")
    SIMULATION = _refusal("invalid_request", _RP,
        "A request to the endpoints of developer mode, to sign a person in or to place an order, cannot be carried out.",
        "The description names what is wrong. docs/relying-parties.md and docs/sandbox.md show requests that work.")
    SANDBOX_ORDER = _refusal(("temporarily_unavailable", "insufficient_scope", "use_dpop_nonce"), _RP,
        "In developer mode, an order of the sandbox asked for this error, whatever the request was.",
        "Nothing is wrong with the request. Withdraw the order: docs/sandbox.md shows how.")

    # the token endpoint
    GRANT_TYPE = _refusal("unsupported_grant_type", _RP,
        "The token endpoint does not support this grant_type.",
        "Send grant_type=authorization_code; at the admin API's token endpoint, grant_type=client_credentials.")
    VERIFIER_MALFORMED = _refusal(("invalid_request", "invalid_grant"), _RP,
        "code_verifier is missing, or not 43 to 128 unreserved characters.",
        "Send the code_verifier whose hash was the request's code_challenge.")
    CODE_MALFORMED = _refusal("invalid_grant", _RP,
        "The code is longer than any code of this provider.",
        "Send the code exactly as it came to the redirect URI.")
    CODE_UNKNOWN = _refusal("invalid_grant", _RP,
        "No such code with this code_verifier is stored for this client, and this process did not issue it: it is "
        "unknown, expired, redeemed, another client's, or has another code_verifier.",
        "Redeem a code once, without delay, with the code_verifier of its own request.")
    CODE_EXPIRED = _refusal("invalid_grant", _RP,
        "The code was redeemed after its 60 seconds.",
        "Redeem the code in the request that receives the callback.")
    CODE_REDEEMED = _refusal("invalid_grant", _RP,
        "The code was already presented by its client, and a code works once.",
        "Redeem each code once. Look for a retry in your code, a callback that was loaded again, or two instances.")
    CODE_OF_ANOTHER_CLIENT = _refusal("invalid_grant", _RP,
        "The code was issued to another client.",
        "Redeem a code with the client_id and the keys of the client that requested it.")
    CODE_VERIFIER = _refusal("invalid_grant", _RP,
        "The S256 of code_verifier is not the code_challenge of the code's request.",
        "Keep code_verifier per sign-in, and send the one whose hash was that request's code_challenge.")
    CODE_REDIRECT_URI = _refusal("invalid_grant", _RP,
        "redirect_uri is not the one in the authorization request.",
        "Send the same redirect_uri as in the authorization request.")
    CODE_KEY = _refusal(("invalid_grant", "invalid_dpop_proof"), _RP,
        "The proof's key is not the one bound at the authorization request.",
        "Use one DPoP key from PAR to userinfo.")

    # userinfo and other resources
    CREDENTIALS_MISSING = _refusal("credentials_required", _RP,
        "The request has no Authorization header.",
        "Send the access token in the Authorization header.")
    CREDENTIALS_SCHEME = _refusal("credentials_required", _RP,
        "The Authorization header is empty, or has a scheme that this interface does not accept.",
        "Use the token_type of the token response as the scheme.")
    CREDENTIALS_REPEATED = _refusal("invalid_request", _RP,
        "The request has more than one Authorization header.",
        "Send exactly one Authorization header.")
    ACCESS_TOKEN_MALFORMED = _refusal("invalid_token", _RP,
        "The text after the scheme is not a token, or not a compact JWS.",
        "Send the access token exactly as it came in the token response.")
    ACCESS_TOKEN_FOREIGN = _refusal("invalid_token", _RP,
        "The token is not an access token of this provider: its type, issuer or key differs.",
        "Send the access token, not the ID token, to the provider that issued it.")
    ACCESS_TOKEN_AUDIENCE = _refusal("invalid_token", _RP,
        "The token is not for this resource.",
        "Use the endpoints of the interface that issued the token.")
    ACCESS_TOKEN_EXPIRED = _refusal("invalid_token", _RP,
        "The token has expired.",
        "Call userinfo right after the token response. If the token has expired, let the person sign in again. A "
        "client of the admin API requests a new token.")
    ACCESS_TOKEN_BEFORE_RESTART = _refusal("invalid_token", _RP,
        "The token was issued before the provider lost its short-lived state.",
        "Let the person sign in again. A client of the admin API requests a new token.")
    ACCESS_TOKEN_REVOKED = _refusal("invalid_token", _RP,
        "The token's code was presented a second time, which revoked the token.",
        "Redeem each code once. Look for a retry in your code, or for somebody who steals codes.")
    ACCESS_TOKEN_CLIENT = _refusal("invalid_token", _OPERATOR,
        "The token's client is removed or disabled.",
        "`corpid client enable` enables it again.")
    API_CLIENT_ENTITY = _refusal(("unauthorized_client", "invalid_token"), _OPERATOR,
        "The entity of the admin API client is disabled or removed, or the client is now bound to another entity.",
        "`corpid client show` names the entity; `corpid entity enable` enables it again.")
    ACCESS_TOKEN_SCOPE = _refusal("insufficient_scope", _RP,
        "The token has none of the scopes that this resource needs.",
        "Request a scope that the challenge names.")
    ACCESS_TOKEN_IS_BOUND = _refusal("invalid_token", _RP,
        "The token is bound to a DPoP key and was sent as a bearer token.",
        "Send it with the scheme DPoP and a proof.")
    PROVISIONING_TOKEN = _refusal("invalid_token", _OPERATOR,
        "The bearer token of SCIM is unknown, was removed or has expired, or its entity is disabled.",
        "`corpid provisioning-token list` shows the tokens of an entity; `corpid provisioning-token add` creates a new one.")
    ACCESS_TOKEN_KEY = _refusal("invalid_token", _RP,
        "The token is bound to a key other than the proof's, or to none.",
        "Use one DPoP key from PAR to userinfo.")
    # fmt: on

    @property
    def code(self) -> str:
        """The reason code: lower case, words joined by underscores."""
        return self.name.lower()


class ClientRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A refused request of a client, or in its name."""

    client_id: Annotated[str, CLIENT]
    claimed: Annotated[bool, KEY]
    """whether nobody had proven that it is the client's"""
    at: Annotated[float, KEY]
    """epoch seconds"""
    request_id: Annotated[str, KEY]
    """the reference that the answer named"""
    method: str
    path: str
    reason: str
    """its code in the catalogue of refusals"""
    detail: str
    """what was wrong, as in the log"""
