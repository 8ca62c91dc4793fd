"""Requests keep flowing while `corpid apply` writes a large file: its transactions are short."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.faults.serving import ROOT, Deployment, deployment, outside

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.full

ENTITIES = 4000


def large_file(path: Path) -> Path:
    file = path / "large.yaml"
    lines = ["entities:"]
    for number in range(ENTITIES):
        member = f"Z{number:08}"
        lines.append(
            f"  {member}: {{type: UEN, registration_number: {member}, country: SG, "
            f"name: Large {number}, status: Registered}}"
        )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def applying(made: Deployment, file: Path, said: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "CORPID_DATA_DIR": str(made.data_dir),
        "CORPID_BASE_URL": made.issuer,
        "CORPID_DEVELOPER_MODE": "true",
    }
    command = [sys.executable, "-m", "corpid", "apply", str(file), "--json"]
    with said.open("wb") as output:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output)


async def test_whole_sign_ins_go_on_while_a_large_file_is_applied(tmp_path: Path) -> None:
    """Every push, code, token and userinfo is answered; the file is there in the end."""

    async def flows(made: Deployment, writer: subprocess.Popen[bytes]) -> int:
        async with outside(made) as person:
            done = 0
            while writer.poll() is None or done == 0:
                rp = person.party()
                code = await person.code(rp)
                answer = await rp.token(code)
                assert answer.status_code == 200, answer.text
                assert (await rp.resource("GET", access_token=answer.json()["access_token"])).status_code == 200
                done += 1
            return done

    with deployment(tmp_path / "data", processes=1) as made:
        said = tmp_path / "said.json"
        writer = applying(made, large_file(tmp_path), said)
        assert await flows(made, writer) > 1
        assert writer.wait() == 0
        assert len(json.loads(said.read_text())["changes"]) == ENTITIES
