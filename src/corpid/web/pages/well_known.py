"""Well-known addresses for password managers, browsers and security researchers.

They stand at the root of the host, whatever the path of base_url: a proxy passes them on. Source: RFC 8615 §3
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from starlette.responses import Response

from corpid.flows.authentication.own_pages import ACCOUNT_PATH
from corpid.web.pages.plain import not_found
from corpid.web.pages.responses import NO_STORE, see_other

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.context import WebContext

CHANGE_PASSWORD_PATH: Final = "/.well-known/change-password"
PASSKEY_ENDPOINTS_PATH: Final = "/.well-known/passkey-endpoints"
SECURITY_PATH: Final = "/.well-known/security.txt"
_SECURITY_DAYS: Final = 180
"""less than the year that RFC 9116 §2.5.5 recommends as the most"""


async def change_password(request: Request, web: WebContext) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """Send the browser to the account's page for passwords.

    Source: W3C, A Well-Known URL for Changing Passwords
    """
    return see_other(f"{web.base_path}{ACCOUNT_PATH}/password")


async def passkey_endpoints(request: Request, web: WebContext) -> Response:
    """The addresses at which a person creates and manages passkeys.

    404 if passkeys do not work here. Source: W3C, Passkey Endpoints
    """
    policy = web.provider.policy
    if not policy.takes_passkeys:
        return await not_found(request, web)
    account = policy.base_url + ACCOUNT_PATH
    document = {"enroll": f"{account}/new-passkey", "manage": f"{account}/passkeys"}
    return Response(msgspec.json.encode(document), 200, NO_STORE, "application/json; charset=utf-8")


async def security(request: Request, web: WebContext) -> Response:
    """The operator's contacts for vulnerability reports.

    404 if the operator names none. Source: RFC 9116
    """
    if not web.security_contact:
        return await not_found(request, web)
    parts = urlsplit(web.provider.policy.base_url)
    today = datetime.fromtimestamp(web.provider.clock(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    lines = (
        *(f"Contact: {contact}" for contact in web.security_contact),
        f"Expires: {today + timedelta(days=_SECURITY_DAYS):%Y-%m-%dT%H:%M:%SZ}",
        f"Canonical: {parts.scheme}://{parts.netloc}{SECURITY_PATH}",
    )
    return Response("\n".join((*lines, "")), 200, NO_STORE, "text/plain; charset=utf-8")
