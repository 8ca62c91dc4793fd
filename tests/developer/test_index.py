"""The first page of developer mode, and links to the inspector (D66)."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pytest

from corpid_dev.web import index
from tests.developer.scene import KEY, demo_world
from tests.sign_in.world import BASE

if TYPE_CHECKING:
    import httpx


AUTHORIZE, TOKEN = "/mga/sps/oauth/oauth20/authorize", "/mga/sps/oauth/oauth20/token"


async def test_the_first_page_leads_to_each_page_and_each_leads_back() -> None:
    """D66: also to the addresses that a relying party is configured with."""
    async with demo_world() as made:
        http = await made.http()
        shown = (await http.get("/developer")).text
        assert f">{BASE}</pre>" in shown
        assert f">{BASE}/.well-known/openid-configuration</pre>" in shown
        for each in index.ENTRIES:
            assert f'<a href="{each.url}">{each.name}</a>' in shown
            answer = await http.get(each.url, headers={"accept": "text/html"})
            assert answer.status_code == 200
            assert each.name == "Schemas" or '<a href="/developer">Developer mode</a>' in answer.text, each.url


def leads_to_its_request(answer: httpx.Response) -> str:
    """The address in the inspector that an answer names."""
    found = answer.headers["link"].partition("<")[2].partition(">")[0]
    assert found.startswith(f"{BASE}/developer/traffic?reference=")
    return found


@pytest.mark.parametrize("path", [TOKEN, "/request", "/userinfo"])
async def test_the_answer_to_a_program_names_its_request_in_the_inspector(path: str) -> None:
    """RFC 8288 §3, D66: in a header, so that the members are those of a provider that is no demo."""
    async with demo_world() as made:
        http = await made.http()
        headers = {"authorization": "DPoP x"} if path.endswith("userinfo") else {}
        answer = await http.post(path, data={"client_id": "rp1"}, headers=headers)
        assert answer.is_client_error
        opened = await http.get(leads_to_its_request(answer), follow_redirects=True)
        assert opened.status_code == 200
        assert path in opened.text


async def test_the_page_of_a_refusal_leads_to_its_request_in_the_inspector() -> None:
    """D28, D66: next to the catalogue's link."""
    async with demo_world() as made:
        http = await made.http()
        answer = await http.get(AUTHORIZE, params={"client_id": "nobody"})
        address = leads_to_its_request(answer)
        assert f'<a href="{html.escape(address)}">This request in the inspector</a>' in answer.text
        assert (await http.get(address)).status_code == 303


async def test_without_the_key_another_machine_gets_no_link() -> None:
    """D66: the key alone opens the inspector there; it is in no link."""
    async with demo_world() as made:
        http = await made.http("192.0.2.7")
        for answer in (await http.get(AUTHORIZE), await http.post(TOKEN)):
            assert answer.is_client_error
            assert "link" not in answer.headers
            assert "inspector" not in answer.text
        answer = await http.get(f"{AUTHORIZE}?key={KEY}")
        assert KEY not in leads_to_its_request(answer)


async def test_what_the_inspector_does_not_keep_has_no_link() -> None:
    """A refused sign-in at once is no exchange of a relying party."""
    async with demo_world() as made:
        answer = await (await made.http()).post("/developer/sign-ins", json={})
        assert answer.status_code == 400
        assert "link" not in answer.headers
