"""A relying party's test without a browser, against a running demo (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from corpid_dev.demo.check import Inspector, Outcome
from corpid_dev.demo.demo import Demo, running_issuers
from corpid_dev.relying_party.interfaces import CURRENT, LEGACY
from corpid_dev.relying_party.verification import Callback

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.full


async def test_ci_signs_in_at_every_issuer_of_a_demo(tmp_path: Path) -> None:
    """D62, D66: with what docs/relying-parties.md says; an order for one issuer is not another's."""

    async def signed_in(demo: Demo, http: httpx.AsyncClient, orders: str) -> httpx.Response:
        rp = Inspector(demo=demo, http=http).relying_party(Outcome("at once"))
        order = {"authorize_url": await rp.begin(), "user": "rina", "entity": "209900042K"}
        answer = await http.post(f"{orders}/developer/sign-ins", json=order)
        if answer.status_code == 200:
            assert (await rp.redeem(Callback(answer.json()["callback_url"]))).id_token
            assert await rp.userinfo()
        return answer

    async with (
        running_issuers(tmp_path, (CURRENT, LEGACY), first_port=0) as demos,
        httpx.AsyncClient(timeout=30, trust_env=False) as http,
    ):
        first, second = demos
        assert (await signed_in(first, http, first.issuer)).status_code == 200
        assert (await signed_in(second, http, second.issuer)).status_code == 200
        assert (await signed_in(second, http, first.issuer)).status_code == 400
        page = await http.get(first.developer_url)
        assert f"{first.issuer}/.well-known/openid-configuration" in page.text
