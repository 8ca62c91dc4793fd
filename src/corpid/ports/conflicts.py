"""Conflicts: changes that the registry's rules refuse."""

from __future__ import annotations


class Conflict(Exception):
    """A change that the registry's rules refuse.

    The text says which and why. Its transaction is rolled back.
    """


class NameTaken(Conflict):
    """Another user has this user name, after PRECIS mapping (D51)."""


class MemberNameTaken(Conflict):
    """Another member of the entity has this user name (D60)."""


class ExternalIdTaken(Conflict):
    """Another member of the entity has this external identifier (D60)."""


class NameRefused(Conflict):
    """The user name is empty or has characters no name has.

    Source: D51
    """


class MissingReference(Conflict):
    """The record names an entity, user, membership or service that is missing."""


class ChangedMeanwhile(Conflict):
    """A record that the decision was made on has changed since."""


class LastOwnerRemoved(Conflict):
    """The last owner of an entity, or the last operator, would go (D53, D54)."""
