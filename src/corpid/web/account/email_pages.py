"""Pages of the e-mail address, and of the undo link.

The link works without a sign-in. Looking at its page changes nothing, since programs that check e-mail look too: only
the button does. Source: D34, D35, D61
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.account import own_email
from corpid.flows.account.enrolments import NotHere
from corpid.flows.account.links import PURPOSES
from corpid.flows.authentication import interactions
from corpid.rules.directory.members import masked_address
from corpid.rules.oauth import parameters
from corpid.texts import phrase
from corpid.web.account import views
from corpid.web.account.invitations import OPENED_PATH
from corpid.web.account.page_context import account_path, frame, moment
from corpid.web.http.requests import form_bytes
from corpid.web.pages.layout import BARE, Frame, Link
from corpid.web.pages.responses import page_response, require_own_form, see_other
from corpid.web.pages.views import Problem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.account.enrolments import OpenedLink
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.request_context import RequestContext
    from corpid.web.account.page_context import AccountContext
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View


async def section(account: AccountContext) -> views.Section:
    """The line of the address in the overview."""
    address, change = account.visit.user.email, await own_email.find_pending_change(account.context, account.visit)
    state = phrase("{address}", address=address) if address else phrase("None")
    if change is not None:
        state = phrase("Changes to {address}", address=change.new_email)
    return views.Section(url=account_path(account.web, "email"), name=phrase("E-mail address"), state=state)


async def email(account: AccountContext) -> View:
    """The page of the address, in one of its states (D61).

    Enter a new one, prove it, or undo the change.
    """
    web, address, action = account.web, account.visit.user.email, account_path(account.web, "email")
    if not account.context.provider.mail.works:
        return Problem(
            frame=frame(account),
            heading=views.ChangeEmail.heading,
            paragraphs=(
                phrase("You cannot change your e-mail address here, because no e-mails are sent."),
                phrase("Ask the operator of {name} to change it.", name=web.provider.policy.name),
            ),
        )
    state = await own_email.load_email_state(account.context, account.visit)
    if state.waiting is not None:
        return views.EmailWaiting(
            frame=frame(account),
            action=action,
            old=address,
            new=state.waiting.new_email,
            at=moment(web, state.waiting.effective_at),
            notes=account.notes,
            errors=account.errors,
        )
    if state.wanted is not None:
        return views.ProveEmail(
            frame=frame(account), action=action, new=state.wanted.email, notes=account.notes, errors=account.errors
        )
    from_file = phrase(
        "Your address comes from a list that the operator of {name} keeps. You can change it here: tell them the new one, "
        "so that the list says the same.",
        name=web.provider.policy.name,
    )
    return views.ChangeEmail(
        frame=frame(account),
        action=action,
        old=address,
        typed=account.form.get("email", ""),
        notes=(*account.notes, *((from_file,) if state.from_file else ())),
        errors=account.errors,
    )


async def opened(
    request: Request, web: WebContext, context: RequestContext, browser: Browser, opened_id: str, found: OpenedLink
) -> Response:
    """The page with its one button, and what the button does.

    Raises NotHere. Source: D35, D61
    """
    change, here = found.email_change, f"{web.base_path}{OPENED_PATH}{opened_id}"
    if change is None:
        raise NotHere
    if request.method == "POST":
        form = parameters.parse(await form_bytes(request), {"form_token", "step"})
        require_own_form(context, form, browser.browser_id, opened_id)
        await own_email.undo(context, browser, opened_id, found)
        return see_other(here)
    purpose = PURPOSES[found.link.purpose]
    view = views.UndoEmail(
        frame=Frame(form_token=interactions.form_token(context, browser.browser_id, opened_id), under_way=True),
        action=here,
        heading=purpose.heading,
        introduction=purpose.introduction(found.user.name, web.provider.policy.name),
        user_name=found.user.user_name,
        old=masked_address(change.old_email),
        new=masked_address(change.new_email),
    )
    return page_response(request, web.renderer, view)


def undone(password: str, provider_name: str) -> Problem:
    """The page after it, with what to do next (D61).

    `password` is the address path of the page that changes it.
    """
    return Problem(
        frame=BARE,
        heading=PURPOSES["email"].done,
        paragraphs=(
            phrase("The change was stopped, and your account was signed out in every browser."),
            phrase(
                "Somebody else had access to your account. Choose a new password now, then check your passkeys, your "
                "authenticator app and your recovery codes."
            ),
            phrase(
                "If you cannot sign in any more, tell your organisation's {name} administrator now.",
                name=provider_name,
            ),
        ),
        back=Link(url=password, text=phrase("Choose a new password")),
    )
