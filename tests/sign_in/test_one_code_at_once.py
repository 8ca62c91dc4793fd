"""Signed-in browsers that open one request at the same moment get one code, and none of the others is stored (D15)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import redis

from corpid.flows.oauth import authorize
from corpid.flows.oauth.authorize import ImmediateResponse
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from tests import engines
from tests.contexts import context
from tests.sign_in.world import World, cookies_of, entity, new_world, query_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid_dev.relying_party.browser import Browser

AT_ONCE = 6


async def signed_in(made: World, who: str) -> Browser:
    """A browser of a person who acts for one entity."""
    browser = await made.browser()
    await browser.open(await (await made.relying_party()).begin())
    await made.factors(browser, made.people[who])
    assert "code" in query_of(browser.left)
    return browser


async def arrive(made: World, url: str, browser: Browser) -> str:
    """The code, or the reason why there is none."""
    query, cookie = urlsplit(url).query.encode(), cookies_of(browser)["corpid"]
    try:
        answer = await authorize.arrive(await context(made.provider), query, cookie=cookie, may_complete=True)
    except InvalidRequest as refusal:
        return refusal.reason.code
    assert isinstance(answer, ImmediateResponse)
    told = query_of(answer.response.url)
    return told.get("code") or told["error"]


@engines.STORES
@pytest.mark.parametrize("people", [("bob",), ("bob", "carol")], ids=["one browser", "two browsers"])
async def test_of_simultaneous_arrivals_of_signed_in_browsers_one_gets_a_code(
    people: tuple[str, ...], memory: Callable[[], AbstractContextManager[str]] | None
) -> None:
    """D15: completing is `add`, whichever browser's claim is the first."""
    with nullcontext("") if memory is None else memory() as url_of_engine:
        async with new_world(session_seconds=3600, **{"transient_url": url_of_engine} if url_of_engine else {}) as made:
            for who in people:
                await made.person(who, entity("200000001A", "Acme Pte. Ltd."))
            browsers = [await signed_in(made, who) for who in people]
            rp = await made.relying_party()
            url = await rp.begin()
            before = _codes_stored(url_of_engine)
            answers = await asyncio.gather(*(arrive(made, url, each) for each in browsers * AT_ONCE))
            refusals = {"invalid_request_uri", Reason.SIGN_IN_IN_ANOTHER_BROWSER.code}
            codes = [answer for answer in answers if answer not in refusals]
            assert len(codes) == 1, answers
            if url_of_engine:
                assert _codes_stored(url_of_engine) == before + 1
            assert (await rp.token(codes[0])).status_code == 200


def _codes_stored(url: str) -> int:
    """The codes in an engine; 0 for the embedded one, which rolls back what a refused request wrote."""
    if not url:
        return 0
    with redis.Redis.from_url(url) as client:
        return sum(1 for _ in client.scan_iter("corpid:*:code:*"))
