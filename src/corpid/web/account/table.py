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
    """the page that it stands in, which is opened in its place"""


async def _add_passkey(turn: AccountContext) -> None:
    await own_factors.add(turn.context, turn.visit, answer=turn.form.get("passkey", ""))


async def _change_passkey(turn: AccountContext) -> None:
    visit = turn.visit
    shown = await factor_pages.this_passkey(turn)
    if turn.form.get("decision") == "remove":
        await own_factors.remove(turn.context, visit, shown)
    else:
        await own_factors.rename(turn.context, visit, shown, name=turn.form.get("name", ""))


async def _qr_code(turn: AccountContext) -> Response:
    return app_key.picture(await factor_pages.app_link(turn))


async def _set_up_app(turn: AccountContext) -> None:
    await own_factors.set_up_app(turn.context, turn.visit, code=turn.form.get("code", ""))


async def _remove_app(turn: AccountContext) -> None:
    await own_factors.remove_app(turn.context, turn.visit)


async def _change_password(turn: AccountContext) -> None:
    password = turn.form.get("password", "")
    await own_factors.change_password(turn.context, turn.visit, password=password)


async def _replace_codes(turn: AccountContext) -> None:
    shown, kept = turn.form.get("step", ""), turn.form.get("kept") == "yes"
    await own_factors.replace_codes(turn.context, turn.visit, shown=shown, kept=kept)


async def _remove_codes(turn: AccountContext) -> None:
    await own_factors.remove_codes(turn.context, turn.visit)


async def _end(turn: AccountContext) -> None:
    visit = turn.visit
    if turn.form.get("decision") == "others":
        await activity.end_others(turn.context, visit)
    else:
        await activity.end(turn.context, visit, name=turn.form.get("browser", ""))


async def _choose_language(turn: AccountContext) -> None:
    wanted = turn.form.get("language", "")
    if wanted not in {each.tag for each in LANGUAGES}:
        raise Rejected(phrase("Choose a language."))
    await activity.choose_language(turn.context, turn.visit, language=wanted)


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
