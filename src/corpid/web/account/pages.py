"""Pages of the account, from results of the flows (D44, D45, D46)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.flows.account import activity, own_factors
from corpid.flows.authentication import completion, consents
from corpid.flows.authentication.own_pages import SIGN_OUT_PATH
from corpid.rules.authentication.sign_in import SecondFactorMethod, StaleStep
from corpid.rules.directory.parties import consent_items, consent_summary
from corpid.rules.limits import ACCESS_TOKEN_SECONDS, MINUTE, PASSKEYS_PER_PERSON
from corpid.rules.oauth import acr
from corpid.texts import counted, phrase
from corpid.web.account import access_pages, app_key, email_pages, own_data, views
from corpid.web.account.page_context import account_path, frame, moment
from corpid.web.account.views import ChoosePassword, KeepCodes, SetUpApp
from corpid.web.pages.layout import Link
from corpid.web.pages.translations import LANGUAGES, lookup
from corpid.web.pages.views import AskPasskey
from corpid.web.sites import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.account.activity import PastSignIn
    from corpid.flows.authentication.consents import SharedWith
    from corpid.rules.authentication.records import Passkey, PersonFactors
    from corpid.texts import Phrase
    from corpid.web.account.page_context import AccountContext
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View

SHARING: Final = "sharing"
STOP_SHARING: Final = "stop-sharing"
_NONE: Final = phrase("None")
_IN_USE: Final = phrase("In use")
_NEEDS_A_PASSWORD: Final = phrase("Works once you have a password")
_NEEDS_A_SECOND_FACTOR: Final = phrase("Works once you have a second step")
_SHOWN: Final[Mapping[tuple[tuple[str, ...], str], Phrase]] = {
    (acr.PASSKEY, ""): phrase("Passkey"),
    (acr.PASSWORD_AND_PASSKEY, ""): phrase("Password and passkey"),
    (acr.PASSWORD_AND_CODE, ""): phrase("Password and code"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.APP.value): phrase("Password and authenticator app"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.EMAIL.value): phrase("Password and code by e-mail"),
    (acr.PASSWORD_AND_CODE, SecondFactorMethod.RECOVERY.value): phrase("Password and recovery code"),
}


async def overview(account: AccountContext) -> View:
    """The parts of the account and their state."""
    visit = account.visit
    factors = await own_factors.load_factors(account.context, visit)
    browsers = await activity.list_browsers(account.context, visit)
    clients = await consents.count_sharing_clients(account.context, visit.user.user_id)
    return views.Overview(
        frame=frame(account),
        name=visit.user.name,
        user_name=visit.user.user_name,
        sections=(
            *_factor_sections(account, factors),
            await email_pages.section(account),
            *_other_sections(account, len(browsers), clients),
            access_pages.section(account),
            *await own_data.sections(account),
        ),
        sign_out=account.web.base_path + SIGN_OUT_PATH,
        saved=account.saved,
    )


def _factor_sections(account: AccountContext, factors: PersonFactors) -> tuple[views.Section, ...]:
    web, number, used_at = account.web, len(factors.passkeys), own_factors.app_used_at(factors)
    return (
        views.Section(
            url=account_path(web, "passkeys"),
            name=phrase("Passkeys"),
            state=counted(number, "{count} passkey", "{count} passkeys") if number else _NONE,
        ),
        views.Section(url=account_path(web, "password"), name=phrase("Password"), state=_of_password(account, factors)),
        views.Section(
            url=account_path(web, "app"),
            name=phrase("Authenticator app"),
            state=_beside_password(factors, _IN_USE if factors.app else None),
            used=moment(web, used_at) if used_at else None,
        ),
        views.Section(
            url=account_path(web, "codes"),
            name=phrase("Recovery codes"),
            state=_beside_password(factors, _left(factors)),
        ),
    )


def _of_password(account: AccountContext, factors: PersonFactors) -> Phrase:
    if not factors.password:
        return _NONE
    goes = own_factors.go_with_password(account.context, account.visit, factors)
    return _IN_USE if goes else _NEEDS_A_SECOND_FACTOR


def _left(factors: PersonFactors) -> Phrase | None:
    left = factors.codes
    return counted(left, "{count} code left", "{count} codes left") if left else None


def _beside_password(factors: PersonFactors, state: Phrase | None) -> Phrase:
    if state is None:
        return _NONE
    return state if factors.password else _NEEDS_A_PASSWORD


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
            url=account_path(web, "sign-ins"),
            name=phrase("Your last sign-ins"),
            state=phrase("When, where and how"),
        ),
        views.Section(
            url=account_path(web, SHARING),
            name=views.Sharing.heading,
            state=counted(clients, "{count} service", "{count} services") if clients else _NONE,
        ),
        views.Section(
            url=account_path(web, "language"),
            name=phrase("Language"),
            state=phrase("{language}", language=language.name if language else tag),
        ),
    )


async def sharing(account: AccountContext) -> View:
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
        lines=tuple(_shared_line(web, each) for each in found),
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


def _shared_line(web: WebContext, shared: SharedWith) -> views.SharedLine:
    return views.SharedLine(
        url=account_path(web, f"{STOP_SHARING}/{shared.name}"),
        client=shared.client_name,
        entity=shared.entity_name,
        since=moment(web, shared.since),
        until=moment(web, shared.until),
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


async def stop_sharing(account: AccountContext) -> View:
    """The confirmation before consent is withdrawn (D29).

    Raises StaleStep as `this_shared`.
    """
    web, shown = account.web, await this_shared(account)
    return views.StopSharing(
        frame=frame(account, up=_up_to_sharing(web)),
        action=account_path(web, account.page),
        heading=phrase("Stop sharing with {name}?", name=shown.client_name),
        line=_shared_line(web, shown),
        keep=account_path(web, SHARING),
        minutes=ACCESS_TOKEN_SECONDS // MINUTE,
        asked_again=_asks_again(web),
        errors=account.errors,
    )


async def sign_ins(account: AccountContext) -> View:
    """The last sign-ins."""
    found = await activity.list_sign_ins(account.context, account.visit)
    return views.SignIns(frame=frame(account), sign_ins=tuple(_line(account.web, each) for each in found))


def _line(web: WebContext, past: PastSignIn) -> views.SignInLine:
    client = past.client_name or phrase("A service that is no longer available")
    entity = past.entity_name or phrase("an organisation that is no longer available")
    asked = _SHOWN.get((past.amr, past.way)) or _SHOWN.get((past.amr, ""))
    known = phrase("You were already signed in") if past.way == completion.OF_SESSION else asked
    return views.SignInLine(
        at=moment(web, past.at),
        client="" if past.account else client,
        entity="" if past.account else entity,
        factors=known or phrase("Another way"),
        device=past.device,
        network=past.network,
    )


async def language(account: AccountContext) -> View:
    """Choosing a language."""
    known = lookup((account.visit.user.language,), LANGUAGES)
    return views.ChooseLanguage(
        frame=frame(account),
        action=account_path(account.web, "language"),
        chosen=known.tag if known else "",
        errors=account.errors,
    )


_UP_TO_PASSKEYS: Final = phrase("Your passkeys")
_REFERENCE_CHARACTERS: Final = 16
_APP_ALONE: Final = phrase("An app works only with a password, and you do not have one yet. Choose one as well.")
_CODES_ALONE: Final = phrase(
    "Recovery codes work only with a password, and you do not have one yet. Choose one as well."
)
_PASSWORD_ALONE: Final = phrase(
    "A password works only with a second step, such as a code, and you do not have one yet. Set up an app as well."
)
_REPLACED: Final = phrase("Your current app stops working once the new one is set up.")


def reference(passkey: Passkey) -> str:
    """The identifier of a passkey in its page's address."""
    return sha256(passkey.credential_id.encode()).hexdigest()[:_REFERENCE_CHARACTERS]


async def _factors(account: AccountContext) -> PersonFactors:
    return await own_factors.load_factors(account.context, account.visit)


def _passkey_line(web: WebContext, passkey: Passkey) -> views.PasskeyLine:
    return views.PasskeyLine(
        url=account_path(web, f"passkey/{reference(passkey)}"),
        name=passkey.name,
        made=moment(web, passkey.created_at),
        used=moment(web, passkey.used_at) if passkey.used_at else None,
        synced=passkey.synced,
    )


async def passkeys(account: AccountContext) -> View:
    """The passkeys of a person (D46)."""
    web, factors = account.web, await _factors(account)
    works, full = own_factors.are_passkeys_offered(account.context), own_factors.full(factors)
    return views.Passkeys(
        frame=frame(account),
        passkeys=tuple(_passkey_line(web, each) for each in factors.passkeys),
        add=account_path(web, "new-passkey") if works and not full else "",
        full=phrase("You have {passkeys} passkeys, which is the most you can have.", passkeys=PASSKEYS_PER_PERSON)
        if full
        else None,
        saved=account.saved,
    )


def _up_to_passkeys(web: WebContext) -> Link:
    return Link(url=account_path(web, "passkeys"), text=_UP_TO_PASSKEYS)


async def new_passkey(account: AccountContext) -> View:
    """The page that creates a passkey (D46).

    Raises NotFound if unsupported here, StaleStep at the limit.
    """
    web = account.web
    if not own_factors.are_passkeys_offered(account.context):
        raise NotFound
    if own_factors.full(await _factors(account)):
        raise StaleStep
    return views.AddPasskey(
        frame=frame(account, up=_up_to_passkeys(web)),
        passkey=AskPasskey(
            action=account_path(web, "new-passkey"), options=await own_factors.options(account.context, account.visit)
        ),
        notes=account.notes,
        errors=account.errors,
    )


async def this_passkey(account: AccountContext) -> Passkey:
    """The passkey of the page.

    Raises NotFound if it is missing or another person's (D46).
    """
    named = account.page.partition("/")[2]
    found = next((each for each in (await _factors(account)).passkeys if reference(each) == named), None)
    if found is None:
        raise NotFound
    return found


async def passkey(account: AccountContext) -> View:
    """One passkey, which can be renamed and removed (D46)."""
    web, shown = account.web, await this_passkey(account)
    return views.Passkey(
        frame=frame(account, up=_up_to_passkeys(web)),
        action=account_path(web, account.page),
        passkey=_passkey_line(web, shown),
        heading=phrase("{name}", name=shown.name),
        back=account_path(web, "passkeys"),
        typed=account.form.get("name", shown.name),
        notes=account.notes,
        errors=account.errors,
    )


async def password(account: AccountContext) -> View:
    """Choosing a new password (D44)."""
    factors = await _factors(account)
    return ChoosePassword(
        frame=frame(account),
        action=account_path(account.web, "password"),
        heading=phrase("Choose a new password") if factors.password else phrase("Choose a password"),
        user_name=account.visit.user.user_name,
        notes=(
            *account.notes,
            *(() if own_factors.go_with_password(account.context, account.visit, factors) else (_PASSWORD_ALONE,)),
        ),
        errors=account.errors,
    )


def _notes(account: AccountContext, factors: PersonFactors, alone: Phrase) -> tuple[Phrase, ...]:
    return (*account.notes, *(() if factors.password else (alone,)))


async def app(account: AccountContext) -> View:
    """Setting up an app, which may replace another one (D45)."""
    web, factors = account.web, await _factors(account)
    shown = await own_factors.offer(account.context, account.visit, "app")
    secret = own_factors.app_secret(account.context, shown)
    return SetUpApp(
        frame=frame(account),
        action=account_path(web, "app"),
        picture=account_path(web, "app/qr.svg"),
        app_link=_app_link(account, secret),
        secret=app_key.grouped(secret),
        notes=(*_notes(account, factors, _APP_ALONE), *((_REPLACED,) if factors.app else ())),
        remove=Link(url=account_path(web, "remove-app"), text=phrase("Remove your current app"))
        if factors.app
        else None,
        errors=account.errors,
    )


async def app_link(account: AccountContext) -> str:
    """The content of the QR code (D45)."""
    shown = await own_factors.offer(account.context, account.visit, "app")
    return _app_link(account, own_factors.app_secret(account.context, shown))


def _app_link(account: AccountContext, secret: str) -> str:
    return app_key.link(account.web, account.visit.user, secret)


async def remove_app(account: AccountContext) -> View:
    """The confirmation before the app is removed (D45).

    Raises StaleStep if there is none.
    """
    factors = await _factors(account)
    if not factors.app:
        raise StaleStep
    used_at = own_factors.app_used_at(factors)
    return views.Remove(
        frame=frame(account),
        action=account_path(account.web, "remove-app"),
        heading=phrase("Remove the authenticator app?"),
        consequence=phrase("Its codes will no longer work, and you will be signed out everywhere else."),
        used=moment(account.web, used_at) if used_at else None,
        button=phrase("Remove the app"),
        back=account_path(account.web),
        notes=account.notes,
        errors=account.errors,
    )


async def codes(account: AccountContext) -> View:
    """New recovery codes, until the person confirms them.

    They are the same for a day, and can be read for a minute. Source: D45, D73
    """
    web, factors = account.web, await _factors(account)
    shown = await own_factors.offer(account.context, account.visit, "codes")
    return KeepCodes(
        frame=frame(account, step_name=shown),
        action=account_path(web, "codes"),
        codes=own_factors.codes(account.context, shown)
        if own_factors.are_readable(account.context, account.visit, shown)
        else (),
        replaces=factors.codes > 0,
        back=account_path(web),
        notes=_notes(account, factors, _CODES_ALONE),
        remove=Link(url=account_path(web, "remove-codes"), text=phrase("Remove your current codes"))
        if factors.codes
        else None,
        errors=account.errors,
    )


async def remove_codes(account: AccountContext) -> View:
    """The confirmation before the recovery codes are removed (D45).

    Raises StaleStep if there are none.
    """
    left = (await _factors(account)).codes
    if not left:
        raise StaleStep
    return views.Remove(
        frame=frame(account),
        action=account_path(account.web, "remove-codes"),
        heading=phrase("Remove your recovery codes?"),
        consequence=counted(
            left,
            "The {count} code that is left will no longer work, and you will be signed out everywhere else.",
            "The {count} codes that are left will no longer work, and you will be signed out everywhere else.",
        ),
        button=phrase("Remove the codes"),
        back=account_path(account.web),
        notes=account.notes,
        errors=account.errors,
    )
