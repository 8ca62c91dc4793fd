"""Details of a member as an entity writes them (D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.directory.nodes import Scalar
from corpid.rules.directory.records import MemberDetails
from corpid.rules.directory.values import InvalidValue, address
from corpid.rules.fields import fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.texts import Phrase


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
    for member, field in fields_of(MemberDetails).items():
        try:
            read[member] = str(field.value(Scalar(0, getattr(details, member), plain=False)))
        except InvalidValue as error:
            faults.append((member, error.reason))
            if error.remedy is not None:
                remedies[member] = error.remedy
    if named and not faults and not (read["user_name"] or read["email"]):
        faults.append(("user_name", "a name for this member is required, such as an e-mail address"))
    if faults:
        raise InvalidDetails(tuple(faults), remedies)
    read["email"] = read["email"] or _address_or_empty(read["user_name"])
    read["user_name"] = read["user_name"] or (read["email"] if named else "")
    return MemberDetails(**read)


def _address_or_empty(text: str) -> str:
    try:
        return address(text)
    except ValueError:
        return ""
