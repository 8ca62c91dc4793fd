"""Browsers: mapping of cookie values to browser ids.

The cookie value of a new browser proves itself. It is 32 bytes: the time of issue, 12 random bytes, and a MAC over
both. Anybody can be a new browser as often as they like, so only the end of such a value is stored, which requires a
sign-in. Source: D34
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import msgspec

from corpid.flows import namespaces
from corpid.flows.namespaces import NEW_BROWSER_SECONDS, Entry, Namespace
from corpid.jose.encoding import MalformedToken, base64url, from_base64url
from corpid.rules.audit import AuditAction
from corpid.rules.authentication.sign_in import StaleStep, sign_in_suffices
from corpid.rules.directory.access import ANONYMOUS
from corpid.rules.limits import CLOCKS_APART_SECONDS, OWN_SESSIONS, REPEAT_MISSES

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session, SessionPurpose
    from corpid.rules.oauth.authorization_request import AuthorizationRequest
    from corpid.stores.transient import TransientBatch

T = TypeVar("T")
R = TypeVar("R")

_TIME_BYTES: Final = 4
_RANDOM_BYTES: Final = 12
_MAC_BYTES: Final = 16
_BYTES: Final = _TIME_BYTES + _RANDOM_BYTES + _MAC_BYTES


def make_cookie(context: RequestContext) -> str:
    """Return a new cookie value: 32 bytes, base64url (D34)."""
    random = from_base64url(context.provider.new_id())[:_RANDOM_BYTES]
    contents = int(context.now).to_bytes(_TIME_BYTES) + random
    return base64url(contents + _mac(context, contents))


def is_live(context: RequestContext, cookie: str) -> bool:
    """Return whether `make` returned this cookie value within the last day (D34)."""
    try:
        value = from_base64url(cookie)
    except MalformedToken:
        return False
    contents, mac = value[:-_MAC_BYTES], value[-_MAC_BYTES:]
    if len(value) != _BYTES or not hmac.compare_digest(mac, _mac(context, contents)):
        return False
    age = context.now - int.from_bytes(contents[:_TIME_BYTES])
    return -CLOCKS_APART_SECONDS <= age < NEW_BROWSER_SECONDS


def browser_id(context: RequestContext, cookie: str) -> str:
    """Return the browser id of a genuine cookie value.

    It reveals nothing about the value. Source: D34
    """
    return context.keys.mac("new browser's id", context.provider.policy.base_url, cookie)


def _mac(context: RequestContext, contents: bytes) -> bytes:
    return context.keys.digest("new browser", context.provider.policy.base_url, contents.hex())[:_MAC_BYTES]


class Browser(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A browser that carries our cookie.

    Interactions, claims and form tokens are bound to `browser_id`.
    """

    browser_id: str
    session_id: str = ""
    """single sign-on (D30)"""
    account_id: str = ""
    """the session of the account's own pages"""
    kept_name: str = ""
    """its first `browser_id`, before signing out gave it another"""
    user_id: str = ""
    """the person who last signed in here"""
    used_passkey: bool = False
    """true if any person ever signed in here with a passkey, or created one; it outlasts signing out"""
    manage_id: str = ""
    """the session of the portal"""
    console_id: str = ""
    """the session of the console"""
    language: str = ""
    """of the account that last signed in here, offered before its next first factor; it outlasts signing out"""

    @property
    def browser_key(self) -> str:
        """The key under which the browser is known for its people.

        It does not change when they sign out. Source: D47
        """
        return self.kept_name or self.browser_id

    @property
    def had_sign_in(self) -> bool:
        """True if any person ever signed in here.

        They may have signed out since. Whether one person did is `throttle.is_known`.
        """
        return bool(self.user_id or self.kept_name)

    @property
    def is_stored(self) -> bool:
        """True if its cookie value is stored, as after each sign-in.

        That of a new browser proves itself. Source: D34
        """
        # A version that did not yet store the person stored a session.
        return bool(self.user_id or self.kept_name or self.session_id or self.account_id)


class OtherForm(Exception):
    """A form that reuses a cookie value replaced by another form (D34)."""


_BROWSER: Final = namespaces.BROWSER.with_record(Browser)


async def recognise(context: RequestContext, cookie: str | None) -> Browser | None:
    """Return the browser of a cookie value.

    The result is None for a value that was never issued or that was replaced. Source: D34
    """
    if not cookie:
        return None
    deciding = _deciding(context, cookie)
    return _found(context, cookie, await deciding.read(context.provider.transient, now=context.now), deciding)


@overload
async def recognise_with(
    context: RequestContext, cookie: str | None, other: Entry[T], /
) -> tuple[Browser | None, T | None]: ...
@overload
async def recognise_with(
    context: RequestContext, cookie: str | None, other: Entry[T], another: Entry[R], third: Entry[R], /
) -> tuple[Browser | None, T | None, R | None, R | None]: ...
async def recognise_with(context: RequestContext, cookie: str | None, /, *others: Entry[Any]) -> tuple[Any, ...]:
    """As `recognise`, and look at other entries with it.

    Source: D34
    """
    transient = context.provider.transient
    if not cookie:
        return None, *await namespaces.read_each(transient, *others, now=context.now)
    deciding = _deciding(context, cookie)
    stored, *beside = await namespaces.read_each(transient, deciding, *others, now=context.now)
    return _found(context, cookie, stored, deciding), *beside


def _deciding(context: RequestContext, cookie: str) -> Entry[Browser] | Entry[bytes]:
    """Return the entry that decides whether a cookie value is valid."""
    kind: Namespace[Any] = namespaces.RETIRED_BROWSER if is_live(context, cookie) else _BROWSER
    return kind.entry(context.provider.policy.base_url, cookie)


def _found(
    context: RequestContext, cookie: str, stored: Browser | bytes | None, deciding: Entry[Browser] | Entry[bytes]
) -> Browser | None:
    if deciding.namespace is not namespaces.RETIRED_BROWSER:
        return stored if isinstance(stored, Browser) else None
    return Browser(browser_id=browser_id(context, cookie)) if stored is None else None


async def issue_cookie(context: RequestContext) -> tuple[Browser, str]:
    """Return a new browser and its cookie value, without storing anything.

    The value is 32 bytes in base64url. Anybody can be a new browser, again and again. Source: D34
    """
    cookie = make_cookie(context)
    return Browser(browser_id=browser_id(context, cookie)), cookie


async def sign_out(context: RequestContext, batch: TransientBatch, old_cookie: str, browser: Browser) -> str:
    """Replace a browser by a new one and return its cookie value.

    Nothing of the old browser belongs to the new one, but it is still known for the people who sign in here. Raises
    StaleStep if the old value was already invalidated: with two browsers of one name, the second would pass for the one
    in which a person signs in. Source: D30, D34, D47
    """
    if not await retire(context, batch, old_cookie, browser):
        raise StaleStep
    another = Browser(
        browser_id=context.provider.new_id(),
        kept_name=browser.browser_key,
        used_passkey=browser.used_passkey,
        language=browser.language,
    )
    cookie = context.provider.new_id()
    await _BROWSER.entry(context.provider.policy.base_url, cookie).put(batch, another)
    return cookie


async def retire(context: RequestContext, batch: TransientBatch, cookie: str, browser: Browser) -> bool:
    """Invalidate a cookie value before another replaces it.

    `browser` is the one that it stood for. Returns False if another request was first. Source: D34
    """
    issuer = context.provider.policy.base_url
    if browser.is_stored:
        return await _BROWSER.entry(issuer, cookie).take(batch) is not None
    return await namespaces.RETIRED_BROWSER.entry(issuer, cookie).add(batch)


async def revive(context: RequestContext, batch: TransientBatch, cookie: str, browser: Browser) -> None:
    """Undo `retire` after a failure.

    It also works on an engine that does not roll back its batches. Source: D34
    """
    issuer = context.provider.policy.base_url
    if browser.is_stored:
        await _BROWSER.entry(issuer, cookie).put(batch, browser)
    else:
        await namespaces.RETIRED_BROWSER.entry(issuer, cookie).take(batch)


async def record_passkey(context: RequestContext, cookie: str, browser: Browser) -> None:
    """Record that a passkey was created in this browser.

    The entry is taken before it is written: a cookie value that another tab has invalidated stays invalid. Source: D34,
    D46
    """
    if browser.used_passkey:
        return
    entry = _BROWSER.entry(context.provider.policy.base_url, cookie)
    async with context.provider.transient.batch(context.now) as batch:
        stored = await entry.take(batch)
        if stored is not None:
            await entry.put(batch, msgspec.structs.replace(stored, used_passkey=True))


def _successor(context: RequestContext, old_cookie: str, form: bytes) -> str:
    """Return the cookie value that follows an old one.

    It is 32 bytes that nobody else can derive, and the same each time that the same form is sent.
    """
    return context.keys.mac("browser", old_cookie, form.hex())


@dataclass(slots=True)
class SubmittedForm:
    """A form that proves a factor, as it was received."""

    digest: bytes = b""
    """SHA-256 of the form"""
    noted: bool = False
    """true if this request has recorded that it handles the form"""
    waited: bool = False
    """true if waiting for another request with the same form failed, so that this one is tried now"""


_REJECTED: Final = b"rejected "
"""before the digest of a form that was rejected, and what tells this rejection from others of it"""


class FormHandled(Exception):
    """The error for a form that another request handles or has handled (D15, D34)."""


async def note_form(context: RequestContext, batch: TransientBatch, cookie: str, form: SubmittedForm) -> None:
    """Record that a form is being handled, by its cookie value.

    If another form of this browser is being handled, both are tried. Raises FormHandled, also for a form that was
    rejected in the last ten minutes. Source: D15, D34, D73
    """
    if not form.digest or form.waited:
        return
    repeated = namespaces.REPEATED_FORM.entry(context.provider.policy.base_url, cookie)
    form.noted = await repeated.add(batch, form.digest)
    if form.noted:
        return
    stored = await repeated.get(batch) or b""
    if stored.removeprefix(_REJECTED).startswith(form.digest):
        raise FormHandled
    if not stored.startswith(_REJECTED):
        return
    following = _following(context, cookie, stored)
    form.noted = await following.add(batch, form.digest)
    if form.noted:
        await repeated.put(batch, form.digest)
    elif await following.get(batch) == form.digest:
        raise FormHandled


def _following(context: RequestContext, cookie: str, rejected: bytes) -> Entry[bytes]:
    """The entry of the form handled after a rejected one."""
    return namespaces.REPEATED_FORM.entry(context.provider.policy.base_url, cookie, rejected.hex())


async def is_handled(context: RequestContext, cookie: str, form: bytes) -> bool:
    """Return whether a request handles this form, or did.

    A request that did has replaced the cookie value. Source: D15, D34
    """
    repeated = namespaces.REPEATED_FORM.entry(context.provider.policy.base_url, cookie)
    stored = await repeated.read(context.provider.transient, now=context.now) or b""
    if not stored.startswith(_REJECTED):
        return stored == form
    return await _following(context, cookie, stored).read(context.provider.transient, now=context.now) == form


async def handled_in_vain(context: RequestContext, cookie: str, form: SubmittedForm, *, rejected: bool) -> None:
    """Record that a form was handled without replacing the cookie value.

    No other request then needs to wait for it; if it was rejected, none tries it again for ten minutes. Source: D15,
    D34, D73
    """
    if not form.noted or not await is_handled(context, cookie, form.digest):
        return
    entry = namespaces.REPEATED_FORM.entry(context.provider.policy.base_url, cookie)
    async with context.provider.transient.batch(context.now) as batch:
        if rejected:
            rejection = _REJECTED + form.digest + context.provider.new_id().encode()
            await entry.put(batch, rejection, seconds=namespaces.REJECTED_FORM.seconds)
        else:
            await entry.take(batch)


async def replace_by_form(
    context: RequestContext, batch: TransientBatch, old_cookie: str, form: SubmittedForm, browser: Browser
) -> str:
    """Give a browser the value that follows a retired one.

    The form that caused it is stored for a minute. Source: D15, D34
    """
    cookie, issuer = _successor(context, old_cookie, form.digest), context.provider.policy.base_url
    await _BROWSER.entry(issuer, cookie).put(batch, browser)
    if not form.noted:
        await namespaces.REPEATED_FORM.entry(issuer, old_cookie).put(batch, form.digest)
    return cookie


async def replace_again(context: RequestContext, old_cookie: str | None, form: bytes) -> str | None:
    """Return the new cookie value if its form is sent again.

    Otherwise it is None. A double click makes a browser drop the first answer, and the new value with it. The value is
    the same in every answer, so that their order does not matter; if it has been replaced already, there is nothing to
    repeat. An attacker with only the old value does not know the form, with its code and the random part of its token.
    Raises OtherForm for any other form; the third of them ends the repetition. Source: D15, D34
    """
    if not old_cookie:
        return None
    repeated = namespaces.REPEATED_FORM.entry(context.provider.policy.base_url, old_cookie)
    sent = await repeated.read(context.provider.transient, now=context.now)
    if sent is None or sent.startswith(_REJECTED):
        return None
    cookie = _successor(context, old_cookie, sent)
    browser = await recognise(context, cookie)
    if not hmac.compare_digest(sent, form):
        # Count and audit a form that differs from the one sent first. `browser` is the one that the old cookie value
        # stood for.
        issuer = context.provider.policy.base_url
        entry = context.event(
            ANONYMOUS, AuditAction.SIGN_IN_REPEAT, subject=browser.user_id if browser else "", outcome="refused"
        )
        async with context.provider.transient.batch(context.now) as batch:
            misses = await namespaces.REPEAT_MISSES.entry(issuer, old_cookie).count(batch)
            if misses >= REPEAT_MISSES:
                await namespaces.REPEATED_FORM.entry(issuer, old_cookie).take(batch)
            if misses <= REPEAT_MISSES:
                await context.provider.registry.audit.write(entry, now=context.now)
        raise OtherForm
    return cookie if browser else None


async def load_session(context: RequestContext, browser: Browser | None) -> Session | None:
    """Return the live session of a browser.

    The result is None without one, or if single sign-on is off. Source: D30
    """
    if browser is None or not browser.session_id or not context.provider.policy.session_seconds:
        return None
    session = await context.provider.registry.sessions.get(browser.session_id, now=context.now)
    return None if session is None else of_browser(context, browser, session)


def of_browser(
    context: RequestContext, browser: Browser, session: Session, purpose: SessionPurpose = "sign_in"
) -> Session | None:
    """Return the session if it can serve this browser for a purpose.

    The result is None if the session belongs to another browser or purpose, or has ended. Source: D30
    """
    if session.browser_id != browser.browser_id or session.purpose != purpose:
        return None
    return session if context.now < ends_at(context, session) else None


def ends_at(context: RequestContext, session: Session) -> int:
    """Return the end of a session that is not used again.

    It is in epoch seconds; 0 if the session has ended because single sign-on is off. Source: D30
    """
    if session.purpose != "sign_in":
        return min(session.seen_at + OWN_SESSIONS[session.purpose].idle, session.expires_at)
    return session.expires_at if context.provider.policy.session_seconds else 0


def suffices(context: RequestContext, session: Session | None, request: AuthorizationRequest) -> bool:
    """Return whether a session answers the request without a new sign-in (D30, D40)."""
    return session is not None and sign_in_suffices(
        request,
        auth_time=session.auth_time,
        level=session.level,
        acr_prefix=context.provider.policy.acr_prefix,
        now=context.now,
    )
