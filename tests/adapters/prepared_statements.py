"""Every statement that the adapters make ready, so that none can be forgotten when plans are looked at."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, get_args

import pytest

from corpid.rules.audit_records import AuditQuery
from corpid.rules.directory.lists import RECORD_LISTS
from corpid.rules.directory.queries import Member, RoleOrder, SortedBy
from corpid.rules.directory.records import Assignment, Entity, Service, ThirdPartyGrant, User
from corpid.rules.oauth.records import Client
from corpid.stores.sql.audit import ways
from corpid.stores.sql.lists import Shape
from corpid.stores.sql.members import RoleShape
from corpid.stores.sql.statements import CompiledStatement

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from corpid.stores.sql.lists import RecordLists
    from corpid.stores.sql.members import Provisioning
    from corpid.stores.sql.members import Shape as FilterShape
    from corpid.stores.sql.open import SqlStores

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


@contextmanager
def noted() -> Iterator[list[CompiledStatement]]:
    """The statements that are prepared meanwhile."""
    made: list[CompiledStatement] = []
    prepare = CompiledStatement.__init__

    def noting(prepared: CompiledStatement, statement: sa.Executable, dialect: sa.Dialect) -> None:
        prepare(prepared, statement, dialect)
        made.append(prepared)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CompiledStatement, "__init__", noting)
        yield made


def make_the_rest(stores: SqlStores) -> None:
    """Prepare also what is made when it is first used, or depends on how many are asked for."""
    _make_stores(stores)
    for query in QUESTIONS:
        for way in ways(query):
            stores.database.prepare(way.page())
    _make_filters(stores.registry.provisioning)
    _make_lists(stores.registry.lists)
    directory = stores.registry.directory
    directory._choices(0)
    directory._count(0)
    for known in (directory, *directory._kinds.values()):
        for kind in type(known).__mro__:
            for name, member in vars(kind).items():
                if isinstance(member, cached_property):
                    getattr(known, name)
    for made in (*vars(directory).values(), *vars(stores.transient).values()):
        if hasattr(made, "cache_info"):
            for number in _NUMBERS:
                made(number)


def _make_stores(stores: SqlStores) -> None:
    for part in stores.registry.part_names():
        getattr(stores.registry, part)


def _make_lists(lists: RecordLists) -> None:
    for each in LISTS:
        lists._page(each)
        if each.given or each.bounded:
            lists._count(each._replace(backwards=False))
    for each in SEARCHES:
        lists._page(each)
        lists._count(find_counted(each))
        if each.words + each.service > 1:
            lists._frequencies(find_counted(each)._replace(by_word=False))
        if each.by_word:
            lists._part_end(Shape(each.kind, (), (), False, each.backwards, words=1, by_word=True))


def find_counted(page: Shape) -> Shape:
    """The statement that counts what is searched."""
    return page._replace(order=(), bounded=False, backwards=False, few=False)


def _make_filters(provisioning: Provisioning) -> None:
    for services, role in product((False, True), repeat=2):
        provisioning._counted_roles(RoleShape(0, services, role))
    for each in ROLES:
        provisioning._found_roles(each)
        provisioning._end_of_part(each.order, each.backwards)
    for shape in FILTERS:
        provisioning._count(shape)
        for sorted_by in get_args(SortedBy):
            provisioning._page(shape, sorted_by, False)
