"""Words by which records are found (D83).

A record is found by the words of the fields that say so (`Field.searched`), in any order, each by its beginning. The
normal form is that of comparison (`names.fold_text`) without accents. In scripts that write no spaces between words a
person may begin anywhere, so each run of their letters is a word from each of its letters on.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from corpid.rules.directory.names import fold_text
from corpid.rules.fields import fields_of

LONGEST: Final = 40
"""characters of a word that count"""
MOST_SEARCHED: Final = 8
"""words of a search that count: the longest ones, which leave the fewest records"""
_ACCENTS: Final = dict.fromkeys(range(0x300, 0x370))
_WITHOUT_SPACES: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
"""scripts whose words follow each other without spaces"""
_FIRST_WITHOUT_SPACES: Final = chr(_WITHOUT_SPACES[0][0])


def encode_words(texts: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the words of some fields as JSON.

    Fields without any are left out. Source: D83
    """
    found = {name: sorted(_list_words(texts[name])) for name in names}
    return msgspec.json.encode({name: words for name, words in found.items() if words}).decode()


def words_of(record: msgspec.Struct) -> str:
    """Return the words of a record, by field. Source: D83"""
    return encode_words(msgspec.structs.asdict(record), searched_fields(type(record)))


def words_of_search(text: str) -> tuple[str, ...]:
    """Return the beginnings of words that a search asks for.

    One that another one begins with says nothing more. None, if the text has no letter and no digit. Source: D83
    """
    asked = {word for run, _ in _list_runs(text) for word in [run[:LONGEST]]}
    needed = [each for each in asked if not any(other != each and other.startswith(each) for other in asked)]
    return tuple(sorted(needed, key=lambda each: (-len(each), each))[:MOST_SEARCHED])


def has_words(text: str, asked: Sequence[str]) -> bool:
    """Return whether a text has all words of a search. Source: D83"""
    words = _list_words(text)
    return all(any(word.startswith(each) for word in words) for each in asked)


def find_reasons(asked: Sequence[str], shown: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that match words which the shown text lacks. Source: D83"""
    missing = [each for each in asked if not has_words(shown, (each,))]
    return tuple(text for text in others if any(has_words(text, (each,)) for each in missing))


@cache
def searched_fields(record: type[msgspec.Struct]) -> tuple[str, ...]:
    """The searched fields of a record; none of most kinds."""
    return tuple(name for name, field in fields_of(record).items() if field.searched)


def _list_words(text: str) -> set[str]:
    found = set()
    for run, spaced in _list_runs(text):
        starts = (0,) if spaced else (at for at, each in enumerate(run) if not _is_mark(each))
        found |= {run[start : start + LONGEST] for start in starts}
    return found


def _list_runs(text: str) -> Iterator[tuple[str, bool]]:
    """Runs of letters and digits, and whether their script writes spaces."""
    folded = unicodedata.normalize("NFD", fold_text(text)).translate(_ACCENTS)
    run, spaced = "", True
    for each in unicodedata.normalize("NFC", folded):
        of_word = each.isalnum() or (_is_mark(each) and run != "")
        own = spaced if _is_mark(each) else _writes_spaces(each)
        if run and (not of_word or own is not spaced):
            yield run, spaced
            run = ""
        if of_word:
            run, spaced = run + each, own
    if run:
        yield run, spaced


def _writes_spaces(character: str) -> bool:
    # Most names have none of these scripts, and each write of a record asks for each letter.
    if character < _FIRST_WITHOUT_SPACES:
        return True
    return not any(first <= ord(character) <= last for first, last in _WITHOUT_SPACES)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
