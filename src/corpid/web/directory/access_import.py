"""The page that takes a table of people and roles (D55, D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import import_access
from corpid.flows.directory.invitations import InvitationLimit
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.approvals import MOST_CHANGES
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.tables import ACCESS_COLUMNS, MOST_ACCESS_LINES, PARAMETER
from corpid.texts import counted, phrase
from corpid.web.directory.access import IMPORT
from corpid.web.directory.access_views import ImportAccess, ImportedLine
from corpid.web.directory.member_texts import REFUSALS, rejected
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.writing import NAMES_CHANGED, reason, saved_or_requested
from corpid.web.pages import access_texts
from corpid.web.pages.layout import Link
from corpid.web.pages.refusals import refusal_of
from corpid.web.sites import ConfirmationRequired, FormResult, InvalidForm, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.import_access import ImportPlan, ImportPlanLine, Verb
    from corpid.texts import Phrase
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View

MOST_CHARACTERS: Final = 20_000
_PEOPLE: Final = "people"
_DOES: Final[Mapping[Verb, Phrase]] = {
    "invite": phrase("Invite"),
    "give": phrase("Give"),
    "change": phrase("Change"),
    "nothing": phrase("Stays"),
}


async def show(at: PortalContext) -> View:
    """The form for a table."""
    return _view(at, errors=at.errors)


def _view(
    at: PortalContext,
    *,
    plan: ImportPlan | None = None,
    problems: tuple[tuple[int, str], ...] = (),
    errors: tuple[FieldError, ...] = (),
) -> ImportAccess:
    return ImportAccess(
        frame=frame(
            at,
            section="people",
            up=Link(url=portal_path(at.web, _PEOPLE), text=phrase("People")),
            names=plan.names if plan else "",
        ),
        action=portal_path(at.web, IMPORT),
        table=at.form.get("table", ""),
        columns=(*ACCESS_COLUMNS, f"{PARAMETER}…"),
        most_lines=MOST_ACCESS_LINES,
        problems=problems,
        lines=tuple(_line(at, each) for each in plan.lines) if plan else (),
        changes=_number(len(plan.changes)) if plan else None,
        is_change=bool(plan and plan.changes),
        needs_approval=plan is not None and plan.needs_approval,
        reason=at.form.get("reason", ""),
        notes=at.notes,
        errors=errors,
        back=portal_path(at.web, _PEOPLE),
    )


def _number(changes: int) -> Phrase:
    if not changes:
        return phrase("Nothing would change.")
    return counted(changes, "This makes {count} change.", "This makes {count} changes.")


def _line(at: PortalContext, planned: ImportPlanLine) -> ImportedLine:
    name, entity = planned.person.name, at.entity.name
    details: tuple[Phrase, ...] = ()
    sentence = phrase("{name} belongs to {entity}.", name=name, entity=entity)
    if planned.row is not None and planned.service is not None:
        sentence = access_texts.sentence(name, planned.row, planned.service, entity, at.context.day)
        details = access_texts.details(planned.row)
    elif planned.verb == "invite":
        email = planned.person.membership.email
        sentence = phrase("{name} gets an invitation for {entity}.", name=name, entity=entity)
        details = (phrase("{email}", email=email),) if email else (phrase("No e-mail address: no e-mail is sent"),)
    return ImportedLine(number=planned.line, does=_DOES[planned.verb], sentence=sentence, details=details)


async def send(at: PortalContext) -> FormResult:
    """Do what a table says, once confirmed. Raises ConfirmationRequired, InvalidForm, InvalidInput."""
    decision = at.form.get("decision", "")
    if decision == "edit":
        raise InvalidForm
    try:
        plan = await _planned(at)
    except DirectoryError:
        raise ConfirmationRequired from None
    if decision != "confirm" or not plan.changes:
        raise ConfirmationRequired
    if at.form.get("names", "") != plan.names:
        raise ConfirmationRequired(("", NAMES_CHANGED))
    return await _submitted(at, plan)


async def preview(at: PortalContext) -> View:
    """The changes or the mistakes of the form's table. Raises InvalidInput."""
    try:
        plan = await _planned(at)
    except DirectoryError as error:
        problems = tuple((each.line, each.reason) for each in error.problems)
        wrong = counted(
            len(problems),
            "{count} problem in the table. Nothing changes.",
            "{count} problems in the table. Nothing changes.",
        )
        return _view(at, problems=problems, errors=(("table", wrong),))
    return _view(at, plan=plan, errors=at.errors)


async def _planned(at: PortalContext) -> ImportPlan:
    """The changes of the table. Raises DirectoryError with its problems, InvalidInput."""
    context, provider, table = at.context, at.context.provider, at.form.get("table", "")
    if not table.strip():
        raise InvalidInput(phrase("Paste a table."), field="table")
    if len(table) > MOST_CHARACTERS:
        raise InvalidInput(phrase("Enter at most {limit} characters.", limit=MOST_CHARACTERS), field="table")
    try:
        plan = await import_access.plan_import(
            provider.registry, at.actor, at.entity, table, now=context.now, today=context.day,
            new_id=at.web.new_user_id,
        )  # fmt: skip
    except Forbidden as error:
        raise InvalidInput(refusal_of(error), field="table") from None
    if plan.needs_approval and len(plan.changes) > MOST_CHANGES:
        raise InvalidInput(
            phrase(
                "This needs approval, and a request has at most {most} changes. Send fewer lines.", most=MOST_CHANGES
            ),
            field="table",
        )
    return plan


async def _submitted(at: PortalContext, plan: ImportPlan) -> FormResult:
    context, provider = at.context, at.context.provider
    limit = InvitationLimit(transient=provider.transient, issuer=provider.policy.deployment_url, counts=context.counts)
    try:
        request = await import_access.submit_import(
            provider.registry, limit, at.actor, plan, reason=reason(at), now=context.now, unique=provider.new_id()
        )
    except (InvalidInput, *REFUSALS) as error:
        why = error if isinstance(error, InvalidInput) else rejected(error, entity=at.entity)
        field = why.field if why.field == "reason" else ""
        raise ConfirmationRequired((field, why.sentence)) from None
    provider.registry_cache.drop()
    return saved_or_requested(request, FormResult("access-imported", _PEOPLE))


SECTION: Final = Section[PortalContext](
    pages={IMPORT: PortalPage(view=show, submit=send, check=preview, fresh=True, needs=("write", "assignment"))},
    fields=frozenset({"table", "decision", "reason"}),
    changes={"access-imported": phrase("The table has been taken over.")},
)
