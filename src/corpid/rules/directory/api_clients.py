"""Members of an API client, read as in a directory file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.directory.nodes import Items, Node, Scalar
from corpid.rules.directory.sections import CLIENT_ID, client_key
from corpid.rules.directory.values import InvalidValue
from corpid.rules.oauth.api_client import API_CLIENT_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEYS: Final = {each.name: client_key(each) for each in API_CLIENT_MEMBERS.values()}


class MembersRefused(Exception):
    """Members that no client of the API can have.

    `reasons` has a sentence for each.
    """

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


def read(client_id: str, members: Mapping[str, object]) -> dict[str, object]:
    """The members of a record, from texts and lists of texts.

    None stands for a member that is not given. Raises MembersRefused with every fault. Source: D59, docs/directory.md
    """
    found: dict[str, object] = {}
    reasons = []
    try:
        CLIENT_ID(_node(client_id))
    except InvalidValue as error:
        reasons.append(error.reason)
    for name, given in members.items():
        key = _KEYS.get(name)
        if given is None:
            continue
        if key is None:
            reasons.append(
                f"{name}: a client of the API does not have this; its members are {', '.join(_KEYS)} and its entity"
            )
            continue
        try:
            found[name] = key.value(_node(given))
        except InvalidValue as error:
            reasons.append(f"{name}: {error.reason}")
    if reasons:
        raise MembersRefused(reasons)
    return found


def _node(given: object) -> Node:
    if isinstance(given, list | tuple):
        return Items(0, tuple(map(_node, given)))
    return Scalar(0, str(given), plain=False)
