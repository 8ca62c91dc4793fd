"""`corpid demo --tls`: https on one's own machine, with an authority of the demo's own.

Over real sockets, by a client that trusts this authority and no other.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from typer.testing import CliRunner

from corpid import cli, own_certificates
from corpid_dev.cli import demo as cli_demo
from corpid_dev.demo import demo as demonstration
from corpid_dev.demo.check import Inspector, Outcome
from corpid_dev.demo.demo import LOG, Demo, running
from corpid_dev.developer_api import trusting
from corpid_dev.flows.readiness_runs import RunRequest
from corpid_dev.readiness.background import check_as_asked
from corpid_dev.readiness.cases import CASES
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.relying_party.verification import Callback, ProviderError
from tests import quick_start
from tests.interop.demonstration import PATIENCE, demonstrated
from tests.interop.test_demo import COMMAND, SECONDS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

    from corpid.own_certificates import OwnCertificate

pytestmark = pytest.mark.full

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demonstrated(tmp_path_factory.mktemp("a demo"), tls=True) as one:
        yield one


def certificate(demo: Demo) -> OwnCertificate:
    assert demo.hosting.certificate is not None
    return demo.hosting.certificate


def ask(demo: Demo, method: str, url: str, **options: Any) -> httpx.Response:
    with httpx.Client(verify=certificate(demo).client_context(), trust_env=False, timeout=PATIENCE) as http:
        return http.request(method, url, **options)


def test_provider_and_website_are_https_and_only_its_authority_vouches_for_them(demo: Demo) -> None:
    """D52; openid-client 6 and others refuse an http issuer."""
    metadata = ask(demo, "GET", f"{demo.issuer}/.well-known/openid-configuration").json()
    assert metadata["issuer"] == demo.issuer
    assert demo.issuer.startswith("https://localhost:")
    assert demo.relying_party_url.startswith("https://127.0.0.1:")
    assert all(value.startswith(f"{demo.issuer}/") for name, value in metadata.items() if name.endswith("_endpoint"))
    for url in (demo.issuer, demo.relying_party_url):
        assert ask(demo, "GET", f"{url}/").status_code in {200, 404}
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(url, trust_env=False)
        with pytest.raises(httpx.HTTPError):
            httpx.get(url.replace("https:", "http:"), trust_env=False)


def test_a_browser_is_not_told_to_stay_on_https(demo: Demo) -> None:
    """D36: HSTS is of a host with all its ports, and a developer's other servers on localhost speak http."""
    for url in (demo.issuer, demo.relying_party_url, f"{demo.issuer}/developer"):
        assert "strict-transport-security" not in ask(demo, "GET", url).headers


def test_pages_of_developers_need_no_key_on_this_machine(demo: Demo) -> None:
    """D66: as over http; the website offers the authority for download."""
    assert ask(demo, "GET", demo.developer_link).status_code == 200
    assert "?key=" not in demo.link + demo.developer_link
    assert ask(demo, "GET", f"{demo.relying_party_url}/ca.crt").content == certificate(demo).authority.read_bytes()


async def test_a_browser_signs_in_from_the_start_page_on(demo: Demo) -> None:
    """D34: each cookie is bound to its host and to https."""
    async with demo.hosting.http(PATIENCE) as http:
        browser = Browser(http, frozenset({demo.issuer, demo.relying_party_url}))
        await browser.open(demo.link, site="none")
        await browser.submit(next(form for form in browser.page.forms if form.action == "/login"))
        await browser.fill_and_submit("person", button="rina")
        while browser.url.startswith(f"{demo.issuer}/"):
            await people.answer_page(browser, demo.registration.persons[0])
        assert browser.page.heading == "You are signed in"
        assert {each.name for each in http.cookies.jar} == {"__Host-corpid", "__Host-corpid-demo-rp"}
        assert all(each.secure and each.path == "/" and not each.domain_specified for each in http.cookies.jar)


class _Keys(BaseHTTPRequestHandler):
    """Answers every GET with the server's key set."""

    def do_GET(self) -> None:
        body: bytes = self.server.body  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def key_set(keys: RelyingPartyKeys, secured: ssl.SSLContext | None) -> Iterator[str]:
    """The address, on localhost, of a relying party's key set."""
    with HTTPServer(("127.0.0.1", 0), _Keys) as server:
        server.body = json.dumps(keys.public()).encode()  # type: ignore[attr-defined]
        if secured is not None:
            server.socket = secured.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"{'https' if secured else 'http'}://localhost:{server.server_port}/jwks"
        finally:
            server.shutdown()


@pytest.mark.parametrize("how", ["https", "http", "https of another authority"])
async def test_key_sets_on_this_machine_are_fetched(how: str, demo: Demo, tmp_path: Path) -> None:
    """D27: from a website with the demo's own certificate, too; an http redirect URI is one of a developer's machine."""
    keys, client_id = RelyingPartyKeys.generate(), how.replace(" ", "-")
    other = own_certificates.keep_certificate(tmp_path, "localhost", now=NOW)
    tls = {"https": certificate(demo), "http": None}.get(how, other)
    callback = "http://localhost:8000/callback"
    async with demo.hosting.http(PATIENCE) as http:
        with key_set(keys, tls.server_context() if tls else None) as url:
            client = {"client_id": client_id, "name": "RP", "redirect_uris": [callback], "jwks_uri": url}
            registered = await http.post(f"{demo.issuer}/developer/clients", json={**client, "scopes": ["openid"]})
            assert registered.status_code == 201, registered.text
            rp = replace(
                Inspector(demo=demo, http=http).relying_party(Outcome(how)),
                client_id=client_id, redirect_uri=callback, keys=keys, scope="openid",
            )  # fmt: skip
            if tls is other:
                with pytest.raises(ProviderError):
                    await rp.begin()
                assert "certificate verify failed" in (demo.data_directory / LOG).read_text()
                return
            order = {"authorize_url": await rp.begin(), "user": "rina", "entity": "209900042K"}
            answer = await http.post(f"{demo.issuer}/developer/sign-ins", json=order)
            assert (await rp.redeem(Callback(answer.json()["callback_url"]))).id_token


def test_commands_take_the_printed_address_and_the_authority(demo: Demo) -> None:
    """docs/readiness.md, docs/sandbox.md: `--developer` and `--ca`."""
    known = ("--developer", demo.developer_link, "--ca", str(certificate(demo).authority))
    assert "No order" in CliRunner().invoke(cli.app, ["sandbox", "list", *known], env={"COLUMNS": "200"}).output
    without = CliRunner().invoke(cli.app, ["sandbox", "list", *known[:2]], env={"COLUMNS": "200"})
    assert without.exit_code == 1
    assert "--ca" in without.output


async def test_the_readiness_page_checks_a_website_of_the_demos_authority(demo: Demo) -> None:
    """D66: here the demo RP itself."""
    person = demo.registration.persons[0]
    cases, tls = (CASES["state-altered"],), trusting(certificate(demo).authority)
    asked = RunRequest(issuer=demo.issuer, url=demo.link, user=person.user_name, entity=person.entities[0])
    report = await check_as_asked(asked, lambda _: None, cases=cases, tls=tls)
    assert {(each.case.id, each.verdict) for each in report.results} == {
        ("baseline", "passed"),
        ("state-altered", "passed"),
    }


def test_the_printed_lines_work_as_they_are(
    demo: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are copied into a shell; the folder may have a space in its name."""
    monkeypatch.setenv("COLUMNS", "200")
    cli_demo._trust(demo.issuer, certificate(demo))
    printed = capsys.readouterr().out
    lines = {line[:11].strip(): line[11:].strip() for line in printed.splitlines() if line[:1].isalpha()}
    assert lines["Authority"] == str(certificate(demo).authority)
    url = f"{demo.issuer}/.well-known/openid-configuration"
    stdlib = f"import urllib.request; print(urllib.request.urlopen('{url}').read().decode())"
    commands = [f'{lines["Python"]}; {sys.executable} -c "{stdlib}"', lines["curl"]]
    for tool, command in (
        ("node", f"{lines['Node']}; node -e \"fetch('{url}').then(r => r.text()).then(console.log)\""),
    ):
        commands += [command] if shutil.which(tool) else []
    if shutil.which("keytool"):
        subprocess.run(lines["Java"], shell=True, check=True, capture_output=True)
        assert certificate(demo).authority.with_name("ca.p12").exists()
    for command in commands:
        done = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)
        assert json.loads(done.stdout)["issuer"] == demo.issuer


def test_a_clients_page_has_the_authority_in_its_commands(demo: Demo) -> None:
    """D66: copied, they run."""
    client = {"client_id": "copied", "name": "RP", "redirect_uris": ["http://127.0.0.1:8410/callback"]}
    order = {**client, "jwks": RelyingPartyKeys.generate().public()}
    assert ask(demo, "POST", f"{demo.issuer}/developer/clients", json=order).status_code == 201
    page = ask(demo, "GET", f"{demo.issuer}/developer/clients/client/copied").text
    file = f"&#39;{certificate(demo).authority}&#39;"
    for said in (
        f"NODE_EXTRA_CA_CERTS={file}",
        f"REQUESTS_CA_BUNDLE={file}",
        f"SSL_CERT_FILE={file}",
        f"--cacert {file}",
    ):
        assert said in page


def test_starting_over_keeps_the_authority(tmp_path: Path) -> None:
    """Browsers and trust stores have it."""
    with demonstration.locked(tmp_path / "demo", fresh=False) as path:
        kept = own_certificates.keep_certificate(
            path / "tls" / "localhost", "localhost", now=NOW
        ).authority.read_bytes()
        (path / "demo.log").write_text("old")
    with demonstration.locked(path, fresh=True):
        assert {each.name for each in path.iterdir()} == {"tls", demonstration.MARK}
        assert (path / "tls" / "localhost" / "ca.crt").read_bytes() == kept


async def test_one_directory_serves_http_and_https_in_turn(tmp_path: Path) -> None:
    """The authority is that of the first start with --tls, unless its file is gone."""
    authorities = []
    for tls in (False, True, False, True, True):
        async with running(tmp_path, first_port=0, tls=tls) as one, one.hosting.http(PATIENCE) as http:
            answer = await http.get(f"{one.issuer}/.well-known/openid-configuration")
            assert answer.json()["issuer"].startswith("https:" if tls else "http:")
            if tls:
                authorities.append(certificate(one).authority.read_bytes())
        if len(authorities) == 2:
            (tmp_path / "tls" / "localhost" / "ca.crt").unlink()
    first, second, third = authorities
    assert first == second != third


async def test_two_demos_at_once_have_ports_and_authorities_of_their_own(tmp_path: Path) -> None:
    for each in ("one", "two"):
        (tmp_path / each).mkdir()
    async with running(tmp_path / "one", tls=True) as one, running(tmp_path / "two", tls=True) as two:
        assert len({one.issuer, two.issuer, one.relying_party_url, two.relying_party_url}) == 4
        async with one.hosting.http(PATIENCE) as http:
            assert (await http.get(f"{one.issuer}/healthz")).status_code == 200
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await http.get(f"{two.issuer}/healthz")


def test_the_check_passes_over_https(tmp_path: Path) -> None:
    """Every signature, decryption and claim, two generations on one provider (D62); the response modes of legacy."""
    options = ("--check", "--json", "--tls", "--issuers", "current,legacy", "--data-dir", str(tmp_path / "data"))
    done = quick_start.run((*COMMAND, *options), capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert all(one["ok"] and one["issuer"].startswith("https://localhost:") for one in report["issuers"])
