"""What a client's registration must hold (Spec 1, D27, D38, D21)."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

import msgspec

from corpid.jose.encoding import json_object
from corpid.jose.encryption import CONTENT_ENCRYPTIONS
from corpid.jose.errors import JoseError
from corpid.jose.keys import ClientKeySet, KeySetError, parse_client_key_set, private_members
from corpid.protocol.assurance import LEVELS
from corpid.protocol.context_types import CONTEXT_TYPES
from corpid.protocol.generations import GENERATIONS
from corpid.protocol.scopes import SCOPES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from corpid.protocol.records import Client

URI_CHARACTERS: Final = 2048
SHOWN_CHARACTERS: Final = 80
"""a fault repeats so much of a value"""
RESPONSE_PARAMETERS: Final = frozenset({"code", "state", "iss"})

_URI: Final = re.compile(r"([A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_HOST: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.IGNORECASE)


class Fault(msgspec.Struct, frozen=True):
    """One thing that a registration must change: the record's member, and what is wrong with it."""

    member: str
    reason: str


class RegistrationError(Exception):
    """A client cannot be registered like this; `faults` lists everything that is wrong."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(f"{fault.member}: {fault.reason}" for fault in faults))
        self.faults = faults


class _Wrong(Exception):
    pass


def public_key_set(text: str) -> str:
    """A key set as it may be stored: without private members, compact. Text that is no key set returns as it is.

    RFC 7517 §9.3, D27.
    """
    try:
        decoded = json_object(text)
    except JoseError:
        return text
    stored = decoded.get("keys")
    if not isinstance(stored, list):
        return text
    keys = [_public(key) if isinstance(key, dict) else key for key in stored]
    return msgspec.json.encode({**decoded, "keys": keys}).decode()


def _public(key: dict[str, object]) -> dict[str, object]:
    private = private_members(key)
    return {member: value for member, value in key.items() if member not in private}


def register(client: Client, *, developer_mode: bool) -> tuple[str, ...]:
    """Check a registration; what comes back are remarks on its keys, for people.

    `developer_mode` allows http on localhost and loopback addresses, and key URLs anywhere. Raises
    RegistrationError with every fault. Spec 1, D8, D11, D21, D27, D38.
    """
    faults = tuple(_faults(client, developer_mode=developer_mode))
    if faults:
        raise RegistrationError(faults)
    return parse_client_key_set(client.jwks).problems if client.jwks else ()


def lists(client: Client, generation: str) -> bool:
    """Whether a client is registered for a generation; naming none stands for the pushed one (decisions.md, "Generations")."""
    return not client.generations or generation in client.generations


def _faults(client: Client, *, developer_mode: bool) -> Iterator[Fault]:
    if not client.redirect_uris:
        yield Fault("redirect_uris", "at least one is needed")
    for uri in client.redirect_uris:
        try:
            _check_redirect_uri(uri, developer_mode=developer_mode)
        except _Wrong as wrong:
            yield Fault("redirect_uris", f"{_shown(uri)}: {wrong}")
    yield from _key_faults(client, developer_mode=developer_mode)
    yield from _unknown("scopes", client.scopes, SCOPES)
    yield from _unknown("generations", client.generations, GENERATIONS)
    yield from _unknown("context_types", client.context_types, CONTEXT_TYPES)
    yield from _unknown("id_token_encryption_enc", (client.id_token_encryption_enc,), CONTENT_ENCRYPTIONS)
    yield from _unknown("userinfo_encryption_enc", filter(None, (client.userinfo_encryption_enc,)), CONTENT_ENCRYPTIONS)
    if "openid" not in client.scopes:
        yield Fault("scopes", "openid is always needed")
    if not client.context_types:
        yield Fault("context_types", "at least one is needed")
    if client.assurance_level not in LEVELS:
        yield Fault("assurance_level", f"{client.assurance_level} is not one of {_listed(LEVELS)}")


def _unknown(member: str, values: Iterable[str], known: Collection[str]) -> Iterator[Fault]:
    for value in values:
        if value not in known:
            yield Fault(member, f"{_shown(value)!r} is not one of {_listed(known)}")


def _shown(value: str) -> str:
    return value if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]}…"


def _listed(known: Iterable[object]) -> str:
    return ", ".join(sorted(str(value) for value in known))


def _split(uri: str) -> SplitResult:
    if len(uri) > URI_CHARACTERS or not _URI.fullmatch(uri):
        raise _Wrong(f"a URI has the characters of RFC 3986, others as %XX, and at most {URI_CHARACTERS} of them")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise _Wrong("this is no URL") from None
    if not parts.hostname or port == 0:
        raise _Wrong("it names no host" if not parts.hostname else "the port 0 does not exist")
    if "%" in parts.hostname:
        raise _Wrong("a zone id (% in the host) means something on one machine only")
    if not _is_address(parts.hostname) and not _HOST.fullmatch(parts.hostname):
        raise _Wrong(f"{_shown(parts.hostname)!r} is no host name")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise _Wrong("it must not hold a user name or password (@ before the host)")
    if "#" in uri:
        raise _Wrong("it must not hold a fragment (#)")
    _check_spelling(parts)
    return parts


def _check_spelling(parts: SplitResult) -> None:
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    plain = host if parts.port is None else f"{host}:{parts.port}"
    if parts.netloc.lower() != plain:
        raise _Wrong(f"write host and port as {_shown(plain or '')}")
    if re.search(r"[\[\]]", parts.path + parts.query):
        raise _Wrong("square brackets stand around an IPv6 address only; elsewhere write %5B and %5D")


def _check_redirect_uri(uri: str, *, developer_mode: bool) -> None:
    parts = _split(uri)
    own_machine = developer_mode and _is_own_machine(parts.hostname or "")
    if parts.scheme != "https" and not (parts.scheme == "http" and own_machine):
        local = "; http only on localhost and loopback addresses, and only in developer mode"
        raise _Wrong(f"the scheme must be https{local if parts.scheme == 'http' else ''}")
    names = [name for name, _ in parse_qsl(parts.query.replace(";", "&"), keep_blank_values=True)]
    taken = [name for name in names if name in RESPONSE_PARAMETERS or name.startswith("error")]
    if taken:
        raise _Wrong(f"its query holds {_shown(taken[0])!r}, which the response itself carries")


def _key_faults(client: Client, *, developer_mode: bool) -> Iterator[Fault]:
    if (client.jwks is None) == (client.jwks_uri is None):
        yield Fault("jwks", "exactly one of jwks and jwks_uri is needed")
    if client.jwks_uri is not None:
        try:
            _check_key_set_url(client.jwks_uri, developer_mode=developer_mode)
        except _Wrong as wrong:
            yield Fault("jwks_uri", f"{_shown(client.jwks_uri)}: {wrong}")
    if client.jwks is not None:
        try:
            yield from _unusable(client, parse_client_key_set(client.jwks))
        except KeySetError as error:
            yield Fault("jwks", str(error))


def _check_key_set_url(uri: str, *, developer_mode: bool) -> None:
    parts = _split(uri)
    if developer_mode:
        if parts.scheme not in {"http", "https"}:
            raise _Wrong("the scheme must be https, or http in developer mode")
        return
    if parts.scheme != "https":
        raise _Wrong("the scheme must be https")
    if parts.port not in {None, 443}:
        raise _Wrong("the port must be 443")
    host = parts.hostname or ""
    if _is_address(host) or "." not in host or host.rpartition(".")[2].isdigit():
        raise _Wrong("the host must be a public name, not an address")


def _unusable(client: Client, keys: ClientKeySet) -> Iterator[Fault]:
    remarks = f" ({'; '.join(keys.problems)})" if keys.problems else ""
    if not keys.signing:
        yield Fault("jwks", f"no usable signing key: an EC key with use sig is needed{remarks}")
    encrypted = _encrypted_tokens(client)
    if encrypted and keys.encryption is None:
        yield Fault("jwks", f"no usable encryption key for {encrypted}: an EC key with use enc and a kid{remarks}")


def _encrypted_tokens(client: Client) -> str:
    if client.userinfo_encryption_enc:
        return "userinfo"
    generations = [GENERATIONS[name] for name in client.generations if name in GENERATIONS]
    always = not client.generations or any(generation.id_token_encrypted for generation in generations)
    return "ID tokens" if always else ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_own_machine(host: str) -> bool:
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
