"""The demo's mail: nothing leaves the machine, and the last letters are shown on a page."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from corpid.web.catalogues import voice
from corpid.web.languages import ENGLISH, LANGUAGES, lookup

if TYPE_CHECKING:
    from corpid.ports import Letter

KEPT: Final = 50
"""letters"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtLetter:
    """A letter as its reader gets it, in their language; `language` is its tag (BCP 47)."""

    to: str
    subject: str
    text: str
    language: str


@dataclass(slots=True)
class CaughtMail:
    """A ports.Mail that keeps the newest letters, the newest first, until the demo stops."""

    letters: deque[CaughtLetter] = field(default_factory=lambda: deque(maxlen=KEPT))
    works: bool = True

    def post(self, letter: Letter) -> None:
        """See ports.Mail."""
        reads = voice(lookup((letter.language,), LANGUAGES) or ENGLISH)
        self.letters.appendleft(
            CaughtLetter(
                to=letter.to,
                subject=reads.say(letter.subject),
                text=reads.say(letter.text),
                language=reads.language.tag,
            )
        )
