"""`corpid demo --host`: other machines reach the demo with TLS, and see it with the key of this start only (D66).

Over real sockets at this machine's own address on its network: a connection to it comes from it, not from a loopback
address, so that it counts as another machine's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from corpid import cli
from corpid_dev import hosting
from corpid_dev.demo import example_directory
from corpid_dev.demo.check import Inspector, Outcome
from corpid_dev.demo.demo import LOG, Demo, running
from corpid_dev.demo.example_directory import ExampleDirectory
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser, DeadEndError
from corpid_dev.relying_party.verification import Callback
from corpid_dev.web.mode import key_cookie
from tests import quick_start
from tests.interop.demonstration import demonstrated
from tests.interop.test_demo import COMMAND, SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.full


PATIENCE = 60.0
KEY_COOKIE, RP_COOKIE = "__Host-corpid_developer", "__Host-corpid-demo-rp"
SHOWN = ["/", "/codes", "/mail", "/mail/1", "/ca.crt", "/callback", "/sign-ins/x", "/callback?code=c&state=s"]
POSTED = ["/login", "/passkey", "/logout", "/callback", "/callback/fragment"]
OF_DEVELOPERS = ["/developer", "/developer/anybody", "/developer/errors", "/developer/schemas/openapi-current.json"]


@dataclass(frozen=True)
class Network:
    """A running demo, and what another machine sends to it."""

    demo: Demo

    @property
    def secrets(self) -> set[str]:
        return {each.password for each in self.demo.registration.persons}

    def ask(self, method: str, url: str, **options: Any) -> httpx.Response:
        trusted = self.demo.hosting.certificate
        assert trusted is not None
        with httpx.Client(verify=trusted.client_context(), trust_env=False, timeout=PATIENCE) as http:
            return http.request(method, url, **options)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    if hosting.own_address() is None:
        pytest.skip("this machine has no address on a network")
    with demonstrated(tmp_path_factory.mktemp("demo"), network=hosting.find("auto")) as demo:
        yield Network(demo)


def wrong_keys(key: str) -> list[dict[str, Any]]:
    """What is not the key: nothing, another one, two of them, or the right one in a wrong place."""
    return [
        {},
        {"params": {"key": "wrong"}},
        {"params": {"key": ""}},
        {"params": [("key", key), ("key", key)]},
        {"params": {"Key": key}},
        {"headers": {"Cookie": f"{KEY_COOKIE}=wrong"}},
        {"headers": {"Cookie": f"{KEY_COOKIE}={key}; {KEY_COOKIE}={key}"}},
        {"headers": {"Cookie": f"corpid_developer={key}"}},
        {"headers": {"Cookie": f"{KEY_COOKIE}={key}"}, "params": {"key": "wrong"}},
        {"headers": {"Authorization": f"Bearer {key}", "X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"}},
    ]


def test_without_the_key_the_demo_rp_shows_nothing(network: Network) -> None:
    """D66: not its people, codes and mail, and it invites nobody."""
    for options in wrong_keys(network.demo.key):
        for method, paths in (("GET", SHOWN), ("POST", POSTED)):
            for path in paths:
                url = httpx.URL(network.demo.relying_party_url + path)
                url = url.copy_merge_params(options.get("params", {}))
                headers = options.get("headers", {})
                answer = network.ask(
                    method, str(url), headers=headers, data={"user_name": "rina"} if method == "POST" else None
                )
                assert answer.status_code == 404, (method, path, options)
                assert "open the link" in answer.text


def test_without_the_key_developer_mode_is_not_there(network: Network) -> None:
    """D66: the path is 404 as any other, its documents too."""
    for options in wrong_keys(network.demo.key):
        for path in OF_DEVELOPERS:
            answer = network.ask("GET", network.demo.issuer + path, **options)
            assert answer.status_code == 404, (path, options)
        posted = network.ask("POST", f"{network.demo.issuer}/developer/sign-ins", json={}, **options)
        assert posted.status_code == 404


@pytest.mark.parametrize("path", OF_DEVELOPERS)
def test_the_key_moves_from_the_address_into_a_cookie(network: Network, path: str) -> None:
    """D66, D34: for scripts unreadable, on https alone; the other parameters stay."""
    answer = network.ask("GET", network.demo.issuer + path, params={"as": "x", "key": network.demo.key})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}?as=x")
    assert answer.headers["set-cookie"] == (
        f"{KEY_COOKIE}={network.demo.key}; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure"
    )
    assert (answer.headers["referrer-policy"], answer.headers["cache-control"]) == ("no-referrer", "no-store")
    shown = network.ask("GET", network.demo.issuer + path, headers={"Cookie": f"{KEY_COOKIE}={network.demo.key}"})
    assert shown.status_code in {200, 303}


def test_the_printed_link_opens_website_and_developer_mode(network: Network) -> None:
    """D66: one cookie for both, since ports do not separate cookies."""
    answer = network.ask("GET", network.demo.link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert answer.headers["referrer-policy"] == "no-referrer"
    cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    page = network.ask("GET", f"{network.demo.relying_party_url}/", headers=cookie)
    assert page.status_code == 200
    assert all(secret in page.text for secret in network.secrets)
    assert "Set up a passkey" not in page.text, "passkeys do not work at an address (D34)"
    assert page.headers["referrer-policy"] == "same-origin"
    assert network.ask("GET", f"{network.demo.issuer}/developer/anybody", headers=cookie).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "evil.example:{port}", "localhost:{port}"])
def test_a_forged_host_is_refused_with_the_key_too(network: Network, host: str) -> None:
    """D35: a name of another site that resolves to this machine is that site's (DNS rebinding)."""
    for url, path in ((network.demo.issuer, "/developer/anybody"), (network.demo.relying_party_url, "/")):
        headers = {"Host": host.format(port=httpx.URL(url).port), "Cookie": f"{KEY_COOKIE}={network.demo.key}"}
        assert network.ask("GET", url + path, headers=headers).status_code == 421


async def walk(browser: Browser, demo: Demo) -> None:
    """From the pressed button of the start page to the page of results, by one click on a test person."""
    form = next(form for form in browser.page.forms if form.action == "/login")
    await browser.submit(form)
    await browser.fill_and_submit("person", button="rina")
    while browser.url.startswith(f"{demo.issuer}/"):
        await people.answer_page(browser, demo.registration.persons[0])


async def test_a_phone_signs_in_from_the_link_on(network: Network) -> None:
    """D34, D66: over TLS to the page of results; the cookies of provider and website have names of their own."""
    demo = network.demo
    async with demo.hosting.http(PATIENCE) as http:
        browser = Browser(http, frozenset({demo.issuer, demo.relying_party_url}))
        await browser.open(demo.link, site="none")
        assert browser.url == f"{demo.relying_party_url}/"
        await walk(browser, demo)
        assert browser.page.heading == "You are signed in"
        names = [each.name for each in http.cookies.jar]
        assert sorted(names) == sorted({"__Host-corpid", KEY_COOKIE, RP_COOKIE})
        assert all(each.secure and each.path == "/" and not each.domain_specified for each in http.cookies.jar)
        signing_out = next(form for form in browser.page.forms if form.action == "/logout")
        await browser.submit(signing_out)
        assert sorted(each.name for each in http.cookies.jar) == sorted({"__Host-corpid", KEY_COOKIE})


async def test_without_the_key_a_sign_in_asks_for_secrets_that_nobody_has_published(network: Network) -> None:
    """D66: a relying party elsewhere can be tried; who has no key finds no list, and the example's passwords are worthless."""
    demo = network.demo
    async with demo.hosting.http(PATIENCE) as http:
        rp = Inspector(demo=demo, http=http).relying_party(Outcome("elsewhere"))
        browser = Browser(http, frozenset({demo.issuer}))
        await browser.open(await rp.begin())
        assert browser.page.form_with("person") is None
        published = ExampleDirectory.read(example_directory.content()).persons()
        assert {each.password for each in published}.isdisjoint(network.secrets)
        with pytest.raises(DeadEndError, match="shown again"):
            await people.finish(browser, published[0])
        at_once = await http.post(
            f"{browser.url}/at-once", data={"person": "rina"}, headers={"Sec-Fetch-Site": "same-origin"}
        )
        assert at_once.status_code in {400, 404}


async def test_ci_on_another_machine_signs_in_with_the_key(network: Network) -> None:
    """D66: an order in the query's name, since a program has no cookies."""
    demo = network.demo
    async with demo.hosting.http(PATIENCE) as http:
        rp = Inspector(demo=demo, http=http).relying_party(Outcome("at once"))
        order = {"authorize_url": await rp.begin(), "user": "rina", "entity": "209900042K"}
        answer = await http.post(f"{demo.issuer}/developer/sign-ins", params={"key": demo.key}, json=order)
        assert answer.status_code == 200
        assert (await rp.redeem(Callback(answer.json()["callback_url"]))).id_token


def test_a_browser_is_not_told_to_stay_on_https(network: Network) -> None:
    """D36: a developer's other servers on this host name speak http."""
    for url in (network.demo.issuer, network.demo.relying_party_url):
        assert "strict-transport-security" not in network.ask("GET", f"{url}/").headers


def test_rules_for_key_addresses_are_not_lifted(network: Network) -> None:
    """D27, D66: as in a server for the internet; redirect URIs of one's own machine are allowed."""
    log = (network.demo.data_directory / LOG).read_text()
    assert '"request"' in log
    assert "egress_rules_lifted" not in log


def test_it_checks_no_relying_party_for_those_who_have_the_key(network: Network) -> None:
    """D27, D66: it would open any address in this network; the page names the command."""
    url = f"{network.demo.issuer}/developer/readiness"
    cookie = {"Cookie": f"{key_cookie(network.demo.issuer)}={network.demo.key}"}
    page = network.ask("GET", url, headers=cookie)
    assert (page.status_code, "corpid rp-check" in page.text, "<form" in page.text) == (200, True, False)
    refused = network.ask("POST", url, headers=cookie, data={"url": "http://127.0.0.1:1/"})
    assert refused.status_code in {400, 404}, refused.text


def test_commands_take_the_printed_address_with_its_key(network: Network, tmp_path: Path) -> None:
    """docs/readiness.md, docs/sandbox.md: `--developer` with the key, `--ca`; one case of the report at the demo RP."""
    certificate = network.demo.hosting.certificate
    assert certificate is not None
    known = ("--developer", network.demo.developer_link, "--ca", str(certificate.authority))

    def ran(*arguments: str) -> Result:
        return CliRunner().invoke(cli.app, [*arguments], env={"COLUMNS": "200"})

    assert "No order" in ran("sandbox", "list", *known).output
    assert "in force" in ran("sandbox", "order", "latency", "endpoint=token", "seconds=0", *known).output
    assert ran("sandbox", "withdraw", "--all", *known).output == "1 order withdrawn.\n"
    person, report = network.demo.registration.persons[0], tmp_path / "report.json"
    done = ran(
        *("rp-check", f"{network.demo.link}", "--only", "state-altered", "--json", str(report)),
        *("--user", person.user_name, "--entity", person.entities[0], *known),
    )
    assert done.exit_code == 0, done.output
    without = ran("sandbox", "list", "--developer", network.demo.developer_url, *known[2:])
    assert (without.exit_code, "not a demo" in without.output) == (1, True)
    assert network.demo.key not in ran("sandbox", "list", *known[:2]).output


def test_the_key_is_written_nowhere(network: Network) -> None:
    """D48, D66: neither in the log nor in the audit, nor in any other file."""
    network.ask("GET", f"{network.demo.issuer}/developer", params={"key": network.demo.key})
    network.ask("GET", f"{network.demo.issuer}/nowhere", params={"key": network.demo.key})
    network.ask("GET", network.demo.link)
    files = [each for each in network.demo.data_directory.rglob("*") if each.is_file()]
    assert any(each.name == LOG for each in files)
    assert [each for each in files if network.demo.key.encode() in each.read_bytes()] == []


def test_secrets_and_private_keys_are_their_owners_alone(network: Network) -> None:
    """D43."""
    names = ("demo-people.json", "demo-rp-keys.json", "tls/key.pem")
    assert [network.demo.data_directory.joinpath(each).stat().st_mode & 0o077 for each in names] == [0, 0, 0]


def test_plain_http_is_not_answered(network: Network) -> None:
    for url in (network.demo.issuer, network.demo.relying_party_url):
        with pytest.raises(httpx.HTTPError):
            httpx.get(url.replace("https:", "http:"), trust_env=False)


async def test_the_next_start_keeps_secrets_and_certificate_and_has_another_key(
    tmp_path: Path,
) -> None:
    """D66: the installed authority goes on working; a link of yesterday does not."""
    if hosting.own_address() is None:
        pytest.skip("this machine has no address on a network")

    async def started() -> tuple[str, str, list[str]]:
        async with running(tmp_path, first_port=0, network=hosting.find("auto")) as demo:
            assert demo.hosting.certificate is not None
            passwords = [each.password for each in demo.registration.persons]
            return demo.key, demo.hosting.certificate.fingerprint, passwords

    (first, *kept), (second, *again) = await started(), await started()
    assert first != second
    assert kept == again


def test_the_check_passes_on_the_network(tmp_path: Path) -> None:
    """Every signature, decryption and claim over TLS, two generations on one provider (D62)."""
    if hosting.own_address() is None:
        pytest.skip("this machine has no address on a network")
    options = (
        "--check",
        "--json",
        "--host",
        "auto",
        "--issuers",
        "current,legacy",
        "--data-dir",
        str(tmp_path / "data"),
    )
    done = quick_start.run((*COMMAND, *options), capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert all(one["ok"] and one["issuer"].startswith("https://") for one in report["issuers"])
