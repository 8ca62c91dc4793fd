"""Details of a member as an entity writes them (D61)."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import asdict

from corpid.rules.characters import printable
from corpid.rules.directory.names import InvisibleCharacter, display_name
from corpid.rules.directory.values import address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.texts import Phrase

_CHARACTERS: Final = 200


class MemberDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Details that an entity writes about a member; each may be empty."""

    user_name: str = ""
    external_id: str = ""
    name: str = ""
    given_name: str = ""
    family_name: str = ""
    email: str = ""


class InvalidDetails(Exception):
    """Details that cannot be stored.

    `faults` are pairs of member and sentence; `remedies` say what to do about some of them.
    """

    def __init__(self, faults: tuple[tuple[str, str], ...], remedies: Mapping[str, Phrase] | None = None) -> None:
        self.faults = faults
        self.remedies = remedies or {}
        super().__init__("; ".join(f"{member}: {sentence}" for member, sentence in faults))


def check_details(details: MemberDetails, *, named: bool = True) -> MemberDetails:
    """Return details in their stored form.

    A user name that is an address is also the e-mail address if none is given; without a user name the address is used
    as one. If it need not be `named`, both may be empty: the person's own user name is shown. Raises InvalidDetails
    with every fault. Source: D51, D60, D61
    """
    faults: list[tuple[str, str]] = []
    remedies: dict[str, Phrase] = {}
    read: dict[str, str] = {}
    for member, text in asdict(details).items():
        try:
            read[member] = _READERS[member](_short(text)) if text else ""
        except ValueError as error:
            faults.append((member, str(error)))
            if isinstance(error, InvisibleCharacter):
                remedies[member] = error.remedy
    if named and not faults and not (read["user_name"] or read["email"]):
        faults.append(("user_name", "a name for this member is required, such as an e-mail address"))
    if faults:
        raise InvalidDetails(tuple(faults), remedies)
    read["email"] = read["email"] or _address_or_empty(read["user_name"])
    read["user_name"] = read["user_name"] or (read["email"] if named else "")
    return MemberDetails(**read)


def _short(text: str) -> str:
    if len(text) > _CHARACTERS:
        raise ValueError(f"at most {_CHARACTERS} characters are allowed here")
    return text


def _identifier(text: str) -> str:
    """A text that another system chose, which is compared exactly."""
    if printable(text) != text or any(unicodedata.category(each) == "Cs" for each in text):
        raise ValueError("invisible characters are not allowed here")
    return text


def _address_or_empty(text: str) -> str:
    try:
        return address(text)
    except ValueError:
        return ""


_READERS: Final[Mapping[str, Callable[[str], str]]] = {
    "user_name": lambda text: display_name(text, joiners=False),
    "external_id": _identifier,
    "name": display_name,
    "given_name": display_name,
    "family_name": display_name,
    "email": address,
}
