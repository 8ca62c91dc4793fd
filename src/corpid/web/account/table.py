"""The table of account pages: view, form submission and next page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.flows.account import activity, own_factors
from corpid.flows.authentication.sign_in import Rejected
from corpid.texts import phrase
from corpid.web.account import app_key, factor_pages, pages
from corpid.web.pages.translations import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.responses import Response

    from corpid.web.account.page_context import AccountContext
    from corpid.web.pages.views import View

FIELDS: Final = frozenset(
    {
        "form_token", "step", "user_name", "name", "password", "code", "passkey", "kept", "browser", "language",
        "decision",
    }
)  # fmt: skip
_PASSKEY: Final = re.compile(r"passkey/[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its view, its form's submission, and the next page."""

    view: Callable[[AccountContext], Awaitable[View | Response]]
    submit: Callable[[AccountContext], Awaitable[None]] | None = None
    leads_to: str = ""
    says: str = ""
    """the field of its errors; empty: the page as a whole"""
    fresh: bool = False
    """whether a sign-in of these minutes opens it (`account.openings`)"""
    part_of: str | None = None
    """the page that contains it, which is opened in its place"""


async def _add_passkey(account: AccountContext) -> None:
    await own_factors.add(account.context, account.visit, answer=account.form.get("passkey", ""))


async def _change_passkey(account: AccountContext) -> None:
    visit = account.visit
    shown = await factor_pages.this_passkey(account)
    if account.form.get("decision") == "remove":
        await own_factors.remove(account.context, visit, shown)
    else:
        await own_factors.rename(account.context, visit, shown, name=account.form.get("name", ""))


async def _qr_code(account: AccountContext) -> Response:
    return app_key.picture(await factor_pages.app_link(account))


async def _set_up_app(account: AccountContext) -> None:
    await own_factors.set_up_app(account.context, account.visit, code=account.form.get("code", ""))


async def _remove_app(account: AccountContext) -> None:
    await own_factors.remove_app(account.context, account.visit)


async def _change_password(account: AccountContext) -> None:
    password = account.form.get("password", "")
    await own_factors.change_password(account.context, account.visit, password=password)


async def _replace_codes(account: AccountContext) -> None:
    shown, kept = account.form.get("step", ""), account.form.get("kept") == "yes"
    await own_factors.replace_codes(account.context, account.visit, shown=shown, kept=kept)


async def _remove_codes(account: AccountContext) -> None:
    await own_factors.remove_codes(account.context, account.visit)


async def _end(account: AccountContext) -> None:
    visit = account.visit
    if account.form.get("decision") == "others":
        await activity.end_others(account.context, visit)
    else:
        await activity.end(account.context, visit, name=account.form.get("browser", ""))


async def _choose_language(account: AccountContext) -> None:
    wanted = account.form.get("language", "")
    if wanted not in {each.tag for each in LANGUAGES}:
        raise Rejected(phrase("Choose a language."))
    await activity.choose_language(account.context, account.visit, language=wanted)


_ONE_PASSKEY: Final = Page(
    view=factor_pages.passkey, submit=_change_passkey, leads_to="passkeys", says="name", fresh=True
)
_PAGES: Final[Mapping[str, Page]] = {
    "": Page(view=pages.overview),
    "passkeys": Page(view=factor_pages.passkeys),
    "new-passkey": Page(
        view=factor_pages.new_passkey, submit=_add_passkey, leads_to="passkeys", says="passkey", fresh=True
    ),
    "app": Page(view=factor_pages.app, submit=_set_up_app, says="code", fresh=True),
    "app/qr.svg": Page(view=_qr_code, fresh=True, part_of="app"),
    "remove-app": Page(view=factor_pages.remove_app, submit=_remove_app, fresh=True),
    "password": Page(view=factor_pages.password, submit=_change_password, says="password", fresh=True),
    "codes": Page(view=factor_pages.codes, submit=_replace_codes, says="kept", fresh=True),
    "remove-codes": Page(view=factor_pages.remove_codes, submit=_remove_codes, fresh=True),
    "browsers": Page(view=pages.browsers, submit=_end, leads_to="browsers"),
    "sign-ins": Page(view=pages.sign_ins),
    "language": Page(view=pages.language, submit=_choose_language, says="language"),
}
"""by the path after `/account/`"""


def page(path: str) -> Page | None:
    """The page at a path after `/account/`; None if there is none."""
    return _ONE_PASSKEY if _PASSKEY.fullmatch(path) else _PAGES.get(path)
