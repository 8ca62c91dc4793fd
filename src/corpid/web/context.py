"""The context of every endpoint: provider, renderer, paths of pages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import Provider, RequestContext
    from corpid.rules.directory.records import ListedTestPerson
    from corpid.rules.networks import Network
    from corpid.rules.oauth.authorization_request import AuthorizationResponse
    from corpid.rules.oauth.client_registration import RegistrationRules
    from corpid.web.pages.components import Link
    from corpid.web.pages.rendering import Renderer

Part: TypeAlias = Literal["api", "scim", "manage", "console"]
"""what the operator can switch off"""
SCIM_PATH: Final = "/scim/v2"
"""under base_url"""
SIGN_IN_PATH: Final = "/sign-in/"
"""under base_url; what follows names the sign-in, then what is done there"""

SIGN_IN: Final = "sign_in"
"""the parameter that names a pending sign-in, on a page that leads back to it"""
ARRIVE: Final = "arrive"
"""the action, and the field, of a browser that brings the sign-in that it holds"""

ENTERED: Final = "entered"
"""the parameter, and the hidden field, of a page that shows a form that was not accepted (D73)"""


UPLOAD_PAGES: Final = ("invite/several", "access/import")
"""the pages of the portal whose forms may have a file (D81)"""


def with_parameter(where: str, name: str = ENTERED) -> str:
    """The address of a page with a parameter.

    By default of one that shows a form again (D73).
    """
    return f"{where}{'&' if '?' in where else '?'}{name}=1"


def interaction_path(web: WebContext, interaction_id: str, action: str = "") -> str:
    """The address path of an interaction's page or action.

    The identifier may be a caller's text.
    """
    path = f"{web.base_path}{SIGN_IN_PATH}{quote(interaction_id, safe='')}"
    return f"{path}/{action}" if action else path


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access to a part that the operator can switch off."""

    enabled: bool = True
    networks: tuple[Network, ...] = ()
    """the only ones whose addresses see it; without any, every address does"""


class DeveloperMode(Protocol):
    """Developer mode at an issuer, which nothing but a demo has (D66)."""

    @property
    def anybody_path(self) -> str:
        """The path of the page that makes a test person, under base_url."""

    @property
    def up(self) -> Link:
        """The link to the first page of developer mode."""

    def inspector(self, request: Request) -> str:
        """The address of this request in the inspector, or empty."""

    def opens(self, request: Request) -> bool:
        """Return whether this request sees developer mode."""

    def without_key(self, request: Request) -> Response | None:
        """A redirect without the key, if the address has it."""

    def people(self, request: Request) -> Sequence[ListedTestPerson]:
        """The test people whom a page offers."""

    async def change_response(self, response: AuthorizationResponse) -> AuthorizationResponse:
        """The response to the relying party; the sandbox may change it."""

    async def sign_in_at_once(
        self, context: RequestContext, loaded: InteractionContext, form: Mapping[str, str]
    ) -> InteractionContext:
        """The step of the sign-in that asks for no factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebContext:
    """The dependencies of an endpoint."""

    provider: Provider
    renderer: Renderer
    base_path: str
    """the path of base_url, without a trailing slash"""
    account_base: str
    """what stands before the paths of the account: base_path, or at a further issuer the first one's base_url (D62)"""
    client_rules: RegistrationRules
    """what the admin API registers clients by"""
    new_user_id: Callable[[], str]
    """a UUID for a person whom the admin API adds"""
    security_contact: tuple[str, ...] = ()
    """URIs for vulnerability reports (RFC 9116 §2.5.3)"""
    operators_need_passkey: bool = True
    """whether the console takes no other sign-in (D53)"""
    developer: DeveloperMode | None = None
    """None everywhere but in a demo (D66)"""
    access: Mapping[Part, Access] = field(default_factory=dict)
    """what is not named is open to everybody"""
    large_documents: asyncio.Lock = field(default_factory=asyncio.Lock)
    """held while a large document of the admin API is carried out: two of them would take twice the memory"""
    api_calls: set[tuple[str, str]] = field(default_factory=set)
    """calls of the admin API that must be alone, by client and what they do, while they are carried out"""
    cookie_name: str = field(init=False)
    """`__Host-corpid`, or `corpid` on plain http (D34)"""
    arrival_cookie_name: str = field(init=False)
    """of the cookie with an unstored sign-in (D34)"""
    passkey_cookie_name: str = field(init=False)
    """of the cookie that says, and says no more, that an enrolment created a passkey in this browser (D46)"""
    form_cookie_name: str = field(init=False)
    """of the cookie with a form that was not accepted, on a page without a sign-in (D73)"""

    def __post_init__(self) -> None:
        policy = self.provider.policy
        # Browsers refuse that prefix on plain http. A further issuer's ends in its id: issuers may share a host, and
        # ports do not separate cookies (D62).
        name = "__Host-corpid" if policy.base_url.startswith("https:") else "corpid"
        name = name if policy.is_first else f"{name}-{policy.issuer_id}"
        object.__setattr__(self, "cookie_name", name)
        object.__setattr__(self, "arrival_cookie_name", f"{name}_arrival")
        object.__setattr__(self, "passkey_cookie_name", f"{name}_passkey")
        object.__setattr__(self, "form_cookie_name", f"{name}_form")
