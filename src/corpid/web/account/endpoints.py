"""Endpoints of the account: its table of pages, and their forms.

Without a sign-in to the account that is fresh enough for the page, the person is sent to sign in, and back. Source:
D34, D35
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.flows.account import account_sessions, activity, own_email, own_factors, own_sessions
from corpid.flows.account.account_sessions import AccountRequest
from corpid.flows.account.own_data import request_deletion, withdraw_deletion
from corpid.flows.authentication import consents, throttle
from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.authentication.throttle import SentForm
from corpid.rules.limits import EMAIL_UNDO_SECONDS, HOUR
from corpid.texts import phrase
from corpid.web import sites
from corpid.web.account import access_pages, app_key, browser_pages, email_pages, own_data, pages
from corpid.web.account.page_context import AccountContext
from corpid.web.account.views import OTHER_CODES
from corpid.web.own_pages import serve
from corpid.web.pages.translations import LANGUAGES
from corpid.web.sites import Section, Site

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.texts import Phrase
    from corpid.web.context import WebContext

FIELDS: Final = frozenset(
    {
        "user_name", "name", "password", "code", "passkey", "kept", "browser", "language",
        "decision", "email",
    }
)  # fmt: skip
_PASSKEY: Final = re.compile(r"passkey/[0-9a-f]{16}")
_STOP_SHARING: Final = re.compile(pages.STOP_SHARING + r"/[0-9a-f]{16}")
_BROWSER: Final = re.compile(browser_pages.BROWSER + r"/[0-9a-f]{16}")
_SHARING: Final = re.compile(pages.SHARING + r"/[1-9][0-9]{0,4}")


AccountPage: TypeAlias = sites.SitePage[AccountContext]
Submit: TypeAlias = "Callable[[AccountContext], Awaitable[str]]"


def _counted_once(submit: Submit) -> Submit:
    """The submission, with rejections of the same bytes counted once (D73)."""

    async def submitted(account: AccountContext) -> str:
        visit = account.visit
        digest = bytes.fromhex(own_sessions.digest_of(account.form))
        sent = SentForm(place=own_sessions.form_place(visit, account.page, "sent"), digest=digest)
        try:
            return await submit(replace(account, visit=replace(visit, sent=sent)))
        except InvalidInput:
            await throttle.rejection_counts(account.context, sent)
            raise

    return submitted


async def _add_passkey(account: AccountContext) -> str:
    await own_factors.add(account.context, account.visit, account.cookie, answer=account.form.get("passkey", ""))
    return "passkey-added"


async def _change_passkey(account: AccountContext) -> str:
    visit = account.visit
    shown = await pages.this_passkey(account)
    if account.form.get("decision") == "remove":
        await own_factors.remove(account.context, visit, shown)
        return "passkey-removed"
    await own_factors.rename(account.context, visit, shown, name=account.form.get("name", ""))
    return "passkey-renamed"


async def _qr_code(account: AccountContext) -> Response:
    return app_key.picture(await pages.app_link(account))


async def _set_up_app(account: AccountContext) -> str:
    await own_factors.set_up_app(account.context, account.visit, code=account.form.get("code", ""))
    return "app"


async def _remove_app(account: AccountContext) -> str:
    await own_factors.remove_app(account.context, account.visit)
    return "app-removed"


async def _change_password(account: AccountContext) -> str:
    password = account.form.get("password", "")
    await own_factors.change_password(account.context, account.visit, password=password)
    return "password"


async def _replace_codes(account: AccountContext) -> str:
    shown, kept = account.form.get("step", ""), account.form.get("kept") == "yes"
    if account.form.get("decision") == OTHER_CODES:
        await own_factors.offer_other_codes(account.context, account.visit, shown=shown)
        return ""
    await own_factors.replace_codes(account.context, account.visit, shown=shown, kept=kept)
    return "codes"


async def _remove_codes(account: AccountContext) -> str:
    await own_factors.remove_codes(account.context, account.visit)
    return "codes-removed"


async def _end(account: AccountContext) -> str:
    visit = account.visit
    if account.form.get("decision") == "others":
        await activity.end_others(account.context, visit)
        return "browsers"
    await activity.end(account.context, visit, name=account.form.get("browser", ""))
    return "browser"


async def _name_browser(account: AccountContext) -> str:
    shown = await browser_pages.this_browser(account)
    await activity.rename(account.context, account.visit, shown, typed=account.form.get("name", ""))
    return "browser-named"


async def _stop_sharing(account: AccountContext) -> str:
    await consents.withdraw(account.context, account.visit.user.user_id, await pages.this_shared(account))
    return "sharing"


async def _change_email(account: AccountContext) -> str:
    """The forms of the e-mail address (D61)."""
    context, visit, form = account.context, account.visit, account.form
    match form.get("decision", ""):
        case "code":
            await own_email.prove(context, visit, code=form.get("code", ""))
            return "email"
        case "keep":
            await own_email.keep(context, visit)
            return "email-kept"
        case "again":
            await own_email.send_again(context, visit)
        case "other":
            await own_email.forget(context, visit)
        case _:
            await own_email.ask(context, visit, email=form.get("email", ""))
    return ""


async def _choose_language(account: AccountContext) -> str:
    wanted = account.form.get("language", "")
    if wanted not in {each.tag for each in LANGUAGES}:
        raise InvalidInput(phrase("Choose a language."))
    await activity.choose_language(account.context, account.visit, language=wanted)
    return "language"


async def _delete_account(account: AccountContext) -> str:
    decide = withdraw_deletion if account.form.get("decision") == "withdraw" else request_deletion
    await decide(account.context, account.visit)
    return "deletion-withdrawn" if decide is withdraw_deletion else "deletion"


_ONE_PASSKEY: Final = AccountPage(
    view=pages.passkey, submit=_change_passkey, leads_to="passkeys", field="name", fresh=True
)
_PAGES: Final[Mapping[str, AccountPage]] = {
    "": AccountPage(view=pages.overview),
    "passkeys": AccountPage(view=pages.passkeys),
    "new-passkey": AccountPage(
        view=pages.new_passkey, submit=_counted_once(_add_passkey), leads_to="passkeys", field="passkey", fresh=True
    ),
    "app": AccountPage(view=pages.app, submit=_counted_once(_set_up_app), field="code", fresh=True),
    "app/qr.svg": AccountPage(view=_qr_code, fresh=True, part_of="app"),
    "remove-app": AccountPage(view=pages.remove_app, submit=_remove_app, fresh=True),
    "password": AccountPage(view=pages.password, submit=_counted_once(_change_password), field="password", fresh=True),
    "codes": AccountPage(view=pages.codes, submit=_counted_once(_replace_codes), field="kept", fresh=True),
    "email": AccountPage(view=email_pages.email, submit=_counted_once(_change_email), fresh=True),
    "remove-codes": AccountPage(view=pages.remove_codes, submit=_remove_codes, fresh=True),
    "browsers": AccountPage(view=browser_pages.browsers, submit=_end, leads_to="browsers"),
    "sign-ins": AccountPage(view=pages.sign_ins),
    pages.SHARING: AccountPage(view=pages.sharing, leads_to=pages.SHARING),
    own_data.DATA: AccountPage(view=own_data.data, submit=own_data.download, fresh=True),
    own_data.DELETE: AccountPage(view=own_data.delete, submit=_delete_account, fresh=True),
    "language": AccountPage(view=pages.language, submit=_choose_language, field="language"),
}
"""by the path after `/account/`"""
_NAMED_PAGES: Final[Mapping[re.Pattern[str], AccountPage]] = {
    _PASSKEY: _ONE_PASSKEY,
    _BROWSER: AccountPage(view=browser_pages.browser, submit=_name_browser, leads_to="browsers", field="name"),
    _STOP_SHARING: AccountPage(view=pages.stop_sharing, submit=_stop_sharing, leads_to=pages.SHARING),
    _SHARING: _PAGES[pages.SHARING],
}
"""those whose path names one of several"""


_CHANGES: Final[Mapping[str, Phrase]] = {
    "passkey-added": phrase("Your passkey has been added."),
    "passkey-renamed": phrase("Your passkey has a new name."),
    "passkey-removed": phrase("Your passkey has been removed."),
    "app": phrase("Your authenticator app has been set up."),
    "app-removed": phrase("Your authenticator app has been removed."),
    "password": phrase("Your password has been changed."),
    "codes": phrase("Your new recovery codes now work."),
    "codes-removed": phrase("Your recovery codes have been removed."),
    "email": phrase(
        "Your new e-mail address is confirmed. It takes effect in {hours} hours.", hours=EMAIL_UNDO_SECONDS // HOUR
    ),
    "email-kept": phrase("Your e-mail address stays the same. If the change was not yours, choose a new password now."),
    "sharing": phrase("You no longer share your data with that service."),
    "browser": phrase("You have been signed out there."),
    "browser-named": phrase("The name has been saved."),
    "browsers": phrase("You have been signed out everywhere else."),
    "language": phrase("Your language has been changed."),
    "deletion": phrase("Your request to delete your account has been received."),
    "deletion-withdrawn": phrase("You have withdrawn your request. Your account stays as it is."),
}
"""by what a page's `submit` returns"""


async def _arrive(at: sites.PageContext[SelfServiceRequest]) -> AccountRequest:
    return AccountRequest(user=at.visit.user, browser=at.visit.browser, session=at.visit.session)


async def _open(account: AccountContext) -> AccountContext:
    return replace(account, visit=await account_sessions.open_page(account.context, account.visit, account.page))


async def _still_open(account: AccountContext) -> AccountContext:
    return replace(account, visit=await account_sessions.still_open(account.context, account.visit, account.page))


async def _extend(account: AccountContext) -> None:
    await account_sessions.extend(account.context, account.visit)


_SITE: Final = Site(
    purpose="account",
    sections=(Section(pages=_PAGES, named_pages=_NAMED_PAGES, fields=FIELDS, changes=_CHANGES), access_pages.SECTION),
    context=AccountContext,
    arrive=_arrive,
    open=_open,
    still_open=_still_open,
    extend=_extend,
)


async def account(request: Request, web: WebContext) -> Response:
    """Every address of the account (D30, D34)."""
    return await serve(_SITE, request, web)
