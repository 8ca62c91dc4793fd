"""The pages of a demo that register clients (D66)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from joserfc.jwk import ECKey

from tests.developer.scene import demo_world, developer
from tests.developer.test_clients import SHOP, key
from tests.sign_in.world import BASE, FORM, World, form_of, new_world

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

LIST = f"{BASE}/developer/clients"
NEW = f"{LIST}/new"
TYPED = {
    "client_id": "shop",
    "name": "Shop",
    "redirect_uris": SHOP["redirect_uris"][0],
    "jwks": json.dumps(SHOP["jwks"]),
}


async def filled(made: World, *, button: str = "check", **changed: str) -> Browser:
    """The page that answers the form of a new client."""
    browser = await made.browser()
    await browser.open(NEW)
    await browser.fill_and_submit("client_id", button=button, **{**TYPED, **changed})
    return browser


def typed(browser: Browser, name: str) -> str:
    form = browser.page.form_with("client_id")
    assert form is not None
    [control] = [each for each in form.controls if each.name == name and each.kind != "hidden"]
    return control.value.strip() if control.chosen else ""


async def test_a_client_is_registered_changed_and_removed() -> None:
    """D66: with a page that says what to copy, and the audit naming developer mode."""
    async with demo_world() as made:
        browser = await filled(made, button="save")
        assert browser.url == f"{LIST}/client/shop?saved=1"
        assert "CLIENT_ID=shop" in browser.page.text
        await browser.open(f"{LIST}/edit/shop")
        await browser.fill_and_submit("name", button="save", name="Kiosk", sector="government")
        assert browser.page.heading == "Client Kiosk"
        await browser.open(LIST)
        assert "Kiosk" in browser.page.text
        await browser.open(f"{LIST}/remove/shop")
        await browser.submit(browser.page.forms[0])
        assert "The client has been removed." in browser.page.text
        assert await made.provider.registry.clients.get("shop") is None
        actors = [entry.actor for each in ("add", "update", "remove") for entry in await made.audit(f"client.{each}")]
        assert actors == ["file:developer mode"] * 3


async def test_a_check_writes_nothing() -> None:
    """D66."""
    async with demo_world() as made:
        browser = await filled(made)
        assert browser.response is not None
        assert browser.response.status_code == 200
        assert "No mistakes were found." in browser.page.text
        assert await made.audit("client.add") == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"client_id": ""}, "Enter the identifier of the client."),
        ({"client_id": "rp1"}, "There is a client with this identifier."),
        ({"name": ""}, "Enter the name that people see."),
        ({"redirect_uris": ""}, "Enter at least one redirect URI."),
        ({"redirect_uris": "http://rp.example/cb"}, "begin with https://; http only on localhost"),
        ({"redirect_uris": "https://rp.example/cb#top"}, "remove the # and everything after it"),
        ({"jwks": ""}, "Enter the address of the client's key set, or paste the key set below."),
        ({"jwks": json.dumps({"keys": [key("sig")]})}, "No usable encryption key for ID tokens"),
        ({"jwks": json.dumps({"keys": [key("sig"), {**key("enc"), "crv": "P-192"}]})}, "not an EC key on one of"),
        ({"jwks": "hello"}, "neither a PEM public key nor a JSON key set"),
        ({"generations:legacy": "yes"}, "legacy is served until an end date only"),
        ({"scopes:openid": ""}, "openid is always needed"),
    ],
)
async def test_a_mistake_is_named_at_its_field(changed: dict[str, str], said: str) -> None:
    """D66, WCAG 3.3.1: by the check and by registering, with everything typed kept."""
    async with demo_world() as made:
        for button in ("check", "save"):
            browser = await filled(made, button=button, **changed)
            assert said in browser.page.text
            assert all(typed(browser, name) == value for name, value in changed.items())
        assert browser.response is not None
        assert browser.response.status_code == 200
        assert await made.audit("client.add") == []


async def test_every_mistake_is_named_at_once() -> None:
    """D66: also if something is missing."""
    async with demo_world() as made:
        browser = await filled(
            made, client_id="", name="", redirect_uris="http://rp.example/cb", jwks=json.dumps({"keys": [key("sig")]})
        )
        for said in ("Enter the identifier", "Enter the name", "begin with https://", "No usable encryption key"):
            assert said in browser.page.text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"redirect_uris": "http://localhost:8410/callback"}, "are two addresses"),
        ({"services:PERMITS": ""}, "userinfo has no roles"),
        ({"jwks": "", "jwks_uri": "http://127.0.0.1:9/jwks"}, "no key set was fetched: no connection to 127.0.0.1"),
    ],
)
async def test_advice_does_not_keep_from_registering(changed: dict[str, str], said: str) -> None:
    """D66: it comes with the check, and again with the client."""
    async with demo_world() as made:
        browser = await filled(made, **changed)
        assert said.lower() in browser.page.text.lower()
        browser = await filled(made, button="save", **changed)
        assert browser.page.heading == "Client Shop"
        assert said in browser.page.text


@pytest.mark.parametrize("button", ["check", "save"])
async def test_a_private_key_comes_back_as_its_public_part(button: str) -> None:
    """RFC 7517 §9.3: it says so, and nothing is stored."""
    one = key("sig", private=True)

    async with demo_world() as made:
        browser = await filled(made, button=button, jwks=json.dumps({"keys": [one, key("enc")]}))
        assert "This was a private key" in browser.page.text
        assert browser.response is not None
        assert one["d"] not in browser.response.text
        assert one["x"] in typed(browser, "jwks")
        assert await made.audit("client.add") == []
        await browser.submit(browser.page.forms[0], "save")
        assert browser.page.heading == "Client Shop"


async def test_a_list_of_keys_is_registered_as_a_key_set() -> None:
    """D66: nothing was chosen, so nothing is asked."""
    async with demo_world() as made:
        browser = await filled(made, button="save", jwks=json.dumps([key("sig"), key("enc")]))
        assert browser.page.heading == "Client Shop"


async def test_what_was_chosen_for_keys_is_shown_before_the_client_is_registered() -> None:
    """D66, RFC 7638 §3: PEM text has no use and no kid. It is no error."""
    keys = [ECKey.generate_key("P-256") for _ in range(2)]
    async with demo_world() as made:
        browser = await filled(made, button="save", jwks="".join(each.as_pem(private=False).decode() for each in keys))
        assert "There is a problem" not in browser.page.text
        for each in keys:
            assert each.thumbprint() in browser.page.text
        assert await made.audit("client.add") == []
        await browser.submit(browser.page.forms[0], "save")
        assert browser.page.heading == "Client Shop"


async def test_a_new_form_begins_with_what_this_provider_serves() -> None:
    """D66: legacy needs its name, a last day, and fewer scopes."""
    async with demo_world(generations=("legacy",)) as made:
        browser = await made.browser()
        await browser.open(NEW)
        ticked = {
            "generations:legacy": "yes",
            "services:PERMITS": "yes",
            "scopes:openid": "yes",
            "scopes:entity.identity": "",
        }
        assert {name: typed(browser, name) for name in ticked} == ticked
        assert typed(browser, "legacy_until")
        await browser.fill_and_submit("client_id", button="save", **TYPED)
        assert "GENERATION=legacy" in browser.page.text


async def test_the_demos_own_client_is_shown_and_stays() -> None:
    """D66: no page changes it, whatever is sent."""
    async with new_world(developer=developer(own_clients={"rp1"})) as made:
        browser, form = await made.browser(), {}
        await browser.open(NEW)
        form = form_of(browser, "client_id")
        await browser.open(f"{LIST}/client/rp1")
        assert "the demo's own client" in browser.page.text
        before = await made.provider.registry.clients.get("rp1")
        for page in ("edit", "remove"):
            assert (await browser.http.get(f"{LIST}/{page}/rp1")).status_code == 404
            assert (await posted(browser, f"{LIST}/{page}/rp1", {**form, **TYPED})).status_code == 404
        answer = await posted(browser, NEW, {**form, **TYPED, "client_id": "rp1", "decision": "save"})
        assert (answer.status_code, answer.headers["location"]) == (303, f"{urlsplit(NEW).path}?entered=1")
        assert await made.provider.registry.clients.get("rp1") == before


async def posted(browser: Browser, address: str, fields: dict[str, Any], *, site: str = "same-origin") -> Any:
    return await browser.http.post(address, data=fields, headers={"Sec-Fetch-Site": site, "Content-Type": FORM})


async def test_a_form_of_another_site_or_browser_changes_nothing() -> None:
    """D35."""
    async with demo_world() as made:
        await filled(made, button="save")
        browser, other = await made.browser(), await made.browser()
        await browser.open(NEW)
        await other.open(NEW)
        own, foreign = form_of(browser, "client_id"), form_of(other, "client_id")
        for page in ("new", "edit/shop", "remove/shop"):
            for fields, site in (
                (own, "cross-site"),
                (own, "same-site"),
                (foreign, "same-origin"),
                ({}, "same-origin"),
            ):
                sent = {**fields, **TYPED, "client_id": "kiosk", "decision": "save"}
                assert (await posted(browser, f"{LIST}/{page}", sent, site=site)).status_code == 400
        assert len(await made.audit("client.add")) == 1
        assert await made.audit("client.update") == await made.audit("client.remove") == []


@pytest.mark.parametrize("page", ["client/nobody", "edit/nobody", "remove/nobody", "x", "new/x", "client/", ""])
async def test_a_page_that_there_is_not(page: str) -> None:
    """D16."""
    async with demo_world() as made:
        assert (await (await made.http()).get(f"{LIST}/{page}")).status_code == 404
