"""The sign-in as a machine: states, events, and the table of transitions (D15, D29, D30, D45, D50).

A state is not stored as such: it follows from the `Interaction` and from what is loaded with it (`state`). A form is an
event. `TRANSITIONS` says which events a state takes, and in which states each of them may leave the sign-in; whoever
sends another event is shown the page of the state. The functions below the table make the interaction of each move; a
flow loads what they need, asks them, and writes what they return. Each raises the serial by one, whatever the number of
states that it passes: who claims a serial first moves the sign-in on, everybody else is too late.
"""

from __future__ import annotations

from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from corpid.jose.encoding import tuple_bytes
from corpid.rules.authentication import single_sign_on
from corpid.rules.limits import INTERACTION_EXTENSIONS, INTERACTION_SECONDS
from corpid.rules.oauth.records import AuthorizationRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.authentication.records import Credentials


class State(Enum):
    """Where a sign-in is."""

    PASSWORD = "password"
    """nobody is known: a user name and a password are asked for, or a passkey"""
    SECOND_FACTOR = "second factor"
    """the password was right"""
    ENTITY = "entity"
    """every factor was shown; no entity is chosen, or the chosen one can no longer be used"""
    CONSENT = "consent"
    """an entity is chosen, and the person has to agree to what the client will read"""
    CONFIRM = "confirm"
    """nothing remains to be asked, and no form of this browser has said so: single sign-on"""
    EXPIRED = "expired"
    """its ten minutes are over"""
    ENDED = "ended"
    """it has an outcome"""


class Event(Enum):
    """What moves a sign-in: a form that is accepted, or what is found when the sign-in is loaded."""

    PASSWORD = "password"
    """the right one, of somebody who has a second factor"""
    PASSKEY = "passkey"
    """one that was accepted"""
    WAY = "way"
    """another way to show the second factor"""
    CODE = "code"
    """the right one"""
    MISSES = "misses"
    """one wrong code too many"""
    ENTITY = "entity"
    """one that can be used"""
    CONSENT = "consent"
    """the person agrees"""
    CONFIRM = "confirm"
    """the person goes on with the session that is there"""
    OTHER_ACCOUNT = "other account"
    """the person is somebody else"""
    EXTEND = "extend"
    """more time"""
    CANCEL = "cancel"
    LAPSE = "lapse"
    """what was shown holds no longer: the session ended, a factor changed, `max_age` passed"""
    EXPIRY = "expiry"
    """the ten minutes pass"""


_AUTHENTICATED: Final = frozenset({State.ENTITY, State.CONSENT, State.ENDED})
"""after the last factor: what is asked for next; ended if nothing is, and for the account's own pages"""


def _open(state: State, **taken: frozenset[State]) -> dict[Event, frozenset[State]]:
    """The events of a state, with those that every open state takes."""
    always = {Event.EXTEND: state, Event.CANCEL: State.ENDED, Event.EXPIRY: State.EXPIRED}
    return {Event[name]: states for name, states in taken.items()} | {
        event: frozenset({after}) for event, after in always.items()
    }


_ANONYMOUS: Final = frozenset({State.PASSWORD})
_OVER: Final = frozenset({State.ENDED})

TRANSITIONS: Final[Mapping[State, Mapping[Event, frozenset[State]]]] = {
    State.PASSWORD: _open(State.PASSWORD, PASSWORD=frozenset({State.SECOND_FACTOR}), PASSKEY=_AUTHENTICATED),
    State.SECOND_FACTOR: _open(
        State.SECOND_FACTOR,
        WAY=frozenset({State.SECOND_FACTOR}),
        CODE=_AUTHENTICATED,
        PASSKEY=_AUTHENTICATED,
        MISSES=_OVER,
        LAPSE=_ANONYMOUS,
    ),
    State.ENTITY: _open(
        State.ENTITY,
        ENTITY=frozenset({State.CONSENT, State.ENDED}),
        OTHER_ACCOUNT=_ANONYMOUS,
        LAPSE=_ANONYMOUS,
    ),
    State.CONSENT: _open(State.CONSENT, CONSENT=_OVER, OTHER_ACCOUNT=_ANONYMOUS, LAPSE=_ANONYMOUS),
    State.CONFIRM: _open(State.CONFIRM, CONFIRM=_OVER, OTHER_ACCOUNT=_ANONYMOUS, LAPSE=_ANONYMOUS),
    State.EXPIRED: {},
    State.ENDED: {},
}
"""by state and event, the states that may come next; which of them follows from what is loaded"""


class StaleStep(Exception):
    """The sign-in does not take this event: another request has moved it on, or is doing so."""


def require(state: State, event: Event) -> None:
    """Return if a sign-in in this state takes the event. Raises StaleStep. Source: D15"""
    if event not in TRANSITIONS[state]:
        raise StaleStep


class Outcome(Enum):
    """How an interaction ended."""

    CODE = "code"
    ACCOUNT = "account"
    """a session for the account's own pages"""
    REFUSED = "refused"


class Way(Enum):
    """What is asked for. A code of an app goes first: it can be typed on any device, where a passkey may not be."""

    APP = "app"
    PASSKEY = "passkey"
    EMAIL = "email"
    RECOVERY = "recovery"


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
    """the session that signed it in, where single sign-on did: a page has to be confirmed"""
    factors: bytes = b""
    """fingerprint of the credentials that the first factor was checked against"""
    entity_id: str = ""
    consented: bool = False
    outcome: Outcome | None = None
    finished_at: float = 0
    error_description: str = ""
    user_name: str = ""
    """as the person typed it, in its mapped form; shown on the pages"""
    passkey: str = ""
    """the credential id of the passkey that signed it in"""
    way: Way | None = None
    """the way of the second factor that was chosen"""
    mails: int = 0
    """codes sent by e-mail, whoever was signing in: their number is part of each"""
    mailed_at: int = 0
    """when the last of them was sent"""
    made_session_id: str = ""
    """the session that its factors began, with which it ends"""
    error_reason: str = ""
    """code of the reason of a refusal"""

    @property
    def signed_in(self) -> bool:
        """Whether every factor was shown."""
        return bool(self.auth_time)

    @property
    def anonymous(self) -> Interaction:
        """The same sign-in with nobody signed in, as a lapse leaves it; the next move stores that."""
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
        )


_replace: Final = msgspec.structs.replace


def state(interaction: Interaction, *, now: float, usable: bool, asks_consent: bool) -> State:
    """The state of a sign-in; `usable`: whether the chosen entity can be used, `asks_consent`: whether consent has a page here.

    Of a sign-in with an outcome, or before the last factor, neither is looked at. Source: D15, D29, D30
    """
    if interaction.outcome is not None:
        return State.ENDED
    if now >= interaction.expires_at:
        return State.EXPIRED
    if not interaction.user_id:
        return State.PASSWORD
    if not interaction.signed_in:
        return State.SECOND_FACTOR
    if not interaction.entity_id or not usable:
        return State.ENTITY
    return State.CONSENT if asks_consent and not interaction.consented else State.CONFIRM


def fingerprint(credentials: Credentials) -> bytes:
    """SHA-256 over both factors: another password or secret gives another one (DESIGN, Security)."""
    return sha256(tuple_bytes(*credentials.factors)).digest()


def holds(interaction: Interaction, *, same_factors: bool, session_lives: bool, now: float) -> bool:
    """Return whether what was shown still counts: its factors, their age, and the session that they began. If not: a lapse.

    `session_lives` is about the session of `made_session_id`, and not looked at if there is none. Single sign-on is
    judged by its session (`single_sign_on.suffices`). Source: D15, D40, D50
    """
    if not same_factors or (interaction.made_session_id and not session_lives):
        return False
    if not interaction.signed_in:
        return True
    return single_sign_on.still_suffices(interaction.request, auth_time=interaction.auth_time, now=now)


_Shown: TypeAlias = tuple[str, ...]


def known(interaction: Interaction, *, user_id: str, user_name: str, credentials: Credentials) -> Interaction:
    """After a right password: who it is, `user_name` in its mapped form. Source: D15, D44"""
    return _replace(
        interaction.anonymous,
        serial=interaction.serial + 1,
        user_id=user_id,
        user_name=user_name,
        factors=fingerprint(credentials),
    )


def other_way(interaction: Interaction, way: Way) -> Interaction:
    """With another way to show the second factor. Source: D45"""
    return _replace(interaction, serial=interaction.serial + 1, way=way)


def mailed(interaction: Interaction, *, now: float) -> Interaction:
    """With a code on its way by e-mail; the one before ends. Source: D45"""
    moved = other_way(interaction, Way.EMAIL)
    return _replace(moved, mails=interaction.mails + 1, mailed_at=int(now))


def authenticated(
    interaction: Interaction,
    *,
    user_id: str,
    user_name: str,
    credentials: Credentials,
    amr: _Shown,
    level: int,
    passkey: str,
    way: Way | None,
    now: float,
) -> Interaction:
    """After the last factor; `credentials` are those that it was checked against. Source: D15, D45, D46"""
    return _replace(
        interaction,
        serial=interaction.serial + 1,
        user_id=user_id,
        user_name=interaction.user_name or user_name,
        factors=fingerprint(credentials),
        passkey=passkey,
        amr=amr,
        way=way,
        auth_time=int(now),
        level=level,
    )


def chosen(interaction: Interaction, entity_id: str) -> Interaction:
    """With the entity that the person acts for; what was agreed to for another one counts no more. Source: D17, D29"""
    return _replace(interaction, serial=interaction.serial + 1, entity_id=entity_id, consented=False)


def consented(interaction: Interaction) -> Interaction:
    """After the person has agreed. Source: D29"""
    return _replace(interaction, serial=interaction.serial + 1, consented=True)


def forgotten(interaction: Interaction) -> Interaction:
    """With nobody signed in, so that another account can be used. Source: D30"""
    return _replace(interaction.anonymous, serial=interaction.serial + 1)


def extendable(interaction: Interaction) -> bool:
    """Return whether the person can be given more time. Source: D15"""
    return interaction.extensions < INTERACTION_EXTENSIONS


def fresh_expiry(now: float) -> float:
    """When an interaction ends that begins or is extended at `now` (D15)."""
    return now + INTERACTION_SECONDS


def extended(interaction: Interaction, *, now: float) -> Interaction:
    """With another ten minutes. Source: D15, WCAG 2.2.1"""
    return _replace(
        interaction,
        serial=interaction.serial + 1,
        expires_at=fresh_expiry(now),
        extensions=interaction.extensions + 1,
    )


def ended(
    before: Interaction, after: Interaction, outcome: Outcome, *, now: float, description: str = "", reason: str = ""
) -> Interaction:
    """Finished in the move that began at `before`; `after` is what the same move has decided so far, often `before` itself.

    Of a refusal: `description` is for the client, `reason` the code in the catalogue. Source: D15, D17
    """
    return _replace(
        after,
        serial=before.serial + 1,
        outcome=outcome,
        finished_at=now,
        error_description=description,
        error_reason=reason,
    )
