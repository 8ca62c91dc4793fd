"""The periodic tasks of a serving process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

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
from corpid.rules.server_processes import SEEN_EVERY_SECONDS
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
    stream: AuditStream | None,
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


class _Work(Protocol):
    def __call__(self, *, now: float) -> Awaitable[object]: ...


@dataclass(slots=True)
class _Task:
    """A task of the rounds."""

    part: str
    """of the process, as the log and the metrics name it"""
    work: _Work
    seconds: float = 0.0
    """until it is due again after it succeeded; 0: every round"""
    at_end: bool = False
    """whether the process does it once more when it ends"""
    due: float = float("-inf")


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
        self._emails: Final = InvitationEmails(provider, _warn, metrics.invitation if metrics else lambda _: None)
        self._notices: Final = NoticeMaker(provider)
        self._notice_emails: Final = NoticeEmails(provider, _warn, metrics.notice if metrics else lambda _: None)
        self._registration: Final = Registration(provider.registry, provider.node.process)
        self._register: Final = _Task("registration of this process", self._registration.round, SEEN_EVERY_SECONDS)
        self._tasks: Final = self._list_tasks(keys)
        if metrics is not None:
            metrics.mail_pauses["invitations"] = lambda: self._emails.pause_seconds
            metrics.mail_pauses["notices"] = lambda: self._notice_emails.pause_seconds
        self._recovery: Final = RecoveryReporter(
            provider,
            lambda until: _warn("data_lost", f"{_DATA_LOST}, at most for {until - provider.clock():.0f} s"),
            lambda: access_log.log().info("data_lost_over", detail="nobody is told to wait any more"),
        )
        self._failing: Final[dict[str, str]] = {}
        """the logged error of each part that fails, so that it is logged once"""
        self._unavailable: Final[dict[str, int]] = {}
        """how often in a row each part has lacked its store"""

    async def rounds(self) -> None:
        await self._do([self._register])
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self._recovery.report_changes()
            await self._do(self._tasks)

    def _list_tasks(self, keys: Sequence[SigningKeys]) -> list[_Task]:
        """The tasks of a round, in order."""
        provider, registry = self._provider, self._provider.registry
        sealer = Sealer(
            registry, lambda detail: access_log.log().info("audit_sealed", detail=detail), self._seals_changed
        )
        return [
            _Task("signing keys", KeyReporter(registry, keys, _warn).report_changes),
            _Task("maintenance", MaintenanceReporter(provider, _warn).report_changes),
            _Task("short-lived state", provider.transient.sweep),
            _Task("sessions", registry.sessions.sweep),
            _Task("consents", registry.consents.sweep),
            _Task("e-mail addresses", partial(own_email.finish_due, provider)),
            _Task("change requests", partial(expire_requests, registry), _EXPIRE_SECONDS),
            _Task("records of jobs", partial(jobs.clean_up, registry), _EXPIRE_SECONDS),
            _Task("standby key", partial(ensure_standby_key, registry), _EXPIRE_SECONDS),
            _Task("dates of access reviews", ReviewDates(registry).round),
            self._register,
            _Task("settings of the processes", SettingsReporter(provider, _warn).report_changes, SEEN_EVERY_SECONDS),
            _Task("seals of the audit", sealer.round),
            _Task("usage counts", lambda **_: provider.usage.flush(registry), at_end=True),
            _Task("refusals of clients", lambda **_: provider.refusals.flush(registry), at_end=True),
            _Task("hourly counters", lambda **_: provider.counters.flush(registry), _COUNTERS_SECONDS, at_end=True),
            _Task("words of records", lambda **_: registry.outdated_words.refresh(), _COUNTERS_SECONDS),
            _Task("old counters", partial(remove_old, registry), _COUNTERS_SECONDS),
        ]

    async def _do(self, tasks: Sequence[_Task]) -> None:
        """Do those that are due."""
        now = self._provider.clock()
        for task in tasks:
            # Without an interval a task has no moment, which a clock that is set back would put off.
            if now >= task.due and await self._tried(task.part, task.work(now=now)) and task.seconds:
                task.due = now + task.seconds

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
        now = self._provider.clock()
        for task in self._tasks:
            if task.at_end:
                await self._tried(task.part, task.work(now=now))
        await self._tried(self._register.part, self._registration.end())
        if self._stream is not None:
            # A disk of the network may hang for ever; another process takes over anyway.
            await self._tried("stream of the audit", asyncio.wait_for(self._stream.end(), _STREAM_END_SECONDS))

    async def _tried(self, part: str, work: Awaitable[object]) -> bool:
        """Return whether it succeeded."""
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
            return True
        return False

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
