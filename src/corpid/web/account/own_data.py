"""Pages for downloading and deleting a person's own data (D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from corpid.flows.account import own_data
from corpid.rules.limits import DATA_COPIES_PER_DAY
from corpid.texts import phrase
from corpid.web.account import views
from corpid.web.account.page_context import account_path, frame, moment
from corpid.web.pages.responses import NO_STORE

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.web.account.page_context import AccountContext
    from corpid.web.pages.views import View

DATA: Final = "data"
DELETE: Final = "delete"


async def sections(account: AccountContext) -> tuple[views.Section, ...]:
    """The parts of the overview that lead to these pages."""
    asked = await own_data.find_deletion_request(account.context, account.visit) is not None
    return (
        views.Section(
            url=account_path(account.web, DATA),
            name=views.DownloadData.heading,
            state=phrase("Everything we keep about you, in one file"),
        ),
        views.Section(
            url=account_path(account.web, DELETE),
            name=phrase("Delete your account"),
            state=phrase("You have asked for it") if asked else phrase("What happens, and how to ask for it"),
        ),
    )


async def data(account: AccountContext) -> View:
    """The page that leads to the copy (D61)."""
    return views.DownloadData(
        frame=frame(account),
        action=account_path(account.web, DATA),
        most=DATA_COPIES_PER_DAY,
        back=account_path(account.web),
        notes=account.notes,
        errors=account.errors,
    )


async def download(account: AccountContext) -> Response:
    """The copy, as a file that the browser stores (RFC 6266).

    Raises InvalidInput, TooOld. Source: D61
    """
    context = account.context
    pieces = await own_data.copy_data(context, account.visit)
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="my-data-{context.today}.json"'}
    return StreamingResponse(pieces, 200, headers, "application/json")


async def delete(account: AccountContext) -> View:
    """A request to be deleted: made, or withdrawn (D61)."""
    found = await own_data.find_deletion_request(account.context, account.visit)
    return views.DeleteAccount(
        frame=frame(account),
        action=account_path(account.web, DELETE),
        requested=moment(account.web, found.requested_at) if found is not None else None,
        heading=phrase("You have asked to delete your account") if found else phrase("Delete your account?"),
        back=account_path(account.web),
        notes=account.notes,
        errors=account.errors,
    )
