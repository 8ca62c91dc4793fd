"""From what the flows say of an account to the pages that show it (DESIGN "Pages")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows import completion
from corpid.flows.account import activity, own_factors
from corpid.flows.ways import Way
from corpid.protocol import assurance
from corpid.texts import counted, phrase
from corpid.web.account import views
from corpid.web.account.turns import frame, moment, place
from corpid.web.languages import LANGUAGES, lookup
from corpid.web.signin.sign_out import SIGN_OUT_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.directory.held_factors import HeldFactors
    from corpid.flows.account.activity import PastSignIn
    from corpid.texts import Phrase
    from corpid.web.account.turns import Turn
    from corpid.web.endpoints import Desk
    from corpid.web.views import View

_NONE: Final = phrase("None")
_IN_USE: Final = phrase("In use")
_NEEDS_A_PASSWORD: Final = phrase("Works once you have a password")
_NEEDS_A_SECOND_FACTOR: Final = phrase("Works once you have a second factor")
_SHOWN: Final[Mapping[tuple[tuple[str, ...], str], Phrase]] = {
    (assurance.PASSKEY, ""): phrase("Passkey"),
    (assurance.PASSWORD_AND_PASSKEY, ""): phrase("Password and passkey"),
    (assurance.PASSWORD_AND_CODE, ""): phrase("Password and code"),
    (assurance.PASSWORD_AND_CODE, Way.APP.value): phrase("Password and authenticator app"),
    (assurance.PASSWORD_AND_CODE, Way.EMAIL.value): phrase("Password and code by e-mail"),
    (assurance.PASSWORD_AND_CODE, Way.RECOVERY.value): phrase("Password and recovery code"),
}


async def overview(turn: Turn) -> View:
    """Everything there is, and how it stands."""
    desk, visit = turn.desk, turn.visit
    factors = await own_factors.of(desk.provider, visit)
    browsers = await activity.signed_in(desk.provider, turn.who, visit)
    return views.Overview(
        frame=frame(turn),
        name=visit.user.name,
        user_name=visit.user.user_name,
        sections=(*_factor_sections(turn, factors), *_other_sections(turn, len(browsers))),
        sign_out=desk.base_path + SIGN_OUT_PATH,
        saved=turn.saved,
    )


def _factor_sections(turn: Turn, factors: HeldFactors) -> tuple[views.Section, ...]:
    desk, number, used_at = turn.desk, len(factors.passkeys), own_factors.app_used_at(factors)
    return (
        views.Section(
            url=place(desk, "passkeys"),
            name=phrase("Passkeys"),
            state=counted(number, "{count} passkey", "{count} passkeys") if number else _NONE,
        ),
        views.Section(url=place(desk, "password"), name=phrase("Password"), state=_of_password(turn, factors)),
        views.Section(
            url=place(desk, "app"),
            name=phrase("Authenticator app"),
            state=_beside_password(factors, _IN_USE if factors.app else None),
            used=moment(desk, used_at) if used_at else None,
        ),
        views.Section(
            url=place(desk, "codes"), name=phrase("Recovery codes"), state=_beside_password(factors, _left(factors))
        ),
    )


def _of_password(turn: Turn, factors: HeldFactors) -> Phrase:
    if not factors.password:
        return _NONE
    goes = own_factors.go_with_password(turn.desk.provider, turn.visit, factors)
    return _IN_USE if goes else _NEEDS_A_SECOND_FACTOR


def _left(factors: HeldFactors) -> Phrase | None:
    left = factors.codes
    return counted(left, "{count} code left", "{count} codes left") if left else None


def _beside_password(factors: HeldFactors, state: Phrase | None) -> Phrase:
    if state is None:
        return _NONE
    return state if factors.password else _NEEDS_A_PASSWORD


def _other_sections(turn: Turn, browsers: int) -> tuple[views.Section, ...]:
    desk, tag = turn.desk, turn.visit.user.language
    language = lookup((tag,), LANGUAGES)
    return (
        views.Section(
            url=place(desk, "browsers"),
            name=phrase("Where you are signed in"),
            state=counted(browsers, "{count} browser", "{count} browsers"),
        ),
        views.Section(
            url=place(desk, "sign-ins"), name=phrase("Your last sign-ins"), state=phrase("When, where and how")
        ),
        views.Section(
            url=place(desk, "language"),
            name=phrase("Language"),
            state=phrase("{language}", language=language.name if language else tag),
        ),
    )


async def browsers(turn: Turn) -> View:
    """Where the person is signed in (D30)."""
    desk = turn.desk
    return views.Browsers(
        frame=frame(turn),
        action=place(desk, "browsers"),
        browsers=tuple(
            views.BrowserLine(
                name=each.name,
                device=each.device,
                since=moment(desk, each.since),
                seen=moment(desk, each.seen_at),
                this=each.this,
            )
            for each in await activity.signed_in(desk.provider, turn.who, turn.visit)
        ),
        saved=turn.saved,
    )


async def sign_ins(turn: Turn) -> View:
    """The last sign-ins."""
    found = await activity.past(turn.desk.provider, turn.visit)
    return views.SignIns(frame=frame(turn), sign_ins=tuple(_line(turn.desk, each) for each in found))


def _line(desk: Desk, past: PastSignIn) -> views.SignInLine:
    client = past.client_name or phrase("A service that is no longer available")
    entity = past.entity_name or phrase("an organisation that is no longer available")
    asked = _SHOWN.get((past.amr, past.way)) or _SHOWN.get((past.amr, ""))
    known = phrase("You were already signed in") if past.way == completion.OF_SESSION else asked
    return views.SignInLine(
        at=moment(desk, past.at),
        client="" if past.account else client,
        entity="" if past.account else entity,
        factors=known or phrase("Another way"),
        device=past.device,
    )


async def language(turn: Turn) -> View:
    """Choosing a language."""
    known = lookup((turn.visit.user.language,), LANGUAGES)
    return views.ChooseLanguage(
        frame=frame(turn),
        action=place(turn.desk, "language"),
        chosen=known.tag if known else "",
        errors=turn.errors,
    )
