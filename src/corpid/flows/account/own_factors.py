"""A person looks after their own factors (D44, D45, D46).

Each change is one conditional write, after a fresh sign-in; the person is told by letter, and where a factor was
removed or replaced every other session of theirs ends with it. What a page offers (an app's key, recovery codes) is
derived, and stored by nobody before it is confirmed.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.directory.access import Object, Person, authorise
from corpid.directory.password_rules import PasswordRefused, chosen_password
from corpid.directory.records import Credentials
from corpid.flows import interactions, notices, passkey_challenges, passkey_sign_in, ways
from corpid.flows.account import seats
from corpid.flows.enrolment.setting import proved_passkey, registration_options
from corpid.flows.interactions import StaleStep
from corpid.flows.sign_in import Rejected
from corpid.jose.encoding import base64url
from corpid.ports import FactorChange, Passkey
from corpid.protocol import recovery_codes, totp
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.account.seats import Seat
    from corpid.flows.caller import Caller
    from corpid.flows.notices import Notice
    from corpid.flows.provider import Provider

_CODES: Final = "account-codes"
_NAME_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What a person signs in with."""

    credentials: Credentials
    passkeys: tuple[Passkey, ...]
    codes_left: int

    @property
    def has_password(self) -> bool:
        """Whether there is one, whatever goes with it."""
        return bool(self.credentials.password_hash)


async def of(provider: Provider, sitting: Seat) -> Factors:
    """The factors of the person who sits here (D44, D45, D46)."""
    user_id = sitting.user.user_id
    return Factors(
        credentials=await provider.registry.directory.credentials(user_id) or Credentials(user_id=user_id),
        passkeys=tuple(await provider.registry.factors.passkeys(user_id)),
        codes_left=await provider.registry.factors.recovery_codes_left(user_id),
    )


async def change_password(provider: Provider, caller: Caller, sitting: Seat, *, password: str) -> None:
    """A new password. Raises Rejected, TooOld, PasswordsBusy (D44)."""
    seats.require_fresh(sitting, now=caller.now)
    try:
        blocklist = provider.passwords.guessable()
        chosen = chosen_password(password, user_name=sitting.user.user_name, blocklist=blocklist)
    except PasswordRefused as refusal:
        raise Rejected(refusal.sentence) from None
    password_hash = await provider.passwords.hash(chosen)
    before = (await of(provider, sitting)).credentials
    after = msgspec.structs.replace(before, password_hash=password_hash, password_set_by="user", password_source="")
    change = FactorChange(before=before, after=after, end_sessions_but=sitting.session.session_id)
    await _write(provider, caller, sitting, change, "factors.password", notices.PASSWORD_CHANGED)


def app_secret(provider: Provider, sitting: Seat, credentials: Credentials) -> str:
    """The secret (base32) that this session offers to an app: another one after every change of factors (D45)."""
    state = base64url(interactions.fingerprint(credentials))
    mac = provider.own_keys.mac("account-app", sitting.session.session_id, state)
    return totp.secret_from(_bytes(mac)[: totp.SECRET_BYTES])


async def set_up_app(provider: Provider, caller: Caller, sitting: Seat, *, code: str) -> None:
    """A new app, which shows by its first code that it has the secret. Raises Rejected and TooOld (D45)."""
    seats.require_fresh(sitting, now=caller.now)
    before = (await of(provider, sitting)).credentials
    secret = app_secret(provider, sitting, before)
    try:
        step = totp.matching_step(secret, code, caller.now)
    except totp.WrongCode:
        raise Rejected(
            phrase("This code is not right. Check that the app shows this account, then type its newest code.")
        ) from None
    after = msgspec.structs.replace(before, totp_secret=secret, totp_set_by="user", totp_last_step=step)
    change = FactorChange(before=before, after=after, end_sessions_but=sitting.session.session_id)
    await _write(provider, caller, sitting, change, "factors.app", notices.SECOND_FACTOR_CHANGED)


def offer_codes(provider: Provider, sitting: Seat) -> str:
    """What stands for ten recovery codes that are offered on a page; it works once. `own_keys.ring` was awaited before (D45)."""
    return passkey_challenges.make(provider, _CODES, sitting.session.session_id).decode()


def codes(provider: Provider, offer: str) -> tuple[str, ...]:
    """The recovery codes of an offer (D45)."""
    return tuple(
        recovery_codes.code_from(
            _bytes(provider.own_keys.mac("account-code", offer, str(number)))[: recovery_codes.BYTES]
        )
        for number in range(recovery_codes.HOW_MANY)
    )


async def replace_codes(provider: Provider, caller: Caller, sitting: Seat, *, offer: str, kept: bool) -> None:
    """Recovery codes that the person has kept replace those before. Raises Rejected, StaleStep and TooOld (D45)."""
    seats.require_fresh(sitting, now=caller.now)
    if not passkey_challenges.is_own(provider, offer.encode(), _CODES, sitting.session.session_id):
        raise StaleStep
    if not kept:
        raise Rejected(phrase("Keep the codes first, then say that you have done so."))
    async with provider.transient.unit(caller.now) as unit:
        first = await passkey_challenges.spend(provider, unit, offer.encode())
    if not first:
        raise StaleStep
    before, user_id = (await of(provider, sitting)).credentials, sitting.user.user_id
    hashes = tuple(recovery_codes.hashed(user_id, code) for code in codes(provider, offer))
    change = FactorChange(
        before=before, after=before, recovery_codes=hashes, end_sessions_but=sitting.session.session_id
    )
    await _write(provider, caller, sitting, change, "factors.recovery_codes", notices.NEW_RECOVERY_CODES)


def makes_passkeys(provider: Provider) -> bool:
    """Whether passkeys work here (D46)."""
    return passkey_sign_in.offered(provider)


async def passkey_options(provider: Provider, sitting: Seat) -> str:
    """The JSON that a page gives the browser to make a passkey; empty where passkeys do not work (D46)."""
    return await registration_options(provider, sitting.user, sitting.session.session_id)


async def add_passkey(provider: Provider, caller: Caller, sitting: Seat, *, answer: str, name: str) -> None:
    """A further passkey. Raises Rejected, StaleStep and TooOld (WebAuthn §7.1, D46)."""
    seats.require_fresh(sitting, now=caller.now)
    made = await proved_passkey(provider, caller, sitting.session.session_id, answer=answer)
    user_id, created_at = sitting.user.user_id, int(caller.now)
    passkey = Passkey(user_id=user_id, name=name, created_at=created_at, **msgspec.structs.asdict(made))
    before = (await of(provider, sitting)).credentials
    change = FactorChange(before=before, after=before, add_passkey=passkey)
    await _write(provider, caller, sitting, change, "factors.add_passkey", notices.PASSKEY_ADDED)


async def rename_passkey(provider: Provider, caller: Caller, sitting: Seat, passkey: Passkey, *, name: str) -> None:
    """Call a passkey something else. Raises Rejected and access.Forbidden (D46)."""
    chosen = " ".join(name.split())
    if not chosen or len(chosen) > _NAME_CHARACTERS or not chosen.isprintable():
        raise Rejected(phrase("Type a name of at most {characters} characters.", characters=_NAME_CHARACTERS))
    actor = Person(user_id=sitting.user.user_id)
    authorise(actor, "write", Object(kind="credentials", user_id=passkey.user_id))
    renamed = msgspec.structs.replace(passkey, name=chosen)
    event = seats.event(caller, sitting, "factors.rename_passkey")
    if not await provider.registry.factors.rename_passkey(renamed, event):
        raise Rejected(_MEANWHILE)


async def remove_passkey(provider: Provider, caller: Caller, sitting: Seat, passkey: Passkey) -> None:
    """Remove a passkey, if another way in is left: a passkey, or a password with a second factor that does not run out.

    Raises Rejected, TooOld and access.Forbidden. Source: D45, D46
    """
    seats.require_fresh(sitting, now=caller.now)
    authorise(Person(user_id=sitting.user.user_id), "write", Object(kind="credentials", user_id=passkey.user_id))
    factors = await of(provider, sitting)
    needed = not _password_suffices(provider, sitting, factors.credentials)
    if needed and len(factors.passkeys) == 1:
        raise Rejected(phrase("This passkey is your only way in. Set up another one, or a password and an app, first."))
    change = FactorChange(
        before=factors.credentials,
        after=factors.credentials,
        remove_passkey=passkey.credential_id,
        passkey_remains=needed,
        end_sessions_but=sitting.session.session_id,
    )
    await _write(provider, caller, sitting, change, "factors.remove_passkey", notices.PASSKEY_REMOVED)


def _password_suffices(provider: Provider, sitting: Seat, credentials: Credentials) -> bool:
    second = bool(credentials.totp_secret) or ways.mails_codes(provider, sitting.user)
    return bool(credentials.password_hash) and second


_MEANWHILE: Final = phrase("Your sign-in was changed meanwhile, on another page. Look at it again.")


async def _write(
    provider: Provider, caller: Caller, sitting: Seat, change: FactorChange, action: str, notice: Notice
) -> None:
    authorise(Person(user_id=sitting.user.user_id), "write", Object(kind="credentials", user_id=change.after.user_id))
    if not await provider.registry.factors.change(change, seats.event(caller, sitting, action)):
        raise Rejected(_MEANWHILE)
    notices.tell(provider, sitting.user, notice)


def _bytes(mac: str) -> bytes:
    return urlsafe_b64decode(mac + "=")
