"""Audit entries as the person reads them whom they concern (D57, D61).

What somebody else did shows that, and of them only what kind of actor they are.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from corpid.rules.directory.actors import ACTOR_KINDS

_ABOUT_THE_CHANGE: Final = frozenset({"members", "set", "scopes", "expires_at"})
_ABOUT_THE_ACTOR: Final = frozenset(
    {"address", "device", "amr", "way", "reason", "issuer", "context_message", "browser", "guesses", "pause_seconds"}
)
"""details that a person reads of what they did themselves"""


def moment(at: float) -> str:
    """Epoch seconds as a text in UTC (RFC 3339)."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def own_event(entry: Any, user_id: str) -> dict[str, object]:  # noqa: ANN401 - an entry of the audit's port
    """Return an entry for the person it concerns.

    They did it, or it was done to them. Of what they did to others there is no record, since it is the others'. Source:
    D57, D61
    """
    kind = entry.actor.partition(":")[0]
    own = entry.actor in {f"user:{user_id}", f"operator:{user_id}"}
    about = entry.object == user_id or entry.object.startswith(f"{user_id}/")
    details = _ABOUT_THE_CHANGE | _ABOUT_THE_ACTOR if own else _ABOUT_THE_CHANGE
    found: dict[str, object] = {
        "at": moment(entry.at),
        "action": entry.action,
        "by": "you" if own else ACTOR_KINDS.get(kind, "unknown"),
        "outcome": entry.outcome,
        "client": entry.client_id,
        "entity": entry.entity_id,
        "details": {name: value for name, value in entry.detail.items() if name in details},
    }
    if about:
        found |= {"record": entry.object.split("/")[1:], "before": entry.before, "after": entry.after}
    return {name: value for name, value in found.items() if value not in ("", {}, [])}
