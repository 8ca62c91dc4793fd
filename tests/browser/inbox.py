"""Every e-mail in Chromium, as a mail program shows its HTML: nothing around it, nothing loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from corpid.web.pages.emails import EmailRenderer
from tests.sample_emails import samples

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

    from corpid.rules.emails import Email
    from tests.browser.gallery import Appearance

PLACE: Final = "http://mail.test/"


@cache
def every_email() -> dict[str, Email]:
    """All e-mails by name."""
    return samples()


@dataclass(kw_only=True)
class Inbox:
    """A browser that shows e-mails, with a tab for each appearance."""

    browser: Browser
    renderer: EmailRenderer = field(
        default_factory=lambda: EmailRenderer(name="CorpID", timezone=ZoneInfo("Asia/Singapore"))
    )
    emails: dict[str, Email] = field(default_factory=every_email)
    asked_for: list[str] = field(default_factory=list)
    """what an e-mail wanted to load"""
    _tabs: dict[Appearance, Page] = field(default_factory=dict)
    _shown: str = ""

    def look(self, name: str, appearance: Appearance) -> Page:
        """The e-mail in the appearance's language, scheme and width."""
        email = replace(self.emails[name], language=appearance.language.tag)
        self._shown = self.renderer.render(email).html
        page = self._tabs.get(appearance) or self._tab(appearance)
        page.goto(PLACE)
        return page

    def _tab(self, appearance: Appearance) -> Page:
        context = self.browser.new_context(**appearance.options)
        context.route("**/*", self._answer)
        self._tabs[appearance] = context.new_page()
        return self._tabs[appearance]

    def _answer(self, route: Route) -> None:
        if route.request.url == PLACE:
            route.fulfill(body=self._shown, content_type="text/html; charset=utf-8")
        else:
            self.asked_for.append(route.request.url)
            route.abort()
