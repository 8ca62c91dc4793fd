"""Reading what a person has to sign in with (D45, D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.directory.held_factors import HeldFactors

if TYPE_CHECKING:
    from corpid.directory.records import Credentials
    from corpid.ports import Registry


async def of(registry: Registry, user_id: str) -> HeldFactors:
    """The factors of a person; none of somebody who does not exist. Raises StoreUnavailable (D45, D46)."""
    return await beside(registry, await registry.factors.credentials(user_id))


async def beside(registry: Registry, credentials: Credentials) -> HeldFactors:
    """The same where the credentials have just been read. Raises StoreUnavailable (D45, D46)."""
    return HeldFactors(
        credentials=credentials,
        passkeys=tuple(await registry.factors.passkeys(credentials.user_id)),
        codes=await registry.factors.recovery_codes_left(credentials.user_id),
    )
