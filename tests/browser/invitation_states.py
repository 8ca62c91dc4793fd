"""The pages of an entity's invitation, in the states that look different (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs
from msgspec.structs import replace

from corpid.flows.account.enrolment_steps import NAME_TAKEN
from corpid.flows.account.links import PURPOSES
from corpid.flows.directory.acceptance import InvitationAnswer
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.texts import phrase
from corpid.web.account.enrolment import ChooseName, answered_page, expired_page
from corpid.web.account.views import Accept, Invitation
from corpid.web.pages.layout import Frame, Link
from tests.browser.account_states import SIGNED_IN
from tests.browser.enrolment_states import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View

HARBOUR: Final = "Harbour Logistics Pte. Ltd."
LONG: Final = "Vereinigte Donaudampfschifffahrtsgesellschaft & Söhne (Asia Pacific) Holdings Pte. Ltd."
INVITATION: Final = Invitation(
    frame=Frame(form_token="t0ken", under_way=True),
    action="/link/1",
    heading=phrase("{entity} invites you", entity=HARBOUR),
    introduction=PURPOSES["membership"].introduction("", "CorpID"),
    entity=HARBOUR,
    number_name=NUMBERS["UEN"],
    number="200012345A",
    steps=4,
    fewer=True,
)
NAME: Final = ChooseName(
    frame=structs.replace(OWN, step=None),
    action="/enrolment/1/profile",
    name="Tan Wei Ling",
    user_name="wei.ling@harbour.example",
    entity=HARBOUR,
)
ACCEPT: Final = Accept(
    frame=structs.replace(SIGNED_IN, up=Link(url="/link/1", text=phrase("The invitation"))),
    action="/account/invitation/1",
    heading=phrase("Act for {entity}?", entity=HARBOUR),
    entity=HARBOUR,
    number_name=NUMBERS["UEN"],
    number="200012345A",
    name="Tan Wei Ling",
    user_name="wei.ling",
    belongs=False,
)
DONE: Final = InvitationAnswer(browser_id="", outcome="accepted", entity=HARBOUR)

STATES: Final[Mapping[str, View]] = {
    "invitation": INVITATION,
    "invitation-long": replace(
        INVITATION, heading=phrase("{entity} invites you", entity=LONG), entity=LONG, fewer=False
    ),
    "invitation-name": NAME,
    "invitation-name-taken": replace(NAME, errors=(("user_name", NAME_TAKEN),)),
    "invitation-accept": ACCEPT,
    "invitation-accept-long": replace(ACCEPT, entity=LONG, heading=phrase("Act for {entity}?", entity=LONG)),
    "invitation-belongs": replace(ACCEPT, belongs=True),
    "invitation-accepted": answered_page(DONE, base_path="", has_portal=True),
    "invitation-accepted-new": answered_page(structs.replace(DONE, new=True), base_path="", has_portal=True),
    "invitation-accepted-administrator": answered_page(
        structs.replace(DONE, new=True, administers=True), base_path="", has_portal=True
    ),
    "invitation-declined": answered_page(structs.replace(DONE, outcome="declined"), base_path="", has_portal=True),
    "invitation-expired": expired_page(HARBOUR),
}
