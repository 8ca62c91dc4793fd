"""The provider of `corpid_dev.testing`, as a relying party's tests use it (docs/testing.md)."""

from __future__ import annotations

import asyncio
import inspect
import os
import ssl
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from joserfc.jwk import ECKey

from corpid_dev.relying_party.interfaces import INTERFACES
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.relying_party.relying_party import RelyingParty
from corpid_dev.relying_party.verification import Callback, ProviderError
from corpid_dev.testing import Client, OperationError, Options, Provider, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


CALLBACK = "http://127.0.0.1:8000/callback"
HARBOUR = "209900042K"
DIRECTORY: dict[str, Any] = {
    "entities": {HARBOUR: {"type": "UEN", "name": "Example Harbour", "country": "SG", "status": "Registered"}},
    "services": {"HARBOUR-PERMIT": {"name": "Harbour permits", "roles": ["Applicant"]}},
    "users": {"mei": {"name": "Mei Example", "memberships": [HARBOUR]}},
    "assignments": [{"user": "mei", "entity": HARBOUR, "service": "HARBOUR-PERMIT", "role": "Applicant"}],
}


async def relying_party(client: Client, http: httpx.AsyncClient, generation: str, mode: str | None) -> RelyingParty:
    assert client.signing_key is not None
    assert client.encryption_key is not None
    keys = RelyingPartyKeys(
        signing=ECKey.import_key(client.signing_key), encryption=ECKey.import_key(client.encryption_key)
    )
    return RelyingParty(
        client_id=client.client_id,
        issuer=client.issuer,
        http=http,
        interface=INTERFACES[generation],
        redirect_uri=client.redirect_uris[0],
        keys=keys,
        response_mode=mode,
    )


async def signed_in(
    provider: Provider, client: Client, user: str, entity: str, generation: str = "current", mode: str | None = None
) -> tuple[Callback, dict[str, Any]]:
    """A whole sign-in of a strict relying party: the callback, and what userinfo says."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        strict = await relying_party(client, http, generation, mode)
        callback = await provider.async_sign_in(await strict.begin(), user, entity)
        await strict.redeem(callback)
        return callback, await strict.userinfo()


def test_a_person_signs_in_and_their_roles_arrive(corpid_provider: Provider) -> None:
    """The same person twice at once, and one who chooses an entity."""
    client = corpid_provider.add_client("often", redirect_uris=[CALLBACK])
    for _ in range(2):
        callback, userinfo = asyncio.run(signed_in(corpid_provider, client, "rina", HARBOUR))
        assert callback.startswith(f"{CALLBACK}?")
        assert "CUSTOMS-DECLARE" in str(userinfo)
    _, userinfo = asyncio.run(signed_in(corpid_provider, client, "wei.ling", "209777001M"))
    assert "TAX-FILING" in str(userinfo)


def test_it_obeys_orders_of_the_sandbox(corpid_provider: Provider) -> None:
    """docs/sandbox.md, D66: of the client that they name."""
    client = corpid_provider.add_client("ordered", redirect_uris=[CALLBACK])
    order = {"client_id": "ordered", "order": "error", "endpoint": "token", "error": "server_error", "times": 1}
    orders = f"{corpid_provider.issuer}/developer/orders"
    assert httpx.post(orders, json=order, trust_env=False).status_code == 201
    with pytest.raises(ProviderError, match="token: server_error"):
        asyncio.run(signed_in(corpid_provider, client, "siti", "209777001M"))
    assert asyncio.run(signed_in(corpid_provider, client, "siti", "209777001M"))


async def test_a_test_without_an_event_loop_signs_in_too(corpid_provider: Provider) -> None:
    client = corpid_provider.add_client("plain", redirect_uris=[CALLBACK])

    async def begun() -> str:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            return await (await relying_party(client, http, "current", None)).begin()

    callback = corpid_provider.sign_in(await begun(), "greta", "C00000017A")
    assert callback.startswith(f"{CALLBACK}?code=")
    assert "error=access_denied" in corpid_provider.cancel(await begun())


@pytest.mark.full
async def test_with_tls_the_issuer_is_https_and_its_authority_is_in_a_file() -> None:
    """D52: a relying party that trusts this file, and nothing else, signs a person in; the file ends with the provider."""
    with running(DIRECTORY, tls=True) as provider:
        assert provider.issuer.startswith("https://localhost:")
        assert provider.ca_file is not None
        client = provider.add_client("rp", redirect_uris=[CALLBACK])
        trusted = ssl.create_default_context(cafile=provider.ca_file)
        async with httpx.AsyncClient(verify=trusted, trust_env=False, timeout=60) as http:
            strict = await relying_party(client, http, "current", None)
            await strict.redeem(await provider.async_sign_in(await strict.begin(), "mei", HARBOUR))
            assert "Applicant" in str(await strict.userinfo())
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(provider.issuer, trust_env=False)
    assert not provider.ca_file.exists()


def test_without_tls_there_is_no_authority(corpid_provider: Provider) -> None:
    assert corpid_provider.issuer.startswith("http://")
    assert corpid_provider.ca_file is None


@pytest.mark.full
def test_people_need_no_factors_in_plain_data() -> None:
    """Those who come later neither, and a change counts at once; here with another generation."""
    with running(DIRECTORY, generations=["legacy"]) as provider:
        assert list(provider.people) == ["mei"]
        client = provider.add_client("rp", redirect_uris=[CALLBACK])
        callback, userinfo = asyncio.run(signed_in(provider, client, "mei", HARBOUR, "legacy", "form_post"))
        assert callback.form is not None
        assert "Applicant" in str(userinfo)
        provider.apply({"users": {"kai": {"name": "Kai Example", "memberships": [HARBOUR]}}})
        assert provider.people["kai"].entities == (HARBOUR,)
        provider.apply({"assignments": [{**DIRECTORY["assignments"][0], "user": "kai", "end_date": "2020-12-31"}]})
        _, userinfo = asyncio.run(signed_in(provider, client, "kai", HARBOUR, "legacy"))
        assert "Applicant" not in str(userinfo)
        assert len(provider.code("kai")) == 6


@pytest.mark.full
def test_a_file_is_a_directory_and_its_faults_are_named_by_line(tmp_path: Path) -> None:
    """Of settings, generations and a file that is not there, too."""
    file = tmp_path / "people.yaml"
    file.write_text("entities:\n  209900042K: {type: UEN, nmae: Harbour, country: SG}\n")
    wrong: list[tuple[Options, str]] = [
        ({"directory": file}, "people.yaml:2: 'nmae'"),
        ({"directory": tmp_path / "none.yaml"}, "none.yaml cannot be read"),
        ({"generations": ["newest"]}, "choose from legacy, "),
        ({"settings": {"session_seconds": "long"}}, "session_seconds"),
    ]
    for options, said in wrong:
        with pytest.raises(OperationError, match=said), running(**options):
            pass


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda provider: provider.sign_in("https://rp.example/login", "devi"), "no page of this provider"),
        (lambda provider: provider.sign_in(f"{provider.issuer}/authorize", "nobody"), "has no 'nobody'"),
        (lambda provider: provider.sign_in(f"{provider.issuer}/x", "rina", "209777001M"), "only for 209900042K"),
        (lambda provider: provider.sign_in(f"{provider.issuer}/x", "devi"), r"/x \(404\)"),
        (lambda provider: provider.add_client("rp", redirect_uris=["rp.example"]), "redirect_uris"),
        (lambda provider: provider.add_client("rp", redirect_uris=[CALLBACK], colour="red"), "colour"),
        (lambda provider: provider.advance(-1), "forward only"),
    ],
)
def test_a_refusal_says_what_was_wrong(
    corpid_provider: Provider, asked: Callable[[Provider], object], said: str
) -> None:
    with pytest.raises(OperationError, match=said):
        asked(corpid_provider)


@pytest.mark.full
async def test_the_clock_moves_on_and_what_has_expired_is_refused() -> None:
    """A code lives a minute (D15): the relying party's clock moves with the provider's."""
    with running() as provider:
        client = provider.add_client("late", redirect_uris=[CALLBACK])

        with pytest.raises(ProviderError, match="invalid_grant"):
            async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
                strict = await relying_party(client, http, "current", None)
                callback = await provider.async_sign_in(await strict.begin(), "rina")
                provider.advance(3600)
                own = strict.clock
                strict.clock = lambda: own() + 3600
                await strict.redeem(callback)
        assert any(line.get("error") == "invalid_grant" for line in provider.log)


@pytest.mark.full
def test_the_settings_of_the_shell_do_not_reach_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CORPID_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpid.toml").write_text('data_dir = "here"\n')
    with running(DIRECTORY) as provider:
        assert httpx.get(f"{provider.issuer}/.well-known/openid-configuration", trust_env=False).status_code == 200
    assert [path.name for path in tmp_path.iterdir()] == ["corpid.toml"]


@pytest.mark.full
def test_it_ends_with_its_context_and_says_so() -> None:
    with running(DIRECTORY) as provider:
        pass
    with pytest.raises(OperationError, match="not running"):
        provider.people  # noqa: B018
    with pytest.raises(httpx.ConnectError):
        httpx.get(provider.issuer, trust_env=False)


KILLED = """
import os
from corpid_dev.testing import running
with running() as provider:
    print(provider._process.pid, provider.issuer, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.full
async def test_it_ends_with_the_process_of_the_tests_however_that_ends() -> None:
    """Its pipe is closed; the process ends by itself and its port is free."""
    printed = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False).stdout
    number, _ = printed.split()

    async def gone() -> None:
        while os.path.exists(f"/proc/{number}"):  # noqa: ASYNC110, PTH110
            await asyncio.sleep(0.05)

    await asyncio.wait_for(gone(), 60)


def test_importing_it_needs_neither_pytest_nor_the_provider() -> None:
    """What a relying party's tests import is small; only the fixtures need pytest."""
    loaded = "import sys, corpid_dev.testing; print({'pytest', 'httpx', 'starlette', 'joserfc'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"


def test_the_options_are_the_arguments() -> None:
    assert set(Options.__annotations__) == set(inspect.signature(running).parameters)
