"""Pages on people's access, and on the reader's own, in the states that look different (D53, D55)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from msgspec import structs
from msgspec.structs import replace

from corpid.rules.directory import access_texts
from corpid.rules.directory.records import Assignment, Service
from corpid.rules.directory.role_forms import RoleForm, ValuesInUse
from corpid.rules.directory.values import Parameter, ParameterDefinition, RoleDescription
from corpid.texts import phrase
from corpid.web.account.endpoints import AskForAccess, Organisation, OwnAccess, RequestLine, RoleLine
from corpid.web.directory.access import (
    AccessConfirmation,
    ChangeAccess,
    CopiedRole,
    CopyAccess,
    GiveAccess,
    ImportAccess,
    ImportedLine,
    RemoveAccess,
)
from corpid.web.directory.people import ChoosePerson, PersonChoice
from corpid.web.pages import role_fields
from corpid.web.pages.layout import Frame, Link, Pager
from tests.browser.portal_states import framed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View

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
    (role_fields.parameter_field("Permit Year"), phrase("Enter a year of four digits, such as 2026.")),
    ("end_date", phrase("Enter a date that exists.")),
)
CONFIRM: Final = AccessConfirmation(
    sentence=SENTENCE, details=DETAILS, kept=(("role", "Approver"),), needs_approval=False, reason="", again="/manage"
)
PERSON: Final = (phrase("Person"), "Marcus Lee (marcus)", "/manage/access/new")
SERVICE: Final = (phrase("Service"), "Harbour permits", "/manage/access/new?person=1")
GIVE: Final = GiveAccess(
    frame=framed("people", up=UP), action="/manage/access/new", kept=(("person", "1"),), chosen=(PERSON,), back=UP
)
CHANGE: Final = ChangeAccess(
    frame=framed("people", up=UP),
    action="/manage/access/change/1",
    was=WAS,
    was_details=(),
    remove="/manage/access/remove/1",
    back=UP,
)
COPY: Final = CopyAccess(
    frame=framed("people", up=UP),
    action="/manage/access/copy",
    kept=(("person", "1"),),
    colleague="Nadia Rahman",
    another="/manage/access/copy?person=1",
    roles=(
        CopiedRole(name="copy-1", sentence=SENTENCE, details=DETAILS, chosen=True),
        CopiedRole(name="copy-2", sentence=WAS, details=(), chosen=False),
    ),
    held=((WAS, ()),),
    more=False,
    needs_approval=False,
    reason="",
    back=UP,
)
IMPORT: Final = ImportAccess(
    frame=framed("people", up=Link(url="/manage/people", text=phrase("People"))),
    action="/manage/access/import",
    table="",
    columns=("user_name", "name", "email", "service", "role", "sub_entity", "start_date", "end_date", "parameter:…"),
    most_lines=100,
    problems=(),
    lines=(),
    changes=None,
    is_change=False,
    needs_approval=False,
    reason="",
    back="/manage/people",
)
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
    "portal-access-person": ChoosePerson(
        frame=framed("people"),
        heading=phrase("Give access"),
        action="/manage/access/new",
        find="mar",
        asked=phrase("Who gets access?"),
        found=(
            PersonChoice(url="/manage/access/new?person=1", name="Marcus Lee", user_name="marcus"),
            PersonChoice(
                url="/manage/access/new?person=2",
                name="Maria Magdalena van der Bergh-Oosterhuizen",
                user_name="maria.magdalena@harbour.example",
                tags=(phrase("Invited"),),
            ),
        ),
        pager=Pager(next="/manage/access/new?after=x"),
        links=(Link(url="/manage/access/import", text=phrase("Give access to several people at once")),),
    ),
    "portal-access-nobody": ChoosePerson(
        frame=framed("people"),
        heading=phrase("Give access"),
        action="/manage/access/new",
        find="zz",
        asked=phrase("Who gets access?"),
        found=(),
        pager=Pager(),
    ),
    "portal-access-service": replace(
        GIVE,
        held=((SENTENCE, DETAILS), (WAS, ())),
        holds_more=True,
        services=SERVICES,
        links=(Link(url="/manage/access/copy?person=1", text=phrase("Copy a colleague's access instead")),),
    ),
    "portal-access-role": replace(
        GIVE,
        chosen=(PERSON, SERVICE),
        held=((WAS, ()),),
        fields=role_fields.build_fields(RoleForm(service=structs.replace(HARBOUR, sub_entity="mandatory")), TODAY),
    ),
    "portal-access-role-wrong": replace(GIVE, chosen=(PERSON, SERVICE), fields=FIELDS, errors=WRONG),
    "portal-access-confirm": replace(GIVE, chosen=(PERSON, SERVICE), confirm=CONFIRM),
    "portal-access-approval": replace(GIVE, chosen=(PERSON, SERVICE), confirm=replace(CONFIRM, needs_approval=True)),
    "portal-access-refused": replace(
        GIVE,
        refused=phrase(
            "You cannot change your own access. Another administrator of {entity} can do it.", entity=ENTITY
        ),
    ),
    "portal-access-change": replace(CHANGE, fields=FIELDS),
    "portal-access-change-confirm": replace(CHANGE, confirm=replace(CONFIRM, was=WAS)),
    "portal-access-remove": RemoveAccess(
        frame=framed("people", up=UP),
        action="/manage/access/remove/1",
        was=SENTENCE,
        was_details=DETAILS,
        loses=phrase(
            "{name} will no longer be able to do this. Other access of {name} stays as it is.", name="Marcus Lee"
        ),
        needs_approval=False,
        reason="",
        back=UP,
    ),
    "portal-access-copy": COPY,
    "portal-access-copy-nothing": replace(COPY, roles=(), held=()),
    "portal-access-import": IMPORT,
    "portal-access-import-problems": replace(
        IMPORT,
        table="user_name\tservice\nmarcus\tHARBOUR-PERMIT",
        problems=(
            (
                2,
                phrase(
                    "{service} has no role {role}. It has these: {roles}.",
                    service="Harbour permits",
                    role="Boss",
                    roles=("Applicant", "Checker", "Approver"),
                ),
            ),
            (3, phrase("Enter today or a later day.")),
        ),
        errors=(("table", phrase("2 problems in the table. Nothing has been changed.")),),
    ),
    "portal-access-import-preview": replace(
        IMPORT,
        table="…",
        lines=(
            ImportedLine(number=2, does=phrase("Give"), sentence=SENTENCE, details=DETAILS),
            ImportedLine(number=3, does=phrase("No change"), sentence=WAS, details=()),
        ),
        changes=phrase("This makes {count} change.", count=1),
        is_change=True,
    ),
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
