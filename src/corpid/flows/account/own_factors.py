"""A person's own factors: passkeys, password, app and recovery codes.

Each change is one conditional write, on a page that a fresh sign-in has opened; the person is notified by e-mail, and
if a factor was removed or replaced, every other session of theirs ends with it.

What is offered stays the same in one browser until it is used, also after a new sign-in: a person who has scanned a
picture or printed codes can still finish when they come back. A change of the password or the app ends what was offered
before, since somebody else may have seen it. Codes can be read for a minute, in one session; a person who has not saved
them by then makes others.
Source: D44, D45, D46, D73
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.account import account_sessions, enrolments
from corpid.flows.authentication import browsers, passkeys
from corpid.flows.authentication.factors import available, hash_new_password, held_factors, mails_codes
from corpid.jose.encoding import base64url
from corpid.rules.audit import AuditAction
from corpid.rules.authentication.passwords import PasswordRefused
from corpid.rules.authentication.records import Credentials, FactorChange, Passkey, PersonFactors, recovery_code_hash
from corpid.rules.authentication.sign_in import StaleStep, fingerprint
from corpid.rules.authentication.totp import STEP_SECONDS
from corpid.rules.directory.access import Object, Person, authorise
from corpid.rules.limits import PASSKEYS_PER_PERSON, SHOWN_ONCE_SECONDS
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from corpid.flows.account.account_sessions import AccountRequest
    from corpid.flows.namespaces import Entry
    from corpid.flows.notifications import Notice
    from corpid.flows.request_context import RequestContext

MEANWHILE: Final = phrase("Your sign-in was changed on another page. Check it before you continue.")


async def load_factors(context: RequestContext, request: AccountRequest) -> PersonFactors:
    """The factors of the visiting person (D44, D45, D46)."""
    return await held_factors(context.provider.registry, request.user.user_id)


def go_with_password(context: RequestContext, request: AccountRequest, factors: PersonFactors) -> bool:
    """Return whether the person has a second factor to a password.

    It does not matter whether they have a password. Source: D45
    """
    return bool(available(context, request.user, factors))


def need_passkey(context: RequestContext, request: AccountRequest, factors: PersonFactors) -> bool:
    """Return whether only a passkey lets this person in permanently.

    Source: D45
    """
    return not factors.can_sign_in_without_passkeys(mailed=mails_codes(context, request.user))


def app_used_at(factors: PersonFactors) -> int:
    """The time of the app's last accepted code, in epoch seconds.

    0: never (RFC 6238 §4).
    """
    return factors.credentials.totp_last_step * STEP_SECONDS if factors.app else 0


async def change_password(context: RequestContext, request: AccountRequest, *, password: str) -> None:
    """Set a new password.

    Raises InvalidInput, Throttled, TooOld, PasswordsBusy. Source: D44, D47
    """
    attempt = await account_sessions.admit(context, request)
    before = (await load_factors(context, request)).credentials
    try:
        password_hash = await hash_new_password(context, attempt, request.user, password)
    except PasswordRefused as refusal:
        raise InvalidInput(refusal.sentence) from None
    after = before.with_password(password_hash, "user")
    change = FactorChange(before=before, after=after, end_sessions_but=request.session.session_id)
    await write(context, request, change, AuditAction.FACTORS_PASSWORD, notifications.PASSWORD_CHANGED)


async def write(
    context: RequestContext, request: AccountRequest, change: FactorChange, action: AuditAction, notice: Notice
) -> None:
    """Write a change, close its page, and notify the person.

    Raises InvalidInput and TooOld.

    A session that has ended since the page was sent writes nothing. Source: D30, D45
    """
    account_sessions.require(request, now=context.now)
    authorise(Person(user_id=request.user.user_id), "write", Object(kind="credentials", user_id=change.after.user_id))
    change = msgspec.structs.replace(change, session_id=request.session.session_id)
    if not await context.provider.registry.factors.change(change, account_sessions.event(context, request, action)):
        raise InvalidInput(MEANWHILE)
    await account_sessions.close(context, request)
    notifications.notify(context, request.user, notice)


def are_passkeys_offered(context: RequestContext) -> bool:
    """Return whether passkeys work in this deployment (D46)."""
    return context.provider.policy.takes_passkeys


def full(factors: PersonFactors) -> bool:
    """Return whether this person has as many passkeys as allowed.

    Source: D46
    """
    return len(factors.passkeys) >= PASSKEYS_PER_PERSON


async def options(context: RequestContext, request: AccountRequest) -> str:
    """The WebAuthn creation options (JSON) of a new passkey.

    Empty if passkeys do not work (D46).
    """
    return await passkeys.registration_options(context, request.user, request.session.session_id)


async def add(context: RequestContext, request: AccountRequest, cookie: str, *, answer: str) -> None:
    """Add a passkey, which this browser's next sign-in offers first.

    `cookie` is the browser's value. Raises InvalidInput, StaleStep, Throttled and TooOld. Source: WebAuthn §7.1, D46
    """
    await account_sessions.admit(context, request)
    factors = await load_factors(context, request)
    if full(factors):
        raise InvalidInput(phrase("You have {passkeys} passkeys, which is the maximum.", passkeys=PASSKEYS_PER_PERSON))
    made = await passkeys.verify_new_passkey(context, request.session.session_id, answer=answer)
    passkey = passkeys.make_record(context, request.user.user_id, made)
    before = factors.credentials
    change = FactorChange(before=before, after=before, add_passkey=passkey, passkeys_at_most=PASSKEYS_PER_PERSON)
    await write(context, request, change, AuditAction.FACTORS_ADD_PASSKEY, notifications.PASSKEY_ADDED)
    await browsers.record_passkey(context, cookie, request.browser)


async def rename(context: RequestContext, request: AccountRequest, passkey: Passkey, *, name: str) -> None:
    """Rename a passkey.

    Raises InvalidInput, Throttled, TooOld and access.Forbidden. Source: D46, D51
    """
    await account_sessions.admit(context, request)
    renamed = msgspec.structs.replace(passkey, name=passkeys.canonical_name(name))
    actor = Person(user_id=request.user.user_id)
    authorise(actor, "write", Object(kind="credentials", user_id=passkey.user_id))
    event = account_sessions.event(context, request, AuditAction.FACTORS_RENAME_PASSKEY)
    if not await context.provider.registry.factors.rename_passkey(renamed, event):
        raise InvalidInput(MEANWHILE)
    await account_sessions.close(context, request)


async def remove(context: RequestContext, request: AccountRequest, passkey: Passkey) -> None:
    """Remove a passkey, unless it is the only lasting way in.

    Another passkey, or a password with a second factor that does not run out, must remain. Raises InvalidInput,
    Throttled, TooOld and access.Forbidden. Source: D45, D46
    """
    await account_sessions.admit(context, request)
    authorise(Person(user_id=request.user.user_id), "write", Object(kind="credentials", user_id=passkey.user_id))
    factors = await load_factors(context, request)
    needed = need_passkey(context, request, factors)
    if needed and len(factors.passkeys) == 1:
        raise InvalidInput(
            phrase(
                "This passkey is your only way to sign in. First add another one, or a password and an authenticator "
                "app."
            )
        )
    change = FactorChange(
        before=factors.credentials,
        after=factors.credentials,
        remove_passkey=passkey.credential_id,
        passkey_remains=needed,
        end_sessions_but=request.session.session_id,
    )
    await write(context, request, change, AuditAction.FACTORS_REMOVE_PASSKEY, notifications.PASSKEY_REMOVED)


Offered: TypeAlias = Literal["app", "codes"]
_PURPOSE: Final = "account"


async def offer(context: RequestContext, request: AccountRequest, what: Offered) -> str:
    """The identifier of this browser's offered secrets, stable for a day.

    After its dot is the moment at which they were first shown. Source: D45
    """
    credentials = await context.provider.registry.factors.credentials(request.user.user_id)
    entry, made = _offer(context, request, credentials, what), f"{context.provider.new_id()}.{context.now:.3f}"
    offered = await entry.read(context.provider.transient, now=context.now)
    if offered is None:
        async with context.provider.transient.batch(context.now) as batch:
            offered = made if await entry.add(batch, made) else await entry.get(batch)
    if offered is None:
        raise StaleStep
    return offered


def _offer(context: RequestContext, request: AccountRequest, credentials: Credentials, what: Offered) -> Entry[str]:
    parts = (request.browser.browser_id, credentials.user_id, base64url(fingerprint(credentials)), what)
    return namespaces.ACCOUNT_OFFER.entry(context.provider.policy.base_url, *parts)


async def _spend(
    context: RequestContext, request: AccountRequest, before: Credentials, what: Offered, shown: str
) -> None:
    async with context.provider.transient.batch(context.now) as batch:
        spent = await _offer(context, request, before, what).take(batch)
    if spent != shown:
        raise StaleStep


def app_secret(context: RequestContext, shown: str) -> str:
    """The secret (base32) of an offer (D45)."""
    return enrolments.derived_app_secret(context, _PURPOSE, shown)


def codes(context: RequestContext, shown: str) -> tuple[str, ...]:
    """The recovery codes of an offer (D45)."""
    return enrolments.derived_codes(context, _PURPOSE, shown)


def are_readable(context: RequestContext, request: AccountRequest, shown: str) -> bool:
    """Return whether the page may show the codes of an offer.

    For a minute, and in the session to which they were first shown. Source: D73
    """
    first = float(shown.partition(".")[2] or 0)
    return request.session.auth_time <= first and context.now < first + SHOWN_ONCE_SECONDS


async def offer_other_codes(context: RequestContext, request: AccountRequest, *, shown: str) -> None:
    """End the offer of codes that the person has not saved.

    The page then offers others. Raises TooOld. Source: D73
    """
    account_sessions.require(request, now=context.now)
    credentials = await context.provider.registry.factors.credentials(request.user.user_id)
    entry = _offer(context, request, credentials, "codes")
    if await entry.read(context.provider.transient, now=context.now) == shown:
        async with context.provider.transient.batch(context.now) as batch:
            await entry.take(batch)


async def set_up_app(context: RequestContext, request: AccountRequest, *, code: str) -> None:
    """Set up a new app, proven by its first code.

    Raises InvalidInput, StaleStep, Throttled and TooOld. Source: D45
    """
    await account_sessions.admit(context, request)
    shown = await offer(context, request, "app")
    secret = app_secret(context, shown)
    step = enrolments.match_new_app(context, secret, code)
    before = (await load_factors(context, request)).credentials
    await _spend(context, request, before, "app", shown)
    after = before.with_app(secret, "user", step=step)
    change = FactorChange(before=before, after=after, end_sessions_but=request.session.session_id)
    notice = notifications.APP_REPLACED if before.totp_secret else notifications.APP_ADDED
    await write(context, request, change, AuditAction.FACTORS_APP, notice)


async def remove_app(context: RequestContext, request: AccountRequest) -> None:
    """Remove the app, if another lasting way in remains.

    Raises InvalidInput, StaleStep, Throttled and TooOld. Source: D45
    """
    await account_sessions.admit(context, request)
    factors = await load_factors(context, request)
    before = factors.credentials
    if not factors.app:
        raise StaleStep
    after = before.without_app("user")
    needed = need_passkey(context, request, msgspec.structs.replace(factors, credentials=after))
    if needed and not factors.passkeys:
        raise InvalidInput(phrase("Without the app you could no longer sign in. Add a passkey first."))
    change = FactorChange(
        before=before, after=after, passkey_remains=needed, end_sessions_but=request.session.session_id
    )
    await write(context, request, change, AuditAction.FACTORS_REMOVE_APP, notifications.APP_REMOVED)


async def replace_codes(context: RequestContext, request: AccountRequest, *, shown: str, kept: bool) -> None:
    """Replace the recovery codes by those the person has confirmed.

    Raises InvalidInput, StaleStep, Throttled and TooOld. Source: D45
    """
    await account_sessions.admit(context, request)
    if shown != await offer(context, request, "codes"):
        raise StaleStep
    if not kept:
        raise InvalidInput(phrase("Save your codes first, then tick the box."))
    before, user_id = (await load_factors(context, request)).credentials, request.user.user_id
    await _spend(context, request, before, "codes", shown)
    hashes = tuple(recovery_code_hash(user_id, code) for code in codes(context, shown))
    change = FactorChange(
        before=before, after=before, recovery_codes=hashes, end_sessions_but=request.session.session_id
    )
    await write(context, request, change, AuditAction.FACTORS_RECOVERY_CODES, notifications.NEW_RECOVERY_CODES)


async def remove_codes(context: RequestContext, request: AccountRequest) -> None:
    """Remove the remaining recovery codes, if another way in remains.

    Raises InvalidInput, StaleStep, Throttled and TooOld. Source: D45
    """
    await account_sessions.admit(context, request)
    factors = await load_factors(context, request)
    if not factors.codes:
        raise StaleStep
    needed = need_passkey(context, request, factors)
    if needed and not factors.passkeys:
        raise InvalidInput(
            phrase("Without these codes you could no longer sign in. Set up an authenticator app or a passkey first.")
        )
    change = FactorChange(
        before=factors.credentials,
        after=factors.credentials,
        recovery_codes=(),
        passkey_remains=needed,
        end_sessions_but=request.session.session_id,
    )
    await write(
        context, request, change, AuditAction.FACTORS_REMOVE_RECOVERY_CODES, notifications.RECOVERY_CODES_REMOVED
    )
