"""The gallery: every component of pages in the states that look different, with texts of real pages."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from corpid.texts import counted, phrase
from corpid.web.directory.people import UPLOADED
from corpid.web.pages.client_fields import FieldGroup
from corpid.web.pages.components import (
    ACTIVE,
    DISABLED,
    INVITED,
    Actions,
    Alert,
    Alerts,
    AppKey,
    BoldName,
    ButtonForm,
    Cell,
    Chart,
    Checkboxes,
    Choice,
    Code,
    Column,
    Details,
    Disclosure,
    English,
    Entry,
    EntryList,
    Facts,
    Field,
    Filters,
    ForeignText,
    Form,
    Frame,
    Group,
    Heading,
    Items,
    Label,
    LetterHead,
    Link,
    LinkList,
    Links,
    NavigationLink,
    Page,
    Pager,
    Paragraph,
    Part,
    PasskeyForm,
    Progress,
    QuietButtons,
    Radios,
    RecoveryCodes,
    RoleChoice,
    RoleGroup,
    Selection,
    Series,
    Snippet,
    Snippets,
    Subsection,
    Table,
    Tabs,
    Tile,
    Tiles,
    Timeline,
    TimelineEntry,
    View,
    table,
)
from corpid.web.sites import Check
from tests.browser.portal_states import framed

if TYPE_CHECKING:
    from collections.abc import Mapping


NOW: Final = datetime(2026, 11, 30, 9, 30, tzinfo=UTC)
LONG: Final = "Maria Magdalena van der Bergh-Oosterhuizen"
_UP: Final = Link(url="/manage/people", text=phrase("People"))
_KEEP: Final = Link(url="/manage/people", text=phrase("Cancel"))


def _rows() -> tuple[tuple[object, ...], ...]:
    people = (
        ("Marcus Lee", "marcus", ACTIVE, 3, NOW),
        (LONG, "magdalena.van.der.bergh@harbour.example", INVITED, 0, None),
        ("Tan Wei Ling", "wei.ling", DISABLED, 12, NOW - timedelta(days=40)),
    )
    return tuple(
        (
            Choice(value=user_name, name=phrase("Select {name}", name=name), chosen=name == LONG) if at != 2 else None,
            Cell(values=(Link(url=f"/manage/person/{at}", text=name),), notes=("Berths, Jurong",) if not at else ()),
            user_name,
            state,
            counted(roles, "{count} role", "{count} roles") if roles else phrase("None"),
            last,
        )
        for at, (name, user_name, state, roles, last) in enumerate(people)
    )


FILTERS: Final = Filters(
    action="/manage/people",
    fields=(
        Field(
            name="q", kind="search", label=phrase("Name, e-mail address or other details"), value="harbour", most=100
        ),
        Field(
            name="state", kind="words", label=phrase("State"), value="",
            words=(("", phrase("Any")), ("active", phrase("Active"))),
        ),
        Field(name="from", kind="date", label=phrase("From"), value="2026-11-01"),
    ),
)  # fmt: skip
LIST: Final = Table(
    caption=phrase("People by user name"),
    filters=FILTERS,
    columns=(
        Column(phrase("Name")),
        Column(phrase("User name"), "/manage/people?sort=-user_name", "ascending"),
        Column(phrase("State"), "/manage/people?sort=state"),
        Column(phrase("Access")),
        Column(phrase("Last sign-in")),
    ),
    rows=_rows(),  # type: ignore[arg-type]
    selection=Selection(
        action="/manage/people/selected",
        buttons=(("give", phrase("Give access")), ("suspend", phrase("Suspend")), ("end", phrase("End memberships"))),
        total=1005,
        everything=counted(1005, "Select all {count} in this list", "Select all {count} in this list, not only on this page"),
    ),
    pager=Pager(
        first="/manage/people", previous="/manage/people?before=a", next="/manage/people?after=b",
        total=phrase("{first}–{last} of {count}", first=51, last=100, count=1005),  # noqa: RUF001 - a dash
    ),
    csv="/manage/people/list.csv",
)  # fmt: skip
HISTORY: Final = Timeline(
    (
        TimelineEntry(
            text=Link(url="/manage/history/2", text=phrase("{name} was invited", name="kim@harbour.example")),
            by="marcus (Marcus Lee)",
            at=NOW,
        ),
        TimelineEntry(
            text=Cell(
                values=(
                    phrase("The membership of {name} was suspended", name="priya (Priya Nair)"),
                    Details(about="1", facts=((phrase("Reason"), "On leave"),)),
                )
            ),
            by="marcus (Marcus Lee)",
            at=NOW - timedelta(days=3),
        ),
    )
)
EMPTY: Final = Table(
    caption=phrase("What people may do for your organisation"),
    heading=True,
    columns=(),
    rows=(),
    empty=Cell(values=(phrase("Nobody has access yet."), Link(url="/manage/access/new", text=phrase("Give access")))),
)
PLAIN: Final = table(
    phrase("Before and after this change"),
    (phrase("What"), phrase("Before"), phrase("After")),
    (
        (phrase("Name"), "Marcus", "Marcus Lee"),
        (phrase("Until"), None, date(2027, 12, 31)),
        (phrase("Role"), Code("checker"), Details(about="Approver", facts=((phrase("Service"), "Harbour permits"),))),
    ),
    heading=True,
    more=counted(3, "{count} more role is not listed here.", "{count} more roles are not listed here."),
)
ERRORS: Final = (
    ("name", phrase("Enter the name of the person.")),
    ("end", phrase("Choose one of these roles, or none yet.")),
    ("role", phrase("Choose what these people may do.")),
)
FIELDS: Final[tuple[Part, ...]] = (
    Field(name="name", label=phrase("Name"), value="", hint=phrase("As your organisation calls this person")),
    Field(name="email", kind="email", label=phrase("E-mail address"), value="marcus@harbour.example", most=100),
    Field(name="end", kind="words", label=phrase("The access ends"), value="", words=(("", phrase("No end date")),)),
    Field(name="day", kind="date", label=phrase("From"), value="2026-12-01", optional=True),
    Field(name="people", kind="lines", label=phrase("People"), value="Marcus Lee <marcus@harbour.example>"),
    UPLOADED,
    Radios(
        name="role",
        legend=phrase("What may these people do?"),
        options=(
            ("checker", "Harbour permits: Checker", "Checks applications and sends them back or on for approval."),
            ("approver", "Harbour permits: Approver", None),
        ),
        value="approver",
        hint=phrase("Several people match."),
    ),
    *(
        RoleChoice(
            name=f"access-{folded}",
            legend=phrase("What may the person do?"),
            groups=(
                RoleGroup(
                    name="Harbour permits",
                    options=(
                        ("HARBOUR/Checker", "Harbour permits: Checker", "Checks applications."),
                        ("HARBOUR/Approver", "Harbour permits: Approver", ""),
                    ),
                    fields=(
                        Field(
                            name=f"year-{folded}",
                            kind="numeric",
                            label=phrase("{name} (required)", name="Permit Year"),
                            hint=phrase("A year, such as 2026"),
                            value="",
                        ),
                    ),
                ),
                RoleGroup(name="Notices", options=(("NOTICES", "Notices", ""),)),
            ),
            asked=(f"check-{folded}", "all"),
            value="HARBOUR/Approver",
            folded=folded,
        )
        for folded in (False, True)
    ),
    Checkboxes(
        legend=phrase("What do you want to give?"),
        options=(("copy-1", "Harbour permits: Checker", True, "Jurong"), ("copy-2", "Notices", False, None)),
        hint=phrase("There is more. Copy these first, then open this page again."),
    ),
    FieldGroup(
        legend=phrase("Organisation"),
        fields=(Field(name="client_name", label=phrase("Name"), value="Harbour Board"),),
    ),
    Disclosure(summary=phrase("Change people or access"), parts=(phrase("Nothing has been sent yet."),)),
)


async def _nothing() -> None:
    """The change of a check that is only looked at."""


REMOVAL: Final = Check(
    heading=phrase("Remove this access?"),
    parts=(
        Paragraph(
            phrase("{count} people lose {roles}.", count=2, roles=counted(3, "{count} role", "{count} roles")),
            look="summary",
        ),
        Items((phrase("Permit Year: {value}", value="2026"), phrase("The level of administrator"))),
        phrase("{name} will no longer be able to do this. Other access of {name} stays as it is.", name="Marcus Lee"),
    ),
    button=phrase("Remove access"),
    danger=True,
    back=_KEEP,
    change=_nothing,
)
APPROVED: Final = Check(
    heading=phrase("Suspend {name}?", name="Marcus Lee"),
    parts=(
        phrase("{name} will no longer be able to act for {entity}.", name="Marcus Lee", entity="Harbour Logistics"),
    ),
    button=phrase("Suspend"),
    needs_approval=True,
    back=_KEEP,
    change=_nothing,
)
REFUSED: Final = Check(
    heading=phrase("Send the invitation again?"),
    parts=(phrase("The link in the e-mail will stop working."),),
    refused=phrase("This invitation has no e-mail address to go to. Add one first."),
    button=phrase("Send again"),
    up=_UP,
    change=_nothing,
)


def _numbers(most: int) -> list[int]:
    return [at * 37 % most for at in range(30)]


CHART: Final = Chart(
    name="traffic",
    title=phrase("Sign-ins and refusals"),
    by_hour=False,
    beginnings=[NOW - timedelta(days=30 - at) for at in range(30)],
    series=(
        Series(title=phrase("Completed sign-ins per day"), values=_numbers(900), colour="good"),
        Series(title=phrase("Refused requests per day"), values=_numbers(11), colour="bad"),
    ),
    ranges=Tabs(
        label=phrase("Time range"),
        links=(
            NavigationLink(url="/console?range=7", text=phrase("7 days")),
            NavigationLink(url="/console?range=30", text=phrase("30 days"), current=True),
            NavigationLink(url="/console?range=90", text=phrase("90 days")),
        ),
    ),
)
TABS: Final = Tabs(
    label=phrase("State"),
    links=(
        NavigationLink(url="/manage/requests", text=phrase("Waiting"), current=True, count=12),
        NavigationLink(url="/manage/requests?state=ended", text=phrase("All that have ended"), count=1204),
        NavigationLink(url="/manage/requests?state=approved", text=phrase("Approved")),
        NavigationLink(url="/manage/requests?state=declined", text=phrase("Declined")),
    ),
)
TILES: Final = Tiles(
    tiles=(
        Tile(label=phrase("Sign-ins"), value=18204, note=phrase("{count} in this list", count=17950), url="/console"),
        Tile(label=phrase("Refused"), value="7.4 %", note="1.2 %", tone="error"),
        Tile(label=phrase("Last sign-in"), value=NOW.date(), note=None),
        Tile(label=phrase("State"), value=phrase("None")),
    )
)
ALERTS: Final = Alerts(
    alerts=(
        Alert(
            label=Label(phrase("Waiting"), "warning"),
            text=counted(2, "{count} request needs your decision", "{count} requests need your decision"),
            link=Link(url="/manage/requests", text=phrase("Requests")),
        ),
        Alert(label=Label(phrase("Refused"), "error"), text=English("Key `k1` expires in two days.")),
    )
)
FACTS: Final = Facts(
    (
        (phrase("State"), Cell(values=(Label(phrase("Active"), "good"), INVITED, DISABLED), notes=("Jurong",))),
        (phrase("Name"), LONG),
        (phrase("Last sign-in"), NOW),
        (phrase("Until"), date(2027, 12, 31)),
        (phrase("Access"), 12),
        (phrase("Reference"), Code("6b0d315a769964b2")),
        (phrase("Reason"), None),
    )
)
CHANGES: Final = LinkList(
    links=tuple(
        (
            Link(url=f"/manage/history/{at}", text=phrase("{name}: {service}", name=name, service="Harbour permits")),
            Cell(values=("Tan Wei Ling", NOW - timedelta(hours=at))),
        )
        for at, name in enumerate(("Marcus Lee", LONG))
    )
)

GALLERY: Final = Page(
    frame=framed("people", up=_UP),
    heading=phrase("People"),
    main_action=Link(url="/manage/invite", text=phrase("Invite people")),
    saved=counted(1, "{count} person suspended: {who}", "{count} people suspended: {who}", who=LONG),
    undo=ButtonForm(action="/manage/undo", fields=(("undone", "1"),)),
    notes=(phrase("You have signed in again. Nothing has changed yet: continue here."),),
    parts=(
        LetterHead(name="Harbour Logistics Pte. Ltd.", number=phrase("{name}", name="UEN 200012345A"), as_of=phrase("{name}", name="2026-11-30")),
        Actions(
            (
                Link(url="/manage/access/new", text=phrase("Give access")),
                Link(url="/manage/invite", text=phrase("Invite a person")),
            ),
            danger=Link(url="/manage/end", text=phrase("End the membership")),
            main=True,
        ),
        TABS,
        LIST,
        EMPTY,
        HISTORY,
        Heading(phrase("At a glance")),
        TILES,
        CHART,
        Heading(phrase("Needs you")),
        ALERTS,
        Group(look="beside", parts=(Group(look="stack", parts=(PLAIN,)), FACTS)),
        Heading(phrase("Last changes")),
        CHANGES,
        Paragraph(phrase("Only access at the services that you administer is counted."), look="hint"),
        Paragraph(phrase("Nothing needs you at present."), look="empty"),
        Paragraph(phrase("Names have changed since this was requested. Check that the right person is meant."), look="warning"),
        Snippets(
            snippets=(
                Snippet(title="Python", text="issuer = 'https://op.example'", note="Needs joserfc."),
                Snippet(title="Go", text="package main"),
            )
        ),
    ),
)  # fmt: skip
FORM: Final = Page(
    frame=framed("people", up=_UP),
    heading=phrase("Invite several people"),
    errors=ERRORS,
    back="/manage/people",
    parts=(
        phrase("Nothing has been sent yet."),
        Form(
            parts=FIELDS, upload=True, decision="check", button=phrase("Check"),
            other=("edit", phrase("Change something")), needs_approval=True,
        ),
    ),
)  # fmt: skip


_ABOUT: Final = phrase("with {client}, for {entity}", client="Harbour Permits", entity="Acme")
OWN: Final = Page(
    frame=Frame(form_token="t0ken", up=Link(url="/account", text=phrase("Your account"))),
    action="/account",
    heading=phrase("Your account"),
    parts=(
        phrase("E-mails to you go to {address}.", address=BoldName("wei.ling@harbour.example")),
        EntryList(
            (
                Entry(
                    title="Work laptop",
                    notes=(
                        "Firefox on Linux", Label(phrase("Not in effect"), "warning"),
                        phrase("Last used {moment}", moment=NOW),
                    ),
                    parts=(
                        QuietButtons(buttons=(("", phrase("Sign out there")),), hidden=(("browser", "1"),), about="Work laptop"),
                        Disclosure(
                            summary=phrase("What is shared"), about=_ABOUT, parts=(Items((phrase("Your name"),)),)
                        ),
                        Link(url="/account/browser/1", text=phrase("Change its name"), about="Work laptop"),
                    ),
                ),
                Entry(title=LONG, notes=(phrase("This browser"),)),
            )
        ),
        *(
            Subsection(
                heading=name, state=Label(phrase("Suspended"), "warning"), folded=folded,
                note=counted(1, "{count} role", "{count} roles"), parts=(phrase("You have no role here yet."),),
            )
            for name, folded in (("Harbour Works Pte. Ltd.", True), (LONG, True), ("Acme Pte. Ltd.", False))
        ),
        PasskeyForm(
            action="/passkey", options="{}", kind="create", label=phrase("Set up a passkey"), other="after",
            text=phrase("With a passkey you sign in with your fingerprint, your face or your device's PIN."),
        ),
        AppKey(picture="/qr.svg", link="otpauth://totp/CorpID:wei.ling", secret="JBSW Y3DP EHPK 3PXP"),
        RecoveryCodes(codes=("kyh7-n2ft-qwe3-x4sd", "2yh7-n2ft-qwe3-x4se")),
        Form(
            parts=(
                Field(name="user_name", label=phrase("User name"), kind="own user name", value="wei.ling"),
                Field(name="password", label=phrase("New password"), kind="new password", value=""),
                Field(name="code", label=phrase("Code"), kind="code", value=""),
                Field(name="kept", label=phrase("I have saved these codes."), kind="flag", value=""),
                Radios(
                    name="language", legend=phrase("Your language"), value="ms",
                    options=(("en", ForeignText("English", "en", "ltr"), None), ("ms", ForeignText("Bahasa Melayu", "ms", "ltr"), None)),
                ),
            ),
            button=phrase("Accept"), secondary=True, decision="accept", other=("decline", phrase("Decline")),
            more=(("other", phrase("Use another account")),),
        ),
        Disclosure(
            summary=phrase("I cannot sign in at all"), look="help",
            parts=(phrase("Choose one of the options."),),
        ),
        Links((Link(url="/later", text=phrase("Later ones")), Link(url="/earlier", text=phrase("Earlier ones")))),
    ),
    errors=(("code", phrase("Enter 6 digits.")), ("kept", phrase("Save your codes first, then tick the box."))),
)  # fmt: skip
"""components of pages of one person, which are narrow"""


def _page_of(asked: Check) -> Page:
    return Page(frame=framed("people", up=asked.up or _UP), heading=asked.heading, parts=asked.show())


STATES: Final[Mapping[str, View]] = {
    "components": GALLERY,
    "components-form": FORM,
    "components-own": OWN,
    "components-check": _page_of(REMOVAL),
    "components-check-approval": _page_of(APPROVED),
    "components-check-refused": _page_of(REFUSED),
    "components-progress": Page(
        frame=framed("history"),
        heading=phrase("Verification of the audit"),
        parts=(
            Progress(
                text=phrase("{done} of {total} seals verified", done=120, total=480), done=120, total=480, page="/again"
            ),
        ),
    ),
}
