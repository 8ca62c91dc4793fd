"""Values of the directory's records: their types, and readers, which raise InvalidValue."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from corpid.rules.authentication.passwords import (
    LONGEST_PASSWORD,
    SHORTEST_PASSWORD,
    normalise_password,
    require_safe_hash,
)
from corpid.rules.characters import JOINERS, is_invisible, printable, typed_code, typed_number
from corpid.rules.directory.names import COUNTRIES, USER_ID, USER_NAME_CHARACTERS, user_name
from corpid.rules.oauth.urls import ascii_domain
from corpid.rules.readers import (
    InvalidValue,
    InvisibleCharacter,
    Items,
    ListReader,
    Node,
    Pairs,
    Reader,
    TextReader,
    identifier,
    limit_text,
    line_of_text,
    name,
    one_of,
    quote_value,
    real_day,
    text_of,
    unknown_field,
    yes_or_no,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


NO_BEGINNING: Final = "0001-01-01"
NO_END: Final = "9999-12-31"

ParameterKind = Literal["text", "alpha", "number", "date", "year"]


class ParameterDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter that roles at an entity service carry (R-14.1)."""

    name: str
    kind: ParameterKind = "text"
    mandatory: bool = False


class RoleDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Description of a role: what it lets people do."""

    name: str
    """the role"""
    description: str


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter's value; one name may repeat (R-14.1)."""

    name: str
    value: str


def parameter_values(parameters: tuple[Parameter, ...], name: str) -> set[str]:
    """Return the values of a parameter. Source: R-14.1, R-21."""
    return {parameter.value for parameter in parameters if parameter.name == name}


TOTP_SECRET_BYTES: Final = 20  # D45

_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_EMAIL_CHARACTERS: Final = 254
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# "=?" would begin an encoded word, which no address may hold (RFC 2047 §5)
_EMAIL: Final = re.compile(rf"(?=[^@]{{1,64}}@)(?!.*=\?){_ATOM}(\.{_ATOM})*@{_LABEL}(\.{_LABEL})*")


_PATTERNS: Final[Mapping[ParameterKind, tuple[str, str]]] = {
    "alpha": (r"[^\W\d_]+([ '.-][^\W\d_]+)*\.?", "letters"),
    "number": (r"-?[0-9]{1,18}(\.[0-9]{1,9})?", "a number"),
    "year": (r"[0-9]{4}", "a year of four digits"),
}
_STORED: Final[Mapping[ParameterKind, Callable[[str], str]]] = {
    "number": typed_number,
    "date": typed_number,
    "year": typed_code,
}


def _country(text: str) -> str:
    if text not in COUNTRIES:
        raise ValueError(f"{quote_value(text)} is not a country code: two capital letters of ISO 3166-1, such as SG")
    return text


country: Final = TextReader(_country, 2)
"""A country code (ISO 3166-1 alpha-2)"""
country_or_empty: Final = TextReader(lambda text: _country(text) if text else "", 2)


def address(text: str) -> str:
    """An address as `email` reads it, its domain in ASCII.

    Raises ValueError, also InvisibleCharacter. Source: RFC 5321 §4.1.2, RFC 5891 §4
    """
    local, at, domain = text.rpartition("@")
    for place, character in enumerate(text):
        if is_invisible(character) and not (place > len(local) and character in JOINERS):
            raise InvisibleCharacter(character, "an e-mail address")
    text = f"{local}{at}{ascii_domain(domain) or domain}"
    if not text or (len(text) <= _EMAIL_CHARACTERS and _EMAIL.fullmatch(text)):
        return text
    raise ValueError(f"{quote_value(text)} is not a usable e-mail address: {_address_fault(text)}")


def as_stored(text: str) -> str:
    """The stored form of an address; another text unchanged.

    Source: RFC 5891 §4
    """
    try:
        return address(text)
    except ValueError:
        return text


email: Final = TextReader(address, _EMAIL_CHARACTERS)
"""An e-mail address that any mail server takes e-mails for, or empty (RFC 5321 §4.1.2, §4.5.3.1)"""
MEMBER_EMAIL: Final = TextReader(lambda text: limit_text(address(text), 200), 200)
"""as long as a member's user name, which it may stand for (D60)"""


def _address_fault(text: str) -> str:
    local, _, domain = text.rpartition("@")
    if not local.isascii():
        return "many mail servers refuse letters beyond a to z before the @; write another address of this person"
    if not domain.isascii():
        return "no domain can have this name"
    return "write one plain address such as rina@example.org"


def _matching(pattern: re.Pattern[str], otherwise: str) -> TextReader:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{quote_value(text)} is not {otherwise}")
        return text

    return TextReader(check)


language: Final = _matching(_LANGUAGE, "a language tag: write en, ms, ta, zh-Hans …")
"""A language tag such as `en` or `zh-Hans` (RFC 5646)"""
stable_id: Final = _matching(USER_ID, "a UUID, such as 5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10")
"""A UUID in its canonical form (RFC 9562 §4)"""


def password(node: Node) -> str:
    """A password as it is typed, NFC.

    Never repeated in the error (D44).
    """
    typed = normalise_password(text_of(node))
    if not SHORTEST_PASSWORD <= len(typed) <= LONGEST_PASSWORD:
        raise InvalidValue(
            node.line, f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters, this one has {len(typed)}"
        )
    return typed


password_hash: Final = TextReader(require_safe_hash)
"""An encoded argon2id hash of acceptable strength and cost, in the bounds of the setting password_hash (D44)"""


def totp_secret(node: Node) -> str:
    """A TOTP secret in base32 without padding, at least 160 bits.

    Never repeated in the error (D45).
    """
    secret = re.sub(r"[\s=-]", "", text_of(node)).upper()
    try:
        length = len(base64.b32decode(secret + "=" * (-len(secret) % 8)))
    except (binascii.Error, ValueError):
        raise InvalidValue(node.line, "a TOTP secret is base32: the letters A to Z and the digits 2 to 7") from None
    if not TOTP_SECRET_BYTES <= length <= 64:
        raise InvalidValue(node.line, f"a TOTP secret has 160 to 512 bits, this one has {length * 8}")
    return secret


PARAMETER_NAME_CHARACTERS: Final = 30

ROLE_CHARACTERS: Final = 20
DESCRIPTION_CHARACTERS: Final = 300

DESCRIPTION: Final = line_of_text(DESCRIPTION_CHARACTERS)
_ROLE: Final = name(ROLE_CHARACTERS)
_PARAMETER_NAME: Final = name(PARAMETER_NAME_CHARACTERS)
PARAMETER_VALUE: Final = line_of_text(200)
_PARAMETER_KIND: Final = one_of(*get_args(ParameterKind))
_DEFINITION_KEYS: Final[Mapping[str, Reader]] = {"kind": _PARAMETER_KIND, "mandatory": yes_or_no}


def parameter_definitions(node: Node) -> tuple[ParameterDefinition, ...]:
    """The parameters of a service: name → kind, mandatory or not.

    Raises InvalidValue. Source: R-14.1
    """
    if not isinstance(node, Pairs):
        raise InvalidValue(node.line, "write each parameter as its name and its kind: Effective Year: {kind: year}")
    found = []
    for key, value in node.entries:
        if not isinstance(value, Pairs):
            raise InvalidValue(value.line, f"write the definition as a mapping: {key.text}: {{kind: text}}")
        found.append(ParameterDefinition(name=str(_PARAMETER_NAME(key)), **_parameter_definition(value)))  # type: ignore[arg-type]
    return tuple(found)


def write_parameter_definitions(definitions: tuple[ParameterDefinition, ...]) -> dict[str, object]:
    """The mapping that `parameter_definitions` reads."""
    return {each.name: {"kind": each.kind, "mandatory": each.mandatory} for each in definitions}


def _parameter_definition(node: Pairs) -> dict[str, object]:
    members = {}
    for key, value in node.entries:
        if key.text not in _DEFINITION_KEYS:
            raise InvalidValue(key.line, unknown_field(key.text, _DEFINITION_KEYS, "a parameter definition"))
        members[key.text] = _DEFINITION_KEYS[key.text](value)
    return members


def role_descriptions(node: Node) -> tuple[RoleDescription, ...]:
    """The descriptions of a service's roles: role → text.

    Raises InvalidValue. Source: docs/directory.md
    """
    if not isinstance(node, Pairs):
        raise InvalidValue(
            node.line, "write each description beside its role: {Viewer: Sees permits and changes nothing.}"
        )
    return tuple(
        RoleDescription(name=str(_ROLE(key)), description=str(DESCRIPTION(value))) for key, value in node.entries
    )


def write_role_descriptions(descriptions: tuple[RoleDescription, ...]) -> dict[str, object]:
    """The mapping that `role_descriptions` reads."""
    return {each.name: each.description for each in descriptions}


def row_parameters(node: Node) -> tuple[Parameter, ...]:
    """The parameters of a row: name → value or list.

    A list if a name repeats. Raises InvalidValue. Source: R-14.1
    """
    if not isinstance(node, Pairs):
        raise InvalidValue(node.line, "write parameters as a mapping: {Effective Year: 2026}")
    found: list[Parameter] = []
    for key, value in node.entries:
        each = value.nodes if isinstance(value, Items) else (value,)
        found.extend(Parameter(name=str(_PARAMETER_NAME(key)), value=str(PARAMETER_VALUE(item))) for item in each)
    return tuple(found)


def write_row_parameters(parameters: tuple[Parameter, ...]) -> dict[str, object]:
    """The mapping that `row_parameters` reads."""
    found: dict[str, list[str]] = {}
    for each in parameters:
        found.setdefault(each.name, []).append(each.value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def stored_value(kind: ParameterKind, value: str) -> str:
    """The stored form of a value: ASCII digits in years, numbers, dates.

    Source: D75
    """
    return _STORED[kind](value) if kind in _STORED else value


def unfit_parameter(kind: ParameterKind, value: str) -> str:
    """Why a value is not of a kind, in words.

    Empty when it is, and for an unset value. Source: R-20
    """
    if not value or kind == "text":
        return ""
    if kind == "date":
        try:
            real_day(value)
        except ValueError as error:
            return str(error)
        return ""
    pattern, described = _PATTERNS[kind]
    return "" if re.fullmatch(pattern, stored_value(kind, value)) else f"{quote_value(value)} is not {described}"


def _foreign(text: str) -> str:
    if printable(text) != text or any(unicodedata.category(each) == "Cs" for each in text):
        raise ValueError("invisible characters are not allowed here")
    return limit_text(text, FOREIGN_CHARACTERS)


def administered_services(node: Node) -> object:
    """The services of a sub-administrator: a list, or the word `all`.

    Raises InvalidValue. Source: D53
    """
    if isinstance(node, Items):
        return ListReader(SERVICE_ID)(node)
    if text_of(node) != ALL:
        raise InvalidValue(
            node.line, f"write a list of services, such as [TAX-FILING], or the word {ALL} for every one"
        )
    return ALL


ALL: Final = "all"
"""the word for every service"""
FOREIGN_CHARACTERS: Final = 200
foreign_identifier: Final = TextReader(_foreign, FOREIGN_CHARACTERS)
"""A text that another system chose, which is compared exactly (RFC 7643 §3.1, D60)"""
login: Final = TextReader(user_name, USER_NAME_CHARACTERS)
"""A user name in its one form (D51)"""
ENTITY_ID: Final = identifier(10)
SERVICE_ID: Final = identifier(25)
ROLE: Final = line_of_text(ROLE_CHARACTERS)
SUB_ENTITY: Final = line_of_text(32)
