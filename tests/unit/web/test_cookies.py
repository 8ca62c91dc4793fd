"""The Cookie header, whatever was sent in it (RFC 6265 §5.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from corpid.web.http.requests import cookies, header_values


def sent(*headers: bytes) -> Request:
    fields = [(b"cookie", header) for header in headers]
    return Request({"type": "http", "headers": fields, "state": {"headers": header_values(fields)}})


@pytest.mark.parametrize(
    ("headers", "values"),
    [
        ((), []),
        ((b"a=1",), ["1"]),
        ((b"b=2; a=1; c",), ["1"]),
        ((b"a=1; a=2",), ["1", "2"]),
        ((b"a=1", b"b=2;a=3"), ["1", "3"]),
        ((b"b=x a=1",), []),
        ((b"a =1",), []),
        ((b"A=1",), []),
        ((b" a=1 ",), ["1"]),
        ((b"a=",), [""]),
        ((b"a=b=c",), ["b=c"]),
    ],
)
def test_every_value_of_a_cookie_is_found_and_nothing_else(headers: tuple[bytes, ...], values: list[str]) -> None:
    """RFC 6265 §4.2.1, §5.4"""
    assert cookies(sent(*headers), "a") == values


def test_a_header_of_more_cookies_than_a_browser_keeps_holds_none() -> None:
    """RFC 6265 §6.1: what is no browser's is not taken apart."""
    assert cookies(sent(b"a=1" + b";" * 999), "a") == ["1"]
    assert cookies(sent(b"a=1" + b";" * 1000), "a") == []
    assert cookies(sent(b"a=1", b";" * 999), "a") == []


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_give_values_without_a_semicolon(headers: list[bytes]) -> None:
    """RFC 6265 §5.4"""
    assert all(";" not in value for value in cookies(sent(*headers), "a"))
