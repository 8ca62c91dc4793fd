"""Pages that any stranger can open leave nothing in the store (D34)."""

from __future__ import annotations

from contextlib import closing

from tests.enrolment import newcomer
from tests.postbox import Postbox
from tests.sign_in.world import World, new_world
from tests.world.short_lived import ShortLived


def kept(made: World) -> list[str]:
    """The kinds of the short-lived entries."""
    with closing(ShortLived(made.directory)) as short_lived:
        return sorted(kind for kind, *_ in short_lived.entries())


async def test_a_forgotten_password_a_link_the_account_and_signing_out_keep_nothing_of_who_looks() -> None:
    """D34: each gives a new browser a cookie, which proves itself."""
    async with new_world(postbox=Postbox()) as made:
        await newcomer.nina(made)
        link = await newcomer.link(made)
        for url in (f"{made.base}/recover", f"{made.base}/account", f"{made.base}/sign-out", f"{made.base}/", link):
            for method in ("GET", "HEAD"):
                browser = await made.browser()
                answer = await browser.http.request(method, url)
                assert answer.status_code in {200, 303}, url
        assert kept(made) == []


async def test_a_form_of_such_a_page_still_needs_the_cookie_that_came_with_it() -> None:
    """D35: bound to the browser, of which nothing is stored."""
    async with new_world(postbox=Postbox()) as made:
        browser, other = await made.browser(), await made.browser()
        for each in (browser, other):
            await each.open(f"{made.base}/recover")
        assert kept(made) == []
        other.http.cookies.clear()
        for cookie in browser.http.cookies.jar:
            other.http.cookies.jar.set_cookie(cookie)
        await other.fill_and_submit(user_name="nina")
        assert other.page.heading == "This sign-in cannot continue"
        await browser.fill_and_submit(user_name="nina")
        assert browser.page.heading == "Check your e-mail"
