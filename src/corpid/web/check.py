"""The check before a change: what will happen, and its form (D55, D68)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory.person_names import digest_names
from corpid.web.pages.components import Actions, Form, Page, Paragraph, Part
from corpid.web.pages.layout import FieldError, Link, ViewPart
from corpid.web.sites import CHANGED_MEANWHILE, CONFIRMED, At, ConfirmationRequired, FormResult, PageContext, SitePage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.directory.access import Action, ObjectKind
    from corpid.texts import Phrase
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
    hidden: tuple[tuple[str, str], ...] = ()
    """what the form sends again, such as the rows that were selected"""
    at_once: bool = False
    """whether the form that leads here needs no check"""
    upload: bool = False
    """whether it may have a file, and what is long"""
    button: Phrase
    decision: str = ""
    """what the button sends as `decision`"""
    other: tuple[str, Phrase] | None = None
    """a second button that changes nothing: its `decision`, and its text"""
    below: tuple[Part, ...] = ()
    """long lists, which stand below the form"""
    danger: bool = False
    """whether it takes something away"""
    reason: Phrase | None = None
    """the hint of the field for a reason; None: that of the site, if it asks for one"""
    needs_approval: bool = False
    refused: Phrase | None = None
    """why it cannot be made, in place of the form"""
    names: str | None = ""
    """the digest of the people whom it is about; None: of all that it says"""
    step_name: str = ""
    """names the state that is shown (`version_of`)"""
    outdated: Phrase = CHANGED_MEANWHILE
    """refuses a form that was shown for another state"""
    up: Link | None = None
    back: Link | None = None
    """leads away without a change; None: to `up`"""
    action: str = ""
    """its address, with what is to stay in it; empty: that of the page"""
    errors: tuple[FieldError, ...] = ()
    """before anything is sent"""
    change: Callable[[], Awaitable[object]]
    """makes the change; its FormResult, if it returns one, is that of the form"""
    done: FormResult = FormResult("", "")

    @property
    def digest(self) -> str:
        """The digest of whom or what its form was shown for."""
        return digest_names((self.heading, self.parts)) if self.names is None else self.names

    def show(self, *further: Part, reason: Phrase | None = None) -> tuple[Part, ...]:
        """The parts of its page: what is said, then the form.

        Or why there is no form. `further` stands before it, `reason` is the hint of the site.
        """
        if self.refused:
            back = self.back or self.up
            refused = Paragraph(self.refused, look="empty"), Actions((back,) if back else ())
            return *self.parts, *further, *refused, *self.below
        form = Form(
            parts=self.fields,
            hidden=(*self.hidden, (CONFIRMED, "yes")),
            upload=self.upload,
            button=self.button,
            decision=self.decision,
            other=self.other,
            danger=self.danger,
            reason=self.reason or reason,
            needs_approval=self.needs_approval,
            back=self.back,
        )
        return *self.parts, *further, form, *self.below

    async def build(self, at: PageContext[Any]) -> Page:
        """Its page."""
        further = await self.further() if self.further else ()
        return at.build_page(
            self.heading,
            *self.show(*further, reason=at.reason_hint),
            up=self.up,
            back=None if self.other else "",
            names=self.digest,
            step_name=self.step_name,
            errors=(*at.errors, *self.errors),
            action=self.action,
        )

    def is_confirmed(self, at: PageContext[Any]) -> bool:
        """Return whether its own form was sent, to change something."""
        decided_otherwise = self.other is not None and at.form.get("decision") == self.other[0]
        return self.at_once or (at.form.get(CONFIRMED) == "yes" and not decided_otherwise)


def check_page(
    ask: Callable[[At], Awaitable[Check | Page]],
    *,
    form: Callable[[At], Awaitable[View]] | None = None,
    needs: tuple[Action, ObjectKind] | None = None,
    leads_to: str = "",
    field: str = "",
    upload: str = "",
) -> SitePage[At]:
    """A page that asks before a change, and its form.

    `ask` returns a Page while something is to be entered first. `form` is the page before anything is sent, and shows
    what is wrong with it; without one `ask` is.
    """

    async def view(at: At) -> View:
        asked = await ask(at)
        if isinstance(asked, Page):
            return asked
        return await form(at) if asked.at_once and form is not None else await asked.build(at)

    async def submit(at: At) -> FormResult:
        asked = await ask(at)
        if isinstance(asked, Page) or not asked.is_confirmed(at):
            raise ConfirmationRequired
        try:
            if asked.step_name:
                at.check_step(asked.step_name, asked.outdated)
            if asked.digest:
                at.check_names(asked.digest)
            made = await asked.change()
        except InvalidInput as rejected:
            if form is None or asked.at_once:
                raise
            raise ConfirmationRequired((rejected.field, rejected.sentence)) from None
        return made if isinstance(made, FormResult) else asked.done

    return SitePage(
        view=form or view,
        check=view,
        submit=submit,
        fresh=True,
        needs=needs,
        leads_to=leads_to,
        field=field,
        upload=upload,
    )
