"""The provider's own pages: sign-ins to them, and their forms (D15, D30, D53, D73).

The sessions of account, portal and console are none of single sign-on's: no client is answered with one, and single
sign-on opens none of these pages. A form that came too late is kept while its person signs in again; one that is sent
twice is claimed, and used once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from corpid.flows import encrypted_values, namespaces
from corpid.flows.authentication import browsers, interactions, own_pages, sessions
from corpid.flows.authentication.interactions import PendingRequest
from corpid.flows.encrypted_values import StoredForm
from corpid.flows.oauth.authorize import InteractionRedirect
from corpid.rules.authentication.sign_in import Interaction, fresh_expiry
from corpid.rules.directory.access import RECENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session, SessionPurpose
    from corpid.rules.directory.records import User

FORM_SECONDS: Final = RECENT_SECONDS - 300
"""how old a sign-in may be when a form of portal or console is opened, so that some minutes are left to fill it in"""


class TooOld(Exception):
    """The sign-in is too old for this change."""


@dataclass(frozen=True, kw_only=True)
class SelfServiceRequest:
    """A person, their browser, and its session for these pages."""

    user: User
    browser: Browser
    session: Session

    @property
    def form(self) -> str:
        """The binding of these pages' forms, in addition to the browser (D35)."""
        return f"{self.session.purpose} {self.session.session_id}"


AnyRequest = TypeVar("AnyRequest", bound=SelfServiceRequest)


async def load_request(
    context: RequestContext, browser: Browser | None, purpose: SessionPurpose
) -> SelfServiceRequest | None:
    """The person who is signed in to these pages here.

    None without a session, or after idling. Notes the use of the session, at most every two minutes. Source: D30, D34
    """
    session_id = "" if browser is None else sessions.find_session_id(browser, purpose)
    if browser is None or not session_id:
        return None
    session = await context.provider.registry.sessions.get(session_id, now=context.now)
    if session is None or browsers.of_browser(context, browser, session, purpose) is None:
        return None
    user = await context.provider.registry.directory.user(session.user_id)
    if user is None or not user.enabled:
        return None
    return SelfServiceRequest(user=user, browser=browser, session=await sessions.use_seldom(context, session))


async def use(context: RequestContext, request: AnyRequest) -> AnyRequest:
    """Note use of these pages, which restarts their idle time.

    Source: D30, WCAG 2.2.1
    """
    return replace(request, session=await sessions.use(context, request.session) or request.session)


async def enter(
    context: RequestContext,
    browser: Browser | None,
    *,
    page: str,
    fresh: bool = False,
    purpose: SessionPurpose = "account",
    renewed: Session | None = None,
    back: str | None = None,
) -> InteractionRedirect:
    """Begin a sign-in that leads to one of these pages.

    A browser that is new gets a cookie, and holds the sign-in. `fresh`: the person is signed in, but not lately enough
    for that page. `renewed`: the session whose person has to sign in, while it lives. Cancel leads to the page `back`,
    or to the home page without one. Raises TooManyRequests. Source: D15, D34, D54
    """
    at, cookie = (browser, None) if browser else await browsers.issue_cookie(context)
    begun = PendingRequest(
        interaction=Interaction(
            interaction_id=context.provider.new_id(),
            browser_id=at.browser_id,
            reference=context.provider.new_id(),
            request=own_pages.request(context, page, fresh=fresh, purpose=purpose),
            expires_at=fresh_expiry(context.now),
            renewed_session_id=renewed.session_id if renewed else "",
            back=back,
        )
    )
    held = ""
    if browser is None:
        held = interactions.encrypt_pending(context, begun)
    else:
        await interactions.store_pending(context, browser, begun)
    return InteractionRedirect(interaction_id=begun.interaction.interaction_id, cookie=cookie, held=held)


def _late_place(request: SelfServiceRequest, page: str) -> tuple[str, ...]:
    """The place of a late form of a person in this browser.

    They have another session afterwards.
    """
    session = request.session
    return ("late form", session.purpose, session.browser_id, session.user_id, session.entity_id, page)


async def keep_late_form(context: RequestContext, request: SelfServiceRequest, page: str, form: dict[str, str]) -> None:
    """Keep a late form while its person signs in again.

    Its step stays with it: what was changed meanwhile is not overwritten. Raises StoreUnavailable. Source: D54, D73
    """
    sealed = encrypted_values.encrypt_form(context, _late_place(request, page), StoredForm(fields=form))
    async with context.provider.transient.batch(context.now) as batch:
        await _late(context, request, page).put(batch, sealed.encode())


async def late_form(context: RequestContext, request: SelfServiceRequest, page: str, *, take: bool) -> dict[str, str]:
    """The form that was kept for this page; empty without one.

    It stays kept unless it is to be taken, which works once. Raises StoreUnavailable. Source: D54
    """
    entry = _late(context, request, page)
    if take:
        async with context.provider.transient.batch(context.now) as batch:
            sealed = await entry.take(batch)
    else:
        sealed = await entry.read(context.provider.transient, now=context.now)
    kept = encrypted_values.decrypt_form(context, _late_place(request, page), (sealed or b"").decode("latin-1"))
    return dict(kept.fields) if kept else {}


def digest_of(form: Mapping[str, str]) -> str:
    """SHA-256 of a form as it was sent, in hexadecimal.

    Its token is of one page that was shown once. Source: D73
    """
    return sha256(msgspec.json.encode(sorted(form.items()))).hexdigest()


def form_place(request: SelfServiceRequest, page: str, name: str) -> tuple[str, ...]:
    """The place of a form of a page in this session.

    As `encrypted_values` takes it. Source: D73
    """
    return ("own page", request.form, page, name)


async def forget_form(context: RequestContext, request: SelfServiceRequest, page: str, name: str) -> None:
    """Forget a stored form after its next submission. Raises StoreUnavailable. Source: D73"""
    async with context.provider.transient.batch(context.now) as batch:
        await encrypted_values.drop_form(context, batch, form_place(request, page, name))


def _late(context: RequestContext, request: SelfServiceRequest, page: str) -> Entry[bytes]:
    _, *who = _late_place(request, page)
    return namespaces.LATE_FORM.entry(context.provider.policy.base_url, *who)


def as_if_recent(context: RequestContext, request: SelfServiceRequest) -> SelfServiceRequest:
    """The person as after a sign-in now, to see their stored form.

    For a page that is only looked at: to send the form, they have to sign in. Source: D54
    """
    return replace(request, session=msgspec.structs.replace(request.session, auth_time=int(context.now)))


def require_recent(context: RequestContext, request: SelfServiceRequest, *, seconds: int = RECENT_SECONDS) -> None:
    """Raise TooOld unless the person signed in so many seconds ago.

    Source: D54
    """
    if context.now > request.session.auth_time + seconds:
        raise TooOld


class _AcceptedForm(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The form that a session has accepted last."""

    save_id: str
    """of this acceptance alone"""
    sent: str
    """page and digest of the form"""
    led_to: str


_NEWEST_FORM: Final = namespaces.NEWEST_FORM.with_record(_AcceptedForm)


@dataclass(frozen=True, kw_only=True, slots=True)
class FormClaim:
    """A form that nobody else may use until it is released."""

    sent: str
    entries: tuple[Entry[str], ...]
    """of the form; and of its use after another form was accepted"""


async def claim_form(
    context: RequestContext, request: SelfServiceRequest, page: str, form: Mapping[str, str]
) -> FormClaim | str:
    """Claim a form before it is used.

    If the session accepted the same form last, returns the address to which it led; empty while it is in use. If the
    session has accepted another form since, that result may no longer be true, and the form is used again. A claim ends
    after a minute, so that a process that died blocks nobody for longer. Raises StoreUnavailable. Source: D15, D73,
    docs/architecture.md, "One-time use"
    """
    digest = digest_of(form)
    sent, entry = f"{page} {digest}", _claim_entry(context, request, page, digest)
    async with context.provider.transient.batch(context.now) as batch:
        if await entry.add(batch, ""):
            return FormClaim(sent=sent, entries=(entry,))
        if not await entry.get(batch):
            return ""
        newest = await _newest_form(context, request).get(batch)
        if newest is not None and newest.sent == sent:
            return newest.led_to
        # An entry for each acceptance: of identical forms that come after it, the first to add that entry is used.
        again = _claim_entry(context, request, page, digest, newest.save_id if newest else "")
        return FormClaim(sent=sent, entries=(entry, again)) if await again.add(batch, "") else ""


async def release_form(context: RequestContext, claimed: FormClaim) -> None:
    """Release a claimed form that changed nothing. Raises StoreUnavailable. Source: D15, D73"""
    async with context.provider.transient.batch(context.now) as batch:
        await claimed.entries[-1].take(batch)


async def save_form(context: RequestContext, request: SelfServiceRequest, claimed: FormClaim, led_to: str) -> None:
    """Save the address to which an accepted form led.

    It counts for ten minutes, until the session accepts another form. Raises StoreUnavailable. Source: D15, D73
    """
    newest = _AcceptedForm(save_id=context.provider.new_id(), sent=claimed.sent, led_to=led_to)
    async with context.provider.transient.batch(context.now) as batch:
        for entry in claimed.entries:
            await entry.put(batch, led_to, seconds=_NEWEST_FORM.seconds)
        await _newest_form(context, request).put(batch, newest)


def _claim_entry(context: RequestContext, request: SelfServiceRequest, *parts: str) -> Entry[str]:
    return namespaces.SAVED_FORM.entry(context.provider.policy.base_url, request.session.session_id, *parts)


def _newest_form(context: RequestContext, request: SelfServiceRequest) -> Entry[_AcceptedForm]:
    return _NEWEST_FORM.entry(context.provider.policy.base_url, request.session.session_id)
