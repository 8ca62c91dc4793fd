"""Advice on a registration: what is allowed, and often a mistake.

What may not be registered is refused in `client_registration`. Source: D27, D38, D66
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from corpid.rules.oauth.client_registration import RegistrationFault, issuers_of, used_generations
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.urls import shorten_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from corpid.rules.oauth.client_registration import Rules
    from corpid.rules.oauth.records import Client

_LOCALHOST: Final = "localhost"
_LOOPBACK: Final = "127.0.0.1"


def advice(client: Client, key_set: Mapping[str, object] | None, rules: Rules) -> tuple[RegistrationFault, ...]:
    """Advice on a client whose registration is allowed or nearly so.

    `key_set` is the pasted or fetched one, None if there is none. Source: D66
    """
    found = [
        *_on_redirect_uris(client),
        *_on_generations(client, rules),
        *_on_scopes(client, rules),
        *_on_address(client),
    ]
    return (*found, *(_on_keys(client, key_set) if key_set is not None else ()))


def _on_redirect_uris(client: Client) -> Iterator[RegistrationFault]:
    name, every = "redirect_uris", set(client.redirect_uris)
    for uri in client.redirect_uris:
        if "#" in uri:  # that is refused
            continue
        try:
            parts = urlsplit(uri)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            continue
        if "*" in uri:
            yield RegistrationFault(
                name, f"{shorten_url(uri)}: a * stands for itself, not for other addresses: write each address out"
            )
        other = f"{uri}/" if not uri.endswith("/") else uri[:-1]
        if parts.path.endswith("/") and not parts.query and other not in every:
            yield RegistrationFault(
                name,
                f"{shorten_url(uri)} ends with a slash, and {shorten_url(other)} is another address: "
                "your requests must send it exactly like this",
            )
        if not parts.path:
            yield RegistrationFault(
                name,
                f"{shorten_url(uri)} has no path, and {shorten_url(other)} is another address: "
                "libraries often add the slash, so register what yours sends",
            )
        if host == _LOCALHOST:
            twin = uri.replace(parts.netloc, _LOOPBACK if port is None else f"{_LOOPBACK}:{port}", 1)
            if twin not in every:
                yield RegistrationFault(
                    name,
                    f"{shorten_url(uri)} and {shorten_url(twin)} are two addresses: register the one that your requests send. Prefer "
                    f"{_LOOPBACK}: a provider on {_LOCALHOST} shares its cookies with every port there",
                )


class NoIssuer(NamedTuple):
    """The reason why no issuer of a client can serve it."""

    reason: str
    other: str
    """another issuer, which can; empty if none can"""


def no_issuer(client: Client, rules: Rules) -> NoIssuer | None:
    """Say why no issuer can serve a client; None if one can.

    Source: D62
    """
    own, known = [generation.name for generation in used_generations(client, rules)], issuers_of(client, rules)
    served = list(dict.fromkeys(name for issuer in known.values() for name in issuer.names))
    if not served or not set(own).isdisjoint(served):
        return None
    if len(rules.issuers) == 1:
        serving = "this deployment serves"
    else:
        serving = (
            f"its issuer {next(iter(known))} serves" if len(known) == 1 else f"its issuers {', '.join(known)} serve"
        )
    others = (name for name, issuer in rules.issuers.items() if not set(own).isdisjoint(issuer.names))
    return NoIssuer(
        f"it uses {', '.join(own) or 'pushed requests'}, and {serving} only {', '.join(served)}", next(others, "")
    )


def _on_generations(client: Client, rules: Rules) -> Iterator[RegistrationFault]:
    if not used_generations(client, rules):
        ending = ", ".join(each.name for each in GENERATIONS.values() if each.ends)
        yield RegistrationFault(
            "generations",
            "its issuers serve no generation with pushed requests, and it names no other, so every request of it is refused: "
            f"name {ending}, and in legacy_until its last day",
        )
    elif found := no_issuer(client, rules):
        remedy = f"add {found.other} to its issuers" if found.other else "change its generations"
        yield RegistrationFault("generations", f"it cannot be used so far: {found.reason}: {remedy}")


def _on_scopes(client: Client, rules: Rules) -> Iterator[RegistrationFault]:
    own = used_generations(client, rules)
    for generation in own if client.scopes != _default_scopes(client, rules) else ():
        unknown = [each for each in client.scopes if each not in generation.scopes]
        if unknown:
            yield RegistrationFault(
                "scopes",
                f"{generation.name} does not have {', '.join(unknown)}: requests with it are refused there as invalid_scope",
            )
    if "authinfo" in client.scopes and not client.services:
        yield RegistrationFault(
            "services", "without a service userinfo has no roles: name the services whose roles it reads"
        )
    if (
        client.services
        and not all(each.unasked_scopes for each in own)
        and "authinfo" not in client.scopes
        and "tpauthinfo" not in client.scopes
    ):
        yield RegistrationFault(
            "scopes",
            f"it has services, but may request only {', '.join(client.scopes)}: name authinfo for roles, tpauthinfo for third parties",
        )


def _default_scopes(client: Client, rules: Rules) -> object:
    """The scopes of a client that names none, at its first issuer."""
    return next((issuer.new_client.get("scopes") for issuer in issuers_of(client, rules).values()), None)


def _on_address(client: Client) -> Iterator[RegistrationFault]:
    if client.jwks_uri and client.jwks_uri.startswith("http://"):
        yield RegistrationFault(
            "jwks_uri", "outside developer mode the address begins with https:// and has a public host name"
        )


def _on_keys(client: Client, key_set: Mapping[str, object]) -> Iterator[RegistrationFault]:
    name = "jwks_uri" if client.jwks_uri else "jwks"
    listed = key_set.get("keys")
    keys = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    kids = Counter(each["kid"] for each in keys if isinstance(each.get("kid"), str))
    for kid, times in kids.items():
        if times > 1:
            yield RegistrationFault(name, f"the kid {shorten_url(kid)!r} is there {times} times: give each key its own")
    for number, key in enumerate(keys, start=1):
        if key.get("use") == "sig" and "kid" not in key:
            yield RegistrationFault(
                name,
                f"key {number} has no kid: with one, and the same kid in the header of your assertions, "
                "you can change keys without an interruption",
            )
    points = {(str(key.get("crv")), str(key["x"])) for key in keys if key.get("use") == "sig" and "x" in key}
    for number, key in enumerate(keys, start=1):
        if key.get("use") == "enc" and (str(key.get("crv")), str(key.get("x"))) in points:
            yield RegistrationFault(
                name, f"key {number} signs and encrypts: make a key pair for each, so that one can be changed alone"
            )
