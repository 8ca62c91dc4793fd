"""The declarations of the sandbox's orders.

An order makes the provider answer wrongly, late or not at all, in one way that its name says. API, page, command and
docs/sandbox.md are made from this table. Source: D66

Orders of the sandbox, read from JSON, forms and commands (D66).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from corpid.rules.oauth.errors import OAuthError

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
    Fault(
        name="error-state",
        help="There is an error instead of the code, and `state` is not the one that was sent.",
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


class InvalidOrder(Exception):
    """An invalid order; the text is for its author."""

    def __init__(self, member: str, text: str) -> None:
        super().__init__(f"{member}: {text}")
        self.member: Final = member
        self.text: Final = text


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A valid order."""

    name: str
    client_id: str | None = None
    """None: of every client"""
    members: Mapping[str, Value] = field(default_factory=dict)
    times: int | None = None
    """None: until it is withdrawn"""
    sign_in: str | None = None

    @property
    def kind(self) -> OrderKind:
        """The declaration of this order."""
        return BY_NAME[self.name]

    def text(self, member: str) -> str:
        """A member as text, empty if it is absent."""
        return str(self.members.get(member, ""))

    def number(self, member: str, otherwise: float = 0) -> float:
        found = self.members.get(member, otherwise)
        return otherwise if isinstance(found, str) else float(found)

    @property
    def document(self) -> dict[str, object]:
        """The order as JSON."""
        return {
            "client_id": self.client_id,
            "order": self.name,
            **self.members,
            "times": self.times,
            "sign_in": self.sign_in,
        }


def read(document: Mapping[str, object]) -> Order:
    """Read an order. Raises InvalidOrder, which names the member. Source: D66"""
    name = document.get("order")
    kind = BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidOrder("order", f"must be one of {', '.join(NAMES)}")
    known = {"order", *(each.name for each in (*COMMON, *kind.members))}
    for member in document:
        if member not in known:
            raise InvalidOrder(member, f"{kind.name} has no such member; it has {', '.join(sorted(known - {'order'}))}")
    common = _members(COMMON, document)
    members = _members(kind.members, document)
    order = Order(
        name=kind.name,
        client_id=_text(common.get("client_id")),
        members=members,
        times=_whole(common.get("times")),
        sign_in=_text(common.get("sign_in")),
    )
    _require_fitting(order)
    return order


def document_from_texts(name: str, texts: Mapping[str, str]) -> dict[str, object]:
    """The document of an order, from a form or a command.

    Empty texts are left out. Source: D66
    """
    kind = BY_NAME.get(name)
    declared = {each.name: each for each in (*COMMON, *(kind.members if kind else ()))}
    found: dict[str, object] = {"order": name}
    for member, text in texts.items():
        if text.strip():
            found[member] = _of_text(declared.get(member), text.strip())
    return found


def _of_text(member: OrderMember | None, text: str) -> Value:
    if member is not None and member.flag and text in ("true", "false"):
        return text == "true"
    if member is not None and member.least is not None:
        try:
            return int(text) if text.isdecimal() else float(text)
        except ValueError:
            return text
    return text


def _text(value: Value | None) -> str | None:
    return None if value is None else str(value)


def _whole(value: Value | None) -> int | None:
    return None if value is None else int(value)


def _members(declared: Iterable[OrderMember], document: Mapping[str, object]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for member in declared:
        sent = document.get(member.name)
        if sent is None:
            if member.required:
                raise InvalidOrder(member.name, f"is missing; it must be {_in_words(member)}")
            if member.default is not None:
                found[member.name] = member.default
            continue
        found[member.name] = _value(member, sent)
    return found


def _value(member: OrderMember, sent: object) -> Value:
    if member.least is not None:
        fits = isinstance(sent, int | float) and not isinstance(sent, bool) and member.least <= sent <= member.most
        if isinstance(sent, int | float) and fits and not (member.whole and sent != int(sent)):
            return int(sent) if member.whole else sent
    elif member.flag:
        if isinstance(sent, bool):
            return sent
    elif isinstance(sent, str) and _is_short_text(sent) and (not member.choices or sent in member.choices):
        return sent
    if member.choices or member.flag or member.least is not None:
        raise InvalidOrder(member.name, f"must be {_in_words(member)}")
    raise InvalidOrder(member.name, f"must be text of 1 to {TEXT_CHARACTERS} printable ASCII characters")


def _in_words(member: OrderMember) -> str:
    return f"{'' if member.least is None else 'a '}{member.type}"


def _is_short_text(sent: str) -> bool:
    return 0 < len(sent) <= TEXT_CHARACTERS and sent.isascii() and sent.isprintable()


def _require_fitting(order: Order) -> None:
    """Refuse members that do not go together."""
    kind, endpoint = order.kind, order.text("endpoint")
    without_client = kind.everybody or endpoint in REQUESTED_WITHOUT_CLIENT
    if without_client:
        what = kind.name if kind.everybody else f"the endpoint {endpoint}"
        for member, value in (("client_id", order.client_id), ("sign_in", order.sign_in)):
            if value is not None:
                raise InvalidOrder(member, f"{what} serves every client alike: leave it out")
    if kind.once and order.times is not None:
        raise InvalidOrder("times", f"{kind.name} is carried out once, when it is placed: leave it out")
    if order.sign_in is not None and endpoint == "par":
        raise InvalidOrder("sign_in", "the push comes before the request_uri: name the client only")
    if kind.name == "error":
        _require_error(order, endpoint)
    fault = kind.fault(order.members.get("fault"))
    if fault is not None:
        _require_fault(order, fault)


def _require_fault(order: Order, fault: Fault) -> None:
    token = order.text("token")
    if fault.tokens and token not in fault.tokens:
        raise InvalidOrder("fault", f"{fault.name} is a fault of {' and '.join(fault.tokens)}, not of {token}")
    if fault.needs and fault.needs not in order.members:
        raise InvalidOrder(fault.needs, f"is missing: {fault.name} needs it")
    for member in ("claim", "error", "seconds"):
        if member in order.members and member not in (fault.needs, fault.takes):
            raise InvalidOrder(member, f"{fault.name} has no such member")


def _require_error(order: Order, endpoint: str) -> None:
    error = order.text("error")
    if error not in ERRORS[endpoint]:
        raise InvalidOrder("error", f"{endpoint} has no error {error}; it has {', '.join(ERRORS[endpoint])}")
    for member in ("status", "retry_after"):
        if endpoint == "authorize" and member in order.members:
            raise InvalidOrder(member, "the error goes to the redirect URI: it has neither status nor headers")
