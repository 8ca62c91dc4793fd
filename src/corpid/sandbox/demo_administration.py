"""People who administer in the demo: an owner, a sub-administrator, an operator.

One request and one third party's offer wait for the owner.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from corpid.flows.directory.administrators import acting_administrator
from corpid.flows.directory.approvals import submit
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.plan import Change
from corpid.rules.directory.records import Assignment, ChangeRequest

if TYPE_CHECKING:
    from corpid.flows.provider import Provider
    from corpid.sandbox.example_directory import ExampleDirectory

FILE: Final = "the demo's administrators"
OWNER: Final = "marcus"
SUB_ADMINISTRATOR: Final = "siti"
OPERATOR: Final = "nadia"
_ENTITY: Final = "209777001M"
_CLIENT_ENTITY: Final = "209900042K"
_SERVICE: Final = "FOOD-LICENCE"
_COLLEAGUE: Final = "wei.ling"


def content(directory: ExampleDirectory) -> bytes:
    """The directory file with these people, applied after the example.

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
        "administrators": [
            {"user": OWNER, "entity": _ENTITY, "level": "owner"},
            {"user": SUB_ADMINISTRATOR, "entity": _ENTITY, "level": "sub_administrator", "services": [_SERVICE]},
        ],
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
        actor = await acting_administrator(registry, users[SUB_ADMINISTRATOR]["id"], _ENTITY, auth_time=now, now=now)
    except Forbidden:  # somebody has taken the level away in an earlier run
        return
    wanted = Assignment(
        user_id=users[_COLLEAGUE]["id"],
        entity_id=_ENTITY,
        service_id=_SERVICE,
        role="Viewer",
        sub_entity="Market Street",
    )
    change = Change(verb="add", kind="assignment", key=wanted.key, becomes=wanted)
    reason = "Wei Ling looks after the licence of Market Street."
    await submit(registry, actor, [change], reason=reason, now=now, unique=provider.new_id())
