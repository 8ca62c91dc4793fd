"""The form of an organisation's facts, from the declared members (R-12.4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import entities as flow
from corpid.flows.directory.write import Refused
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.entity_choice import STATUSES
from corpid.rules.directory.sections import SECTIONS
from corpid.texts import phrase
from corpid.web.operations.entities import ONE, TYPES, entity_of, entity_page_path, entity_path
from corpid.web.operations.owners import facts_errors
from corpid.web.operations.page_context import ConsoleContext, ConsolePage, console_path, frame
from corpid.web.operations.reasons import REASON, acting
from corpid.web.operations.record_forms import is_current, step_of
from corpid.web.pages.access_texts import APPROVALS
from corpid.web.pages.layout import Field, FormView, Link
from corpid.web.pages.refusals import reason_of
from corpid.web.sites import NOTHING_DIFFERENT, EditConflict, FormResult, InvalidForm, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.texts import Phrase
    from corpid.web.pages.views import View

_MEMBERS: Final = ("name", *(key for key in SECTIONS["entities"].keys if key not in {"name", "enabled"}))
"""the name first, the others in the order of their declaration; an organisation is disabled on a page of its own"""
_LABELS: Final[Mapping[str, Phrase]] = {
    "name": phrase("Name"),
    "type": phrase("Kind of registration"),
    "registration_number": phrase("Registration number"),
    "country": phrase("Country"),
    "status": phrase("Status"),
    "approvals": phrase("Approvals"),
}
_CHOICES: Final[Mapping[str, tuple[tuple[str, Phrase], ...]]] = {
    "type": tuple(TYPES.items()),
    "status": tuple(STATUSES.items()),
    "approvals": tuple(APPROVALS.items()),
}
_CHANGED: Final = phrase(
    "Somebody else has changed this organisation meanwhile. Nothing of your change was saved: this is the organisation "
    "as it is now."
)


class EntityForm(FormView, frozen=True, kw_only=True):
    """The facts of an organisation. Fields: its members, reason."""

    template: ClassVar[str] = "console/edit_organisation.html"
    heading: ClassVar[Phrase] = phrase("Change the organisation")

    identifier: str
    fields: tuple[Field, ...]
    reason: str
    back: str
    notes: tuple[Phrase, ...] = ()


async def edit_page(at: ConsoleContext) -> View:
    """The form, with what was typed or what is stored."""
    entity = await entity_of(at)
    back, form = entity_path(at.web, entity.entity_id), at.form
    return EntityForm(
        frame=frame(
            at,
            section="entities",
            up=Link(url=back, text=phrase("Back")),
            step_name=step_of(at, entity),
        ),
        action=console_path(at.web, at.page),
        identifier=entity.entity_id,
        fields=tuple(
            Field(
                name=name,
                label=_LABELS.get(name, name),
                kind="words" if name in _CHOICES else "text",
                value=form.get(name, "") if form else getattr(entity, name),
                words=_CHOICES.get(name, ()),
            )
            for name in _MEMBERS
        ),
        reason=form.get(REASON, ""),
        back=back,
        notes=at.notes,
        errors=at.errors,
    )


async def edit(at: ConsoleContext) -> FormResult:
    """Change the facts. Raises InvalidInput, InvalidForm, EditConflict, NotFound, Forbidden."""
    entity, provider = await entity_of(at), at.context.provider
    if not is_current(at, entity):
        raise EditConflict(_CHANGED)
    typed = {name: at.form.get(name, "").strip() for name in _MEMBERS}
    errors = facts_errors(typed)
    if typed["approvals"] not in APPROVALS:
        errors.append(("approvals", phrase("Choose what needs approval.")))
    if errors:
        raise InvalidForm(*errors)
    members: dict[str, object] = {
        name: value if value != getattr(entity, name) else None for name, value in typed.items()
    }
    if all(value is None for value in members.values()):
        raise InvalidInput(NOTHING_DIFFERENT)
    actor = acting(at)
    try:
        await flow.update_entity(
            provider.registry, provider.passwords, entity.entity_id, members, actor=actor, was=entity
        )
    except Conflict:
        raise EditConflict(_CHANGED) from None
    except Refused as refused:
        raise InvalidInput(phrase("It was not changed: {reason}.", reason=reason_of(refused))) from None
    provider.registry_cache.drop()
    return FormResult("entity-edit", entity_page_path(entity.entity_id))


SECTION: Final = Section[ConsoleContext](
    named_pages={
        re.compile(rf"{ONE}/edit"): ConsolePage(view=edit_page, submit=edit, fresh=True, needs=("write", "entity"))
    },
    fields=frozenset({*_MEMBERS, REASON}),
    changes={"entity-edit": phrase("The organisation is changed.")},
)
