"""Orders of the sandbox, read from JSON, forms and commands (D66)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from corpid_dev.rules.orders import (
    BY_NAME,
    COMMON,
    ERRORS,
    NAMES,
    REQUESTED_WITHOUT_CLIENT,
    TEXT_CHARACTERS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid_dev.rules.orders import Fault, OrderKind, OrderMember, Value


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
