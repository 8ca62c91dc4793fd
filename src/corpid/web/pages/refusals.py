"""Reasons of refusals, as pages say them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.changes import Conflict, LastOwnerRemoved, NameTaken
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEANWHILE: Final = phrase("this was changed at the same moment: look at it and try again")
_CONFLICTS: Final[Mapping[type[Conflict], Phrase]] = {
    NameTaken: phrase("another person has this user name"),
    LastOwnerRemoved: phrase("the last owner or the last operator would go"),
}


def reason_of(refused: Exception) -> str:
    """The reason of a refusal, as a page can say it.

    What the registry's rules say about a record is no phrase, and stays in English.
    """
    if isinstance(refused, Forbidden):
        return refused.reason
    if isinstance(refused, Conflict):
        return _CONFLICTS.get(type(refused), _MEANWHILE)
    [first, *rest] = refused.args or ("",)
    if isinstance(first, Phrase) and not rest:
        return first
    return " ".join(str(each).strip() for each in refused.args).rstrip(".")


def refusal_of(error: Exception) -> Phrase:
    """A refusal of a flow in a sentence. Source: D50"""
    if isinstance(error, Forbidden):
        return phrase("You cannot do this: {reason}.", reason=error.reason)
    return phrase("This cannot be done: {reason}.", reason=reason_of(error))
