"""The console's pages of organisations, people, services and clients, as their provider shows them (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.operations.audit_seals import SealVerification
from corpid.rules.audit import AuditEvent
from corpid.rules.audit_seals import SealFinding
from corpid.rules.directory.members import Members
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Membership,
    Service,
    ThirdPartyGrant,
)
from corpid.rules.directory.values import RoleDescription
from corpid.rules.jobs import Job
from corpid.rules.limits import DAY
from corpid.rules.oauth.refusals import ClientRefusal
from tests.browser.seeded import Recorder, Visit
from tests.console.scene import REASON, console, in_console
from tests.sign_in.world import World, entity, world

if TYPE_CHECKING:
    from collections.abc import Mapping


_LONG: Final = "Straits Agricultural and Maritime Provisioning Cooperative Society (International) Limited"
_ENTITY: Final = "entities/200312345A"
VISITS: Final[Mapping[str, Visit]] = {
    "console-entities": Visit("entities"),
    "console-entities-none": Visit("entities?search=zebra"),
    "console-entity": Visit(_ENTITY),
    "console-entity-edit": Visit(f"{_ENTITY}/edit"),
    "console-entity-people": Visit(f"{_ENTITY}/people"),
    "console-new-entity": Visit(
        "new-organisation",
        {"entity_id": "has space", "country": "Singapore", "owner_name": "Mei Lin", "owner_email": "mei@harbour"},
    ),
    "console-owner": Visit(f"{_ENTITY}/owner", {"user_name": ""}),
    "console-owner-check": Visit(f"{_ENTITY}/owner", {"way": "member", "user_name": "alice"}),
    "console-people": Visit("people?sort=-name&search=A"),
    "console-person": Visit("people/id-alice"),
    "console-person-link": Visit("people/id-alice/link", {"reason": ""}),
    "console-person-disable": Visit("people/id-alice/disable"),
    "console-service": Visit("services/PERMITS"),
    "console-services": Visit("services"),
    "console-service-edit": Visit("services/PERMITS/edit"),
    "console-service-edit-refused": Visit("services/PERMITS/edit", {"name": "", "reason": REASON}),
    "console-clients": Visit("clients"),
    "console-clients-none": Visit("clients?search=zzz"),
    "console-verify-audit": Visit("verify-audit"),
    "console-jobs": Visit("jobs"),
    "console-job": Visit("jobs/running"),
    "console-job-failed": Visit("jobs/lost"),
    "console-job-verified": Visit("jobs/verified"),
    "console-job-broken": Visit("jobs/broken"),
    "console-confirm": Visit("rotate-key-now", {"reason": ""}),
    "console-audit": Visit("audit?since=2027-01-01"),
    "console-audit-none": Visit("audit?action=nonsense&until=soon"),
    "console-export-audit": Visit(
        "export-audit",
        {"since": "3d", "until": "4d", "entity": "200000001A", "action": "client.update", "reason": REASON},
    ),
    "console-levels": Visit("levels"),
    "console-search": Visit("search", {"search": "a"}),
    "console-search-none": Visit("search", {"search": "zebra"}),
    "console-reference": Visit("search", {"search": "the request is refused (reference 6b49d2000000abcd)"}),
    "console-reference-none": Visit("search", {"search": "6b49d20000000000"}),
    "console-maintenance-switch": Visit("switch-maintenance", {"reason": ""}),
}


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as an operator."""
    async with world(operators_need_passkey=False) as made:
        await _seed(made)
        browser = await in_console(made, "operator")
        for name, visit in visits.items():
            made.clock.pass_(1)
            await recorder.visit(name, visit, browser, console(made, visit.page))


async def _add_jobs(made: World) -> None:
    """One of each state, as other processes left them."""
    now = int(made.clock())
    finding = SealFinding(object="entry", number=48100, problem="changed", text="Entry 48100 was changed.")
    whole = SealVerification(seals=480, entries=48210, unsealed=12, sealed_at=now)
    broken = SealVerification(seals=12, entries=900, unsealed=3, sealed_at=now, found=1, findings=[finding])
    states: Mapping[str, dict[str, Any]] = {
        "running": {"seen_at": now + DAY, "done": 120, "total": 480},
        "lost": {"event": "lose", "ended_at": now},
        "verified": {"event": "finish", "ended_at": now, "result": msgspec.json.encode(whole).decode()},
        "broken": {"event": "finish", "ended_at": now, "result": msgspec.json.encode(broken).decode()},
    }
    for number, (job_id, state) in enumerate(states.items(), 4):
        given = {
            "started_at": now - 60 * number,
            "seen_at": now,
            "actor": "operator:id-weiling",
            "process_id": "p2",
            **state,
        }
        job = Job(job_id=job_id, kind="audit verification", **given)
        await made.provider.registry.jobs.add(job, AuditEvent(actor=job.actor, action="job.start", object=job_id))


async def _seed(made: World) -> None:
    long, banyan = entity("200312345A", _LONG), entity("200000002A", "Banyan Trading", enabled=False)
    await made.write(
        Service(
            service_id="PERMITS",
            name="Harbour permits",
            description="Permits to berth, load and unload.",
            roles=("Approver",),
            role_descriptions=(RoleDescription(name="Approver", description="Approves permits."),),
            third_parties=True,
        ),
    )
    await made.client("harbour-permits", name="Harbour permits")
    await made.client("shop", name="Vereinigte Donaudampfschifffahrtsgesellschaft", enabled=False)
    await made.person("weiling", long, name="Tan Wei Ling")
    await made.person("alice", long, banyan, name="Alice Tan", email="alice@acme.example")
    await made.write(
        Membership(user_id="id-weiling", entity_id=long.entity_id, enabled=False),
        Administrator(user_id="id-weiling", entity_id=long.entity_id, level="sub_administrator", services=("PERMITS",)),
        Assignment(
            user_id="id-alice",
            entity_id=long.entity_id,
            service_id="PERMITS",
            role="Approver",
            sub_entity="Jurong",
            end_date="2027-12-31",
        ),
        ThirdPartyGrant(
            client_entity_id=long.entity_id, entity_id=banyan.entity_id, service_id="PERMITS", state="accepted"
        ),
    )
    await _add_jobs(made)
    for action, thing, more in (
        (
            "client.update",
            "harbour-permits",
            {"client_id": "harbour-permits", "detail": {"reason_given": "the harbour office moved"}},
        ),
        ("user.disable", "id-weiling", {"detail": {"reason_given": REASON}}),
        ("assignment.add", f"id-alice/{long.entity_id}/PERMITS/Approver", {"entity_id": long.entity_id}),
        (
            "sign_in.refuse",
            "",
            {"client_id": "harbour-permits", "outcome": "refused", "request_id": "6b49d2000000abcd"},
        ),
    ):
        event = AuditEvent(actor="user:id-alice", action=action, object=thing, **more)
        members = Members(before={"enabled": True}, after={"enabled": False}) if action == "user.disable" else Members()
        await made.provider.registry.audit.write(event, now=made.clock(), members=members)
    refusal = ClientRefusal(
        client_id="harbour-permits", claimed=True, at=made.clock(), request_id="6b49d2000000abcd", method="POST",
        path="/request", reason="assertion_type", detail="client_assertion_type must be that of private_key_jwt",
    )  # fmt: skip
    await made.provider.registry.client_refusals.add([refusal], kept=20)
    made.provider.counters.refusal("", "client_id_unknown", made.clock(), authenticated=False)
    await made.provider.counters.flush(made.provider.registry)
    made.clock.pass_(60)
    session = await made.browser()
    await session.open(f"{made.base}/account", site="none")
    await made.factors(session, made.people["alice"])
