"""The question before a change: consequences, choices and reason (D54, D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from corpid.web.operations.page_context import console_path, frame
from corpid.web.operations.reasons import REASON
from corpid.web.pages.layout import FormView

if TYPE_CHECKING:
    from corpid.texts import Phrase
    from corpid.web.operations.page_context import ConsoleContext
    from corpid.web.pages.layout import FieldError, Link


class ConsoleConfirmation(FormView, frozen=True, kw_only=True):
    """A question with its consequences.

    Fields: decision (hidden), reason, choice if there are `choices`, and typed, if `to_type` is something to type.
    """

    template: ClassVar[str] = "console/confirm.html"

    heading: Phrase
    consequences: tuple[Phrase, ...]
    choices: tuple[tuple[str, Phrase, Phrase], ...] = ()
    """of the field `choice`: value, text and hint"""
    choices_legend: Phrase | None = None
    choice: str = ""
    button: Phrase
    back: str
    destroys: bool = False
    """whether it takes something away"""
    decision: str = "yes"
    to_type: str = ""
    """what the person has to type before"""
    typed: str = ""
    reason: str = ""
    notes: tuple[Phrase, ...] = ()


def question(
    at: ConsoleContext,
    section: str,
    up: Link,
    heading: Phrase,
    consequences: tuple[Phrase, ...],
    button: Phrase,
    *,
    destroys: bool = False,
    decision: str = "yes",
    to_type: str = "",
    choices: tuple[tuple[str, Phrase, Phrase], ...] = (),
    choices_legend: Phrase | None = None,
    errors: tuple[FieldError, ...] = (),
) -> ConsoleConfirmation:
    """The question of a page, with what was typed already.

    `up` leads back; `errors` are those that the page has before anything is sent.
    """
    return ConsoleConfirmation(
        frame=frame(at, section=section, up=up),
        action=console_path(at.web, at.page),
        heading=heading,
        consequences=consequences,
        choices=choices,
        choices_legend=choices_legend,
        choice=at.form.get("choice", ""),
        button=button,
        back=up.url,
        destroys=destroys,
        decision=decision,
        to_type=to_type,
        typed=at.form.get("typed", ""),
        reason=at.form.get(REASON, ""),
        notes=at.notes,
        errors=(*at.errors, *errors),
    )
