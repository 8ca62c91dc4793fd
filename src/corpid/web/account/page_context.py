"""The person at an account page, and the page's frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.flows.account import account_sessions
from corpid.flows.account.account_sessions import AccountRequest
from corpid.flows.authentication import interactions
from corpid.texts import phrase
from corpid.web import sites
from corpid.web.own_pages import EXTEND
from corpid.web.pages.layout import ButtonForm, Frame, Link, time_limit
from corpid.web.sites import PageContext, site_path

if TYPE_CHECKING:
    from corpid.web.context import WebContext

AccountContext: TypeAlias = PageContext[AccountRequest]
"""a person at an account page, with their form, if sent"""
AccountPage: TypeAlias = sites.SitePage[AccountContext]
"""a page of this site"""
_UP: Final = phrase("Your account")
_SIGN_IN_AGAIN: Final = phrase("After that you can sign in again.")
_PAGE_STAYS: Final = phrase(
    "You cannot get more time, but you can sign in again: what you see here stays the same until you use it."
)
OPENED_PATH: Final = "/link/"
"""under base_url; what follows names an opened link"""


def account_path(web: WebContext, page: str = "") -> str:
    return site_path(web, "account", page)


def frame(account: AccountContext, *, up: Link | None = None, step_name: str = "") -> Frame:
    """The frame of an account page: time limit and link up.

    The overview has no link up. Source: D30, WCAG 2.2.1
    """
    web, visit = account.web, account.visit
    more = ButtonForm(action=account_path(web, f"{EXTEND}/{account.page}" if account.page else EXTEND))
    return Frame(
        form_token=interactions.form_token(account.context, visit.browser.browser_id, visit.form),
        step_name=step_name,
        up=up or (Link(url=account_path(web), text=_UP) if account.page else None),
        limit=time_limit(
            account_sessions.ends_at(account.context, visit),
            now=account.context.now,
            zone=web.provider.policy.timezone,
            more=more if account_sessions.extendable(account.context, visit) else None,
            at_end=_SIGN_IN_AGAIN if visit.opening is None else _PAGE_STAYS,
            of_session=visit.opening is None,
        ),
        account_language=visit.user.language,
        here=account_path(web, account.here),
    )
