"""The person at an account page, and the page's frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.flows.account import account_sessions
from corpid.flows.account.account_sessions import AccountRequest
from corpid.flows.authentication import interactions
from corpid.texts import phrase
from corpid.web import sites
from corpid.web.own_pages import EXTEND
from corpid.web.pages.components import ButtonForm, Frame, Link, time_limit
from corpid.web.sites import PageContext, site_path

if TYPE_CHECKING:
    from corpid.web.context import WebContext

_UP: Final = phrase("Your account")
_SIGN_IN_AGAIN: Final = phrase("After that you can sign in again.")
_PAGE_STAYS: Final = phrase(
    "You cannot get more time, but you can sign in again: what you see here stays the same until you use it."
)
OPENED_PATH: Final = "/link/"
"""under base_url; what follows names an opened link"""


def account_path(web: WebContext, page: str = "") -> str:
    return site_path(web, "account", page)


@dataclass(frozen=True, kw_only=True)
class AccountContext(PageContext[AccountRequest]):
    """A person at an account page, with their form, if sent."""

    def section_link(self, section: str) -> Link:
        return self.link(section, _UP)

    def frame(self, *, up: Link | None = None, names: str = "", step_name: str = "") -> Frame:
        """The frame of an account page: time limit and link up.

        The overview has no link up. Source: D30, WCAG 2.2.1
        """
        web, visit = self.web, self.visit
        more = ButtonForm(action=account_path(web, f"{EXTEND}/{self.page}" if self.page else EXTEND))
        return Frame(
            form_token=interactions.form_token(self.context, visit.browser.browser_id, visit.form),
            step_name=step_name,
            names=names,
            up=up or (self.section_link("") if self.page else None),
            limit=time_limit(
                account_sessions.ends_at(self.context, visit),
                now=self.context.now,
                zone=web.provider.policy.timezone,
                more=more if account_sessions.extendable(self.context, visit) else None,
                at_end=_SIGN_IN_AGAIN if visit.opening is None else _PAGE_STAYS,
                of_session=visit.opening is None,
            ),
            account_language=visit.user.language,
            here=account_path(web, self.here),
        )


AccountPage: TypeAlias = sites.SitePage[AccountContext]
"""a page of this site"""
