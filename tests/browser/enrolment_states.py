"""The pages on which a person sets up how they sign in, or gets back in, in the states that look different."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs
from msgspec.structs import replace

from corpid.texts import phrase
from corpid.web.account import enrolment
from corpid.web.account.enrolment import gone_page, other_browser_page, stopped_page
from corpid.web.account.links import former_link_page
from corpid.web.account.views import ChoosePassword, KeepCodes, SetUpApp
from corpid.web.pages.layout import Frame, Link
from corpid.web.pages.views import SecondFactorForm
from tests.browser.common_states import LIMIT, NO_PASSKEY, PASSKEY, WRONG, WRONG_CODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View

OWN: Final = Frame(
    form_token="t0ken",
    step=(1, 3),
    step_name="1",
    limit=structs.replace(LIMIT, seconds=3600),
    under_way=True,
)
LAST: Final = structs.replace(
    OWN,
    step=(1, 2),
    limit=structs.replace(
        LIMIT,
        seconds=3600,
        extend=None,
        last_time=phrase("You cannot get more time. If you run out, ask for a new link."),
    ),
)
PASSWORD: Final = ChoosePassword(
    frame=OWN,
    action="/password",
    heading=phrase("Set up your sign-in"),
    user_name="wei.ling",
    hint=phrase(
        "At least {shortest} characters. Several words make a good one; you do not need special characters.",
        shortest=12,
    ),
    passkey=PASSKEY,
)
APP: Final = SetUpApp(
    frame=structs.replace(OWN, step=(2, 3)),
    action="/app",
    picture="/qr.svg",
    app_link="otpauth://totp/CorpID:wei.ling?secret=JBSWY3DPEHPK3PXP",
    secret="JBSW Y3DP EHPK 3PXP JBSW Y3DP EHPK 3PXP",
    passkey=PASSKEY,
    notes=(
        phrase("After your password we ask for a second step, so that nobody can sign in with your password alone."),
    ),
)
MAILED: Final = enrolment.TypeMailedCode(
    frame=APP.frame,
    action="/code",
    heading=phrase("Enter the code we sent you"),
    asked=SecondFactorForm(
        hint=phrase(
            "We sent it to {address}. It works for 10 minutes, on this page only.", address="w•••@harbour.example"
        ),
        ways_action="/way",
        ways=(("email", phrase("Send a new code")), ("app", phrase("Set up an authenticator app"))),
    ),
)
CODES: Final = KeepCodes(
    frame=structs.replace(OWN, step=(3, 3)),
    action="/codes",
    codes=tuple(f"{'abcdefghij'[n]}7kq-m2xw-r{n + 2 % 6}tz" for n in range(10)),
    replaces=True,
)
SECOND: Final = enrolment.ProveSecondFactor(frame=LAST, action="/second", takes_codes=True, passkey=PASSKEY)
ASKS_FIRST: Final = phrase("We can send a 6-digit code to {address}.", address="w•••@harbour.example")

LINK_CODE: Final = enrolment.TypeLinkCode(frame=Frame(form_token="t0ken"), action="/enrol")

STATES: Final[Mapping[str, View]] = {
    "enrol-code": LINK_CODE,
    "enrol-code-refused": replace(
        LINK_CODE,
        typed="10V0-ABCD-EFGH-JKMN-PQRS",
        errors=(
            (
                "code",
                phrase("This code does not work. Check each letter and digit. A code works once, for a limited time."),
            ),
        ),
    ),
    "enrol-link-of-before": former_link_page("/enrol"),
    "enrol-begin": enrolment.Begin(
        frame=Frame(form_token="t0ken"),
        action="/begin",
        heading=phrase("Set up your sign-in"),
        introduction=phrase("{user}, set up how you sign in with {name}.", user="Tan Wei Ling", name="CorpID"),
        user_name="wei.ling",
        steps=3,
        fewer=True,
    ),
    "enrol-password": PASSWORD,
    "enrol-password-refused": replace(
        PASSWORD,
        errors=(("password", phrase("Choose another password: this is one that attackers try first.")),),
    ),
    "enrol-app": APP,
    "enrol-app-refused": replace(APP, by_email="/way", errors=(WRONG_CODE,)),
    "enrol-mailed-code": MAILED,
    "enrol-mailed-code-refused": replace(MAILED, errors=(WRONG_CODE,)),
    "enrol-mailed-code-over": replace(
        MAILED,
        heading=phrase("Get a code by e-mail"),
        asked=structs.replace(MAILED.asked, hint=ASKS_FIRST, label=None, send=True, ways=MAILED.asked.ways[1:]),
    ),
    "enrol-codes": CODES,
    "enrol-codes-refused": replace(CODES, errors=(("kept", phrase("Save your codes first, then tick the box.")),)),
    "enrol-prove-password": enrolment.ProvePassword(frame=OWN, action="/prove", user_name="wei.ling", errors=(WRONG,)),
    "enrol-prove-second": SECOND,
    "enrol-prove-second-refused": replace(SECOND, errors=(NO_PASSKEY,)),
    "enrol-prove-passkey": replace(SECOND, takes_codes=False),
    "enrol-save": enrolment.Save(frame=OWN, action="/save"),
    "enrol-forgotten": enrolment.ForgottenPassword(frame=Frame(), action="/recover"),
    "enrol-forgotten-refused": enrolment.ForgottenPassword(
        frame=Frame(), action="/recover", errors=(("user_name", phrase("Enter your user name.")),)
    ),
    "enrol-forgotten-signing-in": enrolment.ForgottenPassword(
        frame=Frame(up=Link(url="/sign-in/x", text=phrase("Back to signing in to {name}", name="Harbour Board"))),
        action="/recover",
    ),
    "enrol-gone": gone_page(),
    "enrol-other-browser": other_browser_page(),
    "enrol-stopped": stopped_page(),
}
