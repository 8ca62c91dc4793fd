"""Languages: negotiation, catalogues, numbers and times.

The relying party's wish comes first (`ui_locales`), unless the person has picked a language on a page of the same
sign-in; then what they picked before, then what their browser asks for, then English.

Catalogues are read from their sources once, at start, so that no compiled file has to be kept in step with them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from functools import cache, lru_cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING, Final
from unicodedata import bidirectional

from babel import Locale
from babel.dates import format_date, format_time, get_datetime_format, get_timezone_name
from babel.numbers import format_decimal

from corpid.texts import Phrase, fill_wording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from babel.messages.catalog import Message


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """A language: tag (BCP 47, names its catalogue) and native name.

    Compared by identity: one object each, so that it is a quick cache key.
    """

    tag: str
    name: str
    also: tuple[str, ...] = ()
    """other tags, in lower case, whose readers it is for"""
    formats: str
    """the locale by whose rules numbers and times are written"""
    direction: str = "ltr"
    partial: bool = False
    """what its catalogues lack is said in English; the others have every text, or a test fails"""


ENGLISH: Final = Language(tag="en", name="English", formats="en_GB")
LANGUAGES: Final = (
    ENGLISH,
    Language(tag="zh-Hans", name="简体中文", also=("zh", "zh-cn", "zh-sg"), formats="zh_Hans"),
    Language(tag="ms", name="Bahasa Melayu", formats="ms"),
    Language(tag="ta", name="தமிழ்", formats="ta"),
)
PSEUDO: Final = Language(tag="ar-XB", name="⟦Pseudo⟧", formats="en_GB", direction="rtl")
"""English in brackets, from right to left: shows what is not translated and what does not mirror. For developers"""

_RANGE: Final = re.compile(r"([A-Za-z0-9-]{1,35}|\*)(?:[ \t]*;[ \t]*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?")
_HEADER_CHARACTERS: Final = 512


def lookup(ranges: Iterable[str], offered: Sequence[Language]) -> Language | None:
    """The first offered language that a list of ranges matches.

    None if none does. Source: RFC 4647 §3.4
    """
    tags = _by_tag(tuple(offered))
    for wanted in ranges:
        tag = wanted.lower()
        while tag and tag not in tags:
            tag = tag.rpartition("-")[0]
        if tag:
            return tags[tag]
    return None


@lru_cache(maxsize=16)
def _by_tag(offered: tuple[Language, ...]) -> dict[str, Language]:
    return {tag: each for each in offered for tag in (each.tag.lower(), *each.also)}


@lru_cache(maxsize=256)
def accepted_language(header: str, offered: tuple[Language, ...]) -> Language | None:
    """The language for an Accept-Language header.

    Malformed parts are ignored. Source: RFC 9110 §12.5.4
    """
    found = (_RANGE.fullmatch(part.strip()) for part in header[:_HEADER_CHARACTERS].split(","))
    weighed = [(float(match[2] or 1), match[1]) for match in found if match is not None]
    # The sort is stable: what weighs the same stays as it was sent.
    ordered = sorted(weighed, key=lambda each: -each[0])
    return lookup((wanted for weight, wanted in ordered if weight), offered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """A picked language, and the sign-in it was picked in."""

    tag: str
    where: str = ""

    @classmethod
    def read(cls, cookie: str) -> Pick:
        """Parse the cookie; any value is accepted."""
        tag, _, where = cookie.partition(".")
        return cls(tag=tag, where=where)

    def written(self) -> str:
        """The value of the cookie."""
        return f"{self.tag}.{self.where}" if self.where else self.tag


def choose(
    offered: tuple[Language, ...], *, pick: Pick, where: str, ui_locales: Sequence[str], accept_language: str
) -> Language:
    """The language of a page.

    `where` is the sign-in that it belongs to, or empty.

    Source: OpenID Connect Core §3.1.2.1
    """
    picked = lookup((pick.tag,), offered)
    if picked is not None and where and pick.where == where:
        return picked
    return lookup(ui_locales, offered) or picked or accepted_language(accept_language, offered) or ENGLISH


_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
"""bidirectional classes (Unicode UAX 9 §3.2)"""


class Pseudo(NullTranslations):
    """English between brackets."""

    def gettext(self, message: str) -> str:
        """A text in brackets."""
        return f"⟦{message}⟧"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """A text for a number in brackets."""
        return f"⟦{msgid1 if n == 1 else msgid2}⟧"


OWN: Final = ("corpid",)
"""the packages whose texts are said; another one's come after ours"""


def _translations(language: Language, packages: Sequence[str]) -> NullTranslations:
    if language is PSEUDO:
        return Pseudo()
    if language is ENGLISH:
        return NullTranslations()
    found, *further = [_catalogue(language, package) for package in packages]
    for each in further:
        found.add_fallback(each)
    return found


def has_all_forms(message: Message) -> bool:
    """Return whether a message is translated, with each plural form."""
    forms = (message.string,) if isinstance(message.string, str) else message.string
    return forms is not None and all(forms)


def _catalogue(language: Language, package: str) -> NullTranslations:
    from babel.messages.mofile import write_mo  # noqa: PLC0415 - English needs no catalogue
    from babel.messages.pofile import read_po  # noqa: PLC0415

    with files(package).joinpath("locales", f"{language.tag}.po").open("rb") as source:
        catalog = read_po(source, locale=language.formats)
    for message in [each for each in catalog if each.id and not has_all_forms(each)]:
        catalog.delete(message.id)  # a compiled plural would be shown with the singular of English
    compiled = BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return GNUTranslations(compiled)


class Translator:
    """Translations and formats of one language."""

    def __init__(self, language: Language, packages: tuple[str, ...] = OWN) -> None:
        self.language = language
        self.packages = packages
        self._translations = _translations(language, packages)
        self._times: dict[tuple[int, int, tzinfo | None, str | None], str] = {}
        pair = str(Locale.parse(language.formats).list_patterns["standard"]["middle"])
        self._separator = pair.format("", "")

    def gettext(self, message: str) -> str:
        """The translation of a literal."""
        return self._translations.gettext(message)

    def ngettext(self, one: str, many: str, count: int) -> str:
        """The plural form of a literal for a number."""
        return self._translations.ngettext(one, many, count)

    def say(self, phrase: Phrase, prepared: Callable[[object], object] | None = None) -> str:
        """The translation of a phrase, with its values.

        `prepared` changes each value before it is shown, also those of phrases in it.
        """
        values = phrase.values
        if phrase.many:
            wording = self._translations.ngettext(phrase.message, phrase.many, int(str(values["count"])))
        else:
            wording = self._translations.gettext(phrase.message)
        if not values:
            return wording
        return fill_wording(wording, {name: self.shown(value, prepared) for name, value in values.items()})

    def number(self, number: int) -> str:
        """A whole number, with its digits grouped."""
        if number < 1000:
            return str(number)
        return format_decimal(number, locale=self.language.formats)

    def time(self, moment: datetime) -> str:
        """A time of day with its zone: `14:32 Singapore Standard Time`."""
        zone = moment.tzname()
        # Two of the same time of day, before and after the clocks go back, differ in the name alone.
        at = (moment.hour, moment.minute, moment.tzinfo, zone)
        if at not in self._times:
            formats = self.language.formats
            name = zone if zone == "UTC" else get_timezone_name(moment, "long", locale=formats)
            self._times[at] = f"{format_time(moment, 'short', locale=formats)} {name}"
        return self._times[at]

    def moment(self, moment: datetime) -> str:
        """A day and time with its zone: `21 Nov 2026, 14:32 UTC`."""
        together = str(get_datetime_format("medium", self.language.formats))
        return together.format(self.time(moment), self.day(moment))

    def day(self, moment: date) -> str:
        """A day: `21 Nov 2026`."""
        return format_date(moment, "medium", locale=self.language.formats)

    def shown(self, value: object, prepared: Callable[[object], object] | None = None) -> object:
        """A value of a phrase as it is shown.

        `prepared` is that of `say`.
        """
        if isinstance(value, Phrase):
            return self.say(value, prepared)
        if isinstance(value, tuple):
            return self._separator.join(str(self.shown(each, prepared)) for each in value)
        if prepared is not None:
            value = prepared(value)
        if isinstance(value, int):
            return self.number(value)
        if isinstance(value, datetime):
            return self.moment(value)
        if isinstance(value, date):
            return self.day(value)
        return f"\u2068{value}\u2069" if self._turns(str(value)) else value

    def _turns(self, name: str) -> bool:
        """Return whether a name would change the direction of its surroundings.

        Such a name is isolated.
        """
        if self.language.direction == "rtl":
            return True
        return not name.isascii() and any(bidirectional(each) in _RIGHT_TO_LEFT for each in name)


def translator(language: Language, packages: tuple[str, ...] = OWN) -> Translator:
    """The translator of a language, one per process."""
    return _translator(language, packages)


_translator: Final = cache(Translator)


def translator_of(language: str) -> Translator:
    """The translator of a person's language; English if it is not offered."""
    return translator(lookup((language,), LANGUAGES) or ENGLISH)
