"""Where the nodes of Redis are: what `transient_url` names, and what a node says of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from redis.asyncio.connection import Connection, parse_url

from corpid.ports import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis.asyncio.connection import AbstractConnection

ANSWER_SECONDS: Final = 2.0
"""how long anything may take: to connect, or to answer"""


class Address:
    """Where an engine is. Nothing that this class says contains the password."""

    def __init__(self, kind: type[AbstractConnection], options: Mapping[str, Any]) -> None:
        self._kind: Final = kind
        # one attempt: whoever connects decides when to try again
        self._options: Final = {
            **options,
            "socket_connect_timeout": ANSWER_SECONDS,
            "socket_timeout": None,
            "protocol": 2,
        }
        self.host: Final[str] = options.get("host", "localhost")
        network = f"{self.host}:{options.get('port', 6379)}"
        self.name: Final = f"Redis at {options.get('path', network)}"

    def connection(self) -> AbstractConnection:
        """A connection that is not yet open."""
        return self._kind(**self._options)

    def at(self, host: str, port: int) -> Address:
        """Another node of the same cluster: same user, password and TLS."""
        return Address(self._kind, {**self._options, "host": host, "port": port})


def addresses(url: str) -> list[Address]:
    """Each HOST:PORT of a `transient_url`, which may name several with commas. Raises StoreUnavailable."""
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    login, at, hosts = authority.rpartition("@")
    return [_address(f"{scheme}{mark}{login}{at}{host}{slash}{path}") for host in hosts.split(",")]


def _address(url: str) -> Address:
    try:
        options: dict[str, Any] = {**parse_url(url)}
        address = Address(options.pop("connection_class", Connection), options)
        address.connection()
    except (ValueError, TypeError):
        raise StoreUnavailable(
            "transient_url is not an address of Redis: write redis://HOST:PORT/0, or rediss:// for TLS, "
            "with USER:PASSWORD@ before HOST where needed (special characters percent-encoded)"
        ) from None
    return address
