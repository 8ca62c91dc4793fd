"""`make screenshots`: a picture of every page in every state, light, dark, narrow and in each language, to be looked at.

Most show a page to its end; some what the first screen shows of it. The e-mails and the pages of the demo follow. All are written to
build/screenshots, with sheets of small ones and an index.html over all of them.
"""

from __future__ import annotations

import sys
import tempfile
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playwright.sync_api import Browser, Page, sync_playwright

from corpid.web.pages.translations import LANGUAGES, PSEUDO
from tests.browser import component_states
from tests.browser.demo_tour import stops
from tests.browser.gallery import Appearance, Beholder, served
from tests.browser.inbox import Inbox, every_email
from tests.browser.stage import FLAGS, HEADLESS_SHELL
from tests.browser.states import STATES
from tests.browser.test_demo import demonstrated, link
from tests.house.source import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable


PLACE: Final = ROOT / "build" / "screenshots"
APPEARANCES: Final = (
    *(Appearance(language=language, width=760) for language in (*LANGUAGES, PSEUDO)),
    Appearance(scheme="dark", width=760),
    Appearance(width=320, height=640),
    Appearance(scheme="dark", width=320, height=640, language=PSEUDO),
    Appearance(width=760, forced_colors="active"),
)
OF_COMPONENTS: Final = (
    *(
        Appearance(language=language, scheme=scheme, width=width)
        for language, scheme, width in product(LANGUAGES, ("light", "dark"), (375, 1280))
    ),
    *(Appearance(width=width, forced_colors="active") for width in (375, 1280)),
)
"""of the gallery, which shows every component (tests/browser/component_states.py)"""
FIRST_SCREENS: Final = (Appearance(width=1366, height=625), Appearance(width=360, height=640))
"""what a laptop and a phone show before anybody scrolls"""
OF_THE_DEMO: Final = (
    Appearance(),
    Appearance(scheme="dark"),
    Appearance(width=320, height=640),
    Appearance(scheme="dark", width=320, height=640),
)
OF_EMAILS: Final = tuple(
    Appearance(language=language, scheme=scheme, width=width, height=320)
    for language, scheme, width in product(LANGUAGES, ("light", "dark"), (375, 900))
)
ON_A_SHEET: Final = 12
SHEET: Final = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body {{ margin: 8px; font: 14px sans-serif; display: flex; flex-wrap: wrap; gap: 8px; background: #777; color: #fff }}
figure {{ margin: 0; width: {width}px }} img {{ width: 100%; max-height: 1600px; object-fit: cover; object-position: top; display: block }} a {{ color: #fff }} h1 {{ width: 100%; margin: 0 }}</style>
{body}</html>"""


def sheet(title: str, paths: list[Path], folder: Path, *, width: int) -> str:
    """A page with these pictures, each below its name."""
    figures = [
        f'<figure>{escape(path.stem)}<a href="{path.relative_to(folder)}"><img src="{path.relative_to(folder)}" alt=""></a></figure>'
        for path in paths
    ]
    return SHEET.format(title=escape(title), width=width, body="\n".join(figures))


def take(page: Page, path: Path, appearance: Appearance, *, whole: bool = True) -> Path:
    """A picture of the first screen, or of the whole page; where it is."""
    page.set_viewport_size({"width": appearance.width, "height": appearance.height})
    if whole:
        # what sticks to the edge of the window stands where it ends when nobody has to scroll
        for _ in range(2):  # once more, since a high window has larger spacing than a low one
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": appearance.width, "height": height})
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)
    return path


def of_the_states(
    beholder: Beholder, appearance: Appearance, folder: str, *, whole: bool = True, states: Iterable[str] = STATES
) -> list[Path]:
    """The pictures of states in one appearance."""
    return [
        take(beholder.look(state, appearance), PLACE / folder / f"{state}.png", appearance, whole=whole)
        for state in states
    ]


def of_the_emails(browser: Browser) -> dict[str, list[Path]]:
    """The pictures of every e-mail, by their folders."""
    inbox = Inbox(browser=browser)
    return {
        f"email-{each.name}": [
            take(inbox.look(name, each), PLACE / f"email-{each.name}" / f"{name}.png", each) for name in every_email()
        ]
        for each in OF_EMAILS
    }


def of_the_demo(browser: Browser) -> dict[str, list[Path]]:
    """The pictures of the pages of the demo, by their folders."""
    paths: dict[str, list[Path]] = {}
    with tempfile.TemporaryDirectory() as data, demonstrated(Path(data)) as printed:
        page = browser.new_page()
        for stop in stops(page, link(printed)):
            for appearance in OF_THE_DEMO:
                folder = f"demo-{appearance.name}"
                page.emulate_media(color_scheme=appearance.scheme)  # type: ignore[arg-type]
                made = take(page, PLACE / folder / f"{stop}.png", appearance)
                paths.setdefault(folder, []).append(made)
        page.close()
    return paths


def on_sheets(browser: Browser, name: str, paths: list[Path]) -> None:
    """The same pictures, a dozen on each."""
    page = browser.new_page(viewport={"width": 1640, "height": 900})
    for first in range(0, len(paths), ON_A_SHEET):
        some = paths[first : first + ON_A_SHEET]
        made = PLACE / "sheets" / f"{name}-{first // ON_A_SHEET + 1}.html"
        made.parent.mkdir(exist_ok=True)
        made.write_text(sheet(name, some, PLACE, width=260).replace('src="', 'src="../'), encoding="utf-8")
        page.goto(made.as_uri())
        page.screenshot(path=made.with_suffix(".png"), full_page=True)
        made.unlink()
    page.close()


def main() -> int:
    """Take them all."""
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=HEADLESS_SHELL, args=FLAGS)
        beholder = Beholder(browser=browser, address=address)
        paths = {each.name: of_the_states(beholder, each, each.name) for each in APPEARANCES}
        for each in OF_COMPONENTS:
            folder = f"components-{each.name}"
            paths[folder] = of_the_states(beholder, each, folder, states=component_states.STATES)
        for each in FIRST_SCREENS:
            folder = f"first-{each.name}"
            paths[folder] = of_the_states(beholder, each, folder, whole=False)
        paths |= of_the_emails(browser)
        paths |= of_the_demo(browser)
        for folder, some in paths.items():
            on_sheets(browser, folder, some)
        browser.close()
    index = [
        f"<h1>{escape(folder)}</h1>"
        + sheet(folder, some, PLACE, width=320).partition("</style>")[2].removesuffix("</html>")
        for folder, some in paths.items()
    ]
    (PLACE / "index.html").write_text(
        SHEET.format(title="Every page of CorpID", width=320, body="\n".join(index)), encoding="utf-8"
    )
    sys.stdout.write(f"{sum(map(len, paths.values()))} pictures: {PLACE.relative_to(ROOT)}/index.html\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
