"""Forms that change a stored record: version, conflict (D54)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from corpid.texts import phrase
from corpid.web.operations.page_context import frame
from corpid.web.pages.layout import Link
from corpid.web.pages.views import Problem
from corpid.web.sites import Instead

if TYPE_CHECKING:
    from corpid.texts import Phrase
    from corpid.web.operations.page_context import ConsoleContext


def version_of(record: msgspec.Struct) -> str:
    """The version of a record, for the field `step` of its form."""
    return sha256(msgspec.json.encode(record)).hexdigest()


def step_of(at: ConsoleContext, record: msgspec.Struct) -> str:
    """The version in the sent form, otherwise that of the record."""
    return at.form.get("step", version_of(record))


def is_current(at: ConsoleContext, record: msgspec.Struct) -> bool:
    """Return whether a record is still as the sent form showed it."""
    return at.form.get("step", "") == version_of(record)


def changed_meanwhile(at: ConsoleContext, heading: Phrase, *, section: str, back: str) -> Instead:
    """The page instead of a change that somebody else's came before.

    `back` is the address of the record's page.
    """
    return Instead(
        Problem(
            frame=frame(at, section=section),
            heading=heading,
            paragraphs=(phrase("Nothing of your change was saved. Open the page again and repeat it."),),
            back=Link(url=back, text=phrase("Open it again")),
        ),
        status=409,
    )
