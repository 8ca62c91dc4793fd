"""The readiness check as a demo's own pages start it (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid_dev.developer_api import NotDone
from corpid_dev.flows.readiness_runs import ReadinessError, RunRequest
from corpid_dev.readiness.cases import CASES
from corpid_dev.readiness.driver import Options, check
from corpid_dev.readiness.visitor import Marker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ssl import SSLContext

    from corpid_dev.readiness.case import Case
    from corpid_dev.readiness.report import Report


async def check_as_asked(
    asked: RunRequest,
    progress: Callable[[str], None],
    *,
    cases: Sequence[Case] = tuple(CASES.values()),
    tls: SSLContext | None = None,
) -> Report:
    """Check a relying party by the developer API of this demo.

    It opens whatever address is asked for, so only a demo that nobody else reaches runs it. `tls` trusts the demo's own
    authority, too; None: the usual ones alone. Raises ReadinessError.
    """
    options = Options(
        url=asked.url,
        developer=asked.issuer,
        user=asked.user,
        entity=asked.entity,
        marker=marker_of(asked.signed_in),
        cases=cases,
        tls=tls,
    )
    try:
        return await check(options, progress=progress)
    except NotDone as error:
        raise ReadinessError(str(error)) from None


def marker_of(signed_in: str) -> Marker | None:
    """The sign of a session, by address or by text."""
    if not signed_in:
        return None
    is_address = signed_in.startswith(("/", "http://", "https://"))
    return Marker(url=signed_in) if is_address else Marker(text=signed_in)
