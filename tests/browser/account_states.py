"""The pages of a person's own account, in the states that look different."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs
from msgspec.structs import replace

from corpid.flows.account.links import PURPOSES
from corpid.rules.directory.parties import consent_items
from corpid.rules.limits import PASSKEYS_PER_PERSON
from corpid.texts import phrase
from corpid.web.account import links, views
from corpid.web.account.factors import reference
from corpid.web.account.views import ChoosePassword, KeepCodes, SetUpApp
from corpid.web.pages.layout import ButtonForm, Frame, Link, TimeLimit
from corpid.web.pages.views import AskPasskey
from tests.account.scene import account, at_account, go
from tests.account.test_sharing import give
from tests.authenticator import Authenticator
from tests.browser.seeded import Visit
from tests.sign_in.factors import ALICE, change
from tests.sign_in.world import world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View
    from tests.browser.seeded import Recorder

SCOPES: Final = ("openid", "authinfo", "tpauthinfo", "entity.identity", "user.name")
THEN: Final = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)
NOW: Final = datetime(2026, 11, 20, 14, 32, tzinfo=UTC)
UP: Final = Link(url="/account", text=phrase("Your account"))
LIMIT: Final = TimeLimit(at=NOW, seconds=600, extend=ButtonForm(action="/account/extend"))
FRAME: Final = Frame(
    form_token="t0ken",
    step_name="account",
    up=UP,
    limit=LIMIT,
)
SIGNED_IN: Final = structs.replace(FRAME, limit=structs.replace(LIMIT, of_session=True))
"""around a page on which no factor is changed"""
LAST: Final = structs.replace(
    FRAME,
    limit=structs.replace(
        LIMIT,
        extend=None,
        last_time=phrase(
            "You cannot get more time, but you can sign in again: what you see here stays the same until you use it."
        ),
    ),
)
AGAIN: Final = phrase("You have signed in again. Nothing has changed yet: continue here.")
LONG: Final = "Ein Telefon mit einem unnötig langen, aber erlaubten und vielleicht sogar hilfreichen Namen"
ADD: Final = views.AddPasskey(frame=FRAME, passkey=AskPasskey(action="/account/add", options='{"challenge": "AAAA"}'))
SHARED: Final = views.SharedLine(
    url="/account/stop-sharing/1", client="Harbour Permits", entity="Harbour Trading Pte. Ltd.", since=THEN, until=NOW,
    items=consent_items(SCOPES),
)  # fmt: skip
SHARING: Final = views.Sharing(
    frame=SIGNED_IN,
    lines=(SHARED, replace(SHARED, client=LONG, entity=LONG)),
    earlier="/account/sharing/2",
    saved=phrase("You no longer share your data with that service."),
)
EMAIL: Final = views.ChangeEmail(frame=FRAME, action="/account/email", old="wei.ling@harbour.example")
PROVE_EMAIL: Final = views.ProveEmail(frame=FRAME, action="/account/email", new="wei.ling.tan@city.example")
LANGUAGE: Final = views.ChooseLanguage(frame=SIGNED_IN, action="/account/language", chosen="en")

STATES: Final[Mapping[str, View]] = {
    "account-sharing": SHARING,
    "account-sharing-nothing": replace(SHARING, lines=(), earlier="", saved=None),
    "account-sharing-asked-again": replace(SHARING, asked_again=True, saved=None),
    "account-add-passkey": ADD,
    "account-add-passkey-refused": replace(
        ADD, errors=(("passkey", phrase("The passkey could not be set up. Try again, or choose another way.")),)
    ),
    "account-app": SetUpApp(
        frame=FRAME,
        action="/account/app",
        picture="/qr.svg",
        app_link="otpauth://totp/CorpID:wei.ling",
        secret="JBSW Y3DP EHPK 3PXP JBSW Y3DP EHPK 3PXP",
        notes=(
            phrase("An app works only with a password, and you do not have one yet. Choose one as well."),
            phrase("Your current app stops working once the new one is set up."),
        ),
        remove=Link(url="/account/remove-app", text=phrase("Remove your current app")),
    ),
    "account-codes-hidden": KeepCodes(frame=LAST, action="/account/codes", codes=(), back="/account"),
    "account-codes": KeepCodes(
        frame=LAST,
        action="/account/codes",
        codes=("kyh7-n2ft-qwe3-x4sd",) * 10,
        replaces=True,
        back="/account",
        notes=(AGAIN,),
        remove=Link(url="/account/remove-codes", text=phrase("Remove your current codes")),
    ),
    "account-password": ChoosePassword(
        frame=FRAME,
        action="/account/password",
        heading=phrase("Choose a password"),
        user_name="wei.ling@harbour.example",
        hint=phrase("At least {shortest} characters.", shortest=12),
        notes=(
            phrase(
                "A password works only with a second step, such as a code, and you do not have one yet. Set up an app as well."
            ),
        ),
    ),
    "account-browsers": views.Browsers(
        frame=SIGNED_IN,
        action="/account/browsers",
        back="/account",
        browsers=(
            views.BrowserLine(
                name="b1",
                given_name="Work laptop",
                rename="/account/browser/1",
                device="Firefox on Linux",
                since=THEN,
                seen=NOW,
                this=True,
            ),
            views.BrowserLine(name="b2", given_name="", rename="", device="", since=THEN, seen=THEN, this=False),
            views.BrowserLine(
                name="b3",
                given_name="",
                rename="/account/browser/3",
                device="Safari on iPhone",
                since=THEN,
                seen=NOW,
                this=False,
            ),
        ),
        saved=phrase("Your password has been changed."),
    ),
    "account-sign-ins": views.SignIns(
        frame=SIGNED_IN,
        sign_ins=(
            views.SignInLine(
                at=NOW,
                client="Harbour Board",
                entity="Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesellschaft mbH",
                factors=phrase("Passkey"),
                device="Firefox on Linux",
                network="Harbour Fibre Pte. Ltd.",
            ),
            views.SignInLine(
                at=THEN,
                client=phrase("A service that is no longer available"),
                entity=phrase("an organisation that is no longer available"),
                factors=phrase("Password and recovery code"),
                device="",
            ),
            views.SignInLine(
                at=THEN,
                client="Harbour Board",
                entity="Acme Pte. Ltd.",
                factors=phrase("You were already signed in"),
                device="Firefox on Linux",
            ),
            views.SignInLine(
                at=THEN, client="", entity="", factors=phrase("Password and authenticator app"), device=""
            ),
        ),
    ),
    "account-email": EMAIL,
    "account-email-refused": replace(
        EMAIL,
        old="",
        typed="wei.ling",
        errors=(("email", phrase("Enter an e-mail address such as name@example.com.")),),
        notes=(AGAIN,),
    ),
    "account-prove-email": PROVE_EMAIL,
    "account-prove-email-refused": replace(
        PROVE_EMAIL,
        new=f"{'a-very-long-mailbox' * 3}@department-of-fisheries.harbour.example",
        errors=(("code", phrase("This code is not right. Enter the one from the latest e-mail, or send a new one.")),),
    ),
    "account-email-waiting": views.EmailWaiting(
        frame=FRAME,
        action="/account/email",
        old="wei.ling@harbour.example",
        new="wei.ling.tan@city.example",
        at=NOW,
    ),
    "link-undo-email": views.UndoEmail(
        frame=Frame(form_token="t0ken", under_way=True),
        action="/link/1",
        heading=PURPOSES["email"].heading,
        introduction=PURPOSES["email"].introduction("Tan Wei Ling", "CorpID"),
        user_name="wei.ling@harbour.example",
        old="w•••@harbour.example",
        new="w•••@city.example",
    ),
    "link-undone-email": links.undone_page("/account/password", "CorpID"),
    "account-language": LANGUAGE,
    "account-language-refused": replace(LANGUAGE, chosen="", errors=(("language", phrase("Choose a language.")),)),
}
ALONE: Final[Mapping[str, Visit]] = {
    "account-no-passkeys": Visit("passkeys"),
    "account-remove-app": Visit("remove-app"),
    "account-remove-app-refused": Visit("remove-app", {}),
}
"""of somebody with a password and an app"""
WITH_PASSKEYS: Final[Mapping[str, Visit]] = {
    "account": Visit(""),
    "account-passkeys": Visit("passkeys"),
    "account-passkey": Visit("passkey/{laptop}"),
    "account-passkey-refused": Visit("passkey/{phone}", {"": "rename", "name": ""}),
    "account-browser": Visit("browser/{this}"),
    "account-browser-refused": Visit("browser/{this}", {"name": "x" * 61}),
    "account-stop-sharing": Visit("stop-sharing/{shared}"),
    "account-data": Visit("data"),
    "account-delete": Visit("delete"),
}
LAST_VISITS: Final[Mapping[str, Visit]] = {
    "account-delete-requested": Visit("delete"),
    "account-enough-passkeys": Visit("passkeys"),
}
VISITS: Final = {**ALONE, **WITH_PASSKEYS, **LAST_VISITS}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open the pages of a person who gets passkeys, then asks to be deleted."""
    del visits
    async with world() as made:
        browser = await at_account(made, "browsers")
        this = next(url for url, _ in browser.page.links if "/browser/" in url).rpartition("/")[2]

        added: list[str] = []

        async def look(some: Mapping[str, Visit], **named: str) -> None:
            for name, visit in some.items():
                made.clock.pass_(1)
                await recorder.visit(name, visit, browser, account(made, visit.page.format(**named)))

        async def add(name: str, **more: Any) -> str:
            key = Authenticator(user_handle=ALICE.encode())
            record = key.record(ALICE, name=name, created_at=int(THEN.timestamp()) + len(added), **more)
            added.append(name)
            await change(made, ALICE, add_passkey=record)
            return reference(record)

        await look(ALONE)
        laptop, phone = await add("Laptop", synced=True, used_at=int(NOW.timestamp())), await add(LONG)
        await give(made, scopes=SCOPES)
        await go(made, browser, "sharing")
        shared = next(url for url, _ in browser.page.links if "/stop-sharing/" in url).rpartition("/")[2]
        await look(WITH_PASSKEYS, laptop=laptop, phone=phone, this=this, shared=shared)
        await go(made, browser, "delete")
        await browser.fill_and_submit(button="request")
        for number in range(PASSKEYS_PER_PERSON - 2):
            await add(f"Key {number}")
        await look(LAST_VISITS)
