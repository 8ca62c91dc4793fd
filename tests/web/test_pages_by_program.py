"""A program that signs a person in through the pages of `corpid serve`, as the page for relying parties has it (D34, D35)."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.processes import DIRECTORY, RINA, Running, command, serving

PAGE = Path(__file__).parents[2] / "docs" / "relying-parties.md"


async def _pushed(running: Running) -> str:
    async with running.parties() as (rp, _):
        return await rp.begin()


@pytest.mark.full
def test_the_program_of_the_documents_gets_the_callback_of_a_person(tmp_path: Path) -> None:
    """D17, D38: the directory that it signs in from was applied as JSON."""
    program = re.search(r"```python\n(\"\"\"Sign a person in.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert program is not None
    (tmp_path / "sign_in.py").write_text(program[1], encoding="utf-8")
    (tmp_path / "directory.json").write_text(json.dumps(DIRECTORY))
    applied = command(tmp_path, "apply", "directory.json", "--development", developer_mode="true")
    assert applied.returncode == 0, applied.stderr
    with serving(tmp_path, developer_mode="true") as running:
        arguments = (asyncio.run(_pushed(running)), RINA.user_name, RINA.password, RINA.totp_secret, "A1")
        done = subprocess.run(
            [sys.executable, "sign_in.py", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("https://rp.example/callback?code="), done.stdout
