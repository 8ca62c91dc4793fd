"""Consent: asked for and recorded at a sign-in, listed and withdrawn (D29)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.rules.audit import AuditAction
from corpid.rules.authentication.sign_in import Interaction, requests_consent
from corpid.rules.directory.access import Object, Person, authorise
from corpid.rules.directory.records import Entity
from corpid.rules.oauth import consent
from corpid.rules.oauth.consent import Consent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.authorization_request import AuthorizationRequest
    from corpid.rules.oauth.records import Client

SHARES_SHOWN: Final = 50
"""consents of one page"""
_NAME_CHARACTERS: Final = 16


def is_asked(client: Client, request: AuthorizationRequest) -> bool:
    """Return whether a sign-in needs consent, given now or before (D29, D40)."""
    return consent.needs_consent(client, request.scopes) or requests_consent(request)


def is_remembered_here(context: RequestContext, client: Client, request: AuthorizationRequest) -> bool:
    """Return whether consent to this request is remembered.

    Consent that only the client asked for would not be asked for again in any case. Source: D29, D40
    """
    return bool(context.provider.policy.consent_days) and consent.needs_consent(client, request.scopes)


def spares_page(context: RequestContext, client: Client, request: AuthorizationRequest) -> bool:
    """Return whether remembered consent can spare the page.

    It cannot if the client requests the page. Source: D29, D40
    """
    return is_remembered_here(context, client, request) and not requests_consent(request)


async def is_given(
    context: RequestContext, client: Client, request: AuthorizationRequest, *, user_id: str, entity_id: str
) -> bool:
    """Return whether remembered consent to this request spares the person the page (D29)."""
    if not entity_id or not spares_page(context, client, request):
        return False
    authorise(Person(user_id=user_id), "read", Object(kind="consent", user_id=user_id))
    remembered = await context.provider.registry.consents.find_remembered(
        user_id, entity_id, client.client_id, context.provider.policy.issuer_id, now=context.now
    )
    return consent.is_covered(request, (each.scopes for each in remembered))


def expiry(context: RequestContext, client: Client, request: AuthorizationRequest) -> int | None:
    """Return the end of a consent that is given now.

    In epoch seconds; None if it is not remembered. Source: D29
    """
    if not is_remembered_here(context, client, request):
        return None
    return consent.expiry(context.now, context.provider.policy.consent_days)


async def give(context: RequestContext, client: Client, interaction: Interaction) -> None:
    """Record the consent given in a sign-in.

    It is remembered if the policy says so, and if membership and client still exist. Source: D29
    """
    person, request = Person(user_id=interaction.user_id), interaction.request
    authorise(person, "write", Object(kind="consent", user_id=interaction.user_id))
    scopes, ends = consent.shared_scopes(request), expiry(context, client, request)
    event = context.event(
        person,
        AuditAction.CONSENT_GIVE,
        subject=client.client_id,
        client_id=client.client_id,
        entity_id=interaction.entity_id,
        scopes=" ".join(scopes),
        expires_at="" if ends is None else str(ends),
    )
    if ends is None:
        await context.provider.registry.audit.write(event, now=context.now)
        return
    given = Consent(
        user_id=interaction.user_id,
        entity_id=interaction.entity_id,
        client_id=client.client_id,
        issuer_id=context.provider.policy.issuer_id,
        scopes=scopes,
        given_at=int(context.now),
        expires_at=ends,
    )
    await context.provider.registry.consents.give(given, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWith:
    """Data shared with one client for one entity.

    Several sets of scopes are one. Moments in epoch seconds. The names are those of today.
    """

    name: str
    """identifies it in an address, and is useless elsewhere"""
    client_id: str
    client_name: str
    entity_id: str
    entity_name: str
    scopes: tuple[str, ...]
    since: int
    until: int


async def count_sharing_clients(context: RequestContext, user_id: str) -> int:
    """Return the number of clients that a person shares data with (D29)."""
    return len({each.client_id for each in await _list_consents(context, user_id)})


async def list_shares(context: RequestContext, user_id: str, *, page: int) -> tuple[list[SharedWith], int]:
    """Return one page of what is shared, and the number of all.

    The latest consent comes first. `page` counts from one. Source: D29
    """
    grouped = await _grouped(context, user_id)
    first = (page - 1) * SHARES_SHOWN
    return await _named(context, grouped[first : first + SHARES_SHOWN]), len(grouped)


async def find_share(context: RequestContext, user_id: str, *, name: str) -> SharedWith | None:
    """Return what is shared under a name of `SharedWith`.

    None for an unknown one, also if it is another person's. Source: D29
    """
    grouped = [each for each in await _grouped(context, user_id) if _share_name(each[0]) == name]
    return next(iter(await _named(context, grouped)), None)


async def withdraw(context: RequestContext, user_id: str, ended: SharedWith) -> None:
    """Withdraw consent for one client and entity.

    What was withdrawn before is ignored. Source: D29
    """
    authorise(Person(user_id=user_id), "delete", Object(kind="consent", user_id=user_id))
    withdrawn = context.event(
        Person(user_id=user_id),
        AuditAction.CONSENT_WITHDRAW,
        subject=ended.client_id,
        client_id=ended.client_id,
        entity_id=ended.entity_id,
        scopes=" ".join(ended.scopes),
    )
    await context.provider.registry.consents.withdraw(user_id, ended.entity_id, ended.client_id, withdrawn)


async def _list_consents(context: RequestContext, user_id: str) -> list[Consent]:
    authorise(Person(user_id=user_id), "read", Object(kind="consent", user_id=user_id))
    return await context.provider.registry.consents.list_for_user(user_id, now=context.now)


async def _grouped(context: RequestContext, user_id: str) -> list[list[Consent]]:
    """The person's consents by entity and client, the latest first."""
    found: dict[tuple[str, str], list[Consent]] = {}
    for each in await _list_consents(context, user_id):
        found.setdefault((each.entity_id, each.client_id), []).append(each)
    return sorted(found.values(), key=lambda each: (-max(one.given_at for one in each), _share_name(each[0])))


def _share_name(consent: Consent) -> str:
    return sha256(f"{consent.entity_id}\n{consent.client_id}".encode()).hexdigest()[:_NAME_CHARACTERS]


async def _named(context: RequestContext, grouped: Sequence[Sequence[Consent]]) -> list[SharedWith]:
    registry = context.provider.registry
    clients = {each[0].client_id: await registry.clients.get(each[0].client_id) for each in grouped}
    entities = await registry.directory.read(Entity, {(each[0].entity_id,) for each in grouped})
    found = []
    for each in grouped:
        client, entity = clients[each[0].client_id], entities.get((each[0].entity_id,))
        if client is None or entity is None:
            continue  # removed meanwhile, and the consent with it
        found.append(
            SharedWith(
                name=_share_name(each[0]),
                client_id=client.client_id,
                client_name=client.name,
                entity_id=entity.entity_id,
                entity_name=entity.name,
                scopes=tuple(sorted({scope for consent in each for scope in consent.scopes})),
                since=min(consent.given_at for consent in each),
                until=max(consent.expires_at for consent in each),
            )
        )
    return found
