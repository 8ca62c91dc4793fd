"""Records of the directory: people, entities, services, roles and third parties.

Frozen structs. What each field is to every door, its `Field` says. Dates are ISO text (YYYY-MM-DD), inclusive, in the
deployment's time zone (D23); `0001-01-01` means always, `9999-12-31` without end. Each record names its key in `key`.
In the end, changes of the registry's records, and the conflicts that refuse them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

import msgspec

from corpid.rules import readers
from corpid.rules.audit import ROLE_PARTS, AuditAction, AuditEvent
from corpid.rules.authentication.records import Credentials, PersonFactors
from corpid.rules.authentication.throttling import CodeGuesses
from corpid.rules.directory import values
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.values import (
    NO_BEGINNING,
    NO_END,
    Parameter,
    ParameterDefinition,
    RoleDescription,
    parameter_values,
)
from corpid.rules.fields import PERSON, Disclosure, Field, KeyedRecord, fields_of
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from corpid.rules.readers import Reader

EntityType = Literal["UEN", "NON-UEN", "GSTN"]
EntityStatus = Literal["Registered", "Deregistered", "Withdrawn", ""]
AccountType = Literal["standard", "foreign"]
SubEntityRule = Literal["none", "optional", "mandatory"]
AdministratorLevel: TypeAlias = Literal["owner", "administrator", "sub_administrator"]
Approvals: TypeAlias = Literal["none", "roles", "all"]
RequestState: TypeAlias = Literal["pending", "approved", "declined", "withdrawn", "expired"]
GrantState: TypeAlias = Literal["offered", "accepted"]
Verb: TypeAlias = Literal["add", "change", "remove"]
OperatorLevel: TypeAlias = Literal["operator", "support", "auditor"]
AdministratorServices: TypeAlias = tuple[str, ...] | Literal["all"]
"""the services at which a sub-administrator gives roles; no service by an empty list, every one by the word alone"""


ENTITY_STATUSES: Final[Mapping[EntityStatus, Phrase]] = MappingProxyType(
    {
        "Registered": phrase("Registered"),
        "Deregistered": phrase("Deregistered"),
        "Withdrawn": phrase("Withdrawn"),
        "": phrase("unknown"),
    }
)
APPROVALS: Final[Mapping[Approvals, Phrase]] = MappingProxyType(
    {
        "none": phrase("Nothing needs approval"),
        "roles": phrase("Access, administrators and third parties need approval"),
        "all": phrase("Every change needs approval, including memberships"),
    }
)
ADMINISTRATOR_LEVELS: Final[Mapping[AdministratorLevel, Phrase]] = MappingProxyType(
    {
        "owner": phrase("Owner"),
        "administrator": phrase("Administrator"),
        "sub_administrator": phrase("Sub-administrator"),
    }
)
_ENTITY_TYPE: Final = readers.one_of(*get_args(EntityType))
_ENTITY_STATUS: Final = readers.one_of(*filter(None, get_args(EntityStatus)), empty=True)
_ROLE_NAME: Final = readers.name(values.ROLE_CHARACTERS)
_ENTITY_NAME: Final = readers.name(200)
_SERVICE_NAME: Final = readers.name(100)

UserReference: TypeAlias = Annotated[str, Field(key="user", read=values.login, needed=True, identifies=True)]
"""a user name in documents, the person's identifier in the record"""
MemberEntity: TypeAlias = Annotated[str, Field(key="entity", read=values.ENTITY_ID, needed=True, identifies=True)]
"""of what ends with a membership"""
EntityReference: TypeAlias = Annotated[
    str, Field(key="entity", read=values.ENTITY_ID, needed=True, refers="entities.entity_id", identifies=True)
]
ClientEntityReference: TypeAlias = Annotated[
    str, Field(key="client_entity", read=values.ENTITY_ID, needed=True, refers="entities.entity_id", identifies=True)
]
ServiceReference: TypeAlias = Annotated[
    str, Field(key="service", read=values.SERVICE_ID, needed=True, refers="services.service_id", identifies=True)
]
RoleName: TypeAlias = Annotated[
    str,
    Field(help="One of the service's roles, if it has any.", read=values.ROLE, label=phrase("Role"), identifies=True),
]
SubEntity: TypeAlias = Annotated[
    str,
    Field(
        help="Part of the entity that the role or grant is for.",
        read=values.SUB_ENTITY,
        label=phrase("Part of the organisation"),
        identifies=True,
    ),
]
RowReference: TypeAlias = Annotated[
    str,
    Field(
        help="Distinguishes a role or grant from an otherwise identical one.",
        read=readers.line_of_text(32),
        label=phrase("Reference"),
        identifies=True,
    ),
]
StartDate: TypeAlias = Annotated[
    str, Field(help="First day of the role or grant, such as 2027-01-01.", read=readers.day, label=phrase("From"))
]
EndDate: TypeAlias = Annotated[
    str, Field(help="Last day of the role or grant, such as 2027-12-31.", read=readers.day, label=phrase("Until"))
]
Parameters: TypeAlias = Annotated[
    tuple[Parameter, ...],
    Field(
        help="A parameter of the service.",
        read=values.row_parameters,
        write=values.write_row_parameters,
        label=phrase("Details"),
    ),
]
Switch: TypeAlias = Annotated[bool, Field(read=readers.yes_or_no)]


class Entity(KeyedRecord, frozen=True, kw_only=True):
    """An organisation (R-12.4).

    `entity_id` is the number that RPs see (at most 10 characters, R-14.2).
    """

    entity_id: Annotated[
        str,
        Field(
            read=values.ENTITY_ID, identifies=True, searched=True, form_label=phrase("Identifier"),
            hint=phrase("Services see it. It never changes: usually the registration number."),
            remedy=phrase("Use 1 to 10 letters, digits, full stops, hyphens or underscores."),
        ),
    ]  # fmt: skip
    type: Annotated[
        EntityType,
        Field(
            read=_ENTITY_TYPE, needed=True, form_label=phrase("Kind of registration"),
            choices={
                "UEN": phrase("Registered in this country (UEN)"),
                "NON-UEN": phrase("Foreign (NON-UEN)"),
                "GSTN": phrase("Tax registration only (GSTN)"),
            },
            remedy=phrase("Choose how the organisation is registered."),
        ),
    ]  # fmt: skip
    registration_number: Annotated[
        str,
        Field(
            help="The entity's number in the register; by default the identifier of a UEN entity.",
            read=readers.registered_number(50),
            label=phrase("Registration number"),
            searched=True,
            default_doc="the identifier",
        ),
    ]
    country: Annotated[
        str,
        Field(help='Country of registration, two letters.',
            read=values.country, needed=True, label=phrase("Country"),
            hint=phrase("Its code of two capital letters, such as SG."),
            remedy=phrase("Enter the country's code of two capital letters, such as SG."),
        ),
    ]  # fmt: skip
    """ISO 3166-1 alpha-2"""
    name: Annotated[
        str,
        Field(help="The entity's registered name.",
            read=_ENTITY_NAME, needed=True, searched=True, label=phrase("Name"),
            remedy=phrase("Enter the name of the organisation, in at most {count} characters.", count=_ENTITY_NAME.most),
        ),
    ]  # fmt: skip
    status: Annotated[
        EntityStatus,
        Field(
            read=_ENTITY_STATUS, label=phrase("Status in the register"), form_label=phrase("Status"),
            choices=ENTITY_STATUSES, remedy=phrase("Choose one of the statuses."),
        ),
    ] = ""  # fmt: skip
    enabled: Switch = True
    approvals: Annotated[
        Approvals,
        Field(help='Changes that another administrator approves.',
            read=readers.one_of(*APPROVALS), label=phrase("Changes that need approval"), added=True,
            form_label=phrase("Approvals"), choices=APPROVALS, remedy=phrase("Choose what needs approval."),
        ),
    ] = "none"  # fmt: skip
    """which changes by its own administrators need another one's approval (D55)"""

    def name_for(self, reader: str) -> str:
        """The name as an entity reads it.

        That of another entity has its identifier: two may have one name. An empty `reader` is none. Source: D68
        """
        return self.name if reader == self.entity_id else f"{self.name} ({self.entity_id})"


class User(KeyedRecord, frozen=True, kw_only=True):
    """A person. `user_id` is a UUID, stable across entities and clients (R-12.4)."""

    user_id: Annotated[
        str,
        Field(
            key="id", read=values.stable_id, identifies=True, default_doc="generated",
            doc="UUID, which relying parties see and which never changes; with another user name, the person is renamed",
        ),
    ]  # fmt: skip
    user_name: Annotated[str, Field(read=values.login, searched=True, disclosure=Disclosure.PERSONAL)]
    name: Annotated[
        str,
        Field(
            help="The person's full name.", read=readers.name(200), needed=True, searched=True,
            disclosure=Disclosure.PERSONAL,
        ),
    ]  # fmt: skip
    email: Annotated[
        str, Field(help="E-mail address.", read=values.email, searched=True, disclosure=Disclosure.PERSONAL)
    ] = ""
    language: Annotated[str, Field(help="Language of the pages, such as en.", read=values.language)] = "en"
    identity_number: Annotated[
        str, Field(help="Identity number.", read=readers.registered_number(32), disclosure=Disclosure.MASKED)
    ] = ""
    identity_country: Annotated[
        str, Field(help="Country that issued it, two letters.", read=values.country_or_empty)
    ] = ""
    account_type: Annotated[
        AccountType,
        Field(
            help="The kind of account.",
            read=readers.one_of(*get_args(AccountType)),
            choices={"standard": phrase("Standard account"), "foreign": phrase("Foreign account")},
        ),
    ] = "standard"
    enabled: Switch = True
    placeholder: Annotated[bool, Field(disclosure=Disclosure.MARK, added=True)] = False
    """placeholder of a person who has not accepted an invitation: disabled, cannot sign in (D60)"""


DUE: Final = 0
NOT_TO_BE_SENT: Final = -1


ENTERPRISE_USER: Final = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
"""the extension of SCIM's User for people of an organisation (RFC 7643 §4.3)"""


_DETAIL: Final = readers.detail(200)


def _detail(
    label: Phrase, help_text: str, scim: str, read: Reader = _DETAIL, *, in_documents: bool = True,
    remedy: Phrase | None = None, searched: bool = True,
) -> Field:  # fmt: skip
    """A text that an entity writes about a member."""
    return Field(
        read=read, in_documents=in_documents, label=label, help=help_text, scim=scim, remedy=remedy,
        searched=searched, disclosure=Disclosure.PERSONAL, added=True,
    )  # fmt: skip


class MemberDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Details that an entity writes about a member (D61, D84).

    Each may be empty. What documents do not write identifies, names or reaches the person, and has rules of its own.
    The others are plain: a new one is stored, searched, shown and exchanged by its declaration alone.
    """

    user_name: Annotated[
        str,
        _detail(
            phrase("User name"), "What the entity calls the member; by default the address.", "userName",
            readers.line_of_text(200, joiners=False), in_documents=False,
        ),
    ] = ""  # fmt: skip
    """unique in the entity, capital and small letters alike"""
    external_id: Annotated[
        str,
        _detail(
            phrase("Identifier in your system"), "The member's identifier in another system.", "externalId",
            values.foreign_identifier, in_documents=False, searched=False,
        ),
    ] = ""  # fmt: skip
    """unique in the entity"""
    name: Annotated[
        str,
        _detail(
            phrase("Name"), "The person's name, as the entity writes it.", "displayName", in_documents=False,
            remedy=phrase("Enter the name of the person."),
        ),
    ] = ""  # fmt: skip
    given_name: Annotated[
        str,
        _detail(phrase("Given name"), "The person's given name.", "name.givenName", in_documents=False, searched=False),
    ] = ""
    family_name: Annotated[
        str,
        _detail(
            phrase("Family name"), "The person's family name.", "name.familyName", in_documents=False, searched=False
        ),
    ] = ""
    email: Annotated[
        str,
        _detail(
            phrase("E-mail address"), "The address that the invitation goes to.", "emails",
            values.MEMBER_EMAIL, in_documents=False, remedy=phrase("Enter an e-mail address such as name@example.com."),
        ),
    ] = ""  # fmt: skip
    department: Annotated[
        str,
        _detail(phrase("Department"), "The department that the person works in.", f"{ENTERPRISE_USER}:department"),
    ] = ""
    job_title: Annotated[str, _detail(phrase("Job title"), "The person's job title.", "title")] = ""


class Membership(MemberDetails, KeyedRecord, frozen=True, kw_only=True):
    """A person may act for an entity, once an invitation is accepted.

    What the entity writes about the person are members of this record; it never changes the person (D61). Moments are
    epoch seconds.
    """

    user_id: Annotated[str, Field(key="user", read=values.login, needed=True, refers="users.user_id", identifies=True)]
    entity_id: EntityReference
    enabled: Annotated[bool, Field(read=readers.yes_or_no, label=phrase("May sign in for the organisation"))] = True
    membership_id: Annotated[str, Field(disclosure=Disclosure.BOOKKEEPING, added=True)] = ""
    """a UUID, unique; given by the store, and the same before and after acceptance (D60)"""
    invited: Annotated[bool, Field(disclosure=Disclosure.MARK, added=True)] = False
    """whether it is not accepted yet: the person is a placeholder, and it has no effect (D60)"""
    created_at: Annotated[int, Field(disclosure=Disclosure.BOOKKEEPING, added=True)] = 0
    """0: not known"""
    changed_at: Annotated[int, Field(disclosure=Disclosure.BOOKKEEPING, added=True)] = 0
    """when the entity changed a member last; 0: not known"""
    invitation_sent_at: Annotated[int, Field(disclosure=Disclosure.BOOKKEEPING, added=True)] = DUE
    """the invitation's moment, DUE or NOT_TO_BE_SENT; of no meaning once it is accepted"""


class Service(KeyedRecord, frozen=True, kw_only=True):
    """An entity service: roles, parameters and the entities that may use it.

    Source: R-20
    """

    service_id: Annotated[str, Field(read=values.SERVICE_ID, identifies=True, searched=True)]
    name: Annotated[
        str,
        Field(help="The service's name.",
            read=_SERVICE_NAME, needed=True, searched=True, form_label=phrase("Name"),
            remedy=phrase("Enter a name of at most {count} characters.", count=_SERVICE_NAME.most),
        ),
    ]  # fmt: skip
    description: Annotated[
        str,
        Field(help='What the service is for, in a sentence.',
            read=values.DESCRIPTION, added=True, form_label=phrase("Description"),
            hint=phrase("What it is for, in a sentence."),
        ),
    ] = ""  # fmt: skip
    """what it is for, in a sentence"""
    roles: Annotated[
        tuple[str, ...], Field(help="A role that people can have.", read=readers.ListReader(_ROLE_NAME))
    ] = ()
    role_descriptions: Annotated[
        tuple[RoleDescription, ...],
        Field(
            help="What a role lets people do.",
            read=values.role_descriptions,
            write=values.write_role_descriptions,
            added=True,
        ),
    ] = ()
    parameters: Annotated[
        tuple[ParameterDefinition, ...],
        Field(
            help="A parameter of roles, such as Limit=number or Limit=number,mandatory.",
            read=values.parameter_definitions,
            write=values.write_parameter_definitions,
        ),
    ] = ()
    third_parties: Annotated[
        bool, Field(read=readers.yes_or_no, help="Entities may let third parties act for them.")
    ] = False
    sub_entity: Annotated[
        SubEntityRule,
        Field(
            help="If roles are for a part of an entity.",
            read=readers.one_of(*get_args(SubEntityRule)),
            choices={"none": phrase("Never"), "optional": phrase("Possible"), "mandatory": phrase("Required")},
        ),
    ] = "none"
    entity_types: Annotated[
        tuple[EntityType, ...],
        Field(
            help="A type of the entities that may use the service.",
            default_doc="all",
            read=readers.ListReader(_ENTITY_TYPE, least=1),
        ),
    ] = (
        "UEN",
        "NON-UEN",
        "GSTN",
    )
    entity_statuses: Annotated[
        tuple[EntityStatus, ...],
        Field(
            help="A status of the entities that may use the service, '' for none.",
            read=readers.ListReader(_ENTITY_STATUS, least=1),
        ),
    ] = (
        "Registered",
        "",
    )
    enabled: Switch = True
    approval_required: Annotated[
        bool,
        Field(
            help="Roles at the service need approval, at every entity.", read=readers.yes_or_no, added=True,
            form_label=phrase("Roles need approval at every organisation"),
            hint=phrase("A second administrator of the organisation approves each of them."),
        ),
    ] = False  # fmt: skip
    """whether roles at it need approval at every entity (D55)"""


def names_user(record: type[msgspec.Struct]) -> bool:
    """Return whether documents name the person whom such a record is about."""
    return any(each.key == "user" for each in fields_of(record).values())


class GroupRole(msgspec.Struct, frozen=True, kw_only=True):
    """A role at a service that needs no parameters (D60).

    It is a group of SCIM.
    """

    service_id: str
    role: str


class Assignment(KeyedRecord, frozen=True, kw_only=True):
    """A person's role for an entity at a service.

    `ref` distinguishes otherwise equal rows.
    """

    user_id: UserReference
    entity_id: MemberEntity
    service_id: ServiceReference
    role: RoleName = ""
    sub_entity: SubEntity = ""
    ref: RowReference = ""
    start_date: StartDate = NO_BEGINNING
    end_date: EndDate = NO_END
    parameters: Parameters = ()


class ThirdPartyGrant(KeyedRecord, frozen=True, kw_only=True):
    """A client entity's authorisation of a third party.

    A blank role or sub-entity grants any. It gives nothing until the third party has accepted it (D56).
    """

    client_entity_id: ClientEntityReference
    entity_id: Annotated[
        str, Field(key="third_party", read=values.ENTITY_ID, needed=True, refers="entities.entity_id", identifies=True)
    ]
    service_id: ServiceReference
    role: Annotated[
        str,
        Field(
            read=values.ROLE, label=phrase("Role"), help="One of the service's roles; by default any.", identifies=True
        ),
    ] = ""
    sub_entity: SubEntity = ""
    ref: RowReference = ""
    start_date: StartDate = NO_BEGINNING
    end_date: EndDate = NO_END
    parameters: Parameters = ()
    state: Annotated[
        GrantState, Field(read=readers.one_of(*get_args(GrantState)), label=phrase("State"), added=True)
    ] = "accepted"

    def allows(self, row: ThirdPartyAssignment) -> bool:
        """Return whether this grant is accepted and fits a row."""
        return self.state == "accepted" and self.fits(row)

    def fits(self, row: ThirdPartyAssignment) -> bool:
        """Return whether these terms are about a row, apart from dates.

        A blank role or sub-entity of the grant allows any. A parameter that the grant names must be
        set in the row, to values that the grant lists; parameters it does not name are free. R-21.
        """
        same = (self.client_entity_id, self.entity_id, self.service_id) == (
            row.client_entity_id,
            row.entity_id,
            row.service_id,
        )
        allowed = {parameter.name: parameter_values(self.parameters, parameter.name) for parameter in self.parameters}
        return (
            same
            and self.role in {"", row.role}
            and self.sub_entity in {"", row.sub_entity}
            and all(parameter_values(row.parameters, name) <= values for name, values in allowed.items())
            and all(parameter_values(row.parameters, name) for name in allowed)
        )

    def covers(self, row: ThirdPartyAssignment) -> bool:
        """Return whether a row is allowed and lies inside the grant's dates (R-21)."""
        return self.allows(row) and self.start_date <= row.start_date and row.end_date <= self.end_date


class ThirdPartyAssignment(KeyedRecord, frozen=True, kw_only=True):
    """A role of a third party's person for a client entity.

    Must lie inside a ThirdPartyGrant (R-21).
    """

    user_id: UserReference
    entity_id: Annotated[str, Field(key="third_party", read=values.ENTITY_ID, needed=True, identifies=True)]
    """for which the person acts"""
    client_entity_id: ClientEntityReference
    service_id: ServiceReference
    role: RoleName = ""
    sub_entity: SubEntity = ""
    ref: RowReference = ""
    start_date: StartDate = NO_BEGINNING
    end_date: EndDate = NO_END
    parameters: Parameters = ()


class Administrator(KeyedRecord, frozen=True, kw_only=True):
    """A member who administers an entity (D53).

    Ends with the membership.
    """

    user_id: UserReference
    entity_id: MemberEntity
    level: Annotated[
        AdministratorLevel,
        Field(
            read=readers.one_of(*ADMINISTRATOR_LEVELS), needed=True, label=phrase("Level"), choices=ADMINISTRATOR_LEVELS
        ),
    ]
    services: Annotated[
        AdministratorServices,
        Field(
            help="Of a sub_administrator: a service to give roles at, or all.",
            read=values.administered_services,
            moot=lambda record: record.level != "sub_administrator",
            label=phrase("Services"),
        ),
    ] = ()
    """of a sub-administrator only: the others have every service"""

    @property
    def approves(self) -> bool:
        """True if they can approve any change (D55).

        Sub-administrators approve at their services only.
        """
        return self.level != "sub_administrator"

    def serves(self, service_id: str) -> bool:
        """Return whether the actor administers the roles of a service."""
        return self.level != "sub_administrator" or self.services == "all" or service_id in self.services


class Operator(KeyedRecord, frozen=True, kw_only=True):
    """A person who operates the deployment (D53)."""

    user_id: Annotated[str, Field(key="user", read=values.login, needed=True, refers="users.user_id", identifies=True)]
    level: Annotated[
        OperatorLevel,
        Field(
            read=readers.one_of(*get_args(OperatorLevel)), needed=True,
            choices={"operator": phrase("Operator"), "support": phrase("Support"), "auditor": phrase("Auditor")},
        ),
    ]  # fmt: skip


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The actors that a record comes from; empty: not known."""

    record: str = ""
    """who wrote it last, of a user who made it"""
    members: dict[str, str] = msgspec.field(default_factory=dict)
    """of a user, the members that others have set since"""

    def source_of(self, member: str) -> str:
        """The actor that set a member."""
        return self.members.get(member, self.record)


class Change(msgspec.Struct, frozen=True):
    """One record that is added, changed or removed.

    This is what every door hands on to the store. `before` is what was decided on, `after` what will be; None: nothing.
    """

    before: KeyedRecord | None
    after: KeyedRecord | None
    event: AuditEvent | None = None
    """who makes it and why, written in the same transaction; its actor becomes the source of what changes (D65)"""
    taken: dict[str, str] = msgspec.field(default_factory=dict)
    """member, or WHOLE → whose it was before the actor takes it over, with the value that it has"""
    action: AuditAction | None = None
    """for the audit, if it is a more exact one than follows from the records"""
    seen: Sources | None = None
    """if the record has other sources by then, or another one refers to a removed one, nothing is written"""

    @property
    def verb(self) -> Verb:
        return "remove" if self.after is None else "add" if self.before is None else "change"

    @property
    def record(self) -> Any:  # noqa: ANN401 - of any kind
        """The record as it will be, or the removed one."""
        return self.after if self.after is not None else self.before

    @property
    def kind(self) -> Any:  # noqa: ANN401 - a Kind, or another kind of object
        return KIND_OF[type(self.record)]

    @property
    def key(self) -> tuple[str, ...]:
        return self.record.key  # type: ignore[no-any-return]


class RequestedPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person in a request, as known when it was made (D68)."""

    user_id: str
    identity: str
    """what the entity cannot write: the account's user name, or the address of an invitation"""
    name: str
    invited: bool = False
    membership_id: str = ""
    """empty: not a member; in a request of an earlier version, not recorded"""
    level: AdministratorLevel | Literal[""] = ""
    """of whom it suspends or restores: the level ends and takes effect with that"""


class RequestComment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment on a request (D55)."""

    author: str
    """as the audit names the actor"""
    text: str
    at: int
    """epoch seconds"""


class ChangeRequest(KeyedRecord, frozen=True, kw_only=True):
    """Changes that wait for another administrator's approval (D55). Moments are epoch seconds."""

    request_id: Annotated[str, Field(identifies=True)]
    """begins with the moment it was made, so that earlier ones sort first"""
    entity_id: Annotated[str, Field(refers="entities.entity_id")]
    """for which the requester acts"""
    requester: str
    """as the audit names the actor"""
    bound_to: str = ""
    """of an API client the entity that it is bound to"""
    changes: tuple[Change, ...]
    reason: Annotated[str, Field(disclosure=Disclosure.PERSONAL)]
    created_at: int
    state: RequestState = "pending"
    decided_by: str = ""
    decided_reason: Annotated[str, Field(disclosure=Disclosure.PERSONAL)] = ""
    decided_at: int = 0
    people: Annotated[tuple[RequestedPerson, ...], Field(disclosure=Disclosure.BOOKKEEPING, added=True)] = ()
    """those that it names, in the order of their identifiers; none in a request of an earlier version"""
    comments: Annotated[tuple[RequestComment, ...], Field(disclosure=Disclosure.BOOKKEEPING, added=True)] = ()
    """of administrators, the earliest first"""


class DeletionRequest(KeyedRecord, frozen=True, kw_only=True):
    """A person's request to be deleted, which an operator carries out.

    `requested_at` is in epoch seconds.
    """

    user_id: Annotated[str, PERSON]
    requested_at: int


RECORDS: Final[Mapping[Any, type[KeyedRecord]]] = {
    "service": Service,
    "entity": Entity,
    "user": User,
    "credentials": Credentials,
    "membership": Membership,
    "administrator": Administrator,
    "operator": Operator,
    "assignment": Assignment,
    "grant": ThirdPartyGrant,
    "third-party row": ThirdPartyAssignment,
}
"""those that a request may change"""
KIND_OF: Final[Mapping[type, str]] = {
    **{record: kind for kind, record in RECORDS.items()},
    Client: "client", RegisteredApiClient: "API client", ChangeRequest: "approval",
    RegisteredProvisioningToken: "provisioning token", DeletionRequest: "deletion request",
}  # fmt: skip
"""type of record → its kind"""


class ActingPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A person acting for an entity, and the whole chain's state.

    Source: D50
    """

    user: User
    entity: Entity
    membership: Membership
    administrator: Administrator | None = None
    """the person's level there (D53)"""

    @property
    def allowed(self) -> bool:
        """True if every link is enabled, and no invitation waits (D60)."""
        waits = self.membership.invited or self.user.placeholder
        return self.user.enabled and self.entity.enabled and self.membership.enabled and not waits

    @property
    def obstacle(self) -> str:
        """The first link that is not enabled, in words for the log.

        Empty if every link is. Source: D50
        """
        obstacles = {
            "the person is disabled": not self.user.enabled,
            "the entity is disabled": not self.entity.enabled,
            "the membership is suspended": not self.membership.enabled,
            "the invitation has not been accepted": self.membership.invited or self.user.placeholder,
        }
        return next((sentence for sentence, found in obstacles.items() if found), "")


class ThirdPartyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A third-party assignment, its client entity, and the entity's grant."""

    assignment: ThirdPartyAssignment
    client_entity: Entity
    grants: tuple[ThirdPartyGrant, ...]


A = TypeVar("A", Administrator, Operator)


class AppointmentStatus(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """An administrator or operator, and whether they can act at present."""

    record: A
    enabled: bool
    """the person is, and so is the membership of an administrator"""


class ListedTestPerson(msgspec.Struct, frozen=True, kw_only=True):
    """A test person, whom a page of developer mode offers by name (D66)."""

    user_name: str
    name: str
    entities: tuple[str, ...] = ()
    """identifiers of the entities that they act for"""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A person with all data for signing in, loaded in one query."""

    user: User
    held: PersonFactors
    guesses: CodeGuesses
    """at codes, in the browser or group of browsers that was asked for (D45)"""
    signed_in_before: bool
    """whether the audit has a completed sign-in of theirs (D47)"""
    stored_secret: str | None = None
    """the app's secret as the store holds it, encrypted: that it is the same shows without decrypting it"""
    passkey_declined_at: int = 0
    """when they last did not want a passkey, in epoch seconds; 0: never"""


class SignOut(msgspec.Struct, frozen=True):
    """End a person's sessions and the links for setting their factors.

    All of them end with the last change of that person's record or credentials, in the same transaction.
    """

    user_id: str


class Precondition(msgspec.Struct, frozen=True):
    """A record that a decision was made on.

    If it is no longer as it was read, nothing is written.
    """

    kind: type[KeyedRecord]
    key: tuple[str, ...]
    record: KeyedRecord | None
    """None: there was none"""


class LastOwnerInvariant(msgspec.Struct, frozen=True):
    """A person with all rights who must remain after the changes (D53, D54)."""

    entity_id: str = ""
    """an owner of this entity; empty: an operator of the deployment"""


class RolesUnder(msgspec.Struct, frozen=True):
    """Roles of a third party's people that end with the removed grant (D56).

    They are read after the removal, in its transaction, so that one which was given meanwhile ends, too.
    """

    grant: ThirdPartyGrant
    event: AuditEvent
    """of each of them, without its object"""
    planned: bool = False
    """whether the changes have those that are to end: if there is another one, nothing is written"""


class Accept(msgspec.Struct, frozen=True):
    """Move an invited membership to the account that accepts it.

    Its level and roles go with it, and the placeholder ends. If the invitation is no longer as it was read, or the
    person belongs to the entity by then, nothing is written. Source: D60
    """

    invited: Membership
    becomes: Membership
    event: AuditEvent


StoreChange = Change | SignOut | Precondition | LastOwnerInvariant | RolesUnder | Accept


def list_role_parts(record: KeyedRecord) -> dict[str, str]:
    """The details that tell roles and authorisations apart whose parts have slashes. Source: D57"""
    if not isinstance(record, Assignment | ThirdPartyAssignment | ThirdPartyGrant) or not any(
        "/" in each for each in record.key
    ):
        return {}
    return {name: value for name in ROLE_PARTS if (value := getattr(record, name))}


class Conflict(Exception):
    """A change that the registry's rules refuse.

    The text says which and why. Its transaction is rolled back.
    """


class NameTaken(Conflict):
    """Another user has this user name, after PRECIS mapping (D51)."""


class MemberNameTaken(Conflict):
    """Another member of the entity has this user name (D60)."""


class ExternalIdTaken(Conflict):
    """Another member of the entity has this external identifier (D60)."""


class NameRefused(Conflict):
    """The user name is empty or has characters no name has.

    Source: D51
    """


class MissingReference(Conflict):
    """The record names an entity, user, membership or service that is missing."""


class ChangedMeanwhile(Conflict):
    """A record that the decision was made on has changed since."""


class LastOwnerRemoved(Conflict):
    """The last owner of an entity, or the last operator, would go (D53, D54)."""


def encode_changes(changes: Iterable[Change]) -> bytes:
    """Changes without their events, in a form that every version reads. Source: D55"""
    return msgspec.json.encode([
        {"verb": each.verb, "kind": each.kind, "key": each.key, "was": each.before, "becomes": each.after}
        for each in changes
    ])  # fmt: skip


def decode_changes(text: str) -> tuple[Change, ...]:
    """The changes of a text that `encode_changes` gave. Source: D55"""

    def read(kind: str, members: dict[str, object] | None) -> Any:  # noqa: ANN401 - a record of this kind
        return None if members is None else msgspec.convert(members, {**RECORDS, "client": Client}[kind])

    kept = msgspec.json.decode(text)
    return tuple(Change(read(each["kind"], each["was"]), read(each["kind"], each["becomes"])) for each in kept)


_UNDOABLE: Final = (Assignment, ThirdPartyAssignment, Membership, Entity, Service, User, Client)


def is_undoable(change: Change) -> bool:
    """Return whether a change may be undone.

    Not if it is about a level, a token, factors, what needs approval, an authorisation of a third party, or where
    e-mails go; nor if a membership begins or ends. Source: D80
    """
    before, after = change.before, change.after
    if isinstance(change.record, Assignment | ThirdPartyAssignment):
        return True
    if before is None or after is None or not isinstance(after, _UNDOABLE):
        return False
    decisive = ("approvals", "approval_required", "email")
    return all(getattr(before, name, None) == getattr(after, name, None) for name in decisive)
