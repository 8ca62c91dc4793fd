"""Registration of clients in developer mode, with every mistake named (D66).

The rules are those of every registration. What they allow and is often a mistake comes as advice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory import clients as flow
from corpid.flows.directory.apply import SETS, ApplyResult, carry_out, prepare_document
from corpid.flows.directory.single_records import remove_record
from corpid.flows.directory.write import Refused
from corpid.jose.encoding import JoseError, json_object
from corpid.jose.keys import KeySetError, parse_client_key_set
from corpid.rules.directory.nodes import DirectoryError, Json
from corpid.rules.directory.objects import CLIENT, InvalidObject, parse_object
from corpid.rules.failures import KeySetUnavailable
from corpid.rules.oauth.client_registration import (
    RegistrationError,
    RegistrationFault,
    RegistrationRules,
    advise_on_registration,
    new_client,
    register,
)
from corpid.rules.oauth.pasted_keys import describe_content, read_pasted
from corpid.rules.oauth.records import Client
from corpid.rules.oauth.urls import InvalidUrl, check_public_url
from corpid.texts import phrase
from corpid_dev.flows.people import Developer, writing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.plan import Plan
    from corpid.rules.directory.records import Service

PRIVATE_KEY: Final = (
    "this was a private key, which only the client may have: send its public part. If anybody else has seen the private "
    "key, make a new one"
)


class RegistrationCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A checked registration: what stands against it, and advice."""

    faults: tuple[RegistrationFault, ...] = ()
    advice: tuple[RegistrationFault, ...] = ()


class ClientRefused(Exception):
    """A client cannot be registered like this; nothing was changed."""

    def __init__(self, faults: tuple[RegistrationFault, ...]) -> None:
        super().__init__("; ".join(f"{fault.member}: {fault.reason}" for fault in faults))
        self.faults = faults


class SavedClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client that was written, and advice on it."""

    client: Client
    created: bool
    advice: tuple[RegistrationFault, ...] = ()


async def clients(context: RequestContext) -> list[Client]:
    """Every client, by identifier. Raises StoreUnavailable. Source: D66"""
    return await flow.list_clients(context.provider.registry, actor=writing(b""))


async def client(context: RequestContext, client_id: str) -> Client:
    """One client. Raises write.Refused when there is none. Source: D66"""
    return await flow.find_client(context.provider.registry, client_id, actor=writing(b""))


async def services(context: RequestContext) -> list[Service]:
    """The services whose roles a client can read. Raises StoreUnavailable. Source: D66"""
    return await flow.list_services(context.provider.registry, actor=writing(b""))


async def check(
    context: RequestContext, developer: Developer, value: Json, rules: RegistrationRules
) -> RegistrationCheck:
    """Say what stands against a registration; nothing is written.

    `value` is the whole client, as an object of the admin API. The address of its keys is fetched. Raises
    StoreUnavailable. Source: D27, D38, D66
    """
    faults: tuple[RegistrationFault, ...] = ()
    try:
        await _prepared(context, developer, value, rules)
    except ClientRefused as refused:
        faults = refused.faults
    drafted = _drafted(value)
    return RegistrationCheck(faults=faults, advice=await advise_client(context, drafted, rules) if drafted else ())


async def save(context: RequestContext, developer: Developer, value: Json, rules: RegistrationRules) -> SavedClient:
    """Register a client, or replace the one with this identifier.

    The key set that is fetched for the advice is kept: a relying party that answers one request at a time cannot serve
    it while it waits for its push.

    `value` is the whole client, as an object of the admin API: what it lacks gets its default. Raises ClientRefused
    with every fault, Conflict, access.Forbidden, StoreUnavailable. Source: D27, D38, D66
    """
    prepared, client_id, existing = await _prepared(context, developer, value, rules)
    registry = context.provider.registry
    await carry_out(registry, prepared, actor=writing(msgspec.json.encode(value)), verbs=SETS, dry_run=False)
    context.provider.registry_cache.drop()
    found = await client(context, client_id)
    published = await _fetched(context, found, rules)
    if isinstance(published, bytes):
        await context.provider.client_keys.keep(found, published, now=context.now)
    return SavedClient(client=found, created=not existing, advice=_advised(found, published, rules))


async def remove(context: RequestContext, developer: Developer, client_id: str) -> ApplyResult:
    """Remove a client that is not the demo's own.

    Raises write.Refused, access.Forbidden, StoreUnavailable. Source: D66
    """
    refuse_own(developer, client_id)
    await client(context, client_id)  # a client of the admin API is none
    actor = writing(msgspec.json.encode({"client_id": client_id}))
    removed = await remove_record(context.provider.registry, "client", {"client_id": client_id}, actor=actor)
    context.provider.registry_cache.drop()
    return removed


def refuse_own(developer: Developer, client_id: str) -> None:
    """Keep the demo's own client as it is. Raises write.Refused. Source: D66"""
    if client_id in developer.own_clients:
        raise Refused(
            phrase("{client} is the demo's own client, which stays as it is: take another identifier", client=client_id)
        )


async def _prepared(
    context: RequestContext, developer: Developer, value: Json, rules: RegistrationRules
) -> tuple[Plan, str, Client | None]:
    """The changes of a registration, its identifier, and the client before it."""
    provider = context.provider
    try:
        read = parse_object(CLIENT, _with_public_keys(value))
        client_id = read.entry.key[0]
        refuse_own(developer, client_id)
        await flow.refuse_api_client(provider.registry, client_id)
        existing = await provider.registry.clients.get(client_id)
        document = read.document
        if existing is not None:
            fields = {**_DEFAULTS, **new_client(rules, read.entry.fields)}
            entry = msgspec.structs.replace(read.entry, fields=fields)
            document = msgspec.structs.replace(document, entries={CLIENT.kind: {entry.key: entry}})
        try:
            prepared = await prepare_document(
                provider.registry, provider.passwords, document, new_user_id=str, rules=rules
            )
        except DirectoryError as error:
            raise read.unfit(error) from None
    except InvalidObject as unfit:
        raise ClientRefused(tuple(_fault(each.pointer, each.detail) for each in unfit.faults)) from None
    except Refused as refused:
        raise ClientRefused((RegistrationFault("client_id", str(refused)),)) from None
    return prepared, client_id, existing


_DEFAULTS: Final[Mapping[str, object]] = {
    field.name: field.default for field in msgspec.structs.fields(Client) if field.default is not msgspec.NODEFAULT
}


def _with_public_keys(value: Json) -> Json:
    """The client with its keys as a key set."""
    given = value.get("jwks") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not given:
        return value
    pasted = read_pasted(given if isinstance(given, str) else msgspec.json.encode(given).decode())
    if pasted.private:
        raise ClientRefused((RegistrationFault("jwks", PRIVATE_KEY),))
    if pasted.fault:
        raise ClientRefused((RegistrationFault("jwks", pasted.fault),))
    return {**value, "jwks": pasted.key_set}  # type: ignore[dict-item]  # decoded JSON


def _fault(pointer: str, detail: str) -> RegistrationFault:
    """A fault with its member, which the sentence or the pointer names."""
    name, colon, text = detail.partition(": ")
    if colon and name in CLIENT.keys:
        return RegistrationFault(name, text)
    return RegistrationFault(pointer.split("/")[1] if pointer else "", detail)


def _drafted(value: Json) -> Client | None:
    """The client that is described, as far as it can be read."""
    if not isinstance(value, dict):
        return None
    known = {name: each for name, each in value.items() if name in _DEFAULTS and name != "jwks"}
    keys = value.get("jwks")
    jwks = keys if isinstance(keys, str) else msgspec.json.encode(keys).decode() if keys else None
    whole = {"redirect_uris": value.get("redirect_uris", []), **known, "client_id": "", "name": "", "jwks": jwks}
    try:
        return msgspec.convert(whole, Client)
    except msgspec.ValidationError:
        return None


async def advise_client(
    context: RequestContext, drafted: Client, rules: RegistrationRules
) -> tuple[RegistrationFault, ...]:
    """Advice on a client, registered or not.

    The address of its keys is fetched. Source: D27, D66
    """
    return _advised(drafted, await _fetched(context, drafted, rules), rules)


async def _fetched(
    context: RequestContext, drafted: Client, rules: RegistrationRules
) -> bytes | RegistrationFault | None:
    """The content published at the address of the keys.

    A fault says why nothing was fetched; None: there is no fit address.
    """
    if not drafted.jwks_uri:
        return None
    try:
        check_public_url(drafted.jwks_uri, anywhere=rules.any_key_url)
        return await context.provider.client_keys.fetch_published(drafted.jwks_uri)
    except InvalidUrl:  # that is a fault
        return None
    except KeySetUnavailable as error:
        return RegistrationFault("jwks_uri", f"no key set was fetched: {error}")


def _advised(
    drafted: Client, published: bytes | RegistrationFault | None, rules: RegistrationRules
) -> tuple[RegistrationFault, ...]:
    found: list[RegistrationFault] = []
    key_set = None
    if isinstance(published, RegistrationFault):
        found.append(published)
    elif published is not None:
        key_set, found = _published(drafted, published.decode("utf-8", "replace"), rules)
    elif drafted.jwks:
        key_set = read_pasted(drafted.jwks).key_set
    return (*advise_on_registration(drafted, key_set, rules), *found)


def _published(
    drafted: Client, text: str, rules: RegistrationRules
) -> tuple[dict[str, object] | None, list[RegistrationFault]]:
    """The key set of an address, and what stands against it."""
    try:
        parse_client_key_set(text)
        key_set = json_object(text)
    except (JoseError, KeySetError) as error:
        return None, [RegistrationFault("jwks_uri", f"no key set came: {error}. Received: {describe_content(text)}")]
    pasted = read_pasted(text)
    faults = []
    if pasted.private:
        faults.append(
            RegistrationFault("jwks_uri", "this address publishes private keys: publish the public parts, of new keys")
        )
    try:
        register(msgspec.structs.replace(drafted, jwks=text, jwks_uri=None), rules)
    except RegistrationError as error:
        faults += [RegistrationFault("jwks_uri", fault.reason) for fault in error.faults if fault.member == "jwks"]
    return key_set, faults
