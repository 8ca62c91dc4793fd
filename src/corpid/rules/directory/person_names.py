"""Names and addresses of people, as an entity may see them (D61, D68).

A person is identified by what the entity cannot write: the user name of the account, or, of somebody invited, the
address that the invitation goes to. The name that the entity wrote stands beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from unicodedata import category

from corpid.rules.directory.names import fold_text
from corpid.rules.directory.names import user_name as mapped

if TYPE_CHECKING:
    from corpid.rules.directory.records import Membership, User


_BRACKETS: Final = {"Ps": "[", "Pe": "]"}
_CHARACTERS: Final = 60
"""of a name next to an identity"""


def identity(membership: Membership, user: User) -> str:
    """The account's user name, or the address of an invitation.

    The entity cannot write it. In small letters, as both are compared: a capital I looks like a small l. An invitation
    without an address, which nobody can accept, has the identifier of the membership. Source: D68
    """
    if membership.invited:
        return membership.email.lower() or membership.membership_id
    return canonical(user.user_name)


def canonical(user_name: str) -> str:
    """A user name as it is compared (D51), for people to read."""
    try:
        return mapped(user_name)
    except ValueError:
        return user_name


def full_name(membership: Membership, user: User) -> str:
    """The name that the entity wrote, else the person's own.

    May be empty. Source: D61
    """
    return membership.name or ("" if membership.invited else user.name)


def user_name(membership: Membership, user: User) -> str:
    """The user name that the entity wrote, else the account's.

    May be empty. Source: D60, D61
    """
    return membership.user_name or ("" if membership.invited else user.user_name)


def email(membership: Membership, user: User) -> str:
    """The address of a member; empty if there is none. Source: D61"""
    return membership.email or ("" if membership.invited else user.email)


def shown_name(membership: Membership, user: User) -> str:
    """A member's identity, with the name beside it. Source: D68"""
    return label_identity(identity(membership, user), full_name(membership, user))


def label_identity(identity: str, name: str) -> str:
    """An identity with a name beside it: `siti (Siti Contoh)`.

    The identity comes first and contains no space: whatever the name says, it cannot take its place. Brackets, arrows
    and length of the name are such that it ends where it seems to. Source: D68
    """
    if not name or fold_text(name) == fold_text(identity):
        return identity
    return f"{identity} ({bound_name(name)})" if identity else bound_name(name)


def bound_name(name: str) -> str:
    """A short name without brackets and arrows, which writes no sentence. Source: D68"""
    shown = "".join(_BRACKETS.get(category(each)) or ("-" if "\u2190" <= each <= "\u21ff" else each) for each in name)
    return shown if len(shown) <= _CHARACTERS else f"{shown[: _CHARACTERS - 1]}…"


def name_outside(user: User) -> str:
    """The name of a person who does not belong to the entity.

    Empty for an invited person: another entity wrote what is known of them. Source: D61
    """
    return "" if user.placeholder else bound_name(user.name)
