"""`corpid third-party`: entities whose people act for other entities."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal

import typer

from corpid.cli import listing, records
from corpid.cli.running import with_stores
from corpid.flows.directory import grants

app = records.commands_of("third-party")
_NOUN: Final = records.NOUNS["third-party"]
_TERMS: Final = records.member_options(_NOUN, new=True)
_ACCEPTED: Final = Annotated[bool, typer.Option("--accepted", help="Accept it on the third party's behalf, too.")]


def _offer(accepted: bool, dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
    terms = records.read_members(_TERMS, given)
    wanted = grants.GrantFilter(**given, **{name: terms.pop(name) for name in ("role", "sub_entity", "ref")})  # type: ignore[arg-type]
    applied = with_stores(
        lambda stores: grants.offer_grant(
            stores.registry, stores.passwords, wanted, terms, actor=stores.actor, accepted=accepted, dry_run=dry_run
        )
    )
    listing.report(applied, dry_run=dry_run, json=json)


def _decide(decision: Literal["accept", "decline", "end"], dry_run: bool, json: bool, **given: Any) -> None:  # noqa: ANN401
    wanted = grants.GrantFilter(**given)
    applied = with_stores(
        lambda stores: grants.decide_grant(stores.registry, wanted, decision, actor=stores.actor, dry_run=dry_run)
    )
    listing.report(applied, dry_run=dry_run, json=json)


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
_TEXTS: Final[dict[Literal["accept", "decline", "end"], str]] = {
    "accept": "Accept an offer on the third party's behalf.\n\nIt takes effect at once.",
    "decline": "Decline an offer on the third party's behalf. Needs `corpid --reason TEXT`.",
    "end": "End a grant at once, or withdraw an offer.\n\nNeeds `corpid --reason TEXT`. The roles of the third party's people "
    "end with it, except those that another accepted grant allows.",
}  # fmt: skip
for decision, text in _TEXTS.items():
    parameters = [*records.identity_parameters(_NOUN), records.DRY_RUN, records.JSON]
    records.register(app, decision, text, parameters, partial(_decide, decision))
