"""Interfaces that the flows need of stores and other systems.

Registry stores lasting records, TransientStore entries that live for minutes. A port exists only where the
world can differ. Times are epoch seconds, lifetimes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from corpid.ports.answers import Answers, StoredAnswer
from corpid.ports.audit import ACTOR_KINDS, Audit, AuditEntry, AuditEvent, AuditQuery, AuditSeals, StoredEntry
from corpid.ports.outbound import (
    COMMAND_LINE,
    ClientKeys,
    HashingSource,
    HasKeys,
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
    ApiClients,
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
    FetchedKeySets,
    Keys,
    MissingReference,
    NameRefused,
    NameTaken,
    NobodyRemains,
    R,
    Registry,
    Remains,
    RolesUnder,
    SecretUnreadable,
    Seen,
    Sessions,
    SignOut,
    Upsert,
    Usage,
    Written,
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
    "ACTOR_KINDS", "COMMAND_LINE", "Account", "Answers", "ApiClients", "Audit", "AuditEntry", "AuditEvent",
    "AuditQuery", "AuditSeals", "Change", "ChangedMeanwhile", "ClientKeys", "Clients", "Clock", "CodeGuessCounts",
    "Conflict", "Delete", "Deployment", "Directory", "EngineCondition", "FactorChange", "Factors", "FetchedKeySet",
    "FetchedKeySets", "HasKeys", "HashingSource", "KeySetUnavailable", "Keys", "Letter", "Link", "LinkPurpose",
    "Mail", "MissingReference", "NameRefused", "NameTaken", "NobodyRemains", "Passwords", "PasswordsBusy", "R",
    "Registry", "Remains", "RolesUnder", "SealedKey", "SecretUnreadable", "Seen", "Session", "SessionFactors",
    "SessionPurpose", "Sessions", "SignOut", "StoreUnavailable", "StoredAnswer", "StoredEntry", "TransientEngine",
    "TransientStore", "TransientUnit", "Upsert", "Usage", "UseCount", "Written",
]  # fmt: skip
