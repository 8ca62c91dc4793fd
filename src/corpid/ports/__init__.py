"""Interfaces that the flows need of stores and other systems.

Registry stores lasting records, TransientStore entries that live for minutes. A port exists only where the
world can differ. Times are epoch seconds, lifetimes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from corpid.ports.audit import ACTOR_KINDS, Audit, AuditEntry, AuditEvent, AuditQuery
from corpid.ports.outbound import (
    COMMAND_LINE,
    ClientKeys,
    HashingSource,
    KeySetUnavailable,
    Letter,
    Mail,
    Passwords,
    PasswordsBusy,
)
from corpid.ports.records import (
    Account,
    FetchedKeySet,
    Link,
    LinkPurpose,
    SealedKey,
    Session,
    SessionFactors,
    SessionPurpose,
    UseCount,
)
from corpid.ports.registry import (
    Change,
    ChangedMeanwhile,
    Clients,
    CodeGuessCounts,
    Conflict,
    Delete,
    Deployment,
    Directory,
    FactorChange,
    Factors,
    Keys,
    MissingReference,
    NameRefused,
    NameTaken,
    NobodyRemains,
    R,
    Registry,
    Remains,
    SecretUnreadable,
    Seen,
    Sessions,
    SignOut,
    Upsert,
    Usage,
)
from corpid.ports.transient import (
    EngineCondition,
    StoreUnavailable,
    TransientEngine,
    TransientStore,
    TransientUnit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Clock: TypeAlias = "Callable[[], float]"

__all__ = [
    "ACTOR_KINDS", "COMMAND_LINE", "Account", "Audit", "AuditEntry", "AuditEvent", "AuditQuery", "Change",
    "ChangedMeanwhile", "ClientKeys", "Clients", "Clock", "CodeGuessCounts", "Conflict", "Delete",
    "Deployment", "Directory", "EngineCondition", "FactorChange", "Factors", "FetchedKeySet", "HashingSource",
    "KeySetUnavailable", "Keys", "Letter", "Link", "LinkPurpose", "Mail", "MissingReference", "NameRefused",
    "NameTaken", "NobodyRemains", "Passwords", "PasswordsBusy", "R", "Registry", "Remains", "SealedKey",
    "SecretUnreadable", "Seen", "Session", "SessionFactors", "SessionPurpose", "Sessions", "SignOut", "StoreUnavailable",
    "TransientEngine", "TransientStore", "TransientUnit", "Upsert", "Usage", "UseCount",
]  # fmt: skip
