"""Exceptions of the ports."""

from __future__ import annotations

from corpid.rules.oauth.errors import Attributed


class StoreUnavailable(Attributed):
    """The store cannot be reached or stayed busy; becomes temporarily_unavailable."""


class Conflict(Exception):
    """A change that the registry's rules refuse.

    The text says which and why. Its transaction is rolled back.
    """


class NameTaken(Conflict):
    """Another user has this user name, after PRECIS mapping (D51)."""


class NameRefused(Conflict):
    """The user name is empty or has characters no name has.

    Source: D51
    """


class MissingReference(Conflict):
    """The record names an entity, user, membership or service that is missing."""


class KeySetUnavailable(Exception):
    """No usable key set of this client, fetched or stored.

    It is unreachable or malformed, and there is no last good one. Source: D27
    """


class SecretUnreadable(Exception):
    """A secret at rest cannot be decrypted.

    The key-encryption key is another one, or the row was changed. Source: D43
    """


class PasswordsBusy(Attributed):
    """Too many password checks are waiting; becomes temporarily_unavailable."""
