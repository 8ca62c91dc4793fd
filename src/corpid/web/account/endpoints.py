"""Endpoints of the account: its table of pages, and most pages.

Without a sign-in to the account that is fresh enough for the page, the person is sent to sign in, and back. Source:
D34, D35, D53, D55
"""

from __future__ import annotations

import dataclasses
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from starlette.responses import Response, StreamingResponse

from corpid.flows.account import account_sessions, own_data, own_email, own_factors
from corpid.flows.account.account_sessions import AccountRequest, PastSignIn, SignedInBrowser
from corpid.flows.account.own_data import request_deletion, withdraw_deletion
from corpid.flows.authentication import completion, consents
from corpid.flows.authentication.own_pages import SIGN_OUT_PATH
from corpid.flows.directory import own_access
from corpid.flows.directory.approvals import NoRequest
from corpid.flows.directory.own_access import (
    AlreadyAsked,
    AlreadyHeld,
    Giver,
    OwnEntity,
    OwnRequest,
    OwnRole,
    TooManyAsked,
)
from corpid.flows.directory.write import Refused
from corpid.rules.authentication.sign_in import SecondFactorMethod, StaleStep
from corpid.rules.directory import access_texts, roles
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS, decision_reason
from corpid.rules.directory.parties import consent_items, consent_summary
from corpid.rules.directory.records import Assignment, Conflict, Entity, Service
from corpid.rules.directory.role_forms import row_of
from corpid.rules.directory.values import NO_END
from corpid.rules.limits import (
    ACCESS_REQUESTS_PER_DAY,
    ACCESS_TOKEN_SECONDS,
    DATA_COPIES_PER_DAY,
    EMAIL_UNDO_SECONDS,
    HOUR,
    MAILED_CODE_SECONDS,
    MINUTE,
)
from corpid.rules.oauth import acr
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web import sites
from corpid.web.account import factors
from corpid.web.account.factors import count_once
from corpid.web.account.page_context import AccountContext, AccountPage
from corpid.web.own_pages import serve
from corpid.web.pages import role_fields
from corpid.web.pages.components import (
    DISABLED,
    Actions,
    BoldName,
    Cell,
    Disclosure,
    Entry,
    EntryList,
    Facts,
    Field,
    ForeignText,
    Form,
    Heading,
    Items,
    Label,
    Link,
    LinkList,
    Links,
    Paragraph,
    QuietButtons,
    Radios,
    Subsection,
    Value,
    View,
)
from corpid.web.pages.errors import refusal_of
from corpid.web.pages.responses import NO_STORE
from corpid.web.pages.translations import LANGUAGES, lookup
from corpid.web.pages.views import Problem
from corpid.web.sites import CHANGED_MEANWHILE, FormResult, InvalidForm, NotFound, Section, Site

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from starlette.requests import Request

    from corpid.flows.account.own_sessions import SelfServiceRequest
    from corpid.flows.authentication.consents import SharedWith
    from corpid.rules.authentication.records import EmailChange
    from corpid.web.context import WebContext
    from corpid.web.pages.role_fields import Option

SHARING: Final = "sharing"
STOP_SHARING: Final = "stop-sharing"
BROWSER: Final = "browser"
DATA: Final = "data"
DELETE: Final = "delete"
_BROWSERS: Final = phrase("Where you are signed in")
_SIGN_INS: Final = phrase("Your last sign-ins")
_SHARING: Final = phrase("Services you share data with")
_EMAIL: Final = phrase("Your e-mail address")
_DOWNLOAD: Final = phrase("Download your data")
_SHOWN: Final[Mapping[tuple[tuple[str, ...], str], Phrase]] = {
    (acr.PASSKEY, ""): phrase("Passkey"),
    (acr.PASSWORD_AND_PASSKEY, ""): phrase("Password and passkey"),
    (acr.PASSWORD_AND_CODE, ""): phrase("Password and code"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.APP.value): phrase("Password and authenticator app"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.EMAIL.value): phrase("Password and code by e-mail"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.RECOVERY.value): phrase("Password and recovery code"),
}


ACCESS: Final = "access"
_ACCESS: Final = phrase("Your access")
_ASK: Final = phrase("Ask for access")
ASK: Final = "access/ask"
_MOST_UNFOLDED: Final = 4
"""organisations whose roles are shown at once"""
_LEVELS: Final[Mapping[str, Phrase]] = {
    "owner": phrase("You are an owner: you decide everything for this organisation here."),
    "administrator": phrase("You are an administrator: you decide who may act for this organisation."),
    "sub_administrator": phrase("You are a sub-administrator: you give roles at some services."),
}
_REQUEST_STATES: Final[Mapping[str, Phrase]] = {
    "approved": phrase("Approved"),
    "declined": phrase("Declined"),
    "withdrawn": phrase("Withdrawn"),
    "expired": phrase("Expired: nobody decided within 14 days"),
    "pending": phrase("Waiting for an administrator"),
}


async def show_overview(account: AccountContext) -> View:
    """The parts of the account and their state."""
    visit = account.visit
    held = await own_factors.load_factors(account.context, visit)
    browsers = await account_sessions.list_browsers(account.context, visit)
    clients = await consents.count_sharing_clients(account.context, visit.user.user_id)
    return account.build_page(
        phrase("Your account"),
        phrase("{name}, user name {user_name}", name=visit.user.name, user_name=visit.user.user_name),
        LinkList(
            links=(
                *factors.list_factor_links(account, held),
                await _email_link(account),
                *_other_links(account, len(browsers), clients),
                (account.link(ACCESS, _ACCESS), phrase("What you may do, and for which organisation")),
                *await _data_links(account),
            )
        ),
        Actions((Link(url=account.web.base_path + SIGN_OUT_PATH, text=phrase("Sign out")),)),
    )


def _other_links(account: AccountContext, browsers: int, clients: int) -> tuple[tuple[Link, Value], ...]:
    tag = account.visit.user.language
    language, services = lookup((tag,), LANGUAGES), counted(clients, "{count} service", "{count} services")
    return (
        (account.link("browsers", _BROWSERS), counted(browsers, "{count} browser", "{count} browsers")),
        (account.link("sign-ins", _SIGN_INS), phrase("When, where and how")),
        (account.link(SHARING, _SHARING), services if clients else phrase("None")),
        (account.link("language", phrase("Language")), language.name if language else tag),
    )


async def _data_links(account: AccountContext) -> tuple[tuple[Link, Value], ...]:
    """The links to the copy, and to the deletion."""
    asked = await own_data.find_deletion_request(account.context, account.visit) is not None
    state = phrase("You have asked for it") if asked else phrase("What happens, and how to ask for it")
    return (
        (account.link(DATA, _DOWNLOAD), phrase("Everything we keep about you, in one file")),
        (account.link(DELETE, phrase("Delete your account")), state),
    )


async def _email_link(account: AccountContext) -> tuple[Link, Value]:
    """The link to the address, with what it is."""
    address, change = account.visit.user.email, await own_email.find_pending_change(account.context, account.visit)
    state: Value = address or phrase("None")
    if change is not None:
        state = phrase("Changes to {address}", address=change.new_email)
    return account.link("email", phrase("E-mail address")), state


async def show_browsers(account: AccountContext) -> View:
    """The list of the person's signed-in browsers (D30)."""
    found = await account_sessions.list_browsers(account.context, account.visit)
    also = phrase(
        "Signing out everywhere else also stops sign-ins elsewhere that are still under way and not listed here."
    )
    return account.build_page(
        _BROWSERS,
        phrase("Services that you have already opened may keep you signed in. Sign out there as well."),
        EntryList(tuple(_browser_entry(account, each) for each in found)),
        Form(
            parts=(Paragraph(also, look="hint"),),
            button=phrase("Sign out everywhere else"),
            danger=True,
            decision="others",
        ),
    )


def _browser_entry(account: AccountContext, browser: SignedInBrowser) -> Entry:
    name = browser.given_name or browser.device or phrase("Another browser")
    used = phrase("Last used {moment}", moment=account.moment(browser.seen_at))
    sign_out = QuietButtons(
        buttons=(("", phrase("Sign out there")),),
        hidden=(("browser", browser.name),),
        about=phrase("{first} · {rest}", first=name, rest=account.moment(browser.seen_at).date()),
    )
    rename = phrase("Change its name") if browser.given_name else phrase("Give it a name")
    return Entry(
        title=name,
        notes=(
            browser.device if browser.given_name else None,
            phrase("This browser") if browser.this else used,
            phrase("Signed in {moment}", moment=account.moment(browser.since)),
        ),
        parts=(
            None if browser.this else sign_out,
            account.link(f"{BROWSER}/{browser.name}", rename, name) if browser.browser_key else None,
        ),
    )


async def this_browser(account: AccountContext) -> SignedInBrowser:
    """The browser that the page is about (D30).

    Raises StaleStep if the person is not signed in there, or not with a name.
    """
    named = account.page.partition("/")[2]
    for each in await account_sessions.list_browsers(account.context, account.visit):
        if each.name == named and each.browser_key:
            return each
    raise StaleStep


async def show_browser(account: AccountContext) -> View:
    """The name of one browser (D30).

    Raises StaleStep as `this_browser`.
    """
    shown = await this_browser(account)
    device: Value = shown.device or phrase("Another browser")
    return account.build_page(
        phrase("Name a browser"),
        phrase("{first} · {rest}", first=device, rest=phrase("This browser")) if shown.this else device,
        Form(
            parts=(
                factors.name_field(
                    account.form.get("name", shown.given_name),
                    phrase("A name that helps you recognise it. Leave it empty for no name."),
                ),
            ),
            button=phrase("Save name"),
        ),
        up=account.link("browsers", _BROWSERS),
    )


async def _end(account: AccountContext) -> str:
    visit = account.visit
    if account.form.get("decision") == "others":
        await account_sessions.end_others(account.context, visit)
        return "browsers"
    await account_sessions.end(account.context, visit, name=account.form.get("browser", ""))
    return "browser"


async def _name_browser(account: AccountContext) -> str:
    shown = await this_browser(account)
    await account_sessions.rename(account.context, account.visit, shown, typed=account.form.get("name", ""))
    return "browser-named"


async def show_sign_ins(account: AccountContext) -> View:
    """The person's last sign-ins."""
    found = await account_sessions.list_sign_ins(account.context, account.visit)
    return account.build_page(
        _SIGN_INS,
        phrase(
            "If one of these was not you, change your password and tell your organisation's {provider_name} administrator.",
            provider_name=account.provider.policy.name,
        ),
        EntryList(tuple(_sign_in_entry(account, each) for each in found)),
    )


def _sign_in_entry(account: AccountContext, past: PastSignIn) -> Entry:
    client = past.client_name or phrase("A service that is no longer available")
    entity = past.entity_name or phrase("an organisation that is no longer available")
    known = _SHOWN.get((past.amr, past.way)) or _SHOWN.get((past.amr, "")) or phrase("Another way")
    if past.way == completion.OF_SESSION:
        known = phrase("You were already signed in")
    return Entry(
        title=phrase("Your account") if past.account else client,
        notes=(
            account.moment(past.at),
            None if past.account else phrase("For {entity}", entity=entity),
            phrase("{first} · {rest}", first=known, rest=past.device) if past.device else known,
            phrase("Network: {network}", network=past.network) if past.network else None,
        ),
    )


async def show_sharing(account: AccountContext) -> View:
    """One page of what the person shares (D29).

    Raises StaleStep if there is no such page.
    """
    number = int(account.page.partition("/")[2] or 1)
    found, total = await consents.list_shares(account.context, account.visit.user.user_id, page=number)
    if number > 1 and not found:
        raise StaleStep
    up = account.link(SHARING, _SHARING) if number > 1 else None
    if not found:
        nothing = phrase("There are none. A service that needs your agreement is listed here once you have agreed.")
        return account.build_page(_SHARING, nothing, up=up)
    later = account.link(f"{SHARING}/{number - 1}" if number > 2 else SHARING, phrase("Later ones"))
    earlier = account.link(f"{SHARING}/{number + 1}", phrase("Earlier ones"))
    others = ((later,) if number > 1 else ()) + ((earlier,) if number * consents.SHARES_SHOWN < total else ())
    return account.build_page(
        _SHARING,
        phrase("You agreed to share data with these services. You are now asked again each time you sign in there.")
        if _asks_again(account.web)
        else phrase(
            "You agreed to share data with these services. Each receives it whenever you sign in there, without asking you again."
        ),
        EntryList(tuple(_shared_entry(account, each) for each in found)),
        Links(others) if others else None,
        up=up,
    )


def _asks_again(web: WebContext) -> bool:
    """Return whether no consent is remembered now; earlier ones keep their end (D29)."""
    return not web.provider.policy.consent_days


def _shared_entry(account: AccountContext, shared: SharedWith) -> Entry:
    about = phrase("with {client}, for {entity}", client=shared.client_name, entity=shared.entity_name)
    since, until = (account.moment(each).date() for each in (shared.since, shared.until))
    return Entry(
        title=shared.client_name,
        notes=(
            phrase("For {entity}", entity=shared.entity_name),
            phrase("Since {since}, until {until}", since=since, until=until),
        ),
        parts=(
            Disclosure(summary=phrase("What is shared"), about=about, parts=(Items(consent_items(shared.scopes)),)),
            account.link(f"{STOP_SHARING}/{shared.name}", phrase("Stop sharing"), about),
        ),
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
    shown, up = await this_shared(account), account.link(SHARING, _SHARING)
    client = shown.client_name
    again = phrase("If you stop, you will be asked again the next time you sign in to {client}.", client=client)
    return account.build_page(
        phrase("Stop sharing with {name}?", name=client),
        phrase("For {entity}, {client} receives:", entity=shown.entity_name, client=client),
        Facts(consent_summary(shown.scopes)),
        None if _asks_again(account.web) else again,
        phrase(
            "{client} keeps what it has already received and does not sign you out. If you have just signed in there, it "
            "can still look up your details for about {minutes} minutes.",
            client=client,
            minutes=ACCESS_TOKEN_SECONDS // MINUTE,
        ),
        Form(button=phrase("Stop sharing"), danger=True),
        up=up,
    )


async def _stop_sharing(account: AccountContext) -> str:
    await consents.withdraw(account.context, account.visit.user.user_id, await this_shared(account))
    return "sharing"


async def show_email(account: AccountContext) -> View:
    """The page of the address, in one of its states (D61).

    Enter a new one, prove it, or undo the change.
    """
    name = account.provider.policy.name
    if not account.provider.mail.works:
        return Problem(
            frame=account.frame(),
            heading=_EMAIL,
            paragraphs=(
                phrase("You cannot change your e-mail address here, because no e-mails are sent."),
                phrase("Ask the operator of {name} to change it.", name=name),
            ),
        )
    state = await own_email.load_email_state(account.context, account.visit)
    if state.waiting is not None:
        return _email_waiting(account, state.waiting)
    if state.wanted is not None:
        return _prove_email(account, state.wanted.email)
    from_file = phrase(
        "Your address comes from a list that the operator of {name} keeps. You can change it here: tell them the new one, "
        "so that the list says the same.",
        name=name,
    )
    return _ask_for_email(account, (*account.notes, *((from_file,) if state.from_file else ())))


def _email_waiting(account: AccountContext, change: EmailChange) -> View:
    address = account.visit.user.email
    new, at = BoldName(change.new_email), account.moment(change.effective_at)
    signed_out = phrase("If you stop the change, you are signed out everywhere else.")
    return account.build_page(
        phrase("Your e-mail address is about to change"),
        phrase("{address} becomes your address on {moment}.", address=new, moment=at),
        phrase(
            "Until then, e-mails go to {address}. We sent a link there that stops the change.",
            address=BoldName(address),
        )
        if address
        else phrase("Until then, you get no e-mails."),
        Form(parts=(Paragraph(signed_out, look="hint"),), button=phrase("Stop the change"), decision="keep"),
        back=None,
    )


def _prove_email(account: AccountContext, wanted: str) -> View:
    hint = phrase("It works for {minutes} minutes, on this page only.", minutes=MAILED_CODE_SECONDS // MINUTE)
    return account.build_page(
        phrase("Confirm your new e-mail address"),
        phrase("We sent a 6-digit code to {address}.", address=BoldName(wanted)),
        Form(
            parts=(Field(name="code", label=phrase("Code"), hint=hint, kind="code"),),
            button=phrase("Confirm"),
            decision="code",
        ),
        QuietButtons(buttons=(("again", phrase("Send a new code")), ("other", phrase("Use another address")))),
        back=None,
    )


def _ask_for_email(account: AccountContext, notes: tuple[Phrase, ...]) -> View:
    address, hours = account.visit.user.email, EMAIL_UNDO_SECONDS // HOUR
    typed = Field(
        name="email",
        label=phrase("New e-mail address"),
        hint=phrase("We send a 6-digit code there. You enter it on the next page."),
        kind="own email",
        value=account.form.get("email", ""),
        most=254,
    )
    effect = (
        phrase(
            "The new address takes effect after {hours} hours. Until then, e-mails go to your old address, and you can stop the change from there.",
            hours=hours,
        )
        if address
        else phrase("The new address takes effect after {hours} hours.", hours=hours)
    )
    return account.build_page(
        _EMAIL,
        phrase("E-mails to you go to {address}.", address=BoldName(address))
        if address
        else phrase("You have no e-mail address here yet."),
        Form(parts=(typed, Paragraph(effect, look="hint")), button=phrase("Send the code"), decision="send"),
        notes=notes,
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
    """The language of e-mails, and of pages in this browser."""
    known = lookup((account.visit.user.language,), LANGUAGES)
    choice = Radios(
        name="language",
        legend=phrase("Language of e-mails to you, and of pages in this browser"),
        options=tuple((each.tag, ForeignText(each.name, each.tag, each.direction), None) for each in LANGUAGES),
        value=known.tag if known else "",
    )
    return account.build_page(phrase("Your language"), Form(parts=(choice,), button=phrase("Save")))


async def _choose_language(account: AccountContext) -> str:
    wanted = account.form.get("language", "")
    if wanted not in {each.tag for each in LANGUAGES}:
        raise InvalidInput(phrase("Choose a language."))
    await account_sessions.choose_language(account.context, account.visit, language=wanted)
    return "language"


async def show_data(account: AccountContext) -> View:
    """The page that leads to the copy (D61)."""
    limit = phrase("You can download it {most} times a day.", most=DATA_COPIES_PER_DAY)
    return account.build_page(
        _DOWNLOAD,
        phrase("The file has everything that {provider} keeps about you:", provider=account.provider.policy.name),
        Items(
            (
                phrase("your name, user name, e-mail address and language"),
                phrase("how you sign in, without anything secret"),
                phrase("the organisations you act for, and what you may do for them"),
                phrase("what you agreed to share"),
                phrase("where you are signed in, and what was done with your account"),
            )
        ),
        phrase("Save it where nobody else can read it. It is a JSON file, which any text editor opens."),
        Form(parts=(Paragraph(limit, look="hint"),), button=phrase("Download my data")),
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
    provider = account.provider.policy.name
    if found:
        heading, form = (
            phrase("You have asked to delete your account"),
            Form(button=phrase("Withdraw my request"), decision="withdraw"),
        )
        first = phrase(
            "You asked on {moment}. The operator of {provider} will delete your account. Until then it works as before.",
            moment=account.moment(found.requested_at),
            provider=provider,
        )
    else:
        heading, form = (
            phrase("Delete your account?"),
            Form(button=phrase("Ask to delete my account"), danger=True, decision="request"),
        )
        first = phrase(
            "You ask for it here, and the operator of {provider} does it. Until then your account works as before, and "
            "you can withdraw your request.",
            provider=provider,
        )
    return account.build_page(
        heading,
        first,
        Heading(phrase("What is deleted")),
        Items(
            (
                phrase("your name, user name and e-mail address"),
                phrase("your password, passkeys, app and recovery codes: you can no longer sign in"),
                phrase("what you may do for every organisation: you can no longer act for any of them"),
                phrase("what you agreed to share"),
            )
        ),
        Heading(phrase("What is kept")),
        Items(
            (
                phrase("a record of what was done and when, with a number in place of your name"),
                phrase("what services have already received: ask them about it"),
            )
        ),
        phrase("A deleted account cannot be brought back."),
        form,
    )


async def _delete_account(account: AccountContext) -> str:
    decide = withdraw_deletion if account.form.get("decision") == "withdraw" else request_deletion
    await decide(account.context, account.visit)
    return "deletion-withdrawn" if decide is withdraw_deletion else "deletion"


# --- own access, and requests for more


async def show_access(account: AccountContext) -> View:
    """The organisations and roles of the reader, and their requests."""
    context, user_id = account.context, account.visit.user.user_id
    found = await own_access.list_own_access(context.provider.registry, user_id)
    asked = await own_access.list_requests(context, user_id)
    none = phrase("You do not belong to an organisation yet. Ask its administrator to invite you.")
    return account.build_page(
        _ACCESS,
        *(_organisation(account, each, folded=len(found) > _MOST_UNFOLDED) for each in found),
        None if found else Paragraph(none, look="empty"),
        Subsection(
            heading=phrase("What you asked for"),
            parts=(EntryList(tuple(_request_entry(account, each) for each in asked)),),
        )
        if asked
        else None,
        account.link(SHARING, phrase("Services that receive your details")),
    )


def _organisation(account: AccountContext, found: OwnEntity, *, folded: bool) -> Subsection:
    suspended = None if found.membership.enabled else Label(phrase("Suspended"), "warning")
    state = suspended or (None if found.entity.enabled else DISABLED)
    ordered = sorted(found.roles, key=lambda each: (each.role.row.end_date < account.context.today, each.role.row.key))
    level, name, number = _LEVELS.get(found.level), found.entity.name, len(ordered)
    more = account.link(
        ASK, phrase("Ask for access"), phrase("for {entity}", entity=name), entity=found.entity.entity_id
    )
    return Subsection(
        heading=name,
        state=state,
        folded=folded,
        note=counted(number, "{count} role", "{count} roles") if number else phrase("No role"),
        parts=(
            level,
            EntryList(tuple(_role_entry(each, account.context.day) for each in ordered)) if ordered else None,
            None if level or ordered else phrase("You have no role here yet."),
            None if state else more,
        ),
    )


def _role_entry(own: OwnRole, today: date) -> Entry:
    role = own.role
    state = access_texts.state(role.row, today)
    if state is None and roles.reasons(role, today.isoformat()):
        state = phrase("Not in effect")
    for_whom = role.client_entity or role.entity
    row = replace(role.row, end_date=roles.last_day(role, today.isoformat()) or NO_END)
    return Entry(
        title=access_texts.own_sentence(row, role.service, for_whom.name_for(role.entity.entity_id), today),
        notes=(
            Label(state, "warning") if state else None,
            *access_texts.details(row),
            _given(own.giver),
        ),
    )


def _given(giver: Giver) -> Phrase | None:
    match giver.kind:
        case "person":
            if giver.name:
                return phrase("Given by {name}", name=giver.name)
            return phrase("Given by an administrator who has left")
        case "you":
            return phrase("Given by you")
        case "operator":
            return phrase("Given by the operator of this service")
        case "program":
            return phrase("Given by a system of your organisation")
    return None


def _request_entry(account: AccountContext, own: OwnRequest) -> Entry:
    request, waits = own.request, own.state == "pending"
    sentence = access_texts.asked_sentence(own.row, own.service, own.entity.name, account.context.day)
    answer = decision_reason(request) if own.state in {"approved", "declined"} else ""
    asked_on = phrase("Asked on {day}:", day=account.moment(request.created_at).date())
    return Entry(
        title=sentence,
        notes=(
            Label(_REQUEST_STATES[own.state], "warning" if waits else ""),
            *access_texts.details(own.row),
            Cell(values=(asked_on, request.reason)),
            *(
                Cell(values=(phrase("{name}, {day}:", name=author, day=account.moment(each.at).date()), each.text))
                for each, author in own.comments
            ),
            Cell(values=(phrase("Answer:"), answer)) if answer else None,
        ),
        parts=(
            QuietButtons(
                buttons=(("", phrase("Withdraw this request")),),
                hidden=(("request", request.request_id),),
                about=sentence,
            ),
        )
        if waits
        else (),
    )


async def show_access_request(account: AccountContext) -> View:
    """The form of a request, one step at a time."""
    given, user_id, chosen = {**account.query, **account.form}, account.visit.user.user_id, []
    build = partial(account.build_page, _ASK, up=account.link(ACCESS, _ACCESS))
    back, asked = Actions((account.link(ACCESS, phrase("Go back")),)), given.get(role_fields.CHECK)
    entities = await own_access.list_requestable_entities(account.context, user_id)
    if not entities:
        return build(Paragraph(phrase("You do not belong to an organisation."), look="empty"), back)
    entity = entities[0] if len(entities) == 1 else _of_id(entities, given.get("entity", ""))
    if entity is None:
        options = tuple((each.entity_id, each.name, each.entity_id) for each in entities)
        wrong = (("entity", phrase("Choose an organisation.")),) if asked == "entity" else ()
        return build(_choice("entity", phrase("For which organisation?"), options), errors=wrong)
    chosen.append(_chosen(phrase("Organisation"), entity.name, account.path(ASK) if len(entities) > 1 else ""))
    services = await _requestable_services(account, entity)
    if not services:
        nothing = phrase("There is no service that {entity} may use.", entity=entity.name)
        return build(Facts(tuple(chosen)), Paragraph(nothing, look="empty"), back)
    kept = ("entity", entity.entity_id)
    service = next((each for each in services if each.service_id == given.get("service")), None)
    if service is None:
        options = tuple((each.service_id, each.name, each.description) for each in services)
        wrong = (("service", phrase("Choose a service.")),) if asked == "service" else ()
        choice = _choice("service", phrase("Which service?"), options, kept)
        return build(Facts(tuple(chosen)), choice, errors=wrong)
    chosen.append(_chosen(phrase("Service"), service.name, account.path(ASK, entity=entity.entity_id)))
    why, typed = phrase("Why do you need it?"), given.get("reason", "")
    nobody = phrase("Nobody else in your organisation can decide at present. Ask the operator of this service first.")
    return build(
        Facts(tuple(chosen)),
        Paragraph(nobody, look="warning")
        if await own_access.has_no_approver(account.context, user_id, entity, service)
        else phrase("An administrator of your organisation decides."),
        Form(
            parts=(
                *role_fields.build_fields(role_fields.read(given, service), account.context.day),
                Field(name="reason", label=why, value=typed, most=MOST_REASON_CHARACTERS),
            ),
            hidden=(kept, ("service", service.service_id)),
            button=phrase("Send request"),
        ),
    )


def _chosen(name: Phrase, value: str, another: str) -> tuple[Phrase, Value]:
    if not another:
        return name, value
    return name, Cell(values=(value, Link(url=another, text=phrase("Choose another"), about=name)))


def _choice(name: str, legend: Phrase, options: tuple[Option, ...], *kept: tuple[str, str]) -> Form:
    """The form of a step; what is chosen stands in the address."""
    return Form(
        get=True,
        hidden=(*kept, (role_fields.CHECK, name)),
        parts=(Radios(name=name, legend=legend, options=options),),
        button=phrase("Continue"),
    )


async def _requestable_services(account: AccountContext, entity: Entity) -> list[Service]:
    return await own_access.list_requestable_services(account.context, account.visit.user.user_id, entity)


def _of_id(entities: Sequence[Entity], entity_id: str) -> Entity | None:
    return next((each for each in entities if each.entity_id == entity_id), None)


async def send_access_request(account: AccountContext) -> FormResult:
    """Send the request. Raises InvalidInput, InvalidForm, NotFound."""
    context, form, user_id = account.context, account.form, account.visit.user.user_id
    entity = _of_id(await own_access.list_requestable_entities(context, user_id), form.get("entity", ""))
    if entity is None:
        raise NotFound
    service = next(
        (each for each in await _requestable_services(account, entity) if each.service_id == form.get("service")), None
    )
    if service is None:
        raise InvalidInput(phrase("Choose a service."), field="service")
    typed, reason = role_fields.read(form, service), " ".join(form.get("reason", "").split())
    wrong = role_fields.find_errors(typed, context.day)
    if not reason:
        wrong = (*wrong, ("reason", phrase("Say why you need it.")))
    elif len(reason) > MOST_REASON_CHARACTERS:
        wrong = (*wrong, ("reason", phrase("Enter at most {limit} characters.", limit=MOST_REASON_CHARACTERS)))
    if wrong:
        raise InvalidForm(*wrong)
    await _submit_request(
        account, row_of(typed, user_id=user_id, entity_id=entity.entity_id, today=context.day), reason
    )
    return FormResult("access-asked", ACCESS)


async def _submit_request(account: AccountContext, row: Assignment, reason: str) -> None:
    field = "role" if row.role else ""
    try:
        await own_access.request_access(account.context, row, reason=reason)
    except AlreadyHeld:
        raise InvalidInput(phrase("You already have this role."), field=field) from None
    except AlreadyAsked:
        raise InvalidInput(
            phrase("You have already asked for this. An administrator has to decide."), field=field
        ) from None
    except TooManyAsked:
        raise InvalidInput(
            phrase("You have asked {limit} times today. Try again tomorrow.", limit=ACCESS_REQUESTS_PER_DAY)
        ) from None
    except (Refused, Forbidden) as error:
        raise InvalidInput(refusal_of(error)) from None
    except Conflict:
        raise InvalidInput(CHANGED_MEANWHILE) from None


async def withdraw_access_request(account: AccountContext) -> FormResult:
    """Withdraw a request of the reader. Raises InvalidInput, NotFound."""
    try:
        await own_access.withdraw_request(account.context, account.visit.user.user_id, account.form.get("request", ""))
    except NoRequest:
        raise NotFound from None
    except (Refused, Conflict):
        raise InvalidInput(phrase("This request has already been decided.")) from None
    return FormResult("access-withdrawn", ACCESS)


ACCESS_SECTION: Final = Section[AccountContext](
    pages={
        ACCESS: sites.SitePage(view=show_access, submit=withdraw_access_request, leads_to=ACCESS),
        ASK: sites.SitePage(view=show_access_request, submit=send_access_request, leads_to=ACCESS),
    },
    fields=role_fields.FIELDS | {"entity", "service", "reason", "request"},
    filters=role_fields.FIELDS | {"entity", "service"},
    prefixes=(role_fields.PARAMETER,),
    changes={
        "access-asked": phrase("Your request has been sent to the administrators of your organisation."),
        "access-withdrawn": phrase("Your request has been withdrawn."),
    },
)


# --- the site


async def _arrive(at: sites.PageContext[SelfServiceRequest]) -> AccountRequest:
    return AccountRequest(user=at.visit.user, browser=at.visit.browser, session=at.visit.session)


async def _open(account: AccountContext) -> AccountContext:
    return dataclasses.replace(
        account, visit=await account_sessions.open_page(account.context, account.visit, account.page)
    )


async def _still_open(account: AccountContext) -> AccountContext:
    return dataclasses.replace(
        account, visit=await account_sessions.still_open(account.context, account.visit, account.page)
    )


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
    sections=(_SECTION, factors.SECTION, ACCESS_SECTION),
    context=AccountContext,
    arrive=_arrive,
    open=_open,
    still_open=_still_open,
    extend=_extend,
)


async def account(request: Request, web: WebContext) -> Response:
    """Every address of the account (D30, D34)."""
    return await serve(_SITE, request, web)
