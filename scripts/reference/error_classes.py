"""The classes of errors, by code."""

from __future__ import annotations

import inspect
from typing import Final

from corpid.rules.oauth import errors
from corpid.rules.oauth.errors import OAuthError

CLASSES: Final[dict[str, type[OAuthError]]] = {
    each.code: each
    for each in vars(errors).values()
    if inspect.isclass(each) and issubclass(each, OAuthError) and each is not OAuthError and "code" in vars(each)
}
"""error code → its class; that of another status has no code of its own"""
