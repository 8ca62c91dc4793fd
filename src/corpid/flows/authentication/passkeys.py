"""Passkeys: challenges, registration, sign-in and offer (D45, D46).

A challenge is `nonce.mac`. The MAC covers its purpose and subject, so opening a page stores nothing. A passkey is
offered at most once in a sign-in, after the last factor.
"""

from __future__ import annotations

import hmac
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from corpid.flows import namespaces, notifications
from corpid.flows.authentication import browsers, sessions, sign_in, throttle
from corpid.flows.authentication.sign_in import PasskeyOffer, event
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication import passkeys as law
from corpid.rules.authentication.passkeys import (
    CounterWentBack,
    NewPasskey,
    PasskeyRefused,
    RelyingParty,
    relying_party,
)
from corpid.rules.authentication.records import FactorChange, Passkey
from corpid.rules.authentication.sign_in import Interaction, SecondFactorMethod, SignInEvent, StaleStep, offer_answered
from corpid.rules.directory import names
from corpid.rules.directory.access import Object, Person, authorise
from corpid.rules.directory.records import Account, MissingReference, User
from corpid.rules.limits import PASSKEYS_PER_PERSON
from corpid.rules.oauth import acr
from corpid.rules.readers import display_name
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import RequestContext
    from corpid.stores.transient import TransientBatch

CHARACTERS: Final = 60
_REGISTRATION: Final = "registration"
_REASON_CHARACTERS: Final = 200
"""bounded, since it may repeat the browser's input"""
_ALONE: Final = "sign-in"
_BESIDE_A_PASSWORD: Final = "second-factor"
_OF_THIS_ACCOUNT: Final = phrase("This passkey was not accepted. Use another one of this account, or another way.")
_OF_ANY_ACCOUNT: Final = phrase("This passkey was not accepted. Use another one, or your user name and password.")


class ForeignChallenge(StaleStep):
    """A challenge that was not issued here, or was for something else."""


def make_challenge(context: RequestContext, purpose: str, subject: str) -> bytes:
    """Return a new challenge for one purpose and subject.

    It is valid only for this purpose and this subject (an interaction or an account). Source: WebAuthn §13.4.3, D46
    """
    nonce = context.provider.new_id()
    return f"{nonce}.{_mac(context, purpose, subject, nonce)}".encode()


async def redeem(context: RequestContext, challenge: bytes, purpose: str, subject: str) -> None:
    """Use up a challenge that was made for this purpose and subject.

    Raises ForeignChallenge, which uses nothing up, and StaleStep for every request except the first. Source: WebAuthn
    §7.2, D46
    """
    require_own(context, challenge, purpose, subject)
    async with context.provider.transient.batch(context.now) as batch:
        if not await spend(context, batch, challenge):
            raise StaleStep


def require_own(context: RequestContext, challenge: bytes, purpose: str, subject: str) -> None:
    """Check that a challenge was made for this purpose and subject.

    Raises ForeignChallenge. Source: WebAuthn §7.2, D46
    """
    nonce, _, mac = challenge.decode("ascii", "replace").partition(".")
    if not hmac.compare_digest(mac.encode(), _mac(context, purpose, subject, nonce).encode()):
        raise ForeignChallenge


async def spend(context: RequestContext, batch: TransientBatch, challenge: bytes) -> bool:
    """Use up a challenge. Return True for the first request only.

    Source: WebAuthn §7.2, D46
    """
    text = challenge.decode("ascii", "replace")
    return await namespaces.CHALLENGE.entry(context.provider.policy.base_url, text).add(batch)


def _mac(context: RequestContext, purpose: str, subject: str, nonce: str) -> str:
    return context.keys.mac("challenge", purpose, subject, nonce)


def default_name(context: RequestContext) -> str:
    """Return the default name of a new passkey.

    It consists of the browser that created it and the day, e.g. `Firefox on Linux, 2027-01-15`. If the browser names no
    device, the provider's name is used, which also needs no translation. Source: D51
    """
    day = context.today
    where = context.device or context.provider.policy.name
    return f"{where[: CHARACTERS - len(day) - 2]}, {day}"


def canonical_name(typed: str) -> str:
    """Return the canonical form of a name that a person has typed.

    Raises InvalidInput for a name that is unreadable or too long. Source: D51
    """
    remedy = phrase("Enter a name of at most {characters} characters.", characters=CHARACTERS)
    try:
        name = display_name(typed)
    except ValueError as error:
        raise InvalidInput(names.remedy_of(error, remedy)) from None
    if len(name) > CHARACTERS:
        raise InvalidInput(remedy)
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class PasskeyAnswer:
    """The unverified content of an answer."""

    answer: dict[str, Any]
    challenge: bytes
    passkey: Passkey | None
    user: User | None


def _party(context: RequestContext) -> RelyingParty:
    policy = context.provider.policy
    return relying_party(policy.base_url, policy.name, policy.passkey_rp_id)


def authentication_options(
    context: RequestContext, purpose: str, subject: str, *, allowed: Iterable[Passkey] = ()
) -> str:
    """Return the JSON with which the browser asks for a passkey.

    The result is empty if passkeys do not work here. With `allowed`, one of these has to be used. Opening the page
    uses nothing up. Source: WebAuthn §5.5, D46
    """
    if not context.provider.policy.takes_passkeys:
        return ""
    _load_verification_meanwhile()
    return law.authentication_options(
        _party(context),
        challenge=make_challenge(context, purpose, subject),
        allowed={each.credential_id: each.transports for each in allowed},
    )


def load_verification() -> None:
    """Load what verifies answers.

    A server does so before it forks its workers. Source: docs/decisions/0036
    """
    from corpid.rules.authentication import passkey_verification  # noqa: F401, PLC0415 - takes long, see there


@cache
def _load_verification_meanwhile() -> None:
    """Load it while somebody is asked for a passkey.

    So their answer does not wait.
    """
    threading.Thread(target=load_verification, name="passkey-verification", daemon=True).start()


async def verify_own_passkey(
    context: RequestContext,
    answer: str,
    *,
    purpose: str,
    subject: str,
    entry_of: Callable[[User], AuditEvent],
    owner_id: str,
) -> None:
    """Verify a browser's answer, in JSON, with a passkey of one person.

    `entry_of` makes the audit entry of its use. The challenge, which was made for `purpose` and `subject`, is used up
    first, whatever the result. Raises PasskeyRefused and StaleStep. Source: WebAuthn §7.2, D46
    """
    parsed = law.parse_answer(answer)
    passkey = await context.provider.registry.factors.passkey(law.credential_id(parsed))
    user = await context.provider.registry.directory.user(passkey.user_id) if passkey else None
    claim = PasskeyAnswer(answer=parsed, challenge=law.challenge_of(parsed), passkey=passkey, user=user)
    await _redeem(context, claim.challenge, purpose, subject)
    await _verified(context, claim, entry_of=entry_of, only=owner_id)


async def _verified(
    context: RequestContext, claim: PasskeyAnswer, *, entry_of: Callable[[User], AuditEvent], only: str
) -> tuple[User, Passkey]:
    """Verify an answer whose challenge was used up.

    Returns the owner, and the passkey after its use. `only` is the id of the one person whose passkeys are accepted;
    empty accepts any person's. Raises PasskeyRefused.
    """
    passkey, user = claim.passkey, claim.user
    if passkey is None:
        raise PasskeyRefused("no such passkey is known here")
    if only and passkey.user_id != only:
        raise PasskeyRefused("this passkey is not one of this person's")
    from corpid.rules.authentication.passkey_verification import verify_authentication  # noqa: PLC0415 - loaded by now

    proven = verify_authentication(
        _party(context),
        claim.answer,
        challenge=claim.challenge,
        public_key=passkey.public_key,
        sign_count=passkey.sign_count,
        synced=passkey.synced,
        user_handle=passkey.user_id.encode(),
        identified=bool(only),
    )
    if user is None or not user.enabled:
        raise PasskeyRefused("its owner can no longer sign in")
    used = msgspec.structs.replace(passkey, sign_count=proven.sign_count, used_at=int(context.now))
    if not await context.provider.registry.factors.use_passkey(used, passkey, entry_of(user)):
        raise CounterWentBack("the counter was raised meanwhile, or the passkey was removed")
    return user, used


def describe_refusal(refusal: PasskeyRefused) -> str:
    """Return the reason of a refusal for the audit log."""
    return repr(str(refusal)[:_REASON_CHARACTERS])


async def registration_options(context: RequestContext, user: User, subject: str) -> str:
    """Return the JSON with which the browser creates a passkey.

    The result is empty if passkeys do not work here. `subject` is the enrolment or session that the page belongs to.
    Source: WebAuthn §5.4, D46
    """
    if not context.provider.policy.takes_passkeys:
        return ""
    known = await context.provider.registry.factors.passkeys(user.user_id)
    return creation_options(context, user, subject, known=known)


def creation_options(context: RequestContext, user: User, subject: str, *, known: Iterable[Passkey]) -> str:
    """Return the JSON of `registration_options`, with known passkeys.

    The result is empty if passkeys do not work here. No passkey is loaded. Source: WebAuthn §5.4, D46
    """
    if not context.provider.policy.takes_passkeys:
        return ""
    from corpid.rules.authentication import passkey_verification  # noqa: PLC0415 - few pages offer to make a passkey

    return passkey_verification.registration_options(
        _party(context),
        challenge=make_challenge(context, _REGISTRATION, subject),
        user_handle=user.user_id.encode(),
        user_name=user.user_name,
        display_name=user.name,
        known=[each.credential_id for each in known],
    )


def make_record(context: RequestContext, user_id: str, made: NewPasskey) -> Passkey:
    """Return the record of a person's new passkey (D46)."""
    return Passkey(
        user_id=user_id, name=default_name(context), created_at=int(context.now), **msgspec.structs.asdict(made)
    )


async def verify_new_passkey(context: RequestContext, subject: str, *, answer: str) -> NewPasskey:
    """Verify a new passkey and use up the challenge of its subject.

    Raises InvalidInput and StaleStep. Source: WebAuthn §7.1, D46
    """
    from corpid.rules.authentication.passkey_verification import verify_registration  # noqa: PLC0415 - loaded by now

    try:
        parsed = law.parse_answer(answer)
        challenge = law.challenge_of(parsed)
        await _redeem(context, challenge, _REGISTRATION, subject)
        made = verify_registration(_party(context), parsed, challenge=challenge)
        if await context.provider.registry.factors.passkey(made.credential_id) is not None:
            raise PasskeyRefused("this passkey is known already")
    except PasskeyRefused:
        raise InvalidInput(phrase("The passkey could not be set up. Try again, or choose another way.")) from None
    return made


async def _redeem(context: RequestContext, challenge: bytes, purpose: str, subject: str) -> None:
    try:
        await redeem(context, challenge, purpose, subject)
    except ForeignChallenge as error:
        raise PasskeyRefused("the challenge was not made for this page") from error


def _purpose(interaction: Interaction) -> str:
    return _BESIDE_A_PASSWORD if interaction.user_id else _ALONE


def options(context: RequestContext, loaded: InteractionContext, *, allowed: Iterable[Passkey] = ()) -> str:
    """Return the passkey JSON for a page of the sign-in.

    The result is empty if passkeys do not work here, or if the one person who may sign in has none. Opening the page
    uses nothing up. After the password, `allowed` are the person's passkeys. Source: D45, D46, D54
    """
    interaction = loaded.interaction
    if loaded.renewing is not None:
        allowed = loaded.renewing.held.passkeys
        if not allowed:
            return ""
    return authentication_options(context, _purpose(interaction), interaction.interaction_id, allowed=allowed)


async def submit_passkey(context: RequestContext, loaded: InteractionContext, *, answer: str) -> InteractionContext:
    """Verify a browser's answer in JSON and continue the sign-in.

    Returns the updated context, with a new cookie value. After the password, or if one person has to sign in again, the
    passkey has to be theirs. The person reads the same sentence for every fault. Raises InvalidInput, Throttled,
    StaleStep, OtherBrowser, FormHandled, AlreadyCompleted. Source: WebAuthn §7.2, D15, D45, D46, D54
    """
    interaction = loaded.interaction
    expected = loaded.renewing.user.user_id if loaded.renewing else interaction.user_id
    loaded.require(context, SignInEvent.PASSKEY)
    parsed: dict[str, Any] = {}
    challenge, refusal, spent = b"", None, False
    try:
        parsed = law.parse_answer(answer)
        challenge = law.challenge_of(parsed)
        require_own(context, challenge, _purpose(interaction), interaction.interaction_id)
    except ForeignChallenge:
        refusal = PasskeyRefused("the challenge was not made for this page")
    except PasskeyRefused as malformed:
        refusal = malformed
    async with context.provider.transient.batch(context.now) as batch:
        await browsers.note_form(context, batch, loaded.cookie, loaded.form)
        await throttle.attempt_unguessable(context, batch)
        if refusal is None:
            spent = await spend(context, batch, challenge)
    pending = (
        await sign_in.require_password_given(context, loaded, SignInEvent.PASSKEY) if interaction.user_id else None
    )
    account = pending.account if pending else None
    try:
        if refusal is not None and not challenge:
            raise refusal
        account, claim = await _claimed(context, account, parsed, challenge)
        if refusal is not None:
            raise refusal
        if not spent or account is None:
            raise StaleStep if not spent else PasskeyRefused("no such passkey is known here")
        _, used = await _verified(
            context, claim, entry_of=lambda owner: _event(context, loaded, owner, "ok"), only=expected
        )
    except PasskeyRefused as refused:
        owner = account.user if account else None
        entry = _event(context, loaded, owner, "refused", reason=describe_refusal(refused))
        await context.provider.registry.audit.write(entry, now=context.now)
        raise InvalidInput(_OF_THIS_ACCOUNT if expected else _OF_ANY_ACCOUNT) from None
    amr = acr.PASSWORD_AND_PASSKEY if pending else acr.PASSKEY
    if pending is None and loaded.knows():
        name, browser_key = names.user_name(account.user.user_name), loaded.browser.browser_key
        last = await throttle.last_entity(context, name, browser_key, user_id=account.user.user_id)
        loaded = replace(loaded, last_entity=last)
    shown = sessions.Authentication(account=account, amr=amr, passkey=used.credential_id)
    return await sessions.start_session(context, loaded, shown)


async def _claimed(
    context: RequestContext, pending: Account | None, parsed: dict[str, Any], challenge: bytes
) -> tuple[Account | None, PasskeyAnswer]:
    """Return the claimed account and the claim of an answer.

    Nothing is verified yet.
    """
    credential_id = law.credential_id(parsed)
    account = pending or await context.provider.registry.factors.account_by_passkey(credential_id)
    passkey = None
    for each in account.held.passkeys if account else ():
        if each.credential_id == credential_id:
            passkey = each
    if passkey is None and pending is not None:
        passkey = await context.provider.registry.factors.passkey(credential_id)
    return account, PasskeyAnswer(
        answer=parsed, challenge=challenge, passkey=passkey, user=account.user if account else None
    )


def _event(
    context: RequestContext,
    loaded: InteractionContext,
    user: User | None,
    outcome: Literal["ok", "refused"],
    **detail: str,
) -> AuditEvent:
    if loaded.interaction.user_id:
        way = SecondFactorMethod.PASSKEY.value
        return event(context, loaded, user, AuditAction.SIGN_IN_SECOND_FACTOR, outcome, way=way, **detail)
    return event(context, loaded, user, AuditAction.SIGN_IN_PASSKEY, outcome, **detail)


def offer_options(context: RequestContext, loaded: InteractionContext, page: PasskeyOffer) -> str:
    """Return the JSON with which the browser creates the passkey.

    The result is empty if passkeys no longer work here. Opening the page uses nothing up. Source: WebAuthn §5.4, D46
    """
    account = page.account
    return creation_options(context, account.user, _offer_subject(loaded), known=account.held.passkeys)


def _offer_subject(loaded: InteractionContext) -> str:
    """Return what a challenge is for: this person in this sign-in."""
    return f"{loaded.interaction.interaction_id} {loaded.interaction.user_id}"


async def accept_offer(context: RequestContext, loaded: InteractionContext, *, answer: str) -> InteractionContext:
    """Add the new passkey and continue the sign-in; return the updated context.

    The passkey is written only while the session lives that the sign-in's factors began. Raises InvalidInput, Throttled
    and StaleStep, and the errors of `completion.complete_request` if nothing else remains to be asked. Source: WebAuthn
    §7.1, D15, D46, D47
    """
    interaction = loaded.interaction
    loaded.require(context, SignInEvent.MAKE_PASSKEY)
    user_id = interaction.user_id
    await throttle.attempt_change(context, user_id)
    made = await verify_new_passkey(context, _offer_subject(loaded), answer=answer)
    account = await context.provider.registry.factors.account(user_id)
    if account is None or not account.user.enabled:
        raise StaleStep
    person = Person(user_id=user_id)
    authorise(person, "write", Object(kind="credentials", user_id=user_id))
    credentials = account.held.credentials
    change = FactorChange(
        before=credentials,
        after=credentials,
        add_passkey=make_record(context, user_id, made),
        passkeys_at_most=PASSKEYS_PER_PERSON,
        session_id=interaction.made_session_id,
    )
    client_id = loaded.client.client_id
    event = context.event(person, AuditAction.FACTORS_ADD_PASSKEY, subject=user_id, client_id=client_id)
    if not await context.provider.registry.factors.change(change, event):
        raise InvalidInput(phrase("The passkey could not be set up. Try again, or choose another way."))
    notifications.notify(context, account.user, notifications.PASSKEY_ADDED)
    await browsers.record_passkey(context, loaded.cookie, loaded.browser)
    return await _continue(context, loaded)


async def decline_offer(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    """Continue the sign-in without a passkey; return the updated context.

    The person is not offered one again for 30 days. Raises the same errors as `accept_offer`. Source: D15, D46
    """
    loaded.require(context, SignInEvent.NOT_NOW)
    user_id = loaded.interaction.user_id
    authorise(Person(user_id=user_id), "write", Object(kind="credentials", user_id=user_id))
    try:
        await context.provider.registry.factors.decline_passkey(user_id, at=int(context.now))
    except MissingReference:  # the person was erased at this moment
        raise StaleStep from None
    return await _continue(context, loaded)


async def _continue(context: RequestContext, loaded: InteractionContext) -> InteractionContext:
    usable = await sign_in.find_chosen_entity(context, loaded) is not None
    return await sign_in.continue_sign_in(context, loaded, offer_answered(loaded.interaction), usable=usable)
