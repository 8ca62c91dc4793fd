"""Pages on which an administrator helps a member to sign in (D54, D69)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from corpid.flows.directory import member_help
from corpid.rules.networks import neighbourhood
from corpid.texts import phrase
from corpid.web.directory.access import PERSON
from corpid.web.directory.member_texts import HELP_PAGES, REFUSALS, rejected
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.people import PEOPLE
from corpid.web.directory.people_views import ConfirmAction
from corpid.web.directory.person import membership_id_of, this_member
from corpid.web.directory.writing import check_names, names_shown
from corpid.web.pages.layout import Link
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from corpid.flows.directory.members import Member
    from corpid.web.directory.member_texts import HelpPage
    from corpid.web.pages.views import View


async def question(at: PortalContext) -> View:
    """The question before an administrator helps."""
    found, page = await _helped(at)
    back = Link(
        url=portal_path(at.web, f"{PERSON}/{found.membership.membership_id}"), text=phrase("{name}", name=found.name)
    )
    where = (
        phrase(
            "An e-mail goes to the address of the account {user_name}, and nowhere else.",
            user_name=found.identity,
        )
        if page.is_link
        else phrase("This is for the account {user_name}, which gets an e-mail about it.", user_name=found.identity)
    )
    works = at.web.provider.mail.works
    return ConfirmAction(
        frame=frame(at, section=PEOPLE, up=back, names=names_shown(found)),
        heading=page.heading(found.name),
        action=portal_path(at.web, at.page),
        sentences=(
            where,
            page.what,
            phrase("The e-mail says that you asked for it, and names {entity}.", entity=at.entity.name),
        )
        if works
        else (),
        refused=None if works else _NO_MAIL,
        button=page.button,
        back=Link(url=back.url, text=phrase("Go back")),
        needs_approval=False,
        reason="",
        notes=at.notes,
        errors=at.errors,
    )


async def help_person(at: PortalContext) -> FormResult:
    """Record the help, and leave it to a background task.

    Raises NotFound, InvalidInput.
    """
    found, page = await _helped(at)
    check_names(at, names_shown(found))
    if not at.web.provider.mail.works:
        raise NotFound
    membership = found.membership
    try:
        await member_help.request_help(at.context, membership, page.asked, actor=at.actor)
    except REFUSALS as error:
        raise rejected(error, entity=at.entity, name=found.name) from None
    work = partial(member_help.carry_out_help, at.context, membership, page.asked, actor=at.actor)
    at.context.provider.background_tasks.later(work, place=neighbourhood(at.context.address))
    return FormResult(page.done, f"{PERSON}/{membership.membership_id}")


async def _helped(at: PortalContext) -> tuple[Member, HelpPage]:
    """The member, and the page of the help.

    Raises NotFound if the reader may not help them.
    """
    found = await this_member(at, membership_id_of(at))
    held = await member_help.read_level(at.context.provider.registry, found.membership)
    if member_help.find_refusal(found.membership, held, actor=at.actor) is not None:
        raise NotFound
    return found, HELP_PAGES[at.page.rpartition("/")[2]]


_NO_MAIL: Final = phrase("This system sends no e-mails at present, so only the operator can help.")
SECTION: Final = Section[PortalContext](
    named_pages={
        re.compile(f"{PERSON}/[^/]{{1,100}}/({'|'.join(HELP_PAGES)})"): PortalPage(
            view=question, submit=help_person, fresh=True
        )
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
