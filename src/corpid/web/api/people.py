"""People in the admin API: sessions, locks, consents and deletion.

Source: D30, D45, D57, D59, D61
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.authentication.throttle import LINK_GUESSES, UNKNOWN_BROWSERS
from corpid.flows.directory import person_records
from corpid.flows.directory.objects import ObjectChanged, ObjectNotFound
from corpid.flows.operations import erasure
from corpid.rules.directory.names import is_storable
from corpid.web.api.calls import Answer, read_cursor, read_number, respond, respond_page, show, write_cursor
from corpid.web.api.problems import Problem

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.rules.authentication.records import Session
    from corpid.rules.directory.records import User
    from corpid.rules.oauth.api_client import StoredResponse
    from corpid.rules.oauth.consent import Consent
    from corpid.web.api.calls import Call

_WHERE: Final = {UNKNOWN_BROWSERS: "new", LINK_GUESSES: "link"}
"""group of browsers → its word, as the audit has it; any other is a known browser"""


async def list_sessions(call: Call) -> Response:
    """A page of a person's sessions, the latest first."""
    registry, limit, after = call.provider.registry, call.given["limit"], call.after(2)
    start = (-read_number(after[0]), after[1]) if after else None
    user, found = await person_records.list_sessions(
        registry, call.given["user"], actor=call.actor, now=call.context.now
    )
    if user is None:
        return respond_page([], None)
    rest = sorted((each for each in found if start is None or _session_order(each) > start), key=_session_order)
    last = _session_order(rest[limit - 1]) if len(rest) > limit else None
    items = [_session_members(call, user, each) for each in rest[:limit]]
    return respond_page(items, (str(-last[0]), last[1]) if last else None)


async def read_session(call: Call) -> Response:
    user, found = await _session(call)
    return respond(show(_session_members(call, user, found)))


async def end_session(call: Call) -> Response:
    _, found = await _session(call)
    if not call.matches(_session_tag(call, found)):
        raise ObjectChanged
    if not await person_records.end_session(call.provider.registry, found, actor=call.actor):
        raise ObjectNotFound
    return respond(Answer(status=204))


async def end_sessions(call: Call) -> Response:
    if not await person_records.end_sessions(call.provider.registry, call.given["user"], actor=call.actor):
        raise ObjectNotFound
    return respond(Answer(status=204))


async def list_locks(call: Call) -> Response:
    """The pauses after wrong codes that hold for a person."""
    registry = call.provider.registry
    user, found = await person_records.list_locks(registry, call.given["user"], actor=call.actor, now=call.context.now)
    if user is None:
        return respond_page([], None)
    items = [
        {
            "user": user.user_name,
            "user_id": user.user_id,
            "browser": _WHERE.get(each.browser, "known"),
            "guesses": each.guesses,
            "ends_at": each.paused_until,
        }
        for each in found
    ]
    return respond_page(items, None)


async def end_locks(call: Call) -> Response:
    """End the pauses and delays of a person."""
    provider = call.provider
    ended = await person_records.end_locks(
        provider.registry, provider.transient, provider.policy.deployment_url, call.given["user"],
        actor=call.actor, now=call.context.now,
    )  # fmt: skip
    if not ended:
        raise ObjectNotFound
    return respond(Answer(status=204))


async def list_consents(call: Call) -> Response:
    """A page of what a person agreed to share."""
    registry, limit, after = call.provider.registry, call.given["limit"], call.after(4)
    user, found = await person_records.list_consents_by_name(
        registry, call.actor, call.given["user"], now=call.context.now
    )
    rest = sorted((each for each in found if _consent_place(each) > after), key=_consent_place)
    items = [_consent_members(user, each) for each in rest[:limit] if user is not None]
    return respond_page(items, _consent_place(rest[limit - 1]) if len(rest) > limit else None)


async def list_deletion_requests(call: Call) -> Response:
    """A page of people who asked to be deleted."""
    after, limit = "".join(call.after(1)), call.given["limit"]
    found = await person_records.list_deletion_requests(call.provider.registry, call.actor, after=after, limit=limit)
    items = [
        {"user": each.user.user_name, "user_id": each.user.user_id, "requested_at": each.requested_at}
        for each in found.found
    ]
    return respond_page(items, (found.after,) if found.after else None)


async def erase_user(call: Call) -> Response:
    """Erase a person; again after an interruption."""
    provider, user_id = call.provider, call.given["id"]
    if not is_storable(user_id) or not await erasure.is_known(provider.registry, user_id):
        raise ObjectNotFound

    async def erase() -> Answer:
        erased = await erasure.erase(
            provider.registry,
            provider.erase_details,
            user_id,
            actor=call.actor,
            now=call.context.now,
            mail=provider.mail,
            provider_name=provider.policy.name,
            unrequested=call.given["unrequested"],
        )
        return _erasure_answer(erased)

    async def again(first: StoredResponse) -> Answer:
        return _erasure_answer(erasure.ErasureResult(user_id=first.shown, details=0))

    return await call.carry_out(b"", erase, again)


async def _session(call: Call) -> tuple[User, Session]:
    try:
        user_id, name = read_cursor(call.given["id"], 2)
    except Problem:
        raise ObjectNotFound from None
    found = await person_records.find_session(
        call.provider.registry, user_id, name, actor=call.actor, now=call.context.now
    )
    if found is None:
        raise ObjectNotFound
    return found


def _session_order(session: Session) -> tuple[int, str]:
    return -session.auth_time, person_records.derive_session_name(session)


def _session_tag(call: Call, session: Session) -> str:
    """Of members that use of the session does not change."""
    return call.tag(msgspec.structs.replace(session, seen_at=0, entity_id=""))


def _session_members(call: Call, user: User, session: Session) -> dict[str, Any]:
    return {
        "id": write_cursor((user.user_id, person_records.derive_session_name(session))),
        "user": user.user_name,
        "user_id": user.user_id,
        "purpose": session.purpose,
        "entity": session.entity_id,
        "device": session.device,
        "amr": list(session.amr),
        "signed_in_at": session.auth_time,
        "seen_at": session.seen_at or session.auth_time,
        "expires_at": session.expires_at,
        "etag": _session_tag(call, session),
    }


def _consent_place(consent: Consent) -> tuple[str, ...]:
    return consent.entity_id, consent.client_id, consent.issuer_id, " ".join(consent.scopes)


def _consent_members(user: User, consent: Consent) -> dict[str, Any]:
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


def _erasure_answer(erased: erasure.ErasureResult) -> Answer:
    body = {"user_id": erased.user_id, "details": erased.details, "remarks": list(erased.remarks)}
    return Answer(body=body, shows=erased.user_id)
