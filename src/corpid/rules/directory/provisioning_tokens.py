"""Provisioning tokens: bearer tokens of SCIM clients, each of one entity (D60)."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Annotated, Final

from corpid.rules.fields import BOOKKEEPING, KEY, SECRET, Field, KeyedRecord
from corpid.rules.readers import display_name

LONGEST_LIFE_DAYS: Final = 365
USE_WRITTEN_SECONDS: Final = 3600
"""the last use of a token is written at most this often"""
MOST_TOKENS: Final = 20
"""of one entity"""
NAME_CHARACTERS: Final = 100
_FORM: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class RegisteredProvisioningToken(KeyedRecord, frozen=True, kw_only=True):
    """A provisioning token as it is stored; moments are epoch seconds."""

    token_id: Annotated[str, KEY]
    entity_id: Annotated[str, Field(refers="entities.entity_id")]
    name: str
    """its purpose, as its creator named it"""
    token_hash: Annotated[str, SECRET]
    """SHA-256 of the token, in hexadecimal"""
    created_at: int
    expires_at: int
    created_by: str
    """as the audit names the actor"""
    last_used_at: Annotated[int, BOOKKEEPING] = 0
    """at most an hour late; 0: never"""


def token_hash(token: str) -> str:
    """Return the hash of a token; empty for any other text.

    Source: D60
    """
    return sha256(token.encode()).hexdigest() if _FORM.fullmatch(token) else ""


def token_name(text: str) -> str:
    """Return the name of a token in its stored form.

    Raises ValueError with the reason in words. Source: D51, D60
    """
    name = display_name(text)
    if len(name) > NAME_CHARACTERS:
        raise ValueError(f"a name has at most {NAME_CHARACTERS} characters")
    return name
