"""Records of the registry: accounts, sessions, links, fetched keys, counts.

Records of clients, of the directory and of signing keys are those of the rules.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from corpid.rules.authentication.records import Credentials, PersonFactors
from corpid.rules.authentication.throttling import CodeGuesses
from corpid.rules.directory.records import User

SessionPurpose: TypeAlias = Literal["sign_in", "account", "manage", "console"]
"""single sign-on for clients (D30), or the provider's own pages: account, portal or console"""
LinkPurpose: TypeAlias = Literal["invitation", "membership", "password", "second_factor", "email"]
"""the purpose of a link: set up an account, answer an entity's invitation, choose a new password, choose a new
second factor, or undo a change of the e-mail address (`EmailChange`, which has no row among links)"""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A person with all data for signing in, loaded in one query."""

    user: User
    held: PersonFactors
    guesses: CodeGuesses
    """at codes, in the browser or group of browsers that was asked for (D45)"""
    signed_in_before: bool
    """whether the audit has a completed sign-in of theirs (D47)"""
    stored_secret: str | None = None
    """the app's secret as the store holds it, encrypted: that it is the same shows without decrypting it"""
    passkey_declined_at: int = 0
    """when they last did not want a passkey, in epoch seconds; 0: never"""


class SessionFactors(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and the factors of its person now (D50)."""

    session: Session
    credentials: Credentials
    owns_passkey: bool
    """whether the passkey that was asked for is theirs"""


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
    browser_key: str = ""
    """what the browser is known by for this person, also after a sign-out; empty in a session of an earlier version"""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A person's link, stored under the hash of its secret part."""

    link_hash: str
    """SHA-256 of the secret part, in hexadecimal"""
    purpose: LinkPurpose
    user_id: str
    created_at: int
    expires_at: int
    factors: str
    """fingerprint of the person's factors when it was made (base64url), of an entity's invitation that of the address
    that it went to: a later change makes it void"""


class FetchedKeySet(msgspec.Struct, frozen=True, kw_only=True):
    """The last good key set of a jwks_uri, stored for restarts (D27)."""

    jwks_uri: str
    jwks: str
    fetched_at: int
