"""Second factors: a person's methods, and the codes of each (D45).

Password checks: hashing and verification (D44, D47).
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import msgspec

from corpid.flows import namespaces, notifications
from corpid.rules.authentication import records, totp
from corpid.rules.authentication.passwords import HashingSource, require_allowed_password
from corpid.rules.authentication.records import Credentials, Passkey, PersonFactors
from corpid.rules.authentication.sign_in import SecondFactorMethod
from corpid.rules.authentication.totp import DIGITS, WrongCode
from corpid.rules.characters import typed_code
from corpid.rules.directory import names
from corpid.rules.directory.records import Account, User
from corpid.rules.failures import PasswordsBusy
from corpid.rules.limits import CODE_MISSES, MAILED_CODE_SECONDS, MAILED_CODES_PER_SIGN_IN
from corpid.rules.networks import neighbourhood
from corpid.texts import Phrase, counted

if TYPE_CHECKING:
    from corpid.flows.authentication.throttle import Attempt
    from corpid.flows.request_context import RequestContext
    from corpid.outbound.passwords import Passwords
    from corpid.rules.audit import AuditEvent
    from corpid.stores.sql.registry import Registry
    from corpid.stores.transient import TransientBatch


async def held_factors(registry: Registry, user_id: str) -> PersonFactors:
    """Return the factors of a person.

    They are empty for an unknown person. Raises StoreUnavailable. Source: D45, D46
    """
    found = await registry.factors.account(user_id)
    return (
        PersonFactors(credentials=Credentials(user_id=user_id), passkeys=(), codes=0) if found is None else found.held
    )


class Mailed(Protocol):
    """A sign-in or an enrolment for which codes are sent by e-mail."""

    @property
    def mails(self) -> int:
        """The number of codes sent."""

    @property
    def mailed_at(self) -> int:
        """The time of the last one in epoch seconds; 0: none."""


class AtSecondFactor(Mailed, Protocol):
    """A sign-in whose password was correct."""

    @property
    def way(self) -> SecondFactorMethod | None:
        """The chosen method, None if none was chosen."""


class SecondFactorQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question for a second factor after a correct password.

    It asks for one method and offers the others.
    """

    way: SecondFactorMethod
    others: tuple[SecondFactorMethod, ...] = ()
    email: str = ""
    """the address for codes, if the method is e-mail"""
    under_way: bool = False
    """true if a code was sent that is still valid"""
    more: bool = True
    """true if another code can be sent in this sign-in"""
    passkeys: tuple[Passkey, ...] = ()
    """the passkeys that can be used, if the method is a passkey"""


class PendingSecondFactor(msgspec.Struct, frozen=True, kw_only=True):
    """A person whose password was correct, with their second-factor methods.

    The person is loaded from the registry in one query.
    """

    account: Account
    ways: tuple[SecondFactorMethod, ...]
    shows_passkeys: bool
    """true if passkeys work here"""

    @property
    def user(self) -> User:
        return self.account.user

    @property
    def credentials(self) -> Credentials:
        return self.account.held.credentials

    @property
    def passkeys(self) -> tuple[Passkey, ...]:
        """Passkeys that can be used; empty if passkeys do not work here."""
        return self.account.held.passkeys if self.shows_passkeys else ()


def pending_second_factor(context: RequestContext, account: Account) -> PendingSecondFactor:
    """Return a person with their second-factor methods.

    There are none if nothing can be combined with the password. Source: D45, D46
    """
    found = available(context, account.user, account.held)
    return PendingSecondFactor(account=account, ways=found, shows_passkeys=SecondFactorMethod.PASSKEY in found)


def available(context: RequestContext, user: User, held: PersonFactors) -> tuple[SecondFactorMethod, ...]:
    """Return the second-factor methods that this person has.

    The result is empty if nothing can be combined with the password. Source: D45, D46
    """
    app = (SecondFactorMethod.APP,) if held.app else ()
    passkey = (SecondFactorMethod.PASSKEY,) if held.passkeys and context.provider.policy.takes_passkeys else ()
    email = (SecondFactorMethod.EMAIL,) if mails_codes(context, user) else ()
    return (*app, *passkey, *email, *((SecondFactorMethod.RECOVERY,) if held.codes else ()))


def mails_codes(context: RequestContext, user: User) -> bool:
    """Return whether codes can be sent to this person by e-mail (D45)."""
    return context.provider.policy.email_codes and context.provider.mail.works and bool(user.email)


def current_method(interaction: AtSecondFactor, person: PendingSecondFactor) -> SecondFactorMethod:
    """Return the current second-factor method of an interaction.

    It is the chosen one, as long as it is available. The person must have at least one. Source: D45
    """
    return interaction.way if interaction.way in person.ways else person.ways[0]


def under_way(mailed: Mailed, *, now: float) -> bool:
    """Return whether a code was sent by e-mail that is still valid (D45)."""
    return bool(mailed.mailed_at) and now < mailed.mailed_at + MAILED_CODE_SECONDS


def second_factor_question(
    interaction: AtSecondFactor, person: PendingSecondFactor, *, now: float
) -> SecondFactorQuestion:
    """Return the content of the second-factor page.

    The person must have at least one method. Source: D45
    """
    way, sent = current_method(interaction, person), under_way(interaction, now=now)
    more = interaction.mails < MAILED_CODES_PER_SIGN_IN
    lead_on = (other for other in person.ways if other is not SecondFactorMethod.EMAIL or sent or more)
    return SecondFactorQuestion(
        way=way,
        others=tuple(other for other in lead_on if other is not way),
        email=person.user.email,
        under_way=sent,
        more=more,
        passkeys=person.passkeys if way is SecondFactorMethod.PASSKEY else (),
    )


async def accept_app(context: RequestContext, credentials: Credentials, code: str, entry: AuditEvent) -> None:
    """Use up a code of the person's app.

    `entry` is for the audit log. Raises WrongCode and PerhapsUsed. Source: D45, D67
    """
    if not credentials.totp_secret:
        raise WrongCode("there is no app")
    step = totp.matching_step(credentials.totp_secret, code, context.now)
    registry = context.provider.registry
    if not await registry.factors.raise_totp_step(credentials.user_id, step, entry):
        if seconds := totp.wait_after_loss(step, registry.lost_at(), context.now):
            raise PerhapsUsed(seconds)
        raise WrongCode("this code was used before")


async def accept_recovery(context: RequestContext, user: User, code: str, entry: AuditEvent) -> None:
    """Use up one of the person's recovery codes and notify them.

    `entry` is for the audit log. Raises WrongCode. Source: D45
    """
    code_hash = records.recovery_code_hash(user.user_id, code)
    if not await context.provider.registry.factors.take_recovery_code(user.user_id, code_hash, entry):
        raise WrongCode("this is none of the recovery codes that are left")
    left = await context.provider.registry.factors.recovery_codes_left(user.user_id)
    notifications.notify(context, user, notifications.code_used(left))


async def count_miss(context: RequestContext, batch: TransientBatch, name: str) -> bool:
    """Count a wrong code; return whether it was one too many.

    `name` is an interaction or an enrolment. Source: D45
    """
    misses = namespaces.SECOND_FACTOR_MISSES.entry(context.provider.policy.base_url, name)
    return await context.counts.count(batch, misses) >= CODE_MISSES


def code_of(context: RequestContext, name: str, mailed: Mailed, user: User) -> str:
    """Return the six digits that were sent last for `name`.

    `name` is the unguessable id of a sign-in or an enrolment. Source: D45
    """
    return digits_of(context.keys.mac("email-code", name, user.user_id, user.email, str(mailed.mails)))


def digits_of(mac: str) -> str:
    """Return the six digits that a MAC of the server stands for (D45)."""
    number = int.from_bytes(sha256(mac.encode()).digest())
    return f"{number % 10**DIGITS:0{DIGITS}}"


def is_code(typed: str, code: str) -> bool:
    """Return whether a code was typed, compared in constant time. Source: D45, D75"""
    return hmac.compare_digest(typed_code(typed).encode(), code.encode())


def check_emailed_code(context: RequestContext, name: str, mailed: Mailed, user: User, code: str) -> None:
    """Check that this code was sent last, within ten minutes.

    Raises WrongCode. Source: D45
    """
    right = is_code(code, code_of(context, name, mailed, user))
    if not right or not under_way(mailed, now=context.now):
        raise WrongCode("this code was not sent, or has ended")


class PerhapsUsed(Exception):
    """A right code that may have been used before data was lost.

    Its refusal is CorpID's own and counts nowhere; `seconds` until the app shows one that works. Source: D45, D67
    """

    def __init__(self, seconds: int) -> None:
        super().__init__("the code may have been used before a loss of data")
        self.seconds = seconds

    @property
    def sentence(self) -> Phrase:
        """The explanation for the person."""
        return counted(
            self.seconds,
            "This site was interrupted, so this code is not accepted any more. Wait {count} second, then enter the next "
            "code from your app.",
            "This site was interrupted, so this code is not accepted any more. Wait {count} seconds, then enter the next "
            "code from your app.",
        )


async def hash_password(passwords: Passwords, user: User, password: str, *, source: HashingSource) -> str:
    """Return the hash of a password that this person may have.

    Raises PasswordRefused and PasswordsBusy. Source: D44
    """
    chosen = require_allowed_password(
        password, user_name=user.user_name, name=user.name, blocklist=passwords.guessable()
    )
    return await passwords.hash(chosen, source=source)


async def fits(
    context: RequestContext, attempt: Attempt, account: str, *, password_hash: str | None, password: str
) -> bool:
    """Return whether the password matches the hash.

    `account` is the user name in its mapped form. Raises PasswordsBusy. Source: D44, D47
    """
    source = _source(context, account, attempt)
    return await context.provider.passwords.verify(password_hash, password, source=source)


async def hash_new_password(context: RequestContext, attempt: Attempt, user: User, password: str) -> str:
    """Return the hash of a new password of this person.

    Raises PasswordRefused and PasswordsBusy. Source: D44, D47
    """
    source = _source(context, names.user_name(user.user_name), attempt)
    return await hash_password(context.provider.passwords, user, password, source=source)


async def rehash_if_outdated(
    context: RequestContext, attempt: Attempt, account: str, *, credentials: Credentials, password: str
) -> Credentials:
    """Return the credentials after a correct password, rehashed if outdated.

    The hash is raised to the current setting, or is one to which another sign-in has raised it meanwhile. If too many
    checks wait, it stays as it is until the next sign-in. Source: D44, docs/decisions/0031
    """
    passwords, factors = context.provider.passwords, context.provider.registry.factors
    old, source = credentials.password_hash or "", _source(context, account, attempt)
    if not passwords.is_outdated(old):
        return credentials
    try:
        new = await passwords.hash(password, source=source)
        if not await factors.rehash(credentials.user_id, old, new):
            stored = await factors.credentials(credentials.user_id)
            if not stored.password_hash or not await passwords.verify(stored.password_hash, password, source=source):
                return credentials  # the password was changed, which the next step notices
            new = stored.password_hash
    except PasswordsBusy:
        return credentials
    return msgspec.structs.replace(credentials, password_hash=new)


def _source(context: RequestContext, account: str, attempt: Attempt) -> HashingSource:
    return HashingSource(network=neighbourhood(context.address), account=account, known=attempt.known)
