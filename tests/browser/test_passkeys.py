"""Passkeys in Chromium, with its virtual authenticator (WebAuthn Level 3, D46)."""

from __future__ import annotations

import pytest
from playwright.sync_api import CDPSession, Page, expect

from corpid.rules.authentication.records import Credentials
from tests.browser.stage import WITHOUT_SCRIPT, Stage, Visitor, heading
from tests.sign_in import factors
from tests.sign_in.world import PASSWORD, entity

pytestmark = pytest.mark.full

AUTHENTICATOR = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip
NO_AUTOFILL = "PublicKeyCredential.isConditionalMediationAvailable = () => Promise.resolve(false);"
NO_PASSKEYS = "delete window.PublicKeyCredential;"
NOTED = """
  window.asked = [];
  const get = navigator.credentials.get;
  navigator.credentials.get = function (options) {
    window.asked.push(options.mediation ?? "the button");
    return get.call(this, options);
  };
"""
BUTTON = "Sign in with a passkey"
RINA = "id-rina"
SECOND = "Sign in with your passkey"
CHOICE = "Choose who you act for"


class Holder:
    """A person's device: Chromium's virtual authenticator, behind one page."""

    def __init__(self, page: Page) -> None:
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self._cdp.send("WebAuthn.enable", {"enableUI": False})
        added = self._cdp.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        self._which = {"authenticatorId": added["authenticatorId"]}

    def holds(self, stage: Stage, user_id: str = factors.ALICE, *, known: bool = True) -> None:
        """A passkey of Alice's or another person's, which the provider knows, or knows no longer."""
        key = stage.wait_for(factors.passkey(stage.world, user_id))
        if not known:
            identifier = key.record("").credential_id
            stage.wait_for(factors.change(stage.world, user_id, remove_passkey=identifier))
        self._cdp.send("WebAuthn.addCredential", {**self._which, "credential": key.for_chromium("localhost")})

    def is_somebody_else(self) -> None:
        """The device no longer recognises who holds it."""
        self._cdp.send("WebAuthn.setUserVerified", {**self._which, "isUserVerified": False})

    def is_the_owner(self) -> None:
        self._cdp.send("WebAuthn.setUserVerified", {**self._which, "isUserVerified": True})


def opened(visitor: Visitor, stage: Stage, *scripts: str) -> tuple[Page, Holder, str]:
    """A tab with a device, and the URL of a sign-in."""
    page = visitor.tab()
    for script in scripts:
        page.add_init_script(script)
    return page, Holder(page), stage.begin()[0]


def test_a_person_signs_in_by_the_button(visitor: Visitor, stage: Stage) -> None:
    """D46, D37: neither name nor password is typed."""
    page, device, url = opened(visitor, stage, NO_AUTOFILL)
    device.holds(stage)
    page.goto(url)
    page.get_by_role("button", name=BUTTON).click()
    page.get_by_role("heading", level=1, name=CHOICE).wait_for()
    assert page.get_by_text("Step 2 of 3").is_visible()
    visitor.entity(page)
    visitor.agree(page)
    assert "code" in visitor.back(page)


def test_a_browser_that_has_used_a_passkey_offers_it_first(visitor: Visitor, stage: Stage) -> None:
    """D46: as the one button that leads, above the password; the next time it is used again."""
    page, device, url = opened(visitor, stage, NO_AUTOFILL)
    device.holds(stage)
    page.goto(url)
    page.get_by_role("button", name=BUTTON).click()
    page.get_by_role("heading", level=1, name=CHOICE).wait_for()
    page.goto(stage.begin()[0])
    lead, other = page.get_by_role("button", name=BUTTON), page.get_by_role("button", name="Continue")
    boxes = [each.bounding_box() for each in (lead, page.get_by_label("User name"), other)]
    assert [box["y"] for box in boxes if box] == sorted(box["y"] for box in boxes if box)
    fill = "button => getComputedStyle(button).backgroundColor"
    accent = lead.evaluate(fill)
    assert other.evaluate(fill) != accent
    lead.click()
    page.get_by_role("heading", level=1, name=CHOICE).wait_for()
    page.goto(stage.begin()[0])
    page.evaluate("document.querySelector('form.passkey').hidden = true")
    assert other.evaluate(fill) == accent, "where no passkey can be shown the password leads"


def test_a_person_signs_in_by_what_the_browser_offers_for_the_user_name(visitor: Visitor, stage: Stage) -> None:
    """D46: conditional mediation; the virtual device answers at once, as if its entry had been chosen."""
    page, device, url = opened(visitor, stage)
    device.holds(stage)
    page.goto(url)
    page.get_by_role("heading", level=1, name=CHOICE).wait_for()


def test_the_button_works_while_the_browser_waits_at_the_user_name(visitor: Visitor, stage: Stage) -> None:
    """One request at a time: the waiting one ends first."""
    page, device, url = opened(visitor, stage)
    page.goto(url)
    page.get_by_role("button", name=BUTTON).wait_for()
    device.holds(stage)
    page.get_by_role("button", name=BUTTON).click()
    page.get_by_role("heading", level=1, name=CHOICE).wait_for()


def test_who_cancels_stays_on_the_page_and_can_go_on_in_any_way(visitor: Visitor, stage: Stage) -> None:
    """D46: a calm sentence, said to screen readers too; a timeout looks the same to the page."""
    page, device, url = opened(visitor, stage, NO_AUTOFILL)
    device.holds(stage)
    device.is_somebody_else()
    page.goto(url)
    page.get_by_label("User name").fill("alice")
    page.get_by_role("button", name=BUTTON).click()
    page.locator("[aria-live]", has_text="No passkey was used.").wait_for()
    assert (heading(page), page.get_by_label("User name").input_value()) == ("Sign in", "alice")
    device.is_the_owner()
    page.get_by_role("button", name=BUTTON).click()
    page.get_by_role("heading", level=1, name=CHOICE).wait_for()


def test_a_passkey_that_is_not_known_here_leads_to_the_page_again(visitor: Visitor, stage: Stage) -> None:
    """D28, D46: with the sentence beside the button; the password still works."""
    page, device, url = opened(visitor, stage, NO_AUTOFILL)
    device.holds(stage, known=False)
    page.goto(url)
    page.get_by_role("button", name=BUTTON).click()
    page.get_by_role("link", name="This passkey was not accepted.").wait_for()
    page.get_by_role("link", name="This passkey was not accepted.").click()
    expect(page.locator("#passkey")).to_be_focused()
    visitor.password(page)
    page.get_by_role("heading", level=1, name="Enter your 6-digit code").wait_for()


async def _rina(stage: Stage) -> None:
    """A person with a password and recovery codes, and no app."""
    made = stage.world
    await made.person("rina", *(entity(f"2000000{n}A", f"Harbour Works {n} Pte. Ltd.") for n in (10, 11)))
    await made.write(Credentials(user_id=RINA, password_hash=await made.passwords.hash(PASSWORD)))
    await factors.recovery(made, RINA)


def past_password(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_label("User name").fill("rina")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", level=1, name=SECOND).wait_for()


def test_a_passkey_is_the_second_factor_beside_a_password(visitor: Visitor, stage: Stage) -> None:
    """D45, D46: by the button, which leads; the recovery codes stay as they are."""
    page, device, url = opened(visitor, stage, NO_AUTOFILL)
    stage.wait_for(_rina(stage))
    device.holds(stage, RINA)
    past_password(page, url)
    expect(page.get_by_role("button", name="Use a recovery code")).to_be_visible()
    device.is_somebody_else()
    page.get_by_role("button", name="Use your passkey").click()
    page.locator("[aria-live]", has_text="No passkey was used.").wait_for()
    device.is_the_owner()
    page.get_by_role("button", name="Use your passkey").click()
    page.get_by_role("heading", level=1, name=CHOICE).wait_for()
    assert page.get_by_text("Step 3 of 4").is_visible()


def test_where_no_field_shows_it_the_browser_is_asked_by_the_button_alone(visitor: Visitor, stage: Stage) -> None:
    """D46: a request that waits is for a field whose suggestions it stands among."""
    page, device, url = opened(visitor, stage, NOTED)
    stage.wait_for(_rina(stage))
    stage.wait_for(factors.passkey(stage.world, RINA))
    past_password(page, url)
    device.holds(stage, RINA)
    device.is_somebody_else()
    page.reload()
    page.get_by_role("button", name="Use your passkey").click()
    page.locator("[aria-live]", has_text="No passkey was used.").wait_for()
    assert page.evaluate("window.asked") == ["the button"]


@pytest.mark.parametrize("visitor", [{}, WITHOUT_SCRIPT], indirect=True, ids=["no WebAuthn", "no script"])
def test_where_no_passkey_can_be_shown_a_recovery_code_is_the_way(visitor: Visitor, stage: Stage) -> None:
    """D45: and the page says what would be asked for."""
    page = visitor.tab()
    page.add_init_script(NO_PASSKEYS)
    stage.wait_for(_rina(stage))
    stage.wait_for(factors.passkey(stage.world, RINA))
    past_password(page, stage.begin()[0])
    assert page.get_by_role("button", name="Use your passkey").count() == 0
    page.get_by_role("button", name="Use a recovery code").click()
    page.get_by_label("Recovery code").fill(factors.CODES[0])
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", level=1, name=CHOICE).wait_for()


def test_a_browser_without_passkeys_shows_no_button(visitor: Visitor, stage: Stage) -> None:
    """D46: and everything else works."""
    page, _, url = opened(visitor, stage, NO_PASSKEYS)
    page.goto(url)
    page.get_by_label("User name").wait_for()
    assert page.get_by_role("button", name=BUTTON).count() == 0
    visitor.password(page)
    page.get_by_role("heading", level=1, name="Enter your 6-digit code").wait_for()


@pytest.mark.parametrize("visitor", [WITHOUT_SCRIPT], indirect=True)
def test_without_script_there_is_no_button_and_the_password_works(visitor: Visitor, stage: Stage) -> None:
    """D46: passkeys are the one thing that needs JavaScript."""
    page = visitor.tab()
    page.goto(stage.begin()[0])
    assert page.get_by_role("button", name=BUTTON).count() == 0
    visitor.password(page)
    page.get_by_role("heading", level=1, name="Enter your 6-digit code").wait_for()
