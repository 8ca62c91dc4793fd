"""The registry in a SQL database.

A store is loaded and made when it is first used, since a command needs few of them, and loading takes most of its time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from corpid.stores.sql.audit import Audit

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.stores import Clock
    from corpid.stores.encryption_at_rest import SecretCipher
    from corpid.stores.sql.access_reviews import AccessReviews
    from corpid.stores.sql.audit_seals import AuditSeals
    from corpid.stores.sql.client_clocks import ClientClocks
    from corpid.stores.sql.client_refusals import ClientRefusals
    from corpid.stores.sql.clients import ApiClients, Clients, Usage
    from corpid.stores.sql.consents import Consents
    from corpid.stores.sql.deployment import Deployment
    from corpid.stores.sql.directory import Directory
    from corpid.stores.sql.email_changes import EmailChanges
    from corpid.stores.sql.factors import CodeGuessCounts, Factors
    from corpid.stores.sql.hourly_counts import HourlyCounts
    from corpid.stores.sql.idempotency import IdempotencyKeys
    from corpid.stores.sql.invitations import Invitations
    from corpid.stores.sql.keys import Keys
    from corpid.stores.sql.mappers import Kinds
    from corpid.stores.sql.notices import Notices
    from corpid.stores.sql.provisioning import Provisioning
    from corpid.stores.sql.server_processes import ServerProcesses
    from corpid.stores.sql.sessions import Sessions, SignOuts
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


class Registry:
    """The durable store: one part for each subject."""

    def __init__(self, database: Database, cipher: SecretCipher, clock: Clock, *, lost_at: Callable[[], float]) -> None:
        self._database: Final = database
        self._cipher: Final = cipher
        self.lost_at: Final = lost_at
        self.audit: Final = Audit(database, clock)

    @classmethod
    def part_names(cls) -> tuple[str, ...]:
        """The names of its stores."""
        made = (name for name, member in vars(cls).items() if isinstance(member, cached_property))
        return "audit", *(name for name in made if not name.startswith("_"))

    @cached_property
    def _records(self) -> Kinds:
        from corpid.stores.sql.mappers import prepare_record_types

        return prepare_record_types(self._database, self._cipher)

    @cached_property
    def _sign_outs(self) -> SignOuts:
        from corpid.stores.sql.sessions import SignOuts

        return SignOuts(self._database)

    @cached_property
    def clients(self) -> Clients:
        from corpid.stores.sql.clients import Clients

        return Clients(self._database, self.audit)

    @cached_property
    def api_clients(self) -> ApiClients:
        from corpid.stores.sql.clients import ApiClients

        return ApiClients(self._database, self.audit)

    @cached_property
    def directory(self) -> Directory:
        from corpid.stores.sql.directory import Directory

        return Directory(self._database, self.audit, self._records, self._sign_outs)

    @cached_property
    def keys(self) -> Keys:
        from corpid.stores.sql.keys import Keys

        return Keys(self._database, self._cipher, self.audit)

    @cached_property
    def sessions(self) -> Sessions:
        from corpid.stores.sql.sessions import Sessions

        return Sessions(self._database, self.audit, self._records, self._sign_outs)

    @cached_property
    def consents(self) -> Consents:
        from corpid.stores.sql.consents import Consents

        return Consents(self._database, self.audit)

    @cached_property
    def email_changes(self) -> EmailChanges:
        from corpid.stores.sql.email_changes import EmailChanges

        return EmailChanges(self._database, self.audit, self._records, self._sign_outs)

    @cached_property
    def factors(self) -> Factors:
        from corpid.stores.sql.factors import Factors

        return Factors(self._database, self.audit, self._records, self._sign_outs)

    @cached_property
    def invitations(self) -> Invitations:
        from corpid.stores.sql.invitations import Invitations

        return Invitations(self._database)

    @cached_property
    def code_guesses(self) -> CodeGuessCounts:
        from corpid.stores.sql.factors import CodeGuessCounts

        return CodeGuessCounts(self._database, self.audit)

    @cached_property
    def usage(self) -> Usage:
        from corpid.stores.sql.clients import Usage

        return Usage(self._database)

    @cached_property
    def client_refusals(self) -> ClientRefusals:
        from corpid.stores.sql.client_refusals import ClientRefusals

        return ClientRefusals(self._database)

    @cached_property
    def client_clocks(self) -> ClientClocks:
        from corpid.stores.sql.client_clocks import ClientClocks

        return ClientClocks(self._database)

    @cached_property
    def hourly_counts(self) -> HourlyCounts:
        from corpid.stores.sql.hourly_counts import HourlyCounts

        return HourlyCounts(self._database)

    @cached_property
    def server_processes(self) -> ServerProcesses:
        from corpid.stores.sql.server_processes import ServerProcesses

        return ServerProcesses(self._database)

    @cached_property
    def seals(self) -> AuditSeals:
        from corpid.stores.sql.audit_seals import AuditSeals

        return AuditSeals(self._database)

    @cached_property
    def deployment(self) -> Deployment:
        from corpid.stores.sql.deployment import Deployment

        return Deployment(self._database, self.audit)

    @cached_property
    def idempotency_keys(self) -> IdempotencyKeys:
        from corpid.stores.sql.idempotency import IdempotencyKeys

        return IdempotencyKeys(self._database)

    @cached_property
    def provisioning(self) -> Provisioning:
        from corpid.stores.sql.provisioning import Provisioning

        return Provisioning(self._database)

    @cached_property
    def notices(self) -> Notices:
        from corpid.stores.sql.notices import Notices

        return Notices(self._database, self._records)

    @cached_property
    def access_reviews(self) -> AccessReviews:
        from corpid.stores.sql.access_reviews import AccessReviews

        return AccessReviews(self._database, self.notices)
