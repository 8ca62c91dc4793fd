"""A phone and `corpid demo --host`: the printed link and QR code, and a sign-in from there (D66)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import segno
from playwright.sync_api import Browser, expect

from corpid_dev import hosting
from tests.browser.test_demo import demonstrated

if TYPE_CHECKING:
    from collections.abc import Iterator


QUIET_ZONE = 4


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if hosting.own_address() is None:
        pytest.skip("this machine has no address on a network")
    with demonstrated(tmp_path_factory.mktemp("demo"), "--host", "auto") as text:
        yield text


def link_of(printed: str) -> str:
    """The link of the website; that of developer mode has the same key."""
    links: set[str] = set(re.findall(r"https://\S+\?key=\S+", printed))
    [link] = [each for each in links if "/developer?" not in each]
    assert {each.partition("?")[2] for each in links} == {link.partition("?")[2]}
    return link


def modules(printed: str) -> list[list[int]]:
    """The QR code as a camera sees it: 1 for a dark module."""
    light = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}
    code = [line for line in printed.splitlines() if line.startswith("█") and set(line) <= set(light)]
    return [[light[each][half] for each in line] for line in code for half in (0, 1)]


@pytest.mark.full
def test_the_qr_code_is_the_link(printed: str) -> None:
    """ISO/IEC 18004: every module, and the quiet zone around."""
    wanted = [list(row) for row in segno.make_qr(link_of(printed), error="l").matrix_iter(border=QUIET_ZONE)]
    seen = modules(printed)
    assert seen[: len(wanted)] == wanted
    assert not any(any(row) for row in seen[len(wanted) :])


@pytest.mark.full
def test_what_to_do_is_printed(printed: str) -> None:
    """The certificate's fingerprint, the file to install, and what passkeys need (D34)."""
    assert re.search(r"^ +([0-9A-F]{2}:){15}[0-9A-F]{2}$", printed, re.MULTILINE)
    assert "/tls/ca.crt" in printed
    assert "Passkeys   They do not work at an address" in printed


@pytest.mark.full
def test_a_phone_signs_in_with_the_link_alone(printed: str, chromium: Browser) -> None:
    """D34, D66: the key leaves the address, and what is asked of another browser is not there."""
    link = link_of(printed)
    own = link.partition("?")[0]
    with chromium.new_context(viewport={"width": 375, "height": 812}, ignore_https_errors=True) as context:
        page = context.new_page()
        page.goto(link)
        assert page.url == own
        expect(page.get_by_role("heading", name="A service for organisations")).to_be_visible()
        page.locator("#login").get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("For testing only. Never enter a real password.")).to_be_visible()
        page.get_by_role("button", name="Rina Example").click()
        page.get_by_role("button", name="Agree and continue").click()
        expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
        cookies = {each["name"]: each for each in context.cookies()}
        assert {"__Host-corpid", "__Host-corpid_developer", "__Host-corpid-demo-rp"} <= cookies.keys()
        assert all(each["secure"] and each["httpOnly"] for each in cookies.values())
        assert all("key=" not in each.url for each in context.pages)
    with chromium.new_context(ignore_https_errors=True) as context:
        page = context.new_page()
        answer = page.goto(own)
        assert answer is not None
        assert answer.status == 404
        assert "open the link that the demo has printed" in page.locator("body").inner_text()
