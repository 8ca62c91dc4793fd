"""Sign-ins to the provider's own pages: account, portal and console (D30, D53).

These sessions are none of single sign-on's: no client is answered with one, and single sign-on opens none of these
pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from corpid.flows import namespaces, stored_forms
from corpid.flows.authentication import browsers, own_pages, sessions
from corpid.flows.oauth import pending_requests
from corpid.flows.oauth.authorization import InteractionRedirect
from corpid.flows.oauth.pending_requests import PendingRequest
from corpid.flows.stored_forms import StoredForm
from corpid.rules.authentication.sign_in import Interaction, fresh_expiry
from corpid.rules.directory.access import RECENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import Session, SessionPurpose
    from corpid.rules.directory.records import User


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


Visit = TypeVar("Visit", bound=SelfServiceRequest)


async def visit(context: RequestContext, browser: Browser | None, purpose: SessionPurpose) -> SelfServiceRequest | None:
    """The person who is signed in to these pages here.

    None without a session, or after idling. Notes the use of the session, at most every two minutes. Source: D30, D34
    """
    session_id = "" if browser is None else sessions.held_for(browser, purpose)
    if browser is None or not session_id:
        return None
    session = await context.provider.registry.sessions.get(session_id, now=context.now)
    if session is None or browsers.of_browser(context, browser, session, purpose) is None:
        return None
    user = await context.provider.registry.directory.user(session.user_id)
    if user is None or not user.enabled:
        return None
    return SelfServiceRequest(user=user, browser=browser, session=await sessions.use_seldom(context, session))


async def use(context: RequestContext, visit: Visit) -> Visit:
    """Note use of these pages, which restarts their idle time.

    Source: D30, WCAG 2.2.1
    """
    return replace(visit, session=await sessions.use(context, visit.session) or visit.session)


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
        held = pending_requests.encrypt_pending(context, begun)
    else:
        await pending_requests.store(context, browser, begun)
    return InteractionRedirect(interaction_id=begun.interaction.interaction_id, cookie=cookie, held=held)


def _late_place(visit: SelfServiceRequest, page: str) -> tuple[str, ...]:
    """The place of a late form of a person in this browser.

    They have another session afterwards.
    """
    session = visit.session
    return ("late form", session.purpose, session.browser_id, session.user_id, session.entity_id, page)


async def keep_late_form(context: RequestContext, visit: SelfServiceRequest, page: str, form: dict[str, str]) -> None:
    """Keep a late form while its person signs in again.

    Its step stays with it: what was changed meanwhile is not overwritten. Raises StoreUnavailable. Source: D54, D73
    """
    sealed = stored_forms.encrypt_form(context, _late_place(visit, page), StoredForm(fields=form))
    async with context.provider.transient.batch(context.now) as batch:
        await _late(context, visit, page).put(batch, sealed.encode())


async def late_form(context: RequestContext, visit: SelfServiceRequest, page: str, *, take: bool) -> dict[str, str]:
    """The form that was kept for this page; empty without one.

    It stays kept unless it is to be taken, which works once. Raises StoreUnavailable. Source: D54
    """
    entry = _late(context, visit, page)
    if take:
        async with context.provider.transient.batch(context.now) as batch:
            sealed = await entry.take(batch)
    else:
        sealed = await entry.read(context.provider.transient, now=context.now)
    kept = stored_forms.decrypt_form(context, _late_place(visit, page), (sealed or b"").decode("latin-1"))
    return dict(kept.fields) if kept else {}


def digest_of(form: Mapping[str, str]) -> str:
    """SHA-256 of a form as it was sent, in hexadecimal.

    Its token is of one page that was shown once. Source: D73
    """
    return sha256(msgspec.json.encode(sorted(form.items()))).hexdigest()


def form_place(visit: SelfServiceRequest, page: str, name: str) -> tuple[str, ...]:
    """The place of a form of a page in this session.

    As `stored_forms` takes it. Source: D73
    """
    return ("own page", visit.form, page, name)


async def forget_form(context: RequestContext, visit: SelfServiceRequest, page: str, name: str) -> None:
    """Forget a stored form after its next submission. Raises StoreUnavailable. Source: D73"""
    async with context.provider.transient.batch(context.now) as batch:
        await stored_forms.drop_form(context, batch, form_place(visit, page, name))


def _late(context: RequestContext, visit: SelfServiceRequest, page: str) -> Entry[bytes]:
    _, *who = _late_place(visit, page)
    return namespaces.LATE_FORM.entry(context.provider.policy.base_url, *who)


def as_if_recent(context: RequestContext, visit: SelfServiceRequest) -> SelfServiceRequest:
    """The person as after a sign-in now, to see their stored form.

    For a page that is only looked at: to send the form, they have to sign in. Source: D54
    """
    return replace(visit, session=msgspec.structs.replace(visit.session, auth_time=int(context.now)))


FORM_SECONDS: Final = RECENT_SECONDS - 300
"""how old a sign-in may be when a form of portal or console is opened, so that some minutes are left to fill it in"""


def require_recent(context: RequestContext, visit: SelfServiceRequest, *, seconds: int = RECENT_SECONDS) -> None:
    """Raise TooOld unless the person signed in so many seconds ago.

    Source: D54
    """
    if context.now > visit.session.auth_time + seconds:
        raise TooOld
