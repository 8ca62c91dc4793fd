"""Rendering of e-mails: plain text and HTML of one declaration.

The look is that of the pages: the colours and the font of the theme, light and dark. No picture, no script, no address
of another site.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from unicodedata import east_asian_width

from jinja2 import PackageLoader
from markupsafe import escape

from corpid.rules.characters import printable
from corpid.rules.emails import Action, Code, Copied, Email, EmailPart, Facts, RenderedEmail, UrlLine
from corpid.texts import Phrase, phrase
from corpid.web.pages.compilation import CompiledTemplates
from corpid.web.pages.compiled_pages import CompiledPage, Slot
from corpid.web.pages.components import never_asks, run_by
from corpid.web.pages.rendering import StaticFiles, page_environment
from corpid.web.pages.theme import NO_THEME, TEXT_RATIO, Theme, contrast, palettes
from corpid.web.pages.translations import Language, Translator, translator_of

if TYPE_CHECKING:
    from collections.abc import Mapping


INKS: Final = (
    *((ink, ground) for ink in ("text", "muted", "accent") for ground in ("surface", "page", "quiet")),
    ("on-accent", "accent"),
)
"""the colours of e-mails: that of a text, and that of its background"""
LONGEST_NAME: Final = 300
"""characters of a name in an e-mail; the rest is left out"""
COLUMNS: Final = 72
"""of plain text, in languages with spaces between words"""
_LINES: Final = re.compile(rf"(.{{1,{COLUMNS}}}|[^ ]+)(?: +|$)", re.DOTALL)
"""a line of whole words, or a longer word"""
_OF_ADDRESSES: Final = re.compile(r"[.:/@](?=\S)")
_WORD_JOINER: Final = "\u2060"
_LONGEST_SUBJECT: Final = 200
_FONTS: Final = '-apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif'
_SHAPES: Final = 256
"""e-mail shapes whose HTML is cached, 8 kB each; more than there are kinds, since lists vary in length"""
_PADDING: Final = "\u200c\u00a0" * 80
"""keeps the list of e-mails from showing the text after the preview"""


class EmailRenderer:
    """The renderer of e-mails.

    `name` is the provider's name. Times are shown in `timezone`, since an e-mail cannot convert them.
    """

    def __init__(self, *, name: str, timezone: tzinfo, theme: Theme = NO_THEME) -> None:
        """A scheme of the theme with too little contrast is replaced."""
        self._name = name
        self._zone = timezone
        self._theme = theme
        style_sheet = files("corpid").joinpath("web", "static", "style.css").read_text(encoding="utf-8")
        own_light, own_dark = palettes(style_sheet)
        self._looks = {
            "light": _legible({**own_light, **theme.light}, own_light),
            "dark": _legible({**own_dark, **theme.dark}, own_dark),
            "fonts": theme.sans or _FONTS,
        }
        environment = page_environment(PackageLoader("corpid", "web/templates"), StaticFiles({}))
        environment.bytecode_cache = CompiledTemplates("emails")
        self._template = environment.get_template("_email.html")
        self._shapes: dict[_Shape, CompiledPage] = {}
        """HTML by shape, with a gap for each text"""

    def render(self, email: Email) -> RenderedEmail:
        """The e-mail in its language, else in English."""
        voice = translator_of(email.language)

        def say(said: Phrase) -> str:
            return voice.say(said, self._prepared)

        subject = _short(" ".join(say(email.subject).split()), _LONGEST_SUBJECT)
        greeting = say(phrase("Hello {name},", name=email.name) if email.name else phrase("Hello,"))
        parts = [(_KINDS[type(part)], self._said(part, voice)) for part in email.parts]
        operator = self._theme.operator_in(voice.language.tag)
        foot = [say(never_asks(self._name)), *([say(run_by(self._name, operator))] if operator else [])]
        html = self._html(voice.language, (subject, say(email.preview), greeting, parts, foot))
        return RenderedEmail(subject=subject, text=_text(greeting, parts, foot), html=html, language=voice.language.tag)

    def _said(self, part: EmailPart, voice: Translator) -> Any:  # noqa: ANN401 - as the template takes it
        def say(said: Phrase) -> str:
            return voice.say(said, self._prepared)

        match part:
            case Action(text=text, url=url):
                label = say(phrase("{text}:", text=text))
                return {"text": say(text), "label": label, "url": url, "instead": say(_INSTEAD)}
            case Code(text=text, value=value):
                return {"text": say(text), "value": value}
            case Facts(rows=rows):
                return [
                    (
                        say(name),
                        str(voice.shown(value, self._prepared)),
                        say(phrase("{name}: {value}", name=name, value=value)),
                    )
                    for name, value in rows
                ]
            case Phrase():
                return say(part)
            case _:
                return str(part)

    def _prepared(self, value: object) -> object:
        """A value as an e-mail shows it, with times in its zone.

        A name is on one line, and mail programs make no link of it (D68).
        """
        if isinstance(value, datetime):
            return value.astimezone(self._zone)
        if not isinstance(value, str):
            return value
        shown = _short(printable(" ".join(value.split())), LONGEST_NAME)
        return shown if isinstance(value, Copied) else _OF_ADDRESSES.sub(f"\\g<0>{_WORD_JOINER}", shown)

    def _html(self, language: Language, said: _Said) -> str:
        """The HTML of an e-mail.

        What all e-mails of its shape have in common is rendered once.
        """
        subject, preview, greeting, parts, foot = said
        texts: list[str] = []
        with_gaps = (
            *_with_gaps((subject, preview, greeting), texts),
            [(kind, _with_gaps(part, texts)) for kind, part in parts],
            _with_gaps(foot, texts),
        )
        shape = (language, tuple((kind, len(part) if kind == "facts" else 1) for kind, part in parts), len(foot))
        found = self._shapes.get(shape)
        if found is None:
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            found = self._shapes[shape] = CompiledPage(self._rendered(language, with_gaps))
        return found.filled({_gap(number): str(escape(text)) for number, text in enumerate(texts)})

    def _rendered(self, language: Language, said: _Said) -> str:
        subject, preview, greeting, parts, foot = said
        return self._template.render(
            language=language,
            subject=subject,
            preview=preview,
            padding=_PADDING,
            provider_name=self._name,
            initial=self._name[:1].upper(),
            greeting=greeting,
            parts=parts,
            # A code without a button is what the e-mail is about.
            alone=not any(kind == "action" for kind, _ in parts),
            foot=foot,
            **self._looks,
        )


_INSTEAD: Final = phrase("If the button does not work, open this address:")
_KINDS: Final = {Phrase: "paragraph", UrlLine: "address", Action: "action", Code: "code", Facts: "facts"}
_Said: TypeAlias = tuple[str, str, str, list[tuple[str, Any]], list[str]]
"""subject, preview, greeting, parts with their kinds, foot"""
_Shape: TypeAlias = "tuple[Language, tuple[tuple[str, int], ...], int]"
"""language, parts with their numbers of rows, lines of the foot"""


def _gap(number: int) -> Slot:
    return Slot.named(f"text{number}")


def _with_gaps(said: Any, texts: list[str]) -> Any:  # noqa: ANN401 - of any depth
    """The same with a gap for each text.

    The texts are added to `texts`.
    """
    if isinstance(said, str):
        texts.append(said)
        return _gap(len(texts) - 1)
    if isinstance(said, dict):
        return {name: _with_gaps(each, texts) for name, each in said.items()}
    return type(said)(_with_gaps(each, texts) for each in said)


def _legible(palette: Mapping[str, str], own: Mapping[str, str]) -> Mapping[str, str]:
    readable = all(contrast(palette[ink], palette[ground]) >= TEXT_RATIO for ink, ground in INKS)
    return palette if readable else own


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _text(greeting: str, parts: list[tuple[str, Any]], foot: list[str]) -> str:
    """Plain text: paragraphs, with addresses and codes in lines of their own."""
    blocks = [greeting]
    for kind, part in parts:
        match kind:
            case "action":
                blocks += [part["label"], part["url"]]
            case "code":
                blocks += [_wrapped(part["text"]), part["value"]]
            case "facts":
                blocks.append("\n".join(line for _, _, line in part))
            case "address":
                blocks.append(part)
            case _:
                blocks.append(_wrapped(part))
    return "\n\n".join([*blocks, *map(_wrapped, foot)])


def _wrapped(paragraph: str) -> str:
    """A paragraph in lines, unless its words have no spaces between them."""
    if len(paragraph) <= COLUMNS:
        return paragraph
    if not paragraph.isascii() and any(east_asian_width(each) == "W" for each in paragraph):
        return paragraph
    return "\n".join(_LINES.findall(paragraph))
