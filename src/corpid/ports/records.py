"""What the registry keeps beside the directory, and changes to it."""

from __future__ import annotations

from typing import Literal

import msgspec

from corpid.directory.records import Record
from corpid.protocol.records import Client


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A security event, written in the transaction of the change it tells of."""

    actor: str
    """`operator`, `user:{user_id}`, `client:{client_id}`, `system`, or `anonymous` before anybody is known"""
    action: str
    """noun.verb, e.g. `client.disable`, `sign_in.complete`, `key.rotate`"""
    object: str = ""
    client_id: str = ""
    entity_id: str = ""
    outcome: Literal["ok", "refused"] = "ok"
    request_id: str = ""
    detail: dict[str, str] = msgspec.field(default_factory=dict)


class AuditEntry(AuditEvent, frozen=True, kw_only=True):
    """An event as it was written."""

    number: int
    at: int


class SealedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the provider, opened. `use` is `sig` (an EC private JWK) or `mac` (32 bytes, base64url)."""

    kid: str
    use: Literal["sig", "mac"]
    secret: str
    created_at: int
    active_from: int
    retired_at: int | None = None
    revoked_at: int | None = None
    certificate_chain: str | None = None
    """PEM, the key's own certificate first; None: one that the key signed itself"""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A signed-in browser (D30); `expires_at` is absolute."""

    session_id: str
    user_id: str
    browser_id: str
    auth_time: int
    amr: tuple[str, ...]
    level: int
    expires_at: int
    entity_id: str = ""
    """the entity chosen last"""


class FetchedKeySet(msgspec.Struct, frozen=True, kw_only=True):
    """The last good key set of a jwks_uri, kept across restarts (D27)."""

    jwks_uri: str
    jwks: str
    fetched_at: int


class UseCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often a client has used a generation, or shown one habit while it did."""

    client_id: str
    generation: str
    habit: str
    """an identifier of `protocol.habits`; the empty one counts every sign-in"""
    count: int
    last_at: int


class Upsert(msgspec.Struct, frozen=True):
    """Write this record, whether or not it exists."""

    record: Record | Client


class Delete(msgspec.Struct, frozen=True):
    """Remove this record."""

    record: Record | Client


Change = Upsert | Delete
