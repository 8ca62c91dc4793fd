"""The table of a client's members in docs/directory.md, written from their declarations (`make tables`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import CLIENT_MEMBERS

if TYPE_CHECKING:
    from corpid.rules.oauth.client_members import Declared

PAGE: Final = Path(__file__).parents[1] / "docs" / "directory.md"
_BEGIN: Final = "<!-- made by `make tables` -->\n"
_END: Final = "<!-- end -->\n"
_HEAD: Final = "| Key | Value | Default | Generations |\n|---|---|---|---|\n"


def written(page: str) -> str:
    """The page with the table as the declarations have it."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    rows = "".join(_row(each) for each in CLIENT_MEMBERS.values() if each.member.in_file)
    return before + begin + _HEAD + rows + end + after


def _row(declared: Declared) -> str:
    member = declared.member
    cells = (
        f"`{declared.name}`{' *new*' if member.needed else ''}",
        member.doc,
        member.default_doc or _default(declared),
        ", ".join(f"`{each.name}`" for each in GENERATIONS.values() if getattr(each, member.concerns))
        if member.concerns
        else "",
    )
    return "|".join(("", *(f" {cell} " if cell else " " for cell in cells), "\n"))


def _default(declared: Declared) -> str:
    default = declared.default
    if isinstance(default, tuple):
        return f"`[{', '.join(map(str, default))}]`"
    if default is None:
        return "`none`" if declared.member.clearable else ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
