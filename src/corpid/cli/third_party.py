"""`corpid third-party`: entities whose people act for other entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from corpid.cli import listing, records
from corpid.cli.running import with_stores
from corpid.flows.directory import grants

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.flows.directory.apply import ApplyResult

app = records.commands_of("third-party")
_NOUN: Final = records.NOUNS["third-party"]
_TERMS: Final = records.member_options(_NOUN, new=True)
_ACCEPTED: Final = Annotated[bool, typer.Option("--accepted", help="Accept it on the third party's behalf, too.")]


def _offer(accepted: bool, dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
    terms = records.read_members(_TERMS, given)
    wanted = grants.GrantFilter(**given, **{name: terms.pop(name) for name in ("role", "sub_entity", "ref")})  # type: ignore[arg-type]
    applied = with_stores(
        lambda stores, _: grants.offer_grant(
            stores.registry, stores.passwords, wanted, terms, actor=stores.actor, accepted=accepted, dry_run=dry_run
        )
    )
    listing.report(applied, dry_run=dry_run, json=json)


def _decision(flow: Callable[..., Awaitable[ApplyResult]]) -> Callable[..., None]:
    def decide(dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
        wanted = grants.GrantFilter(**given)
        applied = with_stores(lambda stores, _: flow(stores.registry, wanted, actor=stores.actor, dry_run=dry_run))
        listing.report(applied, dry_run=dry_run, json=json)

    return decide


records.register(
    app, "offer",
    "Offer a third party to act for an entity at a service.\n\nIt is effective once `corpid third-party accept` has "
    "accepted it, or at once with --accepted. If the grant exists, narrower terms take effect at once; wider ones suspend "
    "it until they are accepted.",
    [
        *records.own_arguments(_NOUN), *(each.parameter for each in _TERMS), records.flag("accepted", _ACCEPTED),
        records.DRY_RUN, records.JSON,
    ],
    _offer,
)  # fmt: skip
for name, text, flow in (
    ("accept", "Accept an offer on the third party's behalf.\n\nIt takes effect at once.", grants.accept_grant),
    (
        "decline", "Decline an offer on the third party's behalf. Needs `corpid --reason TEXT`.",
        grants.decline_grant,
    ),
    (
        "end",
        (
            "End a grant at once, or withdraw an offer.\n\nNeeds `corpid --reason TEXT`. The roles of the third party's "
            "people end with it, except those that another accepted grant allows."
        ),
        grants.end_grant,
    ),
):  # fmt: skip
    parameters = [*records.identity_parameters(_NOUN), records.DRY_RUN, records.JSON]
    records.register(app, name, text, parameters, _decision(flow))
