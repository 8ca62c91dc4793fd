"""Namespaces of the transient store: lifetime, key and codec of each.

Keys are SHA-256 over a length-prefixed tuple, so no value of one kind or client can be taken for another's,
and a leaked table spends nothing. Names in the store do not follow renames in the code: entries of a running deployment
have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import msgspec

from corpid.rules import limits
from corpid.rules.limits import DAY
from corpid.rules.oauth.authorization_request import PushedRequest
from corpid.rules.oauth.records import Grant
from corpid.rules.transient import PipelinedVerb

if TYPE_CHECKING:
    from corpid.stores.transient import TransientBatch, TransientStore

T = TypeVar("T")
R = TypeVar("R")

_CODECS: Final[Mapping[type, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]]] = {
    bytes: (bytes, bytes),
    str: (str.encode, bytes.decode),
    int: (b"%d".__mod__, lambda stored: int(stored or 0)),  # SQL and LMDB keep nothing of a count that is 0 again
}


@dataclass(frozen=True, slots=True)
class Namespace(Generic[T]):
    """A namespace of the transient store.

    `seconds` is how long its entries live (0: the entry decides). `record` is the type of its values: bytes are stored
    as they are, text as UTF-8, counters in decimal, records as MessagePack.
    """

    name: str
    seconds: float
    record: type[T]
    encoded: Callable[[T], bytes] = field(init=False, repr=False, compare=False)
    """the stored form of a value"""
    decoded: Callable[[bytes], T] = field(init=False, repr=False, compare=False)
    """the value of its stored form; raises msgspec.DecodeError for anything this namespace never wrote"""

    def __post_init__(self) -> None:
        encoded, decoded = _CODECS.get(self.record) or (
            msgspec.msgpack.encode,
            msgspec.msgpack.Decoder(self.record).decode,
        )
        object.__setattr__(self, "encoded", encoded)
        object.__setattr__(self, "decoded", decoded)

    def entry(self, issuer: str, *parts: str) -> Entry[T]:
        """The entry of these parts; nothing is read or written yet.

        Its key is a SHA-256 hash (32 bytes) over kind, issuer and what names the entry.
        """
        return Entry(self, sha256(msgspec.msgpack.encode((self.name, issuer, *parts))).digest())

    def with_record(self, record: type[R]) -> Namespace[R]:
        """The same namespace, with values of this type.

        For a record that is declared above this module.
        """
        return Namespace(self.name, self.seconds, record)


class EntryVerb(msgspec.Struct, Generic[T], frozen=True):
    """A verb for one entry in a pipeline, with its result's decoder."""

    verb: PipelinedVerb
    decode: Callable[[Any], Any]


class Entry(msgspec.Struct, Generic[T], frozen=True):
    """One entry of a namespace, there or not.

    Its methods are the verbs of TransientBatch.
    """

    namespace: Namespace[T]
    key: bytes

    async def read(self, store: TransientStore, *, now: float) -> T | None:
        """Read the value outside a batch. Raises StoreUnavailable."""
        stored = await store.get(self.namespace.name, self.key, now=now)
        return None if stored is None else self.namespace.decoded(stored)

    async def get(self, batch: TransientBatch) -> T | None:
        """The value, if it is there. Raises StoreUnavailable."""
        stored = await batch.get(self.namespace.name, self.key)
        return None if stored is None else self.namespace.decoded(stored)

    async def take(self, batch: TransientBatch) -> T | None:
        """Get and delete, atomically. Raises StoreUnavailable."""
        stored = await batch.take(self.namespace.name, self.key)
        return None if stored is None else self.namespace.decoded(stored)

    async def put(self, batch: TransientBatch, value: T, *, seconds: float | None = None) -> None:
        """Overwrite the entry; `seconds` replaces the namespace's lifetime.

        Raises StoreUnavailable.
        """
        lifetime = self.namespace.seconds if seconds is None else seconds
        await batch.put(self.namespace.name, self.key, self.namespace.encoded(value), lifetime)

    async def add(self, batch: TransientBatch, value: T | None = None, *, seconds: float | None = None) -> bool:
        """True for the first only, until it expires.

        `seconds` if the entry decides. Raises StoreUnavailable.
        """
        stored = b"" if value is None else self.namespace.encoded(value)
        lifetime = self.namespace.seconds if seconds is None else seconds
        return await batch.add(self.namespace.name, self.key, lifetime, stored)

    def getting(self) -> EntryVerb[T | None]:
        """As `get`, for a pipeline."""
        return EntryVerb(PipelinedVerb("get", self.namespace.name, self.key), self.namespace.decoded)

    def taking(self) -> EntryVerb[T | None]:
        """As `take`, for a pipeline."""
        return EntryVerb(PipelinedVerb("take", self.namespace.name, self.key), self.namespace.decoded)

    def adding(self, value: T | None = None, *, seconds: float | None = None) -> EntryVerb[bool]:
        """As `add`, for a pipeline."""
        stored = b"" if value is None else self.namespace.encoded(value)
        lifetime = self.namespace.seconds if seconds is None else seconds
        return EntryVerb(PipelinedVerb("add", self.namespace.name, self.key, lifetime, stored), bool)

    async def count_unseen(self, batch: TransientBatch, by: int) -> None:
        """As `count`, if the number is not needed. Raises StoreUnavailable."""
        await batch.count_unseen(self.namespace.name, self.key, self.namespace.seconds, by)

    async def count(self, batch: TransientBatch, by: int = 1) -> int:
        """Raise a counter and return it.

        `by` may be below zero, never zero. The first raise starts its lifetime. Raises StoreUnavailable.
        """
        return await batch.count(self.namespace.name, self.key, self.namespace.seconds, by)


_PLACE: Final = attrgetter("namespace.name", "key")
_COUNTER: Final = attrgetter("namespace.name", "key", "namespace.seconds")
_VERB: Final = attrgetter("verb")


async def read_each(store: TransientStore, /, *entries: Entry[Any], now: float) -> list[Any]:
    """The values of several entries, None for those not there.

    Read in one pipeline, outside a batch. Raises StoreUnavailable. Source: docs/architecture.md, "One-time use"
    """
    found: list[Any] = []
    stored = await store.get_each([*map(_PLACE, entries)], now=now)
    for each, value in zip(entries, stored, strict=True):
        found.append(None if value is None else each.namespace.decoded(value))
    return found


@overload
async def pipeline(batch: TransientBatch, first: EntryVerb[T], second: EntryVerb[R], /) -> tuple[T, R]: ...
@overload
async def pipeline(batch: TransientBatch, /, *verbs: EntryVerb[T]) -> tuple[T, ...]: ...
async def pipeline(batch: TransientBatch, /, *verbs: EntryVerb[Any]) -> tuple[Any, ...]:
    """Run independent verbs in one pipeline, and return their results in order.

    Raises StoreUnavailable. Source: docs/architecture.md, "One-time use"
    """
    found: list[Any] = []
    results = await batch.pipeline([*map(_VERB, verbs)])
    for each, result in zip(verbs, results, strict=True):
        found.append(None if result is None else each.decode(result))
    return tuple(found)


async def count_each(batch: TransientBatch, entries: Sequence[Entry[int]]) -> list[int]:
    """Raise several counters by one in one pipeline. Raises StoreUnavailable.

    Source: docs/architecture.md, "One-time use"
    """
    return await batch.count_each([*map(_COUNTER, entries)])


PUSHED_REQUEST: Final = Namespace("pushed_request", limits.PUSHED_REQUEST_KEPT_SECONDS, PushedRequest)
ARRIVAL: Final = Namespace("arrival", limits.COMPLETION_KEPT_SECONDS, str)
INTERACTION_COUNT: Final = Namespace("interaction_count", limits.PUSHED_REQUEST_KEPT_SECONDS, int)
INTERACTION: Final = Namespace("interaction", limits.COMPLETION_KEPT_SECONDS + limits.SPENT_MARGIN_SECONDS, bytes)
UNTOUCHED_SECONDS: Final = limits.PUSHED_REQUEST_KEPT_SECONDS
"""the lifetime of an interaction without a verified factor: that of a pushed request"""
UNFINISHED: Final = Namespace("unfinished", UNTOUCHED_SECONDS, str)
"""the sign-ins that a browser has begun without a pushed request"""
CLAIM: Final = Namespace("claim", limits.COMPLETION_KEPT_SECONDS + limits.SPENT_MARGIN_SECONDS, str)
COMPLETED: Final = Namespace("completed", limits.COMPLETION_KEPT_SECONDS + limits.SPENT_MARGIN_SECONDS, str)
API_KEYS: Final = Namespace("api_keys", DAY, int)
"""idempotency keys that one client of the admin API has used"""
RATE: Final = Namespace("rate", 120, bytes)
"""longer than the minute that it counts"""
STEP: Final = Namespace("step", 60, bytes)
CODE: Final = Namespace("code", limits.CODE_SECONDS, Grant)
DENIED_TOKEN: Final = Namespace("denied_token", limits.DENY_ENTRY_SECONDS, bytes)
PROOF: Final = Namespace("proof", 0, bytes)
ASSERTION: Final = Namespace("assertion", 0, bytes)
BROWSER: Final = Namespace("browser", 90 * DAY, bytes)
NEW_BROWSER_SECONDS: Final = DAY
"""how long a browser is known before its first sign-in; nothing is stored of it"""
RETIRED_BROWSER: Final = Namespace("retired_browser", NEW_BROWSER_SECONDS + limits.SPENT_MARGIN_SECONDS, bytes)
"""outlives the cookie value that a sign-in has ended"""
REPEATED_FORM: Final = Namespace("repeated_form", 60, bytes)
REPEAT_MISSES: Final = Namespace("repeat_misses", 60, int)
"""other forms that came with a cookie value which a form has replaced; as long as that is remembered"""
KNOWN_BROWSER: Final = Namespace("known_browser", 90 * DAY, str)
ATTEMPTS: Final = Namespace("attempts", 900, int)
ATTEMPT_BUCKET: Final = Namespace("attempt_bucket", 900, int)
"""attempts, and until when the next one waits (`rules.authentication.throttling`)"""
UNLOCKS: Final = Namespace("unlocks", 1800, int)
"""outlives the attempts that an unlocking makes forgotten"""
SECOND_FACTOR_MISSES: Final = Namespace("second_factor_misses", limits.COMPLETION_KEPT_SECONDS, int)
MISSES_OF_OWNER: Final = Namespace("misses_of_owner", DAY, int)
"""wrong codes after the right password, reported to the person once in that time"""
CHALLENGE: Final = Namespace("challenge", limits.COMPLETION_KEPT_SECONDS + limits.SPENT_MARGIN_SECONDS, bytes)
"""outlives whatever a challenge can be for"""
INVITATIONS: Final = Namespace("invitations", DAY, int)
"""of an entity, in all and to one address"""
HELP_BY_ENTITY: Final = Namespace("help_by_entity", DAY, int)
"""with sign-in, of any kind"""
HELP_LINKS_TO_MEMBER: Final = Namespace("help_links_to_member", DAY, int)
"""those that one entity sends one person"""
HELP_LINKS_TO_PERSON: Final = Namespace("help_links_to_person", DAY, int)
"""those that all entities send one person"""
HELP_UNLOCK_OF_MEMBER: Final = Namespace("help_unlock_of_member", limits.UNLOCK_AGAIN_SECONDS, bytes)
"""that one entity asks for"""
HELP_UNLOCKS_OF_MEMBER: Final = Namespace("help_unlocks_of_member", DAY, int)
"""those that one entity asks for"""
HELP_UNLOCKS_OF_PERSON: Final = Namespace("help_unlocks_of_person", DAY, int)
"""those that all entities ask for"""
HELP_UNLOCK_OF_PERSON: Final = Namespace("help_unlock_of_person", limits.UNLOCK_AGAIN_SECONDS, bytes)
"""that any entity asks for"""
MAILED_CODES: Final = Namespace("mailed_codes", 3600, int)
NEWCOMER: Final = Namespace("newcomer", 90 * DAY, bytes)
"""a person who has set up their sign-in and has not used it yet"""
RECOVERIES: Final = Namespace("recoveries", 3600, bytes)
"""requests for a new password from one address"""
RECOVERY_EMAILS: Final = Namespace("recovery_letters", limits.PASSWORD_LINK_SECONDS, bytes)
"""no longer than a link lasts: a person who gets no further e-mail has one that works"""
ENROLMENT: Final = Namespace("enrolment", limits.ENROLMENT_SECONDS + limits.SPENT_MARGIN_SECONDS, bytes)
OPENED_LINK: Final = Namespace("opened_link", DAY, str)
"""as long as a browser is known before its first sign-in"""
ANSWERED_INVITATION: Final = Namespace("answered_invitation", DAY, bytes)
"""as long as its opened link, so that a form that is sent again leads to the same page"""
INVITATIONS_TO_ADDRESS: Final = Namespace("invitations_to_address", DAY, int)
INVITATION_EMAILS: Final = Namespace("invitation_letters", 120, int)
"""longer than the minute that it counts"""
NOTICES_TO_PERSON: Final = Namespace("notices_to_person", DAY, int)
NOTICE_EMAILS: Final = Namespace("notice_emails", 120, int)
"""longer than the minute that it counts"""
LINK_CLAIM: Final = Namespace("link_claim", limits.ENROLMENT_SECONDS, str)
ACCOUNT_PAGE: Final = Namespace("account_page", limits.ACCOUNT_PAGE_SECONDS, bytes)
CLOSED_ACCOUNT_PAGE: Final = Namespace("closed_account_page", limits.ACCOUNT_SESSION_SECONDS, bytes)
"""outlives the session that such a page is open for, and so every time that it is given"""
LATE_FORM: Final = Namespace("kept_form", limits.INTERACTION_SECONDS, bytes)
"""a form that came too late, while its person signs in again, encrypted"""
REJECTED_FORM: Final = Namespace("rejected_form", limits.INTERACTION_SECONDS, str)
"""a form that was not accepted, or is to be confirmed, encrypted (`encrypted_values`)"""
REJECTED_ONCE: Final = Namespace("rejected_once", limits.INTERACTION_SECONDS, bytes)
"""the bytes of a rejected form, so that the same once more are no further attempt"""
SHOWN_ONCE: Final = Namespace("shown_once", limits.SHOWN_ONCE_SECONDS, str)
"""a secret that is shown once, encrypted, until its person has acknowledged it (`encrypted_values`)"""
SAVED_FORM: Final = Namespace("saved_form", 60, str)
"""where a form of portal or console led, so that a double click changes nothing twice; empty while it is used"""
NEWEST_FORM: Final = Namespace("newest_form", limits.INTERACTION_SECONDS, bytes)
"""the form of portal or console that a session has accepted last: only its result is repeated"""
UNDO: Final = Namespace("undo", limits.UNDO_SECONDS, str)
"""what a session of portal or console has changed last, encrypted"""
NEW_EMAIL: Final = Namespace("new_email", limits.MAILED_CODE_SECONDS, bytes)
"""the address that a person wants, while the code that was sent there works"""
NEW_EMAIL_CODES: Final = Namespace("new_email_codes", DAY, int)
"""codes to new addresses, of one person"""
NEW_EMAIL_CODES_TO: Final = Namespace("new_email_codes_to", DAY, int)
"""the same, to one address"""
UNDONE_EMAIL: Final = Namespace("undone_email", DAY, str)
"""as long as its opened link, so that a form that is sent again leads to the same page"""
ACCOUNT_OFFER: Final = Namespace("account_offer", DAY, str)
"""what is offered in the account, an app's key or recovery codes, can be accepted for as long"""
DATA_COPIES: Final = Namespace("data_copies", DAY, int)
"""of one person's data, for that person"""
ACCESS_REQUESTS: Final = Namespace("access_requests", DAY, int)
"""of one person, for access of their own"""
UNDER_WAY: Final = Namespace("under_way", limits.ENROLMENT_SECONDS, str)
"""the enrolment that a person has begun last, for each purpose"""


def code_entry(issuer: str, generation: str, client_id: str, code: str, challenge: str) -> Entry[Grant]:
    """The entry of an authorization code.

    Found only by its client, with its verifier, under the generation that it was issued in. Source: D18
    """
    return CODE.entry(issuer, generation, client_id, code, challenge)
