"""The form of a client: its groups, and mistakes that are named where they are, with everything typed kept (Spec 1)."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import urljoin

import pytest
from joserfc.jwk import ECKey, RSAKey

from corpid.rules.directory.parties import consent_items
from corpid.rules.directory.records import Service
from corpid.rules.oauth.generations import SCOPES
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.web.pages.client_fields import GROUPS
from tests.console.scene import REASON, WITHOUT_PASSKEY, go, in_console, send
from tests.sign_in.world import form_of, new_world, world

SHOP: Final = {
    "client_id": "shop",
    "name": "Shop",
    "redirect_uris": "https://shop.example/cb",
    "jwks_uri": "https://shop.example/jwks",
    "reason": REASON,
}


def key(use: str, curve: str = "P-256", *, private: bool = False) -> dict[str, object]:
    return {**ECKey.generate_key(curve).as_dict(private=private), "use": use, "kid": use}


def pasted(*keys: object) -> dict[str, str]:
    """The form with a key set of its own."""
    return {"jwks_uri": "", "jwks": json.dumps({"keys": keys})}


RSA: Final = {**RSAKey.generate_key(2048).as_dict(private=False), "use": "sig", "kid": "sig"}
MISTAKES: Final = {
    "nothing typed": (dict.fromkeys(SHOP, ""), "client_id", "Enter the identifier of the client."),
    "no reason": ({"reason": " "}, "reason", "Say why. The audit keeps your reason."),
    "an http address": (
        {"redirect_uris": "https://shop.example/cb\nhttp://shop.example/cb"},
        "redirect_uris",
        "http://shop.example/cb: begin with https://; http only on localhost and loopback addresses",
    ),
    "a fragment": (
        {"redirect_uris": "https://shop.example/cb#top"},
        "redirect_uris",
        "https://shop.example/cb#top: remove the # and everything after it.",
    ),
    "an IP address": (
        {"jwks_uri": "https://8.8.8.0x8/jwks"},
        "jwks_uri",
        "https://8.8.8.0x8/jwks: use a public host name, such as keys.example.org, instead of an IP address.",
    ),
    "two sources of keys": (
        {"jwks": json.dumps({"keys": [key("sig"), key("enc")]})},
        "jwks_uri",
        "Fill in the address of the key set or the key set itself, not both.",
    ),
    "no encryption key": (
        pasted(key("sig")),
        "jwks",
        "No usable encryption key for ID tokens: an EC key with use enc and a kid is needed.",
    ),
    "an RSA key": (
        pasted(RSA, key("enc")),
        "jwks",
        "No usable signing key: an EC key with use sig is needed (key 1: not an EC key on one of",
    ),
    "a wrong curve": (
        pasted(key("sig"), key("enc", "secp256k1")),
        "jwks",
        "an encryption key is on one of P-256, P-384, P-521: make it on one of them",
    ),
    "no scope openid": ({"scopes:openid": "", "scopes:authinfo": "yes"}, "scopes", "openid is always needed."),
    "an unfinished key set": (
        {"jwks_uri": "", "jwks": '{"keys": ['},
        "jwks",
        "This is neither a PEM public key nor a JSON key set: paste all of it, with its first and last line.",
    ),
    "an SSH key": (
        {"jwks_uri": "", "jwks": "ssh-rsa AAAAB3NzaC1yc2E= op@host"},
        "jwks",
        "This is neither a PEM public key nor a JSON key set: paste all of it, with its first and last line.",
    ),
    "no scheme": ({"redirect_uris": "shop.example/cb"}, "redirect_uris", "shop.example/cb: begin with https://."),
}


def test_every_member_that_an_operator_sets_is_in_exactly_one_group() -> None:
    """docs/architecture.md, "One declaration": a new member cannot be left out of the form."""
    grouped = [name for group in GROUPS for name in group.members]
    assert sorted(grouped) == sorted(name for name, each in CLIENT_MEMBERS.items() if each.help)


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_is_named_at_its_field_and_nothing_typed_is_lost(mistake: str) -> None:
    """Spec 1, D27, D38: the summary leads to the field."""
    typed, field, text = MISTAKES[mistake]

    async with new_world(**WITHOUT_PASSKEY, developer_mode=False) as made:
        browser = await in_console(made, "operator", "new-client")
        await browser.fill_and_submit("client_id", **{**SHOP, **typed})
        assert "entered=" in browser.url
        assert text in browser.page.text
        assert f"#{field}" in [target for target, _ in browser.page.links]
        form = browser.page.form_with("client_id", "name")
        assert form is not None
        shown = {each.name: each.value.removeprefix("\n") for each in form.controls}
        assert {name: shown[name] for name in SHOP} == {**SHOP, **{n: v for n, v in typed.items() if n in SHOP}}
        assert await made.provider.registry.clients.get("shop") is None


@pytest.mark.parametrize("page", ["new-client", "edit-client/rp1"])
async def test_every_mistake_of_a_form_is_named_at_once(page: str) -> None:
    """WCAG 3.3.1: nobody corrects a field to be told of the next one."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", page)
        wrong = {"redirect_uris": "shop.example/cb", "jwks": "ssh-rsa AAAA", "name": "", "reason": ""}
        expected = {f"#{each}" for each in (*wrong, "scopes")}
        for button in (None, "check"):
            typed = {**wrong, "jwks_uri": "", "scopes:openid": "", "scopes:authinfo": "yes"}
            await browser.fill_and_submit("redirect_uris", button=button, **typed)
            named = {target for target, _ in browser.page.links} & expected
            assert named == (expected - {"#reason"} if button else expected)


async def test_each_scope_says_what_it_allows_and_the_reason_that_it_is_required() -> None:
    """WCAG 3.3.2."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        for scope in SCOPES:
            assert f"{scope} {consent_items((scope,))[0]}" in browser.page.text
        assert "Required. It is kept in the audit with your name." in browser.page.text


async def test_what_the_program_knows_is_ticked_and_nothing_of_it_is_typed() -> None:
    """Spec 1: scopes, services, generations and issuers."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(Service(service_id="PERMITS", name="Permits"))
        browser = await in_console(made, "operator", "new-client")
        form = browser.page.form_with("client_id", "name")
        assert form is not None
        names = [each.name for each in form.controls]
        assert not {"scopes", "services", "generations", "issuers"} & set(names)
        assert [name for name in names if name.startswith("scopes:")] == [f"scopes:{each}" for each in SCOPES]
        await browser.fill_and_submit(
            **{**SHOP, "services:PERMITS": "yes", "generations:current": "yes", "scopes:tpauthinfo": "yes"}
        )
        found = await made.provider.registry.clients.get("shop")
        assert found is not None
        assert (found.services, found.generations, found.issuers) == (("PERMITS",), ("current",), ())
        assert found.scopes == ("openid", "tpauthinfo")


async def test_a_new_client_asks_for_openid_alone_until_more_is_ticked_and_the_default_generation_is_named() -> None:
    """Spec 1: no client receives what nobody chose for it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        form = browser.page.form_with("client_id", "name")
        assert form is not None
        assert [each.name for each in form.controls if each.chosen and ":" in each.name] == ["scopes:openid"]
        assert "current the default" in browser.page.text
        assert "Last day with legacy (optional)" not in browser.page.text


async def test_days_are_chosen_in_a_calendar() -> None:
    """WCAG 3.3.2: every member that is a day."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        form = browser.page.form_with("client_id", "name")
        assert form is not None
        days = {each.name for each in form.controls if each.kind == "date"}
        assert days == {name for name, each in CLIENT_MEMBERS.items() if each.help and each.form == "day"}
        assert "legacy_until" in days


async def test_what_was_ticked_is_still_ticked_after_a_mistake() -> None:
    """WCAG 3.3.4, D73."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        await browser.fill_and_submit("client_id", **{"scopes:authinfo": "yes", "generations:fapi2": "yes"})
        form = browser.page.form_with("client_id", "name")
        assert form is not None
        ticked = {
            each.name for each in form.controls if each.name.startswith(("scopes:", "generations:")) and each.chosen
        }
        assert ticked == {"generations:fapi2", "scopes:openid", "scopes:authinfo"}


async def test_keys_are_checked_by_a_button_and_say_what_each_is_for() -> None:
    """D27: nothing is registered."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        await browser.fill_and_submit("client_id", button="check", **{**SHOP, **pasted(key("sig"), key("enc"))})
        assert "entered=" in browser.url
        assert "There is a problem" not in browser.page.text
        for text in ("kid of its signing key sig ES256", "kid of its encryption key enc ECDH-ES+A256KW"):
            assert text in browser.page.text
        assert await made.provider.registry.clients.get("shop") is None


def pem(count: int) -> list[ECKey]:
    return [ECKey.generate_key("P-256") for _ in range(count)]


def text_of(keys: list[ECKey]) -> str:
    return "".join(each.as_pem(private=False).decode() for each in keys)


async def test_public_keys_in_pem_text_are_registered_after_one_check_page_and_nothing_is_typed_again() -> None:
    """RFC 7468, RFC 7638 §3: the kid is computed; it is no error that PEM text has none."""
    keys = pem(2)
    kids = [each.thumbprint() for each in keys]
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        await browser.fill_and_submit("client_id", **{**SHOP, "jwks_uri": "", "jwks": text_of(keys)})
        assert browser.page.heading == "Register Shop?"
        assert "There is a problem" not in browser.page.text
        shown = [f"kid of its signing key {kids[0]} ES256", f"kid of its encryption key {kids[1]} ECDH-ES+A256KW"]
        assert all(each in browser.page.text for each in shown)
        assert [text for _, text in browser.page.links if text in {"Cancel", "Go back"}] == []
        assert await made.provider.registry.clients.get("shop") is None
        await browser.fill_and_submit("client_id")
        found = await made.provider.registry.clients.get("shop")
        assert found is not None
        assert [(each["use"], each["kid"]) for each in json.loads(found.jwks or "")["keys"]] == [
            ("sig", kids[0]),
            ("enc", kids[1]),
        ]
        assert all(each in browser.page.text for each in shown)
        [entry] = await made.audit("client.add")
        assert entry.detail["reason_given"] == REASON


async def test_from_the_check_page_the_form_can_be_changed_with_everything_in_it() -> None:
    """WCAG 3.3.4, D73: for a new client and one that is there."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.client()
        for page, sent in (("new-client", SHOP), ("edit-client/rp1", {"name": "Shop", "reason": REASON})):
            browser = await in_console(made, "operator", page)
            await browser.fill_and_submit("name", **{**sent, "jwks_uri": "", "jwks": text_of(pem(2))})
            assert browser.page.heading == ("Register Shop?" if page == "new-client" else "Change Shop?")
            await browser.fill_and_submit("name", button="check")
            assert "There is a problem" not in browser.page.text
            form = form_of(browser, "jwks", "name", "reason")
            assert (form["name"], form["reason"].strip(), '"kid"' in form["jwks"]) == ("Shop", REASON, True)
            await browser.fill_and_submit("name")
            assert "The client has been" in browser.page.text


async def test_one_key_in_pem_text_is_an_error_that_says_what_to_paste() -> None:
    """WCAG 3.3.3: what was pasted stays."""
    text = text_of(pem(1))
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        await browser.fill_and_submit("client_id", **{**SHOP, "jwks_uri": "", "jwks": text})
        assert "This is one key, which is taken to sign: paste the one to encrypt below it." in browser.page.text
        assert form_of(browser, "jwks", "name")["jwks"].split() == text.split()


@pytest.mark.parametrize("form", ["set", "key", "pem", "list", "not quite JSON", "in a string", "another place"])
async def test_a_private_key_is_refused_and_only_its_public_part_is_shown_again(form: str) -> None:
    """RFC 7517 §9.3, D27."""
    private = key("sig", private=True)
    text = {
        "set": json.dumps({"keys": [private, key("enc")]}),
        "key": json.dumps(private),
        "pem": "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----",
        "list": json.dumps([private, key("enc")]),
        "not quite JSON": json.dumps({"keys": [private]})[:-1] + ",}",
        "in a string": json.dumps({"keys": [json.dumps(private)]}),
        "another place": json.dumps({"keys": [], "sig": private}),
    }[form]

    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        await browser.fill_and_submit("client_id", **{**SHOP, "jwks_uri": "", "jwks": text})
        assert "entered=" in browser.url
        assert "This was a private key, which only the client may have." in browser.page.text
        assert browser.response is not None
        assert str(private["d"]) not in browser.response.text
        assert "BEGIN PRIVATE" not in browser.response.text
        await browser.fill_and_submit("client_id", reason=REASON)
        assert ("entered=" in browser.url) == (form not in {"set", "list"}), "one key is not enough"


async def test_a_private_key_that_came_too_late_is_stored_nowhere_while_its_operator_signs_in_again() -> None:
    """RFC 7517 §9.3, D54, D73: only its public part is there afterwards, and until then everything is encrypted."""
    private = key("sig", private=True)

    async with world(operators_need_passkey=False) as made:
        browser = await in_console(made, "operator", "new-client")
        made.clock.pass_(901)
        answer = await send(made, browser, "new-client", **{**SHOP, **pasted(private, key("enc"))})
        files = b"".join(each.read_bytes() for each in made.directory.rglob("*") if each.is_file())
        assert str(private["x"]).encode() not in files
        assert str(private["d"]).encode() not in files
        made.clock.pass_(60)
        await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
        await made.factors(browser, made.people["the-operator"])
        form = form_of(browser, "jwks", "name")
        assert form["name"] == "Shop"
        assert str(private["x"]) in form["jwks"]
        assert str(private["d"]) not in form["jwks"]


async def test_a_change_that_came_too_late_does_not_overwrite_what_changed_during_the_sign_in() -> None:
    """D54: it was made on the client as it was before."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "edit-client/rp1")
        form = form_of(browser, "form_token", "name")
        made.clock.pass_(901)
        answer = await send(made, browser, "edit-client/rp1", **{**form, "name": "Mine", "reason": REASON})
        await made.client(name="Another's")
        made.clock.pass_(60)
        await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
        await made.factors(browser, made.people["the-operator"])
        assert form_of(browser, "name")["name"] == "Mine"
        await browser.fill_and_submit("name")
        assert "Somebody else has changed this client in the meantime." in browser.page.text
        assert form_of(browser, "name")["name"] == "Another's"


async def test_more_settings_are_open_if_one_of_them_is_wrong_or_not_the_default() -> None:
    """WCAG 3.3.1: no error is hidden."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        opened = '<details class="more settings" open>'

        def is_open() -> bool:
            assert browser.response is not None
            return opened in browser.response.text

        assert not is_open()
        await browser.fill_and_submit("client_id", **SHOP, context_types="NONSENSE")
        assert "entered=" in browser.url
        assert is_open()
        await go(made, browser, "edit-client/rp1")
        assert not is_open()
        await made.client(subject="entity")
        await go(made, browser, "edit-client/rp1")
        assert is_open()


async def test_the_reason_of_a_change_is_in_the_audit_and_on_the_clients_page() -> None:
    """D54, D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "edit-client/rp1")
        await browser.fill_and_submit("name", name="Better name", reason="Asked for by the harbour")
        assert "Asked for by the harbour" in browser.page.text
        [entry] = await made.audit("client.update")
        assert entry.detail["reason_given"] == "Asked for by the harbour"
        await go(made, browser, "audit?client=rp1&action=client.")
        assert "Asked for by the harbour" in browser.page.text
