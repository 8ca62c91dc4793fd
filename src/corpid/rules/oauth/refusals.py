"""The catalogue of refusals.

Each reason has its OAuth error, the party that must act, its cause and its remedy. An `OAuthError` cannot be made
without a `Reason`, so every refusal is declared here. The log line of a refusal carries the code,
`corpid_refusals_total` counts by it, and docs/refusals.md is made from it (`make tables`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, unique
from typing import Literal, TypeAlias

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


@dataclass(frozen=True, slots=True)
class Refusal:
    """The declaration of a reason.

    A second or third error is that of another generation or endpoint.
    """

    errors: tuple[ErrorCode, ...]
    acts: Acts
    cause: str
    mending: str


def _refusal(errors: ErrorCode | tuple[ErrorCode, ...], acts: Acts, cause: str, mending: str) -> Refusal:
    return Refusal((errors,) if isinstance(errors, str) else errors, acts, cause, mending)


_RP = Acts.RP_DEVELOPER
_PERSON = Acts.PERSON
_OPERATOR = Acts.OPERATOR
_ADMINISTRATOR = Acts.ENTITY_ADMINISTRATOR


@unique
class Reason(Enum):
    """The reason for refusing a request.

    `code` appears in the log and names the anchor in docs/refusals.md.
    """

    # fmt: off
    # HTTP, at every endpoint
    HTTP_MALFORMED = _refusal("invalid_request", _RP,
        "The bytes are no HTTP/1.1 request: its line, a header or its target breaks the syntax.",
        "Send the request with an ordinary HTTP library; look at what a proxy in between changes.")
    HTTP_NOT_SUPPORTED = _refusal("invalid_request", _RP,
        "The request asks for another transfer coding than chunked, or for another protocol.",
        "Send the body with Content-Length or chunked, over HTTP/1.1, without Upgrade.")
    HTTP_TOO_SLOW = _refusal("invalid_request", _RP,
        "The head or the body of the request did not arrive in time.",
        "Send a request at once; look at the network and at what a proxy buffers.")
    HTTP_HEAD_TOO_LARGE = _refusal("invalid_request", _RP,
        "Request line and headers together are longer than allowed.",
        "Push the request instead of sending it in the query; send fewer cookies and headers.")
    HTTP_BODY_TOO_LARGE = _refusal("invalid_request", _RP,
        "The body is longer than allowed.",
        "Send only the parameters of the endpoint.")
    HOST_NOT_EXACTLY_ONE = _refusal("invalid_request", _RP,
        "The request has no Host header, or more than one.",
        "Send exactly one Host header.")
    HOST_UNKNOWN = _refusal("misdirected_request", _OPERATOR,
        "The Host header is neither that of `base_url` nor in `allowed_hosts`.",
        "Let the proxy pass the Host header on, correct `base_url`, or add the name to `allowed_hosts`.")
    PATH_UNKNOWN = _refusal("invalid_request", _RP,
        "Nothing is served at this path.",
        "Take the endpoints' addresses from the discovery document.")
    METHOD_NOT_ALLOWED = _refusal("invalid_request", _RP,
        "The endpoint does not know this method.",
        "Use a method that the answer's Allow header names.")
    BODY_NOT_A_FORM = _refusal("invalid_request", _RP,
        "Content-Type is not application/x-www-form-urlencoded.",
        "Send the parameters as a form.")
    BODY_INCOMPLETE = _refusal("invalid_request", _RP,
        "The connection ended before the body was complete.",
        "Send the whole body; look at Content-Length and at the network.")
    PARAMETERS_TOO_MANY = _refusal("invalid_request", _RP,
        "The request has more parameters than are read.",
        "Send only the parameters of the endpoint.")
    PARAMETERS_NOT_UTF_8 = _refusal("invalid_request", _RP,
        "A name or value is not encoded in UTF-8.",
        "Encode the parameters in UTF-8 before percent-encoding them.")
    PARAMETERS_BADLY_ENCODED = _refusal("invalid_request", _RP,
        "A percent sign is not followed by two hexadecimal digits.",
        "Let a library encode the parameters; encode a percent sign as %25.")
    PARAMETER_REPEATED = _refusal("invalid_request", _RP,
        "A parameter that may come once comes twice.",
        "Send each parameter once.")
    PARAMETER_MISSING = _refusal("invalid_request", _RP,
        "A parameter that must be there is missing or empty.",
        "Send the parameter that the description names.")
    RATE_LIMIT_OF_ADDRESS = _refusal("temporarily_unavailable", _RP,
        "One address has sent more requests in this minute than it may.",
        "Wait as long as Retry-After says. An operator raises the limit if many share the address.")
    RATE_LIMIT_OF_CLIENT = _refusal("temporarily_unavailable", _RP,
        "This client has sent more requests in this minute than it may.",
        "Wait as long as Retry-After says, and ask only when a person signs in. An operator can raise the limit.")
    RATE_LIMIT_OF_NETWORK = _refusal("temporarily_unavailable", _PERSON,
        "More sign-ins were begun from one network in this minute than may be.",
        "Wait as long as the page says. An operator raises the limit if it meets a network of honest people.")
    RATE_LIMIT_OF_ALL = _refusal("temporarily_unavailable", _OPERATOR,
        "More sign-ins were begun in this minute than may be, from all networks together.",
        "Look in the log at where they come from; raise the limit if they are honest.")
    BUSY = _refusal("temporarily_unavailable", _OPERATOR,
        "Too many requests are being answered, or too many passwords checked, at the same time.",
        "Callers wait and try again. If it lasts, add workers or machines.")
    STORE_UNAVAILABLE = _refusal("temporarily_unavailable", _OPERATOR,
        "A database or the engine for short-lived state does not answer or takes no writes.",
        "Read the detail in the log, then `corpid doctor`. Callers wait and try again.")
    MAINTENANCE = _refusal("temporarily_unavailable", _OPERATOR,
        "The provider is under maintenance.",
        "Callers wait. `corpid maintenance off` ends it.")
    UNFORESEEN = _refusal("server_error", _OPERATOR,
        "A fault that nobody foresaw.",
        "Report it with the place that the log names; the log's lines before it may tell more.")

    # client authentication, at PAR and token
    CLIENT_AUTHENTICATION_TWICE = _refusal("invalid_request", _RP,
        "The request authenticates the client in more than one way.",
        "Send client_assertion alone, without client_secret and without an Authorization header.")
    ASSERTION_TYPE = _refusal("invalid_client", _RP,
        "client_assertion_type is missing or another than the one for JWTs.",
        "Send client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer.")
    ASSERTION_MISSING = _refusal("invalid_client", _RP,
        "client_assertion is missing.",
        "Sign an assertion for each request and send it as client_assertion.")
    ASSERTION_MALFORMED = _refusal("invalid_client", _RP,
        "client_assertion is no compact JWS with a JSON payload, is too long, or a claim or header has the wrong type.",
        "Make the assertion with a JOSE library; the description says what is wrong.")
    ASSERTION_JWT_TYPE = _refusal("invalid_client", _RP,
        "The header's typ is another one than that of an assertion.",
        "Set typ to JWT or client-authentication+jwt, or leave it out.")
    ASSERTION_ALGORITHM = _refusal("invalid_client", _RP,
        "The assertion is signed with an algorithm that this interface does not accept.",
        "Sign with one of the algorithms that the discovery document lists.")
    ASSERTION_ISSUER = _refusal("invalid_client", _RP,
        "iss and sub are not both the client_id.",
        "Set both to the client_id.")
    ASSERTION_AUDIENCE = _refusal("invalid_client", _RP,
        "aud is not the issuer, as one string.",
        "Set aud to the issuer of the discovery document, to the last character.")
    ASSERTION_AUDIENCE_ENDPOINT = _refusal("invalid_client", _RP,
        "aud is the endpoint, which this client may not name, or no longer.",
        "Set aud to the issuer. An operator can allow it for a time: the member `endpoint_audience_until`.")
    ASSERTION_JTI_MISSING = _refusal("invalid_client", _RP,
        "The assertion has no jti.",
        "Give each assertion a jti of its own.")
    ASSERTION_EXP_MISSING = _refusal("invalid_client", _RP,
        "The assertion has no exp.",
        "Set exp to a moment shortly after iat.")
    ASSERTION_IAT_MISSING = _refusal("invalid_client", _RP,
        "The assertion has no iat.",
        "Set iat to the time of signing.")
    ASSERTION_EXPIRED = _refusal("invalid_client", _RP,
        "exp has passed by this server's clock.",
        "Make a new assertion for each request; compare the clocks.")
    ASSERTION_IN_THE_FUTURE = _refusal("invalid_client", _RP,
        "iat or nbf lies ahead of this server's clock by more than is allowed.",
        "Compare the clocks; synchronise them by NTP.")
    ASSERTION_LIFETIME = _refusal("invalid_client", _RP,
        "exp is further from iat than is allowed.",
        "Shorten the assertion's lifetime; a minute is enough.")
    ASSERTION_CLIENT_ID = _refusal("invalid_client", _RP,
        "The parameter client_id differs from the assertion's sub.",
        "Send the same client_id in both.")
    ASSERTION_SIGNATURE = _refusal("invalid_client", _RP,
        "No registered key fits the assertion's kid and alg, or none of those verifies it.",
        "Sign with a key of the registered key set (use sig); `corpid client show` lists the keys.")
    ASSERTION_REPLAYED = _refusal("invalid_client", _RP,
        "An assertion with this jti was used before.",
        "Make a new assertion for each request, also when repeating one.")
    ASSERTION_BEFORE_RESTART = _refusal("invalid_client", _RP,
        "The assertion was made before the provider lost its short-lived state, or has no iat to tell.",
        "Make a new assertion, with iat.")
    CLIENT_UNKNOWN = _refusal("invalid_client", _OPERATOR,
        "The client is not registered, or disabled.",
        "Compare the client_id; `corpid client list` shows which there are, `corpid client enable` enables one.")
    CLIENT_KEYS_UNAVAILABLE = _refusal("server_error", _RP,
        "The key set at the client's jwks_uri cannot be fetched or is none.",
        "Serve a JWK Set at the registered jwks_uri; the log says what went wrong.")
    CLIENT_SIGNING_KEY_MISSING = _refusal("server_error", _RP,
        "The key set at the client's jwks_uri has no usable key to verify signatures with.",
        "Publish a key with use sig and an algorithm that the discovery document lists.")
    CLIENT_ENCRYPTION_KEY_MISSING = _refusal(("invalid_request", "server_error"), _RP,
        "The client's key set has no usable key to encrypt to.",
        "Publish a key with use enc, for the registered algorithm if there is one.")
    GENERATION_NOT_REGISTERED = _refusal("unauthorized_client", _OPERATOR,
        "The client is not registered for the interface that this endpoint serves, or its end date has passed.",
        "Add the interface to the client's `generations`, or use the one that the client is registered for.")

    # DPoP
    PROOF_MISSING = _refusal("invalid_request", _RP,
        "The DPoP header is missing; at PAR, so is dpop_jkt.",
        "Send a DPoP proof with the request.")
    PROOF_REPEATED_HEADER = _refusal("invalid_dpop_proof", _RP,
        "The request has more than one DPoP header.",
        "Send exactly one DPoP header.")
    PROOF_MALFORMED = _refusal("invalid_dpop_proof", _RP,
        "The proof is no compact JWS with a JSON payload, is too long, or a claim or header has the wrong type.",
        "Make the proof with a DPoP or JOSE library; the description says what is wrong.")
    PROOF_JWT_TYPE = _refusal("invalid_dpop_proof", _RP,
        "The header's typ is not dpop+jwt.",
        "Set typ to dpop+jwt.")
    PROOF_ALGORITHM = _refusal("invalid_dpop_proof", _RP,
        "The proof is signed with an algorithm that this interface does not accept.",
        "Sign with one of dpop_signing_alg_values_supported.")
    PROOF_KEY = _refusal("invalid_dpop_proof", _RP,
        "The header has no jwk, or one that is not a usable public key.",
        "Put the public key into the header's jwk, never the private one.")
    PROOF_SIGNATURE = _refusal("invalid_dpop_proof", _RP,
        "The signature does not verify with the proof's own key.",
        "Sign with the private key of the jwk in the header.")
    PROOF_JTI_MISSING = _refusal("invalid_dpop_proof", _RP,
        "The proof has no jti.",
        "Give each proof a jti of its own.")
    PROOF_METHOD = _refusal("invalid_dpop_proof", _RP,
        "htm is not the method of the request.",
        "Set htm to the request's method, in capitals.")
    PROOF_URL = _refusal("invalid_dpop_proof", _RP,
        "htu is not the address of the endpoint.",
        "Set htu to the endpoint's address in the discovery document, without query and fragment.")
    PROOF_IAT_MISSING = _refusal("invalid_dpop_proof", _RP,
        "The proof has no iat.",
        "Set iat to the time of signing.")
    PROOF_TOO_OLD = _refusal("invalid_dpop_proof", _RP,
        "iat lies behind this server's clock by more than is allowed, or exp has passed.",
        "Make a new proof for each request; compare the clocks.")
    PROOF_IN_THE_FUTURE = _refusal("invalid_dpop_proof", _RP,
        "iat or nbf lies ahead of this server's clock by more than is allowed.",
        "Compare the clocks; synchronise them by NTP.")
    PROOF_TOKEN_HASH = _refusal("invalid_dpop_proof", _RP,
        "ath is not the hash of the access token that came with the proof.",
        "Set ath to the SHA-256 of the access token, in base64url.")
    PROOF_REPLAYED = _refusal("invalid_dpop_proof", _RP,
        "A proof with this jti was used before.",
        "Make a new proof for each request, also when repeating one.")
    PROOF_BEFORE_RESTART = _refusal("invalid_dpop_proof", _RP,
        "The proof was made before the provider lost its short-lived state.",
        "Make a new proof.")
    PROOF_NONCE = _refusal("use_dpop_nonce", _RP,
        "The proof does not carry the nonce that the provider asks for, or an old one.",
        "Repeat the request with a new proof that carries the nonce of the answer's DPoP-Nonce header.")
    JKT_MALFORMED = _refusal("invalid_request", _RP,
        "dpop_jkt is no thumbprint.",
        "Send the key's SHA-256 JWK thumbprint, 43 characters of base64url.")
    JKT_OF_ANOTHER_KEY = _refusal("invalid_request", _RP,
        "dpop_jkt is the thumbprint of another key than the proof's.",
        "Use one key for both, or leave dpop_jkt out.")

    # the content of an authorization request
    REDIRECT_URI_NOT_REGISTERED = _refusal(("invalid_request", "invalid_grant"), _RP,
        "redirect_uri is not one of the client's registered ones, character by character, or no longer.",
        "Send a registered redirect URI as it was registered, or have it registered: `corpid client update`.")
    REQUEST_OBJECT = _refusal(("invalid_request", "request_not_supported"), _RP,
        "The request holds the parameter request.",
        "Send the parameters themselves, not a request object.")
    REQUEST_OBJECT_BY_REFERENCE = _refusal(("invalid_request", "request_uri_not_supported"), _RP,
        "The request holds the parameter request_uri where it means a request object.",
        "Send the parameters themselves, not a reference to a request object.")
    RESPONSE_TYPE = _refusal("invalid_request", _RP,
        "response_type is not code.",
        "Send response_type=code.")
    RESPONSE_MODE = _refusal("invalid_request", _RP,
        "This interface does not have the response_mode.",
        "Leave response_mode out, or send one of those in the discovery document.")
    SCOPE_MALFORMED = _refusal("invalid_scope", _RP,
        "scope is no list of names separated by single spaces.",
        "Separate the scopes by single spaces.")
    SCOPE_WITHOUT_OPENID = _refusal("invalid_scope", _RP,
        "scope does not hold openid.",
        "Add openid.")
    SCOPE_UNKNOWN = _refusal("invalid_scope", _RP,
        "A scope is not known at this interface.",
        "Ask for scopes of the discovery document.")
    SCOPE_NOT_REGISTERED = _refusal("invalid_scope", _OPERATOR,
        "The client may not ask for a scope.",
        "Ask for less, or have the scope registered: `corpid client update`.")
    CHALLENGE_METHOD = _refusal("invalid_request", _RP,
        "code_challenge_method is not S256.",
        "Send code_challenge_method=S256.")
    CHALLENGE_MALFORMED = _refusal("invalid_request", _RP,
        "code_challenge is no SHA-256 hash in base64url.",
        "Send the SHA-256 of the code_verifier, 43 characters of base64url without padding.")
    PARAMETER_NOT_PRINTABLE = _refusal("invalid_request", _RP,
        "state or nonce is too long or holds other characters than printable ASCII.",
        "Send a random value of letters and digits.")
    ACR_VALUES = _refusal("invalid_request", _RP,
        "acr_values holds no value that is supported.",
        "Leave acr_values out, or send one of acr_values_supported.")
    CONTEXT_TYPE_MISSING = _refusal("invalid_request", _RP,
        "authentication_context_type is missing, which this client must send.",
        "Send one of the client's context types.")
    CONTEXT_TYPE_REFUSED = _refusal("invalid_request", _RP,
        "authentication_context_type was sent, which this client may not.",
        "Leave it out. An operator can change the client's `context_type_rule`.")
    CONTEXT_TYPE_UNKNOWN = _refusal("invalid_request", _RP,
        "authentication_context_type is not one of the client's.",
        "Send one of the client's context types.")
    CONTEXT_MESSAGE = _refusal("invalid_request", _RP,
        "authentication_context_message is too long or holds a character that is not allowed.",
        "Shorten the message and use only the characters that the description lists.")
    PROMPT_UNKNOWN = _refusal("invalid_request", _RP,
        "prompt holds a value that is not known.",
        "Send only values of the discovery document's prompt_values_supported.")
    PROMPT_NONE_WITH_ANOTHER = _refusal("invalid_request", _RP,
        "prompt holds none together with another value.",
        "Send none alone.")
    MAX_AGE = _refusal("invalid_request", _RP,
        "max_age is no whole number of seconds.",
        "Send digits only.")
    UI_LOCALES = _refusal("invalid_request", _RP,
        "ui_locales is too long.",
        "Send fewer language tags.")

    # the authorization endpoint
    QUERY_TOO_LONG = _refusal("invalid_request", _RP,
        "A request that was posted to the authorization endpoint is too long for a query.",
        "Push the request.")
    QUERY_EMPTY = _refusal("invalid_request", _RP,
        "A form that was posted to the authorization endpoint holds no parameter of an authorization request.",
        "Send client_id and request_uri.")
    CLIENT_ID_UNKNOWN = _refusal("invalid_request", _OPERATOR,
        "A browser came with a client_id that is not registered, or whose client is disabled.",
        "Compare the client_id; `corpid client list` shows which there are, `corpid client enable` enables one.")
    QUERY_NOT_REGISTERED = _refusal("invalid_request", _OPERATOR,
        "The request came in the query, for which the client is not registered, or no longer.",
        "Push the request. An operator can add the interface to the client's `generations`.")
    REQUEST_URI_UNKNOWN = _refusal("invalid_request_uri", _RP,
        "request_uri is none of this provider, of another client, was forgotten, or is used up in another browser.",
        "Push a new request for each sign-in, and send the browser on at once.")
    REQUEST_URI_EXPIRED = _refusal("invalid_request_uri", _RP,
        "The browser came later than request_uri is valid.",
        "Push the request when the person asks to sign in, not before.")
    REQUEST_ALREADY_COMPLETED = _refusal("invalid_request_uri", _RP,
        "The request was completed before; a browser opened its address again.",
        "Push a new request for each sign-in.")
    REQUEST_IN_TOO_MANY_BROWSERS = _refusal("invalid_request_uri", _RP,
        "More browsers have opened one request than may.",
        "Push a request for each sign-in, and hand its address to one browser only.")
    LOGIN_REQUIRED = _refusal("login_required", _RP,
        "prompt is none, and nobody is signed in, or the sign-in does not suffice.",
        "Send the browser again without prompt=none.")
    CONSENT_REQUIRED = _refusal("consent_required", _RP,
        "prompt is none, and the person has to be asked for consent.",
        "Send the browser again without prompt=none.")
    ENTITY_CHOICE_REQUIRED = _refusal("interaction_required", _RP,
        "prompt is none, and the person has to choose an entity.",
        "Send the browser again without prompt=none.")
    PAGE_REQUIRED = _refusal("interaction_required", _RP,
        "prompt is none, and a page has to be shown, for instance since the browser only prefetched the address.",
        "Send the browser again without prompt=none.")

    # the sign-in
    CLIENT_GONE = _refusal("invalid_request", _OPERATOR,
        "The client of a sign-in that is under way was removed or disabled.",
        "`corpid client enable` enables it again.")
    GENERATION_WITHDRAWN = _refusal(("access_denied", "invalid_grant", "invalid_token"), _OPERATOR,
        "The client may no longer use the interface that the sign-in began with.",
        "Add the interface to the client's `generations`, or use another one.")
    SCOPE_WITHDRAWN = _refusal(("access_denied", "invalid_grant", "invalid_token"), _OPERATOR,
        "The client may no longer ask for a scope that was granted.",
        "Ask for less, or have the scope registered: `corpid client update`.")
    PERSON_MAY_NOT_ACT = _refusal(("access_denied", "invalid_grant", "invalid_token"), _ADMINISTRATOR,
        "The person, the entity or the membership is disabled or removed.",
        "Enable the person, the entity and the membership, if the person shall act for the entity.")
    NO_ENTITY = _refusal("access_denied", _ADMINISTRATOR,
        "The person is signed in but may act for no entity that this client accepts.",
        "Make the person a member of an entity that the client's `entity_types` accept.")
    ASSURANCE_LEVEL = _refusal("access_denied", _PERSON,
        "The sign-in did not reach the assurance level that was asked for.",
        "Sign in with both factors.")
    SECOND_FACTOR_FAILED = _refusal("access_denied", _PERSON,
        "The second factor was wrong too often.",
        "Begin again; an operator can unlock or renew the second factor.")
    CANCELLED = _refusal("access_denied", _PERSON,
        "The person cancelled the sign-in.",
        "Nothing is to be mended; offer to sign in again.")
    SIGN_IN_ENDED = _refusal(("invalid_request_uri", "access_denied"), _PERSON,
        "The sign-in was finished or has expired, and its page was opened again.",
        "Begin a new sign-in.")
    SIGN_IN_REFUSED = _refusal("access_denied", _PERSON,
        "The sign-in was refused by another version of CorpID, whose reason is not known here.",
        "The reason stands in the audit, action `sign_in.refuse`.")
    SIGN_IN_IN_ANOTHER_BROWSER = _refusal("invalid_request", _PERSON,
        "The sign-in goes on in another browser, where it was begun.",
        "Go on there, or begin a new sign-in here.")
    SIGN_INS_AT_ONCE = _refusal("temporarily_unavailable", _PERSON,
        "One browser begins too many sign-ins at the same moment.",
        "Try again in one tab.")
    STEP_UNKNOWN = _refusal("invalid_request", _PERSON,
        "A form was posted to an address of a sign-in or of the account that has none.",
        "Go back to the page and use its own buttons.")
    FORM_OF_ANOTHER_SITE = _refusal("invalid_request", _PERSON,
        "A form was not sent from a page of this site: Sec-Fetch-Site or Origin says so.",
        "Open the page again. If it happens to everybody, a proxy changes Origin, or `base_url` is wrong.")
    FORM_OF_ANOTHER_BROWSER = _refusal("invalid_request", _PERSON,
        "A form's token is missing or was given to another browser.",
        "Open the page again, and allow cookies for this site.")

    # the token endpoint
    GRANT_TYPE = _refusal("unsupported_grant_type", _RP,
        "grant_type is not the one that the token endpoint takes.",
        "Send grant_type=authorization_code; at the admin API's token endpoint, grant_type=client_credentials.")
    VERIFIER_MALFORMED = _refusal(("invalid_request", "invalid_grant"), _RP,
        "code_verifier is missing, or not 43 to 128 unreserved characters.",
        "Send the code_verifier whose hash was the request's code_challenge.")
    CODE_MALFORMED = _refusal("invalid_grant", _RP,
        "The code is longer than any code of this provider.",
        "Send the code as it came to the redirect URI.")
    CODE_UNKNOWN = _refusal("invalid_grant", _RP,
        "No code like this with this code_verifier is stored for this client: unknown, expired, or redeemed before.",
        "Redeem a code once, at once, with the code_verifier of its own request.")
    CODE_REDIRECT_URI = _refusal("invalid_grant", _RP,
        "redirect_uri is another one than in the authorization request.",
        "Send the same redirect_uri as in the authorization request.")
    CODE_KEY = _refusal(("invalid_grant", "invalid_dpop_proof"), _RP,
        "The proof's key is another one than was bound at the authorization request.",
        "Use one DPoP key from PAR to userinfo.")

    # userinfo and other resources
    CREDENTIALS_MISSING = _refusal("credentials_required", _RP,
        "The request has no Authorization header.",
        "Send the access token in the Authorization header.")
    CREDENTIALS_SCHEME = _refusal("credentials_required", _RP,
        "The Authorization header has another scheme than this interface takes.",
        "Use the token_type of the token response as the scheme.")
    CREDENTIALS_REPEATED = _refusal("invalid_request", _RP,
        "The request has more than one Authorization header.",
        "Send exactly one Authorization header.")
    ACCESS_TOKEN_MALFORMED = _refusal("invalid_token", _RP,
        "What follows the scheme is no token, or no compact JWS.",
        "Send the access token of the token response as it came.")
    ACCESS_TOKEN_FOREIGN = _refusal("invalid_token", _RP,
        "The token is no access token of this provider: another type, issuer or key.",
        "Send the access token, not the ID token, to the provider that issued it.")
    ACCESS_TOKEN_AUDIENCE = _refusal("invalid_token", _RP,
        "The token is not for this resource.",
        "Ask the endpoints of the interface at which the token was issued.")
    ACCESS_TOKEN_EXPIRED = _refusal("invalid_token", _RP,
        "The token has expired.",
        "Read userinfo right after the token response; after that, have the person sign in again. A client of the admin "
        "API asks for a new token.")
    ACCESS_TOKEN_BEFORE_RESTART = _refusal("invalid_token", _RP,
        "The token was issued before the provider lost its short-lived state.",
        "Have the person sign in again. A client of the admin API asks for a new token.")
    ACCESS_TOKEN_REVOKED = _refusal("invalid_token", _RP,
        "The token's code was presented a second time, which revoked the token.",
        "Redeem each code once; look for a retry, or for somebody who reads codes.")
    ACCESS_TOKEN_CLIENT = _refusal("invalid_token", _OPERATOR,
        "The token's client is removed or disabled.",
        "`corpid client enable` enables it again.")
    API_CLIENT_ENTITY = _refusal(("unauthorized_client", "invalid_token"), _OPERATOR,
        "The entity that the client of the admin API is bound to is disabled or removed, or is another one by now.",
        "`corpid client show` says which entity it is; `corpid entity enable` enables it again.")
    ACCESS_TOKEN_SCOPE = _refusal("insufficient_scope", _RP,
        "The token carries none of the scopes that this resource needs.",
        "Ask for a scope that the challenge names.")
    ACCESS_TOKEN_IS_BOUND = _refusal("invalid_token", _RP,
        "The token is bound to a DPoP key and was sent as a bearer token.",
        "Send it with the scheme DPoP and a proof.")
    PROVISIONING_TOKEN = _refusal("invalid_token", _OPERATOR,
        "The bearer token of SCIM is not known, was removed or has expired, or its entity is disabled.",
        "`corpid provisioning-token list` shows those of an entity; `corpid provisioning-token add` makes a new one.")
    ACCESS_TOKEN_KEY = _refusal("invalid_token", _RP,
        "The token is bound to another key than the proof's, or to none.",
        "Use one DPoP key from PAR to userinfo.")
    # fmt: on

    @property
    def code(self) -> str:
        """The reason code: lower case, words joined by underscores."""
        return self.name.lower()
