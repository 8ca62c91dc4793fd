"""Every e-mail, in every language: what nobody can write into it, and what it always says (D48, D51)."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from textwrap import wrap
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corpid.rules.emails import Action, Code, Copied, Email
from corpid.texts import phrase
from corpid.web.pages.components import never_asks
from corpid.web.pages.emails import COLUMNS, INKS, EmailRenderer
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.theme import Theme
from corpid.web.pages.translations import LANGUAGES, Language, lookup, translator
from tests import sample_emails
from tests.browser.states import STATES
from tests.house.source import Module, listed, modules, nodes
from tests.sample_emails import BASE, CODE, samples

SINGAPORE = ZoneInfo("Asia/Singapore")
RENDERER = EmailRenderer(name="CorpID", timezone=SINGAPORE)
HOSTILE = "\"'><script>alert(1)</script><img src=//evil.example><a href='https://evil.example'>x</a>&lt;{0.__class__}%(x)s\r\nBcc: eve@evil.example\x00\u202e"
TAGS = {"html", "head", "meta", "title", "style", "body", "div", "table", "tr", "td", "header", "span", "main", "h1", "p", "br", "a", "dl", "dt", "dd", "footer"}  # fmt: skip
LARGEST = 60_000
"""bytes of HTML; some mail programs cut off what is longer than 102 kB"""

WITHOUT_TIME = {"erased", "access_ends", "one_access_ends", "access_of_others_ends", "review_due", "review_overdue", "request_commented", "requests_commented"}  # fmt: skip

every_language = pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.tag)


class Read(HTMLParser):
    """The tags, addresses and visible texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.shape: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.shape.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in {"href", "src", "action", "background"}]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


@cache
def plain() -> dict[str, Email]:
    return samples()


@cache
def hostile() -> dict[str, Email]:
    names = dict.fromkeys(("person", "entity", "client", "user_name"), HOSTILE)
    return samples(**names)


def of(emails: dict[str, Email], language: Language) -> dict[str, tuple[Email, Any]]:
    """Declaration and rendering, by name."""
    return {name: (email, RENDERER.render(replace(email, language=language.tag))) for name, email in emails.items()}


def test_every_function_that_makes_an_email_has_a_sample() -> None:
    """What is not sampled is not tested below: add it to tests/sample_emails.py."""
    source = inspect.getsource(sample_emails)
    makers = [each for each in modules() if each.package == "corpid" and _makes_emails(each)]
    made = [
        f"{Path(each.path).stem}.{node.name}("
        for each in makers
        for node in each.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    assert {"notifications.link(", "notice_texts.build_comments_email("} <= set(made)
    missing = [each for each in made if each not in source]
    assert not missing, listed(missing)


def _makes_emails(module: Module) -> bool:
    """Whether a module writes an `Email` of `corpid.rules.emails`."""
    imported = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "corpid.rules.emails"
        and "Email" in {each.name for each in node.names}
        for node in nodes(module.tree)
    )
    calls = (node.func for node in nodes(module.tree) if isinstance(node, ast.Call))
    return imported and any(isinstance(each, ast.Name) and each.id == "Email" for each in calls)


@every_language
def test_a_name_writes_nothing_but_text(language: Language) -> None:
    """Names of people, entities, clients and users: no tag, no attribute, no address, no line of a header."""
    usual, wild = of(plain(), language), of(hostile(), language)
    for name, (_, rendered) in wild.items():
        found, expected = Read(rendered.html), Read(usual[name][1].html)
        assert found.shape == expected.shape, name
        assert found.links == expected.links, name
        assert not re.search(r"[\r\n\x00-\x1f\u2028\u2029\u202e]", rendered.subject)
        # Within a paragraph any word can begin a line, where it is wrapped.
        assert not any(each.startswith("Bcc") for each in rendered.text.split("\n\n"))
        assert "\u202e" not in rendered.text + rendered.html
    assert "<script>alert(1)" in Read(wild["password_changed"][1].html).text


def test_an_email_is_the_same_whatever_was_rendered_before() -> None:
    """What e-mails of a shape have in common is kept, and nothing else is."""
    for name, email in plain().items():
        RENDERER.render(email)
        wild = hostile()[name]
        assert RENDERER.render(wild) == EmailRenderer(name="CorpID", timezone=SINGAPORE).render(wild), name


def test_no_text_is_taken_for_the_place_of_another() -> None:
    """Whatever marks the places in a rendered e-mail that is kept."""
    mark = "\x000\x00"
    for each in (mark, "1234"):
        email = Email(to="a@b", subject=phrase("Device"), preview=phrase("When"), parts=(Code(text=phrase("Device"), value=each),))  # fmt: skip
        assert f">{each}</p>" in RENDERER.render(email).html


@given(st.text(st.sampled_from("ab- .é"), max_size=290))
def test_paragraphs_are_wrapped_between_words(text: str) -> None:
    paragraph = " ".join(text.split())
    expected = wrap(f"x {paragraph}", COLUMNS, break_long_words=False, break_on_hyphens=False)
    rendered = RENDERER.render(
        Email(
            to="a@b",
            subject=phrase("Device"),
            preview=phrase("When"),
            parts=(phrase("x {text}", text=Copied(paragraph)),),
        )
    )
    assert "\n".join(expected) in rendered.text


@every_language
def test_every_address_is_of_the_deployment_and_nothing_is_loaded(language: Language) -> None:
    for name, (email, rendered) in of(plain(), language).items():
        found = Read(rendered.html)
        assert found.tags <= TAGS, name
        assert not re.search(r"url\(|@import|<img|<script|<link", rendered.html), name
        assert all(link.startswith(f"{BASE}/") for link in found.links), name
        in_text = re.findall(r"https?://\S+", rendered.text)
        assert all(link.startswith(f"{BASE}/") for link in in_text), name
        for action in (part for part in email.parts if isinstance(part, Action)):
            assert action.url in rendered.text.splitlines(), name
            assert found.links.count(action.url) == 2, f"{name}: the button, and the address in clear"


def bare(text: str) -> str:
    """A text without spaces and colons, which stand between names and values in plain text alone."""
    return re.sub("[:\uff1a\\s]", "", text)


def test_what_is_done_at_a_further_issuer_leads_to_the_account_of_the_deployment() -> None:
    """D62"""
    for name, (_, rendered) in of(samples(issuer="https://further.example/legacy"), LANGUAGES[0]).items():
        assert "further.example" not in rendered.html + rendered.text, name


@every_language
def test_text_and_html_say_the_same(language: Language) -> None:
    """RFC 2046 §5.1.4"""
    for name, (_, rendered) in of(plain(), language).items():
        html = bare(Read(rendered.html).text)
        for line in rendered.text.splitlines():
            assert bare(line) in html, f"{name}: {line}"


@every_language
def test_subject_and_preview_hold_no_secret_and_differ(language: Language) -> None:
    """Mail servers log subjects, and locked phones show both."""
    for name, (_, rendered) in of(plain(), language).items():
        preview = Read(rendered.html).text.partition("\u200c")[0].partition("} ")[2].split("} ")[-1].strip()
        assert rendered.subject
        assert preview
        assert rendered.subject.rstrip(".。") not in preview, name
        for secret in (CODE, "7Q3M", "enrol#"):
            assert secret not in rendered.subject + preview, name


@every_language
def test_the_sentence_against_phishing_is_that_of_the_pages(language: Language) -> None:
    sentence = translator(language).say(never_asks("CorpID"))
    page = Renderer().render(STATES["sign-in"], language).decode()
    assert sentence in page
    for name, (_, rendered) in of(plain(), language).items():
        assert sentence in rendered.html, name
        assert sentence in " ".join(rendered.text.split()), name


@pytest.mark.full
@every_language
def test_an_email_is_of_moderate_size_whatever_the_names(language: Language) -> None:
    names = dict.fromkeys(("person", "entity", "client", "user_name"), "வ&" * 5000)
    for name, (_, rendered) in of(samples(**names), language).items():
        assert len(rendered.html.encode()) < LARGEST, name
        assert len(rendered.subject) <= 200, name


@pytest.mark.parametrize(
    ("tag", "zone"),
    {
        "en": "Singapore Standard Time",
        "zh-Hans": "新加坡标准时间",
        "ms": "Waktu Piawai Singapura",
        "ta": "சிங்கப்பூர் நிலையான நேரம்",
    }.items(),
)
def test_times_name_the_zone_of_the_deployment(tag: str, zone: str) -> None:
    """Nobody but the reader knows where they are. Those of `WITHOUT_TIME` name days, or none."""
    language = lookup((tag,), LANGUAGES)
    assert language is not None
    timed = {name: each for name, each in of(plain(), language).items() if name not in WITHOUT_TIME}
    for name, (_, rendered) in timed.items():
        assert zone in rendered.text, name


def test_an_email_has_one_action_at_most() -> None:
    action = Action(text=phrase("Check your account"), url=BASE)
    with pytest.raises(ValueError, match="one action"):
        Email(to="a@b", subject=phrase("When"), preview=phrase("Device"), parts=(action, action))


def test_a_theme_that_cannot_be_read_gives_way_to_the_usual_colours() -> None:
    """WCAG 2.2, 1.4.3: scheme by scheme."""
    theme = Theme(light={"accent": "#fefefe", "page": "#fffff0"}, dark={"accent": "#8fe0c8", "on-accent": "#06261f"})
    html = EmailRenderer(name="CorpID", timezone=SINGAPORE, theme=theme).render(plain()["link_password"]).html
    assert "#fefefe" not in html
    assert "#fffff0" not in html
    assert "#8fe0c8" in html
    assert ("on-accent", "accent") in INKS
