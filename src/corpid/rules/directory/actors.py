"""Actors: everybody who reads or changes something below HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import ClassVar, Final, Literal, Self, TypeAlias

import msgspec

from corpid.rules.characters import printable
from corpid.rules.directory.records import AdministratorLevel, AdministratorServices, Change, OperatorLevel
from corpid.rules.oauth.api_client import API_SCOPES, ApiScope

Role: TypeAlias = Literal[
    "command line", "file", "operator", "support", "auditor", "owner", "administrator", "sub_administrator", "person",
    "API client", "API client of an entity", "provisioning token", "anonymous",
]  # fmt: skip
"""kind or level of an actor, as in the rules of access"""
ALL_SCOPES: Final[frozenset[ApiScope]] = frozenset(API_SCOPES)
ACTOR_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "user": "person",
        "operator": "operator",
        "client": "program",
        "token": "program",
        "file": "operator",
        "command": "operator",
        "system": "system",
        "anonymous": "unknown",
    }
)
"""kind of actor in the audit → all that the person whom an entry concerns reads of it (D57): a person, an operator in
the browser, an API client, a provisioning token, a directory file, the command line, CorpID itself, or nobody known"""


SYSTEM: Final = "system"
"""the audit's name for CorpID itself"""


class _Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Details of an actor for the audit, besides its name (D57)."""

    request_id: str = ""
    """of the request that they make"""
    address: str = ""
    """where the request comes from"""
    reason: str = ""
    """why they do it, as they say"""

    named: ClassVar[str]
    """the form of its name"""

    @property
    def name(self) -> str:
        """The actor as the audit table writes it."""
        return self.named.format(self)

    @property
    def entity_id(self) -> str:
        """The only entity for which they act; empty without one."""
        return ""

    @property
    def detail(self) -> dict[str, str]:
        """The address of the request and the reason, those that are known."""
        detail = {"address": self.address, "reason_given": self.reason}
        return {name: value for name, value in detail.items() if value}


class CommandLine(_Actor, frozen=True, kw_only=True):
    """A command of the operator, who has an account of the machine (D54)."""

    by: str
    """user@host, as the operating system says"""
    role: ClassVar[Role] = "command line"
    named: ClassVar[str] = "command:{0.by}"


class DirectoryFile(_Actor, frozen=True, kw_only=True):
    """A directory file that the operator applies (D57)."""

    file: str
    """its name, printable"""
    sha256: str
    by: CommandLine
    role: ClassVar[Role] = "file"
    named: ClassVar[str] = "file:{0.file}"

    @classmethod
    def from_content(cls, file: str, content: bytes, *, by: CommandLine) -> Self:
        """Return a file as the actor of its changes."""
        return cls(file=printable(file), sha256=sha256(content).hexdigest(), by=by)

    @property
    def detail(self) -> dict[str, str]:
        """The file's digest, and who applies it."""
        return {"sha256": self.sha256, "by": self.by.by, **self.by.detail}


class Person(_Actor, frozen=True):
    """A signed-in person, acting on their own account."""

    user_id: str
    role: ClassVar[Role] = "person"
    named: ClassVar[str] = "user:{0.user_id}"


class EntityAdministrator(_Actor, frozen=True, kw_only=True):
    """A person who administers the one entity chosen at sign-in (D54)."""

    user_id: str
    entity_id: str
    level: AdministratorLevel
    services: AdministratorServices
    alone: bool
    """whether the actor is the only one with a level there"""
    only_approver: bool = False
    """whether no other owner or administrator is there, who could approve what the actor requests"""
    auth_time: float
    now: float
    written: list[Change] = msgspec.field(default_factory=list)
    """what they have changed or requested in this request, to be undone (D80)"""
    named: ClassVar[str] = "user:{0.user_id}"

    @property
    def role(self) -> Role:
        """The level, for which rules are written."""
        return self.level


class DeploymentOperator(_Actor, frozen=True, kw_only=True):
    """A person who operates the deployment, in the browser (D53)."""

    user_id: str
    level: OperatorLevel
    auth_time: float
    now: float
    named: ClassVar[str] = "operator:{0.user_id}"

    @property
    def role(self) -> Role:
        """The level, for which rules are written."""
        return self.level


class ApiClient(_Actor, frozen=True, kw_only=True):
    """A client of the admin API, with the scopes of its token (D59)."""

    client_id: str
    scopes: frozenset[ApiScope]
    entity_id: str = ""
    """the entity that it is bound to"""
    named: ClassVar[str] = "client:{0.client_id}"

    @property
    def role(self) -> Role:
        """One of two roles: bound to an entity or not."""
        return "API client of an entity" if self.entity_id else "API client"


class ProvisioningToken(_Actor, frozen=True, kw_only=True):
    """A bearer token of SCIM, which chooses one entity (D60)."""

    token_id: str
    entity_id: str
    role: ClassVar[Role] = "provisioning token"
    named: ClassVar[str] = "token:{0.token_id}"


class Anonymous(_Actor, frozen=True):
    """A caller that is not authenticated."""

    role: ClassVar[Role] = "anonymous"
    named: ClassVar[str] = "anonymous"


Actor: TypeAlias = (
    CommandLine
    | DirectoryFile
    | Person
    | EntityAdministrator
    | DeploymentOperator
    | ApiClient
    | ProvisioningToken
    | Anonymous
)

ANONYMOUS: Final = Anonymous()
