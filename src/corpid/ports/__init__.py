"""Interfaces that the flows need of stores and other systems.

Registry stores lasting records, TransientStore entries that live for minutes. A port exists only where the
world can differ. Times are epoch seconds, lifetimes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from corpid.ports.audit import ACTOR_KINDS, Audit, AuditEntry, AuditEvent, AuditQuery, CommandUser
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
from corpid.ports.registry import (
    Account,
    Change,
    Clients,
    CodeGuessCounts,
    Conflict,
    Delete,
    Deployment,
    Directory,
    FactorChange,
    Factors,
    FetchedKeySet,
    Keys,
    Link,
    LinkPurpose,
    MissingReference,
    NameRefused,
    NameTaken,
    R,
    Registry,
    SealedKey,
    SecretUnreadable,
    Session,
    SessionPurpose,
    Sessions,
    SignOut,
    Upsert,
    Usage,
    UseCount,
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
    "ACTOR_KINDS", "COMMAND_LINE", "Account", "Audit", "AuditEntry", "AuditEvent", "AuditQuery", "Change", "ClientKeys", "Clients", "Clock",
    "CodeGuessCounts", "CommandUser", "Conflict", "Delete", "Deployment", "Directory", "EngineCondition", "FactorChange", "Factors",
    "FetchedKeySet", "HashingSource", "KeySetUnavailable", "Keys", "Letter", "Link", "LinkPurpose", "Mail",
    "MissingReference", "NameRefused", "NameTaken", "Passwords", "PasswordsBusy", "R", "Registry", "SealedKey",
    "SecretUnreadable", "Session", "SessionPurpose", "Sessions", "SignOut", "StoreUnavailable", "TransientEngine",
    "TransientStore", "TransientUnit", "Upsert", "Usage", "UseCount",
]  # fmt: skip
