"""The pages of a person's own account, in the states that look different."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from corpid.rules.limits import PASSKEYS_PER_PERSON
from corpid.web.account import links
from corpid.web.account.factors import reference
from tests.account.scene import account, at_account, go
from tests.account.test_email import alice
from tests.account.test_sharing import BANYAN, give
from tests.authenticator import Authenticator
from tests.browser.seeded import Recorder, Visit
from tests.enrolment.newcomer import followed, link_in
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, change, recovery
from tests.sign_in.world import entity, walk_to, world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.components import View

SCOPES: Final = ("openid", "authinfo", "tpauthinfo", "entity.identity", "user.name")
THEN: Final = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)
NOW: Final = datetime(2026, 11, 20, 14, 32, tzinfo=UTC)
LONG: Final = "Ein Telefon mit einem unnötig langen, aber erlaubten und vielleicht sogar hilfreichen Namen"
LONG_ENTITY: Final = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesellschaft mbH"
_PHONE: Final = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile Safari/604.1"
)

STATES: Final[Mapping[str, View]] = {"link-undone-email": links.undone_page("/account/password", "CorpID")}
ALONE: Final[Mapping[str, Visit]] = {
    "account-no-passkeys": Visit("passkeys"),
    "account-remove-app": Visit("remove-app"),
    "account-remove-app-refused": Visit("remove-app", {}),
    "account-add-passkey": Visit("new-passkey"),
    "account-add-passkey-refused": Visit("new-passkey", {"passkey": "{}"}),
    "account-app": Visit("app"),
    "account-app-refused": Visit("app", {"code": "000000"}),
    "account-codes": Visit("codes"),
    "account-codes-refused": Visit("codes", {}),
    "account-password": Visit("password"),
    "account-password-refused": Visit("password", {"password": "password1234"}),
    "account-sharing-nothing": Visit("sharing"),
    "account-language-refused": Visit("language", {}),
    "account-email-refused": Visit("email", {"email": "wei.ling"}),
}
"""of somebody with a password and an app, without a language and an e-mail address"""
WITH_PASSKEYS: Final[Mapping[str, Visit]] = {
    "account": Visit(""),
    "account-passkeys": Visit("passkeys"),
    "account-passkey": Visit("passkey/{laptop}"),
    "account-passkey-refused": Visit("passkey/{phone}", {"": "rename", "name": ""}),
    "account-browser": Visit("browser/{this}"),
    "account-browser-refused": Visit("browser/{this}", {"name": "x" * 61}),
    "account-browsers": Visit("browser/{this}", {"name": "Work laptop"}),
    "account-sign-ins": Visit("sign-ins"),
    "account-sharing": Visit("sharing"),
    "account-stop-sharing": Visit("stop-sharing/{shared}"),
    "account-language": Visit("language"),
    "account-data": Visit("data"),
    "account-delete": Visit("delete"),
    "account-email": Visit("email"),
    "account-prove-email": Visit("email", {"email": "wei.ling.tan@city.example"}),
    "account-prove-email-refused": Visit("email", {"code": "000000"}),
}
LAST_VISITS: Final[Mapping[str, Visit]] = {
    "account-delete-requested": Visit("delete"),
    "account-enough-passkeys": Visit("passkeys"),
}
FURTHER: Final[Mapping[str, Visit]] = {
    "account-codes-hidden": Visit("codes"),
    "account-email-waiting": Visit("email"),
    "link-undo-email": Visit("link"),
    "sign-out": Visit("sign-out"),
    "signed-out": Visit("sign-out", {}),
    "home": Visit("home"),
}
ASKED_AGAIN: Final[Mapping[str, Visit]] = {"account-sharing-asked-again": Visit("sharing")}
VISITS: Final = {**ALONE, **FURTHER, **WITH_PASSKEYS, **LAST_VISITS}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open the pages of a person who gets passkeys and another address, then asks to be deleted."""
    del visits
    postbox = Postbox()
    async with world(postbox=postbox) as made:
        await at_account(made, agent=_PHONE)
        elsewhere = await made.browser()
        made.clock.pass_(60)
        await walk_to(made, elsewhere, await made.relying_party(), ("password", "code", "entity"))
        await made.write(replace(await alice(made), language=""))
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
        made.clock.pass_(60)
        await look({"account-codes-hidden": Visit("codes")})
        await recovery(made)
        await made.write(
            replace(await alice(made), email="wei.ling@harbour.example", language="en"), entity(BANYAN, LONG_ENTITY)
        )
        laptop, phone = await add("Laptop", synced=True, used_at=int(NOW.timestamp())), await add(LONG)
        await give(made, scopes=SCOPES)
        await give(made, scopes=SCOPES, entity_id=BANYAN)
        await go(made, browser, "sharing")
        shared = next(url for url, _ in browser.page.links if "/stop-sharing/" in url).rpartition("/")[2]
        await look(WITH_PASSKEYS, laptop=laptop, phone=phone, this=this, shared=shared)
        await browser.fill_and_submit(code=postbox.code(), button="code")
        await look({"account-email-waiting": Visit("email")})
        await followed(await made.browser(), link_in(postbox))
        recorder.keep("link-undo-email")
        await go(made, browser, "delete")
        await browser.fill_and_submit(button="request")
        for number in range(PASSKEYS_PER_PERSON - 2):
            await add(f"Key {number}")
        await look(LAST_VISITS)
        await browser.open(f"{made.base}/sign-out")
        recorder.keep("sign-out")
        await browser.fill_and_submit("form_token")
        recorder.keep("signed-out")
        await browser.open(made.base)
        recorder.keep("home")


async def walk_asked_again(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """The same where no consent is remembered any more."""
    async with world(consent_days=0) as made:
        browser = await at_account(made)
        await give(made, scopes=SCOPES)
        for name, visit in visits.items():
            await recorder.visit(name, visit, browser, account(made, visit.page))
