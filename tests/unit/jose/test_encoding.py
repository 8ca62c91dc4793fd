"""base64url and JSON in their only accepted forms (RFC 7515 §2, RFC 7519 §4, D33)."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.jose.encoding import MalformedToken, base64url, from_base64url, json_object

NOT_CANONICAL = {
    "padding": "QQ==",
    "padding of a full group": "QUFB=",
    "only padding": "====",
    "padding inside": "QQ==QUFB",
    "the standard alphabet's plus": "-_+_",
    "the standard alphabet's slash": "-_/_",
    "bits left over in two characters": "QR",
    "bits left over in three characters": "QUF",
    "one character": "A",
    "one character too many": "QUFBA",
    "a space": "QU FB",
    "a space at the end": "QUFB ",
    "a line end": "QUFB\n",
    "a line end in the middle": "QU\nFB",
    "a NUL": "QUFB\0",
    "a dot": "QUFB.",
    "a full-width letter": "\uff31UFB",
    "a letter outside ASCII": "QUFé",
}


@pytest.mark.parametrize("text", NOT_CANONICAL.values(), ids=NOT_CANONICAL.keys())
def test_base64url_that_is_not_canonical_is_refused(text: str) -> None:
    """D33: two spellings of one token would be two entries of what was spent."""
    with pytest.raises(MalformedToken, match="base64url"):
        from_base64url(text)
    with pytest.raises(MalformedToken, match="base64url"):
        from_base64url(text.encode())


@given(st.binary(max_size=100))
def test_base64url_is_that_of_the_standard_library_without_padding(raw: bytes) -> None:
    encoded = base64url(raw)
    assert encoded == base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    assert from_base64url(encoded) == raw
    assert from_base64url(encoded.encode()) == raw


@pytest.mark.parametrize(("length", "left_over"), [(1, 4), (2, 2)])
def test_only_one_spelling_of_the_last_character_is_accepted(length: int, left_over: int) -> None:
    encoded = base64url(b"\xff" * length)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    accepted = []
    for last in alphabet:
        try:
            accepted.append(from_base64url(encoded[:-1] + last))
        except MalformedToken:
            continue
    assert len(set(accepted)) == len(accepted) == 64 >> left_over


def test_a_json_object_is_read_as_it_is_written() -> None:
    written = {"a": [1, 2.5, True, None, "ü\U0001f600"], "b": {"c": {}}}
    assert json_object(json.dumps(written).encode()) == written
    assert json_object(json.dumps(written, ensure_ascii=False)) == written
    assert json_object(b' \t\r\n{"a" : 1} \n') == {"a": 1}


NOT_JSON = {
    "nothing": b"",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "bytes that are not UTF-8": b'{"a":"\xff"}',
    "an overlong form": b'{"a":"\xc0\xaf"}',
    "half a surrogate pair as bytes": b'{"a":"\xed\xa0\x80"}',
    "half a surrogate pair escaped": b'{"jti":"\\ud800"}',
    "the other half escaped": b'{"jti":"\\uDFFF"}',
    "two halves in the wrong order": b'{"jti":"\\udc00\\ud800"}',
    "half a surrogate pair in a name": b'{"\\ud800":1}',
    "half a surrogate pair deep inside": b'{"a":[{"b":["\\ud800"]}]}',
    "two objects": b"{}{}",
    "text behind": b"{} x",
    "a comment": b"{/**/}",
    "a comma too many": b'{"a":1,}',
    "single quotes": b"{'a':1}",
    "a control character": b'{"a":"\x01"}',
    "a line end in a string": b'{"a":"\n"}',
    "a leading zero": b'{"a":01}',
    "a plus sign": b'{"a":+1}',
    "hexadecimal": b'{"a":0x1}',
    "a number of five thousand digits": b'{"a":' + b"1" * 5000 + b"}",
    "a hundred thousand open arrays": b"[" * 100_000,
    "a hundred thousand open objects": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("raw", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_json_in_utf_8_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedToken, match="not JSON in UTF-8"):
        json_object(raw)


@pytest.mark.parametrize("raw", [b"[]", b"1", b'"text"', b"null", b"true", b'[{"a":1}]'])
def test_json_that_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedToken, match="not a JSON object"):
        json_object(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"iss":"a","iss":"b"}',
        b'{"iss":"a","iss":"a"}',
        b'{"iss":"a","i\\u0073s":"b"}',
        b'{"":1,"":2}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":[0,[{"b":{"c":1,"c":2}}]]}',
    ],
)
def test_a_member_that_is_repeated_at_any_depth_is_refused(raw: bytes) -> None:
    """RFC 7519 §4, D33: who reads the first and who reads the last must not differ."""
    with pytest.raises(MalformedToken, match="repeated"):
        json_object(raw)


def test_one_name_may_stand_in_several_objects() -> None:
    assert json_object(b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}') == {
        "a": {"a": {"a": 1}},
        "b": [{"a": 1}, {"a": 2}],
    }


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_json_does_not_have_are_refused(constant: str) -> None:
    with pytest.raises(MalformedToken, match=f"{constant} is not JSON"):
        json_object(f'{{"exp":{constant}}}')


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1.0e999999999", "1" + "0" * 400 + ".0"])
def test_a_number_that_would_become_infinity_is_refused(number: str) -> None:
    with pytest.raises(MalformedToken, match="out of range"):
        json_object(f'{{"exp":{number}}}')


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert json_object(b'{"a":"\\ud83d\\ude00"}') == {"a": "\U0001f600"}
