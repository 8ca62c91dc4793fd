"""Names and addresses of people, as an entity may see them (D61).

What the entity wrote about a member comes first, then what is the person's own. Of an invited person it knows only what
it wrote itself; of another entity's person who acts for it, the name and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpid.rules.directory.records import Membership, User


def full_name(membership: Membership, user: User) -> str:
    """The name of a member; empty if there is none. Source: D61"""
    return membership.name or ("" if membership.invited else user.name)


def user_name(membership: Membership, user: User) -> str:
    """The user name of a member; empty if there is none. Source: D61"""
    return membership.user_name or ("" if membership.invited else user.user_name)


def email(membership: Membership, user: User) -> str:
    """The address of a member; empty if there is none. Source: D61"""
    return membership.email or ("" if membership.invited else user.email)


def shown_name(membership: Membership, user: User) -> str:
    """The name by which the entity tells a member from others. Source: D61"""
    return full_name(membership, user) or user_name(membership, user) or email(membership, user)


def name_outside(user: User) -> str:
    """The name of a person who does not belong to the entity.

    Empty for an invited person: another entity wrote what is known of them. Source: D61
    """
    return "" if user.placeholder else user.name
