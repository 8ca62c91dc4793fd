"""Form bodies and query strings into parameters: each known name at most once (RFC 6749 §3.1, D4, D14)."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.parameters import (
    find_boundary,
    lone,
    parse,
    parse_parts,
    quote_value,
    require_parameter,
    requote_known,
)

KNOWN = {"state", "scope", "client_id"}


@given(st.dictionaries(st.sampled_from(sorted(KNOWN)), st.text(min_size=1)))
def test_what_the_standard_library_writes_is_read_back(given: dict[str, str]) -> None:
    assert parse(urlencode(given, errors="surrogatepass").encode(), KNOWN) == given


@given(st.text(), st.text())
def test_a_quoted_value_is_read_back_by_the_standard_library(name: str, value: str) -> None:
    assert parse_qsl(f"state={quote_value(value)}", keep_blank_values=True) == [("state", value)]
    assert "&" not in quote_value(name)


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (b"", {}),
        (b"&&&", {}),
        (b"=", {}),
        (b"state", {}),
        (b"state=", {}),
        (b"state=a+b%20c", {"state": "a b c"}),
        (b"st%61te=%2B", {"state": "+"}),
        (b"state=a=b", {"state": "a=b"}),
        (b"state=a;scope=b", {"state": "a;scope=b"}),
        (b"state=%00", {"state": "\0"}),
        ("state=ü".encode(), {"state": "ü"}),
        (b"State=a", {}),
        (b"state%20=a", {}),
    ],
)
def test_a_form_is_read(raw: bytes, read: dict[str, str]) -> None:
    """D14: a parameter without a value counts as absent; names are compared exactly."""
    assert parse(raw, KNOWN) == read


def test_unknown_parameters_are_ignored_repeated_or_not_and_whatever_they_hold() -> None:
    """D14."""
    assert parse(b"x=1&x=2&y=%ff&z=%zz&state=s", KNOWN) == {"state": "s"}


@pytest.mark.parametrize(
    "raw", [b"state=a&state=a", b"state=a&state=b", b"state=&state=b", b"state&state", b"state=a&st%61te=b"]
)
def test_a_repeated_known_parameter_is_refused_by_name(raw: bytes) -> None:
    """D14: whoever reads the first and whoever reads the last must not differ."""
    with pytest.raises(InvalidRequest, match="parameter state is repeated"):
        parse(raw, KNOWN)


@pytest.mark.parametrize("raw", [b"state=%", b"state=%a", b"state=%zz", b"state=%2", b"st%zzate=1", b"%=1"])
def test_a_broken_percent_encoding_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest, match="broken percent-encoding"):
        parse(raw, KNOWN)


@pytest.mark.parametrize("raw", [b"state=%ff", b"state=\xff", b"state=%ed%a0%80", b"state=%c0%af", b"\xff=1"])
def test_what_is_not_utf_8_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not encoded in UTF-8"):
        parse(raw, KNOWN)


@pytest.mark.parametrize(
    ("raw", "echoed"),
    [
        (b"state=abc", "abc"),
        (b"state=a+b&scope=%zz", "a b"),
        (b"scope=a&scope=b&state=abc", "abc"),
        (b"state=" + b"a" * 20, "a" * 20),
        (b"state=" + b"a" * 21, None),
        (b"state=a&state=a", None),
        (b"state=", None),
        (b"", None),
        (b"state=%0d%0aSet-Cookie:", None),
        (b"state=%c3%bc", None),
        (b"state=%ff", None),
        (b"%zz=1&state=abc", None),
    ],
)
def test_a_state_is_echoed_only_if_it_was_sent_once_and_is_well_formed(raw: bytes, echoed: str | None) -> None:
    """D4: beside an error, whatever else is wrong with the request."""
    assert lone(raw, "state", longest=20) == echoed


def test_a_hundred_pairs_are_read_and_one_more_is_refused_undecoded() -> None:
    """D47"""
    full = b"state=s" + b"&%41" * 99
    assert parse(full, KNOWN) == {"state": "s"}
    assert lone(full, "state", longest=20) == "s"
    assert requote_known(full, KNOWN) == "state=s"
    for more in (b"&", b"&%zz", b"&\xff", b"&state=s"):
        for read in (parse, requote_known):
            with pytest.raises(InvalidRequest, match="more than 100 parameters"):
                read(full + more, KNOWN)
        assert lone(full + more, "state", longest=20) is None


def test_a_state_that_is_written_in_escapes_only_is_echoed_up_to_the_limit() -> None:
    """D4, D13"""
    assert lone(b"state=" + b"%41" * 20, "state", longest=20) == "A" * 20
    assert lone(b"state=" + b"%41" * 21, "state", longest=20) is None


@pytest.mark.parametrize(
    ("raw", "query"),
    [
        (b"", ""),
        (b"&&", ""),
        (b"x=1&y", ""),
        (b"state=a+b&x=1&scope=openid", "state=a%20b&scope=openid"),
        (b"st%61te=a%26scope%3Db", "state=a%26scope%3Db"),
        (b"state=a&state=b", "state=a&state=b"),
        (b"state=", "state="),
        (b"state", "state="),
        ("state=ü".encode(), "state=%C3%BC"),
        (b"state=%0d%0aX:%20y", "state=%0D%0AX%3A%20y"),
    ],
)
def test_a_form_becomes_a_query_of_its_known_parameters(raw: bytes, query: str) -> None:
    """D40: what was repeated stays repeated, and nothing in a value becomes a parameter or a header."""
    assert requote_known(raw, KNOWN) == query


@pytest.mark.parametrize("raw", [b"state=%zz", b"x=%ff", b"\xff"])
def test_a_form_that_cannot_be_decoded_becomes_no_query(raw: bytes) -> None:
    """D14."""
    with pytest.raises(InvalidRequest):
        requote_known(raw, KNOWN)


def test_a_missing_parameter_is_named() -> None:
    assert require_parameter({"state": "s"}, "state") == "s"
    with pytest.raises(InvalidRequest, match="parameter nonce is missing"):
        require_parameter({"state": "s"}, "nonce")


# --- forms with a file (RFC 7578)


@given(st.dictionaries(st.sampled_from(sorted(KNOWN)), st.text(min_size=1)), st.binary(min_size=1), st.text())
def test_a_form_with_a_file_is_read_as_another_library_writes_it(
    fields: dict[str, str], file: bytes, name: str
) -> None:
    """D81: whatever the file is called."""
    texts = {each: (None, value.encode()) for each, value in fields.items()}
    sent = httpx.Request("POST", "https://op.example", files=[*texts.items(), ("file", (name or "a", file))])
    boundary = find_boundary(sent.headers["content-type"].encode())
    assert parse_parts(sent.read(), boundary, KNOWN, "file") == (fields, file)


@given(
    st.binary()
    | st.lists(st.sampled_from([b"--b", b"\r\n", b'Content-Disposition: form-data; name="state"', b"x"])).map(b"".join)
)
def test_whatever_is_sent_as_parts_is_read_or_refused(body: bytes) -> None:
    """D47."""
    try:
        fields, _ = parse_parts(body, b"b", KNOWN, "file")
    except InvalidRequest:
        return
    assert fields.keys() <= KNOWN
    assert all(fields.values())


def part(head: str, content: str = "x") -> bytes:
    return f"--b\r\n{head}\r\n\r\n{content}\r\n".encode()


NAMED = 'Content-Disposition: form-data; name="state"'


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b"", {}),
        (part(NAMED) + b"--b--\r\n", {"state": "x"}),
        (part(NAMED, "") + b"--b--\r\n", {}),
        (part(f"Content-Type: text/plain\r\n{NAMED.upper().replace('STATE', 'state')}") + b"--b--", {"state": "x"}),
        (part(NAMED, "a\r\n--bc"), {"state": "a"}),
        (part(f"{NAMED}; filename=a") + b"--b--", {"state": "x"}),
        (part(NAMED.replace("form-data", "attachment")) + b"--b--", {}),
        (part(NAMED.replace('"', "")) + b"--b--", {}),
        (part("") + b"--b--", {}),
        (b"--b\r\n" + NAMED.encode(), {}),
        (part(NAMED)[:-2], {"state": "x"}),
    ],
)
def test_parts_of_a_form_are_read(body: bytes, read: dict[str, str]) -> None:
    """D14, D81: of a body that has not come whole, the last part is what has come of it."""
    assert parse_parts(body, b"b", KNOWN, "file") == (read, b"")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(2 * part(NAMED), id="repeated"),
        pytest.param(101 * part("") + b"--b--", id="many"),
        pytest.param(part(NAMED).replace(b"x", b"\xff"), id="not UTF-8"),
    ],
)
def test_parts_are_refused_as_parameters_are(body: bytes) -> None:
    """D14, D47."""
    with pytest.raises(InvalidRequest):
        parse_parts(body, b"b", KNOWN, "file")


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        (b"multipart/form-data; boundary=----WebKitFormBoundaryA1", b"----WebKitFormBoundaryA1"),
        (b'Multipart/Form-Data;boundary="a b"', b""),
        (b'Multipart/Form-Data;boundary="ab"', b"ab"),
        (b"multipart/form-data; boundary=" + 71 * b"a", b""),
        (b"multipart/form-data", b""),
        (b"multipart/mixed; boundary=a", b""),
        (b"application/x-www-form-urlencoded", b""),
    ],
)
def test_only_a_form_with_parts_has_a_boundary(content_type: bytes, boundary: bytes) -> None:
    """RFC 2046 §5.1.1."""
    assert find_boundary(content_type) == boundary
