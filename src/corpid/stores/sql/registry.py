"""The registry in a SQL database: typed statements, part by part.

A part is loaded and made when it is first used, since a command needs few of them, and loading takes most of its time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from corpid.stores import Clock, sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.stores.encryption_at_rest import SecretCipher
    from corpid.stores.sql.audit_retention import AuditRetention
    from corpid.stores.sql.statements import Database, Transaction

T = TypeVar("T")


def load_stores() -> None:
    """Load every part.

    A server does so before it forks its workers, so that no request waits for one.
    """
    from corpid.stores.sql import (  # noqa: F401
        audit,
        audit_retention,
        clients,
        deployment,
        directory,
        factors,
        keys,
        lists,
        mappers,
        members,
        notices,
        sessions,
    )


def _part(make: Callable[[Registry], T]) -> cached_property[T]:
    """A part, whose module `sql` loads when it is named."""
    return cached_property(make)


class Registry:
    """The durable store: one part for each subject."""

    def __init__(self, database: Database, cipher: SecretCipher, clock: Clock, *, lost_at: Callable[[], float]) -> None:
        self._database: Final = database
        self._cipher: Final = cipher
        self._clock: Final = clock
        self.lost_at: Final = lost_at

    _kinds = _part(lambda self: sql.mappers.record_types(self._cipher))
    _sign_outs = _part(lambda self: sql.sessions.SignOuts(self._database))

    audit = _part(lambda self: sql.audit.Audit(self._database, self._clock))
    seals = _part(lambda self: sql.audit.AuditSeals(self._database))
    deployment = _part(lambda self: sql.deployment.DeploymentSwitches(self._database, self.audit))
    server_processes = _part(lambda self: sql.deployment.ServerProcesses(self._database))
    jobs = _part(lambda self: sql.deployment.Jobs(self._database, self.audit))
    keys = _part(lambda self: sql.keys.Keys(self._database, self._cipher, self.audit))

    clients = _part(lambda self: sql.clients.Clients(self._database, self.audit))
    api_clients = _part(lambda self: sql.clients.ApiClients(self._database, self.audit))
    idempotency_keys = _part(lambda self: sql.clients.IdempotencyKeys(self._database))
    consents = _part(lambda self: sql.clients.Consents(self._database, self.audit))
    usage = _part(lambda self: sql.clients.Usage(self._database))
    client_refusals = _part(lambda self: sql.clients.ClientRefusals(self._database))
    client_clocks = _part(lambda self: sql.clients.ClientSkews(self._database))
    hourly_counts = _part(lambda self: sql.clients.HourlyCounts(self._database))

    sessions = _part(lambda self: sql.sessions.Sessions(self._database, self.audit, self._kinds, self._sign_outs))
    factors = _part(lambda self: sql.factors.Factors(self._database, self.audit, self._kinds, self._sign_outs))
    code_guesses = _part(lambda self: sql.factors.CodeGuessCounts(self._database, self.audit))
    email_changes = _part(
        lambda self: sql.factors.EmailChanges(self._database, self.audit, self._kinds, self._sign_outs)
    )

    lists = _part(lambda self: sql.lists.RecordLists(self._database))
    outdated_words = _part(lambda self: sql.lists.OutdatedWords(self._database))
    directory = _part(
        lambda self: sql.directory.Directory(self._database, self.audit, self._kinds, self._sign_outs, self.lists)
    )
    provisioning = _part(lambda self: sql.members.Provisioning(self._database))
    invitations = _part(lambda self: sql.members.Invitations(self._database))
    notices = _part(lambda self: sql.notices.NoticeQueue(self._database))
    access_reviews = _part(lambda self: sql.notices.AccessReviews(self._database, self.notices))

    @property
    def retention(self) -> AuditRetention:
        """Removal of old audit entries; it is not traced."""
        return sql.audit_retention.AuditRetention(self._database, self.audit)

    def transaction(self) -> Transaction:
        """Changes of this task that become true together, or not at all.

        Raises StoreUnavailable.
        """
        return self._database.transaction()

    @classmethod
    def part_names(cls) -> list[str]:
        return [name for name, each in vars(cls).items() if isinstance(each, cached_property) and name[0] != "_"]
