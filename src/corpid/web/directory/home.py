"""The portal's home page: one sentence for each of its sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.texts import phrase
from corpid.web.directory.page_context import Page, PortalContext, frame
from corpid.web.own_pages import Section
from corpid.web.pages.layout import PageView

if TYPE_CHECKING:
    from corpid.texts import Phrase
    from corpid.web.pages.views import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Home(PageView):
    """The home page of an entity's portal."""

    template: ClassVar[str] = "manage/home.html"
    heading: ClassVar[Phrase] = phrase("Home")

    saved: Phrase | None = None


async def home(at: PortalContext) -> View:
    """The home page of the entity that they act for."""
    return Home(frame=frame(at), saved=at.saved)


SECTION: Final = Section[PortalContext](pages={"": Page(view=home)})
