"""Clients that a stranger publishes keys for: the console shows what it can (D27, D53, D82)."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from tests.console.scene import WITHOUT_PASSKEY, go, in_console
from tests.sign_in.world import new_world


@pytest.mark.parametrize("year", [9998, 9999])
async def test_a_certificate_without_a_well_defined_end_does_not_break_the_page(year: int) -> None:
    """RFC 5280 §4.1.2.5: its end is the last second of 9999, which east of Greenwich is a day that no calendar has."""
    async with new_world(**WITHOUT_PASSKEY, timezone="Asia/Singapore") as made:
        private, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
        end = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
        certificate = x509.CertificateBuilder(name, name, private.public_key(), 1, end - timedelta(days=9), end).sign(
            private, SHA256()
        )
        keys = json.loads((await made.client()).jwks or "")
        keys["keys"][0]["x5c"] = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode()]
        keys["keys"][1]["x5c"] = [{"a": 1}, None]
        await made.client(jwks=json.dumps(keys))
        browser = await in_console(made, "operator")
        assert await go(made, browser, "client/rp1") == 200


@pytest.mark.parametrize("member", [None, 7, "kid", [], {"kid": {"a": 1}}])
async def test_a_key_set_with_what_is_no_key_does_not_break_the_search(member: object) -> None:
    """D82: the identifiers of the keys are read of what mentions the text."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        keys = json.loads((await made.client()).jwks or "")
        kid = keys["keys"][0]["kid"] = "signing-key-1"
        keys["keys"].append(member)
        await made.client(jwks=json.dumps(keys))
        browser = await in_console(made, "operator")
        await browser.fill_and_submit(search=kid)
        assert browser.response is not None
        assert browser.response.status_code == 200
        assert "Clients with this key" in browser.page.text
