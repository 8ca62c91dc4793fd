"""The console's pages of organisations, people and services, in the states that look different (D53)."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from corpid.rules.directory.records import Entity, Service
from corpid.texts import counted, phrase
from corpid.web.operations import views
from corpid.web.operations.entities import OWNER
from corpid.web.operations.page_context import ConsoleConfirmation
from corpid.web.operations.views import StateLabel
from corpid.web.pages.layout import Field, Link, Pager
from corpid.web.pages.record_forms import form_of
from tests.browser.console_states import framed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View

_AT: Final = datetime(2026, 11, 23, 9, 30, tzinfo=ZoneInfo("Asia/Singapore"))
_ACTIVE: Final = StateLabel(text=phrase("Active"))
_DISABLED: Final = StateLabel(text=phrase("Disabled"), tone="error")
_INVITED: Final = StateLabel(text=phrase("Invited"), tone="warning")
_LONG: Final = "Straits Agricultural and Maritime Provisioning Cooperative Society (International) Limited"
_UP: Final = Link(url="/console/entities", text=phrase("Organisations"))
_OF_ENTITIES: Final = (
    ("name", phrase("Name")), ("number", phrase("Registration number")), ("id", phrase("Identifier")),
)  # fmt: skip
_COLUMNS: Final = (phrase("Name"), phrase("Registration number"), phrase("Status"), phrase("State"))


def _entities(*lines: views.Line, search: str = "") -> views.SearchedList:
    return views.SearchedList(
        frame=framed("entities"),
        heading=phrase("Organisations"),
        action="/console/entities",
        label=phrase("Begins with"),
        ways=_OF_ENTITIES,
        by="name",
        search=search,
        columns=_COLUMNS,
        lines=lines,
        empty=phrase("No organisation is found. Type only the beginning, or search by something else."),
        add=Link(url="/console/new-organisation", text=phrase("Add an organisation")),
        pager=Pager(first="/console/entities", next="/console/entities?after=x") if lines else Pager(),
    )


def _line(name: str, state: StateLabel = _ACTIVE) -> views.Line:
    return views.Line(url="/console/entities/1", name=name, texts=("200312345A", phrase("Registered")), state=state)


_TYPED: Final = {
    "entity_id": "has space", "name": "", "type": "UEN", "registration_number": "", "country": "Singapore",
    "status": "Registered",
}  # fmt: skip

STATES: Final[Mapping[str, View]] = {
    "console-entities": _entities(*(_line(name) for name in ("Acme", _LONG)), _line("Banyan", _DISABLED)),
    "console-entities-none": _entities(search="zebra"),
    "console-entity": views.OrganisationView(
        frame=framed("entities", up=_UP),
        heading=phrase("Organisation: {name}", name=_LONG),
        name=_LONG,
        state=_ACTIVE,
        facts=(
            (phrase("Identifier"), "200312345A"),
            (phrase("Country"), "SG"),
            (phrase("Approvals"), phrase("Nothing needs approval")),
            (phrase("People"), counted(20_000, "{count} person", "{count} people")),
        ),
        no_owner=True,
        actions=(
            Link(url="/console/entities/1/people", text=phrase("Its people")),
            Link(url="/console/entities/1/owner", text=phrase("Appoint an owner")),
            Link(url="/console/entities/1/disable", text=phrase("Disable")),
        ),
        administrators=(
            views.AdministratorLine(
                url="",
                name="Mei Lin",
                level=phrase("Owner"),
                services="",
                state=_INVITED,
                resend="/console/entities/1/invitation/2",
            ),
            views.AdministratorLine(
                url="/console/people/3",
                name="Tan Wei Ling",
                level=phrase("Sub-administrator"),
                services="PERMITS, TAX-FILING",
                state=_DISABLED,
            ),
        ),
        more_administrators=False,
        third_parties=(
            views.PartyLine(
                url="/console/entities/2", name="Banyan Trading", service="PERMITS", role="", until=None, state=_ACTIVE
            ),
        ),
        more_third_parties=True,
        clients=(),
        more_clients=False,
        saved=phrase("The owner is appointed."),
    ),
    "console-new-entity": views.NewOrganisation(
        frame=framed("entities", up=_UP),
        action="/console/new-organisation",
        fields=form_of(Entity, "entity_id", "name", "type", "registration_number", "country", "status").show(_TYPED),
        owner=OWNER.show({"name": "Mei Lin", "email": "mei@harbour.example"}),
        reason="",
        mail_works=False,
        back="/console/entities",
        errors=(
            ("entity_id", phrase("Use 1 to 10 letters, digits, full stops, hyphens or underscores.")),
            ("country", phrase("Enter the country's code of two capital letters, such as SG.")),
        ),
    ),
    "console-owner": views.AppointOwner(
        frame=framed("entities", up=_UP),
        action="/console/entities/1/owner",
        organisation="Acme Pte. Ltd.",
        owners=(("u1", "Tan Wei Ling", ""), ("nobody", phrase("Nobody: every present owner stays"), "")),
        ways=(
            ("invited", phrase("Invite somebody by e-mail"), ""),
            ("member", phrase("A person who already belongs to the organisation"), ""),
        ),
        fields=OWNER.show({}),
        typed=dict.fromkeys(("way", "user_name", "instead_of", "reason"), ""),
        mail_works=True,
        back="/console/entities/1",
        errors=(("way", phrase("Choose who becomes an owner.")),),
    ),
    "console-person": views.ConsolePersonView(
        frame=framed("people", up=Link(url="/console/people", text=phrase("People"))),
        heading=phrase("Person: {name}", name="Alice Tan"),
        name="Alice Tan",
        state=_ACTIVE,
        facts=((phrase("User name"), "alice"), (phrase("E-mail address"), "alice@acme.example")),
        sign_in=(
            (phrase("Password"), phrase("Set")),
            (phrase("Passkeys"), counted(2, "{count} passkey", "{count} passkeys")),
        ),
        invited_until=None,
        paused=((phrase("In new browsers"), _AT),),
        actions=tuple(
            Link(url="/console/people/1/x", text=text)
            for text in (phrase("Unlock"), phrase("Send a link"), phrase("Start sign-in over"), phrase("Disable"))
        ),
        organisations=(
            views.OrganisationLine(url="/console/entities/1", name=_LONG, level=phrase("Owner"), state=_ACTIVE),
        ),
        roles=(
            views.RoleLine(
                service="Harbour permits",
                service_url="/console/services/PERMITS",
                role="Approver",
                organisation="Acme Pte. Ltd.",
                part="Jurong",
                until=date(2027, 12, 31),
            ),
        ),
        sessions=(
            views.SessionLine(
                device="Firefox on Windows",
                purpose=phrase("Services"),
                way=phrase("Password and code"),
                since=_AT,
                seen=_AT,
                end="/console/people/1/session/1",
            ),
        ),
        more=None,
    ),
    "console-person-link": ConsoleConfirmation(
        frame=framed("people", up=Link(url="/console/people/1", text=phrase("Back"))),
        heading=phrase("Send {name} a link", name="Alice Tan"),
        action="/console/people/1/link",
        consequences=(
            phrase("It goes to {email}, and only to this address.", email="alice@acme.example"),
            phrase("Earlier links for the same purpose stop working."),
        ),
        choices=(
            (
                "password",
                phrase("Choose a new password"),
                phrase("The person does the second step first. The link works for 30 minutes."),
            ),
            (
                "second_factor",
                phrase("Set up a new second step"),
                phrase("The person types the password first. The link works for 24 hours."),
            ),
        ),
        choices_legend=phrase("What is the link for?"),
        reason="",
        button=phrase("Send the link"),
        back="/console/people/1",
        errors=(("reason", phrase("Say why. The audit keeps your reason.")),),
    ),
    "console-person-disable": ConsoleConfirmation(
        frame=framed("people", up=Link(url="/console/people/1", text=phrase("Back"))),
        heading=phrase("Disable {name}?", name="Alice Tan"),
        action="/console/people/1/disable",
        consequences=(phrase("You can enable the person again."),),
        reason="",
        button=phrase("Disable"),
        destroys=True,
        back="/console/people/1",
    ),
    "console-service": views.ServiceView(
        frame=framed("services", up=Link(url="/console/services", text=phrase("Services"))),
        heading=phrase("Service: {name}", name="Harbour permits"),
        name="Harbour permits",
        description="Permits to berth, load and unload.",
        state=_ACTIVE,
        facts=((phrase("Identifier"), "PERMITS"), (phrase("Parameters of a role"), phrase("None"))),
        edit="/console/services/PERMITS/edit",
        roles=(views.RoleOfService(name="Approver", description="Approves permits."),),
        clients=(("Harbour", "rp-harbour"),),
        more_clients=False,
    ),
    "console-service-edit": views.EditService(
        frame=framed("services", up=Link(url="/console/services", text=phrase("Back"))),
        action="/console/services/PERMITS/edit",
        texts=form_of(Service, "name", "description").show({"name": "Harbour permits"}),
        roles=(Field(name="role-0", label="Approver", value="Approves permits."),),
        approval=form_of(Service, "approval_required").show({"approval_required": True}),
        reason="",
        back="/console/services/PERMITS",
    ),
}
