"""The first page of developer mode, which leads to the others (D66).

What developers read is in English everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from corpid.rules.oauth import discovery
from corpid.web.pages.components import BARE, Frame, PageView, ViewPart
from corpid.web.pages.responses import page_response
from corpid_dev.web.mode import TITLE
from corpid_dev.web.paths import (
    ANYBODY_PATH,
    CATALOGUE_PATH,
    CLIENTS_PATH,
    DEVELOPER_PATH,
    ORDERS_PATH,
    READINESS_PATH,
    SCHEMAS_PATH,
    TRAFFIC_PATH,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.texts import Phrase
    from corpid.web.context import WebContext


class IndexEntry(ViewPart, frozen=True, kw_only=True):
    """A page that the index leads to."""

    url: str
    name: str
    help: str


ENTRIES: Final = (
    IndexEntry(
        url=CLIENTS_PATH,
        name="Clients",
        help="Register your relying party: keys, redirect URIs, scopes. Mistakes are named, and settings are ready to copy.",
    ),
    IndexEntry(
        url=ANYBODY_PATH,
        name="Test people",
        help="Make a person with the organisation and the roles that you need. On the sign-in page, one click signs them in.",
    ),
    IndexEntry(
        url=TRAFFIC_PATH,
        name="Inspector",
        help="What relying parties send, each check of it, and why a request was refused.",
    ),
    IndexEntry(
        url=ORDERS_PATH,
        name="Sandbox",
        help="Let this provider answer wrongly, late or not at all, to see what your relying party does.",
    ),
    IndexEntry(
        url=READINESS_PATH,
        name="Readiness report",
        help="Check what your relying party does when something is wrong, and read how to fix it.",
    ),
    IndexEntry(
        url=CATALOGUE_PATH,
        name="Catalogue of errors",
        help="Every reason for a refusal, who must act, and how to fix it.",
    ),
    IndexEntry(
        url=SCHEMAS_PATH,
        name="Schemas",
        help="JSON Schemas and TypeScript types of every token and answer, and OpenAPI documents.",
    ),
)
"""the pages of developer mode, in the order in which they are needed; addresses are paths under base_url"""

_ON_NETWORK: Final = (
    " Take the address with the key that corpid demo prints, and add --ca tls/ca.crt of its data directory."
)


class CopyableValue(ViewPart, frozen=True, kw_only=True):
    """A value to copy, and what it is for."""

    name: str
    text: str
    help: str = ""


class DeveloperIndex(PageView, frozen=True, kw_only=True):
    """The pages of developer mode, and the addresses to configure."""

    template: ClassVar[str] = "developer/index.html"
    heading: ClassVar[Phrase] = TITLE

    entries: tuple[IndexEntry, ...]
    copied: tuple[CopyableValue, ...]
    frame: Frame = BARE


def view(base_path: str, base_url: str) -> DeveloperIndex:
    """The page of one issuer."""
    return DeveloperIndex(
        entries=tuple(IndexEntry(url=base_path + each.url, name=each.name, help=each.help) for each in ENTRIES),
        copied=(
            CopyableValue(name="Issuer", text=base_url),
            CopyableValue(name="Discovery document", text=base_url + discovery.DISCOVERY_PATH),
            CopyableValue(
                name="Readiness report by command",
                text=f"corpid rp-check LOGIN-URL --developer {base_url}{DEVELOPER_PATH} --html report.html",
                help="Run this command to see what your relying party does when something is wrong. "
                "LOGIN-URL is where its login begins." + (_ON_NETWORK if base_url.startswith("https:") else ""),
            ),
        ),
    )


async def page(request: Request, web: WebContext) -> Response:
    """Show the first page of developer mode."""
    return page_response(request, web.renderer, view(web.base_path, web.provider.policy.base_url))
