"""Whether somebody signs in for the first time, which is no news to them; the audit may have been pruned (D47)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import kinds

if TYPE_CHECKING:
    from corpid.directory.records import Credentials
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import TransientUnit


async def expect(provider: Provider, unit: TransientUnit, user_id: str) -> None:
    """Somebody has just set up their sign-in (D47)."""
    await unit.put(kinds.NEWCOMER.name, _key(provider, user_id), b"", kinds.NEWCOMER.seconds)


async def welcome(provider: Provider, unit: TransientUnit, user_id: str) -> None:
    """They have signed in, and are expected no more (D47)."""
    await unit.take(kinds.NEWCOMER.name, _key(provider, user_id))


async def is_one(provider: Provider, caller: Caller, credentials: Credentials) -> bool:
    """Whether nobody has signed in yet as the person whose credentials these are.

    Who has set their own factors was expected; of others, who were given theirs, the audit says it. Source: D47
    """
    user_id = credentials.user_id
    if await provider.transient.get(kinds.NEWCOMER.name, _key(provider, user_id), now=caller.now) is not None:
        return True
    if credentials.password_set_by == "user" or await provider.registry.factors.passkeys(user_id):
        return False
    return not await provider.registry.audit.sign_ins_of(user_id, limit=1)


def _key(provider: Provider, user_id: str) -> bytes:
    return kinds.key(kinds.NEWCOMER, provider.policy.base_url, user_id)
