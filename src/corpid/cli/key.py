"""`corpid key`: the keys that sign, their calendar and their certificates (D42)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 - typer reads it when the program runs
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from corpid import settings
from corpid.cli import output
from corpid.cli.running import on_stores, with_stores
from corpid.flows.operations import audit_seals, signing_keys
from corpid.jose.certificates import parse_chain
from corpid.rules import signing_keys as rules
from corpid.rules.limits import METADATA_CACHE_SECONDS
from corpid.rules.oauth.generations import GENERATIONS
from corpid.settings.issuers import issuers

if TYPE_CHECKING:
    from corpid.engines import Stores
    from corpid.rules.signing_keys import ProviderKey

app = typer.Typer(no_args_is_help=True)

_SOON_SECONDS: Final = 30 * 86400

Kid = Annotated[str, typer.Argument(help="The kid, from `corpid key list`.")]


@app.command("list")
@on_stores
async def list_keys(
    stores: Stores, *, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Show every key that signs, and its state."""
    of_audit, now = await audit_seals.stored_audit_keys(stores.registry), stores.clock()
    rows = [
        (
            key.kid,
            "audit" if key.use == "audit" else "tokens",
            rules.state(key, now),
            _time(rules.signs_from(key)),
            _time(rules.retires_at(key)),
            _time(key.revoked_at),
            "" if key.use == "audit" else _certificate(key, now),
        )
        for key in (*await signing_keys.stored_keys(stores.registry), *of_audit)
    ]
    if json:
        names = ("kid", "signs", "state", "signs_from", "retired_at", "revoked_at", "certificate")
        output.as_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    for kid, *columns in rows:
        titles = ("Signs", "State", "Signs from", "Retires", "Revoked", "Certificate")
        output.members(kid, {name: value for name, value in zip(titles, columns, strict=True) if value})


@app.command()
def rotate(
    *,
    now: Annotated[
        bool, typer.Option("--now", help="Rotate at once: only after a compromise, or before going live.")
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Create a new audit key instead, which seals from now on.")
    ] = False,
) -> None:
    """Rotate the signing key: the published standby key signs next.

    It begins to sign in two hours, when the current key retires. A new standby key is published now.
    """
    if audit:
        if now:
            output.fail("--audit is used at once: leave --now out")
        made = with_stores(
            lambda stores: audit_seals.rotate_audit_key(stores.registry, stores.actor, now=stores.clock())
        )
        output.say(f"Key {made.kid} seals the audit from now on. Earlier seals can still be verified.")
        return
    key = with_stores(
        lambda stores: signing_keys.rotate(stores.registry, stores.actor, now=stores.clock(), at_once=now)
    )
    if now and key.active_from < key.created_at + METADATA_CACHE_SECONDS:
        output.warn(
            "This key has been published for less than an hour. Relying parties that do not fetch the key set again when "
            "they meet an unknown kid refuse tokens for up to an hour."
        )
    output.say(f"Key {key.kid} signs from {_time(key.active_from)}. A running server sees it within 5 seconds.")


@app.command()
def revoke(kid: Kid) -> None:
    """Stop publishing and accepting a key within ten seconds.

    Every token that it signed is refused from then on. The standby key signs in its place.
    """
    try:
        replacement = with_stores(
            lambda stores: signing_keys.revoke(stores.registry, stores.actor, kid, now=stores.clock())
        )
    except signing_keys.RotationRefused as error:
        output.fail(f"{error}.")
    output.warn(f"Tokens signed by {kid} are refused within 10 seconds; people have to sign in again.")
    if replacement is not None:
        output.say(f"Key {replacement.kid} signs from {_time(replacement.active_from)} in its place.")


@app.command()
@on_stores
async def request_certificate(
    stores: Stores,
    kid: Kid,
    *,
    subject_name: Annotated[
        str | None, typer.Option(help="The common name to be certified. Default: the host of base_url.")
    ] = None,
) -> None:
    """Print a certificate signing request (PEM) for a key."""
    name = urlsplit(stores.settings.base_url).hostname or "" if subject_name is None else subject_name
    output.document(await signing_keys.request_certificate(stores.registry, stores.actor, kid, subject_name=name))


@app.command()
def certify(
    kid: Kid,
    chain: Annotated[
        Path | None, typer.Argument(help="A PEM file: the key's certificate, then its issuer's, and so on.")
    ] = None,
    *,
    remove: Annotated[
        bool, typer.Option("--remove", help="Go back to the self-signed certificate of the key.")
    ] = False,
) -> None:
    """Publish your own certificate chain with a key (legacy)."""
    if (chain is None) != remove:
        output.fail("name either the file with the certificate chain, or --remove")
    pem = None if chain is None else output.text_of(chain, expected="a certificate chain in PEM form")

    async def change(stores: Stores) -> tuple[ProviderKey, float]:
        registry, actor, now = stores.registry, stores.actor, stores.clock()
        if pem is None:
            return await signing_keys.remove_certificate(registry, actor, kid), now
        return await signing_keys.certify(registry, actor, kid, pem, now=now), now

    key, now = with_stores(change)
    output.say(f"Key {kid} has the certificate: {_certificate(key, now)}. A running server follows within 5 seconds.")
    every = issuers(settings.load()).values()
    if not any(GENERATIONS[name].certificates for each in every for name in each.generations):
        output.warn(
            "None of the served generations publishes certificates; this one appears once a generation that does is served."
        )


@app.command()
def rewrap() -> None:
    """Encrypt every stored secret with the current key-encryption key.

    Before that, every server must run with the new key, and have the earlier one in old_key_encryption_key_files.
    """
    count = with_stores(lambda stores: signing_keys.rewrap(stores.registry, stores.actor))
    output.say(f"Encrypted again: {count} secrets. Nothing in this database needs old_key_encryption_key_files now.")


def _time(at: int | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _certificate(key: ProviderKey, now: float) -> str:
    if key.certificate_chain is None:
        return "self-signed"
    own = parse_chain(key.certificate_chain)[0]
    end = own.not_valid_after_utc
    left = end.timestamp() - now
    ending = "expired: renew it" if left < 0 else "expires within 30 days: renew it" if left < _SOON_SECONDS else ""
    until = f"issued by {own.issuer.rfc4514_string()}, until {end:%Y-%m-%d}"
    return f"{until} ({ending})" if ending else until
