"""The sign-in as a state machine: states, events and transitions (D15, D29, D30, D45, D50).

A state is not stored: `state` derives it from the `Interaction` and the data loaded with it. A form is an event.
`TRANSITIONS` lists the events that a state accepts, and the states that may follow each of them. Any other event is
answered with the page of the current state. The functions below the table build the interaction after each move; a flow
loads their inputs, calls them, and writes their result. Each raises the serial by one, even if it passes through
several states. The first request to claim a serial moves the sign-in on; all others are too late. Last come the
conditions for skipping authentication in a signed-in browser, and for offering a passkey.
"""

from __future__ import annotations

from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from corpid.rules.limits import (
    INTERACTION_EXTENSIONS,
    INTERACTION_SECONDS,
    PASSKEY_OFFER_AGAIN_SECONDS,
    REDIRECT_REPEATED_SECONDS,
)
from corpid.rules.oauth import acr
from corpid.rules.oauth.authorization_request import AuthorizationRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.authentication.records import Credentials, PersonFactors


class SignInState(Enum):
    """The question that a sign-in waits for, or its end."""

    PASSWORD = "password"
    """no factor was verified: a password is asked for, or a passkey, and a user name unless only one person may sign
    in"""
    SECOND_FACTOR = "second factor"
    """the password was right"""
    OFFER = "offer"
    """every factor was verified; the person is asked once whether to create a passkey"""
    ENTITY = "entity"
    """every factor was verified; no entity is chosen, or the chosen one can no longer be used"""
    CONSENT = "consent"
    """an entity is chosen, and the person has to consent to the data that the client will read: it is not remembered"""
    CONFIRM = "confirm"
    """nothing remains to be asked, but no form of this browser has confirmed that: single sign-on"""
    EXPIRED = "expired"
    """its ten minutes are over"""
    ENDED = "ended"
    """it has an outcome"""


class SignInEvent(Enum):
    """An accepted form, or a finding when the sign-in is loaded."""

    PASSWORD = "password"
    """correct, of a person with a second factor"""
    PASSKEY = "passkey"
    """accepted"""
    SIMULATED = "simulated"
    """a test person without their factors, in developer mode (D66)"""
    WAY = "way"
    """another second-factor method"""
    CODE = "code"
    """correct"""
    MISSES = "misses"
    """one wrong code too many"""
    MAKE_PASSKEY = "make passkey"
    """a new one was verified"""
    NOT_NOW = "not now"
    """the person does not want a passkey now"""
    ENTITY = "entity"
    """usable at this client"""
    CONSENT = "consent"
    """the person agrees"""
    CONFIRM = "confirm"
    """the person continues with the existing session"""
    OTHER_ACCOUNT = "other account"
    """the person is somebody else"""
    EXTEND = "extend"
    """more time"""
    CANCEL = "cancel"
    LAPSE = "lapse"
    """the authentication is no longer valid: the session ended, a factor changed, or `max_age` passed"""
    EXPIRY = "expiry"
    """the ten minutes pass"""


_AUTHENTICATED: Final = frozenset({SignInState.ENTITY, SignInState.CONSENT, SignInState.ENDED})
"""after the last factor: the next question; ended if there is none, and for the account's own pages"""


def _open(state: SignInState, **taken: frozenset[SignInState]) -> dict[SignInEvent, frozenset[SignInState]]:
    """Return the transitions of a state, including those of every open state."""
    always = {SignInEvent.EXTEND: state, SignInEvent.CANCEL: SignInState.ENDED, SignInEvent.EXPIRY: SignInState.EXPIRED}
    return {SignInEvent[name]: states for name, states in taken.items()} | {
        event: frozenset({after}) for event, after in always.items()
    }


_AFTER_CODE: Final = _AUTHENTICATED | {SignInState.OFFER}
_ANONYMOUS: Final = frozenset({SignInState.PASSWORD})
_OVER: Final = frozenset({SignInState.ENDED})

TRANSITIONS: Final[Mapping[SignInState, Mapping[SignInEvent, frozenset[SignInState]]]] = {
    SignInState.PASSWORD: _open(
        SignInState.PASSWORD,
        PASSWORD=frozenset({SignInState.SECOND_FACTOR}),
        PASSKEY=_AUTHENTICATED,
        SIMULATED=_AUTHENTICATED,
        OTHER_ACCOUNT=_ANONYMOUS,
    ),
    SignInState.SECOND_FACTOR: _open(
        SignInState.SECOND_FACTOR,
        WAY=frozenset({SignInState.SECOND_FACTOR}),
        CODE=_AFTER_CODE,
        PASSKEY=_AUTHENTICATED,
        OTHER_ACCOUNT=_ANONYMOUS,
        MISSES=_OVER,
        LAPSE=_ANONYMOUS,
    ),
    SignInState.OFFER: _open(
        SignInState.OFFER,
        MAKE_PASSKEY=_AUTHENTICATED,
        NOT_NOW=_AUTHENTICATED,
        OTHER_ACCOUNT=_ANONYMOUS,
        LAPSE=_ANONYMOUS,
    ),
    SignInState.ENTITY: _open(
        SignInState.ENTITY,
        ENTITY=frozenset({SignInState.CONSENT, SignInState.ENDED}),
        OTHER_ACCOUNT=_ANONYMOUS,
        LAPSE=_ANONYMOUS,
    ),
    SignInState.CONSENT: _open(SignInState.CONSENT, CONSENT=_OVER, OTHER_ACCOUNT=_ANONYMOUS, LAPSE=_ANONYMOUS),
    # Consent may be remembered meanwhile, from another tab: the form that was shown before still counts.
    SignInState.CONFIRM: _open(
        SignInState.CONFIRM, CONFIRM=_OVER, CONSENT=_OVER, OTHER_ACCOUNT=_ANONYMOUS, LAPSE=_ANONYMOUS
    ),
    SignInState.EXPIRED: {},
    SignInState.ENDED: {},
}
"""by state and event, the states that may come next; the loaded data decide between them"""


class StaleStep(Exception):
    """The error for an event that the sign-in does not accept.

    Another request has moved the sign-in on, or is doing so.
    """


def require(state: SignInState, event: SignInEvent) -> None:
    """Check that a sign-in in this state accepts the event. Raises StaleStep (D15)."""
    if event not in TRANSITIONS[state]:
        raise StaleStep


class InteractionOutcome(Enum):
    CODE = "code"
    ACCOUNT = "account"
    """a session for the account's own pages"""
    REFUSED = "refused"


class SecondFactorMethod(Enum):
    """The second-factor methods, in order of preference.

    A code of an app comes first: it can be typed on any device, while a passkey may not be available there.
    """

    APP = "app"
    PASSKEY = "passkey"
    EMAIL = "email"
    RECOVERY = "recovery"
    SIMULATED = "simulated"
    """no method: developer mode signed a test person in (D66)"""


class Interaction(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One browser's sign-in for one request; times in epoch seconds."""

    interaction_id: str
    browser_id: str
    reference: str
    """the random part of the request_uri"""
    request: AuthorizationRequest
    expires_at: float
    extensions: int = 0
    serial: int = 0
    """raised by each step"""
    user_id: str = ""
    """set by the first factor"""
    amr: tuple[str, ...] = ()
    auth_time: int = 0
    """set by the last factor"""
    level: int = 0
    """the assurance level reached"""
    session_id: str = ""
    """the session that signed it in by single sign-on; a page then has to be confirmed"""
    factors: bytes = b""
    """fingerprint of the credentials that the first factor was checked against"""
    entity_id: str = ""
    consented: bool = False
    outcome: InteractionOutcome | None = None
    finished_at: float = 0
    error_description: str = ""
    user_name: str = ""
    """as the person typed it, in its mapped form; shown on the pages"""
    passkey: str = ""
    """the credential id of the passkey that signed it in"""
    way: SecondFactorMethod | None = None
    """the second-factor method that was chosen"""
    mails: int = 0
    """number of codes sent by e-mail, for any person who was signing in; it is part of each code"""
    mailed_at: int = 0
    """time of the last of them"""
    made_session_id: str = ""
    """the session that its factors began; the sign-in ends with it"""
    error_reason: str = ""
    """code of the reason of a refusal"""
    offers_passkey: bool = False
    """true until the person has answered whether to create a passkey"""
    language: str = ""
    """of the person's account, once the first factor was right; empty: none is known"""
    renewed_session_id: str = ""
    """the session whose person signs in again, and nobody else; empty: anybody may"""
    back: str | None = None
    """the own page that Cancel leads to; None: the home page"""
    uncounted: bool = False
    """true if its password counts as no attempt"""

    @property
    def signed_in(self) -> bool:
        """True after every factor has been verified."""
        return bool(self.auth_time)

    @property
    def anonymous(self) -> Interaction:
        """The same sign-in with no person signed in, as after a lapse.

        The next move stores it.
        """
        return _replace(
            self,
            user_id="",
            user_name="",
            amr=(),
            auth_time=0,
            level=0,
            session_id="",
            factors=b"",
            entity_id="",
            consented=False,
            passkey="",
            way=None,
            mailed_at=0,
            made_session_id="",
            offers_passkey=False,
            language="",
            uncounted=False,
        )


_replace: Final = msgspec.structs.replace


def state(interaction: Interaction, *, now: float, usable: bool, asks_consent: bool) -> SignInState:
    """Return the state of a sign-in.

    `usable` says that the chosen entity can be used, `asks_consent` that consent has to be given on a page. Both are
    ignored if the sign-in has an outcome, and before the last factor. Source: D15, D29, D30
    """
    if interaction.outcome is not None:
        return SignInState.ENDED
    if now >= interaction.expires_at:
        return SignInState.EXPIRED
    if not interaction.user_id:
        return SignInState.PASSWORD
    if not interaction.signed_in:
        return SignInState.SECOND_FACTOR
    if interaction.offers_passkey:
        return SignInState.OFFER
    if not interaction.entity_id or not usable:
        return SignInState.ENTITY
    return SignInState.CONSENT if asks_consent and not interaction.consented else SignInState.CONFIRM


class CompletedInteraction(msgspec.Struct, frozen=True, kw_only=True):
    """The interaction that answered a request, and the time (epoch seconds)."""

    interaction_id: str
    at: int

    def given_up(self, now: float) -> bool:
        """Return whether a missing answer will never be written.

        Nobody could receive it any more. Source: D15
        """
        return now >= self.at + REDIRECT_REPEATED_SECONDS


class ClosureReason(Enum):
    """The reason for which a sign-in accepts no more events."""

    ENDED = "ended"
    """it has an outcome, or the process that completed it died before writing one"""
    ANSWERED_ELSEWHERE = "answered elsewhere"
    """another interaction has completed the request"""
    ANSWERING = "answering"
    """another request has completed it, and is writing its outcome"""
    EXPIRED = "expired"


def closure_reason(
    interaction: Interaction, completed: CompletedInteraction | None, *, now: float
) -> ClosureReason | None:
    """Return the reason for which a sign-in is closed.

    The result is None while it is open. `completed` is the completion of its request, if any. Source: D15
    """
    if interaction.outcome is not None:
        return ClosureReason.ENDED
    if completed is None:
        return ClosureReason.EXPIRED if now >= interaction.expires_at else None
    if completed.interaction_id != interaction.interaction_id:
        return ClosureReason.ANSWERED_ELSEWHERE
    return ClosureReason.ENDED if completed.given_up(now) else ClosureReason.ANSWERING


def may_leave(interaction: Interaction, completed: CompletedInteraction | None, *, now: float) -> bool:
    """Return whether the browser of this sign-in may leave for the client.

    It may once the sign-in is over, whatever the answer is. Source: D15, D16
    """
    if interaction.outcome is not None or now >= interaction.expires_at:
        return True
    return completed is not None and completed.given_up(now)


def fingerprint(credentials: Credentials) -> bytes:
    """Return SHA-256 over both factors.

    Another password or secret gives another fingerprint.
    """
    return sha256(msgspec.msgpack.encode(credentials.factors)).digest()


def holds(interaction: Interaction, *, same_factors: bool, session_lives: bool, now: float) -> bool:
    """Return whether the authentication so far is still valid.

    If it is not, the sign-in lapses. It depends on the factors, their age, and the session that they began.
    `session_lives` refers to the session of `made_session_id` and is ignored if there is none. Single sign-on is judged
    by its session (`sign_in_suffices`). Source: D15, D40, D50
    """
    if not same_factors or (interaction.made_session_id and not session_lives):
        return False
    if not interaction.signed_in:
        return True
    return still_suffices(interaction.request, auth_time=interaction.auth_time, now=now)


_Shown: TypeAlias = tuple[str, ...]


def with_user(
    interaction: Interaction, *, user_id: str, user_name: str, credentials: Credentials, language: str = ""
) -> Interaction:
    """Return the interaction after a correct password, with its user.

    `user_name` is in its mapped form, `language` that of the account. Source: D15, D44
    """
    return _replace(
        interaction.anonymous,
        serial=interaction.serial + 1,
        user_id=user_id,
        user_name=user_name,
        factors=fingerprint(credentials),
        language=language,
    )


def other_way(interaction: Interaction, way: SecondFactorMethod) -> Interaction:
    """Return the interaction with another second-factor method (D45)."""
    return _replace(interaction, serial=interaction.serial + 1, way=way)


def with_mailed_code(interaction: Interaction, *, now: float) -> Interaction:
    """Return the interaction with a code sent by e-mail.

    The previous code becomes invalid. Source: D45
    """
    moved = other_way(interaction, SecondFactorMethod.EMAIL)
    return _replace(moved, mails=interaction.mails + 1, mailed_at=int(now))


def with_factors(
    interaction: Interaction,
    *,
    user_id: str,
    user_name: str,
    factors: bytes,
    amr: _Shown,
    level: int,
    passkey: str,
    way: SecondFactorMethod | None,
    offers_passkey: bool,
    now: float,
    language: str = "",
) -> Interaction:
    """Return the interaction after the last factor.

    `factors` is the fingerprint of the credentials that the factor was checked against. Source: D15, D45, D46
    """
    return _replace(
        interaction,
        serial=interaction.serial + 1,
        user_id=user_id,
        user_name=interaction.user_name or user_name,
        factors=factors,
        passkey=passkey,
        amr=amr,
        way=way,
        auth_time=int(now),
        level=level,
        offers_passkey=offers_passkey,
        language=language,
    )


def offer_answered(interaction: Interaction) -> Interaction:
    """Return the interaction after the offer of a passkey.

    It is not made again in this sign-in. Source: D46
    """
    return _replace(interaction, serial=interaction.serial + 1, offers_passkey=False)


def with_entity(interaction: Interaction, entity_id: str) -> Interaction:
    """Return the interaction with the entity that the person acts for.

    Consent given for another entity is discarded. Source: D17, D29
    """
    return _replace(interaction, serial=interaction.serial + 1, entity_id=entity_id, consented=False)


def with_consent_given(interaction: Interaction) -> Interaction:
    """Return the interaction after consent was given (D29)."""
    return _replace(interaction, serial=interaction.serial + 1, consented=True)


def without_user(interaction: Interaction) -> Interaction:
    """Return the interaction with no person signed in, and none expected.

    Another account can then be used. Source: D30
    """
    return _replace(interaction.anonymous, serial=interaction.serial + 1, renewed_session_id="")


def extendable(interaction: Interaction) -> bool:
    """Return whether the person can be given more time (D15)."""
    return interaction.extensions < INTERACTION_EXTENSIONS


def fresh_expiry(now: float) -> float:
    """Return the end of an interaction that begins or is extended now.

    `now` and the result are in epoch seconds. Source: D15
    """
    return now + INTERACTION_SECONDS


def with_more_time(interaction: Interaction, *, now: float) -> Interaction:
    """Return the interaction with another ten minutes (D15, WCAG 2.2.1)."""
    return _replace(
        interaction,
        serial=interaction.serial + 1,
        expires_at=fresh_expiry(now),
        extensions=interaction.extensions + 1,
    )


def with_outcome(
    before: Interaction,
    after: Interaction,
    outcome: InteractionOutcome,
    *,
    now: float,
    description: str = "",
    reason: str = "",
) -> Interaction:
    """Return the interaction, finished with this outcome.

    `before` is the interaction at the start of the move; `after` is the result of the same move so far, often `before`
    itself. For a refusal, `description` is for the client and `reason` is the code in the catalogue. Source: D15, D17
    """
    return _replace(
        after,
        serial=before.serial + 1,
        outcome=outcome,
        finished_at=now,
        error_description=description,
        error_reason=reason,
    )


def sign_in_suffices(request: AuthorizationRequest, *, auth_time: int, level: int, acr_prefix: str, now: float) -> bool:
    """Return whether a sign-in of this age and level answers the request (OpenID Connect Core §3.1.2.1, D40)."""
    if "login" in request.prompt or acr.urn(acr_prefix, level) != request.acr:
        return False
    return request.max_age is None or now - auth_time < request.max_age


def still_suffices(request: AuthorizationRequest, *, auth_time: int, now: float) -> bool:
    """Return whether a sign-in made for the request may still answer it.

    It is always valid for the ten minutes of a page. Otherwise a person who needs that time could never meet a small
    max_age (WCAG 2.2.1). Source: OpenID Connect Core §3.1.2.1, D15, D40
    """
    return request.max_age is None or now - auth_time < max(request.max_age, INTERACTION_SECONDS)


def requests_entity_choice(request: AuthorizationRequest) -> bool:
    """Return whether the client requests that an entity be chosen.

    The choice is then made on a page. Source: D40
    """
    return "select_account" in request.prompt


def requests_consent(request: AuthorizationRequest) -> bool:
    """Return whether the client requests consent on a page (D40)."""
    return "consent" in request.prompt


def forbids_pages(request: AuthorizationRequest) -> bool:
    """Return whether no page may be shown (D40)."""
    return "none" in request.prompt


def is_passkey_offer_due(
    request: AuthorizationRequest,
    held: PersonFactors,
    *,
    declined_at: int,
    acr_prefix: str,
    level: int,
    now: float,
) -> bool:
    """Return whether a person is offered a passkey in this sign-in.

    They have none, and have not declined one for 30 days. A client that asked for a new sign-in wants a proof of
    presence, and one whose level is not reached gets a refusal: neither waits for an offer. `declined_at` is 0 if they
    never declined. Source: D40, D46
    """
    if held.passkeys or now < declined_at + PASSKEY_OFFER_AGAIN_SECONDS:
        return False
    if "login" in request.prompt or request.max_age is not None:
        return False
    return acr.is_met(request.acr, prefix=acr_prefix, level=level)
