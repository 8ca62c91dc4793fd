"""The steps of an enrolment: proof, new factors, and one write (D44-D46).

What a person still has is verified first, then new factors are accepted; they are written together at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.flows import notifications
from corpid.flows.account import enrolments, links
from corpid.flows.account.enrolments import Enrolment, EnrolmentContext, NotHere
from corpid.flows.account.links import EnrolmentStep
from corpid.flows.authentication import factors as factor_checks
from corpid.flows.authentication import passkeys, sessions, sign_in, throttle
from corpid.flows.authentication.factors import SecondFactorQuestion
from corpid.flows.authentication.sign_in import WRONG_PASSWORD
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication.passkeys import PasskeyRefused
from corpid.rules.authentication.passwords import PasswordRefused
from corpid.rules.authentication.records import Credentials, FactorChange, Passkey, recovery_code_hash
from corpid.rules.authentication.sign_in import SecondFactorMethod, StaleStep
from corpid.rules.authentication.totp import WrongCode
from corpid.rules.characters import typed_code
from corpid.rules.directory import names
from corpid.rules.directory.access import Object, Person, authorise
from corpid.rules.directory.memberships import MemberQuery, OpenInvitation
from corpid.rules.limits import MAILED_CODES_PER_SIGN_IN
from corpid.rules.readers import display_name
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from corpid.flows.authentication.throttle import Attempt
    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.throttling import CodeGuesses
    from corpid.rules.directory.records import Membership, User
    from corpid.stores.sql.registry import Registry

_NAME_CHARACTERS: Final = 200
NAME_TAKEN: Final = phrase("This user name is taken. Choose another one.")
_NO_USER_NAME: Final = phrase(
    "Choose a user name without spaces, with at most {count} letters, digits and symbols such as . - _ @.",
    count=names.USER_NAME_CHARACTERS,
)
_SYMBOLS: Final = frozenset(".-_+")
RESERVED_NAMES: Final = frozenset(
    """
    you nobody none unknown anonymous removed person somebody system corpid operator operators administrator owner
    subadministrator support auditor invited theoperator anoperator aremovedperson nobodyatpresent
    thesigninserviceitself yoursystemwithaprovisioningtoken
    您 无 人员 运营者 一名运营者 已移除的人员 目前没有人 登录服务本身 贵方系统使用自动配置令牌 已邀请 受邀 所有者 管理员 子管理员 副管理员 支持人员 审计员
    anda tiada tiadasesiapabuatmasaini orang pengendali seorangpengendali orangyangtelahdialihkeluar perkhidmatanlogmasukitusendiri
    dijemput pemilik pentadbir subpentadbir sokongan juruaudit sistemandadengantokenperuntukan
    நீங்கள் இல்லை தற்போதுயாரும்இல்லை நபர் இயக்குநர் ஓர்இயக்குநர் இயக்குநர்கள் அகற்றப்பட்டஒருவர் நீக்கப்பட்டஒருவர் அகற்றப்பட்டநபர் நீக்கப்பட்டநபர் உள்நுழைவுச்சேவையே
    அழைக்கப்பட்டார் அழைக்கப்பட்டவர் உரிமையாளர் நிர்வாகி துணைநிர்வாகி உதவிப்பணியாளர் தணிக்கையாளர் ஒதுக்கீட்டுடோக்கனுடன்உங்கள்கணினிஅமைப்பு
    """.split()
)
"""what stands where pages, files and the audit name people, in every language, without spaces and symbols"""
_WITHOUT_SYMBOLS: Final = str.maketrans(dict.fromkeys(_SYMBOLS))
_NOT_CHOSEN: Final = phrase(
    "Choose a user name of letters, digits and . - _ +, in one script. It can only be an e-mail address if it is the one "
    "that the invitation went to."
)
_APP_SET_UP: Final = phrase("A new authenticator app was set up for your account.")
_BY_EMAIL: Final = phrase("Codes by e-mail were set up for your account.")
_PASSKEY_SET_UP: Final = phrase("A new passkey was set up for your account.")
_PROOF: Final = "enrolment-proof"


async def submit_profile(context: RequestContext, loaded: EnrolmentContext, *, user_name: str, name: str) -> Enrolment:
    """Accept the names of a new person, written at the end.

    Raises InvalidInput, Throttled and StaleStep. Source: D47, D51, D60
    """
    enrolment, invited = loaded.enrolment, loaded.invited
    if enrolment.step is not EnrolmentStep.PROFILE or invited is None:
        raise StaleStep
    try:
        full_name = display_name(name)
    except ValueError as error:
        raise InvalidInput(names.remedy_of(error, phrase("Enter your name.")), field="name") from None
    if len(full_name) > _NAME_CHARACTERS:
        raise InvalidInput(phrase("Enter a name of at most {count} characters.", count=_NAME_CHARACTERS), field="name")
    try:
        key = names.user_name(user_name.strip())
    except ValueError:
        raise InvalidInput(_NO_USER_NAME, field="user_name") from None
    if not _can_be_chosen(key, invited.membership.email):
        raise InvalidInput(_NOT_CHOSEN, field="user_name")
    # The answer says which user names there are, so only a free one costs nothing.
    attempt = await count_attempt(context, loaded)
    registry = context.provider.registry
    named = await registry.directory.user_by_name(key)
    if (
        key.translate(_WITHOUT_SYMBOLS) in RESERVED_NAMES
        or named is not None
        or await _is_called_so(registry, invited.membership, key)
    ):
        await throttle.rejection_counts(context, loaded.sent)
        raise InvalidInput(NAME_TAKEN, field="user_name")
    await throttle.give_back(context, attempt)
    chosen = {"user_name": key, "name": full_name, "email": invited.membership.email, "name_taken": False}
    return await enrolments.move(context, enrolment, EnrolmentStep.PROFILE, **chosen)


def _can_be_chosen(user_name: str, address: str) -> bool:
    """Return whether a new person may be known by a user name.

    An address only if it is the one that the link has proven: it identifies whoever is invited at it. No brackets,
    nothing that looks like another name or is read as an identifier, and not symbols alone, which pages show where
    there is nothing.
    """
    if user_name == address.casefold():
        return True
    plain = all(each.isalnum() or each in _SYMBOLS for each in user_name if each.isascii())
    named = any(map(str.isalnum, user_name)) and not names.is_user_id(user_name)
    return plain and named and names.is_distinct(user_name)


async def _is_called_so(registry: Registry, invited: Membership, user_name: str) -> bool:
    """Return whether the inviting entity calls another member so (D68)."""
    query = MemberQuery(entity_id=invited.entity_id, conditions=(("any_user_name", "eq", user_name),), limit=2)
    _, found = await registry.provisioning.members(query)
    return any(each.membership.membership_id != invited.membership_id for each in found)


async def prove_password(context: RequestContext, loaded: EnrolmentContext, *, password: str) -> Enrolment:
    """Verify the person's password.

    Raises InvalidInput, Repeated, Throttled, PasswordsBusy and StaleStep (D44, D47, D73).
    """
    enrolment, user = _at(loaded, EnrolmentStep.PROVE_PASSWORD), loaded.user
    counted = await count_attempt(context, loaded)
    await throttle.refuse_repeated(context, loaded.sent)
    known = await context.provider.registry.factors.credentials(user.user_id)
    name, stored = names.user_name(user.user_name), known.password_hash
    if not await factor_checks.fits(context, counted, name, password_hash=stored, password=password):
        if await throttle.rejection_counts(context, loaded.sent):
            await context.provider.registry.audit.write(
                factor_event(context, user, AuditAction.ENROLMENT_PASSWORD, "refused"), now=context.now
            )
        raise InvalidInput(WRONG_PASSWORD)
    return await enrolments.move(context, enrolment, EnrolmentStep.PROVE_PASSWORD)


async def count_attempt(context: RequestContext, loaded: EnrolmentContext) -> Attempt:
    """Count an attempt with the link, and note it with the form.

    Raises Throttled. Source: D47, D73
    """
    counted = await throttle.attempt_with_link(context, loaded.enrolment.link_hash)
    if loaded.sent is not None:
        loaded.sent.attempt = counted
    return counted


async def prove_code(context: RequestContext, loaded: EnrolmentContext, *, code: str) -> Enrolment:
    """Verify an app code, or spend a recovery code.

    Five misses end the enrolment. Raises InvalidInput, Repeated, EnrolmentStopped, Throttled (also as Paused) and
    StaleStep. Source: D45, D47, D73
    """
    enrolment, user = _at(loaded, EnrolmentStep.PROVE_SECOND_FACTOR), loaded.user
    known = await context.provider.registry.factors.credentials(user.user_id)
    by_app, guesses = bool(known.totp_secret) and typed_code(code).isdecimal(), None
    if by_app:
        seen = await throttle.guesses_with_links(context, user.user_id)
        if seen.guesses:
            # Tried again it would be another guess, since the app's code changes.
            await throttle.refuse_repeated(context, loaded.sent)
        counted, guesses = await throttle.attempt_code_with_link(context, seen, known, enrolment.link_hash)
        if loaded.sent is not None:
            loaded.sent.attempt = counted
    else:
        await count_attempt(context, loaded)
    entry = factor_event(context, user, AuditAction.ENROLMENT_SECOND_FACTOR, "ok")
    try:
        if by_app:
            await factor_checks.accept_app(context, known, code, entry)
        else:
            await factor_checks.accept_recovery(context, user, code, entry)
    except factor_checks.PerhapsUsed as refused:
        entry = factor_event(context, user, AuditAction.ENROLMENT_SECOND_FACTOR, "refused", reason=str(refused))
        await context.counts.take_back(context.provider.transient, now=context.now)
        await context.provider.registry.audit.write(entry, now=context.now)
        raise InvalidInput(refused.sentence) from None
    except WrongCode:
        await count_miss(context, loaded, guesses)
        raise InvalidInput(
            phrase(
                "This code is not right, or was already used. Enter the latest code from your app, or a recovery code."
            )
        ) from None
    await context.provider.registry.code_guesses.forget(user.user_id, throttle.LINK_GUESSES)
    return await enrolments.move(context, enrolment, EnrolmentStep.PROVE_SECOND_FACTOR)


async def count_miss(context: RequestContext, loaded: EnrolmentContext, guesses: CodeGuesses | None = None) -> None:
    """Count a wrong code, unless it came in the same bytes before.

    Raises EnrolmentStopped at the fifth, which ends the enrolment. Source: D45, D73
    """
    enrolment = loaded.enrolment
    if not await throttle.rejection_counts(context, loaded.sent):
        if guesses is not None:
            await throttle.give_guess_back(context, guesses)
        return
    async with context.provider.transient.batch(context.now) as batch:
        last = await factor_checks.count_miss(context, batch, enrolment.enrolment_id)
        if last:
            await enrolments.stop(context, batch, enrolment)
        await context.provider.registry.audit.write(
            factor_event(context, loaded.user, AuditAction.ENROLMENT_SECOND_FACTOR, "refused"), now=context.now
        )
        if guesses is not None and guesses.paused_until:
            entry = throttle.pause_event(
                factor_event(context, loaded.user, AuditAction.ENROLMENT_PAUSE_CODES, "refused"), guesses
            )
            await context.provider.registry.audit.write(entry, now=context.now)
    if last:
        raise enrolments.EnrolmentStopped


async def has_codes(context: RequestContext, user: User) -> bool:
    """Return whether this person has an app or recovery codes.

    Then a code can be asked for. Source: D45
    """
    return (await factor_checks.held_factors(context.provider.registry, user.user_id)).typed_code


async def proof_options(context: RequestContext, loaded: EnrolmentContext) -> str:
    """The WebAuthn request options (JSON) of the person's passkeys.

    Empty if none of them works here (D46).
    """
    own = await context.provider.registry.factors.passkeys(loaded.user.user_id)
    if not own:
        return ""
    subject = loaded.enrolment.enrolment_id
    return passkeys.authentication_options(context, _PROOF, subject, allowed=own)


async def prove_passkey(context: RequestContext, loaded: EnrolmentContext, *, passkey: str) -> Enrolment:
    """Verify one of the person's own passkeys.

    Raises InvalidInput, Throttled and StaleStep (WebAuthn §7.2, D46).
    """
    enrolment, user = _at(loaded, EnrolmentStep.PROVE_SECOND_FACTOR), loaded.user
    async with context.provider.transient.batch(context.now) as batch:
        await throttle.attempt_unguessable(context, batch)
    try:
        await passkeys.verify_own_passkey(
            context,
            passkey,
            purpose=_PROOF,
            subject=enrolment.enrolment_id,
            entry_of=lambda owner: factor_event(context, owner, AuditAction.ENROLMENT_PASSKEY, "ok"),
            owner_id=user.user_id,
        )
    except PasskeyRefused as refusal:
        entry = factor_event(
            context, user, AuditAction.ENROLMENT_PASSKEY, "refused", reason=passkeys.describe_refusal(refusal)
        )
        if await throttle.rejection_counts(context, loaded.sent):
            await context.provider.registry.audit.write(entry, now=context.now)
        raise InvalidInput(phrase("This passkey was not accepted. Use another passkey or a code.")) from None
    return await enrolments.move(context, enrolment, EnrolmentStep.PROVE_SECOND_FACTOR)


def _at(loaded: EnrolmentContext, step: EnrolmentStep) -> Enrolment:
    _require_step(loaded, step)
    return loaded.enrolment


def _require_step(loaded: EnrolmentContext, *steps: EnrolmentStep) -> EnrolmentStep:
    if (step := loaded.enrolment.step) is None or step not in steps:
        raise StaleStep
    return step


def factor_event(
    context: RequestContext, user: User, action: AuditAction, outcome: Literal["ok", "refused"], *, reason: str = ""
) -> AuditEvent:
    """The audit event of a factor verified in an enrolment."""
    actor = Person(user_id=user.user_id)
    return context.event(actor, action, subject=user.user_id, outcome=outcome, reason=reason)


async def submit_password(context: RequestContext, loaded: EnrolmentContext, *, password: str) -> Enrolment:
    """Accept a new password, written at the end.

    Raises InvalidInput, Throttled, PasswordsBusy and StaleStep (D44, D47).
    """
    enrolment, user = loaded.enrolment, loaded.user
    step = _require_step(loaded, EnrolmentStep.FIRST, EnrolmentStep.PASSWORD)
    attempt = await throttle.attempt_change(context, enrolment.link_hash)
    if loaded.sent is not None:
        loaded.sent.attempt = attempt
    try:
        password_hash = await factor_checks.hash_new_password(context, attempt, user, password)
    except PasswordRefused as refusal:
        await throttle.rejection_counts(context, loaded.sent)
        raise InvalidInput(refusal.sentence) from None
    return await enrolments.move(context, enrolment, step, password_hash=password_hash)


async def submit_app(context: RequestContext, loaded: EnrolmentContext, *, code: str) -> Enrolment:
    """Accept a new app by its first code.

    Raises InvalidInput and StaleStep. Source: D45
    """
    enrolment = _at(loaded, EnrolmentStep.SECOND_FACTOR)
    step = enrolments.match_new_app(context, enrolments.app_secret(context, enrolment), code)
    return await enrolments.move(context, enrolment, EnrolmentStep.SECOND_FACTOR, app_step=step)


def email_offered(context: RequestContext, loaded: EnrolmentContext) -> bool:
    """Return whether this person can choose codes by e-mail.

    Mail must be configured, and a code must have been sent or still be allowed. Source: D45
    """
    at = loaded.enrolment
    return factor_checks.mails_codes(context, loaded.user) and (
        _more_mails(at) or factor_checks.under_way(at, now=context.now)
    )


def _more_mails(enrolment: Enrolment) -> bool:
    return enrolment.mails < MAILED_CODES_PER_SIGN_IN


def mailed_code_request(context: RequestContext, loaded: EnrolmentContext) -> SecondFactorQuestion:
    """The request of the code's page (D45)."""
    at = loaded.enrolment
    sent = factor_checks.under_way(at, now=context.now)
    return SecondFactorQuestion(
        way=SecondFactorMethod.EMAIL, email=loaded.user.email, under_way=sent, more=_more_mails(at)
    )


async def choose_way(context: RequestContext, loaded: EnrolmentContext, *, decision: str) -> Enrolment:
    """Switch to codes by e-mail and send one, or switch back.

    None is sent if an earlier one can still be typed. The alternative is an app (`rules.authentication.sign_in`).
    Raises InvalidInput and StaleStep. Source: D45
    """
    enrolment = loaded.enrolment
    step = _require_step(loaded, EnrolmentStep.SECOND_FACTOR, EnrolmentStep.MAILED_CODE)
    if decision == SecondFactorMethod.APP.value:
        return await enrolments.claim_step(context, enrolment, step, by_email=False)
    if decision != SecondFactorMethod.EMAIL.value or not factor_checks.mails_codes(context, loaded.user):
        raise InvalidInput(phrase("Choose one of the options."))
    if not enrolment.by_email and factor_checks.under_way(enrolment, now=context.now):
        return await enrolments.claim_step(context, enrolment, step, by_email=True)
    return await _mail_code(context, loaded, step)


async def _mail_code(context: RequestContext, loaded: EnrolmentContext, step: EnrolmentStep) -> Enrolment:
    enrolment, user = loaded.enrolment, loaded.user
    if not _more_mails(enrolment):
        raise InvalidInput(
            phrase("We cannot send any more codes here. Use the latest one, or set up an authenticator app.")
        )
    name = names.user_name(user.user_name)
    known = await throttle.is_known(context, name, enrolment.browser_key, user_id=user.user_id)
    await sign_in.count_email(context, user, enrolment.browser_key, known=known)
    changes = {"by_email": True, "mails": enrolment.mails + 1, "mailed_at": int(context.now)}
    moved = await enrolments.claim_step(context, enrolment, step, **changes)
    await context.provider.registry.audit.write(
        factor_event(context, user, AuditAction.ENROLMENT_MAIL_CODE, "ok"), now=context.now
    )
    why = notifications.setting_up(context.provider.policy.name)
    code = factor_checks.code_of(context, moved.enrolment_id, moved, user)
    notifications.mailed_code(context, user, code, why=why)
    return moved


async def submit_mailed_code(context: RequestContext, loaded: EnrolmentContext, *, code: str) -> Enrolment:
    """Verify the code sent by e-mail: later ones will arrive, too.

    Five misses end the enrolment. Raises InvalidInput, EnrolmentStopped, Throttled and StaleStep. Source: D45, D47
    """
    enrolment = _at(loaded, EnrolmentStep.MAILED_CODE)
    await count_attempt(context, loaded)
    try:
        factor_checks.check_emailed_code(context, enrolment.enrolment_id, enrolment, loaded.user, code)
    except WrongCode:
        await count_miss(context, loaded)
        raise InvalidInput(
            phrase("This code is not right. Enter the one from the latest e-mail, or send a new one.")
        ) from None
    return await enrolments.move(context, enrolment, EnrolmentStep.MAILED_CODE)


async def submit_codes(context: RequestContext, loaded: EnrolmentContext, *, kept: str, decision: str) -> Enrolment:
    """Accept that the person has saved the recovery codes.

    `kept` is the form's field, not empty. With any `decision`, they have not, and are offered others. Raises
    InvalidInput and StaleStep. Source: D45, D73
    """
    enrolment = _at(loaded, EnrolmentStep.RECOVERY_CODES)
    if decision:
        return await enrolments.claim_step(
            context, enrolment, EnrolmentStep.RECOVERY_CODES, other_codes=enrolment.other_codes + 1
        )
    if not kept:
        raise InvalidInput(phrase("Save your codes first, then tick the box."))
    return await enrolments.move(context, enrolment, EnrolmentStep.RECOVERY_CODES)


async def passkey_options(context: RequestContext, loaded: EnrolmentContext) -> str:
    """The WebAuthn creation options (JSON) of a new passkey.

    Empty if passkeys do not work (D46).
    """
    return await passkeys.registration_options(context, loaded.user, loaded.enrolment.enrolment_id)


async def submit_passkey(context: RequestContext, loaded: EnrolmentContext, *, passkey: str) -> Enrolment:
    """Accept a new passkey, the browser's JSON, written at the end.

    Raises InvalidInput and StaleStep (WebAuthn §7.1, D46).
    """
    enrolment, step = loaded.enrolment, _require_step(loaded, EnrolmentStep.FIRST, EnrolmentStep.SECOND_FACTOR)
    made = await passkeys.verify_new_passkey(context, enrolment.enrolment_id, answer=passkey)
    passkey_record = passkeys.make_record(context, enrolment.user_id, made)
    first = step is EnrolmentStep.FIRST
    return await enrolments.move(context, enrolment, step, passkey=passkey_record, passkey_first=first)


async def passkeys_from_before(context: RequestContext, loaded: EnrolmentContext) -> list[Passkey]:
    """The person's passkeys from before this enrolment.

    They are listed because a lost device may hold one. Source: D46
    """
    made = loaded.enrolment.passkey
    found = await context.provider.registry.factors.passkeys(loaded.user.user_id)
    return [each for each in found if made is None or each.credential_id != made.credential_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorsToWrite:
    """Everything that an enrolment brought, to be written at once."""

    change: FactorChange
    event: AuditEvent
    invited: OpenInvitation | None
    """the invitation that it answers, if it is an entity's"""


async def to_write(context: RequestContext, loaded: EnrolmentContext) -> FactorsToWrite:
    """Return what a finished enrolment writes. Its link is spent with it.

    Raises NotHere and StaleStep. Source: D44, D45, D46
    """
    enrolment = loaded.enrolment
    if enrolment.step is not None or enrolment.finished:
        raise StaleStep
    found = await enrolments.find_valid_link(context, enrolment.link_hash)
    if found is None:
        raise NotHere
    before = Credentials(user_id=enrolment.user_id) if found.invited else found.credentials
    after = before
    if enrolment.password_hash:
        after = after.with_password(enrolment.password_hash, "user")
    if enrolment.app_step:
        after = after.with_app(enrolments.app_secret(context, enrolment), "user", step=enrolment.app_step)
    elif links.PURPOSES[enrolment.purpose].drops_app:
        after = after.without_app("user")
    actor = Person(user_id=enrolment.user_id)
    authorise(actor, "write", Object(kind="credentials", user_id=enrolment.user_id))
    keeps_codes = EnrolmentStep.RECOVERY_CODES in enrolment.done
    hashes = tuple(recovery_code_hash(enrolment.user_id, code) for code in enrolments.codes(context, enrolment))
    change = FactorChange(
        before=before,
        after=after,
        add_passkey=enrolment.passkey,
        recovery_codes=hashes if keeps_codes else None,
        # The placeholder's link ends with the placeholder.
        spend_link="" if found.invited else enrolment.link_hash,
        end_sessions_but="",
    )
    new = {
        "password": enrolment.password_hash,
        "app": enrolment.app_step,
        "email": enrolment.by_email,
        "passkey": enrolment.passkey,
    }
    done = " ".join(name for name, value in new.items() if value)
    event = context.event(actor, links.PURPOSES[enrolment.purpose].used, subject=enrolment.user_id, set=done)
    return FactorsToWrite(change=change, event=event, invited=found.invited)


async def finish(context: RequestContext, loaded: EnrolmentContext) -> None:
    """Write everything, spend the link, end every session, and notify the person.

    An answer to an invitation is written by `flows.directory.acceptance`. Raises NotHere and StaleStep.

    Source: D44, D45, D46, D47
    """
    factors = await to_write(context, loaded)
    if factors.invited is not None or not await context.provider.registry.factors.change(factors.change, factors.event):
        raise NotHere
    await end_written(context, loaded)


async def end_written(context: RequestContext, loaded: EnrolmentContext) -> None:
    """Notify the person, and end the enrolment whose factors were written (D45, D47)."""
    enrolment, user = loaded.enrolment, loaded.user
    set_up = _PASSKEY_SET_UP if enrolment.passkey else _BY_EMAIL if enrolment.by_email else _APP_SET_UP
    notice = links.PURPOSES[enrolment.purpose].notice or notifications.second_factor_changed(set_up)
    notifications.notify(context, user, notice)
    finished = msgspec.structs.replace(enrolment, serial=enrolment.serial + 1, finished=True, password_hash="")
    async with context.provider.transient.batch(context.now) as batch:
        await enrolments.save(context, batch, finished)
        if links.PURPOSES[enrolment.purpose].begins:
            await sessions.expect_first_sign_in(context, batch, user.user_id)
        await throttle.unlock(batch, context.provider.policy.deployment_url, names.user_name(user.user_name))
        await context.provider.registry.code_guesses.forget_all(user.user_id)
