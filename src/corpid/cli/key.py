"""`corpid key`: the keys that sign, and their calendar (D42)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.app import open_registry
from corpid.cli import output
from corpid.directory.access import OPERATOR
from corpid.flows import key_rotation
from corpid.flows.own_keys import KEPT_SECONDS

if TYPE_CHECKING:
    from corpid.ports import SealedKey

app = typer.Typer(help="Signing keys: list, rotate, revoke; secrets at rest: rewrap.", no_args_is_help=True)


@app.command("list")
def list_keys(*, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every signing key and where it is in its life."""
    keys, now = output.run(_all())
    rows = [(key.kid, _state(key, now), _time(key.active_from), _time(key.retired_at)) for key in keys]
    if json:
        names = ("kid", "state", "signs_from", "retired_at")
        output.as_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        output.table("Signing keys", ("kid", "State", "Signs from", "Retired at"), rows)


@app.command()
def rotate(
    *,
    now: Annotated[
        bool, typer.Option("--now", help="Use the new key at once: only after a compromise, or before going live.")
    ] = False,
) -> None:
    """Make a new signing key. It is published now, signs in two hours, and then retires the present one."""
    key = output.run(_rotate(at_once=now))
    if now:
        output.warn(
            "The new key signs from now on. Relying parties that do not fetch the key set again when they meet "
            "an unknown kid refuse tokens for up to an hour."
        )
    output.say(f"Key {key.kid} signs from {_time(key.active_from)}. A running server sees it within 5 seconds.")


@app.command()
def revoke(kid: Annotated[str, typer.Argument(help="The kid, from `corpid key list`.")]) -> None:
    """Stop publishing and accepting a key at once. Every token that it signed is refused from now on."""
    replacement = output.run(_revoke(kid))
    output.warn(f"Tokens signed by {kid} are refused from now on; people have to sign in again.")
    if replacement is not None:
        output.say(f"Key {replacement.kid} signs from {_time(replacement.active_from)} in its place.")


@app.command()
def rewrap() -> None:
    """Seal every secret at rest with the present key-encryption key.

    First let every server run with the new key, and with the earlier one among old_key_encryption_key_files.
    """
    count = output.run(_rewrap())
    output.say(f"Sealed anew: {count} secrets. Nothing in this database needs old_key_encryption_key_files any more.")


def _state(key: SealedKey, now: float) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.active_from > now:
        return "published, not yet in use"
    if key.retired_at is not None and key.retired_at <= now:
        return "retired, still verifies" if now < key.retired_at + KEPT_SECONDS else "retired"
    return "in use"


def _time(at: int | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


async def _all() -> tuple[list[SealedKey], float]:
    async with open_registry(settings.load()) as stores:
        return await key_rotation.signing_keys(stores.registry), stores.clock()


async def _rotate(*, at_once: bool) -> SealedKey:
    async with open_registry(settings.load()) as stores:
        return await key_rotation.rotate(stores.registry, OPERATOR, now=stores.clock(), at_once=at_once)


async def _revoke(kid: str) -> SealedKey | None:
    async with open_registry(settings.load()) as stores:
        try:
            return await key_rotation.revoke(stores.registry, OPERATOR, kid, now=stores.clock())
        except key_rotation.RotationRefused as error:
            output.fail(f"{error}.")


async def _rewrap() -> int:
    async with open_registry(settings.load()) as stores:
        return await key_rotation.rewrap(stores.rewrap, OPERATOR)
