"""Pages on which an administrator helps a member to sign in (D54, D69)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from corpid.flows.directory import member_help
from corpid.rules.limits import HOUR, MINUTE, PASSWORD_LINK_SECONDS, SECOND_FACTOR_LINK_SECONDS
from corpid.rules.networks import neighbourhood
from corpid.texts import phrase
from corpid.web.directory.access import PERSON
from corpid.web.directory.member_texts import REFUSALS, rejected
from corpid.web.directory.page_context import Page, PortalContext, frame, portal_path
from corpid.web.directory.people import PEOPLE
from corpid.web.directory.people_views import ConfirmAction
from corpid.web.directory.person import HELPS, membership_id_of, this_member
from corpid.web.directory.writing import check_names, names_shown
from corpid.web.pages.layout import Link
from corpid.web.sites import Gone, Saved, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.flows.directory.member_help import Help
    from corpid.flows.directory.provisioning import Member
    from corpid.texts import Phrase
    from corpid.web.pages.views import View


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of help, and how its page asks."""

    asked: Help
    heading: Callable[[str], Phrase]
    what: Phrase
    button: Phrase
    done: str
    is_link: bool = True


_KINDS: Final[Mapping[str, _Kind]] = {
    "new-password": _Kind(
        asked="password",
        heading=lambda name: phrase("Send {name} a link for a new password?", name=name),
        what=phrase(
            "The link works for {minutes} minutes, and asks for a code or a passkey first. Earlier links for a new "
            "password stop working.",
            minutes=PASSWORD_LINK_SECONDS // MINUTE,
        ),
        button=phrase("Send the link"),
        done="person-help-link",
    ),
    "new-second-step": _Kind(
        asked="second_factor",
        heading=lambda name: phrase("Send {name} a link for a new second step?", name=name),
        what=phrase(
            "The link works for {hours} hours, and asks for the password first. Earlier links for a new second step stop "
            "working.",
            hours=SECOND_FACTOR_LINK_SECONDS // HOUR,
        ),
        button=phrase("Send the link"),
        done="person-help-link",
    ),
    "unlock": _Kind(
        asked="unlock",
        heading=lambda name: phrase("Unlock the account of {name}?", name=name),
        what=phrase(
            "Pauses after wrong passwords and codes end, at most once an hour. Password and second step stay as they are."
        ),
        button=phrase("Unlock the account"),
        done="person-help-unlock",
        is_link=False,
    ),
}


async def question(at: PortalContext) -> View:
    """The question before an administrator helps."""
    found, kind = await _helped(at)
    back = Link(
        url=portal_path(at.web, f"{PERSON}/{found.membership.membership_id}"), text=phrase("{name}", name=found.name)
    )
    where = (
        phrase(
            "An e-mail goes to the address of the account {user_name}, and nowhere else.",
            user_name=found.user.user_name,
        )
        if kind.is_link
        else phrase(
            "This is for the account {user_name}, which gets an e-mail about it.", user_name=found.user.user_name
        )
    )
    works = not kind.is_link or at.web.provider.mail.works
    return ConfirmAction(
        frame=frame(at, section=PEOPLE, up=back, names=names_shown(found)),
        heading=kind.heading(found.name),
        action=portal_path(at.web, at.page),
        sentences=(
            where,
            kind.what,
            phrase("The e-mail says that you asked for it, and names {entity}.", entity=at.entity.name),
        )
        if works
        else (),
        refused=None if works else _NO_MAIL,
        button=kind.button,
        back=Link(url=back.url, text=phrase("Go back")),
        needs_approval=False,
        reason="",
        notes=at.notes,
        errors=at.errors,
    )


async def help_person(at: PortalContext) -> Saved:
    """Record the help, and leave it to a background task.

    Raises Gone, Rejected.
    """
    found, kind = await _helped(at)
    check_names(at, names_shown(found))
    if kind.is_link and not at.web.provider.mail.works:
        raise Gone
    membership = found.membership
    try:
        await member_help.ask(at.context, membership, kind.asked, actor=at.actor)
    except REFUSALS as error:
        raise rejected(error, entity=at.entity, name=found.name) from None
    work = partial(member_help.give, at.context, membership, kind.asked, actor=at.actor)
    at.context.provider.background_tasks.later(work, place=neighbourhood(at.context.address))
    return Saved(kind.done, f"{PERSON}/{membership.membership_id}")


async def _helped(at: PortalContext) -> tuple[Member, _Kind]:
    """The member, and the kind of help.

    Raises Gone if the reader may not help them.
    """
    found = await this_member(at, membership_id_of(at))
    held = await member_help.level_of(at.context.provider.registry, found.membership)
    if not member_help.may_help(found.membership, held, actor=at.actor):
        raise Gone
    return found, _KINDS[at.page.rpartition("/")[2]]


_NO_MAIL: Final = phrase("This system sends no e-mails at present. Ask the operator for a link.")
SECTION: Final = Section[PortalContext](
    named_pages={
        re.compile(f"{PERSON}/[^/]{{1,100}}/({'|'.join(HELPS)})"): Page(view=question, submit=help_person, fresh=True)
    },
    changes={
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
