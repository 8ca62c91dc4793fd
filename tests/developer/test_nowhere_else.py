"""Nothing opens developer mode but a demo, and on another machine nothing but its key (D66)."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from corpid import app, settings
from corpid.engines import StartError
from corpid.rules.oauth.client_registration import RegistrationError, register
from corpid.settings import SettingsError
from corpid.settings.issuers import client_rules
from corpid_dev.demo.demo import NetworkSettings
from corpid_dev.web.demo_extension import DemoExtension
from corpid_dev.web.mode import KEY_COOKIE, Mode
from corpid_dev.web.routes import routes
from tests.developer.scene import KEY, demo_world, developer, order
from tests.sign_in.world import BASE, World, new_world
from tests.unit.rules.oauth.clients import CLIENT
from tests.world.provider import copied, hashing, template

if TYPE_CHECKING:
    from pathlib import Path

    import httpx


HERE = BASE.removeprefix("http://")
ROUTES = routes(cast("Mode", None))
HEADERS: list[dict[str, str]] = [
    {},
    {"Origin": BASE, "Sec-Fetch-Site": "same-origin"},
    {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": HERE, "X-Forwarded-Proto": "http"},
    {"Forwarded": f"for=127.0.0.1;host={HERE}"},
    {"X-Real-IP": "127.0.0.1"},
    {"X-Developer-Mode": "true", "Authorization": f"Bearer {KEY}"},
    {"X-Original-URL": "/developer/sign-ins", "X-HTTP-Method-Override": "POST"},
]
FORWARDED = [*HEADERS[2:5], {"Via": "1.1 tunnel"}, {"X-Forwarded-Proto": "https"}]


async def asked(http: httpx.AsyncClient, path: str, method: str, headers: dict[str, str]) -> int:
    sent = {"Content-Type": "application/json", "Cookie": f"{KEY_COOKIE}={KEY}", **headers}
    answer = await http.request(method, path.replace("{rest}", "x"), content="{}", headers=sent)
    return answer.status_code


@pytest.mark.full
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"base": "https://op.example"},
        {"developer_mode": False},
        {"allowed_hosts": ("localhost", "evil.example")},
        {"trusted_proxies": ("127.0.0.1", "10.0.0.0/8")},
        {"preset": "public-service"},
    ],
)
async def test_no_setting_and_no_header_opens_a_route(options: dict[str, Any]) -> None:
    """D66: every route of developer mode is 404 in whatever is no demo, also with developer_mode on, and with the key."""
    async with new_world(**options) as made:
        http = await made.http()
        for route in ROUTES:
            for method in ("GET", "POST", "PUT", "OPTIONS"):
                for headers in HEADERS:
                    for spelling in (route.path, f"{route.path}?key={KEY}", f"{route.path}/", f"/x/..{route.path}"):
                        found = await asked(http, spelling, method, headers)
                        assert found == 404, (method, spelling, headers)


async def test_in_a_demo_every_route_is_there() -> None:
    """The walk above asks for what exists."""
    async with demo_world() as made:
        http = await made.http()
        for route in ROUTES:
            assert await asked(http, route.path, "PUT", {}) == 405


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.4", "2001:db8::1", "::ffff:192.0.2.7"])
async def test_another_machine_finds_nothing_without_the_key(address: str) -> None:
    """D66: 404, whatever it claims."""
    async with demo_world() as made:
        http = await made.http(address)
        for headers in HEADERS:
            for wrong in ("", "?key=", "?key=wrong", f"?key={KEY}&key={KEY}", f"?Key={KEY}"):
                sent = {"Cookie": f"{KEY_COOKIE}=wrong", **headers}
                assert await asked(http, f"/developer/sign-ins{wrong}", "POST", sent) == 404


async def test_another_machine_is_answered_with_the_key() -> None:
    """D66: in the query of the link, or in the cookie that its page sets."""
    async with demo_world() as made:
        http = await made.http("192.0.2.7")
        assert await asked(http, f"/developer/sign-ins?key={KEY}", "POST", {"Cookie": ""}) == 400
        assert await asked(http, "/developer/sign-ins", "POST", {}) == 400


async def test_a_start_that_others_reach_asks_this_machine_for_the_key() -> None:
    """D66: an engine of containers can make every connection look like one from loopback."""
    async with demo_world(spares_loopback=False) as made:
        http = await made.http()
        assert await asked(http, "/developer/sign-ins", "POST", {"Cookie": ""}) == 404
        assert await asked(http, f"/developer/sign-ins?key={KEY}", "POST", {"Cookie": ""}) == 400


@pytest.mark.parametrize("headers", FORWARDED)
async def test_a_tunnel_to_this_machine_is_another_machine(headers: dict[str, str]) -> None:
    """D66: the connection comes from here, but a header shows that the caller does not."""
    async with demo_world() as made:
        assert await asked(await made.http(), "/developer/sign-ins", "POST", {"Cookie": "", **headers}) == 404


async def test_only_the_issuers_own_name_is_answered() -> None:
    """D35, D66: a name that resolves to this machine is not enough, nor one that the operator allows elsewhere."""
    async with demo_world(allowed_hosts=("other.example",)) as made:
        for host, status in (("evil.example", 421), ("other.example:8080", 404), (HERE, 400)):
            assert await asked(await made.http(), "/developer/sign-ins", "POST", {"Host": host}) == status


async def test_a_sign_in_without_a_demo_knows_no_such_step(made: World) -> None:
    """D66: the one click is an unknown step of the sign-in, as any other word is."""
    browser, rp = await made.browser(), await made.relying_party()
    await browser.open(await rp.begin())
    assert "at once" not in browser.page.text
    for action in ("at-once", "no-such-step"):
        answer = await browser.http.post(
            f"{browser.url}/{action}",
            content="person=alice",
            headers={"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"},
        )
        assert answer.status_code == 400
    assert await made.audit("sign_in.simulate") == []


@pytest.mark.full
def test_a_server_loads_nothing_of_it() -> None:
    """D66: what is not loaded cannot be reached."""
    program = (
        "import sys, corpid.app, corpid.cli.serve, corpid.web.routes\n"
        "print([name for name in sys.modules if name.startswith('corpid_dev')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


async def start(path: Path, *, demo: bool, **options: Any) -> None:
    chosen = settings.load(base_url=BASE, data_dir=path, **options)
    async with app.create(chosen, passwords=hashing(), extension=DemoExtension(developer()) if demo else None):
        pass


async def test_a_demos_database_is_refused_by_any_other_server(tmp_path: Path) -> None:
    """D66: the store remembers, with developer_mode on and off."""
    async with new_world() as _:
        path = copied(template(), tmp_path / "data")
        await start(path, demo=False, developer_mode=True)
        await start(path, demo=True, developer_mode=True)
        for mode in (True, False):
            with pytest.raises(StartError, match="is a demo's"):
                await start(path, demo=False, developer_mode=mode)
        await start(path, demo=True, developer_mode=True)


ELSEWHERE: dict[str, Any] = {
    "base_url": "https://192.0.2.2:8400",
    "developer_mode": True,
    "trusted_proxies": ("10.0.0.1",),
}


def test_no_setting_opens_developer_mode_to_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """D66: only the demo's own settings do, a type that no file and no variable names."""
    monkeypatch.setenv("CORPID_DEMO_ON_NETWORK", "true")
    with pytest.raises(SettingsError, match="developer_mode is for your own machine"):
        settings.load(**ELSEWHERE)
    with pytest.raises(SettingsError, match="There is no setting 'demo_on_network'"):
        settings.load(demo_on_network=True, **ELSEWHERE)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/keys", "http://192.0.2.9/keys", "https://10.0.0.1/keys"])
def test_a_demo_that_others_reach_fetches_keys_from_public_addresses_only(url: str) -> None:
    """D27, D66: nobody on the network makes it ask its own machine or its neighbours."""
    reached = settings.load(NetworkSettings, **ELSEWHERE)
    at_home = settings.load(base_url=BASE, developer_mode=True)
    assert (reached.fetches_anywhere, at_home.fetches_anywhere) == (False, True)
    client = msgspec.structs.replace(CLIENT, jwks=None, jwks_uri=url)
    with pytest.raises(RegistrationError) as refused:
        register(client, client_rules(reached))
    assert {fault.member for fault in refused.value.faults} == {"jwks_uri"}
    register(client, client_rules(at_home))


async def test_a_demo_needs_developer_mode(tmp_path: Path) -> None:
    """D66: the part alone opens nothing."""
    async with new_world() as _:
        with pytest.raises(StartError, match="developer_mode is off"):
            await start(copied(template(), tmp_path / "data"), demo=True, developer_mode=False)


async def test_an_order_from_here_works_in_a_demo() -> None:
    """The refusals above are not those of an endpoint that never works."""
    async with demo_world() as made:
        url = await (await made.relying_party()).begin()
        answer = await order(made, {"authorize_url": url, "user": "alice", "entity": "200000001A"})
        assert answer.status_code == 200
