"""The check before a change: its page says what will happen, its form makes it happen (D55, D68)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.web.pages.components import Actions, Form, Paragraph
from corpid.web.pages.layout import Link, ViewPart
from corpid.web.sites import At, ConfirmationRequired, FormResult, SitePage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.directory.access import Action, ObjectKind
    from corpid.texts import Phrase
    from corpid.web.pages.components import Page, Part
    from corpid.web.pages.layout import FieldError


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
    up: Link | None = None
    back: Link | None = None
    """leads away without a change; None: to `up`"""
    errors: tuple[FieldError, ...] = ()
    """before anything is sent"""
    change: Callable[[], Awaitable[object]]
    """makes the change; its FormResult, if it returns one, is that of the form"""
    done: FormResult = FormResult("", "")


def check_page(
    ask: Callable[[At], Awaitable[Check]], *, needs: tuple[Action, ObjectKind] | None = None, leads_to: str = ""
) -> SitePage[At]:
    """A page that asks before a change, and its form."""

    async def view(at: At) -> Page:
        asked = await ask(at)
        back = asked.back or asked.up
        form = Form(
            parts=asked.fields,
            hidden=asked.hidden,
            button=asked.button,
            danger=asked.danger,
            reason=asked.reason or at.reason_hint,
            needs_approval=asked.needs_approval,
            back=asked.back,
        )
        refused = Paragraph(asked.refused, look="empty"), Actions((back,) if back else ())
        return at.build_page(
            asked.heading,
            *asked.parts,
            *(await asked.further() if asked.further else ()),
            *(refused if asked.refused else (form,)),
            up=asked.up,
            names=asked.names,
            errors=(*at.errors, *asked.errors),
        )

    async def submit(at: At) -> FormResult:
        asked = await ask(at)
        if asked.selected and at.form.get("decision") != dict(asked.hidden)["decision"]:
            raise ConfirmationRequired
        if asked.names:
            at.check_names(asked.names)
        made = await asked.change()
        return made if isinstance(made, FormResult) else asked.done

    return SitePage(view=view, submit=submit, fresh=True, needs=needs, leads_to=leads_to)
