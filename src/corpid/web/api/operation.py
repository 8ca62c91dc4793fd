"""An operation of the admin API: path, parameters, and callers (D59)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response

    from corpid.rules.oauth.api_client import ApiScope
    from corpid.web.api.calls import Call

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query parameter."""

    name: str
    description: str
    kind: Any = str
    default: Any = None
    needed: bool = False
    least: int | None = None
    most: int | None = None


CURSOR: Final = Query(name="cursor", description="The member `next` of the previous page.")
LIMIT: Final = Query(name="limit", description="Number of objects per page.", kind=int, default=50, least=1, most=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: its name, its parameters, and who may call it."""

    name: str
    """its operationId"""
    method: Method
    path: str
    """below the path of the API; `{id}` names an object"""
    tag: str
    summary: str
    description: str
    scope: ApiScope | Literal[""]
    """empty: it needs no token"""
    run: Callable[[Call], Awaitable[Response]]
    queries: tuple[Query, ...] = ()
    body: str = ""
    """the schema of its body; empty: it takes none"""
    media_types: tuple[str, ...] = ("application/json",)
    answer: str = ""
    """the schema of its answer; empty: it has no body"""
    answer_type: str = "application/json"
    status: int = 200
    errors: tuple[int, ...] = ()
    """further than those of every operation"""
    conditional: bool = False
    """whether it demands If-Match"""
    requested: bool = False
    """whether it is requested if it needs approval (202)"""
    repeatable: bool = False
    """whether an Idempotency-Key makes it safe to send again"""
    bound: bool = True
    """whether clients that are bound to an entity may call it at all"""
    in_maintenance: bool = False
    """whether it is carried out while maintenance is on"""

    @property
    def takes_object(self) -> bool:
        """True if its path names an object."""
        return "{id}" in self.path
