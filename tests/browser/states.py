"""Every page of the provider in every state that looks different, with names as they are met in practice.

A house test holds that no view and no template is missing (tests/house/test_pages.py).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from corpid.texts import phrase
from corpid.web import views
from corpid.web.enrolment import views as enrolment
from corpid.web.enrolment.pages import gone, other_browser, stopped
from corpid.web.frame import Form, Frame, Link
from corpid.web.signin.dead_ends import unknown
from corpid.web.signin.factor_fields import Asked, AskPasskey
from tests.browser import account_states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.views import FieldError, View

LONG: Final = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesellschaft mbH"
FRAME: Final = Frame(
    client_name="Harbour Board",
    message="Your yearly return for 2026",
    step=(1, 4),
    step_name="1",
    form_token="t0ken",
    cancel=Form(action="/cancel"),
    expires_at=datetime(2026, 11, 20, 14, 32, tzinfo=UTC),
    expires_in=600,
    extend=Form(action="/extend"),
    under_way=True,
)
KNOWN: Final = replace(FRAME, user_name="wei.ling@harbour.example", step=(2, 4))
CROWDED: Final = replace(
    KNOWN,
    client_name=f"Ministry of Trade, {LONG}",
    message="W" * 100,
    user_name=f"{'a' * 60}@{'b' * 40}.example",
    entity=LONG,
)
GONE: Final = Frame(client_name="Harbour Board", message="Your yearly return for 2026")
OWN: Final = Frame(
    form_token="t0ken",
    step=(1, 3),
    step_name="1",
    expires_at=FRAME.expires_at,
    expires_in=3600,
    extend=Form(action="/extend"),
    under_way=True,
)
LAST: Final = replace(
    OWN,
    step=(1, 2),
    extend=None,
    last_time=phrase("There is no more time after that. If it is too short, ask for a new link."),
)
AGAIN: Final = phrase(
    "Sign in again to change how you sign in: your last sign-in was more than {minutes} minutes ago.", minutes=5
)
PASSKEY: Final = AskPasskey(action="/passkey", options='{"challenge": "AAAA", "rpId": "localhost"}')
BACK: Final = Link(url="/leave", text=phrase("Return to {name}", name="Harbour Board"))
WRONG: Final[FieldError] = (
    "password",
    phrase("The user name or password is not right. Check both and try again."),
)
WRONG_CODE: Final[FieldError] = (
    "code",
    phrase("This code is not right. Wait for the next one in your app and type it."),
)
NO_PASSKEY: Final[FieldError] = ("passkey", phrase("No passkey was used. Try again, or choose the other way."))
CHOICES: Final = (
    views.Choice(id="1", name="Harbour Works Pte. Ltd.", number="200000001A", type="UEN", preselected=True),
    views.Choice(id="2", name=LONG, number="T00000000K", type="UEN", status=phrase("Registered")),
    views.Choice(id="3", name="海港工程有限公司", number="200000003C", type="UEN"),
    views.Choice(id="4", name="שירותי הנמל בע״מ (Haifa)", number="513-22-1", type="NON-UEN"),
    views.Choice(
        id="5",
        name="Tambak Ria Sdn. Bhd.",
        number="199901234K",
        type="UEN",
        status=phrase("Deregistered"),
        usable=False,
        reason=phrase("You no longer act for this organisation."),
    ),
)
MANY: Final = tuple(
    views.Choice(id=f"m{n}", name=f"Harbour Works {n} Pte. Ltd.", number=f"2000{n:05}A", type="UEN") for n in range(60)
)
CHOOSE: Final = views.ChooseEntity(
    frame=replace(KNOWN, step=(3, 4)), action="/entity", search_action="/entity", choices=CHOICES, total=5
)
CODE: Final = views.SecondFactor(
    frame=KNOWN,
    action="/code",
    heading=phrase("Enter your 6-digit code"),
    asked=Asked(
        hint=phrase("Open your authenticator app. It shows a new code every 30 seconds."),
        ways_action="/way",
        ways=(("email", phrase("Send me a code by e-mail")), ("recovery", phrase("Use a recovery code"))),
    ),
)
BY_MAIL: Final = Asked(
    hint=phrase("We can send a 6-digit code to {address}.", address="w•••@harbour.example"),
    label=None,
    send=True,
    ways_action="/way",
    ways=CODE.asked.ways[1:],
)
BY_RECOVERY: Final = Asked(
    hint=phrase("One of the codes that you kept when you set up your sign-in. Each works once."),
    label=phrase("Recovery code"),
    numeric=False,
    ways_action="/way",
)
TOLD: Final = (
    phrase("Your name"),
    phrase("That you signed in, the organisation that you act for, and what you may do for it"),
)
SIGN_IN: Final = views.SignIn(frame=FRAME, action="/password", passkey=PASSKEY, recover="/recover")
CONSENT: Final = views.Consent(
    frame=replace(KNOWN, step=(4, 4), entity=CHOICES[0].name), action="/consent", items=TOLD, entity=CHOICES[0].name
)
CONFIRM: Final = views.Confirm(
    frame=replace(KNOWN, step=None, entity=CHOICES[0].name),
    action="/confirm",
    user_name="Tan Wei Ling",
    entity=CHOICES[0].name,
)
EXPLAIN: Final = views.Explain(
    frame=replace(KNOWN, step=None, cancel=None), action="/cancel", choices=CHOICES[4:], total=1
)
PASSWORD: Final = enrolment.ChoosePassword(
    frame=OWN,
    action="/password",
    heading=phrase("Set up your sign-in"),
    user_name="wei.ling",
    hint=phrase(
        "At least {shortest} characters. Several words make a good one; no special characters are needed.", shortest=12
    ),
    passkey=PASSKEY,
)
APP: Final = enrolment.SetUpApp(
    frame=replace(OWN, step=(2, 3)),
    action="/app",
    picture="/qr.svg",
    app_link="otpauth://totp/CorpID:wei.ling?secret=JBSWY3DPEHPK3PXP",
    secret="JBSW Y3DP EHPK 3PXP JBSW Y3DP EHPK 3PXP",
    passkey=PASSKEY,
)
CODES: Final = enrolment.KeepCodes(
    frame=replace(OWN, step=(3, 3)),
    action="/codes",
    codes=tuple(f"{'abcdefghij'[n]}7kq-m2xw-r{n + 2 % 6}tz" for n in range(10)),
    replaces=True,
)
SECOND: Final = enrolment.ProveSecondFactor(frame=LAST, action="/second", takes_codes=True, passkey=PASSKEY)
EXPIRED: Final = views.Problem(
    frame=GONE,
    heading=phrase("This sign-in has expired"),
    paragraphs=(
        phrase("For your safety a sign-in has to be finished within a few minutes. Nothing was shared."),
        phrase("Return to {name} and start again.", name="Harbour Board"),
    ),
    back=BACK,
)

STATES: Final[Mapping[str, View]] = {
    "sign-in": SIGN_IN,
    "sign-in-without-passkeys": replace(SIGN_IN, passkey=None, recover="", frame=replace(FRAME, extend=None)),
    "sign-in-again": replace(SIGN_IN, frame=replace(FRAME, client_name="CorpID", message=None, reason=AGAIN)),
    "sign-in-refused": replace(SIGN_IN, user_name="wei.ling", errors=(WRONG,)),
    "sign-in-passkey-refused": replace(SIGN_IN, errors=(NO_PASSKEY,)),
    "sign-in-crowded": replace(SIGN_IN, frame=CROWDED, user_name="x" * 90, errors=(WRONG,)),
    "code": CODE,
    "code-refused": replace(CODE, errors=(WRONG_CODE,)),
    "code-by-mail": replace(CODE, heading=phrase("Get a code by e-mail"), asked=BY_MAIL),
    "code-recovery": replace(CODE, heading=phrase("Enter a recovery code"), asked=BY_RECOVERY),
    "choose": CHOOSE,
    "choose-refused": replace(
        CHOOSE, errors=(("entity", phrase("Choose the organisation that you act for.")),), other_account=True
    ),
    "choose-many": replace(CHOOSE, choices=MANY, total=5000),
    "choose-found": replace(CHOOSE, query="works", choices=MANY[:3], total=3),
    "choose-nothing": replace(CHOOSE, query="zzz", choices=(), total=0),
    "choose-crowded": replace(CHOOSE, frame=CROWDED, choices=tuple(replace(one, name=LONG) for one in CHOICES)),
    "consent": CONSENT,
    "consent-crowded": replace(CONSENT, frame=CROWDED, entity=LONG),
    "confirm": CONFIRM,
    "confirm-crowded": replace(CONFIRM, frame=CROWDED, user_name=LONG, entity=LONG),
    "explain": EXPLAIN,
    "explain-none": replace(EXPLAIN, choices=(), total=0),
    "leave": views.Leave(frame=replace(GONE, entity=CHOICES[0].name), url="/leave", client_name="Harbour Board"),
    "form-post": views.FormPost(frame=GONE, action="/callback", fields=(("code", "c0de"), ("state", "s"))),
    "wait": views.Wait(frame=GONE, url="/wait"),
    "expired": EXPIRED,
    "expired-crowded": replace(
        EXPIRED,
        frame=CROWDED,
        reference="0123456789abcdef0123456789abcdef",
        for_developers="redirect_uri is not registered",
    ),
    "unknown": unknown(),
    "sign-out": views.SignOut(
        frame=Frame(user_name="Tan Wei Ling", form_token="t0ken", step_name="x"), action="/sign-out"
    ),
    "signed-out": views.SignedOut(),
    "home": views.Home(discovery="/.well-known/openid-configuration", keys="/.well-known/keys"),
    "enrol-begin": enrolment.Begin(
        frame=Frame(form_token="t0ken"),
        action="/begin",
        heading=phrase("Set up your sign-in"),
        told=phrase("{user}, here you set up how you sign in with {name}.", user="Tan Wei Ling", name="CorpID"),
        user_name="wei.ling",
        steps=3,
    ),
    "enrol-password": PASSWORD,
    "enrol-password-refused": replace(
        PASSWORD,
        errors=(("password", phrase("Choose another password: this one is among those that attackers try first.")),),
    ),
    "enrol-app": APP,
    "enrol-app-refused": replace(APP, errors=(WRONG_CODE,)),
    "enrol-codes": CODES,
    "enrol-codes-refused": replace(
        CODES, errors=(("kept", phrase("Keep the codes first, then say that you have done so.")),)
    ),
    "enrol-prove-password": enrolment.ProvePassword(frame=OWN, action="/prove", user_name="wei.ling", errors=(WRONG,)),
    "enrol-prove-second": SECOND,
    "enrol-prove-second-refused": replace(SECOND, errors=(NO_PASSKEY,)),
    "enrol-prove-passkey": replace(SECOND, takes_codes=False),
    "enrol-save": enrolment.Save(frame=OWN, action="/save"),
    "enrol-forgotten": enrolment.ForgottenPassword(frame=Frame(), action="/recover"),
    "enrol-forgotten-refused": enrolment.ForgottenPassword(
        frame=Frame(), action="/recover", errors=(("user_name", phrase("Enter your user name.")),)
    ),
    "enrol-gone": gone(),
    "enrol-other-browser": other_browser(),
    "enrol-stopped": stopped(),
    **account_states.STATES,
}
