"""The pages on which a person sets up how they sign in, or gets back in, in the states that look different."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.account.enrolments import EnrolmentStopped, NotHere, OpenElsewhere
from corpid.rules.authentication.records import Credentials
from corpid.rules.limits import MAILED_CODE_SECONDS
from corpid.web.account.enrolment import ENDINGS
from corpid.web.account.links import former_link_page
from tests.browser.seeded import Recorder, Visit, send
from tests.enrolment import newcomer
from tests.enrolment.newcomer import MAILBOX, NINA
from tests.postbox import Postbox
from tests.sign_in.factors import at_sign_in, passkey, recovery
from tests.sign_in.world import PASSWORD_HASH, World, world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.components import View

STATES: Final[Mapping[str, View]] = {
    "enrol-link-of-before": former_link_page("/enrol"),
    "enrol-gone": ENDINGS[NotHere][1],
    "enrol-other-browser": ENDINGS[OpenElsewhere][1],
    "enrol-stopped": ENDINGS[EnrolmentStopped][1],
}
LINK: Final[Mapping[str, Visit]] = {
    "enrol-code": Visit("enrol"),
    "enrol-code-refused": Visit("enrol", {"code": "10V0-ABCD-EFGH-JKMN-PQRS"}),
    "enrol-forgotten": Visit("recover"),
    "enrol-forgotten-refused": Visit("recover", {"user_name": ""}),
}
STEPS: Final[Mapping[str, Visit]] = {
    "enrol-begin": Visit("link"),
    "enrol-password": Visit("password"),
    "enrol-password-refused": Visit("password", {"password": "password1234"}),
    "enrol-app": Visit("app"),
    "enrol-app-refused": Visit("app", {"code": "000000"}),
    "enrol-mailed-code": Visit("mailed", {"": "email"}, of="decision"),
    "enrol-mailed-code-refused": Visit("mailed", {"code": "000000"}),
    "enrol-mailed-code-over": Visit("mailed"),
    "enrol-codes": Visit("codes"),
    "enrol-codes-refused": Visit("codes", {"": "Finish"}),
}
"""of somebody who is new, one after the other; what is sent is sent on the page that is shown"""
PROOFS: Final[Mapping[str, Visit]] = {
    "enrol-prove-password": Visit("second_factor"),
    "enrol-prove-password-refused": Visit("second_factor", {"password": "not hers"}),
    "enrol-prove-second": Visit("password"),
    "enrol-prove-second-refused": Visit("password", {"passkey": "{}"}),
    "enrol-prove-passkey": Visit("password only"),
    "enrol-forgotten-signing-in": Visit("recover"),
}
"""of somebody who gets back in; the page is the purpose of the link"""
VISITS: Final = {**LINK, **STEPS, **PROOFS}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as the person whose link it is."""
    del visits
    postbox = Postbox()
    async with world(postbox=postbox) as made:
        browser = await made.browser()
        for name, visit in LINK.items():
            await recorder.visit(name, visit, browser, f"{made.base}/{visit.page}")
        await _set_up(made, recorder)
    async with world(postbox=postbox) as made:
        await _get_back_in(made, recorder)


async def _set_up(made: World, recorder: Recorder) -> None:
    await newcomer.nina(made)
    browser = await made.browser()

    async def look(*names: str) -> None:
        for name in names:
            await send(browser, STEPS[name])
            recorder.keep(name)

    await newcomer.followed(browser, await newcomer.link(made))
    await look("enrol-begin")
    await browser.submit(browser.page.forms[0])
    await look("enrol-password", "enrol-password-refused")
    await newcomer.password(browser)
    await look("enrol-app", "enrol-app-refused", "enrol-mailed-code", "enrol-mailed-code-refused")
    made.clock.pass_(MAILED_CODE_SECONDS + 1)
    await browser.reload()
    await look("enrol-mailed-code-over")
    await browser.fill_and_submit("decision", button="app")
    await newcomer.app(made, browser)
    await look("enrol-codes", "enrol-codes-refused")


async def _get_back_in(made: World, recorder: Recorder) -> None:
    await made.person("nina", name="Nina Novak", email=MAILBOX)
    await recovery(made, NINA)
    await passkey(made, NINA)
    await made.person("bea")
    await made.write(Credentials(user_id="id-bea", password_hash=PASSWORD_HASH))
    await passkey(made, "id-bea")
    for name, visit in PROOFS.items():
        if visit.page == "recover":
            browser = await at_sign_in(made)
            [recover] = [url for url, _ in browser.page.links if "/recover" in url]
            await browser.open(f"{made.base}{recover}")
        else:
            who, purpose = ("id-bea", "password") if visit.page == "password only" else (NINA, visit.page)
            browser = await newcomer.opened(made, await newcomer.link(made, purpose, who))  # type: ignore[arg-type]
        await send(browser, visit)
        recorder.keep(name)
