"""The portal's pages about requests and third parties, in the states that look different (D55, D56)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from corpid.rules.directory.access_texts import duration, role_sentence
from corpid.rules.directory.change_texts import describe_authorisation
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.records import APPROVALS, ThirdPartyGrant
from corpid.texts import counted, phrase
from corpid.web.directory.change_sentences import (
    ChangeInWords,
    DisplayValue,
    MemberChange,
)
from corpid.web.directory.people import ChoosePerson, PersonChoice
from corpid.web.directory.requests import STATES as REQUEST_STATES
from corpid.web.directory.requests import ChooseApprovals, Decide, OneRequest, RequestLine, Requests
from corpid.web.directory.third_parties import (
    AuthorisationConfirmation,
    AuthorisationLine,
    Lines,
    OneAuthorisation,
    PersonLine,
    ThirdParties,
)
from corpid.web.directory.third_party_terms import (
    ChooseService,
    EnterTerms,
    FindOrganisation,
    OrganisationLine,
    ParameterField,
    ServiceLine,
)
from corpid.web.pages import role_fields
from corpid.web.pages.layout import Advice, Link, Pager
from tests.browser.portal_states import framed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.views import View

AT: Final = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
LONG: Final = "Vereinigte Donaudampfschifffahrtsgesellschaft und Söhne (Asia Pacific) Private Limited"


REQUESTS: Final = framed("requests")
OF_REQUEST: Final = framed("requests", up=Link(url="/manage/requests", text=Requests.heading))
PARTIES: Final = framed("third-parties")
OF_PARTIES: Final = framed("third-parties", up=Link(url="/manage/third-parties", text=ThirdParties.heading))
CHANGE: Final = ChangeInWords(
    sentence=phrase("The access of {person} at {service} changes.", person="Marcus Goh", service="Harbour permits"),
    members=(
        MemberChange(
            name=phrase("Until"),
            before=DisplayValue(day=date(2026, 12, 31)),
            after=DisplayValue(day=date(2027, 12, 31)),
        ),
        MemberChange(name=phrase("Details"), before=DisplayValue(), after=DisplayValue(text="Permit Year: 2026, 2027")),
    ),
)
LINE: Final = RequestLine(
    url="/manage/requests/1",
    sentence=CHANGE.sentence,
    limits=(phrase("Part of the organisation: {name}", name="Pier 4"),),
    further=0,
    requester="Priya Nair",
    own=False,
    reason="The season is longer this year",
    state=REQUEST_STATES[next(iter(REQUEST_STATES))],
    made=AT,
    ends=datetime(2026, 12, 5, 9, 30, tzinfo=UTC),
)
OWN: Final = replace(LINE, own=True, further=2)
LISTED: Final = Requests(
    frame=REQUESTS,
    action="/manage/requests",
    saved=None,
    filters=(("", phrase("Waiting")), ("ended", phrase("All that have ended"))),
    chosen="",
    setting="/manage/approvals-setting",
    approvals=APPROVALS["roles"],
    waiting=(LINE, replace(LINE, requester=LONG)),
    own=(OWN,),
    waiting_pager=Pager(next="/manage/requests?waiting=1"),
    own_pager=Pager(),
)
SHOWN: Final = OneRequest(
    frame=OF_REQUEST,
    saved=None,
    changes=(CHANGE,),
    line=LINE,
    decided_by="",
    decided_reason="",
    pending=True,
    why_not=None,
    decide="/manage/requests/decide/1",
    withdraw="",
)
DECIDING: Final = Decide(
    frame=OF_REQUEST,
    action="/manage/requests/decide/1",
    heading=phrase("Approve or decline"),
    changes=(CHANGE,),
    line=LINE,
    why_no_approval=None,
    withdrawing=False,
    name_changes=(),
    typed="",
    back="/manage/requests/1",
    notes=(),
)
SETTING: Final = ChooseApprovals(
    frame=OF_REQUEST,
    action="/manage/approvals-setting",
    options=tuple((value, text, "") for value, text in APPROVALS.items()),
    chosen="roles",
    strict=True,
    typed="",
    back="/manage/requests",
    notes=(),
)
GRANT: Final = ThirdPartyGrant(
    client_entity_id="A",
    entity_id="B",
    service_id="TAX",
    role="Preparer",
    start_date="2026-01-01",
    end_date="2027-12-31",
)
SENTENCE: Final = describe_authorisation(
    GRANT, client="Saltwater Foods Pte. Ltd.", third_party="Kingfisher Accountants", service="Tax filing"
)
PARTY: Final = AuthorisationLine(
    url="/manage/third-parties/grant/1",
    name="Kingfisher Accountants",
    number="209912345D",
    number_name=NUMBERS["UEN"],
    service="Tax filing",
    role="Preparer",
    has_roles=True,
    dates=duration(GRANT.start_date, GRANT.end_date),
    state=phrase("Active"),
    warns=False,
)
GIVEN: Final = Lines(
    title=phrase("Who may act for your organisation"),
    caption=phrase("Other organisations that you have authorised, or made an offer to"),
    organisation=phrase("Third party"),
    empty=phrase("No other organisation may act for yours."),
    lines=(PARTY, replace(PARTY, name=LONG, role="", state=phrase("Offered"))),
    pager=Pager(),
)
OFFERS: Final = Lines(
    title=phrase("Offers that need your answer"),
    caption=phrase("Organisations that ask yours to act for them"),
    organisation=phrase("Organisation"),
    empty=None,
    lines=(replace(PARTY, state=phrase("Needs your answer"), warns=True),),
    pager=Pager(next="/manage/third-parties?offers=1"),
)
BOTH: Final = ThirdParties(
    frame=PARTIES,
    action="/manage/third-parties",
    offer="/manage/third-parties/offer",
    organisation="",
    parts=(OFFERS, GIVEN),
    saved=None,
)
WEI_LING: Final = PersonLine(
    name="Lim Wei Ling", role="Preparer", dates=duration(GRANT.start_date, GRANT.end_date), signed_in=AT
)
AUTHORISATION: Final = OneAuthorisation(
    frame=OF_PARTIES,
    heading=phrase("{name}: {service}", name="Kingfisher Accountants", service="Tax filing"),
    saved=None,
    sentence=SENTENCE,
    state=phrase("Active"),
    warns=False,
    note=None,
    facts=((phrase("Only with"), "Tax Year: 2025, 2026"),),
    number="209912345D",
    number_name=NUMBERS["UEN"],
    client=True,
    accept="",
    decline="",
    change="/manage/third-parties/change/1",
    end="/manage/third-parties/end/1",
    withdraw="",
    assign="",
    people_title=phrase("Who may act for your organisation"),
    empty=phrase("{name} has not given any of its people access yet.", name="Kingfisher Accountants"),
    people=(WEI_LING, replace(WEI_LING, name=LONG, signed_in=None)),
    pager=Pager(),
)
TERMS: Final = EnterTerms(
    frame=OF_PARTIES,
    action="/manage/third-parties/offer",
    heading=phrase("What may {name} do?", name="Kingfisher Accountants"),
    lead=(phrase("At {service}, for {client}.", service="Tax filing", client="Saltwater Foods Pte. Ltd."),),
    roles=(("*", phrase("Any role"), ""), ("Preparer", "Preparer", "Prepares returns, and cannot file them")),
    role="*",
    sub_entity="",
    sub_entity_hint=phrase("Leave it empty to allow any."),
    start="2026-11-21",
    end="",
    end_hint=phrase("Leave it empty for no end."),
    parameters=(
        ParameterField(
            name="parameter-0", label=role_fields.mark_label("Tax Year", required=False), value="2026",
            hint=phrase("The values that are allowed, one per line. Leave it empty to allow any."),
        ),
    ),
    hidden=(("to", "B"),),
    reason="",
    back="/manage/third-parties/offer",
    notes=(),
)  # fmt: skip
MEMBER: Final = PersonChoice(
    url="/manage/third-parties/assign/1?person=1", name="Lim Wei Ling", user_name="wei.ling", why_not=None
)

STATES: Final[Mapping[str, View]] = {
    "portal-requests": LISTED,
    "portal-requests-none": replace(LISTED, waiting=(), own=(), waiting_pager=Pager()),
    "portal-requests-ended": replace(
        LISTED, chosen="ended", ended=(replace(LINE, state=phrase("Approved")), OWN), ended_pager=Pager(first="/manage/requests")
    ),
    "portal-request": SHOWN,
    "portal-request-nobody": replace(
        SHOWN,
        line=OWN,
        decide="",
        why_not=phrase("You made this request, so you cannot approve it yourself."),
        nobody=Advice(
            text=phrase("A second owner or administrator could approve it."),
            link=Link(url="/manage/administrators/appoint", text=phrase("Appoint somebody")),
        ),
        withdraw="/manage/requests/withdraw/1",
    ),
    "portal-request-own": replace(
        SHOWN,
        line=OWN,
        decide="",
        withdraw="/manage/requests/withdraw/1",
        why_not=phrase("You made this request, so another administrator has to decide."),
    ),
    "portal-request-declined": replace(
        SHOWN,
        line=replace(LINE, state=phrase("Declined")),
        pending=False,
        decide="",
        decided_by="Tan Wei Ling",
        decided_reason="The season ends in December",
        saved=phrase("The request has been declined. Nothing has changed."),
    ),
    "portal-decide": DECIDING,
    "portal-decide-renamed": replace(
        DECIDING, name_changes=(("siti (Siti Contoh)", "siti (Cora Chan)"), ("", "gina@harbour.example (Gina Teo)"))
    ),
    "portal-decide-wrong": replace(
        DECIDING, errors=(("reason", phrase("Enter a reason. The person who made the request reads it.")),)
    ),
    "portal-decide-only-decline": replace(
        DECIDING,
        why_no_approval=phrase("You can decline it, but not approve it: {reason}.", reason="you do not have permission"),
    ),
    "portal-withdraw": replace(DECIDING, heading=phrase("Withdraw your request?"), withdrawing=True, line=OWN),
    "portal-approvals": SETTING,
    "portal-approvals-alone": replace(
        SETTING,
        chosen="all",
        strict=False,
        errors=(
            (
                "approvals",
                phrase("At least two people are needed who can approve: appoint another owner or administrator first."),
            ),
        ),
    ),
    "portal-third-parties": BOTH,
    "portal-third-parties-none": replace(BOTH, parts=(replace(GIVEN, lines=()),)),
    "portal-third-parties-not-found": replace(
        BOTH,
        parts=(),
        organisation="Kingfisher",
        errors=(("organisation", phrase("No organisation has exactly this number or name.")),),
    ),
    "portal-third-party": AUTHORISATION,
    "portal-third-party-offer": replace(
        AUTHORISATION,
        client=False,
        state=phrase("Needs your answer"),
        warns=True,
        accept="/manage/third-parties/accept/1",
        decline="/manage/third-parties/decline/1",
        change="",
        end="",
        people=(),
        note=phrase("{name} made this offer. If you accept it, you can give your people access.", name="Saltwater Foods Pte. Ltd."),
        empty=phrase("None of your people may act here yet."),
    ),
    "portal-third-party-people": replace(
        AUTHORISATION,
        client=False,
        change="",
        assign="/manage/third-parties/assign/1",
        people_title=phrase("Your people who act here"),
        people=(
            replace(
                WEI_LING,
                name="wei.ling (Lim Wei Ling)",
                change="/manage/third-parties/change-role/1",
                take_away="/manage/third-parties/take-away/1",
            ),
        ),
        saved=phrase("The access has been given."),
    ),
    "portal-find-organisation": FindOrganisation(
        frame=OF_PARTIES,
        action="/manage/third-parties/offer",
        typed="209912345D",
        found=(
            OrganisationLine(
                url="/manage/third-parties/offer?to=B", name="Kingfisher Accountants", number="209912345D", number_name=NUMBERS["UEN"]
            ),
        ),
        back="/manage/third-parties",
        notes=(),
    ),
    "portal-choose-service": ChooseService(
        frame=OF_PARTIES,
        name="Kingfisher Accountants",
        services=(
            ServiceLine(url="/manage/third-parties/offer?to=B&service=TAX", name="Tax filing", description="Yearly returns"),
            ServiceLine(url="/manage/third-parties/offer?to=B&service=C", name="Customs", description=""),
        ),
        back="/manage/third-parties/offer",
        notes=(),
    ),
    "portal-choose-person": ChoosePerson(
        frame=OF_PARTIES,
        heading=phrase("Which of your people will act?"),
        asked=phrase("Choose the person"),
        lead=SENTENCE,
        action="/manage/third-parties/assign/1",
        find="wei",
        found=(
            MEMBER,
            replace(MEMBER, url="", name=LONG, user_name="", why_not=phrase("Has not accepted the invitation yet")),
        ),
        pager=Pager(next="/manage/third-parties/assign/1?after=wei"),
    ),
    "portal-terms": TERMS,
    "portal-terms-wrong": replace(
        TERMS,
        end="2026-01-01",
        errors=(
            ("end", phrase("The last day is before the first one.")),
            ("parameter-0", phrase("Enter a value for {name}.", name="Tax Year")),
        ),
    ),
    "portal-check-access": AuthorisationConfirmation(
        frame=OF_PARTIES,
        action="/manage/third-parties/assign/1",
        heading=phrase("Check the access"),
        sentence=role_sentence(
            "Lim Wei Ling",
            msgspec.structs.replace(GRANT, role="Preparer", start_date="2026-01-01", end_date="9999-12-31"),
            service="Tax filing",
            entity="Saltwater Foods Pte. Ltd.",
        ),
        facts=((phrase("Only with"), "Tax Year: 2026"),),
        consequences=(phrase("{name} sees that this person acts for it.", name="Saltwater Foods Pte. Ltd."),),
        button=phrase("Give access"),
    ),
    "portal-end": AuthorisationConfirmation(
        frame=OF_PARTIES,
        action="/manage/third-parties/end/1",
        heading=phrase("End this authorisation?"),
        sentence=phrase(
            "{third_party} may no longer act for {client} at {service}, from now on.",
            third_party=LONG, client="Saltwater Foods Pte. Ltd.", service="Tax filing",
        ),
        consequences=(
            counted(
                12,
                "{count} role of a person of {name} ends with it.",
                "{count} roles of people of {name} end with it.",
                name="Kingfisher Accountants",
            ),
        ),
        reason="",
        button=phrase("End it now"),
        danger=True,
        back="/manage/third-parties/grant/1",
    ),
}  # fmt: skip
