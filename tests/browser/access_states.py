"""Pages on people's access, and on the reader's own, in the states that look different (D53, D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpid.flows.directory import approvals
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.records import Administrator, Assignment, Change, Membership
from corpid.rules.directory.values import Parameter
from corpid.web.pages import role_fields
from tests.account.scene import account, at_account
from tests.account.test_own_access import YEAR, asked, managed, nadia
from tests.browser.seeded import Recorder, Visit
from tests.manage.access_scene import HARBOUR as PERMITS
from tests.manage.access_scene import checker, demand, employed, identifier, requests, staffed
from tests.manage.scene import ACME, in_portal, portal
from tests.sign_in.world import entity, world

if TYPE_CHECKING:
    from collections.abc import Mapping


MINE: Final[Mapping[str, Visit]] = {
    "account-access-ask-entity": Visit("access/ask"),
    "account-access-ask-service": Visit(f"access/ask?entity={ACME}"),
    "account-access-ask": Visit(
        f"access/ask?entity={ACME}&service=HARBOUR", {"role": "Checker", "start": "today", "end": "date", YEAR: "soon"}
    ),
    "account-access": Visit(
        f"access/ask?entity={ACME}&service=HARBOUR",
        {
            "role": "Checker",
            "start": "today",
            "end": "year-end",
            YEAR: "2027",
            "reason": "I check permits from December on",
        },
    ),
    "account-access-ask-nobody": Visit(f"access/ask?entity={ACME}&service=HARBOUR"),
    "account-access-many": Visit("access"),
    "account-access-none": Visit("access"),
}
"""The reader's own access; the last ones with many organisations, and with none."""

_BERTH: Final = role_fields.value_field(PERMITS, "Berth")
_GIVEN: Final = "access/new?person=m-marcus"
_COMPLETE: Final = f"{_GIVEN}&access=NOTICES&start=today&end=none&check=all"
_ROLE: Final = checker(sub_entity="Jurong", end_date="2027-12-31")
_COLUMNS: Final = "user_name\tservice\trole"
VISITS: Final[Mapping[str, Visit]] = {
    "portal-access-new": Visit("access/new"),
    "portal-access-new-wrong": Visit("access/new", {"find": "zebra"}, of="check"),
    "portal-access-several": Visit(
        "access/new", {"find": "mar", "access": "HARBOUR/Approver", "end": "none"}, of="check"
    ),
    "portal-access-service": Visit(_GIVEN),
    "portal-access-role-wrong": Visit(_GIVEN, {"access": "HARBOUR/Approver", "end": "date", _BERTH: "12"}, of="check"),
    "portal-access-confirm": Visit(_COMPLETE),
    "portal-access-change": Visit(f"access/change/{identifier(_ROLE)}"),
    "portal-access-change-confirm": Visit(f"access/change/{identifier(_ROLE)}", {"role": "Approver"}, of="check"),
    "portal-access-remove": Visit(f"access/remove/{identifier(_ROLE)}"),
    "portal-access-copy-person": Visit("access/copy?person=m-nadia"),
    "portal-access-copy-nobody": Visit("access/copy?person=m-nadia&find=zz"),
    "portal-access-copy": Visit("access/copy?person=m-nadia&from=m-marcus"),
    "portal-access-copy-nothing": Visit("access/copy?person=m-marcus&from=m-nadia"),
    "portal-access": Visit("access"),
    "portal-access-ending": Visit("access?ends=dated&service=HARBOUR"),
    "portal-access-none": Visit("access?q=zebra"),
    "portal-access-roles": Visit("access/roles"),
    "portal-access-end": Visit("access", {f"select-{identifier(_ROLE)}": "yes"}),
    "portal-access-end-none": Visit("access/end"),
    "portal-access-import": Visit("access/import"),
    "portal-access-import-problems": Visit(
        "access/import", {"table": f"{_COLUMNS}\nmarcus\tHARBOUR\tBoss\nnadia\tHARBOUR\tChecker", "": "Continue"}
    ),
    "portal-access-import-preview": Visit(
        "access/import", {"table": f"{_COLUMNS}\nmarcus\tNOTICES\t\nnadia\tNOTICES\t", "": "Continue"}
    ),
    "portal-access-refused": Visit("access/new?find=alice"),
    "portal-access-approval": Visit(_COMPLETE),
    "portal-access-end-approval": Visit("access", {f"select-{identifier(_ROLE)}": "yes"}),
}
"""Pages on the access of Acme's people, as Alice sees them; the last ones once changes need approval."""


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as an owner."""
    async with world() as made:
        await staffed(made)
        await employed(made, "magdalena", "Maria Magdalena van der Bergh-Oosterhuizen", invited=True)
        await employed(made, "karim", "Abdul Karim bin Abdullah")
        await made.write(
            _ROLE,
            checker(role="Approver", parameters=(Parameter(name="Permit Year", value="2031"),)),
            Administrator(user_id="id-karim", entity_id=ACME, level="owner"),
        )
        browser = await in_portal(made)
        for name, visit in visits.items():
            made.clock.pass_(1)
            if name == "portal-access-refused":
                await demand(made, "roles")
            await recorder.visit(name, visit, browser, portal(made, visit.page))


async def walk_own(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as somebody with roles, to whom a request was declined."""
    async with world() as made:
        await managed(made)
        ended = checker("alice", role="Approver", end_date="2025-12-31")
        mine = Assignment(user_id="id-alice", entity_id=ACME, service_id="NOTICES", end_date="2099-12-31")
        given = AuditEvent(actor="user:id-nadia", action=AuditAction.ASSIGNMENT_ADD, object="x", entity_id=ACME)
        await made.provider.registry.directory.write([Change(None, mine, given)])
        await made.write(ended)
        browser = await asked(made)
        [request] = await requests(made)
        await approvals.decline_request(
            made.provider.registry,
            request.request_id,
            actor=await nadia(made),
            reason="Nadia does this",
            now=made.clock(),
        )
        nobody = Administrator(user_id="id-nadia", entity_id=ACME, level="sub_administrator", services=("NOTICES",))
        many = [entity(f"20000001{number}A", f"Saltwater Foods {number} Pte. Ltd.") for number in range(5)]
        before: Mapping[str, list[Any]] = {
            "account-access-ask-nobody": [nobody],
            "account-access-many": [
                *many, *(Membership(user_id="id-alice", entity_id=each.entity_id, enabled=each is not many[0]) for each in many),
            ],
        }  # fmt: skip
        for name, visit in visits.items():
            made.clock.pass_(1)
            await made.write(*before.get(name, ()))
            if name == "account-access-none":
                await made.person("bob")
                browser = await at_account(made, who="bob")
            await recorder.visit(name, visit, browser, account(made, visit.page))
