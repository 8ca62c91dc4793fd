"""The records of the directory: who exists, and who may act for whom.

Frozen structs without behaviour. Dates are ISO text (YYYY-MM-DD), inclusive, in the deployment's
time zone (D23); `9999-12-31` means without end. Each record names its key in `key`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

NO_END = "9999-12-31"

EntityType = Literal["UEN", "NON-UEN", "GSTN"]
EntityStatus = Literal["Registered", "Deregistered", "Withdrawn", ""]
AccountType = Literal["standard", "foreign"]
SubEntityRule = Literal["none", "optional", "mandatory"]
SetBy = Literal["directory", "operator", "user"]
ParameterKind = Literal["text", "alpha", "number", "date", "year"]


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """An organisation (R-12.4). `entity_id` is the number that RPs see (at most 10 characters, R-14.2)."""

    entity_id: str
    type: EntityType
    registration_number: str
    country: str
    """ISO 3166-1 alpha-2"""
    name: str
    status: EntityStatus = ""
    enabled: bool = True

    @property
    def key(self) -> tuple[str, ...]:
        return (self.entity_id,)


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A person. `user_id` is a UUID, stable across entities and clients (R-12.4)."""

    user_id: str
    user_name: str
    name: str
    email: str = ""
    language: str = "en"
    identity_number: str = ""
    identity_country: str = ""
    account_type: AccountType = "standard"
    enabled: bool = True

    @property
    def key(self) -> tuple[str, ...]:
        return (self.user_id,)


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A person may act for an entity."""

    user_id: str
    entity_id: str
    enabled: bool = True

    @property
    def key(self) -> tuple[str, ...]:
        return (self.user_id, self.entity_id)


class ParameterDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter that roles at an entity service carry (R-14.1)."""

    name: str
    kind: ParameterKind = "text"
    mandatory: bool = False


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """An entity service: roles, parameters and who may use it (R-20)."""

    service_id: str
    name: str
    roles: tuple[str, ...] = ()
    parameters: tuple[ParameterDefinition, ...] = ()
    third_parties: bool = False
    sub_entity: SubEntityRule = "none"
    entity_types: tuple[EntityType, ...] = ("UEN", "NON-UEN", "GSTN")
    entity_statuses: tuple[EntityStatus, ...] = ("Registered", "")
    enabled: bool = True

    @property
    def key(self) -> tuple[str, ...]:
        return (self.service_id,)


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter's value; one name may repeat (R-14.1)."""

    name: str
    value: str


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A role of a person for an entity at an entity service. `ref` tells apart otherwise equal rows."""

    user_id: str
    entity_id: str
    service_id: str
    role: str = ""
    sub_entity: str = ""
    ref: str = ""
    start_date: str = "0001-01-01"
    end_date: str = NO_END
    parameters: tuple[Parameter, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        return (self.user_id, self.entity_id, self.service_id, self.role, self.sub_entity, self.ref)


class ThirdPartyGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What a client entity lets a third party do for it. A blank role or sub-entity grants any."""

    client_entity_id: str
    entity_id: str
    """the third party"""
    service_id: str
    role: str = ""
    sub_entity: str = ""
    ref: str = ""
    start_date: str = "0001-01-01"
    end_date: str = NO_END
    parameters: tuple[Parameter, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        return (self.client_entity_id, self.entity_id, self.service_id, self.role, self.sub_entity, self.ref)


class ThirdPartyAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """A role of a third party's person for a client entity; must lie inside a ThirdPartyGrant (R-21)."""

    user_id: str
    entity_id: str
    """the third party, for which the person acts"""
    client_entity_id: str
    service_id: str
    role: str = ""
    sub_entity: str = ""
    ref: str = ""
    start_date: str = "0001-01-01"
    end_date: str = NO_END
    parameters: tuple[Parameter, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        return (
            self.user_id, self.entity_id, self.client_entity_id, self.service_id,
            self.role, self.sub_entity, self.ref,
        )  # fmt: skip


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """A person's password and app. `*_set_by` says who set one last, so that a file never undoes a person's change."""

    user_id: str
    password_hash: str | None = None
    password_set_by: SetBy = "directory"
    password_source: str = ""
    """SHA-256 of what the directory file said, so that applying the file again changes nothing"""
    totp_secret: str | None = None
    """base32; the adapter seals it at rest (D43)"""
    totp_set_by: SetBy = "directory"
    totp_last_step: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        return (self.user_id,)

    @property
    def factors(self) -> tuple[str, str]:
        """What is compared to see whether a factor has changed; the last accepted step may have risen."""
        return (self.password_hash or "", self.totp_secret or "")

    def with_password(self, password_hash: str, by: SetBy) -> Credentials:
        """The same with this password, of which no directory file knows (D44)."""
        return msgspec.structs.replace(self, password_hash=password_hash, password_set_by=by, password_source="")

    def with_app(self, secret: str, by: SetBy, *, step: int = 0) -> Credentials:
        """The same with an app; `secret` in base32, `step` the last of its codes that was taken (D45)."""
        return msgspec.structs.replace(self, totp_secret=secret, totp_set_by=by, totp_last_step=step)

    def without_app(self, by: SetBy) -> Credentials:
        """The same without an app (D45)."""
        return msgspec.structs.replace(self, totp_secret=None, totp_set_by=by)


class Passkey(msgspec.Struct, frozen=True, kw_only=True):
    """A person's passkey (D46); moments in epoch seconds."""

    credential_id: str
    """base64url"""
    user_id: str
    public_key: str
    """COSE, base64url"""
    sign_count: int
    name: str
    """what its owner calls it"""
    aaguid: str
    """which make it is"""
    synced: bool
    """whether it can be on several devices of its owner, which never changes"""
    transports: tuple[str, ...]
    created_at: int
    used_at: int = 0
    """0: never yet"""


Record = Entity | User | Membership | Service | Assignment | ThirdPartyGrant | ThirdPartyAssignment | Credentials


class Acting(msgspec.Struct, frozen=True, kw_only=True):
    """A person acting for an entity, with the state of the whole chain (D50)."""

    user: User
    entity: Entity
    membership: Membership

    @property
    def allowed(self) -> bool:
        """Whether every link is enabled."""
        return self.user.enabled and self.entity.enabled and self.membership.enabled


class ThirdPartyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A third-party assignment with its client entity and what that entity granted for the service."""

    assignment: ThirdPartyAssignment
    client_entity: Entity
    grants: tuple[ThirdPartyGrant, ...]
