"""The periodic tasks of a serving process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from corpid.flows.account import own_email
from corpid.flows.directory.access_review import ReviewDates
from corpid.flows.directory.approvals import expire_requests
from corpid.flows.directory.notices import NoticeMaker
from corpid.flows.directory.queued_emails import InvitationEmails, NoticeEmails
from corpid.flows.operations import jobs
from corpid.flows.operations.audit_seals import Sealer
from corpid.flows.operations.buffers import remove_old
from corpid.flows.operations.process_reports import (
    KeyReporter,
    MaintenanceReporter,
    RecoveryReporter,
    Registration,
    SettingsReporter,
)
from corpid.flows.operations.readiness import DATABASE, Readiness
from corpid.flows.operations.signing_keys import SigningKeys, ensure_standby_key
from corpid.rules.failures import StoreUnavailable
from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from corpid.flows.operations.audit_stream import AuditStream
    from corpid.flows.request_context import Provider
    from corpid.web.telemetry.metrics import Metrics

_SWEEP_SECONDS: Final = 1.0
"""between two rounds"""
_EMAILS_SECONDS: Final = 5.0
"""between two looks for invitations and notices to be sent"""
_EXPIRE_SECONDS: Final = 60.0
"""between two searches for expired change requests"""
_COUNTERS_SECONDS: Final = 10.0
"""between two writes of the hourly counters, of which those of a process that dies are lost"""
_STREAM_END_SECONDS: Final = 10.0
"""for the file or server of the audit's stream, at the end of the process"""
_ROUNDS_UNTIL_LOGGED: Final = 3
"""by then the process has looked at its engines, and has logged which one fails"""

_DATA_LOST: Final = (
    "short-lived state was lost: codes, pushed requests and access tokens from before are refused, and what may have "
    "been used before is temporarily_unavailable"
)


@asynccontextmanager
async def run_tasks(
    provider: Provider,
    metrics: Metrics | None,
    readiness: Readiness,
    *,
    keys: Sequence[SigningKeys],
    notices: bool,
    stream: AuditStream | None = None,
) -> AsyncIterator[None]:
    """Run the periodic tasks, such as clean-up and audit seals.

    `keys` are the signing keys of each issuer. When the context ends, what was counted is written once more, and this
    process is no longer registered.
    """
    work = _Tasks(provider, metrics, readiness, keys, stream)
    # A mail server may take minutes to answer, for which nothing else must wait.
    tasks = [asyncio.create_task(each) for each in (work.rounds(), work.invitations(), readiness.watch())]
    if notices and provider.mail.works:
        tasks.append(asyncio.create_task(work.notices()))
    if stream is not None:
        tasks.append(asyncio.create_task(work.audit_stream(stream)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await provider.jobs.stop()
        await work.flush()


class _Tasks:
    """Periodic tasks; one that fails is logged, and tried again next round."""

    def __init__(
        self,
        provider: Provider,
        metrics: Metrics | None,
        readiness: Readiness,
        keys: Sequence[SigningKeys],
        stream: AuditStream | None,
    ) -> None:
        self._provider: Final = provider
        self._metrics: Final = metrics
        self._readiness: Final = readiness
        self._stream: Final = stream
        self._expire_at = 0.0
        self._count_at = 0.0
        self._emails: Final = InvitationEmails(provider, _warn, metrics.invitation if metrics else lambda _: None)
        self._notices: Final = NoticeMaker(provider)
        self._notice_emails: Final = NoticeEmails(provider, _warn, metrics.notice if metrics else lambda _: None)
        self._review_dates: Final = ReviewDates(provider.registry)
        self._registration: Final = Registration(provider.registry, provider.node.process)
        self._sealer: Final = Sealer(
            provider.registry,
            lambda detail: access_log.log().info("audit_sealed", detail=detail),
            self._seals_changed,
        )
        if metrics is not None:
            metrics.mail_pauses["invitations"] = lambda: self._emails.pause_seconds
            metrics.mail_pauses["notices"] = lambda: self._notice_emails.pause_seconds
        self._recovery: Final = RecoveryReporter(
            provider,
            lambda until: _warn("data_lost", f"{_DATA_LOST}, at most for {until - provider.clock():.0f} s"),
            lambda: access_log.log().info("data_lost_over", detail="nobody is told to wait any more"),
        )
        self._keys: Final = KeyReporter(provider.registry, keys, _warn)
        self._maintenance: Final = MaintenanceReporter(provider, _warn)
        self._settings: Final = SettingsReporter(provider, _warn)
        self._failing: Final[dict[str, str]] = {}
        """the logged error of each part that fails, so that it is logged once"""
        self._unavailable: Final[dict[str, int]] = {}
        """how often in a row each part has lacked its store"""

    async def rounds(self) -> None:
        await self._tried("registration of this process", self._registration.round(now=self._provider.clock()))
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = self._provider.clock()
            self._recovery.report_changes()
            await self._tried("signing keys", self._keys.report_changes(now=now))
            await self._tried("maintenance", self._maintenance.report_changes(now=now))
            await self._tried("short-lived state", self._provider.transient.sweep(now=now))
            await self._tried("sessions", self._provider.registry.sessions.sweep(now=now))
            await self._tried("consents", self._provider.registry.consents.sweep(now=now))
            await self._tried("e-mail addresses", own_email.finish_due(self._provider, now=now))
            if now >= self._expire_at:
                self._expire_at = now + _EXPIRE_SECONDS
                await self._tried("change requests", expire_requests(self._provider.registry, now=now))
                await self._tried("records of jobs", jobs.clean_up(self._provider.registry, now=now))
                await self._tried("standby key", ensure_standby_key(self._provider.registry, now=now))
            await self._tried("dates of access reviews", self._review_dates.round(now=now))
            await self._tried("registration of this process", self._registration.round(now=now))
            await self._tried("settings of the processes", self._settings.report_changes(now=now))
            await self._tried("seals of the audit", self._sealer.round(now=now))
            await self._flush_records()
            if now >= self._count_at:
                self._count_at = now + _COUNTERS_SECONDS
                await self._flush_counters()
                await self._tried("words of records", self._provider.registry.outdated_words.refresh())
                await self._tried("old counters", remove_old(self._provider.registry, now=now))

    async def invitations(self) -> None:
        while True:
            await asyncio.sleep(_EMAILS_SECONDS)
            await self._tried("invitations", self._emails.round())

    async def notices(self) -> None:
        while True:
            await asyncio.sleep(_EMAILS_SECONDS)
            await self._tried("making of notices", self._notices.round())
            await self._tried("sending of notices", self._notice_emails.round())

    async def audit_stream(self, stream: AuditStream) -> None:
        while True:
            await self._tried("stream of the audit", stream.round())
            await asyncio.sleep(stream.pause)

    async def flush(self) -> None:
        await self._flush_records()
        await self._flush_counters()
        await self._tried("registration of this process", self._registration.end())
        if self._stream is not None:
            # A disk of the network may hang for ever; another process takes over anyway.
            await self._tried("stream of the audit", asyncio.wait_for(self._stream.end(), _STREAM_END_SECONDS))

    async def _flush_records(self) -> None:
        await self._tried("usage counts", self._provider.usage.flush(self._provider.registry))
        await self._tried("refusals of clients", self._provider.refusals.flush(self._provider.registry))

    async def _flush_counters(self) -> None:
        await self._tried("hourly counters", self._provider.counters.flush(self._provider.registry))

    async def _tried(self, part: str, work: Awaitable[object]) -> None:
        try:
            await work
        except StoreUnavailable as error:
            self._readiness.suspect()
            self._log_unavailable(part, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the next round must come
            self._log_failure(part, type(error).__name__, error)
        else:
            self._failing.pop(part, None)
            self._unavailable.pop(part, None)
            if self._metrics is not None:
                self._metrics.task(part, failing=False)

    def _log_unavailable(self, part: str, reason: str) -> None:
        """Log a task that lacks its store, unless the database fails."""
        self._unavailable[part] = self._unavailable.get(part, 0) + 1
        if self._unavailable[part] >= _ROUNDS_UNTIL_LOGGED and not self._readiness.last_answer[DATABASE]:
            self._log_failure(part, reason, None)

    def _log_failure(self, part: str, reason: str, error: Exception | None) -> None:
        if self._failing.get(part) != reason:
            access_log.log().error("sweep_failed", detail=f"{part}: {reason}", exc_info=error)
        self._failing[part] = reason
        if self._metrics is not None:
            self._metrics.task(part, failing=True)

    def _seals_changed(self, detail: str) -> None:
        access_log.log().error("audit_seals_changed", detail=detail)
        if self._metrics is not None:
            self._metrics.seals_changed()


def report_part(part: str, reason: str) -> None:
    """Log that a part fails, or works again (no reason). Source: D49"""
    if reason:
        _warn("unavailable", f"{part}: {reason}")
    else:
        _warn("available_again", part)


def _warn(event: str, detail: str) -> None:
    access_log.log().warning(event, detail=detail)
