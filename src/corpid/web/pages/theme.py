"""An operator's own theme, and the contrast of its colours.

A theme is a directory with theme.toml and the pictures that it names (docs/theming.md). It is read once, at start. Only
known variables with values of their kind get into the style sheet, which is a static file like every other.
Source: WCAG 2.2, 1.4.3 and 1.4.11
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from corpid.texts import Phrase, phrase
from corpid.web.pages.components import Link
from corpid.web.pages.translations import ENGLISH, LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


TEXT_RATIO: Final = 4.5
"""least contrast of text (WCAG 2.2, 1.4.3); CorpID's own colours have 7"""
EDGE_RATIO: Final = 3.0
"""least contrast of the edges of controls (WCAG 2.2, 1.4.11)"""
TEXTS: Final = (
    *((ink, ground) for ink in ("text", "muted", "accent", "accent-strong") for ground in ("page", "surface", "quiet")),
    *((ink, "chosen") for ink in ("text", "muted", "accent-strong")),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("error", "surface"),
    ("error", "error-quiet"),
    ("text", "error-quiet"),
    ("on-notice", "notice"),
    ("good", "good-quiet"),
)
"""the variable of a text, and that of its background"""
EDGES: Final = (
    *(("edge", ground) for ground in ("page", "surface", "quiet")),
    ("accent", "surface"),
    ("error", "surface"),
    ("notice-edge", "notice"),
    ("focus", "focus-edge"),
)
_BLOCK: Final = re.compile(r":root \{(.*?)\n *\}", re.DOTALL)
_HEX_COLOUR: Final = re.compile(r"--([a-z-]+): (#[0-9a-f]{6});")


def palettes(style_sheet: str) -> tuple[dict[str, str], dict[str, str]]:
    """The colours of style.css, light and dark: variable → `#rrggbb`."""
    light, dark = (dict(_HEX_COLOUR.findall(block)) for block in _BLOCK.findall(style_sheet)[:2])
    return light, dark


def luminance(colour: str) -> float:
    """The relative luminance, 0..1, of `#rrggbb`. Source: WCAG 2.2, 1.4.3"""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast, 1..21, of two colours `#rrggbb`. Source: WCAG 2.2, 1.4.3"""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def faint(palette: Mapping[str, str]) -> Iterator[str]:
    """A warning for each pair of colours with too little contrast.

    Source: WCAG 2.2, 1.4.3, 1.4.11
    """
    for pairs, least in ((TEXTS, TEXT_RATIO), (EDGES, EDGE_RATIO)):
        for ink, ground in pairs:
            found = contrast(palette[ink], palette[ground])
            if found < least:
                yield f"{ink} {palette[ink]} on {ground} {palette[ground]} has a contrast of {found:.1f}, less than {least:g}"


FILE: Final = "theme.toml"
STYLE: Final = "theme.css"
LARGEST_PICTURE: Final = 100_000
"""bytes"""
_LONGEST_TEXT: Final = 300
_COLOUR: Final = (re.compile(r"#[0-9a-f]{6}"), "a colour such as #0b4a82")
_LENGTH: Final = (re.compile(r"(0|[0-2](\.[0-9]{1,4})?rem|[0-9]{1,2}px)"), "a length such as 0.5rem or 8px")
_FONTS: Final = (
    re.compile(r"""(?=.{1,300}$)([A-Za-z0-9 ,-]|"[A-Za-z0-9 -]+"|'[A-Za-z0-9 -]+')+"""),
    "a list of fonts such as Inter, Arial, sans-serif",
)
SHAPES: Final = {"radius": _LENGTH, "radius-large": _LENGTH, "sans": _FONTS, "headings": _FONTS}
_PICTURES: Final = {"png": re.compile(rb"\x89PNG\r\n\x1a\n"), "svg": re.compile(rb".*<svg[\s>]", re.DOTALL)}
"""suffix → how such a file begins"""
PICTURES: Final = ("logo", "logo_dark", "wordmark", "wordmark_dark", "illustration", "illustration_dark", "icon")
"""members that name a picture; a wordmark may be a text as well"""
_LONGEST_WORDMARK: Final = 60
_LINK: Final = re.compile(r"(https://|mailto:|tel:)[!-~]+")
FOOTER_LINKS: Final[Mapping[str, Phrase]] = {
    "privacy": phrase("Privacy"),
    "terms": phrase("Terms of use"),
    "accessibility": phrase("Accessibility"),
    "report": phrase("Report a problem"),
}
"""member of a language's texts, whose value is an address, and what the link at the foot of every page says"""


class ThemeError(Exception):
    """A theme that cannot be used.

    The message is one sentence for the operator.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """An operator's own texts at the foot of every page."""

    help: str = ""
    link: str = ""
    link_text: str = ""
    operator: str = ""
    """who runs the provider"""
    privacy: str = ""
    terms: str = ""
    accessibility: str = ""
    report: str = ""


_NAMES: Final = {each.name for each in fields(Texts)}
_ADDRESSES: Final = ("link", *FOOTER_LINKS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Theme:
    """A loaded theme; each one is itself alone.

    `files` are static files by name. The pictures are names of such files, or empty.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    logo: str = ""
    logo_dark: str = ""
    logo_has_name: bool = False
    """whether the logo contains the provider's name"""
    wordmark: str = ""
    """written name of the provider, beside the logo"""
    wordmark_dark: str = ""
    wordmark_text: str = ""
    """the same as a text"""
    illustration: str = ""
    """decoration beside a sign-in on wide screens"""
    illustration_dark: str = ""
    icon: str = ""
    light: Mapping[str, str] = field(default_factory=dict)
    """the operator's own colours, for e-mails; pages have them in the style sheet"""
    dark: Mapping[str, str] = field(default_factory=dict)
    sans: str = ""
    """the operator's own fonts, for e-mails"""
    texts: Mapping[str, Texts] = field(default_factory=dict)
    """by language"""
    warnings: tuple[str, ...] = ()
    """what works, but should not stay so"""

    def help_in(self, tag: str) -> tuple[Texts, str]:
        """The texts that hold the help, and their language.

        It is English if the language has no help of its own. Source: WCAG 3.1.2
        """
        own = self.texts.get(tag, Texts())
        return (own, tag) if own.help or own.link else (self.texts.get(ENGLISH.tag, Texts()), ENGLISH.tag)

    def operator_in(self, tag: str) -> str:
        """The operator's name, in English if need be."""
        return self._in(tag, "operator")

    def links_in(self, tag: str) -> tuple[Link, ...]:
        """The footer's links, to a page's English version if need be."""
        addresses = {name: self._in(tag, name) for name in FOOTER_LINKS}
        return tuple(Link(url=url, text=FOOTER_LINKS[name]) for name, url in addresses.items() if url)

    def _in(self, tag: str, name: str) -> str:
        """A text in a language, else in English."""
        own, english = (getattr(self.texts.get(each, Texts()), name) for each in (tag, ENGLISH.tag))
        return str(own or english)


NO_THEME: Final = Theme()


def read(directory: Path) -> Theme:
    """The theme of a directory. Raises ThemeError."""
    try:
        written = tomllib.loads((directory / FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise ThemeError(f"theme: {directory / FILE} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ThemeError(f"{directory / FILE} is not valid TOML: {error}") from error
    light, dark = palettes(files("corpid").joinpath("web", "static", "style.css").read_text(encoding="utf-8"))
    _known(written, {*PICTURES, "logo_has_name", "light", "dark", "shape", "texts"}, "")
    own_light = _values(written, "light", dict.fromkeys(light, _COLOUR))
    own_dark = _values(written, "dark", dict.fromkeys(dark, _COLOUR))
    shape = _values(written, "shape", SHAPES)
    own = {STYLE: _css(shape, own_light, own_dark).encode()}
    wordmark = _wordmark(written)
    named = {name: "" if wordmark and name == "wordmark" else written.get(name, "") for name in PICTURES}
    pictures = {name: _picture(directory, name, path, own) for name, path in named.items()}
    for name in ("logo", "wordmark", "illustration"):
        if pictures[f"{name}_dark"] and not pictures[name]:
            raise ThemeError(f"{FILE}: {name}_dark cannot be used alone: name a picture in {name}, too")
    has_name = _switch(written, "logo_has_name")
    if has_name and (wordmark or pictures["wordmark"]):
        raise ThemeError(f"{FILE}: the name would stand there twice: write logo_has_name = false, or no wordmark")
    return Theme(
        files=own,
        **pictures,
        light=own_light,
        dark=own_dark,
        sans=shape.get("sans", ""),
        logo_has_name=has_name,
        wordmark_text=wordmark,
        texts=_texts(written),
        warnings=tuple(
            f"{FILE}, {scheme}: {sentence}"
            for scheme, palette in (("light", {**light, **own_light}), ("dark", {**dark, **own_dark}))
            for sentence in faint(palette)
        ),
    )


def _known(table: Mapping[str, object], names: set[str], place: str) -> None:
    for name in table:
        if name not in names:
            raise ThemeError(f"{FILE}: there is no {place}{name}; choose from {', '.join(sorted(names))}")


def _table(written: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = written.get(name, {})
    if not isinstance(table, dict):
        raise ThemeError(f"{FILE}: {name} is a table: write [{name}] and its values below")
    return table


def _switch(written: Mapping[str, object], name: str) -> bool:
    value = written.get(name, False)
    if not isinstance(value, bool):
        raise ThemeError(f"{FILE}: {name} = {value!r} cannot be used: write true or false, without quotation marks")
    return value


def _values(written: Mapping[str, Any], name: str, kinds: Mapping[str, tuple[re.Pattern[str], str]]) -> dict[str, str]:
    table = _table(written, name)
    _known(table, set(kinds), f"{name}.")
    for variable, value in table.items():
        pattern, wanted = kinds[variable]
        if not isinstance(value, str) or not pattern.fullmatch(value.lower() if pattern is _COLOUR[0] else value):
            raise ThemeError(f"{FILE}: {name}.{variable} = {value!r} cannot be used: write {wanted}")
    return {variable: value.lower() if kinds[variable] is _COLOUR else value for variable, value in table.items()}


def _css(shape: Mapping[str, str], light: Mapping[str, str], dark: Mapping[str, str]) -> str:
    """CSS of both colour schemes.

    Each scheme by itself: what is set for the light one must not reach the dark one.
    """

    def block(values: Mapping[str, str]) -> str:
        return ":root { " + " ".join(f"--{name}: {value};" for name, value in values.items()) + " }"

    return (
        f"{block(shape)}\n@media (prefers-color-scheme: light) {{ {block(light)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {block(dark)} }}\n"
    )


def _wordmark(written: Mapping[str, Any]) -> str:
    """The wordmark if it is a text, not a file."""
    value = written.get("wordmark", "")
    if not isinstance(value, str) or len(value) > _LONGEST_WORDMARK:
        raise ThemeError(
            f"{FILE}: wordmark = {value!r} cannot be used: name a file that ends in .svg or .png, or write a name of at most "
            f"{_LONGEST_WORDMARK} characters"
        )
    return "" if value.rpartition(".")[2].lower() in _PICTURES else value.strip()


def _picture(directory: Path, name: str, path: object, own: dict[str, bytes]) -> str:
    """Add a picture to the files, and return its name there."""
    if path == "":
        return ""
    suffix = str(path).rpartition(".")[2].lower()
    if not isinstance(path, str) or suffix not in _PICTURES:
        raise ThemeError(f"{FILE}: {name} = {path!r} cannot be used: name a file that ends in .svg or .png")
    try:
        with (directory / path).open("rb") as file:
            content = file.read(LARGEST_PICTURE + 1)
    except OSError as error:
        raise ThemeError(f"{FILE}: {name}: {directory / path} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_PICTURE:
        raise ThemeError(f"{FILE}: {name}: {path} is larger than {LARGEST_PICTURE // 1000} kB: make it smaller")
    if not _PICTURES[suffix].match(content):
        raise ThemeError(f"{FILE}: {name}: {path} is not a picture of the kind {suffix}: save it as one")
    own[f"theme-{name}.{suffix}"] = content
    return f"theme-{name}.{suffix}"


def _texts(written: Mapping[str, Any]) -> dict[str, Texts]:
    texts = _table(written, "texts")
    _known(texts, {language.tag for language in LANGUAGES}, "texts.")
    found = {}
    for tag in texts:
        table = _table(texts, tag)
        _known(table, _NAMES, f"texts.{tag}.")
        for name, text in table.items():
            if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
                raise ThemeError(f"{FILE}: texts.{tag}.{name} is a text of at most {_LONGEST_TEXT} characters")
            if text and name in _ADDRESSES and not _LINK.fullmatch(text):
                raise ThemeError(f"{FILE}: texts.{tag}.{name} is an address that begins with https://, mailto: or tel:")
        made = Texts(**table)
        if bool(made.link) != bool(made.link_text):
            raise ThemeError(f"{FILE}: texts.{tag} has link and link_text, or neither")
        found[tag] = made
    return found
