"""A job whose server dies or is stopped while it runs: the next server says so (docs/decisions/0042)."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest

from corpid.rules.jobs import LOST_SECONDS
from corpid_dev.relying_party.browser import Browser
from tests.machine import free_port
from tests.web.processes import DIRECTORY, RINA, command, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.full
OPERATORS = {"operators": [{"user": "rina", "level": "operator"}]}
ENTRIES = 100_000
"""which take a processor more than a second to verify"""
FILLING = f"""
INSERT INTO audit (at, actor, action, object, client_id, entity_id, outcome, request_id, detail)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ENTRIES})
SELECT 1700000000, 'system', 'test.change', 'o', '', '', 'ok', '', '{{}}' FROM n
"""


def execute(directory: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(directory / "data" / "corpid.sqlite", timeout=30)) as database, database:
        return database.execute(statement, values).fetchall()


@pytest.mark.parametrize(
    ("dies", "sentence", "event"),
    [
        (True, "The server that ran the job no longer responds: its process ended. Start the job again.", "lose"),
        (False, "The server was stopped while the job ran. Start the job again.", "stop"),
    ],
    ids=["killed", "stopped"],
)
async def test_the_page_of_a_job_says_after_the_end_of_its_process_that_it_failed(
    tmp_path: Path, dies: bool, sentence: str, event: str
) -> None:
    """docs/decisions/0042: nobody waits for a job that nobody does."""
    directory = tmp_path / "directory.json"
    directory.write_text(json.dumps({**DIRECTORY, **OPERATORS}))
    settings = {"port": str(free_port()), "operators_need_passkey": "false", "hashing_threads": "1"}
    for arguments in (("apply", "--development", "directory.json"), ("audit", "seal")):
        done = command(tmp_path, *arguments, **settings)
        assert done.returncode == 0, done.stderr
    execute(tmp_path, FILLING)
    assert command(tmp_path, "audit", "seal", **settings).returncode == 0
    with serving(tmp_path, **settings) as first:
        async with first.client() as http:
            browser = Browser(http)
            await browser.open(f"{first.base_url}/console/verify-audit", site="none")
            await browser.fill_and_submit(user_name=RINA.user_name, password=RINA.password)
            await browser.fill_and_submit(code=replace(RINA).fresh_code(time.time()))
            assert browser.page.heading == "Verify the audit"
            form = next(each for each in browser.page.forms if each.action.endswith("/verify-audit"))
            answer = await http.post(
                urljoin(first.base_url, form.action),
                data={each.name: each.value for each in form.controls},
                headers={"Sec-Fetch-Site": "same-origin"},
            )
            job = urljoin(first.base_url, answer.headers["location"])
            if dies:
                first.process.kill()
                first.process.wait()
            else:
                first.lines()
            assert [row[0] for row in execute(tmp_path, "SELECT event FROM jobs")] == ["start" if dies else "stop"]
            execute(tmp_path, "UPDATE jobs SET seen_at = seen_at - ?", LOST_SECONDS + 1)
            with serving(tmp_path, **settings, base_url=first.base_url):
                for _ in range(2):
                    await browser.open(job, site="none")
                    assert sentence in browser.page.text
                await browser.open(f"{first.base_url}/console/verify-audit", site="none")
                form = next(each for each in browser.page.forms if each.action.endswith("/verify-audit"))
                again = await browser.submit(form)
                assert again.heading == "Verification of the audit"
    ended = execute(tmp_path, "SELECT actor, detail FROM audit WHERE action = 'job.end' ORDER BY number LIMIT 1")
    assert [(actor == "system", event in str(detail)) for actor, detail in ended] == [(dies, True)]
