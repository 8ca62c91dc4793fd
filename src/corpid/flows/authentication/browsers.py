"""Browsers: a cookie value maps to a browser id; that of a new browser proves itself (D34).

The value is 32 bytes: when it was issued, 12 random ones, and a MAC over both. Anybody can be a new browser as often
as they like, so only the end of such a value is stored, which takes a sign-in.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.namespaces import NEW_BROWSER_SECONDS
from corpid.jose.encoding import base64url, from_base64url
from corpid.jose.errors import MalformedToken
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication import single_sign_on
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.access import ANONYMOUS
from corpid.rules.limits import ACCOUNT_IDLE_SECONDS, CLOCKS_APART_SECONDS, REPEAT_MISSES

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import Session, TransientUnit
    from corpid.rules.oauth.records import AuthorizationRequest

_TIME_BYTES: Final = 4
_RANDOM_BYTES: Final = 12
_MAC_BYTES: Final = 16
_BYTES: Final = _TIME_BYTES + _RANDOM_BYTES + _MAC_BYTES


def make(context: RequestContext) -> str:
    """Return a new cookie value: 32 bytes, base64url (D34)."""
    random = from_base64url(context.provider.new_id())[:_RANDOM_BYTES]
    contents = int(context.now).to_bytes(_TIME_BYTES) + random
    return base64url(contents + _mac(context, contents))


def is_genuine(context: RequestContext, cookie: str) -> bool:
    """Whether `make` returned this cookie value, however long ago (D34)."""
    return _issued_at(context, cookie) is not None


def is_live(context: RequestContext, cookie: str) -> bool:
    """Whether `make` returned this cookie value within the last day (D34)."""
    issued_at = _issued_at(context, cookie)
    return issued_at is not None and -CLOCKS_APART_SECONDS <= context.now - issued_at < NEW_BROWSER_SECONDS


def browser_id(context: RequestContext, cookie: str) -> str:
    """The browser that a genuine cookie value stands for; it tells nothing of the value (D34)."""
    return context.keys.mac("new browser's id", context.provider.policy.base_url, cookie)


def _issued_at(context: RequestContext, cookie: str) -> int | None:
    """Epoch seconds; None for a value that `make` did not return."""
    try:
        value = from_base64url(cookie)
    except MalformedToken:
        return None
    contents, mac = value[:-_MAC_BYTES], value[-_MAC_BYTES:]
    if len(value) != _BYTES or not hmac.compare_digest(mac, _mac(context, contents)):
        return None
    return int.from_bytes(contents[:_TIME_BYTES])


def _mac(context: RequestContext, contents: bytes) -> bytes:
    mac = context.keys.mac("new browser", context.provider.policy.base_url, contents.hex())
    return from_base64url(mac)[:_MAC_BYTES]


class Browser(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A browser that carries our cookie; interactions, claims and form tokens are bound to `browser_id`."""

    browser_id: str
    session_id: str = ""
    """single sign-on (D30)"""
    account_id: str = ""
    """the session of the account's own pages"""
    kept_name: str = ""
    """its first `browser_id`, after which it got another by signing out"""
    user_id: str = ""
    """who has signed in here last"""

    @property
    def browser_key(self) -> str:
        """What it is known by to whoever has signed in here: it stays what it is when they sign out (D47)."""
        return self.kept_name or self.browser_id

    @property
    def known(self) -> bool:
        """Whether somebody has signed in here, and may have signed out since."""
        return bool(self.user_id or self.kept_name)


class OtherForm(Exception):
    """A form came with a replaced cookie value, and it is not the one that replaced it (D34)."""


def _key(context: RequestContext, cookie: str) -> bytes:
    return namespaces.key(namespaces.BROWSER, context.provider.policy.base_url, cookie)


def _retired_key(context: RequestContext, cookie: str) -> bytes:
    return namespaces.key(namespaces.RETIRED_BROWSER, context.provider.policy.base_url, cookie)


async def recognise(context: RequestContext, cookie: str | None) -> Browser | None:
    """The browser of a cookie value, None for a value that we never gave or that was replaced (D34)."""
    if not cookie:
        return None
    if is_live(context, cookie):
        retired = await context.provider.transient.get(
            namespaces.RETIRED_BROWSER.name, _retired_key(context, cookie), now=context.now
        )
        return None if retired is not None else Browser(browser_id=browser_id(context, cookie))
    value = await context.provider.transient.get(namespaces.BROWSER.name, _key(context, cookie), now=context.now)
    return None if value is None else msgspec.msgpack.decode(value, type=Browser)


async def issue_cookie(context: RequestContext) -> tuple[Browser, str]:
    """A new browser with the cookie value to give it, of 32 bytes, base64url; nothing is stored (D34).

    Anybody can be a new browser, again and again.
    """
    cookie = make(context)
    return Browser(browser_id=browser_id(context, cookie)), cookie


async def sign_out(context: RequestContext, unit: TransientUnit, old_cookie: str, browser: Browser) -> str:
    """Make a browser another one, to which nothing of before belongs; returns its new cookie value.

    Whoever signs in here is still known. Raises StaleStep where the old value is dead already: two browsers with one
    name would let the second pass for the one in which somebody signs in. Source: D30, D34, D47
    """
    if not await retire(context, unit, old_cookie):
        raise StaleStep
    another = Browser(browser_id=context.provider.new_id(), kept_name=browser.browser_key)
    cookie = context.provider.new_id()
    mapped = msgspec.msgpack.encode(another)
    await unit.put(namespaces.BROWSER.name, _key(context, cookie), mapped, namespaces.BROWSER.seconds)
    return cookie


async def retire(context: RequestContext, unit: TransientUnit, cookie: str) -> bool:
    """Kill a cookie value, before another takes its place; False where somebody was quicker (D34)."""
    if is_genuine(context, cookie):
        return await unit.add(
            namespaces.RETIRED_BROWSER.name, _retired_key(context, cookie), namespaces.RETIRED_BROWSER.seconds
        )
    return await unit.take(namespaces.BROWSER.name, _key(context, cookie)) is not None


async def revive(context: RequestContext, unit: TransientUnit, cookie: str, browser: Browser) -> None:
    """Undo `retire` where nothing came of it, also where a unit is not undone (D34)."""
    if is_genuine(context, cookie):
        await unit.take(namespaces.RETIRED_BROWSER.name, _retired_key(context, cookie))
        return
    mapped = msgspec.msgpack.encode(browser)
    await unit.put(namespaces.BROWSER.name, _key(context, cookie), mapped, namespaces.BROWSER.seconds)


def _successor(context: RequestContext, old_cookie: str, form: bytes) -> str:
    """The value after an old one: 32 bytes that nobody else can derive, the same for whoever sends the same again."""
    return context.keys.mac("browser", old_cookie, form.hex())


@dataclass(slots=True)
class SubmittedForm:
    """A form that proves a factor, as it came."""

    digest: bytes = b""
    """SHA-256 of it"""
    noted: bool = False
    """whether this request has noted that it is being handled"""
    waited: bool = False
    """whether it has waited for another request with the same form in vain, and is tried now"""


class FormHandled(Exception):
    """Another request with the very same form is being handled, or was (D15, D34)."""


async def note_form(context: RequestContext, unit: TransientUnit, cookie: str, form: SubmittedForm) -> None:
    """Note that a form is being handled, by the cookie value that it came with. Raises FormHandled.

    Another form of this browser that is being handled is left alone: both are tried. Source: D15, D34
    """
    if not form.digest or form.waited:
        return
    kind, key = namespaces.REPEATED_FORM, _repeated_key(context, cookie)
    form.noted = await unit.add(kind.name, key, kind.seconds, form.digest)
    if not form.noted and await unit.get(kind.name, key) == form.digest:
        raise FormHandled


async def is_handled(context: RequestContext, cookie: str, form: bytes) -> bool:
    """Whether a request with this form is being handled, or was and replaced the cookie value (D15, D34)."""
    key = _repeated_key(context, cookie)
    return await context.provider.transient.get(namespaces.REPEATED_FORM.name, key, now=context.now) == form


async def handled_in_vain(context: RequestContext, cookie: str, form: SubmittedForm) -> None:
    """Note that a form was handled and the cookie value stays: nobody need wait for it (D15, D34)."""
    if not form.noted or not await is_handled(context, cookie, form.digest):
        return
    async with context.provider.transient.unit(context.now) as unit:
        await unit.take(namespaces.REPEATED_FORM.name, _repeated_key(context, cookie))


async def replace_by_form(
    context: RequestContext, unit: TransientUnit, old_cookie: str, form: SubmittedForm, browser: Browser
) -> str:
    """Give a browser the value after one that was retired, and keep for a minute which form did so. Source: D15, D34"""
    cookie = _successor(context, old_cookie, form.digest)
    mapped = msgspec.msgpack.encode(browser)
    await unit.put(namespaces.BROWSER.name, _key(context, cookie), mapped, namespaces.BROWSER.seconds)
    if not form.noted:
        key = _repeated_key(context, old_cookie)
        await unit.put(namespaces.REPEATED_FORM.name, key, form.digest, namespaces.REPEATED_FORM.seconds)
    return cookie


async def replace_again(context: RequestContext, old_cookie: str | None, form: bytes) -> str | None:
    """The new cookie value for a browser that sends the form again which replaced its old one; else None.

    A double click makes a browser drop the first answer, and the new value with it. It is the same value in every
    answer, so that their order does not matter; where it has been replaced already, there is nothing to repeat.
    Someone who only has the old value does not know the form, with its code and the random part of its token.
    Raises OtherForm for any other form, of which the third ends this. Source: D15, D34
    """
    if not old_cookie:
        return None
    key = _repeated_key(context, old_cookie)
    sent = await context.provider.transient.get(namespaces.REPEATED_FORM.name, key, now=context.now)
    if sent is None:
        return None
    cookie = _successor(context, old_cookie, sent)
    browser = await recognise(context, cookie)
    if not hmac.compare_digest(sent, form):
        await _count_other_form(context, old_cookie, browser)
        raise OtherForm
    return cookie if browser else None


async def _count_other_form(context: RequestContext, old_cookie: str, browser: Browser | None) -> None:
    """Count and audit a form that is not the one which was sent; `browser` is who the old cookie value was."""
    key = namespaces.key(namespaces.REPEAT_MISSES, context.provider.policy.base_url, old_cookie)
    entry = context.event(
        ANONYMOUS, AuditAction.SIGN_IN_REPEAT, subject=browser.user_id if browser else "", outcome="refused"
    )
    async with context.provider.transient.unit(context.now) as unit:
        misses = await unit.count(namespaces.REPEAT_MISSES.name, key, namespaces.REPEAT_MISSES.seconds)
        if misses >= REPEAT_MISSES:
            await unit.take(namespaces.REPEATED_FORM.name, _repeated_key(context, old_cookie))
        if misses <= REPEAT_MISSES:
            await context.provider.registry.audit.write(entry, now=context.now)


def _repeated_key(context: RequestContext, old_cookie: str) -> bytes:
    return namespaces.key(namespaces.REPEATED_FORM, context.provider.policy.base_url, old_cookie)


async def session_of(context: RequestContext, browser: Browser | None) -> Session | None:
    """The live session of a browser, None without one or with single sign-on off (D30)."""
    if browser is None or not browser.session_id or not context.provider.policy.session_seconds:
        return None
    session = await context.provider.registry.sessions.get(browser.session_id, now=context.now)
    return None if session is None else of_browser(context, browser, session)


def of_browser(context: RequestContext, browser: Browser, session: Session) -> Session | None:
    """The session, None if it is not this browser's for single sign-on, or has ended (D30)."""
    if session.browser_id != browser.browser_id or session.purpose != "sign_in":
        return None
    return session if context.now < ends_at(context, session) else None


def ends_at(context: RequestContext, session: Session) -> int:
    """When a session ends that is not used any more, in epoch seconds; 0: it has, since single sign-on is off (D30)."""
    if session.purpose == "account":
        return min(session.seen_at + ACCOUNT_IDLE_SECONDS, session.expires_at)
    return session.expires_at if context.provider.policy.session_seconds else 0


def suffices(context: RequestContext, session: Session | None, request: AuthorizationRequest) -> bool:
    """Whether there is a session, and it answers the request without a new sign-in (D30, D40)."""
    return session is not None and single_sign_on.suffices(
        request,
        auth_time=session.auth_time,
        level=session.level,
        acr_prefix=context.provider.policy.acr_prefix,
        now=context.now,
    )
