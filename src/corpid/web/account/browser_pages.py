"""Pages of the browsers in which a person is signed in (D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.account import activity
from corpid.rules.authentication.sign_in import StaleStep
from corpid.web.account import views
from corpid.web.account.page_context import account_path, frame, moment
from corpid.web.pages.layout import Link

if TYPE_CHECKING:
    from corpid.flows.account.activity import SignedInBrowser
    from corpid.web.account.page_context import AccountContext
    from corpid.web.pages.views import View

BROWSER: Final = "browser"


async def browsers(account: AccountContext) -> View:
    """The list of the person's signed-in browsers (D30)."""
    web = account.web
    return views.Browsers(
        frame=frame(account),
        action=account_path(web, "browsers"),
        browsers=tuple(
            views.BrowserLine(
                name=each.name,
                given_name=each.given_name,
                rename=account_path(web, f"{BROWSER}/{each.name}") if each.browser_key else "",
                device=each.device,
                since=moment(web, each.since),
                seen=moment(web, each.seen_at),
                this=each.this,
            )
            for each in await activity.list_browsers(account.context, account.visit)
        ),
        back=account_path(web),
        saved=account.saved,
    )


async def this_browser(account: AccountContext) -> SignedInBrowser:
    """The browser that the page is about (D30).

    Raises StaleStep if the person is not signed in there, or not with a name.
    """
    named = account.page.partition("/")[2]
    for each in await activity.list_browsers(account.context, account.visit):
        if each.name == named and each.browser_key:
            return each
    raise StaleStep


async def browser(account: AccountContext) -> View:
    """The name of one browser (D30).

    Raises StaleStep as `this_browser`.
    """
    web, shown = account.web, await this_browser(account)
    return views.NameBrowser(
        frame=frame(account, up=Link(url=account_path(web, "browsers"), text=views.Browsers.heading)),
        action=account_path(web, account.page),
        device=shown.device,
        this=shown.this,
        typed=account.form.get("name", shown.given_name),
        back=account_path(web, "browsers"),
        errors=account.errors,
    )
