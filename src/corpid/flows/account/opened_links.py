"""Links that a browser has opened by their code.

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
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import Link
    from corpid.rules.directory.records import User


class NotOpened(Exception):
    """This browser has not opened such a link, or did so too long ago."""


async def open_link(provider: Provider, caller: Caller, browser: Browser, code: str) -> str:
    """Open a link in a browser; the id by which this browser sees it, the same each time.

    `signing_keys.ring` was awaited before. Raises ValueError for what cannot be a code, Throttled, NotHere and
    StoreUnavailable. Source: D34, D47
    """
    link_hash = link_codes.hashed(code)
    await throttle.attempt_link_code(provider, caller)
    await enrolments.look(provider, caller, link_hash)
    opened_id = provider.signing_keys.mac("opened-link", browser.browser_id, link_hash)
    kind, value = namespaces.OPENED_LINK, f"{browser.browser_id} {link_hash}".encode()
    async with provider.transient.unit(caller.now) as unit:
        await throttle.link_code_accepted(provider, unit, caller)
        await unit.put(kind.name, _key(provider, opened_id), value, kind.seconds)
    return opened_id


async def opened(provider: Provider, caller: Caller, browser: Browser | None, opened_id: str) -> tuple[Link, User]:
    """A link that this browser has opened, and whose it is; spends nothing. Raises NotOpened, NotHere (D34, D50)."""
    value = await provider.transient.get(namespaces.OPENED_LINK.name, _key(provider, opened_id), now=caller.now)
    browser_id, _, link_hash = (value or b"").decode().partition(" ")
    if browser is None or browser.browser_id != browser_id:
        raise NotOpened
    return await enrolments.look(provider, caller, link_hash)


def _key(provider: Provider, opened_id: str) -> bytes:
    return namespaces.key(namespaces.OPENED_LINK, provider.policy.base_url, opened_id)
