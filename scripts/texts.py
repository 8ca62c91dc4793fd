"""What people read, collected from code and templates into src/*/locales (`make texts`).

Each package has catalogues of its own, one for each language of the pages. They keep every translation of a text that is still said, and get an
empty one for each that is new.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from corpid.web.pages.translations import ENGLISH, LANGUAGES, has_all_forms

if TYPE_CHECKING:
    from collections.abc import Iterable

_SOURCES: Final = Path(__file__).parents[1] / "src"
PACKAGES: Final = ("corpid", "corpid_dev")

_METHODS: Final = [("demo/**", "ignore"), ("**.py", "python"), ("web/templates/**.html", "jinja2")]
_OPTIONS: Final = {"web/templates/**.html": {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}}
_KEYWORDS: Final = {"phrase": None, "counted": (2, 3), "_": None, "gettext": None, "ngettext": (1, 2)}
_TRANSIENT: Final = tuple(
    f'"{name}'.encode() for name in ("Project", "POT-C", "PO-R", "Last-T", "Language-T", "Generated", "Report")
)
_HEADER: Final = (
    "# CorpID's pages in another language. English is the original; `make texts` keeps this file in step.\n#"
)


def locales(package: str) -> Path:
    """The folder of a package's catalogues."""
    return _SOURCES / package / "locales"


def template(package: str) -> Path:
    """The file with a package's texts."""
    return locales(package) / f"{package}.pot"


def collected(package: str) -> Catalog:
    """Every text that is marked in a package, with the files that say it."""
    catalog = Catalog(project="CorpID", header_comment=_HEADER, fuzzy=False)
    found = extract_from_dir(_SOURCES / package, _METHODS, _OPTIONS, keywords=_KEYWORDS)
    for path, _, message, _, context in sorted(found, key=lambda each: each[0]):
        catalog.add(message, locations=[(path, 0)], context=context)
    return catalog


def rendered(catalog: Catalog) -> bytes:
    """The catalogue as a file, without what would change each time it is written."""
    whole = BytesIO()
    write_po(whole, catalog, width=110, include_lineno=False, ignore_obsolete=True)
    return b"".join(line for line in whole.getvalue().splitlines(True) if not line.startswith(_TRANSIENT))


def kept(paths: Iterable[Path], template: Catalog) -> None:
    """Bring catalogues in step with what is said now; make those that are not there."""
    for path in paths:
        locale = path.stem.replace("-", "_")
        catalog = Catalog(locale=locale, fuzzy=False)
        if path.exists():
            with path.open("rb") as file:
                catalog = read_po(file, locale=locale)
        before = {message.id: message.string for message in catalog if message.id}
        catalog.update(template, no_fuzzy_matching=True)
        catalog.header_comment = _HEADER
        path.write_bytes(rendered(catalog))
        for said, translation in before.items():
            if said not in catalog:
                print(f"{path.name}: no longer said: {said!r}, which was {translation!r}")
        missing = sum(1 for message in catalog if message.id and not has_all_forms(message))
        print(f"{path.name}: {len(catalog)} texts, {missing} to translate")


if __name__ == "__main__":
    for each in PACKAGES:
        everything = collected(each)
        kept([locales(each) / f"{language.tag}.po" for language in LANGUAGES if language is not ENGLISH], everything)
        template(each).write_bytes(rendered(everything))
