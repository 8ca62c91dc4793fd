"""The statements of a request, by name, for tests that look at their plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpid.adapters.sql.statements import Prepared
    from corpid.adapters.sql.stores import SqlStores


def request_statements(stores: SqlStores) -> dict[str, Prepared]:
    registry, transient = stores.registry, stores.transient
    directory = registry.directory
    return {
        "by name": directory._user_by_name,
        "acting": directory._acting,
        "usable": directory._usable,
        "choices": directory._choices(0),
        "choices that match": directory._choices(2),
        "count of choices": directory._count(0),
        "count of those that match": directory._count(2),
        "services": directory._services(3),
        "assignments": directory._assignments(3),
        "third parties": directory._third_party_rows(3),
        "totp step": directory._raise_step,
        "rehash": directory._rehash,
        "client": registry.clients._get,
        "key set": registry.clients._fetched,
        "maintenance": registry.deployment._values._get,
        "session": registry.sessions._get,
        "sessions that expired": registry.sessions._sweep,
        "audit": registry.audit._entries,
        "look": transient.look,
        "take": transient.take,
        "sweep": transient._stretch,
        "clear": transient._clear,
    } | {kind.__name__: known.one for kind, known in directory._kinds.items()}
