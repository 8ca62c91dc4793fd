"""The demo's mail, which nobody sends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.rules.emails import Email, RenderedEmail

EMAILS: Final = 50
"""that are kept, the newest"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtEmail:
    """An e-mail as its reader gets it, in their language."""

    number: int
    """1 for the first one"""
    to: str
    content: RenderedEmail


@dataclass(slots=True)
class CaughtMail:
    """A Mail that stores e-mails until the demo stops, newest first."""

    render: Callable[[Email], RenderedEmail]
    emails: deque[CaughtEmail] = field(default_factory=lambda: deque(maxlen=EMAILS))
    works: bool = True

    def post(self, email: Email) -> None:
        number = self.emails[0].number + 1 if self.emails else 1
        self.emails.appendleft(CaughtEmail(number=number, to=email.to, content=self.render(email)))

    async def deliver(self, email: Email) -> None:
        """See Mail."""
        self.post(email)
