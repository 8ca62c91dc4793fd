"""Members of records: which are secret, masked or personal (D57).

For the plan of a directory file and for the audit, from the declaration of its fields (`Field.disclosure`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec

from corpid.rules.fields import Disclosure, fields_of

SHOWN_CHARACTERS: Final = 4
"""of a masked member, its last ones"""


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


@cache
def disclosures(record: type[msgspec.Struct]) -> Mapping[str, Disclosure]:
    """Members of a record that are not shown as they are. Source: D57"""
    return {each.name: each.disclosure for each in fields_of(record).values() if each.disclosure is not None}


def visible_members(record: msgspec.Struct | None) -> dict[str, object]:
    """The members of a record without its bookkeeping.

    As they are: secrets, too. Source: D57
    """
    if record is None:
        return {}
    declared = disclosures(type(record))
    names = record.__struct_fields__
    return {name: getattr(record, name) for name in names if declared.get(name) is not Disclosure.BOOKKEEPING}


def compare_members(was: msgspec.Struct | None, becomes: msgspec.Struct | None) -> Members:
    """The members in which two states of a record differ.

    In the form in which they may be shown. None is the state of a record that does not exist. Source: D57
    """
    record = becomes or was
    if record is None:
        return Members()
    declared, old, new = disclosures(type(record)), visible_members(was), visible_members(becomes)
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
