"""An operator's own look: what is taken, and what is refused with a sentence (docs/theming.md)."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.texts import phrase
from corpid.web.pages import theme
from corpid.web.pages.components import BARE, Page
from corpid.web.pages.rendering import Renderer, packaged_static_files
from corpid.web.pages.theme import SHAPES, ThemeError, contrast, palettes, read
from corpid.web.pages.translations import LANGUAGES
from tests.browser.states import STATES
from tests.house.source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = ROOT / "examples" / "themes"
EXAMPLE = EXAMPLES / "harbour"
NAMES = sorted(each.name for each in EXAMPLES.iterdir())
PIXEL = b"\x89PNG\r\n\x1a\n" + b"0" * 40


def written(place: Path, text: str, **pictures: bytes) -> Path:
    (place / "theme.toml").write_text(text, encoding="utf-8")
    for name, content in pictures.items():
        (place / name.replace("_", ".")).write_bytes(content)
    return place


def page(found: theme.Theme, tag: str = "en") -> str:
    language = next(each for each in LANGUAGES if each.tag == tag)
    view = Page(frame=BARE, heading=phrase("You are signed out"), parts=())
    return Renderer(name="Harbour", theme=found).render(view, language).decode()


def test_the_example_changes_the_look_and_keeps_every_contrast() -> None:
    found = read(EXAMPLE)
    assert found.warnings == ()
    css = found.files["theme.css"].decode()
    assert "--accent: #0b5157;" in css
    assert "--radius: 0.375rem;" in css
    pictures = {"logo", "logo_dark", "illustration", "illustration_dark", "icon"}
    assert set(found.files) == {"theme.css", *(f"theme-{name}.svg" for name in pictures)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_each_example_has_the_contrast_of_the_default_look(name: str, scheme: str) -> None:
    """WCAG 2.2, 1.4.6 and 1.4.11: in colours of its own."""
    assert read(EXAMPLES / name).warnings == ()
    own = tomllib.loads((EXAMPLES / name / "theme.toml").read_text())[scheme]
    default = palettes(packaged_static_files()["style.css"].decode())[scheme == "dark"]
    palette = {**default, **own}
    faint = [pair for pair in theme.TEXTS if contrast(palette[pair[0]], palette[pair[1]]) < 7]
    faint += [pair for pair in theme.EDGES if contrast(palette[pair[0]], palette[pair[1]]) < 3]
    assert faint == []
    assert own["accent"] != default["accent"]


@pytest.mark.parametrize("name", NAMES)
def test_the_pictures_of_an_example_load_and_run_nothing(name: str) -> None:
    """D36: to be copied without a second look."""
    for file, content in read(EXAMPLES / name).files.items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"<script|<style|<foreignObject|\son\w+=|//|data:", text), file


def test_a_theme_has_a_wordmark_instead_of_the_name(tmp_path: Path) -> None:
    """WCAG 1.1.1: a picture of it says the provider's name; without a logo no mark of ours stands beside it."""
    text = page(read(written(tmp_path, 'wordmark = "The <Register>"')))
    assert "<span>The &lt;Register&gt;</span>" in text
    assert "mark." not in text
    place = written(tmp_path, 'wordmark = "mark.png"\nwordmark_dark = "mark.png"', mark_png=PIXEL)
    found = read(place)
    assert {"theme-wordmark.png", "theme-wordmark_dark.png"} < set(found.files)
    text = page(found)
    assert 'alt="Harbour"' in text
    assert "<span>Harbour</span>" not in text


def test_the_illustration_is_decoration_beside_a_sign_in(tmp_path: Path) -> None:
    """WCAG 1.1.1: it says nothing, and stands on no other page."""
    found = read(written(tmp_path, 'illustration = "picture.png"', picture_png=PIXEL))
    renderer = Renderer(theme=found)
    address = renderer.static.url("theme-illustration.png")
    assert f'<img loading="lazy" src="{address}" alt="">' in renderer.render(STATES["sign-in"]).decode()
    assert address not in renderer.render(STATES["account"]).decode()


def test_a_page_links_to_files_that_carry_the_hash_of_their_content() -> None:
    """D31, D36: nothing stands in the page itself."""
    found = read(EXAMPLE)
    renderer = Renderer(theme=found)
    source = renderer.render(STATES["sign-in"]).decode()
    for name, content in found.files.items():
        address = renderer.static.url(name)
        assert address in source
        assert renderer.static_file(address.rpartition("/")[2])[0] == content
    assert "<style" not in source


def test_the_help_is_in_the_language_of_the_page_or_in_english() -> None:
    """WCAG 3.1.2: what is in another language than the page says in which."""
    found = read(EXAMPLE)
    assert "Bantuan dan nombor telefon" in page(found, "ms")
    assert '<p class="contact">' in page(found, "ms")
    assert 'href="https://help.harbour.example/en"' in page(found, "ta")
    assert '<p class="contact" lang="en" dir="auto">' in page(found, "ta")


def test_a_logo_that_holds_the_name_says_it_to_who_cannot_see_it(tmp_path: Path) -> None:
    """WCAG 1.1.1."""
    place = written(tmp_path, 'logo = "logo.png"\nlogo_has_name = true', logo_png=PIXEL)
    assert 'alt="Harbour"' in page(read(place))
    place = written(tmp_path, 'logo = "logo.png"', logo_png=PIXEL)
    assert "<span>Harbour</span>" in page(read(place))


def test_without_a_theme_nothing_is_added() -> None:
    assert "theme" not in page(theme.NO_THEME)


def test_what_is_hard_to_read_is_said_with_its_variable_and_scheme(tmp_path: Path) -> None:
    """WCAG 1.4.3: a warning, since the operator may know better."""
    found = read(written(tmp_path, '[dark]\ntext = "#444444"'))
    assert any(each.startswith("theme.toml, dark: text #444444 on page #") for each in found.warnings)
    assert not any("light" in each for each in found.warnings)
    assert "less than 4.5" in found.warnings[0]


def test_a_colour_of_the_light_scheme_stays_out_of_the_dark_one(tmp_path: Path) -> None:
    css = read(written(tmp_path, '[light]\naccent = "#123456"')).files["theme.css"].decode()
    line = next(line for line in css.splitlines() if "#123456" in line)
    assert line.startswith("@media (prefers-color-scheme: light)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", None),
        ("logo = [", "not valid TOML"),
        ('colour = "#123456"', "there is no colour"),
        ('[light]\nacent = "#123456"', "there is no light.acent"),
        ('[light]\naccent = "red"', "write a colour such as"),
        ('[light]\naccent = "#12345"', "write a colour such as"),
        ('[light]\naccent = "#123456; } body { display: none"', "write a colour such as"),
        ("[light]\naccent = 7", "write a colour such as"),
        ('[shape]\nradius = "1e9rem"', "write a length such as"),
        ('[shape]\nsans = "x; } @import"', "write a list of fonts"),
        ("[shape]\nsans = '\"Inter'", "write a list of fonts"),
        ('[shape]\ntarget = "1px"', "there is no shape.target"),
        ('shape = "round"', "shape is a table"),
        ('logo = "logo.gif"', "ends in .svg or .png"),
        ("logo = 7", "ends in .svg or .png"),
        ('logo_has_name = "yes"', "write true or false"),
        ("wordmark = 7", "or write a name of at most 60 characters"),
        (f'wordmark = "{"x" * 61}"', "or write a name of at most 60 characters"),
        ('wordmark = "missing.png"', "cannot be read"),
        ('wordmark = "Harbour"\nlogo_has_name = true', "the name would stand there twice"),
        ('illustration = "harbour"', "ends in .svg or .png"),
        ('wordmark = "Harbour"\nwordmark_dark = "logo.png"', "cannot be read"),
        ("logo_has_name = 1", "write true or false"),
        ('logo = "missing.svg"', "cannot be read"),
        ('[texts.xx]\nhelp = "x"', "there is no texts.xx"),
        ('[texts.en]\nhint = "x"', "there is no texts.en.hint"),
        (f'[texts.en]\nhelp = "{"x" * 301}"', "at most 300 characters"),
        ('[texts.en]\nlink = "https://help.example"', "link and link_text, or neither"),
        ('[texts.en]\nlink = "javascript:alert(1)"\nlink_text = "x"', "begins with https://"),
        ('[texts.en]\nprivacy = "http://example.org"', "texts.en.privacy is an address that begins with https://"),
    ],
)
def test_what_cannot_be_used_is_refused_and_says_what_to_write(tmp_path: Path, text: str, says: str | None) -> None:
    place = written(tmp_path, text)
    if says is None:
        read(place)
        return
    with pytest.raises(ThemeError, match=re.escape(says)):
        read(place)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"GIF89a", "is not a picture of the kind png"), (PIXEL + b"0" * 100_000, "larger than 100 kB")],
)
def test_a_picture_is_what_its_name_says_and_small(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(ThemeError, match=says):
        read(written(tmp_path, 'logo = "logo.png"', logo_png=content))


def test_a_dark_picture_needs_a_light_one(tmp_path: Path) -> None:
    with pytest.raises(ThemeError, match="illustration_dark cannot be used alone"):
        read(written(tmp_path, 'illustration_dark = "logo.png"', logo_png=PIXEL))


def test_the_footer_names_the_operator_and_links_to_its_pages(tmp_path: Path) -> None:
    """WCAG 3.1.2, 2.4.4: in the page's language; a page that has no version of its own leads to the English one."""
    texts = """
        [texts.en]
        help = "Questions? Our counter is open."
        operator = "the Harbour <Authority>"
        privacy = "https://harbour.example/en/privacy"
        report = "mailto:sign-in@harbour.example"
        [texts.ms]
        privacy = "https://harbour.example/ms/privasi"
    """
    found = read(written(tmp_path, texts))
    english, malay = page(found), page(found, "ms")
    assert "Harbour is run by the Harbour &lt;Authority&gt;." in english
    assert '<a href="https://harbour.example/en/privacy">Privacy</a>' in english
    assert "Terms of use" not in english
    assert '<a href="https://harbour.example/ms/privasi">Privasi</a>' in malay
    assert '<a href="mailto:sign-in@harbour.example">Laporkan masalah</a>' in malay
    assert "Harbour dikendalikan oleh the Harbour &lt;Authority&gt;." in malay
    assert '<p class="contact" lang="en" dir="auto">Questions? Our counter is open.</p>' in malay


def test_a_directory_without_a_theme_says_which_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ThemeError, match=r"theme\.toml cannot be read"):
        read(tmp_path)


@given(st.sampled_from([("light", "accent"), *(("shape", name) for name in SHAPES)]), st.text(max_size=30))
def test_no_value_can_end_its_declaration(
    tmp_path_factory: pytest.TempPathFactory, where: tuple[str, str], value: str
) -> None:
    """D36: whatever gets into the style sheet is one value."""
    table, name = where
    text = "".join(f"\\U{ord(each):08x}" for each in value if not 0xD800 <= ord(each) <= 0xDFFF)
    try:
        found = read(written(tmp_path_factory.mktemp("theme"), f'[{table}]\n{name} = "{text}"'))
    except ThemeError:
        return
    css = found.files["theme.css"].decode()
    assert css.count("{") == css.count("}") == 5
    assert css.count(";") == 1


def test_every_colour_of_the_style_sheet_can_be_set(tmp_path: Path) -> None:
    light, dark = palettes(packaged_static_files()["style.css"].decode())
    assert contrast(light["text"], dark["text"]) > 4.5
    tables: dict[str, dict[str, Any]] = {"light": light, "dark": dark}
    lines = [
        f"[{name}]\n" + "\n".join(f'{key} = "{value}"' for key, value in each.items()) for name, each in tables.items()
    ]
    assert read(written(tmp_path, "\n".join(lines))).warnings == ()
