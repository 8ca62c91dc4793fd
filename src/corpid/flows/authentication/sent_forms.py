"""Forms with a password or a code, as they were sent (D73).

The same bytes once more are no further attempt. An accepted form costs nothing for this: only after a rejection is it
noted which bytes it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.flows import stored_forms
from corpid.flows.authentication import throttle

if TYPE_CHECKING:
    from corpid.flows.authentication.throttle import Attempt
    from corpid.flows.request_context import RequestContext


class Repeated(Exception):
    """A form whose bytes were rejected a short time ago.

    Nothing is tried, and nothing counted.
    """


@dataclass(slots=True, kw_only=True)
class SentForm:
    """The bytes of a form, and what was counted for them."""

    place: tuple[str, ...]
    """whose form it is, and of which page (`stored_forms`)"""
    digest: bytes
    """SHA-256 of the form"""
    attempt: Attempt | None = None
    first: bool | None = None
    """whether its rejection is the first of these bytes; None: not known yet"""


async def refuse_repeated(context: RequestContext, form: SentForm | None) -> None:
    """Raise Repeated for a form that was rejected before.

    Its attempt is given back. This costs a statement, so a form whose attempt is the first in its window of time is not
    looked up. Raises StoreUnavailable. Source: D73
    """
    if form is None or (form.attempt is not None and not form.attempt.earlier):
        return
    if not await stored_forms.was_rejected(context, form.place, form.digest):
        return
    if form.attempt is not None:
        await throttle.give_back(context, form.attempt)
    raise Repeated


async def counts(context: RequestContext, form: SentForm | None) -> bool:
    """Return whether a rejected form counts.

    The first of those with the same bytes does, however often it is asked. The attempt of a later one is given back.
    Raises StoreUnavailable. Source: D73
    """
    if form is None:
        return True
    if form.first is None:
        form.first = await stored_forms.is_first_rejection(context, form.place, form.digest)
        # Alone in its window of time, a repeated one stays counted: otherwise any number would cost nothing.
        if not form.first and form.attempt is not None and form.attempt.earlier:
            await throttle.give_back(context, form.attempt)
    return form.first
