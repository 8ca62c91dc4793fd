"""A PostgreSQL database's address.

Behind pgbouncer in transaction mode either let it prepare statements (`max_prepared_statements`, from
1.21 on) or end the address with `?statement_cache_size=0`, which costs a round trip per statement. It must
also be configured to let `statement_timeout` pass (`ignore_startup_parameters`), and then the role should have one.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

_CACHED_STATEMENTS: Final = 512
_CACHE_OPTION: Final = "statement_cache_size"


class Address(NamedTuple):
    """A database's address, for the driver and for messages."""

    dsn: str
    shown: str
    cached_statements: int


def address(url: str) -> Address:
    """A parsed `postgresql://…` address.

    `statement_cache_size` is ours, the other parameters are the driver's. `shown` is without secrets. Raises ValueError
    for a malformed number of statements.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    cached = int(options.pop(_CACHE_OPTION, _CACHED_STATEMENTS))
    place = parts.netloc.rpartition("@")[2] or options.get("host", "")
    return Address(parts._replace(query=urlencode(options)).geturl(), f"postgresql://{place}{parts.path}", cached)


def application_name(version: str) -> str:
    """The application_name of a version, named by its last migration.

    "" before 0003.
    """
    return f"corpid {version}".rstrip()
