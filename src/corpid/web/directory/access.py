"""Access of people: given, changed, taken away, copied, and from a table (D53, D54, D55, D60)."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from corpid.flows.directory import imports, members, role_assignment
from corpid.flows.directory.approvals import find_requested_removals
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.members import MemberFilter, UnknownMember, load_member
from corpid.flows.directory.notice_texts import REVIEW_PAGE
from corpid.flows.directory.role_assignment import EntityRole, UnknownRole
from corpid.flows.directory.write import Refused, needs_approval
from corpid.rules.directory import access_texts
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.approvals import MOST_CHANGES, kind_needs_approval
from corpid.rules.directory.nodes import DirectoryError, FileProblem
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import Assignment, Change, Service, ThirdPartyAssignment
from corpid.rules.directory.role_forms import RoleForm, form_of, row_of
from corpid.rules.directory.tables import ACCESS_COLUMNS, MOST_ACCESS_LINES, MOST_TYPED, PARAMETER
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.directory.member_texts import REFUSALS, access_refusal, rejected
from corpid.web.directory.page_context import PortalContext, PortalPage, names_shown, saved_or_requested
from corpid.web.directory.people import FIND, PEOPLE, PERSON, PERSON_CHOSEN, UPLOADED, choose_person, choose_role
from corpid.web.pages import role_fields
from corpid.web.pages.components import (
    Actions,
    Cell,
    Disclosure,
    Facts,
    Field,
    FieldError,
    Form,
    Heading,
    Items,
    Link,
    Page,
    Paragraph,
    Part,
    Radios,
    Value,
    View,
    table,
)
from corpid.web.pages.errors import refusal_of
from corpid.web.pages.responses import CsvFile
from corpid.web.sites import (
    Check,
    ConfirmationRequired,
    FormResult,
    InvalidForm,
    NotFound,
    Section,
    check_page,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date

    from starlette.responses import Response

    from corpid.flows.directory.imports import ImportPlan, ImportPlanLine, Verb
    from corpid.rules.directory.lists import ListTotal
    from corpid.rules.directory.memberships import Member

NEW: Final = "access/new"
CHANGE: Final = "access/change"
REMOVE: Final = "access/remove"
COPY: Final = "access/copy"
IMPORT: Final = "access/import"
_EMPTY_TABLE: Final = f"{IMPORT}/access.csv"
_OFFERED: Final = 50
"""people whose names are offered"""
_FITTING: Final = 12
"""people to choose from, if the words fit several"""
_HELD: Final = 12
"""roles that are listed before a form"""
_BOX: Final = "copy-"
_REMOVED: Final = "access-removed"
ALREADY_REQUESTED: Final = Paragraph(phrase("This removal is already requested."), look="warning")
FROM: Final = "from"
"""the parameter of a colleague, or of the page to return to"""
_MOST_COPIED: Final = 50
"""roles of one page: a form has at most a hundred fields"""
_GIVE: Final = phrase("Give access")
_WITH_TABLE: Final = phrase("Give access with a table")
_CHANGE: Final = phrase("Change access")
_DOES: Final[Mapping[Verb, Phrase]] = {
    "invite": phrase("Invite"),
    "give": phrase("Give"),
    "change": phrase("Change"),
    "nothing": phrase("No change"),
}
_COLUMNS_SAY: Final = (
    phrase("user_name says who. The other columns can be left out, and an empty cell changes nothing."),
    phrase("With name and e-mail address, a person who is not here yet is invited."),
    phrase(
        "Dates are written as 2026-12-31. Without a start_date access begins today, without an end_date it has no end."
    ),
    phrase("A parameter has a column of its own, such as parameter:Permit Year."),
)


# --- a person and a service


async def this_member(at: PortalContext, membership_id: str) -> Member:
    """A member of the entity. Raises NotFound."""
    try:
        return await load_member(at.registry, membership_id, actor=at.actor)
    except UnknownMember:
        raise NotFound from None


async def explain_refusal(at: PortalContext, found: Member, service: Service) -> Phrase | None:
    """Why the reader cannot change a person's access; None if they can (D53, D54)."""
    why = await role_assignment.explain_refusal(at.registry, at.actor, found, service)
    if not why:
        return None
    return access_refusal(why, found.name, at.entity)


def to_person(at: PortalContext, found: Member) -> Link:
    return at.link(f"{PERSON}/{found.membership.membership_id}", phrase("{name}", name=found.name))


def person_address(at: PortalContext, page: str, *, field: str = PERSON_CHOSEN, **kept: str) -> Callable[[Member], str]:
    """The addresses of a page with the chosen person in `field`."""
    return lambda found: at.path(page, **kept, **{field: found.membership.membership_id})


# --- giving


async def show_new(at: PortalContext) -> View:
    """The form that gives access, and its check once it is complete."""
    given = {**at.query, **at.form}
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    fitting, total = await _find_people(at, given)
    person = fitting[0] if len(fitting) == 1 else None
    page = at.build_page(
        _GIVE,
        up=to_person(at, person) if person else at.section_link(PEOPLE),
        names=names_shown(person) if person else "",
        action=at.path(NEW),
    )
    if not services:
        return replace(
            page,
            parts=_refuse(
                phrase("You do not administer any service that {entity} may use. Ask an owner.", entity=at.entity.name)
                if at.actor.level == "sub_administrator"
                else phrase("There is no service that {entity} may use.", entity=at.entity.name)
            ),
        )
    if person is not None and (why := await explain_refusal(at, person, services[0])) is not None:
        return replace(page, parts=_refuse(why))
    form, errors = _read_role(at, given, services)
    if errors is not None and not fitting:
        none = phrase("Nobody found. Check the spelling, or invite the person first.")
        who = none if given.get(FIND, "").strip() else phrase("Enter who gets access.")
        errors = ((FIND, who), *errors)
    if len(fitting) > 1:
        errors = ((PERSON_CHOSEN, _several(len(fitting), total)), *(errors or ()))
    if person is None or errors is None or errors:
        return await _ask(at, page, given, services, fitting, form, errors or ())
    return await _check(at, page, person, form)


def _read_role(
    at: PortalContext, given: Mapping[str, str], services: Sequence[Service]
) -> tuple[RoleForm, tuple[FieldError, ...] | None]:
    return role_fields.read_choice(given, services, at.context.day, phrase("Choose what the person may do."))


def _refuse(why: Phrase) -> tuple[Part, ...]:
    return (Paragraph(why, look="empty"),)


async def _find_people(at: PortalContext, given: Mapping[str, str]) -> tuple[tuple[Member, ...], ListTotal | None]:
    """The person who was chosen, or the first whom the words fit.

    And how many the words fit.
    """
    if given.get(PERSON_CHOSEN):
        return (await this_member(at, given[PERSON_CHOSEN]),), None
    find = given.get(FIND, "").strip()
    if not find:
        return (), None
    words = " ".join(find.replace("(", " ").replace(")", " ").split())  # of an offered name
    page = await members.list_members(at.registry, MemberFilter(search=words), actor=at.actor, after="", limit=_FITTING)
    found = tuple(each.member for each in page.found)
    exact = tuple(each for each in found if find.casefold() in {each.label.casefold(), each.identity.casefold()})
    return (exact if len(exact) == 1 else found), page.total


def _several(shown: int, total: ListTotal | None) -> Phrase:
    if total is None or total.count <= shown:
        return phrase("{count} people match. Choose one, or enter more of the name.", count=shown)
    numbers = {"count": total.count, "shown": shown}
    if not total.exact:
        return phrase(
            "More than {count} people match. Choose one of the first {shown}, or enter more of the name.", **numbers
        )
    return phrase("{count} people match. Choose one of the first {shown}, or enter more of the name.", **numbers)


async def _ask(
    at: PortalContext,
    page: Page,
    given: Mapping[str, str],
    services: Sequence[Service],
    fitting: tuple[Member, ...],
    form: RoleForm,
    errors: tuple[FieldError, ...],
    links: tuple[Link, ...] = (),
) -> Page:
    """The form, with what the person has already."""
    person = fitting[0] if len(fitting) == 1 else None
    same = {"person": person.membership.membership_id} if person else {}
    who: tuple[Part, ...] = ()
    another = at.path(NEW)
    asked, find = phrase("Who gets access?"), given.get(FIND, "").strip()
    if person is None:
        offered: Sequence[Member] = fitting
        if not fitting:
            first = await members.list_members(at.registry, MemberFilter(), actor=at.actor, after="", limit=_OFFERED)
            offered = [each.member for each in first.found]
        names = tuple(each.label for each in offered)
        hint = phrase("Name, user name or e-mail address")
        who = (Field(name=FIND, label=asked, hint=hint, kind="find", value=find, offered=names),)
    if len(fitting) > 1:
        options = tuple((each.membership.membership_id, each.name, each.email) for each in fitting)
        who += (Radios(name=PERSON_CHOSEN, legend=phrase("People who match"), options=options),)
    further = [at.link(IMPORT, phrase("Give access to several people at once"))]
    if person is not None:
        copying = phrase("Copy a colleague's access instead")
        further.append(at.link(COPY, copying, **same))
    return replace(
        page,
        errors=errors or at.errors,
        parts=(
            Facts(((phrase("Person"), Cell(values=(person.name, _another(another, phrase("Person"))))),))
            if person
            else None,
            *(already_given(await _held(at, person)) if person else ()),
            Form(
                get=True,
                parts=(*who, *await choose_role(at, services, form, phrase("What may the person do?"))),
                hidden=tuple(same.items()),
                button=phrase("Continue"),
            ),
            Actions(links or tuple(further)),
        ),
    )


def _another(url: str, what: Phrase) -> Link:
    return Link(url=url, text=phrase("Choose another"), about=what)


async def _held(at: PortalContext, person: Member) -> tuple[Value, ...]:
    """The present roles of a person."""
    found = await role_assignment.list_roles(at.registry, at.actor, person)
    held = [
        held_line(person.name, each.row, each.service, at.entity.name, at.context.day)
        for each in found.found
        if each.row.end_date >= at.context.today
    ]
    more = (phrase("There is more: the person's page lists everything."),) if len(held) > _HELD else ()
    return (*held[:_HELD], *more)


def already_given(held: Sequence[Value]) -> tuple[Part, ...]:
    """The roles that somebody has, each as its line."""
    return (Heading(phrase("Already given")), Items(tuple(held))) if held else ()


def held_line(name: str, row: Assignment | ThirdPartyAssignment, service: Service, entity: str, today: date) -> Cell:
    """A role that somebody has, as its line in a list."""
    sentence = access_texts.sentence(name, row, service, entity, today)
    return Cell(values=(sentence,), notes=access_texts.details(row))


async def _check(at: PortalContext, page: Page, person: Member, form: RoleForm) -> Page:
    """The access in a sentence, to be confirmed.

    The form again if it cannot be given.
    """
    given, service = {**at.query, **at.form}, form.service
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    row = row_of(form, user_id=person.user.user_id, entity_id=at.entity.entity_id, today=at.context.day)
    was = await at.registry.directory.find(Assignment, *row.key)
    if was is not None and was.end_date >= at.context.today:
        there = Link(url=f"{at.path(CHANGE)}/{object_id(was.key)}", text=phrase("Change this access"))
        errors = ((role_fields.ACCESS, _already(person)),)
        return await _ask(at, page, given, services, (person,), form, errors, (there,))
    try:
        needs = await needs_approval(at.registry, at.actor, [Change(was, row)])
    except Refused as error:
        return await _ask(at, page, given, services, (person,), form, (("", refusal_of(error)),))
    kept = (
        ("person", person.membership.membership_id),
        *role_fields.to_hidden_fields(form, at.context.day, chosen=True),
    )
    return replace(
        page,
        notes=(*at.notes, *explain_no_effect(person)),
        parts=(
            *_confirm(
                at, person, row, service, needs=needs, button=_GIVE, kept=kept,
                again=at.path(NEW, **dict(kept)),
            ),
            *already_given(await _held(at, person)),
        ),
    )  # fmt: skip


def _confirm(
    at: PortalContext,
    person: Member,
    row: Assignment,
    service: Service,
    *,
    needs: bool,
    button: Phrase,
    kept: tuple[tuple[str, str], ...],
    again: str,
) -> tuple[Part, ...]:
    """A role in a sentence, and the form that confirms it."""
    back, asked = Link(url=again, text=phrase("Change something")), (role_fields.CHECK, role_fields.EVERYTHING)
    return (
        *_as_it_is(at, person, row, service),
        Form(hidden=(*kept, asked), needs_approval=needs, button=button, back=back),
    )


def _already(person: Member) -> Phrase:
    return phrase("{name} already has this role. Change it instead.", name=person.name)


def explain_no_effect(person: Member) -> tuple[Phrase, ...]:
    """Why access has no effect yet, if it has none."""
    if person.membership.invited:
        return (phrase("It has no effect until {name} accepts the invitation.", name=person.name),)
    if not person.membership.enabled:
        return (phrase("It has no effect while {name} is suspended.", name=person.name),)
    return ()


async def give_access(at: PortalContext) -> FormResult:
    """Give the access that was confirmed. Raises InvalidInput, NotFound."""
    person = await this_member(at, at.form.get("person", ""))
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    typed, errors = _read_role(at, at.form, services)
    if errors is None or errors:
        raise InvalidForm(*(errors or ()))
    row = row_of(typed, user_id=person.user.user_id, entity_id=at.entity.entity_id, today=at.context.day)
    was = await at.registry.directory.find(Assignment, *row.key)
    if was is not None and was.end_date >= at.context.today:
        raise InvalidInput(_already(person), field=role_fields.ACCESS)
    return await submit_roles(at, person, [Change(was, row)], "access-given")


async def submit_roles(
    at: PortalContext, person: Member, changes: Sequence[Change], done: str, *, shown: Sequence[Member] = (),
    approval_needed: bool = False,
) -> FormResult:  # fmt: skip
    """Write changes of a person's roles or request them.

    Says which, on the person's page. `shown` are further people whom the form showed; `approval_needed`
    is as in `request_details`. Raises InvalidInput, also if it was shown for somebody else. Source: D68
    """
    at.check_names(names_shown(person, *shown))
    saved = FormResult(done, f"{PERSON}/{person.membership.membership_id}")
    return await at.submit_changes(changes, saved, of=person.membership, approval_needed=approval_needed)


# --- changing a role, or taking it away


async def _this_role(at: PortalContext) -> EntityRole:
    identifier = at.page.rpartition("/")[2]
    try:
        return await role_assignment.load_role(at.registry, at.actor, identifier)
    except UnknownRole:
        raise NotFound from None


def _as_it_is(
    at: PortalContext, person: Member, row: Assignment, service: Service, look: Literal["", "summary"] = "summary"
) -> tuple[Part, ...]:
    sentence = access_texts.sentence(person.name, row, service, at.entity.name, at.context.day)
    return Paragraph(sentence, look=look), Items(access_texts.details(row))


async def show_change(at: PortalContext) -> View:
    """The form that changes a role, then its check."""
    given = {**at.query, **at.form}
    role = await _this_role(at)
    person = role.member
    up, notes = to_person(at, person), (*at.notes, *explain_no_effect(person))
    page = at.build_page(_CHANGE, up=up, names=names_shown(person), step_name=version_of(role.row), notes=notes)
    was = _as_it_is(at, person, role.row, role.service)
    why = await explain_refusal(at, person, role.service)
    if why is not None:
        return replace(page, parts=(*was, *_refuse(why)))
    as_it_is, is_complete = form_of(role.row, role.service), given.get(role_fields.CHECK) == role_fields.EVERYTHING
    # Of a complete form, what was emptied is not sent.
    form = role_fields.read(given, role.service, otherwise=None if is_complete else as_it_is)
    wrong = role_fields.find_errors(form, at.context.day) if is_complete else ()

    async def ask(errors: tuple[FieldError, ...]) -> View:
        remove = Link(url=f"{at.path(REMOVE)}/{role.id}", text=phrase("Remove this access"))
        used = await role_assignment.list_values_in_use(at.registry, at.actor, role.service, today=at.context.today)
        always = as_it_is.start != form.start
        fields = role_fields.build_fields(form, at.context.day, always=always, used=used)
        asked = Form(
            get=True,
            parts=fields,
            hidden=((role_fields.CHECK, role_fields.EVERYTHING),),
            button=phrase("Continue"),
        )
        return replace(page, errors=errors, parts=(*was, asked, Actions((remove,))))

    if not is_complete or wrong:
        return await ask(at.errors or wrong)
    becomes = _becomes(at, role, form)
    try:
        needs = await needs_approval(at.registry, at.actor, await _changes(at, role, becomes))
    except InvalidInput as rejected:
        return await ask(((rejected.field, rejected.sentence),))
    except Refused as error:
        return await ask((("", refusal_of(error)),))
    kept = role_fields.to_hidden_fields(form, at.context.day)
    return replace(
        page,
        parts=(
            Heading(phrase("Until now")),
            *_as_it_is(at, person, role.row, role.service, ""),
            Heading(phrase("From now on")),
            *_confirm(
                at, person, becomes, role.service, needs=needs, button=_CHANGE,
                kept=kept, again=at.path(at.page, **dict(kept)),
            ),
        ),
    )  # fmt: skip


def _becomes(at: PortalContext, role: EntityRole, form: RoleForm) -> Assignment:
    row = role.row
    return row_of(form, user_id=row.user_id, entity_id=row.entity_id, today=at.context.day, ref=row.ref, was=row)


async def _changes(at: PortalContext, role: EntityRole, becomes: Assignment) -> list[Change]:
    """The changes that make a role what was typed."""
    found = role_assignment.plan_replacement(role.row, becomes)
    if not found:
        raise InvalidInput(phrase("Nothing would change. Change something, or go back."))
    another = await at.registry.directory.find(Assignment, *becomes.key)
    if another is not None and another.key != role.row.key:
        raise InvalidInput(phrase("This person already has that role."), field="role")
    return found


async def change_access(at: PortalContext) -> FormResult:
    """Change the role as it was confirmed. Raises InvalidInput, NotFound."""
    role = await _this_role(at)
    person = role.member
    form = role_fields.read(at.form, role.service)
    if errors := role_fields.find_errors(form, at.context.day):
        raise InvalidForm(*errors)
    at.check_step(version_of(role.row))
    changes = await _changes(at, role, _becomes(at, role, form))
    return await submit_roles(at, person, changes, "access-changed")


async def ask_removal(at: PortalContext) -> Check:
    """The check before a role is removed."""
    role = await _this_role(at)
    person, up = role.member, to_person(at, role.member)
    came = {**at.query, **at.form}.get(FROM, "")
    review = came if came.partition("?")[0] == REVIEW_PAGE else ""
    removed = await find_requested_removals(at.registry, at.actor, now=at.context.now)

    async def remove() -> FormResult:
        done = await submit_roles(at, person, [Change(role.row, None)], _REMOVED)
        return done._replace(page=review) if review else done

    return Check(
        heading=phrase("Remove this access?"),
        parts=(
            *_as_it_is(at, person, role.row, role.service),
            phrase(
                "{name} will no longer be able to do this. Other access of {name} stays as it is.", name=person.name
            ),
            ALREADY_REQUESTED if role.row in removed else None,
        ),
        # A form that is sent is refused by the change itself.
        refused=None if at.form else await explain_refusal(at, person, role.service),
        hidden=((FROM, review),) if review else (),
        button=phrase("Remove access"),
        danger=True,
        needs_approval=kind_needs_approval("assignment", at.entity, role.service),
        names=names_shown(person),
        step_name=version_of(role.row),
        up=Link(url=at.path(review), text=phrase("Access review")) if review else up,
        change=remove,
    )


# --- copying from a colleague


class _Copies(NamedTuple):
    more: bool
    """whether the colleague has more roles than were looked at"""
    found: list[tuple[Assignment, Service, Change]]
    held: list[tuple[Assignment, Service]]


async def show_copy(at: PortalContext) -> View:
    """The choice of a colleague, then of their roles. Raises NotFound."""
    given = {**at.query, **at.form}
    person = await this_member(at, given.get("person", ""))
    why = await _refuse_copy(at, person)
    if why is not None or not given.get(FROM):
        return await choose_person(
            at,
            COPY,
            person_address(at, COPY, field=FROM, person=given["person"]),
            up=to_person(at, person),
            heading=phrase("Copy access for {name}", name=person.name),
            asked=phrase("Whose access?"),
            kept=(("person", given["person"]),),
            refused=why,
        )
    colleague = await this_member(at, given[FROM])
    copies = await _copies(at, person, colleague)
    name, up = person.name, to_person(at, person)
    another = at.path(COPY, person=given["person"])
    page = at.build_page(
        phrase("Copy a colleague's access"),
        up=up,
        names=names_shown(person, colleague),
        notes=(*at.notes, *explain_no_effect(person)),
    )
    parts: list[Part] = [Facts(((phrase("From"), Cell(values=(colleague.name, _another(another, phrase("From"))))),))]
    if copies.found:
        needs = await _needs_approval(at, copies)
        boxes = (
            Field(
                name=box(row, at.context.today),
                kind="flag",
                label=access_texts.sentence(name, row, service, at.entity.name, at.context.day),
                hint=access_texts.joined(access_texts.details(row)),
                value=at.form.get(box(row, at.context.today), ""),
            )
            for row, service, _ in copies.found[:_MOST_COPIED]
        )
        more = (
            phrase("This person has more roles than are listed here. Give the others one by one.")
            if copies.more
            else phrase("There is more. Copy these first, then open this page again.")
            if len(copies.found) > _MOST_COPIED
            else None
        )
        parts.append(
            Form(
                needs_approval=needs,
                button=_GIVE,
                parts=(
                    Heading(phrase("What do you want to give?")),
                    *boxes,
                    Paragraph(more, look="hint") if more else None,
                ),
                hidden=(("person", given["person"]), (FROM, given[FROM])),
            )
        )
    else:
        none = phrase("{name} has no access that you can copy here.", name=colleague.name)
        parts.append(Paragraph(none, look="empty"))
    held = [held_line(name, *each, at.entity.name, at.context.day) for each in copies.held[:_MOST_COPIED]]
    return replace(page, parts=(*parts, *already_given(held)))


async def _refuse_copy(at: PortalContext, person: Member) -> Phrase | None:
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    if not services:
        return phrase("You cannot give access at any service.")
    return await explain_refusal(at, person, services[0])


async def _copies(at: PortalContext, person: Member, colleague: Member) -> _Copies:
    """The roles that the person would get, and those that they have."""
    known = {each.service_id for each in await role_assignment.list_services(at.registry, at.actor, at.entity)}
    found, held = list[tuple["Assignment", "Service", "Change"]](), list[tuple["Assignment", "Service"]]()
    held_by_colleague = await role_assignment.list_roles(at.registry, at.actor, colleague)
    for role in held_by_colleague.found:
        row = role_assignment.copy_role(role.row, role.service, user_id=person.user.user_id, today=at.context.today)
        if row is None or row.service_id not in known:
            continue
        was = await at.registry.directory.find(Assignment, *row.key)
        if was is not None and was.end_date >= at.context.today:
            held.append((was, role.service))
        else:
            found.append((row, role.service, Change(was, row)))
    return _Copies(bool(held_by_colleague.after), found, held)


async def _needs_approval(at: PortalContext, copies: _Copies) -> bool:
    """Return whether giving what is offered needs approval. Source: D55"""
    return await needs_approval(at.registry, at.actor, [change for _, _, change in copies.found[:_MOST_COPIED]])


def box(row: Assignment, today: str) -> str:
    """The name of a role's box.

    Another one if anything else is copied; one that has begun begins today.
    """
    copied = msgspec.structs.replace(row, user_id="", start_date=row.start_date if row.start_date > today else "")
    return _BOX + sha256(msgspec.json.encode(copied)).hexdigest()[:12]


async def copy_access(at: PortalContext) -> FormResult:
    """Give the roles that were ticked. Raises InvalidInput, NotFound."""
    person = await this_member(at, at.form.get("person", ""))
    colleague = await this_member(at, at.form.get(FROM, ""))
    why = await _refuse_copy(at, person)
    if why is not None:
        raise InvalidInput(why)
    copies = await _copies(at, person, colleague)
    chosen = [change for row, _, change in copies.found if box(row, at.context.today) in at.form]
    if not chosen:
        raise InvalidInput(
            phrase("Choose what to copy."), field=box(copies.found[0][0], at.context.today) if copies.found else ""
        )
    needed = await _needs_approval(at, copies)
    return await submit_roles(at, person, chosen, "access-given", shown=[colleague], approval_needed=needed)


# --- from a table


async def show_import(at: PortalContext) -> View:
    """The form for a table."""
    return _ask_table(at)


def _ask_table(at: PortalContext, problems: Sequence[FileProblem] = (), errors: tuple[FieldError, ...] = ()) -> Page:
    """The form for a table, below what is wrong with it."""
    how = phrase(
        "Copy the cells from your spreadsheet, with the names of the columns, and paste them here, or choose a file: "
        "at most {most} lines. You see what happens before anything changes.",
        most=MOST_ACCESS_LINES,
    )
    lines = Field(
        name="table",
        label=phrase("Table"),
        hint=phrase("Columns are separated by tabs, commas or semicolons."),
        kind="lines",
        value=at.form.get("table", ""),
    )
    return at.build_page(
        _WITH_TABLE,
        table(
            phrase("What to correct"),
            (phrase("Line"), phrase("Problem")),
            ((each.line, each.reason) for each in problems),
        ),
        Paragraph(text=how),
        Form(
            parts=(lines, UPLOADED),
            upload=True,
            decision="check",
            button=phrase("Continue"),
        ),
        Disclosure(
            summary=phrase("Which columns there are"),
            parts=(
                Paragraph(text=", ".join((*ACCESS_COLUMNS, f"{PARAMETER}…"))),
                Items(items=_COLUMNS_SAY),
                Paragraph(
                    text=Link(
                        url=at.path(_EMPTY_TABLE),
                        text=phrase("Download an empty table with these columns"),
                    )
                ),
            ),
        ),
        errors=errors,
    )


async def download_empty_table(at: PortalContext) -> Response:
    """The names of the columns as CSV, parameters of the services included."""
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    parameters = dict.fromkeys(f"{PARAMETER}{each.name}" for service in services for each in service.parameters)
    file = CsvFile()
    file.write((*ACCESS_COLUMNS, *parameters))
    return file.response("access")


def _import_line(at: PortalContext, planned: ImportPlanLine) -> tuple[Value, ...]:
    name, entity = planned.person.name, at.entity.name
    details: tuple[Phrase, ...] = ()
    sentence = phrase("{name} belongs to {entity}.", name=name, entity=entity)
    if planned.row is not None and planned.service is not None:
        sentence = access_texts.sentence(name, planned.row, planned.service, entity, at.context.day)
        details = access_texts.details(planned.row)
    elif planned.verb == "invite":
        email = planned.person.email
        sentence = phrase("{name} gets an invitation for {entity}.", name=name, entity=entity)
        details = (phrase("{email}", email=email),) if email else (phrase("No e-mail address: no e-mail is sent"),)
    return planned.line, _DOES[planned.verb], Cell(values=(sentence,), notes=details)


async def ask_import(at: PortalContext) -> Check | Page:
    """The check of the form's table, or its mistakes. Raises InvalidInput."""
    if at.form.get("decision") == "edit":
        return _ask_table(at)
    try:
        plan = await _plan_import(at)
    except DirectoryError as error:
        wrong = counted(
            len(error.problems),
            "{count} problem in the table. Nothing has been changed.",
            "{count} problems in the table. Nothing has been changed.",
        )
        return _ask_table(at, error.problems, (("table", wrong),))
    number = len(plan.changes)
    changes = counted(number, "This makes {count} change.", "This makes {count} changes.")
    edit = ("edit", phrase("Change something"))

    async def submit() -> FormResult:
        if not number:
            raise ConfirmationRequired
        writing = imports.submit_import(
            at.registry,
            InvitationLimit.for_request(at.context),
            at.actor,
            plan,
            at.request_details(),
        )
        try:
            return saved_or_requested(await writing, FormResult("access-imported", PEOPLE))
        except REFUSALS as error:
            raise rejected(error, entity=at.entity) from None

    return Check(
        heading=_WITH_TABLE,
        parts=(
            Paragraph(text=changes if number else phrase("Nothing would change."), look="summary"),
            table(
                phrase("What each line does"),
                (phrase("Line"), phrase("What happens"), phrase("In a sentence")),
                (_import_line(at, each) for each in plan.lines),
            ),
        ),
        upload=True,
        hidden=(("table", at.form.get("table", "")),),
        decision="confirm" if number else edit[0],
        button=phrase("Confirm") if number else edit[1],
        other=edit if number else None,
        needs_approval=plan.needs_approval,
        names=plan.names,
        change=submit,
    )


async def _plan_import(at: PortalContext) -> ImportPlan:
    """The changes of the table. Raises DirectoryError with its problems, InvalidInput."""
    context, typed = at.context, at.form.get("table", "")
    if not typed.strip():
        raise InvalidInput(phrase("Paste a table, or choose a file."), field="table")
    if len(typed) > MOST_TYPED:
        raise InvalidInput(phrase("Enter at most {limit} characters.", limit=MOST_TYPED), field="table")
    try:
        plan = await imports.plan_import(
            at.registry, at.actor, at.entity, typed, now=context.now, today=context.day,
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


def _path(page: str) -> re.Pattern[str]:
    """The paths of a page about one role."""
    return re.compile(f"{page}/[A-Za-z0-9_-]{{1,1000}}")


_GIVING: Final = ("write", "assignment")
SECTION: Final = Section[PortalContext](
    name=PEOPLE,
    pages={
        NEW: PortalPage(view=show_new, submit=give_access, fresh=True, needs=_GIVING),
        COPY: PortalPage(view=show_copy, submit=copy_access, fresh=True, needs=_GIVING),
        _EMPTY_TABLE: PortalPage(view=download_empty_table, needs=_GIVING),
        IMPORT: check_page(ask_import, form=show_import, upload="table", needs=_GIVING),
    },
    named_pages={
        _path(CHANGE): PortalPage(view=show_change, submit=change_access, fresh=True, needs=_GIVING),
        _path(REMOVE): check_page(ask_removal, needs=("delete", "assignment")),
    },
    fields=role_fields.FIELDS | {"person", "reason", FROM, "table", "decision"},
    filters=role_fields.FIELDS | {"person", FIND, FROM},
    prefixes=(role_fields.PARAMETER, _BOX),
    changes={
        "access-given": phrase("The access has been given."),
        "access-changed": phrase("The access has been changed."),
        _REMOVED: phrase("The access has been removed."),
        "access-imported": phrase("The table has been applied."),
    },
)
