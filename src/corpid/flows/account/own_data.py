"""A person's own data: a copy of it, and its deletion (D61).

Lists of the copy are read and written a page at a time, so that a person with thousands of roles and events needs no
more memory than another one. What others did is told without saying who they are. docs/accounts.md has the form. After
a request to be deleted nothing ends before an operator erases the person (`flows.operations.erasure`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import asdict

from corpid.flows import namespaces, notifications
from corpid.flows.account import account_sessions, own_email, own_factors
from corpid.rules.audit import AuditAction, AuditQuery
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.access import Action, Object, ObjectKind, Person, authorise
from corpid.rules.directory.audit_reading import format_moment, own_event
from corpid.rules.directory.memberships import details_of
from corpid.rules.directory.records import (
    Account,
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    DeletionRequest,
    Entity,
    Membership,
    MissingReference,
    Operator,
    Precondition,
    StoreChange,
    ThirdPartyAssignment,
)
from corpid.rules.limits import DATA_COPIES_PER_DAY
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from corpid.flows.account.account_sessions import AccountRequest
    from corpid.flows.request_context import RequestContext

FORMAT: Final = "corpid-personal-data-1"
_FIRST: Final[tuple[str, ...]] = ()
"""the place before every record"""
_PAGE: Final = 200
_EXAMINED: Final = 2000
"""entries of the audit that one query reads"""
_READ: Final[tuple[ObjectKind, ...]] = (
    "user", "membership", "administrator", "assignment", "third-party row", "session", "consent", "deletion request",
    "audit",
)  # fmt: skip


async def copy_data(context: RequestContext, request: AccountRequest) -> AsyncIterator[bytes]:
    """Return the copy as JSON, in pieces.

    It is counted and audited before the first piece is read. Raises InvalidInput, StaleStep, TooOld, StoreUnavailable;
    a copy that ends early lacks its last member. Source: D45, D61
    """
    account_sessions.require(request, now=context.now)
    user_id = request.user.user_id
    for kind in _READ:
        authorise(Person(user_id=user_id), "read", Object(kind=kind, user_id=user_id))
    account = await context.provider.registry.factors.account(user_id)
    if account is None:  # the person was erased at this moment
        raise StaleStep
    counter = namespaces.DATA_COPIES.entry(context.provider.policy.deployment_url, user_id)
    if await context.count(counter) > DATA_COPIES_PER_DAY:
        raise InvalidInput(
            phrase(
                "You have downloaded your data {copies} times today. Try again tomorrow.", copies=DATA_COPIES_PER_DAY
            )
        )
    event = account_sessions.event(context, request, AuditAction.USER_DOWNLOAD)
    await context.provider.registry.audit.write(event, now=context.now)
    return _pieces(context, request, account)


async def _pieces(context: RequestContext, request: AccountRequest, account: Account) -> AsyncIterator[bytes]:
    yield b"{" + _members(await _alone(context, request, account))
    for name, items in (
        ("memberships", _memberships(context, request)),
        ("roles", _roles(context, request)),
        ("third_party_roles", _third_party_roles(context, request)),
        ("consents", _consents(context, request)),
        ("events", _events(context, request)),
    ):
        yield b',\n"' + name.encode() + b'": ['
        first = True
        async for page in items:
            text = b",\n".join(msgspec.json.encode(each) for each in page)
            if text:
                yield (b"\n" if first else b",\n") + text
                first = False
        yield b"]"
    yield b',\n"complete": true}\n'


def _members(found: dict[str, object]) -> bytes:
    return b",\n".join(msgspec.json.encode(name) + b": " + msgspec.json.encode(each) for name, each in found.items())


async def _alone(context: RequestContext, request: AccountRequest, account: Account) -> dict[str, object]:
    """Return everything of which a person has few."""
    registry, user = context.provider.registry, request.user
    held = account.held
    sessions = await registry.sessions.list_for_user(user.user_id, now=context.now)
    names = await registry.sessions.browser_names(user.user_id)
    links = await registry.factors.links_of(user.user_id)
    waiting = await own_email.find_pending_change(context, request)
    asked = await find_deletion_request(context, request)
    operator = await registry.directory.find(Operator, user.user_id)
    profile = {name: value for name, value in msgspec.structs.asdict(user).items() if name != "placeholder"}
    return {
        "format": FORMAT,
        "provider": context.provider.policy.deployment_url,
        "created_at": format_moment(context.now),
        "profile": profile,
        "email_change": {
            "new_email": waiting.new_email, "proved_at": format_moment(waiting.proved_at), "takes_effect_at": format_moment(waiting.effective_at),
        } if waiting is not None else None,
        "passkey_offer_declined_at": _moment(account.passkey_declined_at),
        "operator": operator.level if operator is not None else None,
        "deletion_requested_at": _moment(asked.requested_at if asked is not None else 0),
        "factors": {
            "password": held.password,
            "app": {"last_used_at": _moment(own_factors.app_used_at(held))} if held.app else None,
            "passkeys": [
                {
                    "name": each.name, "created_at": format_moment(each.created_at), "last_used_at": _moment(each.used_at),
                    "synced": each.synced,
                }
                for each in held.passkeys
            ],
            "recovery_codes_left": held.codes,
        },
        "sessions": [
            {
                "purpose": each.purpose, "device": each.device, "name": names.get(each.browser_key, ""), "entity": each.entity_id,
                "signed_in_at": format_moment(each.auth_time), "last_used_at": format_moment(each.seen_at or each.auth_time),
                "ends_at": format_moment(each.expires_at), "this_browser": each.browser_id == request.browser.browser_id,
            }
            for each in sessions
        ],
        "links": [
            {"purpose": each.purpose, "created_at": format_moment(each.created_at), "ends_at": format_moment(each.expires_at)}
            for each in links
        ],
    }  # fmt: skip


def _moment(at: int) -> str | None:
    return format_moment(at) if at else None


async def _memberships(context: RequestContext, request: AccountRequest) -> AsyncIterator[Sequence[dict[str, object]]]:
    directory, after = context.provider.registry.directory, _FIRST
    while found := await directory.page(Membership, {"user_id": request.user.user_id}, after=after, limit=_PAGE):
        entities = await directory.read(Entity, [each.key[1:] for each in found])
        levels = await directory.read(Administrator, [each.key for each in found])
        yield [describe_membership(each, entities.get(each.key[1:]), levels.get(each.key)) for each in found]
        after = found[-1].key


def describe_membership(held: Membership, entity: Entity | None, level: Administrator | None) -> dict[str, object]:
    """A membership, and what the entity wrote about the person. Source: D61"""
    return {
        "entity": held.entity_id,
        "entity_name": entity.name if entity is not None else "",
        "enabled": held.enabled,
        "since": _moment(held.created_at),
        "level": level.level if level is not None else None,
        "services": level.services if level is not None and level.level == "sub_administrator" else None,
        "written_by_entity": {name: text for name, text in asdict(details_of(held)).items() if text},
    }


async def _roles(context: RequestContext, request: AccountRequest) -> AsyncIterator[Sequence[dict[str, object]]]:
    directory, after = context.provider.registry.directory, _FIRST
    while found := await directory.page(Assignment, {"user_id": request.user.user_id}, after=after, limit=_PAGE):
        yield [_row(each) for each in found]
        after = found[-1].key


async def _third_party_roles(
    context: RequestContext, request: AccountRequest
) -> AsyncIterator[Sequence[dict[str, object]]]:
    directory, after = context.provider.registry.directory, _FIRST
    where = {"user_id": request.user.user_id}
    while found := await directory.page(ThirdPartyAssignment, where, after=after, limit=_PAGE):
        entities = await directory.read(Entity, {(each.client_entity_id,) for each in found})
        yield [
            {
                "client_entity": each.client_entity_id,
                "client_entity_name": entities[(each.client_entity_id,)].name,
                **_row(each),
            }
            for each in found
            if (each.client_entity_id,) in entities
        ]
        after = found[-1].key


def _row(row: Assignment | ThirdPartyAssignment) -> dict[str, object]:
    return {
        "entity": row.entity_id, "service": row.service_id, "role": row.role, "sub_entity": row.sub_entity,
        "ref": row.ref, "start_date": row.start_date, "end_date": row.end_date,
        "parameters": [{"name": each.name, "value": each.value} for each in row.parameters],
    }  # fmt: skip


async def _consents(context: RequestContext, request: AccountRequest) -> AsyncIterator[Sequence[dict[str, object]]]:
    found = await context.provider.registry.consents.list_for_user(request.user.user_id, now=context.now)
    yield [
        {
            "client": each.client_id, "entity": each.entity_id, "scopes": each.scopes,
            "since": format_moment(each.given_at), "until": format_moment(each.expires_at),
        }
        for each in found
    ]  # fmt: skip


async def _events(context: RequestContext, request: AccountRequest) -> AsyncIterator[Sequence[dict[str, Any]]]:
    """Return audit entries of the person, the latest first."""
    before = 0
    while True:
        query = AuditQuery(user_id=request.user.user_id, before=before)
        part = await context.provider.registry.audit.part(query, limit=_PAGE, examined=_EXAMINED)
        yield [own_event(entry, request.user.user_id) for entry in part.entries]
        if not part.before:
            return
        before = part.before


async def find_deletion_request(context: RequestContext, request: AccountRequest) -> DeletionRequest | None:
    """Return the person's request; None if there is none (D61)."""
    _authorise_request(request, "read")
    return await context.provider.registry.directory.find(DeletionRequest, request.user.user_id)


async def request_deletion(context: RequestContext, request: AccountRequest) -> None:
    """Request the person's deletion, and confirm it by e-mail.

    Raises StaleStep if it was requested before, Throttled, TooOld. Source: D45, D61
    """
    await account_sessions.admit(context, request)
    _authorise_request(request, "write")
    made = DeletionRequest(user_id=request.user.user_id, requested_at=int(context.now))
    event = account_sessions.event(context, request, AuditAction.USER_REQUEST_DELETION)
    await _write_request(context, Precondition(DeletionRequest, made.key, None), Change(None, made, event))
    await account_sessions.close(context, request)
    notifications.notify(context, request.user, notifications.DELETION_REQUESTED)


async def withdraw_deletion(context: RequestContext, request: AccountRequest) -> None:
    """Withdraw the person's request, and confirm it by e-mail.

    Raises StaleStep if there is none, Throttled, TooOld. Source: D45, D61
    """
    await account_sessions.admit(context, request)
    _authorise_request(request, "delete")
    found = await find_deletion_request(context, request)
    if found is None:
        raise StaleStep
    event = account_sessions.event(context, request, AuditAction.USER_WITHDRAW_DELETION)
    await _write_request(context, Precondition(DeletionRequest, found.key, found), Change(found, None, event))
    await account_sessions.close(context, request)
    notifications.notify(context, request.user, notifications.DELETION_WITHDRAWN)


async def _write_request(context: RequestContext, *changes: StoreChange) -> None:
    try:
        await context.provider.registry.directory.write(changes)
    except (ChangedMeanwhile, MissingReference):  # done on another page, or the person was erased at this moment
        raise StaleStep from None


def _authorise_request(request: AccountRequest, action: Action) -> None:
    user_id = request.user.user_id
    authorise(Person(user_id=user_id), action, Object(kind="deletion request", user_id=user_id))
