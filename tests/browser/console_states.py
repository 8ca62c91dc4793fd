"""The console's pages, in the states that look different (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.texts import phrase
from corpid.web.operations.overview import Overview
from corpid.web.operations.page_context import SECTIONS
from corpid.web.pages.layout import Frame, Navigation, NavigationLink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.layout import Link
    from corpid.web.pages.views import View


def framed(section: str = "", *, up: Link | None = None) -> Frame:
    """The frame of a console page."""
    return Frame(
        form_token="t0ken",
        up=up,
        here="/console",
        navigation=Navigation(
            label=phrase("Console"),
            title=phrase("Console of {name}", name="CorpID"),
            person="Tan Wei Ling",
            links=tuple(
                NavigationLink(url=f"/console/{path}".removesuffix("/"), text=name, current=path == section)
                for path, name in SECTIONS.items()
            ),
        ),
    )


STATES: Final[Mapping[str, View]] = {
    "console-overview": Overview(frame=framed()),
}
