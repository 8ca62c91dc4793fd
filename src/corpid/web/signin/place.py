"""Where the pages of a sign-in are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from corpid.web.endpoints import Desk

SIGN_IN_PATH: Final = "/sign-in/"
"""under base_url; what follows names the sign-in, then what is done there"""

ARRIVE: Final = "arrive"
"""the action, and the field, of a browser that brings the sign-in that it holds"""


def place(desk: Desk, interaction_id: str, action: str = "") -> str:
    """The address path of a sign-in's page, or of one of its actions."""
    return f"{desk.base_path}{SIGN_IN_PATH}{interaction_id}" + (f"/{action}" if action else "")
