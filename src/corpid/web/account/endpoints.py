"""Endpoints of the account: its table of pages, and their forms.

Without a sign-in to the account that is fresh enough for the page, the person is sent to sign in, and back. Source:
D34, D35
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from corpid.flows.account import account_sessions, activity, own_data, own_email, own_factors
from corpid.flows.account.account_sessions import AccountRequest
from corpid.flows.account.own_data import request_deletion, withdraw_deletion
from corpid.flows.authentication import completion, consents
from corpid.flows.authentication.own_pages import SIGN_OUT_PATH
from corpid.flows.authentication.sign_in import InvalidInput
from corpid.rules.authentication.sign_in import SecondFactorMethod, StaleStep
from corpid.rules.directory.parties import consent_items, consent_summary
from corpid.rules.limits import ACCESS_TOKEN_SECONDS, DATA_COPIES_PER_DAY, EMAIL_UNDO_SECONDS, HOUR, MINUTE
from corpid.rules.oauth import acr
from corpid.texts import counted, phrase
from corpid.web.account import access_pages, factors, views
from corpid.web.account.factors import count_once
from corpid.web.account.page_context import AccountContext, AccountPage, account_path, frame
from corpid.web.own_pages import serve
from corpid.web.pages.layout import Link
from corpid.web.pages.responses import NO_STORE
from corpid.web.pages.translations import LANGUAGES, lookup
from corpid.web.pages.views import Problem
from corpid.web.sites import Section, Site

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.activity import PastSignIn, SignedInBrowser
    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.flows.authentication.consents import SharedWith
    from corpid.texts import Phrase
    from corpid.web import sites
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View

SHARING: Final = "sharing"
STOP_SHARING: Final = "stop-sharing"
BROWSER: Final = "browser"
DATA: Final = "data"
DELETE: Final = "delete"
_SHOWN: Final[Mapping[tuple[tuple[str, ...], str], Phrase]] = {
    (acr.PASSKEY, ""): phrase("Passkey"),
    (acr.PASSWORD_AND_PASSKEY, ""): phrase("Password and passkey"),
    (acr.PASSWORD_AND_CODE, ""): phrase("Password and code"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.APP.value): phrase("Password and authenticator app"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.EMAIL.value): phrase("Password and code by e-mail"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.RECOVERY.value): phrase("Password and recovery code"),
}


async def show_overview(account: AccountContext) -> View:
    """The parts of the account and their state."""
    visit = account.visit
    held = await own_factors.load_factors(account.context, visit)
    browsers = await activity.list_browsers(account.context, visit)
    clients = await consents.count_sharing_clients(account.context, visit.user.user_id)
    return views.Overview(
        frame=frame(account),
        name=visit.user.name,
        user_name=visit.user.user_name,
        sections=(
            *factors.list_factor_sections(account, held),
            await _email_section(account),
            *_other_sections(account, len(browsers), clients),
            access_pages.section(account),
            *await _data_sections(account),
        ),
        sign_out=account.web.base_path + SIGN_OUT_PATH,
        saved=account.saved,
    )


def _other_sections(account: AccountContext, browsers: int, clients: int) -> tuple[views.Section, ...]:
    web, tag = account.web, account.visit.user.language
    language = lookup((tag,), LANGUAGES)
    return (
        views.Section(
            url=account_path(web, "browsers"),
            name=phrase("Where you are signed in"),
            state=counted(browsers, "{count} browser", "{count} browsers"),
        ),
        views.Section(
            url=account_path(web, "sign-ins"), name=phrase("Your last sign-ins"), state=phrase("When, where and how")
        ),
        views.Section(
            url=account_path(web, SHARING),
            name=views.Sharing.heading,
            state=counted(clients, "{count} service", "{count} services") if clients else phrase("None"),
        ),
        views.Section(
            url=account_path(web, "language"),
            name=phrase("Language"),
            state=phrase("{language}", language=language.name if language else tag),
        ),
    )


async def _data_sections(account: AccountContext) -> tuple[views.Section, ...]:
    """The parts of the overview that lead to these pages."""
    asked = await own_data.find_deletion_request(account.context, account.visit) is not None
    return (
        views.Section(
            url=account_path(account.web, DATA),
            name=views.DownloadData.heading,
            state=phrase("Everything we keep about you, in one file"),
        ),
        views.Section(
            url=account_path(account.web, DELETE),
            name=phrase("Delete your account"),
            state=phrase("You have asked for it") if asked else phrase("What happens, and how to ask for it"),
        ),
    )


async def _email_section(account: AccountContext) -> views.Section:
    """The line of the address in the overview."""
    address, change = account.visit.user.email, await own_email.find_pending_change(account.context, account.visit)
    state = phrase("{address}", address=address) if address else phrase("None")
    if change is not None:
        state = phrase("Changes to {address}", address=change.new_email)
    return views.Section(url=account_path(account.web, "email"), name=phrase("E-mail address"), state=state)


async def show_browsers(account: AccountContext) -> View:
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
                since=account.moment(each.since),
                seen=account.moment(each.seen_at),
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


async def show_browser(account: AccountContext) -> View:
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


async def _end(account: AccountContext) -> str:
    visit = account.visit
    if account.form.get("decision") == "others":
        await activity.end_others(account.context, visit)
        return "browsers"
    await activity.end(account.context, visit, name=account.form.get("browser", ""))
    return "browser"


async def _name_browser(account: AccountContext) -> str:
    shown = await this_browser(account)
    await activity.rename(account.context, account.visit, shown, typed=account.form.get("name", ""))
    return "browser-named"


async def show_sign_ins(account: AccountContext) -> View:
    found = await activity.list_sign_ins(account.context, account.visit)
    return views.SignIns(frame=frame(account), sign_ins=tuple(_line(account, each) for each in found))


def _line(account: AccountContext, past: PastSignIn) -> views.SignInLine:
    client = past.client_name or phrase("A service that is no longer available")
    entity = past.entity_name or phrase("an organisation that is no longer available")
    asked = _SHOWN.get((past.amr, past.way)) or _SHOWN.get((past.amr, ""))
    known = phrase("You were already signed in") if past.way == completion.OF_SESSION else asked
    return views.SignInLine(
        at=account.moment(past.at),
        client="" if past.account else client,
        entity="" if past.account else entity,
        factors=known or phrase("Another way"),
        device=past.device,
        network=past.network,
    )


async def show_sharing(account: AccountContext) -> View:
    """One page of what the person shares (D29).

    Raises StaleStep if there is no such page.
    """
    web = account.web
    number = int(account.page.partition("/")[2] or 1)
    found, total = await consents.list_shares(account.context, account.visit.user.user_id, page=number)
    if number > 1 and not found:
        raise StaleStep
    return views.Sharing(
        frame=frame(account, up=_up_to_sharing(web) if number > 1 else None),
        lines=tuple(_shared_line(account, each) for each in found),
        asked_again=_asks_again(web),
        later=_page_of_sharing(web, number - 1) if number > 1 else "",
        earlier=_page_of_sharing(web, number + 1) if number * consents.SHARES_SHOWN < total else "",
        saved=account.saved,
    )


def _asks_again(web: WebContext) -> bool:
    """Return whether no consent is remembered now; earlier ones keep their end (D29)."""
    return not web.provider.policy.consent_days


def _page_of_sharing(web: WebContext, number: int) -> str:
    return account_path(web, f"{SHARING}/{number}" if number > 1 else SHARING)


def _up_to_sharing(web: WebContext) -> Link:
    return Link(url=account_path(web, SHARING), text=views.Sharing.heading)


def _shared_line(account: AccountContext, shared: SharedWith) -> views.SharedLine:
    return views.SharedLine(
        url=account_path(account.web, f"{STOP_SHARING}/{shared.name}"),
        client=shared.client_name,
        entity=shared.entity_name,
        since=account.moment(shared.since),
        until=account.moment(shared.until),
        summary=consent_summary(shared.scopes),
        items=consent_items(shared.scopes),
    )


async def this_shared(account: AccountContext) -> SharedWith:
    """Data that the page is about (D29).

    Raises StaleStep if it was withdrawn before, or is another person's.
    """
    name = account.page.partition("/")[2]
    found = await consents.find_share(account.context, account.visit.user.user_id, name=name)
    if found is None:
        raise StaleStep
    return found


async def show_stop_sharing(account: AccountContext) -> View:
    """The confirmation before consent is withdrawn (D29).

    Raises StaleStep as `this_shared`.
    """
    web, shown = account.web, await this_shared(account)
    return views.StopSharing(
        frame=frame(account, up=_up_to_sharing(web)),
        action=account_path(web, account.page),
        heading=phrase("Stop sharing with {name}?", name=shown.client_name),
        line=_shared_line(account, shown),
        keep=account_path(web, SHARING),
        minutes=ACCESS_TOKEN_SECONDS // MINUTE,
        asked_again=_asks_again(web),
        errors=account.errors,
    )


async def _stop_sharing(account: AccountContext) -> str:
    await consents.withdraw(account.context, account.visit.user.user_id, await this_shared(account))
    return "sharing"


async def show_email(account: AccountContext) -> View:
    """The page of the address, in one of its states (D61).

    Enter a new one, prove it, or undo the change.
    """
    web, address, action = account.web, account.visit.user.email, account_path(account.web, "email")
    if not account.provider.mail.works:
        return Problem(
            frame=frame(account),
            heading=views.ChangeEmail.heading,
            paragraphs=(
                phrase("You cannot change your e-mail address here, because no e-mails are sent."),
                phrase("Ask the operator of {name} to change it.", name=web.provider.policy.name),
            ),
        )
    state = await own_email.load_email_state(account.context, account.visit)
    if state.waiting is not None:
        return views.EmailWaiting(
            frame=frame(account),
            action=action,
            old=address,
            new=state.waiting.new_email,
            at=account.moment(state.waiting.effective_at),
            notes=account.notes,
            errors=account.errors,
        )
    if state.wanted is not None:
        return views.ProveEmail(
            frame=frame(account), action=action, new=state.wanted.email, notes=account.notes, errors=account.errors
        )
    from_file = phrase(
        "Your address comes from a list that the operator of {name} keeps. You can change it here: tell them the new one, "
        "so that the list says the same.",
        name=web.provider.policy.name,
    )
    return views.ChangeEmail(
        frame=frame(account),
        action=action,
        old=address,
        typed=account.form.get("email", ""),
        notes=(*account.notes, *((from_file,) if state.from_file else ())),
        errors=account.errors,
    )


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


async def show_language(account: AccountContext) -> View:
    known = lookup((account.visit.user.language,), LANGUAGES)
    return views.ChooseLanguage(
        frame=frame(account),
        action=account_path(account.web, "language"),
        chosen=known.tag if known else "",
        errors=account.errors,
    )


async def _choose_language(account: AccountContext) -> str:
    wanted = account.form.get("language", "")
    if wanted not in {each.tag for each in LANGUAGES}:
        raise InvalidInput(phrase("Choose a language."))
    await activity.choose_language(account.context, account.visit, language=wanted)
    return "language"


async def show_data(account: AccountContext) -> View:
    """The page that leads to the copy (D61)."""
    return views.DownloadData(
        frame=frame(account),
        action=account_path(account.web, DATA),
        most=DATA_COPIES_PER_DAY,
        back=account_path(account.web),
        notes=account.notes,
        errors=account.errors,
    )


async def download_data(account: AccountContext) -> Response:
    """The copy, as a file that the browser stores (RFC 6266).

    Raises InvalidInput, TooOld. Source: D61
    """
    pieces = await own_data.copy_data(account.context, account.visit)
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="my-data-{account.context.today}.json"'}
    return StreamingResponse(pieces, 200, headers, "application/json")


async def show_deletion(account: AccountContext) -> View:
    """A request to be deleted: made, or withdrawn (D61)."""
    found = await own_data.find_deletion_request(account.context, account.visit)
    return views.DeleteAccount(
        frame=frame(account),
        action=account_path(account.web, DELETE),
        requested=account.moment(found.requested_at) if found is not None else None,
        heading=phrase("You have asked to delete your account") if found else phrase("Delete your account?"),
        back=account_path(account.web),
        notes=account.notes,
        errors=account.errors,
    )


async def _delete_account(account: AccountContext) -> str:
    decide = withdraw_deletion if account.form.get("decision") == "withdraw" else request_deletion
    await decide(account.context, account.visit)
    return "deletion-withdrawn" if decide is withdraw_deletion else "deletion"


async def _arrive(at: sites.PageContext[SelfServiceRequest]) -> AccountRequest:
    return AccountRequest(user=at.visit.user, browser=at.visit.browser, session=at.visit.session)


async def _open(account: AccountContext) -> AccountContext:
    return replace(account, visit=await account_sessions.open_page(account.context, account.visit, account.page))


async def _still_open(account: AccountContext) -> AccountContext:
    return replace(account, visit=await account_sessions.still_open(account.context, account.visit, account.page))


async def _extend(account: AccountContext) -> None:
    await account_sessions.extend(account.context, account.visit)


_SECTION: Final = Section[AccountContext](
    pages={
        "": AccountPage(view=show_overview),
        "email": AccountPage(view=show_email, submit=count_once(_change_email), fresh=True),
        "browsers": AccountPage(view=show_browsers, submit=_end, leads_to="browsers"),
        "sign-ins": AccountPage(view=show_sign_ins),
        SHARING: AccountPage(view=show_sharing, leads_to=SHARING),
        DATA: AccountPage(view=show_data, submit=download_data, fresh=True),
        DELETE: AccountPage(view=show_deletion, submit=_delete_account, fresh=True),
        "language": AccountPage(view=show_language, submit=_choose_language, field="language"),
    },
    named_pages={
        re.compile(BROWSER + r"/[0-9a-f]{16}"): AccountPage(
            view=show_browser, submit=_name_browser, leads_to="browsers", field="name"
        ),
        re.compile(STOP_SHARING + r"/[0-9a-f]{16}"): AccountPage(
            view=show_stop_sharing, submit=_stop_sharing, leads_to=SHARING
        ),
        re.compile(SHARING + r"/[1-9][0-9]{0,4}"): AccountPage(view=show_sharing, leads_to=SHARING),
    },
    # `user_name` is for password managers, and not read.
    fields=frozenset({"user_name", "name", "code", "browser", "language", "decision", "email"}),
    changes={
        "email": phrase(
            "Your new e-mail address is confirmed. It takes effect in {hours} hours.", hours=EMAIL_UNDO_SECONDS // HOUR
        ),
        "email-kept": phrase(
            "Your e-mail address stays the same. If the change was not yours, choose a new password now."
        ),
        "sharing": phrase("You no longer share your data with that service."),
        "browser": phrase("You have been signed out there."),
        "browser-named": phrase("The name has been saved."),
        "browsers": phrase("You have been signed out everywhere else."),
        "language": phrase("Your language has been changed."),
        "deletion": phrase("Your request to delete your account has been received."),
        "deletion-withdrawn": phrase("You have withdrawn your request. Your account stays as it is."),
    },
)
_SITE: Final = Site(
    purpose="account",
    sections=(_SECTION, factors.SECTION, access_pages.SECTION),
    context=AccountContext,
    arrive=_arrive,
    open=_open,
    still_open=_still_open,
    extend=_extend,
)


async def account(request: Request, web: WebContext) -> Response:
    """Every address of the account (D30, D34)."""
    return await serve(_SITE, request, web)
