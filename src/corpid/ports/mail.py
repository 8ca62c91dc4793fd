"""Letters to people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from corpid.texts import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A plain-text mail to one person, which is said in their language."""

    to: str
    subject: Phrase
    text: Phrase
    language: str = "en"
    """a tag (BCP 47)"""


class Mail(Protocol):
    """Sends letters in the background: nobody who waits for a page learns whether one was sent."""

    @property
    def works(self) -> bool:
        """Whether this deployment sends mail at all."""

    def post(self, letter: Letter) -> None:
        """Take a letter along; a full bag drops it, which the log says. Never waits, never raises."""
