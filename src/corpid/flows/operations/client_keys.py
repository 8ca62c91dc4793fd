"""The keys of a client, looked at now (D27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.rules.directory.access import Object, authorise
from corpid.rules.failures import KeySetUnavailable

if TYPE_CHECKING:
    from corpid.flows.provider import Provider
    from corpid.rules.directory.actors import Actor
    from corpid.rules.oauth.records import Client


class ClientKeyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a client, and the faults of its set."""

    url: str
    """where it is published; empty if it stands in the record"""
    failure: str = ""
    """why there is none"""
    signing: tuple[str, ...] = ()
    """identifier and algorithm of each key that signs"""
    encryption: tuple[str, ...] = ()
    """the same of each key that encrypts, the default one first"""
    problems: tuple[str, ...] = ()


async def describe_keys(provider: Provider, client: Client, *, actor: Actor, now: float) -> ClientKeyReport:
    """Fetch a client's key set again and describe it.

    At most once a minute. `now` is in epoch seconds. Raises access.Forbidden, StoreUnavailable. Source: D27
    """
    authorise(actor, "read", Object(kind="client"))
    url = client.jwks_uri or ""
    try:
        found = await provider.client_keys.refetch(client, now=now)
    except KeySetUnavailable as error:
        return ClientKeyReport(url=url, failure=str(error))
    by_kid = {key.kid: key for key in (found.encryption, *found.by_wrap.values()) if key is not None}
    problems = list(found.problems)
    if not found.signing:
        problems.append("no key can verify its signatures: it needs an EC key with use sig")
    return ClientKeyReport(
        url=url,
        signing=tuple(f"{key.kid or 'no kid'} ({key.verifier.algorithm.name})" for key in found.signing),
        encryption=tuple(f"{key.kid} ({key.wrap})" for key in by_kid.values()),
        problems=tuple(problems),
    )
