"""Remembered consents of a person: list and withdrawal (D29)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person
from corpid.rules.directory.records import Entity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.account.account_sessions import AccountRequest
    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.consent import Consent

SHOWN: Final = 50
"""consents of one page"""
_NAME_CHARACTERS: Final = 16


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


async def count(context: RequestContext, visit: AccountRequest) -> int:
    """Return the number of clients that a person shares data with (D29)."""
    return len({each.client_id for each in await _of(context, visit)})


async def list_shares(context: RequestContext, visit: AccountRequest, *, page: int) -> tuple[list[SharedWith], int]:
    """Return one page of what is shared, and the number of all.

    The latest consent comes first. `page` counts from one. Source: D29
    """
    grouped = await _grouped(context, visit)
    first = (page - 1) * SHOWN
    return await _named(context, grouped[first : first + SHOWN]), len(grouped)


async def find_share(context: RequestContext, visit: AccountRequest, *, name: str) -> SharedWith | None:
    """Return what is shared under a name of `SharedWith`.

    None for an unknown one, also if it is another person's. Source: D29
    """
    grouped = [each for each in await _grouped(context, visit) if _name(each[0]) == name]
    return next(iter(await _named(context, grouped)), None)


async def withdraw(context: RequestContext, visit: AccountRequest, ended: SharedWith) -> None:
    """Withdraw consent for one client and entity.

    What was withdrawn before is ignored. Source: D29
    """
    user_id = visit.user.user_id
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


async def _of(context: RequestContext, visit: AccountRequest) -> list[Consent]:
    user_id = visit.user.user_id
    authorise(Person(user_id=user_id), "read", Object(kind="consent", user_id=user_id))
    return await context.provider.registry.consents.list_for_user(user_id, now=context.now)


async def _grouped(context: RequestContext, visit: AccountRequest) -> list[list[Consent]]:
    """The person's consents by entity and client, the latest first."""
    found: dict[tuple[str, str], list[Consent]] = {}
    for each in await _of(context, visit):
        found.setdefault((each.entity_id, each.client_id), []).append(each)
    return sorted(found.values(), key=lambda each: (-max(one.given_at for one in each), _name(each[0])))


def _name(consent: Consent) -> str:
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
                name=_name(each[0]),
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
