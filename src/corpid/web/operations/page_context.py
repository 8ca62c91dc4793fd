"""An operator in the console, and the frame of its pages (D53)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.flows.authentication import interactions
from corpid.flows.operations.console import ConsoleRequest, is_allowed
from corpid.rules.directory.access import Forbidden
from corpid.texts import phrase
from corpid.web import sites
from corpid.web.pages.layout import Frame, Navigation, NavigationLink, Pager, pager_of
from corpid.web.sites import PageContext, site_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.layout import Link


@dataclass(frozen=True, kw_only=True)
class ConsoleContext(PageContext[ConsoleRequest]):
    """An operator at a console page, with their form, if sent."""

    @property
    def actor(self) -> DeploymentOperator:
        return self.visit.actor


ConsolePage: TypeAlias = sites.SitePage[ConsoleContext]
"""a page of this site"""

SECTIONS: Final[Mapping[str, Phrase]] = {
    "": phrase("Overview"),
    "entities": phrase("Organisations"),
    "people": phrase("People"),
    "services": phrase("Services"),
    "clients": phrase("Clients"),
    "keys": phrase("Signing keys"),
    "audit": phrase("Audit"),
    "maintenance": phrase("Maintenance"),
}
"""the sections of the console by path"""
SEARCH_CHARACTERS: Final = 100
"""of a search text; the rest is ignored"""
AT_ONCE: Final = 50
"""lines of a list on one page"""


def console_path(web: WebContext, page: str = "") -> str:
    """The address path of a page of the console."""
    return site_path(web, "console", page)


def admit(at: ConsoleContext, page: ConsolePage) -> None:
    """Require the right that a page declares.

    Raises access.Forbidden. Source: D53
    """
    if page.needs and not is_allowed(at.actor, *page.needs):
        raise Forbidden(at.actor, *page.needs)


def path_if_allowed(at: ConsoleContext, page: str) -> str:
    """The address path of a page.

    Empty if it needs a right that the operator lacks. Source: D53
    """
    found = at.page_at(page)
    if found is None or (found.needs and not is_allowed(at.actor, *found.needs)):
        return ""
    return console_path(at.web, page)


def read_search(at: ConsoleContext, ways: tuple[tuple[str, Phrase], ...]) -> tuple[str, str]:
    """The text that a list is searched for, and one of `ways`.

    The first way by default.
    """
    by = at.query.get("by", "")
    return searched_text(at), by if by in dict(ways) else ways[0][0]


def searched_text(at: ConsoleContext) -> str:
    return at.query.get("search", "").strip()[:SEARCH_CHARACTERS]


def pager(at: ConsoleContext, page: str, after: str, **kept: str) -> Pager:
    """Addresses of the first and the next page of a list."""
    known = {name: value for name, value in kept.items() if value}
    return pager_of(console_path(at.web, page), known, came=bool(at.query.get("after")), after=after)


def frame(at: ConsoleContext, *, section: str = "", up: Link | None = None, step_name: str = "") -> Frame:
    """The frame of a console page; `section` is a key of SECTIONS."""
    web, visit = at.web, at.visit
    return Frame(
        form_token=interactions.form_token(at.context, visit.browser.browser_id, visit.form),
        step_name=step_name,
        up=up,
        account_language=visit.user.language,
        here=console_path(web, at.here),
        navigation=Navigation(
            label=phrase("Console"),
            title=phrase("Console of {name}", name=at.context.provider.policy.name),
            person=visit.user.name,
            links=tuple(
                NavigationLink(url=console_path(web, path), text=name, current=path == section)
                for path, name in SECTIONS.items()
            ),
        ),
    )
