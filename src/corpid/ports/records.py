"""Records of the registry outside the directory, and changes to it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from corpid.rules.authentication.code_guesses import CodeGuesses
from corpid.rules.authentication.person_factors import HeldFactors
from corpid.rules.authentication.records import Credentials, Passkey
from corpid.rules.directory.records import Record, User
from corpid.rules.oauth.records import Client

SessionPurpose: TypeAlias = Literal["sign_in", "account"]
"""single sign-on for clients (D30), or the person's own account pages"""
LinkPurpose: TypeAlias = Literal["invitation", "password", "second_factor"]
"""what a link lets a person do: set up their account, choose a new password, or a new second factor"""


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A security event, written in the transaction of its change."""

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
    """A key of the provider, opened.

    `use` is `sig` (an EC private JWK) or `mac` (32 bytes, base64url).
    """

    kid: str
    use: Literal["sig", "mac"]
    secret: str
    created_at: int
    active_from: int
    retired_at: int | None = None
    revoked_at: int | None = None
    certificate_chain: str | None = None
    """PEM, the key's own certificate first; None: one that the key signed itself"""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A person with all data for signing in, loaded in one query."""

    user: User
    held: HeldFactors
    guesses: CodeGuesses
    """at codes, in the browser or group of browsers that was asked for (D45)"""
    signed_in_before: bool
    """whether the audit has a completed sign-in of theirs (D47)"""


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
    purpose: SessionPurpose = "sign_in"
    device: str = ""
    """browser and system, as their names are known, e.g. `Firefox on Windows`"""
    seen_at: int = 0
    """when it was used last, at most some minutes late"""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A person's link, stored under the hash of its secret part."""

    link_hash: str
    """SHA-256 of the secret part, in hexadecimal"""
    purpose: LinkPurpose
    user_id: str
    created_at: int
    expires_at: int
    factors: str
    """fingerprint of the person's factors when it was made (base64url): a later change makes it void"""


class FetchedKeySet(msgspec.Struct, frozen=True, kw_only=True):
    """The last good key set of a jwks_uri, stored for restarts (D27)."""

    jwks_uri: str
    jwks: str
    fetched_at: int


class UseCount(msgspec.Struct, frozen=True, kw_only=True):
    """A count of a client's uses of a generation or deprecation."""

    client_id: str
    generation: str
    habit: str
    """an identifier of `deprecated_usage`; the empty one counts every sign-in"""
    count: int
    last_at: int


class Upsert(msgspec.Struct, frozen=True):
    """Write this record, whether or not it exists."""

    record: Record | Client
    event: AuditEvent | None = None
    """written in the same transaction"""


class Delete(msgspec.Struct, frozen=True):
    """Remove this record."""

    record: Record | Client
    event: AuditEvent | None = None
    """written in the same transaction"""


class SignOut(msgspec.Struct, frozen=True):
    """End a person's sessions and the links for setting their factors.

    All of them end with the last change of that person's record or credentials, in the same transaction.
    """

    user_id: str


Change = Upsert | Delete | SignOut


class FactorChange(msgspec.Struct, frozen=True, kw_only=True):
    """A person's change of their own factors, written atomically; omitted members stay."""

    before: Credentials
    """as they were read: if they have changed since, nothing is written"""
    after: Credentials
    session_id: str = ""
    """the session in which the person acts: if it has ended, nothing is written; empty for a link or an operator"""
    add_passkey: Passkey | None = None
    remove_passkey: str = ""
    """a credential id"""
    remove_passkeys: bool = False
    """whether every one goes"""
    passkey_remains: bool = False
    """if no passkey would be left after it, nothing is written: it would be the last way in"""
    passkeys_at_most: int = 0
    """if there would be more passkeys than these after it, nothing is written; 0: no limit"""
    recovery_codes: tuple[str, ...] | None = None
    """hashes that replace those there are"""
    spend_link: str = ""
    """the hash of the link that led here: if it is gone, nothing is written"""
    end_sessions_but: str | None = None
    """ends every other session of the person; empty: every one"""
