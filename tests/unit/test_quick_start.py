"""Processes that tests start quickly end with their own status, or with an error."""

from __future__ import annotations

import os
import sys

import pytest

from tests import quick_start


@pytest.mark.parametrize("ask", ["wait", "poll"])
def test_a_status_that_was_lost_is_an_error_and_no_success(ask: str) -> None:
    """`subprocess` says 0 where another has taken the status."""
    process = quick_start.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    taken = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
    assert taken == 3
    with pytest.raises(quick_start.LostStatusError):
        getattr(process, ask)()
    process.returncode = taken


def test_the_status_of_a_process_is_its_own() -> None:
    done = quick_start.run([sys.executable, "-c", "raise SystemExit(3)"], timeout=30, check=False)
    assert done.returncode == 3
