"""The fields of a client's form: groups, words, values and mistakes.

Every member that an operator sets is in exactly one group; its kind follows from its declaration. The console and
developer mode have this form. Source: Spec 1
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import msgspec

from corpid.flows.oauth.client_keys import ClientKeyReport, report_keys
from corpid.jose.keys import KeySetError, parse_client_key_set
from corpid.rules.characters import typed_number
from corpid.rules.directory.parties import consent_items
from corpid.rules.fields import NOTHING
from corpid.rules.fields import Field as Declared
from corpid.rules.oauth.generations import GENERATIONS, SCOPES
from corpid.rules.oauth.pasted_keys import read_pasted
from corpid.rules.oauth.records import CLIENT_MEMBERS, FIRST_ISSUER, Client
from corpid.texts import Phrase, capitalise, phrase
from corpid.web.pages.components import Cell, Code, Component, English, Facts, Field, FieldError, Value, ViewPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.rules.directory.nodes import Json
    from corpid.rules.directory.records import Service
    from corpid.rules.oauth.client_registration import RegistrationRules


class Group(ViewPart, frozen=True, kw_only=True):
    """Fields with a common legend."""

    legend: Phrase
    names: tuple[str, ...]
    rare: bool = False
    """whether most clients keep its defaults"""
    last: bool = False
    """whether it also has the members that no group names"""

    @property
    def members(self) -> tuple[str, ...]:
        """Its members in the order of the form."""
        others = (name for name in FIELDS if all(name not in group.names for group in GROUPS)) if self.last else ()
        return (*self.names, *others)


GROUPS: Final[tuple[Group, ...]] = (
    Group(legend=phrase("Who it is"), names=("name", "sector")),
    Group(legend=phrase("Addresses"), names=("redirect_uris",)),
    Group(legend=phrase("Keys"), names=("jwks_uri", "jwks")),
    Group(legend=phrase("What it may ask for"), names=("scopes", "services")),
    Group(legend=phrase("Generation of the interface"), names=("generations", "legacy_until")),
    Group(
        legend=phrase("What it receives"),
        names=(
            "subject", "id_token_encryption_alg", "id_token_encryption_enc", "userinfo_signing_alg",
            "userinfo_encryption_alg", "userinfo_encryption_enc", "jwe_header_claims", "stringified_blocks",
        ),
        rare=True,
    ),
    Group(
        legend=phrase("Limits of its requests"),
        names=(
            "context_types", "context_type_rule", "assurance_level", "pkce", "pkce_optional_until",
            "endpoint_audience_until", "issuers",
        ),
        rare=True,
        last=True,
    ),
)  # fmt: skip
FIELDS: Final[Mapping[str, Declared]] = {name: each for name, each in CLIENT_MEMBERS.items() if each.help}
"""the members that an operator sets, in the order of their declaration"""
_FLAGS: Final = ("false", "true")
_DIGITS: Final = 18
"""of a number; Python reads at most 4,300"""
CLIENT_ID: Final = "client_id"
_KEYS: Final = frozenset({"jwks", "jwks_uri"})
INSTEAD: Final[Mapping[str, Json]] = {
    CLIENT_ID: "unnamed",
    "name": "Unnamed",
    "redirect_uris": ["https://client.invalid/callback"],
}
"""what stands for a missing member while the others are checked"""
_ORDER: Final = {
    name: place for place, name in enumerate((CLIENT_ID, *(each for group in GROUPS for each in group.members)))
}
_NAMES: Final = frozenset({*SCOPES, *GENERATIONS, *CLIENT_MEMBERS})
_CHOSEN: Final = ("scopes", "services", "generations", "issuers")
"""lists whose values the program knows: a checkbox `member:value` each"""
PREFIXES: Final = tuple(f"{name}:" for name in _CHOSEN)
"""of the names of checkboxes"""
Choices: TypeAlias = "Mapping[str, tuple[tuple[str, Phrase | str | ViewPart], ...]]"
"""by member: values and texts"""
PRIVATE_KEY: Final = phrase(
    "This was a private key, which only the client may have. Only its public part is left here: check it and send the "
    "form again. If anybody else has seen the private key, the client needs a new one."
)


class FieldGroup(Component, frozen=True, kw_only=True):
    """Fields of a client with a common legend."""

    template: ClassVar[str] = "components/field_group.html"

    legend: Phrase
    fields: tuple[Field, ...]


def choices_of(rules: RegistrationRules, services: Iterable[Service], issuers: str = "") -> Choices:
    """The choices of a form, in the order of its checkboxes.

    `issuers` are those chosen, one a line: their generation is the default.
    """
    default = [rules.issuers[each].pushed for each in issuers.split() or [FIRST_ISSUER] if each in rules.issuers]
    return {
        "scopes": tuple((each, Cell(values=(Code(each),), notes=consent_items((each,)))) for each in SCOPES),
        "services": tuple(
            (each.service_id, Cell(values=(each.name,), notes=(Code(each.service_id),))) for each in services
        ),
        "generations": tuple(
            (name, Cell(values=(name,), notes=(phrase("the default"),) if each in default else ()))
            for name, each in GENERATIONS.items()
        ),
        "issuers": tuple((each, each) for each in rules.issuers),
    }


def fields_of(given: Mapping[str, str], choices: Choices, *, rare: bool) -> tuple[FieldGroup, ...]:
    """The common or the rare groups, with these values."""
    return tuple(
        FieldGroup(
            legend=group.legend,
            fields=tuple(_field(FIELDS[name], given.get(name, ""), choices, rare=rare) for name in group.members),
        )
        for group in GROUPS
        if group.rare == rare
    )


def _field(each: Declared, value: str, choices: Choices, *, rare: bool) -> Field:
    kind = "text"
    words: tuple[tuple[str, Phrase | str | ViewPart], ...] = tuple(
        (word, word) for word in (_FLAGS if each.is_flag_or_none else each.words)
    )
    if each.name in _CHOSEN:
        kind, known = "choices", choices[each.name]
        # What is no longer known stays until somebody unticks it.
        words = (*known, *((one, one) for one in value.split() if all(one != other for other, _ in known)))
    elif each.listed or each.form == "key set":
        kind = "lines"
    elif each.form == "word" or each.is_flag_or_none:
        kind = "words"
    elif each.form == "day":
        kind = "date"
    elif each.form in {"flag", "number"}:
        kind = each.form
    none = (("", phrase("Not set")),) if kind != "choices" and (each.empties or each.default is None) else ()
    return Field(
        name=each.name,
        label=each.label or each.name,
        hint=each.hint,
        kind=kind,
        value=value,
        words=(*none, *words),
        optional=each.listed and each.empties and not rare,
        notes=describe_keys(value) if each.form == "key set" else None,
    )


def describe_keys(jwks: str) -> Facts | None:
    """The kid and use of each key, and the faults."""
    try:
        found = report_keys(parse_client_key_set(jwks))
    except KeySetError:
        return None
    facts = list_keys(found)
    faults = [(phrase("Problem"), English(f"{each}.")) for each in found.problems] if facts else []
    return Facts((*facts, *faults), copies=True) if facts else None


def list_keys(keys: ClientKeyReport) -> list[tuple[Phrase, Value]]:
    """The kid of each key, with its algorithm, by its use."""
    uses = (
        (phrase("kid of its signing key"), keys.signing),
        (phrase("kid of its encryption key"), keys.encryption),
    )
    return [
        (use, Cell(values=(Code(kid) if kid else phrase("none"),), notes=(algorithm,)))
        for use, found in uses
        for kid, algorithm in found
    ]


def opens_rare(given: Mapping[str, str], errors: Iterable[FieldError]) -> bool:
    """Return whether a rare field has an error or no default."""
    wrong = {name for name, _ in errors}
    changed = {name for name, each in FIELDS.items() if given.get(name, "") != _written(each, each.default)}
    return any(name in wrong | changed for group in GROUPS if group.rare for name in group.members)


def new_values(chosen: Mapping[str, object] = MappingProxyType({})) -> dict[str, str]:
    """The values of a new client's form: chosen ones, else defaults."""
    return {name: _written(each, chosen.get(name, each.default)) for name, each in FIELDS.items()}


def values_of(client: Client) -> dict[str, str]:
    return {name: _written(each, getattr(client, name)) for name, each in FIELDS.items()}


def _written(each: Declared, value: object) -> str:
    """A member's value as the form shows it."""
    if value in (None, msgspec.NODEFAULT):
        return ""
    if isinstance(value, tuple):
        return "\n".join(value)
    if each.is_flag_or_none:
        return _FLAGS[bool(value)]
    if each.form == "flag":
        return "yes" if value else ""
    return str(value)


def typed_in(form: Mapping[str, str], name: str) -> str:
    """A field as it was typed, with plain line ends.

    Of checkboxes the ticked values, one a line.
    """
    ticked = [key.partition(":")[2] for key in form if name in _CHOSEN and key.startswith(f"{name}:")]
    return "\n".join(ticked) or form.get(name, "").replace("\r\n", "\n").strip()


def is_same(name: str, typed: str, value: str) -> bool:
    """Return whether a field has a member's value.

    Checkboxes have no order.
    """
    return sorted(typed.split()) == sorted(value.split()) if name in _CHOSEN else typed == value.strip()


def read(each: Declared, typed: str) -> object:
    """A typed value as in a directory file."""
    if each.listed:
        return [line.strip() for line in typed.split("\n") if line.strip()]
    if each.form == "flag" and not each.is_flag_or_none:
        return bool(typed)
    if not typed:
        return NOTHING if each.empties else ""
    if each.form == "number":
        number = typed_number(typed)
        return int(number) if number.isascii() and number.isdigit() and len(number) <= _DIGITS else typed
    return typed


def read_form(form: Mapping[str, str]) -> dict[str, str]:
    """The form as it may be stored, with public keys only.

    What was pasted as keys is a key set, if it can be read as one, and ticked values stand one a line. Source: RFC 7517 §9.3
    """
    read_in = {name: typed_in(form, name) for name in FIELDS if name in form or name in _CHOSEN}
    others = {name: value for name, value in form.items() if not name.startswith(PREFIXES)}
    return {**others, **read_in, "jwks": read_pasted(form.get("jwks", "")).jwks}


def mistakes(typed: Mapping[str, str]) -> list[FieldError]:
    """The errors that need words for people: what is missing, and keys (D27, D66)."""
    errors: list[FieldError] = []
    if not typed.get(CLIENT_ID, CLIENT_ID):
        errors.append((CLIENT_ID, phrase("Enter the identifier of the client.")))
    if not typed["name"]:
        errors.append(("name", phrase("Enter the name that people see.")))
    if not typed["redirect_uris"]:
        errors.append(("redirect_uris", phrase("Enter at least one redirect URI.")))
    if typed["jwks"] and typed["jwks_uri"]:
        errors.append(("jwks_uri", phrase("Fill in the address of the key set or the key set itself, not both.")))
    elif not typed["jwks"] and not typed["jwks_uri"]:
        errors.append(("jwks_uri", phrase("Enter the address of the client's key set, or paste the key set below.")))
    pasted = read_pasted(typed["jwks"])
    if pasted.private:
        errors.append(("jwks", PRIVATE_KEY))
    return [*errors, *named_faults([f"jwks: {pasted.fault}"] if pasted.fault else [])]


def complete(members: Mapping[str, object], errors: Iterable[FieldError]) -> dict[str, object]:
    """The members without mistakes, so that a check finds every other one."""
    wrong = _wrong(errors)
    return {name: INSTEAD.get(name) if name in wrong else value for name, value in members.items()}


def add_faults(errors: Iterable[FieldError], faults: Iterable[str]) -> list[FieldError]:
    """The errors, and faults of other fields, in the form's order."""
    found = list(errors)
    wrong = _wrong(found)
    found += (each for each in named_faults(faults) if each[0] not in wrong)
    return sorted(found, key=lambda each: _ORDER.get(each[0], -1))


def _wrong(errors: Iterable[FieldError]) -> set[str]:
    """The fields with errors; both sources of keys, if one has any."""
    wrong = {name for name, _ in errors if name}
    return wrong if wrong.isdisjoint(_KEYS) else wrong | _KEYS


def named_faults(faults: Iterable[str]) -> list[FieldError]:
    """The faults of a registration, each at its field.

    The sentences are the registration's own.
    """
    errors: list[FieldError] = []
    for fault in faults:
        name, colon, text = fault.partition(": ")
        is_member = bool(colon) and (name in FIELDS or name == CLIENT_ID)
        said = _capitalised(text if is_member else fault)
        errors.append((name if is_member else "", phrase("{sentence}.", sentence=said)))
    return errors


def _capitalised(text: str) -> str:
    """A sentence with a capital letter, except before a name or address."""
    first = text.partition(" ")[0]
    return capitalise(text) if first.isalpha() and first not in _NAMES else text
