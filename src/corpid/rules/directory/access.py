"""Access control: who acts, and what each may do; default deny.

Every write below HTTP calls `authorise`. One table says which role may do what to which kind of object, and under which
conditions. Facts that a condition needs and nobody has loaded count as unfavourable. docs/administration.md shows the
table (`make tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import ClassVar, Final, Literal, Self, TypeAlias, get_args

import msgspec

from corpid.rules.characters import printable
from corpid.rules.directory.document import KINDS, Kind
from corpid.rules.directory.records import (
    Administrator,
    AdministratorLevel,
    AdministratorServices,
    Change,
    OperatorLevel,
    ThirdPartyGrant,
)
from corpid.rules.directory.third_parties import AuthorisationSide
from corpid.rules.oauth.api_client import API_SCOPES, ApiScope
from corpid.texts import phrase

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


Action: TypeAlias = Literal["read", "write", "delete"]
OtherKind: TypeAlias = Literal[
    "session", "consent", "lock", "link", "password link", "second factor link", "identity number", "audit", "approval", "withdrawal", "API client",
    "provisioning token", "key", "deployment", "invitation", "deletion request", "access review", "access request",
    "audit export", "audit verification",
]  # fmt: skip
"""kinds of object that are no record of the directory; `lock` is a pause after wrong guesses, to write an `approval` is
to decide on somebody else's change request or to comment on it, to write a `withdrawal` to take back one's own or to
comment on it, to write an `invitation` to send its e-mail again, to delete a `deletion request` to withdraw it, to
write an `access review` to keep somebody's access or to sign the review off, to write an `access request` to ask for a
role of one's own, to read an `audit export` to download entries of the audit as a file, to read an `audit verification`
to have the whole audit compared with its seals"""
ObjectKind: TypeAlias = Kind | OtherKind
Level: TypeAlias = AdministratorLevel | Literal[""]

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
ROLES: Final[tuple[Role, ...]] = get_args(Role)
OBJECT_KINDS: Final[tuple[ObjectKind, ...]] = (*KINDS, *get_args(OtherKind))

RECENT_SECONDS: Final = 900
"""a change by a person needs a sign-in not older than this (D54)"""


class Object(msgspec.Struct, frozen=True, kw_only=True):
    """The object of an action: kind of record, tenant and person.

    None: nobody has looked, and no condition on it holds.
    """

    kind: ObjectKind
    entity_id: str = ""
    """of a grant the client entity, of a third-party row the third party"""
    other_entity_id: str = ""
    """of a grant the third party, of a third-party row the client entity"""
    service_id: str = ""
    user_id: str = ""
    level: Level | None = None
    """the person's level at the entity, as it is"""
    becomes: Level | None = None
    """the person's level at the entity, as it would be"""
    belongs: bool = False
    """whether the person is a member of the entity already"""
    takes_last_owner: bool | None = None
    """whether the entity would have no owner who can act"""
    operates: bool | None = None
    """whether the person is an operator of the deployment, of any level"""
    parameters: bool | None = None
    """whether the role carries parameters"""
    members: frozenset[str] | None = None
    """the members of the record that change"""
    sides: frozenset[AuthorisationSide] = frozenset()
    """the parties to a grant of which each may make this change alone"""
    requester: str = ""
    """of a change request, as the audit names the actor"""
    ends_approval: bool | None = None
    """whether a service that demands approval would no longer do so"""
    moves_address: bool | None = None
    """whether a person's e-mail address, to which links for recovery go, or that of an invitation would be another
    one"""
    invites: bool | None = None
    """whether it is an invitation of somebody who is no person of the directory yet"""
    answers: bool = False
    """whether the person accepts or declines an invitation"""
    has_other_reviewer: bool | None = None
    """whether somebody else could keep the access of the actor in a review"""
    covered: bool | None = None
    """whether an accepted grant covers the role of a third party's person"""


NO_RIGHT: Final = phrase("you do not have permission")


class Forbidden(Exception):
    """No rule allows this actor this action on this object.

    `reason` is a sentence for people, and says nothing about whether anything exists.
    """

    def __init__(self, actor: Actor, action: Action, kind: ObjectKind, reason: str = "") -> None:
        self.reason = reason or NO_RIGHT
        super().__init__(f"{actor.name} may not {action} this {kind}{f': {reason}' if reason else ''}")


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of a rule, and its words for people."""

    holds: Callable[[Actor, Object], bool]
    description: str
    """completes "only …" in docs/administration.md"""
    source: str
    """the decision that asks for it"""
    reason: str
    """the sentence of a refusal"""
    needs_facts: bool = True
    """false if it follows from actor and object alone"""


def _anothers_request(actor: Actor, thing: Object) -> bool:
    own = f"user:{actor.user_id}" if isinstance(actor, EntityAdministrator | DeploymentOperator) else ""
    return bool(thing.requester) and thing.requester not in {own, actor.name}


def _speaking_side(actor: Actor, thing: Object) -> bool:
    parties = {AuthorisationSide.CLIENT_ENTITY: thing.entity_id, AuthorisationSide.THIRD_PARTY: thing.other_entity_id}
    return bool(actor.entity_id) and actor.entity_id in {parties[side] for side in thing.sides}


def _recent(actor: Actor, _thing: Object) -> bool:
    if not isinstance(actor, EntityAdministrator | DeploymentOperator):
        return False
    return 0 <= actor.now - actor.auth_time <= RECENT_SECONDS


def _somebody_else(actor: Actor, thing: Object) -> bool:
    if not isinstance(actor, EntityAdministrator | DeploymentOperator) or not thing.user_id:
        return False
    return actor.user_id != thing.user_id or on_self(actor, thing)


def on_self(actor: Actor, thing: Object) -> bool:
    """Return whether an owner, the only administrator, changes their own.

    The history marks such a change `self`. Source: D54
    """
    return (
        isinstance(actor, EntityAdministrator)
        and actor.user_id == thing.user_id
        and actor.level == "owner"
        and actor.alone
        and thing.kind != "membership"
    )


_REACH: Final[Mapping[AdministratorLevel, frozenset[Level]]] = {
    "owner": frozenset({"", "sub_administrator", "administrator", "owner"}),
    "administrator": frozenset({"", "sub_administrator"}),
    "sub_administrator": frozenset({"", "sub_administrator"}),
}
"""level → levels of the people whose membership and roles it changes (D53)"""
_APPOINTS: Final[Mapping[AdministratorLevel, frozenset[Level]]] = {
    "owner": frozenset({"", "sub_administrator", "administrator", "owner"}),
    "administrator": frozenset({"", "sub_administrator"}),
    "sub_administrator": frozenset(),
}
"""level → levels that it gives; the empty one takes a level away (D53)"""


_BELOW: Final[Mapping[AdministratorLevel, frozenset[Level]]] = {
    "owner": frozenset({"", "sub_administrator", "administrator"}),
    "administrator": frozenset({"", "sub_administrator"}),
    "sub_administrator": frozenset(),
}
"""level → levels of the people whom it helps to sign in (D69)"""


def _no_owner(_actor: Actor, thing: Object) -> bool:
    lower: frozenset[Level | None] = frozenset({"", "sub_administrator", "administrator"})
    return thing.level in lower and thing.becomes in lower


def _listed_service(actor: Actor, thing: Object) -> bool:
    if not isinstance(actor, EntityAdministrator):
        return False
    held = Administrator(user_id=actor.user_id, entity_id=actor.entity_id, level=actor.level, services=actor.services)
    return bool(thing.service_id) and held.serves(thing.service_id)


def _reviewer(actor: Actor, thing: Object) -> bool:
    own = isinstance(actor, EntityAdministrator) and actor.user_id == thing.user_id
    return not own or thing.has_other_reviewer is False


def _scope(scope: ApiScope) -> Condition:
    return Condition(
        holds=lambda actor, _thing: isinstance(actor, ApiClient) and scope in actor.scopes,
        description=f"with the scope `{scope}`",
        source="D59",
        reason=f"the token lacks the scope {scope}",
        needs_facts=False,
    )


OWN: Final = Condition(
    holds=lambda actor, thing: isinstance(actor, Person) and bool(actor.user_id) and actor.user_id == thing.user_id,
    description="of the person's own account",
    source="SECURITY.md",
    reason=phrase("it belongs to somebody else"),
    needs_facts=False,
)
OWN_CHOICE: Final = Condition(
    holds=lambda _, thing: thing.members is not None and thing.members <= {"language", "email"},
    description="the language and the e-mail address",
    source="D61",
    reason=phrase("only an operator can change this"),
)
OWN_REQUEST: Final = Condition(
    holds=lambda actor, thing: bool(thing.requester) and actor.name == thing.requester,
    description="of the actor's own request",
    source="D55",
    reason=phrase("only the person who made a request can withdraw it"),
)
ANOTHERS_REQUEST: Final = Condition(
    holds=_anothers_request,
    description="of another person's request",
    source="D55",
    reason=phrase("nobody can decide on their own request"),
)
SETTINGS: Final = Condition(
    holds=lambda _, thing: thing.members is not None and thing.members <= {"approvals"},
    description="`approvals`",
    source="D55",
    reason=phrase("only an operator can change this member of an entity"),
)
OWN_ENTITY: Final = Condition(
    holds=lambda actor, thing: bool(actor.entity_id) and actor.entity_id == thing.entity_id,
    description="of the actor's own entity",
    source="D54, D59, D60",
    reason=phrase("it does not belong to the entity that you act for"),
    needs_facts=False,
)
EITHER_SIDE: Final = Condition(
    holds=lambda actor, thing: bool(actor.entity_id) and actor.entity_id in {thing.entity_id, thing.other_entity_id},
    description="if the actor's entity is one of the two",
    source="D56",
    reason=OWN_ENTITY.reason,
    needs_facts=False,
)
SPEAKING_SIDE: Final = Condition(
    holds=_speaking_side,
    description="if the actor's entity is the side that decides this: the client entity offers and narrows, the "
    "third party accepts",
    source="D56",
    reason=phrase("only the client entity can offer this, and only the third party can accept it"),
)
COVERED: Final = Condition(
    holds=lambda _, thing: thing.covered is True,
    description="if an accepted grant covers it",
    source="D56",
    reason=phrase("no grant accepted by your entity covers this"),
)
STAYS_STRICT: Final = Condition(
    holds=lambda _, thing: thing.ends_approval is False,
    description="if it does not turn off `approval_required`",
    source="D55",
    reason=phrase("only an operator can end approval for roles at this service"),
)
ADDRESS_STAYS: Final = Condition(
    holds=lambda _, thing: thing.moves_address is False,
    description="if the person's e-mail address stays",
    source="D61",
    reason=phrase("only the person or an operator can change the address for sign-in and recovery"),
)
RECIPIENT_STAYS: Final = Condition(
    holds=lambda _, thing: thing.level == "" or thing.moves_address is False,
    description="if an invitation with a level keeps its address",
    source="D53, D60",
    reason=phrase("the invited person already has a level: revoke the invitation and send a new one, or ask an owner"),
)
RECENT: Final = Condition(
    holds=_recent,
    description="with a sign-in at most 15 minutes old",
    source="D54",
    reason=phrase("a change needs a sign-in within the last 15 minutes: sign in again"),
    needs_facts=False,
)
SOMEBODY_ELSE: Final = Condition(
    holds=_somebody_else,
    description="of another person; an owner who is the only administrator also their own roles and level",
    source="D54",
    reason=phrase("nobody can change their own membership, roles or level"),
)
REVIEWER: Final = Condition(
    holds=_reviewer,
    description="of another person; their own access only if nobody else can review it",
    source="D54",
    reason=phrase("another owner or administrator has to review your own access"),
)
WITHIN_REACH: Final = Condition(
    holds=lambda actor, thing: isinstance(actor, EntityAdministrator) and thing.level in _REACH[actor.level],
    description="of a person of no higher level; an administrator not of an owner or another administrator",
    source="D53",
    reason=phrase("you cannot make changes to a person of this level"),
)
BELOW: Final = Condition(
    holds=lambda actor, thing: isinstance(actor, EntityAdministrator) and thing.level in _BELOW[actor.level],
    description="of a person below the actor's own level",
    source="D69",
    reason=phrase("you can help only people below your own level to sign in"),
)
APPOINTS: Final = Condition(
    holds=lambda actor, thing: isinstance(actor, EntityAdministrator) and thing.becomes in _APPOINTS[actor.level],
    description="up to the level that the actor can appoint: an owner every level, an administrator sub-administrators",
    source="D53",
    reason=phrase("you cannot give this level"),
)
NO_OWNER: Final = Condition(
    holds=_no_owner,
    description="if the person is not an owner before or after it",
    source="D59",
    reason=phrase("only people can appoint owners"),
)
BELONGS: Final = Condition(
    holds=lambda _, thing: thing.belongs,
    description="of a person who is already a member of the entity",
    source="D53, D60, D61",
    reason=phrase("this is only for people who are already members of the entity"),
)
BELONGS_OR_INVITED: Final = Condition(
    holds=lambda _, thing: thing.belongs or thing.invites is True,
    description="of a person who is already a member of the entity, or as an invitation",
    source="D53, D60, D61",
    reason=phrase("people become members by accepting an invitation: invite them"),
)
ANSWERS: Final = Condition(
    holds=lambda _, thing: thing.answers,
    description="by accepting an invitation",
    source="D60",
    reason=phrase("only the entity can give a membership"),
)
LISTED_SERVICE: Final = Condition(
    holds=_listed_service,
    description="at a service in the sub-administrator's list",
    source="D53",
    reason=phrase("you do not administer this service"),
)
OWNER_STAYS: Final = Condition(
    holds=lambda _, thing: thing.takes_last_owner is False,
    description="if an owner who can act remains",
    source="D54",
    reason=phrase("the last owner must stay: appoint another owner first"),
)
NO_OPERATOR: Final = Condition(
    holds=lambda _, thing: thing.operates is False,
    description="of a person who does not operate the deployment",
    source="D53",
    reason=phrase("operators cannot be changed here"),
)
WITHOUT_PARAMETERS: Final = Condition(
    holds=lambda _, thing: thing.parameters is False,
    description="if the role needs no parameters",
    source="D60",
    reason=phrase("provisioning cannot give roles with parameters"),
)
DIRECTORY_READ: Final = _scope("directory.read")
DIRECTORY_WRITE: Final = _scope("directory.write")
CLIENTS_READ: Final = _scope("clients.read")
CLIENTS_WRITE: Final = _scope("clients.write")
AUDIT_READ: Final = _scope("audit.read")
OPERATIONS: Final = _scope("operations")

CONDITIONS: Final = (
    OWN, OWN_CHOICE, OWN_REQUEST, ANOTHERS_REQUEST, SETTINGS, OWN_ENTITY, EITHER_SIDE, SPEAKING_SIDE, COVERED, STAYS_STRICT, ADDRESS_STAYS, RECIPIENT_STAYS, RECENT, SOMEBODY_ELSE, REVIEWER, WITHIN_REACH, BELOW, APPOINTS,
    NO_OWNER, BELONGS, BELONGS_OR_INVITED, ANSWERS, LISTED_SERVICE, OWNER_STAYS, NO_OPERATOR, WITHOUT_PARAMETERS, DIRECTORY_READ, DIRECTORY_WRITE,
    CLIENTS_READ, CLIENTS_WRITE, AUDIT_READ, OPERATIONS,
)  # fmt: skip
"""in the order of docs/administration.md"""


class Rule(msgspec.Struct, frozen=True):
    """Some roles may do this to some kinds, if all conditions hold."""

    roles: tuple[Role, ...]
    actions: tuple[Action, ...]
    kinds: tuple[ObjectKind, ...]
    only: tuple[Condition, ...] = ()


_READ: Final[tuple[Action, ...]] = ("read",)
_WRITE: Final[tuple[Action, ...]] = ("write",)
_CHANGE: Final[tuple[Action, ...]] = ("write", "delete")
_ALL: Final[tuple[Action, ...]] = ("read", "write", "delete")
_AT_ENTITY: Final[tuple[ObjectKind, ...]] = ("membership", "administrator", "assignment", "third-party row")
_OF_PERSON: Final[tuple[ObjectKind, ...]] = ("user", "credentials", "session", *_AT_ENTITY)
_RENEWALS: Final[tuple[ObjectKind, ...]] = ("password link", "second factor link")
"""links that ask for the other factor first; a `link` asks for none"""
_LINKS: Final[tuple[ObjectKind, ...]] = ("link", *_RENEWALS)
_HELP: Final = (OWN_ENTITY, RECENT, BELONGS, BELOW, NO_OPERATOR)
_ANY_LEVEL: Final[tuple[Role, ...]] = ("owner", "administrator", "sub_administrator")
_FULL: Final[tuple[Role, ...]] = ("owner", "administrator")
"""levels that administer all of an entity"""
_BOUND: Final[tuple[Role, ...]] = ("API client of an entity",)
_TOKEN: Final[tuple[Role, ...]] = ("provisioning token",)

_TABLE: Final[tuple[Rule, ...]] = (
    # The operator's own channels: the machine's account is the proof, and the store keeps the last operator (D53).
    Rule(("command line", "file"), _ALL, KINDS),
    Rule(("command line",), _ALL, ("key", "API client", "provisioning token")),
    Rule(("command line",), ("read", "delete"), ("session",)),
    Rule(("command line",), _READ, ("consent", "access review")),
    Rule(("command line",), _WRITE, (*_LINKS, "deployment", "approval", "invitation")),
    Rule(("command line",), _READ, ("audit", "identity number", "deployment", "approval", "lock", "deletion request")),
    Rule(("command line",), ("delete",), ("lock",)),
    # Operators in the browser (D53, D54)
    Rule(("operator",), _READ, OBJECT_KINDS),
    Rule(("operator",), _CHANGE, ("service", "entity", "user", "credentials", "grant", "client"), (RECENT,)),
    Rule(("operator",), _CHANGE, (*_AT_ENTITY, "operator"), (RECENT, SOMEBODY_ELSE)),
    Rule(("operator",), _CHANGE, ("key", "API client", "provisioning token"), (RECENT,)),
    Rule(("operator",), _WRITE, (*_LINKS, "deployment", "invitation"), (RECENT,)),
    Rule(("operator",), _WRITE, ("approval",), (ANOTHERS_REQUEST, RECENT)),
    Rule(("operator",), ("delete",), ("session", "lock"), (RECENT,)),
    Rule(("support",), _READ, ("service", "entity", "grant", "client", "key", "deployment", "approval")),
    Rule(("support",), _READ, ("access review",)),
    Rule(("support",), _READ, (*_OF_PERSON, "lock", "audit"), (NO_OPERATOR,)),
    Rule(("support",), _WRITE, _LINKS, (RECENT, NO_OPERATOR)),
    Rule(("support",), _WRITE, ("invitation",), (RECENT,)),
    Rule(("support",), ("delete",), ("session", "lock"), (RECENT, NO_OPERATOR)),
    Rule(("auditor",), _READ, OBJECT_KINDS),
    # Administrators of an entity (D53, D54, D56, D61, D69). Nobody is made a member who has not accepted it (D60).
    Rule(_ANY_LEVEL, _READ, ("service",)),
    Rule(_ANY_LEVEL, _READ, ("entity", "membership", "administrator"), (OWN_ENTITY,)),
    Rule(_ANY_LEVEL, _READ, ("user",), (OWN_ENTITY, BELONGS)),
    Rule(_FULL, _READ, ("assignment", "audit"), (OWN_ENTITY,)),
    Rule(_FULL, _READ, ("grant", "third-party row"), (EITHER_SIDE,)),
    Rule(("owner",), _READ, ("provisioning token",), (OWN_ENTITY,)),
    Rule(("owner",), _CHANGE, ("provisioning token",), (OWN_ENTITY, RECENT)),
    Rule(
        _FULL,
        _CHANGE,
        ("membership",),
        (OWN_ENTITY, RECENT, SOMEBODY_ELSE, WITHIN_REACH, BELONGS_OR_INVITED, OWNER_STAYS),
    ),
    Rule(_FULL, _CHANGE, ("assignment",), (OWN_ENTITY, RECENT, SOMEBODY_ELSE, WITHIN_REACH)),
    Rule(_FULL, _WRITE, ("third-party row",), (OWN_ENTITY, COVERED, RECENT, SOMEBODY_ELSE, WITHIN_REACH)),
    Rule(_FULL, ("delete",), ("third-party row",), (OWN_ENTITY, RECENT, SOMEBODY_ELSE, WITHIN_REACH)),
    Rule(_FULL, _CHANGE, ("administrator",), (OWN_ENTITY, RECENT, SOMEBODY_ELSE, WITHIN_REACH, APPOINTS, OWNER_STAYS)),
    Rule(_FULL, _WRITE, ("grant",), (SPEAKING_SIDE, RECENT)),
    Rule(_FULL, ("delete",), ("grant",), (EITHER_SIDE, RECENT)),
    Rule(_FULL, _WRITE, ("invitation",), (OWN_ENTITY, RECENT)),
    Rule(_FULL, _WRITE, _RENEWALS, _HELP),
    Rule(_FULL, ("delete",), ("lock",), _HELP),
    Rule(("owner",), _WRITE, ("entity",), (OWN_ENTITY, SETTINGS, RECENT)),
    Rule(_FULL, _READ, ("access review",), (OWN_ENTITY,)),
    Rule(_FULL, _WRITE, ("access review",), (OWN_ENTITY, RECENT, REVIEWER)),
    Rule(_FULL, _READ, ("approval",), (OWN_ENTITY,)),
    Rule(_FULL, _WRITE, ("approval",), (OWN_ENTITY, ANOTHERS_REQUEST, RECENT)),
    Rule(("sub_administrator",), _READ, ("approval",), (OWN_ENTITY, LISTED_SERVICE)),
    Rule(("sub_administrator",), _WRITE, ("approval",), (OWN_ENTITY, LISTED_SERVICE, ANOTHERS_REQUEST, RECENT)),
    Rule(_ANY_LEVEL, _WRITE, ("withdrawal",), (OWN_ENTITY, OWN_REQUEST, RECENT)),
    Rule(("sub_administrator",), _READ, ("assignment",), (OWN_ENTITY, LISTED_SERVICE)),
    Rule(
        ("sub_administrator",),
        _CHANGE,
        ("assignment",),
        (OWN_ENTITY, LISTED_SERVICE, RECENT, SOMEBODY_ELSE, WITHIN_REACH, BELONGS),
    ),
    # People, for themselves
    Rule(("person",), _READ, ("user", *_AT_ENTITY, "session", "consent", "deletion request", "audit"), (OWN,)),
    Rule(("person",), _CHANGE, ("session", "consent", "deletion request"), (OWN,)),
    Rule(("person",), _READ, ("access request",), (OWN,)),
    Rule(("person",), _WRITE, ("access request",), (OWN, BELONGS)),
    Rule(("person",), _WRITE, ("withdrawal",), (OWN_REQUEST,)),
    Rule(("person",), _WRITE, ("credentials",), (OWN,)),
    Rule(("person",), _WRITE, ("user",), (OWN, OWN_CHOICE)),
    Rule(("person",), _CHANGE, ("membership",), (OWN, ANSWERS)),
    Rule(("anonymous",), _WRITE, ("password link",)),
    # Clients of the admin API (D59)
    Rule(("API client",), _READ, ("service", "entity", "user", *_AT_ENTITY, "grant"), (DIRECTORY_READ,)),
    Rule(("API client",), _READ, ("identity number", "deletion request", "consent"), (DIRECTORY_READ,)),
    Rule(("API client",), _CHANGE, ("service",), (DIRECTORY_WRITE, STAYS_STRICT)),
    Rule(("API client",), _CHANGE, ("entity", "grant"), (DIRECTORY_WRITE,)),
    Rule(("API client",), _CHANGE, ("assignment", "third-party row"), (DIRECTORY_WRITE,)),
    Rule(("API client",), _CHANGE, ("user",), (DIRECTORY_WRITE, NO_OPERATOR, OWNER_STAYS, ADDRESS_STAYS)),
    Rule(("API client",), _CHANGE, ("membership",), (DIRECTORY_WRITE, OWNER_STAYS, NO_OWNER)),
    Rule(("API client",), _WRITE, ("invitation",), (DIRECTORY_WRITE,)),
    Rule(("API client",), _CHANGE, ("administrator",), (DIRECTORY_WRITE, NO_OWNER)),
    Rule(("API client",), _READ, ("approval", "access review"), (DIRECTORY_READ,)),
    Rule(("API client",), _WRITE, ("withdrawal",), (DIRECTORY_WRITE, OWN_REQUEST)),
    Rule(("API client",), _READ, ("client",), (CLIENTS_READ,)),
    Rule(("API client",), _CHANGE, ("client",), (CLIENTS_WRITE,)),
    Rule(("API client",), _READ, ("audit",), (AUDIT_READ,)),
    Rule(("API client",), _READ, ("key", "deployment"), (OPERATIONS,)),
    Rule(("API client",), _WRITE, ("key", "deployment"), (OPERATIONS,)),
    Rule(("API client",), ("read", "delete"), ("session", "lock"), (OPERATIONS, NO_OPERATOR)),
    Rule(_BOUND, _READ, ("service",), (DIRECTORY_READ,)),
    Rule(_BOUND, _READ, ("entity", "membership", "administrator", "assignment"), (DIRECTORY_READ, OWN_ENTITY)),
    Rule(_BOUND, _READ, ("user",), (DIRECTORY_READ, OWN_ENTITY, BELONGS)),
    Rule(_BOUND, _READ, ("grant", "third-party row"), (DIRECTORY_READ, EITHER_SIDE)),
    Rule(_BOUND, _CHANGE, ("membership",), (DIRECTORY_WRITE, OWN_ENTITY, BELONGS_OR_INVITED, OWNER_STAYS, NO_OWNER)),
    Rule(_BOUND, _WRITE, ("invitation",), (DIRECTORY_WRITE, OWN_ENTITY)),
    Rule(_BOUND, _CHANGE, ("assignment",), (DIRECTORY_WRITE, OWN_ENTITY)),
    Rule(_BOUND, _WRITE, ("third-party row",), (DIRECTORY_WRITE, OWN_ENTITY, COVERED)),
    Rule(_BOUND, ("delete",), ("third-party row",), (DIRECTORY_WRITE, OWN_ENTITY)),
    Rule(_BOUND, _CHANGE, ("administrator",), (DIRECTORY_WRITE, OWN_ENTITY, NO_OWNER)),
    Rule(_BOUND, _WRITE, ("grant",), (DIRECTORY_WRITE, SPEAKING_SIDE)),
    Rule(_BOUND, ("delete",), ("grant",), (DIRECTORY_WRITE, EITHER_SIDE)),
    Rule(_BOUND, _READ, ("approval", "access review"), (DIRECTORY_READ, OWN_ENTITY)),
    Rule(_BOUND, _WRITE, ("withdrawal",), (DIRECTORY_WRITE, OWN_ENTITY, OWN_REQUEST)),
    Rule(_BOUND, _READ, ("audit",), (AUDIT_READ, OWN_ENTITY)),
    # Provisioning tokens write memberships and plain roles (D60, D61).
    Rule(_TOKEN, _READ, ("service",)),
    Rule(_TOKEN, _READ, ("entity", "membership"), (OWN_ENTITY,)),
    Rule(_TOKEN, _READ, ("user",), (OWN_ENTITY, BELONGS)),
    Rule(_TOKEN, _CHANGE, ("membership",), (OWN_ENTITY, BELONGS_OR_INVITED, OWNER_STAYS, RECIPIENT_STAYS)),
    Rule(_TOKEN, _WRITE, ("invitation",), (OWN_ENTITY,)),
    Rule(_TOKEN, _ALL, ("assignment",), (OWN_ENTITY, WITHOUT_PARAMETERS)),
)

RULES: Final[Mapping[tuple[Role, Action, ObjectKind], tuple[Condition, ...]]] = {
    (role, action, kind): rule.only
    for rule in _TABLE
    for role in rule.roles
    for action in rule.actions
    for kind in rule.kinds
}
"""(role, action, kind) → conditions, which all have to hold; a triple that is not here is refused"""
RULES_WRITTEN: Final = sum(len(rule.roles) * len(rule.actions) * len(rule.kinds) for rule in _TABLE)
"""the number of triples in the table: equal to `RULES` without duplicates"""


def side_of(actor: Actor, grant: ThirdPartyGrant) -> AuthorisationSide | None:
    """Return the side that an actor speaks for; None: both, or neither. Source: D56."""
    parties = {grant.client_entity_id: AuthorisationSide.CLIENT_ENTITY, grant.entity_id: AuthorisationSide.THIRD_PARTY}
    return parties.get(actor.entity_id)


def refuse_early(actor: Actor, action: Action, thing: Object) -> None:
    """Raise Forbidden if no fact could allow the action.

    Asked before anything is looked up, so that a refusal says nothing about what there is. Source: D59, D61
    """
    _authorise(actor, action, thing, early=True)


def authorise(actor: Actor, action: Action, thing: Object) -> None:
    """Return if a rule allows it.

    Raises Forbidden with a reason for everything else. Source: SECURITY.md; D53, D54, D59, D60, D61
    """
    _authorise(actor, action, thing, early=False)


def _authorise(actor: Actor, action: Action, thing: Object, *, early: bool) -> None:
    conditions = RULES.get((actor.role, action, thing.kind))
    if conditions is None:
        raise Forbidden(actor, action, thing.kind)
    for condition in conditions:
        if not (early and condition.needs_facts) and not condition.holds(actor, thing):
            raise Forbidden(actor, action, thing.kind, condition.reason)


def find_obstacle(actor: Actor, action: Action, thing: Object, *, unruled: Condition) -> Condition | None:
    """The condition that keeps an actor from an action, for its page.

    None if nothing does, but perhaps a sign-in that is too old; `unruled` if the actor's role has no such right at all.
    Source: D53, D54, D69
    """
    conditions = RULES.get((actor.role, action, thing.kind))
    if conditions is None:
        return unruled
    return next((each for each in conditions if each is not RECENT and not each.holds(actor, thing)), None)
