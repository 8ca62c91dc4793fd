"""Tests of rp.py against a provider of their own, without a browser.

Run them with: pip install corpid-dev pytest requests-oauth2client starlette uvicorn && pytest test_rp.py
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid_dev.testing import Options, Provider

pytest_plugins = ["corpid_dev.testing.fixtures"]
HARBOUR, LANTERN = "209900042K", "209912345D"


@pytest.fixture(scope="session")
def corpid_options() -> Options:
    """The people of these tests, as plain data; without it, those of the demo."""
    return {
        "directory": {
            "entities": {
                HARBOUR: {"type": "UEN", "name": "Example Harbour", "country": "SG"},
                LANTERN: {"type": "UEN", "name": "Lantern Accounting", "country": "SG"},
            },
            "services": {"HARBOUR-PERMIT": {"name": "Harbour permits", "roles": ["Applicant", "Approver"]}},
            "users": {"mei": {"name": "Mei Example", "memberships": [HARBOUR, LANTERN]}},
            "assignments": [{"user": "mei", "entity": HARBOUR, "service": "HARBOUR-PERMIT", "role": "Applicant"}],
        }
    }


@pytest.fixture(scope="session")
def website(corpid_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The relying party, registered and running: its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home, keys = f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("rp") / "keys.json"
    client = corpid_provider.add_client("python-rp", redirect_uris=[f"{home}/callback"])
    keys.write_text(json.dumps({"signing": client.signing_key, "encryption": client.encryption_key}))
    variables = {"ISSUER": corpid_provider.issuer, "PORT": str(port), "KEYS": str(keys)}
    with subprocess.Popen([sys.executable, Path(__file__).with_name("rp.py")], env=os.environ | variables) as process:
        while True:
            try:
                requests.get(home, timeout=10)
                break
            except requests.ConnectionError:
                assert process.poll() is None, "rp.py has ended"
                time.sleep(0.1)
        yield home
        process.terminate()


def test_roles_of_the_chosen_entity_are_shown(website: str, corpid_provider: Provider) -> None:
    browser = requests.Session()
    login = browser.get(f"{website}/login", allow_redirects=False, timeout=10)
    callback = corpid_provider.sign_in(login.headers["location"], "mei", HARBOUR)
    page = browser.get(callback, timeout=10)
    assert page.status_code == 200
    assert "Mei Example" in page.text
    assert "may act as Applicant at HARBOUR-PERMIT" in page.text


def test_a_role_that_was_taken_away_is_gone(website: str, corpid_provider: Provider) -> None:
    ended = {
        "user": "mei",
        "entity": HARBOUR,
        "service": "HARBOUR-PERMIT",
        "role": "Applicant",
        "end_date": "2020-12-31",
    }
    corpid_provider.apply({"assignments": [ended]})
    browser = requests.Session()
    login = browser.get(f"{website}/login", allow_redirects=False, timeout=10)
    page = browser.get(corpid_provider.sign_in(login.headers["location"], "mei", HARBOUR), timeout=10)
    assert "may act as" not in page.text


def test_cancel_signs_nobody_in(website: str, corpid_provider: Provider) -> None:
    browser = requests.Session()
    login = browser.get(f"{website}/login", allow_redirects=False, timeout=10)
    page = browser.get(corpid_provider.cancel(login.headers["location"]), timeout=10)
    assert page.status_code == 403
    assert "access_denied" in page.text
