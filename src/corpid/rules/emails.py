"""The declaration of an e-mail, for its text and its HTML."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from corpid.texts import Phrase


class UrlLine(str):
    __slots__ = ()


class Copied(str):
    """A text to copy, which mail programs may make a link of."""

    __slots__ = ()


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """A button, with its address in clear below."""

    text: Phrase
    url: str


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """A code to enter, in a line of its own after `text`."""

    text: Phrase
    value: str


class Facts(msgspec.Struct, frozen=True):
    """Names and values, such as time and device of a change."""

    rows: tuple[tuple[Phrase, str | datetime], ...]
    """a time is shown in the deployment's zone"""


EmailPart: TypeAlias = "Phrase | UrlLine | Action | Code | Facts"
"""of an e-mail's body; a phrase is a paragraph"""


class Email(msgspec.Struct, frozen=True, kw_only=True):
    """An e-mail to one person, in their language.

    A phrase in it may hold an aware `datetime`. The sentence about what nobody asks for follows by itself. Raises
    ValueError if there is more than one action.
    """

    to: str
    subject: Phrase
    """also the heading; never holds a secret, since mail servers log subjects and locked phones show them"""
    preview: Phrase
    """what a list of e-mails shows after the subject; says something else, and no secret either"""
    name: str = ""
    """whom it greets; empty: somebody whose name is not known"""
    parts: tuple[EmailPart, ...]
    """in the order in which they are read"""
    language: str = "en"
    """a tag (BCP 47)"""

    def __post_init__(self) -> None:
        if sum(isinstance(part, Action) for part in self.parts) > 1:
            raise ValueError("an e-mail has one action at most")


class RenderedEmail(msgspec.Struct, frozen=True, kw_only=True):
    """An e-mail in one language, ready to be sent."""

    subject: str
    text: str
    html: str
    language: str
    """the tag of the language that it is written in"""


def to_email_time(seconds: float) -> datetime:
    """A time of an e-mail, whose renderer knows the zone."""
    return datetime.fromtimestamp(seconds, UTC)
