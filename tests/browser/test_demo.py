"""The first minutes of a newcomer: `corpid demo`, the link that it prints, and what there is to see.

`make pictures` writes those of the README to docs/images.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.stage import NOBODY_MINDS, shows
from tests.browser.test_passkeys import NO_AUTOFILL, Holder

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full


PERSON = "Tan Wei Ling"
FIRST_PORT = "18400"
CUT = """() => [...document.querySelectorAll(".persons .secret")].filter(each => {
    each.style.overflowWrap = "normal";
    return each.scrollWidth > each.clientWidth;
}).map(each => each.innerText)"""


@contextmanager
def demonstrated(data: Path, *options: str) -> Iterator[str]:
    """What the command printed; it runs until the context is left."""
    command = [str(Path(sys.executable).with_name("corpid")), "demo", "--port", FIRST_PORT, *options]
    environment = {**os.environ, "COLUMNS": "160", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--data-dir", str(data)], stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        printed = ""
        for line in child.stdout:
            printed += line
            if "Ctrl-C" in line:
                break
        try:
            yield printed
        finally:
            child.send_signal(signal.SIGINT)
            rest = child.stdout.read()
            assert child.wait(30) == 0, rest


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demonstrated(tmp_path_factory.mktemp("demo")) as printed:
        yield printed


@pytest.fixture(scope="module")
def legacy_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demonstrated(tmp_path_factory.mktemp("legacy"), "--generation", "legacy") as printed:
        yield printed


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    complaints: list[str] = []

    def listen(message: Any) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(NOBODY_MINDS):
            complaints.append(message.text)

    with chromium.new_context(viewport={"width": 1280, "height": 1100}) as context:
        context.set_default_timeout(15_000)
        tab = context.new_page()
        tab.on("console", listen)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        yield tab
    assert complaints == []


def link(printed: str) -> str:
    found = re.search(r"Open\s+(http://127\.0\.0\.1:\d+)", printed)
    assert found, printed
    return found[1]


def listed(page: Page, label: str, person: str = PERSON) -> str:
    """What the start page shows for the person: User name, Password or Code."""
    card = page.locator(".persons li").filter(has_text=person)
    return card.locator("div").filter(has_text=label).locator(".secret").inner_text()


def sign_in(page: Page, person: str) -> None:
    """From the start page, with its options as they stand, through the provider's pages up to the choice of entity."""
    user_name, password, code = (listed(page, label, person) for label in ("User name", "Password", "Code"))
    page.get_by_role("button", name="Sign in with these").click()
    page.get_by_label("User name").fill(user_name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Code", exact=True).fill(code)
    page.get_by_role("button", name="Continue").click()


def take(page: Page, path: Path, first: str, last: str, *, margin: int = 32) -> None:
    """A picture from the upper edge of one element to the lower edge of another, on one screen."""
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.evaluate("scrollTo(0, 0)")
    begin, end = page.locator(first).first.bounding_box(), page.locator(last).first.bounding_box()
    assert begin is not None
    assert end is not None
    left, right = min(begin["x"], end["x"]), max(begin["x"] + begin["width"], end["x"] + end["width"])
    page.screenshot(
        path=path,
        clip={
            "x": max(0, left - margin),
            "y": max(0, begin["y"] - margin / 2),
            "width": min(1280, right - left + 2 * margin),
            "height": end["y"] + end["height"] - begin["y"] + margin,
        },
    )


def test_the_command_prints_the_link_and_the_persons(demo: str) -> None:
    """The printed codes and passwords are those of the start page."""
    assert link(demo)
    for name in ("rina", "wei.ling", "nadia"):
        assert re.search(rf"{re.escape(name)}.*\d{{6}}", demo), demo


def test_a_newcomer_logs_in_and_sees_what_a_relying_party_gets(demo: str, page: Page, pictures: Path) -> None:
    """From the link to the tables, with what stands on the pages alone."""
    page.goto(link(demo))
    user_name, password, code = (listed(page, label) for label in ("User name", "Password", "Code"))
    page.get_by_role("button", name="Sign in with these").click()
    expect(page.get_by_text("Your yearly return for 2026")).to_be_visible()
    assert page.url.startswith("http://localhost:")
    take(page, pictures / "sign-in.png", ".brand", ".card")
    page.get_by_label("User name").fill(user_name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Code", exact=True).fill(code)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="Choose who you act for").wait_for()
    page.locator(".choice label").first.click()
    take(page, pictures / "choose-entity.png", ".brand", ".card")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Agree and continue").click()
    page.get_by_role("heading", name="You are signed in").wait_for()
    assert page.url.startswith(link(demo))
    assert "code=" not in page.url
    assert page.get_by_text(f"{PERSON} acts for").is_visible()
    assert page.get_by_role("table").count() > 2
    take(page, pictures / "demo-result.png", "h1", ".panel")
    for text in ("What this person may do", "ID token", "Token", "Userinfo"):
        assert page.get_by_text(text).first.is_visible(), text
    page.get_by_role("button", name="Sign out here").click()
    shows(page, "A service for organisations")


def test_one_click_signs_a_test_person_in(demo: str, page: Page) -> None:
    """D66: from the start page to the tables, without password and code."""
    page.goto(link(demo))
    page.get_by_role("button", name="Sign in with these").click()
    page.get_by_role("button", name="Rina Example").click()
    page.get_by_role("button", name="Agree and continue").click()
    page.get_by_role("heading", name="You are signed in").wait_for()
    assert page.get_by_text("Rina Example acts for").is_visible()


def test_the_cards_keep_their_codes_current_and_are_copied_with_one_click(demo: str, page: Page) -> None:
    """D66: the seconds that a code has left, the next code without a reload, and a button for each secret."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.clock.install()
    page.goto(link(demo))
    card = page.locator(".persons li").filter(has_text=PERSON)
    assert re.fullmatch(r"\d+ s", card.locator("[data-seconds]").inner_text())
    page.get_by_role("button", name=f"Copy password of {PERSON}").click()
    expect(page.get_by_text(f"Copied: password of {PERSON}")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == listed(page, "Password")
    page.route("**/codes", lambda route: route.fulfill(json={"seconds_left": 17, "codes": {"wei.ling": "000042"}}))
    page.clock.run_for(31_000)
    expect(card.locator("[data-code]")).to_have_text("000042")
    expect(card.locator("[data-seconds]")).to_have_text(re.compile(r"^1?\d s$"))


def test_who_cancels_sees_what_the_relying_party_is_told(demo: str, page: Page) -> None:
    """D17: and can try again."""
    page.goto(link(demo))
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="The provider refused").wait_for()
    assert page.get_by_text("access_denied").first.is_visible()
    page.get_by_role("link", name="Try again").click()
    shows(page, "A service for organisations")


def test_the_demo_does_not_scroll_sideways_on_a_small_screen(demo: str, page: Page) -> None:
    """WCAG 1.4.10: and what one has to type there is broken between words alone."""
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(link(demo))
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize(
    ("mode", "person"),
    [("query", "Rina Example"), ("fragment", "Arjun Sample"), ("form_post", "Greta Müller-Beispiel")],
)
def test_every_response_mode_of_legacy_ends_at_the_tables(legacy_demo: str, page: Page, mode: str, person: str) -> None:
    """D37, D38: in the address, behind its fragment sign by a script, or as a form that brings no cookie of ours."""
    page.goto(link(legacy_demo))
    page.get_by_label("response_mode").select_option(mode)
    sign_in(page, person)
    page.get_by_role("heading", name="You are signed in").wait_for()
    assert page.url.startswith(f"{link(legacy_demo)}/sign-ins/")
    assert "#" not in page.url
    assert page.get_by_text(f"{person} acts for").is_visible()
    assert page.get_by_role("table").count() >= 1
    for text in ("authorization-info verified", "bearer token", "entityInfo."):
        assert page.get_by_text(text).first.is_visible(), text


def test_who_cancels_in_legacy_is_told_by_form_as_well(legacy_demo: str, page: Page) -> None:
    """D17, D37."""
    page.goto(link(legacy_demo))
    page.get_by_label("response_mode").select_option("form_post")
    page.get_by_role("button", name="Sign in with these").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="The provider refused").wait_for()
    assert page.get_by_text("access_denied").first.is_visible()


def test_an_answer_that_was_posted_belongs_to_the_browser_that_began(
    legacy_demo: str, page: Page, chromium: Browser
) -> None:
    """RFC 6749 §10.12: another browser that brings somebody's answer sees nothing of it."""
    page.goto(link(legacy_demo))
    page.get_by_label("response_mode").select_option("form_post")
    with page.expect_request(re.compile(r"[?&]state=")) as asked:
        page.get_by_role("button", name="Sign in with these").click()
    state = parse_qs(urlsplit(asked.value.url).query)["state"][0]
    with chromium.new_context() as context:
        answer = context.request.post(f"{link(legacy_demo)}/callback", form={"state": state, "error": "access_denied"})
        assert answer.status == 404
        assert "This sign-in was not started in this browser" in answer.text()


@pytest.mark.parametrize(
    ("generation", "shown"), [("intermediate", "h2#entity-info"), ("fapi2", ".badge:text('plain JSON')")]
)
def test_the_other_generations_are_shown_too(tmp_path: Path, page: Page, generation: str, shown: str) -> None:
    """Spec "Generations"."""
    with demonstrated(tmp_path / "demo", "--generation", generation) as printed:
        assert f"generation {generation}" in printed
        page.goto(link(printed))
        sign_in(page, "Rina Example")
        page.get_by_role("button", name="Agree and continue").click()
        page.get_by_role("heading", name="You are signed in").wait_for()
        assert page.locator(shown).is_visible()


def test_one_browser_signs_in_at_two_issuers(tmp_path: Path, page: Page) -> None:
    """D34, D62: of one host, each with a cookie of its own, so that neither ends what the other began."""
    with demonstrated(tmp_path / "demo", "--issuers", "current,legacy") as printed:
        websites = re.findall(r"Open\s+(http://127\.0\.0\.1:\d+)", printed)
        for website, person in zip(websites, ("Rina Example", "Arjun Sample"), strict=True):
            page.goto(website)
            sign_in(page, person)
            if website == websites[0]:
                page.get_by_role("button", name="Agree and continue").click()
            page.get_by_role("heading", name="You are signed in").wait_for()
            assert page.get_by_text(f"{person} acts for").is_visible()
        assert {"corpid", "corpid-legacy"} <= {each.get("name") for each in page.context.cookies()}


def test_a_newcomer_sets_up_a_passkey_and_uses_it_at_once(demo: str, page: Page) -> None:
    """D46: from the demo's own page, without a word about links."""
    Holder(page)
    page.add_init_script(NO_AUTOFILL)
    page.goto(link(demo))
    page.get_by_role("button", name=f"Set up a passkey for {PERSON}").click()
    page.get_by_role("heading", level=1, name="Set up your sign-in").wait_for()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Set up a passkey").click()
    page.get_by_role("heading", level=1, name="Your sign-in is set up").wait_for()
    page.goto(link(demo))
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_role("heading", level=1, name="Choose who you act for").wait_for()
    page.goto(f"{link(demo)}/mail")
    # The directory of the demo says that she reads Chinese.
    page.locator("h2[lang=zh-Hans]").get_by_text("您的登录方式已设置").wait_for()
