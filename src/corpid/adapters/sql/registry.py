"""The Registry on a SQL database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.adapters.sql.audit import SqlAudit
from corpid.adapters.sql.clients import SqlClients
from corpid.adapters.sql.code_guesses import SqlCodeGuesses
from corpid.adapters.sql.deployment import SqlDeployment
from corpid.adapters.sql.directory import SqlDirectory
from corpid.adapters.sql.factors import SqlFactors
from corpid.adapters.sql.keys import SqlKeys
from corpid.adapters.sql.kinds import kinds
from corpid.adapters.sql.sessions import SqlSessions
from corpid.adapters.sql.sign_outs import SignOuts
from corpid.adapters.sql.usage import SqlUsage

if TYPE_CHECKING:
    from corpid.adapters.sealing import Sealer
    from corpid.adapters.sql.statements import Database
    from corpid.ports import Clock


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


def sql_registry(database: Database, sealer: Sealer, clock: Clock) -> SqlRegistry:
    """The registry, its statements prepared."""
    audit, records, sign_outs = SqlAudit(database, clock), kinds(database, sealer), SignOuts(database)
    return SqlRegistry(
        clients=SqlClients(database, audit),
        directory=SqlDirectory(database, audit, records, sign_outs),
        keys=SqlKeys(database, sealer, audit),
        sessions=SqlSessions(database, audit, sign_outs),
        factors=SqlFactors(database, audit, records, sign_outs),
        code_guesses=SqlCodeGuesses(database, audit),
        usage=SqlUsage(database),
        audit=audit,
        deployment=SqlDeployment(database, audit),
    )
