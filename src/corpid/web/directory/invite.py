"""Pages that invite people to an entity (D55, D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import member_changes, members
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.member_changes import MOST_INVITED
from corpid.rules.directory import tables
from corpid.rules.directory.member_details import InvalidDetails, MemberDetails, check_details
from corpid.texts import counted, phrase
from corpid.web.directory.member_texts import EACH_GETS, REFUSALS, belongs, rejected
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.people import INVITE, INVITED, PEOPLE
from corpid.web.directory.people_views import InvitationPreview, Invite, InviteSeveral
from corpid.web.directory.writing import reason, saved_or_requested
from corpid.web.pages.layout import Link
from corpid.web.sites import ConfirmationRequired, FormResult, InvalidForm, Section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.directory.tables import PastedPerson
    from corpid.texts import Phrase
    from corpid.web.pages.layout import FieldError, Frame
    from corpid.web.pages.views import View

SEVERAL: Final = f"{INVITE}/several"
_CONFIRMED: Final = "confirmed"
_LINES: Final = phrase(
    "One person a line, at most {most}: “Marcus Lee <marcus@example.com>”, “Marcus Lee, marcus@example.com” or only "
    "the address. You can paste lines from a mail program or a table.",
    most=MOST_INVITED,
)
_ERRORS: Final = 20
"""lines whose errors are listed; further ones are counted"""
_LINE: Final = 60


async def invite(at: PortalContext) -> View:
    """The form for one person."""
    return Invite(
        frame=_frame(at),
        action=portal_path(at.web, INVITE),
        note=EACH_GETS,
        mail_works=at.context.provider.mail.works,
        name=at.form.get("name", ""),
        email=at.form.get("email", ""),
        needs_approval=members.invitation_needs_approval(at.entity),
        reason=at.form.get("reason", ""),
        several=portal_path(at.web, SEVERAL),
        back=portal_path(at.web, PEOPLE),
        notes=at.notes,
        errors=at.errors,
    )


async def send(at: PortalContext) -> FormResult:
    """Invite one person. Raises InvalidForm, InvalidInput."""
    name, email = at.form.get("name", "").strip(), at.form.get("email", "").strip()
    errors: list[FieldError] = []
    if not name:
        errors.append(("name", phrase("Enter the name of the person.")))
    if not email:
        errors.append(("email", phrase("Enter an e-mail address such as name@example.com.")))
    try:
        details = check_details(MemberDetails(name=name, email=email), named=False)
    except InvalidDetails as error:
        errors += detail_errors(error)
    if errors:
        raise InvalidForm(*errors)
    if await member_changes.known_addresses(at.context.provider.registry, [details.email], actor=at.actor):
        raise InvalidInput(belongs(at.entity), field="email")
    return await _invited(at, [details])


def detail_errors(error: InvalidDetails) -> list[FieldError]:
    """The errors of names and addresses that cannot be stored."""
    return [(member, error.remedies.get(member) or _reason(member, sentence)) for member, sentence in error.faults]


def _reason(member: str, sentence: str) -> Phrase:
    if member == "name":
        return phrase("This name cannot be used. The reason: {reason}.", reason=sentence.rstrip("."))
    return phrase("Enter an e-mail address such as name@example.com.")


async def several(at: PortalContext) -> View:
    """The form for several people."""
    return InviteSeveral(
        frame=_frame(at),
        action=portal_path(at.web, SEVERAL),
        note=EACH_GETS,
        mail_works=at.context.provider.mail.works,
        hint=_LINES,
        people=at.form.get("people", ""),
        needs_approval=members.invitation_needs_approval(at.entity),
        one=portal_path(at.web, INVITE),
        back=portal_path(at.web, PEOPLE),
        notes=at.notes,
        errors=at.errors,
    )


async def _entered(at: PortalContext) -> list[MemberDetails]:
    """The people of the form."""
    people = tables.read_pasted_people(at.form.get("people", ""))
    if not people:
        raise InvalidInput(phrase("Enter one person a line."), field="people")
    if len(people) > MOST_INVITED:
        raise InvalidInput(
            phrase("These are {count} people. Invite at most {most} at once.", count=len(people), most=MOST_INVITED),
            field="people",
        )
    found = [each.details for each in people if each.details is not None]
    addresses = [each.email for each in found]
    known = await member_changes.known_addresses(at.context.provider.registry, addresses, actor=at.actor)
    errors = [sentence for each in people if (sentence := _fault(at, each, known)) is not None]
    if errors:
        shown: list[FieldError] = [("people", each) for each in errors[:_ERRORS]]
        if len(errors) > _ERRORS:
            rest = len(errors) - _ERRORS
            shown.append(("people", counted(rest, "{count} more line is wrong.", "{count} more lines are wrong.")))
        raise InvalidForm(*shown)
    return found


async def send_several(at: PortalContext) -> FormResult:
    """Invite the people of the form, once confirmed. Raises ConfirmationRequired, InvalidForm, InvalidInput."""
    found = await _entered(at)
    if at.form.get(_CONFIRMED) != "yes":
        raise ConfirmationRequired
    try:
        return await _invited(at, found)
    except InvalidInput as rejected:
        raise ConfirmationRequired((rejected.field, rejected.sentence)) from None


async def preview(at: PortalContext) -> View:
    """The people whom the form would invite. Raises InvalidForm, InvalidInput."""
    found = await _entered(at)
    needs_approval = members.invitation_needs_approval(at.entity)
    number = len(found)
    return InvitationPreview(
        frame=msgspec.structs.replace(
            _frame(at), up=Link(url=portal_path(at.web, SEVERAL), text=phrase("Invite several people"))
        ),
        heading=counted(number, "Invite {count} person?", "Invite {count} people?"),
        action=portal_path(at.web, SEVERAL),
        note=EACH_GETS,
        mail_works=at.context.provider.mail.works,
        found=tuple((each.name, each.email) for each in found),
        people=at.form.get("people", ""),
        button=phrase("Send for approval")
        if needs_approval
        else counted(number, "Send {count} invitation", "Send {count} invitations"),
        needs_approval=needs_approval,
        reason=at.form.get("reason", ""),
        errors=at.errors,
    )


def _fault(at: PortalContext, person: PastedPerson, known: frozenset[str]) -> Phrase | None:
    """The fault of a line in words; None without one."""
    line, text = person.line, person.text if len(person.text) <= _LINE else f"{person.text[:_LINE]}…"
    if person.details is not None:
        if person.details.email not in known:
            return None
        return phrase(
            "Line {line}: somebody with this address already belongs to {entity} or has been invited: {text}",
            line=line, entity=at.entity.name, text=text,
        )  # fmt: skip
    if person.fault == "repeated":
        return phrase("Line {line}: line {first} has this address already: {text}", line=line, first=person.first_line, text=text)  # fmt: skip
    if person.fault == "no address":
        return phrase("Line {line}: there is no e-mail address: {text}", line=line, text=text)
    if person.remedy is not None:
        return phrase("Line {line}: {remedy} {text}", line=line, remedy=person.remedy, text=text)
    if person.fault == "name":
        return phrase("Line {line}: this name cannot be used: {text}", line=line, text=text)
    return phrase("Line {line}: this is not an e-mail address such as name@example.com: {text}", line=line, text=text)


async def _invited(at: PortalContext, people: Sequence[MemberDetails]) -> FormResult:
    """Invite people, or request it."""
    context, provider = at.context, at.context.provider
    try:
        request = await member_changes.submit_invitations(
            provider.registry, invitation_limit(at), people, actor=at.actor,
            reason=reason(at), now=context.now, new_id=at.web.new_user_id,
        )  # fmt: skip
    except REFUSALS as error:
        raise rejected(error, entity=at.entity) from None
    return saved_or_requested(request, FormResult(INVITED, f"{PEOPLE}?{INVITED}={len(people)}"))


def invitation_limit(at: PortalContext) -> InvitationLimit:
    """The counters of invitations."""
    provider = at.context.provider
    return InvitationLimit(
        transient=provider.transient, issuer=provider.policy.deployment_url, counts=at.context.counts
    )


def _frame(at: PortalContext) -> Frame:
    return frame(at, section=PEOPLE, up=Link(url=portal_path(at.web, PEOPLE), text=phrase("People")))


SECTION: Final = Section[PortalContext](
    pages={
        INVITE: PortalPage(view=invite, submit=send, fresh=True, needs=("write", "invitation")),
        SEVERAL: PortalPage(
            view=several,
            submit=send_several,
            check=preview,
            fresh=True,
            field="people",
            needs=("write", "invitation"),
        ),
    },
    fields=frozenset({"name", "email", "people", "reason", _CONFIRMED}),
    changes={
        INVITED: phrase("The invitation has been sent."),
    },
)
