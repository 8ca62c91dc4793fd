"""`make screenshots`: a picture of every page in every state, light, dark, narrow and in each language, to be looked at.

They are written to build/screenshots, with sheets of small ones and an index.html over all of them.
"""

from __future__ import annotations

import sys
from html import escape
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

from corpid.web.languages import LANGUAGES, PSEUDO
from tests.browser.gallery import Appearance, Beholder, served
from tests.browser.stage import CHROMIUM, FLAGS
from tests.browser.states import STATES
from tests.house.source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

PLACE: Final = ROOT / "build" / "screenshots"
APPEARANCES: Final = (
    *(Appearance(language=language, width=760) for language in (*LANGUAGES, PSEUDO)),
    Appearance(scheme="dark", width=760),
    Appearance(width=320, height=640),
    Appearance(scheme="dark", width=320, height=640, language=PSEUDO),
    Appearance(width=760, forced_colors="active"),
)
ON_A_SHEET: Final = 12
SHEET: Final = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body {{ margin: 8px; font: 14px sans-serif; display: flex; flex-wrap: wrap; gap: 8px; background: #777; color: #fff }}
figure {{ margin: 0; width: {width}px }} img {{ width: 100%; display: block }} a {{ color: #fff }} h1 {{ width: 100%; margin: 0 }}</style>
{body}</html>"""


def sheet(title: str, paths: list[Path], folder: Path, *, width: int) -> str:
    """A page with these pictures, each below its name."""
    figures = [
        f'<figure>{escape(path.stem)}<a href="{path.relative_to(folder)}"><img src="{path.relative_to(folder)}" alt=""></a></figure>'
        for path in paths
    ]
    return SHEET.format(title=escape(title), width=width, body="\n".join(figures))


def taken(beholder: Beholder, appearance: Appearance) -> list[Path]:
    """The pictures of every state in one appearance."""
    folder, paths = PLACE / appearance.name, []
    folder.mkdir(parents=True, exist_ok=True)
    for state in STATES:
        page = beholder.look(state, appearance)
        # what sticks to the edge of the window stands where it ends when nobody has to scroll
        page.set_viewport_size(
            {"width": appearance.width, "height": page.evaluate("document.documentElement.scrollHeight")}
        )
        page.screenshot(path=folder / f"{state}.png")
        page.set_viewport_size({"width": appearance.width, "height": appearance.height})
        paths.append(folder / f"{state}.png")
    return paths


def on_sheets(browser: Browser, appearance: Appearance, paths: list[Path]) -> None:
    """The same pictures, a dozen on each."""
    page = browser.new_page(viewport={"width": 1640, "height": 900})
    for first in range(0, len(paths), ON_A_SHEET):
        some = paths[first : first + ON_A_SHEET]
        made = PLACE / "sheets" / f"{appearance.name}-{first // ON_A_SHEET + 1}.html"
        made.parent.mkdir(exist_ok=True)
        made.write_text(sheet(appearance.name, some, PLACE, width=260).replace('src="', 'src="../'), encoding="utf-8")
        page.goto(made.as_uri())
        page.screenshot(path=made.with_suffix(".png"), full_page=True)
        made.unlink()
    page.close()


def main() -> int:
    """Take them all."""
    index = []
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        beholder = Beholder(browser=browser, address=address)
        for appearance in APPEARANCES:
            paths = taken(beholder, appearance)
            on_sheets(browser, appearance, paths)
            index.append(
                sheet(appearance.name, paths, PLACE, width=320).partition("</style>")[2].removesuffix("</html>")
            )
            index[-1] = f"<h1>{escape(appearance.name)}</h1>" + index[-1]
        browser.close()
    (PLACE / "index.html").write_text(
        SHEET.format(title="Every page of CorpID", width=320, body="\n".join(index)), encoding="utf-8"
    )
    sys.stdout.write(f"{len(APPEARANCES) * len(STATES)} pictures: {PLACE.relative_to(ROOT)}/index.html\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
