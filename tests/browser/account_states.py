"""The pages of a person's own account, in the states that look different."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from corpid.texts import phrase
from corpid.web.account import views
from corpid.web.frame import Frame
from corpid.web.signin.factor_fields import AskPasskey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.views import View

FRAME: Final = Frame(form_token="t0ken", step_name="account")
THEN: Final = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)
NOW: Final = datetime(2026, 11, 20, 14, 32, tzinfo=UTC)
LONG: Final = "Ein Telefon mit einem unnötig langen, aber erlaubten und vielleicht sogar hilfreichen Namen"
LAPTOP: Final = views.PasskeyLine(url="/account/passkeys/1", name="Laptop", made=THEN, used=NOW, synced=True)
PHONE: Final = views.PasskeyLine(url="/account/passkeys/2", name=LONG, made=THEN, used=None, synced=False)
PASSKEY: Final = views.Passkey(
    frame=FRAME, action="/account/passkeys/1", passkey=LAPTOP, heading=phrase("{name}", name="Laptop"), typed="Laptop"
)
ADD: Final = views.AddPasskey(frame=FRAME, passkey=AskPasskey(action="/account/add", options='{"challenge": "AAAA"}'))
LANGUAGE: Final = views.ChooseLanguage(frame=FRAME, action="/account/language", chosen="en")

STATES: Final[Mapping[str, View]] = {
    "account": views.Overview(
        frame=FRAME,
        name="Tan Wei Ling",
        user_name="wei.ling@harbour.example",
        sections=(
            views.Section(url="/account/passkeys", name=phrase("Your passkeys"), state=phrase("{count}", count=2)),
            views.Section(
                url="/account/browsers", name=phrase("Where you are signed in"), state=phrase("This browser")
            ),
            views.Section(url="/account/language", name=phrase("Your language"), state=phrase("English")),
        ),
        sign_out="/sign-out",
        saved=True,
    ),
    "account-passkeys": views.Passkeys(frame=FRAME, passkeys=(LAPTOP, PHONE), add="/account/passkeys/new", saved=True),
    "account-no-passkeys": views.Passkeys(frame=FRAME, passkeys=(), add="/account/passkeys/new"),
    "account-passkey": PASSKEY,
    "account-passkey-refused": replace(
        PASSKEY,
        passkey=PHONE,
        heading=phrase("{name}", name=LONG),
        typed="",
        errors=(("name", phrase("Enter a name.")),),
    ),
    "account-add-passkey": ADD,
    "account-add-passkey-refused": replace(
        ADD, errors=(("passkey", phrase("The passkey could not be set up. Try again, or choose another way.")),)
    ),
    "account-browsers": views.Browsers(
        frame=FRAME,
        action="/account/browsers",
        browsers=(
            views.BrowserLine(name="b1", device="Firefox on Linux", since=THEN, seen=NOW, this=True),
            views.BrowserLine(name="b2", device="", since=THEN, seen=THEN, this=False),
            views.BrowserLine(name="b3", device="Safari on iPhone", since=THEN, seen=NOW, this=False),
        ),
        saved=True,
    ),
    "account-sign-ins": views.SignIns(
        frame=FRAME,
        sign_ins=(
            views.SignInLine(
                at=NOW,
                client="Harbour Board",
                entity="Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesellschaft mbH",
                factors=phrase("Passkey"),
                device="Firefox on Linux",
            ),
            views.SignInLine(at=THEN, client="", entity="", factors=phrase("Password"), device=""),
        ),
    ),
    "account-language": LANGUAGE,
    "account-language-refused": replace(LANGUAGE, chosen="", errors=(("language", phrase("Choose a language.")),)),
}
