"""Remembered consents of a person in the admin API (D29, D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpid.flows.directory import person_records
from corpid.web.api.calls import Answer, cursor, place, plain
from corpid.web.api.operation import CURSOR, LIMIT, Operation, Query

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.rules.directory.records import User
    from corpid.rules.oauth.consent import Consent
    from corpid.web.api.calls import Call


async def list_consents(call: Call) -> Response:
    """A page of what a person agreed to share."""
    registry, limit, sent = call.provider.registry, call.given["limit"], call.given["cursor"]
    after = place(sent, 4) if sent is not None else ()
    user, found = await person_records.list_consents_by_name(
        registry, call.actor, call.given["user"], now=call.context.now
    )
    rest = sorted((each for each in found if _place(each) > after), key=_place)
    content: dict[str, Any] = {"items": [_members(user, each) for each in rest[:limit] if user is not None]}
    if len(rest) > limit:
        content["next"] = cursor(_place(rest[limit - 1]))
    return plain(Answer(body=content))


def _place(consent: Consent) -> tuple[str, ...]:
    return consent.entity_id, consent.client_id, consent.issuer_id, " ".join(consent.scopes)


def _members(user: User, consent: Consent) -> dict[str, Any]:
    return {
        "user": user.user_name,
        "user_id": user.user_id,
        "client": consent.client_id,
        "entity": consent.entity_id,
        "issuer": consent.issuer_id,
        "scopes": list(consent.scopes),
        "since": consent.given_at,
        "until": consent.expires_at,
    }


OPERATIONS: Final = (
    Operation(
        name="list_consents",
        method="GET",
        path="/consents",
        tag="users",
        summary="List a person's consents",
        description="What a person agreed to share and is not asked again: with which relying party, for which entity, at "
        "which issuer, since when and until when. Only the person ends it.",
        scope="directory.read",
        run=list_consents,
        queries=(Query(name="user", description="The user name of the person.", needed=True), LIMIT, CURSOR),
        answer="ConsentPage",
        bound=False,
    ),
)
