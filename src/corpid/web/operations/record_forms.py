"""Forms that change a stored record: version, conflict (D54)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
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
