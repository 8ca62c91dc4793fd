"""What lives in the transient store: each kind with its lifetime, and how its keys are made.

Keys are SHA-256 over a length-prefixed tuple, so no value of one kind or client can stand for another's,
and a leaked table spends nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from corpid.jose.encoding import tuple_bytes
from corpid.rules import limits

DAY: Final = 86400


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace of the transient store; `seconds` is how long its entries live (0: the entry decides)."""

    name: str
    seconds: float


PUSHED_REQUEST: Final = Namespace("pushed_request", limits.PUSHED_REQUEST_KEPT_SECONDS)
ARRIVAL: Final = Namespace("arrival", limits.COMPLETION_KEPT_SECONDS)
INTERACTION_COUNT: Final = Namespace("interaction_count", limits.PUSHED_REQUEST_KEPT_SECONDS)
INTERACTION: Final = Namespace("interaction", limits.COMPLETION_KEPT_SECONDS + limits.SPENT_MARGIN_SECONDS)
UNTOUCHED_SECONDS: Final = limits.PUSHED_REQUEST_KEPT_SECONDS
"""how long an interaction is kept in which nobody has shown anything: no longer than a request that was pushed"""
UNFINISHED: Final = Namespace("unfinished", UNTOUCHED_SECONDS)
"""the sign-ins that a browser has begun without a pushed request"""
CLAIM: Final = Namespace("claim", limits.COMPLETION_KEPT_SECONDS + limits.SPENT_MARGIN_SECONDS)
COMPLETED: Final = Namespace("completed", limits.COMPLETION_KEPT_SECONDS + limits.SPENT_MARGIN_SECONDS)
RATE: Final = Namespace("rate", 120)
"""longer than the minute that it counts"""
STEP: Final = Namespace("step", 60)
CODE: Final = Namespace("code", limits.CODE_SECONDS)
DENIED_TOKEN: Final = Namespace("denied_token", limits.DENY_ENTRY_SECONDS)
PROOF: Final = Namespace("proof", 0)
ASSERTION: Final = Namespace("assertion", 0)
BROWSER: Final = Namespace("browser", 90 * DAY)
NEW_BROWSER_SECONDS: Final = DAY
"""how long a browser is known in which nobody has signed in yet; nothing is stored of it"""
RETIRED_BROWSER: Final = Namespace("retired_browser", NEW_BROWSER_SECONDS + limits.SPENT_MARGIN_SECONDS)
"""outlives the cookie value that a sign-in has ended"""
REPEATED_FORM: Final = Namespace("repeated_form", 60)
REPEAT_MISSES: Final = Namespace("repeat_misses", 60)
"""other forms that came with a cookie value which a form has replaced; as long as that is remembered"""
KNOWN_BROWSER: Final = Namespace("known_browser", 90 * DAY)
ATTEMPTS: Final = Namespace("attempts", 900)
ATTEMPTS_GIVEN_BACK: Final = Namespace("attempts_given_back", 900)
"""attempts of the same window that were counted and never tried"""
SIGN_INS: Final = Namespace("sign_ins", 900)
UNLOCKS: Final = Namespace("unlocks", 1800)
"""outlives the attempts that an unlocking makes forgotten"""
ATTEMPT_SLOT: Final = Namespace("attempt_slot", 0)
SECOND_FACTOR_MISSES: Final = Namespace("second_factor_misses", limits.COMPLETION_KEPT_SECONDS)
MISSES_OF_OWNER: Final = Namespace("misses_of_owner", DAY)
"""wrong codes after the right password, of which a person is told once in that time"""
CHALLENGE: Final = Namespace("challenge", limits.COMPLETION_KEPT_SECONDS + limits.SPENT_MARGIN_SECONDS)
"""outlives whatever a challenge can be for"""
MAILED_CODES: Final = Namespace("mailed_codes", 3600)
NEWCOMER: Final = Namespace("newcomer", 90 * DAY)
"""a person who has set up their sign-in and has not used it yet"""
RECOVERIES: Final = Namespace("recoveries", 3600)
"""requests for a new password from one address"""
RECOVERY_LETTERS: Final = Namespace("recovery_letters", limits.PASSWORD_LINK_SECONDS)
"""no longer than a link lasts: whoever gets no further letter has one that works"""
ENROLMENT: Final = Namespace("enrolment", limits.ENROLMENT_SECONDS + limits.SPENT_MARGIN_SECONDS)
OPENED_LINK: Final = Namespace("opened_link", DAY)
"""as long as a browser is known in which nobody has signed in"""
LINK_CLAIM: Final = Namespace("link_claim", limits.ENROLMENT_SECONDS)
ACCOUNT_PAGE: Final = Namespace("account_page", limits.ACCOUNT_PAGE_SECONDS)
CLOSED_ACCOUNT_PAGE: Final = Namespace("closed_account_page", limits.ACCOUNT_SESSION_SECONDS)
"""outlives the session that such a page is open for, and so every time that it is given"""
ACCOUNT_OFFER: Final = Namespace("account_offer", DAY)
"""what is offered in the account, an app's key or recovery codes, stays the same for as long"""
UNDER_WAY: Final = Namespace("under_way", limits.ENROLMENT_SECONDS)
"""the enrolment that a person has begun last, for each purpose"""


def code_key(issuer: str, generation: str, client_id: str, code: str, challenge: str) -> bytes:
    """The key of a code: found only by its client, with its verifier, under the generation it was issued in (D18)."""
    return key(CODE, issuer, generation, client_id, code, challenge)


def key(kind: Namespace, issuer: str, *parts: str) -> bytes:
    """The key of an entry: 32 bytes, a hash over kind, issuer and what names the entry (DESIGN, Security)."""
    return hashlib.sha256(tuple_bytes(kind.name, issuer, *parts)).digest()
