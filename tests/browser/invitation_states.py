"""The pages of an entity's invitation, in the states that look different (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from corpid.flows.directory.acceptance import InvitationAnswer
from corpid.rules.directory.records import Membership
from corpid.web.account.enrolment import answered_page, expired_page
from tests.browser.seeded import Recorder, Visit
from tests.enrolment.invited import HARBOUR, asked, invite, named, opened
from tests.sign_in.factors import ALICE
from tests.sign_in.world import entity, world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.components import View

NAME: Final = "Harbour Logistics Pte. Ltd."
LONG: Final = "Vereinigte Donaudampfschifffahrtsgesellschaft & Söhne (Asia Pacific) Holdings Pte. Ltd."
DONE: Final = InvitationAnswer(browser_id="", outcome="accepted", entity=NAME)

STATES: Final[Mapping[str, View]] = {
    "invitation-accepted": answered_page(DONE, base_path="", has_portal=True),
    "invitation-accepted-new": answered_page(structs.replace(DONE, new=True), base_path="", has_portal=True),
    "invitation-accepted-administrator": answered_page(
        structs.replace(DONE, new=True, administers=True), base_path="", has_portal=True
    ),
    "invitation-declined": answered_page(structs.replace(DONE, outcome="declined"), base_path="", has_portal=True),
    "invitation-expired": expired_page(NAME),
}
VISITS: Final[Mapping[str, Visit]] = {
    "invitation": Visit("link"),
    "invitation-long": Visit("link"),
    "invitation-name": Visit("profile"),
    "invitation-name-taken": Visit("profile", {"user_name": "alice"}),
    "invitation-accept": Visit("invitation"),
    "invitation-accept-long": Visit("invitation"),
    "invitation-belongs": Visit("invitation"),
}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open an invitation as somebody new, then one as somebody with an account."""
    del visits
    long = entity(HARBOUR, LONG)
    async with world() as made:
        await invite(made)
        browser = await opened(made)
        recorder.keep("invitation")
        await made.write(long)
        await browser.reload()
        recorder.keep("invitation-long")
        await browser.fill_and_submit("decision", button="new")
        recorder.keep("invitation-name")
        await named(browser, user_name="alice")
        recorder.keep("invitation-name-taken")
    async with world() as made:
        await invite(made)
        browser = await asked(made)
        recorder.keep("invitation-accept")
        await made.write(long)
        await browser.reload()
        recorder.keep("invitation-accept-long")
        await made.write(Membership(user_id=ALICE, entity_id=HARBOUR))
        await browser.reload()
        recorder.keep("invitation-belongs")
