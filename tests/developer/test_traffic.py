"""The inspector's pages of exchanges (D66)."""

from __future__ import annotations

import html
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.flows import exchanges as kept_exchanges
from corpid_dev.flows import inspection
from corpid_dev.relying_party.verification import Callback
from corpid_dev.rules.checks import CheckState
from corpid_dev.web.exchanges import number
from tests.developer.scene import KEY, developer, order
from tests.developer.test_exchanges import ALICE, exchange, listed, watched_demo
from tests.sign_in.world import BASE, World

if TYPE_CHECKING:
    import httpx

    from corpid_dev.flows.inspection import Inspection
    from corpid_dev.flows.people import Developer
    from corpid_dev.relying_party.relying_party import RelyingParty


def text_of(shown: str) -> str:
    """The text of a page's content."""
    content = shown.partition("<main")[2].partition(">")[2].partition("</main>")[0]
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", content).split()))


async def page(made: World, path: str = "", *, status: int = 200) -> str:
    answer = await (await made.http()).get(f"{BASE}/developer/traffic{path}", headers={"accept": "text/html"})
    assert answer.status_code == status
    return answer.text


async def signed_in(made: World) -> RelyingParty:
    """A relying party after a whole sign-in at once."""
    rp = await made.relying_party()
    answer = await order(made, {"authorize_url": await rp.begin(), **ALICE})
    await rp.redeem(Callback(answer.json()["callback_url"]))
    await rp.userinfo()
    return rp


def words_of(program: str) -> list[str]:
    """What a shell prints, each text with a NUL after it."""
    done = subprocess.run(["/bin/sh", "-c", program], capture_output=True, check=True, timeout=20)
    return done.stdout.decode().split("\0")[:-1]


def last(mode: Developer, reason: str = "") -> tuple[int, Inspection]:
    """The newest exchange, with this reason if there is one, and its findings."""
    found = [each for each in mode.exchanges.list_exchanges() if not reason or each.reason == reason][-1]
    return found.exchange_id, inspection.inspect(found, mode.exchanges)


async def test_the_list_shows_sign_ins_with_their_steps_and_every_request() -> None:
    """D66: by client, the newest first; a failed request has its check, documents stand among every request."""
    async with watched_demo() as (made, _):
        assert "Nothing yet." in text_of(await page(made))
        rp = await signed_in(made)
        await rp.push({"scope": "openid unheard-of"})
        shown = await page(made)
        text = text_of(shown)
        assert re.search(r"PAR refused, 400 , request \d+ invalid_scope Failed check: The scopes are known here", text)
        assert text.index("refused, 400") < text.index("PAR worked, 201")
        assert "Key set" not in text
        every = text_of(await page(made, "?view=requests"))
        assert re.search(r"Key set , request \d+ GET /.well-known/keys", every)
        assert "rp1 (5)" in every
        assert "Nothing yet." in text_of(await page(made, "?client_id=nobody"))
        assert "rp1" in text_of(await page(made, "?client_id=rp1"))


async def test_a_refused_request_says_what_to_do_and_what_was_different_the_last_time() -> None:
    """D28, D66: check, values, who must act, catalogue, and the differences from the last good request."""
    async with watched_demo() as (made, mode):
        rp = await signed_in(made)
        await rp.push({"redirect_uri": "https://rp.example/callback/", "max_age": "60"})
        at, found = last(mode)
        text = text_of(shown := await page(made, f"/{at}"))
        assert "Failed check: redirect_uri is registered, character by character" in text
        assert "it differs by a slash at the end of the path" in text
        assert "RP developer: Send a redirect URI exactly as registered" in text
        assert 'href="/developer/errors#redirect_uri_not_registered"' in shown
        different = {(each.name, each.before, each.now) for each in found.differences}
        assert different == {
            ("redirect_uri", "https://rp.example/callback", "https://rp.example/callback/"),
            ("max_age", "absent", "60"),
        }
        assert [(each.token, each.sentence) for each in found.clocks] == [
            ("client assertion", "in step with this server"),
            ("DPoP proof", "in step with this server"),
        ]


async def test_the_reference_of_an_error_leads_to_its_request() -> None:
    """D28, D66."""
    async with watched_demo() as (made, _):
        rp = await made.relying_party()
        answer = await rp.push({"scope": "authinfo"})
        reference = answer.json()["error_description"].rpartition("reference ")[2].rstrip(")")
        http = await made.http()
        found = await http.get(f"{BASE}/developer/traffic?reference={reference}")
        [kept] = await listed(made, "?client_id=rp1")
        assert found.headers["location"] == f"/developer/traffic/{kept['id']}"
        await page(made, "?reference=0000000000000000", status=404)


async def test_a_clock_that_is_wrong_is_measured() -> None:
    """D66: by iat of assertion and proof, each against our clock; the claim that differs is named."""
    async with watched_demo() as (made, mode):
        rp = await signed_in(made)
        now = int(made.clock())
        await rp.push({"client_assertion": rp.assertion(iat=now + 45, exp=now + 100)})
        _, found = last(mode)
        assert found.failed is not None
        assert found.failed.name == "The assertion is not from the future"
        assert [each.sentence for each in found.clocks] == ["45 s ahead of this server", "in step with this server"]
        assert ("clock (iat against ours)", "in step", "+45 s") in {
            (each.name, each.before, each.now) for each in found.differences
        }


async def test_tokens_are_decoded_and_the_encrypted_one_is_our_side_of_it() -> None:
    """D66: the ID token as it was signed, with the header of the encryption; no private key is on the page."""
    async with watched_demo() as (made, _):
        await signed_in(made)
        at = next(each["id"] for each in await listed(made) if each["endpoint"] == "token")
        text = text_of(await page(made, f"/{at}"))
        assert "whose private key alone opens what was sent" in text
        assert "Header of the encryption" in text
        assert "ECDH-ES+A256KW" in text
        assert "at_hash" in text
        assert "600 s after the request" in text
        assert '"d":' not in text


async def test_a_token_that_is_missing_is_one_difference() -> None:
    """D66: not each of its members."""
    async with watched_demo() as (made, mode):
        rp = await signed_in(made)
        assert rp.sign_in.tokens is not None
        await rp.resource(headers={"DPoP": None})
        _, found = last(mode, "proof_missing")
        [only] = found.differences
        assert (only.where, only.name, only.before, only.now) == ("header", "dpop", "present", "absent")


async def test_the_command_repeats_the_request_and_says_what_works_once() -> None:
    """D66: a shell takes it apart into what was sent; assertion, proof and code are variables."""
    async with watched_demo() as (made, mode):
        rp = await signed_in(made)
        await rp.push({"authentication_context_message": "it's $(touch x) `id`"})
        _, found = last(mode)
        program = f'CLIENT_ASSERTION=a.b.c DPOP_PROOF=d.e.f; curl() {{ printf "%s\\0" "$@"; }}; {found.command}'
        words = words_of(program)
        assert words[:4] == ["-i", "-X", "POST", f"{BASE}/request"]
        assert "DPoP: d.e.f" in words
        assert "client_assertion=a.b.c" in words
        assert "authentication_context_message=it's $(touch x) `id`" in words
        assert [note.partition(" ")[0] for note in found.command_notes] == ["$DPOP_PROOF", "$CLIENT_ASSERTION"]


def test_the_command_names_the_address_of_a_further_issuer() -> None:
    """D62, RFC 8414 §3.1: the path of the issuer may be at the end."""
    asked = exchange("rp1")
    asked.issuer, asked.method = f"{BASE}/legacy", "GET"
    for path in ("/legacy/.well-known/keys", "/.well-known/oauth-authorization-server/legacy"):
        asked.path = path
        assert inspection.inspect(asked, developer().exchanges).command == f"curl -i {BASE}{path}"


async def test_a_sign_in_is_one_page_from_par_to_userinfo() -> None:
    """D66: each request with its checks; another sign-in is not on it."""
    async with watched_demo() as (made, mode):
        await signed_in(made)
        await signed_in(made)
        sign_in = mode.exchanges.list_exchanges()[-1].sign_in
        assert sign_in is not None
        shown = await page(made, f"/sign-ins/{sign_in.sign_in_id}")
        names = re.findall(r'<h2><a href="/developer/traffic/\d+">([^<]*)<', shown)
        assert names == ["PAR", "Callback", "Token", "Userinfo"]
        assert sign_in.request_uri in shown
        await page(made, "/sign-ins/nothing", status=404)
        await page(made, "/999999", status=404)
        await page(made, "/x", status=404)


async def test_what_a_caller_sends_is_text_on_the_page() -> None:
    """SECURITY.md: no markup of a caller."""
    hostile = "<script>alert(1)</script><b>"

    async with watched_demo() as (made, mode):
        rp = await made.relying_party()
        await rp.push({"redirect_uri": f"https://x.example/{hostile}", "client_id": hostile, "state": hostile})
        http = await made.http()
        await http.get(f"{BASE}/userinfo", headers={"Authorization": f"{hostile} x", "X-Evil": hostile})
        for each in mode.exchanges.list_exchanges():
            assert hostile not in await page(made, f"/{each.exchange_id}")
        assert hostile not in await page(made)
        assert hostile not in await page(made, "?view=requests")
        assert hostile not in await page(made, f"?client_id={hostile}")


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.7"])
async def test_traffic_is_seen_as_other_pages_of_developer_mode_are(address: str) -> None:
    """D66: from this machine, or with the key; otherwise 404, whatever a header claims."""
    async with watched_demo() as (made, _):
        http = await made.http(address)
        own = address == "127.0.0.1"

        async def asked(path: str, **headers: str) -> int:
            async with http.stream("HEAD", f"{BASE}/developer/{path}", headers=headers) as answer:
                return answer.status_code

        for path in ("exchanges", "exchanges/1", "events", "traffic", "traffic/1", "traffic/sign-ins/1"):
            found = 404 if path.endswith("1") else 200
            assert await asked(path) == (found if own else 404)
            assert await asked(path, **{"X-Forwarded-For": "127.0.0.1"}) == 404
            assert await asked(path, Forwarded="for=127.0.0.1") == 404
            assert await asked(path, Cookie=f"corpid_developer={KEY}") == found


async def answers(http: httpx.AsyncClient, query: str) -> Any:
    return (await http.get(f"{BASE}/developer/exchanges{query}")).status_code


async def test_the_json_has_the_findings_and_takes_no_other_ids() -> None:
    """D66: checks in their order; `after` is a number."""
    async with watched_demo() as (made, _):
        rp = await made.relying_party()
        await rp.push({"scope": "authinfo"})
        [kept] = await listed(made, "?client_id=rp1")
        http = await made.http()
        found = (await http.get(f"{BASE}/developer/exchanges/{kept['id']}")).json()
        [failed] = [each for each in found["checks"] if each["state"] == CheckState.FAILED]
        assert (failed["part"], failed["reason"]) == ("Authorization request", "scope_without_openid")
        assert await listed(made, f"?after={kept['id']}") == []
        assert [await answers(http, query) for query in ("?after=x", "?after=-1", "?after=" + "9" * 99)] == [400] * 3


def test_an_id_is_a_short_number() -> None:
    assert [number(each) for each in ("7", "", "x", "-1", "9" * 99, "٣")] == [7, 0, 0, 0, 0, 0]


def test_an_order_that_answers_leaves_the_checks_unknown() -> None:
    """D66: the provider has not looked at the request."""
    mode = developer()
    ordered = exchange("rp1")
    ordered.status, ordered.error = 503, ""
    ordered.orders.append("error")
    mode.exchanges.add(ordered)
    found = inspection.inspect(ordered, mode.exchanges)
    assert {each.state for part in found.parts for each in part.checks} == {CheckState.UNKNOWN}
    assert inspection.last_good(exchange("rp1"), mode.exchanges) is None
    assert kept_exchanges.current() is None


def test_the_command_sends_one_request_whatever_is_in_the_address() -> None:
    """curl takes [1-9] and {a,b} for several requests."""
    asked = exchange("rp1")
    asked.issuer, asked.path, asked.method, asked.query = BASE, "/authorize", "GET", "state=[1-9]"
    command = inspection.inspect(asked, developer().exchanges).command
    assert command == f"curl -g -i '{BASE}/authorize?state=[1-9]'"
