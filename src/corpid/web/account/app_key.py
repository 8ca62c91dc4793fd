"""The key of an authenticator app: link, QR code and text.

Source: D45
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.rules.authentication import totp
from corpid.web.pages.responses import NO_STORE

if TYPE_CHECKING:
    from corpid.rules.directory.records import User
    from corpid.web.context import WebContext

_GROUP: Final = 4
_QUIET_ZONE: Final = 4
"""modules around a QR code (ISO/IEC 18004)"""


def link(web: WebContext, user: User, secret: str) -> str:
    """The otpauth address that opens an app.

    The QR code contains the same. Source: D45
    """
    return totp.otpauth_uri(secret, account=user.user_name, issuer=web.provider.policy.name)


def grouped(secret: str) -> str:
    """A key (base32) in groups, for typing."""
    return " ".join(secret[start : start + _GROUP] for start in range(0, len(secret), _GROUP))


def picture(text: str) -> Response:
    """A QR code, drawn here (ISO/IEC 18004)."""
    import segno  # noqa: PLC0415 - few pages draw a code

    drawn = BytesIO()
    code = segno.make_qr(text)
    code.save(drawn, kind="svg", border=_QUIET_ZONE, dark="#000", light="#fff", xmldecl=False, omitsize=True)
    return Response(drawn.getvalue(), 200, NO_STORE, "image/svg+xml")
