"""Signed-in browsers, past sign-ins, and language of a person."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.flows.account.account_sessions import event
from corpid.flows.authentication import browsers, passkeys, sessions
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person
from corpid.rules.directory.changes import MissingReference
from corpid.rules.directory.records import Entity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.flows.account.account_sessions import AccountRequest
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session

_SIGN_INS: Final = 20
_NAME_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInBrowser:
    """A browser in which a person is signed in.

    Moments in epoch seconds.
    """

    name: str
    """identifies it in an address and in a form, and is useless elsewhere"""
    given_name: str
    """the name that the person gave it; empty if they gave none"""
    device: str
    since: int
    seen_at: int
    this: bool
    """whether the person sits at it now"""
    browser_key: str
    """empty for one whose name cannot be kept"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSignIn:
    """A completed sign-in.

    The names are those of today, empty if their owners are gone.
    """

    at: int
    account: bool
    """whether it was one to the account itself, which is no client and has no entity"""
    client_name: str
    entity_name: str
    amr: tuple[str, ...]
    way: str
    """of the second factor (`rules.authentication.sign_in`), or `completion.OF_SESSION`; empty if that is not known, or
    there was none"""
    device: str
    network: str
    """by the operator's file of today; empty without one, or without an address"""


async def list_browsers(context: RequestContext, request: AccountRequest) -> list[SignedInBrowser]:
    """The browsers in which this person is signed in.

    This one comes first, then the others, the last used first. Source: D30
    """
    grouped: dict[str, list[Session]] = {}
    for session in await _sessions(context, request):
        if context.now < browsers.ends_at(context, session):
            grouped.setdefault(session.browser_id, []).append(session)
    names = await context.provider.registry.sessions.browser_names(request.user.user_id)
    found = [_browser(held, names, here=request.browser.browser_id) for held in grouped.values()]
    return sorted(found, key=lambda each: (not each.this, -each.seen_at, each.name))


def _browser(held: Sequence[Session], names: Mapping[str, str], *, here: str) -> SignedInBrowser:
    browser_id = held[0].browser_id
    browser_key = next((each.browser_key for each in held if each.browser_key), "")
    return SignedInBrowser(
        name=_name(browser_id),
        given_name=names.get(browser_key, ""),
        browser_key=browser_key,
        device=next((each.device for each in held if each.device), ""),
        since=min(each.auth_time for each in held),
        seen_at=max(max(each.seen_at, each.auth_time) for each in held),
        this=browser_id == here,
    )


def _name(browser_id: str) -> str:
    return sha256(browser_id.encode()).hexdigest()[:_NAME_CHARACTERS]


async def _sessions(context: RequestContext, request: AccountRequest) -> list[Session]:
    """The person's sessions, including those opened for a sign-in under way."""
    user_id = request.user.user_id
    authorise(Person(user_id=user_id), "read", Object(kind="session", user_id=user_id))
    return await context.provider.registry.sessions.list_for_user(user_id, now=context.now)


async def end(context: RequestContext, request: AccountRequest, *, name: str) -> None:
    """Sign out of one other browser.

    Unknown ones and other people's are ignored. Source: D30
    """
    for session in await _sessions(context, request):
        if _name(session.browser_id) == name and session.browser_id != request.browser.browser_id:
            await sessions.end(context, session)


async def rename(context: RequestContext, request: AccountRequest, browser: SignedInBrowser, *, typed: str) -> None:
    """Name a browser of the person.

    An empty text takes the name away. Raises InvalidInput, StaleStep. Source: D30, D51
    """
    user_id = request.user.user_id
    authorise(Person(user_id=user_id), "write", Object(kind="session", user_id=user_id))
    name = passkeys.canonical_name(typed) if typed.strip() else ""
    entry = event(context, request, AuditAction.SESSION_NAME)
    sessions_of_all, at = context.provider.registry.sessions, int(context.now)
    try:
        await sessions_of_all.name_browser(user_id, browser.browser_key, name, entry, at=at)
    except MissingReference:  # the person was erased at this moment
        raise StaleStep from None


async def end_others(context: RequestContext, request: AccountRequest) -> None:
    """Sign out of every browser but this one (D30)."""
    user_id, here = request.user.user_id, request.browser.browser_id
    authorise(Person(user_id=user_id), "delete", Object(kind="session", user_id=user_id))
    entry = event(context, request, AuditAction.SESSION_END_ALL)
    await context.provider.registry.sessions.end_all(user_id, entry, but_browser=here)


async def list_sign_ins(context: RequestContext, request: AccountRequest) -> list[PastSignIn]:
    """The last sign-ins of this person, the latest first."""
    user_id = request.user.user_id
    authorise(Person(user_id=user_id), "read", Object(kind="session", user_id=user_id))
    entries = await context.provider.registry.audit.sign_ins_of(user_id, limit=_SIGN_INS)
    named = {each.client_id for each in entries if each.client_id}
    clients = {each: await context.provider.registry.clients.get(each) for each in named}
    keys = {(each.entity_id,) for each in entries if each.entity_id}
    entities = await context.provider.registry.directory.read(Entity, keys)
    return [
        PastSignIn(
            at=entry.at,
            account=not entry.client_id,
            client_name=client.name if (client := clients.get(entry.client_id)) is not None else "",
            entity_name=entity.name if (entity := entities.get((entry.entity_id,))) is not None else "",
            amr=tuple(entry.detail.get("amr", "").split()),
            way=entry.detail.get("way", ""),
            device=entry.detail.get("device", ""),
            # Looked up now, not stored: nothing more is kept than the address, and that goes as the audit's details do.
            network=context.provider.networks.name(entry.detail.get("address", "")),
        )
        for entry in entries
    ]


async def choose_language(context: RequestContext, request: AccountRequest, *, language: str) -> None:
    """Store the language (a tag) of e-mails to this person."""
    user_id = request.user.user_id
    authorise(Person(user_id=user_id), "write", Object(kind="user", user_id=user_id, members=frozenset({"language"})))
    await context.provider.registry.directory.set_language(
        user_id, language, event(context, request, AuditAction.USER_LANGUAGE)
    )
