"""Pages on an organisation's people, in the states that look different (D53, D55, D60, D61)."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.rules.directory.access_conditions import BELOW
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.member_details import PLAIN_DETAILS
from corpid.rules.directory.records import ADMINISTRATOR_LEVELS, MemberDetails
from corpid.texts import counted, phrase
from corpid.web.directory.member_texts import EACH_GETS, HELP_PAGES, WHY_NO_HELP
from corpid.web.directory.member_texts import STATES as MEMBER_STATES
from corpid.web.directory.people_views import (
    ConfirmAction,
    EditPerson,
    HistoryEntry,
    InvitationPreview,
    Invite,
    InviteSeveral,
    People,
    PersonPage,
    PersonRow,
    RoleSentence,
)
from corpid.web.pages.layout import Link, Pager
from corpid.web.pages.record_forms import form_of
from tests.browser.access_states import DETAILS, ENTITY, SENTENCE, UP, WAS
from tests.browser.account_states import NOW, THEN
from tests.browser.portal_states import framed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.directory.access import Level
    from corpid.rules.directory.queries import MemberState
    from corpid.web.pages.views import View

LONG: Final = "Maximilian-Ferdinand Donaudampfschifffahrtsgesellschaftskapitän von und zu Hohenzollern"
TO_PEOPLE: Final = Link(url="/manage/people", text=phrase("People"))


def person(name: str, user_name: str, *, state: MemberState = "active", level: Level = "", roles: int = 1) -> PersonRow:
    return PersonRow(
        url=f"/manage/person/{user_name}",
        name=name,
        user_name=user_name,
        email=f"{user_name}@harbour.example",
        state=state,
        state_text=MEMBER_STATES[state],
        level=ADMINISTRATOR_LEVELS[level] if level else None,
        roles=roles,
    )


PEOPLE: Final = People(
    frame=framed("people"),
    action="/manage/people",
    people=(
        person("Tan Wei Ling", "tan.weiling", level="owner", roles=0),
        person("Marcus Lee", "marcus", level="sub_administrator", roles=3),
        person(LONG, "donaudampfschifffahrtsgesellschaftskapitaen.von.und.zu", state="suspended"),
        person("Priya Nair", "priya", state="invited", roles=2),
        person("陈伟明", "chan", state="locked"),
    ),
    pager=Pager(next="/manage/people?after=chan"),
    search="",
    state="",
    states=(("", phrase("Any")), *MEMBER_STATES.items()),
    service="",
    services=(("", phrase("Any")), ("HARBOUR-PERMIT", "Harbour permits")),
    narrowed=False,
    everybody="/manage/people",
    invite="/manage/invite",
    own_services=False,
)
ONE: Final = Invite(
    frame=framed("people", up=TO_PEOPLE),
    action="/manage/invite",
    note=EACH_GETS,
    mail_works=True,
    fields=form_of(MemberDetails, "name", "email").show({}),
    needs_approval=False,
    reason="",
    several="/manage/invite/several",
    back="/manage/people",
)
SEVERAL: Final = InviteSeveral(
    frame=framed("people", up=TO_PEOPLE),
    action="/manage/invite/several",
    note=EACH_GETS,
    mail_works=True,
    hint=phrase("Enter one person a line."),
    people="",
    needs_approval=False,
    one="/manage/invite",
    back="/manage/people",
)
PREVIEW: Final = InvitationPreview(
    frame=framed("people", up=Link(url="/manage/invite/several", text=phrase("Invite several people"))),
    heading=counted(3, "Invite {count} person?", "Invite {count} people?"),
    action="/manage/invite/several",
    note=EACH_GETS,
    mail_works=True,
    found=(("Priya Nair", "priya@harbour.example"), ("", "kim@harbour.example"), (LONG, "max@harbour.example")),
    people="Priya Nair <priya@harbour.example>\nkim@harbour.example",
    button=counted(3, "Send {count} invitation", "Send {count} invitations"),
    needs_approval=False,
    reason="",
)
ROLES: Final = (
    RoleSentence(sentence=SENTENCE, details=DETAILS, what="Approver, Harbour permits", change="/c/1", take_away="/r/1"),
    RoleSentence(
        sentence=WAS,
        details=(),
        tag=phrase("Ended"),
        what="Checker, Harbour permits",
        change="/c/2",
        take_away="/r/2",
    ),
)
PERSON: Final = PersonPage(
    frame=framed("people", up=TO_PEOPLE),
    heading=phrase("{name}", name="Marcus Lee"),
    saved=None,
    user_name="marcus",
    written_user_name="m.lee",
    email="marcus@harbour.example",
    details=form_of(MemberDetails, *PLAIN_DETAILS).show({"department": "Permits", "job_title": "Senior clerk"}),
    state="active",
    state_text=MEMBER_STATES["active"],
    state_sentence=phrase("Can sign in and act for {entity}.", entity=ENTITY),
    level=phrase("{name} is a sub-administrator of {entity} for every service.", name="Marcus Lee", entity=ENTITY),
    mail=None,
    roles=ROLES,
    pager=Pager(),
    access_refused=None,
    own_services=False,
    for_others=(replace(ROLES[1], tag=phrase("No effect at present"), change="", take_away=""),),
    refused=None,
    give_access="/manage/access/new?person=1",
    edit="/manage/person/1/details",
    actions=(Link(url="/manage/person/1/suspend", text=phrase("Suspend")),),
    end=Link(url="/manage/person/1/end", text=phrase("End the membership")),
    entries=(
        HistoryEntry(
            at=NOW,
            what=phrase("{name} got access at {service}", name="Marcus Lee", service="Notices"),
            by="Tan Wei Ling",
        ),
        HistoryEntry(
            at=THEN,
            what=phrase("{name} was invited", name="Marcus Lee"),
            by="Tan Wei Ling",
        ),
    ),
    history="/manage/history?person=1",
    entity=ENTITY,
    number="201912345K",
    number_name=NUMBERS["UEN"],
    as_of=phrase("As of {day}", day=date(2026, 11, 23)),
    helps=tuple(Link(url=f"/manage/person/1/{each}", text=page.link) for each, page in HELP_PAGES.items()),
)
EDIT: Final = EditPerson(
    frame=framed("people", up=UP),
    action="/manage/person/1/details",
    fields=form_of(MemberDetails, "name", "email", *PLAIN_DETAILS).show(
        {"name": "Marcus (Jurong)", "department": "Permits"},
        {
            "name": phrase("Leave it empty to show the name of the account: {name}", name="Marcus Lee"),
            "email": phrase(
                "Leave it empty to show the address of the account: {email}", email="marcus@harbour.example"
            ),
        },
    ),
    seen="4f1d2c3b5a69",
    needs_approval=False,
    reason="",
    back="/manage/person/1",
)
END: Final = ConfirmAction(
    frame=framed("people", up=UP),
    heading=phrase("End the membership of {name}?", name="Marcus Lee"),
    action="/manage/person/1/end",
    sentences=(phrase("{name} can then no longer act for {entity}.", name="Marcus Lee", entity=ENTITY),),
    taken=(SENTENCE, WAS, phrase("The level of sub-administrator")),
    button=phrase("End the membership"),
    look="button-danger",
    back=Link(url="/manage/person/1", text=phrase("Keep the membership")),
    needs_approval=False,
    reason="",
)

HELP: Final = ConfirmAction(
    frame=framed("people", up=UP),
    heading=phrase("Send {name} a link for a new password?", name="Marcus Lee"),
    action="/manage/person/1/new-password",
    sentences=(
        phrase(
            "An e-mail goes to the address of the account {user_name}, and nowhere else.",
            user_name="marcus",
        ),
        phrase(
            "The link works for {minutes} minutes, and asks for a code or a passkey first. Earlier links for a new "
            "password stop working.",
            minutes=30,
        ),
        phrase("The e-mail says that you asked for it, and names {entity}.", entity=ENTITY),
    ),
    button=phrase("Send the link"),
    back=Link(url="/manage/person/1", text=phrase("Go back")),
    needs_approval=False,
    reason="",
)

STATES: Final[Mapping[str, View]] = {
    "portal-person-help": HELP,
    "portal-person-help-refused": replace(
        HELP,
        errors=(
            (
                "",
                phrase(
                    "This cannot be done: {reason}.",
                    reason=phrase("an account is unlocked at most once an hour: wait, or send a link"),
                ),
            ),
        ),
    ),
    "portal-person-help-no-mail": replace(
        HELP, sentences=(), refused=phrase("This system sends no e-mails at present, so only the operator can help.")
    ),
    "portal-person-helped": replace(
        PERSON,
        saved=phrase(
            "If the account can be helped this way, an e-mail is on its way to its own address. If nothing arrives, the "
            "operator can help."
        ),
    ),
    "portal-person-owner": replace(
        PERSON,
        level=phrase("{name} is an owner of {entity} and administers everything.", name="Marcus Lee", entity=ENTITY),
        helps=(),
        help_refused=WHY_NO_HELP[BELOW],
    ),
    "portal-person-requests": replace(
        PERSON,
        requests=(
            Link(
                url="/manage/requests/1",
                text=phrase(
                    "{name} may act as {role} at {service}.", name="Marcus Lee", role="Checker", service="Notices"
                ),
            ),
        ),
    ),
    "portal-people": PEOPLE,
    "portal-people-nobody": replace(PEOPLE, people=(), pager=Pager(), search="zoe", narrowed=True),
    "portal-people-empty": replace(PEOPLE, people=(), pager=Pager()),
    "portal-invite": ONE,
    "portal-invite-wrong": replace(
        ONE,
        fields=form_of(MemberDetails, "name", "email").show({"email": "priya at harbour"}),
        needs_approval=True,
        mail_works=False,
        errors=(
            ("name", phrase("Enter the name of the person.")),
            ("email", phrase("Enter an e-mail address such as name@example.com.")),
        ),
    ),
    "portal-invite-several": SEVERAL,
    "portal-invite-several-wrong": replace(
        SEVERAL,
        people="Priya\nkim@harbour.example",
        errors=(("people", phrase("Line {line}: there is no e-mail address: {text}", line=1, text="Priya")),),
    ),
    "portal-invite-preview": PREVIEW,
    "portal-invite-preview-approval": replace(PREVIEW, needs_approval=True, button=phrase("Send for approval")),
    "portal-person": PERSON,
    "portal-person-invited": replace(
        PERSON,
        heading=phrase("{name}", name=LONG),
        saved=phrase("The invitation is sent again."),
        state="invited",
        state_text=MEMBER_STATES["invited"],
        level=None,
        mail=phrase("The e-mail is about to be sent."),
        roles=(),
        for_others=(),
        actions=(Link(url="/manage/person/1/send-again", text=phrase("Send the invitation again")),),
        end=Link(url="/manage/person/1/revoke", text=phrase("Revoke the invitation")),
        entries=(),
        history=None,
    ),
    "portal-person-refused": replace(
        PERSON,
        refused=phrase(
            "{name} administers {entity}. Only an owner can change this membership.", name="Marcus Lee", entity=ENTITY
        ),
        give_access=None,
        edit=None,
        actions=(),
        end=None,
    ),
    "portal-person-details": EDIT,
    "portal-person-end": END,
    "portal-person-end-approval": replace(END, needs_approval=True, button=phrase("Send for approval")),
    "portal-person-end-refused": replace(
        END,
        sentences=(),
        taken=(),
        refused=phrase(
            "{name} is the last owner of {entity}. Appoint another owner first.", name="Marcus Lee", entity=ENTITY
        ),
    ),
}
