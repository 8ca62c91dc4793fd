"""Schemathesis over the document of the admin API (D59).

It gives the tests of all operations one id, of which a worker of pytest-xdist would run one: so they run in a pytest of
their own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from corpid.web.api.operations import OPERATIONS

CALLS = Path(__file__).with_name("schemathesis_calls.py")
SECONDS = 900

pytestmark = [pytest.mark.full, pytest.mark.timeout(SECONDS + 60)]


def test_no_call_of_any_operation_breaks_the_api_or_is_answered_outside_the_document() -> None:
    """D59, OpenAPI 3.1."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "full", "-q", "--tb=short", str(CALLS)]
    ran = subprocess.run(command, cwd=CALLS.parents[2], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ran.returncode == 0, ran.stdout[-20_000:]
    assert f"{len(OPERATIONS)} passed" in ran.stdout
