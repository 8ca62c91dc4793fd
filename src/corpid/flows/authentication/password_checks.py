"""Password checks: hashing and verification (D44, D47)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.rules.authentication.passwords import HashingSource, require_allowed_password
from corpid.rules.directory import names
from corpid.rules.failures import PasswordsBusy
from corpid.rules.networks import neighbourhood

if TYPE_CHECKING:
    from corpid.flows.authentication.throttle import Attempt
    from corpid.flows.request_context import RequestContext
    from corpid.outbound.passwords import Passwords
    from corpid.rules.authentication.records import Credentials
    from corpid.rules.directory.records import User


async def hash_password(passwords: Passwords, user: User, password: str, *, source: HashingSource) -> str:
    """Return the hash of a password that this person may have.

    Raises PasswordRefused and PasswordsBusy. Source: D44
    """
    chosen = require_allowed_password(
        password, user_name=user.user_name, name=user.name, blocklist=passwords.guessable()
    )
    return await passwords.hash(chosen, source=source)


async def fits(
    context: RequestContext, attempt: Attempt, account: str, *, password_hash: str | None, password: str
) -> bool:
    """Return whether the password matches the hash.

    `account` is the user name in its mapped form. Raises PasswordsBusy. Source: D44, D47
    """
    source = _source(context, account, attempt)
    return await context.provider.passwords.verify(password_hash, password, source=source)


async def hash_new_password(context: RequestContext, attempt: Attempt, user: User, password: str) -> str:
    """Return the hash of a new password of this person.

    Raises PasswordRefused and PasswordsBusy. Source: D44, D47
    """
    source = _source(context, names.user_name(user.user_name), attempt)
    return await hash_password(context.provider.passwords, user, password, source=source)


async def rehash_if_outdated(
    context: RequestContext, attempt: Attempt, account: str, *, credentials: Credentials, password: str
) -> Credentials:
    """Return the credentials after a correct password, rehashed if outdated.

    The hash is raised to the current setting, or is one to which another sign-in has raised it meanwhile. If too many
    checks wait, it stays as it is until the next sign-in. Source: D44, docs/decisions/0031
    """
    passwords, factors = context.provider.passwords, context.provider.registry.factors
    old, source = credentials.password_hash or "", _source(context, account, attempt)
    if not passwords.is_outdated(old):
        return credentials
    try:
        new = await passwords.hash(password, source=source)
        if not await factors.rehash(credentials.user_id, old, new):
            stored = await factors.credentials(credentials.user_id)
            if not stored.password_hash or not await passwords.verify(stored.password_hash, password, source=source):
                return credentials  # the password was changed, which the next step notices
            new = stored.password_hash
    except PasswordsBusy:
        return credentials
    return msgspec.structs.replace(credentials, password_hash=new)


def _source(context: RequestContext, account: str, attempt: Attempt) -> HashingSource:
    return HashingSource(network=neighbourhood(context.address), account=account, known=attempt.known)
