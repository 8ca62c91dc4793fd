"""Migrations: their phases, what they need of an engine, and its errors.

A migration is of one of three phases, in this order: `expand` adds, and the version before goes on serving
beside it; `fill` brings rows up to date in small batches, meanwhile or later; `contract` takes away, when no
server of the version before runs any more. So a version runs on every schema that has its own expansions,
and on every later one that was not contracted since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    import sqlalchemy as sa  # noqa: TC004 - as below
    from alembic.operations import Operations  # noqa: TC004 - it takes long to load, and migrations load it

EXPAND: Final = "expand"
FILL: Final = "fill"
CONTRACT: Final = "contract"
PHASES: Final = (EXPAND, FILL, CONTRACT)
LOCATIONS: Final = [str(Path(__file__).parent / "migrations" / "versions")]
"""the folders of migrations"""
OLDEST: Final = "0040"
"""the oldest schema that migrations lead on from: they are numbered after it"""
T = TypeVar("T")


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """Rows to be updated, walked in key order; the same everywhere."""

    table: str
    key: str
    """a column that is unique, indexed, and sorts as its values are compared"""
    statement: str | Callable[[sa.Connection, dict[str, str | int]], None]
    """one UPDATE of the rows with `:after < key <= :end`, or the function that writes them, with these values

    Done twice it changes nothing more.
    """
    rows_per_second: int
    """about how many rows it walks, as was measured; for estimates only"""
    first: str | int = ""
    """a value smaller than every key"""


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """One migration, as declared in its file."""

    revision: str
    title: str
    phase: str
    locks: str
    """what it locks, and for how long; one line for people"""
    upgrade: Callable[[Operations], None] | None
    fill: Backfill | None
    concurrently: bool
    """on PostgreSQL outside of a transaction, as CREATE INDEX CONCURRENTLY needs it; done twice it does no harm"""


class MigrationTarget(Protocol):
    """A database whose schema is read or changed.

    Every method raises SchemaError.
    """

    @property
    def display_name(self) -> str:
        """Its name, without secrets."""

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` in one transaction that changes nothing."""

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` in one transaction, all of it or nothing.

        Where others hold what it needs it gives way and tries again, and raises DatabaseBusy in the end.
        """

    def run_outside_transaction(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` outside a transaction, if the engine supports it."""

    def hold_lock(self, report: Callable[[str], None], stop: threading.Event) -> AbstractContextManager[None]:
        """Others that want to change the schema wait.

        Raises MigrationStopped while waiting itself.
        """

    def refuse_pooler(self) -> None:
        """Raise PoolerRefused unless each connection is a session of the engine."""

    def refuse_served(self, before: Sequence[str]) -> None:
        """Raise DatabaseBusy while servers run that a change would break.

        Those whose version is one of `before`, or unknown.
        """


class SchemaError(Exception):
    """The database cannot be used, at least by this version.

    The message is one sentence for operators.
    """


class SchemaNewer(SchemaError):
    """A newer CorpID has migrated the database."""


class SchemaOlder(SchemaError):
    """The database waits for `corpid migrate`."""


class SchemaTooOld(SchemaError):
    """No migration leads on from the database's schema."""


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


class EncodingRefused(SchemaError):
    """The database cannot hold every name."""


class PoolerRefused(SchemaError):
    """A pooler answers, and a session of the database is needed."""


def read_steps() -> tuple[Migration, ...]:
    """Every migration of this version, in order. docs/decisions/0009"""
    return _read_steps(tuple(LOCATIONS))


def is_last(revision: str | None) -> bool:
    """Return whether this is the revision of the last migration.

    They are numbered without gaps, so counting the files is enough, and takes a tenth of reading them.
    """
    return revision == f"{int(OLDEST) + len(_list_files(tuple(LOCATIONS))):04}"


def find_pending(every: Sequence[Migration], revision: str) -> tuple[Migration, ...]:
    """The migrations that a schema lacks, in order.

    Raises LookupError for a schema that this version does not know.
    """
    known = list_known(every)
    if revision not in known:
        raise LookupError(revision)
    return tuple(every[known.index(revision) :])


def list_known(every: Sequence[Migration]) -> list[str]:
    """The revisions of the schemas that this version knows, in order."""
    return [OLDEST, *(step.revision for step in every)]


def is_enough(lacking: Sequence[Migration]) -> bool:
    """Return whether this version runs on a schema without these migrations.

    Those that only fill or take away may come later.
    """
    return all(step.phase != EXPAND for step in lacking)


def find_serves_since(every: Sequence[Migration], revision: str) -> str:
    """The oldest version that may run on a schema.

    Named by its last migration. docs/decisions/0009
    """
    done = every[: len(every) - len(find_pending(every, revision))]
    contracted = [step.revision for step in done if step.phase == CONTRACT]
    return contracted[-1] if contracted else OLDEST


def choose_outstanding(every: Sequence[Migration], revision: str, *, through: str) -> tuple[Migration, ...]:
    """The steps of a command that may go `through` a phase.

    Up to there, and whatever this version cannot run without. Raises ContractFirst and LookupError.
    docs/decisions/0009
    """
    lacking = find_pending(every, revision)
    if through == CONTRACT:
        return lacking
    allowed = PHASES[: PHASES.index(through) + 1]
    held_back = next((at for at, step in enumerate(lacking) if step.phase not in allowed), len(lacking))
    needed = max((at + 1 for at, step in enumerate(lacking) if step.phase == EXPAND), default=0)
    chosen = lacking[: max(held_back, needed)]
    if contract := next((step for step in chosen if step.phase == CONTRACT), None):
        raise ContractFirst(
            f"this update passes over a version: the migration {contract.revision} comes first, which no server of the "
            "version before survives. Stop every server, then run `corpid migrate --contract`"
        )
    return chosen


def find_fills_before(every: Sequence[Migration], contract: Migration) -> tuple[Migration, ...]:
    """The backfills that a contraction relies on.

    Servers of the previous version may have left rows for them.
    """
    before = every[: every.index(contract)]
    last = max((at for at, step in enumerate(before) if step.phase == CONTRACT), default=-1)
    return tuple(step for step in before[last + 1 :] if step.phase == FILL)


@cache
def _read_steps(locations: tuple[str, ...]) -> tuple[Migration, ...]:
    """Read once a process: a server asks several times while it starts."""
    return tuple(sorted(map(_read_step, _list_files(locations)), key=attrgetter("revision")))


@cache
def _list_files(locations: tuple[str, ...]) -> list[Path]:
    """Listed once a process, as they are read once."""
    return [file for folder in locations for file in Path(folder).glob("[!_]*.py")]


def _read_step(file: Path) -> Migration:
    """The migration of a file.

    Read without Alembic, which takes longer to load than a server takes to look whether anything is to be done.
    """
    spec = spec_from_file_location(f"{__package__}.migrations.versions.{file.stem}", file)
    assert spec is not None, file  # noqa: S101
    assert spec.loader is not None, file  # noqa: S101
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return Migration(
        revision=module.revision,
        title=(module.__doc__ or "").partition("\n\n")[0].partition(". ")[0].rstrip("."),
        phase=module.phase,
        locks=module.locks,
        upgrade=getattr(module, "upgrade", None),
        fill=getattr(module, "fill", None),
        concurrently=getattr(module, "concurrently", False),
    )
