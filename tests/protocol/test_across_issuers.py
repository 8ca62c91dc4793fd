"""What one issuer gave out, shown at another of the same deployment: nothing of it works there, and it stays good where it was made (D62).

Each promise is tried between issuers of one generation, where nothing but the issuer keeps them apart, and between CURRENT and LEGACY.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import pytest

from corpid.flows.account import links
from corpid.flows.operations.signing_keys import SigningKeys
from corpid.rules.authentication.records import FactorChange
from corpid.rules.directory.access import CommandLine
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser, parse
from tests.authenticator import Authenticator
from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.protocol.issuers import BELOW, BESIDE, COOKIE_THERE, OWN_COOKIE, PLACES, TwoIssuers, alice, two
from tests.protocol.refusals import error_page, json_refusal, told_error
from tests.sign_in.factors import options_of
from tests.tiers import first_or_full
from tests.world.provider import EVENT, origin

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import Worlds

PAIRS: Final = [("current", "current"), ("intermediate", "intermediate"), ("fapi2", "fapi2"), ("legacy", "legacy")]
BETWEEN: Final = pytest.mark.parametrize(
    "generations", first_or_full([*PAIRS, ("current", "legacy")], first=("current", "legacy")), ids="-".join
)
PUSHED: Final = pytest.mark.parametrize(
    "generations", first_or_full([*PAIRS[:3], ("current", "intermediate")]), ids="-".join
)
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
GONE: Final = "We cannot find this sign-in"


def each_way(made: TwoIssuers) -> tuple[tuple[RelyingParty, RelyingParty], ...]:
    """Whose a thing is, and where it is shown."""
    return (made.here, made.further), (made.further, made.here)


def worn(browser: Browser) -> dict[str, str]:
    return {cookie.name: cookie.value or "" for cookie in browser.http.cookies.jar}


# Codes, tokens, requests, assertions, proofs


@BETWEEN
def test_a_code_is_unknown_at_the_other(worlds: Worlds, generations: tuple[str, str]) -> None:
    """D18, D62: with its verifier and its key; the refused code stays whole where it was made."""
    made = TwoIssuers(worlds, BELOW, generations)
    for own, other in each_way(made):
        code = made.code(own)
        other.sign_in.code_verifier, other.sign_in.dpop_key = own.sign_in.code_verifier, own.sign_in.dpop_key
        json_refusal(made.world.redeem(code, other), 400, "invalid_grant")
        assert made.world.redeem(code, own).status_code == 200


@BETWEEN
def test_an_access_token_is_worth_nothing_at_the_other(worlds: Worlds, generations: tuple[str, str]) -> None:
    """Spec 5, RFC 9449 §7, D62: with a proof that fits in everything but whose token it is; iss and aud are the issuer's own."""
    made = TwoIssuers(worlds, BELOW, generations)
    for own, other in each_way(made):
        token = made.tokens(own).access_token
        other.sign_in.dpop_key = own.sign_in.dpop_key
        answer = made.world.userinfo(other, token=token)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
        assert made.world.userinfo(own).status_code == 200


@BETWEEN
def test_an_assertion_proves_nothing_at_the_other(worlds: Worlds, generations: tuple[str, str]) -> None:
    """D8, D62: its aud is the issuer, at the push and at the token endpoint."""
    made = TwoIssuers(worlds, BELOW, generations)
    for own, other in each_way(made):
        if own.interface.pushed:
            own.restart()
            answer = made.world.push(own, state="s", client_assertion=other.assertion())
            json_refusal(answer, 401, "invalid_client", state="s")
        code = made.code(own)
        json_refusal(made.world.redeem(code, own, client_assertion=other.assertion()), 401, "invalid_client")
        assert made.world.redeem(code, own).status_code == 200


@PUSHED
def test_a_proof_proves_nothing_at_the_other(worlds: Worlds, generations: tuple[str, str]) -> None:
    """RFC 9449 §4.3, D7, D62: htu begins with the issuer."""
    made = TwoIssuers(worlds, BELOW, generations)
    for own, other in each_way(made):
        token = made.tokens(own).access_token
        proof = own.proof("GET", f"{other.issuer}/userinfo", token)
        answer = made.world.userinfo(own, DPoP=proof)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_dpop_proof")


@PUSHED
def test_a_pushed_request_is_unknown_at_the_other(worlds: Worlds, generations: tuple[str, str]) -> None:
    """D16, D62: an error page, and the request stays."""
    made = TwoIssuers(worlds, BELOW, generations)
    for own, other in each_way(made):
        own.restart()
        made.world.asked(own)
        made.world.run(other.discover())
        error_page(made.get(other.authorization_url(request_uri=own.sign_in.request_uri)))
        assert made.get(own.authorization_url()).status_code == 303


@PUSHED
def test_a_server_nonce_is_none_of_the_others(worlds: Worlds, generations: tuple[str, str]) -> None:
    """RFC 9449 §8, D7, D62: the other asks for one of its own."""
    made = TwoIssuers(worlds, BELOW, generations, dpop_nonces=True)
    for own, other in each_way(made):
        own.restart()
        asked = made.world.push(own, headers={"DPoP": own.proof("POST", f"{own.issuer}/request")})
        nonce = asked.headers["dpop-nonce"]
        assert (
            made.world.push(own, headers={"DPoP": own.proof("POST", f"{own.issuer}/request", nonce=nonce)}).status_code
            == 201
        )
        other.restart()
        foreign = made.world.push(other, headers={"DPoP": other.proof("POST", f"{other.issuer}/request", nonce=nonce)})
        assert (foreign.status_code, foreign.json()["error"]) == (400, "use_dpop_nonce")
        assert foreign.headers["dpop-nonce"] != nonce


# Browsers: cookies, sign-ins under way, single sign-on


@PLACES
@pytest.mark.parametrize("generations", [PAIRS[0], PAIRS[3], ("current", "legacy")], ids="-".join)
def test_a_browser_signed_in_at_one_is_a_stranger_at_the_other(
    worlds: Worlds, there: str, generations: tuple[str, str]
) -> None:
    """D30, D34, D62: on one host the cookies have two names; the value of one under the other's name is none."""
    made = TwoIssuers(worlds, there, generations)
    for own, other in each_way(made):
        browser = made.browser()
        made.signed_in(own, browser)
        name, foreign = (OWN_COOKIE, COOKIE_THERE) if own is made.here else (COOKIE_THERE, OWN_COOKIE)
        value = worn(browser)[name]
        assert made.get(made.world.asked(own), browser).status_code == 302, "single sign-on is on"
        for seeking, cookie in ((browser, {}), (made.browser(), {"cookie": f"{foreign}={value}"})):
            other.restart()
            answer = made.get(made.world.asked(other), seeking, **cookie)
            assert answer.status_code == 303, answer.text
            assert "/sign-in/" in answer.headers["location"]
            assert f"{foreign}=" in answer.headers["set-cookie"], "it is a new browser there"


STEPS: Final = ("sign_in", "code", "entity", "decision")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("generations", [PAIRS[0], PAIRS[3]], ids="-".join)
def test_no_page_of_a_sign_in_under_way_is_found_at_the_other(
    worlds: Worlds, generations: tuple[str, str], step: str
) -> None:
    """D15, D29, D34, D62: neither the page of any step nor its form, consent's included, with the browser's cookie under the other's name."""
    made = TwoIssuers(worlds, BELOW, generations)
    for own, base, foreign in ((made.here, BELOW, COOKIE_THERE), (made.further, ISSUER, OWN_COOKIE)):
        browser = made.browser()
        own.restart()
        made.world.clock.now += 60
        made.world.run(_until(step, made, browser, made.world.asked(own, prompt="consent select_account")))
        name = OWN_COOKIE if own is made.here else COOKIE_THERE
        home = ISSUER if own is made.here else BELOW
        path = browser.url.removeprefix(home)
        assert path.startswith("/sign-in/")
        headers = {**FORM, "cookie": f"{foreign}={worn(browser)[name]}"}
        answers = [made.get(f"{base}{path}", **headers)]
        for form in browser.page.forms:
            action = form.action.removeprefix(urlsplit(home).path)
            if action.startswith("/sign-in/"):
                fields = {**dict(form.fields(next(iter(form.buttons), None))), **_typed(step)}
                answers.append(
                    made.world.run(made.browser().http.post(f"{base}{action}", headers=headers, data=fields))
                )
        assert len(answers) > 2
        for answer in answers:
            assert answer.status_code == 404, answer.text
            assert GONE in answer.text
        callback = made.world.run(people.finish(browser, _person(made), now=made.world.clock))
        assert made.world.run(own.redeem(callback)).id_token["iss"] == home


def _person(made: TwoIssuers) -> people.Person:
    """Alice, whose code of this moment may be used up."""
    person = alice()
    person.used_step = int(made.world.clock.now) // 30
    return person


def _typed(step: str) -> dict[str, str]:
    return {"user_name": "alice", "password": directory.PASSWORD} if step == "sign_in" else {}


async def _until(step: str, made: TwoIssuers, browser: Browser, url: str) -> None:
    await browser.open(url)
    person = alice()
    while people.step_of(browser) != step:
        await people.answer_page(browser, person, now=made.world.clock)


@PLACES
def test_a_form_token_fills_no_form_of_the_other(worlds: Worlds, there: str) -> None:
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
    assert "This form was not opened in this browser" in browser.page.text


def test_signing_out_at_one_leaves_the_other_and_its_form_is_none_of_the_others(worlds: Worlds) -> None:
    """D30, D35, D62."""
    made = TwoIssuers(worlds, BELOW, ("current", "current"))
    browser = made.browser()
    for rp in (made.here, made.further):
        made.signed_in(rp, browser)
    made.world.run(browser.open(f"{BELOW}/sign-out", site="none"))
    [there] = [form for form in browser.page.forms if form.action.endswith("/sign-out")]
    content = urlencode(list(there.fields(None)))
    crossed = made.world.run(browser.http.post(f"{ISSUER}/sign-out", content=content, headers=FORM))
    assert crossed.status_code == 400
    made.world.run(browser.submit(there))
    for rp, status in ((made.here, 302), (made.further, 303)):
        rp.restart()
        assert made.get(made.world.asked(rp), browser).status_code == status


def test_the_account_signs_a_person_out_at_every_issuer(worlds: Worlds) -> None:
    """D30, D62: sessions are the person's, so its page lists and ends those of each."""
    made = two(worlds, BESIDE)
    browser, elsewhere = made.browser(), made.browser()
    for rp in (made.here, made.further):
        made.signed_in(rp, elsewhere)
    made.world.clock.now += 60
    made.world.run(browser.open(f"{ISSUER}/account/browsers", site="none"))
    made.world.run(_finished(made, browser))
    everywhere = next(form for form in browser.page.forms if any(button.value == "others" for button in form.buttons))
    made.world.run(browser.submit(everywhere, "others"))
    for rp in (made.here, made.further):
        rp.restart()
        assert made.get(made.world.asked(rp), elsewhere).status_code == 303


# What a browser holds until its cookie comes back


@PLACES
@pytest.mark.parametrize("long", [False, True], ids=["in a cookie", "in a form"])
def test_a_sign_in_that_a_browser_holds_is_stored_by_its_own_issuer_alone(
    worlds: Worlds, there: str, long: bool
) -> None:
    """D15, D34, D62: at the other, under its names, neither beside its own cookie nor beside a copied one."""
    made = TwoIssuers(worlds, there, ("legacy", "legacy"))
    state = "s" * (2048 if long else 20)
    bases = {OWN_COOKIE: ISSUER, COOKIE_THERE: there}
    for (own, other), name, foreign in zip(each_way(made), bases, reversed(bases), strict=True):
        browser, beside = made.browser(), made.browser()
        for rp in (own, other):
            rp.restart()
        held = _held(made.get(made.world.asked(own, state=state), browser), name)
        made.get(made.world.asked(other), beside)
        with made.world.nothing_spent():
            for value in (worn(browser)[name], worn(beside)[foreign]):
                answer = _brought(made, bases[foreign], held, foreign, value, long=long)
                assert answer.status_code == 404, answer.text
                assert GONE in answer.text
        answer = _brought(made, bases[name], held, name, worn(browser)[name], long=long)
        assert answer.status_code == 200, "where it was begun it is good"


def _held(answer: httpx.Response, name: str) -> str:
    """What the browser was given to hold: a cookie, or the field of a form."""
    if answer.status_code == 303:
        [value] = [cookie for cookie in answer.cookies.jar if cookie.name == f"{name}_arrival"]
        return value.value or ""
    [form] = [form for form in parse(answer.text).forms if "arrive" in form.names()]
    return dict(form.fields(None))["arrive"]


def _brought(made: TwoIssuers, base: str, held: str, name: str, value: str, *, long: bool) -> httpx.Response:
    """The browser comes back with its cookie, and with what it holds."""
    http, page = made.browser().http, f"{base}/sign-in/{held.partition('.')[0]}"
    if long:
        headers = {**FORM, "cookie": f"{name}={value}"}
        made.world.run(http.post(f"{page}/arrive", headers=headers, content=urlencode({"arrive": held})))
        return made.get(page, cookie=f"{name}={value}")
    return made.get(page, cookie=f"{name}={value}; {name}_arrival={held}")


# Passkeys, account and links


@pytest.mark.parametrize("there", ["https://legacy.op.example", BELOW], ids=["another host", "a path of the same host"])
@pytest.mark.parametrize("generations", [("current", "current"), ("current", "legacy")], ids="-".join)
def test_a_passkeys_answer_to_one_is_no_ceremony_at_the_other(
    worlds: Worlds, there: str, generations: tuple[str, str]
) -> None:
    """WebAuthn §7.2, D46, D62: one passkey works at both, each with its own page's challenge and origin."""
    made = TwoIssuers(worlds, there, generations)
    world, user_id = made.world, directory.ALICE.user_id
    key = Authenticator(user_handle=user_id.encode())
    stored = world.run(world.provider.registry.factors.credentials(user_id))
    change = FactorChange(before=stored, after=stored, add_passkey=key.record(user_id))
    assert world.run(world.provider.registry.factors.change(change, EVENT))
    origins = {ISSUER, origin(there)}
    for own, other in each_way(made):
        browsers = {}
        for rp in (own, other):
            rp.restart()
            browsers[rp.issuer] = made.browser()
            browsers[rp.issuer].origins = frozenset(origins)
            world.run(browsers[rp.issuer].open(world.asked(rp)))
        browser, foreign = browsers[own.issuer], browsers[other.issuer]
        for claimed in origins:
            world.run(browser.fill_and_submit(passkey=key.use(options_of(foreign), claimed)))
            assert browser.response is not None
            assert (browser.response.status_code, browser.left) == (200, None)
        world.run(browser.fill_and_submit(passkey=key.use(options_of(browser), origin(own.issuer))))
        assert browser.left is not None
        assert world.run(own.redeem(browser.left)).id_token["iss"] == own.issuer


@PLACES
def test_the_account_of_the_first_opens_with_no_cookie_of_the_other(worlds: Worlds, there: str) -> None:
    """D34, D62: and a browser that is signed in to the account is a stranger at the further issuer."""
    made = two(worlds, there)
    browser = made.browser()
    made.signed_in(made.further, browser)
    stolen = worn(browser)[COOKIE_THERE]
    assert _leads_to_sign_in(made.get(f"{ISSUER}/account", cookie=f"{OWN_COOKIE}={stolen}"))
    owner = made.browser()
    made.world.clock.now += 60
    made.world.run(owner.open(f"{ISSUER}/account", site="none"))
    made.world.run(_finished(made, owner))
    assert made.get(f"{ISSUER}/account", owner).status_code == 200
    for seeking, cookie in ((owner, {}), (made.browser(), {"cookie": f"{COOKIE_THERE}={worn(owner)[OWN_COOKIE]}"})):
        made.further.restart()
        assert _leads_to_sign_in(made.get(made.world.asked(made.further), seeking, **cookie))
    assert made.get(f"{there}/account", owner).status_code == 404


def _leads_to_sign_in(answer: httpx.Response) -> bool:
    return answer.status_code == 303 and "/sign-in/" in answer.headers["location"]


async def _finished(made: TwoIssuers, browser: Browser) -> None:
    person = alice()
    while "/sign-in/" in browser.url:
        await people.answer_page(browser, person, now=made.world.clock)


@PLACES
@pytest.mark.parametrize("purpose", ["invitation", "password", "second_factor"])
def test_a_link_opens_nothing_at_a_further_issuer(worlds: Worlds, there: str, purpose: Any) -> None:
    """D44, D62: neither its address nor its code nor the pages behind it, with the browser's cookie under the other's name."""
    made = two(worlds, there)
    world = made.world
    link = world.run(
        links.make_link(
            world.provider.registry, directory.BOB, purpose, actor=CommandLine(by="lee@node1"), base_url=ISSUER, now=world.clock(),
            new_id=world.provider.new_id,
        )
    )  # fmt: skip
    assert link.url.startswith(f"{ISSUER}/")
    browser = made.browser()
    world.run(browser.open(link.page, site="none"))
    world.run(browser.fill_and_submit(code=link.code))
    cookies = {"cookie": f"{COOKIE_THERE}={worn(browser)[OWN_COOKIE]}"}
    http, opened = made.browser().http, browser.url.removeprefix(ISSUER)
    assert browser.page.forms, browser.page.text
    with world.nothing_spent():
        for path in ("/link", opened, browser.page.forms[0].action):
            for method in ("GET", "POST"):
                content = urlencode({**dict(browser.page.forms[0].fields(None)), "code": link.code})
                answer = world.run(http.request(method, f"{there}{path}", headers={**FORM, **cookies}, content=content))
                assert answer.status_code == 404, (path, answer.text)
    world.run(browser.submit(browser.page.forms[0]))
    assert browser.response is not None
    assert browser.response.status_code == 200, "at the first it goes on"


# Beneath all of it


def test_what_one_issuer_has_authenticated_means_nothing_to_another(worlds: Worlds) -> None:
    """D62: form tokens, passkey challenges, cookies and nonces are MACs, each issuer's under a key of its own."""
    world = worlds.fresh()
    registry, now = world.provider.registry, world.clock.now
    one, *others = (world.run(SigningKeys(registry, issuer=url).keys_at(now)) for url in ("", BESIDE, BELOW))
    assert one.secret == world.run(world.provider.signing_keys.keys_at(now)).secret
    for other in others:
        assert other.ring.active.kid == one.ring.active.kid
        assert other.mac("form", "b") != one.mac("form", "b")
        assert not one.is_dpop_nonce(other.dpop_nonce(now, loss=""), now, loss="")
    assert others[0].secret != others[1].secret


def test_guesses_are_counted_for_all_issuers_together(worlds: Worlds) -> None:
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
    assert statuses == [200, 200, 200, 200, 200, 200, 429]


def test_rates_of_a_client_are_those_of_all_issuers_together(worlds: Worlds) -> None:
    """D47, D62: a client has one share of this deployment."""
    made = TwoIssuers(worlds, BELOW, ("current", "current"), par_per_client=6)
    made.world.clock.now += 120
    statuses = []
    for number in range(8):
        rp = made.here if number % 2 else made.further
        rp.restart()
        statuses.append(made.world.push(rp).status_code)
    assert statuses == [201] * 6 + [429] * 2


def test_maintenance_holds_at_every_issuer(worlds: Worlds) -> None:
    """D50, D62: where a request came from before, the client is told."""
    made = two(worlds, BELOW)
    urls = [made.world.asked(rp, state="s") for rp in (made.here, made.further)]
    made.world.run(made.world.provider.registry.deployment.set_maintenance(True, EVENT))
    made.world.clock.now += 5
    for url, iss in zip(urls, (None, BELOW), strict=True):
        told_error(made.get(url), "temporarily_unavailable", state="s", iss=iss)
    made.world.run(made.world.provider.registry.deployment.set_maintenance(False, EVENT))


# Consent


@PUSHED
def test_consent_at_one_is_asked_for_at_the_other(worlds: Worlds, generations: tuple[str, str]) -> None:
    """D29, D62: the same person, client, entity and scopes; then each remembers its own."""
    made = TwoIssuers(worlds, BELOW, generations)
    scope = "openid user.name"
    made.registers(sector="private", scopes=tuple(scope.split()))
    given = []
    for rp in (made.here, made.further, made.here, made.further):
        rp.scope = scope
        assert made.code(rp)
        given.append(made.world.audited().count("consent.give"))
    assert given == [1, 2, 2, 2]
