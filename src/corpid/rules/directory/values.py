"""Values of the directory's records: their types, and readers, which raise InvalidValue."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable
from datetime import date
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import msgspec

from corpid.rules.authentication.passwords import (
    LONGEST_PASSWORD,
    SHORTEST_PASSWORD,
    normalise_password,
    require_safe_hash,
)
from corpid.rules.characters import JOINERS, is_invisible, printable, typed_code, typed_number, with_ascii_digits
from corpid.rules.directory.names import COUNTRIES, USER_NAME_CHARACTERS, InvisibleCharacter, display_name, user_name
from corpid.rules.directory.nodes import QUOTED_CHARACTERS, Items, Node, Pairs, Scalar, quote_value
from corpid.rules.oauth.urls import ascii_domain
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from corpid.texts import Phrase


NO_BEGINNING: Final = "0001-01-01"
NO_END: Final = "9999-12-31"
Reader: TypeAlias = "Callable[[Node], object]"

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

_UUID: Final = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ROUNDED: Final = re.compile(r"[0-9]([.,][0-9]+)?[Ee][+-][0-9]+")
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


class InvalidDate(ValueError):
    """A text does not have the form of a date."""


class InvalidValue(Exception):
    """A value does not have the form its key requires."""

    def __init__(self, line: int, reason: str, remedy: Phrase | None = None) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
        self.remedy = remedy
        """what the person who typed it should do, if it is something else than to mend the value"""


_COMPARED: Final = 5000
"""names that a word is compared with; among more of them it would take too long"""


def suggestion(word: str, known: Collection[str]) -> str:
    """`; did you mean …?`, or nothing without a close word.

    Source: docs/directory.md
    """
    if len(word) > QUOTED_CHARACTERS or len(known) > _COMPARED:
        return ""
    close = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {quote_value(close[0])}?" if close else ""


def text_of(node: Node) -> str:
    """The text of a scalar.

    A key without a value is refused, since it could mean two things. Source: docs/directory.md
    """
    if not isinstance(node, Scalar):
        raise InvalidValue(node.line, "a single value is expected here, not a list or a mapping")
    if node.plain and not node.text:
        raise InvalidValue(node.line, 'there is no value: omit the key to change nothing, or write "" for empty')
    return node.text


class TextReader(msgspec.Struct, frozen=True):
    """A reader of texts."""

    check: Callable[[str], str]
    """the stored form of a text; raises ValueError"""
    most: int = 0
    """characters; 0: as many as the check allows"""

    def __call__(self, node: Node) -> str:
        try:
            return self.check(text_of(node))
        except ValueError as error:
            raise InvalidValue(node.line, str(error), getattr(error, "remedy", None)) from None


def name(limit: int) -> TextReader:
    """A name for people, of at most `limit` characters (D51)."""
    return TextReader(lambda text: _short(display_name(text), limit), limit)


def line_of_text(limit: int, *, joiners: bool = True) -> TextReader:
    """A reader of printable texts of at most `limit` characters.

    They may be empty. `joiners` as in `names.display_name`. Source: D51, D74
    """
    return TextReader(lambda text: _short(display_name(text, joiners=joiners), limit) if text else "", limit)


def detail(limit: int) -> TextReader:
    """As `line_of_text`, but blanks alone are no text.

    A person's other systems may send them. Source: D51
    """
    return TextReader(lambda text: _short(display_name(text), limit) if text.strip() else "", limit)


def registered_number(limit: int) -> TextReader:
    """A number that a registry gave, of at most `limit` characters.

    Full-width letters and digits of any script become ASCII. Source: D75
    """

    def check(text: str) -> str:
        plain = with_ascii_digits(unicodedata.normalize("NFKC", text))
        return _short(display_name(unrounded(plain)), limit) if plain else ""

    return TextReader(check, limit)


def unrounded(text: str) -> str:
    """The text, unless a spreadsheet has rounded its number.

    Raises ValueError. Source: D75
    """
    if _ROUNDED.fullmatch(text.strip()):
        raise ValueError(f"{quote_value(text)} is a number that a spreadsheet has rounded: format its column as text")
    return text


class _TooLong(ValueError):
    def __init__(self, text: str, limit: int) -> None:
        super().__init__(f"{len(text)} characters are too many: at most {limit}")
        self.remedy = phrase("Use at most {count} characters.", count=limit)


def _short(text: str, limit: int) -> str:
    if len(text) > limit:
        raise _TooLong(text, limit)
    return text


def identifier(limit: int, allowed: str = r"[A-Za-z0-9._-]", described: str = "letters, digits, . _ -") -> TextReader:
    """An identifier of ASCII characters, 1 to `limit` of them (R-14.2)."""
    pattern = re.compile(allowed + "+")

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{quote_value(text)} is not an identifier: use {described}")
        return _short(text, limit)

    return TextReader(check, limit)


def one_of(*values: str, empty: bool = False) -> TextReader:
    """One of a closed list of words.

    With `empty` also none of them (R-20).
    """

    def check(text: str) -> str:
        if text in values or (empty and not text):
            return text
        raise ValueError(f"{quote_value(text)} is not one of {', '.join(values)}{suggestion(text, values)}")

    return TextReader(check)


def yes_or_no(node: Node) -> bool:
    """`true` or `false`, nothing else (R-20)."""
    text = text_of(node)
    if text not in {"true", "false"}:
        raise InvalidValue(node.line, f"write true or false, not {quote_value(text)}")
    return text == "true"


def whole_number(node: Node) -> int:
    """A small number of digits (D10, D75)."""
    text = typed_number(text_of(node))
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise InvalidValue(node.line, f"{quote_value(text)} is not a whole number")
    return int(text)


def _country(text: str) -> str:
    if text not in COUNTRIES:
        raise ValueError(f"{quote_value(text)} is not a country code: two capital letters of ISO 3166-1, such as SG")
    return text


country: Final = TextReader(_country, 2)
"""A country code (ISO 3166-1 alpha-2)"""
country_or_empty: Final = TextReader(lambda text: _country(text) if text else "", 2)


def real_day(text: str) -> str:
    """The date of a text. Raises ValueError. D23, D75"""
    typed = typed_number(text)
    if not _DAY.fullmatch(typed):
        raise InvalidDate(f"{quote_value(text)} is not a date: write YYYY-MM-DD, and {NO_END} for no end")
    try:
        return date.fromisoformat(typed).isoformat()
    except ValueError:
        raise ValueError(f"the date {typed} does not exist") from None


def address(text: str) -> str:
    """An address as `email` reads it, its domain in ASCII.

    Raises ValueError, also InvisibleCharacter. Source: RFC 5321 §4.1.2, RFC 5891 §4
    """
    text = _with_ascii_domain(text)
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


day: Final = TextReader(real_day)
"""A date that exists, as YYYY-MM-DD (D23)"""
email: Final = TextReader(address, _EMAIL_CHARACTERS)
"""An e-mail address that any mail server takes e-mails for, or empty (RFC 5321 §4.1.2, §4.5.3.1)"""
MEMBER_EMAIL: Final = TextReader(lambda text: _short(address(text), 200), 200)
"""as long as a member's user name, which it may stand for (D60)"""


def _with_ascii_domain(text: str) -> str:
    """An address with the A-labels of its domain, if there are any."""
    local, at, domain = text.rpartition("@")
    for place, character in enumerate(text):
        if is_invisible(character) and not (place > len(local) and character in JOINERS):
            raise InvisibleCharacter(character, "an e-mail address")
    return f"{local}{at}{ascii_domain(domain) or domain}"


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
stable_id: Final = _matching(_UUID, "a UUID, such as 5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10")
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


def texts(read: Reader, *, least: int = 0) -> Reader:
    """A list of different values (R-20)."""

    def read_all(node: Node) -> tuple[object, ...]:
        if not isinstance(node, Items):
            raise InvalidValue(node.line, "a list is expected here: [first, second]")
        values: dict[object, None] = {}
        for item in node.nodes:
            value = read(item)
            if value in values:
                raise InvalidValue(item.line, f"{quote_value(value)} occurs twice in the list")
            values[value] = None
        if len(values) < least:
            raise InvalidValue(node.line, "the list needs at least one value")
        return tuple(values)

    return read_all


def key_set(node: Node) -> str:
    """A JSON Web Key Set as JSON text.

    Written inline as YAML, pasted as JSON, or as one text. Source: D27
    """
    if isinstance(node, Scalar):
        return text_of(node)
    return msgspec.json.encode(_json(node)).decode()


def _json(node: Node) -> object:
    if isinstance(node, Items):
        return [_json(item) for item in node.nodes]
    if isinstance(node, Pairs):
        return {key.text: _json(value) for key, value in node.entries}
    return {"true": True, "false": False, "null": None}.get(node.text, node.text) if node.plain else node.text


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


def _parameter_definition(node: Pairs) -> dict[str, object]:
    members = {}
    for key, value in node.entries:
        if key.text not in _DEFINITION_KEYS:
            hint = suggestion(key.text, _DEFINITION_KEYS)
            raise InvalidValue(key.line, f"{quote_value(key.text)} is not a key of a parameter definition{hint}")
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
    return _short(text, FOREIGN_CHARACTERS)


def administered_services(node: Node) -> object:
    """The services of a sub-administrator: a list, or the word `all`.

    Raises InvalidValue. Source: D53
    """
    if isinstance(node, Items):
        return texts(SERVICE_ID)(node)
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
