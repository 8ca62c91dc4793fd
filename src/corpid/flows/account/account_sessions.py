"""Account sessions: sign-in, re-authentication for changes, and their list (D30, D34).

This session is none of single sign-on's: no client is answered with it, and single sign-on does not open the account.

An opened page for changes has its own time limit, which the page shows, so that no limit unknown to the person ends it.
The limit is stored with the session, and ends with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.account import own_sessions
from corpid.flows.account.own_sessions import SelfServiceRequest, TooOld
from corpid.flows.authentication import browsers, passkeys, sessions, throttle
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.access import Object, Person, authorise
from corpid.rules.directory.records import Entity, MissingReference
from corpid.rules.limits import ACCOUNT_FRESH_SECONDS, ACCOUNT_PAGE_EXTENSIONS, ACCOUNT_PAGE_SECONDS
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.authentication.throttle import Attempt, SentForm
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session


@dataclass(frozen=True, kw_only=True)
class AccountRequest(SelfServiceRequest):
    """A person, their browser, and its account session."""

    opening: Opening | None = None
    """the page they are at, if factors are changed on it"""
    sent: SentForm | None = None
    """the form that is being used"""


async def load_account_request(context: RequestContext, browser: Browser | None) -> AccountRequest | None:
    """The person who is signed in to the account here.

    None as `own_sessions.load_request`. Source: D30, D34
    """
    found = await own_sessions.load_request(context, browser, "account")
    return AccountRequest(user=found.user, browser=found.browser, session=found.session) if found else None


def require_fresh(request: AccountRequest, *, now: float) -> None:
    """Raise TooOld unless the person signed in a few minutes ago."""
    if now >= request.session.auth_time + ACCOUNT_FRESH_SECONDS:
        raise TooOld


def event(context: RequestContext, request: AccountRequest, action: AuditAction) -> AuditEvent:
    """The audit event of a person's action in their account."""
    user_id = request.user.user_id
    return context.event(Person(user_id=user_id), action, subject=user_id)


class Opening(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An open page for changes; `ends_at` in epoch seconds."""

    opening_id: str
    page: str
    ends_at: float
    extensions: int = 0


_ACCOUNT_PAGE: Final = namespaces.ACCOUNT_PAGE.with_record(Opening)


async def open_page(context: RequestContext, request: AccountRequest, page: str) -> AccountRequest:
    """The person at an open page, or at one opened now.

    Raises TooOld if a new sign-in is needed. Source: D45
    """
    found = await _open_page(context, request, page)
    if found is None or await _is_closed(context, found):
        require_fresh(request, now=context.now)
        found = Opening(opening_id=context.provider.new_id(), page=page, ends_at=_from(context, request))
        async with context.provider.transient.batch(context.now) as batch:
            await _entry(context, request, page).put(batch, found)
    return replace(request, opening=found)


async def still_open(context: RequestContext, request: AccountRequest, page: str) -> AccountRequest:
    """The person at a page that they opened before.

    Raises TooOld if its time is over, StaleStep if it was used already. Source: D45
    """
    found = await _open_page(context, request, page)
    if found is None:
        raise TooOld
    if await _is_closed(context, found):
        raise StaleStep
    return replace(request, opening=found)


def require(request: AccountRequest, *, now: float) -> None:
    """Raise TooOld unless the person is at an open page.

    No factor is changed without one. Source: D45
    """
    if request.opening is None or now >= request.opening.ends_at:
        raise TooOld


async def admit(context: RequestContext, request: AccountRequest) -> Attempt:
    """Begin a change of factors, before anything is hashed or written.

    Raises TooOld as `require`, and Throttled (D45, D47).
    """
    require(request, now=context.now)
    attempt = await throttle.attempt_change(context, request.user.user_id)
    if request.sent is not None:
        request.sent.attempt = attempt
    # Its person has just signed in in this browser.
    return msgspec.structs.replace(attempt, known=True)


def ends_at(context: RequestContext, request: AccountRequest) -> float:
    """The end of the page, or of the session.

    In epoch seconds. Source: D30
    """
    if request.opening is not None:
        return request.opening.ends_at
    return browsers.ends_at(context, request.session)


def extendable(context: RequestContext, request: AccountRequest) -> bool:
    """Return whether the page's time can be extended.

    A few times, and never past the end of the session. Source: D15
    """
    extensions = request.opening.extensions if request.opening is not None else 0
    return extensions < ACCOUNT_PAGE_EXTENSIONS and ends_at(context, request) < request.session.expires_at


async def extend(context: RequestContext, request: AccountRequest) -> None:
    """Extend the open page.

    Raises InvalidInput, and StaleStep if extended before or closed.

    Source: D15, WCAG 2.2.1
    """
    if not extendable(context, request):
        raise InvalidInput(phrase("You cannot get more time on this page."))
    await own_sessions.use(context, request)
    before = request.opening
    if before is None:
        return
    longer = msgspec.structs.replace(before, ends_at=_from(context, request), extensions=before.extensions + 1)
    step = namespaces.STEP.entry(context.provider.policy.base_url, before.opening_id, str(before.extensions))
    async with context.provider.transient.batch(context.now) as batch:
        if await _closed(context, before).get(batch) is not None:
            raise StaleStep
        if not await step.add(batch):
            raise StaleStep
        await _entry(context, request, longer.page).put(batch, longer)


async def close(context: RequestContext, request: AccountRequest) -> None:
    """Close the page after its change.

    The next change needs a fresh sign-in. It stays closed, even if another request extends it at this moment. Source:
    D45
    """
    if request.opening is not None:
        # A separate entry, since another request may write the opening that it read before this.
        async with context.provider.transient.batch(context.now) as batch:
            await _closed(context, request.opening).add(batch)


def _from(context: RequestContext, request: AccountRequest) -> float:
    return min(context.now + ACCOUNT_PAGE_SECONDS, float(request.session.expires_at))


async def _open_page(context: RequestContext, request: AccountRequest, page: str) -> Opening | None:
    found = await _entry(context, request, page).read(context.provider.transient, now=context.now)
    return found if found is not None and context.now < found.ends_at else None


async def _is_closed(context: RequestContext, opening: Opening) -> bool:
    return await _closed(context, opening).read(context.provider.transient, now=context.now) is not None


def _entry(context: RequestContext, request: AccountRequest, page: str) -> Entry[Opening]:
    return _ACCOUNT_PAGE.entry(context.provider.policy.base_url, request.session.session_id, page)


def _closed(context: RequestContext, opening: Opening) -> Entry[bytes]:
    """The key and value of the note that a page was used."""
    return namespaces.CLOSED_ACCOUNT_PAGE.entry(context.provider.policy.base_url, opening.opening_id)


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
