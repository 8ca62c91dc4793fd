"""Instants are shown in the reader's time zone (docs/accessibility.md)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from babel.dates import get_timezone_name
from playwright.sync_api import Browser, Page, expect

from corpid.web.pages.rendering import Renderer, packaged_static_files
from corpid.web.pages.translations import ENGLISH, LANGUAGES, Language, translator
from tests.browser.stage import WITHOUT_SCRIPT, Stage, Visitor
from tests.browser.states import STATES

if TYPE_CHECKING:
    from tests.browser.gallery import Beholder

pytestmark = pytest.mark.full

DAY = re.compile(r"\b\d{1,2} [A-Z][a-z]{2} \d{4}\b")
ELSEWHERE = {"timezone_id": "Asia/Kolkata", "locale": "en-GB"}


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def sign_ins(visitor: Visitor, stage: Stage) -> Page:
    page = visitor.tab()
    page.goto(f"{stage.world.base}/account/sign-ins")
    visitor.password(page)
    visitor.code(page)
    page.wait_for_url("**/account/sign-ins")
    return page


@pytest.mark.parametrize(
    ("visitor", "ahead"),
    [(ELSEWHERE, timedelta(hours=5, minutes=30)), ({"timezone_id": "UTC"}, timedelta(0))],
    indirect=["visitor"],
    ids=["Asia/Kolkata", "the same zone"],
)
def test_an_instant_is_shown_in_the_zone_of_the_browser(visitor: Visitor, stage: Stage, ahead: timedelta) -> None:
    """With that zone's day, written as the server writes it; if they differ, the deployment's stays in the title."""
    shown = sign_ins(visitor, stage).locator("main time").first
    at = datetime.fromisoformat(shown.get_attribute("datetime") or "")
    assert at.utcoffset() == timedelta(0)
    there = at + ahead
    expect(shown).to_contain_text(f"{there.day} {there:%b} {there.year}, {there:%H:%M}")
    expect(shown).not_to_contain_text("UTC")
    assert (shown.get_attribute("title") or "").endswith("UTC") is bool(ahead)


@pytest.mark.parametrize("visitor", [{**ELSEWHERE, **WITHOUT_SCRIPT}], indirect=True, ids=["no script"])
def test_an_instant_stays_as_the_deployment_writes_it(visitor: Visitor, stage: Stage) -> None:
    """With the name of the zone, where no script runs."""
    shown = sign_ins(visitor, stage).locator("main time").first
    expect(shown).to_contain_text("UTC")
    assert shown.get_attribute("title") is None


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.tag)
def test_the_script_writes_instants_in_the_format_of_the_server(chromium: Browser, language: Language) -> None:
    """In each language, for a time of day, a day and both; the server's has the zone's name after it."""
    at = datetime(2026, 11, 9, 14, 5, tzinfo=ZoneInfo("Asia/Singapore"))
    voice = translator(language)
    written = {kind: getattr(voice, kind)(at) for kind in ("time", "moment", "day")}
    script = packaged_static_files()["page.js"].decode()
    marked = "".join(
        f'<time datetime="{at.isoformat()}" data-show="{kind}">{text}</time>' for kind, text in written.items()
    )
    with chromium.new_context(timezone_id="Asia/Singapore") as context:
        page = context.new_page()
        page.set_content(f'<html lang="{language.tag}"><body>{marked}</body></html>')
        page.add_script_tag(content=script)
        shown = page.locator("time").all_inner_texts()
    zone = get_timezone_name(at, locale=language.formats)
    assert [plain(text) for text in shown] == [plain(text.removesuffix(f" {zone}")) for text in written.values()]


@pytest.mark.parametrize("zone", ["Pacific/Pago_Pago", "Pacific/Kiritimati"])
@pytest.mark.parametrize(
    "state", ["portal-access", "portal-access-ending", "portal-person", "account-access", "console-person"]
)
def test_the_last_day_of_a_role_is_the_same_in_every_zone(beholder: Beholder, state: str, zone: str) -> None:
    """A day is no instant: the page's script leaves it, a day's journey west and east of the deployment too."""
    written = Renderer().render(STATES[state], ENGLISH).decode()
    days = DAY.findall(re.sub(r"(?s)<time.*?</time>", "", written))
    assert days
    with beholder.browser.new_context(timezone_id=zone, locale="en-GB") as context:
        page = context.new_page()
        page.goto(f"{beholder.address}/{ENGLISH.tag}/{state}")
        assert page.locator("time[data-show]").count() == 0
        page.evaluate("document.querySelectorAll('time').forEach(each => each.remove())")
        assert DAY.findall(page.content()) == days
