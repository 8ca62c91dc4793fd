"""E-mails as bytes: header fields and a body of two parts (RFC 5322, RFC 2046).

The standard library's message objects parse what they are given, and parse it again to fold it: ten times the work of
writing the few fields that every e-mail has.
"""

from __future__ import annotations

import re
from binascii import b2a_base64, b2a_qp
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from corpid.rules.directory import values

if TYPE_CHECKING:
    from corpid.rules.emails import RenderedEmail

_LINE: Final = 76
"""characters of a line (RFC 5322 §2.1.1, RFC 2045 §6.7, RFC 2047 §2)"""
_WORD_BYTES: Final = 39
"""of text in an encoded word: 52 characters of base64, so that the first fits behind the field's name (RFC 2047 §2)"""
_PLAIN_WORD: Final = re.compile(r"[!-~]{1,60}(?: [!-~]{1,60})*")
"""ASCII words with single spaces between them"""
_BOUNDARY: Final = "=_next"
"""occurs in no quoted-printable text, where a hexadecimal digit or a line's end follows every equals sign (RFC 2045
§6.7)"""
_FIXED: Final = f'Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary="{_BOUNDARY}"\r\n'
_PART: Final = (
    "--{boundary}\r\n"
    'Content-Type: text/{subtype}; charset="utf-8"\r\n'
    "Content-Transfer-Encoding: quoted-printable\r\n"
    "\r\n"
)
_TEXT: Final = _PART.format(boundary=_BOUNDARY, subtype="plain").encode()
_HTML: Final = b"\r\n" + _PART.format(boundary=_BOUNDARY, subtype="html").encode()
_END: Final = f"\r\n--{_BOUNDARY}--\r\n".encode()


class MessageWriter:
    """A writer of messages from one sender."""

    def __init__(self, sender: Address, *, reply_to: str) -> None:
        """`reply_to` is a plain address, or empty."""
        message = EmailMessage(policy=SMTP)
        message["From"] = sender
        if reply_to:
            message["Reply-To"] = Address(addr_spec=reply_to)
        self._head = message.as_bytes().removesuffix(b"\r\n").decode("ascii")
        self._domain = sender.domain

    def write_message(self, rendered: RenderedEmail, *, to: str, now: float) -> bytes:
        """A message in lines of ASCII that end with CRLF.

        `now` is in epoch seconds. Raises ValueError if `to` is no address that a directory takes, or the subject has
        more than one line. Source: RFC 5322 §3.6, RFC 3834 §5, RFC 2046 §5.1.4
        """
        if not values.address(to):
            raise ValueError("no address")
        head = (
            self._head,
            _field("To", to),
            _subject(rendered.subject),
            _field("Date", format_datetime(datetime.fromtimestamp(int(now), UTC))),
            _field("Message-ID", make_msgid(domain=self._domain)),
            _FIXED,
            _field("Content-Language", rendered.language),
            "\r\n",
        )
        return b"".join(
            ("".join(head).encode("ascii"), _TEXT, _quoted(rendered.text), _HTML, _quoted(rendered.html), _END)
        )


def _field(name: str, value: str) -> str:
    """A field of a few words.

    If it is long, they stand in a line of their own.
    """
    return f"{name}: {value}\r\n" if len(name) + len(value) + 2 <= _LINE else f"{name}:\r\n {value}\r\n"


def _subject(text: str) -> str:
    """The field of a subject. Raises ValueError for a second line."""
    if "\r" in text or "\n" in text:
        raise ValueError("a subject has one line")
    field = f"Subject: {text}"
    if not _PLAIN_WORD.fullmatch(text) or "=?" in text:
        # Also what a reader would take for encoded words.
        field = " ".join(
            ["Subject:", *(f"=?utf-8?b?{b2a_base64(each, newline=False).decode()}?=" for each in _words(text))]
        )
    lines = [field] if len(field) <= _LINE else wrap(field, _LINE, break_long_words=False, break_on_hyphens=False)
    return "\r\n ".join(lines) + "\r\n"


def _words(text: str) -> list[bytes]:
    """Pieces of a text as UTF-8 that split no character."""
    found, rest = [], text.encode()
    while len(rest) > _WORD_BYTES:
        end = _WORD_BYTES
        while rest[end] & 0b1100_0000 == 0b1000_0000:
            end -= 1
        found.append(rest[:end])
        rest = rest[end:]
    return [*found, rest]


def _quoted(text: str) -> bytes:
    """A text as quoted-printable.

    Every server accepts it, and its lines are short in every script.
    """
    return b2a_qp(b"\r\n".join([*text.encode().splitlines(), b""]))
