"""A Mail that keeps what it is given."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from corpid.web.pages.emails import EmailRenderer

if TYPE_CHECKING:
    from corpid.rules.emails import Email
    from corpid.texts import Phrase

RENDERER: Final = EmailRenderer(name="CorpID", timezone=ZoneInfo("UTC"))


@dataclass(frozen=True, slots=True)
class Sent:
    """An e-mail that was sent."""

    email: Email

    @property
    def to(self) -> str:
        return self.email.to

    @property
    def subject(self) -> Phrase:
        return self.email.subject

    @property
    def language(self) -> str:
        return self.email.language

    @property
    def text(self) -> str:
        """Its plain text in English, each paragraph in one line."""
        return self.text_in("en")

    def text_in(self, tag: str) -> str:
        """Its plain text in a language, each paragraph in one line."""
        rendered = RENDERER.render(replace(self.email, language=tag))
        return re.sub(r"(?<!\n)\n(?!\n)", " ", rendered.text)


@dataclass(slots=True)
class Postbox:
    """What was sent, the oldest first."""

    emails: list[Sent] = field(default_factory=list)
    works: bool = True
    refuses: list[BaseException] = field(default_factory=list)
    """what the server answers to the next e-mails, before it takes them"""

    def post(self, email: Email) -> None:
        """See Mail."""
        self.emails.append(Sent(email))

    async def deliver(self, email: Email) -> None:
        """See Mail; raises what `refuses` has, one after the other."""
        if self.refuses:
            raise self.refuses.pop(0)
        self.post(email)

    def code(self) -> str:
        """The six digits of the latest e-mail."""
        found = re.search(r"^\d{6}$", self.emails[-1].text, re.MULTILINE)
        assert found is not None, self.emails[-1].text
        return found[0]
