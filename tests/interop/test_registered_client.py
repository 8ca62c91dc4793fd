"""A client registered in a running demo, and an example run by the command of its page (D66)."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid_dev.demo.demo import Demo, next_free, running
from corpid_dev.relying_party.browser import Browser
from tests.house.source import ROOT
from tests.interop.running import PATIENCE
from tests.interop.stock_clients import public_keys, write_keys

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.full


async def test_the_command_of_a_clients_page_runs_an_example_and_a_person_signs_in(tmp_path: Path) -> None:
    """docs/relying-parties.md: register, copy, run, sign in; nothing is filled in by hand."""
    keys = write_keys(tmp_path / "keys.json")
    port, sockets = next_free("127.0.0.1", 0)
    for taken in sockets:
        taken.close()

    async def command_of(demo: Demo, http: httpx.AsyncClient) -> str:
        order = {
            "client_id": "my-rp",
            "name": "My RP",
            "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
            "jwks": public_keys(keys),
            "scopes": ["openid", "authinfo", "tpauthinfo", "user.name", "entity.basic_profile.name"],
            "services": ["HARBOUR-PERMIT"],
        }
        answer = await http.post(f"{demo.developer_url}/clients", json=order)
        assert answer.status_code == 201, answer.text
        page = Browser(http)
        await page.open(f"{demo.developer_url}/clients/client/my-rp")
        begin = page.page.text.index("cd examples/python ")
        found = page.page.text[begin : page.page.text.index("rp.py", begin) + len("rp.py")]
        run = found[found.index("ISSUER=") :].replace("\\ ", "")
        return run.replace(".venv/bin/python", f"exec {sys.executable}").replace("KEYS=keys.json", f"KEYS={keys}")

    async def shown_by(process: asyncio.subprocess.Process, http: httpx.AsyncClient, demo: Demo) -> str:
        home = f"http://127.0.0.1:{port}"
        async with asyncio.timeout(PATIENCE):
            while True:
                assert process.returncode is None
                try:
                    await http.get(home)
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0.05)
        login = await http.get(f"{home}/login")
        order = {"authorize_url": login.headers["location"], "user": "rina", "entity": "209900042K", "consent": "agree"}
        answer = await http.post(f"{demo.developer_url}/sign-ins", json=order)
        return (await http.get(answer.json()["callback_url"])).text

    (tmp_path / "demo").mkdir()
    async with (
        running(tmp_path / "demo", first_port=0) as demo,
        httpx.AsyncClient(timeout=30, trust_env=False) as http,
    ):
        process = await asyncio.create_subprocess_shell(
            await command_of(demo, http), cwd=ROOT / "examples" / "python", stdout=asyncio.subprocess.DEVNULL
        )
        try:
            shown = await shown_by(process, http, demo)
            assert shown.startswith("Signed in\nmay act as Applicant at HARBOUR-PERMIT"), shown
        finally:
            process.terminate()
            await process.wait()
