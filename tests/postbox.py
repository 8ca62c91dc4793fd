"""A ports.Mail that keeps what it is given."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpid.ports import Letter


@dataclass(slots=True)
class Postbox:
    """What was sent, the oldest first."""

    letters: list[Letter] = field(default_factory=list)
    works: bool = True
    refuses: list[BaseException] = field(default_factory=list)
    """what the server answers to the next letters, before it takes them"""

    def post(self, letter: Letter) -> None:
        """See ports.Mail."""
        self.letters.append(letter)

    async def deliver(self, letter: Letter) -> None:
        """See ports.Mail; raises what `refuses` has, one after the other."""
        if self.refuses:
            raise self.refuses.pop(0)
        self.letters.append(letter)

    def code(self) -> str:
        """The six digits of the newest letter."""
        found = re.search(r"\b\d{6}\b", self.letters[-1].text)
        assert found is not None, self.letters[-1].text
        return found[0]
