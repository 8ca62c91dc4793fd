"""How a language says what the pages say: its catalogue, its numbers and its times.

Catalogues are read from their sources once, at start, so that no compiled file has to be kept in step with them.
"""

from __future__ import annotations

from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING, Final
from unicodedata import bidirectional

from babel.dates import format_date, format_time, get_datetime_format
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

from corpid.texts import Phrase
from corpid.web.languages import ENGLISH, PSEUDO

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.web.languages import Language

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


def _translations(language: Language) -> NullTranslations:
    if language is PSEUDO:
        return Pseudo()
    if language is ENGLISH:
        return NullTranslations()
    compiled = BytesIO()
    with files("corpid").joinpath("locales", f"{language.tag}.po").open("rb") as source:
        write_mo(compiled, read_po(source, locale=language.formats))
    compiled.seek(0)
    return GNUTranslations(compiled)


class Voice:
    """A language as the pages speak it."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._translations = _translations(language)
        self._times: dict[tuple[int, int], str] = {}

    def gettext(self, message: str) -> str:
        """A literal of a template or phrase in this language."""
        return self._translations.gettext(message)

    def ngettext(self, one: str, many: str, count: int) -> str:
        """The form of a literal that goes with a number."""
        return self._translations.ngettext(one, many, count)

    def say(self, phrase: Phrase) -> str:
        """A phrase in this language, with what stands in it."""
        values = phrase.values
        if phrase.many:
            wording = self.ngettext(phrase.message, phrase.many, int(str(values["count"])))
        else:
            wording = self.gettext(phrase.message)
        return wording.format_map({name: self._shown(value) for name, value in values.items()}) if values else wording

    def number(self, number: int) -> str:
        """A whole number, with its digits grouped."""
        if number < 1000:
            return str(number)
        return format_decimal(number, locale=self.language.formats)

    def time(self, moment: datetime) -> str:
        """The time of a day, and in which zone: `14:32 UTC`."""
        at = (moment.hour, moment.minute)
        if at not in self._times:
            self._times[at] = format_time(moment, "short", locale=self.language.formats)
        return f"{self._times[at]} {moment.tzname()}"

    def moment(self, moment: datetime) -> str:
        """A day and a time, and in which zone: `21 Nov 2026, 14:32 UTC`."""
        together = str(get_datetime_format("medium", self.language.formats))
        return together.format(self.time(moment), self.day(moment))

    def day(self, moment: datetime) -> str:
        """A day: `21 Nov 2026`."""
        return format_date(moment, "medium", locale=self.language.formats)

    def _shown(self, value: object) -> object:
        if isinstance(value, Phrase):
            return self.say(value)
        if isinstance(value, int):
            return self.number(value)
        if isinstance(value, tuple):
            return ", ".join(str(self._shown(each)) for each in value)
        return f"\u2068{value}\u2069" if self._turns(str(value)) else value

    def _turns(self, name: str) -> bool:
        """Whether a name would turn what stands beside it: it keeps its own direction, and lends it to nothing (D51)."""
        return self.language.direction == "rtl" or any(bidirectional(each) in _RIGHT_TO_LEFT for each in name)


@cache
def voice(language: Language) -> Voice:
    """The one voice of a language in this process."""
    return Voice(language)
