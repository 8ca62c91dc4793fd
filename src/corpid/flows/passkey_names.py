"""What a passkey is called: by the device that it was made on, or as its owner wants (D46, D51)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.directory import names
from corpid.flows.sign_in import Rejected
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider

CHARACTERS: Final = 60


def given(provider: Provider, caller: Caller) -> str:
    """The name of a passkey that is new: the browser that made it and the day, e.g. `Firefox on Linux, 2027-01-15`.

    A browser that names no device leaves the provider's name, which is in no language either. Source: D51
    """
    day = provider.policy.today(caller.now)
    where = caller.device or provider.policy.name
    return f"{where[: CHARACTERS - len(day) - 2]}, {day}"


def chosen(typed: str) -> str:
    """The name that a person has typed, in its one form. Raises Rejected for one that cannot be read, or is too long (D51)."""
    refused = Rejected(phrase("Type a name of at most {characters} characters.", characters=CHARACTERS))
    try:
        name = names.display_name(typed)
    except ValueError:
        raise refused from None
    if len(name) > CHARACTERS:
        raise refused
    return name
