"""One person of an entity: access, changes, help with signing in (D53, D54, D55, D60, D69)."""

from __future__ import annotations

import re
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
from msgspec import to_builtins

from corpid.flows.directory import approvals, invitations, member_help, members
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.members import ChangePreview, MemberAccess, UnknownMember
from corpid.flows.directory.write import Refused, RequestDetails, plan_endings
from corpid.flows.operations import history
from corpid.flows.operations.history import HistoryFilter
from corpid.rules.directory import access_texts
from corpid.rules.directory.access import Condition, Forbidden
from corpid.rules.directory.access_texts import title_changes
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.memberships import PLAIN_DETAILS, InvalidDetails, Member, details_of, email_state
from corpid.rules.directory.names import fold_text
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangeRequest,
    MemberDetails,
    Membership,
    Service,
)
from corpid.rules.directory.roles import RoleRecords, reasons
from corpid.rules.limits import MINUTE, RESEND_SECONDS
from corpid.rules.networks import neighbourhood
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.directory.access import ALREADY_REQUESTED, CHANGE, NEW, REMOVE, this_member, to_person
from corpid.web.directory.history import HISTORY, show_last_changes
from corpid.web.directory.member_texts import (
    EACH_GETS,
    HELP_PAGES,
    REFUSALS,
    WHY_NO_HELP,
    HelpPage,
    administers,
    level_sentence,
    own_access,
    refusal_sentence,
    rejected,
    state_sentence,
)
from corpid.web.directory.page_context import PortalContext, PortalPage, names_shown, saved_or_requested
from corpid.web.directory.people import MEMBER, PEOPLE, PERSON, detail_errors
from corpid.web.directory.requests import REQUESTS
from corpid.web.pages import change_sentences
from corpid.web.pages.components import (
    Actions,
    Cell,
    Column,
    Facts,
    Form,
    Group,
    Heading,
    Items,
    Label,
    LetterHead,
    Link,
    Paragraph,
    Part,
    Table,
    Value,
    View,
    ViewPart,
    last_day,
    pager_of,
    state_label,
    table,
)
from corpid.web.pages.record_forms import RecordForm, advise, form_of
from corpid.web.sites import (
    CHANGED_MEANWHILE,
    NAMES_CHANGED,
    Check,
    FormResult,
    InvalidForm,
    NotFound,
    Section,
    await_found,
    check_page,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from corpid.rules.audit import AuditEntry

_PLAIN: Final = form_of(MemberDetails, *PLAIN_DETAILS)
_DETAILS: Final = RecordForm({**MEMBER.fields, **_PLAIN.fields})
_SHOWN: Final = 100
"""roles a page"""
_REQUESTS: Final = 20
_OF_ROLE: Final = (phrase("Role"), phrase("Service"), phrase("Part"), phrase("Until"))
_GRANTED: Final = (phrase("Given by"), phrase("Approved by"))
_LISTED: Final = 20
"""roles of each kind that the page lists; further ones are counted"""
ACTIONS: Final[Mapping[str, Phrase]] = {
    "details": phrase("Change details"),
    "send-again": phrase("Send the invitation again"),
    "restore": phrase("Restore"),
    "suspend": phrase("Suspend"),
    "revoke": phrase("Revoke the invitation"),
    "end": phrase("End the membership"),
}
"""the last parts of the addresses of actions"""


def membership_id_of(at: PortalContext) -> str:
    """The membership that the address names."""
    return at.page.split("/")[1]


async def show_person(at: PortalContext) -> View:
    """A person's access in sentences, with the possible changes."""
    actor, entity = at.actor, at.entity
    found = await this_member(at, membership_id_of(at))
    membership, name = found.membership, found.name
    held = await await_found(
        members.load_access(at.registry, membership, actor=actor, after=at.query.get("after", ""), limit=_SHOWN)
    )
    change = await members.preview_change(at.registry, membership, actor=actor, end=False)
    end = await members.preview_change(at.registry, membership, actor=actor, end=True)
    here, state = at.path(at.page), found.state
    links = {each: Link(url=f"{here}/{each}", text=text) for each, text in ACTIONS.items()}
    actions = ["send-again"] if members.may_send_again(membership, actor=actor) else []
    if not change.refusal and not membership.enabled:
        actions.append("restore")
    if not end.refusal and membership.enabled and not membership.invited:
        actions.append("suspend")
    refusal = change.refusal or end.refusal
    no_help = member_help.find_refusal(membership, held.administrator, actor=actor)
    may_give, no_access = members.may_give_access(membership, held.administrator, actor=actor), None
    if not may_give and found.user.user_id == actor.user_id:
        no_access = own_access(entity)
    elif not may_give and held.administrator is not None:
        no_access = administers(name, entity)
    seen = await _load_grants(at, held.roles.found)
    own = actor.level == "sub_administrator"
    heading = phrase("Access for {entity}", entity=entity.name)
    columns = (*_OF_ROLE, *(_GRANTED if seen is not None else ()))
    give = at.link(NEW, phrase("Give access"), person=membership.membership_id)
    return at.build_page(
        phrase("{name}", name=name),
        LetterHead(
            name=entity.name,
            number=phrase("{kind} {number}", kind=NUMBERS[entity.type], number=entity.registration_number),
            as_of=phrase("As of {day}", day=at.context.day),
        ),
        Facts(tuple(await _list_facts(at, found, held, edit="" if change.refusal else links["details"].url))),
        Table(
            caption=heading,
            heading=True,
            columns=tuple(map(Column, (*columns, *([phrase("Actions")] if may_give else [])))),
            rows=tuple(_row(at, role, state=state, seen=seen, changeable=may_give) for role in held.roles.found),
            empty=phrase("{name} has no access yet.", name=name),
            pager=pager_of(here, {}, came=bool(at.query.get("after")), after=held.roles.after),
        ),
        Paragraph(phrase("You see access at the services that you administer."), look="hint") if own else None,
        Paragraph(no_access, look="hint") if no_access else None,
        table(
            phrase("Access for other organisations"),
            (*_OF_ROLE, phrase("Organisation")),
            (
                (
                    *_row(at, role, state=state, seen=None, changeable=False),
                    at.name_of(role.client_entity or role.entity),
                )
                for role in held.for_others
            ),
            heading=True,
        ),
        await _show_requests(at, found),
        Group(
            look="beside",
            parts=(
                await _show_history(at, found),
                Group(
                    parts=(
                        _show_helps(found, here, None if own else no_help, helps=no_help is None),
                        Heading(phrase("Membership")) if refusal or actions or not end.refusal else None,
                        refusal_sentence(refusal, name, entity) if refusal and not own else None,
                        Actions(
                            tuple(links[each] for each in actions),
                            danger=None if end.refusal else links["revoke" if membership.invited else "end"],
                        ),
                        Paragraph(phrase("Print this page for a letter that lists this person's access."), look="hint"),
                    )
                ),
            ),
        ),
        main_action=give if may_give else None,
    )


async def _list_facts(at: PortalContext, found: Member, held: MemberAccess, *, edit: str) -> list[tuple[Phrase, Value]]:
    membership, state = found.membership, found.state
    facts: list[tuple[Phrase, Value]] = []
    if not membership.invited and found.identity:
        facts.append((phrase("User name"), found.identity))
    if fold_text(membership.user_name) != fold_text(found.identity) and membership.user_name:
        facts.append((phrase("User name in your own systems"), membership.user_name))
    change = (Link(url=edit, text=phrase("Change details")),) if edit else ()
    facts.append((phrase("E-mail address"), Cell(values=(found.email or phrase("Not given"), *change))))
    facts += [
        (each.label, each.value)
        for each in _PLAIN.show(to_builtins(membership))
        if each.value and isinstance(each.label, Phrase)
    ]
    mail = _describe_mail(at, membership)
    sentences = (state_sentence(state, at.entity), *([mail] if mail else []))
    facts.append((phrase("State"), Cell(values=(state_label(state), *sentences))))
    if not membership.invited:
        facts += await _describe_last_sign_in(at, found)
    level = await _describe_level(at, held, found.name)
    return [*facts, (phrase("Level"), level)] if level else facts


async def _show_requests(at: PortalContext, found: Member) -> Group | None:
    """Waiting requests on a member that the reader may see."""
    waiting = await approvals.list_waiting_on_person(
        at.registry, at.actor, found.user.user_id, now=at.context.now, limit=_REQUESTS
    )
    rows = [
        (at.link(f"{REQUESTS}/{quote(each.record.request_id, safe='')}", title_changes(each.changes, each.names)),)
        for each in waiting
    ]
    if not rows:
        return None
    return Group(
        parts=(
            Heading(phrase("Waiting for a decision")),
            table(
                phrase("These changes were requested. Nothing changes until they are approved."),
                (phrase("Request"),),
                rows,
            ),
        )
    )


def _show_helps(found: Member, here: str, refused: Condition | None, *, helps: bool) -> Group | None:
    """The help with signing in, or the reason for none."""
    if helps:
        parts: tuple[Part, ...] = (
            phrase(
                "A link goes to the address of the account {account}. The link for a new password asks for the second "
                "step. The link for a new second step asks for the password.",
                account=found.identity,
            ),
            Actions(tuple(Link(url=f"{here}/{each}", text=page.link) for each, page in HELP_PAGES.items())),
        )
    elif refused and refused in WHY_NO_HELP:
        parts = (WHY_NO_HELP[refused],)
    else:
        return None
    return Group(parts=(Heading(phrase("Help with signing in")), *parts))


async def _describe_last_sign_in(at: PortalContext, found: Member) -> list[tuple[Phrase, Value]]:
    """The last sign-in for this entity, for readers of its history."""
    try:
        by_person = await history.find_last_sign_ins(at.registry, at.actor, [found.user.user_id])
    except Forbidden:
        return []
    last = by_person.get(found.user.user_id)
    shown = at.moment(last) if last else phrase("None on record")
    return [(phrase("Last sign-in for {entity}", entity=at.entity.name), shown)]


async def _describe_level(at: PortalContext, held: MemberAccess, name: str) -> Phrase | None:
    administrator = held.administrator
    if administrator is None:
        return None
    listed = administrator.services if isinstance(administrator.services, tuple) else ()
    known = await at.registry.directory.read(Service, [(each,) for each in listed])
    return level_sentence(name, administrator, at.entity, tuple(sorted(each.name for each in known.values())))


def _describe_mail(at: PortalContext, membership: Membership) -> Phrase | None:
    """The state of an invitation's e-mail."""
    if not membership.invited:
        return None
    state = email_state(membership, mail_works=at.provider.mail.works)
    if state == "sent":
        sent = datetime.fromtimestamp(membership.invitation_sent_at, at.provider.policy.timezone)
        return phrase("The e-mail was sent on {moment}.", moment=sent)
    if state == "refused":
        return phrase("The mail server says that there is no such address. Change it, and a new e-mail is sent.")
    if state == "waiting":
        return phrase("The e-mail is about to be sent.")
    if state == "no_mail":
        return phrase("The e-mail waits, because this system sends none at present. Ask the operator.")
    return phrase("No e-mail is sent for this invitation.")


def name_role(role: RoleRecords) -> str:
    """Role and service, for those who hear a link's text only."""
    return f"{role.row.role}, {role.service.name}" if role.row.role else role.service.name


async def _load_grants(at: PortalContext, roles: Sequence[RoleRecords]) -> history.Grants | None:
    """Givers and approvers of roles; None without the right to history."""
    try:
        return await history.load_grants(at.registry, at.actor, [each.row for each in roles])
    except Forbidden:
        return None


def _row(
    at: PortalContext, role: RoleRecords, *, state: str, seen: history.Grants | None, changeable: bool
) -> tuple[Value, ...]:
    row, today = role.row, at.context.day
    tag = access_texts.state(row, today)
    if tag is None and state == "active" and reasons(role, today.isoformat()):
        tag = phrase("Not in effect")
    named = row.role or phrase("The service as a whole")
    begins = (
        (phrase("From {start}", start=date.fromisoformat(row.start_date)),)
        if row.start_date > today.isoformat()
        else ()
    )
    cells: tuple[Value, ...] = (
        Cell(values=(named, *([Label(tag)] if tag else [])), notes=access_texts.details(row, part=False)),
        role.service.name,
        row.sub_entity,
        Cell(values=(last_day(row.end_date),), notes=begins),
    )
    if seen is not None:
        cells += _list_grant(at, seen, seen.entries.get(row.key))
    if changeable:
        what = name_role(role)
        links = ((CHANGE, phrase("Change")), (REMOVE, phrase("Remove")))
        identifier = object_id(row.key)
        cells += (
            Cell(values=tuple(at.link(f"{page}/{identifier}", text, about=what) for page, text in links))
            if isinstance(row, Assignment)
            else None,
        )
    return cells


def _list_grant(at: PortalContext, seen: history.Grants, entry: AuditEntry | None) -> tuple[Value, ...]:
    """The giver of a role, the moment, and the approver."""
    if entry is None:
        return None, None

    def name(actor: str) -> str | Phrase:
        return change_sentences.name_author(actor, entry, seen.names, at.actor.entity_id)

    approver = entry.detail.get("approved_by", "")
    return Cell(values=(name(entry.actor),), notes=(at.moment(entry.at),)), name(approver) if approver else None


async def _show_history(at: PortalContext, found: Member) -> Group | None:
    user_id = found.user.user_id
    every = at.link(HISTORY, phrase("Full history of this person"), person=found.membership.membership_id)
    # The person's history has what they did to others, too.
    return await show_last_changes(
        at, HistoryFilter(user_id=user_id), lambda entry: history.person_of(entry) == user_id, every
    )


# --- help with signing in


async def ask_help(at: PortalContext) -> Check:
    """The check before an administrator helps. Raises NotFound."""
    found, page = await _require_help(at)
    where = (
        phrase("An e-mail goes to the address of the account {user_name}, and nowhere else.", user_name=found.identity)
        if page.is_link
        else phrase("This is for the account {user_name}, which gets an e-mail about it.", user_name=found.identity)
    )
    works, up = at.provider.mail.works, to_person(at, found)
    says = phrase("The e-mail says that you asked for it, and names {entity}.", entity=at.entity.name)
    return Check(
        heading=page.heading(found.name),
        parts=(where, page.what, says) if works else (),
        button=page.button,
        refused=None if works else phrase("This system sends no e-mails at present, so only the operator can help."),
        names=names_shown(found),
        up=up,
        change=lambda: _help(at, found, page),
    )


async def _help(at: PortalContext, found: Member, page: HelpPage) -> FormResult:
    """Record the help, and leave it to a background task."""
    if not at.provider.mail.works:
        raise NotFound
    membership = found.membership
    try:
        await member_help.request_help(at.context, membership, page.asked, actor=at.actor)
    except REFUSALS as error:
        raise rejected(error, entity=at.entity, name=found.name) from None
    work = partial(member_help.carry_out_help, at.context, membership, page.asked, actor=at.actor)
    at.provider.background_tasks.later(work, place=neighbourhood(at.context.address))
    return FormResult(page.done, f"{PERSON}/{membership.membership_id}")


async def _require_help(at: PortalContext) -> tuple[Member, HelpPage]:
    """The member, and the page of the help.

    Raises NotFound if the reader may not help them.
    """
    found = await this_member(at, membership_id_of(at))
    held = await at.registry.directory.find(Administrator, *found.membership.key)
    if member_help.find_refusal(found.membership, held, actor=at.actor) is not None:
        raise NotFound
    return found, HELP_PAGES[at.page.rpartition("/")[2]]


# --- what the entity writes about a person


def _step_name(membership: Membership) -> str:
    """Names what a form was made of.

    The name is left to `names_shown`.
    """
    return version_of(msgspec.structs.replace(details_of(membership), name=""), membership.changed_at)


async def show_details(at: PortalContext) -> View:
    """The form with what the entity writes about a person (D61)."""
    found = await this_member(at, membership_id_of(at))
    membership, possible = found.membership, await _preview_change(at, found, end=False)
    if possible.refusal:
        up, why = to_person(at, found), refusal_sentence(possible.refusal, found.name, at.entity)
        return at.build_page(ACTIONS["details"], Paragraph(why, look="empty"), Actions((up,)), up=up, back=up)
    name, email = found.user.name, found.user.email
    account = not membership.invited
    hints = {
        "name": phrase("Leave it empty to show the name of the account: {name}", name=name)
        if account and name
        else phrase("As your organisation calls this person"),
        "email": phrase("Leave it empty to show the address of the account: {email}", email=email)
        if account and email
        else phrase("The address that your organisation uses for this person")
        if account
        else phrase(
            "The invitation goes to this address. Another one is a new invitation: access and a level that were given or "
            "requested for this address end."
        ),
    }
    # What was typed is for what the form showed; what is there now shows if that has changed.
    typed = {} if {CHANGED_MEANWHILE, NAMES_CHANGED}.intersection(text for _, text in at.errors) else at.form
    return at.build_page(
        phrase("Change details"),
        phrase(
            "This is what your organisation keeps about this person. It does not change the person's account, and "
            "other organisations do not see it."
        ),
        Form(
            parts=(*_DETAILS.show(typed or to_builtins(membership), hints),),
            button=phrase("Save"),
            needs_approval=possible.needs_approval,
        ),
        up=to_person(at, found),
        names=typed.get("names", names_shown(found)),
        step_name=typed.get("step", _step_name(membership)),
    )


async def save_details(at: PortalContext) -> FormResult:
    """Write the details. Raises NotFound, InvalidForm, InvalidInput."""
    found = await this_member(at, membership_id_of(at))
    at.check_step(_step_name(found.membership))
    written = {name: at.form[name].strip() for name in _DETAILS.fields if name in at.form}
    if not written.get("email") and found.membership.invited:
        raise InvalidForm(("email", advise(_DETAILS.fields["email"])))

    async def change(asking: RequestDetails) -> ChangeRequest | None:
        limit = InvitationLimit.for_request(at.context)
        return await members.submit_details(
            at.registry, limit, found.membership, written, actor=at.actor, asking=asking
        )

    at.check_names(names_shown(found))
    return await _submit_change(at, found, change, "person-changed")


# --- actions that are confirmed


class ConfirmedAction(ViewPart, frozen=True, kw_only=True):
    fits: Callable[[Member], bool]
    heading: Callable[[str], Phrase]
    sentences: Callable[[PortalContext, Member], tuple[Phrase, ...]]
    button: Phrase
    done: str
    is_end: bool
    """whether it takes the same right as the end of the membership"""


_ENDS: Final = frozenset({"end", "revoke"})
CONFIRMED_ACTIONS: Final[Mapping[str, ConfirmedAction]] = {
    "suspend": ConfirmedAction(
        fits=lambda found: found.membership.enabled and not found.membership.invited,
        heading=lambda name: phrase("Suspend {name}?", name=name),
        sentences=lambda at, found: (
            phrase("{name} will no longer be able to act for {entity}.", name=found.name, entity=at.entity.name),
            phrase("Level and access are kept without effect, and come back when you restore the membership."),
        ),
        button=phrase("Suspend"),
        done="person-suspended",
        is_end=True,
    ),
    "restore": ConfirmedAction(
        fits=lambda found: not found.membership.enabled,
        heading=lambda name: phrase("Restore {name}?", name=name),
        sentences=lambda at, found: (
            phrase(
                "{name} can act for {entity} again, with the level and access from before.",
                name=found.name,
                entity=at.entity.name,
            ),
        ),
        button=phrase("Restore"),
        done="person-restored",
        is_end=False,
    ),
    "end": ConfirmedAction(
        fits=lambda found: not found.membership.invited,
        heading=lambda name: phrase("End the membership of {name}?", name=name),
        sentences=lambda at, found: (
            phrase("{name} will no longer be able to act for {entity}.", name=found.name, entity=at.entity.name),
            phrase(
                "The account itself stays, and so does the history. To come back, {name} needs a new invitation and new access.",
                name=found.name,
            ),
        ),
        button=phrase("End the membership"),
        done="person-ended",
        is_end=True,
    ),
    "revoke": ConfirmedAction(
        fits=lambda found: found.membership.invited,
        heading=lambda name: phrase("Revoke the invitation of {name}?", name=name),
        sentences=lambda _at, _found: (phrase("The link in the e-mail will stop working."),),
        button=phrase("Revoke the invitation"),
        done="invitation-revoked",
        is_end=True,
    ),
}


async def ask_action(at: PortalContext) -> Check:
    """The check before an action.

    Raises NotFound if it does not fit the state, e.g. of a second request.
    """
    found, kind = await this_member(at, membership_id_of(at)), at.page.rpartition("/")[2]
    if not CONFIRMED_ACTIONS[kind].fits(found):
        raise NotFound

    async def change(asking: RequestDetails) -> ChangeRequest | None:
        if kind in _ENDS:
            return await members.end_membership(at.registry, found.membership, actor=at.actor, asking=asking)
        limit = InvitationLimit.for_request(at.context)
        return await members.submit_switch(
            at.registry, limit, found.membership, enabled=kind == "restore", actor=at.actor, asking=asking
        )

    up = to_person(at, found)
    return await ask_about(
        at, found, kind, lambda: _submit_change(at, found, change, CONFIRMED_ACTIONS[kind].done), up=up
    )


async def ask_about(
    at: PortalContext, found: Member, kind: str, change: Callable[[], Awaitable[FormResult]], *, up: Link
) -> Check:
    """The check before an action on a member, from the page `up`."""
    action = CONFIRMED_ACTIONS[kind]
    possible = await _preview_change(at, found, end=action.is_end)
    refused = refusal_sentence(possible.refusal, found.name, at.entity) if possible.refusal else None
    ending = await plan_endings(at.registry, Change(found.membership, None)) if kind in _ENDS else []

    async def list_ending() -> tuple[Part, ...]:
        taken = await ending_sentences(at, found, ending) if ending and not refused else ()
        removed = await approvals.find_requested_removals(at.registry, at.actor, now=at.context.now)
        asked = found.membership in removed
        return (
            *((phrase("This ends too:"), Items(taken)) if taken else ()),
            ALREADY_REQUESTED if asked else None,
        )

    return Check(
        heading=ACTIONS[kind] if refused else action.heading(found.name),
        parts=() if refused else action.sentences(at, found),
        further=list_ending,
        button=action.button,
        danger=kind != "restore",
        needs_approval=possible.needs_approval,
        refused=refused,
        names=names_shown(found),
        step_name=version_of(*(each.record for each in ending)) if ending else "",
        up=up,
        change=change,
    )


async def ending_sentences(at: PortalContext, found: Member, ending: Sequence[Change]) -> tuple[Phrase, ...]:
    """Everything that ends with the membership (`plan_endings`), a sentence each."""
    name, today = found.name, at.context.day
    levels = [each.record.level for each in ending if isinstance(each.record, Administrator)]
    held = await members.load_access(at.registry, found.membership, actor=at.actor, after="", limit=_LISTED)
    shown = (*held.roles.found, *held.for_others)
    sentences = [
        access_texts.sentence(name, role.row, role.service, at.name_of(role.client_entity or role.entity), today)
        for role in shown
    ]
    rest = len(ending) - len(levels) - len(shown)
    if rest > 0:
        sentences.append(counted(rest, "Further access in {count} role", "Further access in {count} roles"))
    return (*sentences, *(_LEVEL_ENDS[level] for level in levels))


# --- sending again


async def ask_resending(at: PortalContext) -> Check:
    """The check before an invitation is sent again. Raises NotFound."""
    found = await this_member(at, membership_id_of(at))
    if not members.may_send_again(found.membership, actor=at.actor):
        raise NotFound
    waits = abs(found.membership.invitation_sent_at) > at.context.now - RESEND_SECONDS

    async def resend() -> None:
        limit = InvitationLimit.for_request(at.context)
        try:
            await invitations.send_invitation_again(
                at.registry, limit, found.membership, actor=at.actor, now=at.context.now
            )
        except Refused:
            raise InvalidInput(_WAIT if found.membership.email else _NO_ADDRESS) from None
        except REFUSALS as error:
            raise rejected(error, entity=at.entity, name=found.name) from None

    goes = phrase(
        "{name} gets a new e-mail at {email}. The link in the earlier one stops working.",
        name=found.name,
        email=found.email,
    )
    return Check(
        heading=phrase("Send the invitation again?"),
        parts=(goes, EACH_GETS),
        button=phrase("Send again"),
        refused=_WAIT if waits else None if found.membership.email else _NO_ADDRESS,
        names=names_shown(found),
        up=to_person(at, found),
        change=resend,
        done=FormResult("invitation-sent-again", f"{PERSON}/{found.membership.membership_id}"),
    )


# --- in common


async def _submit_change(
    at: PortalContext, found: Member, change: Callable[[RequestDetails], Awaitable[ChangeRequest | None]], done: str
) -> FormResult:
    """Make or request a change, and say which.

    Raises NotFound, InvalidInput.
    """
    name, asking = found.name, at.request_details()
    try:
        request = await change(asking)
    except InvalidDetails as error:
        raise InvalidForm(*detail_errors(error)) from None
    except UnknownMember:
        raise NotFound from None
    except REFUSALS as error:
        raise rejected(error, entity=at.entity, name=name) from None
    here = f"{PERSON}/{found.membership.membership_id}"
    is_gone = done in {"person-ended", "invitation-revoked"}
    return saved_or_requested(request, FormResult(done, PEOPLE if is_gone else here))


async def _preview_change(at: PortalContext, found: Member, *, end: bool) -> ChangePreview:
    return await members.preview_change(at.registry, found.membership, actor=at.actor, end=end)


_WAIT: Final = phrase(
    "The e-mail was sent less than {minutes} minutes ago. Ask the person to check their spam folder, and wait "
    "before you send another one.",
    minutes=RESEND_SECONDS // MINUTE,
)
_NO_ADDRESS: Final = phrase("This invitation has no e-mail address to go to. Add one first.")
_LEVEL_ENDS: Final = {
    "owner": phrase("The level of owner"),
    "administrator": phrase("The level of administrator"),
    "sub_administrator": phrase("The level of sub-administrator"),
}


def _path(*pages: str) -> re.Pattern[str]:
    """The paths of pages about one person."""
    return re.compile(f"{PERSON}/[^/]{{1,100}}" + (f"/({'|'.join(pages)})" if pages else ""))


_CHANGING: Final = ("write", "membership")
SECTION: Final = Section[PortalContext](
    name=PEOPLE,
    named_pages={
        _path(): PortalPage(view=show_person),
        _path("details"): PortalPage(view=show_details, submit=save_details, fresh=True, needs=_CHANGING),
        _path("send-again"): check_page(ask_resending, needs=("write", "invitation")),
        _path(*CONFIRMED_ACTIONS): check_page(ask_action, needs=_CHANGING),
        _path(*HELP_PAGES): check_page(ask_help),
    },
    fields=frozenset({*_DETAILS.fields, "reason"}),
    filters=frozenset({"after"}),
    changes={
        "person-changed": phrase("The details have been changed."),
        "person-suspended": phrase("The membership has been suspended."),
        "person-restored": phrase("The membership has been restored."),
        "person-ended": phrase("The membership has been ended."),
        "invitation-revoked": phrase("The invitation has been revoked."),
        "invitation-sent-again": phrase("The invitation has been sent again."),
        "person-help-link": phrase(
            "If the account can be helped this way, an e-mail is on its way to its own address. If nothing arrives, the "
            "operator can help."
        ),
        "person-help-unlock": phrase(
            "If the account can be helped this way, it is unlocked in a moment, and an e-mail says so. If this does not "
            "help, send a link."
        ),
    },
)
