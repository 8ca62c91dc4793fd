"""The overview of the deployment as an operation of the admin API (D53, D59).

Its schema is that of the flow's records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.operations.overview import (
    CountOfClient,
    CountOfRefusals,
    EngineStates,
    Overview,
    ProcessSummary,
    SigningKeyDates,
    Traffic,
    overview,
)
from corpid.rules.diagnostics import Finding
from corpid.rules.hourly_counts import Point
from corpid.web.api.calls import Answer, plain
from corpid.web.api.operation import Operation

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.web.api.calls import Call


async def read_overview(call: Call) -> Response:
    """The overview, with the numbers of the last 7 and 90 days."""
    found = await overview(call.provider, call.actor, now=call.context.now, rules=call.web.client_rules)
    return plain(Answer(body=msgspec.to_builtins(found)))


OPERATION: Final = Operation(
    name="read_overview",
    method="GET",
    path="/overview",
    tag="overview",
    summary="Read the overview of the deployment",
    description="Completed sign-ins and refusals of the last 7 days by hour and of the last 90 days by day, by client "
    "and by reason; dates of signing keys, clients whose generation or exception ends, the serving processes, and what `corpid doctor` "
    "would find. Needs the scope `clients.read`, too.",
    scope="operations",
    run=read_overview,
    answer="Overview",
    bound=False,
    in_maintenance=True,
)

_NOW: Final = 1_800_000_000
_TRAFFIC: Final = Traffic(
    period="7 days",
    points=(Point(begins_at=_NOW, sign_ins=120, refusals=2),),
    clients=(CountOfClient(client_id="books", name="Books", sign_ins=120, refusals=2),),
    reasons=(CountOfRefusals(reason="assertion_audience", count=2),),
)
_EXAMPLE: Final = Overview(
    at=_NOW,
    maintenance=False,
    week=_TRAFFIC,
    quarter=msgspec.structs.replace(_TRAFFIC, period="90 days"),
    keys=(
        SigningKeyDates(
            kid="Qk3fJz0sV6o1l2b8mN4tYw9xRc5aHd7uEg", state="in use", signs_from=_NOW - 86400, retired_at=None
        ),
    ),
    key_dates=(),
    ending=(),
    engines=EngineStates(
        version="0.1.0",
        host="node1",
        started_at=_NOW - 3600,
        workers=2,
        database="PostgreSQL",
        transient="Valkey",
        sends_mail=True,
        not_ready="",
    ),
    processes=(
        ProcessSummary(
            host="node1",
            number=812,
            address="0.0.0.0:8000",
            version="0.1.0",
            started_at=_NOW - 3600,
            seen_at=_NOW - 20,
            live=True,
            answers=True,
            settings={
                "base_url": "https://login.example.org",
                "key_encryption_key": "Zk1c0pQ4",
            },
            differs_in=(),
        ),
    ),
    findings=(
        Finding(
            about="signing keys",
            verdict="warning",
            seen="Qk3fJz0sV6o1l2b8mN4tYw9xRc5aHd7uEg has signed for 401 days.",
            change="Change: run `corpid key rotate`, once a year.",
        ),
    ),
)


_PUBLIC_NAMES: Final = {"SigningKeyDates": "KeyShown", "EngineStates": "Engines", "ProcessSummary": "ProcessShown"}
"""class → name of its schema, where they differ: callers may have generated code from the names"""


def schemas() -> dict[str, dict[str, Any]]:
    """The schema of the overview, with those of its parts."""
    reference = "#/components/schemas/{name}"
    _, made = msgspec.json.schema_components((Overview,), ref_template=reference)
    text = msgspec.json.encode(made).decode()
    for name, public in _PUBLIC_NAMES.items():
        text = text.replace(f'"{reference.format(name=name)}"', f'"{reference.format(name=public)}"')
        text = text.replace(f'"{name}":', f'"{public}":').replace(f'"title":"{name}"', f'"title":"{public}"')
    parts: dict[str, dict[str, Any]] = msgspec.json.decode(text)
    for part in parts.values():
        # The first line of a docstring; the rest is for those who read the code.
        part["description"] = part.get("description", "").partition("\n")[0]
    parts["Overview"]["examples"] = [msgspec.to_builtins(_EXAMPLE)]
    return parts
