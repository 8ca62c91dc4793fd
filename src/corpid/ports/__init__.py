"""Interfaces that the flows need of stores and other systems.

Registry stores lasting records, TransientStore entries that live for minutes. A port exists only where the
world can differ. Times are epoch seconds, lifetimes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from corpid.ports.access_reviews import AccessReviews
from corpid.ports.audit import (
    Audit,
    AuditEntry,
    AuditEvent,
    AuditPart,
    AuditQuery,
    AuditSeals,
    AuditTarget,
    StoredEntry,
    StreamFailed,
    StreamInterrupted,
)
from corpid.ports.client_clocks import ClientClocks
from corpid.ports.client_refusals import ClientRefusal, ClientRefusals
from corpid.ports.clients import ApiClients, Clients, FetchedKeySets
from corpid.ports.conflicts import (
    ChangedMeanwhile,
    Conflict,
    ExternalIdTaken,
    LastOwnerRemoved,
    MemberNameTaken,
    MissingReference,
    NameRefused,
    NameTaken,
)
from corpid.ports.consents import Consents
from corpid.ports.deployment import Deployment
from corpid.ports.email_changes import EmailChange, EmailChanges, Finished
from corpid.ports.emails import Action, Address, Code, Email, Facts, RenderedEmail
from corpid.ports.hourly_counts import CountOfReason, HourlyCount, HourlyCounts
from corpid.ports.idempotency import IdempotencyKeys, StoredResponse
from corpid.ports.invitations import Invitations, OpenInvitation
from corpid.ports.keys import Keys
from corpid.ports.notices import NoticeGroup, Notices
from corpid.ports.outbound import (
    COMMAND_LINE,
    ClientKeys,
    EmailDelayed,
    HashingSource,
    HasKeys,
    KeySetUnavailable,
    Mail,
    MailDelayed,
    MailRefused,
    NetworkNames,
    Passwords,
    PasswordsBusy,
    SenderRefused,
)
from corpid.ports.provisioning import MemberQuery, MemberSearch, MemberState, Provisioning, StoredMember
from corpid.ports.records import (
    Account,
    FetchedKeySet,
    Link,
    LinkPurpose,
    Session,
    SessionFactors,
    SessionPurpose,
)
from corpid.ports.registry import (
    REGISTRY_PARTS,
    Accept,
    AccessUnder,
    Change,
    CodeGuessCounts,
    Delete,
    Directory,
    FactorChange,
    Factors,
    LastOwnerInvariant,
    Precondition,
    R,
    Registry,
    RolesUnder,
    SecretUnreadable,
    Sessions,
    SignOut,
    Upsert,
    Written,
)
from corpid.ports.server_processes import ServerProcesses
from corpid.ports.transient import (
    EngineCondition,
    OrderlyStopRefused,
    OrderlyStops,
    PipelinedVerb,
    StoreUnavailable,
    TransientBatch,
    TransientEngine,
    TransientStore,
)
from corpid.ports.usage import Usage, UseCount

if TYPE_CHECKING:
    from collections.abc import Callable

Clock: TypeAlias = "Callable[[], float]"

__all__ = [
    "COMMAND_LINE",
    "REGISTRY_PARTS",
    "Accept",
    "AccessReviews",
    "AccessUnder",
    "Account",
    "Action",
    "Address",
    "ApiClients",
    "Audit",
    "AuditEntry",
    "AuditEvent",
    "AuditPart",
    "AuditQuery",
    "AuditSeals",
    "AuditTarget",
    "Change",
    "ChangedMeanwhile",
    "ClientClocks",
    "ClientKeys",
    "ClientRefusal",
    "ClientRefusals",
    "Clients",
    "Clock",
    "Code",
    "CodeGuessCounts",
    "Conflict",
    "Consents",
    "CountOfReason",
    "Delete",
    "Deployment",
    "Directory",
    "Email",
    "EmailChange",
    "EmailChanges",
    "EmailDelayed",
    "EngineCondition",
    "ExternalIdTaken",
    "FactorChange",
    "Factors",
    "Facts",
    "FetchedKeySet",
    "FetchedKeySets",
    "Finished",
    "HasKeys",
    "HashingSource",
    "HourlyCount",
    "HourlyCounts",
    "IdempotencyKeys",
    "Invitations",
    "KeySetUnavailable",
    "Keys",
    "LastOwnerInvariant",
    "LastOwnerRemoved",
    "Link",
    "LinkPurpose",
    "Mail",
    "MailDelayed",
    "MailRefused",
    "MemberNameTaken",
    "MemberQuery",
    "MemberSearch",
    "MemberState",
    "MissingReference",
    "NameRefused",
    "NameTaken",
    "NetworkNames",
    "NoticeGroup",
    "Notices",
    "OpenInvitation",
    "OrderlyStopRefused",
    "OrderlyStops",
    "Passwords",
    "PasswordsBusy",
    "PipelinedVerb",
    "Precondition",
    "Provisioning",
    "R",
    "Registry",
    "RenderedEmail",
    "RolesUnder",
    "SecretUnreadable",
    "SenderRefused",
    "ServerProcesses",
    "Session",
    "SessionFactors",
    "SessionPurpose",
    "Sessions",
    "SignOut",
    "StoreUnavailable",
    "StoredEntry",
    "StoredMember",
    "StoredResponse",
    "StreamFailed",
    "StreamInterrupted",
    "TransientBatch",
    "TransientEngine",
    "TransientStore",
    "Upsert",
    "Usage",
    "UseCount",
    "Written",
]  # fmt: skip
