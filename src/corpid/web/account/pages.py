"""Pages of the account, from results of the flows (DESIGN "Pages")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.account import activity, own_factors
from corpid.flows.authentication import completion
from corpid.flows.authentication.second_factor_methods import Way
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


async def overview(turn: AccountContext) -> View:
    """Everything there is, and how it stands."""
    context, visit = turn.context, turn.visit
    factors = await own_factors.of(context.provider, visit)
    browsers = await activity.signed_in(context.provider, turn.who, visit)
    return views.Overview(
        frame=frame(turn),
        name=visit.user.name,
        user_name=visit.user.user_name,
        sections=(*_factor_sections(turn, factors), *_other_sections(turn, len(browsers))),
        sign_out=context.base_path + SIGN_OUT_PATH,
        saved=turn.saved,
    )


def _factor_sections(turn: AccountContext, factors: HeldFactors) -> tuple[views.Section, ...]:
    context, number, used_at = turn.context, len(factors.passkeys), own_factors.app_used_at(factors)
    return (
        views.Section(
            url=account_path(context, "passkeys"),
            name=phrase("Passkeys"),
            state=counted(number, "{count} passkey", "{count} passkeys") if number else _NONE,
        ),
        views.Section(
            url=account_path(context, "password"), name=phrase("Password"), state=_of_password(turn, factors)
        ),
        views.Section(
            url=account_path(context, "app"),
            name=phrase("Authenticator app"),
            state=_beside_password(factors, _IN_USE if factors.app else None),
            used=moment(context, used_at) if used_at else None,
        ),
        views.Section(
            url=account_path(context, "codes"),
            name=phrase("Recovery codes"),
            state=_beside_password(factors, _left(factors)),
        ),
    )


def _of_password(turn: AccountContext, factors: HeldFactors) -> Phrase:
    if not factors.password:
        return _NONE
    goes = own_factors.go_with_password(turn.context.provider, turn.visit, factors)
    return _IN_USE if goes else _NEEDS_A_SECOND_FACTOR


def _left(factors: HeldFactors) -> Phrase | None:
    left = factors.codes
    return counted(left, "{count} code left", "{count} codes left") if left else None


def _beside_password(factors: HeldFactors, state: Phrase | None) -> Phrase:
    if state is None:
        return _NONE
    return state if factors.password else _NEEDS_A_PASSWORD


def _other_sections(turn: AccountContext, browsers: int) -> tuple[views.Section, ...]:
    context, tag = turn.context, turn.visit.user.language
    language = lookup((tag,), LANGUAGES)
    return (
        views.Section(
            url=account_path(context, "browsers"),
            name=phrase("Where you are signed in"),
            state=counted(browsers, "{count} browser", "{count} browsers"),
        ),
        views.Section(
            url=account_path(context, "sign-ins"),
            name=phrase("Your last sign-ins"),
            state=phrase("When, where and how"),
        ),
        views.Section(
            url=account_path(context, "language"),
            name=phrase("Language"),
            state=phrase("{language}", language=language.name if language else tag),
        ),
    )


async def browsers(turn: AccountContext) -> View:
    """The list of the person's signed-in browsers (D30)."""
    context = turn.context
    return views.Browsers(
        frame=frame(turn),
        action=account_path(context, "browsers"),
        browsers=tuple(
            views.BrowserLine(
                name=each.name,
                device=each.device,
                since=moment(context, each.since),
                seen=moment(context, each.seen_at),
                this=each.this,
            )
            for each in await activity.signed_in(context.provider, turn.who, turn.visit)
        ),
        saved=turn.saved,
    )


async def sign_ins(turn: AccountContext) -> View:
    """The last sign-ins."""
    found = await activity.past(turn.context.provider, turn.visit)
    return views.SignIns(frame=frame(turn), sign_ins=tuple(_line(turn.context, each) for each in found))


def _line(context: WebContext, past: PastSignIn) -> views.SignInLine:
    client = past.client_name or phrase("A service that is no longer available")
    entity = past.entity_name or phrase("an organisation that is no longer available")
    asked = _SHOWN.get((past.amr, past.way)) or _SHOWN.get((past.amr, ""))
    known = phrase("You were already signed in") if past.way == completion.OF_SESSION else asked
    return views.SignInLine(
        at=moment(context, past.at),
        client="" if past.account else client,
        entity="" if past.account else entity,
        factors=known or phrase("Another way"),
        device=past.device,
    )


async def language(turn: AccountContext) -> View:
    """Choosing a language."""
    known = lookup((turn.visit.user.language,), LANGUAGES)
    return views.ChooseLanguage(
        frame=frame(turn),
        action=account_path(turn.context, "language"),
        chosen=known.tag if known else "",
        errors=turn.errors,
    )
