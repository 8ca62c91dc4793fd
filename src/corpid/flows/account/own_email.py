"""A person's own e-mail address: prove a new one, wait, and undo.

A code goes to the new address and is typed in the account. The proven address takes effect after 72 hours. Until then
codes, recovery and notices go to the old one, which was sent a link that undoes the change without a sign-in.
Source: D45, D61, docs/decisions/0020
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.account import account_sessions, links, own_factors
from corpid.flows.account.enrolments import NotHere, OpenedLink
from corpid.flows.authentication import factors, throttle
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication.records import EmailChange, NewLink, code_from, hash_code
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory import names, values
from corpid.rules.directory.access import Object, Person, authorise
from corpid.rules.directory.members import masked_address
from corpid.rules.directory.records import User
from corpid.rules.directory.sources import channel
from corpid.rules.limits import CODE_MISSES, EMAIL_CODES_PER_ADDRESS, EMAIL_CODES_PER_PERSON, EMAIL_UNDO_SECONDS
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from corpid.flows.account.account_sessions import AccountRequest
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import Provider, RequestContext

_FINISHED_AT_ONCE: Final = 100
"""changes that take effect in one round of the background task"""
_ENDED: Final = phrase("This code no longer works. Enter your new e-mail address again.")


class UnprovenAddress(msgspec.Struct, frozen=True, kw_only=True):
    """An address that a code was sent to, in one browser."""

    wanted_id: str
    """unguessable; the code is derived from it"""
    email: str
    sent_at: int


_WANTED: Final = namespaces.NEW_EMAIL.with_record(UnprovenAddress)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEmail:
    """The state of a person's address.

    At most one of the first two is there.
    """

    waiting: EmailChange | None
    """proven, and not yet in effect"""
    wanted: UnprovenAddress | None
    """not yet proven"""
    from_file: bool
    """whether the address in effect comes from a directory file (D65)"""


async def load_email_state(context: RequestContext, request: AccountRequest) -> OwnEmail:
    """Return the state of the visiting person's address.

    Source: D61, D65
    """
    change = await find_pending_change(context, request)
    wanted = None if change else await _entry(context, request).read(context.provider.transient, now=context.now)
    key = request.user.key
    found = (await context.provider.registry.directory.sourced(User, [key])).get(key)
    return OwnEmail(
        waiting=change,
        wanted=wanted,
        from_file=found is not None and channel(found.sources.source_of("email")) == "file",
    )


async def find_pending_change(context: RequestContext, request: AccountRequest) -> EmailChange | None:
    """Return the proven change that is not yet in effect (D61)."""
    authorise(Person(user_id=request.user.user_id), "read", Object(kind="user", user_id=request.user.user_id))
    return await context.provider.registry.email_changes.find(request.user.user_id)


async def ask(context: RequestContext, request: AccountRequest, *, email: str) -> None:
    """Send a code to a new address.

    Whether another account has the address makes no difference. Raises InvalidInput, StaleStep, Throttled and TooOld.
    Source: D47, D61
    """
    await account_sessions.admit(context, request)
    if not context.provider.mail.works or await find_pending_change(context, request) is not None:
        raise StaleStep
    address = _checked(request, email)
    _authorise(request)
    issuer = context.provider.policy.deployment_url
    of_person = namespaces.NEW_EMAIL_CODES.entry(issuer, request.user.user_id)
    if await context.count(of_person) > EMAIL_CODES_PER_PERSON:
        raise InvalidInput(phrase("We have sent you too many codes. Try again tomorrow."))
    to_address = namespaces.NEW_EMAIL_CODES_TO.entry(issuer, address.lower())
    if await context.count(to_address) > EMAIL_CODES_PER_ADDRESS:
        raise InvalidInput(phrase("We have sent too many codes to this address. Try again tomorrow."), field="email")
    wanted = UnprovenAddress(wanted_id=context.provider.new_id(), email=address, sent_at=int(context.now))
    async with context.provider.transient.batch(context.now) as batch:
        await _entry(context, request).put(batch, wanted)
        event = account_sessions.event(context, request, AuditAction.USER_MAIL_CODE)
        await context.provider.registry.audit.write(event, now=context.now)
    why = phrase(
        "Somebody wants to use this e-mail address for their {name} account. If it is not you, do not share the code "
        "and ignore this e-mail: nothing happens without the code.",
        name=context.provider.policy.name,
    )
    to = msgspec.structs.replace(request.user, email=address)
    notifications.mailed_code(context, to, _code(context, request, wanted), why=why)


def _checked(request: AccountRequest, email: str) -> str:
    typed = email.strip()
    if not typed:
        raise InvalidInput(phrase("Enter your new e-mail address."), field="email")
    try:
        address = values.address(typed)
    except ValueError as error:
        remedy = names.remedy_of(error, phrase("Enter an e-mail address such as name@example.com."))
        raise InvalidInput(remedy, field="email") from None
    if address.lower() == request.user.email.lower():
        raise InvalidInput(phrase("This is already your e-mail address. Enter another one."), field="email")
    return address


async def send_again(context: RequestContext, request: AccountRequest) -> None:
    """Send another code, which ends the earlier one.

    Raises as `ask`, and InvalidInput if the earlier one has ended. Source: D47, D61
    """
    wanted = (await load_email_state(context, request)).wanted
    if wanted is None:
        raise InvalidInput(_ENDED)
    try:
        await ask(context, request, email=wanted.email)
    except InvalidInput as refused:
        # The page has no field for the address.
        raise InvalidInput(refused.sentence) from None


async def forget(context: RequestContext, request: AccountRequest) -> None:
    """Give up an address that was not proven yet (D61)."""
    async with context.provider.transient.batch(context.now) as batch:
        await _entry(context, request).take(batch)


async def prove(context: RequestContext, request: AccountRequest, *, code: str) -> None:
    """Accept the code from the new address, which then waits.

    Five wrong codes end it. Every other session of the person ends. Raises InvalidInput, StaleStep, Throttled and
    TooOld. Source: D45, D47, D61
    """
    await account_sessions.admit(context, request)
    wanted = (await load_email_state(context, request)).wanted
    if wanted is None:
        raise InvalidInput(_ENDED)
    await _require_code(context, request, wanted, code)
    account_sessions.require(request, now=context.now)
    _authorise(request)
    async with context.provider.transient.batch(context.now) as batch:
        if await _entry(context, request).take(batch) != wanted:
            raise StaleStep
    link_code = code_from(context.provider.new_id())
    change = EmailChange(
        user_id=request.user.user_id,
        link_hash=hash_code(link_code),
        old_email=request.user.email,
        new_email=wanted.email,
        proved_at=int(context.now),
        effective_at=int(context.now) + EMAIL_UNDO_SECONDS,
    )
    event = context.event(
        Person(user_id=change.user_id),
        AuditAction.USER_PROVE_EMAIL,
        subject=change.user_id,
        effective_at=str(change.effective_at),
    )
    registry, session_id = context.provider.registry, request.session.session_id
    if not await registry.email_changes.begin(change, event, session_id=session_id):
        raise InvalidInput(own_factors.MEANWHILE)
    await account_sessions.close(context, request)
    notifications.email_will_change(
        context,
        request.user,
        NewLink(
            page=context.provider.policy.deployment_url + links.PATH,
            code=link_code,
            expires_at=change.effective_at,
        ),
        address=masked_address(change.new_email),
        lead=links.PURPOSES["email"].lead,
    )


async def _require_code(context: RequestContext, request: AccountRequest, wanted: UnprovenAddress, code: str) -> None:
    """Raise InvalidInput for a wrong code.

    It is counted before it is compared, and once for the same bytes.
    """
    misses = namespaces.SECOND_FACTOR_MISSES.entry(context.provider.policy.base_url, wanted.wanted_id)
    tries = await context.count(misses)
    if tries <= CODE_MISSES and factors.is_code(code, _code(context, request, wanted)):
        return
    if not await throttle.rejection_counts(context, request.sent):
        async with context.provider.transient.batch(context.now) as batch:
            tries = await context.counts.count(batch, misses, -1)
    if tries >= CODE_MISSES:
        await forget(context, request)
        raise InvalidInput(phrase("Too many wrong codes. Enter your new e-mail address again."))
    raise InvalidInput(
        phrase("This code is not right. Enter the one from the latest e-mail, or send a new one."), field="code"
    )


async def keep(context: RequestContext, request: AccountRequest) -> None:
    """Undo the waiting change from the account.

    Every other session ends. Raises InvalidInput, StaleStep, Throttled and TooOld. Source: D61
    """
    await account_sessions.admit(context, request)
    change = await find_pending_change(context, request)
    if change is None:
        raise StaleStep
    _authorise(request)
    event = _undoing(context, change, "account")
    session_id = request.session.session_id
    if not await context.provider.registry.email_changes.undo(change, event, but_session=session_id):
        raise InvalidInput(own_factors.MEANWHILE)
    await account_sessions.close(context, request)
    _tell_both(context, request.user, change)


async def undo(context: RequestContext, browser: Browser, opened_id: str, found: OpenedLink) -> None:
    """Undo the change with the link that the old address was sent.

    Every session of the person ends, and every link. Raises NotHere. Source: D61
    """
    change = found.email_change
    if change is None:
        raise NotHere
    authorise(Person(user_id=change.user_id), "write", _object(change.user_id))
    event = _undoing(context, change, "link")
    if not await context.provider.registry.email_changes.undo(change, event):
        raise NotHere
    async with context.provider.transient.batch(context.now) as batch:
        await _undone_entry(context, opened_id).put(batch, browser.browser_id)
    _tell_both(context, found.user, change)


async def is_undone(context: RequestContext, browser: Browser | None, opened_id: str) -> bool:
    """Return whether this browser has undone the change of a link.

    A form that is sent twice leads to the same page. Source: D15
    """
    found = await _undone_entry(context, opened_id).read(context.provider.transient, now=context.now)
    return found is not None and browser is not None and found == browser.browser_id


async def finish_due(provider: Provider, *, now: float) -> None:
    """Let changes take effect whose time has come.

    Both addresses are told. A change that no longer stands is dropped. Raises StoreUnavailable. Source: D61
    """
    for change in await provider.registry.email_changes.due(now=now, limit=_FINISHED_AT_ONCE):
        actor = Person(user_id=change.user_id)
        authorise(actor, "write", _object(change.user_id))
        event = AuditEvent(actor=actor.name, action=AuditAction.USER_CHANGE_EMAIL, object=change.user_id)
        user = await provider.registry.directory.user(change.user_id)
        if await provider.registry.email_changes.finish(change, event) != "changed" or user is None:
            continue
        for to, shown in (
            (change.new_email, change.new_email),
            (change.old_email, masked_address(change.new_email)),
        ):
            at_address = msgspec.structs.replace(user, email=to)
            notifications.tell(provider, at_address, notifications.email_changed(shown), now=now)


def _tell_both(context: RequestContext, user: User, change: EmailChange) -> None:
    for to in (change.old_email, change.new_email):
        notifications.notify(context, msgspec.structs.replace(user, email=to), notifications.EMAIL_STAYS)


def _undoing(context: RequestContext, change: EmailChange, way: str) -> AuditEvent:
    actor = Person(user_id=change.user_id)
    return context.event(actor, AuditAction.USER_UNDO_EMAIL, subject=change.user_id, way=way)


def _authorise(request: AccountRequest) -> None:
    authorise(Person(user_id=request.user.user_id), "write", _object(request.user.user_id))


def _object(user_id: str) -> Object:
    return Object(kind="user", user_id=user_id, members=frozenset({"email"}))


def _code(context: RequestContext, request: AccountRequest, wanted: UnprovenAddress) -> str:
    return factors.digits_of(context.keys.mac("new-email", wanted.wanted_id, request.user.user_id, wanted.email))


def _entry(context: RequestContext, request: AccountRequest) -> Entry[UnprovenAddress]:
    """By browser, so that a sign-in in between loses nothing."""
    return _WANTED.entry(context.provider.policy.base_url, request.user.user_id, request.browser.browser_id)


def _undone_entry(context: RequestContext, opened_id: str) -> Entry[str]:
    return namespaces.UNDONE_EMAIL.entry(context.provider.policy.base_url, opened_id)
