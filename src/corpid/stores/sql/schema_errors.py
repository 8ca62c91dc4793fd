"""Errors of unusable databases; each message is a sentence for operators."""

from __future__ import annotations


class SchemaError(Exception):
    """The database cannot be used, at least by this version.

    The message is one sentence.
    """


class SchemaNewer(SchemaError):
    """A newer CorpID has migrated the database."""


class SchemaOlder(SchemaError):
    """The database waits for `corpid migrate`."""


class ContractFirst(SchemaError):
    """Contracting is refused while servers of the previous version run."""


class MigrationStopped(SchemaError):
    """The migration was stopped on request; finished steps stay."""


class DatabaseBusy(SchemaError):
    """Others hold locks that a migration needs; it gave up waiting."""


class DatabaseUnreachable(SchemaError):
    """The database cannot be opened."""


class DatabaseForgetful(SchemaError):
    """The database is configured to lose confirmed writes."""
