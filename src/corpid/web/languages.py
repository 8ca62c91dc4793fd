"""The languages of the pages, and which one a request gets.

The relying party's wish comes first (`ui_locales`), unless the person has picked a language on a page of the same
sign-in; then what they picked before, then what their browser asks for, then English.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language of the pages: its tag (BCP 47), which also names its catalogue, and its name in itself."""

    tag: str
    name: str
    also: tuple[str, ...] = ()
    """other tags, in lower case, whose readers it is for"""
    formats: str
    """the locale by whose rules numbers and times are written"""
    direction: str = "ltr"


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
    """The first language that a list of ranges leads to, None where none does. Source: RFC 4647 §3.4"""
    tags = {tag: each for each in offered for tag in (each.tag.lower(), *each.also)}
    for wanted in ranges:
        tag = wanted.lower()
        while tag and tag not in tags:
            tag = tag.rpartition("-")[0]
        if tag:
            return tags[tag]
    return None


@lru_cache(maxsize=256)
def accepted(header: str, offered: tuple[Language, ...]) -> Language | None:
    """What an Accept-Language header leads to; what cannot be read in it is passed over. Source: RFC 9110 §12.5.4"""
    found = (_RANGE.fullmatch(part.strip()) for part in header[:_HEADER_CHARACTERS].split(","))
    weighed = [(float(match[2] or 1), match[1]) for match in found if match is not None]
    # The sort is stable: what weighs the same stays as it was sent.
    ordered = sorted(weighed, key=lambda each: -each[0])
    return lookup((wanted for weight, wanted in ordered if weight), offered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """What a person picked: a tag, and the sign-in on whose page they did, if it was one."""

    tag: str
    where: str = ""

    @classmethod
    def read(cls, cookie: str) -> Pick:
        """Of a cookie's value, whatever it holds."""
        tag, _, where = cookie.partition(".")
        return cls(tag=tag, where=where)

    def written(self) -> str:
        """As a cookie's value."""
        return f"{self.tag}.{self.where}" if self.where else self.tag


def choose(
    offered: tuple[Language, ...], *, pick: Pick, where: str, ui_locales: Sequence[str], accept_language: str
) -> Language:
    """The language of a page; `where` is the sign-in that it belongs to, or empty.

    Source: OpenID Connect Core §3.1.2.1, DESIGN "Pages"
    """
    picked = lookup((pick.tag,), offered)
    if picked is not None and where and pick.where == where:
        return picked
    return lookup(ui_locales, offered) or picked or accepted(accept_language, offered) or ENGLISH
