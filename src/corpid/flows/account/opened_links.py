"""Links that a browser has opened with their code.

Opening binds the link to no browser, since programs that check e-mail may run a page's script, too: only the button
of the page that follows begins an enrolment. What names an opened link in an address works in its browser alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import namespaces
from corpid.flows.account import enrolments
from corpid.flows.authentication import throttle
from corpid.rules.authentication import link_codes

if TYPE_CHECKING:
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.ports import Link
    from corpid.rules.directory.records import User


class NotOpened(Exception):
    """This browser has not opened such a link, or too long ago."""


async def open_link(context: RequestContext, browser: Browser, code: str) -> str:
    """Open a link in a browser.

    The id by which this browser sees it, the same each time.

    Raises ValueError for what cannot be a code, Throttled, NotHere and
    StoreUnavailable. Source: D34, D47
    """
    link_hash = link_codes.hashed(code)
    await throttle.attempt_link_code(context)
    await enrolments.look(context, link_hash)
    opened_id = context.keys.mac("opened-link", browser.browser_id, link_hash)
    async with context.provider.transient.unit(context.now) as unit:
        await throttle.link_code_accepted(context, unit)
        await _entry(context, opened_id).put(unit, f"{browser.browser_id} {link_hash}")
    return opened_id


async def opened(context: RequestContext, browser: Browser | None, opened_id: str) -> tuple[Link, User]:
    """The opened link with this identifier, and its owner.

    Spends nothing. Raises NotOpened, NotHere. Source: D34, D50
    """
    found = await _entry(context, opened_id).look(context.provider.transient, now=context.now)
    browser_id, _, link_hash = (found or "").partition(" ")
    if browser is None or browser.browser_id != browser_id:
        raise NotOpened
    return await enrolments.look(context, link_hash)


def _entry(context: RequestContext, opened_id: str) -> Entry[str]:
    return namespaces.OPENED_LINK.entry(context.provider.policy.base_url, opened_id)
