"""Pages on people's access, and on the reader's own, in the states that look different (D53, D55)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from msgspec import structs
from msgspec.structs import replace

from corpid.rules.directory import access_texts
from corpid.rules.directory.records import Administrator, Assignment, Service
from corpid.rules.directory.role_forms import RoleForm, ValuesInUse
from corpid.rules.directory.values import Parameter, ParameterDefinition, RoleDescription
from corpid.texts import phrase
from corpid.web.account.endpoints import AskForAccess, Organisation, OwnAccess, RequestLine, RoleLine
from corpid.web.pages import role_fields
from corpid.web.pages.layout import Frame, Link
from tests.browser.seeded import Visit
from tests.manage.access_scene import HARBOUR as PERMITS
from tests.manage.access_scene import checker, demand, employed, identifier, staffed
from tests.manage.scene import ACME, in_portal, portal
from tests.sign_in.world import world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View
    from tests.browser.seeded import Recorder

TODAY: Final = date(2026, 11, 23)
HARBOUR: Final = Service(
    service_id="HARBOUR-PERMIT",
    name="Harbour permits",
    description="Permits for vessels to berth, load and leave.",
    roles=("Applicant", "Checker", "Approver"),
    role_descriptions=(
        RoleDescription(name="Applicant", description="Writes applications and sends them for checking."),
        RoleDescription(name="Checker", description="Checks applications and sends them back or on for approval."),
        RoleDescription(
            name="Approver", description="Approves applications, after which the organisation is bound by them."
        ),
    ),
    parameters=(
        ParameterDefinition(name="Permit Year", kind="year", mandatory=True),
        ParameterDefinition(name="Berth"),
    ),
    sub_entity="optional",
)
ENTITY: Final = "Harbour Logistics Pte. Ltd."
ROW: Final = Assignment(
    user_id="u", entity_id="E1001", service_id="HARBOUR-PERMIT", role="Approver", start_date="2026-11-23",
    end_date="2027-12-31", sub_entity="Jurong", parameters=(Parameter(name="Permit Year", value="2026"),),
)  # fmt: skip
SENTENCE: Final = access_texts.sentence("Marcus Lee", ROW, HARBOUR, ENTITY, TODAY)
WAS: Final = access_texts.sentence(
    "Marcus Lee", Assignment(user_id="u", entity_id="E1001", service_id="H", role="Checker"), HARBOUR, ENTITY, TODAY
)
DETAILS: Final = access_texts.details(ROW)
UP: Final = Link(url="/manage/person/1", text=phrase("Marcus Lee"))
FORM: Final = RoleForm(service=HARBOUR, role="Checker", parameters={"Permit Year": "soon"}, end="date")
FIELDS: Final = role_fields.build_fields(
    FORM, TODAY, used=ValuesInUse(sub_entities=("Jurong", "Tuas"), parameters={"Permit Year": ("2026",)})
)
WRONG: Final = (
    (role_fields.value_field(HARBOUR, "Permit Year"), phrase("Enter a year of four digits, such as 2026.")),
    ("end_date", phrase("Enter a date that exists.")),
)
SERVICE: Final = (phrase("Service"), "Harbour permits", "/manage/access/new?person=1")
ACCOUNT: Final = Frame(form_token="t0ken", here="/account/access", up=Link(url="/account", text=phrase("Your account")))
MINE: Final = OwnAccess(
    frame=ACCOUNT,
    action="/account/access",
    organisations=(
        Organisation(
            name=ENTITY,
            level=phrase("You are an administrator: you decide who may act for this organisation."),
            suspended=False,
            roles=(
                RoleLine(
                    sentence=access_texts.own_sentence(ROW, HARBOUR, ENTITY, TODAY),
                    state=None,
                    details=DETAILS,
                    given=phrase("Given by {name}", name="Nadia Rahman"),
                ),
                RoleLine(
                    sentence=access_texts.own_sentence(
                        Assignment(
                            user_id="u", entity_id="E", service_id="H", role="Checker", end_date="2025-12-31"
                        ),
                        HARBOUR, ENTITY, TODAY,
                    ),
                    state=phrase("Ended"),
                    details=(),
                    given=phrase("Given by the operator of this service"),
                ),
            ),
            ask="/account/access/ask?entity=E1001",
        ),
        Organisation(name="Saltwater Foods Pte. Ltd.", level=None, suspended=True, roles=(), ask=""),
    ),
    requests=(
        RequestLine(
            id="1",
            sentence=access_texts.asked_sentence(ROW, HARBOUR, ENTITY, TODAY),
            details=DETAILS,
            state=phrase("Waiting for an administrator"),
            waits=True,
            since=datetime(2026, 11, 23, 9, 0, tzinfo=UTC),
            reason="I approve permits from December on",
            answer="",
        ),
        RequestLine(
            id="2",
            sentence=access_texts.asked_sentence(ROW, HARBOUR, ENTITY, TODAY),
            details=(),
            state=phrase("Declined"),
            waits=False,
            since=datetime(2026, 10, 1, 9, 0, tzinfo=UTC),
            reason="I need it",
            answer="Nadia does this already",
        ),
    ),
    sharing=Link(url="/account/sharing", text=phrase("Services that receive your details")),
)  # fmt: skip
ASK: Final = AskForAccess(
    frame=structs.replace(ACCOUNT, up=Link(url="/account/access", text=phrase("Your access"))),
    action="/account/access/ask",
    back="/account/access",
)
SERVICES: Final = (
    ("H", "Harbour permits", "Permits for vessels to berth, load and leave."),
    ("N", "Notices to organisations", "Letters from public bodies to the organisation."),
)

STATES: Final[Mapping[str, View]] = {
    "account-access": MINE,
    "account-access-many": replace(MINE, folded=True, organisations=MINE.organisations * 5),
    "account-access-none": replace(MINE, organisations=(), requests=()),
    "account-access-ask-service": replace(ASK, chosen=((phrase("Organisation"), ENTITY, ""),), services=SERVICES),
    "account-access-ask": replace(
        ASK,
        chosen=((phrase("Organisation"), ENTITY, ""), SERVICE),
        fields=FIELDS,
        errors=(*WRONG, ("reason", phrase("Say why you need it."))),
    ),
    "account-access-ask-nobody": replace(
        ASK,
        undecided=True,
        chosen=((phrase("Organisation"), ENTITY, ""), SERVICE),
        fields=FIELDS,
        errors=(*WRONG, ("reason", phrase("Say why you need it."))),
    ),
}

_BERTH: Final = role_fields.value_field(PERMITS, "Berth")
_GIVEN: Final = "access/new?person=m-marcus"
_COMPLETE: Final = f"{_GIVEN}&access=NOTICES&start=today&end=none&check=all"
_ROLE: Final = checker(sub_entity="Jurong", end_date="2027-12-31")
_COLUMNS: Final = "user_name\tservice\trole"
VISITS: Final[Mapping[str, Visit]] = {
    "portal-access-new": Visit("access/new"),
    "portal-access-new-wrong": Visit("access/new", {"find": "zebra"}, of="check"),
    "portal-access-several": Visit(
        "access/new", {"find": "mar", "access": "HARBOUR/Approver", "end": "none"}, of="check"
    ),
    "portal-access-service": Visit(_GIVEN),
    "portal-access-role-wrong": Visit(_GIVEN, {"access": "HARBOUR/Approver", "end": "date", _BERTH: "12"}, of="check"),
    "portal-access-confirm": Visit(_COMPLETE),
    "portal-access-change": Visit(f"access/change/{identifier(_ROLE)}"),
    "portal-access-change-confirm": Visit(f"access/change/{identifier(_ROLE)}", {"role": "Approver"}, of="check"),
    "portal-access-remove": Visit(f"access/remove/{identifier(_ROLE)}"),
    "portal-access-copy-person": Visit("access/copy?person=m-nadia"),
    "portal-access-copy-nobody": Visit("access/copy?person=m-nadia&find=zz"),
    "portal-access-copy": Visit("access/copy?person=m-nadia&from=m-marcus"),
    "portal-access-copy-nothing": Visit("access/copy?person=m-marcus&from=m-nadia"),
    "portal-access": Visit("access"),
    "portal-access-ending": Visit("access?ends=dated&service=HARBOUR"),
    "portal-access-none": Visit("access?q=zebra"),
    "portal-access-roles": Visit("access/roles"),
    "portal-access-end": Visit("access", {f"select-{identifier(_ROLE)}": "yes"}),
    "portal-access-end-none": Visit("access/end"),
    "portal-access-import": Visit("access/import"),
    "portal-access-import-problems": Visit(
        "access/import", {"table": f"{_COLUMNS}\nmarcus\tHARBOUR\tBoss\nnadia\tHARBOUR\tChecker", "": "Continue"}
    ),
    "portal-access-import-preview": Visit(
        "access/import", {"table": f"{_COLUMNS}\nmarcus\tNOTICES\t\nnadia\tNOTICES\t", "": "Continue"}
    ),
    "portal-access-refused": Visit("access/new?find=alice"),
    "portal-access-approval": Visit(_COMPLETE),
    "portal-access-end-approval": Visit("access", {f"select-{identifier(_ROLE)}": "yes"}),
}
"""Pages on the access of Acme's people, as Alice sees them; the last ones once changes need approval."""


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as an owner."""
    async with world() as made:
        await staffed(made)
        await employed(made, "magdalena", "Maria Magdalena van der Bergh-Oosterhuizen", invited=True)
        await employed(made, "karim", "Abdul Karim bin Abdullah")
        await made.write(
            _ROLE,
            checker(role="Approver", parameters=(Parameter(name="Permit Year", value="2031"),)),
            Administrator(user_id="id-karim", entity_id=ACME, level="owner"),
        )
        browser = await in_portal(made)
        for name, visit in visits.items():
            made.clock.pass_(1)
            if name == "portal-access-refused":
                await demand(made, "roles")
            await recorder.visit(name, visit, browser, portal(made, visit.page))
