"""The page of developer mode that checks a relying party (D66)."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import httpx
import pytest

from corpid_dev.flows.readiness_runs import (
    MOST_LINES,
    Run,
    RunInProgress,
    RunRequest,
    Runs,
    RunState,
)
from corpid_dev.readiness.background import check_as_asked, marker_of
from corpid_dev.readiness.cases import BASELINE, CASES
from corpid_dev.readiness.observation import Finding, Observation, Verdict
from corpid_dev.readiness.report import Report, Result
from corpid_dev.relying_party.interfaces import CURRENT
from tests.developer.scene import KEY, demo_world
from tests.readiness.scene import ENTITY, PATIENCE, USER, RunningDemo, broken, demo
from tests.sign_in.world import BASE, FORM, form_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


PAGE = f"{BASE}/developer/readiness"
HEADERS = {"Sec-Fetch-Site": "same-origin", "Content-Type": FORM}
ASKED = RunRequest(issuer=BASE, url="http://127.0.0.1:1/login", user="alice", entity="200000001A")


async def waits(asked: RunRequest, progress: Callable[[str], None]) -> Report:
    """A check that ends only when it is stopped."""
    progress(f"checking {asked.url} as {asked.user} for {asked.entity}")
    await asyncio.Event().wait()
    raise AssertionError


async def ends(asked: RunRequest, progress: Callable[[str], None]) -> Report:
    finding = Finding(verdict=Verdict.FAILED, seen="<b>seen</b>")
    case = CASES["state-altered"]
    return Report(
        url=asked.url,
        issuer=asked.issuer,
        client_id="rp1",
        marker="",
        user=asked.user,
        at=0,
        seconds=1,
        results=(Result(case=case, finding=finding, observation=Observation(sign_ins=()), seconds=1),),
    )


async def test_a_check_starts_shows_its_progress_and_is_alone_until_it_is_stopped() -> None:
    """D66: one at a time in the process; by default as the first test person, for their first entity."""
    runs = Runs(waits)

    async with demo_world(readiness=runs) as made:
        browser = await made.browser()
        await browser.open(PAGE)
        fields = {**form_of(browser, "url"), "url": "http://127.0.0.1:1/login"}
        await browser.fill_and_submit("url", url="http://127.0.0.1:1/login")
        await asyncio.sleep(0)
        await browser.open(PAGE)
        assert "The check is running" in browser.page.text
        assert "checking http://127.0.0.1:1/login as alice for 200000001A" in browser.page.text
        assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in (await browser.http.get(PAGE)).text
        second = await browser.http.post(PAGE, data=fields, headers=HEADERS)
        assert second.status_code == 303
        await browser.open(urljoin(PAGE, second.headers["location"]))
        assert "A check is running. Wait until it ends, or stop it." in browser.page.text
        await browser.fill_and_submit("step", button="")
        assert runs.latest is not None
        assert runs.latest.state is RunState.STOPPED
        assert "The check was stopped" in browser.page.text
        assert 'http-equiv="refresh"' not in (await browser.http.get(PAGE)).text


async def test_the_results_are_a_table_and_files() -> None:
    """D66: what others' pages show is text here, and a file is downloaded, never shown at this origin."""
    runs = Runs(ends)

    async with demo_world(readiness=runs) as made:
        browser = await made.browser()
        await browser.open(PAGE)
        assert (await browser.http.get(f"{PAGE}/report.json")).status_code == 404
        await browser.fill_and_submit("url", url="http://127.0.0.1:1/login")
        await asyncio.sleep(0)
        await browser.open(PAGE)
        for shown in ("1 failed", "state-altered", "<b>seen</b>", CASES["state-altered"].fix):
            assert shown in browser.page.text
        for name in ("html", "json", "xml"):
            answer = await browser.http.get(f"{PAGE}/report.{name}")
            assert answer.headers["content-disposition"] == f'attachment; filename="readiness-report.{name}"'
        for name in ("report.csv", "html", "report."):
            assert (await browser.http.get(f"{PAGE}/{name}")).status_code == 404


@pytest.mark.parametrize("url", ["", "rp.example/login", "file:///etc/passwd", "http://u:p@rp.example/", "http://[::"])
async def test_an_address_that_cannot_be_used_is_said_and_kept(url: str) -> None:
    """WCAG 3.3.1."""
    runs = Runs(waits)

    async with demo_world(readiness=runs) as made:
        browser = await made.browser()
        await browser.open(PAGE)
        await browser.fill_and_submit("url", url=url, signed_in="Sign out")
        assert browser.response is not None
        assert browser.response.status_code == 200
        assert "Enter an address that begins with http:// or https://" in browser.page.text
        assert runs.latest is None
        form = browser.page.form_with("url")
        assert form is not None
        kept = {each.name: each.value for each in form.controls}
        assert (kept["url"], kept["signed_in"]) == (url, "Sign out")


async def test_only_those_who_see_developer_mode_see_or_start_a_check() -> None:
    """D35, D66: nor does a form of another site or of another browser."""
    runs = Runs(waits)

    async with demo_world(readiness=runs) as made:
        http = await made.http("192.0.2.7")
        assert (await http.get("/developer/readiness")).status_code == 404
        assert (await http.post("/developer/readiness", data={"url": ASKED.url}, headers=HEADERS)).status_code == 404
        assert (await http.get(f"/developer/readiness?key={KEY}", follow_redirects=True)).status_code == 200
        browser, other = await made.browser(), await made.browser()
        await browser.open(PAGE)
        await other.open(PAGE)
        own, foreign = form_of(browser, "url"), form_of(other, "url")
        for fields, site in ((own, "cross-site"), (foreign, "same-origin"), ({}, "same-origin")):
            answer = await browser.http.post(
                PAGE, data={**fields, "url": ASKED.url}, headers={**HEADERS, "Sec-Fetch-Site": site}
            )
            assert answer.status_code == 400
        assert runs.latest is None


async def test_where_nothing_checks_the_page_names_the_command() -> None:
    async with demo_world() as made:
        browser = await made.browser()
        await browser.open(PAGE)
        assert f"corpid rp-check LOGIN-URL --developer {BASE}/developer" in browser.page.text
        assert browser.page.form_with("url") is None


async def test_runs_end_with_the_process_and_their_lines_are_bounded() -> None:
    """D66: a run that is stopped cleans up first, and nothing begins after the end."""
    cleaned = asyncio.Event()

    async def cleans(asked: RunRequest, progress: Callable[[str], None]) -> Report:
        try:
            return await waits(asked, progress)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    runs = Runs(cleans)
    run = runs.start(ASKED)
    await asyncio.sleep(0)
    with pytest.raises(RunInProgress):
        runs.start(ASKED)
    await runs.close()
    assert cleaned.is_set()
    assert run.state is RunState.STOPPED
    with pytest.raises(RunInProgress):
        runs.start(ASKED)
    for _ in range(MOST_LINES + 5):
        run.progress("x" * 10_000)
    assert sum(map(len, run.lines)) < MOST_LINES * 500


def test_the_sign_of_a_session_is_an_address_or_a_text() -> None:
    found = [marker_of(text) for text in ("/home", "https://rp.example/home", "Sign out")]
    assert [(each.url, each.text) for each in found if each] == [
        ("/home", ""), ("https://rp.example/home", ""), ("", "Sign out"),
    ]  # fmt: skip
    assert marker_of("") is None


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    with demo(tmp_path_factory.mktemp("demo"), CURRENT) as made:
        yield made


@pytest.mark.full
def test_a_demo_checks_a_relying_party_itself(running: RunningDemo) -> None:
    """D66: the runner of its pages, with few cases."""
    with broken(running) as rp:
        cases = (BASELINE, CASES["state-altered"])
        run = Run(asked=RunRequest(issuer=running.issuer, url=f"{rp.home}/login", user=USER, entity=ENTITY))
        found = asyncio.run(check_as_asked(run.asked, run.progress, cases=cases))
    assert {each.case.id: each.verdict for each in found.results} == {"baseline": "passed", "state-altered": "passed"}
    assert [line.split(":")[0] for line in run.lines] == ["PASSED baseline", "PASSED state-altered"]
    assert json.loads(found.file("json"))["summary"]["passed"] == 2


def test_a_running_demo_starts_the_check_from_its_page(running: RunningDemo) -> None:
    """D66: with no relying party at the address, the report says so about each case."""
    page = f"{running.issuer}/developer/readiness"
    with httpx.Client(trust_env=False, timeout=PATIENCE, follow_redirects=True) as http:
        token = http.get(page).text.split('name="form_token" value="')[1].split('"')[0]
        fields = {"form_token": token, "step": "start", "url": "http://127.0.0.1:9/login"}
        answer = http.post(page, data=fields, headers={"Origin": running.issuer, "Sec-Fetch-Site": "same-origin"})
        end = time.monotonic() + PATIENCE
        while "The check is running" in answer.text and time.monotonic() < end:
            time.sleep(0.2)
            answer = http.get(page)
        report = http.get(f"{page}/report.json").json()
    assert "Results" in answer.text
    assert {each["id"] for each in report["cases"]} == CASES.keys()
    assert report["summary"]["passed"] == 0
