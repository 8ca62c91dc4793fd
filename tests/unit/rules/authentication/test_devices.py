"""Names of browsers and systems, and nothing else, come out of a User-Agent (RFC 9110 §10.1.5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.devices import device

APPLE = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0"
KNOWN = [
    ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
    (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36", "Chrome on Windows"),
    (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36 Edg/139.0.0.0", "Edge on Windows"),
    (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {CHROME} Safari/537.36 OPR/120.0.0.0", "Opera on Windows"),
    (f"Mozilla/5.0 (Linux; Android 10; K) {CHROME} Mobile Safari/537.36", "Chrome on Android"),
    (
        f"Mozilla/5.0 (Linux; Android 15; SM-S921B) SamsungBrowser/28.0 {CHROME} Mobile Safari/537.36",
        "Samsung Internet on Android",
    ),
    (f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {APPLE} Version/18.5 Safari/605.1.15", "Safari on macOS"),
    (
        f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) {APPLE} Version/18.5 Mobile/15E148 Safari/604.1",
        "Safari on iPhone",
    ),
    (f"Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) {APPLE} CriOS/139.0 Mobile/15E148 Safari/604.1", "Chrome on iPad"),
    (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {CHROME} Safari/537.36", "Chrome on ChromeOS"),
    ("something (Windows NT 10.0)", "Windows"),
    ("curl/8.5.0", ""),
    ("", ""),
]
NAMES = {name for _, named in KNOWN for name in named.split(" on ")} | {""}


@pytest.mark.parametrize(("user_agent", "named"), KNOWN)
def test_a_device_is_called_as_its_owner_knows_it(user_agent: str, named: str) -> None:
    assert device(user_agent) == named


@given(
    st.lists(st.sampled_from([*(each for each, _ in KNOWN), "<script>", "Firefox/", "Windows", "\x00"])).map("".join)
)
def test_whatever_is_sent_only_known_names_come_out(user_agent: str) -> None:
    assert set(device(user_agent).split(" on ")) <= NAMES
