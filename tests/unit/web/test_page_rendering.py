"""What every page promises, whatever it shows (docs/accessibility.md, D12, D15, D17, D28, D36, D37, D51)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser

import pytest
from msgspec import structs
from msgspec.structs import replace

from corpid.flows.authentication.entity_selection import SHOWN
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.texts import phrase
from corpid.web.account import enrolment as enrolment_views
from corpid.web.account.enrolment import TypeLinkCode
from corpid.web.pages import views
from corpid.web.pages.components import (
    AppKey,
    BoldName,
    ButtonForm,
    Cell,
    Component,
    Disclosure,
    Entry,
    EntryList,
    Field,
    ForeignText,
    Form,
    Frame,
    Items,
    Label,
    Link,
    Links,
    Page,
    PasskeyForm,
    QuietButtons,
    Radios,
    RecoveryCodes,
    Subsection,
    TimeLimit,
    View,
)
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import ENGLISH
from corpid.web.pages.views import (
    AskPasskey,
    Choice,
    ChooseEntity,
    Consent,
    Explain,
    FormPost,
    Leave,
    OfferPasskey,
    Problem,
    SecondFactor,
    SecondFactorForm,
    SignIn,
    SignInConfirmationView,
    Wait,
)
from corpid_dev.web.paths import CATALOGUE_PATH
from tests.tables import each_of

HOSTILE = """<script>alert(1)</script>"' onload='x' & {{ 7*7 }} <b>"""
SAID = phrase("{name}", name=HOSTILE)
AT = datetime(2026, 11, 20, 14, 32, tzinfo=UTC)
VOID = {"meta", "link", "input", "img"}
LIMIT = TimeLimit(at=AT, seconds=600, extend=ButtonForm(action="/extend"))
FRAME = Frame(
    client_name=HOSTILE,
    message=HOSTILE,
    user_name=HOSTILE,
    step=(2, 3),
    step_name="code",
    form_token="t0ken",
    cancel=ButtonForm(action="/cancel"),
    limit=LIMIT,
)
CHOICES = (
    Choice(id="A1", name=HOSTILE, number=HOSTILE, number_name=NUMBERS["UEN"], status=SAID, preselected=True),
    Choice(id="B2", name="Beta", number="2", number_name=SAID, usable=False, reason=SAID),
)
CHOOSE = ChooseEntity(frame=FRAME, action="/entity", search_action="/entity", choices=CHOICES, total=2)
MANY = tuple(Choice(id=f"E{n}", name=f"Entity {n}", number=str(n), number_name=NUMBERS["UEN"]) for n in range(60))
CODE = SecondFactor(
    frame=FRAME,
    action="/code",
    heading=phrase("Enter your 6-digit code"),
    asked=SecondFactorForm(hint=SAID, ways_action="/way", ways=(("email", SAID), ("recovery", SAID))),
    sends_mail=True,
)

VIEWS: dict[str, View] = {
    "sign in": SignIn(frame=FRAME, action="/password", recover="/recover"),
    "sign in, passkeys": SignIn(
        frame=FRAME,
        action="/password",
        recover="/recover",
        passkey=AskPasskey(action="/passkey", options='{"challenge": "' + HOSTILE + '"}'),
        errors=(("passkey", SAID),),
    ),
    "sign in, refused": SignIn(
        frame=FRAME,
        action="/password",
        recover="/recover",
        user_name=HOSTILE,
        errors=(("user_name", phrase("Enter your user name.")), ("password", SAID), ("", phrase("Wait a minute."))),
    ),
    "code": CODE,
    "code by e-mail": replace(CODE, asked=structs.replace(CODE.asked, label=None, send=True)),
    "recovery code": replace(CODE, asked=structs.replace(CODE.asked, numeric=False, ways=())),
    "code, refused": replace(CODE, errors=(("code", phrase("Enter 6 digits.")),)),
    "offer of a passkey": OfferPasskey(
        frame=FRAME,
        action="/offer",
        passkey=AskPasskey(action="/offer", options='{"challenge": "' + HOSTILE + '"}'),
        errors=(("passkey", SAID),),
    ),
    "entity": CHOOSE,
    "entity, searched": replace(CHOOSE, query=HOSTILE, other_account=True, errors=(("entity", phrase("Choose one.")),)),
    "entity, nothing found": replace(CHOOSE, choices=(), total=0, query=HOSTILE),
    "entity, many": replace(CHOOSE, choices=MANY, total=5000),
    "consent": Consent(
        frame=FRAME,
        action="/consent",
        summary=((SAID, SAID),),
        items=(phrase("Your name"), SAID),
        said=((SAID, HOSTILE),),
        until=None,
    ),
    "confirm": SignInConfirmationView(frame=FRAME, action="/confirm", user_name=HOSTILE, entity=HOSTILE),
    "leave": Leave(frame=Frame(client_name=HOSTILE), url='/leave?a=1&b="', client_name=HOSTILE),
    "form post": FormPost(
        frame=Frame(client_name=HOSTILE),
        action='https://rp.example/cb?a=1&b="',
        fields=(("code", "c0de"), ("state", HOSTILE), ("iss", "https://op.example")),
    ),
    "arrive": FormPost(
        heading=phrase("One moment"),
        frame=Frame(client_name=HOSTILE),
        action='/sign-in/x/arrive?a=1&b="',
        fields=(("arrive", HOSTILE),),
    ),
    "wait": Wait(frame=Frame(client_name=HOSTILE), url="/wait"),
    "problem": Problem(
        frame=Frame(client_name=HOSTILE),
        heading=SAID,
        paragraphs=(SAID,),
        reference="abc123",
        back=Link(url="https://rp.example/", text=SAID),
    ),
    "problem, nobody known": Problem(
        frame=Frame(), heading=phrase("This link does not work"), paragraphs=(phrase("Go back."),)
    ),
    "explain": Explain(frame=structs.replace(FRAME, cancel=None), action="/cancel", choices=CHOICES),
    "explain, none": Explain(frame=structs.replace(FRAME, cancel=None), action="/cancel", choices=()),
}
PAGE = Page(
    frame=FRAME,
    action="/page",
    heading=SAID,
    saved=SAID,
    notes=(SAID,),
    back="/account",
    parts=(
        phrase("{name}", name=BoldName(HOSTILE)),
        EntryList(
            (
                Entry(
                    title=HOSTILE,
                    notes=(SAID, HOSTILE, None, Cell(values=(SAID, HOSTILE))),
                    parts=(
                        QuietButtons(buttons=(("", SAID),), hidden=(("browser", "b"),), about=SAID),
                        Link(url="/more", text=SAID, about=HOSTILE),
                    ),
                ),
            )
        ),
        Subsection(heading=HOSTILE, state=Label(SAID, "warning"), folded=True, note=SAID, parts=(SAID,)),
        Subsection(heading=SAID, parts=(Disclosure(summary=SAID, about=SAID, look="help", parts=(Items((SAID,)),)),)),
        PasskeyForm(
            action="/passkey", options='{"challenge": "' + HOSTILE + '"}', kind="create", label=SAID, text=SAID,
            other="after",
        ),
        AppKey(picture="/qr.svg", link="otpauth://totp/x?secret=A&issuer=B", secret="ABCD EFGH"),
        RecoveryCodes(codes=("a", "b")),
        Form(
            parts=(
                Field(name="user_name", label=SAID, hint=SAID, kind="own user name", value=HOSTILE),
                Field(name="password", label=SAID, kind="new password", value=""),
                Field(name="code", label=SAID, kind="code", value=HOSTILE),
                Field(name="kept", label=SAID, kind="flag", value=""),
                Radios(name="language", legend=SAID, options=(("x", ForeignText(HOSTILE, "ms", "ltr"), None), ("y", HOSTILE, SAID))),
            ),
            button=SAID,
            secondary=True,
            decision="a",
            other=("b", SAID),
            more=(("c", SAID),),
        ),
        Links((Link(url="/others", text=SAID),)),
    ),
)  # fmt: skip
VIEWS |= {
    "link code": TypeLinkCode(frame=FRAME, action="/enrol", typed=HOSTILE, errors=(("code", SAID),)),
    "page": PAGE,
    "page, refused": replace(
        PAGE, errors=tuple((name, SAID) for name in ("passkey", "user_name", "password", "code", "kept", "language"))
    ),
}
every_page = each_of(VIEWS)
OWN_FORMS = {name: view for name, view in VIEWS.items() if not isinstance(view, FormPost)}


@cache
def renderer(*, developer_mode: bool) -> Renderer:
    """One renderer for all tests."""
    return Renderer(developer_mode=developer_mode, catalogue_path=CATALOGUE_PATH, added="corpid_dev")


class Shown(HTMLParser):
    """A rendered page, taken apart; raises if its tags do not nest."""

    def __init__(self, view: View, *, developer_mode: bool = False) -> None:
        super().__init__()
        self.source = renderer(developer_mode=developer_mode).render(view).decode()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.forms: list[tuple[dict[str, str], list[dict[str, str]]]] = []
        self._open: list[str] = []
        self.feed(self.source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"repeated attribute: {names}"
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        if tag == "form":
            self.forms.append((attributes, []))
        if tag == "input" and "form" in self._open:
            self.forms[-1][1].append(attributes)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every element of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]

    def text(self, tag: str = "body") -> str:
        """The text inside every element of a kind, white space folded."""
        return " ".join("".join(text for path, text in self.texts if tag in path).split())


def test_these_are_all_pages() -> None:
    pages = [
        one
        for module in (views, enrolment_views)
        for one in vars(module).values()
        if hasattr(one, "template") and not issubclass(one, Component)
    ]
    assert {type(view) for view in VIEWS.values()} == {one for one in pages if one is not View}


@every_page
def test_a_page_holds_no_script_or_style_of_its_own_and_nothing_from_elsewhere(view: View) -> None:
    """D36: default-src 'none'; scripts, styles and images come from us alone."""
    page = Shown(view, developer_mode=True)
    assert page.all("script")
    assert all(set(script) == {"src", "defer"} for script in page.all("script"))
    assert page.text("script") == ""
    assert not page.all("style")
    for tag, attributes in page.tags:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        loaded = attributes.get("src", attributes.get("href") if tag == "link" else None)
        assert loaded is None or loaded.startswith(("/static/", "/qr.svg"))


@every_page
def test_hostile_names_and_messages_stay_text(view: View) -> None:
    """D12, D51: the message and all names are shown as plain text."""
    source = Shown(view).source
    assert "<script>alert" not in source
    assert "<b>" not in source
    if repr(HOSTILE) in repr(view):
        assert "&lt;script&gt;alert" in source


@every_page
def test_a_page_has_one_heading_of_the_first_rank_and_names_it_in_the_title(view: View) -> None:
    """docs/accessibility.md: the heading says what is asked; before it stands what went wrong, or what was saved."""
    page = Shown(view)
    heading = " ".join(view.heading.split())
    saved = getattr(view, "saved", None)
    prefix = "Error: " if view.errors else f"{saved} " if saved else ""
    assert len(page.all("h1")) == 1
    assert page.text("h1") == heading
    assert page.text("title") == f"{prefix}{heading} \N{EN DASH} CorpID"


@every_page
def test_ids_are_unique_and_every_reference_leads_to_one(view: View) -> None:
    page = Shown(view)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for _, attributes in page.tags:
        for name in ("for", "form", "aria-describedby", "aria-labelledby"):
            assert set(attributes.get(name, "").split()) <= set(ids)
        href = attributes.get("href", "")
        assert not href.startswith("#") or href[1:] in ids


@every_page
def test_every_visible_field_has_a_label_and_no_placeholder(view: View) -> None:
    """docs/accessibility.md: label above its field, no placeholder as label."""
    page = Shown(view)
    labelled = {label["for"] for label in page.all("label")}
    for field in page.all("input"):
        assert field["type"] == "hidden" or field["id"] in labelled
        assert "placeholder" not in field


@each_of(OWN_FORMS)
def test_every_post_form_of_ours_carries_the_form_token_and_the_step(view: View) -> None:
    """D35; a search is a GET and carries neither, since a token has no place in an address."""
    for form, fields in Shown(view).forms:
        hidden = {field["name"]: field["value"] for field in fields if field["type"] == "hidden"}
        hidden.pop("passkey", None)  # a script fills it
        hidden.pop("passkeys", None)  # a script fills it
        hidden.pop("followed", None)  # a script fills it
        hidden.pop("browser", None)  # which one to sign out
        hidden.pop("query", None)  # what was searched for
        expected = {"form_token": "t0ken", "step": "code"} if form["method"] == "post" else {}
        assert hidden == expected
        assert form["action"].startswith("/")


@every_page
def test_a_page_says_its_language_and_fits_narrow_screens(view: View) -> None:
    page = Shown(view)
    assert page.all("html") == [{"lang": "en", "dir": "ltr"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")


@every_page
def test_developer_mode_is_visible_on_every_page_and_only_there(view: View) -> None:
    assert "Developer mode" in Shown(view, developer_mode=True).text()
    assert "Developer mode" not in Shown(view).text()


@pytest.mark.parametrize("name", ["sign in", "code", "entity", "entity, nothing found", "consent", "confirm"])
def test_who_asks_and_what_for_stand_on_every_step_with_a_way_out(name: str) -> None:
    """D12, D17, Spec 4.1: the RP's name, its message, Cancel."""
    page = Shown(VIEWS[name])
    assert page.text("section").count(" ".join(HOSTILE.split())) == 3
    assert [button for button in page.all("button") if button.get("form") == "cancel"]
    assert [form["action"] for form, _ in page.forms if form.get("id") == "cancel"] == ["/cancel"]


def test_the_steps_are_counted_in_words() -> None:
    assert "Step 2 of 3" in Shown(VIEWS["code"]).text()


def test_an_error_stands_on_top_with_a_link_and_again_beside_its_field() -> None:
    """docs/accessibility.md: an error summary that links to the field, the message beside it, what was typed kept."""
    page = Shown(VIEWS["sign in, refused"])
    fields = {field["id"]: field for field in page.all("input") if "id" in field}
    assert {"#user_name", "#password"} <= {link["href"] for link in page.all("a")}
    assert fields["user_name"]["value"] == HOSTILE
    assert "value" not in fields["password"]
    for name in ("user_name", "password"):
        assert fields[name]["aria-invalid"] == "true"
        assert fields[name]["aria-describedby"] == f"{name}-error"
    assert page.text().count("Enter your user name.") == 2
    assert page.text().count("Wait a minute.") == 1


def test_fields_tell_browsers_and_password_managers_what_they_are() -> None:
    fields = {f["id"]: f for name in ("sign in", "code") for f in Shown(VIEWS[name]).all("input") if "id" in f}
    tokens = {name: field["autocomplete"] for name, field in fields.items()}
    assert tokens == {"user_name": "username", "password": "current-password", "code": "one-time-code"}
    assert fields["code"]["inputmode"] == "numeric"
    assert "maxlength" not in fields["code"], "a pasted code may hold spaces"


def test_an_entity_that_cannot_be_used_is_shown_with_its_reason_and_cannot_be_chosen() -> None:
    page = Shown(CHOOSE)
    radios = {field["value"]: field for field in page.all("input") if field["type"] == "radio"}
    assert "checked" in radios["A1"]
    assert "disabled" in radios["B2"]
    assert radios["A1"]["id"] == "entity", "the error summary leads to the first usable choice"
    assert " ".join(HOSTILE.split()) in page.text("label")


def test_many_entities_are_cut_with_a_search_above() -> None:
    page = Shown(VIEWS["entity, many"])
    assert len([field for field in page.all("input") if field["type"] == "radio"]) == SHOWN
    assert page.text("legend") == "Showing 50 of 5,000: search to narrow the list"
    assert page.forms[0][0]["role"] == "search"


@pytest.mark.parametrize(("total", "searches"), [(8, 0), (9, 1)])
def test_the_search_appears_above_eight_entities(total: int, searches: int) -> None:
    """docs/accessibility.md: with a search above it when there are more than eight."""
    page = Shown(replace(CHOOSE, choices=MANY[:total], total=total))
    assert len([form for form, _ in page.forms if form.get("role") == "search"]) == searches


def test_nothing_found_leads_back_to_all_and_offers_nothing_to_continue_with() -> None:
    page = Shown(VIEWS["entity, nothing found"])
    assert "/entity" in [link["href"] for link in page.all("a")]
    assert "Continue" not in page.text("button")


def test_forms_with_two_outcomes_name_their_buttons() -> None:
    decisions = [button.get("value") for button in Shown(VIEWS["confirm"]).all("button") if "name" in button]
    assert decisions == ["continue", "other_account"]


def test_the_leaving_page_goes_on_by_itself_and_by_a_link() -> None:
    """D37: a meta refresh of 0 and a link to the same address."""
    page = Shown(VIEWS["leave"])
    refresh = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "refresh"]
    assert refresh == ['0; url=/leave?a=1&b="']
    assert '/leave?a=1&b="' in [link["href"] for link in page.all("a")]


def test_the_page_that_posts_the_answer_carries_it_and_nothing_of_ours_to_the_relying_party() -> None:
    """OAuth 2.0 Form Post Response Mode §2, D37: a script of ours sends it, without one a button does."""
    page = Shown(VIEWS["form post"])
    [(form, fields)] = page.forms
    assert (form["method"], form["action"]) == ("post", 'https://rp.example/cb?a=1&b="')
    assert [(field["type"], field["name"], field["value"]) for field in fields] == [
        ("hidden", "code", "c0de"),
        ("hidden", "state", HOSTILE),
        ("hidden", "iss", "https://op.example"),
    ]
    assert "t0ken" not in page.source
    assert [button["type"] for button in page.all("button")] == ["submit"]
    assert [script["src"] for script in page.all("script") if "form_post" in script["src"]]


def test_the_waiting_page_asks_again_after_a_second() -> None:
    """D15: a repeat before the code is written gets a waiting page."""
    assert {"http-equiv": "refresh", "content": "1; url=/wait"} in Shown(VIEWS["wait"]).all("meta")


def test_a_dead_end_gives_its_reference_and_leads_back() -> None:
    """D28, Spec 7: what happened, by which reference it is found, and the way back to the RP."""
    page = Shown(VIEWS["problem"])
    assert page.text("code") == "abc123"
    assert "https://rp.example/" in [link["href"] for link in page.all("a")]


def test_the_time_limit_is_shown_and_can_be_extended_until_no_extension_is_left() -> None:
    """D15: the page warns and can extend, at most 10 times."""
    page = Shown(VIEWS["sign in"])
    last = Shown(
        SignIn(
            frame=structs.replace(FRAME, limit=structs.replace(LIMIT, extend=None)),
            action="/password",
            recover="/recover",
        )
    )
    assert "14:32" in page.text()
    assert "14:32" in last.text()
    assert "/extend" in [form["action"] for form, _ in page.forms]
    assert "/extend" not in [form["action"] for form, _ in last.forms]
    assert "I need more time" not in last.source
    assert "About 3 minutes left on this page." in last.source
    assert "Do you need more time?" in page.source
    assert "Do you need more time?" not in last.source


@pytest.mark.parametrize(("seconds", "shown"), [(TimeLimit.warn_seconds + 1, False), (TimeLimit.warn_seconds, True)])
def test_the_time_limit_is_shown_in_the_last_three_minutes_and_to_readers_without_script(
    seconds: int, *, shown: bool
) -> None:
    """WCAG 2.2.1: nobody is hurried before; what no script can reveal later is shown from the start."""
    page = Shown(
        SignIn(
            frame=structs.replace(FRAME, limit=structs.replace(LIMIT, seconds=seconds)),
            action="/password",
            recover="/recover",
        )
    )
    (limit,) = [each for each in page.all("div") if each.get("id") == "time-limit"]
    assert ("hidden" not in limit) is shown
    assert bool(page.all("noscript")) is not shown


def test_the_script_learns_from_the_page_when_to_reveal_the_time_limit() -> None:
    """WCAG 2.2.1: the server and the script show it at the same moment."""
    (limit,) = [each for each in Shown(VIEWS["sign in"]).all("div") if each.get("id") == "time-limit"]
    assert limit["data-warn-seconds"] == str(TimeLimit.warn_seconds)


@pytest.mark.parametrize("name", ["Acme Pte. Ltd.", "Acme"])
def test_a_sentence_that_ends_with_a_name_has_one_full_stop(name: str) -> None:
    """In a template, where markup stands between the name and the full stop, and in a phrase."""
    view = Problem(
        frame=FRAME, heading=SAID, paragraphs=(phrase("Return to {name}. Sign in to {name}, or {name}.", name=name),)
    )
    stem = name.removesuffix(".")
    assert f"Return to {stem}. Sign in to {name}, or {stem}." in Shown(view).text()
    confirm = Shown(SignInConfirmationView(frame=FRAME, action="/confirm", user_name="alice", entity=name))
    assert f"will act for {stem}." in confirm.text()
    assert ".." not in confirm.text().replace("...", "")


def test_an_instant_in_a_sentence_is_marked_up_and_the_rest_of_the_sentence_is_escaped() -> None:
    """docs/accessibility.md: the script converts it, and no name becomes markup."""
    said = phrase("{name} signed in on {moment}.", name="<b>", moment=AT)
    html = Renderer().render(Problem(frame=Frame(), heading=phrase("Page not found"), paragraphs=(said,))).decode()
    shown = '<time datetime="2026-11-20T14:32:00+00:00" data-show="moment">20 Nov 2026, 14:32 UTC</time>'
    assert f"&lt;b&gt; signed in on {shown}." in html


def test_the_day_of_an_instant_is_marked_up_and_the_day_of_a_role_is_not() -> None:
    """docs/accessibility.md: the days of roles are never converted."""
    day = Renderer()._environment(ENGLISH).filters["day"]
    assert day(AT) == '<time datetime="2026-11-20T14:32:00+00:00" data-show="day">20 Nov 2026</time>'
    assert day(AT.date()) == "20 Nov 2026"
