"""Lists of records, by declaration (D83).

A list has filters, and orders of which an index has each. Statements, pages, totals and exports follow from it, and the
queries of the admin API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from corpid.rules.directory.access import ObjectKind
from corpid.rules.directory.memberships import Member
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    ChangeRequest,
    DeletionRequest,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client

MOST_COUNTED: Final = 10_000
"""records of which a page's total is exact (D83)"""
MOST_EXPORTED: Final = 100_000
"""records of one export"""
FIRST: Final = ""
"""before every place"""
LAST: Final = "\U0010ffff"
"""after every text of a place"""
FIRST_CHARACTER: Final = "\x01"
"""before every character of an identifier or name"""


FILTERS: Final[Mapping[str, str]] = {
    "user": "Only of this person, by user name.",
    "entity": "Only of this entity, by identifier.",
    "service": "Only at this service, by identifier.",
    "client_entity": "Only what this entity grants, by identifier.",
    "third_party": "Only what is granted to this entity, by identifier.",
    "search": "Words of a person, an entity, a service or a client, in any order; the beginning of a word is enough. Of "
    "other records the beginning of the identifier.",
    "name": "Words as for search, but sorted by name; without other filters.",
}
"""name of a filter → its meaning, for documents and commands"""
INDEXED_CHARACTERS: Final = 100
"""of a name that its index has"""
_WITH_WORDS: Final = frozenset({User, Entity, Service, Client, Member})
"""records that are found by their words; memberships are, as members of one entity"""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """An order of a list."""

    name: str
    columns: tuple[str, ...]
    """those of an index, after the columns that narrow the list; together they are a record's place"""
    bounded: bool = True
    """whether the list can be narrowed to a beginning of its first column"""


class RecordList(msgspec.Struct, frozen=True, kw_only=True):
    """The list of a kind of record."""

    record: type[msgspec.Struct]
    kind: ObjectKind
    """for access control"""
    orders: tuple[Order, ...]
    """the first one is that of a list without a wish"""
    filters: Mapping[str, str] = {}
    """name → column; a user name, or the identifier of an entity or service, narrows the list"""

    def order(self, name: str) -> Order:
        """An order by its name, the first one by default. Raises KeyError."""
        return {"": self.orders[0], **{each.name: each for each in self.orders}}[name]

    @property
    def found_by_words(self) -> bool:
        """True if a search is for words, not the identifier's beginning."""
        return self.record in _WITH_WORDS

    @property
    def searched_orders(self) -> tuple[str, ...]:
        """The names of the orders in which it can be searched."""
        return tuple(each.name for each in self.orders if self.found_by_words or each.bounded)

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of FILTERS with which it is narrowed and searched."""
        orders = self.searched_orders
        return (*self.filters, *(["search"] if orders else []), *(["name"] if "name" in orders else []))

    @property
    def of_people(self) -> bool:
        """True if each record is about a person."""
        return "user_id" in self.record.__struct_fields__ or self.record is Member


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list that is asked for."""

    listed: RecordList
    order: Order
    where: Mapping[str, str | bool] = {}
    """column → value"""
    beginning: str = ""
    """of the first column of the order, folded"""
    words: tuple[str, ...] = ()
    """beginnings of words that a record has, all of them (`rules.directory.words`)"""
    service_id: str = ""
    """of members: at which they have a role for the entity"""
    by_service: bool = False
    """whether fewer people have such a role than the first word"""
    few: bool = False
    """whether those that are found are so few that they are read and sorted"""
    by_word: bool = False
    """whether the first word makes the order, then the identifier; otherwise many would be read for a page"""
    place: tuple[str, ...] = ()
    """after which the page begins, or before which it ends if it is read backwards; empty: at the beginning, or end"""
    backwards: bool = False
    limit: int
    no_operators: bool = False
    """whether people who operate the deployment are left out (D53)"""


class ListTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The number of records in a list, as far as counted (D83)."""

    count: int
    exact: bool = True
    """false if there are more"""


def _by_key(*columns: str, bounded: bool = False) -> tuple[Order, ...]:
    return (Order(name="id", columns=columns, bounded=bounded),)


_ROLE: Final = ("service_id", "role", "sub_entity", "ref")

USERS: Final = RecordList(
    record=User, kind="user",
    orders=(
        Order(name="user_name", columns=("user_name_key",)),
        Order(name="name", columns=("name", "user_id")),
        Order(name="email", columns=("email", "user_id")),
    ),
)  # fmt: skip
ENTITIES: Final = RecordList(
    record=Entity, kind="entity",
    orders=(
        *_by_key("entity_id", bounded=True),
        Order(name="name", columns=("name", "entity_id")),
        Order(name="number", columns=("registration_number", "entity_id")),
    ),
)  # fmt: skip
SERVICES: Final = RecordList(record=Service, kind="service", orders=_by_key("service_id", bounded=True))
MEMBERS: Final = RecordList(
    record=Member, kind="membership", filters={"entity": "entity_id"},
    orders=(
        Order(name="membership", columns=("membership_id",), bounded=False),
        Order(name="user_name", columns=("person_name_key",)),
        Order(name="shown_user_name", columns=("user_name", "membership_id")),
        Order(name="shown_email", columns=("email", "membership_id")),
        Order(name="shown_name", columns=("name", "membership_id")),
    ),
)  # fmt: skip
"""of one entity, with their people; `user_name` is that of the account, `shown_…` what the entity sees"""
MEMBERSHIPS: Final = RecordList(
    record=Membership, kind="membership", orders=_by_key("user_id", "entity_id"), filters={"user": "user_id"}
)
ASSIGNMENTS: Final = RecordList(
    record=Assignment, kind="assignment", orders=_by_key("user_id", "entity_id", *_ROLE),
    filters={"user": "user_id", "entity": "entity_id", "service": "service_id"},
)  # fmt: skip
GRANTS: Final = RecordList(
    record=ThirdPartyGrant, kind="grant", orders=_by_key("client_entity_id", "entity_id", *_ROLE),
    filters={"client_entity": "client_entity_id", "third_party": "entity_id", "service": "service_id"},
)  # fmt: skip
THIRD_PARTY_ASSIGNMENTS: Final = RecordList(
    record=ThirdPartyAssignment, kind="third-party row",
    orders=_by_key("user_id", "entity_id", "client_entity_id", *_ROLE),
    filters={
        "user": "user_id", "third_party": "entity_id", "client_entity": "client_entity_id", "service": "service_id"
    },
)  # fmt: skip
ADMINISTRATORS: Final = RecordList(
    record=Administrator, kind="administrator", orders=_by_key("user_id", "entity_id"),
    filters={"user": "user_id", "entity": "entity_id"},
)  # fmt: skip
OPERATORS: Final = RecordList(
    record=Operator, kind="operator", filters={"level": "level"},
    orders=(Order(name="level", columns=("level", "user_id"), bounded=False),),
)  # fmt: skip
CLIENTS: Final = RecordList(record=Client, kind="client", orders=_by_key("client_id", bounded=True))
API_CLIENTS: Final = RecordList(
    record=RegisteredApiClient, kind="API client", orders=_by_key("client_id", bounded=True)
)
PROVISIONING_TOKENS: Final = RecordList(
    record=RegisteredProvisioningToken, kind="provisioning token", orders=_by_key("token_id"),
    filters={"entity": "entity_id"},
)  # fmt: skip
REQUESTS: Final = RecordList(
    record=ChangeRequest, kind="approval", orders=_by_key("request_id"),
    filters={"entity": "entity_id", "state": "state"},
)  # fmt: skip
DELETION_REQUESTS: Final = RecordList(record=DeletionRequest, kind="deletion request", orders=_by_key("user_id"))

RECORD_LISTS: Final[Mapping[type, RecordList]] = {
    each.record: each
    for each in (
        USERS, ENTITIES, SERVICES, MEMBERS, MEMBERSHIPS, ASSIGNMENTS, GRANTS, THIRD_PARTY_ASSIGNMENTS, ADMINISTRATORS,
        OPERATORS, CLIENTS, API_CLIENTS, PROVISIONING_TOKENS, REQUESTS, DELETION_REQUESTS,
    )
}  # fmt: skip
