"""The console's overview: what the deployment does now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.texts import phrase
from corpid.web.operations.page_context import ConsoleContext, Page, frame
from corpid.web.own_pages import Section
from corpid.web.pages.layout import PageView

if TYPE_CHECKING:
    from corpid.texts import Phrase
    from corpid.web.pages.views import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview(PageView):
    """The overview of the deployment."""

    template: ClassVar[str] = "console/overview.html"
    heading: ClassVar[Phrase] = phrase("Overview")

    saved: Phrase | None = None


async def overview(at: ConsoleContext) -> View:
    """The overview of the deployment."""
    return Overview(frame=frame(at), saved=at.saved)


SECTION: Final = Section[ConsoleContext](pages={"": Page(view=overview)})
