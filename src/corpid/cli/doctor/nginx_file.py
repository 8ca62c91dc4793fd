"""The structure of an nginx configuration: directives, and blocks of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(
    r"""#[^\n]*|(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<mark>[;{}])|(?P<word>(?:\\.|\$\{\w+\}|[^\s;{}])+)""",
    re.DOTALL,
)


class Directive(NamedTuple):
    """`words` are its name and parameters, without quotes; `block` is None if it ends with a semicolon."""

    words: tuple[str, ...]
    block: list[Directive] | None

    @property
    def name(self) -> str:
        """The first word; empty if there is none."""
        return self.words[0] if self.words else ""


def parse(text: str) -> list[Directive]:
    """The directives of a file; what cannot be understood is passed over, since nginx itself will say so."""
    levels: list[list[Directive]] = [[]]
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if token["quoted"] is not None:
            words.append(token["quoted"][1:-1])
        elif token["word"] is not None:
            words.append(token["word"])
        elif mark == ";":
            levels[-1].append(Directive(tuple(words), None))
        elif mark == "{":
            block: list[Directive] = []
            levels[-1].append(Directive(tuple(words), block))
            levels.append(block)
        elif mark == "}" and len(levels) > 1:
            levels.pop()
        if mark is not None:
            words = []
    return levels[0]


def every(directives: list[Directive]) -> Iterator[Directive]:
    """The directives and all within them."""
    waiting = list(reversed(directives))
    while waiting:
        directive = waiting.pop()
        yield directive
        waiting.extend(reversed(directive.block or []))
