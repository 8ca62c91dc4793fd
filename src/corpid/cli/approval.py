"""`corpid approval`: requested changes that wait for approval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid.cli import listing, output
from corpid.cli.running import on_stores, with_stores
from corpid.flows.directory import approvals
from corpid.flows.directory.write import Refused

if TYPE_CHECKING:
    from corpid.engines import Stores
    from corpid.flows.directory.approvals import RequestSummary
    from corpid.rules.directory.records import ChangeRequest

app = typer.Typer(no_args_is_help=True)

RequestId = Annotated[str, typer.Argument(metavar="REQUEST", help="The request, as the list names it.")]


@app.command("list")
def show_all(
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
        output.as_json({"requests": [_as_data(each) for each in page.found], "after": page.after})
        return
    headings = ("Request", "Entity", "By", "Change", "State")
    command = "approval list --decided" if decided else "approval list"
    listing.show("Requests", headings, page, _row, command, limit=limit, entity=entity)


@app.command()
@on_stores
async def show(stores: Stores, request_id: RequestId, *, json: listing.AsJson = False) -> None:
    """Show one request: what would change, who asks for it, and why."""
    found = await approvals.read_request(stores.registry, stores.actor, request_id, now=stores.clock())
    if json:
        output.as_json(_as_data(found))
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


@app.command()
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
    _report(after, "The request is approved and carried out.", json=json)


@app.command()
def decline(request_id: RequestId, *, json: listing.AsJson = False) -> None:
    """Decline a request. Needs `corpid --reason TEXT`."""
    after = with_stores(
        lambda stores: approvals.decline_request(
            stores.registry, request_id, actor=stores.actor, reason=stores.actor.reason, now=stores.clock()
        )
    )
    _report(after, "The request is declined.", json=json)


def _report(after: ChangeRequest, sentence: str, *, json: bool) -> None:
    if json:
        output.as_json(after)
    else:
        output.say(sentence)


def _as_data(found: RequestSummary) -> dict[str, object]:
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


def _row(found: RequestSummary) -> tuple[str | tuple[str, ...], ...]:
    changes = tuple(f"{each.sign} {each.subject}" for each in found.differences)
    return found.request.request_id, found.request.entity_id, found.requester, changes, found.state
