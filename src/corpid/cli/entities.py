"""Commands on entities, their members, third parties, tokens and approvals."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from corpid.cli import listing, output, records
from corpid.cli.running import on_stores, with_stores
from corpid.engines import Stores, new_id, new_user_id
from corpid.flows.directory import access_review, approvals, grants, invitations, members, provisioning
from corpid.flows.directory.apply import ApplyResult
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.lists import find_entity
from corpid.flows.directory.members import UnknownMember, load_member
from corpid.flows.directory.person_names import name_actors
from corpid.flows.directory.write import IdentifierConflict, Refused, needs_approval
from corpid.rules.directory import memberships
from corpid.rules.directory.differences import Difference, difference
from corpid.rules.directory.memberships import UNREACHABLE, InvalidDetails, is_unreachable, placeholder
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.provisioning_tokens import LONGEST_LIFE_DAYS, RegisteredProvisioningToken
from corpid.rules.directory.records import ChangeRequest, MemberDetails
from corpid.rules.fields import fields_of

if TYPE_CHECKING:
    from corpid.flows.directory.approvals import RequestSummary

entity_commands = records.commands_of("entity")


@entity_commands.command()
@on_stores
async def review(
    stores: Stores,
    entity_id: Annotated[str, typer.Argument(metavar="ENTITY", help="The entity's identifier.")],
    *,
    json: listing.AsJson = False,
) -> None:
    """Show the yearly access review of an entity."""
    state = await access_review.load_review_state(stores.registry, stores.actor, entity_id)
    if json:
        output.as_json(access_review.describe_review(entity_id, state))
        return
    found = state.review
    if found is None:
        output.say(f"{entity_id} has no access review yet: it gets a date within a day of its first administrator.")
        return
    values: dict[str, str | tuple[str, ...]] = {"Due": listing.moment(found.due_at, stores.settings)}
    if found.began_at:
        values |= {
            "Began": f"{listing.moment(found.began_at, stores.settings)}, by {state.names[found.began_by]}",
            "Reviewed": f"{state.kept} of {state.people} people",
        }
    else:
        values["People"] = str(state.people)
    if found.signed_off_at:
        values |= {
            "Signed off": f"{listing.moment(found.signed_off_at, stores.settings)}, by {state.names[found.signed_off_by]}",
            "Then": f"{found.kept} kept, {found.ended} ended",
        }
    output.members(f"Access review of {entity_id}", values)


membership_commands = records.commands_of("membership")

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
    membership_commands, "invite",
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


@membership_commands.command()
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


third_party_commands = records.commands_of("third-party")
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
    third_party_commands, "offer",
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
    records.register(third_party_commands, decision, text, parameters, partial(_decide, decision))


token_commands = typer.Typer(no_args_is_help=True)

TokensEntity = Annotated[str, typer.Option(metavar="ID", help="The entity whose members it provisions.")]
_SCIM: Final = "/scim/v2"


@token_commands.command()
@on_stores
async def add(
    stores: Stores,
    *,
    entity: TokensEntity,
    name: Annotated[str, typer.Option(help="What it is for, such as the name of the SCIM client.")],
    days: Annotated[
        int, typer.Option(help="Number of days for which it is valid.", min=1, max=LONGEST_LIFE_DAYS)
    ] = LONGEST_LIFE_DAYS,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Create a token, which is shown once."""
    token, url = new_id(), stores.settings.base_url + _SCIM
    record = await provisioning.add_token(
        stores.registry, entity, name, days=days, token=token, token_id=new_user_id(), actor=stores.actor,
        now=stores.clock(), dry_run=dry_run,
    )  # fmt: skip
    if dry_run:
        _report_token(record, "+", written=False, json=json)
        return
    if json:
        output.as_json({**_describe_token(record), "token": token, "url": url})
        return
    values = {
        "URL": url,
        "Token": token,
        "Identifier": record.token_id,
        "Lasts until": _utc(record.expires_at),
    }
    output.members(
        f"Token created for {record.entity_id}. It is not shown again. Configure the SCIM client with:", values
    )


@token_commands.command("list")
@on_stores
async def list_tokens(stores: Stores, *, entity: TokensEntity, json: listing.AsJson = False) -> None:
    """List the tokens of an entity, without their secrets."""
    found = await provisioning.list_tokens(stores.registry, entity, actor=stores.actor)
    makers = [each.created_by for each in found]
    names = await name_actors(stores.registry, entity, makers, reader=stores.actor)
    if json:
        shown = [{**_describe_token(each), "created_by_name": str(names[each.created_by])} for each in found]
        output.as_json({"tokens": shown})
        return
    if not found:
        output.say("Provisioning tokens: none.")
        return
    rows = [
        (each.token_id, each.name, _until(each, stores.clock()), _utc(each.last_used_at), names[each.created_by])
        for each in found
    ]
    output.table(f"Provisioning tokens of {entity}", ("Identifier", "Name", "Until", "Last used", "Made by"), rows)


@token_commands.command()
def remove(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The token's identifier, as `list` shows it.")],
    *,
    entity: TokensEntity,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Remove a token: it no longer works."""
    removed = with_stores(
        lambda stores: provisioning.remove_token(stores.registry, entity, token, actor=stores.actor, dry_run=dry_run)
    )
    _report_token(removed, "-", written=not dry_run, json=json)


def _report_token(record: RegisteredProvisioningToken, sign: str, *, written: bool, json: bool) -> None:
    change = Difference(
        sign="+" if sign == "+" else "-", subject=f"provisioning token {record.name} of {record.entity_id}"
    )
    listing.report(ApplyResult(differences=(change,), warnings=(), written=written), dry_run=not written, json=json)


def _describe_token(record: RegisteredProvisioningToken) -> dict[str, object]:
    return {
        "token_id": record.token_id,
        "entity": record.entity_id,
        "name": record.name,
        "created_at": record.created_at,
        "created_by": record.created_by,
        "expires_at": record.expires_at,
        "last_used_at": record.last_used_at or None,
    }


def _utc(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC" if at else "never"


def _until(record: RegisteredProvisioningToken, now: float) -> str:
    return _utc(record.expires_at) if now < record.expires_at else f"ended {_utc(record.expires_at)}"


approval_commands = typer.Typer(no_args_is_help=True)

RequestId = Annotated[str, typer.Argument(metavar="REQUEST", help="The request, as the list names it.")]


@approval_commands.command("list")
def list_requests(
    *,
    entity: Annotated[str, typer.Option(metavar="ID", help="Only of this entity.")] = "",
    decided: Annotated[bool, typer.Option("--decided", help="Also those that are decided or expired.")] = False,
    limit: listing.Limit = listing.DEFAULT,
    after: listing.After = "",
    json: listing.AsJson = False,
) -> None:
    """List requested changes that wait for approval, the oldest first."""
    state = "" if decided else "pending"
    page = with_stores(
        lambda stores: approvals.list_requests(
            stores.registry, stores.actor, entity_id=entity, state=state, now=stores.clock(), after=after, limit=limit
        )
    )
    if json:
        output.as_json({"requests": [_describe_request(each) for each in page.found], "after": page.after})
        return
    headings = ("Request", "Entity", "By", "Change", "State")
    command = "approval list --decided" if decided else "approval list"
    listing.show("Requests", headings, page, _request_row, command, limit=limit, entity=entity)


@approval_commands.command()
@on_stores
async def show(stores: Stores, request_id: RequestId, *, json: listing.AsJson = False) -> None:
    """Show one request: what would change, who asks for it, and why."""
    found = await approvals.read_request(stores.registry, stores.actor, request_id, now=stores.clock())
    if json:
        output.as_json(_describe_request(found))
        return
    asked = found.request
    values: dict[str, str | tuple[str, ...]] = {
        "Entity": asked.entity_id,
        "By": found.requester,
        "Requested": listing.moment(asked.created_at, stores.settings),
        "Reason": asked.reason,
        "State": found.state,
    }
    if asked.decided_at:
        values |= {
            "Decided": f"{listing.moment(asked.decided_at, stores.settings)} by {found.decided_by}",
            "Reason for the decision": asked.decided_reason or "(none)",
        }
    if found.comments:
        values["Comments"] = tuple(
            f"{listing.moment(each.at, stores.settings)}, {author}: {each.text}" for each, author in found.comments
        )
    if asked.state == "pending" and found.names.changed:
        values["Names then → now"] = tuple(
            f"{was or '(not recorded)'} → {is_now or '(gone)'}" for was, is_now in found.names.changed
        )
        values["To approve"] = f"check who is meant, then add --names {found.names.digest}"
    output.members(asked.request_id, values)
    output.differences(found.differences, done=asked.state == "approved")


@approval_commands.command()
@on_stores
async def approve(
    stores: Stores,
    request_id: RequestId,
    *,
    names: Annotated[
        str,
        typer.Option(metavar="DIGEST", help="The names that `corpid approval show` showed, if they have changed."),
    ] = "",
    json: listing.AsJson = False,
) -> None:
    """Approve a request and carry it out. Needs `corpid --reason TEXT`."""
    try:
        after = await approvals.approve_request(
            stores.registry, request_id, actor=stores.actor, reason=stores.actor.reason, now=stores.clock(), names=names
        )
    except approvals.NamesChanged as error:
        hint = f"  `corpid approval show {request_id}` says how to approve it, if the right people are meant"
        raise Refused(*error.args, hint) from None
    _report_decision(after, "The request is approved and carried out.", json=json)


@approval_commands.command()
def decline(request_id: RequestId, *, json: listing.AsJson = False) -> None:
    """Decline a request. Needs `corpid --reason TEXT`."""
    after = with_stores(
        lambda stores: approvals.decline_request(
            stores.registry, request_id, actor=stores.actor, reason=stores.actor.reason, now=stores.clock()
        )
    )
    _report_decision(after, "The request is declined.", json=json)


def _report_decision(after: ChangeRequest, sentence: str, *, json: bool) -> None:
    if json:
        output.as_json(after)
    else:
        output.say(sentence)


def _describe_request(found: RequestSummary) -> dict[str, object]:
    asked = found.request
    return {
        "request": asked.request_id,
        "entity": asked.entity_id,
        "requester": asked.requester,
        "requester_name": str(found.requester),
        "state": found.state,
        "reason": asked.reason,
        "created_at": asked.created_at,
        "decided_by": asked.decided_by,
        "decided_by_name": str(found.decided_by),
        "decided_reason": asked.decided_reason,
        "decided_at": asked.decided_at,
        "comments": approvals.encode_comments(found),
        "changes": asked.changes,
        "people": asked.people,
        "name_changes": [{"was": str(was), "now": str(is_now)} for was, is_now in found.names.changed],
        "names": found.names.digest,
    }


def _request_row(found: RequestSummary) -> tuple[str | tuple[str, ...], ...]:
    changes = tuple(f"{each.sign} {each.subject}" for each in found.differences)
    return found.request.request_id, found.request.entity_id, found.requester, changes, found.state
