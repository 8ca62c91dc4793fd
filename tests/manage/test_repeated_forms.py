"""A form that arrives twice at the same time, fails, or is never finished (D15, docs/architecture.md, "One-time use")."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx
import pytest

from corpid.flows.authentication.throttle import Throttled
from corpid.flows.directory.write import Refused
from corpid.rules.directory.records import Conflict
from corpid.rules.failures import StoreUnavailable
from corpid.texts import InvalidInput, phrase
from corpid.web import own_pages
from corpid.web.directory import endpoints
from corpid.web.pages.components import BARE
from corpid.web.pages.views import Problem
from corpid.web.sites import EditConflict, FormResult, SitePage
from corpid_dev.demo.demo import next_free
from tests.manage.access_scene import demand, requests, staffed
from tests.manage.scene import appoint, go, in_portal, portal, send
from tests.sign_in.world import FORM, World, cookies_of, form_of, world
from tests.world.provider import served

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser


async def test_two_forms_at_the_same_moment_make_one_request() -> None:
    """D15, D55: over sockets; both are led to the same page."""
    port, sockets = next_free("localhost", 0)
    async with world(base=f"http://localhost:{port}") as made, served(made.application.asgi, sockets):
        await staffed(made)
        await demand(made, "all")
        browser = await in_portal(made, "access/new?person=m-marcus&access=NOTICES&start=today&end=none&check=all")
        form = {**form_of(browser, "form_token", "reason"), "reason": "on holiday"}
        headers = {
            "Content-Type": FORM,
            "Sec-Fetch-Site": "same-origin",
            "Cookie": "; ".join(f"{name}={value}" for name, value in cookies_of(browser).items()),
        }

        async def post() -> httpx.Response:
            async with httpx.AsyncClient() as http:
                return await http.post(portal(made, "access/new"), content=urlencode(form), headers=headers)

        answers = await asyncio.gather(*(post() for _ in range(4)))
        assert [each.status_code for each in answers] == [303] * 4
        assert len({each.headers["Location"] for each in answers}) == 1
        assert len(await requests(made)) == 1


@dataclass
class Slow:
    """A page of the portal whose form waits for `gate`, and then does what is next in `outcomes`."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    outcomes: list[Exception | None] = field(default_factory=list)
    runs: int = 0

    async def view(self, at: Any) -> Problem:
        return Problem(frame=BARE, heading=phrase("Slow"), paragraphs=tuple(text for _, text in at.errors))

    async def submit(self, at: Any) -> FormResult:
        self.runs += 1
        self.begun.set()
        await self.gate.wait()
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome
        return FormResult("access-given", "slow")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    made = Slow()
    monkeypatch.setattr(own_pages, "_LOOKS", 3)
    monkeypatch.setitem(endpoints.SECTION.pages, "slow", SitePage(view=made.view, submit=made.submit))
    return made


async def _form(made: World) -> tuple[Browser, dict[str, str]]:
    await appoint(made)
    browser = await in_portal(made, "tokens/new")
    return browser, {"form_token": form_of(browser, "form_token", "name")["form_token"]}


async def test_a_form_that_is_still_running_is_not_run_again_and_says_so(made: World, slow: Slow) -> None:
    """D15: a sentence and a link; then the result of the first."""
    browser, form = await _form(made)
    first = asyncio.create_task(send(made, browser, "slow", **form))
    await slow.begun.wait()
    second = await send(made, browser, "slow", **form)
    assert (second.status_code, slow.runs) == (409, 1)
    assert "is not finished yet" in second.text
    assert 'href="/manage"' in second.text
    slow.gate.set()
    led_to = (await first).headers["Location"]
    assert (await send(made, browser, "slow", **form)).headers["Location"] == led_to
    assert slow.runs == 1


async def test_the_second_form_waits_for_the_result_of_the_first(made: World, slow: Slow) -> None:
    """D15: a browser shows the answer to the second click."""
    browser, form = await _form(made)
    first = asyncio.create_task(send(made, browser, "slow", **form))
    await slow.begun.wait()
    second = asyncio.create_task(send(made, browser, "slow", **form))
    await asyncio.sleep(0)
    slow.gate.set()
    assert (await first).headers["Location"] == (await second).headers["Location"]
    assert slow.runs == 1


async def test_a_form_that_failed_can_be_sent_again(made: World, slow: Slow) -> None:
    """D15."""
    browser, form = await _form(made)
    slow.gate.set()
    slow.outcomes = [StoreUnavailable("busy")]
    assert (await send(made, browser, "slow", **form)).status_code == 503
    assert (await send(made, browser, "slow", **form)).status_code == 303
    assert slow.runs == 2


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_rejected_form_that_is_sent_twice_leads_to_one_page(made: World, slow: Slow, *, at_once: bool) -> None:
    """D73: nothing was changed, so it is tried again; both are led to the same errors."""
    browser, form = await _form(made)
    slow.gate.set()
    slow.outcomes = [InvalidInput(phrase("Choose a role.")), InvalidInput(phrase("Choose a role."))]
    sends = [send(made, browser, "slow", **form) for _ in range(2)]
    first, second = await asyncio.gather(*sends) if at_once else [await each for each in sends]
    assert first.status_code == second.status_code == 303
    assert "?entered=" in first.headers["Location"]
    assert first.headers["Location"] == second.headers["Location"]


MOMENTARY = [
    InvalidInput(phrase("Choose a role.")),
    Conflict("changed at the same moment"),
    Refused("two at least are needed"),
    EditConflict(phrase("Somebody changed this.")),
    Throttled(60),
]


@pytest.mark.parametrize("refusal", MOMENTARY, ids=lambda each: type(each).__name__)
async def test_a_refusal_of_the_moment_is_no_answer_for_later(made: World, slow: Slow, refusal: Exception) -> None:
    """D73: the same bytes, as from a page that the browser kept, may be what is accepted then."""
    browser, form = await _form(made)
    slow.gate.set()
    slow.outcomes = [refusal]
    refused = await send(made, browser, "slow", **form)
    assert refused.status_code in {303, 429}
    accepted = await send(made, browser, "slow", **form)
    assert accepted.headers["Location"].endswith("?saved=access-given")
    assert slow.runs == 2


async def test_an_accepted_form_is_used_again_once_another_was_accepted_since(made: World, slow: Slow) -> None:
    """D73: until then it counts once for ten minutes; afterwards "saved" might no longer be true."""
    browser, form = await _form(made)
    slow.gate.set()
    other = {**form, "name": "another"}
    led_to = {(await send(made, browser, "slow", **form)).headers["Location"]}
    made.clock.pass_(599)
    led_to.add((await send(made, browser, "slow", **form)).headers["Location"])
    assert (len(led_to), slow.runs) == (1, 1)
    for runs in range(2, 6):
        sent = form if runs % 2 else other
        for _ in range(3):
            assert (await send(made, browser, "slow", **sent)).headers["Location"] in led_to
        assert slow.runs == runs
    slow.outcomes = [InvalidInput(phrase("It is so already."))]
    await send(made, browser, "slow", **other)
    assert slow.runs == 6
    await send(made, browser, "slow", **form)
    assert slow.runs == 6, "what was rejected has changed nothing"


async def test_identical_forms_after_another_one_are_used_once_at_the_same_moment(made: World, slow: Slow) -> None:
    """D15, D73."""
    browser, form = await _form(made)
    slow.gate.set()
    for sent in (form, {**form, "name": "another"}):
        await send(made, browser, "slow", **sent)
    answers = await asyncio.gather(*(send(made, browser, "slow", **form) for _ in range(6)))
    assert {each.headers.get("Location") for each in answers} == {"/manage/slow?saved=access-given"}
    assert slow.runs == 3


async def test_a_corrected_form_makes_the_first_one_say_what_is_wrong_again(made: World, slow: Slow) -> None:
    """D73: its kept form is gone, and no form is shown empty without a message."""
    browser, form = await _form(made)
    slow.gate.set()
    wrong = InvalidInput(phrase("Choose a role."))
    slow.outcomes = [wrong, None, wrong]
    name = (await send(made, browser, "slow", **form)).headers["Location"].partition("entered=")[2]
    await send(made, browser, "slow", **form, name="corrected", entered=name)
    again = (await send(made, browser, "slow", **form)).headers["Location"].partition("entered=")[2]
    assert again == name
    await go(made, browser, f"slow?entered={again}")
    assert "Choose a role." in browser.page.text


async def test_a_form_that_was_never_finished_blocks_for_a_minute_at_most(made: World, slow: Slow) -> None:
    """D15: as after the death of a process."""
    browser, form = await _form(made)
    first = asyncio.create_task(send(made, browser, "slow", **form))
    await slow.begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    slow.gate.set()
    assert (await send(made, browser, "slow", **form)).status_code == 409
    made.clock.pass_(61)
    assert (await send(made, browser, "slow", **form)).status_code == 303
    assert slow.runs == 2
