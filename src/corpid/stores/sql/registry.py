"""The Registry on a SQL database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.stores.sql.audit import SqlAudit
from corpid.stores.sql.clients import SqlClients, SqlUsage
from corpid.stores.sql.code_guesses import SqlCodeGuesses
from corpid.stores.sql.deployment import SqlDeployment
from corpid.stores.sql.directory import SqlDirectory
from corpid.stores.sql.factors import SqlFactors
from corpid.stores.sql.keys import SqlKeys
from corpid.stores.sql.mappers import record_types
from corpid.stores.sql.sessions import SignOuts, SqlSessions

if TYPE_CHECKING:
    from corpid.ports import Clock
    from corpid.stores.encryption_at_rest import SecretCipher
    from corpid.stores.sql.statements import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRegistry:
    """A ports.Registry."""

    clients: SqlClients
    directory: SqlDirectory
    keys: SqlKeys
    sessions: SqlSessions
    factors: SqlFactors
    code_guesses: SqlCodeGuesses
    usage: SqlUsage
    audit: SqlAudit
    deployment: SqlDeployment


def sql_registry(database: Database, cipher: SecretCipher, clock: Clock) -> SqlRegistry:
    """The registry, its statements prepared."""
    audit, records, sign_outs = SqlAudit(database, clock), record_types(database, cipher), SignOuts(database)
    return SqlRegistry(
        clients=SqlClients(database, audit),
        directory=SqlDirectory(database, audit, records, sign_outs),
        keys=SqlKeys(database, cipher, audit),
        sessions=SqlSessions(database, audit, records, sign_outs),
        factors=SqlFactors(database, audit, records, sign_outs),
        code_guesses=SqlCodeGuesses(database, audit),
        usage=SqlUsage(database),
        audit=audit,
        deployment=SqlDeployment(database, audit),
    )
