"""Filters of the audit, as people write them: actions and times (D57)."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.nodes import quote_value
from corpid.rules.directory.values import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping
    from zoneinfo import ZoneInfo

_UNITS: Final[Mapping[str, str]] = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO: Final = re.compile(r"([0-9]{1,5})([mhdw])")


class InvalidFilter(ValueError):
    """A filter that cannot be read; the text is the remedy."""


def actions(text: str) -> tuple[str, ...]:
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


def moment(text: str, *, now: float, zone: ZoneInfo) -> int:
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
