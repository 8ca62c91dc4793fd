"""Messages as bytes: what a reader gets is what the standard library would have written (RFC 5322, RFC 2047, RFC 2046)."""

from __future__ import annotations

from email import message_from_bytes
from email.headerregistry import Address, AddressHeader
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpid.outbound.smtp import MessageWriter
from corpid.rules.characters import printable
from corpid.rules.emails import RenderedEmail

NOON = 1_800_000_000.75
TO = "nina@example.org"

characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters | st.sampled_from(" .=\t\r\nö海😀"), min_size=1, max_size=400)
subjects = (st.text(characters, max_size=300) | st.text(st.sampled_from("ab .=?-_海ö"), max_size=300)).map(
    lambda text: " ".join(printable(text).split())
)
locals_ = st.from_regex(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,31}(\.[A-Za-z0-9]{1,31})?", fullmatch=True).filter(
    lambda text: "=?" not in text
)
addresses = st.builds("{}@{}.example".format, locals_, st.from_regex(r"[a-z0-9]{1,60}(\.[a-z0-9]{1,60}){0,2}", fullmatch=True))  # fmt: skip


def written(rendered: RenderedEmail, to: str = TO, *, name: str = "CorpID", reply_to: str = "") -> bytes:
    writer = MessageWriter(Address(name, addr_spec="sign-in@corp.example"), reply_to=reply_to)
    return writer.write_message(rendered, to=to, now=NOON)


def email(subject: str = "Code", text: str = "Text", html: str = "<p>Text</p>", language: str = "en") -> RenderedEmail:
    return RenderedEmail(subject=subject, text=text, html=html, language=language)


def by_the_library(rendered: RenderedEmail, to: str, *, name: str, reply_to: str) -> bytes:
    message = EmailMessage(policy=SMTP)
    message["From"] = Address(name, addr_spec="sign-in@corp.example")
    if reply_to:
        message["Reply-To"] = Address(addr_spec=reply_to)
    message["To"] = Address(addr_spec=to)
    message["Subject"] = rendered.subject
    message["Date"] = "Fri, 15 Jan 2027 08:00:00 +0000"
    message["Message-ID"] = "<1@corp.example>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(rendered.text, cte="quoted-printable")
    message.add_alternative(rendered.html, subtype="html", cte="quoted-printable")
    message["Content-Language"] = rendered.language
    return message.as_bytes()


def parsed(raw: bytes) -> tuple[dict[str, Any], list[tuple[dict[str, str], str]]]:
    """Header fields, and those and the content of each part. What is new in each message is left out."""
    message: Any = message_from_bytes(raw, policy=SMTP)
    assert not message.defects
    own = {"Message-ID", "Content-Type"}
    head = {name: str(value) for name, value in message.items() if name not in own}
    parts = []
    for part in message.iter_parts():
        assert not part.defects
        # The library repeats the version in a part, where it means nothing (RFC 2045 §4).
        fields = {name: value for name, value in part.items() if name != "MIME-Version"}
        parts.append((fields, part.get_content()))
    return {**head, "type": message.get_content_type(), "names": [name.lower() for name in message]}, parts


@pytest.mark.full
@given(
    subject=subjects,
    text=texts,
    html=texts,
    to=addresses,
    name=st.sampled_from(["CorpID", "海港登录", 'Q "quoted" <x@y>, z']),
    reply_to=st.sampled_from(["", "help@corp.example"]),
)
@example(subject="", text=" ", html="\n", to=TO, name="CorpID", reply_to="")
@example(subject="=?utf-8?q?Bcc?=", text=".\n..\n.", html="--=_next--\n=_next", to=TO, name="CorpID", reply_to="")
@example(subject="a" * 200, text=" \n\t", html="From me\n", to="a@" + "b" * 63 + ".example", name="CorpID", reply_to="")
@example(subject="海" * 200, text="\x0c\u2028\x85", html="\r\n\r", to=TO, name="CorpID", reply_to="")
def test_a_message_reads_as_the_librarys(subject: str, text: str, html: str, to: str, name: str, reply_to: str) -> None:
    rendered = email(subject, text, html, "zh-Hans")
    raw = written(rendered, to, name=name, reply_to=reply_to)
    head, parts = parsed(raw)
    own_head, own_parts = parsed(by_the_library(rendered, to, name=name, reply_to=reply_to))
    assert parts == own_parts
    # The library takes a subject with =? in it for one that is encoded already.
    assert (head.pop("Subject"), own_head.pop("Subject")) == (subject, ANY if "=?" in subject else subject)
    assert head == own_head
    assert raw.isascii()
    assert raw.count(b"\n") == raw.count(b"\r") == raw.count(b"\r\n")
    # An address cannot be divided.
    assert max(map(len, raw.split(b"\r\n"))) <= max(78, len(to) + 1)


@given(subject=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=100))
@example(subject=" \x00\x0b\u2028\x85Bcc: eve@example.org")
def test_whatever_a_subject_is_made_of_it_begins_no_field(subject: str) -> None:
    """Header injection"""
    raw = written(email(subject))
    head, _, _ = raw.partition(b"\r\n\r\n")
    names = [line.partition(b":")[0] for line in head.split(b"\r\n") if not line.startswith(b" ")]
    assert names == [b"From", b"To", b"Subject", b"Date", b"Message-ID", b"Auto-Submitted", b"MIME-Version", b"Content-Type", b"Content-Language"]  # fmt: skip


@pytest.mark.parametrize("subject", ["Hi\r\nBcc: eve@example.org", "Hi\nBcc: eve@example.org", "Hi\r"])
def test_a_subject_of_two_lines_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        written(email(subject))


@pytest.mark.parametrize(
    "to",
    [
        "",
        "nina",
        "a@b, c@d",
        "Nina <nina@example.org>",
        "nina@example.org\r\nBcc: a@b",
        "nina@example.org\n",
        "ö@b.example",
    ],
)
def test_what_is_no_address_of_a_directory_is_refused(to: str) -> None:
    with pytest.raises(ValueError, match="address"):
        written(email(), to)


def test_a_plain_subject_stays_readable_in_a_raw_message() -> None:
    """Filters of spam mistrust what is encoded without need."""
    subject = "Your authenticator app was changed, and so were your recovery codes, in a browser on another device"
    assert b"Subject: Your authenticator app was changed, and so were your recovery\r\n codes, in" in written(
        email(subject)
    )


def test_each_message_has_an_identifier_of_its_own() -> None:
    found: list[AddressHeader] = [message_from_bytes(written(email()), policy=SMTP)["Message-ID"] for _ in range(3)]
    assert len(set(map(str, found))) == 3
