"""Lifetimes and sizes of the interface, in seconds and bytes or characters.

The size of a token and of a key set stand in `jose`, which knows no layer above it (D27, D33).
Source: Spec 8, and the decision that stands at a number
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86400

REQUEST_URI_SECONDS: Final = 60
CODE_SECONDS: Final = 60
ACCESS_TOKEN_SECONDS: Final = 600
API_TOKEN_SECONDS: Final = 600  # D59
ID_TOKEN_SECONDS: Final = 600
USERINFO_SECONDS: Final = 600

PUSHED_REQUEST_KEPT_SECONDS: Final = 720  # D15
INTERACTION_SECONDS: Final = 600  # D15
INTERACTION_EXTENSIONS: Final = 10  # D15
"""never fewer than ten (WCAG 2.2.1)"""
INTERACTIONS_PER_REQUEST: Final = 10  # D15
ARRIVALS_PER_BROWSER: Final = 10
"""sign-ins that a browser has begun without a pushed request, and has not finished"""
COMPLETION_KEPT_SECONDS: Final = 7200  # D15
REDIRECT_REPEATED_SECONDS: Final = 60  # D15
SHOWN_ONCE_SECONDS: Final = 60  # D73
UNDO_SECONDS: Final = 600  # D80
DENY_ENTRY_SECONDS: Final = 660  # D18
SPENT_MARGIN_SECONDS: Final = 300  # D49: records of what was spent outlive their end

CLOCK_AHEAD_SECONDS: Final = 30  # D7, D8
CLOCKS_APART_SECONDS: Final = 10  # D49: a node's and its engine's
PROOF_AGE_SECONDS: Final = 120  # D7

JTI_CHARACTERS: Final = 256  # D33
NUMERIC_DATE_MAX: Final = 2**53  # D33
STATE_CHARACTERS: Final = 2048  # D13
NONCE_CHARACTERS: Final = 512  # D13
CONTEXT_MESSAGE_CHARACTERS: Final = 100  # D12
UI_LOCALES_CHARACTERS: Final = 256
DESCRIPTION_CHARACTERS: Final = 300  # D28
LIVE_STATE_SECONDS: Final = 5  # D50
METADATA_CACHE_SECONDS: Final = HOUR  # Spec 4.6, 4.7
KEY_PUBLISHED_BEFORE_USE_SECONDS: Final = 7200  # D42

BODY_BYTES: Final = 65536  # D47
FORM_PAIRS: Final = 100  # D47
HEAD_BYTES: Final = 32768  # D47
HEAD_SECONDS: Final = 10  # D47
BODY_SECONDS: Final = 30  # D47
BULK_BODY_BYTES: Final = 16 * 1024 * 1024  # D59
BULK_BODY_SECONDS: Final = 120  # D59
UPLOAD_BYTES: Final = 1024 * 1024  # D81

CODE_MISSES: Final = 5  # D45
REPEAT_MISSES: Final = 3  # D34: other forms with a replaced cookie value
CODE_GUESSES: Final = 20  # D45: without a success between them, before the first pause
FIRST_CODE_PAUSE_SECONDS: Final = 900  # D45
LONGEST_CODE_PAUSE_SECONDS: Final = DAY  # D45
MAILED_CODE_SECONDS: Final = 600  # D45
MAILED_CODES_PER_SIGN_IN: Final = 3  # D45
MAILED_CODES_PER_HOUR: Final = 10  # D45
"""of one person, in all sign-ins"""


class OwnSession(NamedTuple):
    """Lifetime of a sign-in to the provider's own pages, in seconds."""

    seconds: int
    """at most"""
    idle: int
    """without use"""


ACCOUNT_SESSION_SECONDS: Final = HOUR
ACCOUNT_IDLE_SECONDS: Final = 900
OWN_SESSIONS: Final[Mapping[str, OwnSession]] = {
    "account": OwnSession(seconds=ACCOUNT_SESSION_SECONDS, idle=ACCOUNT_IDLE_SECONDS),
    "manage": OwnSession(seconds=8 * HOUR, idle=1800),
    "console": OwnSession(seconds=8 * HOUR, idle=1800),
}
"""by the purpose of the session; a change in portal and console needs a recent sign-in all the same (D54)"""
ACCOUNT_FRESH_SECONDS: Final = 300
"""how old a sign-in may be when a page is opened on which a factor is changed"""
ACCOUNT_PAGE_SECONDS: Final = 600
"""how long such a page stays open"""
ACCOUNT_PAGE_EXTENSIONS: Final = 10
"""how often it is given as long again; never fewer than ten (WCAG 2.2.1)"""
EMAIL_UNDO_SECONDS: Final = 72 * HOUR
"""how long a person's new e-mail address waits, and can be undone, before it takes effect"""
EMAIL_CODES_PER_PERSON: Final = 5
"""codes to new addresses, a day"""
EMAIL_CODES_PER_ADDRESS: Final = 5
"""codes of all people to one new address, a day"""
PASSKEYS_PER_PERSON: Final = 20
PASSKEY_OFFER_AGAIN_SECONDS: Final = 30 * DAY
"""how long a person who did not want a passkey is not offered one again"""
FACTOR_CHANGES: Final = 10
"""attempts of one person to change their own factors, before further ones have to wait"""
BROWSER_NAMES: Final = 50
"""names that one person gave their browsers"""
DATA_COPIES_PER_DAY: Final = 5
"""copies of everything that is kept about a person, for that person"""
ACCESS_REQUESTS_PER_DAY: Final = 10
"""requests of one person for access of their own"""

SET_UP_LINK_SECONDS: Final = 72 * HOUR
"""how long an operator's link lets a person set up their sign-in"""
MEMBERSHIP_LINK_SECONDS: Final = 7 * DAY
"""how long an entity's invitation can be accepted after it was sent"""
RESEND_SECONDS: Final = 1800
"""how long after an e-mail the next one of the same invitation can be sent"""
EMAILS_PER_ADDRESS: Final = 5
"""e-mails of all entities to one address a day; the others wait"""
INVITATIONS_PER_MINUTE: Final = 100
"""e-mails of entities that a deployment sends, whatever the number of its processes"""
NOTICES_PER_PERSON: Final = 10
"""e-mails about the administration of entities to one person a day; what is left comes the next day, in fewer"""
NOTICES_PER_MINUTE: Final = 100
"""such e-mails that a deployment sends, whatever the number of its processes"""
PASSWORD_LINK_SECONDS: Final = 1800
SECOND_FACTOR_LINK_SECONDS: Final = 24 * HOUR
ENROLMENT_SECONDS: Final = HOUR
"""how long a person has once they have opened a link"""
ENROLMENT_EXTENSIONS: Final = 10
"""how often they are given as long again; never fewer than ten (WCAG 2.2.1)"""
RECOVERIES_PER_ADDRESS: Final = 20
"""requests for a new password from one address, an hour"""
RECOVERIES_PER_ACCOUNT: Final = 3
"""e-mails with a new-password link for one account, while the first of them works"""
UNLOCK_AGAIN_SECONDS: Final = HOUR  # D69
"""how long after an administrator's unlocking of a person the next one is possible"""
HELP_PER_ENTITY: Final = 1000
"""helps with sign-in by one entity's administrators, a day"""
UNLOCKS_PER_DAY: Final = 3
"""of one person by administrators of entities: each brings back the guesses at a code"""
HELP_LINKS_PER_MEMBER: Final = 5
"""links with which one entity helps one person, a day"""
HELP_LINKS_PER_PERSON: Final = 10
"""links with which all entities together help one person, a day; further ones are dropped without a word"""
INVITATIONS_PER_DAY: Final = 25_000  # D60
"""of one entity; their e-mails leave at the deployment's rate"""
INVITATIONS_PER_ADDRESS: Final = 5
"""of one entity to one address, a day"""
PROVISIONING_CONDITIONS: Final = 10
"""of one filter"""
