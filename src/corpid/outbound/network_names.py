"""Names of networks by address, from a file of the operator.

It is in MaxMind DB format 2.0, and is read once, at start, by the library's pure Python reader: whoever replaces it
while CorpID runs disturbs nothing, and a damaged one is an exception, not a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from corpid.rules.characters import printable

if TYPE_CHECKING:
    from pathlib import Path

_MEMBERS: Final = ("autonomous_system_organization", "isp", "organization")
"""members of an entry that name a network, the first that there is"""
_CHARACTERS: Final = 80
_DAMAGES: Final = (ValueError, TypeError, RecursionError)
"""what the library lets through of a damaged file, beside its own exception"""


class NetworksUnreadable(Exception):
    """The error for a missing or unreadable file, as a sentence."""


class NetworkNames(Protocol):
    """Names of networks, for people who look where they signed in from."""

    def name(self, address: str, /) -> str:
        """The name of an address's network; empty if it is not known."""


class NoNetworks:
    """Names of a deployment without such a file: none."""

    def name(self, _address: str) -> str:
        """Always empty."""
        return ""


class FileOfNetworks:
    """Names from a file in MaxMind's format."""

    def __init__(self, path: Path) -> None:
        # Most deployments have no such file, and start sooner without this.
        import maxminddb  # noqa: PLC0415

        try:
            self._reader: Final[Any] = maxminddb.open_database(path, maxminddb.MODE_MEMORY)
        except (OSError, *_DAMAGES, maxminddb.InvalidDatabaseError) as error:
            reason = getattr(error, "strerror", None) or "it is no database in MaxMind's format"
            raise NetworksUnreadable(f"network_database {path} cannot be read: {reason}") from None
        self._damages: Final = (*_DAMAGES, maxminddb.InvalidDatabaseError)

    def name(self, address: str) -> str:
        """Empty if the file does not have the address."""
        try:
            found = self._reader.get(address) if address else None
        except self._damages:  # also for another text, and an IPv6 address in a file of IPv4
            return ""
        names = (found.get(member) for member in _MEMBERS) if isinstance(found, dict) else ()
        return next((printable(each)[:_CHARACTERS] for each in names if isinstance(each, str) and each), "")
