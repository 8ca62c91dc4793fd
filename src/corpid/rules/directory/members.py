"""Members of records: which are secret, masked or personal (D57).

One declaration, for the plan of a directory file and for the audit. A member that is not named here is shown as it is.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN_CHARACTERS: Final = 4
"""of a masked member, its last ones"""


class Disclosure(Enum):
    """The form in which plan and audit show a member."""

    SECRET = auto()
    """only whether it is set, and that it changed: hashes, secrets, key material"""
    BOOKKEEPING = auto()
    """nothing: it serves the record alone, and follows from others"""
    PERSONAL = auto()
    """the value, and in the audit only in the details, which can be erased"""
    MASKED = auto()
    """as PERSONAL, and only its last characters"""
    MARK = auto()
    """the value, of a record that is added or removed only if it is true"""


DISCLOSURES: Final[Mapping[str, Mapping[str, Disclosure]]] = {
    "User": {
        "user_name": Disclosure.PERSONAL,
        "name": Disclosure.PERSONAL,
        "email": Disclosure.PERSONAL,
        "identity_number": Disclosure.MASKED,
        "placeholder": Disclosure.MARK,
    },
    "Membership": {
        "membership_id": Disclosure.BOOKKEEPING,
        "invited": Disclosure.MARK,
        "user_name": Disclosure.PERSONAL,
        "external_id": Disclosure.PERSONAL,
        "name": Disclosure.PERSONAL,
        "given_name": Disclosure.PERSONAL,
        "family_name": Disclosure.PERSONAL,
        "email": Disclosure.PERSONAL,
        "created_at": Disclosure.BOOKKEEPING,
        "changed_at": Disclosure.BOOKKEEPING,
        "invitation_sent_at": Disclosure.BOOKKEEPING,
    },
    "Credentials": {
        "password_hash": Disclosure.SECRET,
        "totp_secret": Disclosure.SECRET,
        "password_source": Disclosure.BOOKKEEPING,
        "password_set_by": Disclosure.BOOKKEEPING,
        "totp_set_by": Disclosure.BOOKKEEPING,
        "totp_last_step": Disclosure.BOOKKEEPING,
    },
    "Passkey": {
        "credential_id": Disclosure.BOOKKEEPING,
        "public_key": Disclosure.BOOKKEEPING,
        "sign_count": Disclosure.BOOKKEEPING,
        "name": Disclosure.PERSONAL,
        "created_at": Disclosure.BOOKKEEPING,
        "used_at": Disclosure.BOOKKEEPING,
    },
    "ChangeRequest": {
        "reason": Disclosure.PERSONAL,
        "decided_reason": Disclosure.PERSONAL,
        "people": Disclosure.BOOKKEEPING,
    },
    "Client": {"jwks": Disclosure.SECRET},
    "RegisteredApiClient": {"jwks": Disclosure.SECRET},
    "RegisteredProvisioningToken": {"token_hash": Disclosure.SECRET, "last_used_at": Disclosure.BOOKKEEPING},
    "ProviderKey": {"secret": Disclosure.SECRET, "certificate_chain": Disclosure.SECRET},
    "FactorLink": {"link_hash": Disclosure.BOOKKEEPING, "factors": Disclosure.BOOKKEEPING},
    "FetchedKeySet": {"jwks": Disclosure.SECRET},
}
"""type of record → member → how it may be shown"""
_OPEN: Final[Mapping[str, Disclosure]] = {}


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a record that changed, before and after.

    An added record has none before, a removed one none after. Values are those of JSON.
    """

    before: dict[str, object] = msgspec.field(default_factory=dict)
    after: dict[str, object] = msgspec.field(default_factory=dict)
    personal: frozenset[str] = frozenset()
    """names of those that belong into the details"""

    @property
    def names(self) -> list[str]:
        """The names of changed members.

        None for a record that is added or removed.
        """
        return [name for name in self.after if name in self.before] if self.before and self.after else []


def disclosures(record: msgspec.Struct) -> Mapping[str, Disclosure]:
    """The declared members of a record. Source: D57"""
    return DISCLOSURES.get(type(record).__name__, _OPEN)


def visible_members(record: msgspec.Struct | None) -> dict[str, object]:
    """The members of a record without its bookkeeping.

    As they are: secrets, too. Source: D57
    """
    if record is None:
        return {}
    declared = disclosures(record)
    names = record.__struct_fields__
    return {name: getattr(record, name) for name in names if declared.get(name) is not Disclosure.BOOKKEEPING}


def compare_members(was: msgspec.Struct | None, becomes: msgspec.Struct | None) -> Members:
    """The members in which two states of a record differ.

    In the form in which they may be shown. None is the state of a record that does not exist. Source: D57
    """
    record = becomes or was
    if record is None:
        return Members()
    declared, old, new = disclosures(record), visible_members(was), visible_members(becomes)
    if was is not None and becomes is not None:
        names = [name for name in new if old[name] != new[name]]
    else:
        names = [name for name, value in (old or new).items() if is_disclosed(declared.get(name), value)]
    return Members(
        before={name: disclose_value(declared.get(name), old[name]) for name in names if name in old},
        after={
            name: disclose_value(declared.get(name), new[name], changed=name in old and _is_set(old[name]))
            for name in names
            if name in new
        },
        personal=frozenset(name for name in names if declared.get(name) in {Disclosure.PERSONAL, Disclosure.MASKED}),
    )


def merge_members(*parts: Members) -> Members:
    """The members of one change that several records have part in. Source: D57"""
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    for part in parts:
        before |= part.before
        after |= part.after
    return Members(before=before, after=after, personal=frozenset().union(*(part.personal for part in parts)))


def disclose_value(how: Disclosure | None, value: object, *, changed: bool = False) -> object:
    """A value as plan and audit may show it, for JSON.

    `changed`: another one was there before. Source: D57
    """
    if how is Disclosure.SECRET:
        return ("changed" if changed else "set") if _is_set(value) else None
    if how is Disclosure.MASKED and isinstance(value, str):
        return mask_text(value)
    plain: object = msgspec.to_builtins(value)
    return plain


def is_disclosed(how: Disclosure | None, value: object) -> bool:
    """Return whether the value of an added or removed record is shown. Source: D57"""
    return bool(value) if how is Disclosure.MARK else _is_set(value)


def mask_text(text: str) -> str:
    """A text with only its end readable.

    Nothing of a short one. Source: D57, D61
    """
    if len(text) <= SHOWN_CHARACTERS:
        return "•" * len(text)
    return "•" * (len(text) - SHOWN_CHARACTERS) + text[-SHOWN_CHARACTERS:]


def masked_address(address: str) -> str:
    """Return a masked e-mail address: `m•••@example.com`."""
    name, _, host = address.rpartition("@")
    return f"{name[:1]}•••@{host}"


_UNSET: Final = ("", None, ())


def _is_set(value: object) -> bool:
    return value not in _UNSET


def without_bookkeeping(record: msgspec.Struct) -> dict[str, object]:
    """Return a record's members except those of bookkeeping.

    Source: D60
    """
    declared = DISCLOSURES.get(type(record).__name__, {})
    return {
        name: getattr(record, name)
        for name in record.__struct_fields__
        if declared.get(name) is not Disclosure.BOOKKEEPING
    }
