"""A person with a link, and what they do with it."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from corpid.flows.account import links
from corpid.rules.authentication import totp
from corpid.rules.authentication.records import Credentials, LinkPurpose, NewLink
from corpid.rules.directory.access import CommandLine
from tests.authenticator import Authenticator
from tests.sign_in.world import World, entity

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser
    from tests.postbox import Postbox

NINA: Final = "id-nina"
NEW: Final = "six green bicycles in a row"
MAILBOX: Final = "nina@example.org"
SET_UP: Final = "Your sign-in is set up"
GONE: Final = "This link no longer works"
ELSEWHERE: Final = "You started this in another browser"


async def nina(made: World, user_name: str = "nina") -> None:
    """A new person, who has nothing to sign in with."""
    own = entity("200000009Z", "Nina's Own")
    await made.person(user_name, own, name="Nina Novak", email=MAILBOX)
    await made.write(Credentials(user_id=f"id-{user_name}"))


async def new_link(made: World, purpose: LinkPurpose = "invitation", user_id: str = NINA) -> NewLink:
    """A new link as its person gets it."""
    user = await made.provider.registry.directory.user(user_id)
    return await links.make_link(
        made.provider.registry,
        user,
        purpose,
        actor=CommandLine(by="lee@node1"),
        base_url=made.base,
        now=made.clock(),
        new_id=made.provider.new_id,
    )


async def link(made: World, purpose: LinkPurpose = "invitation", user_id: str = NINA) -> str:
    """The address of a new link."""
    return (await new_link(made, purpose, user_id)).url


async def followed(browser: Browser, url: str) -> None:
    """Open a link as a browser with script does: its page posts what stands in the fragment."""
    await browser.open(url)
    form = browser.page.form_with("code", "followed")
    assert form is not None, browser.page.text
    form.fill("code", urlsplit(url).fragment)
    form.fill("followed", "yes")
    await browser.submit(form)


async def opened(made: World, url: str) -> Browser:
    """A new browser that has opened a link and pressed Continue."""
    browser = await made.browser()
    await followed(browser, url)
    await browser.submit(browser.page.forms[0])
    return browser


async def password(browser: Browser, chosen: str = NEW) -> str:
    """Type a password; the heading that is shown then."""
    await browser.fill_and_submit(password=chosen)
    return browser.page.heading


def secret(browser: Browser) -> str:
    """The key that the page of the app shows, as somebody types it."""
    assert browser.response is not None
    found = re.search(r'class="key"[^>]*>([A-Z2-7 ]+)<', browser.response.text)
    assert found is not None, browser.page.text
    return found[1].replace(" ", "")


async def app(made: World, browser: Browser) -> str:
    """Set up an app; its secret."""
    key = secret(browser)
    await browser.fill_and_submit(code=totp.code_at(key, made.clock()))
    return key


def codes(browser: Browser) -> list[str]:
    """The recovery codes that are shown."""
    assert browser.response is not None
    return re.findall(r"<li><code>([a-z2-7-]+)</code>", browser.response.text)


async def kept(browser: Browser) -> str:
    """Say that the recovery codes are kept."""
    form = browser.page.form_with("kept")
    assert form is not None, browser.page.text
    form.fill("kept", "yes")
    await browser.submit(form)
    return browser.page.heading


def made_passkey(made: World, browser: Browser, key: Authenticator, **changes: Any) -> str:
    """What the script of the page would send for a new passkey."""
    return key.make(options(browser), **{"origin": origin(made), **changes})


def options(browser: Browser) -> str:
    """What the page gives to the script."""
    assert browser.response is not None
    found = re.search(r'data-options="([^"]*)"', browser.response.text)
    assert found is not None, "the page has no passkey"
    return html.unescape(found[1])


def origin(made: World) -> str:
    parts = urlsplit(made.base)
    return f"{parts.scheme}://{parts.netloc}"


def new_key(user_id: str = NINA) -> Authenticator:
    return Authenticator(user_handle=user_id.encode())


async def credentials(made: World, user_id: str = NINA) -> Credentials:
    """What is stored."""
    found: Credentials = await made.provider.registry.factors.credentials(user_id)
    return found


def link_in(postbox: Postbox) -> str:
    """The address in the newest e-mail."""
    found = re.search(r"https?://\S+/enrol#\S+", postbox.emails[-1].text)
    assert found is not None, postbox.emails[-1].text
    return found[0]


def status(browser: Browser) -> int:
    assert browser.response is not None
    return browser.response.status_code


def shown(browser: Browser) -> httpx.Response:
    assert browser.response is not None
    return browser.response
