"""Offers to third parties: made, accepted, declined and ended (D56)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory.apply import ApplyResult, PlanWithNames
from corpid.flows.directory.entities import SETS, carried_out, prepared_entry
from corpid.flows.directory.finding import RowFilter, entity_named, only_one, service_named
from corpid.flows.directory.write import GRANT_ACTIONS, with_reason, write
from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.directory.differences import difference
from corpid.rules.directory.nodes import Problem
from corpid.rules.directory.plan import Change, Plan
from corpid.rules.directory.records import ThirdPartyAssignment, ThirdPartyGrant, User
from corpid.rules.directory.third_parties import (
    AuthorisationSide,
    AuthorisationState,
    event_by,
    narrows,
    side_of,
    state_of,
    without_grant,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.outbound.passwords import Passwords
    from corpid.rules.audit_actions import AuditAction
    from corpid.rules.directory.actors import Actor
    from corpid.stores.sql.registry import Registry

_MOST: Final = 1000
"""grants between two entities for one service that are looked through, and roles under them that are shown"""


class GrantFilter(RowFilter, frozen=True, kw_only=True):
    """A grant by its key, as far as it is known."""

    client_entity: str
    third_party: str
    service: str


async def offer(
    registry: Registry,
    passwords: Passwords,
    wanted: GrantFilter,
    terms: Mapping[str, object],
    *,
    actor: Actor,
    accepted: bool = False,
    dry_run: bool = False,
) -> ApplyResult:
    """Offer a grant, or other terms of one.

    `terms` as in a directory file, None for those not given; `accepted` speaks for the third party, too. Terms within
    the accepted ones are effective at once; others make it an offer again, with a remark. Raises Refused with every
    fault, access.Forbidden, Conflict, StoreUnavailable. Source: D56, R-21
    """
    await _check_names(registry, wanted, actor)
    row = {
        "client_entity": wanted.client_entity,
        "third_party": wanted.third_party,
        "service": wanted.service,
        "role": wanted.role,
        "sub_entity": wanted.sub_entity,
        "ref": wanted.ref,
        **terms,
        "state": "accepted" if accepted else "offered",
    }
    prepared = await prepared_entry(registry, passwords, "third_party.grants", None, row, new_user_id=str)
    changes = [
        made
        for change in prepared.plan.changes
        for made in [change if accepted else narrowed_or_offered(change)]
        if made
    ]
    remarks = [*prepared.plan.warnings, *(remark for change in changes for remark in _suspended(change))]
    plan = Plan(changes=tuple(changes), warnings=tuple(remarks))
    action = (
        None
        if accepted
        else next((_action(actor, AuthorisationSide.CLIENT_ENTITY, change) for change in changes), None)
    )
    made = PlanWithNames(plan=plan, user_names=prepared.user_names)
    return await carried_out(registry, made, actor=actor, verbs=SETS, dry_run=dry_run, action=action)


def narrowed_or_offered(change: Change) -> Change | None:
    """Turn wider terms into an offer.

    Those within the accepted ones are effective at once.

    None if nothing changes. Source: D56
    """
    was, becomes = change.was, change.becomes
    if not isinstance(was, ThirdPartyGrant) or not isinstance(becomes, ThirdPartyGrant):
        return change
    kept = msgspec.structs.replace(becomes, state=was.state)
    if kept == was:
        return None
    return msgspec.structs.replace(change, becomes=kept) if narrows(was, kept) else change


def _suspended(change: Change) -> Iterable[Problem]:
    was, becomes = getattr(change.was, "state", ""), getattr(change.becomes, "state", "")
    if (was, becomes) == ("accepted", "offered"):
        yield Problem(
            0,
            f"{change.key[1]} has accepted less than this, so nothing of it is effective until it accepts again: "
            "offer it under another ref to keep what was accepted",
        )


async def accept(registry: Registry, wanted: GrantFilter, *, actor: Actor, dry_run: bool = False) -> ApplyResult:
    """Accept an offer for the third party: effective from now.

    Raises Refused if there is none or more than one, access.Forbidden, Conflict, StoreUnavailable. Source: D56
    """
    grant = await _one(registry, wanted, actor, offered_only=True)
    becomes = msgspec.structs.replace(grant, state="accepted")
    change = Change(verb="change", kind="grant", key=grant.key, was=grant, becomes=becomes)
    return await _decided(registry, change, (), AuthorisationSide.THIRD_PARTY, actor=actor, dry_run=dry_run)


async def decline(registry: Registry, wanted: GrantFilter, *, actor: Actor, dry_run: bool = False) -> ApplyResult:
    """Decline an offer for the third party.

    Raises Refused if there is none or more than one, or a command gives no reason, access.Forbidden, Conflict,
    StoreUnavailable. Source: D54, D56
    """
    if not dry_run:
        with_reason(actor)
    grant = await _one(registry, wanted, actor, offered_only=True)
    return await _removed(registry, grant, AuthorisationSide.THIRD_PARTY, actor=actor, dry_run=dry_run)


async def end(registry: Registry, wanted: GrantFilter, *, actor: Actor, dry_run: bool = False) -> ApplyResult:
    """End a grant at once, or withdraw an offer.

    The roles of the third party's people end with it, except those that another accepted grant allows. Raises Refused
    if there is none or more than one, or a command gives no reason, access.Forbidden, Conflict, StoreUnavailable.
    Source: D54, D56
    """
    if not dry_run:
        with_reason(actor)
    grant = await _one(registry, wanted, actor, offered_only=False)
    return await _removed(registry, grant, AuthorisationSide.CLIENT_ENTITY, actor=actor, dry_run=dry_run)


async def _removed(
    registry: Registry, grant: ThirdPartyGrant, side: AuthorisationSide, *, actor: Actor, dry_run: bool
) -> ApplyResult:
    change = Change(verb="remove", kind="grant", key=grant.key, was=grant)
    ended = await roles_ending(registry, grant)
    return await _decided(registry, change, ended, side, actor=actor, dry_run=dry_run)


async def roles_ending(registry: Registry, grant: ThirdPartyGrant) -> list[ThirdPartyAssignment]:
    """The roles that end with a grant, of the first thousand.

    Raises StoreUnavailable. Source: D56
    """
    where = dict(zip(("client_entity_id", "entity_id", "service_id"), grant.key[:3], strict=True))
    others = await registry.directory.page(ThirdPartyGrant, where, after=("",) * 6, limit=_MOST)
    rows = await registry.directory.page(ThirdPartyAssignment, where, after=("",) * 7, limit=_MOST)
    return without_grant(grant, others, rows)


async def _decided(
    registry: Registry,
    change: Change,
    ended: Iterable[ThirdPartyAssignment],
    side: AuthorisationSide,
    *,
    actor: Actor,
    dry_run: bool,
) -> ApplyResult:
    """Write one side's decision; `ended` are shown as its consequence."""
    if not dry_run:
        await write(registry, actor, [change], action=_action(actor, side, change))
    also = [Change(verb="remove", kind="third-party row", key=row.key, was=row) for row in ended]
    users = await registry.directory.read(User, {(row.user_id,) for row in ended})
    names = {user.user_id: user.user_name for user in users.values()}
    shown = tuple(difference(each, names) for each in (*also, change))
    return ApplyResult(differences=shown, warnings=(), written=not dry_run)


def _action(actor: Actor, side: AuthorisationSide, change: Change) -> AuditAction | None:
    """The action of a decision.

    Of the actor's own side, else of the one spoken for.
    """
    was, becomes = (each if isinstance(each, ThirdPartyGrant) else None for each in (change.was, change.becomes))
    grant = becomes or was
    event = event_by(side if grant is None else side_of(actor, grant) or side, was, becomes)
    return GRANT_ACTIONS[event] if event is not None else None


async def _one(registry: Registry, wanted: GrantFilter, actor: Actor, *, offered_only: bool) -> ThirdPartyGrant:
    thing = Object(kind="grant", entity_id=wanted.client_entity, other_entity_id=wanted.third_party)
    authorise(actor, "read", thing)
    await _check_names(registry, wanted, actor)
    where = {
        "client_entity_id": wanted.client_entity, "entity_id": wanted.third_party, "service_id": wanted.service,
    }  # fmt: skip
    held = await registry.directory.page(ThirdPartyGrant, where, after=("",) * 6, limit=_MOST)
    found = [
        grant
        for grant in held
        if wanted.fits(grant) and (not offered_only or state_of(grant) is AuthorisationState.OFFERED)
    ]
    between = f"{wanted.client_entity} to {wanted.third_party} at {wanted.service}"
    none = f"there is no {'offer' if offered_only else 'grant'} of {between}"
    return only_one(found, none=none, several="several are meant", note=lambda grant: grant.state, among=held)


async def _check_names(registry: Registry, wanted: GrantFilter, actor: Actor) -> None:
    """Refuse unknown names, if the actor may know of them."""
    for entity_id in (wanted.client_entity, wanted.third_party):
        with suppress(Forbidden):
            await entity_named(registry, entity_id, actor=actor)
    with suppress(Forbidden):
        await service_named(registry, wanted.service, actor=actor)
