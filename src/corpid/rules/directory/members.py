"""Members of records: which are secret, masked or personal (D57).

One declaration, for the plan of a directory file and for the audit. A member that is not named here is told as it is.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN_CHARACTERS: Final = 4
"""of a masked member, its last ones"""


class Telling(Enum):
    """The ways to tell a member."""

    SECRET = auto()
    """only whether it is set, and that it changed: hashes, secrets, key material"""
    BOOKKEEPING = auto()
    """nothing: it serves the record alone, and follows from others"""
    PERSONAL = auto()
    """the value, and in the audit only in the details, which can be erased"""
    MASKED = auto()
    """as PERSONAL, and only its last characters"""


TELLINGS: Final[Mapping[str, Mapping[str, Telling]]] = {
    "User": {
        "user_name": Telling.PERSONAL,
        "name": Telling.PERSONAL,
        "email": Telling.PERSONAL,
        "identity_number": Telling.MASKED,
    },
    "Credentials": {
        "password_hash": Telling.SECRET,
        "totp_secret": Telling.SECRET,
        "password_source": Telling.BOOKKEEPING,
        "password_set_by": Telling.BOOKKEEPING,
        "totp_set_by": Telling.BOOKKEEPING,
        "totp_last_step": Telling.BOOKKEEPING,
    },
    "Passkey": {
        "credential_id": Telling.BOOKKEEPING,
        "public_key": Telling.BOOKKEEPING,
        "sign_count": Telling.BOOKKEEPING,
        "name": Telling.PERSONAL,
        "created_at": Telling.BOOKKEEPING,
        "used_at": Telling.BOOKKEEPING,
    },
    "ChangeRequest": {"reason": Telling.PERSONAL, "decided_reason": Telling.PERSONAL},
    "Client": {"jwks": Telling.SECRET},
    "RegisteredApiClient": {"jwks": Telling.SECRET},
    "SealedKey": {"secret": Telling.SECRET, "certificate_chain": Telling.SECRET},
    "Link": {"link_hash": Telling.BOOKKEEPING, "factors": Telling.BOOKKEEPING},
    "FetchedKeySet": {"jwks": Telling.SECRET},
}
"""type of record → member → what may be told of it"""
_OPEN: Final[Mapping[str, Telling]] = {}


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


def telling(record: msgspec.Struct) -> Mapping[str, Telling]:
    """The declared members of a record. Source: D57"""
    return TELLINGS.get(type(record).__name__, _OPEN)


def shown(record: msgspec.Struct | None) -> dict[str, object]:
    """The members of a record without its bookkeeping.

    As they are: secrets, too. Source: D57
    """
    if record is None:
        return {}
    declared = telling(record)
    names = record.__struct_fields__
    return {name: getattr(record, name) for name in names if declared.get(name) is not Telling.BOOKKEEPING}


def changed(was: msgspec.Struct | None, becomes: msgspec.Struct | None) -> Members:
    """The members in which two states of a record differ.

    As they may be told. None is the state of a record that does not exist. Source: D57
    """
    record = becomes or was
    if record is None:
        return Members()
    declared, old, new = telling(record), shown(was), shown(becomes)
    if was is not None and becomes is not None:
        names = [name for name in new if old[name] != new[name]]
    else:
        names = [name for name, value in (old or new).items() if value not in _UNSET]
    return Members(
        before={name: told(declared.get(name), old[name]) for name in names if name in old},
        after={
            name: told(declared.get(name), new[name], changed=name in old and _is_set(old[name]))
            for name in names
            if name in new
        },
        personal=frozenset(name for name in names if declared.get(name) in {Telling.PERSONAL, Telling.MASKED}),
    )


def together(*parts: Members) -> Members:
    """The members of one change that several records have part in. Source: D57"""
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    for part in parts:
        before |= part.before
        after |= part.after
    return Members(before=before, after=after, personal=frozenset().union(*(part.personal for part in parts)))


def told(how: Telling | None, value: object, *, changed: bool = False) -> object:
    """A value as JSON may have it.

    `changed`: another one was there before. Source: D57
    """
    if how is Telling.SECRET:
        return ("changed" if changed else "set") if _is_set(value) else None
    if how is Telling.MASKED and isinstance(value, str):
        return masked(value)
    plain: object = msgspec.to_builtins(value)
    return plain


def masked(text: str) -> str:
    """A text with only its end readable.

    Nothing of a short one. Source: D57, D61
    """
    if len(text) <= SHOWN_CHARACTERS:
        return "•" * len(text)
    return "•" * (len(text) - SHOWN_CHARACTERS) + text[-SHOWN_CHARACTERS:]


_UNSET: Final = ("", None, ())


def _is_set(value: object) -> bool:
    return value not in _UNSET
