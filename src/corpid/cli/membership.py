"""`corpid membership`: the entities that people act for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.engines import new_user_id, open_registry
from corpid.flows.directory import invitations, member_changes
from corpid.flows.directory.apply import ApplyResult
from corpid.flows.directory.finding import find_entity
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.members import UnknownMember, list_members_by_name, load_member
from corpid.flows.directory.write import IdentifierConflict, Refused, needs_approval
from corpid.rules.directory import member_details
from corpid.rules.directory.differences import difference
from corpid.rules.directory.invitations import UNREACHABLE, is_unreachable, placeholder
from corpid.rules.directory.member_details import InvalidDetails
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.records import MemberDetails

if TYPE_CHECKING:
    from corpid.flows.directory.lists import ListPage
    from corpid.flows.directory.members import Member
    from corpid.rules.directory.records import Membership

app = typer.Typer(no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", help="The person's user name.")]
Entity = Annotated[str, typer.Argument(metavar="ENTITY", help="The entity's identifier.")]


_STATES: Final = {
    "invited": "invited",
    "suspended": "membership disabled",
    "locked": "disabled",
    "active": "enabled",
}


_NO_MAIL: Final = "no mail server is set (mail_url): the e-mail waits until there is one"


@app.command("list")
def show_all(
    *,
    entity: Annotated[str, typer.Option(metavar="ID", help="The entity.")],
    limit: listing.Limit = listing.DEFAULT,
    after: listing.After = "",
    json: listing.AsJson = False,
) -> None:
    """List the members of an entity, with the entity's data about them.

    Also those who have not accepted their invitation yet.
    """
    page = run(_all(entity, after, limit))
    if json:
        output.as_json({"members": [_as_data(each) for each in page.found], "after": page.after})
        return
    headings = ("User name", "Name", "E-mail", "State", "Identifier")
    listing.show(f"Members of {entity}", headings, page, _row, "membership list", limit=limit, entity=entity)


@app.command()
def invite(
    *,
    entity: Annotated[str, typer.Option(metavar="ID", help="The entity that invites.")],
    name: Annotated[str, typer.Option(help="The person's name, as the entity writes it.")],
    email: Annotated[str, typer.Option(help="The address that the invitation goes to.")] = "",
    user_name: Annotated[str, typer.Option(help="What the entity calls the member; default the address.")] = "",
    external_id: Annotated[str, typer.Option(help="The member's identifier in another system.")] = "",
    no_invite: Annotated[bool, typer.Option("--no-invite", help="Send no e-mail.")] = False,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Invite somebody to act for an entity.

    The membership has effect once they accept, with the account that they have or a new one. Servers send the e-mail.
    """
    details = MemberDetails(user_name=user_name, external_id=external_id, name=name, email=email)
    applied, waits = run(_invite(entity, details, send=not no_invite, dry_run=dry_run))
    listing.report(applied, dry_run=dry_run, json=json)
    if waits:
        output.warn(_NO_MAIL)


@app.command()
def resend(
    membership_id: Annotated[str, typer.Argument(metavar="ID", help="The identifier that `membership list` shows.")],
) -> None:
    """Send an invitation again, with a new link."""
    sent, waits = run(_resend(membership_id))
    if waits:
        output.warn(_NO_MAIL)
    output.say(f"The invitation to act for {sent.entity_id} goes to {sent.email} again.")


@app.command()
def add(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Let a person act for an entity."""
    listing.report(run(_add(user, entity, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def remove(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """End a membership, with its level and roles."""
    listing.report(run(_remove(user, entity, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def disable(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Suspend a membership: its level and roles stay, without effect."""
    listing.report(run(_switch(user, entity, enabled=False, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def enable(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Restore a membership, with its level and roles."""
    listing.report(run(_switch(user, entity, enabled=True, dry_run=dry_run)), dry_run=dry_run, json=json)


async def _add(user: str, entity: str, *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await member_changes.add_membership(
            opened.registry, opened.passwords, user, entity, actor=opened.actor, dry_run=dry_run
        )


async def _remove(user: str, entity: str, *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await member_changes.remove_membership(
            opened.registry, user, entity, actor=opened.actor, dry_run=dry_run
        )


async def _switch(user: str, entity: str, *, enabled: bool, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await member_changes.switch_membership(
            opened.registry, opened.passwords, user, entity, enabled=enabled, actor=opened.actor, dry_run=dry_run
        )


async def _invite(entity: str, details: MemberDetails, *, send: bool, dry_run: bool) -> tuple[ApplyResult, bool]:
    """The change, and whether its e-mail waits for a mail server."""
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        try:
            change = member_changes.plan_invitation(details, entity, now=opened.clock(), new_id=new_user_id, send=send)
            membership = change.record
            await find_entity(opened.registry, entity, actor=opened.actor)
            await needs_approval(opened.registry, opened.actor, [change])
            if not dry_run:
                limit = InvitationLimit(transient=opened.transient, issuer=chosen.base_url)
                await member_changes.invite_member(
                    opened.registry, limit, details, actor=opened.actor, entity_id=entity, now=opened.clock(),
                    new_id=new_user_id, send=send,
                )  # fmt: skip
        except (InvalidDetails, IdentifierConflict) as error:
            raise Refused(str(error)) from None
    made = difference(change, {membership.user_id: member_details.identity(membership, placeholder(membership))})
    waits = send and bool(membership.email) and not chosen.mail_url
    unreachable = (FileProblem(0, f"{membership.user_name}: {UNREACHABLE}"),) if is_unreachable(membership) else ()
    return ApplyResult(differences=(made,), warnings=unreachable, written=not dry_run), waits


async def _resend(membership_id: str) -> tuple[Membership, bool]:
    """The invitation, and whether its e-mail waits for a mail server."""
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        try:
            found = await load_member(opened.registry, membership_id, actor=opened.actor)
        except UnknownMember:
            raise Refused(
                f"there is no membership {membership_id!r}: `corpid membership list --entity E` shows identifiers"
            ) from None
        limit = InvitationLimit(transient=opened.transient, issuer=chosen.base_url)
        sent = await invitations.send_invitation_again(
            opened.registry, limit, found.membership, actor=opened.actor, now=opened.clock()
        )
    return sent, not chosen.mail_url


async def _all(entity: str, after: str, limit: int) -> ListPage[Member]:
    async with open_registry(settings.load()) as opened:
        return await list_members_by_name(opened.registry, entity, actor=opened.actor, after=after, limit=limit)


def _shown(member: Member) -> tuple[str, str, str]:
    """Identity, name and address, as the entity knows them (D61, D68)."""
    return member.identity, member_details.member_full_name(member.membership, member.user), member.email


def _row(member: Member) -> tuple[str, ...]:
    return *_shown(member), _STATES[member.state], member.membership.membership_id


def _as_data(member: Member) -> dict[str, object]:
    identity, name, email = _shown(member)
    return {
        "membership_id": member.membership.membership_id,
        "user": member.user.user_name,
        "identity": identity,
        "user_name": member_details.member_user_name(member.membership, member.user),
        "external_id": member.membership.external_id or None,
        "name": name,
        "email": email,
        "state": member.state,
    }
