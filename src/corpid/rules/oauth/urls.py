"""Default ports of schemes, and checks of a client's URLs (D27, D38)."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
"""by scheme: the port of a URL that names none"""


URI_CHARACTERS: Final = 2048
SHOWN_CHARACTERS: Final = 80
"""a fault repeats so much of a value"""
RESPONSE_PARAMETERS: Final = frozenset({"code", "state", "iss"})

_URI: Final = re.compile(r"([A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_HOST: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
"""the last label of an IPv4 address in any form that a resolver reads: decimal, octal, hexadecimal; no name ends so"""


class InvalidUrl(Exception):
    """A URL cannot be registered.

    The text says why, without repeating all of it.
    """


def shorten_url(value: str) -> str:
    """So much of a value as a fault repeats (D48)."""
    return value if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]}…"


def ascii_domain(domain: str) -> str:
    """A domain as its A-labels; empty for one that cannot exist.

    Capital and full-width letters are mapped first. Source: RFC 5891 §4, RFC 5895
    """
    if domain.isascii():
        return domain
    from idna import IDNAError, encode  # noqa: PLC0415 - most domains are ASCII

    try:
        return encode(domain, uts46=True).decode("ascii")
    except IDNAError:
        return ""


def _split(uri: str) -> SplitResult:
    if domain := _other_letters(uri):
        raise InvalidUrl(f"write the host in its ASCII form, {shorten_url(domain)}")
    if len(uri) > URI_CHARACTERS or not _URI.fullmatch(uri):
        raise InvalidUrl(f"a URI has the characters of RFC 3986, others as %XX, and at most {URI_CHARACTERS} of them")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise InvalidUrl("this is no URL") from None
    if not parts.hostname:
        raise InvalidUrl("it names no host" if parts.scheme in DEFAULT_PORTS else "begin with https://")
    if port == 0:
        raise InvalidUrl("the port 0 does not exist")
    if "%" in parts.hostname:
        raise InvalidUrl("a zone id (% in the host) means something on one machine only")
    if not _is_address(parts.hostname) and not _HOST.fullmatch(parts.hostname):
        raise InvalidUrl(f"{shorten_url(parts.hostname)!r} is no host name")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise InvalidUrl("it must not hold a user name or password (@ before the host)")
    if "#" in uri:
        raise InvalidUrl("remove the # and everything after it")
    _check_spelling(parts)
    return parts


def _other_letters(uri: str) -> str:
    """The A-labels of a host in other letters, else empty."""
    if uri.isascii() or len(uri) > URI_CHARACTERS:
        return ""
    try:
        host = urlsplit(uri).hostname or ""
    except ValueError:
        return ""
    return "" if host.isascii() else ascii_domain(host)


def _check_spelling(parts: SplitResult) -> None:
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    plain = host if parts.port is None else f"{host}:{parts.port}"
    if parts.netloc.lower() != plain:
        raise InvalidUrl(f"write host and port as {shorten_url(plain or '')}")
    if re.search(r"[\[\]]", parts.path + parts.query):
        raise InvalidUrl("square brackets stand around an IPv6 address only; elsewhere write %5B and %5D")


def check_redirect_uri(uri: str, *, developer_mode: bool, own_url: str) -> None:
    """Check a redirect URI for registration.

    `developer_mode` allows http on localhost and loopback.

    `own_url` is the provider's own URL: a page that posts an answer (form_post) must not post to it, since
    a browser would take that for a form of our own. Raises InvalidUrl. Source: D35, D38
    """
    parts = _split(uri)
    own_machine = developer_mode and _is_own_machine(parts.hostname or "")
    if parts.scheme != "https" and not (parts.scheme == "http" and own_machine):
        local = "; http only on localhost and loopback addresses, and only in developer mode"
        raise InvalidUrl(f"begin with https://{local if parts.scheme == 'http' else ''}")
    names = [name for name, _ in parse_qsl(parts.query.replace(";", "&"), keep_blank_values=True)]
    taken = [name for name in names if name in RESPONSE_PARAMETERS or name.startswith("error")]
    if taken:
        raise InvalidUrl(f"its query holds {shorten_url(taken[0])!r}, which the response itself carries")
    if own_url and _origin(parts) == _origin(urlsplit(own_url)):
        raise InvalidUrl("this is the address of the provider itself: register one of the client's own")


def check_public_url(uri: str, *, anywhere: bool) -> None:
    """Check a URL of a client for registration, such as its jwks_uri.

    `anywhere` lifts the rules of scheme, port and address, in developer mode on one's own machine.

    Raises InvalidUrl. Source: D27
    """
    parts = _split(uri)
    if anywhere:
        if parts.scheme not in {"http", "https"}:
            raise InvalidUrl("begin with https://, or in developer mode with http://")
        return
    if parts.scheme != "https":
        raise InvalidUrl("begin with https://")
    if parts.port not in {None, 443}:
        raise InvalidUrl("the port must be 443")
    host = parts.hostname or ""
    if f".{host.rstrip('.')}".endswith(".localhost"):  # RFC 6761 §6.3
        raise InvalidUrl("names under localhost mean the provider's own machine: use a public name")
    if _is_address(host) or _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise InvalidUrl("use a public host name, such as keys.example.org, instead of an IP address")
    if "." not in host:
        raise InvalidUrl("use a public host name, such as keys.example.org, instead of a name without a dot")


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    """Scheme, host and port.

    `urlsplit` has lowered the first two (RFC 6454 §4).
    """
    host = parts.hostname or ""
    return (
        parts.scheme,
        ipaddress.ip_address(host).compressed if _is_address(host) else host,
        parts.port or DEFAULT_PORTS.get(parts.scheme),
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_own_machine(host: str) -> bool:
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
