"""The language of the account: offered once the first factor was right, and before in its browser (docs/accessibility.md, D28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from tests.postbox import Postbox
from tests.sign_in import factors
from tests.sign_in.factors import choose
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

LINK: Final = "继续使用简体中文 / Continue in 简体中文"
MEI: Final = "id-mei"


async def mei(made: World, *, language: str = "zh-Hans", email: str = "") -> None:
    """A person whose account speaks Chinese."""
    await made.person("mei", name="Mei Lin", language=language, email=email)


async def at_second_factor(made: World, browser: Browser | None = None, **asked: str) -> Browser:
    made.clock.pass_(60)
    browser = browser or await made.browser()
    await walk_to(made, browser, await made.relying_party(**asked))
    await made.password(browser, made.people["mei"])
    return browser


async def follow(browser: Browser) -> None:
    """Press the link."""
    (target,) = [target for target, text in browser.page.links if text == LINK]
    await browser.open(urljoin(browser.url, target), site="same-origin")


def spoken(browser: Browser) -> str:
    assert browser.response is not None
    return str(browser.response.headers["content-language"])


async def test_the_accounts_language_is_offered_after_the_password_and_not_forced(made: World) -> None:
    """In that language and in the page's; the page goes on in its own until the link is pressed."""
    await mei(made)
    browser = await at_second_factor(made)
    assert (spoken(browser), LINK in browser.page.text) == ("en", True)
    assert browser.response is not None
    assert 'lang="zh-Hans" dir="ltr">继续使用简体中文</span>' in browser.response.text
    where = browser.url
    await follow(browser)
    assert (browser.url, spoken(browser), "Continue in" in browser.page.text) == (where, "zh-Hans", False)
    await made.code(browser, made.people["mei"])
    assert spoken(browser) == "zh-Hans"


async def test_it_is_offered_beside_what_the_relying_party_asked_for(made: World) -> None:
    """OpenID Connect Core §3.1.2.1: `ui_locales` is the client's wish, not the person's."""
    await mei(made)
    browser = await at_second_factor(made, ui_locales="ms")
    assert (spoken(browser), "继续使用简体中文" in browser.page.text) == ("ms", True)


async def test_who_has_picked_the_pages_language_is_not_asked(made: World) -> None:
    """On this page, or on another one before."""
    await mei(made)
    browser = await at_second_factor(made)
    await browser.open(f"{made.base}/language/en", site="same-origin")
    assert LINK not in browser.page.text
    assert LINK not in (await at_second_factor(made, browser)).page.text


async def test_a_page_in_the_accounts_language_and_an_account_of_another_one_offer_nothing(made: World) -> None:
    await mei(made)
    assert "继续使用" not in (await at_second_factor(made, ui_locales="zh-CN")).page.text
    await mei(made, language="tlh")
    assert "Continue in" not in (await at_second_factor(made)).page.text


async def test_the_browsers_last_language_is_offered_before_the_first_factor(made: World) -> None:
    """docs/accessibility.md: also after signing out, until somebody whose account speaks another one signs in there."""
    await mei(made)
    browser = await at_second_factor(made)
    await made.code(browser, made.people["mei"])
    await walk_to(made, browser, await made.relying_party())
    assert (spoken(browser), LINK in browser.page.text, "mei" in browser.page.text) == ("en", True, False)
    await browser.open(f"{made.base}/sign-out")
    await browser.submit(browser.page.forms[0])
    await walk_to(made, browser, await made.relying_party())
    assert LINK in browser.page.text
    await made.password(browser, made.people["alice"])
    assert LINK not in browser.page.text
    await made.code(browser, made.people["alice"])
    await walk_to(made, browser, await made.relying_party())
    assert LINK not in browser.page.text


async def test_nobody_learns_an_accounts_language_by_its_name(made: World) -> None:
    """D28: the page after a wrong password is the same for every account."""
    await mei(made)
    texts = set()
    for name in ("mei", "alice", "nobody"):
        stranger = await made.browser()
        await walk_to(made, stranger, await made.relying_party())
        await stranger.fill_and_submit(user_name=name, password="not theirs")
        assert "Continue in" not in stranger.page.text
        texts.add(stranger.page.text)
    assert len(texts) == 1


async def test_another_browser_and_another_person_are_offered_nothing_of_it(made: World) -> None:
    """D34: neither with the address nor after Mei has left the page to somebody else."""
    await mei(made)
    browser = await at_second_factor(made)
    other = await made.browser()
    await other.open(browser.url)
    assert "Continue in" not in other.page.text
    await browser.fill_and_submit("decision", button="other_account")
    assert "Continue in" not in browser.page.text
    await made.password(browser, made.people["alice"])
    assert LINK not in browser.page.text


async def test_a_passkey_brings_the_offer_to_the_next_page_and_the_account_makes_it_too(made: World) -> None:
    await mei(made)
    browser = await factors.at_sign_in(made)
    await browser.fill_and_submit(
        passkey=factors.answer_of(made, browser, await factors.passkey(made, MEI, count=None))
    )
    assert LINK in browser.page.text
    await browser.open(f"{made.base}/account")
    await browser.fill_and_submit(user_name="mei", password=PASSWORD)
    made.clock.pass_(60)
    await made.code(browser, made.people["mei"])
    assert (browser.page.heading, LINK in browser.page.text) == ("Your account", True)


async def test_a_code_by_e_mail_speaks_as_the_page_that_was_picked_in_a_known_browser() -> None:
    """D47: elsewhere as the account, so that who has only the password does not choose what the owner reads."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await mei(made, email="mei@example.org")
        browser = await at_second_factor(made)
        await browser.open(f"{made.base}/language/ms", site="same-origin")
        await choose(browser, "email")
        await made.provider.background_tasks.settle()
        assert postbox.emails[-1].language == "zh-Hans"
        await post(browser, "way", {**form_of(browser, "step"), "decision": "app"})
        await browser.reload()
        await made.code(browser, made.people["mei"])
        again = await at_second_factor(made, browser)
        await choose(again, "email")
        assert postbox.emails[-1].language == "zh-Hans", "it was picked in another sign-in"
        again = await at_second_factor(made, browser)
        await again.open(f"{made.base}/language/ms", site="same-origin")
        await choose(again, "email")
        assert postbox.emails[-1].language == "ms"
