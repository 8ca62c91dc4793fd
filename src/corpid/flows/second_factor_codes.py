"""Codes that a person has at hand, wherever they show one: of an app, or kept for recovery (D45)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import kinds, letters
from corpid.protocol import recovery_codes, totp
from corpid.protocol.limits import TOTP_MISSES
from corpid.protocol.totp import WrongCode

if TYPE_CHECKING:
    from corpid.directory.records import Credentials, User
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import AuditEvent, TransientUnit


async def accept_app(
    provider: Provider, caller: Caller, credentials: Credentials, code: str, entry: AuditEvent
) -> None:
    """Spend a code of the person's app; `entry` tells the audit. Raises WrongCode (D45)."""
    if not credentials.totp_secret:
        raise WrongCode("there is no app")
    step = totp.matching_step(credentials.totp_secret, code, caller.now)
    if not await provider.registry.factors.raise_totp_step(credentials.user_id, step, entry):
        raise WrongCode("this code was used before")


async def accept_recovery(provider: Provider, user: User, code: str, entry: AuditEvent) -> None:
    """Spend one of the person's recovery codes, and tell them; `entry` tells the audit. Raises WrongCode (D45)."""
    code_hash = recovery_codes.hashed(user.user_id, code)
    if not await provider.registry.factors.take_recovery_code(user.user_id, code_hash, entry):
        raise WrongCode("this is none of the recovery codes that are left")
    left = await provider.registry.factors.recovery_codes_left(user.user_id)
    letters.tell(provider, user, letters.code_used(left))


async def count_miss(provider: Provider, unit: TransientUnit, name: str) -> bool:
    """Count a wrong code at `name` (an interaction, an enrolment); whether that was one too many (D45)."""
    key = kinds.key(kinds.SECOND_FACTOR_MISSES, provider.policy.base_url, name)
    misses = await unit.count(kinds.SECOND_FACTOR_MISSES.name, key, kinds.SECOND_FACTOR_MISSES.seconds)
    return misses >= TOTP_MISSES
