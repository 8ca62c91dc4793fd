"""The languages of the pages: which one a request gets, and that a page says everything in it (docs/accessibility.md)."""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from functools import cache, partial
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.texts import Phrase, counted, phrase
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import (
    ENGLISH,
    LANGUAGES,
    PSEUDO,
    Language,
    Pick,
    Translator,
    accepted_language,
    choose,
    translator,
)
from tests.browser.states import STATES
from tests.tables import each_of, hold_in_each
from tests.unit.web.test_page_rendering import VIEWS

renderer = cache(partial(Renderer, added="corpid_dev"))
"""each kind once for all tests"""

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.web.pages.components import View

BY_TAG = {language.tag: language for language in (*LANGUAGES, PSEUDO)}
READ_ALOUD = {"aria-label", "alt", "title", "placeholder"}
BRACKETED = re.compile("⟦[^⟦⟧]*⟧")
# A house test holds that no view is missing among the states (tests/house/test_pages.py).
PAGES = ChainMap(STATES, VIEWS)  # type: ignore[arg-type]  # nothing is written to it
"""looked at one by one: those of a seeded provider are made when the first of them is wanted"""
DATED = re.compile(
    r"\d{1,2}\s(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?:\s\d{4})?(?:,\s\d{1,2}:\d{2}\s(?:UTC|Singapore Standard Time))?"
)
"""a day or a moment, as the rules of a locale write it"""


@pytest.mark.parametrize(
    ("header", "tag"),
    [
        ("ms", "ms"), ("ms-MY", "ms"), ("en-SG,en;q=0.9", "en"), ("ta-IN, en;q=0.5", "ta"),
        ("zh", "zh-Hans"), ("zh-CN,zh;q=0.9,en;q=0.8", "zh-Hans"), ("zh-SG", "zh-Hans"), ("ZH-hans-cn", "zh-Hans"),
        ("fr, ta;q=0.4, ms;q=0.6", "ms"), ("ms;q=0, ta;q=0.1", "ta"), ("ms;q=0.5,ta;q=0.5", "ms"), ("zh-x-private", "zh-Hans"),
        ("*", None), ("", None), ("fr", None), ("ms;q=2", None), (";;;,,=", None), ("ar-XB", None),
    ],
)  # fmt: skip
def test_what_a_browser_accepts_leads_to_a_language(header: str, tag: str | None) -> None:
    """RFC 4647 §3.4, RFC 9110 §12.5.4."""
    found = accepted_language(header, LANGUAGES)
    assert (found.tag if found else None) == tag


@given(st.text())
def test_whatever_a_browser_accepts_a_page_has_a_language(header: str) -> None:
    language = choose(
        LANGUAGES, pick=Pick.read(header), where=header, ui_locales=header.split(), accept_language=header
    )
    assert language in LANGUAGES


@pytest.mark.parametrize(
    ("pick", "where", "ui_locales", "accept_language", "tag"),
    [
        ("", "", (), "", "en"),
        ("", "", (), "ta", "ta"),
        ("ms", "", (), "ta", "ms"),
        ("ms", "s1", ("zh-CN",), "ta", "zh-Hans"),
        ("ms", "s1", ("fr", "xx"), "ta", "ms"),
        ("ms.s1", "s1", ("zh-CN",), "ta", "ms"),
        ("ms.s1", "s2", ("zh-CN",), "ta", "zh-Hans"),
        ("ms.s1", "s2", (), "ta", "ms"),
        ("ms.", "", ("zh",), "ta", "zh-Hans"),
        ("klingon.s1", "s1", (), "ta", "ta"),
    ],
)
def test_the_relying_partys_wish_comes_first_unless_the_person_picked_on_this_sign_in(
    pick: str, where: str, ui_locales: tuple[str, ...], accept_language: str, tag: str
) -> None:
    """OpenID Connect Core §3.1.2.1; what was picked elsewhere comes next, then Accept-Language, then English."""
    chosen = choose(
        LANGUAGES, pick=Pick.read(pick), where=where, ui_locales=ui_locales, accept_language=accept_language
    )
    assert chosen.tag == tag


def test_a_pick_is_read_as_it_was_written() -> None:
    for pick in (Pick(tag="ms"), Pick(tag="zh-Hans", where="AbC-_123")):
        assert Pick.read(pick.written()) == pick


def test_the_pseudo_language_is_for_developers() -> None:
    assert PSEUDO in Renderer(developer_mode=True).languages
    assert PSEUDO not in Renderer().languages


def test_a_phrase_is_its_english_text_and_can_be_said_in_another_language() -> None:
    status = phrase("Withdrawn")
    sentence = phrase("This service does not accept organisations with the status {status}.", status=status)
    assert sentence == "This service does not accept organisations with the status Withdrawn."
    said = translator(BY_TAG["ms"]).say(sentence)
    assert "Ditarik balik" in said
    assert "{" not in said


@pytest.mark.parametrize(
    ("count", "text"), [(1, "Wait 1 second, "), (2, "Wait 2 seconds, "), (4800, "Wait 4,800 seconds, ")]
)
def test_a_number_chooses_its_form(count: int, text: str) -> None:
    made = counted(count, "Wait {count} second, ", "Wait {count} seconds, ")
    assert made == text
    assert translator(ENGLISH).say(made) == text
    assert translator(PSEUDO).say(made) == f"⟦{text}⟧"


def test_a_name_with_braces_or_markup_stands_as_it_is() -> None:
    """What others say is never a format of ours."""
    name = "{name} {0} %(name)s ⟦"
    assert phrase("Return to {name}", name=name) == f"Return to {name}"
    assert translator(BY_TAG["ms"]).say(phrase("Return to {name}", name=name)) == f"Kembali ke {name}"


def test_a_name_from_right_to_left_turns_nothing_beside_it_in_any_language() -> None:
    """D51: nor does one of several names."""
    name = "\u05de\u05e4\u05ea\u05d7 (1)"
    told = phrase("Return to {name}", name=(name, "My key"))
    assert told == f"Return to {name}, My key"
    assert translator(ENGLISH).say(told) == f"Return to \u2068{name}\u2069, My key"
    assert translator(BY_TAG["ms"]).say(phrase("Return to {name}", name=name)) == f"Kembali ke \u2068{name}\u2069"


def test_a_name_on_a_page_from_right_to_left_keeps_its_own_direction() -> None:
    assert (
        translator(PSEUDO).say(phrase("Return to {name}", name="Ministry (1)"))
        == "⟦Return to \u2068Ministry (1)\u2069⟧"
    )


@pytest.mark.parametrize(
    ("tag", "written", "number"),
    [
        ("en", "20 Nov 2026, 14:32 Singapore Standard Time", "5,000"),
        ("zh-Hans", "2026年11月20日 14:32 新加坡标准时间", "5,000"),
        ("ms", "20 Nov 2026, 2:32 PTG Waktu Piawai Singapura", "5,000"),
        ("ta", "20 நவ., 2026, 2:32 PM சிங்கப்பூர் நிலையான நேரம்", "5,000"),
    ],
)  # fmt: skip
def test_times_and_numbers_are_written_as_the_language_writes_them(tag: str, written: str, number: str) -> None:
    moment = datetime(2026, 11, 20, 14, 32, tzinfo=ZoneInfo("Asia/Singapore"))
    speaks = translator(BY_TAG[tag])
    assert speaks.moment(moment).replace("\u202f", " ") == written
    assert speaks.moment(moment).endswith(speaks.time(moment))
    assert speaks.number(5000) == number


@pytest.mark.parametrize(
    ("tag", "written"), [("en", "A, B, C"), ("zh-Hans", "A、B、C"), ("ms", "A, B, C"), ("ta", "A, B, C")]
)
def test_names_are_listed_as_the_language_separates_them(tag: str, written: str) -> None:
    """docs/accessibility.md: as the Unicode CLDR says."""
    assert translator(BY_TAG[tag]).say(phrase("{items}", items=("A", "B", "C"))) == written


def test_what_a_partial_language_lacks_is_said_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/wording.md: a language can be added before all of it is translated; numbers follow English there."""
    (tmp_path / "half_said" / "locales").mkdir(parents=True)
    (tmp_path / "half_said" / "__init__.py").touch()
    (tmp_path / "half_said" / "locales" / "id.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
        'msgid "Sign in"\nmsgstr "Masuk"\n\n'
        'msgid "Sign out"\nmsgstr ""\n\n'
        'msgid "{count} person"\nmsgid_plural "{count} people"\nmsgstr[0] ""\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    partial = Translator(Language(tag="id", name="Indonesia", formats="id", partial=True), ("half_said",))
    assert partial.say(phrase("Sign in")) == "Masuk"
    assert partial.say(phrase("Sign out")) == "Sign out"
    assert [partial.say(counted(n, "{count} person", "{count} people")) for n in (1, 2)] == ["1 person", "2 people"]


class Read(HTMLParser):
    """What a page says, but for what says itself which language it is in."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.root: dict[str, str | None] = {}
        self.said: list[str] = []
        self._foreign: list[bool] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "html":
            self.root = attributes
        foreign = "lang" in attributes and tag != "html"
        if not foreign and not any(self._foreign):
            self.said += [value or "" for name, value in attrs if name in READ_ALOUD]
        if tag not in {"meta", "link", "input", "img"}:
            self._foreign.append(foreign)

    def handle_endtag(self, tag: str) -> None:
        self._foreign.pop()

    def handle_data(self, data: str) -> None:
        if not any(self._foreign):
            self.said.append(data)


def wordless(value: Any) -> Any:
    """A view without names and values; what CorpID says in it stays, and so does which field an error is about."""
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(
            value, **{name: wordless(getattr(value, name)) for name in value.__struct_fields__}
        )
    if isinstance(value, Phrase) or (not isinstance(value, str | tuple) and not is_dataclass(value)):
        return value
    if isinstance(value, str):
        return "7"
    if isinstance(value, tuple):
        is_error = len(value) == 2 and isinstance(value[1], Phrase) and re.fullmatch("[a-z_-]*", str(value[0]))
        return value if is_error else tuple(wordless(each) for each in value)
    assert not isinstance(value, type)
    return replace(value, **{field.name: wordless(getattr(value, field.name)) for field in fields(value)})


@each_of(PAGES)
def test_a_page_says_nothing_that_is_not_marked_for_translation(shown: View) -> None:
    """In the pseudo-language every text that is translated stands in brackets: no letter is left outside.

    A moment is written by the rules of its locale, wherever it stands.
    """
    view: View = wordless(shown)
    page = Read(renderer(name="7", developer_mode=True).render(view, PSEUDO))
    text = "\n".join(page.said)
    text = DATED.sub("", text)
    while BRACKETED.search(text):
        text = BRACKETED.sub("", text)
    assert not re.findall(r"[^\W\d_]+", text)
    assert (page.root["lang"], page.root["dir"]) == ("ar-XB", "rtl")


@pytest.mark.parametrize(
    "language",
    [*(pytest.param(each, marks=pytest.mark.full) for each in LANGUAGES[:-1]), LANGUAGES[-1]],
    ids=[language.tag for language in LANGUAGES],
)
def test_every_page_is_there_in_every_language(language: Any) -> None:
    def check(view: View) -> None:
        page = Read(renderer().render(view, language))
        assert (page.root["lang"], page.root["dir"]) == (language.tag, "ltr")

    hold_in_each(PAGES, check)
