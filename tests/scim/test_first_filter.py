"""The first request of a process, in a file of its own: others complete the models (RFC 7644 §3.4.2.2)."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.full
def test_the_first_filter_of_a_process_finds_the_attributes_of_a_user() -> None:
    """RFC 7644 §3.4.2.2: before any User was read or made."""
    asks = "from corpid.rules import scim as r; print(r.USER.__pydantic_complete__)"
    assert subprocess.check_output([sys.executable, "-c", asks], text=True).strip() == "True"
