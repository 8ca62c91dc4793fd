"""The registry in a SQL database.

A store is loaded and made when it is first used, since a command needs few of them, and loading takes most of its time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from corpid.stores.sql.audit import SqlAudit

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.ports import Clock
    from corpid.stores.encryption_at_rest import SecretCipher
    from corpid.stores.sql.access_reviews import SqlAccessReviews
    from corpid.stores.sql.audit_seals import SqlSeals
    from corpid.stores.sql.client_clocks import SqlClientClocks
    from corpid.stores.sql.client_refusals import SqlClientRefusals
    from corpid.stores.sql.clients import SqlApiClients, SqlClients, SqlUsage
    from corpid.stores.sql.consents import SqlConsents
    from corpid.stores.sql.deployment import SqlDeployment
    from corpid.stores.sql.directory import SqlDirectory
    from corpid.stores.sql.email_changes import SqlEmailChanges
    from corpid.stores.sql.factors import SqlCodeGuesses, SqlFactors
    from corpid.stores.sql.hourly_counts import SqlHourlyCounts
    from corpid.stores.sql.idempotency import SqlIdempotencyKeys
    from corpid.stores.sql.invitations import SqlInvitations
    from corpid.stores.sql.keys import SqlKeys
    from corpid.stores.sql.mappers import Kinds
    from corpid.stores.sql.notices import SqlNotices
    from corpid.stores.sql.provisioning import SqlProvisioning
    from corpid.stores.sql.server_processes import SqlServerProcesses
    from corpid.stores.sql.sessions import SignOuts, SqlSessions
    from corpid.stores.sql.statements import Database


def load_stores() -> None:
    """Load every store.

    A server does so before it forks its workers, so that no request waits for it.
    """
    from corpid.stores.sql import (  # noqa: F401
        access_reviews,
        audit_seals,
        client_clocks,
        client_refusals,
        clients,
        consents,
        deployment,
        directory,
        email_changes,
        factors,
        hourly_counts,
        idempotency,
        invitations,
        keys,
        mappers,
        notices,
        provisioning,
        server_processes,
        sessions,
    )


class SqlRegistry:
    """A ports.Registry."""

    def __init__(self, database: Database, cipher: SecretCipher, clock: Clock, *, lost_at: Callable[[], float]) -> None:
        self._database: Final = database
        self._cipher: Final = cipher
        self.lost_at: Final = lost_at
        self.audit: Final = SqlAudit(database, clock)

    @cached_property
    def _records(self) -> Kinds:
        from corpid.stores.sql.mappers import record_types

        return record_types(self._database, self._cipher)

    @cached_property
    def _sign_outs(self) -> SignOuts:
        from corpid.stores.sql.sessions import SignOuts

        return SignOuts(self._database)

    @cached_property
    def clients(self) -> SqlClients:
        from corpid.stores.sql.clients import SqlClients

        return SqlClients(self._database, self.audit)

    @cached_property
    def api_clients(self) -> SqlApiClients:
        from corpid.stores.sql.clients import SqlApiClients

        return SqlApiClients(self._database, self.audit)

    @cached_property
    def directory(self) -> SqlDirectory:
        from corpid.stores.sql.directory import SqlDirectory

        return SqlDirectory(self._database, self.audit, self._records, self._sign_outs)

    @cached_property
    def keys(self) -> SqlKeys:
        from corpid.stores.sql.keys import SqlKeys

        return SqlKeys(self._database, self._cipher, self.audit)

    @cached_property
    def sessions(self) -> SqlSessions:
        from corpid.stores.sql.sessions import SqlSessions

        return SqlSessions(self._database, self.audit, self._records, self._sign_outs)

    @cached_property
    def consents(self) -> SqlConsents:
        from corpid.stores.sql.consents import SqlConsents

        return SqlConsents(self._database, self.audit)

    @cached_property
    def email_changes(self) -> SqlEmailChanges:
        from corpid.stores.sql.email_changes import SqlEmailChanges

        return SqlEmailChanges(self._database, self.audit, self._records, self._sign_outs)

    @cached_property
    def factors(self) -> SqlFactors:
        from corpid.stores.sql.factors import SqlFactors

        return SqlFactors(self._database, self.audit, self._records, self._sign_outs)

    @cached_property
    def invitations(self) -> SqlInvitations:
        from corpid.stores.sql.invitations import SqlInvitations

        return SqlInvitations(self._database)

    @cached_property
    def code_guesses(self) -> SqlCodeGuesses:
        from corpid.stores.sql.factors import SqlCodeGuesses

        return SqlCodeGuesses(self._database, self.audit)

    @cached_property
    def usage(self) -> SqlUsage:
        from corpid.stores.sql.clients import SqlUsage

        return SqlUsage(self._database)

    @cached_property
    def client_refusals(self) -> SqlClientRefusals:
        from corpid.stores.sql.client_refusals import SqlClientRefusals

        return SqlClientRefusals(self._database)

    @cached_property
    def client_clocks(self) -> SqlClientClocks:
        from corpid.stores.sql.client_clocks import SqlClientClocks

        return SqlClientClocks(self._database)

    @cached_property
    def hourly_counts(self) -> SqlHourlyCounts:
        from corpid.stores.sql.hourly_counts import SqlHourlyCounts

        return SqlHourlyCounts(self._database)

    @cached_property
    def server_processes(self) -> SqlServerProcesses:
        from corpid.stores.sql.server_processes import SqlServerProcesses

        return SqlServerProcesses(self._database)

    @cached_property
    def seals(self) -> SqlSeals:
        from corpid.stores.sql.audit_seals import SqlSeals

        return SqlSeals(self._database)

    @cached_property
    def deployment(self) -> SqlDeployment:
        from corpid.stores.sql.deployment import SqlDeployment

        return SqlDeployment(self._database, self.audit)

    @cached_property
    def idempotency_keys(self) -> SqlIdempotencyKeys:
        from corpid.stores.sql.idempotency import SqlIdempotencyKeys

        return SqlIdempotencyKeys(self._database)

    @cached_property
    def provisioning(self) -> SqlProvisioning:
        from corpid.stores.sql.provisioning import SqlProvisioning

        return SqlProvisioning(self._database)

    @cached_property
    def notices(self) -> SqlNotices:
        from corpid.stores.sql.notices import SqlNotices

        return SqlNotices(self._database, self._records)

    @cached_property
    def access_reviews(self) -> SqlAccessReviews:
        from corpid.stores.sql.access_reviews import SqlAccessReviews

        return SqlAccessReviews(self._database, self.notices)
