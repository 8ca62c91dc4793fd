"""Exceptions of the ports."""

from __future__ import annotations

from corpid.rules.oauth.errors import Attributed


class StoreUnavailable(Attributed):
    """The store cannot be reached or stayed busy; becomes temporarily_unavailable."""


class Conflict(Exception):
    """A change that the registry's rules refuse; the text says which and why. Its transaction is rolled back."""


class NameTaken(Conflict):
    """Another user has this user name, after PRECIS mapping (D51)."""


class NameRefused(Conflict):
    """The user name cannot be mapped: it is empty or has characters that no user name has (D51)."""


class MissingReference(Conflict):
    """The record names another one (an entity, a user, a membership, a service) that does not exist."""


class KeySetUnavailable(Exception):
    """No key set of this client can be had: unreachable or malformed, and no last good one (D27)."""


class SecretUnreadable(Exception):
    """A secret at rest does not open: the key-encryption key is another one, or the row was changed (D43)."""


class PasswordsBusy(Attributed):
    """Too many password checks are waiting; becomes temporarily_unavailable."""
