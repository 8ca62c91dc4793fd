"""Programs that race end together: what a test started does not run on under the next one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.adapters.opened import race

if TYPE_CHECKING:
    from pathlib import Path

SECOND_FAILS_TO_START = """
Path(sys.argv[1], sys.argv[2]).write_text(str(os.getpid()))
if sys.argv[2] == "1":
    sys.exit("it cannot start")
go()
time.sleep(600)
"""
ONE_FAILS_LATER = """
Path(sys.argv[1], sys.argv[2]).write_text(str(os.getpid()))
go()
sys.exit(int(sys.argv[2] == "0"))
"""


@pytest.mark.full
@pytest.mark.parametrize("body", [SECOND_FAILS_TO_START, ONE_FAILS_LATER], ids=["start", "end"])
def test_when_one_of_several_programs_fails_the_others_are_ended_and_their_pipes_closed(
    tmp_path: Path, body: str
) -> None:
    """A pipe that stays open is a ResourceWarning, which the next test would be blamed for."""
    with pytest.raises(AssertionError):
        race(tmp_path, "import os\n" + body, processes=2)
    for number in sorted(tmp_path.iterdir()):
        with pytest.raises(ProcessLookupError):
            os.kill(int(number.read_text()), 0)
