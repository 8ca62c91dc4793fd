"""Pages that change a membership, or end it (D53, D54, D55, D60)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import invitations, member_changes, members
from corpid.flows.directory.members import UnknownMember
from corpid.flows.directory.write import Refused
from corpid.rules.directory.member_details import InvalidDetails
from corpid.rules.limits import MINUTE, RESEND_SECONDS
from corpid.texts import counted, phrase
from corpid.web.directory.access import PERSON
from corpid.web.directory.invite import detail_errors, invitation_limit
from corpid.web.directory.member_texts import EACH_GETS, REFUSALS, refusal_sentence, rejected
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.people import PEOPLE
from corpid.web.directory.people_views import ConfirmAction, EditPerson
from corpid.web.directory.person import ACTIONS, membership_id_of, this_member
from corpid.web.directory.writing import check_names, names_shown, reason, saved_or_requested
from corpid.web.pages import access_texts
from corpid.web.pages.layout import Link, ViewPart
from corpid.web.sites import CHANGED_MEANWHILE, FormResult, InvalidForm, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid.flows.directory.members import ChangePreview, Member
    from corpid.rules.directory.records import ChangeRequest
    from corpid.texts import Phrase
    from corpid.web.pages.views import View


# --- name and e-mail


async def details(at: PortalContext) -> View:
    """The form with what the entity writes about a person (D61)."""
    found = await this_member(at, membership_id_of(at))
    membership, possible = found.membership, await _possible(at, found, end=False)
    if possible.refusal:
        return _refused(at, found, possible)
    name, email = found.user.name, found.user.email
    account = not membership.invited
    return EditPerson(
        frame=frame(at, section=PEOPLE, up=_back(at, found), names=names_shown(found)),
        action=portal_path(at.web, at.page),
        name=at.form.get("name", "" if at.form else membership.name),
        email=at.form.get("email", "" if at.form else membership.email),
        name_hint=phrase("Leave it empty to show the name of the account: {name}", name=name)
        if account and name
        else phrase("As your organisation calls this person"),
        email_hint=phrase("Leave it empty to show the address of the account: {email}", email=email)
        if account and email
        else phrase("The address that your organisation uses for this person")
        if account
        else phrase(
            "The invitation goes to this address. Another one is a new invitation: access and a level that were given or "
            "requested for this address end."
        ),
        seen=membership.changed_at,
        needs_approval=possible.needs_approval,
        reason=at.form.get("reason", ""),
        back=_back(at, found).url,
        notes=at.notes,
        errors=at.errors,
    )


async def save_details(at: PortalContext) -> FormResult:
    """Write name and e-mail. Raises NotFound, InvalidForm, InvalidInput."""
    found = await this_member(at, membership_id_of(at))
    if at.form.get("seen") != str(found.membership.changed_at):
        raise InvalidInput(CHANGED_MEANWHILE)
    name, email = at.form.get("name", "").strip(), at.form.get("email", "").strip()
    if not email and found.membership.invited:
        raise InvalidInput(phrase("Enter an e-mail address such as name@example.com."), field="email")
    registry, context = at.context.provider.registry, at.context

    async def change(reason: str) -> ChangeRequest | None:
        return await member_changes.submit_details(
            registry, invitation_limit(at), found.membership, name=name, email=email, actor=at.actor, reason=reason,
            now=context.now, new_id=at.web.new_user_id,
        )  # fmt: skip

    return await _submitted(at, found, change, "person-changed")


# --- actions that are confirmed


class _Action(ViewPart, frozen=True, kw_only=True):
    """An action that a page confirms."""

    fits: Callable[[Member], bool]
    heading: Callable[[str], Phrase]
    sentences: Callable[[PortalContext, Member], tuple[Phrase, ...]]
    button: Phrase
    done: str
    keep: Phrase
    is_end: bool
    """whether it takes the same right as the end of the membership"""


_ACTIONS: Final[Mapping[str, _Action]] = {
    "suspend": _Action(
        fits=lambda found: found.membership.enabled and not found.membership.invited,
        heading=lambda name: phrase("Suspend {name}?", name=name),
        sentences=lambda at, found: (
            phrase("{name} can then no longer act for {entity}.", name=found.name, entity=at.entity.name),
            phrase("Level and access are kept without effect, and come back when you restore the membership."),
        ),
        button=phrase("Suspend"),
        done="person-suspended",
        keep=phrase("Keep as it is"),
        is_end=True,
    ),
    "restore": _Action(
        fits=lambda found: not found.membership.enabled,
        heading=lambda name: phrase("Restore {name}?", name=name),
        sentences=lambda at, found: (
            phrase(
                "{name} can then act for {entity} again, with the level and access of before.",
                name=found.name,
                entity=at.entity.name,
            ),
        ),
        button=phrase("Restore"),
        done="person-restored",
        keep=phrase("Keep as it is"),
        is_end=False,
    ),
    "end": _Action(
        fits=lambda found: not found.membership.invited,
        heading=lambda name: phrase("End the membership of {name}?", name=name),
        sentences=lambda at, found: (
            phrase("{name} can then no longer act for {entity}.", name=found.name, entity=at.entity.name),
            phrase(
                "The account itself stays, and so does the history. To come back, {name} needs a new invitation and new access.",
                name=found.name,
            ),
        ),
        button=phrase("End the membership"),
        done="person-ended",
        keep=phrase("Keep the membership"),
        is_end=True,
    ),
    "revoke": _Action(
        fits=lambda found: found.membership.invited,
        heading=lambda name: phrase("Revoke the invitation of {name}?", name=name),
        sentences=lambda _at, _found: (phrase("The link in the e-mail then no longer works."),),
        button=phrase("Revoke the invitation"),
        done="invitation-revoked",
        keep=phrase("Keep the invitation"),
        is_end=True,
    ),
}


async def confirm(at: PortalContext) -> View:
    """The question before an action, with what it takes away."""
    found = await this_member(at, membership_id_of(at))
    action = _action(at, found)
    possible = await _possible(at, found, end=action.is_end)
    if possible.refusal:
        return _refused(at, found, possible)
    kind = _kind(at)
    return ConfirmAction(
        frame=frame(at, section=PEOPLE, up=_back(at, found), names=names_shown(found)),
        heading=action.heading(found.name),
        action=portal_path(at.web, at.page),
        sentences=action.sentences(at, found),
        taken=await ending_sentences(at, found) if kind in {"end", "revoke"} else (),
        button=phrase("Send for approval") if possible.needs_approval else action.button,
        look="" if kind == "restore" else "button-danger",
        back=Link(url=_back(at, found).url, text=action.keep),
        needs_approval=possible.needs_approval,
        reason=at.form.get("reason", ""),
        notes=at.notes,
        errors=at.errors,
    )


async def carry_out(at: PortalContext) -> FormResult:
    """Carry out a confirmed action, or request it. Raises NotFound, InvalidInput."""
    found = await this_member(at, membership_id_of(at))
    action, kind = _action(at, found), _kind(at)
    registry, context = at.context.provider.registry, at.context

    async def change(reason: str) -> ChangeRequest | None:
        if kind in {"end", "revoke"}:
            return await member_changes.submit_end(
                registry, found.membership, actor=at.actor, reason=reason, now=context.now, new_id=at.web.new_user_id
            )
        return await member_changes.submit_switch(
            registry, invitation_limit(at), found.membership, enabled=kind == "restore", actor=at.actor, reason=reason,
            now=context.now, new_id=at.web.new_user_id,
        )  # fmt: skip

    return await _submitted(at, found, change, action.done)


def _action(at: PortalContext, found: Member) -> _Action:
    """The action of the address.

    Raises NotFound if it does not fit the state, e.g. of a second request.
    """
    action = _ACTIONS[_kind(at)]
    if not action.fits(found):
        raise NotFound
    return action


async def ending_sentences(at: PortalContext, found: Member) -> tuple[Phrase, ...]:
    """Everything that ends with the membership, a sentence each."""
    registry, name, today = at.context.provider.registry, found.name, at.context.day
    ending = await members.load_membership_end(registry, found.membership, actor=at.actor)
    held = await members.load_access(registry, found.membership, actor=at.actor, after="", limit=_LISTED)
    shown = (*held.roles.found, *held.for_others)
    sentences = [
        access_texts.sentence(name, role.row, role.service, (role.client_entity or role.entity).name, today)
        for role in shown
    ]
    rest = ending.roles + ending.for_others - len(shown)
    if rest > 0:
        sentences.append(counted(rest, "Further access in {count} role", "Further access in {count} roles"))
    if ending.administrator is not None:
        sentences.append(_LEVEL_ENDS[ending.administrator.level])
    return tuple(sentences)


_LISTED: Final = 20
"""roles of each kind that the page lists; further ones are counted"""
_LEVEL_ENDS: Final = {
    "owner": phrase("The level of owner"),
    "administrator": phrase("The level of administrator"),
    "sub_administrator": phrase("The level of sub-administrator"),
}


# --- sending again


async def send_again(at: PortalContext) -> View:
    """The question before an invitation is sent again."""
    found = await _invited_member(at)
    wait = abs(found.membership.invitation_sent_at) > at.context.now - RESEND_SECONDS
    return ConfirmAction(
        frame=frame(at, section=PEOPLE, up=_back(at, found), names=names_shown(found)),
        heading=phrase("Send the invitation again?"),
        action=portal_path(at.web, at.page),
        sentences=(
            phrase(
                "{name} gets a new e-mail at {email}. The link in the earlier one then no longer works.",
                name=found.name,
                email=found.email,
            ),
            EACH_GETS,
        ),
        refused=_WAIT if wait else None if found.membership.email else _NO_ADDRESS,
        button=phrase("Send again"),
        back=_back(at, found),
        needs_approval=False,
        reason="",
        notes=at.notes,
        errors=at.errors,
    )


async def resend(at: PortalContext) -> FormResult:
    """Have an invitation sent again. Raises NotFound, InvalidInput."""
    found = await _invited_member(at)
    check_names(at, names_shown(found))
    context, provider = at.context, at.context.provider
    try:
        await invitations.send_invitation_again(
            provider.registry, invitation_limit(at), found.membership, actor=at.actor, now=context.now
        )
    except Refused:
        raise InvalidInput(_WAIT if found.membership.email else _NO_ADDRESS) from None
    except REFUSALS as error:
        raise rejected(error, entity=at.entity, name=found.name) from None
    return FormResult("invitation-sent-again", f"{PERSON}/{found.membership.membership_id}")


async def _invited_member(at: PortalContext) -> Member:
    found = await this_member(at, membership_id_of(at))
    if not members.may_send_again(found.membership, actor=at.actor):
        raise NotFound
    return found


# --- in common


async def _submitted(
    at: PortalContext, found: Member, change: Callable[[str], Awaitable[ChangeRequest | None]], done: str
) -> FormResult:
    """Make or request a change, and say which.

    Raises NotFound, InvalidInput, also if the form was shown for somebody else.
    """
    check_names(at, names_shown(found))
    name, given = found.name, reason(at)
    try:
        request = await change(given)
    except InvalidDetails as error:
        raise InvalidForm(*detail_errors(error)) from None
    except UnknownMember:
        raise NotFound from None
    except REFUSALS as error:
        raise rejected(error, entity=at.entity, name=name) from None
    at.context.provider.registry_cache.drop()
    here = f"{PERSON}/{found.membership.membership_id}"
    is_gone = done in {"person-ended", "invitation-revoked"}
    return saved_or_requested(request, FormResult(done, PEOPLE if is_gone else here))


async def _possible(at: PortalContext, found: Member, *, end: bool) -> ChangePreview:
    return await members.preview_change(at.context.provider.registry, found.membership, actor=at.actor, end=end)


def _refused(at: PortalContext, found: Member, possible: ChangePreview) -> View:
    """The page of an action that the reader may not take."""
    back = _back(at, found)
    return ConfirmAction(
        frame=frame(at, section=PEOPLE, up=back),
        heading=ACTIONS[_kind(at)],
        action=portal_path(at.web, at.page),
        sentences=(),
        refused=refusal_sentence(possible.refusal, found.name, at.entity),
        button=ACTIONS[_kind(at)],
        back=back,
        needs_approval=False,
        reason="",
    )


def _back(at: PortalContext, found: Member) -> Link:
    return Link(
        url=portal_path(at.web, f"{PERSON}/{found.membership.membership_id}"),
        text=phrase("{name}", name=found.name),
    )


def _kind(at: PortalContext) -> str:
    return at.page.rpartition("/")[2]


_WAIT: Final = phrase(
    "The e-mail was sent less than {minutes} minutes ago. Ask the person to look in their spam folder, and wait before "
    "you send another one.",
    minutes=RESEND_SECONDS // MINUTE,
)
_NO_ADDRESS: Final = phrase("This invitation has no e-mail address to go to. Add one first.")
_ID: Final = "[^/]{1,100}"
SECTION: Final = Section[PortalContext](
    named_pages={
        re.compile(f"{PERSON}/{_ID}/details"): PortalPage(
            view=details, submit=save_details, fresh=True, needs=("write", "membership")
        ),
        re.compile(f"{PERSON}/{_ID}/send-again"): PortalPage(
            view=send_again, submit=resend, fresh=True, needs=("write", "invitation")
        ),
        re.compile(f"{PERSON}/{_ID}/({'|'.join(_ACTIONS)})"): PortalPage(
            view=confirm, submit=carry_out, fresh=True, needs=("write", "membership")
        ),
    },
    fields=frozenset({"name", "email", "reason", "seen"}),
    changes={
        "person-changed": phrase("Name and e-mail have been changed."),
        "person-suspended": phrase("The membership has been suspended."),
        "person-restored": phrase("The membership has been restored."),
        "person-ended": phrase("The membership has been ended."),
        "invitation-revoked": phrase("The invitation has been revoked."),
        "invitation-sent-again": phrase("The invitation is sent again."),
    },
)
