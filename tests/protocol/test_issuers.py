"""Several issuers on one deployment: common people and keys, and nothing of one works at another (D62)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx
import pytest

from corpid import app, settings
from corpid.engines import StartError
from corpid.flows.operations.signing_keys import SigningKeys
from corpid.ports import FactorChange
from corpid.sandbox.browser import Browser
from corpid.sandbox.interfaces import INTERFACES
from corpid.sandbox.people import Person, sign_in
from corpid.sandbox.relying_party import RelyingParty
from tests.authenticator import Authenticator
from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.protocol.refusals import LOG, error_page, json_refusal, resource_refusal
from tests.protocol.test_discovery import golden
from tests.sign_in.factors import options_of
from tests.world.clients import FAR, rp_keys
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.protocol.provider import World, Worlds

BESIDE: Final = "https://legacy.example"
BELOW: Final = f"{ISSUER}/before"
PLACES: Final = pytest.mark.parametrize("there", [BESIDE, BELOW], ids=["another host", "a path of the same host"])
BOTH: Final[dict[str, Any]] = {
    "generations": ("legacy", "current"),
    "legacy_until": FAR,
    "issuers": ("first", "legacy"),
}


class Two:
    """A world with CURRENT at the first issuer and LEGACY at a further one; rp-1 is known to both (D62)."""

    def __init__(self, world: World, there: str) -> None:
        self.world, self.there = world, there
        world.registers(**BOTH)
        self.here = world.party()
        self.further = self.party()

    def party(self, client_id: str = "rp-1", generation: str = "legacy") -> RelyingParty:
        world = self.world
        return RelyingParty(
            client_id=client_id, issuer=self.there, http=world.http, clock=world.clock, keys=rp_keys(client_id),
            interface=INTERFACES[generation],
        )  # fmt: skip

    def browser(self) -> Browser:
        """A browser that walks the pages of both."""
        transport = httpx.ASGITransport(app=self.world.application.asgi)
        return Browser(httpx.AsyncClient(transport=transport), frozenset({ISSUER, BESIDE}))

    def signed_in(self, rp: RelyingParty, browser: Browser) -> str:
        """Sign in through the pages; the callback URL. Thirty seconds pass, for the next code."""
        person = Person(user_name="alice", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
        self.world.clock.now += 30
        url = self.world.run(rp.begin())
        callback = self.world.run(sign_in(browser, url, person, now=self.world.clock))
        return str(callback.url) if hasattr(callback, "url") else str(callback)

    def code(self, rp: RelyingParty, browser: Browser | None = None) -> str:
        return str(rp.callback(self.signed_in(rp, browser or self.browser())))

    def tokens(self, rp: RelyingParty) -> Any:
        return self.world.run(rp.believe(self.world.redeem(self.code(rp), rp)))

    def get(self, url: str, browser: Browser | None = None, **headers: str) -> httpx.Response:
        http = (browser or self.browser()).http
        return self.world.run(http.get(url, headers=headers, follow_redirects=False))


def two(worlds: Worlds, there: str, **options: Any) -> Two:
    further = {"id": "legacy", "base_url": there, "generations": ["legacy"]}
    return Two(worlds.fresh(generations=("current",), issuers=(further,), **options), there)


@PLACES
def test_each_issuer_publishes_its_exact_document_and_key_set(worlds: Worlds, there: str) -> None:
    """D62: the documents that each generation alone publishes, and x5c in a LEGACY issuer's JWKS only."""
    made = two(worlds, there)
    documents = [made.get(f"{base}/.well-known/openid-configuration").json() for base in (ISSUER, there)]
    assert documents == [golden("current"), golden("legacy", there)]
    keys = [made.get(document["jwks_uri"]).json()["keys"] for document in documents]
    assert [["x5c" in key for key in each] for each in keys] == [[False], [True]]
    assert keys[0][0]["kid"] == keys[1][0]["kid"]


@PLACES
def test_one_client_speaks_legacy_at_one_issuer_and_current_at_the_other(worlds: Worlds, there: str) -> None:
    """D62: the move itself; people, entities and keys are common, and callbacks carry iss as each document says."""
    made = two(worlds, there)
    modern, old = made.tokens(made.here), made.tokens(made.further)
    assert (modern.raw["token_type"], old.raw["token_type"]) == ("DPoP", "Bearer")
    assert (modern.id_token["iss"], old.id_token["iss"]) == (ISSUER, there)
    info = made.world.run(made.here.userinfo()), made.world.run(made.further.userinfo())
    assert info[0]["auth_info"] == info[1]["AuthInfo"]


@PLACES
def test_a_client_is_unknown_at_an_issuer_it_does_not_name(worlds: Worlds, there: str) -> None:
    """D62: default the first."""
    made = two(worlds, there)
    made.world.registers("rp-2", generations=("legacy", "current"), legacy_until=FAR)
    error_page(made.get(made.world.asked(made.party("rp-2"))))
    made.world.registers("rp-2", generations=("legacy", "current"), legacy_until=FAR, issuers=("legacy",))
    json_refusal(made.world.push(made.world.party("rp-2"), state="s"), 401, "invalid_client", state="s")
    assert made.tokens(made.party("rp-2")).id_token["iss"] == there


@PLACES
def test_a_client_that_names_no_generation_speaks_at_each_issuer_what_is_pushed_there(
    worlds: Worlds, there: str
) -> None:
    """D62: its generations are read per issuer; LEGACY is named per client (decisions "No downgrade")."""
    made = two(worlds, there)
    made.world.registers("rp-2", issuers=("first", "legacy"))
    assert made.tokens(made.world.party("rp-2")).raw["token_type"] == "DPoP"
    error_page(made.get(made.world.asked(made.party("rp-2"))))


@PLACES
def test_a_code_of_one_issuer_is_unknown_at_the_other(worlds: Worlds, there: str) -> None:
    """D18, D62: the refused code stays whole where it was made."""
    made = two(worlds, there)
    for own, other in ((made.here, made.further), (made.further, made.here)):
        code = made.code(own)
        other.sign_in.code_verifier = own.sign_in.code_verifier
        json_refusal(made.world.redeem(code, other), 400, "invalid_grant")
        assert made.world.redeem(code, own).status_code == 200


@PLACES
def test_an_access_token_of_one_issuer_is_worth_nothing_at_the_other(worlds: Worlds, there: str) -> None:
    """Spec 5, D62: iss and aud are the issuer's own, also where the scheme is that of the other."""
    made = two(worlds, there)
    bound, bearer = made.tokens(made.here).access_token, made.tokens(made.further).access_token
    answer = made.world.userinfo(made.further, token=bound)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
    resource_refusal(made.world.userinfo(made.here, token=bearer), 401, "invalid_token")


def test_a_bound_token_of_one_issuer_is_worth_nothing_at_another_of_the_same_generation(worlds: Worlds) -> None:
    """RFC 9449 §7, D62: with a proof that fits in everything but whose token it is."""
    further = {"id": "other", "base_url": BESIDE, "generations": ["fapi2"]}
    world = worlds.fresh(generations=("current",), issuers=(further,))
    made = Two.__new__(Two)
    made.world, made.there = world, BESIDE
    world.registers(generations=("current", "fapi2"), issuers=("first", "other"))
    here, further_rp = world.party(), made.party(generation="fapi2")
    token = made.tokens(here).access_token
    made.tokens(further_rp)
    further_rp.sign_in.dpop_key = here.sign_in.dpop_key
    answer = world.userinfo(further_rp, token=token)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
    answer = world.userinfo(further_rp, DPoP=here.proof("GET", f"{ISSUER}/userinfo", token))
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_dpop_proof")


def test_a_pushed_request_of_one_issuer_is_unknown_at_the_other(worlds: Worlds) -> None:
    """D16, D62: an error page, and the request stays."""
    further = {"id": "other", "base_url": BESIDE, "generations": ["intermediate"]}
    world = worlds.fresh(generations=("current",), issuers=(further,))
    made = Two.__new__(Two)
    made.world, made.there = world, BESIDE
    world.registers(generations=("current", "intermediate"), issuers=("first", "other"))
    here, other = world.party(), made.party(generation="intermediate")
    world.asked(here)
    world.run(other.discover())
    error_page(made.get(other.authorization_url(request_uri=here.sign_in.request_uri)))
    assert made.get(here.authorization_url()).status_code == 303


def test_an_assertion_for_one_issuer_proves_nothing_at_the_other(worlds: Worlds) -> None:
    """D8, D62: its aud is the issuer."""
    made = two(worlds, BESIDE)
    code = made.code(made.further)
    json_refusal(made.world.redeem(code, made.further, client_assertion=made.here.assertion()), 401, "invalid_client")
    assert made.world.redeem(code, made.further).status_code == 200


@PLACES
def test_a_browser_signed_in_at_one_issuer_is_a_stranger_at_the_other(worlds: Worlds, there: str) -> None:
    """D30, D34, D62: on one host the cookies have two names; one copied under the other's name is none."""
    made = two(worlds, there)
    browser = made.browser()
    made.signed_in(made.here, browser)
    assert "__Host-corpid" in {cookie.name for cookie in browser.http.cookies.jar}
    answer = made.get(made.world.asked(made.further), browser)
    assert (answer.status_code, answer.headers["location"]) == (303, answer.headers["location"])
    assert urlsplit(answer.headers["location"]).path.startswith(f"{urlsplit(there).path}/sign-in/")
    names = {cookie.name for cookie in browser.http.cookies.jar}
    assert names >= {"__Host-corpid", "__Host-corpid-legacy"}
    [stolen] = [str(each.value) for each in browser.http.cookies.jar if each.name == "__Host-corpid"]
    made.further.restart()
    thief = made.browser()
    asked = made.get(made.world.asked(made.further), thief, cookie=f"__Host-corpid-legacy={stolen}")
    assert asked.status_code == 303
    assert "__Host-corpid-legacy=" in asked.headers["set-cookie"]


@PLACES
def test_a_sign_in_under_way_at_one_issuer_is_not_found_at_the_other(worlds: Worlds, there: str) -> None:
    """D15, D34, D62: neither its page nor its form, with the browser's own cookie under the other's name."""
    made = two(worlds, there)
    browser = made.browser()
    made.world.run(browser.open(made.world.asked(made.here)))
    assert browser.page is not None
    [form] = [each for each in browser.page.forms if each.action.endswith("/password")]
    fields = dict(form.fields(None)) | {"user_name": "alice", "password": directory.PASSWORD}
    [own] = [str(each.value) for each in browser.http.cookies.jar if each.name == "__Host-corpid"]
    path = urlsplit(form.action).path
    headers = {"cookie": f"__Host-corpid-legacy={own}", "sec-fetch-site": "same-origin"}
    http = made.browser().http
    shown = made.world.run(http.get(f"{there}{path.removesuffix('/password')}", headers=headers))
    sent = made.world.run(http.post(f"{there}{path}", headers=headers, data=fields))
    for answer in (shown, sent):
        assert answer.status_code == 404, answer.text
        assert "This sign-in is no longer here" in answer.text
    assert "sign_in.password" not in made.world.audited()


def test_wrong_passwords_are_counted_for_all_issuers_together(worlds: Worlds) -> None:
    """D47, D62: people are common, so whoever guesses gains nothing by going to another issuer."""
    made = two(worlds, BESIDE)
    statuses = []
    for number in range(7):
        rp = made.here if number % 2 else made.further
        rp.restart()
        browser = made.browser()
        made.world.run(browser.open(made.world.asked(rp)))
        made.world.run(browser.fill_and_submit(user_name="alice", password="wrong"))
        assert browser.response is not None
        statuses.append(browser.response.status_code)
    assert statuses == [422, 422, 422, 422, 422, 422, 429]


@PLACES
def test_the_account_and_links_are_at_the_first_issuer_only(worlds: Worlds, there: str) -> None:
    """D62: a further issuer's pages lead to the first one's."""
    made = two(worlds, there)
    for path in ("/account", "/account/password", "/recover", "/link", "/link/x", "/enrolment/x"):
        assert made.get(f"{there}{path}").status_code == 404, path
    assert made.get(f"{ISSUER}/account").status_code == 303
    page = made.get(f"{there}/", accept="text/html").text
    assert f'href="{ISSUER}/account"' in page


def test_passkeys_are_offered_only_within_their_domain(worlds: Worlds) -> None:
    """D46, D62: default the first issuer's host; at an issuer outside of it no page asks for one."""
    assert "data-options" not in _password_page(two(worlds, BESIDE))
    assert "data-options" in _password_page(two(worlds, BELOW))
    assert "data-options" in _password_page(two(worlds, "https://legacy.op.example"))
    assert "data-options" in _password_page(two(worlds, BESIDE, passkey_rp_id="legacy.example"))


def _password_page(made: Two) -> str:
    browser = made.browser()
    return made.world.run(browser.http.get(made.world.asked(made.further), follow_redirects=True)).text


def test_what_one_issuer_has_authenticated_means_nothing_to_another(worlds: Worlds) -> None:
    """D62: form tokens, passkey challenges, cookies and nonces are MACs, each issuer's under a key of its own."""
    world = worlds.fresh()
    registry, now = world.provider.registry, world.clock.now
    one, *others = (world.run(SigningKeys(registry, issuer=url).at(now)) for url in ("", BESIDE, BELOW))
    assert one.secret == world.run(world.provider.signing_keys.at(now)).secret
    for other in others:
        assert other.ring.active.kid == one.ring.active.kid
        assert other.mac("form", "b") != one.mac("form", "b")
        assert not one.is_dpop_nonce(other.dpop_nonce(now), now)
    assert others[0].secret != others[1].secret


def test_the_longest_path_of_a_host_answers(worlds: Worlds) -> None:
    """D32, D62: a prefix that ends within a segment is none, and a hidden slash opens nothing."""
    further = (
        {"id": "one", "base_url": f"{ISSUER}/a", "generations": ["legacy"]},
        {"id": "two", "base_url": f"{ISSUER}/a/b", "generations": ["fapi2"]},
    )
    world = worlds.fresh(generations=("current",), issuers=further)

    def issuer(path: str, host: str = "op.example") -> object:
        url = f"{ISSUER}{path}/.well-known/openid-configuration"
        answer = world.run(world.http.get(url, headers={"host": host}))
        return answer.json()["issuer"] if answer.status_code == 200 else answer.status_code

    assert issuer("") == issuer("", "op.example:443") == issuer("", "OP.example") == ISSUER
    assert (issuer("/a"), issuer("/a/b"), issuer("/ab"), issuer("/a/bc")) == (f"{ISSUER}/a", f"{ISSUER}/a/b", 404, 404)
    assert (issuer("/a%2Fb"), issuer("", "elsewhere.example")) == (404, 421)
    for path in ("/healthz", "/readyz"):
        assert world.run(world.http.get(f"{ISSUER}{path}")).status_code == 200
        assert world.run(world.http.get(f"{ISSUER}/a{path}")).status_code == 404


def test_the_log_line_names_the_issuer_where_there_are_several(worlds: Worlds) -> None:
    """D48, D62."""
    made = two(worlds, BESIDE)
    start = LOG.tell()
    for base in (ISSUER, BESIDE):
        made.get(f"{base}/.well-known/keys")
    made.world.run(made.world.http.get(f"{ISSUER}/healthz"))
    assert [json.loads(line).get("issuer") for line in LOG.getvalue()[start:].splitlines()] == ["first", "legacy", None]
    start = LOG.tell()
    alone = worlds.fresh()
    alone.run(alone.http.get(f"{ISSUER}/.well-known/keys"))
    assert "issuer" not in json.loads(LOG.getvalue()[start:].splitlines()[-1])


def test_the_audit_is_common_and_names_a_further_issuer(worlds: Worlds) -> None:
    """D62: an entry of the first one is as it was."""
    made = two(worlds, BESIDE)
    made.signed_in(made.here, made.browser())
    made.signed_in(made.further, made.browser())
    entries = made.world.run(made.world.provider.registry.audit.entries(limit=10_000))
    ended = [entry.detail.get("issuer") for entry in entries if entry.action == "sign_in.complete"]
    assert ended[-2:] == [None, "legacy"]


def test_fapi2_and_legacy_run_in_one_deployment(worlds: Worlds) -> None:
    """D62: on different issuers, for one client."""
    further = {"id": "legacy", "base_url": BESIDE, "generations": ["legacy"]}
    world = worlds.fresh(generations=("fapi2",), issuers=(further,))
    made = Two.__new__(Two)
    made.world, made.there = world, BESIDE
    world.registers(generations=("legacy", "fapi2"), legacy_until=FAR, issuers=("first", "legacy"))
    assert made.tokens(world.party()).id_token["iss"] == ISSUER
    assert made.tokens(made.party()).id_token["iss"] == BESIDE


def test_a_client_that_names_an_issuer_that_is_gone_is_told_at_the_start(worlds: Worlds) -> None:
    """D62: a sentence at start; the client is known nowhere else meanwhile."""
    world = worlds.fresh()
    rp = world.registers("rp-2", issuers=("gone",))
    json_refusal(world.push(rp, state="s"), 401, "invalid_client", state="s")
    start = LOG.tell()

    async def opened() -> None:

        chosen = settings.load(data_dir=world.directory, base_url=ISSUER, trusted_proxies=("127.0.0.1",))
        async with app.create(chosen, clock=world.clock):
            pass

    world.run(opened())
    lines = [json.loads(line) for line in LOG.getvalue()[start:].splitlines()]
    [line] = [line for line in lines if line["event"] == "unknown_issuer"]
    assert line["detail"].startswith("rp-2 names the issuer gone, which this deployment does not have")


def test_a_challenge_of_one_issuer_is_no_ceremony_at_the_other(worlds: Worlds) -> None:
    """WebAuthn §7.2, D46, D62: one passkey works at both, each with its own page's challenge and origin."""
    made = two(worlds, "https://legacy.op.example")
    user_id = directory.ALICE.user_id
    key = Authenticator(user_handle=user_id.encode())
    world = made.world
    stored = world.run(world.provider.registry.factors.credentials(user_id))
    change = FactorChange(before=stored, after=stored, add_passkey=key.record(user_id))
    assert world.run(world.provider.registry.factors.change(change, EVENT))
    here, there = made.browser(), made.browser()
    there.origins = frozenset({made.there})
    world.run(here.open(world.asked(made.here)))
    world.run(there.open(world.asked(made.further)))
    for options, origin in ((options_of(here), made.there), (options_of(there), ISSUER)):
        world.run(there.fill_and_submit(passkey=key.use(options, origin)))
        assert there.response is not None
        assert (there.response.status_code, there.left) == (422, None)
    world.run(there.fill_and_submit(passkey=key.use(options_of(there), made.there)))
    assert there.left is not None
    assert made.world.run(made.further.redeem(there.left)).id_token["iss"] == made.there


@PLACES
def test_a_form_token_of_one_issuer_fills_no_form_of_the_other(worlds: Worlds, there: str) -> None:
    """D35, D62: also beside everything else that the page of the other gave."""
    made = two(worlds, there)
    browser = made.browser()
    made.world.run(browser.open(made.world.asked(made.here)))
    [foreign] = [form for form in browser.page.forms if form.action.endswith("/password")]
    made.world.run(browser.open(made.world.asked(made.further)))
    form = browser.page.form_with("user_name", "password")
    assert form is not None
    for name, value in {**dict(foreign.fields(None)), "user_name": "alice", "password": directory.PASSWORD}.items():
        form.fill(name, value)
    made.world.run(browser.submit(form))
    assert browser.response is not None
    assert browser.response.status_code == 400
    assert "This form is not one that this browser was shown" in browser.page.text


@pytest.mark.parametrize(
    "path", ["/account", "/sign-in", "/sign-in/x", "/.well-known", "/userinfo", "/mga/sps", "/link/x/y"]
)
def test_an_issuer_cannot_lie_on_a_path_of_another(tmp_path: Path, path: str) -> None:
    """D32, D62: it would hide a page or an endpoint; a sentence at the start says what to write."""
    table = {"id": "legacy", "base_url": f"http://localhost:8080/op{path}", "generations": ["legacy"]}

    async def opened() -> None:
        chosen = settings.load(data_dir=tmp_path, base_url="http://localhost:8080/op", issuers=(table,))
        async with app.create(chosen):
            pass

    with pytest.raises(StartError, match=r"lies on a path of first: write another path, such as .*/op/legacy$"):
        asyncio.run(opened())
