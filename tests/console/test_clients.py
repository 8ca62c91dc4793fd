"""Clients in the console: the list, one client with its keys and refusals, and its switch (Spec 1, D27, D28, D53)."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec.structs import replace

from corpid.rules.oauth.deprecated_usage import UseCount
from corpid.rules.oauth.errors import reason_of
from tests.console.scene import REASON, WITHOUT_PASSKEY, console, go, in_console, send
from tests.sign_in.world import form_of, new_world


async def test_the_list_is_narrowed_by_words_of_name_and_identifier_and_goes_on_page_by_page() -> None:
    """Spec 1, D83."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        for number in range(60):
            await made.client(f"shop-{number:02}")
        browser = await in_console(made, "operator", "clients")
        assert "rp1" in browser.page.text
        await go(made, browser, "clients?search=shop-")
        assert "rp1" not in browser.page.text
        assert "shop-49" in browser.page.text
        assert "shop-50" not in browser.page.text
        await go(made, browser, "clients?search=shop-&after=shop-49")
        assert "shop-59" in browser.page.text
        await go(made, browser, "clients?search=party+rp1")
        assert "rp1" in browser.page.text
        assert "shop-" not in browser.page.text


async def test_a_client_shows_its_keys_and_why_it_was_refused_with_what_to_do() -> None:
    """D27, D28."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=made.application.asgi), base_url=made.base
        ) as http:
            await http.post("/request", data={"client_id": "rp1"})
        await made.provider.refusals.flush(made.provider.registry)
        browser = await in_console(made, "operator", "client/rp1")
        assert browser.page.heading == "Client Relying Party 1"
        assert "ES256" in browser.page.text
        assert "Requests that only name this client" in browser.page.text
        assert "None of its requests was refused recently." not in browser.page.text
        assert "POST /request" in browser.page.text


async def test_a_clients_page_shows_its_health() -> None:
    """D53: last sign-in, refusals by reason with what to do, the ends of certificates, and what ends."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        name = x509.Name([])
        private = ec.generate_private_key(ec.SECP256R1())
        ended = datetime(2026, 1, 31, tzinfo=UTC)
        certificate = x509.CertificateBuilder(
            name, name, private.public_key(), 1, ended - timedelta(days=9), ended
        ).sign(private, SHA256())
        keys = json.loads((await made.client()).jwks or "")
        keys["keys"][0]["x5c"] = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()]
        await made.client(jwks=json.dumps(keys), generations=("current", "legacy"), legacy_until="2099-01-01")
        now = made.clock()
        made.provider.counters.sign_in("rp1", now)
        made.provider.counters.refusal("rp1", "assertion_audience", now, authenticated=True)
        made.provider.counters.refusal("rp1", "assertion_audience", now, authenticated=True)
        await made.provider.counters.flush(made.provider.registry)
        browser = await in_console(made, "operator", "client/rp1")
        text = browser.page.text
        assert "Last sign-in None recorded" in text
        assert "66.7 % 2 requests" in text
        assert reason_of("assertion_audience").value.remedy.replace("`", "") in text
        assert "31 Jan 2026 passed" in text
        assert "Deprecated use" in text
        assert "1 Jan 2099" in text
        await go(made, browser, "client/rp1?range=today")
        assert "Completed sign-ins per hour" in browser.page.text
        await go(made, browser, "client/rp1?range=30d")
        assert "Completed sign-ins per day" in browser.page.text


async def test_the_list_shows_the_state_of_each_client_with_the_reasons() -> None:
    """D53: last sign-in, refusals of a day, ends of certificates and generations, deprecated use."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        now, zone = made.clock(), made.provider.policy.timezone
        today = datetime.fromtimestamp(now, zone).date()
        name, private = x509.Name([]), ec.generate_private_key(ec.SECP256R1())
        keys = json.loads((await made.client()).jwks or "")
        ends = datetime.fromtimestamp(now, UTC) + timedelta(days=9)
        certificate = x509.CertificateBuilder(
            name, name, private.public_key(), 1, ends - timedelta(days=90), ends
        ).sign(private, SHA256())
        keys["keys"][0]["x5c"] = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()]
        await made.client("certified", jwks=json.dumps(keys))
        await made.client("failing")
        await made.client("leaving", generations=("current", "legacy"), legacy_until="2099-01-01")
        await made.client("late", generations=("current", "legacy"), legacy_until=str(today - timedelta(days=1)))
        await made.client("quiet")
        await made.client("off", enabled=False)
        registry, counters = made.provider.registry, made.provider.counters
        for moment in (now, now, now - 25 * 3600):
            counters.refusal("failing", "assertion_audience", moment, authenticated=True)
        counters.sign_in("failing", now)
        await counters.flush(registry)
        await registry.usage.add(
            [UseCount(client_id="leaving", generation="legacy", habit="", count=1, last_at=int(now))]
        )
        browser = await in_console(made, "operator", "clients")

        def state_of(client_id: str) -> str:
            found = re.search(rf"\b{client_id} Relying Party . \S.*? (?=\w+ Relying Party|$)", f"{browser.page.text} ")
            assert found, browser.page.text
            return found[0]

        assert "Warning The certificate of" in state_of("certified")
        assert "Problem 2 of 3 requests refused in 24 hours" in state_of("failing")
        assert "Active legacy until 1 Jan 2099 Last deprecated use:" in state_of("leaving")
        assert "Warning legacy until" in state_of("late")
        assert " Active" in state_of("quiet")
        assert " Disabled" in state_of("off")


async def test_a_client_that_is_not_there_has_no_page() -> None:
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator")
        assert await go(made, browser, "client/nobody") == 404


async def test_an_operator_disables_a_client_after_a_question_and_enables_it_again() -> None:
    """D50, D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "switch-client/rp1")
        await browser.fill_and_submit("decision", reason=REASON)
        assert "The client has been disabled." in browser.page.text
        found = await made.provider.registry.clients.get("rp1")
        assert found is not None
        assert not found.enabled
        [entry] = await made.audit("client.disable")
        assert entry.actor == "operator:id-the-operator"
        assert entry.request_id
        assert entry.detail["address"]
        assert entry.detail["reason_given"] == REASON
        await go(made, browser, "switch-client/rp1")
        await browser.fill_and_submit("decision", reason=REASON)
        assert "The client has been enabled." in browser.page.text


async def test_support_and_auditors_read_clients_and_change_none() -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        for level in ("support", "auditor"):
            browser = await in_console(made, level, "client/rp1")
            assert browser.page.heading == "Client Relying Party 1"
            assert "Change this client" not in browser.page.text
            assert await go(made, browser, "switch-client/rp1") == 403
        found = await made.provider.registry.clients.get("rp1")
        assert found is not None
        assert found.enabled


async def test_a_change_needs_a_recent_sign_in_and_the_page_leads_back() -> None:
    """D54."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "switch-client/rp1")
        sent = form_of(browser, "decision")
        made.clock.pass_(901)
        answer = await send(made, browser, "switch-client/rp1", **sent)
        assert answer.status_code == 303
        assert "/sign-in/" in answer.headers["Location"]
        await browser.open(console(made, "switch-client/rp1"), site="none")
        assert browser.page.heading == "Confirm it is you, Opal operator"


async def test_a_client_is_registered_by_form_with_every_fault_next_to_its_field_and_nothing_lost() -> None:
    """Spec 1: the same checks as the command."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "new-client")
        await browser.fill_and_submit(client_id="shop", name="Shop", redirect_uris="http://shop.example/cb")
        assert "entered=" in browser.url
        errors = browser.page.text
        assert "redirect_uris" in errors or "https" in errors
        form = browser.page.form_with("client_id", "name")
        assert form is not None
        assert {each.name: each.value for each in form.controls}["name"] == "Shop"
        await browser.fill_and_submit(
            redirect_uris="https://shop.example/cb\nhttps://shop.example/other",
            jwks_uri="https://shop.example/jwks",
            reason=REASON,
        )
        assert browser.page.heading == "Connect Shop"
        for text in ("The client has been registered.", made.base, f"{made.base}/.well-known/openid-configuration"):
            assert text in browser.page.text
        for language in ("Node", "Python", "Go", "Java"):
            assert f"{language} " in browser.page.text
        assert "CLIENT_ID=shop" in browser.page.text
        found = await made.provider.registry.clients.get("shop")
        assert found is not None
        assert found.redirect_uris == ("https://shop.example/cb", "https://shop.example/other")
        assert "openid" in found.scopes


async def test_a_client_is_changed_by_form_and_only_what_was_changed() -> None:
    """Spec 1."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        before = await made.provider.registry.clients.get("rp1")
        assert before is not None
        browser = await in_console(made, "operator", "edit-client/rp1")
        await browser.fill_and_submit(name="Better name", sector="private", reason=REASON)
        assert browser.page.heading == "Client Better name"
        after = await made.provider.registry.clients.get("rp1")
        assert after == replace(before, name="Better name", sector="private")


async def test_a_form_that_was_opened_before_somebody_elses_change_overwrites_nothing() -> None:
    """D57: the second of two changes says so instead."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "edit-client/rp1")
        await made.client(name="Changed meanwhile")
        await browser.fill_and_submit(name="From an old page")
        assert "Your changes were not saved: this is the client as it is now." in browser.page.text
        assert form_of(browser, "name")["name"] == "Changed meanwhile"
        found = await made.provider.registry.clients.get("rp1")
        assert found is not None
        assert found.name == "Changed meanwhile"


async def test_a_client_whose_keys_stand_in_its_record_has_none_to_forget() -> None:
    """D27: the page is for fetched keys, and a change that is refused says why."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.client(jwks=None, jwks_uri="https://rp1.example/keys.json")
        browser = await in_console(made, "operator", "drop-keys/rp1")
        await made.client()
        answer = await send(made, browser, "drop-keys/rp1", reason=REASON)
        assert (answer.status_code, await go(made, browser, "drop-keys/rp1")) == (404, 404)
