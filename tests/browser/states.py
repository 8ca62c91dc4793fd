"""Every page of the provider in every state that looks different, with names as they are met in practice.

A house test holds that no view and no template is missing (tests/house/test_pages.py).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import pytest
from msgspec import structs
from msgspec.structs import replace

from corpid.flows.authentication.sign_in import WRONG_PASSWORD
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.parties import consent_items, consent_summary
from corpid.rules.directory.records import ListedTestPerson
from corpid.rules.oauth import acr
from corpid.rules.oauth.errors import TemporarilyUnavailable, TooManyRequests
from corpid.rules.oauth.refusals import Reason
from corpid.texts import phrase
from corpid.web.authentication import endpoints
from corpid.web.authentication.endpoints import SignInEnd
from corpid.web.pages import errors, views
from corpid.web.pages.components import ButtonForm, Frame, Link, View
from corpid.web.pages.errors import ErrorContext
from corpid.web.pages.views import AskPasskey, SecondFactorForm
from corpid_dev.web import documents
from tests.browser import (
    access_states,
    account_states,
    component_states,
    console_directory_states,
    console_states,
    developer_states,
    enrolment_states,
    invitation_states,
    party_states,
    people_states,
    portal_home_states,
    portal_states,
    review_states,
)
from tests.browser.common_states import LIMIT, NO_PASSKEY, PASSKEY, WRONG, WRONG_CODE
from tests.browser.seeded import Seeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark.structures import ParameterSet


LONG: Final = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesellschaft mbH"
FRAME: Final = Frame(
    client_name="Harbour Board",
    message="Your yearly return for 2026",
    step=(1, 4),
    step_name="1",
    form_token="t0ken",
    cancel=ButtonForm(action="/cancel"),
    limit=LIMIT,
    under_way=True,
)
KNOWN: Final = structs.replace(FRAME, user_name="wei.ling@harbour.example", step=(2, 4))
LAST_LIMIT: Final = structs.replace(LIMIT, extend=None, last_time=phrase("You cannot get more time for this sign-in."))
ENDING: Final = structs.replace(KNOWN, step=(3, 4), limit=structs.replace(LAST_LIMIT, seconds=90))
CROWDED: Final = structs.replace(
    KNOWN,
    client_name=f"Ministry of Trade, {LONG}",
    message="W" * 100,
    user_name=f"{'a' * 60}@{'b' * 40}.example",
    entity=LONG,
)
GONE: Final = Frame(client_name="Harbour Board", message="Your yearly return for 2026")
AGAIN: Final = phrase(
    "To change how you sign in, sign in again: you last signed in more than {minutes} minutes ago.", minutes=5
)
BACK: Final = Link(url="/leave", text=phrase("Return to {name}", name="Harbour Board"))
CHOICES: Final = (
    views.Choice(
        id="1", name="Harbour Works Pte. Ltd.", number="200000001A", number_name=NUMBERS["UEN"], preselected=True
    ),
    views.Choice(id="2", name=LONG, number="T00000000K", number_name=NUMBERS["UEN"], status=phrase("Registered")),
    views.Choice(id="3", name="海港工程有限公司", number="200000003C", number_name=NUMBERS["UEN"]),
    views.Choice(id="4", name="שירותי הנמל בע״מ (Haifa)", number="513-22-1", number_name=NUMBERS["UEN"]),
    views.Choice(
        id="5",
        name="Tambak Ria Sdn. Bhd.",
        number="199901234K",
        number_name=NUMBERS["UEN"],
        status=phrase("Deregistered"),
        usable=False,
        reason=phrase("You no longer act for this organisation."),
    ),
)
MANY: Final = tuple(
    views.Choice(
        id=f"m{n}",
        name=f"Harbour Works {n} Pte. Ltd.",
        number=f"2000{n:05}A",
        number_name=NUMBERS["UEN"],
        preselected=not n,
    )
    for n in range(60)
)
CHOOSE: Final = views.ChooseEntity(
    frame=structs.replace(KNOWN, step=(3, 4)), action="/entity", search_action="/entity", choices=CHOICES, total=5
)
CODE: Final = views.SecondFactor(
    frame=structs.replace(KNOWN, step=None),
    action="/code",
    heading=phrase("Enter your 6-digit code"),
    asked=SecondFactorForm(
        hint=phrase("Open your authenticator app. It shows a new code every 30 seconds."),
        ways_action="/way",
        ways=(("email", phrase("Send me a code by e-mail")), ("recovery", phrase("Use a recovery code"))),
    ),
    sends_mail=True,
)
BY_MAIL: Final = SecondFactorForm(
    hint=phrase("We can send a 6-digit code to {address}.", address="w•••@harbour.example"),
    label=None,
    send=True,
    ways_action="/way",
    ways=CODE.asked.ways[1:],
)
BY_RECOVERY: Final = SecondFactorForm(
    hint=phrase("One of the codes that you saved when you set up your sign-in. Each works once."),
    label=phrase("Recovery code"),
    numeric=False,
    ways_action="/way",
)
BY_PASSKEY: Final = SecondFactorForm(
    hint=phrase("Your device asks for your fingerprint, your face or its PIN."),
    label=None,
    passkey=PASSKEY,
    ways_action="/way",
    ways=CODE.asked.ways[1:],
)
SCOPES: Final = ("openid", "authinfo", "tpauthinfo", "entity.identity", "user.name")
SIGN_IN: Final = views.SignIn(
    frame=structs.replace(FRAME, step=None), action="/password", passkey=PASSKEY, recover="/recover"
)
SIGN_IN_AGAIN: Final = replace(
    SIGN_IN,
    frame=structs.replace(FRAME, client_name="CorpID", message=None, step=None, reason=AGAIN),
    person="Tan Wei Ling",
    user_name="wei.ling",
    passkey_first=True,
)
AT_ONCE: Final = views.TestPersonForm(
    action="/at-once",
    anybody="/developer/anybody",
    people=(
        ListedTestPerson(user_name="rina", name="Rina Example", entities=("209900042K",)),
        ListedTestPerson(user_name="haruka", name="見本 はるか", entities=("C00000025B", "209733310R")),
        ListedTestPerson(user_name="long", name=LONG),
    ),
    ways=tuple(acr.SIMULATED),
)
OFFER: Final = views.OfferPasskey(
    frame=structs.replace(KNOWN, step=None, cancel=None),
    action="/offer",
    passkey=AskPasskey(action="/offer", options='{"challenge": "AAAA", "rp": {"id": "localhost", "name": "CorpID"}}'),
)
CONSENT: Final = views.Consent(
    frame=structs.replace(KNOWN, step=(4, 4), entity=CHOICES[0].name),
    action="/consent",
    summary=consent_summary(SCOPES),
    items=consent_items(SCOPES),
    until=datetime(2027, 11, 20, 14, 32, tzinfo=UTC),
)
CONFIRM: Final = views.SignInConfirmationView(
    frame=structs.replace(KNOWN, step=None, entity=CHOICES[0].name),
    action="/confirm",
    user_name="Tan Wei Ling",
    entity=CHOICES[0].name,
)
EXPLAIN: Final = views.Explain(
    frame=structs.replace(KNOWN, step=None, cancel=None), action="/cancel", choices=CHOICES[4:], total=1
)
EXPIRED: Final = endpoints.ending_page(SignInEnd.EXPIRED, "Harbour Board", GONE, BACK)
ELSEWHERE: Final = Link(url="https://harbour.example/", text=phrase("Go to {name}", name="Harbour Board"))
BUSY: Final = errors.problem(
    TemporarilyUnavailable(Reason.STORE_UNAVAILABLE, "the provider is busy or down: try again in a moment"),
    ErrorContext(
        frame=structs.replace(GONE, under_way=True), back=Link(url="", text=phrase("Open the page again")), goes_on=True
    ),
    "0123456789abcdef",
)
CROWD: Final = errors.problem(
    TooManyRequests(
        Reason.RATE_LIMIT_OF_ADDRESS, "too many requests from one address: at most 600 a minute", retry_after=42
    ),
    ErrorContext(),
    "0123456789abcdef",
)

_VIEWS: Final[dict[str, View]] = {
    "sign-in": SIGN_IN,
    "sign-in-passkey-first": replace(SIGN_IN, passkey_first=True),
    "sign-in-without-passkeys": replace(SIGN_IN, passkey=None, frame=structs.replace(FRAME, limit=LAST_LIMIT)),
    "sign-in-again": SIGN_IN_AGAIN,
    "sign-in-again-refused": replace(SIGN_IN_AGAIN, passkey=None, errors=(("password", WRONG_PASSWORD),)),
    "sign-in-again-crowded": replace(SIGN_IN_AGAIN, person=LONG, user_name=f"{'a' * 60}@{'b' * 40}.example"),
    "sign-in-refused": replace(SIGN_IN, user_name="wei.ling", errors=(WRONG,)),
    "sign-in-passkey-refused": replace(SIGN_IN, errors=(NO_PASSKEY,)),
    "sign-in-warned": replace(SIGN_IN, frame=structs.replace(FRAME, limit=structs.replace(LIMIT, seconds=90))),
    "sign-in-over": replace(SIGN_IN, frame=structs.replace(FRAME, limit=structs.replace(LIMIT, seconds=0))),
    "sign-in-developer": replace(SIGN_IN, at_once=AT_ONCE),
    "sign-in-developer-refused": replace(
        SIGN_IN, at_once=AT_ONCE, errors=(("person", phrase("Choose one of the test people.")),)
    ),
    "sign-in-crowded": replace(SIGN_IN, frame=CROWDED, user_name="x" * 90, errors=(WRONG,)),
    "code": CODE,
    "code-refused": replace(CODE, errors=(WRONG_CODE,)),
    "code-by-mail": replace(CODE, heading=phrase("Get a code by e-mail"), asked=BY_MAIL),
    "code-recovery": replace(CODE, heading=phrase("Enter a recovery code"), asked=BY_RECOVERY),
    "code-passkey": replace(CODE, heading=phrase("Sign in with your passkey"), asked=BY_PASSKEY),
    "code-passkey-refused": replace(
        CODE, heading=phrase("Sign in with your passkey"), asked=BY_PASSKEY, errors=(NO_PASSKEY,)
    ),
    "offer-passkey": OFFER,
    "offer-passkey-refused": replace(OFFER, errors=(NO_PASSKEY,)),
    "choose": CHOOSE,
    "choose-refused": replace(
        CHOOSE,
        frame=structs.replace(CHOOSE.frame, step=(1, 2)),
        errors=(("entity", phrase("Choose the organisation you act for.")),),
        other_account=True,
    ),
    "choose-many": replace(CHOOSE, choices=MANY, total=5000),
    "choose-warned": replace(CHOOSE, frame=ENDING, choices=MANY, total=60),
    "choose-found": replace(CHOOSE, query="works", choices=MANY[:3], total=3),
    "choose-nothing": replace(CHOOSE, query="zzz", choices=(), total=0),
    "choose-crowded": replace(CHOOSE, frame=CROWDED, choices=tuple(structs.replace(one, name=LONG) for one in CHOICES)),
    "consent": CONSENT,
    "consent-signed-in": replace(CONSENT, frame=structs.replace(CONSENT.frame, step=(1, 1)), other_account=True),
    "consent-crowded": replace(CONSENT, frame=CROWDED),
    "consent-not-remembered": replace(CONSENT, until=None),
    "confirm": CONFIRM,
    "confirm-crowded": replace(CONFIRM, frame=CROWDED, user_name=LONG, entity=LONG),
    "explain": EXPLAIN,
    "explain-signed-in": replace(EXPLAIN, other_account="/entity"),
    "explain-none": replace(EXPLAIN, choices=(), total=0),
    "leave": views.Leave(
        frame=structs.replace(GONE, entity=CHOICES[0].name, under_way=True), url="/leave", client_name="Harbour Board"
    ),
    "form-post": views.FormPost(
        frame=structs.replace(GONE, entity=CHOICES[0].name, under_way=True),
        action="/callback",
        fields=(("code", "c0de"), ("state", "s")),
    ),
    "arrive": views.FormPost(
        heading=views.ONE_MOMENT,
        frame=Frame(client_name="Harbour Board", under_way=True),
        action="/sign-in/x/arrive",
        fields=(("arrive", "x"),),
    ),
    "wait": views.Wait(frame=structs.replace(GONE, entity=CHOICES[0].name, under_way=True), url="/wait"),
    "expired": EXPIRED,
    "expired-crowded": replace(
        EXPIRED,
        frame=CROWDED,
        reference="0123456789abcdef0123456789abcdef",
        inspector="/developer/traffic?reference=0123456789abcdef",
        for_developers="redirect_uri is not registered: it differs by a slash at the end of the path",
        compared=(
            ("received", "https://rp.example/callback/"),
            ("registered", "https://rp.example/callback https://rp.example/other"),
        ),
        reason="redirect_uri_not_registered",
    ),
    "not-found": views.Problem(
        frame=Frame(),
        heading=phrase("Page not found"),
        paragraphs=(phrase("This site has no page at this address. Check it, or go back to where you came from."),),
        discovery="/.well-known/openid-configuration",
    ),
    "error-catalogue": documents.ErrorCatalogue(
        here="/developer/errors",
        errors_and_reasons=(
            ("invalid_grant", (Reason.CODE_EXPIRED, Reason.CODE_KEY)),
            ("access_denied", (Reason.PERSON_MAY_NOT_ACT, Reason.CANCELLED)),
        ),
    ),
    "error-catalogue-searched": documents.catalogue(query="assertion expired"),
    "error-catalogue-nothing": documents.catalogue(query="certificate pinning"),
    "unknown": endpoints.unknown_page(),
    "claimed-elsewhere": endpoints.ending_page(SignInEnd.CLAIMED_ELSEWHERE, "Harbour Board", GONE, ELSEWHERE),
    "busy": BUSY,
    "too-many": CROWD,
    **developer_states.STATES,
    **enrolment_states.STATES,
    **account_states.STATES,
    **invitation_states.STATES,
    **component_states.STATES,
    **portal_states.STATES,
}
STATES: Final = Seeded(
    _VIEWS,
    (console_directory_states.VISITS, console_directory_states.walk),
    (console_states.VISITS, console_states.walk),
    (access_states.VISITS, access_states.walk),
    (access_states.MINE, access_states.walk_own),
    (review_states.VISITS, review_states.walk),
    (people_states.VISITS, people_states.walk),
    (portal_home_states.VISITS, portal_home_states.walk),
    (portal_home_states.OF_ONE_PERSON, portal_home_states.walk_of_one_person),
    (party_states.REQUESTS, party_states.walk_requests),
    (party_states.OF_ONE_OWNER, party_states.walk_of_one_owner),
    (party_states.THIRD_PARTIES, party_states.walk_third_parties),
    (people_states.UNDER_APPROVAL, people_states.walk_under_approval),
    (developer_states.OF_CLIENT_PAGES, developer_states.walk_clients),
    (account_states.VISITS, account_states.walk),
    (account_states.ASKED_AGAIN, account_states.walk_asked_again),
    (enrolment_states.VISITS, enrolment_states.walk),
    (invitation_states.VISITS, invitation_states.walk),
)


def _first_or_full(sort: Callable[[str], object]) -> list[str | ParameterSet]:
    """States for a fixture: the first of each sort, and in `make test-full` all; there alone those of developer mode."""
    first = {sort(name): name for name in reversed(tuple(STATES))}
    quick = frozenset(first.values()).difference(developer_states.STATES, developer_states.OF_CLIENT_PAGES)
    return [name if name in quick else pytest.param(name, marks=pytest.mark.full) for name in STATES]


PAGES_OR_FULL: Final = _first_or_full(STATES.sort)
"""one state of each page in `make test`"""
WALKS_OR_FULL: Final = _first_or_full(STATES.walk)
"""the gallery of components, and a page and a form of each part of the provider in `make test`"""
