"""The documentation as a site (`make docs`): build/site/VERSION, with search, and with each page as Markdown.

What a page links to outside docs/ is put next to it, so that the site stands alone. `versions.json` lists the versions that lie in build/site,
from which the pages offer a choice.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from corpid import __version__

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
SITE: Final = ROOT / "build" / "site"
_STAGED: Final = ROOT / "build" / "docs"
_BUILT: Final = ROOT / "build" / "pages"
_CONFIGURATION: Final = ROOT / "mkdocs.yml"
_MARK: Final = ROOT / "src" / "corpid" / "web" / "static" / "mark.svg"
_OUTSIDE: Final = re.compile(r"\]\(((?:\.\./)+)((?:deploy|examples)/[^)#\s]+)\)")


def configuration() -> dict[str, Any]:
    """What mkdocs.yml says, without the objects that only Markdown needs."""

    class Plain(yaml.SafeLoader):
        pass

    Plain.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    found: dict[str, Any] = yaml.load(_CONFIGURATION.read_text(encoding="utf-8"), Plain)  # noqa: S506
    return found


def chapters() -> dict[str, list[str]]:
    """The pages of each part of the site, as paths below docs/."""
    return {
        title: [content] if isinstance(content, str) else content
        for each in configuration()["nav"]
        for title, content in each.items()
    }


def staged() -> None:
    """Put docs/ into build/docs, with what its pages link to outside."""
    shutil.rmtree(_STAGED, ignore_errors=True)
    shutil.copytree(DOCS, _STAGED)
    shutil.copyfile(_MARK, _STAGED / "assets" / "mark.svg")
    for page in _STAGED.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        to_top = "../" * (len(page.relative_to(_STAGED).parts) - 1)
        page.write_text(_OUTSIDE.sub(partial(_inside, to_top), text), encoding="utf-8")


def _inside(to_top: str, link: re.Match[str]) -> str:
    return f"]({to_top}{_attached(link[2])})"


def _attached(path: str) -> str:
    """A file of the project, or a folder as an archive, below build/docs; its path there."""
    found, copy = ROOT / path, _STAGED / "files" / path
    copy.parent.mkdir(parents=True, exist_ok=True)
    if found.is_dir():
        shutil.make_archive(str(copy), "zip", found)
        return f"files/{path}.zip"
    shutil.copyfile(found, copy)
    return f"files/{path}"


def address(page: str) -> str:
    """Of a page, below the site's."""
    path = Path(page)
    folder = path.parent if path.stem in ("index", "README") else path.with_suffix("")
    return "" if folder == Path() else f"{folder.as_posix()}/"


def title_and_sentence(text: str) -> tuple[str, str]:
    """A page's heading, and the first sentence below it."""
    heading, _, rest = text.removeprefix("# ").partition("\n")
    paragraph = next(each for each in rest.split("\n\n") if each.strip() and each.lstrip()[0] not in "#<|!`")
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    return heading.strip(), re.split(r"(?<=[.:])\s", words)[0].rstrip(":").rstrip(".") + "."


def summary() -> str:
    """`llms.txt`: what the site holds, for programs that read it as Markdown."""
    said = configuration()
    parts = [f"# {said['site_name']}\n\n> {said['site_description']}\n"]
    for chapter, pages in chapters().items():
        parts.append(f"\n## {chapter}\n\n")
        for page in pages:
            title, sentence = title_and_sentence((DOCS / page).read_text(encoding="utf-8"))
            parts.append(f"- [{title}]({address(page)}index.md): {sentence}\n")
    return "".join(parts)


def finished(built: Path) -> None:
    """Add the Markdown of each page, and `llms.txt`."""
    for page in _STAGED.rglob("*.md"):
        copy = built / address(page.relative_to(_STAGED).as_posix()) / "index.md"
        shutil.copyfile(page, copy)
    (built / "llms.txt").write_text(summary(), encoding="utf-8")


def published(built: Path, version: str) -> None:
    """Move the pages to their version's folder, and tell the others that they are there."""
    place = SITE / version
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    built.rename(place)
    versions = sorted((each.name for each in SITE.iterdir() if each.is_dir()), key=_by_number, reverse=True)
    listed = [{"version": each, "title": each, "aliases": ["latest"] * (each == versions[0])} for each in versions]
    (SITE / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (SITE / "index.html").write_text(
        f'<!DOCTYPE html><html lang="en"><title>CorpID</title><meta http-equiv="refresh" content="0; url={versions[0]}/">'
        f'<a href="{versions[0]}/">CorpID {versions[0]}</a></html>\n',
        encoding="utf-8",
    )


def _by_number(version: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", version)]


def main() -> int:
    """Build the site of this version; 1 if a page, a link or an anchor is wrong."""
    staged()
    shutil.rmtree(_BUILT, ignore_errors=True)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    if subprocess.run([*command, "--config-file", str(_CONFIGURATION)], cwd=ROOT, check=False).returncode:  # noqa: S603
        return 1
    finished(_BUILT)
    published(_BUILT, __version__)
    sys.stdout.write(f"{(SITE / __version__).relative_to(ROOT)}/index.html\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
