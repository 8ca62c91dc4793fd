"""The question before something is done that cannot be overlooked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from corpid.web.pages.layout import FormView

if TYPE_CHECKING:
    from corpid.texts import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm(FormView):
    """A question with its consequences.

    Fields: decision (hidden), and typed, if `to_type` is something to type. Error id: typed.
    """

    template: ClassVar[str] = "console/confirm.html"

    heading: Phrase
    consequences: tuple[Phrase, ...]
    button: Phrase
    back: str
    destroys: bool = False
    """whether it takes something away"""
    decision: str = "yes"
    to_type: str = ""
    """what the person has to type before"""
    notes: tuple[Phrase, ...] = ()
