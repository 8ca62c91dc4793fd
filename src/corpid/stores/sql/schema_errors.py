"""Errors of unusable databases; each message is a sentence for operators."""

from __future__ import annotations


class SchemaError(Exception):
    """The database cannot be used by this version of CorpID, or not at all; the message is one sentence."""


class SchemaNewer(SchemaError):
    """A newer CorpID has migrated the database."""


class SchemaOlder(SchemaError):
    """The database waits for `corpid migrate`."""


class ContractFirst(SchemaError):
    """Contracting is refused while servers of the previous version run."""


class MigrationStopped(SchemaError):
    """Somebody asked to stop; what was done stays done."""


class DatabaseBusy(SchemaError):
    """Others hold what a migration needs, and it did not wait for longer."""


class DatabaseUnreachable(SchemaError):
    """The database cannot be opened."""


class DatabaseForgetful(SchemaError):
    """The database is configured to lose confirmed writes."""
