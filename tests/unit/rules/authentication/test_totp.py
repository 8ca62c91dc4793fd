"""Codes of an authenticator app (RFC 6238, D45)."""

from __future__ import annotations

import base64
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.totp import (
    UnusableSecret,
    WrongCode,
    code_at,
    matching_step,
    otpauth_uri,
    parse_secret,
    secret_from,
)

SECRET = secret_from(b"12345678901234567890")
# RFC 6238 appendix B, the last six of its eight digits.
VECTORS = [
    (59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"),
    (2000000000, "279037"), (20000000000, "353130"),
]  # fmt: skip


@pytest.mark.parametrize(("now", "code"), VECTORS)
def test_the_codes_are_those_of_rfc_6238(now: int, code: str) -> None:
    assert code_at(SECRET, now) == code
    assert matching_step(SECRET, code, now) == now // 30


@pytest.mark.parametrize("aside", [-1, 0, 1])
def test_a_code_of_one_step_before_or_after_is_accepted_as_that_step(aside: int) -> None:
    now = 1_800_000_015
    assert matching_step(SECRET, code_at(SECRET, now + 30 * aside), now) == now // 30 + aside


@pytest.mark.parametrize("aside", [-2, 2, -100, 100])
def test_a_code_of_any_other_step_is_wrong(aside: int) -> None:
    with pytest.raises(WrongCode):
        matching_step(SECRET, code_at(SECRET, 1_800_000_015 + 30 * aside), 1_800_000_015)


@pytest.mark.parametrize(("now", "accepted"), [(60, True), (89.999, True), (29.999, False), (30, True), (120, False)])
def test_the_window_begins_and_ends_with_a_step(now: float, accepted: bool) -> None:
    code = code_at(SECRET, 60)
    if accepted:
        assert matching_step(SECRET, code, now) == 2
    else:
        with pytest.raises(WrongCode):
            matching_step(SECRET, code, now)


def test_before_the_epochs_first_step_there_is_none() -> None:
    assert matching_step(SECRET, code_at(SECRET, 0), 0) == 0


@pytest.mark.parametrize(
    "typed",
    ["287 082", " 287082 ", "2 8 7 0 8 2", "287\u00a0082", "287082\n", "287-082", "287\u2011082", "\u200b287\u200e082\ufeff",
     "\u0662\u0668\u0667\u0660\u0668\u0662", "\u06f2\u06f8\u06f7\u06f0\u06f8\u06f2", "\uff12\uff18\uff17\uff0d\uff10\uff18\uff12"],
)  # fmt: skip
def test_digits_of_any_script_count_and_separators_do_not(typed: str) -> None:
    """D75."""
    assert matching_step(SECRET, typed, 59) == 1


@pytest.mark.parametrize(
    "typed",
    ["", " ", "28708", "2870820", "28708a", "+87082", "-87082", "287.082", "287_082", "0x7082",
     "28708\u00b2", "28708\u2461", "287082\0", "2" * 100_000],
)  # fmt: skip
def test_what_is_not_six_digits_is_no_code(typed: str) -> None:
    with pytest.raises(WrongCode, match="six digits"):
        matching_step(SECRET, typed, 59)


def test_a_secret_has_160_bits() -> None:
    assert base64.b32decode(SECRET) == b"12345678901234567890"
    assert len(SECRET) == 32
    with pytest.raises(UnusableSecret, match="160 bits"):
        secret_from(b"1234567890123456789")


@pytest.mark.parametrize("text", [SECRET.lower(), " ".join(SECRET), f" {SECRET}\n", SECRET + "======"])
def test_a_secret_may_be_written_as_apps_show_it(text: str) -> None:
    assert parse_secret(text) == SECRET


def test_a_longer_secret_is_kept_whole() -> None:
    longer = base64.b32encode(bytes(range(32))).decode()
    assert parse_secret(longer) == longer.rstrip("=")
    assert matching_step(longer, code_at(longer, 59), 59) == 1


@pytest.mark.parametrize("text", ["", "0189", SECRET[:-1] + "1", SECRET[:31], SECRET[:24], SECRET + "A", "\u00e4" * 32])
def test_what_is_no_base32_of_160_bits_is_refused(text: str) -> None:
    for use in (parse_secret, lambda secret: matching_step(secret, "287082", 59)):
        with pytest.raises(UnusableSecret):
            use(text)


def test_an_app_can_read_the_uri() -> None:
    uri = urlsplit(otpauth_uri(SECRET, account="mei tan&co@rp.example", issuer="CorpID: Prüfung"))
    query = parse_qs(uri.query, strict_parsing=True)
    assert (uri.scheme, uri.netloc) == ("otpauth", "totp")
    assert uri.path == "/CorpID%3A%20Pr%C3%BCfung:mei%20tan%26co%40rp.example"
    assert query["secret"] == [SECRET]
    assert query["issuer"] == ["CorpID: Prüfung"]


@given(st.text(max_size=20), st.floats(min_value=0, max_value=2**40))
def test_any_text_is_a_step_beside_now_or_a_wrong_code(typed: str, now: float) -> None:
    try:
        step = matching_step(SECRET, typed, now)
    except WrongCode:
        return
    assert abs(step - now // 30) <= 1
