"""`corpid client`: relying parties, API clients, and reports on them.

`update`, `remove` and the switch are made from the resource, as for other records.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 - typer reads annotations
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec.structs import replace

from corpid.cli import listing, output, records
from corpid.cli.running import on_stores, with_stores
from corpid.flows.directory import clients
from corpid.flows.operations.buffers import REFUSALS_KEPT, list_refusals
from corpid.flows.operations.migration_report import ClientUse, report
from corpid.rules.limits import API_TOKEN_SECONDS
from corpid.rules.oauth import acr, api_client
from corpid.rules.oauth.client_registration import find_unserved_reason, is_registered_at, used_generations
from corpid.rules.oauth.discovery import DISCOVERY_PATH
from corpid.rules.oauth.errors import reason_of
from corpid.rules.oauth.generations import GENERATIONS, SCOPES, Generation
from corpid.rules.oauth.records import Client
from corpid.rules.oauth.tokens import registered_wrap
from corpid.settings.issuers import client_rules, issuers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zoneinfo import ZoneInfo

    from corpid.cli.output import Lines
    from corpid.engines import Stores
    from corpid.flows.directory.apply import ApplyResult
    from corpid.rules.oauth.api_client import RegisteredApiClient
    from corpid.rules.oauth.refusals import ClientRefusal
    from corpid.settings import Settings

app = records.commands_of("client")
_MEMBERS: Final = records.member_options(records.NOUNS["client"], new=True)

Identifier = Annotated[str, typer.Argument(help="The client's identifier.")]


def _add(client_id: str, *, api: bool, entity: str, dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
    members = records.read_members(_MEMBERS, given)
    if entity and not api:
        output.fail("--entity is for a client of the admin API: write --api, too")

    async def add(stores: Stores) -> tuple[Client | RegisteredApiClient, ApplyResult, Settings]:
        rules = client_rules(stores.settings)
        if api:
            added = await clients.add_api_client(
                stores.registry, client_id, members, entity_id=entity, actor=stores.actor, rules=rules,
                now=stores.clock(), dry_run=dry_run,
            )  # fmt: skip
            return *added, stores.settings
        defaults = {
            name: replace(each, new_client={"scopes": SCOPES, **each.new_client})
            for name, each in rules.issuers.items()
        }
        registered = await clients.add_client(
            stores.registry, stores.passwords, client_id, members, actor=stores.actor,
            rules=replace(rules, issuers=defaults), dry_run=dry_run,
        )  # fmt: skip
        return *registered, stores.settings

    client, applied, chosen = with_stores(add)
    if dry_run:
        listing.report(applied, dry_run=True, json=json)
        return
    unserved = _no_issuer(client, chosen) if isinstance(client, Client) else ()
    for remark in (*(warning.reason for warning in applied.warnings), *unserved):
        output.warn(remark)
    if json:
        output.as_json(client)
    elif isinstance(client, Client):
        values = _describe_client(client, chosen)
        output.members(f"Registered {client_id}. Configure the relying party with:", values)
    else:
        values = _describe_api_client(client, chosen)
        output.members(f"Registered {client_id}. Configure the API client with:", values)


def _no_issuer(client: Client, chosen: Settings) -> Iterator[str]:
    if found := find_unserved_reason(client, client_rules(chosen)):
        wanted = f"--issuer {found.other}" if found.other else "--generation"
        yield (
            f"{client.client_id} cannot be used so far: {found.reason}; change that with "
            f"`corpid client update {client.client_id} {wanted}`"
        )


def _describe_client(client: Client, chosen: Settings) -> dict[str, str | tuple[str, ...]]:
    generations = used_generations(client, client_rules(chosen))
    known = [issuer for name, issuer in issuers(chosen).items() if is_registered_at(client, name)]  # D62
    return {
        "Issuer": tuple(issuer.base_url for issuer in known),
        "Discovery": tuple(issuer.base_url + DISCOVERY_PATH for issuer in known),
        "client_id": client.client_id,
        "Redirect URIs": client.redirect_uris,
        "Client authentication": "private_key_jwt; aud is the issuer",
        **{f"With {each.name}": tuple(_describe_interface(client, each, known, chosen)) for each in generations},
        "Keys": client.jwks_uri or "as registered; replace them with `corpid client update`",
    }


def _describe_interface(
    client: Client, generation: Generation, known: Sequence[Settings], chosen: Settings
) -> Iterator[str]:
    serving = [issuer for issuer in known if generation.name in issuer.generations]
    yield from _describe_issuers(serving, known, several=bool(chosen.issuers))
    if generation.ends:
        zones = dict.fromkeys(str(issuer.timezone) for issuer in serving or (chosen,))
        yield f"until the end of {client.legacy_until} ({' or '.join(zones)})"
    if generation.endpoint_audience and client.endpoint_audience_until:
        asked = "PAR or token endpoint that is asked" if generation.pushed else "token endpoint"
        yield f"until the end of {client.endpoint_audience_until} the {asked} is accepted as aud, too"
    if generation.pkce_optional and client.pkce == "optional":
        day = f", until the end of {client.pkce_optional_until}" if client.pkce_optional_until else ""
        yield f"PKCE is optional{day}"
    yield f"scopes are {' '.join(scope for scope in client.scopes if scope in generation.scopes)}"
    yield f"requests are {'pushed (PAR)' if generation.pushed else 'query parameters of authorize'}"
    if generation.pushed and client.context_type_rule != "required":
        yield f"authentication_context_type is {client.context_type_rule}"
    yield f"tokens are {generation.scheme}{', bound to its key' if generation.sender_constrained else ''}"
    is_encrypted = generation.id_token_encrypted or client.id_token_encryption_alg
    wrap = registered_wrap(client)
    with_what = f", encrypted with {f'{wrap}, ' if wrap else ''}{client.id_token_encryption_enc}"
    yield f"ID tokens are signed{with_what if is_encrypted else ''}"
    yield f"sub names {_describe_subject(client, generation)}"
    if generation.acr_in_id_token:
        prefixes = dict.fromkeys(issuer.acr_prefix for issuer in serving or (chosen,))
        yield f"acr is {' or '.join(acr.urn(prefix, client.assurance_level) for prefix in prefixes)}"
    for resource in generation.resources:
        nesting = resource.nesting(client.userinfo_encryption_alg, client.userinfo_encryption_enc)
        is_signed = generation.userinfo_signed or client.userinfo_signing_alg or nesting
        how = f", encrypted with {', '.join(filter(None, (nesting.alg, nesting.enc)))}" if nesting else ""
        yield f"{resource.name} is {'signed' if is_signed else 'JSON'}{how}"
        blocks = [name for scope, name in resource.claim_names.items() if scope in client.scopes or not resource.scoped]
        if client.stringified_blocks and blocks:
            yield f"blocks of {resource.name} are text that holds JSON: {', '.join(blocks)}"


def _describe_issuers(serving: Sequence[Settings], known: Sequence[Settings], *, several: bool) -> Iterator[str]:
    if not serving:
        named = "the generations of none of its issuers name it" if several else "CORPID_GENERATIONS does not name it"
        yield f"not served here so far: {named}"
    elif len(known) > 1:
        yield f"at {', '.join(issuer.base_url for issuer in serving)}"


def _describe_subject(client: Client, generation: Generation) -> str:
    if generation.packed_subject:
        return "the person, packed into one text of key=value"
    return (
        "the person, and the entity is nested" if client.subject == "user" else "the entity, and the person is nested"
    )


_HEADINGS: Final = ("Client", "Generation", "Last used (UTC)", "Sign-ins", "Ends on", "Days left")


@on_stores
async def migration(
    stores: Stores, *, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Show clients that use legacy, until when, and what would break.

    Also lists clients of other generations whose assertions may name an endpoint as aud. Servers count sign-ins and
    deprecated use, and store the counts once a second; they store no request.
    """
    found = await report(
        stores.registry, actor=stores.actor, generations=GENERATIONS, today=listing.today(stores),
        rules=client_rules(stores.settings),
    )  # fmt: skip
    if json:
        output.as_json(found)
        return
    ending = [each.name for each in GENERATIONS.values() if each.ends]
    served = dict.fromkeys(name for issuer in issuers(stores.settings).values() for name in issuer.generations)
    for name in ending:
        if name not in served:
            output.warn(f"This deployment does not serve {name}: its generations are {', '.join(served)}.")
    _say_generations(", ".join(ending), [each for each in found if each.successor])
    exceptions = [each for each in found if not each.successor]
    if exceptions:
        output.table("Clients whose assertions may name an endpoint", _HEADINGS, [_row(each) for each in exceptions])
        for use in exceptions:
            _say_what_to_change(use)


def _say_generations(names: str, found: list[ClientUse]) -> None:
    if not found:
        output.say(f"No client may use {names}, and none has used it: it can be turned off.")
        return
    output.table("Clients of a generation that ends", _HEADINGS, [_row(each) for each in found])
    for use in found:
        _say_what_to_change(use)
    if not any(each.uses for each in found):
        output.say(f"None of them has used {names} yet, as far as was counted.")


def _row(use: ClientUse) -> tuple[str | tuple[str, ...], ...]:
    return (
        (use.client_id, use.name),
        use.generation,
        _moment(use.last_at),
        str(use.uses),
        (use.last_day or "no day set, so refused") if use.allowed else "may not use it any more",
        "" if use.days_left is None else "passed" if use.passed else str(use.days_left),
    )


def _say_what_to_change(use: ClientUse) -> None:
    refused = {one.refused: f"{_often(one.count)}, last {_moment(one.last_at)}" for one in use.habits}
    by_whom = use.successor or f"{use.generation}, without endpoint_audience_until,"
    if refused:
        output.members(f"{use.client_id}: {by_whom} would refuse this", refused)
    if not use.lists_successor:
        output.say(f"{use.client_id}: its record does not name {use.successor}; add it to its generations")
    if not use.reaches_successor:
        output.say(f"{use.client_id}: none of its issuers serves {use.successor}; add one that does to its issuers")


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _moment(at: int | None) -> str:
    return "never" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"


def keys(
    file: Annotated[Path, typer.Argument(help="The new file for the private keys, such as keys.json.")],
) -> None:
    """Create key pairs for a relying party: one signs, one decrypts.

    The private keys go to the file (mode 0600), in the form that the examples read; the public JSON Web Key Set goes to
    a file of the same name with .public at its end, for `corpid client add --jwks`. Nothing is registered.
    """
    from corpid.stores import relying_party_keys  # noqa: PLC0415 - no other command on clients needs it

    try:
        public = relying_party_keys.write(file)
    except FileExistsError as error:
        output.fail(f"{error.filename} exists already; its keys are kept")
    except OSError as error:
        output.fail(f"{error.filename} cannot be written: {error.strerror}")
    output.say(f"{file} has the private keys: keep it secret, like a password. Register {public}.")


@on_stores
async def refusals(stores: Stores, client_id: Identifier, *, json: listing.AsJson = False) -> None:
    """Show the latest refusals of a relying party, with remedies.

    Requests that only claim to come from it are shown, too, marked as claimed: nobody has proven whose they are.
    """
    await clients.find_client(stores.registry, client_id, actor=stores.actor)
    found = await list_refusals(stores.registry, client_id, actor=stores.actor)
    if json:
        output.as_json({"refusals": found})
        return
    if not found:
        output.say(f"No refusal of {client_id} is known. The last few seconds may be missing.")
        return
    headings = ("Time", "Request", "Reason", "What was wrong", "Reference")
    output.table(
        f"Refusals of {client_id}, the latest first",
        headings,
        [_refusal_row(each, stores.settings.timezone) for each in found],
    )
    remedies = {each.reason: reason_of(each.reason).value.remedy for each in found}
    output.members("What to do", remedies)
    if len(found) >= REFUSALS_KEPT[False]:
        output.say(
            f"At most {REFUSALS_KEPT[False]} are kept, and {REFUSALS_KEPT[True]} of requests that only claim to come from it."
        )


def _refusal_row(refusal: ClientRefusal, zone: ZoneInfo) -> tuple[str | tuple[str, ...], ...]:
    request = f"{refusal.method} {refusal.path}"
    return (
        f"{datetime.fromtimestamp(refusal.at, zone):%Y-%m-%d %H:%M:%S}",
        (request, "claimed") if refusal.claimed else request,
        refusal.reason,
        refusal.detail,
        refusal.request_id,
    )


records.register(
    app, "add",
    "Register a relying party, or with --api an API client.\n\nAn API client is a client of the admin API; it takes only "
    "--name, --scope, --jwks or --jwks-uri, and --entity.",
    [
        *records.own_arguments(records.NOUNS["client"]), *(each.parameter for each in _MEMBERS),
        records.flag("api", Annotated[bool, typer.Option("--api", help="Register a client of the admin API instead.")]),
        records.option("entity", str, "With --api: the one entity that it is bound to.", metavar="ID", default=""),
        records.DRY_RUN, records.JSON,
    ],
    _add,
)  # fmt: skip
app.command()(migration)
app.command()(refusals)
app.command()(keys)


@app.command()
def drop_keys(client_id: Identifier) -> None:
    """Forget a fetched key set: it is fetched again when needed."""
    with_stores(lambda stores: clients.drop_keys(stores.registry, client_id, actor=stores.actor))
    output.say(f"The fetched key set of {client_id} is dropped. A running server follows within 5 seconds.")


def _describe_api_client(client: RegisteredApiClient, chosen: Settings) -> dict[str, Lines]:
    base = chosen.base_url
    return {
        "Issuer": base + api_client.ISSUER_PATH,
        "Metadata": api_client.metadata_url(base),
        "Token endpoint": base + api_client.TOKEN_PATH,
        "API": base + api_client.API_PATH,
        "client_id": client.client_id,
        "Client authentication": "private_key_jwt; aud is the issuer",
        "Tokens": f"{api_client.RULES.scheme}, bound to its key; {API_TOKEN_SECONDS // 60} minutes",
        "Scopes": client.scopes,
        "Entity": client.entity_id or "none: the whole deployment",
        "Keys": client.jwks_uri or "as registered; replace them with `corpid client update`",
    }
