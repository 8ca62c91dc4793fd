"""Reading of the audit: filters, and a person's own history.

What somebody else did to a person shows that, and of them only what kind of actor they are (D57, D61).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from corpid.rules.audit import AuditAction
from corpid.rules.directory.access import ACTOR_KINDS
from corpid.rules.readers import quote_value, suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping
    from zoneinfo import ZoneInfo

_UNITS: Final[Mapping[str, str]] = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO: Final = re.compile(r"([0-9]{1,5})([mhdw])")


_ABOUT_THE_CHANGE: Final = frozenset({"members", "set", "scopes", "expires_at"})
_ABOUT_THE_ACTOR: Final = frozenset(
    {"address", "device", "amr", "way", "reason", "issuer", "context_message", "browser", "guesses", "pause_seconds"}
)
"""details that a person reads of what they did themselves"""


class InvalidFilter(ValueError):
    """A filter that cannot be read; the text is the remedy."""


def find_actions(text: str) -> tuple[str, ...]:
    """The actions of a filter: one, or those with a prefix (`membership.`).

    Raises InvalidFilter. Source: D57
    """
    known = [action.value for action in AuditAction]
    if text in known:
        return (text,)
    found = tuple(action for action in known if action.startswith(text)) if text.endswith(".") else ()
    if not found:
        nouns = {f"{action.partition('.')[0]}." for action in known}
        close = suggestion(text, nouns if text.endswith(".") or "." not in text else known)
        raise InvalidFilter(
            f"{quote_value(text)} is not an action{close or ';'} docs/audit.md lists them, and `user.` means every action on a user"
        )
    return found


def parse_moment(text: str, *, now: float, zone: ZoneInfo) -> int:
    """A moment in epoch seconds.

    `text` is `30m`, `2h`, `3d` or `1w` ago, or a day or time of ISO 8601. One without an offset is meant in `zone`.
    Raises InvalidFilter. Source: D57, RFC 3339 §5.6
    """
    ago = _AGO.fullmatch(text)
    if ago:
        return int(now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}).total_seconds())
    try:
        at = datetime.fromisoformat(text)
        return int((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp())
    except (ValueError, OverflowError):
        raise InvalidFilter(
            f"{quote_value(text)} is not a time: write how long ago (30m, 2h, 3d, 1w), a day ({_example(now, zone):%Y-%m-%d}) or a "
            f"time ({_example(now, zone):%Y-%m-%dT%H:%M})"
        ) from None


def _example(now: float, zone: ZoneInfo) -> date:
    return datetime.fromtimestamp(now - 86_400, zone)


def format_moment(at: float) -> str:
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
        "at": format_moment(entry.at),
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
