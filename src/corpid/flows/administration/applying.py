"""`corpid apply`: a directory file becomes the directory."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from corpid.directory.differences import Difference, difference
from corpid.directory.document import parse
from corpid.directory.problems import Problem
from corpid.flows.administration.preparing import prepare
from corpid.flows.administration.writing import audit_event, write
from corpid.protocol.registration import PLAIN_RULES

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.directory.access import Actor
    from corpid.ports import Passwords, Registry
    from corpid.protocol.registration import Rules


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What a file changed, or would change: in words, in the order of writing."""

    differences: tuple[Difference, ...]
    warnings: tuple[Problem, ...]
    written: bool


async def apply(
    registry: Registry,
    passwords: Passwords,
    content: bytes,
    *,
    file: str,
    actor: Actor,
    new_user_id: Callable[[], str],
    rules: Rules = PLAIN_RULES,
    plain_passwords: bool = False,
    prune: bool = False,
    dry_run: bool = False,
) -> Applied:
    """Apply a directory file; `file` names it in errors, `new_user_id` gives a UUID.

    Additive: what the file does not name is unchanged, unless `prune`. `rules` are those of
    clients; `plain_passwords` are for development. A large file is written in several short transactions; since
    applying is idempotent, an interrupted one is finished by applying again. Raises DirectoryError with
    every problem of the file, access.Forbidden, StoreUnavailable, PasswordsBusy; nothing was changed then.
    Source: docs/directory.md, D44, D51, R-14, R-21
    """
    document = parse(content, file, plain_passwords=plain_passwords)
    prepared = await prepare(registry, passwords, document, new_user_id=new_user_id, rules=rules, prune=prune)
    changes = prepared.plan.changes
    if changes and not dry_run:
        counts = {verb: str(number) for verb, number in Counter(change.verb for change in changes).items()}
        digest = hashlib.sha256(content).hexdigest()
        await write(registry, actor, changes, audit_event(actor, "directory.apply", file, sha256=digest, **counts))
    return Applied(
        differences=tuple(difference(change, prepared.user_names) for change in changes),
        warnings=prepared.plan.warnings,
        written=bool(changes) and not dry_run,
    )
