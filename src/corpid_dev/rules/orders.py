"""The declarations of the sandbox's orders.

An order makes the provider answer wrongly, late or not at all, in one way that its name says. API, page, command and
docs/sandbox.md are made from this table. Source: D66
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.rules.oauth.errors import OAuthError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Value: TypeAlias = str | int | float | bool

LONGEST_LATENCY: Final = 60
LONGEST_DELAY: Final = 180
LATE_SECONDS: Final = 65
"""longer than a code is valid (Spec 2.3)"""
MOST_TIMES: Final = 1000
TEXT_CHARACTERS: Final = 200
MANY_ROWS: Final = 500

REQUESTED_WITHOUT_CLIENT: Final = ("jwks", "discovery")
"""endpoints whose requests name no client (Spec 4.6, 4.7)"""
RESOURCES: Final = ("userinfo", "authorization-info", "entity-info")
BOUND: Final = ("par", "token", "userinfo", "entity-info")
"""endpoints that can receive a DPoP proof"""
ENDPOINTS: Final = ("par", "authorize", "token", *RESOURCES, *REQUESTED_WITHOUT_CLIENT)

ERROR_CLASSES: Final[Mapping[str, type[OAuthError]]] = MappingProxyType(
    {each.code: each for each in OAuthError.__subclasses__()}
)
"""error code → its class"""


def _errors(*codes: str) -> dict[str, int]:
    return {code: ERROR_CLASSES[code].status for code in codes}


_BUSY: Final = ("server_error", "temporarily_unavailable")
_RESOURCE: Final = ("invalid_request", "invalid_token", "insufficient_scope", *_BUSY)
ERRORS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "par": _errors("invalid_request", "invalid_client", "invalid_scope", "invalid_dpop_proof", *_BUSY),
        "authorize": dict.fromkeys(
            (
                "invalid_request", "invalid_request_uri", "access_denied", "login_required", "interaction_required",
                "consent_required", *_BUSY,
            ),
            302,
        ),
        "token": _errors(
            "invalid_request", "invalid_client", "invalid_grant", "invalid_dpop_proof", "unsupported_grant_type", *_BUSY,
        ),
        "userinfo": _errors(*_RESOURCE, "invalid_dpop_proof"),
        "authorization-info": _errors(*_RESOURCE),
        "entity-info": _errors(*_RESOURCE, "invalid_dpop_proof"),
        "jwks": _errors(*_BUSY),
        "discovery": _errors(*_BUSY),
    }
)  # fmt: skip
"""endpoint → error code → its usual status (Spec 7); of authorize, the errors in the callback"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderMember:
    name: str
    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    """of a number; None: the member is text, or true or false"""
    most: float = 0
    whole: bool = True
    flag: bool = False
    required: bool = True
    default: Value | None = None
    """None: there is none"""

    @property
    def type(self) -> str:
        """The type and range, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.least is not None:
            return f"{'whole number' if self.whole else 'number'} from {self.least:g} to {self.most:g}"
        return "true or false" if self.flag else "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way in which a token or a callback is wrong."""

    name: str
    help: str
    right: str
    """what a correct relying party does"""
    tokens: tuple[str, ...] = ()
    """the tokens that can have it"""
    needs: str = ""
    """the member that it needs"""
    takes: str = ""
    """the member that it may have"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderKind:
    """An order by its name."""

    name: str
    help: str
    right: str
    members: tuple[OrderMember, ...] = ()
    faults: tuple[Fault, ...] = ()
    everybody: bool = False
    """it changes what every client receives, so it names none"""
    once: bool = False
    """it is carried out when it is placed, and then over"""

    def fault(self, name: object) -> Fault | None:
        return next((each for each in self.faults if each.name == name), None)


_REFUSED: Final = "Refuses the sign-in: shows a page, begins no session."
_BOTH: Final = ("id_token", "userinfo")
_ALL: Final = (*_BOTH, "access_token")

TOKEN_FAULTS: Final = (
    Fault(name="signature", tokens=_ALL, help="The signature does not verify.", right=_REFUSED),
    Fault(name="alg-none", tokens=_ALL, help="`alg` is `none`, and there is no signature.", right=_REFUSED),
    Fault(
        name="alg-hs256",
        tokens=_ALL,
        help="`alg` is `HS256`, made with the published key as its secret.",
        right="Refuses the sign-in: accepts only the algorithm that it expects.",
    ),
    Fault(name="iss", tokens=_ALL, help="`iss` is another issuer.", right=_REFUSED),
    Fault(name="aud", tokens=_ALL, help="`aud` is another client or resource.", right=_REFUSED),
    Fault(name="aud-further", tokens=_BOTH, help="`aud` has a further audience.", right=_REFUSED),
    Fault(name="nonce", tokens=("id_token",), help="`nonce` is not the one that was sent.", right=_REFUSED),
    Fault(name="nonce-missing", tokens=("id_token",), help="`nonce` is missing.", right=_REFUSED),
    Fault(
        name="at-hash",
        tokens=("id_token",),
        help="`at_hash` is another access token's.",
        right="Refuses the sign-in if it uses the access token.",
    ),
    Fault(name="exp", tokens=_ALL, help="It expired an hour ago.", right=_REFUSED),
    Fault(name="iat", tokens=_ALL, help="It was issued an hour in the future.", right=_REFUSED),
    Fault(
        name="sub",
        tokens=_ALL,
        help="`sub` is another person's.",
        right="Refuses userinfo whose `sub` is not the ID token's. An ID token alone shows nothing wrong.",
    ),
    Fault(name="other-encryption-key", tokens=_BOTH, help="It is encrypted to another key.", right=_REFUSED),
    Fault(
        name="not-encrypted",
        tokens=_BOTH,
        help="It is signed only, although encryption is registered.",
        right=_REFUSED,
    ),
    Fault(
        name="missing-claim",
        tokens=_ALL,
        help="The claim that `claim` names is missing.",
        right=_REFUSED,
        needs="claim",
    ),
    Fault(
        name="extra-roles",
        tokens=("userinfo",),
        help="There are roles at a service, and a role, that nobody has heard of.",
        right="Ignores what it does not know, and begins the session.",
    ),
    Fault(
        name="empty-result-set",
        tokens=("userinfo",),
        help="The blocks of roles have no rows.",
        right="Begins the session without roles, or tells the person that they have none here.",
    ),
    Fault(
        name="many-rows",
        tokens=("userinfo",),
        help=f"The first service has {MANY_ROWS} rows of roles.",
        right="Begins the session.",
    ),
)
CALLBACK_FAULTS: Final = (
    Fault(name="state", help="`state` is not the one that was sent.", right=f"{_REFUSED} Requests no token."),
    Fault(name="state-missing", help="`state` is missing.", right=f"{_REFUSED} Requests no token."),
    Fault(name="iss", help="`iss` is another issuer (RFC 9207).", right=f"{_REFUSED} Requests no token."),
    Fault(
        name="iss-missing",
        help="`iss` is missing, although the metadata announces it.",
        right=f"{_REFUSED} Requests no token.",
    ),
    Fault(
        name="error",
        help="There is an error instead of the code.",
        right=f"{_REFUSED} Requests no token.",
        needs="error",
    ),
    Fault(name="code-twice", help="`code` occurs twice.", right=f"{_REFUSED} Requests no token."),
    Fault(
        name="late",
        help="The answer is held back for `seconds`, by default until the code has expired.",
        right="Shows a page when the token endpoint answers invalid_grant.",
        takes="seconds",
    ),
    Fault(
        name="code",
        help="`code` is one that was never issued.",
        right="Shows a page when the token endpoint answers invalid_grant.",
    ),
)


def _names(faults: Iterable[Fault]) -> tuple[str, ...]:
    return tuple(each.name for each in faults)


_CODES: Final = tuple(dict.fromkeys(code for codes in ERRORS.values() for code in codes))
_DESCRIPTION: Final = OrderMember(name="description", help="`error_description`", required=False)

KINDS: Final = (
    OrderKind(
        name="error",
        help="An endpoint answers with an error of Spec section 7. Of `authorize` it is delivered in the callback.",
        right="Shows a page that a person understands; repeats the request only if the error says that this may help.",
        members=(
            OrderMember(name="endpoint", choices=ENDPOINTS, help="where"),
            OrderMember(name="error", choices=_CODES, help="the error code; the endpoint must have it"),
            OrderMember(
                name="status", least=400, most=599, required=False, help="HTTP status; by default the error's own"
            ),
            _DESCRIPTION,
            OrderMember(name="retry_after", least=0, most=3600, required=False, help="Retry-After, in seconds"),
        ),
    ),
    OrderKind(
        name="latency",
        help="An endpoint answers later.",
        right="Waits for a few seconds, then shows a page; never holds up other people's requests.",
        members=(
            OrderMember(name="endpoint", choices=ENDPOINTS, help="where"),
            OrderMember(name="seconds", least=0, most=LONGEST_LATENCY, whole=False, help="by how many seconds"),
        ),
    ),
    OrderKind(
        name="maintenance",
        help="PAR, authorize and token answer as during maintenance: 503 temporarily_unavailable with Retry-After, or in "
        "the callback. Resources go on.",
        right="Shows a page that asks to come back later, and honours Retry-After.",
    ),
    OrderKind(
        name="rotate-key",
        help="A new signing key is made, published, and signs at once. It is done when it is placed.",
        right="Fetches the key set again when it meets the unknown kid, and begins the session (Spec 4.7).",
        members=(
            OrderMember(
                name="withdraw",
                flag=True,
                required=False,
                default=False,
                help="take the key that signed until now out of the set at once",
            ),
        ),
        everybody=True,
        once=True,
    ),
    OrderKind(
        name="signing-key",
        help="A token is signed by a key that the key set does not have.",
        right="Fetches the key set again, at most once or twice, does not find the kid, and refuses the sign-in.",
        members=(
            OrderMember(
                name="which",
                choices=("unknown", "retired", "unpublished"),
                help="unknown: a new key each time; retired: one that was taken out of the set; unpublished: the same "
                "key each time, which was never in the set",
            ),
            OrderMember(name="token", choices=_BOTH, required=False, default="id_token", help="the token"),
        ),
    ),
    OrderKind(
        name="token",
        help="A token is wrong in one way.",
        right="Refuses it, if the fault is one that a relying party can see.",
        members=(
            OrderMember(name="token", choices=_ALL, help="the token"),
            OrderMember(name="fault", choices=_names(TOKEN_FAULTS), help="what is wrong"),
            OrderMember(name="claim", required=False, help="the name of the claim, for missing-claim"),
        ),
        faults=TOKEN_FAULTS,
    ),
    OrderKind(
        name="callback",
        help="The callback is wrong in one way.",
        right="Refuses it, and sends no token request if it can see the fault.",
        members=(
            OrderMember(name="fault", choices=_names(CALLBACK_FAULTS), help="what is wrong"),
            OrderMember(
                name="error", choices=tuple(ERRORS["authorize"]), required=False, help="the error code, for error"
            ),
            OrderMember(
                name="seconds",
                least=0,
                most=LONGEST_DELAY,
                whole=False,
                required=False,
                help=f"for late; left out: {LATE_SECONDS}",
            ),
        ),
        faults=CALLBACK_FAULTS,
    ),
    OrderKind(
        name="token-type",
        help="The token answer has another `token_type`.",
        right="Refuses the sign-in: the type is DPoP, at LEGACY Bearer (Spec 2.4).",
        members=(
            OrderMember(
                name="value", choices=("Bearer", "DPoP", "N_A"), required=False, default="Bearer", help="`token_type`"
            ),
        ),
    ),
    OrderKind(
        name="dpop-nonce",
        help="A proof without the sandbox's nonce is answered with use_dpop_nonce and DPoP-Nonce (RFC 9449 §8).",
        right="Repeats the request with a new proof that has the nonce, and begins the session.",
        members=(OrderMember(name="endpoint", choices=BOUND, help="where"),),
    ),
)
NAMES: Final = tuple(each.name for each in KINDS)
BY_NAME: Final[Mapping[str, OrderKind]] = MappingProxyType({each.name: each for each in KINDS})
COMMON: Final = (
    OrderMember(name="client_id", required=False, help="the client that it is for; left out: every client"),
    OrderMember(
        name="times",
        least=1,
        most=MOST_TIMES,
        required=False,
        help="how often it is obeyed; left out: until it is withdrawn",
    ),
    OrderMember(
        name="sign_in",
        required=False,
        help="the `request_uri` of the one sign-in that it is for; of a request in the query, its `state`",
    ),
)
"""what every order may have, in addition to its own members"""
