"""People who administer in the demo.

Every organisation has an owner, and one has three administrators: there one request and one third party's offer wait.
The operator has the console.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.records import Assignment, Change, ChangeRequest

if TYPE_CHECKING:
    from corpid.flows.request_context import Provider
    from corpid_dev.demo.example_directory import ExampleDirectory

FILE: Final = "the demo's administrators"
OWNER: Final = "marcus"
ADMINISTRATOR: Final = "nadia"
SUB_ADMINISTRATOR: Final = "siti"
OPERATOR: Final = "nadia"
_ENTITY: Final = "209777001M"
_CLIENT_ENTITY: Final = "209900042K"
_SERVICE: Final = "FOOD-LICENCE"
_COLLEAGUE: Final = "wei.ling"
_OTHER_OWNERS: Final = {"209733310R": "devi", "209600099Z": "oscar"}
"""owners who are not the first person of their entity"""


def duties(directory: ExampleDirectory) -> list[tuple[str, str, str]]:
    """User name, organisation and level of each administrator. Source: D53"""
    names = {entity_id: str(each["name"]) for entity_id, each in directory.sections["entities"].items()}
    ours, owners = names[_ENTITY], _owners(directory)
    others = sorted(
        (user, names[entity_id]) for entity_id, user in owners.items() if entity_id != _ENTITY and user != ADMINISTRATOR
    )
    return [
        (OWNER, ours, "owner; a request and an offer wait"),
        (ADMINISTRATOR, ours, f"administrator; approves what {OWNER} requests"),
        (SUB_ADMINISTRATOR, ours, "sub-administrator; made the request"),
        *((user, name, "owner") for user, name in others),
        (ADMINISTRATOR, "the pharmacies", "owner"),
    ]


def _owners(directory: ExampleDirectory) -> dict[str, str]:
    """The owner of each entity, usually its first person."""
    found = {_ENTITY: OWNER, **_OTHER_OWNERS}
    for user_name, user in directory.sections["users"].items():
        for each in user.get("memberships", ()):
            if isinstance(each, str) and user.get("enabled") != "false":  # a mapping says that it is disabled
                found.setdefault(each, user_name)
    return found


def administered(directory: ExampleDirectory) -> ExampleDirectory:
    """The directory with these administrators."""
    administrators = [
        *({"user": user, "entity": each, "level": "owner"} for each, user in _owners(directory).items()),
        {"user": ADMINISTRATOR, "entity": _ENTITY, "level": "administrator"},
        {"user": SUB_ADMINISTRATOR, "entity": _ENTITY, "level": "sub_administrator", "services": [_SERVICE]},
    ]
    return replace(directory, sections={**directory.sections, "administrators": administrators})


def content(directory: ExampleDirectory) -> bytes:
    """The file that appoints them, applied after the example's.

    `directory` is the one with administrators.

    Source: D53, D55, D56
    """
    offer = {
        "client_entity": _CLIENT_ENTITY,
        "third_party": _ENTITY,
        "service": "CUSTOMS-DECLARE",
        "role": "Preparer",
        "state": "offered",
    }
    document = {
        "entities": {_ENTITY: {**directory.sections["entities"][_ENTITY], "approvals": "roles"}},
        "administrators": directory.sections["administrators"],
        "operators": [{"user": OPERATOR, "level": "operator"}],
        "third_party": {"grants": [offer]},
    }
    return json.dumps(document).encode()


async def request_once(provider: Provider, directory: ExampleDirectory) -> None:
    """Let the sub-administrator request a role, unless there was one.

    Raises Refused, Conflict, StoreUnavailable. Source: D55
    """
    registry, now = provider.registry, provider.clock()
    if await registry.directory.page(ChangeRequest, {"entity_id": _ENTITY}, after=("",), limit=1):
        return
    users = directory.sections["users"]
    try:
        actor = await load_administrator(registry, users[SUB_ADMINISTRATOR]["id"], _ENTITY, auth_time=now, now=now)
    except Forbidden:  # somebody has taken the level away in an earlier run
        return
    wanted = Assignment(
        user_id=users[_COLLEAGUE]["id"],
        entity_id=_ENTITY,
        service_id=_SERVICE,
        role="Viewer",
        sub_entity="Market Street",
    )
    change = Change(None, wanted)
    reason = "Wei Ling looks after the licence of Market Street."
    await write_changes(registry, actor, [change], asking=RequestDetails(reason, now, provider.new_id()))
