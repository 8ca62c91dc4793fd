"""The check before a change: what will happen, and its form (D55, D68)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.web.pages.components import Actions, Form, Paragraph
from corpid.web.pages.layout import Link, ViewPart
from corpid.web.sites import CHANGED_MEANWHILE, At, ConfirmationRequired, FormResult, SitePage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.directory.access import Action, ObjectKind
    from corpid.texts import Phrase
    from corpid.web.pages.components import Page, Part
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View


class Check(ViewPart, frozen=True, kw_only=True):
    """A change that a page asks about before it is made."""

    heading: Phrase
    parts: tuple[Part, ...]
    """what is changed, and what follows"""
    further: Callable[[], Awaitable[tuple[Part, ...]]] | None = None
    """reads parts that are only shown"""
    fields: tuple[Part, ...] = ()
    """of the form"""
    hidden: tuple[tuple[str, str], ...] = (("decision", "yes"),)
    selected: bool = False
    """whether the form of a list leads here, with the rows that it concerns: then `hidden` keeps them, and its decision"""
    button: Phrase
    danger: bool = False
    """whether it takes something away"""
    reason: Phrase | None = None
    """the hint of the field for a reason; None: that of the site, if it asks for one"""
    needs_approval: bool = False
    refused: Phrase | None = None
    """why it cannot be made, in place of the form"""
    names: str = ""
    """the digest of the people whom it is about"""
    step_name: str = ""
    """names the state that is shown (`version_of`)"""
    outdated: Phrase = CHANGED_MEANWHILE
    """refuses a form that was shown for another state"""
    up: Link | None = None
    back: Link | None = None
    """leads away without a change; None: to `up`"""
    errors: tuple[FieldError, ...] = ()
    """before anything is sent"""
    change: Callable[[], Awaitable[object]]
    """makes the change; its FormResult, if it returns one, is that of the form"""
    done: FormResult = FormResult("", "")

    def show(self, *further: Part, reason: Phrase | None = None) -> tuple[Part, ...]:
        """The parts of its page: what is said, then the form.

        Or why there is no form. `further` stands before it, `reason` is the hint of the site.
        """
        if self.refused:
            back = self.back or self.up
            return *self.parts, *further, Paragraph(self.refused, look="empty"), Actions((back,) if back else ())
        form = Form(
            parts=self.fields,
            hidden=self.hidden,
            button=self.button,
            danger=self.danger,
            reason=self.reason or reason,
            needs_approval=self.needs_approval,
            back=self.back,
        )
        return *self.parts, *further, form


def check_page(
    ask: Callable[[At], Awaitable[Check]],
    *,
    form: Callable[[At], Awaitable[View]] | None = None,
    needs: tuple[Action, ObjectKind] | None = None,
    leads_to: str = "",
) -> SitePage[At]:
    """A page that asks before a change, and its form.

    `form` is the view of a form that is filled in first: then `hidden` keeps what was typed, and its decision.
    """

    async def view(at: At) -> Page:
        asked = await ask(at)
        further = await asked.further() if asked.further else ()
        return at.build_page(
            asked.heading,
            *asked.show(*further, reason=at.reason_hint),
            up=asked.up,
            names=asked.names,
            step_name=asked.step_name,
            errors=(*at.errors, *asked.errors),
        )

    async def submit(at: At) -> FormResult:
        asked = await ask(at)
        if (asked.selected or form) and at.form.get("decision") != dict(asked.hidden)["decision"]:
            raise ConfirmationRequired
        try:
            if asked.names:
                at.check_names(asked.names)
            if asked.step_name:
                at.check_step(asked.step_name, asked.outdated)
            made = await asked.change()
        except InvalidInput as rejected:
            if form is None:
                raise
            raise ConfirmationRequired((rejected.field, rejected.sentence)) from None
        return made if isinstance(made, FormResult) else asked.done

    return SitePage(
        view=form or view, check=view if form else None, submit=submit, fresh=True, needs=needs, leads_to=leads_to
    )
