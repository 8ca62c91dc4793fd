"""Every statement of the stores, so that none can be forgotten when plans are looked at."""

from __future__ import annotations

from importlib import import_module
from itertools import combinations, product
from pkgutil import iter_modules
from typing import TYPE_CHECKING, get_args

from corpid.rules.audit import AuditQuery
from corpid.rules.directory.lists import RECORD_LISTS
from corpid.rules.directory.memberships import CARRIED, Member, RoleOrder, SortedBy
from corpid.rules.directory.records import (
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.oauth.records import Client
from corpid.stores import sql
from corpid.stores.sql import (
    audit,
    changes,
    clients,
    columns,
    directory,
    lists,
    mappers,
    members,
    migration,
    notices,
    postgresql,
    sessions,
    tables,
    transient,
)
from corpid.stores.sql.audit import ways
from corpid.stores.sql.lists import Shape
from corpid.stores.sql.members import RoleShape
from corpid.stores.sql.members import Shape as FilterShape
from corpid.stores.sql.statements import Statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


QUESTIONS = (
    AuditQuery(),
    AuditQuery(actor="operator"),
    AuditQuery(user_id="u1"),
    AuditQuery(user_id="u1", entity_id="E1", actions=("user.add", "user.remove")),
    AuditQuery(entity_id="E1", client_id="rp"),
    AuditQuery(client_id="rp", actions=("client.add",)),
    AuditQuery(actions=("client.add", "client.update")),
    AuditQuery(object="rp", entity_id="E1", client_id="rp"),
)
"""to the audit, each of which leads to other statements"""
FILTERS: tuple[FilterShape, ...] = (
    (),
    (("active", "eq"),),
    *(((member, operator),) for member in ("user_name", "external_id", "email") for operator in ("eq", "co", "sw")),
    (("user_name", "eq"), ("active", "eq")),
)
"""of an entity's members, each of which leads to other statements"""
LISTS: tuple[Shape, ...] = (
    Shape(Assignment, RECORD_LISTS[Assignment].orders[0].columns, ("entity_id", "role", "service_id"), False),
    *(
        Shape(ThirdPartyGrant, RECORD_LISTS[ThirdPartyGrant].orders[0].columns, (side, "state"), False)
        for side in ("client_entity_id", "entity_id")
    ),
    *(
        Shape(kind, order.columns, given, order.bounded, backwards, no_operators)
        for kind, listed in RECORD_LISTS.items()
        for order in listed.orders
        for count in range(len(listed.filters) + 1)
        for given in combinations(sorted(listed.filters.values()), count)
        for backwards in (False, True)
        for no_operators in ((False, True) if listed.of_people else (False,))
        if given or kind is not Member  # of one entity
    ),
)
"""every page that is asked for"""
SEARCHES: tuple[Shape, ...] = tuple(
    Shape(
        kind, RECORD_LISTS[kind].order(order).columns, ("entity_id",) if kind is Member else (), True, backwards,
        words=words, service=service, few=few, by_service=service and not words,
    )
    for kind, order in (
        (User, "name"), (Entity, "name"), (Service, "id"), (Client, "id"), (Member, "shown_user_name"),
        (Member, "shown_email"), (Member, "shown_name"),
    )
    for few, backwards in ((False, False), (False, True), (True, False))
    for words in (0, 1, 2)
    for service in ((False, True) if kind is Member else (False,))
    if (words or service) and not (kind is Client and few)  # rows so short that PostgreSQL reads thousands of them sooner
)  # fmt: skip
SEARCHES += tuple(
    each._replace(order=(), bounded=False, by_word=True)
    for each in SEARCHES
    if each.words and not each.few and not each.by_service
)
"""by words, and of members by service, in the orders of the pages that offer them"""
ROLES = tuple(
    RoleShape(words, services, role, order, backwards)
    for words in (0, 1, 2)
    for services, role, backwards in product((False, True), repeat=3)
    for order in get_args(RoleOrder)
    if services or order != "service"
)
"""of an entity's people, each of which leads to another statement"""
_NUMBERS = (1, 3)
"""of services or words, for which a statement is made when it is first needed"""


def find_counted(page: Shape) -> Shape:
    """The statement that counts what is searched."""
    return page._replace(order=(), bounded=False, backwards=False, few=False)


_FLAGS = [(False,), (True,)]
_COUNTS = [(number,) for number in _NUMBERS]
_ROLE_KINDS = [(Assignment,), (ThirdPartyAssignment,)]
_NOT_EXPLAINED: list[tuple[object, ...]] = []
SHAPES: Mapping[object, Iterable[tuple[object, ...]]] = {
    audit._find_ways: _NOT_EXPLAINED,
    audit._select_by_action: _NOT_EXPLAINED,
    audit._select_ends: _NOT_EXPLAINED,  # each engine has its own
    audit._select_latest_of: _NOT_EXPLAINED,
    changes._move_rows: [(kind,) for kind in CARRIED],
    changes._select_same: [
        (Membership, ("user_id",)),
        *((kind, changes._MEMBER) for kind in CARRIED),
        *((kind, changes._PARTIES) for kind in (ThirdPartyGrant, ThirdPartyAssignment)),
    ],
    clients._hourly_totals: _FLAGS,
    clients._sums: _FLAGS,
    columns._sweep: [(tables.consents,), (tables.sessions,)],
    directory.bind_forms: _NOT_EXPLAINED,
    directory.count_choices: [(0,), *_COUNTS],
    directory.select_assignments: _COUNTS,
    directory.select_choices: [(0,), *_COUNTS],
    directory.select_invitations: _COUNTS,
    directory.select_services: _COUNTS,
    directory.select_third_party_roles: _COUNTS,
    directory.select_third_party_rows: _COUNTS,
    lists.count_records: [
        *((each._replace(backwards=False),) for each in LISTS if each.given or each.bounded),
        *((find_counted(each),) for each in SEARCHES),
    ],
    lists.count_words: [
        (find_counted(each)._replace(by_word=False),) for each in SEARCHES if each.words + each.service > 1
    ],
    lists.select_page: [(each,) for each in (*LISTS, *SEARCHES)],
    lists.select_part_end: [
        (Shape(each.kind, (), (), False, each.backwards, words=1, by_word=True),) for each in SEARCHES if each.by_word
    ],
    members.count_members: [(shape,) for shape in FILTERS],
    members.count_roles_found: [(RoleShape(0, services, role),) for services, role in product((False, True), repeat=2)],
    members.select_page: [(shape, sorted_by, False) for shape in FILTERS for sorted_by in get_args(SortedBy)],
    members.select_part_end: [(each.order, each.backwards) for each in ROLES],
    members.select_roles: [(each,) for each in ROLES],
    migration._list_files: _NOT_EXPLAINED,
    migration._read_steps: _NOT_EXPLAINED,
    notices._select_changed_since: _NOT_EXPLAINED,
    notices.count_ending_on: _ROLE_KINDS,
    notices.select_ending: _ROLE_KINDS,
    notices.select_ending_on: _ROLE_KINDS,
    postgresql.select_holders: _NOT_EXPLAINED,  # no other engine has the view
    sessions._person_locked: _FLAGS,
    sessions._put_if_as_stored: _FLAGS,
    transient._counts: _COUNTS,
    transient._looks: _COUNTS,
    lists._write_words: [(mappers.KINDS[kind].table,) for kind in lists._KINDS.values()],
}
"""of statements that depend on the question, by what gives them; every cached function is here"""
_MODULES = [import_module(f"{sql.__name__}.{each.name}") for each in iter_modules(sql.__path__) if not each.ispkg]


def every_statement(*, writes_in_queries: bool) -> Iterator[Statement]:
    """The statements of every part and of the transient store."""
    of_other_engine = audit._details_of_last_row if writes_in_queries else audit._INSERT_WITH_DETAILS
    for module in _MODULES:
        for made in vars(module).values():
            if isinstance(made, Statement) and made is not of_other_engine:
                yield made
            elif isinstance(made, audit.RecordedChange):
                yield from (made._with_event, made._with_details) if writes_in_queries else (made._change,)
            elif callable(made) and hasattr(made, "cache_info") and made.__module__ == module.__name__:
                yield from (made(*shape) for shape in SHAPES[made])
    for known in mappers.KINDS.values():
        yield from (each for each in vars(known).values() if isinstance(each, Statement))
        yield from known.referring
    for kind in (clients.Clients, clients.ApiClients):
        yield from vars(kind._statements).values()
    yield from (way.page() for query in QUESTIONS for way in ways(query))
    yield audit._select_ends(writes_in_queries)
