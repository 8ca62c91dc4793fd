"""A person's factors, sessions, links and waiting e-mail address (D44, D45, D46, D50, D61).

The code of a link is carried in the fragment or typed: a fragment is never part of a request (RFC 9110 §4.2.5), so no
log of a proxy or server holds the code.
"""

from __future__ import annotations

import base64
import unicodedata
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from corpid.jose.encoding import tuple_bytes
from corpid.rules.characters import with_ascii_digits
from corpid.rules.fields import (
    BOOKKEEPING,
    KEY,
    LATER,
    OF_PERSON,
    PERSON,
    PERSONAL,
    SECRET,
    Disclosure,
    Field,
    KeyedRecord,
)

_LATER_BOOKKEEPING: Final = Field(added=True, disclosure=Disclosure.BOOKKEEPING)
SetBy = Literal["directory", "operator", "user"]
SessionPurpose: TypeAlias = Literal["sign_in", "account", "manage", "console"]
"""single sign-on for clients (D30), or the provider's own pages: account, portal or console"""
LinkPurpose: TypeAlias = Literal["invitation", "membership", "password", "second_factor", "email"]
"""the purpose of a link: set up an account, answer an entity's invitation, choose a new password, choose a new
second factor, or undo a change of the e-mail address (`EmailChange`, which has no row among links)"""


class Credentials(KeyedRecord, frozen=True, kw_only=True):
    """A person's password and authenticator app.

    `*_set_by` records who set each one last, so that a directory file never undoes a person's change.
    """

    user_id: Annotated[str, PERSON]
    password_hash: Annotated[str | None, SECRET] = None
    password_set_by: Annotated[SetBy, BOOKKEEPING] = "directory"
    password_source: Annotated[str, BOOKKEEPING] = ""
    """SHA-256 of the directory file's entry, so that applying the file again changes nothing"""
    totp_secret: Annotated[str | None, SECRET] = None
    """base32; the store encrypts it (D43)"""
    totp_set_by: Annotated[SetBy, BOOKKEEPING] = "directory"
    totp_last_step: Annotated[int, BOOKKEEPING] = 0

    @property
    def factors(self) -> tuple[str, str]:
        """The members to compare for a change of factors.

        The last accepted step is left out.
        """
        return (self.password_hash or "", self.totp_secret or "")

    def with_password(self, password_hash: str, by: SetBy) -> Credentials:
        """Return the same credentials with this password.

        No directory file is recorded as its source. Source: D44
        """
        return msgspec.structs.replace(self, password_hash=password_hash, password_set_by=by, password_source="")

    def with_app(self, secret: str, by: SetBy, *, step: int = 0) -> Credentials:
        """Return the same credentials with an app.

        `secret` is in base32; `step` is the step of its last accepted code. Source: D45
        """
        return msgspec.structs.replace(self, totp_secret=secret, totp_set_by=by, totp_last_step=step)

    def without_app(self, by: SetBy) -> Credentials:
        """Return the same credentials without an app (D45)."""
        return msgspec.structs.replace(self, totp_secret=None, totp_set_by=by)


class Passkey(msgspec.Struct, frozen=True, kw_only=True):
    """A person's passkey; times in epoch seconds (D46)."""

    credential_id: Annotated[str, Field(identifies=True, disclosure=Disclosure.BOOKKEEPING)]
    """base64url"""
    user_id: Annotated[str, OF_PERSON]
    public_key: Annotated[str, BOOKKEEPING]
    """COSE, base64url"""
    sign_count: Annotated[int, BOOKKEEPING]
    name: Annotated[str, PERSONAL]
    """the name that its owner gave it"""
    aaguid: str
    """identifies its make"""
    synced: bool
    """true if it can be on several devices of its owner; this never changes"""
    transports: tuple[str, ...]
    created_at: Annotated[int, BOOKKEEPING]
    used_at: Annotated[int, BOOKKEEPING] = 0
    """0: never used"""


RECOVERY_CODES: Final = 10
RECOVERY_CODE_BYTES: Final = 10  # 80 bits
_GROUP: Final = 4


def recovery_code(random: bytes) -> str:
    """Return a recovery code as text, made from 10 random bytes.

    It has four groups of four characters. Source: RFC 4648 §6, D45
    """
    letters = base64.b32encode(random).decode("ascii").lower()
    return "-".join(letters[place : place + _GROUP] for place in range(0, len(letters), _GROUP))


def recovery_code_hash(user_id: str, code: str) -> str:
    """Return the stored hash of a recovery code, in hexadecimal.

    It is SHA-256 over owner and normalised code; 80 random bits need no slow hash. Source: D45, D75
    """
    plain = with_ascii_digits(unicodedata.normalize("NFKC", code)).lower()
    usual = "".join(letter for letter in plain if letter.isalnum()).replace("0", "o").replace("1", "l")
    return sha256(tuple_bytes("recovery-code", user_id, usual)).hexdigest()


class PersonFactors(msgspec.Struct, frozen=True, kw_only=True):
    """All factors of a person, except codes by e-mail.

    The e-mail address stands for those codes.
    """

    credentials: Credentials
    passkeys: tuple[Passkey, ...]
    codes: int
    """recovery codes that are left"""

    @property
    def password(self) -> bool:
        """True if a password is set, even without a second factor."""
        return self.credentials.password_hash is not None

    @property
    def app(self) -> bool:
        """True if an app is set up, even without a password."""
        return self.credentials.totp_secret is not None

    @property
    def typed_code(self) -> bool:
        """True if a code of the app or a recovery code exists."""
        return self.app or self.codes > 0

    @property
    def second_factor(self) -> bool:
        return self.typed_code or bool(self.passkeys)

    @property
    def any(self) -> bool:
        """True if any factor can begin a sign-in."""
        return self.password or self.app or bool(self.passkeys)

    def can_sign_in_without_passkeys(self, *, mailed: bool) -> bool:
        """Return whether the password and a lasting second factor are available.

        Recovery codes do not count, since they run out. `mailed` says that codes can be sent by e-mail. Source: D45
        """
        return self.password and (self.app or mailed)


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A signed-in browser (D30); `expires_at` is absolute."""

    session_id: Annotated[str, KEY]
    user_id: Annotated[str, OF_PERSON]
    browser_id: str
    auth_time: int
    amr: tuple[str, ...]
    level: int
    expires_at: int
    entity_id: str = ""
    """the entity chosen last"""
    purpose: Annotated[SessionPurpose, LATER] = "sign_in"
    device: Annotated[str, LATER] = ""
    """browser and system, as their names are known, e.g. `Firefox on Windows`"""
    seen_at: Annotated[int, LATER] = 0
    """when it was used last, at most some minutes late"""
    browser_key: Annotated[str, LATER] = ""
    """what the browser is known by for this person, also after a sign-out; empty in a session of an earlier version"""


class SessionFactors(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and the factors of its person now (D50)."""

    session: Session
    credentials: Credentials
    owns_passkey: bool
    """whether the passkey that was asked for is theirs"""


class FactorLink(msgspec.Struct, frozen=True, kw_only=True):
    """A person's link, stored under the hash of its secret part."""

    link_hash: Annotated[str, Field(identifies=True, disclosure=Disclosure.BOOKKEEPING)]
    """SHA-256 of the secret part, in hexadecimal"""
    purpose: LinkPurpose
    user_id: Annotated[str, OF_PERSON]
    created_at: int
    expires_at: int
    factors: Annotated[str, BOOKKEEPING]
    """fingerprint of the person's factors when it was made (base64url), of an entity's invitation that of the address
    that it went to: a later change makes it void"""
    entity_id: Annotated[str, _LATER_BOOKKEEPING] = ""
    """the entity whose administrator asked for it (D69); empty: nobody there did"""
    asked_by: Annotated[str, _LATER_BOOKKEEPING] = ""
    """the user identifier of that administrator"""
    sent_to: Annotated[str, _LATER_BOOKKEEPING] = ""
    """fingerprint of the address that its owner had, and to which it may have gone; empty: none"""


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


class EmailChange(msgspec.Struct, frozen=True, kw_only=True):
    """A proven new address that takes effect later, unless it is undone.

    Moments in epoch seconds.
    """

    user_id: Annotated[str, PERSON]
    link_hash: str
    """of the link that undoes it, SHA-256 in hexadecimal"""
    old_email: str
    """in effect until then; empty if there was none"""
    new_email: str
    proved_at: int
    effective_at: int

    def stands(self, *, enabled: bool, email: str) -> bool:
        """Return whether the change stands for its person as they are now."""
        return enabled and email == self.old_email


ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 characters, without the letters that are mistaken for others: I, L, O and U"""
CHARACTERS: Final = 20
"""100 bits: a stolen table of hashes is of no use while a link works"""

_CONFUSED: Final = str.maketrans("OILU", "011V")
_LONGEST: Final = 500
"""characters of a typed or pasted text: a whole link, at most"""


def code_from(random: str) -> str:
    """Return a code as it is shown: five groups of four characters.

    It is derived from a random text of at least 100 bits.
    """
    number = int.from_bytes(sha256(random.encode()).digest())
    letters = "".join(ALPHABET[number >> 5 * place & 31] for place in range(CHARACTERS))
    return "-".join(letters[place : place + _GROUP] for place in range(0, CHARACTERS, _GROUP))


def canonical(typed: str) -> str:
    """Return the 20 characters of a typed code or pasted link.

    Of a link, the fragment counts. Case, spaces, dashes, full-width forms, digits of another script and characters that
    look alike do not matter. Raises ValueError for anything else. Source: D75
    """
    if len(typed) > _LONGEST:
        raise ValueError("too long for a code")
    plain = with_ascii_digits(unicodedata.normalize("NFKC", typed.rpartition("#")[2])).upper()
    letters = "".join(letter for letter in plain if letter.isalnum()).translate(_CONFUSED)
    if len(letters) != CHARACTERS or not set(letters) <= set(ALPHABET):
        raise ValueError(f"a code has {CHARACTERS} letters and digits")
    return letters


def hash_code(code: str) -> str:
    """The key of a link: SHA-256 over its code, hexadecimal. Raises ValueError.

    100 random bits need no slow hash.
    """
    return sha256(tuple_bytes("link-code", canonical(code))).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """A link as it is given to its person."""

    page: str
    """the URL of the page that opens links"""
    code: str
    """secret; to be typed on that page if it cannot be followed"""
    expires_at: int

    @property
    def url(self) -> str:
        """The link's URL, with its code in the fragment.

        No log holds the fragment. Source: RFC 9110 §4.2.5
        """
        return f"{self.page}#{self.code}"
