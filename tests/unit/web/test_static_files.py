"""Static files by the hash of their content, and the colours in them (D31, docs/accessibility.md)."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from corpid.web.pages import theme
from corpid.web.pages.rendering import Renderer, StaticFiles, packaged_static_files
from corpid.web.pages.theme import palettes

if TYPE_CHECKING:
    from pathlib import Path

CONTENTS = {**packaged_static_files(), **packaged_static_files("corpid_dev")}
DEMO = files("corpid_dev").joinpath("demo", "static", "demo.css").read_text(encoding="utf-8")
EMAIL = files("corpid").joinpath("web", "templates", "_email.html").read_text(encoding="utf-8")
STYLES = {"style.css": CONTENTS["style.css"].decode(), "demo.css": DEMO}


def test_another_content_has_another_name() -> None:
    """D31: hashed static files are immutable, so a change needs a new name."""
    first, second = StaticFiles({"a.css": b"a{}"}), StaticFiles({"a.css": b"b{}"})
    assert first.url("a.css") != second.url("a.css")
    assert first.url("a.css") == StaticFiles({"a.css": b"a{}"}).url("a.css")


def test_a_file_of_an_extension_does_not_replace_one_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As with templates and texts, ours is preferred."""
    folder = tmp_path / "another" / "web" / "static"
    folder.mkdir(parents=True)
    for package in (folder.parents[1], folder.parent):
        (package / "__init__.py").touch()
    (folder.parent / "templates").mkdir()
    (folder / "style.css").write_text("a{}", encoding="utf-8")
    (folder / "another.css").write_text("a{}", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    static = Renderer(added="another").static
    content, _ = static.file(static.url("style.css").rpartition("/")[2])
    assert content == CONTENTS["style.css"]
    assert static.url("another.css")


@pytest.mark.parametrize("name", sorted(CONTENTS))
def test_a_static_file_is_found_by_its_hashed_name_only(name: str) -> None:
    renderer = Renderer(base_path="/id", added="corpid_dev")
    url = renderer.static.url(name)
    assert url.startswith("/id/static/")
    content, media_type = renderer.static_file(url.rpartition("/")[2])
    assert content == CONTENTS[name]
    assert media_type.split(";")[0] in {"text/css", "text/javascript", "image/svg+xml"}
    with pytest.raises(KeyError):
        renderer.static_file(name)


@pytest.mark.parametrize("name", [name for name in sorted(CONTENTS) if name.endswith((".css", ".svg"))])
def test_style_sheets_and_pictures_load_nothing_further(name: str) -> None:
    """D36: no data: addresses, no imports; the hash covers all of a file."""
    text = CONTENTS[name].decode()
    assert not re.search(r"url\(|@import|@font-face|<style|style=|href=", text)


@pytest.mark.parametrize("name", STYLES)
def test_nothing_moves(name: str) -> None:
    assert not re.search(r"\b(transition|animation)\b(?!: none)|@keyframes", STYLES[name])


@pytest.mark.parametrize("name", STYLES)
def test_text_has_one_of_four_sizes(name: str) -> None:
    """A scale of few sizes, declared once; code is a little smaller than what surrounds it; 0 is read, not seen."""
    declared = re.findall(r"font-size: ([^;]+);", STYLES[name])
    sized = {re.sub(r"calc\((var\(.*?\)) \* [\d.]+\)", r"\1", each) for each in declared}
    assert sized <= {"112.5%", "100%", "0", "var(--small)", "1rem", "inherit", "0.9em", "var(--large)", "var(--title)"}


def test_a_scheme_sets_colours_and_nothing_else() -> None:
    """What fits its window in one scheme fits in the other (test_appearances and test_emails in tests/browser)."""
    texts = {
        **STYLES,
        "inspector.css": CONTENTS["inspector.css"].decode(),
        "e-mails": re.sub("{{.*?}}", "#000000", EMAIL),
    }
    for name, text in texts.items():
        blocks = re.findall(r"@media \(prefers-color-scheme: \w+\) \{(.*?\})\s*\}", text, re.DOTALL)
        assert len(blocks) == text.count("prefers-color-scheme") == 1, name
        for declared in re.findall(r"([\w-]+: [^;{}]+);", blocks[0]):
            assert re.fullmatch(r"(--[\w-]+|background|border-color|color): #[0-9a-f]{6}( !important)?", declared), name


def colours(*, dark: bool) -> dict[str, str]:
    """The colour variables of both style sheets in one scheme."""
    own = palettes(STYLES["style.css"])
    demo = palettes(DEMO.replace(".demo {", ":root {"))
    return own[dark] | {f"demo-{name}": value for name, value in demo[dark].items()}


TEXT = [
    *theme.TEXTS,
    *[(ink, ground) for ink in ("demo-accent", "demo-accent-strong") for ground in ("page", "surface", "quiet")],
    ("demo-on-accent", "demo-accent"),
    ("demo-on-accent", "demo-accent-strong"),
    ("demo-ok", "demo-ok-quiet"),
    ("demo-ok", "surface"),
    ("text", "demo-code"),
]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), TEXT)
def test_text_has_a_contrast_of_seven(ink: str, ground: str, dark: bool) -> None:
    palette = colours(dark=dark)
    assert theme.contrast(palette[ink], palette[ground]) >= 7


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), theme.EDGES)
def test_edges_of_controls_have_a_contrast_of_three(ink: str, ground: str, dark: bool) -> None:
    """WCAG 2.2, 1.4.11."""
    palette = colours(dark=dark)
    assert theme.contrast(palette[ink], palette[ground]) >= 3


@pytest.mark.parametrize("ground", ["page", "surface", "quiet"])
def test_one_of_the_two_rings_of_the_focus_stands_out_on_every_ground(ground: str) -> None:
    for dark in (False, True):
        palette = colours(dark=dark)
        assert max(theme.contrast(palette[ring], palette[ground]) for ring in ("focus", "focus-edge")) >= 7
