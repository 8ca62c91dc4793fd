"""The documentation as a site (`make docs`): build/site/VERSION, with search, and with each page as Markdown.

Files outside docs/ that a page links to are copied into the site, so that it needs nothing else. `versions.json` lists the versions in
build/site, for the menu of versions on every page.
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
_PRIVATE: Final = shutil.ignore_patterns("keys.json*", "node_modules", ".venv")
"""what examples make when they run"""
_OUTSIDE: Final = re.compile(r"\]\(((?:\.\./)+)((?:deploy|examples|src/corpid_dev/schemas)/[^)#\s]+)\)")


def configuration() -> dict[str, Any]:
    """The content of mkdocs.yml, without the Python objects for Markdown."""

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


def stage() -> None:
    """Copy docs/ to build/docs, with the files that its pages link to outside."""
    shutil.rmtree(_STAGED, ignore_errors=True)
    shutil.copytree(DOCS, _STAGED)
    shutil.copyfile(_MARK, _STAGED / "assets" / "mark.svg")
    for page in _STAGED.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        to_top = "../" * (len(page.relative_to(_STAGED).parts) - 1)
        page.write_text(_OUTSIDE.sub(partial(_inside_link, to_top), text), encoding="utf-8")


def _inside_link(to_top: str, link: re.Match[str]) -> str:
    return f"]({to_top}{_attach(link[2])})"


def _attach(path: str) -> str:
    """Copy a file, or a folder as an archive, into build/docs; return its path there."""
    found, copy = ROOT / path, _STAGED / "files" / path
    copy.parent.mkdir(parents=True, exist_ok=True)
    if found.is_dir():
        shutil.copytree(found, copy, ignore=_PRIVATE, dirs_exist_ok=True)
        shutil.make_archive(str(copy), "zip", copy)
        shutil.rmtree(copy)
        return f"files/{path}.zip"
    shutil.copyfile(found, copy)
    return f"files/{path}"


def address(page: str) -> str:
    """The address of a page, relative to that of the site."""
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
    """The text of `llms.txt`: every page, for programs that read Markdown."""
    site = configuration()
    parts = [f"# {site['site_name']}\n\n> {site['site_description']}\n"]
    for chapter, pages in chapters().items():
        parts.append(f"\n## {chapter}\n\n")
        for page in pages:
            title, sentence = title_and_sentence((DOCS / page).read_text(encoding="utf-8"))
            parts.append(f"- [{title}]({address(page)}index.md): {sentence}\n")
    return "".join(parts)


def add_markdown(built: Path) -> None:
    """Add the Markdown of each page, and `llms.txt`."""
    for page in _STAGED.rglob("*.md"):
        copy = built / address(page.relative_to(_STAGED).as_posix()) / "index.md"
        shutil.copyfile(page, copy)
    (built / "llms.txt").write_text(summary(), encoding="utf-8")


def publish(built: Path, version: str) -> None:
    """Move the pages to the folder of their version, and list the versions."""
    folder = SITE / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    built.rename(folder)
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
    """Build the site of this version; return 1 if a page or link is wrong."""
    stage()
    shutil.rmtree(_BUILT, ignore_errors=True)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    if subprocess.run([*command, "--config-file", str(_CONFIGURATION)], cwd=ROOT, check=False).returncode:  # noqa: S603
        return 1
    add_markdown(_BUILT)
    publish(_BUILT, __version__)
    sys.stdout.write(f"{(SITE / __version__).relative_to(ROOT)}/index.html\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
