"""E-mail addresses in a directory file: those that e-mails reach, and what to write instead of others (RFC 5321 §4.1.2)."""

from __future__ import annotations

import pytest

from corpid.rules.directory import values
from corpid.rules.directory.document import parse
from corpid.rules.directory.nodes import DirectoryError

PLAIN = "write one plain address such as rina@example.org"
ASCII_NAME = "before the @; write another address of this person"
NO_DOMAIN = "no domain can have this name"


def read(address: str) -> None:
    parse(f"users:\n  rina: {{name: Rina, email: '{address}'}}\n".encode(), "f.yaml")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        *((address, PLAIN) for address in (
            "a..b@c", ".a@c", "a.@c", "a@c.", "a@.c", "a@b..c", "a", "@c", "a@", "a b@c", '"a b"@c', "a,b@c", "a;b@c", "a<b@c",
            "a(b)@c", "a@b(c)", "a@b@c", "a@[127.0.0.1]", "a@-c", "a@b_c", "=?utf-8?q?a?=@c", "Rina <rina@c>", f"{'a' * 65}@c",
            f"a@{'c' * 64}", f"a@{'c.' * 127}c",
        )),
        ("ü@b", ASCII_NAME),
        ("ü@bücher", ASCII_NAME),
        ("a@-bücher.example", NO_DOMAIN),
        (f"a@{'ü' * 64}.example", NO_DOMAIN),
        ("a@x.example\u200b", "the invisible character U+200B (zero width space) is not allowed in an e-mail address"),
        ("\u00ada@x.example", "the invisible character U+00AD (soft hyphen) is not allowed in an e-mail address"),
        ("a@x.example\u200c", NO_DOMAIN),
    ],
)  # fmt: skip
def test_an_address_that_letters_would_not_reach_is_refused_and_says_what_to_write(address: str, says: str) -> None:
    with pytest.raises(DirectoryError) as refused:
        read(address)
    [line] = refused.value.lines()
    assert line.startswith("f.yaml:2: email: ")
    assert line.endswith(says)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("anna@münchen.example", "anna@xn--mnchen-3ya.example"),
        ("anna@MÜNCHEN.example", "anna@xn--mnchen-3ya.example"),
        ("anna@mu\u0308nchen.example", "anna@xn--mnchen-3ya.example"),
        ("anna@\uff58.example", "anna@x.example"),
        ("anna@xn--mnchen-3ya.example", "anna@xn--mnchen-3ya.example"),
        ("Anna@X.example", "Anna@X.example"),
    ],
)
def test_a_domain_in_other_letters_becomes_its_a_label(typed: str, stored: str) -> None:
    """RFC 5891 §4: as mail servers look it up."""
    assert values.address(typed) == stored


def test_an_address_may_be_empty() -> None:
    read("")
