"""Back and Reload in Chromium: nothing is sent again, and nothing is lost (D73)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from playwright.sync_api import Page, expect

from corpid.rules.directory.records import Operator
from tests.browser.stage import Stage, Visitor, follow, shows, staged, with_and_without_script
from tests.browser.test_enrolment import invited
from tests.browser.test_signing_in_again import ACME, in_portal
from tests.developer.scene import developer
from tests.manage.scene import appoint
from tests.sign_in.world import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full


NOT_RIGHT = "The user name or password is not right."


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A demo's provider, so that developer mode has its pages."""
    with staged(developer=developer(), operators_need_passkey=False) as made:
        yield made


def at_sign_in(visitor: Visitor, stage: Stage) -> Page:
    """A tab at the first page of a sign-in, as the only sign-in of the last hour."""
    stage.world.clock.pass_(3600)
    url, _ = stage.begin()
    page = visitor.tab()
    page.goto(url)
    return page


def wrong_password(page: Page) -> None:
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password", exact=True).fill("wrong horse battery")
    page.get_by_role("button", name="Continue", exact=True).click()
    expect(page.get_by_text(NOT_RIGHT).first).to_be_visible()


def refused(stage: Stage, action: str) -> int:
    return [each.outcome for each in stage.wait_for(stage.world.audit(action))].count("refused")


@with_and_without_script
def test_a_page_with_an_error_is_reloaded_without_a_question_and_without_an_attempt(
    visitor: Visitor, stage: Stage
) -> None:
    """D73: one typed and five reloads locked the account before."""
    page, before = at_sign_in(visitor, stage), refused(stage, "sign_in.password")
    wrong_password(page)
    for _ in range(5):
        answer = page.reload()
        assert answer is not None
        assert (answer.request.method, answer.status) == ("GET", 200)
        expect(page.get_by_text(NOT_RIGHT).first).to_be_visible()
        expect(page.get_by_label("User name")).to_have_value("alice")
    assert refused(stage, "sign_in.password") == before + 1
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Continue", exact=True).click()
    shows(page, "Enter your 6-digit code")


@with_and_without_script
def test_back_from_the_forgotten_password_finds_the_page_that_was_left(visitor: Visitor, stage: Stage) -> None:
    """D73: not the browser's "Confirm form resubmission"; one step further back stands the page before the error."""
    page = at_sign_in(visitor, stage)
    wrong_password(page)
    page.get_by_role("link", name="Forgot your password").click()
    shows(page, "Choose a new password")
    page.go_back()
    expect(page.get_by_text(NOT_RIGHT).first).to_be_visible()
    page.go_back()
    shows(page, "Sign in")
    expect(page.get_by_text(NOT_RIGHT)).to_have_count(0)


@with_and_without_script
def test_a_wrong_code_is_reloaded_and_shown_in_another_language(visitor: Visitor, stage: Stage) -> None:
    """D73, D45."""
    page, before = at_sign_in(visitor, stage), refused(stage, "sign_in.second_factor")
    visitor.password(page)
    visitor.code(page, "000000")
    expect(page.get_by_text("is not right").first).to_be_visible()
    page.reload()
    page.get_by_role("link", name="Bahasa Melayu").click()
    expect(page.locator("html")).to_have_attribute("lang", "ms")
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)
    page.reload()
    expect(page.locator("[aria-invalid=true]")).to_have_count(1)
    assert refused(stage, "sign_in.second_factor") == before + 1


@with_and_without_script
def test_two_tabs_and_a_restored_one_show_the_error_and_send_nothing(visitor: Visitor, stage: Stage) -> None:
    """D73: the address is all that a restored tab has."""
    page, before = at_sign_in(visitor, stage), refused(stage, "sign_in.password")
    wrong_password(page)
    restored = visitor.tab()
    restored.goto(page.url)
    expect(restored.get_by_text(NOT_RIGHT).first).to_be_visible()
    expect(restored.get_by_label("User name")).to_have_value("alice")
    assert refused(stage, "sign_in.password") == before + 1
    visitor.password(restored)
    shows(restored, "Enter your 6-digit code")
    page.reload()
    shows(page, "Enter your 6-digit code")
    expect(page.get_by_text(NOT_RIGHT)).to_have_count(0)


@with_and_without_script
def test_after_success_back_and_reload_lead_on(visitor: Visitor, stage: Stage) -> None:
    """D15, D73: what is done stays done."""
    page, before = at_sign_in(visitor, stage), refused(stage, "sign_in.password")
    visitor.password(page)
    shows(page, "Enter your 6-digit code")
    page.reload()
    shows(page, "Enter your 6-digit code")
    page.go_back()
    page.reload()
    shows(page, "Enter your 6-digit code")
    assert refused(stage, "sign_in.password") == before


@with_and_without_script
def test_an_error_outlives_its_sign_in_by_nothing(visitor: Visitor, stage: Stage) -> None:
    """D73: after the interaction has expired, Reload says so and offers the way back."""
    page = at_sign_in(visitor, stage)
    wrong_password(page)
    stage.world.clock.pass_(601)
    page.reload()
    expect(page.get_by_text(NOT_RIGHT)).to_have_count(0)
    expect(page.get_by_label("User name")).to_have_count(0)


class Form(NamedTuple):
    """A form that is not accepted: its page, what is typed, and what stands there afterwards."""

    typed: dict[str, str]
    """by label"""
    button: str
    error: str
    path: str = ""
    """under base_url; empty: a link of its own"""
    kept: bool = True
    """whether what was typed is no secret"""


FORMS = {
    "portal": Form(
        {"Name": "Grace Ho", "E-mail address": "not an address"},
        "Send invitation",
        "Enter an e-mail address such as",
        "manage/invite",
    ),
    "account": Form(
        {"New e-mail address": "not an address"}, "Send the code", "Enter an e-mail address such as", "account/email"
    ),
    "console": Form(
        {"Name": "Grace Trading", "Country": "sg"},
        "Add the organisation",
        "two capital letters",
        "console/new-organisation",
    ),
    "developer": Form(
        {"Name of the person": "Grace Ho"},
        "Make this person",
        "Enter the identifier of the organisation.",
        "developer/anybody",
    ),
    "enrolment": Form({"New password": "too short"}, "Use this password", "Choose a password of at least", kept=False),
}


def at_form(visitor: Visitor, stage: Stage, form: Form) -> Page:
    """A tab at the page of a form, of a person who may open it."""
    stage.world.clock.pass_(3600)
    page = visitor.tab()
    if not form.path:
        follow(page, invited(stage, f"nina{len(stage.world.people)}"))
        page.get_by_role("button", name="Continue").click()
        return page
    stage.wait_for(appoint(stage.world, ACME))
    stage.wait_for(stage.world.write(Operator(user_id="id-alice", level="operator")))
    page.goto(f"{stage.world.base}/{form.path}")
    if not form.path.startswith("developer"):
        visitor.password(page)
        visitor.code(page)
    page.wait_for_url(f"**/{form.path}")
    return page


@with_and_without_script
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_form_keeps_what_was_typed_through_reload_and_back(visitor: Visitor, stage: Stage, form: Form) -> None:
    """D73: of each site; a secret is not there again, and what is wrong with it is."""
    page = at_form(visitor, stage, form)
    for label, text in form.typed.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name=form.button).click()
    expect(page.get_by_text(form.error).first).to_be_visible()

    def stands_there() -> None:
        expect(page.get_by_text(form.error).first).to_be_visible()
        for label, text in form.typed.items():
            expect(page.get_by_label(label, exact=True)).to_have_value(text if form.kept else "")

    for _ in range(2):
        answer = page.reload()
        assert answer is not None
        assert (answer.request.method, answer.status) == ("GET", 200)
        stands_there()
    page.goto(f"{stage.world.base}/enrol")
    page.go_back()
    stands_there()


@with_and_without_script
def test_a_check_page_is_reloaded_and_writes_nothing_until_it_is_confirmed(visitor: Visitor, stage: Stage) -> None:
    """D73."""
    stage.world.clock.pass_(3600)
    page = in_portal(visitor, stage, "invite/several")
    page.get_by_label("People").fill(f"Lin Wei, lin{int(stage.world.clock())}@example.com")
    page.get_by_role("button", name="Check").click()
    shows(page, "Invite 1 person?")
    page.reload()
    shows(page, "Invite 1 person?")
    page.go_back()
    page.go_forward()
    shows(page, "Invite 1 person?")
    page.get_by_role("button", name="Send 1 invitation").click()
    expect(page.get_by_text("Lin Wei").first).to_be_visible()
    page.reload()
    expect(page.get_by_text("Lin Wei").first).to_be_visible()
