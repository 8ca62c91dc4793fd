"""The fields of a client's form: groups, words, values and mistakes.

Every member that an operator sets is in exactly one group; its kind follows from its declaration. The console and
developer mode have this form. Source: Spec 1
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.characters import typed_number
from corpid.rules.fields import NOTHING
from corpid.rules.oauth.client_registration import public_part
from corpid.rules.oauth.generations import GENERATIONS, SCOPES
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.rules.oauth.urls import shorten_url
from corpid.texts import capitalise, phrase
from corpid.web.pages.layout import Field, ViewPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.rules.fields import Field as Declared
    from corpid.rules.oauth.records import Client
    from corpid.texts import Phrase
    from corpid.web.pages.layout import FieldError


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
_NAMES: Final = frozenset({*SCOPES, *GENERATIONS, *CLIENT_MEMBERS})
PRIVATE_KEY: Final = phrase(
    "This was a private key, which only the client may have. Only its public part is left here: check it and send the "
    "form again. If anybody else has seen the private key, the client needs a new one."
)


class Fields(ViewPart, frozen=True, kw_only=True):
    legend: Phrase
    fields: tuple[Field, ...]


def fields_of(given: Mapping[str, str], *, rare: bool) -> tuple[Fields, ...]:
    """The common or the rare groups, with these values."""
    return tuple(
        Fields(
            legend=group.legend,
            fields=tuple(_field(FIELDS[name], given.get(name, ""), rare=rare) for name in group.members),
        )
        for group in GROUPS
        if group.rare == rare
    )


def _field(each: Declared, value: str, *, rare: bool) -> Field:
    kind = "text"
    if each.listed or each.form == "key set":
        kind = "lines"
    elif each.form == "word" or each.is_flag_or_none:
        kind = "words"
    elif each.form in {"flag", "day", "number"}:
        kind = each.form
    none = (("", phrase("Not set")),) if each.empties or each.default is None else ()
    return Field(
        name=each.name,
        label=each.label or each.name,
        hint=each.hint,
        kind=kind,
        value=value,
        words=(*none, *((word, word) for word in (_FLAGS if each.is_flag_or_none else each.words))),
        optional=each.empties and not rare,
    )


def opens_rare(given: Mapping[str, str], errors: Iterable[FieldError]) -> bool:
    """Return whether a rare field has an error or no default."""
    wrong = {name for name, _ in errors}
    changed = {name for name, each in FIELDS.items() if given.get(name, "") != _written(each, each.default)}
    return any(name in wrong | changed for group in GROUPS if group.rare for name in group.members)


def new_values(chosen: Mapping[str, object] = MappingProxyType({})) -> dict[str, str]:
    """The values of a new client's form: chosen ones, else defaults.

    Without a choice it has every scope.
    """
    members = {"scopes": SCOPES, **chosen}
    return {name: _written(each, members.get(name, each.default)) for name, each in FIELDS.items()}


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
    """A field as it was typed, with plain line ends."""
    return form.get(name, "").replace("\r\n", "\n").strip()


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


def without_private_keys(form: dict[str, str]) -> dict[str, str]:
    """The form as it may be stored and sent back (RFC 7517 §9.3)."""
    public = public_part(form.get("jwks", ""))
    return form if public is None else {**form, "jwks": public}


def mistakes(typed: Mapping[str, str], *, developer_mode: bool) -> list[FieldError]:
    """The errors that need words for people (D27, D38)."""
    errors: list[FieldError] = []
    if not typed["name"]:
        errors.append(("name", phrase("Enter the name that people see.")))
    uris = typed["redirect_uris"].split()
    if not uris:
        errors.append(("redirect_uris", phrase("Enter at least one redirect URI.")))
    for name, url in [("redirect_uris", uri) for uri in uris] + [("jwks_uri", typed["jwks_uri"])]:
        if url.startswith("http://") and not developer_mode:
            errors.append((name, phrase("{url} begins with http://. Use https://.", url=shorten_url(url))))
        elif "#" in url:
            text = phrase("{url} has a fragment. Remove the # and everything after it.", url=shorten_url(url))
            errors.append((name, text))
    if typed["jwks"] and typed["jwks_uri"]:
        errors.append(("jwks_uri", phrase("Fill in the address of the key set or the key set itself, not both.")))
    elif not typed["jwks"] and not typed["jwks_uri"]:
        errors.append(("jwks_uri", phrase("Enter the address of the client's key set, or paste the key set below.")))
    if public_part(typed["jwks"]) is not None:
        errors.append(("jwks", PRIVATE_KEY))
    return errors


def named_faults(faults: Iterable[str]) -> list[FieldError]:
    """The faults of a registration, each at its field.

    The sentences are the registration's own.
    """
    errors: list[FieldError] = []
    for fault in faults:
        name, colon, text = fault.partition(": ")
        is_member = bool(colon) and name in FIELDS
        said = _capitalised(text if is_member else fault)
        errors.append((name if is_member else "", phrase("{sentence}.", sentence=said)))
    return errors


def _capitalised(text: str) -> str:
    """A sentence with a capital letter, except before a name or address."""
    first = text.partition(" ")[0]
    return capitalise(text) if first.isalpha() and first not in _NAMES else text
