"""What the states of several pages have in common."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from corpid.texts import phrase
from corpid.web.pages.components import ButtonForm, FieldError, TimeLimit
from corpid.web.pages.views import AskPasskey

LIMIT: Final = TimeLimit(
    at=datetime(2026, 11, 20, 14, 32, tzinfo=UTC), seconds=600, extend=ButtonForm(action="/extend")
)
PASSKEY: Final = AskPasskey(action="/passkey", options='{"challenge": "AAAA", "rpId": "localhost"}')
WRONG: Final[FieldError] = (
    "password",
    phrase("The user name or password is not right. Check both and try again."),
)
WRONG_CODE: Final[FieldError] = (
    "code",
    phrase("This code is not right. Wait for the next one in your app, then enter it."),
)
NO_PASSKEY: Final[FieldError] = ("passkey", phrase("No passkey was used. Try again, or choose another option."))
