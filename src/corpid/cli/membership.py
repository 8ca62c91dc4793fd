"""`corpid membership`: the entities that people act for, and invitations."""

from __future__ import annotations

import inspect
from typing import Annotated, Final

import typer

from corpid.cli import listing, output, records
from corpid.cli.running import on_stores, with_stores
from corpid.engines import Stores, new_user_id
from corpid.flows.directory import invitations, members
from corpid.flows.directory.apply import ApplyResult
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.lists import find_entity
from corpid.flows.directory.members import UnknownMember, load_member
from corpid.flows.directory.write import IdentifierConflict, Refused, needs_approval
from corpid.rules.directory import memberships
from corpid.rules.directory.differences import difference
from corpid.rules.directory.memberships import UNREACHABLE, InvalidDetails, is_unreachable, placeholder
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.records import MemberDetails
from corpid.rules.fields import fields_of

app = records.commands_of("membership")

_NO_MAIL: Final = "no mail server is set (mail_url): the e-mail waits until there is one"


def _invite(*, entity: str, no_invite: bool, dry_run: bool, json: bool, **written: str) -> None:
    details = MemberDetails(**written)
    applied, waits = with_stores(
        lambda stores: _write_invitation(stores, entity, details, send=not no_invite, dry_run=dry_run)
    )
    listing.report(applied, dry_run=dry_run, json=json)
    if waits:
        output.warn(_NO_MAIL)


records.register(
    app, "invite",
    "Invite somebody to act for an entity.\n\nThe membership has effect once they accept, with the account that they have "
    "or a new one. Servers send the e-mail.",
    [
        records.option("entity", str, "The entity that invites.", metavar="ID", default=inspect.Parameter.empty),
        *(
            records.option(each.name, str, each.help, default=inspect.Parameter.empty if each.name == "name" else "")
            for each in fields_of(MemberDetails).values()
        ),
        records.flag("no_invite", Annotated[bool, typer.Option("--no-invite", help="Send no e-mail.")]),
        records.DRY_RUN, records.JSON,
    ],
    _invite,
)  # fmt: skip


@app.command()
@on_stores
async def resend(
    stores: Stores,
    membership_id: Annotated[str, typer.Argument(metavar="ID", help="The identifier that `membership list` shows.")],
) -> None:
    """Send an invitation again, with a new link."""
    try:
        found = await load_member(stores.registry, membership_id, actor=stores.actor)
    except UnknownMember:
        raise Refused(
            f"there is no membership {membership_id!r}: `corpid membership list --entity E` shows identifiers"
        ) from None
    limit = InvitationLimit(transient=stores.transient, issuer=stores.settings.base_url)
    sent = await invitations.send_invitation_again(
        stores.registry, limit, found.membership, actor=stores.actor, now=stores.clock()
    )
    if not stores.settings.mail_url:
        output.warn(_NO_MAIL)
    output.say(f"The invitation to act for {sent.entity_id} goes to {sent.email} again.")


async def _write_invitation(
    stores: Stores, entity: str, details: MemberDetails, *, send: bool, dry_run: bool
) -> tuple[ApplyResult, bool]:
    """The change, and whether its e-mail waits for a mail server."""
    try:
        change = members.plan_invitation(details, entity, now=stores.clock(), new_id=new_user_id, send=send)
        membership = change.record
        await find_entity(stores.registry, entity, actor=stores.actor)
        if dry_run:
            await needs_approval(stores.registry, stores.actor, [change])
        else:
            limit = InvitationLimit(transient=stores.transient, issuer=stores.settings.base_url)
            await members.write_members(stores.registry, limit, [change], actor=stores.actor, now=stores.clock())
    except (InvalidDetails, IdentifierConflict) as error:
        raise Refused(str(error)) from None
    made = difference(change, {membership.user_id: memberships.identity(membership, placeholder(membership))})
    waits = send and bool(membership.email) and not stores.settings.mail_url
    unreachable = (FileProblem(0, f"{membership.user_name}: {UNREACHABLE}"),) if is_unreachable(membership) else ()
    return ApplyResult(differences=(made,), warnings=unreachable, written=not dry_run), waits
