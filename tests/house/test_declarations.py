"""What is declared once, with the documents that are made from it."""

from __future__ import annotations

from scripts import tables


def test_the_documents_are_as_the_declarations_have_them() -> None:
    """`make tables` writes them."""
    stale = [
        path.name
        for path, made in tables.PAGES.items()
        if tables.written(path.read_text(encoding="utf-8"), made()) != path.read_text(encoding="utf-8")
    ]
    assert not stale, f"{stale}: run `make tables`"
