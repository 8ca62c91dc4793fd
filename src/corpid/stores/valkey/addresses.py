"""Addresses of Redis or Valkey nodes, from `transient_url` and from nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from redis.asyncio.connection import Connection, parse_url

from corpid.ports import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis.asyncio.connection import AbstractConnection

ANSWER_SECONDS: Final = 2.0
"""how long anything may take: to connect, or to answer"""
_SAME_AS: Final = {"valkey": "redis", "valkeys": "rediss"}
"""Valkey speaks as Redis does, and the driver knows the schemes of Redis only"""


class Address:
    """The address of an engine; its text never contains the password."""

    def __init__(self, kind: type[AbstractConnection], options: Mapping[str, Any], *, engine: str) -> None:
        self._kind: Final = kind
        self._engine: Final = engine
        # one attempt: the caller decides when to try again
        self._options: Final = {
            **options,
            "socket_connect_timeout": ANSWER_SECONDS,
            "socket_timeout": None,
            "protocol": 2,
        }
        self.host: Final[str] = options.get("host", "localhost")
        self.place: Final[str] = options.get("path", f"{self.host}:{options.get('port', 6379)}")
        self.name: Final = f"{engine} at {self.place}"

    def connection(self) -> AbstractConnection:
        """A connection that is not yet open."""
        return self._kind(**self._options)

    def at(self, host: str, port: int) -> Address:
        """Another node of the same cluster: same user, password and TLS."""
        return Address(self._kind, {**self._options, "host": host, "port": port}, engine=self._engine)


def addresses(url: str) -> list[Address]:
    """Each HOST:PORT of a `transient_url`, separated by commas.

    Raises StoreUnavailable.
    """
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    login, at, hosts = authority.rpartition("@")
    return [_address(f"{scheme}{mark}{login}{at}{host}{slash}{path}") for host in hosts.split(",")]


def _address(url: str) -> Address:
    scheme, mark, rest = url.partition("://")
    try:
        options: dict[str, Any] = {**parse_url(f"{_SAME_AS.get(scheme, scheme)}{mark}{rest}")}
        engine = "Valkey" if scheme in _SAME_AS else "Redis"
        address = Address(options.pop("connection_class", Connection), options, engine=engine)
        address.connection()
    except (ValueError, TypeError):
        raise StoreUnavailable(
            "transient_url is not an address of Redis or Valkey: write redis://HOST:PORT/0 or valkey://HOST:PORT/0, "
            "or rediss:// or valkeys:// for TLS, with USER:PASSWORD@ before HOST where needed (special characters "
            "percent-encoded)"
        ) from None
    return address
