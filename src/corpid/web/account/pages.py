"""Pages of the account, from results of the flows (DESIGN "Pages")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.account import activity, own_factors
from corpid.flows.authentication import completion
from corpid.rules.authentication.sign_in import Way
from corpid.rules.oauth import acr
from corpid.texts import counted, phrase
from corpid.web.account import views
from corpid.web.account.page_context import account_path, frame, moment
from corpid.web.authentication.sign_out import SIGN_OUT_PATH
from corpid.web.pages.translations import LANGUAGES, lookup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.account.activity import PastSignIn
    from corpid.rules.authentication.person_factors import HeldFactors
    from corpid.texts import Phrase
    from corpid.web.account.page_context import AccountContext
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View

_NONE: Final = phrase("None")
_IN_USE: Final = phrase("In use")
_NEEDS_A_PASSWORD: Final = phrase("Works once you have a password")
_NEEDS_A_SECOND_FACTOR: Final = phrase("Works once you have a second factor")
_SHOWN: Final[Mapping[tuple[tuple[str, ...], str], Phrase]] = {
    (acr.PASSKEY, ""): phrase("Passkey"),
    (acr.PASSWORD_AND_PASSKEY, ""): phrase("Password and passkey"),
    (acr.PASSWORD_AND_CODE, ""): phrase("Password and code"),
    (acr.PASSWORD_AND_CODE, Way.APP.value): phrase("Password and authenticator app"),
    (acr.PASSWORD_AND_CODE, Way.EMAIL.value): phrase("Password and code by e-mail"),
    (acr.PASSWORD_AND_CODE, Way.RECOVERY.value): phrase("Password and recovery code"),
}


async def overview(account: AccountContext) -> View:
    """The parts of the account and their state."""
    visit = account.visit
    factors = await own_factors.of(account.context, visit)
    browsers = await activity.signed_in(account.context, visit)
    return views.Overview(
        frame=frame(account),
        name=visit.user.name,
        user_name=visit.user.user_name,
        sections=(*_factor_sections(account, factors), *_other_sections(account, len(browsers))),
        sign_out=account.web.base_path + SIGN_OUT_PATH,
        saved=account.saved,
    )


def _factor_sections(account: AccountContext, factors: HeldFactors) -> tuple[views.Section, ...]:
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


def _of_password(account: AccountContext, factors: HeldFactors) -> Phrase:
    if not factors.password:
        return _NONE
    goes = own_factors.go_with_password(account.context, account.visit, factors)
    return _IN_USE if goes else _NEEDS_A_SECOND_FACTOR


def _left(factors: HeldFactors) -> Phrase | None:
    left = factors.codes
    return counted(left, "{count} code left", "{count} codes left") if left else None


def _beside_password(factors: HeldFactors, state: Phrase | None) -> Phrase:
    if state is None:
        return _NONE
    return state if factors.password else _NEEDS_A_PASSWORD


def _other_sections(account: AccountContext, browsers: int) -> tuple[views.Section, ...]:
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
            url=account_path(web, "language"),
            name=phrase("Language"),
            state=phrase("{language}", language=language.name if language else tag),
        ),
    )


async def browsers(account: AccountContext) -> View:
    """The list of the person's signed-in browsers (D30)."""
    web = account.web
    return views.Browsers(
        frame=frame(account),
        action=account_path(web, "browsers"),
        browsers=tuple(
            views.BrowserLine(
                name=each.name,
                device=each.device,
                since=moment(web, each.since),
                seen=moment(web, each.seen_at),
                this=each.this,
            )
            for each in await activity.signed_in(account.context, account.visit)
        ),
        saved=account.saved,
    )


async def sign_ins(account: AccountContext) -> View:
    """The last sign-ins."""
    found = await activity.past(account.context, account.visit)
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
